"""Requests to a service: what is sent, when it is sent again, how answers are read, and the errors that come back."""

from __future__ import annotations

import email.utils
import json
import random
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from rightarm.bandit.ledger import whole_id
from rightarm.estimators import Estimator
from rightarm.logs.events import Decision
from rightarm.messages import Arm, Message, ProblemDetails, result
from rightarm.policies.policy import Policy


class ServiceError(Exception):
    """The service refused a request, or did not answer."""

    def __init__(
        self, detail: str, status: int | None = None, field: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(detail if status is None else f"{detail} (status {status})")
        self.detail = detail
        self.status = status
        self.field = field
        self.code = code


class RefusedByService(ServiceError, ValueError):
    """The request is wrong, or does not fit what happened before."""


class NotFound(ServiceError, LookupError):
    """The service has no such bandit, or no such decision."""


class NotAllowed(ServiceError, PermissionError):
    """The token is missing, unknown or revoked, or is not good for this."""


class Unreachable(ServiceError, ConnectionError):
    """The service does not answer, or cannot at the moment; what was asked may have happened or not."""


def error_for(status: int, content: bytes) -> ServiceError:
    """Return the exception for an answer that is no success; its text is the ``detail`` of the problem (RFC 9457)."""
    try:
        problem = msgspec.json.decode(content, type=ProblemDetails)
    except msgspec.DecodeError:  # something between here and the service answered
        return _kind(status)(content[:200].decode(errors="replace").strip() or "an answer without a text", status)
    return _kind(status)(problem.detail, status, problem.field, problem.code)


def _kind(status: int) -> type[ServiceError]:
    if status == 404:
        return NotFound
    if status in (401, 403):
        return NotAllowed
    return RefusedByService if 400 <= status < 500 and status != 429 else Unreachable


# A verb is a generator: it yields requests, gets the bodies of their answers, and returns its result. `with_retries`
# puts the retries around it, as a generator too, which yields requests and pauses. So `transport` need only know how to
# send one request and how to sleep: it has a client that blocks and one that awaits.

FIRST_PAUSE = 0.1  # seconds before the second try, where the service does not say
LONGEST_PAUSE = 5.0  # seconds between tries
LONGEST_WAIT = 60.0  # seconds; a service that wants more is as good as not there
BUSY = (429, 502, 503, 504)  # 502 and 504: of what stands before a service that starts again

R = TypeVar("R", covariant=True)
T = TypeVar("T")


class ServiceRequest(NamedTuple):
    """A request, all of which may be sent twice: it carries a key where it would not be the same the second time."""

    method: str
    path: str
    body: bytes | None = None
    query: tuple[tuple[str, str], ...] = ()


class RemoteOperation(NamedTuple):
    """An operation of the service, as its OpenAPI document describes it."""

    verb: str
    path: str
    query: frozenset[str]
    """The fields that go into the address; others are the body, or parts of the path."""


class Reply(NamedTuple):
    """The status and the body of an answer."""

    status: int
    content: bytes
    retry_after: str | None = None


class Lost(NamedTuple):
    """A request to which no answer came."""

    reason: str


Steps = Generator[ServiceRequest, bytes, R]
Patient = Generator[ServiceRequest | float, Reply | Lost | None, R]


def with_retries(steps: Steps[T], retries: int, chance: random.Random) -> Patient[T]:
    """Try every request of a verb again if no answer comes or the service is busy; yields requests and pauses."""
    content: bytes = None  # type: ignore[assignment]  # the first thing that a generator is sent
    while True:
        try:
            request = steps.send(content)
        except StopIteration as done:
            found: T = done.value
            return found
        content = yield from _answer(request, retries, chance)


def _answer(request: ServiceRequest, retries: int, chance: random.Random) -> Patient[bytes]:
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


def read(content: bytes, kind: type[T]) -> T:
    """Return an answer as a message of that kind, or as a result of the library such as a `Difference`."""
    try:
        return result(content, kind) if is_dataclass(kind) else msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise Unreachable(f"the answer is none of a decision service: {error}, got {content[:80]!r}") from None


def send(method: str, path: str, message: Message | dict[str, object]) -> ServiceRequest:
    """Return a request with a message."""
    plain = msgspec.to_builtins(message, enc_hook=_plain, str_keys=True)
    return ServiceRequest(method, path, json.dumps(plain, allow_nan=False).encode())  # msgspec would write NaN as null


def get(path: str, **query: str | float | None) -> ServiceRequest:
    """Return a request for something to read."""
    return ServiceRequest(
        "GET", path, query=tuple((name, str(value)) for name, value in query.items() if value is not None)
    )


def operations_of(document: bytes) -> dict[str, RemoteOperation]:
    """Read the OpenAPI document of a service: its operations, by their names."""
    found = {}
    for path, verbs in msgspec.json.decode(document)["paths"].items():
        for verb, entry in verbs.items():
            query = frozenset(each["name"] for each in entry["parameters"] if each["in"] == "query")
            found[entry["operationId"]] = RemoteOperation(verb.upper(), path, query)
    return found


def call(operations: dict[str, RemoteOperation], operation: str, fields: dict[str, Any]) -> Steps[Any]:
    """Do any operation of a service by its name; the service lists them itself."""
    if not operations:
        operations.update(operations_of((yield get("/openapi.json"))))
    if operation not in operations:
        raise ValueError(f"operation must be one of {', '.join(sorted(operations))}, got {operation!r:.200}")
    verb, template, query = operations[operation]
    in_path = {name for name in fields if f"{{{name}}}" in template}
    path = template.format(**{name: quote(str(fields[name]), safe="") for name in in_path})
    rest = {name: value for name, value in fields.items() if name not in in_path}
    if verb == "GET":
        unknown = rest.keys() - query
        if unknown:
            takes = ", ".join(sorted(query)) or "nothing"
            raise TypeError(f"{operation} takes {takes}, got {', '.join(sorted(unknown))}")
        content = yield get(path, **rest)
    else:
        content = yield send(verb, path, rest)
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:  # lines, or a file
        return content


def _plain(value: object) -> object:
    """Turn values of NumPy and others into those of JSON."""
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    if hasattr(value, "tolist"):
        plain: object = value.tolist()
        return plain
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"a service can be sent what JSON knows, got {value!r:.200}")


