"""The table of operations: everything that the service can be asked.

An operation is a function with a declaration above it: the verb, the path, and the scope that a token needs. What it
takes and gives stands in its signature: ``body`` is what is sent, ``query`` what stands behind a question mark in the
address, and what is returned is the answer. Routes, access, limits and the OpenAPI document follow from this table, and
so does `rightarm.client`, which can call every operation by the name of its function.
"""

from __future__ import annotations

import functools
import tempfile
import time
import types
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, Unpack

import msgspec

from rightarm import messages
from rightarm.bandit import answers
from rightarm.bandit.summary import arm_rows
from rightarm.evaluation import SampleRatio
from rightarm.inference import Best, Difference
from rightarm.logs.lines import as_lines
from rightarm.service import openapi
from rightarm.service.access import Caller
from rightarm.service.background import ratio_of
from rightarm.service.monitoring import METRICS_MEDIA
from rightarm.service.problem_details import Refusal, Response
from rightarm.service.service import Service, probabilities_of
from rightarm.store import Missing, StoredBandit
from rightarm.store.store_exports import ENDINGS, export
from rightarm.store.stored_bandit import by_name

JSON = "application/json"
LINES = "application/x-ndjson"
FILE = "application/octet-stream"
PAGE = 1_000  # events that are read at once
PIECE = 1 << 18  # bytes of a file that are sent at once

Scope = Literal["ask", "tell", "read", "admin"]
T = TypeVar("T")


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

    async def read(self, function: Callable[[StoredBandit], T]) -> T:
        """Return what a function gives that changes nothing, of the bandit that the path names."""
        return await self.service.read(self.name, function)


Function = Callable[..., Awaitable[object]]


@dataclass(frozen=True, eq=False)
class Operation:
    """An entry of the table."""

    function: Function
    verb: str
    path: str
    scope: Scope | None
    """The scope that a token needs for the bandit of the path, or for all of them; None if nobody needs a token."""
    body: type[msgspec.Struct] | types.UnionType | None = None
    query: type[msgspec.Struct] | None = None
    answer: type | types.UnionType | None = None
    """The type of the answer; None if it is not JSON."""
    media: str = JSON
    selects: bool = False
    """Whether the function itself leaves out bandits that the token is not good for."""
    creates: bool = False
    """Whether something new is answered by 201."""
    conflicts: bool = False
    """Whether 409 is possible."""


TABLE: list[Operation] = []


class OperationOptions(TypedDict, total=False):
    """The fields of `Operation` that do not follow from the function."""

    answer: type
    media: str
    selects: bool
    creates: bool
    conflicts: bool


def operation(
    verb: str, path: str, scope: Scope | None, **more: Unpack[OperationOptions]
) -> Callable[[Function], Function]:
    """Put a function into the table; ``more`` are fields of `Operation`: ``answer`` where it gives a `Response`."""

    def declare(function: Function) -> Function:
        hints = typing.get_type_hints(function)
        if hints["return"] is not Response:
            more["answer"] = hints["return"]
        TABLE.append(Operation(function, verb, path, scope, body=hints.get("body"), query=hints.get("query"), **more))
        return function

    return declare


# Decisions and rewards.


@operation("POST", "/bandits/{name}/ask", "ask", conflicts=True)
async def ask(request: Request, body: messages.Ask) -> messages.DecisionAnswer | messages.DecisionAnswers:
    """Decide: one arm, or ``size`` of them, or one for each of several contexts; written before it is answered."""
    decisions = await request.service.commit(request.name, lambda bandit: bandit.ask(body))
    request.service.metrics.decisions.labels(request.name).inc(len(decisions))
    if body.size is None and body.contexts is None:
        return decisions[0]
    return messages.DecisionAnswers(decisions=decisions)


