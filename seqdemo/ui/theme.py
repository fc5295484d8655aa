"""Colours and type for the parts Gradio draws itself; the pages' own colours stand in css/base.css."""

from __future__ import annotations

import gradio as gr

FONTS = (
    "Segoe UI",
    "Noto Sans",
    "system-ui",
    "-apple-system",
    "Roboto",
    "Noto Sans Devanagari",
    "Noto Naskh Arabic",
    "sans-serif",
)
MONO = ("ui-monospace", "SF Mono", "Menlo", "Consolas", "Noto Sans Mono", "DejaVu Sans Mono", "monospace")


def theme() -> gr.themes.Base:
    return gr.themes.Base(primary_hue="blue", neutral_hue="slate", font=FONTS, font_mono=MONO).set(
        body_background_fill="#f5f6f8",
        body_background_fill_dark="#0d1117",
        body_text_color="#18202b",
        body_text_color_dark="#e6eaf0",
        body_text_color_subdued="#55606e",
        body_text_color_subdued_dark="#a3afbe",
        background_fill_primary="#ffffff",
        background_fill_primary_dark="#151a23",
        block_background_fill="transparent",
        block_background_fill_dark="transparent",
        block_border_width="0px",
        block_shadow="none",
    )
