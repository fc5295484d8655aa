"""Whether a beam missed the best output, judged by an exact search."""

from __future__ import annotations

from seqdemo.config import TOLERANCE, SearchOptions
from seqdemo.errors import InputError
from seqdemo.records import SearchError, SearchResult
from seqdemo.search.rules import RULES


def error_between(exact: SearchResult, beam: SearchResult, tolerance: float = TOLERANCE["float32"]) -> SearchError:
    """Whether the beam missed the best output. Both searches must have the same options except for the strategy. Scores computed
    in batches of different shapes may differ by `tolerance` x (1 + |score|)."""
    if exact.certificate is None:
        raise InputError("Only exact search can tell whether a beam made a search error; run it on the same input.")
    if exact.options and beam.options and terms(exact.options, exact.limit) != terms(beam.options, beam.limit):
        raise InputError("These searches differ in more than the strategy, so their scores cannot be compared.")
    if not exact.complete(exact.hypotheses[0]):
        return SearchError(None, None, f"Not known: {lower_first(exact.certificate.sentence)}")
    if not beam.hypotheses or not beam.complete(beam.hypotheses[0]):
        return SearchError(None, None, "Not known: the beam broke off before an output was complete.")
    gap = exact.hypotheses[0].score - beam.hypotheses[0].score
    same = tolerance * (1 + abs(exact.hypotheses[0].score))
    if gap > same:
        return SearchError(True, gap, f"Search error: exact search found an output that scores {gap:.4f} higher.")
    if gap < -same and exact.certificate.proved:
        raise InputError("These searches differ in their input or their edits, so their scores cannot be compared.")
    if exact.certificate.proved:
        return SearchError(False, gap, "No search error: the beam found the best output there is.")
    return SearchError(None, gap, f"Not known: nothing better was found, but {lower_first(exact.certificate.sentence)}")


def terms(options: SearchOptions, limit: int) -> tuple[object, ...]:
    """The options that decide which outputs are allowed and how they are scored."""
    alpha = options.alpha if options.length_norm != "none" else None
    ruled = (getattr(options, name, None) for name in RULES)
    allowed = (limit, *ruled, options.may_repeat if options.no_repeat else ())
    paid = (options.groups, options.diversity if options.groups > 1 else 0.0, options.siblings, options.strategy == "stochastic")
    return (options.length_norm, alpha, options.coverage, *paid, *allowed)


def lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
