"""A question from the page -> its answer: the payload of each column asked for, of each replay asked for, or a sentence."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from seqdemo.edits import Ban, Force, edit_to_json
from seqdemo.errors import InputError
from seqdemo.figures.payloads import column_payload, source_payload, trace_payload
from seqdemo.ui import checks
from seqdemo.ui.cards import card_of
from seqdemo.ui.catalogue import Catalogue
from seqdemo.ui.service import Question, Service

log = logging.getLogger(__name__)
SIDES = ("A", "B")
FAULT = "Something went wrong on the server; the fault is ours, not yours. Try another input."

Progress = Callable[..., None]
Cancel = Callable[[], bool]


class Answers:
    """Binds a service to what is on offer. `uploads` is the folder the browser's own files are put in."""

    def __init__(self, service: Service, catalogue: Catalogue, uploads: Path) -> None:
        self.service, self.catalogue, self.uploads = service, catalogue, uploads

    def answer(self, message: Any, progress: Progress | None = None, cancel: Cancel | None = None) -> dict[str, Any]:
        try:
            message = checks.object_of(message, "The question")
            task = checks.name_of(message.get("task"), list(checks.TASKS), "The task")
            columns = checks.object_of(message.get("columns") or {}, "The columns")
            replays = checks.object_of(message.get("replays") or {}, "The replays")
        except InputError as error:
            return {"error": str(error)}
        mine = checks.visitor_models(message.get("mine"))
        gates = message["gates"] if message.get("gates") in ("all", "memory") else ""

        def column(spec: dict[str, Any]) -> dict[str, Any]:
            return self.column(self.asked(task, message, spec, mine), gates, progress, cancel)

        def trace(spec: dict[str, Any]) -> dict[str, Any]:
            tokens = checks.tokens_of(spec.get("tokens"))
            found = self.service.replay(self.asked(task, message, spec, mine), tokens)
            return trace_payload(found, tokens, gates)

        return {"columns": _each(columns, column), "traces": _each(replays, trace)}

    def load(self, message: Any, progress: Progress, cancel: Cancel) -> dict[str, Any]:
        """A repository of the Hub for this visitor. `look`: the commit and how much would be downloaded, before anything is.
        `load`: its card, under the name repository@commit."""

        def repository(key: str) -> tuple[str, str]:
            wanted = checks.object_of(message.get(key), "The model to load")
            repo, revision = (checks.text_of(wanted.get(name) or "", 200).strip() for name in ("repo", "revision"))
            return repo, revision

        def answered() -> dict[str, Any]:
            return offered() if "look" in checks.object_of(message, "The question") else loaded()

        def offered() -> dict[str, Any]:
            return {"offer": self.service.look(*repository("look"), cancelled=cancel)._asdict()}

        def loaded() -> dict[str, Any]:
            repo, revision = repository("load")
            checkpoint = self.service.visitors().visit(repo, revision or None, progress=progress, cancelled=cancel)
            try:
                card = card_of(checkpoint.config, checkpoint.metrics, checkpoint.card)
            except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError):  # figures of a form of their own
                card = card_of(checkpoint.config, {}, checkpoint.card)
            card["summary"] = checkpoint.summary
            return {"loaded": {**card, "name": f"{repo}@{checkpoint.revision}", "revision": checkpoint.revision}}

        return guarded(answered)

    def asked(self, task: str, message: dict[str, Any], spec: Any, mine: list[str]) -> Question:
        """What a page asks. Its forced and forbidden words count from where the model begins to write."""
        question = self.question(task, message, spec, mine)
        if task != "complete" or not any(isinstance(edit, (Force, Ban)) for edit in question.edits):
            return question
        given = self.service.given_pieces(question)
        edits = question.edits
        moved = (replace(edit, position=edit.position + given) if isinstance(edit, (Force, Ban)) else edit for edit in edits)
        return replace(question, edits=tuple(moved))

    def question(self, task: str, message: dict[str, Any], spec: Any, mine: list[str]) -> Question:
        """What a program asks. Positions of its edits count from the beginning of the whole text."""
        spec = checks.object_of(spec, "A column")
        name = checks.name_of(spec.get("checkpoint"), self.catalogue.names(task) + mine, "The model")
        repo, _, revision = name.partition("@")
        language = message.get("language")
        known = list(self.service.checkpoint(repo, revision).languages) if revision else self.catalogue.languages(name)
        language = checks.name_of(language, known, "The language") if known and language else None
        given = checks.object_of(message.get("input"), "The input")
        return Question(
            repo,
            revision,
            self.photo(given) if task == "caption" else checks.text_of(given.get("text"), checks.most_characters(task)),
            checks.options_of(spec.get("options")),
            checks.edits_of(spec.get("edits")),
            language,
        )

    def photo(self, given: dict[str, Any]) -> bytes:
        if given.get("photo"):
            return checks.upload_of(given["photo"], self.uploads).read_bytes()
        return self.catalogue.example_photo(given.get("example"))

    def column(self, question: Question, gates: str, progress: Progress | None, cancel: Cancel | None) -> dict[str, Any]:
        start = time.perf_counter()
        found = self.service.run(question, progress, cancel)
        run, piece = found.run, found.checkpoint.target_text.piece
        name = f"{question.checkpoint}@{question.revision}" if question.revision else question.checkpoint
        return column_payload(
            source_payload(run.prompt.pieces.strings, run.prompt.pieces.known),
            zip(run.hypotheses, run.texts),
            run.tree,
            self.service.best_trace(found),
            piece,
            gates,
            spec={
                "checkpoint": name,
                "options": _page_options(question),
                "edits": [edit_to_json(edit) for edit in question.edits],
            },
            far=run.prompt.far,
            certificate=run.certificate,
            prices=run.prices,
            picture=picture_payload(run.prompt.picture),
            took=round(time.perf_counter() - start, 4),
        )


def picture_payload(picture: Any) -> dict[str, Any] | None:
    """The part of the photograph that the model saw, as the page shows it."""
    if picture is None:
        return None
    from seqdemo.images import data_uri

    return {"data": data_uri(picture.shown), "box": list(picture.box)}


def _page_options(question: Question) -> dict[str, Any]:
    return asdict(replace(question.options))


def _each(specs: dict[str, Any], make: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    return {side: guarded(lambda side=side: make(specs[side])) for side in SIDES if side in specs}  # type: ignore[misc]


def guarded(make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A person's mistake becomes its sentence; any other fault is logged and told without details."""
    try:
        return make()
    except InputError as error:
        return {"error": str(error)}
    except Exception:
        log.exception("A question could not be answered")
        return {"error": FAULT}
