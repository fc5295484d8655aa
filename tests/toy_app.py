"""The app over a toy model: every page and every figure without a checkpoint. Run it to look at the pages."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1])]

from seqdemo.config import ModelConfig  # noqa: E402
from seqdemo.edits import AttentionBlend, Ban, Force, is_word  # noqa: E402
from seqdemo.errors import InputError  # noqa: E402
from seqdemo.findings import Badge  # noqa: E402
from seqdemo.images import read_picture  # noqa: E402
from seqdemo.records import Price  # noqa: E402
from seqdemo.text import quoted  # noqa: E402
from seqdemo.ui import launch  # noqa: E402
from seqdemo.ui.service import Question  # noqa: E402
from tests import fixtures_records as toy  # noqa: E402
from tests.shared import PATIENCE  # noqa: E402

GRID = 7


@dataclass(frozen=True)
class ToyRun:
    prompt: Any
    tree: Any
    hypotheses: Any
    texts: Any
    certificate: Any = None
    prices: tuple[Any, ...] = ()
    own_prices: tuple[Any, ...] = ()
    edits: tuple[Any, ...] = ()


class Vocabulary(SimpleNamespace):
    """A tokenizer of the toy: its methods, and how many pieces it has."""

    quoted = staticmethod(quoted)

    def __len__(self) -> int:
        return int(self.size)


class ToyService:
    """The methods of Service over the bigram model of tests/fixtures_records.py."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay, self.asked, self.cancelled = delay, 0, threading.Event()

    def run(self, question: Question, progress: Any = None, cancel: Any = None) -> Any:
        self.asked += 1
        photo = isinstance(question.given, bytes)
        text = f"photograph {len(question.given)}" if photo else str(question.given)
        letters = question.checkpoint.startswith(("translit", "letters"))
        pieces = tuple("." * GRID * GRID) if photo else tuple(text) if letters else tuple("▁" + word for word in text.split())
        if len(pieces) > 120:
            raise InputError("That is more than 120 pieces; shorten the input.")
        if question.options.strategy == "exact":
            self.long_work(progress, cancel)
        time.sleep(self.delay)
        model = toy.Toy.of(text + question.checkpoint, toy.LETTERS if letters else toy.PIECES)
        given = len(pieces) if question.checkpoint.startswith("letters") else 0
        for edit in question.edits:
            self.apply(model, replace(edit, position=edit.position - given) if isinstance(edit, (Force, Ban)) else edit)
        tree, found = toy.beam(model, question.options)
        attention = "plain" not in question.checkpoint
        trace = toy.replay(model, pieces, found[0].tokens, attention=attention)
        looked = pieces
        if photo:
            pieces, trace = (), replace(trace, source=())
        if question.checkpoint.startswith("letters"):
            trace = toy.after(pieces, trace)
        known = tuple("x" not in piece for piece in pieces)
        far = "This is unlike the sentences the model was trained on." if "x" in text else ""
        texts = tuple(toy.text_of(model, item.tokens) for item in found)
        prices = (Price("tokens", -0.5, -6.0, -6.5),) if question.edits else ()
        picture = read_picture(question.given, 64) if photo else None
        prompt = SimpleNamespace(pieces=SimpleNamespace(strings=pieces, known=known), far=far, picture=picture)
        own = tuple(Price("tokens", -0.25 * (number + 1), -6.0, -6.25, edit=number) for number in range(len(question.edits)))
        run = ToyRun(prompt, tree, found, texts, prices=prices, own_prices=own, edits=question.edits)
        checkpoint = self.checkpoint(question.checkpoint)
        return SimpleNamespace(run=run, checkpoint=checkpoint, trace=trace, model=model, pieces=looked, attention=attention)

    def checkpoint(self, name: str, revision: str = "") -> Any:
        pieces = toy.LETTERS if name.startswith(("translit", "letters")) else toy.PIECES

        def decode(tokens: Any) -> str:
            return "".join(pieces[token] for token in tokens if token > 2).replace("▁", " ").strip()

        def index(piece: str) -> int | None:
            return pieces.index(piece) if piece in pieces else None

        def spellings(word: str) -> Any:
            return tuple((index(piece),) for piece in (word, "▁" + word) if index(piece) is not None)

        text = Vocabulary(size=len(pieces), piece=pieces.__getitem__, index=index, decode=decode, spellings=spellings)
        return SimpleNamespace(languages=[], target_text=text, model=SimpleNamespace(config=ModelConfig(40, 40)))

    def given_pieces(self, question: Question) -> int:
        return len(question.given)

    def badges(self, found: Any) -> tuple[Any, ...]:
        here = "1.5x less likely than the model's likeliest choice at this place"
        told = Badge(0.4, -0.25, -0.5, f"{here}; the whole sentence 1.6x less likely than what greedy search writes")
        return tuple(told if is_word(edit) else None for edit in found.run.edits)

    def best_trace(self, found: Any) -> Any:
        return found.trace

    def long_work(self, progress: Any, cancel: Any) -> None:
        for expansions in range(int(2 * PATIENCE / 0.05)):  # longer than any test waits
            if cancel and cancel():
                self.cancelled.set()
                raise InputError("Stopped.")
            if progress:
                progress(expansions * 100, -5.0, -3.0)
            time.sleep(0.05)

    def apply(self, model: Any, edit: Any) -> None:
        if isinstance(edit, (Force, Ban)):
            last = edit.tokens[-1]
            step = edit.position + len(edit.tokens) - 1
            if isinstance(edit, Ban):
                model.logps[step, :, last] = -50
            else:
                for step, token in enumerate(edit.tokens):
                    keep = model.logps[step, :, token].copy()
                    model.logps[step] = -50
                    model.logps[step, :, token] = keep
        elif isinstance(edit, AttentionBlend):
            model.logps[...] = model.logps * (1 - 0.3 * edit.factor)

    def score(self, question: Question, target: str) -> Any:
        found = self.run(question)
        tokens = (*(found.model.pieces.index("▁" + word) for word in target.split()), 2)
        return toy.replay(found.model, found.pieces, tokens, attention=found.attention)

    def replay(self, question: Question, tokens: tuple[int, ...], progress: Any = None, cancel: Any = None) -> Any:
        found = self.run(question, progress, cancel)
        trace = toy.replay(found.model, found.pieces, tokens, attention=found.attention)
        return replace(trace, source=()) if isinstance(question.given, bytes) else trace


