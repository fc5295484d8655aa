from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from seqdemo import hub as models
from seqdemo.config import BOS, PAD
from seqdemo.errors import InputError
from seqdemo.playground import run as play
from tests.kill_many import bits, many
from tests.small_runs import DATA, PHOTOGRAPHS, SIZES, SUBWORDS, TAGS, TEXT, WORDS, train, words
from training.data.batches import Batch
from training.data.records import Dataset
from training.recipes import Recipe
from training.run import fit, machine, resume, runstate
from training.run.build import read_recipe
from training.run.cnn_weights import shipped
from training.run.display import Silent
from training.run.distributed import Ranks
from training.run.export import export
from training.run.fit import Run, Saving, Step
from training.run.resume import Start
from training.tasks.loss import token_loss
from training.tasks.task import PairTask, Score

KINDS = {recipe.name: recipe for recipe in (WORDS, SUBWORDS, TAGS, TEXT, PHOTOGRAPHS)}
RESUME = Start(resume=True)


class StopAt(Silent):
    """Sends this process a signal at a step."""

    def __init__(self, step: int, number: int = signal.SIGTERM) -> None:
        self.step, self.number = step, number
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def stepped(self, run: Run, done: Step) -> None:
        super().stepped(run, done)
        if run.progress.step == self.step:
            os.kill(os.getpid(), self.number)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One finished run of every kind."""
    torch.set_num_threads(1)
    folders = {}
    for name, recipe in KINDS.items():
        folders[name] = tmp_path_factory.mktemp(name) / "run"
        assert train(recipe, folders[name]) == 0
    return folders


def log_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / resume.LOG).read_text().splitlines()]


# ------------------------------------------------------------------------------------------------------- every kind, to the end


def test_a_finished_run_is_a_checkpoint_that_decodes(finished: dict[str, Path]) -> None:
    for name, text in (("words", "abcd"), ("subwords", "ab cd."), ("text", "abc ")):
        checkpoint = models.load(finished[name])
        assert checkpoint.name == name and checkpoint.task == KINDS[name].task
        found = play(checkpoint, text)
        assert len(found.texts) == 5 and found.hypotheses[0].total < 0


def test_a_captioner_says_what_it_has_learnt_to_say(finished: dict[str, Path], tmp_path: Path) -> None:
    """Its checkpoint has the published CNN inside, though training only read what that sees."""
    checkpoint = models.load(finished["photographs"])
    Image.new("RGB", (80, 60), "red").save(tmp_path / "red.png")
    found = play(checkpoint, tmp_path / "red.png")
    assert set(found.texts[0]) <= set("a red green blue white and square.")
    published = shipped("efficientnet-lite0").state_dict()
    assert all(torch.equal(tensor, published[name]) for name, tensor in checkpoint.model.encoder.cnn.state_dict().items())


def test_a_model_of_many_languages_is_told_which(finished: dict[str, Path]) -> None:
    checkpoint = models.load(finished["tags"])
    assert checkpoint.languages == ("up", "down")
    up, down = (play(checkpoint, "abcd", language=language) for language in ("up", "down"))
    assert up.source.strings[0] == "<up>" and down.source.strings[0] == "<down>"
    assert up.hypotheses[0].total != down.hypotheses[0].total


def test_the_shipped_weights_are_the_best_average_in_half_precision(finished: dict[str, Path]) -> None:
    folder = finished["words"]
    best = max((line for line in log_of(folder) if "metric" in line), key=lambda line: (line["metric"], -line["dev_loss"]))
    saved = runstate.load(folder / "state")
    assert saved and saved.values["progress"]["best"] == best["metric"]
    assert saved.values["progress"]["best_step"] == best["step"] == saved.values["progress"]["step"], "the last are the best"
    shipped = dict(models.load(folder).model.named_parameters())
    for name, tensor in runstate.under(saved.tensors, "average").items():
        assert torch.equal(shipped[name], tensor.half().float())


def test_of_equal_dev_metrics_the_lower_loss_is_the_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([(0.0, 3.0), (0.0, 2.0), (0.0, 2.5), (1.0, 9.0)])
    monkeypatch.setattr(PairTask, "evaluate", lambda task, model: Score(*next(scores), ("", "", "")))
    best: list[int] = []
    monkeypatch.setattr(resume, "write_best", lambda run: best.append(run.progress.best_step))
    monkeypatch.setattr(fit, "export", lambda folder: folder)
    monkeypatch.setattr(fit.report, "write", lambda run: None)
    assert train(WORDS, tmp_path / "run") == 0
    judged = [line["step"] for line in log_of(tmp_path / "run") if "metric" in line]
    assert best[-3:] == [judged[0], judged[1], judged[3]]


class Elsewhere(Ranks):
    """The other process has no state."""

    def gathered(self, value: object) -> list[object]:
        return [value, 0]


def test_processes_that_find_different_states_do_not_go_on(finished: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(finished["words"], tmp_path / "run")
    run = Run(WORDS, DATA["words"](), tmp_path / "run")
    run.ranks = Elsewhere(0, 2)
    with pytest.raises(InputError, match="one folder that all of them see"):
        resume.take_up(run, lambda text: None)


def test_more_processes_than_streams_are_told_so(tmp_path: Path) -> None:
    run = Run(TEXT, DATA["text"](), tmp_path / "run")
    batch = next(iter(run.task.epoch(0)))
    with pytest.raises(InputError, match="8 streams are too few for 9 processes: --set streams=9"):
        run.task.shard(batch, 8, 9)


def test_other_arithmetic_is_told_when_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(WORDS, tmp_path / "run", display=StopAt(12))
    other = {"medium": "highest", "highest": "medium"}[machine.product_precision(torch.device("cpu"))]
    monkeypatch.setattr(machine, "product_precision", lambda device: other)
    display = StopAt(0)
    assert train(WORDS, tmp_path / "run", RESUME, display=display) == 0
    assert "not be equal to the bit" in display.said[0] and f"{other} now" in display.said[0]
    assert re.search(r"with \d+\.\d\d GB of memory at most", display.said[-1])


def test_it_learns_and_the_log_tells(finished: dict[str, Path]) -> None:
    for folder in finished.values():
        losses = [line["loss"] for line in log_of(folder) if "loss" in line]
        judged = [line for line in log_of(folder) if "metric" in line]
        assert losses[-1] < 0.95 * losses[0]
        assert len(judged) == read_recipe(folder / "state").evaluations
        assert judged[-1]["dev_loss"] < judged[0]["dev_loss"] and judged[-1]["step"] == log_of(folder)[-1]["step"]


def test_the_report_needs_no_network_and_shows_everything(finished: dict[str, Path]) -> None:
    page = (finished["words"] / resume.REPORT).read_text()
    for heading in ("Loss", "Dev exact", "Learning rate", "Gradient norm", "An alignment as it grows", "Worst dev examples"):
        assert f"<h2>{heading}</h2>" in page
    assert "<script src" not in page and "<link" not in page and "Plotly" in page
    assert "An alignment" not in (finished["text"] / resume.REPORT).read_text()


# -------------------------------------------------------------------------------------------------------------- never lost


@pytest.mark.parametrize(("kind", "runs"), [("words", 15), ("subwords", 5)])
def test_killed_runs_end_as_the_one_that_was_left_alone(kind: str, runs: int, tmp_path: Path) -> None:
    assert many(kind, runs, runs // 3, tmp_path) == runs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_a_run_saves_at_the_next_step_and_goes_on_to_the_bit(
    finished: dict[str, Path], tmp_path: Path, kind: str, number: int
) -> None:
    """In the middle of an epoch, with dropout, averages, pieces cut up at random, or the state of a language model carried on."""
    folder = tmp_path / "run"
    step = 10 if number == signal.SIGTERM else 13
    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert train(KINDS[kind], folder, display=StopAt(step, number)) == 128 + number
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == handlers
    saved = runstate.load(folder / "state")
    assert saved and saved.values["progress"]["step"] == step
    assert saved.values["progress"]["batch"] > 0, "the middle of an epoch"
    torch.manual_seed(99)
    torch.rand(1)
    assert train(KINDS[kind], folder, RESUME) == 0
    assert bits(folder) == bits(finished[kind])


def test_states_are_saved_by_steps_and_by_time(tmp_path: Path) -> None:
    train(replace(WORDS, epochs=1), tmp_path / "steps", saving=Saving(steps=4))
    steps = log_of(tmp_path / "steps")[-1]["step"]
    assert [int(path.name[6:14]) for path in runstate.states(tmp_path / "steps/state")] == [steps, (steps - 1) // 4 * 4]
    train(replace(WORDS, epochs=1), tmp_path / "time", saving=Saving(seconds=0.0))
    assert [int(path.name[6:14]) for path in runstate.states(tmp_path / "time/state")] == [steps, steps - 1]


def test_a_damaged_newest_state_is_said_and_the_end_is_the_same(finished: dict[str, Path], tmp_path: Path) -> None:
    train(WORDS, tmp_path / "run", display=StopAt(12), saving=Saving(steps=5))
    newest = runstate.states(tmp_path / "run/state")[0]
    newest.write_bytes(newest.read_bytes()[:-1])
    display = StopAt(0)
    assert train(WORDS, tmp_path / "run", RESUME, display=display) == 0
    assert f"{newest.name} is damaged" in display.said[0] and "step 10 " in display.said[1]
    assert bits(tmp_path / "run") == bits(finished["words"])


@pytest.mark.parametrize("damage", ["flipped", "emptied", "deleted"])
def test_the_best_weights_are_those_of_the_state(finished: dict[str, Path], tmp_path: Path, damage: str) -> None:
    shutil.copytree(finished["words"], tmp_path / "run")
    best = tmp_path / "run/state/best.safetensors"
    data = best.read_bytes()
    best.write_bytes(b"" if damage == "emptied" else data[:-1] + bytes([data[-1] ^ 64]))
    if damage == "deleted":
        best.unlink()
    with pytest.raises(InputError, match=r"best.safetensors is (damaged|not there)"):
        export(tmp_path / "run")
    assert train(WORDS, tmp_path / "run", RESUME) == 0
    assert bits(tmp_path / "run") == bits(finished["words"])


@pytest.mark.parametrize("damage", [b"", b"\xff", b"[]", b"{}", b'{"target": 1}'])
@pytest.mark.parametrize("name", ["recipe.json", "tokenizers.json", "target.json", "source.json"])
def test_a_damaged_small_file_is_named_and_what_is_advised_mends_it(
    finished: dict[str, Path], tmp_path: Path, name: str, damage: bytes
) -> None:
    shutil.copytree(finished["words"], tmp_path / "run")
    (tmp_path / "run/state" / name).write_bytes(damage)
    with pytest.raises(InputError, match=rf"state/{name} is damaged. Delete .* with --resume.*, or start again with --fresh"):
        train(WORDS, tmp_path / "run", RESUME)
    (tmp_path / "run/state" / ("recipe.json" if name == "recipe.json" else "tokenizers.json")).unlink()
    assert train(WORDS, tmp_path / "run", RESUME) == 0
    assert bits(tmp_path / "run") == bits(finished["words"])


def test_data_that_are_not_there_leave_no_run_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        fit.fit(replace(WORDS, data="multi30k"), tmp_path / "nowhere", tmp_path / "run", device="cpu", display=Silent())
    assert not (tmp_path / "run").exists()


def test_a_full_disk_ends_a_run_with_a_sentence_and_the_state_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, count = os.fsync, 0

    def full(file: int) -> None:
        nonlocal count
        count += 1
        if count > 12:
            raise OSError(28, "No space left on device")
        whole(file)

    monkeypatch.setattr(runstate.os, "fsync", full)
    with pytest.raises(InputError, match=r"the disk is full. state-0.* is intact: solve this problem, then go on with --resume"):
        train(WORDS, tmp_path / "run", saving=Saving(steps=3))
    monkeypatch.undo()
    assert train(WORDS, tmp_path / "run", RESUME) == 0


def test_a_folder_that_takes_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(InputError, match="The run cannot be written to"):
        train(WORDS, tmp_path / "run")


# ------------------------------------------------------------------------------------------------------- two runs in one folder


def test_a_run_is_neither_overwritten_nor_mixed_with_another(finished: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = finished["words"]
    before = bits(folder)
    with pytest.raises(InputError, match="already holds a run. Go on with --resume, or .* --fresh"):
        train(WORDS, folder)
    with pytest.raises(InputError, match=r"another recipe: rate was 0.005, now 0.1"):
        train(replace(WORDS, rate=0.1), folder, RESUME)
    monkeypatch.setattr(fit, "load_data", lambda *_: replace(words(), fingerprint="other"))
    with pytest.raises(InputError, match="The data are not those"):
        fit.fit(WORDS, None, folder, RESUME, "cpu", display=Silent())
    assert bits(folder) == before


def test_a_run_does_not_begin_among_the_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("a checkpoint")
    with pytest.raises(InputError, match="holds other files and no run. Name another --out"):
        train(WORDS, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["config.json"]


def test_fresh_starts_again_and_keeps_what_is_not_the_runs(tmp_path: Path) -> None:
    short = replace(WORDS, epochs=0.5)
    train(short, tmp_path / "run")
    (tmp_path / "run/notes.txt").write_text("mine")
    train(replace(short, seed=2, epochs=0.4), tmp_path / "run", Start(fresh=True))
    assert (tmp_path / "run/notes.txt").read_text() == "mine"
    assert [line["step"] for line in log_of(tmp_path / "run") if "loss" in line] == list(range(1, 7))
    assert len(runstate.states(tmp_path / "run/state")) == 1


def test_resume_where_there_is_nothing_begins(tmp_path: Path, finished: dict[str, Path]) -> None:
    assert train(WORDS, tmp_path / "run", RESUME) == 0
    assert bits(tmp_path / "run") == bits(finished["words"])


# ------------------------------------------------------------------------------------------------------------ the loop's parts


def new_run(folder: Path, recipe: Recipe = WORDS, data: Dataset | None = None) -> Run:
    return Run(recipe, data or words(), folder)


def test_the_rate_goes_up_in_a_line_and_down_as_half_a_cosine() -> None:
    assert [fit.rate_at(x, 0.1) for x in (0.0, 0.05, 0.1, 0.55, 1.0)] == pytest.approx([0, 0.5, 1, 0.5, 0])


def test_a_step_is_adamw_on_the_clipped_mean_gradient(tmp_path: Path) -> None:
    """Recomputed without the loop: gradients of the mean, their norm, one step of the textbook's AdamW."""
    torch.manual_seed(3)
    recipe = replace(WORDS, model={**SIZES, "dropout": 0.0}, clip=0.1, label_smoothing=0.0, weight_decay=0.1)
    run = new_run(tmp_path, recipe)
    batch = next(iter(run.task.epoch(0)))
    logits_BTV = run.model(batch.source, batch.mask_BS, batch.target_in_BT)
    logp_BTV = F.log_softmax(logits_BTV, 2)
    real_BT = batch.target_out_BT != PAD
    mean = -logp_BTV.gather(2, batch.target_out_BT[:, :, None]).squeeze(2)[real_BT].mean()
    names = [name for name, _ in run.model.named_parameters()]
    grads = dict(zip(names, torch.autograd.grad(mean, list(run.model.parameters()))))
    norm = math.sqrt(sum(float(grad.square().sum()) for grad in grads.values()))
    before = {name: value.detach().clone() for name, value in run.model.named_parameters()}
    done = run.step(batch)
    assert done.loss == pytest.approx(float(mean.detach()), rel=1e-5) and done.norm == pytest.approx(norm, rel=1e-4)
    assert norm > 0.1 and done.tokens == int(real_BT.sum())
    for name, value in run.model.named_parameters():
        g = grads[name] * 0.1 / norm
        decay = 0.1 if value.dim() > 1 else 0.0
        expected = before[name] * (1 - done.rate * decay) - done.rate * g / (g.abs() + 1e-9)
        sure = g.abs() > 1e-6
        assert torch.allclose(value[sure], expected[sure], atol=1e-5), name


