"""The application: finds the operation that a request is for, lets it answer, and writes a line for it."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import time
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, NamedTuple, get_args, get_origin
from urllib.parse import parse_qsl

import msgspec

from rightarm import messages
from rightarm.service import problems
from rightarm.service.access import LOCAL, check_allowed
from rightarm.service.background import background
from rightarm.service.operations import TABLE, Operation, Request
from rightarm.service.problems import Refusal, Response
from rightarm.service.service import Service
from rightarm.service.telemetry import Line

PATIENCE = 30.0  # seconds for a request, and then for each further part of a long answer
LARGEST = 1_000_000  # bytes of a body
DEEPEST = 32  # brackets within brackets
UNKNOWN = "(unknown)"
NAME = re.compile(messages.NAME)
STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)  # one that does not end too: looking again takes for ever
OTHERS = re.compile(rb"[^\[\]{}]+")
ZERO = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # which PostgreSQL's texts cannot have
OPENING = (91, 123)  # [ and {
ENCODER = msgspec.json.Encoder()
OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Exchange:
    """One request and its answer."""

    def __init__(self, scope: Any, receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self.operation: Operation | None = None
        self.values: dict[str, str] = {}  # the parts of the path that have names
        self.caller = "-"
        self.status = 0
        self.reading = False  # whether a part of the body is awaited
        self.limit: asyncio.Timeout | None = None

    async def body(self) -> bytes:
        """Return the whole body, if it is not too long; of a client that is gone before its end nothing is done."""
        parts = list[bytes]()
        size = 0
        more = True
        while more:
            self.reading = True
            message = await self._receive()
            self.reading = False
            if message["type"] == "http.disconnect":
                raise Refusal(400, "the body must come to its end")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > LARGEST:
                raise Refusal(413, f"the body must have at most {LARGEST:,} bytes")
            more = message.get("more_body", False)
        return b"".join(parts)

    async def answer(self, reply: Response) -> None:
        """Send an answer."""
        self.status = reply.status
        head = [(b"content-type", reply.media.encode())]
        head += [(name.encode(), value.encode()) for name, value in reply.headers.items()]
        if isinstance(reply.body, bytes):
            head.append((b"content-length", b"%d" % len(reply.body)))
            await self._send({"type": "http.response.start", "status": reply.status, "headers": head})
            await self._send({"type": "http.response.body", "body": reply.body, "more_body": False})
        else:
            await self._send({"type": "http.response.start", "status": reply.status, "headers": head})
            await self._stream(reply.body)

    async def _stream(self, parts: AsyncIterator[bytes]) -> None:
        """Send an answer part by part, as long as the client takes it steadily."""
        gone = asyncio.ensure_future(self._gone())
        try:
            async with contextlib.aclosing(parts) as source:  # type: ignore[type-var]
                async for part in source:
                    if gone.done():
                        return
                    await self._send({"type": "http.response.body", "body": part, "more_body": True})
                    if self.limit is not None:
                        self.limit.reschedule(asyncio.get_running_loop().time() + PATIENCE)
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()

    async def _gone(self) -> None:
        """Wait until the client is gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def refuse(self, error: Exception) -> None:
        """Answer with the problem that an error is, if no answer has begun; the rest of a bad body is not awaited."""
        reply = problems.reply_to(error)
        if reply.status in (408, 413):
            reply = reply._replace(headers={**reply.headers, "connection": "close"})
        if not self.status:
            await self.answer(reply)


class Route(NamedTuple):
    """The operations at a path."""

    names: tuple[str, ...]
    """What its open parts are called."""
    operations: dict[str, Operation]
    """By the verb."""


NOWHERE = Route((), {})