def tracker(unit: int, measure: str = "auc") -> dict[str, Any]:
    return {"layer": 0, "unit": unit, "sign": -1, "measure": measure, "dev": 0.9, "test": 0.87}


MEASURED: dict[str, dict[str, Any]] = {
    "letters-english": {"units": {"state": "cell", "quotation": tracker(3)}, "text": {"nats_per_character": 1.25}},
    "letters-of-code": {"units": {"comment": tracker(2), "indentation": tracker(1, "correlation")}},
    "translator-de-en": {
        "looking": {
            "sentences": 500,
            "links": 3533,
            "error": {"-1": 96.9, "0": 37.7, "+1": 97.5},
            "heads": {"0.0": 60.0, "1.1": 30.5},
            "best_head": "1.1",
        }
    },
    "transliterator": {
        "looking": {
            "words": 900,
            "right": {"-1": 10.0, "0": 93.0, "+1": 11.0},
            "languages": {"ur": {"words": 120, "right": {"-1": 98.5, "0": 0.25, "+1": 0.0}}},
        }
    },
    "captioner": {"pointing": {"phrases": 500, "without_reference": 1, "word": 58.0, "mean_map": 53.5, "centre": 56.25}},
}


CARD = """---
license: none
---

# {name}

It spells `<b>words</b>` and **means** it; [a link](https://example.org/), [no link](javascript:alert(1)).
Its picture: ![a map](map.png) <img src=x onerror="window.hacked=1">

* one point,
  which goes on
* another

## Figures

| test | BLEU |
|---|---|
| toy | 30.0 |

```python
load("{name}")  # not a # heading
```
"""


def write_cards(root: Path) -> None:
    """config.json and metrics.json of toy checkpoints."""
    for name, task, decoder, kind, languages in (
        ("translator-de-en", "translate", "attend-after", "subwords", []),
        ("translator-de-en-plain", "translate", "context-each", "subwords", []),
        ("transliterator", "transliterate", "attend-after", "characters", ["hi", "ur"]),
        ("letters-english", "complete", "context-once", "characters", []),
        ("letters-of-code", "complete", "context-once", "characters", []),
        ("captioner", "caption", "attend-after", "words", []),
        ("transliterator-plain", "transliterate", "context-each", "characters", ["hi", "ur"]),
    ):
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        encoder = {"complete": "none", "caption": "image"}.get(task, "text")
        cnn = "efficientnet-lite0" if encoder == "image" else ""
        model = ModelConfig(target_vocabulary=40, source_vocabulary=40, decoder=decoder, encoder=encoder, cnn=cnn).to_json()
        kinds = {side: {"kind": kind, "file": "none"} for side in ("source", "target")}
        config = {
            "format": 1,
            "name": name,
            "task": task,
            "architecture": "Seq2Seq",
            "model": model,
            "tokenizers": kinds,
            "languages": languages,
        }
        (folder / "config.json").write_text(json.dumps(config))
        scores = (30.0, 33.0, 31.0, 29.5) if decoder == "attend-after" else (31.0, 29.0, 21.0, 12.0)
        column = "top1" if task == "transliterate" else "bleu"
        rows = [
            {"unit": "tokens", "from": low, "to": low + 4, "inputs": 100, column: score}
            for low, score in zip((1, 6, 11, 16), scores)
        ]
        metrics = {"tests": {"toy": {"by_length": rows}}, **MEASURED.get(name, {})}
        (folder / "metrics.json").write_text(json.dumps(metrics))
        (folder / "README.md").write_text(CARD.format(name=name))


def toy_app(root: Path, delay: float = 0.0, service: ToyService | None = None) -> tuple[Any, ToyService]:
    write_cards(root)
    service = service or ToyService(delay)
    return launch.build(service, root), service


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=7900)
    parser.add_argument("--root", type=Path, default=Path("/tmp/seqdemo-toy"))
    given = parser.parse_args()
    launch.launch(toy_app(given.root)[0], port=given.port)
