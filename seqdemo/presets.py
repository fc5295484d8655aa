"""Classic questions to a cell, as clamps of its gates."""

from __future__ import annotations

from typing import NamedTuple

from seqdemo.config import ModelConfig
from seqdemo.edits import DIRECTIONS, ClampGate
from seqdemo.equations import EQUATIONS

Question = tuple[str, str, dict[str, float]]  # its name, what is done, and the terms held

LSTM: tuple[Question, ...] = (
    ("forget everything", "f = 0: the cell keeps nothing of what it held", {"forget": 0}),
    ("never forget", "f = 1: the cell keeps all that it held", {"forget": 1}),
    ("write nothing", "i = 0: nothing new enters the cell", {"input": 0}),
    ("reset", "f = i = 0: the cell is empty at every step", {"forget": 0, "input": 0}),
    ("remember and write everything", "f = i = 1: the cell adds up all that comes", {"forget": 1, "input": 1}),
    ("hide the cell", "o = 0: nothing of the cell is shown", {"output": 0}),
)
GRU: tuple[Question, ...] = (
    ("forget everything", "z = 0: the state is all new at every step", {"update": 0}),
    ("write nothing", "z = 1: the state stays as it began", {"update": 1}),
    ("look away from the past", "r = 0: what is new is made of the input alone", {"reset": 0}),
    ("always look at the past", "r = 1: what is new is made of the whole past", {"reset": 1}),
    ("reset", "z = r = 0: each step knows its own input alone", {"update": 0, "reset": 0}),
)
MUT: tuple[Question, ...] = (
    ("forget everything", "z = 1: the state is all new at every step", {"update": 1}),
    ("write nothing", "z = 0: the state stays as it began", {"update": 0}),
    *GRU[2:4],
    ("reset", "z = 1, r = 0: each step knows its own input alone", {"update": 1, "reset": 0}),
)
ELMAN: tuple[Question, ...] = (("forget everything", "h = 0: the state is empty at every step", {"hidden": 0}),)
QUESTIONS: dict[str, tuple[Question, ...]] = {
    cell: next((asked for family, asked in (("elman", ELMAN), ("gru", GRU), ("mut", MUT)) if cell.startswith(family)), LSTM)
    for cell in EQUATIONS
}
CUT = "cut the sentence's last state"


class Preset(NamedTuple):
    """A classic question as a list of clamps."""

    name: str
    about: str
    part: str
    edits: tuple[ClampGate, ...]


def presets(config: ModelConfig, source_positions: int) -> tuple[Preset, ...]:
    """The classic questions that this model's cells can be asked, for an input of so many source positions. Where the input is
    not known yet (0), -1 stands for its last position."""
    if config.is_transformer:
        return ()
    names = {term.name for term in EQUATIONS[config.cell]}
    found = [
        Preset(name, about, part, tuple(clamp for gate, value in held.items() for clamp in everywhere(config, part, gate, value)))
        for part in parts(config)
        for name, about, held in QUESTIONS[config.cell]
        if held.keys() <= names
    ]
    return (*found, cut(config, source_positions)) if config.encoder == "text" else tuple(found)


def cut(config: ModelConfig, source_positions: int) -> Preset:
    """The decoder starts without what the encoder read last. A single network writes on with its whole state."""
    if config.is_single:
        held = [name for name in ("hidden", "cell") if name in {term.name for term in EQUATIONS[config.cell]}]
        about = f"{' = '.join(name[0] for name in held)} = 0 after the last piece read: writing starts from an empty state"
        layers = range(config.encoder_layers)
    else:
        held, layers = ["hidden"], range(config.encoder_layers - 1, config.encoder_layers)
        about = "h = 0 for what each direction reads last: the decoder starts without it, and finds nothing there"
    ends = zip(directions(config), (source_positions - 1, 0))
    clamps = (ClampGate("encoder", name, 0.0, layer, way, None, (end,)) for way, end in ends for layer in layers for name in held)
    return Preset(CUT, about, "encoder", tuple(clamps))


def parts(config: ModelConfig) -> tuple[str, ...]:
    return ("decoder", "encoder") if config.encoder == "text" else ("decoder",)


def directions(config: ModelConfig) -> tuple[str, ...]:
    return DIRECTIONS[: 1 + config.bidirectional]


def everywhere(config: ModelConfig, part: str, gate: str, value: float) -> list[ClampGate]:
    """All units of a gate at all steps, in every layer and direction."""
    if part == "decoder":
        return [ClampGate("decoder", gate, float(value), layer) for layer in range(config.decoder_layers)]
    layers = range(config.encoder_layers)
    return [ClampGate("encoder", gate, float(value), layer, way) for layer in layers for way in directions(config)]
