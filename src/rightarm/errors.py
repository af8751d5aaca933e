"""Errors that say which field of a request is wrong, so that nobody has to find it in their text.

Both are what Python would raise: a `ValueError` or a `TypeError`. The field comes first in the text, and stands by
itself in ``field``; ``code`` is a short name of what is wrong, for programs.
"""

from __future__ import annotations


class WrongValue(ValueError):
    """A value that cannot be taken.

    >>> error = WrongValue("reward", "must be from 0 to 1, got 7.0", code="out_of_range")
    >>> print(error, error.field, error.code)
    reward must be from 0 to 1, got 7.0 reward out_of_range
    """

    def __init__(self, field: str, what: str, code: str = "invalid") -> None:
        super().__init__(f"{field} {what}")
        self.field = field
        self.code = code


class WrongType(TypeError):
    """A value of a type that cannot be taken."""

    def __init__(self, field: str, what: str, code: str = "type") -> None:
        super().__init__(f"{field} {what}")
        self.field = field
        self.code = code
