"""Seq2Seq and LanguageModel as citizens of the Hub: from_pretrained, save_pretrained and push_to_hub, all strict."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TypeVar

from torch import nn

from seqdemo import model
from seqdemo.checkpoints.client import Watch
from seqdemo.checkpoints.library import Place, default_deadline, resolve, visit
from seqdemo.checkpoints.publication import Published, push
from seqdemo.checkpoints.store import Baggage, load_bare, save_model

Self = TypeVar("Self", bound="Pretrained")


class Pretrained(nn.Module):
    """A model that remembers what travelled with it (tokenizers, card, figures), so that saving it again loses nothing."""

    baggage = Baggage()

    @classmethod
    def from_pretrained(cls: type[Self], name: str | Path, revision: str | None = None, deadline: float | None = None) -> Self:
        """The model of a bundled checkpoint, a repository or a folder. Names, shapes and numbers must all be there and fit;
        nothing is ever filled in at random."""

        def use(place: Place) -> Self:
            loaded, baggage = load_bare(place.folder, place.home, cls)
            assert isinstance(loaded, cls)
            loaded.baggage = baggage
            return loaded

        return visit(resolve(name, revision), Watch(deadline or default_deadline()), use)

    def save_pretrained(self, folder: str | Path) -> Path:
        """config.json, model.safetensors, what else came with the model, and a manifest."""
        return save_model(folder, self, self.baggage)

    def push_to_hub(self, repo: str, private: bool = False, dry_run: bool = False, message: str = "") -> Published:
        with tempfile.TemporaryDirectory() as folder:
            return push(self.save_pretrained(Path(folder) / repo.rpartition("/")[2]), repo, private, dry_run, message)


class Seq2Seq(Pretrained, model.Seq2Seq):
    __doc__ = model.Seq2Seq.__doc__


class LanguageModel(Pretrained, model.LanguageModel):
    __doc__ = model.LanguageModel.__doc__
