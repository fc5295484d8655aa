"""Measurements of a checkpoint: outputs, metrics, comparisons, where attention looks, what units track."""
