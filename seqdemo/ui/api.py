"""Endpoints for programs: the command line's words, text first, then options by name with defaults, JSON back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import gradio as gr
from gradio.events import api as add

from seqdemo.errors import InputError
from seqdemo.figures.payloads import hypothesis_payload, plain, trace_payload
from seqdemo.records import to_json
from seqdemo.ui import checks
from seqdemo.ui.answers import Answers, Cancel, Progress, guarded
from seqdemo.ui.fields import FIELDS, STRATEGY_NAMES, library_defaults
from seqdemo.ui.pages import in_background

QUEUE: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": 2}
GIVEN = {"translate": ("text", str), "transliterate": ("text", str), "caption": ("photograph", dict), "complete": ("text", str)}
PURPOSE = {
    "translate": "Translate a sentence.",
    "transliterate": "Spell a word in another script; `to` is the language.",
    "caption": "Describe a photograph; pass gradio_client's handle_file(path).",
    "complete": "Go on from the beginning of a text.",
}

Parameters = list[tuple[str, Any, Any]]  # name, type, default
Work = Callable[[dict[str, Any], Progress, Cancel], dict[str, Any]]


def kind_of(field: dict[str, Any]) -> Any:
    if field["kind"] == "choice":
        return Literal[tuple(key for key, _ in field["choices"])]
    return int if field["kind"] == "int" else float


def option_parameters() -> Parameters:
    defaults = library_defaults()
    strategies = Literal[tuple(key for key, _ in STRATEGY_NAMES)]  # type: ignore[valid-type]
    rest = [(field["name"], kind_of(field), defaults[field["name"]]) for field in FIELDS]
    return [("strategy", strategies, defaults["strategy"]), *rest, ("edits", list, [])]


def parameter(name: str, kind: Any, default: Any) -> inspect.Parameter:
    """`...` stands for no default."""
    default = inspect.Parameter.empty if default is ... else default
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind, default=default)


def typed(name: str, about: str, parameters: Parameters, work: Work) -> Callable[..., Any]:
    """A function with this signature. Long work tells its progress and stops when the program cancels its job or goes away;
    what a person did wrong reaches the program as a sentence."""

    def endpoint(*values: Any) -> Iterator[dict[str, Any]]:
        given = {key: value for (key, _, _), value in zip(parameters, values)}
        for told in in_background(lambda progress, cancel: guarded(lambda: work(given, progress, cancel))):
            if told.keys() == {"error"}:
                raise gr.Error(told["error"], print_exception=False)
            yield told

    listed = [parameter(key, kind, default) for key, kind, default in parameters]
    endpoint.__name__ = name
    endpoint.__doc__ = about
    endpoint.__annotations__ = {**{key: kind for key, kind, _ in parameters}, "return": dict}
    endpoint.__signature__ = inspect.Signature(listed, return_annotation=dict)  # type: ignore[attr-defined]
    return endpoint


class Endpoints:
    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    def question(self, task: str, given: dict[str, Any]) -> Any:
        if task == "caption":
            photograph = checks.object_of(given["photograph"], "The photograph")
            source = {"photo": photograph.get("path")} if photograph.get("path") else {"example": photograph.get("example")}
        else:
            source = {"text": given["text"]}
        name = checks.text_of(given.get("checkpoint") or self.first(task), 300)
        options = {key: given[key] for key, _, _ in option_parameters() if key in given and key != "edits"}
        spec = {"checkpoint": name, "options": {"strategy": "greedy", **options}, "edits": given.get("edits")}
        message = {"input": source, "language": given.get("to")}
        return self.answers.question(task, message, spec, checks.visitor_models([name]))

    def first(self, task: str) -> str:
        cards = self.answers.catalogue.of_task(task)
        if not cards:
            raise InputError(f"No model for {task} is loaded here.")
        return str(cards[0]["name"])

    def decode(self, task: str, given: dict[str, Any], progress: Progress, cancel: Cancel) -> dict[str, Any]:
        """The n best outputs, their probabilities token by token, and what was proven or paid."""
        question = self.question(task, given)
        found = self.answers.service.run(question, progress, cancel)
        piece = found.checkpoint.target_text.piece
        pairs = zip(found.run.hypotheses, found.run.texts)
        return {
            "checkpoint": question.checkpoint,
            "text": found.run.texts[0],
            "hypotheses": [hypothesis_payload(hypothesis, text, piece) for hypothesis, text in pairs],
            "certificate": plain(found.run.certificate),
            "prices": plain(found.run.prices),
            "far": found.run.prompt.far,
        }

    def score(self, given: dict[str, Any], *_: Any) -> dict[str, Any]:
        """The log probability of a given output, token by token, its end included."""
        task = checks.name_of(given["task"], ["translate", "transliterate", "complete"], "The task")
        question = self.question(task, given)
        target = checks.text_of(given["target"])
        trace = self.answers.service.score(question, target)
        payload = trace_payload(trace, trace.tokens)
        told = {key: payload[key] for key in ("tokens", "pieces", "logps")}
        return {"checkpoint": question.checkpoint, "total": trace.total, **told}

    def trace(self, given: dict[str, Any], progress: Progress, cancel: Cancel) -> dict[str, Any]:
        """The replay of the best output (or of the given target): attention and every gate, arrays as base64."""
        task = checks.name_of(given["task"], list(checks.TASKS), "The task")
        given = {**given, "photograph": given.get("photograph") or {}}
        question = self.question(task, given)
        service = self.answers.service
        target = checks.text_of(given.get("target") or "")
        trace = service.score(question, target) if target else service.best_trace(service.run(question, progress, cancel))
        return {"checkpoint": question.checkpoint, **to_json(trace)}


def add_endpoints(answers: Answers) -> None:
    """Call inside the app's Blocks."""
    endpoints = Endpoints(answers)
    to: Parameters = [("to", str, "")]
    name: Parameters = [("checkpoint", str, "")]
    for task, (given, kind) in GIVEN.items():
        parameters = [(given, kind, ...), *(to if task == "transliterate" else []), *name, *option_parameters()]
        work = partial(endpoints.decode, task)
        add(typed(task, PURPOSE[task], parameters, work), api_name=task, **QUEUE)
    texts: Parameters = [("text", str, ...), ("target", str, ...), ("task", str, "translate"), *to, *name]
    add(typed("score", "The probability of a given output.", texts, endpoints.score), api_name="score", **QUEUE)
    given_first: Parameters = [("text", str, ""), ("task", str, "translate"), ("target", str, ""), ("photograph", dict, {})]
    about = "Everything a replay shows of the best output, or of a given target."
    add(typed("trace", about, [*given_first, *to, *name, *option_parameters()], endpoints.trace), api_name="trace", **QUEUE)
