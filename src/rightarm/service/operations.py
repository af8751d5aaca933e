"""The table of operations: all that can be asked of the service.

An operation is a function with a declaration above it: the verb, the path, and the scope that a token needs. What it
takes and gives stands in its signature: ``body`` is what is sent, ``query`` what stands behind a question mark in the
address, and what is returned is the answer. Routes, access, limits and the OpenAPI document follow from this table, and
so does `rightarm.client`, which can call every operation by the name of its function.
"""

from __future__ import annotations

import functools
import tempfile
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from rightarm import messages
from rightarm.evaluation import SampleRatio
from rightarm.inference import Best, Difference
from rightarm.logs.lines import as_lines
from rightarm.service import openapi, reading
from rightarm.service.access import Caller
from rightarm.service.problems import Refusal, Response
from rightarm.service.ratio import ratio_of
from rightarm.service.service import Service
from rightarm.service.telemetry import METRICS_MEDIA
from rightarm.store import NotFound, verbs
from rightarm.store.exports import ENDINGS, export

JSON, LINES, FILE = "application/json", "application/x-ndjson", "application/octet-stream"
PAGE = 1_000  # events that are read at once
PIECE = 1 << 18  # bytes of a file that are sent at once

Scope = Literal["ask", "tell", "read", "admin"]


class Request(NamedTuple):
    """The first argument of every operation: the service, who asks, and the named parts of the path."""

    service: Service
    caller: Caller
    name: str = ""
    """The bandit that the path names."""
    id: str = ""

    @property
    def by(self) -> str:
        """Say who makes the request, as changes of a bandit have it: the id of a token and its label."""
        token = self.caller.token
        return self.caller.id if token is None else f"{self.caller.id} {token.label}"


Function = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, eq=False)
class Operation:
    """An entry of the table."""

    function: Function
    verb: str
    path: str
    scope: Scope | None
    """The scope that a token needs for the bandit of the path, or for all of them; None if nobody needs a token."""
    body: Any = None
    query: Any = None
    answer: Any = None
    """The type of the answer; None if it is not JSON."""
    media: str = JSON
    selects: bool = False
    """Whether the function itself leaves out bandits that the token is not good for."""
    creates: bool = False
    """Whether something new is answered by 201."""
    conflicts: bool = False
    """Whether 409 is possible."""


TABLE: list[Operation] = []


def operation(verb: str, path: str, scope: Scope | None, **more: Any) -> Callable[[Function], Function]:
    """Put a function into the table; ``more`` are fields of `Operation`: ``answer`` where it gives a `Response`."""

    def declare(function: Function) -> Function:
        hints = typing.get_type_hints(function)
        returned = None if hints["return"] is Response else hints["return"]
        signature: dict[str, Any] = {"body": hints.get("body"), "query": hints.get("query"), "answer": returned}
        TABLE.append(Operation(function, verb, path, scope, **signature | more))
        return function

    return declare


# Decisions and rewards.


@operation("POST", "/bandits/{name}/ask", "ask", conflicts=True)
async def ask(request: Request, body: messages.Ask) -> messages.Choice | messages.Choices:
    """Decide: one arm, or ``size`` of them, or one for each of several contexts; written before it is answered."""
    made: list[messages.Choice] = await request.service.commit(request.name, lambda live: verbs.ask(live, body))
    request.service.metrics.decisions.labels(request.name).inc(len(made))
    if body.size is None and body.contexts is None:
        return made[0]
    return messages.Choices(decisions=made)


@operation("POST", "/bandits/{name}/tell", "tell", conflicts=True)
async def tell(request: Request, body: messages.Tell | messages.Tells) -> messages.Told | messages.ToldAll:
    """Learn the reward of a decision, or several rewards, all or none; each counts once however often it is sent."""
    rewards = body.rewards if isinstance(body, messages.Tells) else [body]
    told, delays = await request.service.commit(request.name, lambda live: reading.told(live, rewards))
    metrics = request.service.metrics
    for one in told:
        metrics.rewards.labels(request.name, one.outcome).inc()
    for seconds in delays:
        metrics.delays.labels(request.name).observe(seconds)
    return messages.ToldAll(rewards=told) if isinstance(body, messages.Tells) else told[0]


