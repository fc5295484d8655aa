"""Checkpoints: save, list, load (bundled, from the Hub's cache, from the Hub, from a folder), and nothing trusted on the way."""

from seqdemo.checkpoints.folder import Damaged, write_manifest
from seqdemo.checkpoints.library import load, names
from seqdemo.checkpoints.store import Checkpoint, save

__all__ = ["Checkpoint", "Damaged", "load", "names", "save", "write_manifest"]