@operation("POST", "/bandits/{name}/tell", "tell", conflicts=True)
async def tell(
    request: Request, body: messages.Tell | messages.Tells
) -> messages.RewardAnswer | messages.RewardAnswers:
    """Learn the reward of a decision, or several rewards, all or none; each counts once however often it is sent."""
    rewards = body.rewards if isinstance(body, messages.Tells) else [body]
    answers, delays = await request.service.commit(request.name, lambda bandit: _tell(bandit, rewards))
    metrics = request.service.metrics
    for answer in answers:
        metrics.rewards.labels(request.name, answer.outcome).inc()
    for seconds in delays:
        metrics.delays.labels(request.name).observe(seconds)
    return messages.RewardAnswers(rewards=answers) if isinstance(body, messages.Tells) else answers[0]


def _tell(bandit: StoredBandit, rewards: list[messages.Tell]) -> tuple[list[messages.RewardAnswer], list[float]]:
    """Learn rewards; return their outcomes, and the seconds since the decisions that waited for them."""
    now = time.time()
    pending = bandit.state.ledger.pending
    waiting = [pending[one.decision] for one in rewards if one.decision in pending]
    return bandit.tell(rewards), [now - one.decision.time for one in waiting]


@operation("POST", "/bandits/{name}/cancel", "tell", conflicts=True)
async def cancel(request: Request, body: messages.Cancel) -> messages.Cancelled:
    """Forget a decision that will have no reward."""
    waited = await request.service.commit(request.name, lambda bandit: bandit.cancel(body.decision))
    return messages.Cancelled(cancelled=waited)


@operation("POST", "/bandits/{name}/probabilities", "read")
async def probabilities(request: Request, body: messages.Question) -> messages.Probabilities:
    """Return the probability of every arm in the next decision; nothing is decided."""
    return await request.read(lambda bandit: _probabilities(bandit, body))


def _probabilities(bandit: StoredBandit, question: messages.Question) -> messages.Probabilities:
    state = bandit.state
    features = by_name("arm_features", question.arm_features, state.names)
    found = probabilities_of(state, question.context, features, question.allowed)
    rows = [messages.Chance(arm=arm, probability=probability) for arm, probability in found.items()]
    return messages.Probabilities(probabilities=rows, version=bandit.version)


# Bandits.


@operation("GET", "/bandits", "read", selects=True)
async def names(request: Request) -> messages.Names:
    """Return the names of the bandits that the token may read."""
    found = await request.service.in_thread(request.service.store.bandits)
    return messages.Names(bandits=[name for name in found if request.caller.allows("read", name)])


@operation("PUT", "/bandits/{name}", "admin", answer=messages.BanditAnswer, creates=True, conflicts=True)
async def make(request: Request, body: messages.Definition) -> Response:
    """Make a bandit: 201. If it is there already, made of just this: 200; made of something else: 409."""
    service = request.service
    policy = await service.in_thread(service.policies.compiled, body.policy, body.estimator, len(body.arms))
    is_new = await service.commit(service.store.create(request.name, body, policy, request.by))
    made = await request.read(StoredBandit.describe)
    return Response(msgspec.json.encode(made), 201 if is_new else 200)


@operation("GET", "/bandits/{name}", "read")
async def show(request: Request) -> messages.BanditAnswer:
    """Return a bandit as it is now: arms, policy, settings, and how many decisions and rewards it has had."""
    return await request.read(StoredBandit.describe)


@operation("PATCH", "/bandits/{name}", "admin", conflicts=True)
async def change(request: Request, body: messages.Change) -> messages.BanditAnswer:
    """Change arms, policy, settings or status; the events have who did it and when."""
    service = request.service
    policy = None
    if body.policy is not None or body.estimator is not None or body.arms is not None:
        present, arms = await request.read(lambda bandit: (bandit.state.arms.policy, list(bandit.state.names)))
        count = len({*arms, *(body.arms or ())})  # retired ones keep what was learned of them
        policy = await service.in_thread(service.policies.changed, present, body.policy, body.estimator, count)
    return await service.commit(request.name, lambda bandit: bandit.change(body, policy, request.by))


# What was learned of a bandit, and what happened to it.


@operation("GET", "/bandits/{name}/summary", "read")
async def summary(request: Request) -> messages.Summary:
    """Return what is known of every arm, with intervals that hold at any time."""
    return await request.read(_summary)


