"""Small invented files in the layouts of the public originals."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

from training.data import Split

Pairs = list[tuple[str, str]]


def write(path: Path, data: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def packed(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def pairs_of(split: Split) -> Pairs:
    return [(example.source, reference) for example in split for reference in example.references]


MULTI30K = {
    "train": [("Ein Hund.", "A dog."), ("Zwei Männer.", "Two men.")],
    "val": [("Eine Frau.", "A woman.")],
    "test_2016_flickr": [("Ein Kind.", "A child."), ("Ein Ball.", "A ball.")],
}


def multi30k(folder: Path, layout: str, rows: dict[str, Pairs] = MULTI30K) -> Path:
    for stem, pairs in rows.items():
        if layout == "jsonl":
            objects = (json.dumps({"en": english, "de": german}) for german, english in pairs)
            write(folder / "multi30k" / f"{stem.removesuffix('_2016_flickr')}.jsonl", "\n".join(objects) + "\n")
            continue
        for side, end in ((0, "de"), (1, "en")):
            data = "".join(pair[side] + "\n" for pair in pairs).encode()
            name = folder / "multi30k" / f"{stem}.{end}"
            write(*((name, data) if layout == "plain" else (Path(f"{name}.gz"), gzip.compress(data))))
    return folder


def sentence_in(bucket: int) -> str:
    """A sentence that is alone in its component and falls in the bucket."""
    for number in range(10_000):
        if int.from_bytes(hashlib.sha256(f"Satz {number}".encode()).digest(), "big") % 100 == bucket:
            return f"Satz {number}"
    raise AssertionError


TEST, DEV, TRAIN = (sentence_in(bucket) for bucket in (0, 1, 57))


def tatoeba(folder: Path, rows: list[str], layout: str = "zip") -> Path:
    data = "".join(row + "\n" for row in rows).encode()
    if layout == "zip":
        packed(folder / "tatoeba" / "deu-eng.zip", {"_about.txt": b"x", "deu.txt": data})
    else:
        write(folder / "tatoeba" / "deu.txt", data)
    return folder


LEXICONS = {
    ("hi", "train"): "घर\tghar\t3\nघर\tghr\t1\nनमस्ते\tnamaste\t4\n",
    ("hi", "dev"): "पानी\tpani\t3\nपाणि\tpani\t1\n",
    ("hi", "test"): "किताब\tkitab\t2\nकिताब\tkitaab\t2\nघरा\tghar\t1\n",
    ("mr", "train"): "पानी\tpani\t2\nमाझा\tmajha\t1\n",
    ("mr", "dev"): "काय\tkay\t3\n",
    ("mr", "test"): "नमस्ते\tnamaste\t1\n",
}


NAME = "dakshina_dataset_v1.0"


def dakshina(folder: Path, layout: str = "folder", files: dict[tuple[str, str], str] = LEXICONS) -> Path:
    named = {f"{NAME}/{code}/lexicons/{code}.translit.sampled.{split}.tsv": text for (code, split), text in files.items()}
    if layout == "folder":
        for name, text in named.items():
            write(folder / name, text)
        return folder
    with tarfile.open(folder / f"{NAME}.{layout}", "w:" + layout.removeprefix("tar").removeprefix(".")) as archive:
        for name, text in {f"{NAME}/README.md": "# Dakshina", **named}.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return folder


def aksharantar(folder: Path, code: str, member: str, data: str) -> None:
    packed(folder / "aksharantar" / f"{code}.zip", {member: data.encode()})


SPLIT_OF = {"b.jpg": "train", "a.jpg": "train", "c.jpg": "train", "d.jpg": "dev", "e.jpg": "test"}


CAPTIONS = {name: [f"{name[0]} dog runs number {n} ." for n in range(5)] for name in SPLIT_OF}


CAPTIONS["a.jpg"][2] = "Dogs ."


CAPTIONS["e.jpg"][4] = "A dog ,"


PIXELS = {name: name.encode() * 9 for name in SPLIT_OF} | {"c.jpg": b"b.jpg" * 9}  # c is b again


def flickr8k(folder: Path, layout: str) -> Path:
    home = folder / "flickr8k"
    tokens = "".join(f"{name}#{n}\t{text}\n" for name, texts in CAPTIONS.items() for n, text in enumerate(texts))
    lists = {
        f"Flickr_8k.{split}Images.txt": "".join(name + "\n" for name, its in SPLIT_OF.items() if its == split)
        for split in ("train", "dev", "test")
    }
    original = {"Flickr8k.token.txt": tokens + "z.jpg.1#0\tIn no split .\n", **lists}
    if layout == "table":
        rows = [f"{SPLIT_OF[name]}\t{name}\t{n}\t{text}" for name, texts in CAPTIONS.items() for n, text in enumerate(texts)]
        write(home / "captions.tsv", "split\tfile\tn\tcaption\n" + "\n".join(rows) + "\n")
    elif layout == "hub":
        for split in ("train", "dev", "test"):
            out = io.StringIO(newline="")
            rows = csv.writer(out)
            rows.writerow(["file_name", "split", *(f"caption_{n}" for n in range(5))])
            rows.writerows([name, split, *CAPTIONS[name]] for name, its in SPLIT_OF.items() if its == split)
            write(home / split / "metadata.csv", out.getvalue())
    elif layout == "zips":
        packed(home / "Flickr8k_text.zip", {name: text.encode() for name, text in original.items()})
        junk = {"__MACOSX/Flicker8k_Dataset/._a.jpg": b"", "Flicker8k_Dataset/readme.txt": b""}
        packed(home / "Flickr8k_Dataset.zip", {**junk, **{f"Flicker8k_Dataset/{name}": data for name, data in PIXELS.items()}})
    else:
        for name, text in original.items():
            write(home / "Flickr8k_text" / name, text)
    for name, data in PIXELS.items() if layout != "zips" else ():
        write(home / ("Flicker8k_Dataset" if layout == "lists" else SPLIT_OF[name]) / name, data)
    return folder


BOOK = "".join(f"Line {n}: “Eh bien, mon prince.”\n" for n in range(100))
