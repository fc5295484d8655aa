"""Records -> figures. Plotly for notebooks, reports, exports and pages; compact payloads for the page's own components. No torch.

plots: one trace (alignment, gates, saturation, probabilities)      trees: a search
lines: training logs and metrics                                     document: figures as one HTML file that needs no network
labels: pieces as text that is safe to draw                          look: what all figures share
payloads: what the app's pages draw themselves; needs no Plotly
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqdemo.figures.document import page
    from seqdemo.figures.lines import beam_quality, curves, learning, quality_by_length, search_errors
    from seqdemo.figures.plots import alignment, alignment_grid, gates, probabilities, saturation
    from seqdemo.figures.trees import tree

_HOMES = {
    "alignment": "plots",
    "alignment_grid": "plots",
    "beam_quality": "lines",
    "curves": "lines",
    "gates": "plots",
    "learning": "lines",
    "page": "document",
    "probabilities": "plots",
    "quality_by_length": "lines",
    "saturation": "plots",
    "search_errors": "lines",
    "tree": "trees",
}

__all__ = [
    "alignment",
    "alignment_grid",
    "beam_quality",
    "curves",
    "gates",
    "learning",
    "page",
    "probabilities",
    "quality_by_length",
    "saturation",
    "search_errors",
    "tree",
]


def __getattr__(name: str) -> Any:
    """A figure arrives with its module when it is first asked for: the app starts without Plotly, which is slow to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"seqdemo.figures.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
