"""Subword dropout: without it sentencepiece's own pieces, with it the same ones in every process."""

from __future__ import annotations

import hashlib
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from seqdemo.checkpoints import shipped_folder
from seqdemo.config import UNK
from seqdemo.text import Subwords
from tests.shared import PATIENCE
from tests.small_runs import SUBWORDS, forks, sentences
from training.data.batches import Sentences
from training.data.merges import Dropout, Merges
from training.run.build import make_tokenizers, read_tokenizers

LINES = [
    *Path("README.md").read_text(encoding="utf-8").split("\n"),
    *Path("CHANGELOG.md").read_text(encoding="utf-8").split("\n"),
    "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt.",
    "Zwei Männer kochen Straßenessen; die Äpfel kosteten 3,50 €!",
    "Donaudampfschifffahrtsgesellschaftskapitän aaaaaaaaaaaaaaa ssssssch",
    "नमस्ते दुनिया, Привет мир, γειά σου, 漢字かな交じり文, مرحبا بالعالم",
    "e\u0301 \N{LATIN SMALL LIGATURE FI} ½ a\u00a0b\u3000c\u200bd\x00e 🤦🏽\u200d♂️ 👍👍",
    *("☃", "☃☃ ☃x☃☃", "▁", "▁a ▁", "a▁▁b▁", "", "   ", "<unk> <bos>x <pad> <de>", "a\r\nb\tc"),
]


class Never(np.random.Generator):
    """Leaves nothing out."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def geometric(self, *_: object) -> int:  # type: ignore[override]
        return sys.maxsize


@pytest.fixture(scope="module")
def shipped() -> Subwords:
    return Subwords.parse((shipped_folder() / "translator-de-en/pieces.model").read_bytes())


def all_scripts(count: int) -> list[str]:
    """Sentences of characters of every script and of none."""
    rng = random.Random(5)
    kinds = ((0x20, 0x7F), (0xA0, 0x250), (0x370, 0x530), (0x900, 0x980), (0x2000, 0x2600), (0x3040, 0x3100), (0x1F300, 0x1F650))
    return ["".join(chr(rng.randrange(*rng.choice(kinds))) for _ in range(rng.randint(1, 30))) for _ in range(count)]


def test_without_dropout_sentences_are_cut_as_sentencepiece_does(shipped: Subwords) -> None:
    nothing = Dropout(Merges(shipped), 0.5, Never())
    for line in [*LINES, *all_scripts(2_000)]:
        assert tuple(nothing.ids(line)) == shipped.encode(line).ids, line


def test_other_pieces_are_as_sentencepiece_cuts_them_too() -> None:
    learnt = Subwords.train(LINES * 3, 500)
    nothing = Dropout(Merges(learnt), 0.5, Never())
    for line in [*LINES, *all_scripts(500)]:
        assert tuple(nothing.ids(line)) == learnt.encode(line).ids, line


def test_with_every_merge_left_out_single_characters_remain(shipped: Subwords) -> None:
    every = Dropout(Merges(shipped), 1.0, np.random.default_rng(1))
    assert [shipped.piece(index) for index in every.ids("Ein Hut")] == list("▁Ein▁Hut")
    assert list(every.ids("☃☃ ☃")) == list(every.ids("☃ ☃")), "unknown neighbours are one"
    assert UNK in every.ids("☃")


def cut(text: Subwords, line: str, share: float) -> list[int]:
    """With sentencepiece's own dropout."""
    return list(text.processor.encode(line, enable_sampling=True, alpha=share))


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_pieces_are_as_many_as_with_sentencepieces_own_dropout(shipped: Subwords, share: float) -> None:
    dropout = Dropout(Merges(shipped), share, np.random.default_rng(2))
    lines = [line for line in LINES if len(line) > 40] * 20
    ours, theirs = sum(len(dropout.ids(line)) for line in lines), sum(len(cut(shipped, line, share)) for line in lines)
    assert ours == pytest.approx(theirs, rel=0.01)
    assert all(shipped.decode(dropout.ids(line)) == line for line in ("Ein Hut", "Zwei Männer kochen."))


def test_a_merge_left_out_is_tried_again_once_a_neighbour_has_grown(shipped: Subwords) -> None:
    merges = Merges(shipped)
    whole = merges.cut("▁einem")
    for turn in range(whole.tries):
        other = merges.cut("▁einem", (turn,))
        assert len(other.ids) >= len(whole.ids) == 1 and shipped.decode(other.ids) == "einem"


def epoch_of(folder: str, number: int) -> None:
    """Write what this process makes of an epoch."""
    examples = sentences().train.examples
    source, target = read_tokenizers(Path(folder))
    assert source
    pairs = Sentences(SUBWORDS, source, target)
    made = hashlib.sha256()
    for epoch in (1, 0):
        for batch in pairs.batches(examples, epoch):
            made.update(b"".join(part.numpy().tobytes() for part in batch if part is not None))
    Path(folder, f"{number}.txt").write_text(made.hexdigest())


def test_every_process_makes_the_same_batches_of_an_epoch(tmp_path: Path) -> None:
    make_tokenizers(SUBWORDS, sentences(), tmp_path)
    processes = [forks().Process(target=epoch_of, args=(str(tmp_path), number)) for number in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
    one, two = ((tmp_path / f"{number}.txt").read_text() for number in range(2))
    assert one == two


def test_epochs_are_cut_differently(tmp_path: Path) -> None:
    make_tokenizers(SUBWORDS, sentences(), tmp_path)
    source, target = read_tokenizers(tmp_path)
    assert source
    pairs, examples = Sentences(SUBWORDS, source, target), sentences().train.examples
    one, again, other = (pairs.sources(examples, epoch).ids for epoch in (1, 1, 2))
    assert all(map(np.array_equal, one, again)) and not all(map(np.array_equal, one, other))
