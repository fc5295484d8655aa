"""The one error whose text is shown to the person as it is."""


class InputError(ValueError):
    """Something the person gave cannot be used; the message says what and what to do."""


def shown(value: object, most: int = 80) -> str:
    """A value of unknown length as a sentence may quote it."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"
