"""A bare network computes with its own parameters; one for inference with constant, packed ones."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from seqdemo.config import EOS, PAD, TOLERANCE, ModelConfig, SearchOptions
from seqdemo.errors import InputError
from seqdemo.explain.gradients import connectivity, gradient_norms
from seqdemo.explain.replay import follow
from seqdemo.hub import load
from seqdemo.network import inference
from seqdemo.network import packed as packed_weights
from seqdemo.network.cells import CELLS
from seqdemo.network.inference import packed_copy
from seqdemo.network.model import LanguageModel, Seq2Seq
from seqdemo.network.packed import NEEDED, Packed, pack, packable, plus_product, tanh
from seqdemo.search import search
from tests.small_models import VOCABULARY, sentences, small, small_language, stir, targets

packing = pytest.mark.skipif(not packable(), reason="this torch cannot pack weights; parameters serve as they are")
SOURCE, LIMIT = (4, 7, 5), 6
Network = Seq2Seq | LanguageModel


def found(network: Network, strategy: str = "beam") -> tuple[tuple[int, ...], float]:
    """What a search finds, and its total."""
    options = SearchOptions(strategy=strategy, beam=3)  # type: ignore[arg-type]
    with torch.inference_mode():
        if isinstance(network, Seq2Seq):
            step, state = network.stepper(network.read(torch.tensor([SOURCE]), torch.ones(1, len(SOURCE), dtype=torch.bool)))
        else:
            step, state = network.stepper()
        hypothesis = search(step, state, 1, options, [LIMIT])[0].hypotheses[0]
    return hypothesis.tokens, hypothesis.total


def replayed(network: Network, tokens: tuple[int, ...]) -> float:
    return follow(network, SOURCE if isinstance(network, Seq2Seq) else None, tokens).total


def fresh(network: Network) -> Network:
    """A new network with the same state dict."""
    made = type(network)(network.config)
    made.load_state_dict({name: value.clone() for name, value in network.state_dict().items()})
    return made.eval()


def agree(network: Network) -> None:
    """Search, replay and a fresh copy give the same total."""
    tokens, total = found(network)
    for other in (replayed(network, tokens), replayed(fresh(network), tokens), replayed(network.for_inference(), tokens)):
        assert abs(other - total) < 1e-5 * (1 + abs(total))


# A bare network


def teach(model: Seq2Seq, steps: int) -> None:
    """Train on the same batch repeatedly, and decode in between."""
    source_BS, (read_BT, say_BT) = sentences((6, 2, 4)), targets((5, 3, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)  # which raises no version of a parameter
    for step in range(steps):
        loss = F.cross_entropy(model(source_BS, source_BS != PAD, read_BT).flatten(0, 1), say_BT.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            found(model)
    with torch.no_grad():
        stepper, state = model.stepper(model.read(source_BS, source_BS != PAD))
        said = search(stepper, state, 3, SearchOptions(strategy="greedy"), [7] * 3)
    for row, one in zip(say_BT.tolist(), said):
        assert one.hypotheses[0].tokens == tuple(row[: row.index(EOS) + 1]), "the model does not say what it has learnt"


@pytest.mark.parametrize("make", [small, lambda: small().for_inference().bare()])
def test_after_training_with_decodes_in_between_a_network_says_what_it_learnt(make: Callable[[], Seq2Seq]) -> None:
    model = make()
    found(model)
    teach(model, 300)
    agree(model)


def cell_of(network: Network) -> Any:
    return (network.decoder.stack if isinstance(network, Seq2Seq) else network.stack).first


CHANGES: dict[str, Callable[[Network], object]] = {
    "p.data +=": lambda network: add_to_data(network),
    "U.data.mul_": lambda network: cell_of(network).U.data.mul_(0),
    "embedding.data": lambda network: network.embed_target.weight.data.neg_(),
    "copy_": lambda network: cell_of(network).W.detach().copy_(torch.randn_like(cell_of(network).W)),
    "through numpy": lambda network: network.readout.b.detach().numpy().sort(),
    "a state dict": lambda network: network.load_state_dict(stirred(network).state_dict()),
    "a state dict assigned": lambda network: network.load_state_dict(stirred(network).state_dict(), assign=True),
    "another parameter": lambda network: setattr(cell_of(network), "U", nn.Parameter(-cell_of(network).U.detach())),
}


def add_to_data(network: Network) -> None:
    for parameter in network.parameters():
        parameter.data += 0.3 * parameter.data.cos()


def stirred(network: Network) -> Network:
    other = copy.deepcopy(network)
    stir(other)
    return other


@pytest.mark.parametrize("make", [small, lambda: small(cell="gru", decoder="attend-before"), small_language])
@pytest.mark.parametrize("change", CHANGES)
def test_however_a_parameter_is_changed_search_and_replay_follow(make: Callable[[], Network], change: str) -> None:
    network = make()
    _, before = found(network)
    constant = network.for_inference()
    CHANGES[change](network)
    agree(network)
    assert abs(found(network)[1] - before) > 1e-3
    assert found(constant)[1] == pytest.approx(before, abs=1e-5), "a network for inference does not follow"


def test_decoding_leaves_nothing_on_a_network() -> None:
    model = small()
    names = {name: set(vars(module)) for name, module in model.named_modules()}
    found(model)
    assert names == {name: set(vars(module)) for name, module in model.named_modules()}


# A network for inference


@packing
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("shared", [True, False])
def test_a_network_for_inference_finds_the_same_and_keeps_the_true_parameters(cell: str, shared: bool) -> None:
    model = small(cell=cell, share_embeddings=shared, tie_readout=shared)
    state = copy.deepcopy(model.state_dict())
    constant = model.for_inference()
    assert constant.precision == "float32" and isinstance(constant, type(model)) and not constant.training
    assert isinstance(vars(constant.readout)["weight"], Packed)
    tokens, total = found(model)
    assert found(constant)[0] == tokens and abs(found(constant)[1] - total) < 1e-5 * (1 + abs(total))
    for same in (constant, constant.bare(), model):
        assert list(same.state_dict()) == list(state)
        assert all(torch.equal(value, state[name]) for name, value in same.state_dict().items())
        assert len(list(same.parameters())) == len(list(model.parameters())), "ties stay ties"
    bare = constant.bare()
    assert bare is not model and bare.bare() is bare and not bare.precision


REFUSED: dict[str, Callable[[Any], object]] = {
    "a state dict": lambda network: network.load_state_dict(small().state_dict()),
    "an assigned state dict": lambda network: network.load_state_dict(small().state_dict(), assign=True),
    "a part's state dict": lambda network: network.readout.load_state_dict(small().readout.state_dict(), assign=True),
    "training": lambda network: network.train(),
    "a part's training": lambda network: network.decoder.train(),
    "a part's precision": lambda network: network.decoder.mix.half(),
    "another readout": lambda network: setattr(network, "readout", small().readout),
    "another part of a part": lambda network: setattr(network.decoder, "mix", small().decoder.mix),
    "another bias": lambda network: setattr(network.readout, "b", small().readout.b),
    "a part that is gone": lambda network: delattr(network, "readout"),
    "a parameter that is gone": lambda network: delattr(network.readout, "b"),
    "numbers written through data": lambda network: network.readout.b.data.mul_(0),
    "numbers written in place": lambda network: network.readout.b.mul_(0),
    "numbers added": lambda network: operator.iadd(network.readout.b, 1),
    "one number": lambda network: operator.setitem(network.readout.b, 4, 9.0),
    "gradients": lambda network: network.readout.b.requires_grad_(),
    "other data": lambda network: setattr(network.readout.b, "data", torch.zeros_like(network.readout.b)),
    "another precision": lambda network: network.double(),
    "another device": lambda network: network.to("meta"),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("inside", [False, True], ids=["", "in inference mode"])
def test_a_network_for_inference_refuses_to_change(what: str, inside: bool) -> None:
    constant = small().for_inference()
    before = found(constant)
    with torch.inference_mode(inside), pytest.raises(InputError, match="stays as it was made"):
        REFUSED[what](constant)
    assert found(constant.eval()) == before


COPIES: dict[str, Callable[[Any], object]] = {
    "detached": lambda parameter: parameter.detach().zero_(),
    "for NumPy": lambda parameter: parameter.numpy().fill(0),
    "as an array": lambda parameter: np.asarray(parameter).fill(0),
}


@pytest.mark.parametrize("what", COPIES)
@pytest.mark.parametrize("inside", [False, True], ids=["", "in inference mode"])
def test_what_is_read_of_its_parameters_is_a_copy(what: str, inside: bool) -> None:
    constant = small().for_inference()
    before = found(constant)
    with torch.inference_mode(inside):
        for parameter in constant.parameters():
            COPIES[what](parameter)
        for value in constant.state_dict().values():
            value.zero_()
    assert found(constant) == before and all(parameter.any() for parameter in constant.parameters())


@pytest.mark.parametrize("make", [small, small_language, lambda: small(cell="gru", decoder="context-each", encoder_layers=2)])
def test_search_and_replay_agree_even_after_a_write_that_torch_lets_through(make: Callable[[], Network]) -> None:
    constant = make().for_inference()
    for parameter in constant.parameters():
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            parameter[...].mul_(-2)
        with torch.inference_mode():
            parameter[...].mul_(-2)
    for strategy in ("greedy", "beam", "exact"):
        tokens, total = found(constant, strategy)
        assert replayed(constant, tokens) == pytest.approx(total, abs=1e-5 * (1 + abs(total)))


def test_copies_and_pickles_of_it_are_for_inference_too() -> None:
    constant = small().for_inference()
    for again in (copy.deepcopy(constant), pickle.loads(pickle.dumps(constant)), constant.for_inference()):
        assert again.precision == "float32" and found(again) == found(constant)
        with pytest.raises(InputError):
            again.train()


def test_gradients_are_those_of_the_bare_network() -> None:
    model = small()
    constant, target = model.for_inference(), (5, 6, EOS)
    assert (connectivity(constant, SOURCE, target, 1) == connectivity(model, SOURCE, target, 1)).all()
    assert (gradient_norms(constant, SOURCE) == gradient_norms(model, SOURCE)).all()


def test_weights_that_are_no_numbers_are_refused() -> None:
    model = small()
    model.readout.b.data[3] = torch.nan
    with pytest.raises(InputError, match=r"readout.b holds NaN"):
        model.for_inference()


# Lower precisions


def able_to(precision: str) -> bool:
    return packable() and any(map(packed_weights.processor().get, NEEDED[precision]))


LOW = [
    pytest.param(precision, marks=pytest.mark.skipif(not able_to(precision), reason=f"no instructions for {precision} here"))
    for precision in ("bfloat16", "int8")
]


def reached(thing: Any, found: dict[int, Any]) -> dict[int, Any]:
    """Everything that is an attribute of `thing`, or of one of its attributes and so on, by its id."""
    if id(thing) not in found:
        found[id(thing)] = thing
        own = isinstance(thing, nn.Module) or type(thing).__module__.startswith("seqdemo.")
        inner = thing.values() if isinstance(thing, dict) else vars(thing).values() if own else ()
        for value in inner:
            reached(value, found)
    return found


@packing
@pytest.mark.parametrize("precision", ["float32", *LOW])
@pytest.mark.parametrize("make", [small, small_language, lambda: small(decoder_hidden=300)], ids=["text", "language", "wide"])
def test_the_bytes_beside_the_parameters_are_those_of_every_other_tensor(make: Callable[[], Network], precision: str) -> None:
    network = make().for_inference(precision)
    own = {value.data_ptr() for value in (*network.parameters(), *network.buffers())}
    tensors = [value for value in reached(network, {}).values() if isinstance(value, Tensor)]
    beside = [value for value in tensors if value.is_mkldnn or value.data_ptr() not in own]
    assert inference.bytes_beside(network) == sum(value.nbytes for value in beside) > 0
    assert inference.bytes_beside(network.bare()) == 0


def middling(seed: int = 5, **changes: Any) -> Seq2Seq:
    """A model large enough for its readout and cell to gain by a lower precision."""
    torch.manual_seed(seed)
    sizes = {"embedding": 48, "encoder_hidden": 48, "decoder_hidden": 288, "attention": 48, "features": 96, **changes}
    model = Seq2Seq(ModelConfig(3_000, VOCABULARY, **sizes)).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        model.readout.weight.mul_(3)
        model.readout.b.normal_()
    return model


@pytest.mark.parametrize("precision", ["float32", *LOW])
@pytest.mark.parametrize("decoder", ["attend-after", "attend-before", "context-each"])
def test_search_and_replay_agree_within_the_tolerance_of_their_precision(precision: str, decoder: str) -> None:
    """Totals in a lower precision also differ from those in float32, so it is really used."""
    apart, from_float32 = 0.0, 0.0
    for seed in range(3):
        network = middling(seed, decoder=decoder).for_inference(precision)
        for strategy in ("greedy", "beam", "sample"):
            tokens, total = found(network, strategy)
            apart = max(apart, abs(replayed(network, tokens) - total) / (1 + abs(total)))
            from_float32 = max(from_float32, abs(replayed(network.bare(), tokens) - total) / (1 + abs(total)))
    assert apart < TOLERANCE[precision]
    assert (from_float32 > 1e-5) is (precision != "float32") and from_float32 < 0.05
    assert follow(network, SOURCE, tokens).precision == precision
    assert bool(network.precision_note) is (precision != "float32")


@pytest.mark.parametrize("precision", LOW)
def test_a_network_in_a_lower_precision_keeps_its_float32_parameters(precision: str) -> None:
    model = middling()
    low = model.for_inference(precision)
    assert vars(low.readout)["weight"].precision == vars(low.decoder.stack.first)["U"].precision == precision
    for same in (low, low.bare(), low.for_inference("float32"), copy.deepcopy(low)):
        assert all(torch.equal(value, same.state_dict()[name]) for name, value in model.state_dict().items())
    assert copy.deepcopy(low).precision == precision
    assert (connectivity(low, SOURCE, (5, 6, EOS), 1) == connectivity(model, SOURCE, (5, 6, EOS), 1)).all()


@pytest.mark.parametrize("precision", LOW)
def test_a_model_too_small_to_gain_is_told_so(precision: str) -> None:
    low = small().for_inference(precision)
    assert found(low) == found(small_like(low)) and "brings nothing" in low.precision_note


def small_like(network: Network) -> Network:
    return network.bare().for_inference()


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(InputError, match="one of float32, bfloat16, int8"):
        small().for_inference("float8")


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_a_precision_that_the_processor_lacks_is_refused_with_a_sentence(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_weights, "processor", lambda: {"avx2": True})
    with pytest.raises(InputError, match=f"{precision} brings nothing on this processor.*Leave the precision at float32"):
        small().for_inference(precision)
    with pytest.raises(InputError, match="brings nothing on this processor"):
        load("translator-de-en", precision=precision)
    assert small().for_inference("float32").precision == "float32"


@pytest.mark.parametrize("make", [small, small_language])
def test_weights_on_another_device_are_refused_with_a_sentence(make: Callable[[], Network]) -> None:
    network = make().to("meta")
    with pytest.raises(InputError, match=r"lie on meta.*for_inference"):
        network.stepper() if isinstance(network, LanguageModel) else network.stepper(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="lie on meta"):
        replayed(network, (5, EOS))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_model_on_a_gpu_searches_by_its_copy_for_inference() -> None:
    model = small()
    before = found(model)
    model.cuda()
    with pytest.raises(InputError, match="lie on cuda"):
        found(model)
    assert found(model.for_inference())[0] == before[0]


def test_a_model_cast_to_bfloat16_searches_and_replays() -> None:
    model = small().bfloat16()
    for strategy in ("greedy", "beam", "sample", "exact"):
        tokens, total = found(model, strategy)
        assert replayed(model, tokens) == pytest.approx(total, abs=0.3)


def test_without_the_private_operators_parameters_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small()
    packed = found(model.for_inference())
    monkeypatch.setattr(inference, "packable", lambda: False)
    monkeypatch.setattr("seqdemo.network.coders.packable", lambda: False)
    plain = model.for_inference()
    assert not any(isinstance(value, Packed) for module in plain.modules() for value in vars(module).values())
    assert found(plain)[0] == packed[0] and found(plain)[1] == pytest.approx(packed[1], abs=1e-5)


def test_only_float32_is_packed() -> None:
    assert not any(isinstance(value, Packed) for value in vars(packed_copy(nn.Linear(32, 32).double(), {})).values())


# Packed weights


def both(
    rows: int, inputs: int, outputs: int, seed: int = 0, precision: str = "float32"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors by name, and the same with packed weights."""
    torch.manual_seed(seed)
    W = torch.randn(outputs, inputs) / inputs**0.5
    plain = {"W": W, "U": W.t().contiguous(), "b": torch.randn(outputs), "x": torch.randn(rows, inputs)}
    plain |= {"z": torch.randn(rows, outputs), "x3": torch.randn(2, rows, inputs), "x4": torch.randn(2, 1, rows, inputs)}
    return plain, {**plain, "W": pack(W, False, precision), "U": pack(plain["U"], True, precision)}


