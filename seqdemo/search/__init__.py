"""Searches of every kind: step function -> tree and hypotheses. A search uses nothing else of a model.

rules      what may be said next: minimum length, no repeats, forced and banned tokens and more
require    the rule that some words must stand somewhere in the output
hypotheses the hypotheses a search holds, its candidates, their scores; from the steps of a walk to SearchTree
beam       what a finished hypothesis does to the beam: Stay, Free, Leave; a top-k that settles ties
diverse    beams ranked otherwise: groups, siblings, samples without replacement
sampling   temperature, top-k, top-p, typical, min-p
walk       search: which of these a strategy stands for, and the loop that they share
exact      branch and bound with a certificate
frontier   what it has open, and the tree it grows
lockstep   such searches of many sentences, sharing the model's steps
compare    whether a beam missed what exact search found

Dimensions: B sentences, W slots a sentence, K = B * W rows of the model, C candidates a sentence, V vocabulary.
"""

from __future__ import annotations

from seqdemo.search.compare import error_between
from seqdemo.search.hypotheses import SearchResult
from seqdemo.search.lockstep import UNDER_WAY
from seqdemo.search.require import NEVER, Required
from seqdemo.search.rules import Rule
from seqdemo.search.walk import search, word_rules

__all__ = ["NEVER", "UNDER_WAY", "Required", "Rule", "SearchResult", "error_between", "search", "word_rules"]
