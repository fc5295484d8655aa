"""seqdemo: recurrent encoder-decoders one can watch decode."""

__version__ = "0.1.0"
