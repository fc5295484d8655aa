"""The progress of a training: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from training.tasks.task import Score

if TYPE_CHECKING:
    from training.run.fit import Run, Step

LINE_SECONDS = 20.0
RECENT = 100  # steps whose mean is shown


def clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def one_line(text: str) -> str:
    return text.replace("\n", "\N{RETURN SYMBOL}")


class Meter:
    """Means over the last steps, and the remaining time at the pace since the start or resumption."""

    def __init__(self, run: Run) -> None:
        self.run, self.begun, self.first = run, time.monotonic(), run.progress.step
        self.recent: deque[tuple[float, Step]] = deque(maxlen=RECENT)

    def add(self, done: Step) -> None:
        self.recent.append((time.monotonic(), done))

    @property
    def loss(self) -> float:
        return sum(done.loss for _, done in self.recent) / max(1, len(self.recent))

    @property
    def speed(self) -> float:
        """Target tokens a second."""
        span = self.recent[-1][0] - self.recent[0][0] if self.recent else 0.0
        return sum(done.tokens for _, done in list(self.recent)[1:]) / span if span else 0.0

    @property
    def left(self) -> str:
        done = self.run.progress.step - self.first
        if not done:
            return "?"
        return clock((time.monotonic() - self.begun) / done * (self.run.steps - self.run.progress.step))


class Display:
    """Progress in plain lines. `shown` is a context around the loop."""

    def say(self, text: str) -> None:
        print(text, flush=True)

    @contextmanager
    def shown(self, run: Run) -> Iterator[None]:
        self.meter, self.told = Meter(run), time.monotonic()
        self.say(headline(run))
        yield

    def stepped(self, run: Run, done: Step) -> None:
        self.meter.add(done)
        if time.monotonic() - self.told >= LINE_SECONDS:
            self.told = time.monotonic()
            self.say(self.line(run, done))

    def line(self, run: Run, done: Step) -> str:
        progress, meter = run.progress, self.meter
        return (
            f"epoch {progress.epoch + 1}  step {progress.step:,}/{run.steps:,} ({progress.step / run.steps:.0%})  "
            f"loss {meter.loss:.3f}  norm {done.norm:.2f}  {meter.speed:,.0f} tokens/s  {meter.left} left"
        )

    def judged(self, run: Run, score: Score) -> None:
        source, _, output = map(one_line, score.sample)
        said = f"{source!r} -> {output!r}" if source else repr(output)
        self.say(f"  dev {run.recipe.metric} {score.metric:.2f}  {score.loss:.3f} nats/token  {said}")


class Silent(Display):
    """The display of all processes except the first."""

    def say(self, text: str) -> None:
        pass


class Panelled(Display):
    """A panel that stays in place on a terminal; messages scroll above it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.score: Score | None = None
        self.best = ""
        self.done: Step | None = None

    def say(self, text: str) -> None:
        self.console.print(Text(text))

    @contextmanager
    def shown(self, run: Run) -> Iterator[None]:
        self.meter = Meter(run)
        self.say(headline(run))
        with Live(console=self.console, refresh_per_second=4) as self.live:
            yield

    def stepped(self, run: Run, done: Step) -> None:
        self.meter.add(done)
        self.done = done
        self.live.update(self.panel(run, done))

    def judged(self, run: Run, score: Score) -> None:
        self.score, best = score, max(score.metric, run.progress.best)
        self.best = f"{score.metric:.2f} (best {best:.2f}), {score.loss:.3f} nats/token"
        if self.done:
            self.live.update(self.panel(run, self.done))

    def panel(self, run: Run, done: Step) -> RenderableType:
        progress, meter = run.progress, self.meter
        bar = Table.grid(padding=(0, 2), expand=True)
        bar.add_column(ratio=1)
        bar.add_column(justify="right")
        bar.add_row(ProgressBar(run.steps, progress.step), f"step {progress.step:,} of {run.steps:,}, {meter.left} left")
        rows = Table.grid(padding=(0, 2))
        epochs = f"{progress.epoch + 1} of {run.recipe.epochs:g}, batch {progress.batch:,} of {run.batches:,}"
        self.fill(rows, epoch=epochs, loss=f"{meter.loss:.3f} nats/token", speed=f"{meter.speed:,.0f} tokens/s")
        self.fill(rows, **{"gradient norm": f"{done.norm:.2f}", "learning rate": f"{done.rate:.2e}"})
        if self.score:
            source, reference, output = map(one_line, self.score.sample)
            self.fill(rows, **{f"dev {run.recipe.metric}": self.best, "reads": source, "says": output, "should say": reference})
        return Panel(Group(bar, rows), title=run.recipe.name, expand=True)

    @staticmethod
    def fill(rows: Table, **told: str) -> None:
        for name, value in told.items():
            if value:
                rows.add_row(Text(name, style="dim"), Text(value))


def headline(run: Run) -> str:
    size = sum(parameter.numel() for parameter in run.model.parameters() if parameter.requires_grad)
    return (
        f"{run.recipe.name}: {run.recipe.about}\n{size:,} parameters to learn from {run.examples:,} examples in {run.steps:,} "
        f"steps, {run.batches:,} batches an epoch, on {run.ranks.device}{' in bfloat16' if run.bf16 else ''}."
    )


def display_for(first: bool = True) -> Display:
    console = Console(file=sys.stdout)
    if not first:
        return Silent()
    return Panelled(console) if console.is_terminal else Display()
