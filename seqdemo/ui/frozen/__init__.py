"""Worked results the pages open with, one file a task; `python -m seqdemo.ui.freeze` writes them."""
