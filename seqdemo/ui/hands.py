"""What hands ask of the server beside a column: short questions while something moves under the hand, long ones with progress.

A message names the column it is about as a page's question does, the path (`of`, as in replays; the best output if left out)
and the place. Answers are findings (seqdemo/findings.py) as JSON, with edits told as the columns tell theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from seqdemo.config import MAX_STEPS, MAX_VOCABULARY
from seqdemo.edits import Edit, tokens_of_pieces, whole
from seqdemo.errors import InputError
from seqdemo.findings import told
from seqdemo.ui.answers import (
    Answers,
    Cancel,
    Progress,
    guarded,
    name_of,
    object_of,
    selection_of,
    text_of,
    told_edit,
    visitor_models,
)
from seqdemo.ui.fields import TASKS
from seqdemo.ui.service import Found, Question, single_thread

MOST_ROWS = 200
MOST_BARS = 50
MOST_TOKENS = 30  # of a word
FIRST = -1  # for programs: the first piece that the model wrote
UNITS = {"part": "decoder", "direction": "forward", "what": "", "over": "input"}  # what a ranking is of, if nothing is said


class Subject(NamedTuple):
    """What a message is about."""

    message: dict[str, Any]
    question: Question
    found: Found
    given: int  # the piece that is counted as 0: on a page the first after the person's own text, for programs that text's first
    tokens: tuple[int, ...]  # of the path

    @property
    def position(self) -> int:
        """From the beginning of the whole text."""
        first = len(self.found.run.prompt.prefix) - self.given
        position, end = self.message.get("position"), first + len(self.tokens)
        if not whole(position, end) or position < first:
            raise InputError(f"A place is a whole number from {first} to {end - 1}: one of the pieces of this output.")
        return self.given + int(position)

    def number(self, name: str, below: int, default: int | None = None) -> int | None:
        value = self.message.get(name)
        if value is None:
            return default
        if not whole(value, below):
            raise InputError(f"{name} must be a whole number from 0 to {below - 1}.")
        return int(value)


Work = Callable[[Subject, Progress | None, Cancel | None], Any]


class Hands:
    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.short: dict[str, Work] = {"next": self.next, "bound": self.bound, "words": self.words, "badge": self.badge}
        self.long: dict[str, Work] = {"units": self.units, "gates": self.gates, "strip": self.strip, "cheapest": self.cheapest}
        self.long |= {"followers": self.followers, "closing": self.closing}

    def hand(self, message: Any = None) -> dict[str, Any]:
        """A short question, answered at once; Gradio lets the component call it."""
        return guarded(lambda: self.asked(message, self.short, None, None))

    def answer(self, message: Any, progress: Progress, cancel: Cancel) -> dict[str, Any]:
        return guarded(lambda: self.asked(message, {**self.short, **self.long}, progress, cancel))

    def asked(self, message: Any, asks: dict[str, Work], progress: Progress | None, cancel: Cancel | None) -> dict[str, Any]:
        message = object_of(message, "The question")
        ask = message.get("ask")
        if not isinstance(ask, str) or ask not in asks:
            raise InputError(f"There is no question {str(ask)[:40]!r} here; ask one of {', '.join(asks)}.")
        single_thread()
        subject = self.subject(message, progress, cancel)
        return {"id": message.get("id"), "ask": ask, **self.answered(subject, ask, progress, cancel)}

    def answered(self, subject: Subject, ask: str, progress: Progress | None, cancel: Cancel | None) -> dict[str, Any]:
        if ask in self.long and progress and cancel:
            with self.answers.service.lanes.long(progress, cancel):
                return self.as_json(subject, self.long[ask](subject, self.making_way(progress), cancel))
        return self.as_json(subject, {**self.short, **self.long}[ask](subject, progress, cancel))

    def program(
        self, question: Question, message: dict[str, Any], ask: str, progress: Progress, cancel: Cancel
    ) -> dict[str, Any]:
        """What a program asks of the best output. Its places count from the beginning of the whole text, as its edits do."""
        single_thread()
        found = self.answers.service.run(question, progress, cancel)
        subject = Subject(message, question, found, 0, found.run.hypotheses[0].tokens)
        if subject.message.get("position") == FIRST:
            subject = subject._replace(message={**message, "position": len(found.run.prompt.prefix)})
        return self.answered(subject, ask, progress, cancel)

    def making_way(self, progress: Progress) -> Progress:
        """Between two of its steps long work makes way for short questions."""

        def step(*facts: Any) -> None:
            progress(*facts)
            self.answers.service.lanes.make_way()

        return step

    def subject(self, message: dict[str, Any], progress: Progress | None, cancel: Cancel | None) -> Subject:
        task = name_of(message.get("task"), list(TASKS), "The task")
        question, _ = self.answers.asked(task, message, message.get("column"), visitor_models(message.get("mine")))
        service = self.answers.service
        if question.is_long and cancel is None and not service.has(question):
            raise InputError("This search takes long; ask again when it is done.")
        found = service.run(question, progress, cancel)
        of = message.get("of")
        best = found.run.hypotheses[0].tokens
        tokens = best if of is None else selection_of(object_of(of, "The path"), found.run.tree, found.run.hypotheses)
        return Subject(message, question, found, len(found.run.prompt.prefix), tokens)

    def as_json(self, subject: Subject, found: Any) -> dict[str, Any]:
        """Words count from the first piece after what was given, as on the page."""
        given = subject.given

        def tell(edit: Edit) -> dict[str, Any]:
            return told_edit(edit, subject.found.checkpoint, given)

        answer: dict[str, Any] = told(found, tell)
        return {**answer, "position": answer["position"] - given} if "position" in answer else answer

    def so_far(self, subject: Subject, name: str, progress: Progress | None) -> Callable[[Any, int], None]:
        """Progress that also tells the results so far, under this name."""

        def shown(results: Any, of: int) -> None:
            if progress:
                progress(len(results), of, self.as_json(subject, {name: results}))

        return shown

    def place(self, subject: Subject) -> Any:
        return self.answers.service.place(subject.found, subject.tokens, subject.position)

    def next(self, subject: Subject, *_: Any) -> Any:
        from seqdemo.hands.rows import under_rows

        rows = subject.message.get("rows") or []
        if not isinstance(rows, list) or len(rows) > MOST_ROWS or not all(isinstance(row, list) for row in rows):
            raise InputError(f"Rows are at most {MOST_ROWS} lists of numbers.")
        layer, head = layer_and_head(subject.message)
        place = self.place(subject)
        with self.answers.service.lanes.short():
            return under_rows(place, rows, layer, head, subject.number("top", MOST_BARS + 1, 8) or 8)

    def bound(self, subject: Subject, *_: Any) -> Any:
        from seqdemo.hands.rows import bound_at

        place = self.place(subject)
        with self.answers.service.lanes.short():
            found = bound_at(place, *layer_and_head(subject.message))
        return {**vars(found), "least": found.least, "most": found.most}

    def words(self, subject: Subject, *_: Any) -> Any:
        from seqdemo.hands.words import candidates_at, must_be_said

        typed = text_of(subject.message.get("typed") or "", 100)
        if subject.message.get("anywhere"):
            return {"typed": typed, "words": [], "require": must_be_said(subject.found.checkpoint, typed)}
        place = self.place(subject)
        with self.answers.service.lanes.short():
            most = subject.number("most", MOST_BARS + 1, 8) or 8
            try:
                return candidates_at(place, typed, most)
            except InputError as error:
                return {"error": str(error), "unsayable": True}

    def badge(self, subject: Subject, *_: Any) -> Any:
        return {"badges": self.answers.service.badges(subject.found)}

    def units(self, subject: Subject, progress: Progress | None, cancel: Cancel | None) -> Any:
        from seqdemo.hands.units import rank_units

        message = subject.message
        named = {name: text_of(message.get(name) or default, 20) for name, default in UNITS.items()}
        return rank_units(
            subject.found.checkpoint,
            subject.found.run,
            subject.tokens,
            subject.position,
            subject.number("length", 101, 1) or 1,
            layer=subject.number("layer", 100, 0) or 0,
            steps=subject.number("steps", 10_000),
            progress=progress,
            cancel=cancel,
            **named,
        )

    def strip(self, subject: Subject, progress: Progress | None, cancel: Cancel | None) -> Any:
        from seqdemo.hands.strips import sweep

        message, service = subject.message, self.answers.service
        along, towards, wanted = (text_of(message.get(name) or "") for name in ("along", "towards", "wanted"))
        return sweep(
            subject.found.checkpoint,
            subject.found.run,
            along,
            towards=towards or "uniform",
            wanted=wanted,
            models=lambda precision: service.asked_of(replace(subject.question, precision=precision)),
            shown=self.so_far(subject, "frames", progress),
            cancel=cancel,
        )

    def cheapest(self, subject: Subject, progress: Progress | None, cancel: Cancel | None) -> Any:
        from seqdemo.hands.wanted import cheapest

        message, text = subject.message, subject.found.checkpoint.target_text
        if message.get("pieces") is not None:
            word: Any = tokens_of_pieces(message["pieces"], text)
        elif message.get("tokens") is not None:
            word = tokens_of(message["tokens"])
        else:
            word = text_of(message.get("word") or "", 100)
        shown = self.so_far(subject, "ways", progress)
        return cheapest(subject.found.checkpoint, subject.found.run, subject.position, word, shown=shown, cancel=cancel)

    def gates(self, subject: Subject, progress: Progress | None, cancel: Cancel | None) -> Any:
        from seqdemo.hands.gates import gate_report

        over = text_of(subject.message.get("over") or "input", 20)
        return gate_report(subject.found.checkpoint, subject.found.run, subject.tokens, over, progress, cancel)

    def followers(self, subject: Subject, *_: Any) -> Any:
        from seqdemo.hands.tracking import followers

        return followers(subject.found.checkpoint, text_of(subject.message.get("place") or "", 20))

    def closing(self, subject: Subject, progress: Progress | None, cancel: Cancel | None) -> Any:
        from seqdemo.hands.tracking import closing

        found, place = subject.found, text_of(subject.message.get("place") or "", 20)
        return closing(found.checkpoint, found.run, place, progress, cancel)


def tokens_of(value: Any) -> tuple[int, ...]:
    if (
        not isinstance(value, list)
        or not 0 < len(value) <= MOST_TOKENS
        or not all(whole(token, MAX_VOCABULARY) for token in value)
    ):
        raise InputError(f"A word is from 1 to {MOST_TOKENS} numbers of pieces.")
    return tuple(value)


def layer_and_head(values: dict[str, Any]) -> tuple[int | None, int | None]:
    """Of which attention; None: of all."""
    layer, head = values.get("layer"), values.get("head")
    if not all(value is None or whole(value, MAX_STEPS) for value in (layer, head)):
        raise InputError("A layer and a head are whole numbers, counted from 0.")
    return layer, head
