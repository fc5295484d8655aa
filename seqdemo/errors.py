"""The one kind of error whose text is shown to the user unchanged."""

import re

# Control characters, direction marks and halves of characters: a terminal acts on some of them, and halves cannot be written to
# a file.
UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"  # they shape Indic and Arabic letters and count as letters


class InputError(ValueError):
    """The user's input cannot be used. The message says why and what to do; it may quote text of strangers."""

    def __init__(self, message: str) -> None:
        super().__init__(harmless(message))


def harmless(text: str) -> str:
    """The text, with codes in place of control characters and the like."""
    return UNSHOWN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shown(value: object, most: int = 80) -> str:
    """A value as a sentence can quote it, cut if it is long."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def not_installed(error: ModuleNotFoundError, remedy: str) -> str:
    """A sentence on a package that is missing; a missing module of our own is an error in the code and is raised again."""
    if (error.name or "").partition(".")[0] in ("", "seqdemo", "training"):
        raise error
    return f"{error.name} is not installed for this Python; {remedy}"
