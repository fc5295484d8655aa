"""seqdemo: recurrent encoder-decoders one can watch decode.

Decode fast, then replay to explain. Search knows only a step function and records the tree it walked; all that a person looks
at comes from one more pass over the tokens of the hypothesis they picked. A what-if is a value that both consult.

errors, config, records, state, edits   plain values: no model in them
text, images                            what goes in and comes out
network                                 cells, attention, encoders, decoders, the networks, and how a step consults its edits
search, explain, figures                search a step function; replay and gradients; draw
child                                   work in a process of its own, with a deadline
checkpoints, hub                        save and load a folder; the Hub
prompts                                 an input ready for a model
playground                              run, replay, score: where text, model, search and trace meet
hands                                   what a person tries on the model beside a search: units, rows, words, film strips
commandline, ui                         who asks: a terminal, a page

Tensors say their dimensions: B rows or sentences, K beam rows, W slots of a sentence, C candidates, S source positions,
T target positions, L layers, E embedding, H hidden units, G gates of all units, A keys, R features, V vocabulary,
C channels of a picture, N any number, X and Y sides of a picture. `weights_BKS` is sentence x beam row x source position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqdemo.lazy import on_demand
from seqdemo.moved import keep_old_modules

if TYPE_CHECKING:
    from seqdemo import figures
    from seqdemo.config import SearchOptions
    from seqdemo.edits import AttentionBlend, AttentionDraw, AttentionRow, Ban, ClampGate, Force, Require
    from seqdemo.errors import InputError
    from seqdemo.hands.gates import gate_report
    from seqdemo.hands.influence import connectivity, erase, gradient_norms
    from seqdemo.hands.rows import next_word, row_bound
    from seqdemo.hands.strips import sweep
    from seqdemo.hands.tracking import closing, followers
    from seqdemo.hands.units import rank_units
    from seqdemo.hands.wanted import cheapest
    from seqdemo.hands.words import candidates, must_be_said
    from seqdemo.hub import LanguageModel, Seq2Seq, load
    from seqdemo.playground import badges, replay, run, score, search_error

__version__ = "0.1.0"

_HOMES = {
    "config": ("SearchOptions",),
    "edits": ("AttentionBlend", "AttentionDraw", "AttentionRow", "Ban", "ClampGate", "Force", "Require"),
    "errors": ("InputError",),
    "hands.gates": ("gate_report",),
    "hands.influence": ("connectivity", "erase", "gradient_norms"),
    "hands.rows": ("next_word", "row_bound"),
    "hands.strips": ("sweep",),
    "hands.tracking": ("closing", "followers"),
    "hands.units": ("rank_units",),
    "hands.wanted": ("cheapest",),
    "hands.words": ("candidates", "must_be_said"),
    "hub": ("LanguageModel", "Seq2Seq", "load"),
    "playground": ("badges", "replay", "run", "score", "search_error"),
}

__all__ = [
    "AttentionBlend", "AttentionDraw", "AttentionRow", "Ban", "ClampGate", "Force", "InputError", "LanguageModel", "Require",
    "SearchOptions", "Seq2Seq", "badges", "candidates", "cheapest", "closing", "connectivity", "erase", "figures", "followers",
    "gate_report", "gradient_norms", "load", "must_be_said", "next_word", "rank_units", "replay", "row_bound", "run", "score",
    "search_error", "sweep",
]  # fmt: skip


__getattr__ = on_demand(
    __name__, {"figures": "", **{name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}}
)

keep_old_modules()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
