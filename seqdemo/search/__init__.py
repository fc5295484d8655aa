"""Searches of every kind: step function -> tree and hypotheses. A search uses nothing else of a model.

rules      what may be said next: minimum length, no repeats, forced, banned and required tokens and more
hypotheses the hypotheses a search holds, and its candidates; from the steps of a walk to SearchTree
beam       what a finished hypothesis does to the beam: Stay, Free, Leave; beams ranked otherwise: groups, siblings, samples
           without replacement
sampling   temperature, top-k, top-p, typical, min-p
walk       search: which of these a strategy stands for, and the loop that they share
exact      branch and bound with a certificate, of many sentences at once
frontier   what it has open, and the tree it grows
compare    whether a beam missed what exact search found

Dimensions: B sentences, W slots per sentence, K = B * W rows of the model, C candidates per sentence, V vocabulary.
"""

from __future__ import annotations

from seqdemo.lazy import on_demand
from seqdemo.moved import with_old_names
from seqdemo.records import SearchResult
from seqdemo.search.compare import error_between
from seqdemo.search.exact import UNDER_WAY
from seqdemo.search.rules import NEVER, Required, Rule
from seqdemo.search.walk import search, word_rules

__all__ = ["NEVER", "UNDER_WAY", "Required", "Rule", "SearchResult", "error_between", "search", "word_rules"]
__getattr__ = with_old_names(
    __name__, on_demand(__name__, {}), {"Found": "seqdemo.search:SearchResult", "search_error": "seqdemo.search:error_between"}
)
