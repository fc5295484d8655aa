"""Endpoints for programs: the command line's words, text first, then options by name with defaults, JSON back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import gradio as gr
from gradio.context import get_blocks_context
from gradio.events import api

from seqdemo.config import PRECISIONS, STRATEGIES, TOLERANCE
from seqdemo.errors import InputError
from seqdemo.figures.payloads import hypothesis_payload, plain, trace_payload
from seqdemo.records import output_to_json, to_json, value_to_json
from seqdemo.ui.answers import Answers, Cancel, Progress, guarded, name_of, object_of, text_of, visitor_models
from seqdemo.ui.fields import FIELDS, LISTS, TASKS, library_defaults
from seqdemo.ui.pages import in_background

QUEUE: dict[str, Any] = {"concurrency_id": "program", "concurrency_limit": 12}
ASKED = ...  # stands for no default


class Parameter(NamedTuple):
    name: str
    kind: Any
    default: Any
    about: str


TEXT = {
    "translate": Parameter("text", str, ASKED, "The German sentence."),
    "transliterate": Parameter("text", str, ASKED, "The word, in Latin letters."),
    "caption": Parameter("photograph", dict, ASKED, "A file: gradio_client.handle_file(path). JPEG, PNG or WebP, at most 5 MB."),
    "complete": Parameter("text", str, ASKED, "The beginning of the text that the model goes on from."),
}
PURPOSE = {
    "translate": "Translate a sentence.",
    "transliterate": "Spell a word in another script.",
    "caption": "Describe a photograph.",
    "complete": "Go on from the beginning of a text.",
}
TO = Parameter("to", str, "", "The language to write, as a tag such as hi; may be left out where the model writes only one.")
CHECKPOINT = Parameter("checkpoint", str, "", "The model, by its name on the Models page; empty takes the first of the task.")
PRECISION = Parameter(
    "precision",
    Literal[PRECISIONS],
    "float32",
    "What the weights are held in: float32; or bfloat16 or int8, faster where the processor has instructions for them, and a"
    " little less exact. The answer then names the precision and a tolerance: times 1 + |total|, by how much totals of a search"
    " and of its replay may differ.",
)
TASK = Parameter("task", str, "translate", "What the model does: translate, transliterate, caption or complete.")
TARGET = Parameter("target", str, ASKED, "The output whose probability is asked for.")
EDITS = Parameter(
    "edits",
    list,
    [],
    'What-ifs, at most 20, each a JSON object such as {"kind": "Force", "position": 0, "tokens": [17]}. Positions count from 0.',
)
OUTPUTS = (
    "outputs: the hypotheses, best first, each with its text, tokens, pieces, logps (natural logarithms, one a token), logp"
    " (their sum), score (what ranked it) and finished. Also checkpoint, text (of the best), certificate, prices and note."
    " The names hypotheses, total and far of earlier versions stay for one more release."
)
SCORED = "logp: the sum of logps (natural logarithms, one a token, the end included); outputs holds the same as one output."
TRACED = (
    "A trace: pieces, log probabilities, the likeliest alternatives, attention and gates; arrays as base64 with dtype and shape."
)

Work = Callable[[dict[str, Any], Progress, Cancel], dict[str, Any]]


def option_parameters() -> list[Parameter]:
    defaults = library_defaults()
    strategies = Literal[STRATEGIES]  # type: ignore[valid-type]
    strategy = Parameter(
        "strategy",
        strategies,
        defaults["strategy"],
        "How to search: greedy, beam, sample, exact, or stochastic (a beam that draws different outputs).",
    )
    fields = [Parameter(field["name"], kind_of(field), defaults[field["name"]], about(field)) for field in FIELDS]
    lists = [Parameter(name, list, list(defaults[name]), text) for name, text in LISTS.items()]
    return [strategy, *fields, *lists, EDITS]


def kind_of(field: dict[str, Any]) -> Any:
    if field["kind"] == "choice":
        return Literal[tuple(key for key, _ in field["choices"])]
    return int if field["kind"] == "int" else float


def about(field: dict[str, Any]) -> str:
    """What an option does, its possible values, and the strategies that use it."""
    if field["kind"] == "choice":
        values = "; ".join(f"{key}: {meaning}" for key, meaning in field["choices"]) + "."
    else:
        values = f"From {field['min']:,} to {field['max']:,}."
    return f"{field['help']} {values} Read by {', '.join(field['for'])}."


def signature_of(parameters: Sequence[Parameter]) -> inspect.Signature:
    kind, absent = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    listed = [
        inspect.Parameter(each.name, kind, annotation=each.kind, default=absent if each.default is ASKED else each.default)
        for each in parameters
    ]
    return inspect.Signature(listed, return_annotation=dict)


def docstring_of(purpose: str, parameters: Sequence[Parameter], returns: str) -> str:
    """In the form that Gradio parses to describe parameters to programs and agents."""
    arguments = "\n".join(f"    {each.name}: {each.about}" for each in parameters)
    return f"{purpose}\n\nArgs:\n{arguments}\n\nReturns:\n    {returns}"


def typed(
    name: str, purpose: str, parameters: Sequence[Parameter], returns: str, work: Work, tell: Any = None
) -> Callable[..., Any]:
    """A function with this signature. Long work reports progress and stops when the program cancels its job or disconnects.
    Errors in the input reach the program as sentences."""

    def endpoint(*values: Any) -> Iterator[dict[str, Any]]:
        given = {each.name: value for each, value in zip(parameters, values)}
        for told in in_background(lambda progress, cancel: guarded(lambda: work(given, progress, cancel)), tell):
            if told.keys() == {"error"}:
                raise gr.Error(told["error"], print_exception=False)
            yield told

    endpoint.__name__ = name
    endpoint.__doc__ = docstring_of(purpose, parameters, returns)
    endpoint.__annotations__ = {**{each.name: each.kind for each in parameters}, "return": dict}
    endpoint.__signature__ = signature_of(parameters)  # type: ignore[attr-defined]
    return endpoint


class Endpoints:
    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    def question(self, task: str, given: dict[str, Any]) -> Any:
        if task == "caption":
            photograph = object_of(given["photograph"], "The photograph")
            source = {"photo": photograph.get("path")} if photograph.get("path") else {"example": photograph.get("example")}
        else:
            source = {"text": given["text"]}
        name = text_of(given.get("checkpoint") or self.first(task), 300)
        options = {each.name: given[each.name] for each in option_parameters() if each.name in given and each is not EDITS}
        spec = {"checkpoint": name, "options": {"strategy": "greedy", **options}, "edits": given.get("edits")}
        message = {"input": source, "language": given.get("to")}
        precision = name_of(given.get("precision", "float32"), list(PRECISIONS), "The precision")
        question = replace(self.answers.question(task, message, spec, visitor_models([name])), precision=precision)
        languages = self.answers.catalogue.languages(name)
        if len(languages) > 1 and not question.language:
            raise InputError(f"{name} writes several languages; say which in `to`: one of {', '.join(languages)}.")
        return question

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
        pairs = list(zip(found.run.hypotheses, found.run.texts))
        return {
            "checkpoint": question.checkpoint,
            "text": found.run.texts[0],
            "outputs": [plain(output_to_json(hypothesis, text, piece)) for hypothesis, text in pairs],
            "certificate": plain(found.run.certificate),
            "prices": plain(found.run.prices),
            "note": found.run.prompt.far,
            "hypotheses": [hypothesis_payload(hypothesis, text, piece) for hypothesis, text in pairs],
            "far": found.run.prompt.far,
            **told_precision(question),
        }

    def score(self, given: dict[str, Any], *_: Any) -> dict[str, Any]:
        """The log probability of a given output, token by token, its end included."""
        task = name_of(given["task"], ["translate", "transliterate", "complete"], "The task")
        question = self.question(task, given)
        target = text_of(given["target"])
        trace = self.answers.service.score(question, target)
        payload = trace_payload(trace, trace.tokens)
        told = {key: payload[key] for key in ("tokens", "pieces", "logps")}
        output = {"text": target, **told, "logp": trace.total, "score": trace.total}
        told |= told_precision(question)
        return {"checkpoint": question.checkpoint, "outputs": [output], "logp": trace.total, "total": trace.total, **told}

    def trace(self, given: dict[str, Any], progress: Progress, cancel: Cancel) -> dict[str, Any]:
        """The replay of the best output (or of the given target): attention and every gate, arrays as base64."""
        task = name_of(given["task"], list(TASKS), "The task")
        given = {**given, "photograph": given.get("photograph") or {}}
        question = self.question(task, given)
        service = self.answers.service
        target = text_of(given.get("target") or "")
        trace = service.score(question, target) if target else service.best_trace(service.run(question, progress, cancel))
        told = {"attention": value_to_json(trace.attention), "gates": value_to_json(trace.gates)}  # as they were before `seen`
        return {"checkpoint": question.checkpoint, **to_json(trace), **told}


def told_precision(question: Any) -> dict[str, Any]:
    """The precision of the weights, and its tolerance, by which times 1 + |total| a search and its replay may differ."""
    return {"precision": question.precision, "tolerance": TOLERANCE[question.precision]}


def add(name: str, purpose: str, parameters: Sequence[Parameter], returns: str, work: Work, tell: Any = None) -> None:
    """Add one endpoint with descriptions of its parameters. `tell` puts its progress into words."""
    made = api(typed(name, purpose, parameters, returns, work, tell), api_name=name, **QUEUE)
    components: Any = get_blocks_context().fns[made["id"]].inputs  # type: ignore[union-attr]
    for component, each in zip(components, parameters):
        component.label = each.name
        component._api_info = {**component._api_info, "description": each.about, "additional_description": each.about}


def add_endpoints(answers: Answers) -> None:
    """Call inside the app's Blocks."""
    endpoints, options = Endpoints(answers), option_parameters()
    for task, given in TEXT.items():
        parameters = [given, *([TO] if task == "transliterate" else []), CHECKPOINT, *options, PRECISION]
        add(task, PURPOSE[task], parameters, OUTPUTS, partial(endpoints.decode, task))
    text = Parameter("text", str, ASKED, "The input; of a language model the beginning of the text.")
    purpose = "Score a given output, token by token, its end included."
    add("score", purpose, [text, TARGET, TASK, TO, CHECKPOINT, PRECISION], SCORED, endpoints.score)
    parameters = [
        text._replace(default=""),
        TASK,
        TARGET._replace(default="", about="The output to replay; empty replays the best output of a search."),
        TEXT["caption"]._replace(default={}),
        TO,
        CHECKPOINT,
        *options,
        PRECISION,
    ]
    purpose = "Tell everything a replay shows of the best output, or of a given target."
    add("trace", purpose, parameters, TRACED, endpoints.trace)
