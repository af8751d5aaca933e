"""Why a store refuses something; a service answers each with a status of its own."""

from __future__ import annotations


class Refused(Exception):
    """Something that was asked of a store could not be done, and nothing has changed."""

    code = "refused"

    def __init__(self, detail: str, field: str | None = None, code: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field
        if code is not None:
            self.code = code


class NotFound(Refused):
    """There is no such bandit or decision."""


class Conflict(Refused):
    """It contradicts what is there already."""


class Unavailable(Refused):
    """The database does not answer, or its disk is full: whether anything was written is not known."""


class Damaged(Refused):
    """What the database holds is not what was written to it."""
