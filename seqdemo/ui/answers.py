"""A question from the page -> its answer: the payload of each column asked for, of each replay asked for, or a sentence.

All input of browsers and programs is checked here; the limits of a page's controls are not relied on.
"""

from __future__ import annotations

import logging
import math
import re
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from seqdemo.config import EOS, ModelConfig, SearchOptions, from_json, switches
from seqdemo.edits import (
    MOST_EDITS,
    AttentionBlend,
    AttentionDraw,
    AttentionRow,
    Ban,
    ClampGate,
    Edit,
    Force,
    Require,
    Vocabulary,
    edit_from_json,
    edit_to_json,
    whole,
)
from seqdemo.errors import InputError
from seqdemo.figures.payloads import column_payload, hypothesis_payload, source_payload, trace_payload
from seqdemo.records import Hypothesis, SearchTree
from seqdemo.ui.cards import visitor_card
from seqdemo.ui.catalogue import Catalogue, upload_of
from seqdemo.ui.fields import EXCEPTIONS, FIELDS, LISTS, LONGEST_TEXT, TASKS
from seqdemo.ui.service import Question, Service

log = logging.getLogger(__name__)
SIDES = ("A", "B")
FAULT = "Something went wrong on the server; the fault is ours, not yours. Try another input."

Progress = Callable[..., None]
Cancel = Callable[[], bool]
VISITOR_MODEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,95}/[A-Za-z0-9_][A-Za-z0-9._-]{0,95}@[0-9a-f]{40}")
MOST_MODELS = 8
BLENDS = {"uniform": "towards uniform", "last": "towards the last state", "nothing": "towards nothing"}
CORNER = "towards the bottom right cell"  # the last state of a photograph