CALLS: dict[str, Callable[..., Tensor]] = {
    "linear": lambda x, W, b, **_: F.linear(x, W, b),
    "linear without a bias": lambda x, W, **_: F.linear(x, W),
    "linear, bias=": lambda x, W, b, **_: F.linear(x, W, bias=b),
    "linear, all by name": lambda x, W, b, **_: F.linear(input=x, weight=W, bias=b),
    "linear of one vector": lambda x, W, b, **_: F.linear(x[0], W, b),
    "linear of three axes": lambda x3, W, b, **_: F.linear(x3, W, b),
    "linear of four axes": lambda x4, W, b, **_: F.linear(x4, W, b),
    "linear by a U": lambda z, U, **_: F.linear(z, U),
    "strided": lambda x3, W, b, **_: F.linear(x3.transpose(0, 1), W, b),
    "no rows": lambda x, W, b, **_: F.linear(x[:0], W, b),
    "in double": lambda x, W, **_: F.linear(x.float(), W).double(),
    "addmm": lambda z, x, U, **_: torch.addmm(z, x, U),
    "addmm of one row of z": lambda b, x, U, **_: torch.addmm(b, x, U),
    "plus_product": lambda z, x, U, **_: plus_product(z, x, U),
    "plus_product of one row of z": lambda b, x, U, **_: plus_product(b, x, U),
    "plus_product by a W": lambda x, z, W, **_: plus_product(x, z, W),
    "addmm, alpha and beta": lambda z, x, U, **_: torch.addmm(z, x, U, beta=0.5, alpha=2.0),
    "addmm by name": lambda z, x, U, **_: torch.addmm(input=z, mat1=x, mat2=U),
    "addmm by a W": lambda x, z, W, **_: torch.addmm(x, z, W),
    "z.addmm": lambda z, x, U, **_: z.addmm(x, U),
    "@": lambda x, U, **_: x @ U,
    "@ of three axes": lambda x3, U, **_: x3 @ U,
    "@ of one vector": lambda x, U, **_: x[0] @ U,
    "W @": lambda x, W, **_: W @ x.t(),
    "z @ W": lambda z, W, **_: z @ W,
    "matmul": lambda x, U, **_: torch.matmul(x, U),
    "matmul by name": lambda x, U, **_: torch.matmul(input=x, other=U),
    "x.matmul": lambda x, U, **_: x.matmul(U),
    "matmul the other way": lambda x, W, **_: torch.matmul(W, x.t()),
    "mm": lambda x, U, **_: torch.mm(x, U),
    "two weights": lambda W, U, **_: torch.matmul(W, U),
    "einsum": lambda x, U, **_: torch.einsum("ki,io->ko", x, U),
    "a sum": lambda W, **_: torch.sum(W, dim=0),
    "a concatenation": lambda W, **_: torch.cat([W, W], 1),
    "out=": lambda x, U, z, **_: torch.matmul(x, U, out=torch.empty_like(z)),
}


