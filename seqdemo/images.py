"""From any picture that a person may upload to a small upright picture and the tensor that a network reads. All checks on
pictures are here. Memory is bounded: the header is checked before anything is decoded, colours are converted and shrunk band by
band, and big pictures are decoded one at a time in a single thread, because a thread often keeps the memory that it has freed.
"""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Union

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from seqdemo.errors import InputError

Source = Union[bytes, str, "os.PathLike[str]", Image.Image]
Box = tuple[float, float, float, float]  # left, top, right, bottom

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
MAX_BYTES = 5 * 2**20
MAX_PIXELS = 25_000_000
MEMORY_HUNGRY = {"WEBP": "WebP", "TIFF": "TIFF", "CMYK": "CMYK"}  # decoders that hold several copies of the picture
MAX_PIXELS_HUNGRY = 10_000_000
MAX_SCANS = 100  # a progressive JPEG has about ten
BIG = 1_000_000  # pixels; from here on one picture is decoded at a time
STRETCH = 1.5  # a longer side is squeezed by up to this factor; what is longer still is cropped at both ends
KEPT = 512  # a picture is shrunk by whole factors while its short side stays above this
SHOWN = 416  # the longest side of what a page shows
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)

_decoder_of_big_pictures = ThreadPoolExecutor(1, "big-pictures")


def _new_decoder() -> None:
    """A forked process has none of its parent's threads: it gets a decoder of its own."""
    global _decoder_of_big_pictures
    _decoder_of_big_pictures = ThreadPoolExecutor(1, "big-pictures")


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_new_decoder)

_MAGIC = (
    (4, b"ftypavi", "AVIF pictures are"),
    (4, b"ftyphei", "HEIC photographs are"),
    (4, b"ftyphev", "HEIC photographs are"),
    (4, b"ftypmif1", "HEIC photographs are"),
    (4, b"ftypmsf1", "HEIC photographs are"),
    (4, b"ftyp", "Films are"),
    (4, b"JXL ", "JPEG XL pictures are"),
    (0, b"\xff\x0a", "JPEG XL pictures are"),
    (4, b"jP  ", "JPEG 2000 pictures are"),
    (0, b"%PDF", "PDF documents are"),
    (0, b"<svg", "SVG drawings are"),
    (0, b"<?xml", "SVG drawings and other XML are"),
)
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ORIENTATION, _TILE_WIDTH, _TILE_HEIGHT = 0x0112, 322, 323  # EXIF and TIFF tags


@dataclass(frozen=True)
class Picture:
    """`pixels` is what a network reads, 3 x size x size, (value - 127) / 128. `shown` is the same part of the picture with its
    own proportions: upright, RGB, transparency on white, without metadata. `box` is that part in fractions of the whole."""

    pixels: Tensor
    shown: Image.Image
    box: Box


def read_picture(source: Source, size: int) -> Picture:
    """Read a picture from bytes, from a file, or from an open Pillow image. If it cannot be used, an InputError says what to
    do."""
    with _unreadable_is_input_error():
        if isinstance(source, Image.Image):
            check_pixels(source)
            small, box = shrink(source)
        else:
            data = read_bytes(source)
            big = pixels_in_header(data) >= BIG
            small, box = _decoder_of_big_pictures.submit(decode, data).result() if big else decode(data)
    return Picture(to_pixels(small, size), to_shown(small), box)


def cell_box(row: int, column: int, grid: int, box: Box = WHOLE) -> Box:
    """The part of the picture that a cell of a grid x grid map stands for, inside `box`, in fractions."""
    left, top, right, bottom = box
    width, height = (right - left) / grid, (bottom - top) / grid
    return (left + column * width, top + row * height, left + (column + 1) * width, top + (row + 1) * height)


def to_jpeg(image: Image.Image, quality: int = 85) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality)
    return stream.getvalue()


def data_uri(image: Image.Image) -> str:
    """The picture as a JPEG that a page can hold without another request."""
    return "data:image/jpeg;base64," + base64.b64encode(to_jpeg(image, 80)).decode("ascii")


# From a source to bytes with a checked header; nothing is decoded yet


def read_bytes(source: bytes | str | os.PathLike[str]) -> bytes:
    data = source if isinstance(source, bytes) else bytes_of_file(source)
    if not data:
        raise InputError("This file is empty; choose a photograph.")
    if len(data) > MAX_BYTES:
        raise InputError(f"This file is larger than {MAX_BYTES // 2**20} MB; save the picture smaller or as JPEG.")
    return data


