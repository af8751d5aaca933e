"""Why a store refuses something; a service answers each with a status of its own."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """Something that was asked of a store could not be done, and nothing has changed.

    ``field`` is the part of the request that is wrong, if it is one; ``code`` a short name of what is wrong, for
    programs.

    >>> error = Conflict("key must be a new one for another request, got 'k' again", "key", code="key_taken")
    >>> error.field, error.code, NotFound("there is no bandit home", "name").code
    ('key', 'key_taken', 'not_found')
    """

    code = "refused"

    def __init__(self, detail: str, field: str | None = None, code: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.code = type(self).code if code is None else code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.detail, self.field, self.code)


class NotFound(Refused):
    """There is no such bandit or decision."""

    code = "not_found"


class Conflict(Refused):
    """It contradicts what is there already."""

    code = "conflict"


class Unavailable(Refused):
    """The database does not answer, or its disk is full: whether anything was written is not known."""

    code = "unavailable"


class Damaged(Refused):
    """What the database holds is not what was written to it."""

    code = "damaged"
