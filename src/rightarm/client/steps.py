"""How a verb talks to a service, written once for programs that wait and for programs that await.

A verb is a generator: it yields requests, gets the bodies of their answers, and returns what it found out. `patiently`
puts the retries around it, as a generator too, which yields requests and pauses. So a carrier need only know how to
send one request and how to sleep: `carriers` has one that blocks and one that awaits.
"""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Generator
from dataclasses import is_dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec

from rightarm.client.errors import Unreachable, error_for
from rightarm.messages import result

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between tries, where the service does not say
LONGEST_WAIT = 60.0  # seconds; a service that wants more is as good as not there
BUSY = (429, 502, 503, 504)  # 502 and 504: of what stands before a service that starts again

R = TypeVar("R", covariant=True)
T = TypeVar("T")


class Sending(NamedTuple):
    """A request, all of which may be sent twice: it carries a key where it would not be the same the second time."""

    method: str
    path: str
    body: bytes | None = None
    query: tuple[tuple[str, str], ...] = ()


class Known(NamedTuple):
    """An operation of the service, as its OpenAPI document describes it."""

    verb: str
    path: str
    query: frozenset[str]
    """The fields that go into the address; others are the body, or parts of the path."""


class Reply(NamedTuple):
    """An answer."""

    status: int
    content: bytes
    retry_after: str | None = None


class Lost(NamedTuple):
    """No answer came."""

    reason: str


Steps = Generator[Sending, bytes, R]
Patient = Generator[Sending | float, Reply | Lost | None, R]


def patiently(steps: Steps[T], retries: int, chance: random.Random) -> Patient[T]:
    """Try every request of a verb again if no answer comes or the service is busy; yields requests and pauses."""
    content: Any = None  # the first thing that a generator is sent
    while True:
        try:
            request = steps.send(content)
        except StopIteration as done:
            found: T = done.value
            return found
        content = yield from _answer(request, retries, chance)


def _answer(request: Sending, retries: int, chance: random.Random) -> Patient[bytes]:
    """Return the body of the answer to one request.

    Pauses are random, up to twice as long each time, so that clients that failed together do not come back together;
    they come after what the service asks for.
    """
    for attempt in range(retries + 1):
        reply = yield request
        if isinstance(reply, Reply) and reply.status < 300:
            return reply.content
        if isinstance(reply, Reply) and reply.status not in BUSY:
            raise error_for(reply.status, reply.content)
        least = _seconds(reply.retry_after) if isinstance(reply, Reply) else 0.0
        if attempt == retries or least > LONGEST_WAIT:
            break
        yield least + chance.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempt))
    if isinstance(reply, Reply):
        raise error_for(reply.status, reply.content)
    tried = f"{request.method} {request.path}, tried {attempt + 1} times"
    raise Unreachable(f"the service did not answer {tried}: {reply and reply.reason}")


def _seconds(retry_after: str | None) -> float:
    """Read the header Retry-After, seconds or a date; 0 where it says nothing that can be read."""
    if retry_after is None:
        return 0.0
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return 0.0


def read(content: bytes, kind: Any) -> Any:
    """Return an answer as a message of that kind, or as a result of the library such as a `Difference`."""
    try:
        return result(content, kind) if is_dataclass(kind) else msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise Unreachable(f"the answer is none of a decision service: {error}, got {content[:80]!r}") from None
