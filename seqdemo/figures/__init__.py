"""Records -> figures. Plotly for notebooks, reports, exports and pages; compact payloads for the page's own components. No torch.

plots: one trace (alignment, gates, saturation, probabilities)      trees: a search
curves: training logs and metrics                                    page: figures as one HTML file that needs no network
labels: pieces as text that is safe to draw                          look: what all figures share
"""

from seqdemo.figures.curves import beam_quality, curves, learning, quality_by_length, search_errors
from seqdemo.figures.page import page
from seqdemo.figures.plots import alignment, alignment_grid, gates, probabilities, saturation
from seqdemo.figures.trees import tree

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
