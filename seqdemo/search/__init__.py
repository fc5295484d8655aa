"""Greedy, beam, sampling and exact search: step function -> tree and hypotheses. Search knows nothing else of a model.

ranking    a top-k that settles ties; the score of a hypothesis (length penalty, coverage)
slots      the hypotheses a search holds, the candidates it sees, the choice it makes
beam       what a finished hypothesis does to the beam: Stay, Free
sampling   temperature, top-k, top-p
walk       the loop that these share: step, mask, choose, move the state
recording  from the turns of a walk to SearchTree and Hypothesis
exact      branch and bound with a certificate
frontier   what it has open, and the tree it grows
lockstep   such searches of many sentences, sharing the model's steps

Dimensions: B sentences, W slots a sentence, K = B * W rows of the model, C candidates a sentence, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from seqdemo.config import BOS, EOS, SearchOptions
from seqdemo.errors import InputError
from seqdemo.records import SearchError
from seqdemo.search.beam import Free, Stay
from seqdemo.search.exact import ExactSearch, Progress
from seqdemo.search.frontier import Held
from seqdemo.search.lockstep import UNDER_WAY, coverage_of, run_together
from seqdemo.search.ranking import Scoring
from seqdemo.search.recording import Found, assemble
from seqdemo.search.sampling import Sample
from seqdemo.search.slots import Rule
from seqdemo.search.walk import Cancel, StepFunction, Walk
from seqdemo.state import select

__all__ = ["UNDER_WAY", "Found", "search", "search_error"]

BESIDE = 10  # candidates recorded a step by greedy search and beside each sample
MANY_SAMPLES = 10  # beyond so many samples, the tree shows only
BESIDE_MANY = 2
SAME = 1e-5  # scores computed in batches of different shapes may differ by this much times 1 + |score|


@torch.inference_mode()
def search(
    step: StepFunction,
    state: Any,
    sentences: int,
    options: SearchOptions,
    limits: Sequence[int],
    *,
    bos: int = BOS,
    eos: int = EOS,
    given: Sequence[Sequence[int]] = (),
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    record: bool = True,
) -> list[Found]:
    """Search each sentence of a batch, which gives what searching it alone does.

    `step(tokens_K, state) -> (logp_KV, state)`; `state` has one row a sentence; `limits` are the most tokens each output
    may have, <eos> included. `given` are the tokens that stand before each output: of one that has any the state must have
    read <bos> and all but the last; none of their n-grams comes again where none may be repeated.
    `cancel()` is asked at every step; when it says so, the search ends as at the limit. Exact search calls
    `progress(expansions, best, bound)`, of whichever sentence it has just taken a step in: the best score so far, and the
    score that nothing open can exceed. Without `record` the trees are empty. What each search does with a finished
    hypothesis, when it stops and what comes back: see `Stay`, `Free`, `Sample` and `ExactSearch`.
    """
    limits = usable_limits(sentences, options, limits)
    scoring = Scoring.of(options, state)
    if not sentences:
        return []
    texts = [tuple(text) for text in given] or [()] * sentences
    if options.strategy == "exact":
        start = Held(state, sentences, 1, coverage_of(scoring, state))
        told: dict[str, Any] = {"bos": bos, "eos": eos, "progress": progress, "cancel": cancel, "record": record}
        searches = (
            ExactSearch(start, sentence, options, scoring, limit, given=text, **told)
            for sentence, (limit, text) in enumerate(zip(limits, texts))
        )
        found = run_together(step, searches, scoring)
    else:
        found = walk(step, state, options, scoring, limits, bos, eos, texts, cancel, record)
    return [replace(one, options=options, limit=limit) for one, limit in zip(found, limits)]


def walk(
    step: StepFunction,
    state: Any,
    options: SearchOptions,
    scoring: Scoring,
    limits: Sequence[int],
    bos: int,
    eos: int,
    given: Sequence[Sequence[int]],
    cancel: Cancel | None,
    record: bool,
) -> list[Found]:
    rule = rule_for(options, limits, scoring, eos, record)
    if options.strategy == "sample":
        state = select(state, torch.arange(len(limits)).repeat_interleave(options.samples))
    walked = Walk(step, state, rule, options, scoring, limits, bos=bos, eos=eos, given=given, cancel=cancel).run()
    return assemble(walked, rule, eos, options.samples if options.strategy == "sample" else options.nbest, record)


def rule_for(options: SearchOptions, limits: Sequence[int], scoring: Scoring, eos: int, record: bool) -> Rule:
    sentences = len(limits)
    if options.strategy == "greedy":
        return Stay(sentences, 1, BESIDE, scoring, eos)
    if options.strategy == "sample":
        beside = BESIDE if options.samples <= MANY_SAMPLES else BESIDE_MANY
        return Sample(sentences, options, max(limits), beside if record else 0, scoring, eos)
    if options.finished == "free":
        return Free(torch.tensor(limits), options.beam, options.early, scoring, eos)
    return Stay(sentences, options.beam, 2 * options.beam, scoring, eos)


def usable_limits(sentences: int, options: SearchOptions, limits: Sequence[int]) -> list[int]:
    if len(limits) != sentences:
        raise InputError(f"Give one length limit a sentence: {len(limits)} limits for {sentences} sentences.")
    least = options.min_length + 1
    usable = [min(limit, options.max_length or limit) for limit in limits]
    if usable and min(usable) < least:
        raise InputError(
            f"A limit of {min(usable)} tokens leaves no room for a minimum length of {options.min_length} and the end; "
            f"allow at least {least}."
        )
    return usable


def search_error(exact: Found, beam: Found) -> SearchError:
    """Whether the beam missed the best output. Both must have been searched with the same options but for the strategy."""
    if exact.certificate is None:
        raise InputError("Only exact search can tell whether a beam made a search error; run it on the same input.")
    if exact.options and beam.options and terms(exact.options, exact.limit) != terms(beam.options, beam.limit):
        raise InputError("These searches differ in more than the strategy, so their scores say nothing of each other.")
    if not exact.complete(exact.hypotheses[0]):
        return SearchError(None, None, f"Not known: {lower_first(exact.certificate.sentence)}")
    if not beam.hypotheses or not beam.complete(beam.hypotheses[0]):
        return SearchError(None, None, "Not known: the beam broke off before an output was complete.")
    gap = exact.hypotheses[0].score - beam.hypotheses[0].score
    same = SAME * (1 + abs(exact.hypotheses[0].score))
    if gap > same:
        return SearchError(True, gap, f"Search error: exact search found an output that scores {gap:.4f} higher.")
    if gap < -same and exact.certificate.proved:
        raise InputError("These searches differ in their input or their edits, so their scores say nothing of each other.")
    if exact.certificate.proved:
        return SearchError(False, gap, "No search error: the beam found the best output there is.")
    return SearchError(None, gap, f"Not known: the beam was not beaten, but {lower_first(exact.certificate.sentence)}")


def terms(options: SearchOptions, limit: int) -> tuple[object, ...]:
    """What decides which outputs are allowed and how they are scored."""
    alpha = options.alpha if options.length_norm != "none" else None
    allowed = (options.min_length, limit, options.at_limit, options.no_repeat)
    return (options.length_norm, alpha, options.coverage, *allowed)


def lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
