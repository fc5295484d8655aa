"""Every uploaded picture becomes the same scene or an error sentence, never anything else."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from seqdemo.errors import InputError
from seqdemo.images import SHOWN, STRETCH, Picture, cell_box, data_uri, read_picture, seen_part, to_jpeg
from tests import pictures, tiny

pytestmark = pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning", "ignore:Corrupt EXIF data")

SIZE = 64
GREY_HALVES = ((64,) * 3, (192,) * 3, (64,) * 3, (192,) * 3)
BLACK_AND_WHITE = ((0,) * 3, (255,) * 3, (0,) * 3, (255,) * 3)
ROOT = Path(__file__).parents[1]
PHOTOS = ROOT / "seqdemo" / "ui" / "photos"


def quarters(picture: Image.Image) -> np.ndarray:
    """The colours in the middle of the four quarters, left to right and top to bottom."""
    width, height = picture.size
    spots = ((1, 1), (3, 1), (1, 3), (3, 3))
    return np.array([picture.getpixel((width * x // 4, height * y // 4)) for x, y in spots])


def seen_quarters(picture: Picture) -> np.ndarray:
    """The same of what the network reads, back as colours."""
    values = (picture.pixels * 128 + 127).round().to(torch.uint8).permute(1, 2, 0).numpy()
    return quarters(Image.fromarray(values))


def assert_shows(data: bytes, colours: object, tolerance: int = 3) -> None:
    picture = read_picture(data, SIZE)
    assert picture.shown.mode == "RGB" and picture.shown.size == (360, 240)
    assert np.abs(quarters(picture.shown) - np.array(colours)).max() <= tolerance
    assert np.abs(seen_quarters(picture) - np.array(colours)).max() <= tolerance


@pytest.mark.parametrize("kind", pictures.READABLE)
def test_every_kind_of_file_shows_the_scene(kind: str) -> None:
    assert_shows(pictures.READABLE[kind](), pictures.CORNERS)


@pytest.mark.parametrize("kind", pictures.READABLE_GREY)
def test_every_kind_of_grey_file_shows_its_greys(kind: str) -> None:
    assert_shows(pictures.READABLE_GREY[kind](), GREY_HALVES)


@pytest.mark.parametrize("kind", pictures.STRETCHED_GREY)
def test_numbers_without_a_white_are_stretched_to_their_extremes(kind: str) -> None:
    assert_shows(pictures.STRETCHED_GREY[kind](), BLACK_AND_WHITE)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", pictures.TURNS)
def test_a_turned_photograph_stands_upright(orientation: int, form: str) -> None:
    assert_shows(pictures.turned(orientation, form), pictures.CORNERS, tolerance=8)


@pytest.mark.parametrize("kind", pictures.HARMFUL)
def test_a_harmful_file_is_refused_with_a_sentence(kind: str) -> None:
    make, word = pictures.HARMFUL[kind]
    with pytest.raises(InputError, match=word):
        read_picture(make(), SIZE)


FUZZED = [
    pictures.READABLE[kind]() for kind in ("progressive jpeg", "palette with alpha", "animated webp", "animated gif", "tiff")
]


@settings(max_examples=150)
@given(st.sampled_from(FUZZED), st.integers(0, 2**31), st.integers(1, 40), st.floats(0.05, 1))
def test_a_damaged_file_is_a_picture_or_a_sentence(data: bytes, seed: int, hits: int, kept: float) -> None:
    generator = np.random.default_rng(seed)
    damaged = bytearray(data[: int(len(data) * kept)])
    for _ in range(hits):
        damaged[generator.integers(len(damaged))] = generator.integers(256)
    try:
        assert read_picture(bytes(damaged), SIZE).pixels.shape == (3, SIZE, SIZE)
    except InputError as error:
        assert str(error).endswith(".")


def test_broken_metadata_do_not_matter() -> None:
    data = pictures.turned(1)
    start = data.index(b"Exif\0\0") + 6
    assert_shows(data[:start] + b"\xff" * 20 + data[start + 20 :], pictures.CORNERS, tolerance=8)


def test_pixels_are_values_minus_127_by_128() -> None:
    pixels = read_picture(Image.new("RGB", (90, 70), (0, 127, 255)), SIZE).pixels
    assert pixels.dtype == torch.float32 and pixels.is_contiguous()
    for channel, value in zip(pixels, (-127 / 128, 0.0, 1.0)):
        assert torch.equal(channel, torch.full((SIZE, SIZE), value))


def test_nothing_of_the_metadata_is_left() -> None:
    original = pictures.turned(6)
    shown = read_picture(original, SIZE).shown
    assert b"a secret place" in original
    assert b"a secret place" not in to_jpeg(shown)
    assert not shown.getexif() and not Image.open(io.BytesIO(to_jpeg(shown))).getexif()


def test_what_is_shown_is_small_and_never_enlarged() -> None:
    assert read_picture(pictures.scene(3000, 2400), SIZE).shown.size == (SHOWN, round(SHOWN * 2400 / 3000))
    assert read_picture(pictures.scene(20, 16), SIZE).shown.size == (20, 16)
    assert read_picture(pictures.scene(1, 1), SIZE).pixels.shape == (3, SIZE, SIZE)


def test_a_big_jpeg_decoded_small_shows_the_scene() -> None:
    big = read_picture(pictures.encoded(pictures.scene(4500, 3000), "JPEG", quality=90), SIZE)
    assert np.abs(quarters(big.shown) - np.array(pictures.CORNERS)).max() <= 3
    assert max(big.shown.size) == SHOWN


def test_data_uri_holds_the_shown_picture() -> None:
    head, _, body = data_uri(read_picture(pictures.scene(), SIZE).shown).partition(",")
    assert head == "data:image/jpeg;base64"
    assert Image.open(io.BytesIO(base64.b64decode(body))).size == (360, 240)


def test_an_open_picture_is_left_as_it_was() -> None:
    given_picture = pictures.transparent_quarter()
    before = given_picture.tobytes()
    assert np.array_equal(quarters(read_picture(given_picture, SIZE).shown), pictures.CORNERS)
    assert (given_picture.mode, given_picture.tobytes()) == ("RGBA", before)
    lazy = Image.open(io.BytesIO(pictures.encoded(pictures.scene(1800, 1200), "JPEG")))
    read_picture(lazy, SIZE)
    assert lazy.size == (1800, 1200)


def test_files_by_name(tmp_path: Path) -> None:
    file = tmp_path / "scene.png"
    file.write_bytes(pictures.READABLE["png"]())
    assert torch.equal(read_picture(file, SIZE).pixels, read_picture(str(file), SIZE).pixels)
    for missing in (tmp_path / "none.png", tmp_path, "a\0b.png"):
        with pytest.raises(InputError, match="no file|cannot be opened|is a folder"):
            read_picture(missing, SIZE)


@given(st.integers(1, 9000), st.integers(1, 9000))
def test_the_seen_part_is_the_middle_of_the_picture(width: int, height: int) -> None:
    left, top, right, bottom = seen_part(width, height)
    seen_width, seen_height = right - left, bottom - top
    assert seen_width <= seen_height * STRETCH + 1 and seen_height <= seen_width * STRETCH + 1
    assert abs(left - (width - right)) <= 1 and abs(top - (height - bottom)) <= 1
    if max(width, height) <= STRETCH * min(width, height):
        assert (left, top, right, bottom) == (0, 0, width, height)
    else:
        assert min(seen_width, seen_height) == min(width, height)


FRACTIONS = st.floats(0.05, 0.95)
SIZES = ((300, 300), (450, 300), (900, 300), (300, 900), (1200, 1300))


@settings(max_examples=60)
@given(st.sampled_from(SIZES), FRACTIONS, FRACTIONS, st.integers(1, 9), st.sampled_from(list(pictures.TURNS)))
def test_a_cell_stands_for_what_the_network_sees_there(
    size: tuple[int, int], across: float, down: float, grid: int, orientation: int
) -> None:
    """A white spot lights the cell whose box, in fractions of the whole upright picture, holds it."""
    left, top, right, bottom = seen_part(*size)
    x, y = left + across * (right - left), top + down * (bottom - top)
    upright = Image.new("L", size)
    upright.paste(255, (round(x) - 6, round(y) - 6, round(x) + 6, round(y) + 6))
    turn, exif = pictures.TURNS[orientation], Image.Exif()
    exif[0x0112] = orientation
    stored = upright if turn is None else upright.transpose(turn)
    picture = read_picture(pictures.encoded(stored, "PNG", exif=exif), 180)
    rows, columns = np.nonzero(picture.pixels[0].numpy() > 0)
    row, column = int(rows.mean() / 180 * grid), int(columns.mean() / 180 * grid)
    box = cell_box(row, column, grid, picture.box)
    slack = 8 / min(size)
    assert box[0] - slack <= x / size[0] <= box[2] + slack
    assert box[1] - slack <= y / size[1] <= box[3] + slack


def test_cells_tile_the_box() -> None:
    box = (0.25, 0.0, 0.75, 1.0)
    assert cell_box(0, 0, 2, box) == (0.25, 0.0, 0.5, 0.5)
    assert cell_box(1, 1, 2, box) == (0.5, 0.5, 0.75, 1.0)
    assert cell_box(2, 0, 4) == (0.0, 0.5, 0.25, 0.75)


def test_many_at_once_are_read_as_one_alone() -> None:
    files = [make() for make in pictures.READABLE.values()] + [pictures.encoded(pictures.noise(2400, 1800), "PNG")]
    alone = [read_picture(data, SIZE).pixels for data in files]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda data: read_picture(data, SIZE).pixels, files * 2))
    assert all(torch.equal(one, other) for one, other in zip(alone * 2, together))


FORKED = """
import multiprocessing, sys
import torch
from seqdemo import load, run