@operation("POST", "/bandits/{name}/cancel", "tell", conflicts=True)
async def cancel(request: Request, body: messages.Cancel) -> messages.Cancelled:
    """Forget a decision that will have no reward."""
    waited = await request.service.commit(request.name, lambda live: verbs.cancel(live, body.decision))
    return messages.Cancelled(cancelled=waited)


@operation("POST", "/bandits/{name}/probabilities", "read")
async def probabilities(request: Request, body: messages.Question) -> messages.Probabilities:
    """Return the probability of every arm in the next decision; nothing is decided."""
    return await request.service.read(request.name, lambda live: reading.chances(live, body))


# Bandits.


@operation("GET", "/bandits", "read", selects=True)
async def names(request: Request) -> messages.Names:
    """Return the names of the bandits that the token may read."""
    found = await request.service.in_thread(request.service.store.bandits)
    return messages.Names(bandits=[name for name in found if request.caller.allows("read", name)])


@operation("PUT", "/bandits/{name}", "admin", answer=messages.Bandit, creates=True, conflicts=True)
async def make(request: Request, body: messages.Definition) -> Response:
    """Make a bandit: 201. If it is there already, made of just this: 200; made of something else: 409."""
    service = request.service
    policy = await service.in_thread(service.policies.compiled, body.policy, body.estimator, len(body.arms))
    new = await service.commit(service.store.create(request.name, body, policy, request.by))
    made = await service.read(request.name, verbs.describe)
    return Response(msgspec.json.encode(made), 201 if new else 200)


@operation("GET", "/bandits/{name}", "read")
async def show(request: Request) -> messages.Bandit:
    """Return a bandit as it is now: arms, policy, settings, and how many decisions and rewards it has had."""
    return await request.service.read(request.name, verbs.describe)


@operation("PATCH", "/bandits/{name}", "admin", conflicts=True)
async def change(request: Request, body: messages.Change) -> messages.Bandit:
    """Change arms, policy, settings or status; the events have who did it and when."""
    service = request.service
    policy = None
    if body.policy is not None or body.estimator is not None or body.arms is not None:
        present, arms = await service.read(request.name, lambda live: (reading.policy_of(live), reading.all_arms(live)))
        count = len({*arms, *(body.arms or ())})  # retired ones keep what is known of them
        policy = await service.in_thread(service.policies.changed, present, body.policy, body.estimator, count)
    by = request.by
    changed: messages.Bandit = await service.commit(request.name, lambda live: verbs.change(live, body, policy, by))
    return changed


# What is known of a bandit, and what happened to it.


@operation("GET", "/bandits/{name}/summary", "read")
async def summary(request: Request) -> messages.Summary:
    """Return what is known of every arm, with intervals that hold at any time."""
    clock = request.service.store.clock
    return await request.service.read(request.name, lambda live: reading.table(live, clock()))


@operation("GET", "/bandits/{name}/difference", "read")
async def difference(request: Request, query: messages.Pair) -> Difference:
    """Return by how much the mean of an arm is above that of another."""
    where = None if query.where is None else _segment(query.where)
    return await request.service.read(request.name, lambda live: reading.difference(live, query, where))