def number_of(decision: Decision[Any] | int | str) -> int:
    """Return the id of a decision, given as such or by its id."""
    return whole_id(decision, decision.id if isinstance(decision, Decision) else decision)


def text_of(formula: Policy | Estimator | str) -> str:
    """Write a policy or an estimator as text that a service reads; that of a user with the module that has it.

    >>> import rightarm as ra
    >>> text_of(ra.UCB(C=0.5))
    'UCB(C=0.5)'
    """
    if isinstance(formula, str):
        return formula
    if not isinstance(formula, Policy):
        return repr(formula)
    function = formula.family.function
    if function.__module__.startswith("rightarm."):
        return repr(formula)
    if function.__module__ == "__main__" or function.__qualname__ != function.__name__ or formula.family.bare:
        raise ValueError(
            f"policy must be one of a module, where a service can find it, got {formula!r} of this program"
        )
    return f"{function.__module__}:{formula!r}"


def seconds(span: float | timedelta | None) -> float | None:
    """Return a span of time in seconds."""
    return span.total_seconds() if isinstance(span, timedelta) else span


def by_name(features: Mapping[Arm, T] | None) -> dict[str, T] | None:
    """Return what is given for arms, by their names as text."""
    return None if features is None else {str(arm): value for arm, value in features.items()}


def several(name: str, arms: Iterable[Arm]) -> list[Arm]:
    """Return several arms as a list."""
    if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise TypeError(f"{name} must be several arms, got {arms!r:.200}")
    return list(arms)
