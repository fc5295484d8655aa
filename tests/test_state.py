"""`select` and `join` are the only code that walks a state."""

from __future__ import annotations

from typing import NamedTuple

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from seqdemo.state import Memory, grown, join, select


class Layer(NamedTuple):
    h: Tensor
    c: Tensor


class State(NamedTuple):
    layers: tuple[Layer, ...]
    position_K: Tensor
    memory: Memory
    feed: Tensor | None
    notes: dict[str, Tensor]
    name: str


def rows(count: int, width: int = 2) -> Tensor:
    return torch.arange(count * width).view(count, width)


def memory_of(sentences: int) -> Memory:
    return Memory(rows(sentences, 6).view(sentences, 3, 2), torch.ones(sentences, 3, dtype=torch.bool), rows(sentences))


def state_of(sentences: int, beams: int) -> State:
    count = sentences * beams
    layers = (Layer(rows(count), rows(count) + 100), Layer(rows(count) + 200, rows(count) + 300))
    return State(layers, torch.arange(count), memory_of(sentences), None, {"seen": rows(count)}, "kept as it is")


@given(st.integers(1, 4), st.integers(1, 3), st.data())
def test_every_leaf_moves_with_its_row_and_the_memory_stays(sentences: int, beams: int, data: st.DataObject) -> None:
    state = state_of(sentences, beams)
    chosen = data.draw(st.lists(st.integers(0, sentences * beams - 1), min_size=1, max_size=6))
    moved = select(state, torch.tensor(chosen))
    assert type(moved) is State and type(moved.layers) is tuple and type(moved.layers[0]) is Layer
    assert moved.position_K.tolist() == chosen
    for before, after in zip(state.layers, moved.layers):
        assert torch.equal(after.h, before.h[chosen]) and torch.equal(after.c, before.c[chosen])
    assert torch.equal(moved.notes["seen"], state.notes["seen"][chosen])
    assert moved.memory is state.memory and moved.feed is None and moved.name == state.name


def test_with_sentences_the_memory_keeps_only_those() -> None:
    state = state_of(3, 2)
    moved = select(state, torch.tensor([4, 5, 0, 1]), torch.tensor([2, 0]))
    assert torch.equal(moved.memory.states_BSH, state.memory.states_BSH[[2, 0]])
    assert torch.equal(moved.memory.summary_BH, state.memory.summary_BH[[2, 0]])
    assert type(moved.memory) is Memory and moved.memory.prepared is None
    assert moved.position_K.tolist() == [4, 5, 0, 1]


def test_a_selected_state_is_a_copy() -> None:
    state = state_of(2, 1)
    moved = select(state, torch.tensor([0, 1]))
    moved.layers[0].h.zero_()
    assert torch.equal(state.layers[0].h, rows(2))


def test_all_that_stands_beside_the_states_is_selected_with_them() -> None:
    whole = Memory(*(rows(3) + 10 * place for place in range(len(Memory._fields))))
    moved = select(whole, torch.tensor([1]), torch.tensor([1]))
    assert [leaf.tolist() for leaf in moved] == [leaf[[1]].tolist() for leaf in whole]


@given(st.integers(1, 4), st.integers(1, 3))
def test_a_state_taken_apart_and_joined_is_whole_again(sentences: int, beams: int) -> None:
    state = state_of(sentences, beams)
    rows_BW = torch.arange(sentences * beams).view(sentences, beams)
    whole = join([select(state, rows_BW[[place]].flatten(), torch.tensor([place])) for place in range(sentences)])
    assert type(whole) is State and type(whole.memory) is Memory and whole.name == state.name and whole.feed is None
    assert torch.equal(whole.position_K, state.position_K) and torch.equal(whole.notes["seen"], state.notes["seen"])
    assert all(torch.equal(one, other) for one, other in zip(whole.layers[1], state.layers[1]))
    assert torch.equal(whole.memory.states_BSH, state.memory.states_BSH) and whole.memory.padding_B1S is None


class Growing(NamedTuple):
    """A state whose second leaf holds one entry for each token that was read."""

    position_K: Tensor
    read_KTE: Tensor
    memory: Memory


def reading(texts: list[list[int]]) -> Growing:
    """Each row by itself, then all joined."""
    states = []
    for sentence, text in enumerate(texts):
        state = Growing(
            torch.zeros(1, dtype=torch.long), torch.zeros(1, 0, 2), select(memory_of(len(texts)), *[torch.tensor([sentence])] * 2)
        )
        for token in text:
            state = read_one(state, torch.tensor([token]))
        states.append(state)
    return join(states)  # type: ignore[no-any-return]


def read_one(state: Growing, tokens_K: Tensor) -> Growing:
    new_KE = tokens_K[:, None].float().expand(-1, 2)
    return Growing(state.position_K + 1, grown(state.read_KTE, new_KE, state.position_K), state.memory)


@given(st.lists(st.lists(st.integers(1, 9), max_size=5), min_size=1, max_size=4), st.integers(1, 3), st.data())
def test_a_leaf_that_grows_holds_each_rows_own_text_and_nothing_after_it(
    texts: list[list[int]], more: int, data: st.DataObject
) -> None:
    state = reading(texts)
    for _ in range(more):
        tokens = [data.draw(st.integers(1, 9)) for _ in texts]
        before = state.read_KTE.clone()
        after = read_one(state, torch.tensor(tokens))
        assert torch.equal(state.read_KTE, before), "the state before is as it was"
        texts = [[*text, token] for text, token in zip(texts, tokens)]
        chosen = data.draw(st.permutations(range(len(texts))))
        state, texts = select(after, torch.tensor(chosen), torch.tensor(chosen)), [texts[row] for row in chosen]
    assert state.position_K.tolist() == [len(text) for text in texts]
    for text, row_TE in zip(texts, state.read_KTE):
        assert row_TE[:, 0].tolist() == text + [0] * (len(row_TE) - len(text))


def test_a_memory_may_hold_any_nest() -> None:
    nest = {"layers": (rows(3), (rows(3) + 5, None)), "name": "kept"}
    moved = select(memory_of(3)._replace(prepared=nest), torch.tensor([0]), torch.tensor([2, 0])).prepared
    assert moved["layers"][0].tolist() == rows(3)[[2, 0]].tolist() and moved["layers"][1][1] is None and moved["name"] == "kept"
    back = join([select(memory_of(3)._replace(prepared=nest), torch.tensor([one]), torch.tensor([one])) for one in range(3)])
    assert torch.equal(back.prepared["layers"][1][0], rows(3) + 5)
