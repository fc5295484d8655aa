"""Pictures for the tests: one scene in every format that cameras and programs write, and harmful files.

READABLE holds makers of files that must come out as the scene; HARMFUL holds makers of files that must be refused, each with a
word of the sentence that refuses it.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

RED, GREEN, BLUE, WHITE = (200, 30, 30), (30, 160, 40), (40, 50, 190), (255, 255, 255)
CORNERS = (RED, GREEN, BLUE, WHITE)  # top left, top right, bottom left, bottom right
Maker = Callable[[], bytes]


def scene(width: int = 360, height: int = 240) -> Image.Image:
    """Four quarters of four colours, so that every turn and every flip of it looks different."""
    picture = Image.new("RGB", (width, height))
    for index, colour in enumerate(CORNERS):
        left, top = index % 2 * width // 2, index // 2 * height // 2
        picture.paste(colour, (left, top, left + width - width // 2, top + height - height // 2))
    return picture


def grey_scene() -> Image.Image:
    """A dark left half and a light right half: 64 and 192 of 255."""
    picture = Image.new("L", (360, 240), 64)
    picture.paste(192, (180, 0, 360, 240))
    return picture


def noise(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """Coarse noise that compresses well enough and has detail everywhere."""
    generator = np.random.default_rng(width * 31 + height)
    channels = len(Image.new(mode, (1, 1)).getbands())
    small = generator.integers(0, 256, (height // 100 + 1, width // 100 + 1, channels), dtype=np.uint8)
    return Image.fromarray(small.squeeze(), mode=mode).resize((width, height), Image.Resampling.NEAREST)


def encoded(picture: Image.Image, form: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, form, **options)
    return stream.getvalue()


TURNS = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def turned(orientation: int, form: str = "JPEG") -> bytes:
    """The scene stored as a camera held another way stores it, with the EXIF orientation that turns it back."""
    turn = TURNS[orientation]
    stored = scene() if turn is None else scene().transpose(turn)
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = "a secret place"
    return encoded(stored, form, exif=exif)


def transparent_quarter() -> Image.Image:
    """The scene with its white quarter made of nothing (black underneath)."""
    picture = scene().convert("RGBA")
    picture.paste((0, 0, 0, 0), (180, 120, 360, 240))
    return picture


def palette_with_alpha() -> bytes:
    """A palette PNG whose fourth colour is transparent."""
    indices = np.zeros((240, 360), np.uint8)
    indices[:120, 180:], indices[120:, :180], indices[120:, 180:] = 1, 2, 3
    picture = Image.fromarray(indices, mode="P")
    picture.putpalette([*RED, *GREEN, *BLUE, 0, 0, 0])
    return encoded(picture, "PNG", transparency=b"\xff\xff\xff\x00")


def animated(form: str) -> bytes:
    return encoded(scene(), form, save_all=True, append_images=[Image.new("RGB", (360, 240), "black")], duration=100, loop=0)


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, depth: int, colours: int, rows: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0)
    body = png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(rows, 9)) + png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def png_16_bit_rgb() -> bytes:
    values = np.asarray(scene()).astype(">u2") * 257
    return png(360, 240, 16, 2, b"".join(b"\0" + row.tobytes() for row in values))


def png_16_bit_grey() -> bytes:
    return encoded(Image.fromarray(np.asarray(grey_scene()).astype(np.uint16) * 257), "PNG")


def tiff_of_numbers(dtype: str, scale: float) -> bytes:
    """A TIFF of plain numbers without a known white: the scene's own extremes are black and white."""
    return encoded(Image.fromarray((np.asarray(grey_scene(), np.float64) * scale).astype(dtype)), "TIFF")


