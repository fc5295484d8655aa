"""`python -m seqdemo.ui.mine translate sentences.txt`: finds examples worth opening with among lines of text.

Each line is decoded greedily, with beam 5 and with beam 50, and by the twin without attention. What shows something is kept, the
clearest of each kind, with a sentence that says what it shows; the result is written to gallery/<task>.json beside the models.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from seqdemo.config import SearchOptions
from seqdemo.records import Hypothesis
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.launch import checkpoints_folder
from seqdemo.ui.service import Question, Service

GREEDY, BEAM, WIDE = SearchOptions(strategy="greedy"), SearchOptions(beam=5), SearchOptions(beam=50)
KEPT_OF_EACH = 2
UNITS = {"translate": "word", "transliterate": "letter", "complete": "letter"}


@dataclass(frozen=True)
class Find:
    """An example of one kind; `worth` compares those of a kind."""

    kind: str
    worth: float
    text: str
    shows: str
    language: str | None = None


def parting(left: Hypothesis, right: Hypothesis) -> int:
    pairs = zip_longest(left.tokens, right.tokens)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), len(left.tokens))


def lost_by_greedy(greedy: Hypothesis, beam: Hypothesis, unit: str) -> tuple[float, str] | None:
    """Greedy's early, narrow choice that costs much: worth more the narrower, the earlier and the dearer."""
    gain, at = beam.total - greedy.total, parting(greedy, beam)
    if gain < math.log(1.5) or at >= min(len(greedy.tokens), len(beam.tokens)) - 1:
        return None
    gap = greedy.logps[at] - beam.logps[at]
    if gap <= 0:
        return None
    shows = f"Greedy loses it at {unit} {at + 1} by {gap:.2f}; beam finds an output {math.exp(gain):.1f} times as likely."
    return gain - 3 * gap - 0.3 * at, shows


def shortened_by_width(beam: Hypothesis, wide: Hypothesis) -> tuple[float, str] | None:
    """A wider beam that finds something likelier and shorter."""
    shorter = len(beam.tokens) - len(wide.tokens)
    if wide.total <= beam.total or shorter < 2:
        return None
    return float(shorter), f"Set B to beam 50: the likelier output is {shorter} tokens shorter. Length normalisation is for that."


def reordered(weights: np.ndarray | None, unit: str) -> tuple[float, str] | None:
    """Attention that jumps backwards by far."""
    if weights is None or len(weights) < 4:
        return None
    jump = int(-np.diff(weights.argmax(1)).min())
    return (float(jump), f"The order changes: look how the alignment jumps back by {jump} {unit}s.") if jump >= 3 else None


class Miner:
    def __init__(self, service: Any, catalogue: Catalogue, task: str) -> None:
        self.service, self.task, self.unit = service, task, UNITS[task]
        self.card = catalogue.of_task(task)[0]

    def best(self, text: str, options: SearchOptions, language: str | None, name: str = "") -> Any:
        return self.service.run(Question(name or self.card["name"], "", text, options, (), language))

    def finds(self, text: str, language: str | None) -> Iterator[Find]:
        runs = {name: self.best(text, options, language) for name, options in (("g", GREEDY), ("b", BEAM), ("w", WIDE))}
        greedy, beam, wide = (runs[name].run.hypotheses[0] for name in "gbw")
        found = {
            "greedy": lost_by_greedy(greedy, beam, self.unit),
            "width": shortened_by_width(beam, wide),
            "order": reordered(self.service.best_trace(runs["b"]).attention, self.unit),
        }
        for kind, what in found.items():
            if what:
                yield Find(kind, what[0], text, what[1], language)
        if self.card["without"] and len(beam.tokens) > 8:
            plain = self.best(text, BEAM, language, self.card["without"])
            apart = len(set(runs["b"].run.texts[0].split()) ^ set(plain.run.texts[0].split())) / len(beam.tokens)
            if apart > 0.7:
                yield Find("plain", apart, text, "Switch attention off in B: one vector cannot hold all of this.", language)


def chosen(finds: Sequence[Find]) -> list[Find]:
    """The best of each kind, greedy's losses first; no text twice."""
    kept: dict[str, Find] = {}
    for kind in ("greedy", "order", "width", "plain"):
        ranked = sorted((find for find in finds if find.kind == kind and find.text not in kept), key=lambda find: -find.worth)
        kept.update({find.text: find for find in ranked[:KEPT_OF_EACH]})
    return list(kept.values())


def written(root: Path, task: str, finds: Sequence[Find]) -> Path:
    rows = [{"text": find.text, "shows": find.shows, **({"language": find.language} if find.language else {})} for find in finds]
    path = root / "gallery" / f"{task}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Find examples that show something.")
    parser.add_argument("task", choices=list(UNITS))
    parser.add_argument("lines", type=Path, help="one input a line; for many languages: language, tab, input")
    parser.add_argument("--most", type=int, default=400, help="lines to try")
    given = parser.parse_args()
    root = checkpoints_folder()
    miner = Miner(Service(), Catalogue(root), given.task)
    found: list[Find] = []
    for line in given.lines.read_text("utf-8").splitlines()[: given.most]:
        language, _, text = line.rpartition("\t")
        found += miner.finds(text, language or None)
    print(written(root, given.task, chosen(found)).read_text("utf-8"))
