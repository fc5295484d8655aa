"""Examples that show two models, and a gallery of which only a part is mined again."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image

from seqdemo import checkpoints, load
from seqdemo.checkpoints.folder import WEIGHTS
from seqdemo.config import EOS, ModelConfig, SearchOptions, from_json
from seqdemo.errors import InputError
from seqdemo.network.model import Seq2Seq
from seqdemo.playground import run
from seqdemo.text import Words
from training.publish import gallery, gallery_kinds, gallery_openings
from training.publish.photographs import Photo

WORDS = Words.train(["a dog runs on the grass and barks"])
COLOURS = ("red", "green", "blue", "white")
BUDGET = gallery.Budget(per_kind=2)


def captioner(folder: Path, seed: int, **changes: Any) -> Path:
    """An untrained captioner that has opinions, and ends soon."""
    torch.manual_seed(seed)
    sizes = {"embedding": 6, "decoder_hidden": 7, "attention": 4, "features": 6}
    config = ModelConfig(len(WORDS), encoder="image", cnn="efficientnet-lite0", decoder="attend-after", **sizes)  # type: ignore[arg-type]
    network = Seq2Seq(replace(config, **changes)).eval()
    with torch.no_grad():
        for value in network.decoder.parameters():
            value.mul_(4)
        network.readout.weight.mul_(8)  # type: ignore[operator]
        network.readout.b[EOS] = 2.0  # type: ignore[index]
    return checkpoints.save(folder, network, {"name": folder.name, "task": "caption"}, None, WORDS)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A soft captioner, its hard twin, another one, and photographs of which the words of the captions are true."""
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("captioners")
    captioner(root / "soft", 1)
    captioner(root / "hard", 2, hard=True)
    (root / "elsewhere").mkdir()
    captioner(root / "elsewhere" / "another", 3)
    facts = {"title": "A dog on grass", "names": ["dog", "barks"], "box": [0, 0, 1, 1], "scene": ["grass"]}
    for colour in COLOURS:
        Image.new("RGB", (60, 40), colour).save(root / f"{colour}.jpg")
    (root / "credits.json").write_text(json.dumps([{"file": f"{colour}.jpg", **facts} for colour in COLOURS]))
    return root


@pytest.fixture(scope="module")
def mined(place: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gallery_kinds, "MOST_CELLS", 4)
        out = place / "gallery.json"
        return gallery.mine([place / "soft", place / "elsewhere" / "another"], None, place, out, BUDGET)


def test_hard_and_soft_attention_are_shown_where_their_captions_differ(place: Path, mined: dict[str, Any]) -> None:
    rows = [row for row in mined["examples"]["caption"] if row["kind"] == "hard-soft"]
    count = mined["kinds"]["hard-soft"]
    assert rows and len(rows) == min(2, count["found"]["soft"]) and count["searched"]["soft"] == len(COLOURS)
    assert count["found"]["another"] == 0, "it has no twin"
    for row in rows:
        assert (row["checkpoint"], row["columns"]["B"]["checkpoint"]) == ("soft", "hard") and "checkpoint" not in row["columns"][
            "A"
        ]
        for side, name in (("A", "soft"), ("B", "hard")):
            options = from_json(SearchOptions, row["columns"][side]["options"])
            (said, *_) = run(load(place / name), place / row["photo"], options).texts
            assert said == row["outputs"][side] and f"“{said}”" in row["shows"]
        assert row["outputs"]["A"] != row["outputs"]["B"]
    assert mined["checkpoints"]["hard"] == gallery.weights_digest(place / "hard")


@pytest.mark.parametrize(
    "soft, hard, told",
    [
        ("a dog runs", "a dog barks", "both name"),
        ("a dog runs", "a runs", "only the first names"),
        ("a runs", "dog.", "only the second names"),
        ("a runs", "a dogged runs", "neither names"),
    ],
)
def test_it_is_told_which_of_the_two_captions_names_the_main_thing(soft: str, hard: str, told: str) -> None:
    photo = Photo("A dog on grass", ("dog",), (0, 0, 1, 1), ("grass",))
    hit: Any = SimpleNamespace(case=SimpleNamespace(photo=photo))
    runs: list[Any] = [SimpleNamespace(texts=(text,)) for text in (soft, hard)]
    assert f"{told} the main thing: the photograph shows a dog on grass." in gallery_openings.say_hard(None, hit, *runs)  # type: ignore[arg-type]


def test_mining_a_part_again_gives_the_whole_again(place: Path, mined: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery_kinds, "MOST_CELLS", 4)
    (place / "another").symlink_to(place / "elsewhere" / "another")  # a gallery stands beside the models that it shows
    out = shutil.copy(place / "gallery.json", place / "again.json")
    whole = json.loads(Path(out).read_text())
    for rows in whole["examples"].values():
        for row in rows:
            row["shows"] += f" Mined before: {row['checkpoint']}."
    Path(out).write_text(json.dumps(whole))
    try:
        found = gallery.mine([place / "soft"], None, place, Path(out), BUDGET, keep=True)
    finally:
        (place / "another").unlink()
    assert json.loads(Path(out).read_text()) == found
    assert {row["checkpoint"] for row in found["examples"]["caption"] if "Mined before" in row["shows"]} == {"another"}
    for row in found["examples"]["caption"]:
        row["shows"] = row["shows"].split(" Mined before")[0]
    assert found == mined and list(found["kinds"]) == list(mined["kinds"])


def test_what_stays_must_be_of_the_weights_that_are_there(place: Path, mined: dict[str, Any], tmp_path: Path) -> None:
    for name in ("soft", "hard", "another"):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy((place / "elsewhere" if name == "another" else place) / name / WEIGHTS, folder / WEIGHTS)
    out = Path(shutil.copy(place / "gallery.json", tmp_path / "gallery.json"))
    another = load(place / "elsewhere" / "another")
    assert gallery.kept(out, [another])["checkpoints"] == {name: mined["checkpoints"][name] for name in ("hard", "soft")}
    (tmp_path / "hard" / WEIGHTS).write_bytes(b"other weights")
    with pytest.raises(InputError, match=r"^hard: other weights than those in .*gallery.json. Name soft too.$"):
        gallery.kept(out, [another])
