"""Records -> figures. Interactive ones are the pages' own drawings, also in notebooks; all others are Plotly figures. No torch.

drawings: the pages' drawings of records             drawing: such a drawing as HTML; js: the scripts that draw
modules: scripts joined into one                     payloads: what the drawings draw; needs no Plotly
plots: grids of alignments                           lines: training logs; metrics, lengths: what figures draw of metrics
document: figures as one HTML file, no network       places: what is true at each place of a text
comparisons: several models side by side
labels: pieces as text that is safe to draw          look: what Plotly's figures share
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqdemo.lazy import on_demand
from seqdemo.moved import with_old_names

if TYPE_CHECKING:
    from seqdemo.figures.comparisons import beam_quality, search_errors
    from seqdemo.figures.document import page
    from seqdemo.figures.drawings import alignment, gates, photograph, probabilities, quality_by_length, text, tree
    from seqdemo.figures.lines import curves, learning
    from seqdemo.figures.plots import alignment_grid

_HOMES = {
    "alignment": "drawings",
    "alignment_grid": "plots",
    "beam_quality": "comparisons",
    "curves": "lines",
    "gates": "drawings",
    "learning": "lines",
    "page": "document",
    "photograph": "drawings",
    "probabilities": "drawings",
    "quality_by_length": "drawings",
    "search_errors": "comparisons",
    "text": "drawings",
    "tree": "drawings",
}

__all__ = [
    "alignment",
    "alignment_grid",
    "beam_quality",
    "curves",
    "gates",
    "learning",
    "page",
    "photograph",
    "probabilities",
    "quality_by_length",
    "search_errors",
    "text",
    "tree",
]


# Imported when they are first used: the app starts without Plotly, which is slow to import.
__getattr__ = with_old_names(
    __name__,
    on_demand(__name__, {name: f"{__name__}.{home}" for name, home in _HOMES.items()}),
    {"saturation": "seqdemo.figures:gates"},
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
