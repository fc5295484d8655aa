from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from seqdemo import checkpoints
from seqdemo import hub as models
from seqdemo.checkpoints import Checkpoint
from seqdemo.config import BOS, EOS, ModelConfig, SearchOptions
from seqdemo.errors import InputError
from seqdemo.figures.places import labels_of
from seqdemo.network.model import LanguageModel, Seq2Seq
from seqdemo.prompts import Prompt
from seqdemo.text import SPECIALS, Characters, Words
from training import __main__ as command_line
from training import data as public_data
from training.data.batches import openings
from training.data.records import Dataset, Example, Split
from training.measure import compare, decoding, evaluate, long_texts, optimum, pointing, scores

ROOT = Path(__file__).resolve().parent.parent
LETTERS = Characters([*SPECIALS, *"abcdefghijklmnopqrstuvwxyz"])
SMALL = {"embedding": 6, "encoder_hidden": 5, "decoder_hidden": 7, "attention": 4, "features": 6}
PLAN = evaluate.Plan(beams=(1, 5), sample=40, exact=5, expansions=300)


def reverser(folder: Path, seed: int = 3, name: str = "reverse") -> Path:
    """An untrained model for the toy; its end of output is likely, so that outputs are short and varied."""
    torch.manual_seed(seed)
    model = Seq2Seq(ModelConfig(len(LETTERS), source_vocabulary=len(LETTERS), **SMALL))  # type: ignore[arg-type]
    with torch.no_grad():
        model.readout.b[EOS] = 2.0
        model.readout.weight.mul_(4)
    return checkpoints.save(folder, model.eval(), {"name": name, "task": "transliterate"}, LETTERS, LETTERS)


def dataset(*examples: Example, verified: bool = True) -> Dataset:
    split = Split(list(examples))
    return Dataset("small", split, split, split, "0" * 64, verified, ())


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    torch.set_num_threads(1)
    folder = reverser(tmp_path_factory.mktemp("reverse"))
    return folder, evaluate.evaluate(folder, plan=PLAN)


def test_the_file_holds_what_is_returned_and_the_manifest_knows_it(measured: tuple[Path, dict]) -> None:
    folder, found = measured
    assert json.loads((folder / "metrics.json").read_text()) == found
    assert models.load(folder).metrics == found