READABLE: dict[str, Maker] = {
    "jpeg": lambda: encoded(scene(), "JPEG", quality=95),
    "progressive jpeg": lambda: encoded(scene(), "JPEG", progressive=True, quality=95),
    "cmyk jpeg": lambda: encoded(scene().convert("CMYK"), "JPEG", quality=95),
    "multi-picture jpeg": lambda: encoded(scene(), "MPO", save_all=True, append_images=[Image.new("RGB", (360, 240))]),
    "png": lambda: encoded(scene(), "PNG"),
    "16-bit png": png_16_bit_rgb,
    "palette with alpha": palette_with_alpha,
    "png with alpha": lambda: encoded(transparent_quarter(), "PNG"),
    "png with a colour that means nothing": lambda: encoded(transparent_quarter().convert("RGB"), "PNG", transparency=(0, 0, 0)),
    "animated png": lambda: animated("PNG"),
    "webp": lambda: encoded(scene(), "WEBP", quality=95),
    "webp with alpha": lambda: encoded(transparent_quarter(), "WEBP", lossless=True),
    "animated webp": lambda: animated("WEBP"),
    "gif": lambda: encoded(scene(), "GIF"),
    "animated gif": lambda: animated("GIF"),
    "bmp": lambda: encoded(scene(), "BMP"),
    "tiff": lambda: encoded(scene(), "TIFF", compression="tiff_lzw"),
    "cmyk tiff": lambda: encoded(scene().convert("CMYK"), "TIFF"),
}
READABLE_GREY: dict[str, Maker] = {
    "grey jpeg": lambda: encoded(grey_scene(), "JPEG", quality=95),
    "16-bit grey png": png_16_bit_grey,
    "16-bit grey tiff": lambda: encoded(Image.fromarray(np.asarray(grey_scene()).astype(np.uint16) * 257), "TIFF"),
    "grey with alpha": lambda: encoded(grey_scene().convert("LA"), "PNG"),
}
STRETCHED_GREY: dict[str, Maker] = {
    "32-bit tiff": lambda: tiff_of_numbers("int32", 100_000),
    "float tiff": lambda: tiff_of_numbers("float32", 1 / 255),
    "black and white png": lambda: encoded(grey_scene().point(lambda value: 255 * (value > 128)).convert("1"), "PNG"),
}