class Answers:
    """Answers questions with the models on offer. `uploads` is the folder of files that browsers uploaded."""

    def __init__(self, service: Service, catalogue: Catalogue, uploads: Path) -> None:
        self.service, self.catalogue, self.uploads = service, catalogue, uploads

    def answer(self, message: Any, progress: Progress | None = None, cancel: Cancel | None = None) -> dict[str, Any]:
        try:
            message = object_of(message, "The question")
            task = name_of(message.get("task"), list(TASKS), "The task")
            columns = object_of(message.get("columns") or {}, "The columns")
            replays = object_of(message.get("replays") or {}, "The replays")
        except InputError as error:
            return {"error": str(error)}
        mine = visitor_models(message.get("mine"))
        gates = message["gates"] if message.get("gates") in ("all", "memory") else ""

        def column(spec: dict[str, Any]) -> dict[str, Any]:
            question, given = self.asked(task, message, spec, mine)
            column = self.column(question, given, gates, progress, cancel)
            if message.get("wanted"):
                column["wanted"] = guarded(lambda: self.wanted(task, question, message["wanted"]))
            return column

        def trace(spec: dict[str, Any]) -> dict[str, Any]:
            question, _ = self.asked(task, message, spec, mine)
            run = self.service.run(question, progress, cancel).run
            tokens = selection_of(spec, run.tree, run.hypotheses)
            return trace_payload(self.service.replay(question, tokens, progress, cancel), tokens, gates)

        return {"columns": _each(columns, column), "traces": _each(replays, trace)}

    def wanted(self, task: str, question: Question, target: Any) -> dict[str, Any]:
        """The log probability of the answer that the user wanted, piece by piece, without any edit."""
        trace = self.service.score(question, text_of(target, LONGEST_TEXT[task]))
        given = self.service.given_pieces(question) if task == "complete" else 0
        logps = [float(logp) for logp in trace.logps[given:]]
        return {"pieces": list(trace.target[given:]), "logps": logps, "total": sum(logps)}

    def takes_long(self, message: Any) -> bool:
        """Whether a question is long enough to report progress. Malformed questions are refused at once."""
        parts = [message.get(part) for part in ("columns", "replays")] if isinstance(message, dict) else []
        specs = [spec for part in parts if isinstance(part, dict) for spec in part.values() if isinstance(spec, dict)]
        options = [spec.get("options") for spec in specs]
        return any(isinstance(each, dict) and each.get("strategy") == "exact" for each in options)

    def load(self, message: Any, progress: Progress, cancel: Cancel) -> dict[str, Any]:
        """Load a repository of the Hub for this visitor. `look` tells the commit and the size of the download beforehand; `load`
        returns its card, under the name repository@commit."""

        def repository(key: str) -> tuple[str, str]:
            wanted = object_of(message.get(key), "The model to load")
            repo, revision = (text_of(wanted.get(name) or "", 200).strip() for name in ("repo", "revision"))
            return repo, revision

        def offered() -> dict[str, Any]:
            return {"offer": self.service.look(*repository("look"), cancelled=cancel)._asdict()}

        def loaded() -> dict[str, Any]:
            repo, revision = repository("load")
            checkpoint = self.service.visitors().visit(repo, revision or None, progress=progress, cancelled=cancel)
            return {"loaded": visitor_card(checkpoint, f"{repo}@{checkpoint.revision}")}

        return guarded(lambda: offered() if "look" in object_of(message, "The question") else loaded())

    def asked(self, task: str, message: dict[str, Any], spec: Any, mine: list[str]) -> tuple[Question, int]:
        """The question of a page, and the number of given pieces: positions of the page's forced and forbidden words count from
        their end."""
        question = self.question(task, message, spec, mine)
        if task != "complete" or not any(isinstance(edit, (Force, Ban)) for edit in question.edits):
            return question, 0
        given = self.service.given_pieces(question)
        edits = tuple(
            replace(edit, position=edit.position + given) if isinstance(edit, (Force, Ban)) else edit for edit in question.edits
        )
        return replace(question, edits=edits), given

    def question(self, task: str, message: dict[str, Any], spec: Any, mine: list[str]) -> Question:
        """The question of a program. Positions of its edits count from the beginning of the whole text."""
        spec = object_of(spec, "A column")
        offered = {name: card for name, card in self.catalogue.cards.items() if card["task"] == task}
        name = name_of(spec.get("checkpoint"), [*offered, *mine], "The model")
        repo, _, revision = name.partition("@")
        language = message.get("language")
        known = list(self.service.checkpoint(repo, revision).languages if revision else offered[name].get("languages", ()))
        language = name_of(language, known, "The language") if known and language else None
        given = object_of(message.get("input"), "The input")

        def text() -> Any:
            return self.service.checkpoint(repo, revision).target_text

        edits = edits_of(spec.get("edits"), text)
        return Question(
            repo,
            revision,
            self.photo(given) if task == "caption" else text_of(given.get("text"), LONGEST_TEXT[task]),
            options_of(spec.get("options"), text),
            edits,
            language,
        )

    def photo(self, given: dict[str, Any]) -> bytes:
        if given.get("photo"):
            return upload_of(given["photo"], self.uploads).read_bytes()
        return self.catalogue.example_photo(given.get("example"))

    def column(
        self, question: Question, given: int, gates: str, progress: Progress | None, cancel: Cancel | None
    ) -> dict[str, Any]:
        start = time.perf_counter()
        found = self.service.run(question, progress, cancel)
        run, text = found.run, found.checkpoint.target_text
        name = f"{question.checkpoint}@{question.revision}" if question.revision else question.checkpoint
        return column_payload(
            source_payload(run.prompt.pieces.strings, run.prompt.pieces.known),
            zip(run.hypotheses, run.texts),
            run.tree,
            self.service.best_trace(found),
            text.piece,
            gates,
            spec={
                "checkpoint": name,
                "options": asdict(question.options),
                "edits": [told_edit(edit, found.checkpoint, given) for edit in question.edits],
            },
            far=run.prompt.far,
            certificate=run.certificate,
            prices=run.prices,
            own_prices=run.own_prices,
            badges=self.service.badges(found),
            picture=picture_payload(run.prompt.picture),
            **self.unedited(question, progress, cancel),
            took=round(time.perf_counter() - start, 4),
        )

    def unedited(self, question: Question, progress: Progress | None, cancel: Cancel | None) -> dict[str, Any]:
        """Of an edited column: what the same search writes without the edits, which alone tells what they changed."""
        if not question.edits:
            return {}
        found = self.service.run(replace(question, edits=()), progress, cancel)
        return {"own": hypothesis_payload(found.run.hypotheses[0], found.run.texts[0], found.checkpoint.target_text.piece)}


def picture_payload(picture: Any) -> dict[str, Any] | None:
    """The part of the photograph that the model saw, as the page shows it."""
    if picture is None:
        return None
    from seqdemo.images import data_uri

    return {"data": data_uri(picture.shown), "box": list(picture.box)}


