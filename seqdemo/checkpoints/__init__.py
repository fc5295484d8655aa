"""Checkpoints: save, list, load (bundled, from the Hub's cache, from the Hub, from a folder), and nothing trusted on the way.

folder.py       plain files of bounded size, hashes against the manifest
description.py  config.json, key by key
weights.py      model.safetensors: the header against the model, then the numbers
pieces.py       tokenizer files, a stranger's first in a child process
store.py        Checkpoint; save; load of a folder
library.py      load and names: bundled, cache, Hub
cache.py        the Hub's cache on disk
client.py       work in a child process with a deadline; the switches of the Hub's client
child.py        that process: download.py, upload.py, wire.py
sentences.py    what a person is told when the Hub fails
publication.py  publish a folder as a repository
pretrained.py   Seq2Seq and LanguageModel with from_pretrained, save_pretrained, push_to_hub
shelf.py        visitors' models, bounded
pins.py         which commits stand in for checkpoints that are not bundled
"""

from seqdemo.checkpoints.bundled import bundled_folder, shared_folder
from seqdemo.checkpoints.folder import Damaged, write_manifest
from seqdemo.checkpoints.library import Offer, load, look, names, stand_ins
from seqdemo.checkpoints.pretrained import LanguageModel, Seq2Seq
from seqdemo.checkpoints.publication import Published, push
from seqdemo.checkpoints.sentences import HubError
from seqdemo.checkpoints.shelf import Key, ModelShelf
from seqdemo.checkpoints.store import Checkpoint, save

__all__ = [
    "Checkpoint",
    "Damaged",
    "HubError",
    "Key",
    "LanguageModel",
    "ModelShelf",
    "Offer",
    "Published",
    "Seq2Seq",
    "bundled_folder",
    "load",
    "look",
    "names",
    "push",
    "save",
    "shared_folder",
    "stand_ins",
    "write_manifest",
]
