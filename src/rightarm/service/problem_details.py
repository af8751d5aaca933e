"""Errors as HTTP sends them (RFC 9457, problem details): what is wrong, with which part of the request."""

from __future__ import annotations

import http
import re
import sys
import traceback
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args, get_origin

import msgspec

from rightarm import messages
from rightarm.errors import WrongType, WrongValue
from rightarm.store import Conflict, Missing, Refused

MEDIA = "application/problem+json"
TYPE = "urn:rightarm:problem:"  # and the code
CHALLENGE = {"www-authenticate": 'Bearer realm="rightarm"'}
RETRY = {"retry-after": "1"}  # seconds
LONGEST = 2_000  # characters of a detail

STATUS_OF: dict[type[Refused], int] = {Missing: 404, Conflict: 409}  # others mean that the store cannot answer now: 503
CODES = {
    400: "malformed",
    401: "no_token",
    403: "not_allowed",
    404: "not_found",
    405: "wrong_method",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    421: "wrong_host",
    422: "invalid",
    429: "too_many_requests",
    431: "too_large",
    500: "fault",
    503: "unavailable",
}
"""The code of a problem by its status, where the error does not have one that says more."""

# What msgspec says of a body, which has no other way to say where it is wrong.
AT = re.compile(r" - at (?:the key of )?`\$?\.?(.*)`$")
UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
MISSING = re.compile(r"Object missing required field `([^`]*)`")
ENUM = "Invalid enum value"


class Refusal(Exception):
    """A request that is refused with this status."""

    def __init__(
        self,
        status: int,
        detail: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field
        self.headers = dict(headers or {})
        self.code = CODES[status] if code is None else code


class Response(NamedTuple):
    """An answer as it goes to the client, as a whole or in parts."""

    body: bytes | AsyncIterator[bytes]
    status: int = 200
    media: str = "application/json"
    headers: Mapping[str, str] = MappingProxyType({})


def refusal_of(error: Exception) -> Refusal:
    """Return the refusal that an error is; one that nobody has thought of is our fault, and goes to stderr.

    >>> refusal = refusal_of(WrongValue("floor", "must be from 0 to 1, got 7.0", code="out_of_range"))
    >>> refusal.status, refusal.field, refusal.code
    (422, 'floor', 'out_of_range')
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, Refused):
        status = next((status for kind, status in STATUS_OF.items() if isinstance(error, kind)), 503)
        return Refusal(status, error.detail, error.field, RETRY if status == 503 else None, error.code)
    if isinstance(error, WrongValue | WrongType):
        return Refusal(422, str(error), error.field, code=error.code)
    if isinstance(error, msgspec.ValidationError):
        return _of_message(str(error))
    if isinstance(error, msgspec.DecodeError | UnicodeDecodeError | RecursionError):
        return Refusal(400, f"the body must be JSON in UTF-8: {error}")
    if isinstance(error, TimeoutError):
        return Refusal(503, "it took too long; try again", None, RETRY)
    if isinstance(error, ValueError | TypeError | OverflowError):
        return Refusal(422, str(error))
    traceback.print_exception(error, file=sys.stderr)
    return Refusal(500, "this is a fault of the server; its log says more")


def _of_message(text: str) -> Refusal:
    """Return the refusal of a body that is JSON, but not of the right form.

    >>> found = _of_message("Expected `float`, got `str` - at `$.rewards[0].reward`")
    >>> found.field, found.code
    ('rewards[0].reward', 'wrong_type')
    """
    at = AT.search(text)
    unknown = UNKNOWN.search(text)
    missing = MISSING.search(text)
    named = unknown or missing
    field = ".".join(part for part in (at and at[1], named and named[1]) if part) or None
    if named:
        code = "unknown_field" if unknown else "missing_field"
    elif text.startswith(ENUM):
        code = "unknown_choice"
        text += _allowed(field or "")
    else:
        code = "wrong_type" if ", got `" in text else "invalid"
    return Refusal(422, text, field, code=code)


def _allowed(field: str) -> str:
    """Return a text that lists the values of a field that has one of a few.

    >>> _allowed("status")
    "; it must be one of 'running', 'paused', 'archived'"
    """
    name = field.rpartition(".")[2]
    fields = [each for kind in messages.Message.__subclasses__() for each in msgspec.structs.fields(kind)]
    types = [part for each in fields if each.name == name for part in (each.type, *get_args(each.type))]
    choices = [repr(value) for part in types if get_origin(part) is Literal for value in get_args(part)]
    return f"; it must be one of {', '.join(dict.fromkeys(choices))}" if choices else ""


def reply_to(error: Exception) -> Response:
    """Return the problem that an error is, as it goes to the client."""
    refusal = refusal_of(error)
    title = http.HTTPStatus(refusal.status).phrase
    detail = refusal.detail if len(refusal.detail) <= LONGEST else refusal.detail[:LONGEST] + " …"
    problem = messages.ProblemDetails(
        type=TYPE + refusal.code,
        title=title,
        status=refusal.status,
        detail=_whole(detail) or title,
        code=refusal.code,
        field=refusal.field and _whole(refusal.field),
    )
    headers = refusal.headers | (CHALLENGE if refusal.status in (401, 403) else {})
    return Response(msgspec.json.encode(problem), refusal.status, MEDIA, headers)


def _whole(text: str) -> str:
    """Return a text with question marks for halves of a pair of surrogates, which UTF-8 does not have."""
    return text.encode(errors="replace").decode()
