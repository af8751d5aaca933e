"""What a route is, besides the function that answers: the scope that it needs, and the types that go in and out."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

JSON = "application/json"
OPT = "operation"


class Operation(NamedTuple):
    """What OpenAPI says of a route, and what access looks at."""

    scope: str | None
    """Which scope a token needs; None if nobody needs a token."""
    answer: Any = None
    """The type of the answer; None if it is not JSON of one type."""
    body: Any = None
    query: type[msgspec.Struct] | None = None
    media: str | tuple[str, ...] = JSON
    """What answers are, or all that they can be."""
    made: bool = False
    """Whether something new is answered by 201."""
    conflicts: bool = False
    """Whether 409 is possible."""
    words: str | None = None
    """What it does; the docstring of the function unless given."""


def operation(scope: str | None, answer: Any = None, **more: Any) -> dict[str, Any]:
    """The ``opt`` of a Litestar handler."""
    return {OPT: Operation(scope, answer, **more)}