def test_figures_name_the_bytes_they_were_measured_on(measured: tuple[Path, dict]) -> None:
    folder, found = measured
    assert set(found["files"]) == {"config.json", "model.safetensors", "pieces.json"}
    for name, digest in found["files"].items():
        assert digest == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    assert found["data"]["fingerprint"] == public_data.load("reverse").fingerprint
    assert found["versions"]["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert found["command"] == f"python -m training evaluate {folder.name}", "neither the recipe's name nor a folder of mine"


def test_the_command_says_what_is_not_usual() -> None:
    options = SearchOptions(beam=10, length_norm="power", alpha=0.4)
    assert evaluate.arguments("dev", options) == ["--split dev", "--beam 10", "--length-norm power", "--alpha 0.4"]
    assert evaluate.arguments("test", evaluate.STANDARD.options) == []
    assert evaluate.arguments("dev", evaluate.STANDARD.options, "multi30k") == ["--split dev", "--dataset multi30k"]


def test_the_command_names_the_folder_as_it_is_seen_from_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given, told in (
        ("checkpoints/lm-c", "checkpoints/lm-c"),
        (tmp_path / "checkpoints/lm-c", "checkpoints/lm-c"),
        ("/elsewhere/checkpoints/lm-c", "checkpoints/lm-c"),
        ("runs/gru/", "runs/gru"),
        (tmp_path / "runs/gru", "runs/gru"),
        ("/home/somebody/gru", "gru"),
        ("../gru", "gru"),
    ):
        assert evaluate.place(Path(given)) == told


@pytest.mark.parametrize("name", models.names())
def test_shipped_figures_name_the_command_that_gives_them_again(name: str) -> None:
    metrics = models.load(name).metrics
    options = SearchOptions(**metrics["options"]) if "options" in metrics else evaluate.STANDARD.options
    beside = [Path("runs") / other["name"] for other in metrics.get("beside", ())]
    assert metrics["command"] == evaluate.command(Path("checkpoints") / name, "test", "", options, beside)


def test_greedy_beam_one_and_buckets_agree(measured: tuple[Path, dict]) -> None:
    _, found = measured
    test = found["tests"]["reverse"]
    assert test["inputs"] == 1000 == sum(row["inputs"] for row in test["by_length"])
    weighed = sum(row["top1"] * row["inputs"] for row in test["by_length"]) / 1000
    assert weighed == pytest.approx(test["beam"]["top1"], abs=1e-3)
    assert [row["size"] for row in test["by_beam"]] == [1, 5] and test["by_beam"][0]["inputs"] == 40
    assert 0 <= test["beam"]["top1"] <= test["beam"]["top5"]


def test_choosing_on_dev_leaves_the_figures_on_test_alone(measured: tuple[Path, dict]) -> None:
    folder, found = measured
    on_dev = evaluate.evaluate(folder, split="dev", plan=PLAN)
    assert on_dev["tests"]["reverse"]["inputs"] == 500 and on_dev["command"].endswith("--split dev")
    assert json.loads((folder / "metrics.json").read_text()) == found
    with pytest.raises(InputError, match="no split 'best'"):
        evaluate.evaluate(folder, split="best", plan=PLAN)


def test_what_was_tried_and_does_not_ship_stands_beside_on_the_same_inputs(measured: tuple[Path, dict], tmp_path: Path) -> None:
    folder, _ = measured
    other = reverser(tmp_path / "other", seed=4, name="other")
    found = evaluate.evaluate(folder, split="dev", plan=PLAN, beside=[other])
    alone = evaluate.evaluate(other, split="dev", dataset="reverse", plan=PLAN)
    (tried,) = found["beside"]
    assert tried["name"] == "other" and tried["weights"] == alone["files"]["model.safetensors"]
    assert tried["tests"]["other"] == {search: alone["tests"]["other"][search] for search in ("greedy", "beam")}
    assert found["command"].endswith("--split dev --beside other")


def test_two_ranks_find_what_one_process_finds(measured: tuple[Path, dict], tmp_path: Path) -> None:
    folder, found = measured
    script = tmp_path / "run.py"
    script.write_text(
        "import sys, torch\nfrom pathlib import Path\n"
        "from training.measure.evaluate import Plan, evaluate\ntorch.set_num_threads(1)\n"
        f"evaluate(Path(sys.argv[1]), plan=Plan(beams={PLAN.beams}, sample=40, exact=5, expansions=300))\n"
    )
    (folder / "metrics.json").unlink()
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script), str(folder)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}, capture_output=True)
    assert json.loads((folder / "metrics.json").read_text()) == found


