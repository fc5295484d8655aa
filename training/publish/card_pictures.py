"""The pictures of a model card, drawn with Pillow: an alignment, and quality by the length of the source.

Each file records the sha256 of the weights or figures it was drawn from. A card shows only pictures of the weights and figures
in its folder.
"""

from __future__ import annotations

import hashlib
import io
import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont, PngImagePlugin

from seqdemo import SearchOptions, load, replay, run
from seqdemo.checkpoints.description import model_config
from seqdemo.checkpoints.folder import CONFIG, PICTURES, WEIGHTS, replace_file
from training.measure import headlines
from training.measure.headlines import MAIN
from training.publish.card_figures import Metrics, column_name, enough, few, span

ALIGNMENT, BY_LENGTH = PICTURES
PHOTOGRAPH = Path("seqdemo/ui/photos/photographer.jpg")
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = {
    "translate": "Zwei Männer in blauen Hemden spielen Gitarre auf der Straße.",
    "transliterate": "namaste",
    "caption": str(ROOT / PHOTOGRAPH),
}
DRAWN_FROM = "Drawn from"  # the PNG's text chunk
INK, PALE, PAPER = (30, 34, 45), (215, 218, 226), (255, 255, 255)
COLOURS = ((0, 90, 181), (220, 50, 32), (0, 128, 96), (120, 60, 160), (200, 130, 0), (90, 90, 90))
CELL, MARGIN, SIZE, THUMB = 28, 10, 15, 96


def draw(folder: Path, kin: Sequence[Metrics], metrics: Metrics) -> list[Path]:
    """Draw the alignment if the model has attention, and quality by length if it was measured."""
    config = json.loads((folder / CONFIG).read_bytes())
    made = {ALIGNMENT: alignment(folder, config), BY_LENGTH: by_length(metrics, kin)}
    written = []
    for name, picture in made.items():
        if picture is not None:
            replace_file(folder / name, png(picture, source_of(name, folder, metrics, kin)))
            written.append(folder / name)
        else:
            (folder / name).unlink(missing_ok=True)
    return written


def is_current(name: str, folder: Path, metrics: Metrics, kin: Sequence[Metrics]) -> bool:
    path = folder / name
    if not path.is_file():
        return False
    with Image.open(path) as picture:
        return picture.info.get(DRAWN_FROM) == source_of(name, folder, metrics, kin)


def source_of(name: str, folder: Path, metrics: Metrics, kin: Sequence[Metrics]) -> str:
    if name == ALIGNMENT:
        return hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()[:16]
    return hashlib.sha256(json.dumps([lengths(metrics, kin)], sort_keys=True).encode()).hexdigest()[:16]


def png(picture: Image.Image, source: str) -> bytes:
    """The picture as PNG with few colours, which halves the file."""
    told = PngImagePlugin.PngInfo()
    told.add_text(DRAWN_FROM, source)
    stream = io.BytesIO()
    picture.quantize(128, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True, pnginfo=told)
    return stream.getvalue()


# An alignment


def alignment(folder: Path, config: dict[str, Any]) -> Image.Image | None:
    """What the best output of beam 5 looked at, of the task's example; None for a model without attention."""
    if not model_config(config).has_attention or config["task"] not in EXAMPLES:
        return None
    checkpoint = load(folder.resolve())
    languages = config.get("languages", [])
    language = ("hi" if "hi" in languages else languages[0]) if len(languages) > 1 else ""
    found = run(checkpoint, EXAMPLES[config["task"]], SearchOptions(beam=5), language=language)
    trace = replay(checkpoint, found, found.hypotheses[0].tokens)
    if found.prompt.picture is not None:
        return looks(found.prompt.picture.shown, trace.target, trace.attention)
    return matrix(trace.source, trace.target, trace.attention)


