"""What comes with a request, read and checked: bodies, the parameters of an address, names of bandits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from litestar import Request

from rightarm import messages
from rightarm.service.problems import Refusal

T = TypeVar("T")
LARGEST = 1_000_000  # bytes of a body
DEEPEST = 32  # brackets within brackets
NAME = re.compile(messages.NAME)
STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)  # one that does not end too: looking again takes for ever
OTHERS = re.compile(rb"[^\[\]{}]+")
ZERO = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # which PostgreSQL's texts cannot have
OPENING = (91, 123)  # [ and {


def decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """A body as what it should be, or an error that says where it is not.

    >>> decoded(msgspec.json.Decoder(messages.Cancel), b'{"decision": 7}')
    Cancel(decision=7)
    """
    if body.count(b"[") + body.count(b"{") > DEEPEST and depth(body) > DEEPEST:
        raise Refusal(400, f"the body must not be nested more than {DEEPEST} deep")
    if b"\\u0000" in body and ZERO.search(body):
        raise Refusal(422, "texts must not have the character U+0000")
    return decoder.decode(body)


def depth(body: bytes) -> int:
    """How many brackets are open at most, outside texts.

    >>> depth(b'{"a": [1, "[[["]}')
    2
    """
    deepest = now = 0
    for bracket in OTHERS.sub(b"", STRINGS.sub(b"", body)):
        now += 1 if bracket in OPENING else -1
        deepest = max(deepest, now)
    return deepest


async def body_of(request: Request[Any, Any, Any], decoder: msgspec.json.Decoder[T]) -> T:
    """The body of a request that Litestar has taken."""
    return decoded(decoder, await request.body() or b"{}")


def query_of(given: Iterable[tuple[str, str]], kind: type[T]) -> T:
    """The parameters of an address, such as ``?arm=red&confidence=0.9``; unknown ones and repeated ones are errors."""
    found: dict[str, str] = {}
    for name, value in given:
        if name in found:
            raise Refusal(422, f"{name} must be given once", name)
        if "\0" in value:
            raise Refusal(422, f"{name} must not have the character U+0000", name)
        found[name] = value
    made = msgspec.convert(found, kind, strict=False)
    for name, value in msgspec.structs.asdict(made).items():  # type: ignore[arg-type]
        if isinstance(value, float) and not math.isfinite(value):
            raise Refusal(422, f"{name} must be a finite number, got {value}", name)
    return made


def check_name(name: str) -> str:
    """The name of a bandit, if it is one."""
    if not NAME.match(name) or name.endswith("\n"):
        raise Refusal(422, f"name must match {messages.NAME}, got {name!r:.120}", "name")
    return name


def arm_named(text: str, arms: Iterable[Any]) -> Any:
    """The arm that an address means, where all is text: one of that name, or the number that it writes."""
    return arms_by_text(arms).get(text, text)


def arms_by_text(arms: Iterable[Any]) -> Mapping[str, Any]:
    """Arms by how an address names them; a text goes before the number that it writes."""
    return {str(arm): arm for arm in sorted(arms, key=lambda arm: isinstance(arm, str))}