def bytes_of_file(name: str | os.PathLike[str]) -> bytes:
    if os.path.isdir(name):
        raise InputError(f"{os.fspath(name)!r} is a folder; name a picture in it.")
    if not os.path.isfile(name):
        raise InputError(f"There is no file {Path(name).name!r}; check the name.")
    try:
        with open(name, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError("This file cannot be opened; check your right to read it.") from error


def pixels_in_header(data: bytes) -> int:
    """The number of pixels. Other formats and pictures that are too big are refused."""
    refuse_by_magic(data)
    try:
        picture = Image.open(io.BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise InputError(too_many_pixels()) from error
    except Exception as error:  # on hostile bytes a decoder may raise anything
        raise InputError("This is not a picture that can be read here; use JPEG, PNG, WebP, GIF, BMP or TIFF.") from error
    if picture.format in ("JPEG", "MPO") and data.count(b"\xff\xda") > MAX_SCANS:
        raise InputError("This JPEG is built of too many layers; save it again as an ordinary JPEG.")
    check_pixels(picture)
    return picture.width * picture.height


def refuse_by_magic(data: bytes) -> None:
    start = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    for offset, magic, what in _MAGIC:
        if (start if offset == 0 else data[:64])[offset:].startswith(magic):
            raise InputError(f"{what} not read here; save or export the picture as JPEG or PNG and use that.")


def check_pixels(picture: Image.Image) -> None:
    """Check the size in the header (and that of a TIFF's tiles, which the decoder allocates whole)."""
    kind = MEMORY_HUNGRY.get(picture.format or "") or MEMORY_HUNGRY.get(picture.mode, "")
    tags = getattr(picture, "tag_v2", {})
    tile = tags.get(_TILE_WIDTH, 0) * tags.get(_TILE_HEIGHT, 0)
    if max(picture.width * picture.height, tile) > (MAX_PIXELS_HUNGRY if kind else MAX_PIXELS):
        raise InputError(too_many_pixels(kind))
    if not picture.width * picture.height:
        raise InputError("This picture has no pixels; choose another.")


def too_many_pixels(kind: str = "") -> str:
    if kind:
        return f"Too many pixels: a {kind} picture may have {MAX_PIXELS_HUNGRY // 1_000_000} million; save it as an RGB JPEG."
    return f"Too many pixels: a picture may have {MAX_PIXELS // 1_000_000} million; make it smaller."


@contextmanager
def _unreadable_is_input_error() -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # on hostile bytes a decoder may raise anything
        raise InputError("This picture is damaged, cut off or of a rare kind; save it again as JPEG or PNG.") from error


# From bytes to a small upright picture


def decode(data: bytes) -> tuple[Image.Image, Box]:
    """Decode and shrink. The big picture is freed when this returns, even after an error."""
    with closing(Image.open(io.BytesIO(data), formats=FORMATS)) as picture:
        shrink_while_decoding(picture)
        return shrink(picture)


def seen_part(width: int, height: int) -> tuple[int, int, int, int]:
    """The middle of a picture in pixels, at most STRETCH times as long as wide (or as wide as long)."""
    seen_width, seen_height = min(width, math.ceil(height * STRETCH)), min(height, math.ceil(width * STRETCH))
    left, top = (width - seen_width) // 2, (height - seen_height) // 2
    return left, top, left + seen_width, top + seen_height


def shrink_while_decoding(picture: Image.Image) -> None:
    """A JPEG can be decoded at a half, a quarter or an eighth of its size; other formats ignore this."""
    factor = max(1, min(picture.size) // KEPT)
    picture.draft("RGB", (picture.width // factor, picture.height // factor))


def shrink(picture: Image.Image) -> tuple[Image.Image, Box]:
    """The seen part, upright in RGB on white, its short side between KEPT and 2 x KEPT when it was longer."""
    picture.load()
    part = seen_part(*picture.size)
    small = shrink_in_bands(picture, part, max(1, min(part[2] - part[0], part[3] - part[1]) // KEPT))
    fractions = (part[0] / picture.width, part[1] / picture.height, part[2] / picture.width, part[3] / picture.height)
    turn = orientation(picture)
    if turn not in _UPRIGHT:
        return small, fractions
    return small.transpose(_UPRIGHT[turn]), turned(fractions, turn)


def turned(box: Box, turn: int) -> Box:
    """A box that lies in the middle of the stored picture, in fractions of the upright one."""
    left, top, right, bottom = box
    return (top, left, bottom, right) if turn >= 5 else box


def orientation(picture: Image.Image) -> int:
    try:
        return int(picture.getexif().get(_ORIENTATION, 1))
    except Exception:  # broken metadata do not make a picture unreadable
        return 1


def shrink_in_bands(picture: Image.Image, part: tuple[int, int, int, int], factor: int) -> Image.Image:
    left, top, right, bottom = part
    small = Image.new("RGB", (math.ceil((right - left) / factor), math.ceil((bottom - top) / factor)))
    grey = grey_range(picture)
    rows = max(1, 500_000 // (right - left) // factor) * factor
    for y in range(top, bottom, rows):
        band = picture.crop((left, y, right, min(y + rows, bottom)))
        small.paste(on_white(band, grey).reduce(factor), (0, (y - top) // factor))
    return small


def grey_range(picture: Image.Image) -> tuple[float, float] | None:
    """The values of black and white in a grey picture of more than 8 bits: fixed for 16 bits, otherwise its own extremes. None
    for other pictures."""
    if picture.mode.startswith("I;16"):
        return 0.0, 65535.0
    if picture.mode not in ("I", "F"):
        return None
    low, high = np.array(picture.getextrema(), dtype=np.float64).tolist()
    return (low, high) if math.isfinite(high - low) and high > low else (0.0, 255.0)


def on_white(band: Image.Image, grey: tuple[float, float] | None) -> Image.Image:
    if grey is not None:
        low, high = grey
        values = (np.asarray(band, dtype=np.float32) - low) * (255.0 / (high - low))
        band = Image.fromarray(np.nan_to_num(values).clip(0, 255).round().astype(np.uint8))
    elif band.has_transparency_data:
        return Image.alpha_composite(Image.new("RGBA", band.size, "white"), band.convert("RGBA")).convert("RGB")
    return band.convert("RGB")


# From a small picture to what is read and what is shown


def to_pixels(image: Image.Image, size: int) -> Tensor:
    """The picture squeezed into a square, 3 x size x size."""
    values = np.array(image.resize((size, size), Image.Resampling.BICUBIC), dtype=np.float32)
    return torch.from_numpy((values - 127.0) / 128.0).permute(2, 0, 1).contiguous()


def to_shown(image: Image.Image) -> Image.Image:
    shown = image.copy()
    shown.thumbnail((SHOWN, SHOWN))
    return shown
