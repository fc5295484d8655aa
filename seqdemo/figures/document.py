"""Figures as one HTML file that needs no network and holds Plotly's script once."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

STYLE = """
:root { color-scheme: light }
body { font: 16px/1.5 system-ui, "Noto Sans", sans-serif; color: #1e293b; background: #fff }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.5rem }
section { overflow-x: auto }
"""

Section = tuple[str, str, go.Figure]  # heading, one plain sentence, figure


def _section(number: int, heading: str, sentence: str, figure: go.Figure) -> str:
    drawn = figure.to_html(full_html=False, include_plotlyjs=False, div_id=f"figure-{number}", config={"displaylogo": False})
    return f"<section><h2>{html.escape(heading)}</h2><p>{html.escape(sentence)}</p>{drawn}</section>"


def page(title: str, sections: Sequence[Section], before: str = "") -> str:
    """An HTML document; `before` is trusted HTML (a table, say) between the title and the figures."""
    body = "\n".join(_section(number, *section) for number, section in enumerate(sections))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><style>{STYLE}</style><script>{get_plotlyjs()}</script></head>
<body><h1>{html.escape(title)}</h1>{before}
{body}
</body></html>
"""