def matrix(source: Sequence[str], target: Sequence[str], weights: Any) -> Image.Image:
    """A row for each target piece, a column for each source piece; the darker, the larger the weight."""
    left = MARGIN + max(width(piece) for piece in target) + MARGIN
    top = MARGIN + max(width(piece) for piece in source) + MARGIN
    picture = Image.new("RGB", (left + CELL * len(source) + MARGIN, top + CELL * len(target) + MARGIN), PAPER)
    brush = ImageDraw.Draw(picture)
    for column, piece in enumerate(source):
        upright(picture, piece, (left + column * CELL, top - MARGIN // 2))
    for row, piece in enumerate(target):
        middle = top + row * CELL + CELL // 2
        brush.text((left - MARGIN // 2, middle), plain(piece), INK, font(piece), anchor="rm")
        for column in range(len(source)):
            corner = (left + column * CELL, top + row * CELL)
            shade = mixed(PAPER, COLOURS[0], float(weights[row][column]))
            brush.rectangle((*corner, corner[0] + CELL, corner[1] + CELL), shade, PALE)
    return picture


def upright(picture: Image.Image, piece: str, foot: tuple[int, int]) -> None:
    """Text that reads upwards, so that long words fit over narrow columns."""
    label = Image.new("RGB", (width(piece) + 2, CELL), PAPER)
    ImageDraw.Draw(label).text((0, CELL // 2), plain(piece), INK, font(piece), anchor="lm")
    label = label.rotate(90, expand=True)
    picture.paste(label, (foot[0], foot[1] - label.height))


def looks(photograph: Image.Image, target: Sequence[str], weights: Any) -> Image.Image:
    """The photograph once for each word, bright where the model looked."""
    across = min(len(target), 6)
    down = -(-len(target) // across)
    small = photograph.convert("RGB").resize((THUMB, THUMB))
    picture = Image.new("RGB", (across * (THUMB + MARGIN) + MARGIN, down * (THUMB + 3 * MARGIN) + MARGIN), PAPER)
    brush, side = ImageDraw.Draw(picture), round(len(weights[0]) ** 0.5)
    for number, piece in enumerate(target):
        corner = (MARGIN + number % across * (THUMB + MARGIN), MARGIN + number // across * (THUMB + 3 * MARGIN))
        light = Image.new("L", (side, side))
        light.putdata([round(255 * (0.15 + 0.85 * float(weight) / float(max(weights[number])))) for weight in weights[number]])
        dark = Image.new("RGB", small.size, (0, 0, 0))
        picture.paste(Image.composite(small, dark, light.resize(small.size, Image.Resampling.BICUBIC)), corner)
        brush.text((corner[0] + THUMB // 2, corner[1] + THUMB + MARGIN), plain(piece), INK, font(piece), anchor="mm")
    return picture


# Quality by length


def lengths(metrics: Metrics, kin: Sequence[Metrics]) -> dict[str, Any]:
    """The first test set by length, of this model and of those that learnt the same; empty where it was not measured so."""
    tests = few(metrics, "by_length") if metrics.get("tests") else {}
    if not tests:
        return {}
    test, key = next(iter(tests)), MAIN[metrics["task"]][0]
    rows = {one["name"]: enough(one["tests"].get(test, {}).get("by_length", ())) for one in [metrics, *kin]}
    lines = {name: [[span(row), row[key]] for row in found] for name, found in rows.items() if len(found) > 1}
    words = {"title": f"{column_name(metrics)} by length of the source, {headlines.title(metrics, test)}"}
    return {**words, "unit": tests[test][0]["unit"], "spans": [span(row) for row in enough(tests[test])], "lines": lines}


def by_length(metrics: Metrics, kin: Sequence[Metrics]) -> Image.Image | None:
    """A line for each model, this one's the first and thickest."""
    told = lengths(metrics, kin)
    if not told.get("lines"):
        return None
    wide, high, left, foot = 640, 330 + 20 * len(told["lines"]), 60, 40 + 20 * len(told["lines"])
    picture = Image.new("RGB", (wide, high), PAPER)
    brush = ImageDraw.Draw(picture)
    most = max(value for line in told["lines"].values() for _, value in line) * 1.1 or 1.0
    spans = told["spans"]

    def place(name: str, value: float) -> tuple[float, float]:
        across = left + (wide - left - 40) * (spans.index(name) / max(1, len(spans) - 1))
        return across, high - foot - 30 - (high - foot - 70) * value / most

    brush.text((MARGIN, MARGIN + 6), told["title"], INK, font(""), anchor="lm")
    for step in range(5):
        level = most * step / 4
        y = place(spans[0], level)[1]
        brush.line((left, y, wide - 30, y), PALE)
        brush.text((left - MARGIN, y), f"{level:.0f}", INK, font(""), anchor="rm")
    for name in spans:
        brush.text((place(name, 0)[0], high - foot - 14), name, INK, font(""), anchor="mm")
    brush.text((wide - MARGIN, high - foot + 6), told["unit"], INK, font(""), anchor="rm")
    for number, (name, line) in reversed(list(enumerate(told["lines"].items()))):
        colour = COLOURS[number % len(COLOURS)]
        points = [place(where, value) for where, value in line if where in spans]
        brush.line(points, colour, 4 if number == 0 else 2, joint="curve")
        for x, y in points:
            brush.ellipse((x - 4, y - 4, x + 4, y + 4), colour)
        y = high - foot + 20 + 20 * number
        brush.line((MARGIN, y, MARGIN + 24, y), colour, 4 if number == 0 else 2)
        brush.text((MARGIN + 34, y), name, INK, font(""), anchor="lm")
    return picture


# Text in any script


def font(text: str) -> Any:
    """Noto's font of the script, which the app's pages use too; for Latin letters Pillow's own does where that is missing."""
    scripts = {unicodedata.name(char, "LATIN").split()[0].title() for char in text if written(char)} - {"Latin"}
    name = f"NotoSans{next(iter(scripts), '')}-Regular.ttf"
    try:
        return ImageFont.truetype(name, SIZE)
    except OSError:
        if scripts:
            raise OSError(None, "this font is missing; install fonts-noto-core, or what your system calls it", name) from None
        return ImageFont.load_default(SIZE)


def written(char: str) -> bool:
    return char.isalpha() or unicodedata.category(char).startswith("M")


def width(piece: str) -> int:
    return int(font(piece).getlength(plain(piece))) + 2


def plain(piece: str) -> str:
    """A text that can be drawn alone: a combining mark gets a dotted circle."""
    text = piece.replace("\N{LOWER ONE EIGHTH BLOCK}", " ").strip() or piece
    return f"\N{DOTTED CIRCLE}{text}" if unicodedata.category(text[0]).startswith("M") else text


def mixed(start: tuple[int, ...], end: tuple[int, ...], share: float) -> tuple[int, ...]:
    return tuple(round(low + (high - low) * share) for low, high in zip(start, end))