class App:
    """The ASGI application of a service; ``started`` is called when every bandit is loaded."""

    def __init__(
        self,
        service: Service,
        started: Callable[[], object] = lambda: None,
        operations: Iterable[Operation] = TABLE,
    ) -> None:
        self.service = service
        self._started = started
        self._routes: dict[Any, Any] = {}
        self._readers: dict[Operation, Callable[[bytes], Any]] = {}
        for operation in operations:
            self._add(operation)

    def _add(self, operation: Operation) -> None:
        """Make an operation found by its path: each part leads to a dictionary of the next ones, None is any part."""
        parts = operation.path.split("/")[1:]
        names = tuple(part.strip("{}") for part in parts if part.startswith("{"))
        node = self._routes
        for part in parts:
            node = node.setdefault(None if part.startswith("{") else part, {})
        route: Route = node.setdefault(Route, Route(names, {}))
        route.operations[operation.verb] = operation
        if operation.body is not None:
            self._readers[operation] = reader_of(operation.body)

    def find(self, path: str) -> tuple[Route, dict[str, str]]:
        """Return the route of a path and its parts that have names."""
        node = self._routes
        values = []
        for part in path.split("/")[1:]:
            following = node.get(part)
            if following is None and part:
                following = node.get(None)
                values.append(part)
            if following is None:
                return NOWHERE, {}
            node = following
        route = node.get(Route, NOWHERE)
        return route, dict(zip(route.names, values, strict=False))

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        began = time.perf_counter()
        exchange = Exchange(scope, receive, send)
        try:
            async with asyncio.timeout(PATIENCE) as exchange.limit:
                await self._answer(exchange)
        except TimeoutError as error:
            slow = Refusal(408, f"the body must come within {PATIENCE:g} seconds")
            await exchange.refuse(slow if exchange.reading else error)
        except Exception as error:  # whatever it is: the client is told, and the server goes on
            await exchange.refuse(error)
        finally:
            self._note(exchange, time.perf_counter() - began)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Do what goes on in the background, from the server's start to its end."""
        await receive()
        async with background(self.service, self._started):
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, exchange: Exchange) -> None:
        """Answer a request: who asks, what for, whether that is allowed, and then the operation itself."""
        scope = exchange.scope
        access = self.service.access
        route, values = self.find(scope["path"])
        operation = route.operations.get(scope["method"])
        exchange.operation = operation
        exchange.values = values
        access.check_host(scope["headers"])
        caller = LOCAL
        if operation is None or operation.scope is not None:
            caller = await access.caller(scope["headers"])
            exchange.caller = caller.id
        if route is NOWHERE:
            raise Refusal(404, f"there is nothing at {scope['path']!r:.200}", code="unknown_path")
        if operation is None:
            verbs = ", ".join(sorted(route.operations))
            raise Refusal(405, f"the method must be {verbs}, got {scope['method']:.20}", None, {"allow": verbs})
        request = Request(self.service, caller, **values)
        if request.name:
            check_name(request.name)
        if operation.scope is not None and not operation.selects:
            check_allowed(caller, operation.scope, request.name or "*")
        answer = await self._done(exchange, operation, request)
        if not isinstance(answer, Response):
            message = answer if isinstance(answer, msgspec.Struct) else messages.sendable(answer)
            answer = Response(ENCODER.encode(message))
        await exchange.answer(answer)

    async def _done(self, exchange: Exchange, operation: Operation, request: Request) -> Any:
        """Return what the operation gives for what came with the request."""
        if operation.body is not None:
            body = await exchange.body() or b"{}"
            return await operation.function(request, self._readers[operation](body))
        if operation.query is not None:
            return await operation.function(request, query_of(exchange.scope["query_string"], operation.query))
        return await operation.function(request)

    def _note(self, exchange: Exchange, seconds: float) -> None:
        """Count the request and write its line."""
        method = exchange.scope["method"]
        operation = exchange.operation
        route = UNKNOWN if operation is None else operation.path
        counted = "(any)" if operation is None else method  # else whoever likes could fill the memory
        self.service.metrics.answered(counted, route, exchange.status, seconds)
        line = Line(
            time=round(time.time(), 3),
            method=method,
            route=route,
            status=exchange.status,
            ms=round(1e3 * seconds, 2),
            token=exchange.caller,
            bandit=exchange.values.get("name", "")[:100],
        )
        self.service.log.add(line)


# What comes with a request, read and checked.


def reader_of(kind: Any) -> Callable[[bytes], Any]:
    """Return what reads a body of a type; one of several messages is known by a field that only it must have.

    >>> read = reader_of(messages.Tell | messages.Tells)
    >>> read(b'{"reward": 1.0, "decision": 7}').decision, len(read(b'{"rewards": [{"reward": 0}]}').rewards)
    (7, 1)
    """
    first, *others = get_args(kind) if get_origin(kind) is types.UnionType else (kind,)
    usual = msgspec.json.Decoder(first)
    marked = [(_mark(other, first), msgspec.json.Decoder(other)) for other in others]

    def read(body: bytes) -> Any:
        check_body(body)
        for mark, decoder in marked:
            if mark.encode() in body and mark in OBJECT.decode(body):
                return decoder.decode(body)
        return usual.decode(body)

    return read


def _mark(kind: type[msgspec.Struct], other: type[msgspec.Struct]) -> str:
    """Return a field that messages of a kind must have, and those of another cannot have."""
    return next(
        field.name
        for field in msgspec.structs.fields(kind)
        if field.required and field.name not in other.__struct_fields__
    )


def check_body(body: bytes) -> None:
    """Raise if a body is nested too deep, or has a character that no database keeps."""
    if body.count(b"[") + body.count(b"{") > DEEPEST and depth(body) > DEEPEST:
        raise Refusal(400, f"the body must not be nested more than {DEEPEST} deep", code="too_deep")
    if b"\\u0000" in body and ZERO.search(body):
        raise Refusal(422, "texts must not have the character U+0000")


def depth(body: bytes) -> int:
    """Count how many brackets are open at most, outside texts.

    >>> depth(b'{"a": [1, "[[["]}')
    2
    """
    deepest = now = 0
    for bracket in OTHERS.sub(b"", STRINGS.sub(b"", body)):
        now += 1 if bracket in OPENING else -1
        deepest = max(deepest, now)
    return deepest


def query_of(text: bytes, kind: type[msgspec.Struct]) -> Any:
    """Read the parameters of an address, ``arm=red&confidence=0.9``; unknown ones and repeated ones are errors."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(text.decode("latin-1"), keep_blank_values=True):
        if name in found:
            raise Refusal(422, f"{name} must be given once", name, code="repeated")
        if "\0" in value:
            raise Refusal(422, f"{name} must not have the character U+0000", name)
        found[name] = value
    made = msgspec.convert(found, kind, strict=False)
    for name, value in msgspec.structs.asdict(made).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise Refusal(422, f"{name} must be a finite number, got {value}", name)
    return made


def check_name(name: str) -> None:
    """Raise if this cannot be the name of a bandit."""
    if not NAME.match(name) or name.endswith("\n"):
        raise Refusal(422, f"name must match {messages.NAME}, got {name!r:.120}", "name")