def test_the_average_follows_the_weights(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    expected = {name: value.clone() for name, value in run.average.items()}
    for number, batch in zip(range(1, 4), run.task.epoch(0)):
        run.step(batch)
        keep = min(0.99, number / (9 + number))
        for name, value in run.model.named_parameters():
            expected[name] = keep * expected[name] + (1 - keep) * value.detach()
    for name, value in run.average.items():
        assert torch.allclose(value, expected[name], atol=1e-6)


def test_label_smoothing_takes_a_share_for_all_words() -> None:
    torch.manual_seed(0)
    logits_BTV, target_BT = torch.randn(2, 3, 7), torch.tensor([[4, 5, PAD], [6, PAD, PAD]])
    logp_BTV, expected = F.log_softmax(logits_BTV, 2), 0.0
    for row, step in ((0, 0), (0, 1), (1, 0)):
        logp_V = logp_BTV[row, step]
        expected -= 0.9 * float(logp_V[target_BT[row, step]]) + 0.1 * float(logp_V.mean())
    assert float(token_loss(logits_BTV, target_BT, 0.1)) == pytest.approx(expected, rel=1e-5)


def test_with_scheduled_sampling_a_model_reads_its_own_words(tmp_path: Path) -> None:
    run = new_run(tmp_path, replace(WORDS, sampled=1.0, model={**SIZES, "dropout": 0.0}))
    batch = next(iter(run.task.epoch(0)))
    run.task.done = 1.0
    read_BT = run.task.own_guesses(run.model, batch)
    said_BT = run.model(batch.source, batch.mask_BS, batch.target_in_BT).argmax(2)
    assert (read_BT[:, 0] == BOS).all() and torch.equal(read_BT[:, 1:], said_BT[:, :-1])
    run.task.done = 0.5
    share = (run.task.own_guesses(run.model, batch) != batch.target_in_BT)[:, 1:].float().mean()
    assert 0.3 < share < 0.7
    run.progress.step = run.steps // 2
    run.step(batch)
    assert run.task.done == pytest.approx(0.5, abs=0.05), "the share grows from 0 to `sampled`"


def test_a_model_can_learn_to_do_without_the_summary(tmp_path: Path) -> None:
    run = new_run(tmp_path, replace(WORDS, summary_dropout=0.5, model={**SIZES, "dropout": 0.0}))
    batch = next(iter(run.task.epoch(0)))
    begun, whole = run.task.begun(run.model.train(), batch), run.task.begun(run.model.eval(), batch)
    hidden_B = (begun.memory.summary_BH == 0).all(1)
    assert 0 < hidden_B.sum() < len(hidden_B) and not (whole.memory.summary_BH == 0).all(1).any()
    starts_BH = begun.layers[0].h[hidden_B]
    assert (starts_BH == starts_BH[0]).all(), "they start alike"
    torch.testing.assert_close(begun.layers[0].h[~hidden_B], whole.layers[0].h[~hidden_B])
    assert torch.equal(begun.memory.states_BSH, whole.memory.states_BSH), "what it looks at stays"


def test_rows_beyond_those_of_a_batch_do_not_count() -> None:
    batch = Batch(torch.ones(2, 3), None, torch.ones(2, 4), torch.ones(2, 4, dtype=torch.long))
    assert [batch.shard(rank, 3).tokens for rank in range(3)] == [4, 4, 0]
    assert batch.shard(2, 3).source.shape == (1, 3)


@pytest.mark.parametrize("evaluations", [1, 3, 7])
def test_evaluations_are_spread_evenly_and_the_last_is_at_the_end(evaluations: int) -> None:
    class Stub:
        steps = 50
        recipe = replace(WORDS, evaluations=evaluations)
        progress = fit.Progress()

    due = []
    for step in range(1, 51):
        Stub.progress.step = step
        if fit.evaluation_due(Stub()):  # type: ignore[arg-type]
            due.append(step)
    assert len(due) == evaluations and due[-1] == 50
    gaps = [after - before for before, after in zip([0, *due], due)]
    assert max(gaps) - min(gaps) <= 1


def test_training_stops_early_when_dev_improves_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = iter([1.0, 3.0, 2.0, 3.0, 2.5, 9.0])
    monkeypatch.setattr("training.tasks.task.PairTask.evaluate", lambda *_: Score(next(metrics), 1.0, ("a", "b", "c")))
    train(replace(WORDS, evaluations=10, patience=2), tmp_path / "run")
    judged = [line["metric"] for line in log_of(tmp_path / "run") if "metric" in line]
    assert judged == [1.0, 3.0, 2.0, 3.0, 2.5]
    saved = runstate.load(tmp_path / "run/state")
    assert saved and saved.values["progress"]["best"] == 3.0
    assert train(replace(WORDS, evaluations=10, patience=2), tmp_path / "run", RESUME) == 0, "and stays stopped"


def test_a_loss_that_is_no_number_stops_before_it_is_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no longer a number at step .* --set rate="):
        train(replace(WORDS, rate=1e30, warmup=0.01, clip=1e30), tmp_path / "run", saving=Saving(steps=1))
    saved = runstate.load(tmp_path / "run/state")
    assert saved is None or all(torch.isfinite(tensor.float()).all() for tensor in saved.tensors.values())


def test_a_model_that_is_as_its_recipe_says_is_the_same_every_time(tmp_path: Path) -> None:
    first, second = (dict(new_run(tmp_path / name).model.named_parameters()) for name in ("a", "b"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_seconds_are_those_of_the_processor(finished: dict[str, Path]) -> None:
    saved = runstate.load(finished["words"] / "state")
    assert saved and 0 < saved.values["progress"]["seconds"] < time.process_time()
