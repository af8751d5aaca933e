"""Every error as a problem (RFC 9457): what is wrong, with which part of the request, and what is allowed."""

from __future__ import annotations

import http
import re
import sys
import traceback
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args, get_origin

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException

from rightarm import messages
from rightarm.store import Conflict, NotFound, Refused

MEDIA = "application/problem+json"
CHALLENGE = {"www-authenticate": 'Bearer realm="rightarm"'}
RETRY = {"retry-after": "1"}  # seconds
LONGEST = 2_000  # characters of a detail

STATUS_OF = {NotFound: 404, Conflict: 409}  # others mean that the store cannot answer now: 503
AT = re.compile(r" - at (?:the key of )?`\$?\.?(.*)`$")
UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
MISSING = re.compile(r"Object missing required field `([^`]*)`")
FIRST = re.compile(r"([a-z_]+)(?:\[[^\]]*\])? (?:must|is|needs|cannot) ")
FIELDS = frozenset(
    field.name
    for kind in vars(messages).values()
    if isinstance(kind, type) and issubclass(kind, messages.Message)
    for field in msgspec.structs.fields(kind)
) | {"context"}


class Refusal(Exception):
    """A request that is refused with this status."""

    def __init__(
        self, status: int, detail: str, field: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field, self.headers = status, detail, field, dict(headers or {})


class Wire(NamedTuple):
    """An answer as it goes to the client."""

    status: int
    headers: dict[str, str]
    body: bytes


def refusal_of(error: Exception) -> Refusal:
    """The refusal that an error is; one that nobody has thought of is our own fault, and its place goes to stderr.

    >>> refusal = refusal_of(ValueError("floor must be from 0 to 1, got 7.0"))
    >>> refusal.status, refusal.field
    (422, 'floor')
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, Refused):
        status = next((status for kind, status in STATUS_OF.items() if isinstance(error, kind)), 503)
        return Refusal(status, error.detail, error.field, RETRY if status == 503 else None)
    if isinstance(error, HTTPException) and error.status_code < 500:
        return Refusal(error.status_code, error.detail, None, error.headers)
    if isinstance(error, msgspec.ValidationError):
        place = _place(str(error))
        return Refusal(422, str(error) + _allowed(str(error), place), place)
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError | RecursionError):
        return Refusal(400, f"the body must be JSON in UTF-8: {error}")
    if isinstance(error, TimeoutError):
        return Refusal(503, "it took too long; try again", None, RETRY)
    if isinstance(error, ValueError | TypeError | OverflowError):
        found = FIRST.match(str(error))
        return Refusal(422, str(error), found[1] if found and found[1] in FIELDS else None)
    traceback.print_exception(error, file=sys.stderr)
    return Refusal(500, "this is a fault of the server; its log says more")


def _place(text: str) -> str | None:
    """The field that msgspec complains about.

    >>> _place("Expected `float`, got `str` - at `$.rewards[0].reward`"), _place("Object contains unknown field `x`")
    ('rewards[0].reward', 'x')
    """
    at, named = AT.search(text), UNKNOWN.search(text) or MISSING.search(text)
    parts = [part for part in (at and at[1], named and named[1]) if part]
    return ".".join(parts) or None


def _allowed(text: str, place: str | None) -> str:
    """The values that a field can have, where it has one of a few and got another one.

    >>> _allowed("Invalid enum value 'stopped' - at `$.status`", "status")
    "; it must be one of 'running', 'paused', 'archived'"
    """
    name = (place or "").rpartition(".")[2]
    if not text.startswith("Invalid enum value"):
        return ""
    types = [
        field.type
        for kind in messages.Message.__subclasses__()
        for field in msgspec.structs.fields(kind)
        if field.name == name
    ]
    known = {
        value: None
        for one in types
        for part in (one, *get_args(one))
        if get_origin(part) is Literal
        for value in get_args(part)
    }
    return f"; it must be one of {', '.join(map(repr, known))}" if known else ""


def phrase(status: int) -> str:
    """What a status means.

    >>> phrase(404)
    'Not Found'
    """
    return http.HTTPStatus(status).phrase


def wire(error: Exception) -> Wire:
    """An error as it goes to the client."""
    refusal = refusal_of(error)
    title = phrase(refusal.status)
    detail = refusal.detail if len(refusal.detail) <= LONGEST else refusal.detail[:LONGEST] + " …"
    problem = messages.Problem(
        type="about:blank", title=title, status=refusal.status, detail=detail or title, field=refusal.field
    )
    headers = refusal.headers | (CHALLENGE if refusal.status in (401, 403) else {})
    return Wire(refusal.status, headers, _encoded(problem))


def _encoded(problem: messages.Problem) -> bytes:
    """JSON; texts with halves of a pair of surrogates, which UTF-8 has not, have question marks there."""
    try:
        return msgspec.json.encode(problem)
    except UnicodeEncodeError:
        whole = msgspec.structs.asdict(problem)
        for name in ("detail", "field"):
            whole[name] = whole[name] and whole[name].encode(errors="replace").decode()
        return msgspec.json.encode(whole)


def handler(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """What Litestar calls for an error."""
    found = wire(error)
    return Response(found.body, status_code=found.status, headers=found.headers, media_type=MEDIA)