def bomb_png(width: int, height: int) -> bytes:
    """A few kilobytes that decompress to a picture of one colour and any size."""
    packer, row = zlib.compressobj(9), b"\0" + bytes(width // 8 + 1)
    rows = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = png_chunk(b"IHDR", header) + png_chunk(b"IDAT", rows) + png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def tiled_tiff(tile_kind: int, tile_side: int) -> bytes:
    """A picture of 16 x 16 pixels in one compressed tile; the tile's side is a number of TIFF's type 4, or a text of type 2."""
    fields = {256: 16, 257: 16, 258: 8, 259: 8, 262: 1, 277: 1, 322: tile_side, 323: tile_side, 324: 200, 325: 1000}
    kinds = {322: tile_kind, 323: tile_kind}
    entries = b"".join(struct.pack("<HHII", tag, kinds.get(tag, 4), 1, value) for tag, value in fields.items())
    directory = struct.pack("<2sHIH", b"II", 42, 8, len(fields)) + entries + bytes(4)
    return directory.ljust(200, b"\0") + zlib.compress(bytes(1_000_000), 9)


def bomb_gif() -> bytes:
    """A file whose header claims 65,535 x 65,535 pixels."""
    small = encoded(Image.new("P", (2, 2)), "GIF")
    start = small.index(b",") + 5
    return small[:6] + b"\xff" * 4 + small[10:start] + b"\xff" * 4 + small[start + 4 :]


def bomb_webp(side: int) -> bytes:
    """An animation whose canvas is side x side and whose only frame is small."""
    frame = encoded(Image.new("RGB", (16, 16)), "WEBP", lossless=True)[12:]
    size = struct.pack("<I", side - 1)[:3]
    animation = struct.pack("<4sI", b"ANMF", 16 + len(frame)) + bytes(6) + b"\x0f\0\0" * 2 + b"\x64\0\0\0" + frame
    body = b"WEBPVP8X" + struct.pack("<II", 10, 2) + size * 2 + struct.pack("<4sI", b"ANIM", 6) + bytes(6) + animation
    return struct.pack("<4sI", b"RIFF", len(body)) + body


def many_scans() -> bytes:
    """A progressive JPEG that repeats its last scan a thousand times: each repeat costs a pass over the picture."""
    jpeg = encoded(noise(2000, 2000), "JPEG", progressive=True, quality=30)
    scan = jpeg.rindex(b"\xff\xda")
    return jpeg[:-2] + jpeg[scan:-2][:40] * 1000 + jpeg[-2:]


def brand(name: bytes) -> bytes:
    """The start of a file of the ISO family, which HEIC and AVIF belong to."""
    return struct.pack(">I", 24) + b"ftyp" + name + bytes(4) + b"mif1" + name + bytes(1000)


HARMFUL: dict[str, tuple[Maker, str]] = {
    "empty": (lambda: b"", "empty"),
    "text": (lambda: b"not a picture at all" * 10, "use JPEG"),
    "html": (lambda: b"<!doctype html><img src=x onerror=alert(1)>", "use JPEG"),
    "cut jpeg": (lambda: encoded(noise(600, 400), "JPEG")[:2000], "cut off"),
    "cut png": (lambda: encoded(noise(600, 400), "PNG")[:400], "cut off"),
    "cut gif": (lambda: encoded(noise(600, 400), "GIF")[:900], "cut off"),
    "cut webp": (lambda: encoded(noise(600, 400), "WEBP")[:500], "use JPEG"),
    "damaged png": (lambda: encoded(scene(), "PNG").replace(b"IDAT", b"IDAT\xff", 1), "damaged"),
    "png of 144 million pixels": (lambda: bomb_png(12_000, 12_000), "Too many pixels"),
    "png of 300 million pixels": (lambda: bomb_png(17_400, 17_400), "Too many pixels"),
    "gif of four thousand million pixels": (bomb_gif, "Too many pixels"),
    "webp of 16 million pixels": (
        lambda: encoded(Image.new("RGB", (4000, 4000)), "WEBP", quality=0, method=0),
        "Too many pixels",
    ),
    "cmyk jpeg of 16 million pixels": (lambda: encoded(Image.new("CMYK", (4000, 4000)), "JPEG"), "Too many pixels"),
    "webp of 268 million pixels": (lambda: bomb_webp(16_383), "Too many pixels"),
    "tiff with a huge tile": (lambda: tiled_tiff(4, 20_000), "Too many pixels"),
    "tiff with a tile of text": (lambda: tiled_tiff(2, ord("9")), "damaged"),
    "jpeg of a thousand scans": (many_scans, "layers"),
    "file over the limit": (lambda: bytes(5 * 2**20 + 1), "larger than 5 MB"),
    "heic": (lambda: brand(b"heic"), "HEIC"),
    "avif": (lambda: brand(b"avif"), "AVIF"),
    "film": (lambda: brand(b"isom"), "Films"),
    "svg": (lambda: b"\xef\xbb\xbf \n<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "SVG"),
    "svg with a preamble": (lambda: b"<?xml version='1.0'?><svg/>", "SVG"),
    "pdf": (lambda: b"%PDF-1.7\n", "PDF"),
    "jpeg xl": (lambda: b"\xff\x0a" + bytes(100), "JPEG XL"),
    "jpeg 2000": (lambda: b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(100), "JPEG 2000"),
}
BIGGEST: dict[str, Maker] = {
    "jpeg": lambda: encoded(noise(6000, 4160), "JPEG", quality=60),
    "progressive jpeg": lambda: encoded(noise(6000, 4160), "JPEG", quality=60, progressive=True, subsampling=0),
    "cmyk jpeg": lambda: encoded(noise(3640, 2740, "CMYK"), "JPEG", quality=60, progressive=True),
    "png with alpha": lambda: encoded(noise(6000, 4160, "RGBA"), "PNG", compress_level=1),
    "palette png": lambda: encoded(noise(6000, 4160, "L").convert("P"), "PNG", compress_level=1),
    "16-bit png": lambda: encoded(Image.fromarray(np.asarray(noise(6000, 4160, "L")).astype(np.uint16) * 257), "PNG"),
    "gif": lambda: encoded(noise(6000, 4160, "L"), "GIF"),
    "bmp": lambda: encoded(noise(1400, 1200), "BMP"),
    "webp": lambda: encoded(noise(3640, 2740), "WEBP", quality=20, method=0),
    "webp with alpha": lambda: encoded(noise(3640, 2740, "RGBA"), "WEBP", quality=20, method=0),
    "tiff in one strip": lambda: encoded(noise(3640, 2740, "CMYK"), "TIFF", compression="tiff_deflate", strip_size=10**9),
    "float tiff": lambda: encoded(
        Image.fromarray(np.asarray(noise(3640, 2740, "L")).astype(np.float32)), "TIFF", compression="tiff_deflate"
    ),
}