def test_changed_data_are_named_in_the_figures_and_not_compared(
    measured: tuple[Path, dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = measured
    changed = dataset(Example("ab", ("ba",)), Example("abc", ("cba",)), verified=False)
    monkeypatch.setattr(public_data, "load", lambda name, data=None: changed)
    found = evaluate.evaluate(folder, split="dev", plan=PLAN)
    assert found["data"]["verified"] is False and found["data"]["refusal"] == changed.refusal != ""
    with pytest.raises(InputError) as refused:
        compare.compare(folder, folder)
    assert str(refused.value) == changed.refusal


def test_without_a_recipe_the_data_must_be_named(tmp_path: Path) -> None:
    folder = reverser(tmp_path / "a", name="other")
    with pytest.raises(InputError, match="--dataset"):
        evaluate.evaluate(folder, plan=PLAN)
    found = evaluate.evaluate(folder, dataset="reverse", split="dev", plan=PLAN)
    assert found["name"] == "other" and found["command"].endswith(" a --split dev --dataset reverse")


def test_figures_on_other_data_are_told_and_do_not_replace_its_own(
    measured: tuple[Path, dict], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, found = measured
    loaded = public_data.load("reverse")
    monkeypatch.setattr(public_data, "load", lambda name, data=None: replace(loaded, name=name))
    monkeypatch.setattr(evaluate, "STANDARD", PLAN)
    assert command_line.main(["evaluate", str(folder), "--dataset", "dakshina:hi"]) == 0
    assert capsys.readouterr().out.endswith(
        f"They are not written to {folder / 'metrics.json'}, which is for its own test data.\n"
    )
    assert json.loads((folder / "metrics.json").read_text()) == found
    assert command_line.main(["evaluate", str(folder), "--dataset", "reverse"]) == 0
    assert capsys.readouterr().out.endswith(f"All figures are in {folder / 'metrics.json'}\n")


def test_data_of_another_task_are_refused_before_they_are_fetched(
    measured: tuple[Path, dict], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = measured
    monkeypatch.setattr(public_data, "load", lambda name, data=None: pytest.fail("fetched"))
    told = "multi30k is for translation, but reverse transliterates; name other data with --dataset.\n"
    for command in (["evaluate", str(folder)], ["compare", str(folder), str(folder)], ["looking", str(folder)]):
        assert command_line.main([*command, "--dataset", "multi30k"]) == 2
        assert capsys.readouterr().err == told


def test_a_batch_of_mixed_lengths_comes_back_in_order_as_each_input_alone(tmp_path: Path) -> None:
    checkpoint = models.load(reverser(tmp_path))
    examples = [Example(word, ()) for word in ("longestword", "a", "middle", "bc", "a")]
    inputs = decoding.prompts(checkpoint, examples)
    options = SearchOptions(beam=3, nbest=3)
    together = decoding.decode(checkpoint, inputs, options)
    for one, output in zip(inputs, together):
        (alone,) = decoding.decode(checkpoint, [one], options)
        assert alone.texts == output.texts and alone.lengths == output.lengths
        assert alone.totals == pytest.approx(output.totals, abs=1e-4)
    assert together[1].texts == together[4].texts


def brute_force(checkpoint: Checkpoint, prompt: Prompt) -> tuple[float, tuple[int, ...]]:
    """The best finished output within the limit, by trying all."""
    model, best = checkpoint.model, (-math.inf, ())
    source = torch.tensor([prompt.pieces.ids])
    for length in range(prompt.limit):
        for words in itertools.product(range(len(checkpoint.target_text)), repeat=length):  # type: ignore[arg-type]
            if EOS not in words:
                ids = (*words, EOS)
                with torch.no_grad():
                    logits = model(source, torch.ones_like(source, dtype=torch.bool), torch.tensor([[BOS, *words]]))
                total = float(torch.log_softmax(logits[0], 1).double()[range(len(ids)), ids].sum())
                best = max(best, (total, ids))
    return best


def test_search_errors_and_empty_optima_are_those_that_trying_everything_finds(tmp_path: Path) -> None:
    letters = Characters([*SPECIALS, "a", "b"])
    torch.manual_seed(1)
    model = Seq2Seq(ModelConfig(6, source_vocabulary=6, **SMALL)).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        model.readout.weight.mul_(7)
    checkpoint = Checkpoint("toy", "transliterate", model, letters, letters, {})
    words = ["".join(word) for length in (1, 2, 3) for word in itertools.product("ab", repeat=length)]
    inputs = [
        prompt.__class__(prompt.pieces, prompt.source, 3)
        for prompt in decoding.prompts(checkpoint, [Example(w, ()) for w in words])
    ]
    truth = [brute_force(checkpoint, prompt) for prompt in inputs]
    found = optimum.shortfalls(checkpoint, inputs, beams=(1, 100), expansions=10_000)
    greedy = decoding.decode(checkpoint, inputs, SearchOptions(beam=1, nbest=1))
    missed = [best > output.totals[0] + 1e-4 for (best, _), output in zip(truth, greedy)]
    assert 0 < sum(missed) < len(missed), "the toy shows both"
    rates = {row["beam"]: row["search_errors"] for row in found["beams"]}
    assert found["proved"] == len(words)
    assert rates == {1: pytest.approx(100 * sum(missed) / len(missed)), 100: 0}
    assert found["empty_optimum"] == pytest.approx(100 * sum(ids == (EOS,) for _, ids in truth) / len(truth))
    assert found["optimum_tokens"] == pytest.approx(sum(len(ids) for _, ids in truth) / len(truth))


def output(*texts: str) -> scores.Output:
    return scores.Output(texts, (-1.0,) * len(texts), (2,) * len(texts))


def test_quality_by_length_puts_every_sentence_in_one_bucket() -> None:
    examples = [Example(" ".join(["wort"] * n), (" ".join(["word"] * n),)) for n in (1, 5, 6, 30)]
    rows = scores.by_length("translate", [output(e.references[0]) for e in examples], examples)
    assert [(row["from"], row["to"], row["inputs"]) for row in rows] == [(1, 5, 2), (6, 10, 1), (21, None, 1)]
    assert [row["unit"] for row in rows] == ["words"] * 3


def test_dogs_are_counted_where_every_reference_has_one() -> None:
    examples = [
        Example("1", ("A dog .", "two dogs play")),
        Example("2", ("Dogs run", "a DOG")),
        Example("3", ("a dog", "a cat")),
        Example("4", ("a sled-dog runs", "a dog")),
    ]
    outputs = [output("the dog ."), output("a hot-dog"), output("a dog"), output("a dog")]
    assert evaluate.dogs(outputs, examples) == {"photographs": 2, "said": 1, "share": 50}


def test_what_everyone_tries_first_is_recorded_as_it_came_out(tmp_path: Path) -> None:
    folder = reverser(tmp_path)
    checkpoint = models.load(folder)
    assert evaluate.says(checkpoint, PLAN) == []
    checkpoint.config["target_language"] = "hi"
    rows = evaluate.says(checkpoint, PLAN)
    assert [row["input"] for row in rows] == ["ghar", "namaste"]
    assert not any(row["said"] for row in rows), "Latin letters cannot say it"


def test_comparing_counts_who_is_right_and_shows_the_largest_differences() -> None:
    examples = [Example(word, (word.upper(),)) for word in "abcde"]
    first = [output(text) for text in ("A", "B", "x", "x", "E")]
    second = [output(text) for text in ("A", "x", "C", "x", "E")]
    found = compare.tally("transliterate", [first, second], examples, shown=5)
    assert found["right"] == {"both": 2, "first": 1, "second": 1, "neither": 1}
    assert [[row["input"] for row in rows] for rows in found["gains"]] == [["b"], ["c"]]
    assert found["better"] == [1, 1]


def test_two_models_of_the_toy_are_compared_on_the_same_inputs(tmp_path: Path) -> None:
    pair = [reverser(tmp_path / str(seed), seed) for seed in (3, 4)]
    found = compare.compare(*pair, split="dev")
    assert found["inputs"] == 500 == sum(found["right"].values())
    assert found["checkpoints"] == ["reverse (first)", "reverse (second)"]
    swapped = compare.compare(*pair[::-1], split="dev")
    assert swapped["right"]["first"] == found["right"]["second"] and swapped["gains"] == [
        [{**row, "outputs": row["outputs"][::-1], "scores": row["scores"][::-1]} for row in rows] for rows in found["gains"][::-1]
    ]


def test_a_language_is_compared_where_both_write_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tagged = Characters([*SPECIALS, "<hi>", "<ta>", *"abcdefghijklmnopqrstuvwxyz"])
    folders = []
    for name, letters, spoken in (("hi", LETTERS, {"target_language": "hi"}), ("two", tagged, {"languages": ["hi", "ta"]})):
        model = Seq2Seq(ModelConfig(len(letters), source_vocabulary=len(letters), **SMALL)).eval()  # type: ignore[arg-type]
        config = {"name": name, "task": "transliterate", **spoken}
        folders.append(checkpoints.save(tmp_path / name, model, config, letters, letters))
    examples = [Example(word, (word,), language) for word, language in (("ab", "hi"), ("cd", "ta"), ("ef", "hi"))]
    monkeypatch.setattr(public_data, "load", lambda name, data=None: dataset(*examples))
    found = compare.compare(*folders, dataset="small")
    assert found["inputs"] == 2 and "2 inputs" in compare.sentences(found)


def test_models_of_different_tasks_are_not_compared(tmp_path: Path) -> None:
    first = reverser(tmp_path / "a")
    model = LanguageModel(ModelConfig(len(LETTERS), encoder="none", embedding=4, decoder_hidden=5, features=0))
    second = checkpoints.save(tmp_path / "b", model, {"name": "b", "task": "complete"}, None, LETTERS)
    with pytest.raises(InputError, match="do not answer the same inputs"):
        compare.compare(first, second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"target_language": "hi"}, {}),
        ({"target_language": "hi"}, {"target_language": "ta"}),
        ({"source_language": "de", "target_language": "en"}, {"source_language": "fr", "target_language": "en"}),
    ],
)
def test_models_of_different_languages_are_not_compared(one: dict, other: dict, tmp_path: Path) -> None:
    folders = []
    for name, spoken in (("one", one), ("other", other)):
        model = Seq2Seq(ModelConfig(len(LETTERS), source_vocabulary=len(LETTERS), **SMALL)).eval()  # type: ignore[arg-type]
        config = {"name": name, "task": "transliterate", **spoken}
        folders.append(checkpoints.save(tmp_path / name, model, config, LETTERS, LETTERS))
    with pytest.raises(InputError, match=r"one \(.* to .*\) and other \(.*\) do not answer the same inputs"):
        compare.compare(*folders, dataset="reverse")


@pytest.mark.parametrize(("rank", "lines"), [(0, 1), (1, 0)])
def test_one_rank_tells_the_comparison(
    rank: int, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(decoding, "ranks", lambda: (rank, 2))
    monkeypatch.setattr(compare, "compare", lambda *_, **__: {})
    monkeypatch.setattr(compare, "sentences", lambda found: "told")
    assert command_line.main(["compare", str(tmp_path), str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("told") == lines


def small_writer(folder: Path, certainty: float = 1.0) -> Path:
    text = Characters.train(['say "no (never)" \n\n'], keep_space=True)
    model = LanguageModel(ModelConfig(len(text), encoder="none", embedding=4, decoder_hidden=5, features=0))
    with torch.no_grad():
        model.readout.weight.mul_(certainty)
    return checkpoints.save(folder, model, {"name": "lm", "task": "complete"}, None, text)


def test_a_uniform_language_model_costs_the_log_of_its_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = small_writer(tmp_path, certainty=0.0)
    parts = ['say "no (never)" \n\n' * count for count in (90, 70, 80)]
    splits = [Split([Example("", (part,))]) for part in parts]
    book = Dataset("book", *splits, "0" * 64, True, ())
    monkeypatch.setattr(public_data, "load", lambda name, data=None: book)
    found = evaluate.evaluate(folder, dataset="book")
    assert found["text"]["nats_per_character"] == pytest.approx(math.log(len(models.load(folder).target_text)), abs=1e-4)  # type: ignore[arg-type]
    assert found["text"]["characters"] == len(parts[2]) and found["text"]["unknown_characters"] == 0
    assert set(found["units"]) >= {"quotation", "parentheses"}
    assert 0.5 <= found["units"]["quotation"]["dev"] <= 1 and found["units"]["quotation"]["layer"] == 0


@pytest.mark.parametrize("before", ["", "no \u6f22", "say no no no no"])
def test_each_stretch_of_a_text_follows_the_characters_before_it(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_texts, "RUN_UP", 7)
    checkpoint, text = models.load(small_writer(tmp_path)), "say\n\nno (never) /* say no */ " * 7
    found = long_texts.nats(checkpoint, before, text)
    ids, given = long_texts.ids_of(checkpoint, before[-7:] + text)[0].tolist(), len(before[-7:])
    length, logps = -(-len(text) // 64), []
    for place in range(given, len(ids)):
        last = len(ids) - length
        start = last if place >= last else given + (place - given) // length * length
        logits_1TV, _ = checkpoint.model(torch.tensor([[BOS, *ids[max(0, start - 7) : place]]]))
        logps.append(float(logits_1TV[0, -1].log_softmax(0)[ids[place]]))
    assert found["nats_per_character"] == pytest.approx(-sum(logps) / len(text), abs=1e-5)
    assert found["unknown_characters"] == sum(map("/*".count, text)) and found["characters"] == len(text)
    assert found["run_up"] == given


def test_the_states_of_a_text_are_those_of_its_passages_each_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_texts, "PASSAGE", 40)
    checkpoint = models.load(small_writer(tmp_path))
    text = "say\n\nno (never)\n\n/* say no no no\n\nno no */\n\n" * 4
    kept, every = [3, 1], 3
    states_NU, labels = long_texts.states_and_labels(checkpoint, text, kept, every)
    ids_N, _ = long_texts.ids_of(checkpoint, text)
    all_labels = labels_of(text)
    begins = [place for place in openings(ids_N, ids_N[3]) if place == 0 or not all_labels["comment"][place - 1]]
    assert 0 < len(begins) < len(openings(ids_N, ids_N[3])), "some paragraph must begin inside a comment"
    starts = sorted({next(place for place in begins if place >= edge) for edge in range(0, begins[-1] + 1, 40)})
    expected, places = [], []
    for start, end in zip(starts, [*starts[1:], len(text)]):
        for place in range(start, end, every):
            given = torch.tensor([[BOS, *ids_N[start : place + 1]]])
            _, state = checkpoint.model(given)
            expected.append(state.layers[0].c[0, kept].detach().numpy())
            places.append(place)
    assert states_NU == pytest.approx(np.array(expected), abs=1e-5)
    for name, labels_N in labels.items():
        assert np.array_equal(labels_N, all_labels[name][places], equal_nan=True)


RANKS = """
import json, sys, torch
from pathlib import Path
from PIL import Image
from seqdemo import hub as models
from training.measure import evaluate, long_texts, pointing
from training.data.records import Example

torch.set_num_threads(1)
long_texts.PASSAGE = 40
writer, captioner, folder = (Path(name) for name in sys.argv[1:])
dev, test = ('say "no (never)" \\n\\n' * count for count in (11, 13))
found = [long_texts.nats(models.load(writer), dev, test), long_texts.tracking_units(models.load(writer), dev, test)]
files = ["green.png", "red.png", "blue.png"]
for file in files:
    Image.new("RGB", (90, 60), file[:-4]).save(folder / file)
examples = [Example(file, ("a black dog",), "", folder / file) for file in files]
phrases = [pointing.Phrase(file, words, (0.0, 0.0, 0.6, 0.6)) for file in files for words in ("black dog", "dog", "cat")]
found.append(pointing.play(models.load(captioner), phrases, examples))
if evaluate.ranks()[0] == 0:
    (folder / "found.json").write_text(json.dumps(evaluate.rounded(found)))
"""


def test_two_ranks_find_what_one_finds_of_a_text_and_of_maps(tmp_path: Path) -> None:
    writer, (seer, words) = small_writer(tmp_path / "writer"), captioner()
    folder = checkpoints.save(tmp_path / "seer", seer.model, {"name": "seer", "task": "caption"}, None, words)  # type: ignore[arg-type]
    script, found = tmp_path / "run.py", []
    script.write_text(RANKS)
    two = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for launcher in ([], two):
        command = [sys.executable, *launcher, str(script), str(writer), str(folder), str(tmp_path)]
        subprocess.run(command, check=True, env=environment, capture_output=True)
        found.append(json.loads((tmp_path / "found.json").read_text()))
    assert found[0] == found[1]
    assert found[0][2]["phrases"] == 6 and found[0][1]["test_characters"] > 200


def captioner() -> tuple[Checkpoint, Words]:
    text = Words.train(["a black dog runs on the grass", "two men sit"])
    sizes = {**SMALL, "decoder": "attend-after", "encoder": "image", "cnn": "efficientnet-lite0"}
    model = Seq2Seq(ModelConfig(len(text), **sizes)).eval()  # type: ignore[arg-type]
    return Checkpoint("captioner", "caption", model, None, text, {}), text


def test_a_phrase_is_found_word_for_word_at_its_last_word() -> None:
    _, text = captioner()
    references = ("two men sit on a bench", "the black dog runs .", "a black dog")
    said = pointing.spoken(text, "black dog", references)
    assert said is not None and said.last == 2 and said.ids == text.encode(references[1]).ids
    assert pointing.spoken(text, "dog black", references) is None
    assert pointing.spoken(text, "men sit on", references) == (text.encode(references[0]).ids, 3)
    assert pointing.spoken(text, "me", references) is None, "half a word is no phrase"


def test_a_phrase_may_leave_small_words_out() -> None:
    _, text = captioner()
    references = ("a dog runs on a pile of the leaves", "pile leaves")
    assert pointing.spoken(text, "pile leaves", references) == (text.encode(references[1]).ids, 1), "word for word comes first"
    assert pointing.spoken(text, "pile leaves", references[:1]) == (text.encode(references[0]).ids, 8)
    assert pointing.spoken(text, "dog leaves", references) is None, "too far apart"
    assert pointing.spoken(text, "leaves pile", references) is None


def test_the_map_of_a_word_is_the_attention_the_search_adds_when_it_says_it() -> None:
    checkpoint, text = captioner()
    model = checkpoint.model
    grid = torch.randn(49, model.encoder.cnn.channels)  # type: ignore[union-attr]
    ids = text.encode("a black dog").ids
    found = pointing.maps(model, grid, ids)  # type: ignore[arg-type]
    step, state = model.stepper(model.read(grid[None]))  # type: ignore[operator]
    with torch.no_grad():
        for row, token in enumerate((BOS, *ids[:-1])):
            before = state.attended_KS
            _, state = step(torch.tensor([token]), state)
            assert found[row] == pytest.approx((state.attended_KS - before)[0].numpy(), abs=1e-6)


def test_a_map_points_with_the_centre_of_its_heaviest_cell() -> None:
    weights = np.zeros(9)
    weights[5] = 1.0  # middle row, right column: centre (5/6, 1/2)
    assert pointing.points(weights, (0.8, 0.4, 0.9, 0.6))
    assert not pointing.points(weights, (0.4, 0.8, 0.6, 0.9)), "x and y must not be swapped"
    assert not pointing.points(weights, (0.0, 0.0, 0.8, 1.0))
    assert pointing.points(weights, (0.6, 0.4, 0.7, 0.6), seen=(0.2, 0.0, 0.75, 1.0)), "the map covers only what was seen"


def test_the_pointing_game_counts_phrases_that_a_reference_says(tmp_path: Path) -> None:
    checkpoint, _ = captioner()
    Image.new("RGB", (90, 60), "green").save(tmp_path / "one.jpg")
    boxes = tmp_path / "boxes.json"
    everywhere, nowhere = (0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 0.01, 0.01)
    rows = [("one.jpg", "black dog", everywhere), ("one.jpg", "dog", nowhere), ("one.jpg", "cat", everywhere)]
    boxes.write_text(json.dumps([{"file": file, "phrase": words, "box": box} for file, words, box in rows]))
    examples = [Example("one.jpg", ("a black dog",), "", tmp_path / "one.jpg")]
    found = pointing.play(checkpoint, pointing.read_phrases(boxes), examples)
    assert found == {"phrases": 2, "without_reference": 1, "word": 50, "mean_map": 50, "centre": 50}