def describe() -> None:
    run(captioner, sys.argv[1])

if __name__ == "__main__":
    torch.set_num_threads(2)
    captioner = load(sys.argv[2])
    describe()
    child = multiprocessing.get_context("fork").Process(target=describe)
    child.start()
    child.join(180)
    if child.exitcode is None:
        child.kill()
    print(child.exitcode)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_describes_big_pictures_too(tmp_path: Path) -> None:
    """After its parent has described one: neither the thread that decodes them nor torch's are there in the fork."""
    Image.new("RGB", (1200, 1000), "red").save(tmp_path / "big.png")
    line = [sys.executable, "-c", FORKED, str(tmp_path / "big.png"), str(tiny.captioner(tmp_path / "tiny"))]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip() == "0"


MEASURED = """
import sys, threading
from pathlib import Path
import torch
from seqdemo.images import read_picture

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024

torch.set_num_threads(1)
files = [(file.name, file.read_bytes()) for file in sorted(Path(sys.argv[1]).iterdir())]
read_picture(files[0][1], 260)
rest = peak() - len(files[0][1]) / 2**20
for name, data in files:
    threads = [threading.Thread(target=read_picture, args=(data, 260)) for _ in range(2)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    print(f"{peak() - rest:.0f} MB after {name}")
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak of memory from /proc")
def test_the_biggest_pictures_two_at_once_stay_within_250_mb(tmp_path: Path) -> None:
    (tmp_path / "0 small").write_bytes(pictures.READABLE["png"]())
    for kind, make in pictures.BIGGEST.items():
        (tmp_path / kind).write_bytes(make())
        assert (tmp_path / kind).stat().st_size <= 5 * 2**20
    run = subprocess.run([sys.executable, "-c", MEASURED, tmp_path], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    peaks = run.stdout.splitlines()
    assert len(peaks) == len(pictures.BIGGEST) + 1
    assert float(peaks[-1].split()[0]) < 250, run.stdout


def test_example_photographs_are_free_small_and_credited() -> None:
    credits = json.loads((PHOTOS / "credits.json").read_text("utf-8"))
    assert sorted(credit["file"] for credit in credits) == sorted(file.name for file in PHOTOS.glob("*.jpg"))
    assert len(credits) >= 6
    for credit in credits:
        assert all(credit[key] for key in ("title", "author", "source")) and credit["licence"] in ("CC0 1.0", "public domain")
        photo = Image.open(PHOTOS / credit["file"])
        assert max(photo.size) <= 640 and (PHOTOS / credit["file"]).stat().st_size < 120_000 and not photo.getexif()
