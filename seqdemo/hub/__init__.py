"""Models by name, and the Hub: load, look, publish, and a sentence for each way in which the Hub can fail.

places.py        which folder or repository a name refers to
loading.py       load: from a folder, from the Hub's cache, or downloaded
cache.py         the Hub's cache on disk
asking.py        the Hub is asked by a child process, in which run:
  wire.py          the Hub's client, made careful; failures by kind
  download.py      look, download
  upload.py        one commit or none
faults.py        the sentence for every kind of failure
publication.py   publish a folder as a repository
visitors.py      the models that visitors of the app named, bounded
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqdemo.lazy import on_demand

if TYPE_CHECKING:
    from seqdemo.hub.faults import HubError
    from seqdemo.hub.loading import LanguageModel, Offer, Seq2Seq, load, look, stand_ins
    from seqdemo.hub.places import names
    from seqdemo.hub.publication import Published, push
    from seqdemo.hub.visitors import Key, VisitorModels

_HOMES = {
    "faults": ("HubError",),
    "loading": ("LanguageModel", "Offer", "Seq2Seq", "load", "look", "stand_ins"),
    "places": ("names",),
    "publication": ("Published", "push"),
    "visitors": ("Key", "VisitorModels"),
}
__all__ = [
    "HubError", "Key", "LanguageModel", "Offer", "Published", "Seq2Seq", "VisitorModels", "load", "look", "names", "push",
    "stand_ins",
]  # fmt: skip
__getattr__ = on_demand(__name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names})
