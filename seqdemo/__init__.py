"""seqdemo: recurrent encoder-decoders one can watch decode.

Decode fast, then replay to explain. Search knows only a step function and records the tree it walked; all that a person looks
at comes from one more pass over the tokens of the hypothesis they picked. A what-if is a value that both consult.

errors, records, config, state, edits   plain values: no model in them
text, images                            what goes in and comes out
cells, cnn, products, attention         the parts of a network
encoders, decoders, whatif, model       the networks, and how a step consults its edits
search, trace, checkpoints, figures     search a step function; replay; save and load; draw
gradients                               on demand: connectivity, and norms through time
prompts                                 an input ready for a model
playground                              run, replay, score: where text, model, search and trace meet
commandline, ui                         who asks: a terminal, a page

Tensors say their dimensions: B rows or sentences, K beam rows, W slots of a sentence, C candidates, S source positions,
T target positions, L layers, E embedding, H hidden units, G gates of all units, A keys, R features, V vocabulary,
C channels of a picture, N any number, X and Y sides of a picture. `weights_BKS` is sentence x beam row x source position.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqdemo import figures
    from seqdemo.checkpoints import LanguageModel, Seq2Seq, load
    from seqdemo.config import SearchOptions
    from seqdemo.edits import AttentionBlend, AttentionRow, Ban, ClampGate, Force
    from seqdemo.errors import InputError
    from seqdemo.playground import replay, run, score, search_error

__version__ = "0.1.0"

_HOMES = {
    "AttentionBlend": "edits",
    "AttentionRow": "edits",
    "Ban": "edits",
    "ClampGate": "edits",
    "Force": "edits",
    "InputError": "errors",
    "LanguageModel": "checkpoints",
    "SearchOptions": "config",
    "Seq2Seq": "checkpoints",
    "load": "checkpoints",
    "replay": "playground",
    "run": "playground",
    "score": "playground",
    "search_error": "playground",
}

__all__ = [
    "AttentionBlend",
    "AttentionRow",
    "Ban",
    "ClampGate",
    "Force",
    "InputError",
    "LanguageModel",
    "SearchOptions",
    "Seq2Seq",
    "figures",
    "load",
    "replay",
    "run",
    "score",
    "search_error",
]


def __getattr__(name: str) -> Any:
    """Public names arrive with their module when they are first asked for: torch takes longer to import than all the rest."""
    if name == "figures":
        return import_module("seqdemo.figures")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"seqdemo.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