def _summary(bandit: StoredBandit) -> messages.Summary:
    """Return the table of arms; decisions whose window has closed do not wait any more."""
    state = bandit.state
    return messages.Summary(
        policy=str(state.arms.policy),
        version=bandit.version,
        arms=[messages.ArmSummary(**row) for row in arm_rows(state, state.due(bandit.now))],
        warning=answers.warning(state),
    )


@operation("GET", "/bandits/{name}/difference", "read")
async def difference(request: Request, query: messages.Pair) -> Difference:
    """Return by how much the mean of an arm is above that of another."""
    where = None if query.where is None else _segment(query.where)
    return await request.read(lambda bandit: _difference(bandit, query, where))


def _difference(bandit: StoredBandit, pair: messages.Pair, where: dict[str, Any] | None) -> Difference:
    arms = arms_by_text(bandit.state.names)
    arm = arms.get(pair.arm, pair.arm)
    other = arms.get(pair.other, pair.other)
    return answers.difference(bandit.state, None, arm, other, where, pair.confidence)


def arms_by_text(arms: Iterable[messages.Arm]) -> dict[str, messages.Arm]:
    """Return arms by how an address names them; a text goes before the number that it writes.

    >>> arms_by_text(["a", 7]), arms_by_text(["7", 7])
    ({'7': 7, 'a': 'a'}, {'7': '7'})
    """
    return {str(arm): arm for arm in sorted(arms, key=lambda arm: isinstance(arm, str))}


def _segment(text: str) -> dict[str, Any]:
    """Read a segment as an address writes it."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refusal(422, f"where must be an object in JSON: {error}", "where") from None


@operation("GET", "/bandits/{name}/best", "read")
async def best(request: Request, query: messages.Stopping) -> Best:
    """Return which arms can still be the best, and what choosing one of them for good can cost."""
    return await request.read(lambda bandit: answers.best(bandit.state, query.confidence, query.tolerance))


@operation("GET", "/bandits/{name}/history", "read")
async def history(request: Request, query: messages.Hours) -> messages.History:
    """Return how many decisions and rewards each arm had, hour by hour."""
    rows = await request.service.in_thread(request.service.store.history, request.name, query.hours)
    return messages.History(hours=rows)


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
        raise Missing(f"decision {text} was never made by {request.name}", "id")
    return found


@operation("GET", "/bandits/{name}/events", "read", media=LINES)
async def events(request: Request, query: messages.After) -> Response:
    """Return the events after a number, a line of JSON each, as they are: whoever folds them has the bandit."""
    limit = messages.LARGEST_ID if query.limit is None else query.limit
    return Response(await _lines(request, query.after, limit), media=LINES)


@operation("GET", "/bandits/{name}/export", "read", media=FILE)
async def export_all(request: Request, query: messages.Format) -> Response:
    """Return all events as a log (jsonl, parquet), or the decisions with rewards for obp or Vowpal Wabbit (vw)."""
    service = request.service
    ending = ENDINGS[query.format]
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


class _Page(NamedTuple):
    content: bytes
    events: int
    last: int


def _page(service: Service, name: str, after: int, limit: int) -> _Page:
    events = list(service.store.stored_events(name, after, min(PAGE, limit)))
    content = b"".join(event.numbered() for event in events)
    return _Page(content, len(events), events[-1].n if events else after)


async def _pages(service: Service, name: str, page: _Page, limit: int, head: bytes) -> AsyncIterator[bytes]:
    """Yield page after page; between two of them, however slow the client is, nothing is held open in the database."""
    with service.streaming():
        if head:
            yield head
        while page.events:
            yield page.content
            limit -= page.events
            if page.events < PAGE or limit <= 0:
                return
            page = await service.in_thread(_page, service, name, page.last, limit)


async def _file(service: Service, folder: tempfile.TemporaryDirectory[str], path: Path) -> AsyncIterator[bytes]:
    """Yield a file piece by piece; it is removed at the end."""
    with folder, service.streaming(), path.open("rb") as file:
        while piece := await service.in_thread(file.read, PIECE):
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