def _each(specs: dict[str, Any], make: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    return {side: guarded(lambda side=side: make(specs[side])) for side in SIDES if side in specs}  # type: ignore[misc]


def guarded(make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Turn a user's mistake into its sentence. Any other error is logged and reported without details."""
    try:
        return make()
    except InputError as error:
        return {"error": str(error)}
    except Exception:
        log.exception("A question could not be answered")
        return {"error": FAULT}


def text_of(value: Any, most: int = LONGEST_TEXT["translate"]) -> str:
    """A person's text: NULs and lone surrogates become U+FFFD, the form is NFC, the length is bounded."""
    if not isinstance(value, str):
        raise InputError("The text must be a string.")
    if len(value) > most:
        raise InputError(f"That is {len(value):,} characters; this page takes up to {most:,}. Shorten it.")
    clean = "".join("\ufffd" if char == "\x00" or "\ud800" <= char <= "\udfff" else char for char in value)
    return unicodedata.normalize("NFC", clean)


def object_of(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{what} must be a JSON object.")
    return value


def name_of(value: Any, names: list[str], what: str) -> str:
    if not isinstance(value, str) or value not in names:
        raise InputError(f"{what} {str(value)[:80]!r} is not loaded here; choose one of {', '.join(names) or 'none'}.")
    return value


def visitor_models(value: Any) -> list[str]:
    """The models a visitor has loaded, as user/name@commit."""
    items = value if isinstance(value, list) else []
    return [item for item in items[:MOST_MODELS] if isinstance(item, str) and VISITOR_MODEL.fullmatch(item)]


def options_of(value: Any, text: Callable[[], Any] | None = None) -> SearchOptions:
    """The search options of a column, within the pages' own limits. `text()` loads the target's tokenizer."""
    options = relevant(object_of(value, "The options"))
    exempt = options.get("may_repeat")
    if isinstance(exempt, str):
        chosen = name_of(exempt, [key for key, _ in EXCEPTIONS["choices"]], EXCEPTIONS["label"])
        options["may_repeat"] = signs_of(text()) if chosen == "signs" and text else ()
    limits = {field["name"]: field for field in FIELDS if "min" in field}
    for name, given in options.items():
        field = limits.get(name)
        if field is None:
            continue
        number = isinstance(given, (int, float)) and not isinstance(given, bool) and math.isfinite(given)
        if not number or not field["min"] <= given <= field["max"]:
            raise InputError(f"{field['label']} must be a number from {field['min']:,} to {field['max']:,}.")
        options[name] = int(given) if field["kind"] == "int" and given == int(given) else given
    built: SearchOptions = from_json(SearchOptions, options)
    return built


def signs_of(text: Any) -> tuple[int, ...]:
    """The numbers of a vocabulary's punctuation marks and symbols."""
    named = ((token, text.piece(token).removeprefix("\u2581")) for token in range(len(text)))
    return tuple(token for token, piece in named if piece and all(unicodedata.category(char)[0] in "PS" for char in piece))


def selection_of(value: dict[str, Any], tree: SearchTree, outputs: Sequence[Hypothesis]) -> tuple[int, ...]:
    """The tokens of what a person selected: a row of the search tree, or an output by its place."""
    row, output = value.get("row"), value.get("output")
    if whole(row, len(tree)):
        return tree.tokens(row)
    if whole(output, len(outputs)):
        return outputs[output].tokens
    raise InputError("What was selected is not in this search; select it again.")


def relevant(options: dict[str, Any]) -> dict[str, Any]:
    """Only the options that the strategy uses, so that leftovers of another strategy have no effect."""
    strategy = options.get("strategy", "beam")
    return {
        "strategy": strategy,
        **{f["name"]: options[f["name"]] for f in FIELDS if strategy in f["for"] and f["name"] in options},
        **{name: options[name] for name in LISTS if name in options},
    }


def edits_of(value: Any, text: Callable[[], Vocabulary] | None = None) -> tuple[Edit, ...]:
    """The edits of a column. `text()` loads the model's tokenizer, which takes time."""
    if not isinstance(value or [], list):
        raise InputError("Edits must be a list.")
    if len(value or []) > MOST_EDITS:
        raise InputError(f"At most {MOST_EDITS} edits at once; remove some.")
    return tuple(edit_from_json(item, text() if text else None) for item in value or [])


def told_edit(edit: Edit, checkpoint: Any, given: int = 0) -> dict[str, Any]:
    """`checkpoint` is the model that was asked; words count from the first piece after the `given` ones."""
    text = checkpoint.target_text
    if isinstance(edit, (Force, Ban)):
        edit = replace(edit, position=edit.position - given)
        pieces = [text.piece(token) for token in edit.tokens]
        return {**edit_to_json(edit), "pieces": pieces, "says": words_sentence(edit, text)}
    if isinstance(edit, Require):
        word = text.decode(edit.spellings[0])
        return {**edit_to_json(edit), "word": word, "says": f"must say {text.quoted(word)} somewhere"}
    return {**edit_to_json(edit), "says": state_sentence(edit, checkpoint)}


def words_sentence(edit: Force | Ban, text: Any) -> str:
    """What is forced or forbidden, and where."""
    end = " ⟨end⟩" if EOS in edit.tokens else ""
    words = text.quoted(f"{text.decode(edit.tokens)}{end}") if len(edit.tokens) > 1 or not end else "the end"
    if edit.position:
        return f"{'writes' if isinstance(edit, Force) else 'never writes'} {words} from piece {edit.position + 1} on"
    return f"{'starts' if isinstance(edit, Force) else 'never starts'} with {words}"


def state_sentence(edit: Edit, checkpoint: Any) -> str:
    """An edit inside the network, in words."""
    config = checkpoint.model.config
    if isinstance(edit, AttentionBlend):
        return blend_sentence(edit, config)
    if isinstance(edit, AttentionRow) and config.hard:
        return f"looks at {place_of(edit, config)} while piece {edit.position + 1} is written"
    if isinstance(edit, AttentionRow):
        return f"attention{of_heads(edit, config)} set by hand while piece {edit.position + 1} is written"
    if isinstance(edit, AttentionDraw):
        return f"looks at {'cells' if config.encoder == 'image' else 'places'} drawn with seed {edit.seed}"
    return clamp_sentence(edit, config) if isinstance(edit, ClampGate) else type(edit).__name__.lower()


def blend_sentence(edit: AttentionBlend, config: ModelConfig) -> str:
    """How far attention is dimmed, and towards what. Of hard attention, which looks at the heaviest place, also what a blend
    towards uniform comes to."""
    towards = CORNER if edit.towards == "last" and config.encoder == "image" else BLENDS[edit.towards]
    tied = ": all places tie, so the first is looked at" if edit.factor == 1 else ": the heaviest place stays the heaviest"
    comes_to = tied if config.hard and edit.towards == "uniform" else ""
    return f"attention{of_heads(edit, config)} {round(edit.factor * 100)} % {towards}{comes_to}"


def place_of(edit: AttentionRow, config: ModelConfig) -> str:
    """The place that hard attention looks at: the heaviest; of equally heavy ones, the first."""
    at = edit.weights.index(max(edit.weights))
    if config.encoder != "image":
        return f"place {at + 1}"
    row, column = divmod(at, math.isqrt(len(edit.weights)))
    return f"the cell in row {row + 1}, column {column + 1}"


def of_heads(edit: AttentionBlend | AttentionRow, config: ModelConfig) -> str:
    """Which heads of several an attention edit changes."""
    if config.attention_layers * config.heads == 1:
        return ""
    if edit.layer is None and edit.head is None:
        return " of all heads"
    heads = "all heads" if edit.head is None else f"head {edit.head + 1}"
    return f" of {heads} in {'every layer' if edit.layer is None else f'layer {edit.layer + 1}'}"


def clamp_sentence(edit: ClampGate, config: ModelConfig) -> str:
    """'forget gate held at 0, all 400 units'"""
    units = getattr(config, f"{edit.part}_hidden")
    layers = getattr(config, f"{edit.part}_layers")
    value = "its mean" if edit.value == "mean" else "given values"
    if isinstance(edit.value, (int, float)):
        value = f"{edit.value:g}".replace("-", "−")
    kind = f"{edit.gate} gate" if edit.gate in switches() else {"candidate": "candidate"}.get(edit.gate, f"{edit.gate} state")
    where = [
        *([f"layer {edit.layer + 1}"] if layers > 1 else []),
        *(["encoder"] if edit.part == "encoder" else []),
        *([edit.direction] if edit.part == "encoder" and config.bidirectional else []),
    ]
    named = f"{kind} ({', '.join(where)})" if where else kind
    return f"{named} held at {value}, {of_units(edit.units, units)}{at_steps(edit.positions)}"


def of_units(chosen: Sequence[int] | None, units: int) -> str:
    if chosen is None or len(set(chosen)) == units:
        return f"all {units} units"
    return f"unit {chosen[0]} of {units}" if len(chosen) == 1 else f"{len(set(chosen))} of {units} units"


def at_steps(positions: Sequence[int] | None) -> str:
    if positions is None:
        return ""
    steps = sorted(set(positions))
    if len(steps) == 1:
        return f", at step {steps[0] + 1}"
    together = steps and len(steps) == steps[-1] - steps[0] + 1
    return f", at steps {steps[0] + 1} to {steps[-1] + 1}" if together else f", at {len(steps)} steps"