@packing
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("size", [(3, 20, 24), (9, 512, 700)])
def test_a_packed_weight_takes_every_call_that_a_tensor_takes(call: str, size: tuple[int, int, int]) -> None:
    plain, packed = both(*size)
    wanted, given_ = CALLS[call](**plain), CALLS[call](**packed)
    assert given_.shape == wanted.shape and given_.dtype == wanted.dtype
    assert not wanted.numel() or (given_ - wanted).abs().max() < 2e-5


@pytest.mark.parametrize("precision", LOW)
@pytest.mark.parametrize("call", CALLS)
def test_a_weight_in_a_lower_precision_takes_every_call_too(call: str, precision: str) -> None:
    plain, packed = both(9, 512, 700, precision=precision)
    wanted = CALLS[call](**{**plain, "W": packed["W"].dense(), "U": packed["U"].dense()})
    given_ = CALLS[call](**packed)
    assert given_.shape == wanted.shape and given_.dtype == wanted.dtype
    assert not wanted.numel() or (given_ - wanted).abs().max() < 0.015 * wanted.abs().max()
    assert (packed["W"].dense() - plain["W"]).abs().max() < plain["W"].abs().max() / 100


@pytest.mark.parametrize("precision", LOW)
@given(rows=st.integers(1, 40), seed=st.integers(0, 2**16), scale=st.floats(1e-3, 1e3))
@settings(max_examples=40)
def test_int8_gives_a_row_what_it_gives_it_alone(precision: str, rows: int, seed: int, scale: float) -> None:
    _, packed = both(rows, 512, 700, seed, precision)
    x = packed["x"] * torch.logspace(0, 1, rows)[:, None] * scale
    x[rows // 2] = 0
    together = F.linear(x, packed["W"], packed["b"])
    alone = torch.cat([F.linear(row[None], packed["W"], packed["b"]) for row in x])
    assert torch.equal(together, alone) if precision == "int8" else (together - alone).abs().max() < 0.01 * alone.abs().max()
    assert torch.equal(together[rows // 2], packed["b"])


@packing
@settings(max_examples=60)
@given(st.integers(1, 70), st.integers(1, 700), st.integers(1, 700), st.integers(0, 2**16))
def test_products_with_a_packed_weight_equal_torchs(rows: int, inputs: int, outputs: int, seed: int) -> None:
    plain, packed = both(rows, inputs, outputs, seed)
    for call in ("linear", "linear without a bias", "linear of three axes", "addmm", "@"):
        assert (CALLS[call](**packed) - CALLS[call](**plain)).abs().max() < 1e-5


@packing
@pytest.mark.parametrize("size", [(3, 20, 24), (9, 512, 700)])
def test_what_a_tensor_refuses_a_packed_weight_refuses(size: tuple[int, int, int]) -> None:
    _, given_ = both(*size)
    wrong: list[Callable[[], object]] = [
        lambda: F.linear(given_["z"], given_["W"]),
        lambda: F.linear(given_["x"], given_["W"], given_["b"][:-1]),
        lambda: F.linear(given_["x"].double(), given_["W"]),
        lambda: given_["z"] @ given_["U"],
        lambda: torch.addmm(given_["z"][:, :-1], given_["x"], given_["U"]),
    ]
    for call in wrong:
        with pytest.raises(RuntimeError):
            call()


@packing
def test_gradients_pass_through_a_packed_weight() -> None:
    plain, packed = both(9, 512, 700)
    grads = []
    for values in (plain, packed):
        x = values["x"].clone().requires_grad_()
        F.linear(x, values["W"], values["b"]).square().sum().backward()
        grads.append(x.grad)
    assert (grads[0] - grads[1]).abs().max() < 1e-4 * grads[0].abs().max()


@packing
def test_a_packed_weight_does_not_follow_the_tensor_it_was_made_from() -> None:
    for size in ((3, 20, 24), (9, 512, 700)):
        plain, packed = both(*size)
        before = F.linear(plain["x"], packed["W"])
        plain["W"].data.mul_(0)
        packed["W"].dense().mul_(0)
        assert torch.equal(F.linear(plain["x"], packed["W"]), before)


@given(st.floats(-60, 60), st.integers(0, 2**16))
def test_the_fast_tanh_is_tanh(centre: float, seed: int) -> None:
    torch.manual_seed(seed)
    z = centre + torch.randn(packed_weights.FEW_NUMBERS + 7)
    with torch.no_grad():
        assert (tanh(z).double() - torch.tanh(z.double())).abs().max() < 3e-7
        assert torch.equal(tanh(z.double()), torch.tanh(z.double()))
    z = z.requires_grad_()
    assert torch.equal(tanh(z), torch.tanh(z))


def test_the_fast_tanh_at_the_ends() -> None:
    z = torch.tensor([float("inf"), -float("inf"), 1e4, -1e4, 0.0]).repeat(packed_weights.FEW_NUMBERS)
    with torch.no_grad():
        assert torch.equal(tanh(z), torch.tanh(z))
        assert tanh(torch.full((packed_weights.FEW_NUMBERS,), float("nan"))).isnan().all()
