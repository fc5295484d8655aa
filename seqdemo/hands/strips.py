"""Film strips: the same input decoded at one setting after another, each beside the first and the one before.

dimmer     attention at 100, 75, 50, 25, 0 %, with what each step costs
beam       k = 1, 2, 3, 5, 10, 20, 50, 100 and exact search; and the pool of all outputs met, to be ranked anew
precision  float32, bfloat16, int8
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from seqdemo.checkpoints import Checkpoint
from seqdemo.config import PRECISIONS, TOLERANCE, SearchOptions
from seqdemo.edits import AttentionBlend, Edit, check_blend, is_word
from seqdemo.errors import InputError
from seqdemo.explain.replay import inputs_of
from seqdemo.findings import Frame, Pooled, Strip, Wanted
from seqdemo.hands.place import Cancel
from seqdemo.network.attention import what_if_of
from seqdemo.network.model import Network
from seqdemo.numerals import signed
from seqdemo.playground import (
    Run,
    at_least_one,
    checkpoint_of,
    network_of,
    obedient,
    run,
    scorable,
    searched,
    sources_of,
    texts_of,
    trace,
)
from seqdemo.prompts import Prompt, tokenizer
from seqdemo.records import Certificate, Hypothesis, Price
from seqdemo.text import quoted

SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
BEAMS = (1, 2, 3, 5, 10, 20, 50, 100)
EXACT = "exact"
MOST_EXPANSIONS = 5_000  # of the exact search in a strip
POOLED = 50  # outputs in a batch
NOTHING_WHOLE = "No complete output was found within the budget."
TINY = torch.finfo(torch.float32).tiny

Shown = Callable[[Sequence[Frame], int], None]  # the frames so far, and how many there will be
Models = Callable[[str], Checkpoint]  # by precision


def sweep(
    checkpoint: Checkpoint | Network,
    found: Run,
    along: str,
    *,
    towards: str = "uniform",
    wanted: str = "",
    models: Models | None = None,
    shown: Shown | None = None,
    cancel: Cancel | None = None,
) -> Strip:
    """The input of a run decoded `along` the dimmer of attention, the sizes of a beam, or the precisions, with the run's options
    and edits otherwise. `towards`: what the dimmer blends attention with. `wanted`: the answer that beams are held against.
    `shown(frames, of)` hears of every frame; after `cancel()` the strip ends with those that are there. A setting at which the
    input cannot be decoded is left out, and `says` tells why."""
    strips = {"dimmer": Dimmer, "beam": Beams, "precision": Precisions}
    if along not in strips:
        raise InputError(f"A strip goes along {', '.join(strips)}, not {along!r}.")
    checkpoint = checkpoint_of(checkpoint)
    strip = strips[along](checkpoint, found, towards=towards, wanted=wanted, models=models or checkpoint.in_precision)
    frames: list[Frame] = []
    failed: dict[str, InputError] = {}
    for setting in strip.settings:
        try:
            frames.append(strip.beside(strip.frame_at(setting, cancel), frames))
        except InputError as error:
            if frames and cancel and cancel():
                break
            failed[strip.label(setting)] = error
        if shown:
            shown(frames, len(strip.settings))
        if cancel and cancel():
            break
    if not frames:
        raise next(iter(failed.values()))
    flips = next((n for n, frame in enumerate(frames) if frame.differs_at is not None), None)
    says = (*strip.says(frames, flips), *(f"{label} is left out: {error}" for label, error in failed.items()))
    return Strip(along, tuple(frames), 0, flips, strip.wanted, strip.pool(frames), says)


class Along:
    """The common part of all strips."""

    settings: Sequence[Any] = ()
    wanted: Wanted | None = None

    def __init__(self, checkpoint: Checkpoint, found: Run, *, towards: str, wanted: str, models: Models) -> None:
        self.checkpoint, self.found, self.towards, self.models = checkpoint, found, towards, models
        self.prompt, self.edits, self.options = found.prompt, found.edits, found.options
        self.text = tokenizer(checkpoint.target_text)
        self.begin(wanted)

    def begin(self, wanted: str) -> None:
        """Checks before the first frame."""

    def label(self, setting: Any) -> str:
        return str(setting)

    def frame_at(self, setting: Any, cancel: Cancel | None) -> Frame:
        raise NotImplementedError

    def frame(self, label: str, value: float | str, best: Hypothesis, text: str, seconds: float, **more: Any) -> Frame:
        pieces = tuple(map(self.text.piece, best.tokens))
        said = (best.tokens, best.logps, best.total, best.score, len(best.tokens), best.finished)
        return Frame(label, value, text, pieces, *said, seconds, **more)

    def beside(self, frame: Frame, before: Sequence[Frame]) -> Frame:
        """The frame with its differences from the first one and from the one before."""
        if not before:
            return frame
        return replace(
            frame,
            differs_at=first_difference(before[0].tokens, frame.tokens),
            changed=frame.tokens != before[-1].tokens,
        )

    def pool(self, frames: Sequence[Frame]) -> tuple[Pooled, ...]:
        return ()

    def says(self, frames: Sequence[Frame], flips: int | None) -> Iterator[str]:
        raise NotImplementedError

    def where(self, frame: Frame, base: Frame) -> str:
        """The piece at which two outputs begin to differ, and both pieces there."""
        at = frame.differs_at
        assert at is not None
        old, new = (quoted(one.pieces[at]) if at < len(one.pieces) else "nothing" for one in (base, frame))
        return f"piece {at + 1} is {new} instead of {old}"


class Dimmer(Along):
    settings = SHARES

    def begin(self, wanted: str) -> None:
        check_blend(AttentionBlend(1.0, self.towards), network_of(self.checkpoint).config, self.prompt.limit)

    def label(self, setting: float) -> str:
        return f"{100 * setting:.0f} %"

    def frame_at(self, setting: float, cancel: Cancel | None) -> Frame:
        blend: tuple[Edit, ...] = () if setting == 1 else (AttentionBlend(1 - setting, self.towards),)
        begun = time.perf_counter()
        made = run(self.checkpoint, self.prompt, self.options, (*self.edits, *blend), cancel=cancel)
        seconds, price = time.perf_counter() - begun, made.own_prices[-1] if blend else None
        more: dict[str, Price | tuple[Edit, ...] | None] = {"price": price, "edits": blend}
        return self.frame(self.label(setting), setting, made.hypotheses[0], made.texts[0], seconds, **more)

    def says(self, frames: Sequence[Frame], flips: int | None) -> Iterator[str]:
        if flips is None:
            yield f"The output stays as it is down to {frames[-1].label} of attention."
        else:
            yield f"The output changes at {frames[flips].label} of attention: {self.where(frames[flips], frames[0])}."


class Precisions(Along):
    settings = PRECISIONS

    def frame_at(self, setting: str, cancel: Cancel | None) -> Frame:
        model = self.models(setting)
        begun = time.perf_counter()
        made = run(model, self.prompt, self.options, self.edits, cancel=cancel)
        seconds, note = time.perf_counter() - begun, network_of(model).precision_note
        return self.frame(setting, setting, made.hypotheses[0], made.texts[0], seconds, note=note)

    def says(self, frames: Sequence[Frame], flips: int | None) -> Iterator[str]:
        for frame in frames[1:]:
            if frame.differs_at is None:
                change = f"{frame.logp - frames[0].logp:+.4f}".replace("-", "−")
                yield f"{frame.label} writes the same; its log probability differs by {change}."
            else:
                yield f"{frame.label} changes the output: {self.where(frame, frames[0])}."


class Beams(Along):
    settings = (*BEAMS, EXACT)

    def begin(self, wanted: str) -> None:
        self.met: dict[tuple[int, ...], tuple[Hypothesis, int, list[int]]] = {}
        self.made = 0  # frames
        self.wanted = wanted_answer(self.checkpoint, self.found, wanted) if wanted else None
        self.plain = replace(self.options, strategy="beam", groups=1, siblings=0.0)

    def label(self, setting: int | str) -> str:
        return EXACT if setting == EXACT else f"k = {setting}"

    def frame_at(self, setting: int | str, cancel: Cancel | None) -> Frame:
        asked = {"strategy": EXACT} if setting == EXACT else {"strategy": "beam", "beam": setting}
        options = exact_options(self.plain) if isinstance(setting, str) else replace(self.plain, beam=setting, nbest=setting)
        begun = time.perf_counter()
        (result,) = searched(self.checkpoint, [self.prompt], options, self.edits, cancel=cancel)
        seconds = time.perf_counter() - begun
        outputs = at_least_one(obedient(result, self.prompt, self.edits))
        whole = [one for one in outputs if result.complete(one)]
        self.meet(whole, 0 if isinstance(setting, str) else setting)
        (text,) = texts_of(self.checkpoint, self.prompt, outputs[:1])
        more = {"options": asked, "note": "" if whole else NOTHING_WHOLE, **proof(result.certificate)}
        return self.frame(self.label(setting), setting, outputs[0], text, seconds, **more)

    def meet(self, outputs: Sequence[Hypothesis], beam: int) -> None:
        for one in outputs:
            self.met.setdefault(one.tokens, (one, beam, []))[2].append(self.made)
        self.made += 1

    def beside(self, frame: Frame, before: Sequence[Frame]) -> Frame:
        if frame.note:
            return frame
        frame, before = super().beside(frame, before), [one for one in before if not one.note]
        best = max((one.score for one in before), default=frame.score)
        worse = frame.score < best - TOLERANCE[self.found.precision] * (1 + abs(best))
        if self.wanted is None:
            return replace(frame, worse=worse)
        like = likeness(frame.text, self.wanted.text)
        return replace(frame, likeness=like, worse=worse or like < max((one.likeness or 0.0 for one in before), default=like))

    def pool(self, frames: Sequence[Frame]) -> tuple[Pooled, ...]:
        """All outputs of the frames, likeliest first."""
        met = sorted(self.met.values(), key=lambda item: -item[0].total)
        outputs = [one for one, *_ in met]
        texts = texts_of(self.checkpoint, self.prompt, outputs)
        return tuple(
            Pooled(text, one.tokens, one.total, len(one.tokens), cover, beam, tuple(seen))
            for text, (one, beam, seen), cover in zip(texts, met, coverages(self.checkpoint, self.prompt, outputs, self.edits))
        )

    def says(self, frames: Sequence[Frame], flips: int | None) -> Iterator[str]:
        changes = [frame.label for frame in frames if frame.changed]
        yield f"The output changes at {', '.join(changes)}." if changes else "The output is the same at every setting."
        worse = [frame.label for frame in frames if frame.worse]
        if worse:
            how = "is less like the wanted answer, or scores lower, than" if self.wanted else "scores lower than"
            yield f"More search found something worse at {', '.join(worse)}: it {how} what a smaller beam found."
        whole = [frame for frame in frames if not frame.note]
        if self.wanted and whole and self.found.task != "complete":  # of texts that go on, a shorter one is likelier
            yield fault(self.wanted, max(whole, key=lambda frame: frame.logp))


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    if tuple(one) == tuple(other):
        return None
    return next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


def exact_options(plain: SearchOptions) -> SearchOptions:
    expansions = min(plain.expansions, MOST_EXPANSIONS)
    return replace(plain, strategy=EXACT, nbest=1, expansions=expansions)


def proof(certificate: Certificate | None) -> dict[str, Any]:
    return {"proved": certificate.proved, "certificate": certificate.sentence} if certificate else {}


def wanted_answer(checkpoint: Checkpoint, found: Run, wanted: str) -> Wanted:
    """The answer that the user wanted, scored under the edits in force, as the outputs are."""
    prompt, text = found.prompt, tokenizer(checkpoint.target_text)
    given = text.decode(prompt.prefix) if found.task == "complete" else prompt
    asked, tokens = scorable(checkpoint, given, wanted, prompt.language)
    told = trace(checkpoint, asked, tokens, tuple(edit for edit in found.edits if not is_word(edit)), found.options)
    return Wanted(text.decode(told.tokens), float(told.logps[len(prompt.prefix) :].sum()))


def fault(wanted: Wanted, best: Frame) -> str:
    """A sentence on why the wanted answer was not given: because of the search or of the model."""
    if wanted.text == best.text:
        return "The likeliest output found is the wanted answer."
    if wanted.logp > best.logp:
        return (
            f"The model finds the wanted answer likelier than all that was found ({signed(wanted.logp)}): the search missed it."
        )
    than = f"{quoted(best.text)} ({signed(best.logp)})"
    return f"The model finds the wanted answer less likely ({signed(wanted.logp)}) than {than}: the model is at fault."


def likeness(one: str, other: str) -> float:
    """1 - d / n: d edits of characters turn one text into the other, and the longer one has n characters."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        left, row[0], corner = i, i, i - 1
        for j, b in enumerate(other, 1):
            corner, above = row[j], corner + (a != b)
            left = row[j] = min(above, corner + 1, left + 1)
    return 1 - row[-1] / max(len(one), len(other), 1)


@torch.inference_mode()
def coverages(
    checkpoint: Checkpoint, prompt: Prompt, outputs: Sequence[Hypothesis], edits: tuple[Edit, ...]
) -> list[float | None]:
    """sum_j log min(1, sum_t a_tj) of each output, under the edits; None without attention."""
    network = network_of(checkpoint)
    if not network.config.has_attention:
        return [None] * len(outputs)
    what_if, name = what_if_of(edits), f"decoder.{network.config.attention_layers - 1}.cross"
    found: list[float | None] = []
    for first in range(0, len(outputs), POOLED):
        batch = [one.tokens for one in outputs[first : first + POOLED]]
        source, mask = sources_of([prompt] * len(batch))
        heads = network.teach(source, mask, inputs_of(*batch), what_if, (name,)).seen.values()
        rows_BTS = torch.stack(list(heads)).mean(0).double()
        found += [float(rows_TS[: len(tokens)].sum(0).clamp(TINY, 1).log().sum()) for rows_TS, tokens in zip(rows_BTS, batch)]
    return found
