"""Saving and loading: the same model comes back, and every malformed folder is refused with the file and the reason."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from seqdemo import checkpoints
from seqdemo import hub as models
from seqdemo.checkpoints.checkpoint import blueprint, load_folder
from seqdemo.checkpoints.folder import ON_DISK
from seqdemo.checkpoints.pieces import SECONDS
from seqdemo.checkpoints.weights import AT_ONCE, all_finite, fill
from seqdemo.config import ModelConfig
from seqdemo.errors import InputError
from seqdemo.network.inference import inferring
from seqdemo.network.model import LanguageModel, Seq2Seq
from seqdemo.text import SPECIALS, Characters, Subwords, Words
from tests.malformed import CASES, make
from tests.spoiling import CHARS, PIECES, SIZES, Case, evil_pickle, good, mark_of, set_nan, tensors


def text_model(**changes: object) -> Seq2Seq:
    torch.manual_seed(3)
    sizes = {"target_vocabulary": len(CHARS), "source_vocabulary": len(CHARS), **SIZES, **changes}
    return Seq2Seq(ModelConfig(**sizes))  # type: ignore[arg-type]


def wide_model(**changes: object) -> Seq2Seq:
    return text_model(**{"embedding": 32, "encoder_hidden": 32, "decoder_hidden": 64, "features": 32, **changes})


def halves(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.half().float() for name, tensor in model.state_dict().items()}


def assert_same_weights(model: torch.nn.Module, loaded: torch.nn.Module) -> None:
    expected, found = halves(model), loaded.state_dict()
    assert list(expected) == list(found)
    for name, tensor in expected.items():
        assert torch.equal(tensor, found[name]), name
        assert found[name].dtype == torch.float32


@pytest.mark.parametrize("tied", [False, True])
def test_a_text_model_comes_back_rounded_to_half_precision(tmp_path: Path, tied: bool) -> None:
    model = text_model(tie_readout=tied, share_embeddings=tied)
    checkpoints.save(tmp_path / "a", model, {"name": "a", "task": "transliterate", "languages": ["hi"]}, CHARS, CHARS)
    loaded = models.load(tmp_path / "a")
    assert_same_weights(model, loaded.model)
    assert not loaded.model.training
    assert loaded.source_text is loaded.target_text and loaded.source_text.encode("abz").known == (True, True, False)
    assert (loaded.name, loaded.task, loaded.languages) == ("a", "transliterate", ("hi",))


def test_tied_weights_are_stored_once_and_tied_again(tmp_path: Path) -> None:
    model = text_model(tie_readout=True, share_embeddings=True)
    folder = checkpoints.save(tmp_path, model, {"name": "a", "task": "translate"}, CHARS, CHARS)
    stored = load_file(folder / "model.safetensors")
    assert "embed_target.weight" in stored and not {"readout.weight", "embed_source.weight"} & set(stored)
    loaded = models.load(folder).model
    assert loaded.readout.weight is loaded.embed_target.weight is loaded.embed_source.weight


def test_the_file_on_disk_is_half_precision_as_the_safetensors_library_reads_it(tmp_path: Path) -> None:
    model = text_model()
    checkpoints.save(tmp_path, model, {"name": "a", "task": "translate"}, CHARS, CHARS)
    stored = load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    for name, tensor in model.state_dict().items():
        assert torch.equal(stored[name], tensor.half())


@pytest.mark.parametrize("kind", ["subwords", "characters", "words"])
def test_every_tokenizer_travels_with_a_language_model(tmp_path: Path, kind: str) -> None:
    lines = [f"one two three {number}" for number in range(50)]
    made = {
        "subwords": lambda: Subwords.train(lines, 40),
        "characters": lambda: Characters.train(lines),
        "words": lambda: Words.train(lines),
    }
    tokenizer = made[kind]()
    model = LanguageModel(
        ModelConfig(target_vocabulary=len(tokenizer), encoder="none", embedding=4, decoder_hidden=5, features=0)
    )
    checkpoints.save(tmp_path, model, {"name": "lm", "task": "complete"}, None, tokenizer, metrics={"nats": 1.5})
    loaded = models.load(tmp_path)
    assert_same_weights(model, loaded.model)
    assert loaded.target_text.encode("two one 7") == tokenizer.encode("two one 7")
    assert loaded.source_text is None and loaded.metrics == {"nats": 1.5}


def test_an_image_model_keeps_its_cnn_in_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(tmp_path))
    model = Seq2Seq(ModelConfig(target_vocabulary=len(CHARS), encoder="image", cnn="efficientnet-lite0", **SIZES))  # type: ignore[arg-type]
    folder = checkpoints.save(
        tmp_path / "captioner", model, {"name": "captioner", "task": "caption"}, None, CHARS, shared=tmp_path / "shared"
    )
    config = json.loads((folder / "config.json").read_text())
    assert config["shared"]["cnn"]["file"] == "efficientnet-lite0.safetensors"
    assert not (folder / "efficientnet-lite0.safetensors").exists()
    assert not any(name.startswith("encoder.cnn.") for name in load_file(folder / "model.safetensors"))
    assert_same_weights(model, models.load("captioner").model)
    (tmp_path / "shared" / "efficientnet-lite0.safetensors").rename(folder / "efficientnet-lite0.safetensors")
    assert_same_weights(model, models.load("captioner").model)


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    checkpoints.save(tmp_path, text_model(), {"name": "a", "task": "translate"}, CHARS, CHARS)
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    models.load(tmp_path)
    assert torch.equal(torch.rand(3), expected)


def test_weights_that_half_precision_cannot_hold_are_not_saved(tmp_path: Path) -> None:
    model = text_model()
    with torch.no_grad():
        model.readout.b[0] = 70_000.0
    with pytest.raises(InputError, match=r"readout\.b"):
        checkpoints.save(tmp_path, model, {"name": "a", "task": "translate"}, CHARS, CHARS)


def test_a_network_is_saved_to_a_named_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    for name, words in (("", "Name the folder"), (None, "Name the folder"), ("file", "is a file; name a folder")):
        with pytest.raises(InputError, match=words):
            text_model().save_pretrained(name)  # type: ignore[arg-type]
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("tied", [False, True])
def test_matrices_in_int8_come_back_as_multiples_of_their_rows_scales(tmp_path: Path, tied: bool) -> None:
    model = wide_model(tie_readout=tied, share_embeddings=tied)
    with torch.no_grad():
        model.embed_target.weight[0] = 0.0
    facts = {"name": "a", "task": "translate"}
    whole, small = (
        checkpoints.save(tmp_path / precision, model, facts, CHARS, CHARS, precision=precision) for precision in ON_DISK
    )
    assert [json.loads((folder / "config.json").read_text())["format"] for folder in (whole, small)] == [1, 2]
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (whole, small)]
    assert sizes[1] < 0.7 * sizes[0]
    loaded = models.load(small).model.bare_network
    for name, tensor in model.state_dict().items():
        found = loaded.state_dict()[name]
        if tensor.dim() == 2 and tensor.shape[1] >= 16:
            step_O1 = tensor.abs().amax(1, keepdim=True) / 127
            assert ((found - tensor).abs() <= step_O1 / 2 + 1e-7).all(), name
            assert torch.allclose((found / step_O1).nan_to_num(0.0), (found / step_O1).nan_to_num(0.0).round(), atol=1e-3), name
        else:
            assert torch.equal(found, tensor.half().float()), name
    again = checkpoints.save(tmp_path / "again", loaded, facts, CHARS, CHARS, precision="int8")
    for name, tensor in models.load(again).model.bare_network.state_dict().items():
        assert torch.allclose(tensor, loaded.state_dict()[name], rtol=1e-6), "rounding twice changes nothing more"


def test_int8_in_memory_adds_nothing_to_int8_on_disk(tmp_path: Path) -> None:
    folder = checkpoints.save(
        tmp_path, wide_model(decoder_hidden=256), {"name": "a", "task": "translate"}, CHARS, CHARS, precision="int8"
    )
    one, other = (models.load(folder, precision=precision).model for precision in ("float32", "int8"))
    for name, tensor in one.bare_network.state_dict().items():
        assert torch.allclose(other.bare_network.state_dict()[name], tensor, rtol=1e-6), name


def test_another_precision_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one of float16, int8, not 'int4'"):
        checkpoints.save(tmp_path, text_model(), {"name": "a", "task": "translate"}, CHARS, CHARS, precision="int4")


def test_names_are_the_shipped_folders_that_hold_a_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(tmp_path))
    assert models.names() == []
    checkpoints.save(tmp_path / "b", text_model(), {"name": "b", "task": "translate"}, CHARS, CHARS)
    (tmp_path / "shared").mkdir()
    assert models.names() == ["b"]
    assert models.load("b").folder == tmp_path / "b"
    with pytest.raises(InputError, match="There is no checkpoint 'c'; there are b"):
        models.load("c")


@pytest.mark.parametrize("shared", [False, True])
def test_a_cnn_that_is_nowhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(tmp_path))
    folder = good(tmp_path / "captioner", "caption")
    (folder / "efficientnet-lite0.safetensors").unlink()
    if shared:
        (tmp_path / "shared").mkdir()
    with pytest.raises(InputError, match="efficientnet-lite0.safetensors, the CNN that config.json names, is missing"):
        models.load("captioner")


def test_a_shared_cnn_is_never_replaced_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQDEMO_CHECKPOINTS", str(tmp_path))
    config = ModelConfig(target_vocabulary=len(CHARS), encoder="image", cnn="efficientnet-lite0", **SIZES)
    networks = {"one": Seq2Seq(config), "two": Seq2Seq(config)}
    for name, model in networks.items():
        checkpoints.save(tmp_path / name, model, {"name": name, "task": "caption"}, None, CHARS, shared=tmp_path / "shared")
    for name, model in networks.items():
        assert_same_weights(model, models.load(name).model)


@pytest.mark.parametrize(
    "card, summary",
    [
        ("", ""),
        ("---\nlicense: mit\n---\n\n# name\n\nIt translates.\nWell.\n\nMore.", "It translates.\nWell."),
        ("# only a heading", ""),
        ("x" * 1000, "x" * 600),
    ],
)
def test_a_card_is_summed_up_by_its_first_paragraph(card: str, summary: str) -> None:
    made = checkpoints.Checkpoint("a", "translate", torch.nn.Linear(1, 1), None, None, {}, card=card)
    assert made.summary == summary


def plain_load(folder: Path) -> Seq2Seq:
    """The same with no check at all."""
    config = json.loads((folder / "config.json").read_bytes())
    Characters.parse((folder / "pieces.json").read_bytes())
    model = blueprint(config)
    fill(model, {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()})
    return inferring(model)  # type: ignore[no-any-return]


def cpu_seconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(9):
        begun = time.process_time()
        call()
        times.append(time.process_time() - begun)
    return sorted(times)[4]


def test_the_checks_of_a_shipped_size_cost_less_than_50_ms(tmp_path: Path) -> None:
    """Or, on a slow or busy machine, less than half of what loading takes without them."""
    letters = Characters([*SPECIALS, *map(chr, range(0x4E00, 0x4E00 + 5996))])
    model = Seq2Seq(ModelConfig(target_vocabulary=6000, source_vocabulary=6000, share_embeddings=True, tie_readout=True))
    folder = checkpoints.save(tmp_path, model, {"name": "a", "task": "translate"}, letters, letters)
    assert (folder / "model.safetensors").stat().st_size > 9_000_000
    checked, plain = cpu_seconds(lambda: load_folder(folder, trusted=True)), cpu_seconds(lambda: plain_load(folder))
    assert checked - plain < max(0.05, plain / 2)


@pytest.fixture(scope="module")
def good_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("good")
    return {base: good(root / base, base) for base in ("text", "words", "subwords", "caption")}


@pytest.mark.parametrize("base", ["text", "words", "subwords", "caption"])
def test_the_unspoiled_checkpoints_load(good_folders: dict[str, Path], base: str) -> None:
    assert models.load(good_folders[base]).config["name"] == "good"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_malformed_checkpoint_is_refused_with_the_reason_and_nothing_in_it_runs(
    tmp_path: Path, good_folders: dict[str, Path], case: Case
) -> None:
    shutil.copytree(good_folders[case.base], tmp_path / "spoiled")
    folder = make(case, tmp_path / "spoiled")
    begun = time.monotonic()
    if case.says:
        with pytest.raises(InputError, match=case.says) as caught:
            models.load(folder)
        assert len(str(caught.value)) < 700
    else:
        models.load(folder)
    assert time.monotonic() - begun < 2 * SECONDS  # of which a tokenizer may take half
    assert not mark_of(folder).exists()


@pytest.mark.parametrize("base, file", [("text", PIECES), ("words", "target.json"), ("subwords", "target.model")])
def test_two_thousand_spoiled_tokenizers_are_read_or_refused_and_nothing_else(
    good_folders: dict[str, Path], base: str, file: str
) -> None:
    """A crash of the process is a refusal too: in life it is a child's."""
    kind = {"text": "characters"}.get(base, base)
    first, crashes, found = 0, 0, ""
    while not found:
        line = [sys.executable, "-m", "tests.fuzz_pieces", kind, str(good_folders[base] / file), str(first), "2000"]
        done = subprocess.run(line, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
        *_, last = done.stdout.split("\n")[:-1]
        assert done.returncode <= 0, done.stderr
        found = last.removeprefix("done ") if last.startswith("done") else ""
        crashes, first = crashes + (not found), 0 if found else int(last) + 1
        assert crashes < 20
    counts = json.loads(found)
    assert counts["refused"] > 100 and counts["accepted"] > 10


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_numbers_are_finite_as_torch_has_it(dtype: torch.dtype) -> None:
    extremes = [0.0, -0.0, torch.finfo(dtype).max, torch.finfo(dtype).min, torch.finfo(dtype).smallest_normal / 2]
    for value in [*extremes, float("nan"), float("inf"), -float("inf")]:
        numbers = torch.zeros(2 * AT_ONCE + 3, dtype=dtype)
        numbers[-1] = value
        found = all_finite(memoryview(numbers.view(torch.uint8).numpy()), dtype)  # type: ignore[arg-type]
        assert found == bool(torch.isfinite(numbers).all())


def test_no_memory_is_taken_for_numbers_before_all_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = good(tmp_path / "good", "text")
    tensors(set_nan(float("nan")))(folder)
    checkpoints.write_manifest(folder)
    monkeypatch.setattr(torch, "frombuffer", None)
    with pytest.raises(InputError, match="decoder.mix.bias holds NaN"):
        models.load(folder)


def test_the_payloads_would_fire_where_a_pickle_is_opened(tmp_path: Path) -> None:
    pickle.loads(evil_pickle(tmp_path / "a"))
    assert mark_of(tmp_path / "a").exists()