def _segment(text: str) -> dict[str, Any]:
    """Read a segment as an address writes it."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refusal(422, f"where must be an object in JSON: {error}", "where") from None


@operation("GET", "/bandits/{name}/best", "read")
async def best(request: Request, query: messages.Stopping) -> Best:
    """Return which arms can still be the best, and what choosing one of them for good can cost."""
    return await request.service.read(request.name, lambda live: reading.best(live, query))


@operation("GET", "/bandits/{name}/history", "read")
async def history(request: Request, query: messages.Hours) -> messages.History:
    """Return how many decisions and rewards each arm had, hour by hour."""
    rows = await request.service.in_thread(request.service.store.history, request.name, query.hours)
    return messages.History(hours=[messages.Hour(**row) for row in rows])


@operation("GET", "/bandits/{name}/sample-ratio", "read")
async def sample_ratio(request: Request, query: messages.Ratio) -> SampleRatio:
    """Check whether arms came as often as their propensities say."""
    return await request.service.in_thread(ratio_of, request.service.store, request.name, query.confidence)


@operation("GET", "/bandits/{name}/decisions/{id}", "read")
async def decision(request: Request) -> dict[str, Any]:
    """Return a decision, and what became of it."""
    text = request.id
    if not (text.isascii() and text.isdigit() and int(text) <= messages.LARGEST_ID):
        raise Refusal(422, f"id must be a whole number of at most {messages.LARGEST_ID}, got {text!r:.60}", "id")
    found = await request.service.in_thread(request.service.store.decision, request.name, int(text))
    if found is None:
        raise NotFound(f"decision {text} was never made by {request.name}", "id")
    return found


@operation("GET", "/bandits/{name}/events", "read", media=LINES)
async def events(request: Request, query: messages.After) -> Response:
    """Return the events after a number, a line of JSON each, as they are: whoever folds them has the bandit."""
    limit = messages.LARGEST_ID if query.limit is None else query.limit
    return Response(await _lines(request, query.after, limit), media=LINES)


@operation("GET", "/bandits/{name}/export", "read", media=FILE)
async def export_all(request: Request, query: messages.Format) -> Response:
    """Return all events as a log (jsonl, parquet), or the decisions with rewards for obp or Vowpal Wabbit (vw)."""
    service, ending = request.service, ENDINGS[query.format]
    headers = {"content-disposition": f'attachment; filename="{request.name}{ending}"'}
    if query.format == "jsonl":
        head = await service.in_thread(service.store.head, request.name)
        lines = await _lines(request, 0, messages.LARGEST_ID, as_lines(head, (), 1))
        return Response(lines, media=FILE, headers=headers)
    service.check_streams()
    folder = tempfile.TemporaryDirectory(prefix="rightarm-export-")
    try:
        with service.streaming():
            target = Path(folder.name) / f"export{ending}"
            path = await service.in_thread(export, service.store, request.name, target)
    except BaseException:
        folder.cleanup()
        raise
    return Response(_file(service, folder, path), media=FILE, headers=headers)


async def _lines(request: Request, after: int, limit: int, head: bytes = b"") -> AsyncIterator[bytes]:
    """Return events as parts of an answer, behind a head; what is wrong is said before the answer begins."""
    service = request.service
    service.check_streams()
    with service.streaming():
        first = await service.in_thread(_page, service, request.name, after, limit)
    return _pages(service, request.name, first, limit, head)


class _Numbered(msgspec.Struct):
    n: int


def _page(service: Service, name: str, after: int, limit: int) -> list[bytes]:
    return list(service.store.events(name, after, min(PAGE, limit)))


async def _pages(service: Service, name: str, page: list[bytes], limit: int, head: bytes) -> AsyncIterator[bytes]:
    """Yield page after page; between two of them, however slow the client is, nothing is held open in the database."""
    with service.streaming():
        if head:
            yield head
        while page:
            yield b"".join(page)
            limit -= len(page)
            if len(page) < PAGE or limit <= 0:
                return
            last = msgspec.json.decode(page[-1], type=_Numbered).n
            page = await service.in_thread(_page, service, name, last, limit)


async def _file(service: Service, folder: tempfile.TemporaryDirectory[str], path: Path) -> AsyncIterator[bytes]:
    """Yield a file piece by piece; it is removed at the end."""
    with folder, service.streaming():
        pieces = _pieces(path)
        while piece := await service.in_thread(next, pieces, b""):
            yield piece


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


# The server itself.


@operation("GET", "/health", None)
async def health(request: Request) -> messages.Health:
    """Say that the process lives."""
    return messages.Health(status="alive")


@operation("GET", "/ready", None)
async def ready(request: Request) -> messages.Health:
    """Say whether every bandit is compiled and folded, and a decision could be written now: 200, else 503."""
    await request.service.check_ready()
    status = request.service.commits.status
    return messages.Health(status="ready", waiting=status.waiting, error=status.last_error)


@operation("GET", "/metrics", "read", media="text/plain")
async def metrics(request: Request) -> Response:
    """Return all that is counted, for Prometheus; a token must be allowed to read all bandits."""
    return Response(await request.service.in_thread(request.service.metrics.text), media=METRICS_MEDIA)


@operation("GET", "/openapi.json", None, answer=dict[str, Any])
async def describe_all(request: Request) -> Response:
    """Return this document."""
    return Response(_document(tuple(TABLE)))


@functools.cache
def _document(operations: tuple[Operation, ...]) -> bytes:
    return msgspec.json.encode(openapi.document(operations))
