"""The one error whose text is shown to the person as it is."""


class InputError(ValueError):
    """Something the person gave cannot be used; the message says what and what to do."""
