"""Plausible records of a search and its replay for any sentence, from a seeded toy model: enough to draw every figure."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from seqdemo.config import EOS, SearchOptions, length_penalty
from seqdemo.records import FINISHED, KEPT, PRUNED, Hypothesis, SearchTree, Trace

SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
WORDS = (
    *("▁it", "▁I", "▁like", "▁feel", "s", "▁good", "▁a", "▁the", "▁man", "▁two", "▁boat", "▁red", "▁in", "▁street", "▁people"),
    *("▁dog", "▁run", "ning", "▁stand", "ing", "▁on", "▁of", "▁blue", "▁that", "▁me", "▁happy", "▁.", "▁woman", "▁child", "ren"),
)
PIECES = SPECIALS + WORDS
LETTERS = SPECIALS + tuple("नमस्तेकिाीराजधईउपल")


@dataclass(frozen=True)
class Toy:
    """A bigram model drawn from the sentence, so the same sentence always decodes alike."""

    pieces: tuple[str, ...]
    logps: np.ndarray  # (steps, V, V)

    @classmethod
    def of(cls, text: str, pieces: tuple[str, ...] = PIECES, steps: int = 12, sharpness: float = 2.2) -> Toy:
        draw = np.random.default_rng(zlib.crc32(text.encode("utf-8", "surrogatepass")))
        scores = draw.normal(size=(steps, len(pieces), len(pieces))) * sharpness
        scores[:, :, :4] = -40.0
        end = np.linspace(-6.0, 7.0, steps)[:, None]
        scores[:, :, EOS] = end + draw.normal(size=(steps, len(pieces)))
        logps = (
            scores - np.log(np.exp(scores - scores.max(-1, keepdims=True)).sum(-1, keepdims=True)) - scores.max(-1, keepdims=True)
        )
        return cls(pieces, logps)


def beam(toy: Toy, options: SearchOptions) -> tuple[SearchTree, tuple[Hypothesis, ...]]:
    """A beam whose finished hypotheses keep their places; every step records its best 2k candidates."""
    width = 1 if options.strategy == "greedy" else options.beam
    columns: dict[str, list[float]] = {
        name: [] for name in ("step", "parent", "token", "logp", "total", "rank", "fate", "missed")
    }
    live: list[tuple[int, int, float]] = [(-1, 1, 0.0)]
    done: list[tuple[int, float]] = []
    for step in range(len(toy.logps)):
        rows = [
            (p + toy.logps[step, last, t], n, t, toy.logps[step, last, t]) for n, last, p in live for t in range(len(toy.pieces))
        ]
        rows = sorted((row for row in rows if row[3] > -30), reverse=True)[: 2 * width]
        places = width - len(done)
        last_kept = rows[min(places, len(rows)) - 1][0]
        live = []
        for rank, (total, parent, token, logp) in enumerate(rows):
            fate = PRUNED if rank >= places else FINISHED if token == EOS else KEPT
            index = len(columns["token"])
            values = (step, parent, token, logp, total, rank, fate, max(0.0, last_kept - total) if fate == PRUNED else 0.0)
            for name, value in zip(columns, values):
                columns[name].append(value)
            if fate == KEPT:
                live.append((index, token, total))
            elif fate == FINISHED:
                done.append((index, total))
        if not live or len(done) >= width:
            break
    kinds = ("int32", "int32", "int32", "float32", "float64", "int16", "int8", "float32")
    tree = SearchTree(*(np.array(values, dtype=kind) for values, kind in zip(columns.values(), kinds)))
    ends = done or [(index, total) for index, _, total in live]
    found = []
    for index, total in ends:
        path = tree.path(index)
        score = total / float(length_penalty(float(len(path)), options.length_norm, options.alpha))
        logps = tuple(float(tree.logp[row]) for row in path)
        found.append(Hypothesis(tree.tokens(index), logps, float(total), float(score), bool(tree.token[index] == EOS), index))
    return tree, tuple(sorted(found, key=lambda hypothesis: -hypothesis.score)[: options.nbest])


def replay(toy: Toy, source: tuple[str, ...], tokens: tuple[int, ...], units: int = 48, attention: bool = True) -> Trace:
    """A trace with a soft diagonal of attention and smooth gates."""
    steps, draw = len(tokens), np.random.default_rng(len(tokens))
    before = (1, *tokens[:-1])
    rows = np.stack([toy.logps[min(step, len(toy.logps) - 1), last] for step, last in enumerate(before)])
    best = np.argsort(-rows, axis=1)[:, :5]
    where = np.linspace(0, max(len(source) - 1, 0), steps)[:, None]
    weights = np.exp(-((np.arange(len(source))[None] - where) ** 2) / 0.7) + 0.02
    looked = {"decoder.0.cross.0": (weights / weights.sum(1, keepdims=True)).astype("float32")}
    gates = {}
    for part, length in (("encoder.0.forward", len(source)), ("encoder.0.backward", len(source)), ("decoder.0", steps)):
        walk = draw.normal(size=(length, units)).cumsum(0)
        for name in ("input", "forget", "output"):
            gates[f"{part}.{name}"] = 1 / (1 + np.exp(-np.roll(walk, len(name), axis=1)))
        gates[f"{part}.candidate"] = np.tanh(walk)
        gates[f"{part}.cell"] = walk * 0.8
        gates[f"{part}.hidden"] = np.tanh(walk * 0.5)
    return Trace(
        source,
        tuple(toy.pieces[token] for token in tokens),
        tokens,
        np.array([rows[step, token] for step, token in enumerate(tokens)]),
        best.astype("int32"),
        np.take_along_axis(rows, best, 1).astype("float32"),
        tuple(tuple(toy.pieces[token] for token in row) for row in best),
        {name: values.astype("float32") for name, values in gates.items()} | (looked if attention else {}),
    )


def text_of(toy: Toy, tokens: tuple[int, ...]) -> str:
    pieces = [toy.pieces[token] for token in tokens if token > 3]
    return "".join(pieces).replace("▁", " ").strip()


def after(prefix: tuple[str, ...], trace: Trace) -> Trace:
    """The trace of a language model: what the person wrote, then what the model wrote."""
    count, draw = len(prefix), np.random.default_rng(len(prefix))
    gates = {
        name: np.vstack([draw.normal(size=(count, rows.shape[1])).cumsum(0) * 0.3, rows]) for name, rows in trace.gates.items()
    }
    return Trace(
        (),
        prefix + trace.target,
        (4,) * count + trace.tokens,
        np.concatenate([-draw.exponential(size=count), trace.logps]),
        np.vstack([np.resize(trace.top_tokens, (count, 5)), trace.top_tokens]),
        np.vstack([np.resize(trace.top_logps, (count, 5)), trace.top_logps]),
        (trace.top_pieces[:1] * count) + trace.top_pieces,
        {name: rows for name, rows in gates.items() if name.startswith("decoder")},
    )
