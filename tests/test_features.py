"""Precomputed features are the CNN's own grids, and a killed run goes on where it stopped."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from seqdemo.errors import InputError
from seqdemo.images import read_picture
from seqdemo.network.cnn import EfficientNetLite
from tests.pictures import noise, scene
from training.data import features
from training.data.features import Features, extract, load


class Killed(BaseException):
    pass


class CountingCNN(EfficientNetLite):
    """A small picture keeps the test quick; the call after `limit` calls dies."""

    def __init__(self, limit: int = 1000, finer: bool = False) -> None:
        super().__init__("efficientnet-lite0", finer)
        self.size, self.grid, self.calls, self.limit = 64, 2, 0, limit

    def forward(self, pictures_B3HW: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls > self.limit:
            raise Killed
        return super().forward(pictures_B3HW)


@pytest.fixture
def photographs(tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"{number}.jpg" for number in range(5)]
    for number, file in enumerate(files):
        (noise(200 + number, 150) if number else scene()).save(file)
    return files


@pytest.fixture(autouse=True)
def _saved_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "SAVED_EVERY", 2)


def network(limit: int = 1000) -> CountingCNN:
    torch.manual_seed(1)
    return CountingCNN(limit).requires_grad_(False)


def assert_right(found: Features, photographs: list[Path], flips: bool) -> None:
    cnn = network()
    assert found.names == tuple(file.name for file in photographs)
    assert found.grids.shape == (5, 1 + flips, 4, 320) and found.grids.dtype == np.float16
    for file, grids in zip(photographs, found.grids):
        pixels = read_picture(file, 64).pixels
        for grid, view in zip(grids, (pixels, torch.from_numpy(pixels.numpy()[:, :, ::-1].copy()))):
            expected = cnn(view[None])[0].permute(1, 2, 0).reshape(4, 320)
            assert np.allclose(grid, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("flips", [True, False])
def test_grids_are_those_of_the_photographs_and_their_mirror_images(tmp_path: Path, photographs: list[Path], flips: bool) -> None:
    counts: list[tuple[int, int]] = []
    out = tmp_path / "features" / "dev.npy"
    assert_right(extract(photographs, network(), out, flips, lambda *count: counts.append(count)), photographs, flips)
    assert counts == [(2, 5), (4, 5), (5, 5)]
    assert sorted(file.name for file in out.parent.iterdir()) == ["dev.json", "dev.npy", "dev.npy.lock"]
    assert_right(load(out), photographs, flips)


def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path, photographs: list[Path]) -> None:
    out = tmp_path / "train.npy"
    with pytest.raises(Killed):
        extract(photographs, network(limit=7), out)
    assert not out.exists()
    rest = network()
    assert_right(extract(photographs, rest, out), photographs, True)
    assert rest.calls == 2 * 3  # of five photographs two were saved


def test_features_are_computed_once(tmp_path: Path, photographs: list[Path]) -> None:
    extract(photographs, network(), tmp_path / "dev.npy")
    again = network()
    assert_right(extract(photographs, again, tmp_path / "dev.npy"), photographs, True)
    assert again.calls == 0


def test_two_runs_at_once_compute_them_once(tmp_path: Path, photographs: list[Path]) -> None:
    cnns, found = [network(), network()], list[Features]()

    def work(cnn: CountingCNN) -> None:
        found.append(extract(photographs, cnn, tmp_path / "dev.npy"))

    threads = [threading.Thread(target=work, args=(cnn,)) for cnn in cnns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(cnn.calls for cnn in cnns) == [0, 2 * 5]
    for one in found:
        assert_right(one, photographs, True)


def test_features_of_something_else_are_refused(tmp_path: Path, photographs: list[Path]) -> None:
    out = tmp_path / "dev.npy"
    extract(photographs, network(), out)
    other = CountingCNN()
    for pictures, cnn, flips in ((photographs[:4], network(), True), (photographs, other, True), (photographs, network(), False)):
        with pytest.raises(InputError, match="other photographs or another CNN"):
            extract(pictures, cnn, out, flips)


def test_finer_features_of_the_same_weights_are_others(tmp_path: Path, photographs: list[Path]) -> None:
    torch.manual_seed(1)
    finer = CountingCNN(finer=True).requires_grad_(False)
    extract(photographs, network(), tmp_path / "dev.npy")
    with pytest.raises(InputError, match="other photographs or another CNN"):
        extract(photographs, finer, tmp_path / "dev.npy")
    assert extract(photographs, finer, tmp_path / "finer.npy").grids.shape == (5, 2, 4, 320 + 2 * 112)


def test_an_unfinished_run_of_something_else_is_started_again(tmp_path: Path, photographs: list[Path]) -> None:
    out = tmp_path / "dev.npy"
    with pytest.raises(Killed):
        extract(photographs[::-1], network(limit=7), out)
    assert_right(extract(photographs, network(), out), photographs, True)


def test_an_unreadable_photograph_is_named(tmp_path: Path, photographs: list[Path]) -> None:
    photographs[2].write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"2\.jpg: This is not a picture"):
        extract(photographs, network(), tmp_path / "dev.npy")
