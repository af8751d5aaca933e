"""Routes that say what is known of a bandit and what happened to it."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from litestar import Request, Response, Router, get
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Stream

from rightarm import messages
from rightarm.service.bandits import answered
from rightarm.service.bodies import arm_named, decoded, query_of
from rightarm.service.operations import operation
from rightarm.service.problems import Refusal
from rightarm.service.ratio import ratio_of
from rightarm.service.service import Service
from rightarm.store import NotFound

Asked = Request[Any, Any, Any]
LINES = "application/x-ndjson"
SEGMENT = msgspec.json.Decoder(dict[str, Any])
PAGE = 1_000  # events that are read at once


class Numbered(msgspec.Struct):
    """What is needed of an event to go on after it."""

    n: int


NUMBERED = msgspec.json.Decoder(Numbered)


def finite(value: float) -> float | None:
    """A number as JSON can have it."""
    return value if math.isfinite(value) else None


@get("/bandits/{name:str}/summary", opt=operation("read", messages.Summary))
async def summary(service: NamedDependency[Service], name: FromPath[str]) -> Response[bytes]:
    """What is known of every arm, with intervals that hold at any time."""
    return answered(await service.read(name, _summary))


def _summary(live: Any) -> messages.Summary:
    arms = [messages.ArmSummary(**row) for row in live.bandit.table()]
    policy, warning = str(live.bandit.policy), live.bandit.warning
    return messages.Summary(policy=policy, version=live.version, arms=arms, warning=warning)


@get("/bandits/{name:str}/difference", opt=operation("read", messages.Difference, query=messages.Pair))
async def difference(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Response[bytes]:
    """By how much the mean of an arm is above that of another."""
    pair = query_of(request.query_params.multi_items(), messages.Pair)
    where = None if pair.where is None else _segment(pair.where)
    return answered(await service.read(name, lambda live: _difference(live, pair, where)))


def _segment(text: str) -> dict[str, Any]:
    """A segment as an address writes it."""
    try:
        return decoded(SEGMENT, text.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError, Refusal) as error:
        raise Refusal(422, f"where must be an object in JSON: {error}", "where") from None


def _difference(live: Any, pair: messages.Pair, where: dict[str, Any] | None) -> messages.Difference:
    arms = [row["arm"] for row in live.bandit.table()]
    both = arm_named(pair.arm, arms), arm_named(pair.other, arms)
    found = live.bandit.difference(*both, where=where, confidence=pair.confidence)
    return messages.Difference(
        arm=found.arm,
        other=found.other,
        estimate=finite(found.estimate),
        low=finite(found.low),
        high=finite(found.high),
        confidence=found.confidence,
        kind=found.kind,
        better=found.better,
        lacking=found.lacking or None,
        text=str(found),
        warning=found.warning,
    )


@get("/bandits/{name:str}/best", opt=operation("read", messages.Best, query=messages.Stopping))
async def best(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Response[bytes]:
    """Which arms can still be the best, and what choosing one of them for good can cost."""
    wanted = query_of(request.query_params.multi_items(), messages.Stopping)
    return answered(await service.read(name, lambda live: _best(live, wanted)))


def _best(live: Any, wanted: messages.Stopping) -> messages.Best:
    found = live.bandit.best(confidence=wanted.confidence, tolerance=wanted.tolerance)
    return messages.Best(
        leader=found.leader,
        candidates=list(found.candidates),
        cost=finite(found.cost),
        stop=found.stop,
        tolerance=found.tolerance,
        confidence=found.confidence,
        kind=found.kind,
        lacking=found.lacking or None,
        text=str(found),
        warning=found.warning,
    )


@get("/bandits/{name:str}/history", opt=operation("read", messages.History, query=messages.Hours))
async def history(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Response[bytes]:
    """How many decisions and rewards each arm had, hour by hour."""
    wanted = query_of(request.query_params.multi_items(), messages.Hours)
    rows = await service.in_thread(service.store.history, name, wanted.hours)
    return answered(messages.History(hours=[messages.Hour(**row) for row in rows]))


@get("/bandits/{name:str}/sample-ratio", opt=operation("read", messages.SampleRatio, query=messages.Ratio))
async def sample_ratio(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Response[bytes]:
    """Whether arms came as often as their propensities say."""
    wanted = query_of(request.query_params.multi_items(), messages.Ratio)
    return answered(await service.in_thread(ratio_of, service.store, name, wanted.confidence))


@get("/bandits/{name:str}/decisions/{id:str}", opt=operation("read", dict[str, Any]))
async def decision(service: NamedDependency[Service], name: FromPath[str], id: FromPath[str]) -> Response[bytes]:
    """A decision, and what became of it."""
    if not (id.isascii() and id.isdigit() and int(id) <= messages.LARGEST_ID):
        raise Refusal(422, f"id must be a whole number of at most {messages.LARGEST_ID}, got {id!r:.60}", "id")
    found = await service.in_thread(service.store.decision, name, int(id))
    if found is None:
        raise NotFound(f"decision {id} was never made by {name}", "id")
    return answered(found)


@get("/bandits/{name:str}/events", opt=operation("read", media=LINES, query=messages.After))
async def events(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Stream:
    """The events after a number, a line of JSON each, as they are: whoever folds them has the bandit."""
    wanted = query_of(request.query_params.multi_items(), messages.After)
    limit = messages.LARGEST_ID if wanted.limit is None else wanted.limit
    return Stream(await lines(service, name, wanted.after, limit), media_type=LINES)


async def lines(service: Service, name: str, after: int, limit: int, head: bytes = b"") -> AsyncIterator[bytes]:
    """The events after a number, behind a head; what is wrong is said before the answer begins."""
    service.check_streams()
    with service.streaming():
        first = await service.in_thread(_page, service, name, after, limit)
    return _streamed(service, name, first, limit, head)


def _page(service: Service, name: str, after: int, limit: int) -> list[bytes]:
    return list(service.store.events(name, after, min(PAGE, limit)))


async def _streamed(service: Service, name: str, page: list[bytes], limit: int, head: bytes) -> AsyncIterator[bytes]:
    """Page after page; between two of them, however slow the client is, nothing is held open in the database."""
    with service.streaming():
        if head:
            yield head
        while page:
            yield b"".join(page)
            limit -= len(page)
            full = len(page) == PAGE and limit > 0
            last = NUMBERED.decode(page[-1]).n
            page = await service.in_thread(_page, service, name, last, limit) if full else []


@get("/health", opt=operation(None, messages.Health))
async def health(service: NamedDependency[Service]) -> Response[bytes]:
    """The process lives."""
    return answered(messages.Health(status="alive"))


@get("/ready", opt=operation(None, messages.Health))
async def ready(service: NamedDependency[Service]) -> Response[bytes]:
    """Whether every bandit is compiled and folded, and a decision could be written now: 200, else 503."""
    await service.check_ready()
    status = service.commits.status
    return answered(messages.Health(status="ready", waiting=status.waiting, error=status.last_error))


@get("/metrics", opt=operation("read", media="text/plain"))
async def metrics(service: NamedDependency[Service]) -> Response[bytes]:
    """All that is counted, for Prometheus; a token must be allowed to read all bandits."""
    return Response(await service.in_thread(service.metrics.text), media_type="text/plain; version=0.0.4")


def reads_router() -> Router:
    """The routes of this module."""
    about = [summary, difference, best, history, sample_ratio, decision, events]
    return Router("/", route_handlers=[*about, health, ready, metrics])
