"""The HTTP server: a connection with limits, an exchange of a request and its answer, and the application of both.

The application finds the operation that a request is for, lets it answer, and writes a line for it. `serve` runs it at
an address until it is told to end.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
import re
import signal
import socket
import sys
import time
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from types import FrameType
from typing import Any, NamedTuple, TypeVar, get_args, get_origin
from urllib.parse import parse_qsl

import httptools
import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from rightarm import messages
from rightarm.service.access import LOCAL, check_allowed, is_loopback
from rightarm.service.background import background
from rightarm.service.monitoring import RequestLine
from rightarm.service.operations import TABLE, Operation, Request
from rightarm.service.problem_details import Refusal, Response, reply_to
from rightarm.service.service import Service

PATIENCE = 30.0  # seconds for a request, and then for each further part of a long answer
LARGEST = 1_000_000  # bytes of a body
DEEPEST = 32  # brackets within brackets
HEAD_SECONDS = 10.0  # for the first line and the headers of a request
STALLED = 30.0  # seconds after which somebody who takes none of an answer is dropped
LARGEST_HEAD = 65_536  # bytes
SWITCH = 0.0001  # seconds after which the commit thread gets its turn; SQLite gives it away at every row
GRACE = 20  # seconds for requests that are under way when the server is to end
BACKLOG = 2048
REMEMBERED = 1024  # paths whose routes need not be looked for again
LONGEST_REMEMBERED = 256  # characters of such a path: anybody may send longer ones
UNKNOWN = "(unknown)"
NAME = re.compile(messages.NAME)
STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)  # one that does not end too: looking again takes for ever
OTHERS = re.compile(rb"[^\[\]{}]+")
ZERO = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # which PostgreSQL's texts cannot have
ENCODER = msgspec.json.Encoder()
OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])

Scope = dict[str, Any]  # these three are ASGI's
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, object]], Awaitable[None]]
S = TypeVar("S", bound=msgspec.Struct)


class Protocol(HttpToolsProtocol):
    """A connection. Who sends headers slowly, or endlessly, or reads nothing, loses it; others never notice."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._head: int | None = 0  # bytes of a head that is not complete; None while none is coming
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        for name in list(self._timers):
            self._stop(name)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head += len(data)
        super().data_received(data)
        if self._head is not None and self._head > LARGEST_HEAD and not self.transport.is_closing():
            self._refuse(Refusal(431, f"the headers must have at most {LARGEST_HEAD:,} bytes"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head is None:
            self._begin_head()

    def on_headers_complete(self) -> None:
        self._end_head()
        if not self.url.startswith(b"/"):
            self._take_host_of_target()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._stop("rest")
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Close the connection unless the rest of a body whose request is answered already comes soon."""
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:
            self._start("rest", HEAD_SECONDS, self.transport.close)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start("stalled", STALLED, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop("stalled")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read as HTTP."""
        self._refuse(Refusal(400, "the request must be HTTP/1.1"))

    def _take_host_of_target(self) -> None:
        """Take the host of a request for a whole address, ``GET http://host/path``, whatever Host says."""
        target = httptools.parse_url(self.url)
        if target.host:
            host = b"[%b]" % target.host if b":" in target.host else target.host
            port = b"" if target.port is None else b":%d" % target.port
            self.headers[:] = [(b"host", host + port), *(one for one in self.headers if one[0] != b"host")]

    def _begin_head(self) -> None:
        self._head = 0
        self._start("head", HEAD_SECONDS, self._late)

    def _end_head(self) -> None:
        self._head = None
        self._stop("head")

    def _start(self, name: str, seconds: float, function: Callable[[], object]) -> None:
        self._stop(name)
        self._timers[name] = self.loop.call_later(seconds, function)

    def _stop(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _late(self) -> None:
        """Refuse a head that did not come in time; where nothing came at all, close without a word."""
        if self._head:
            self._refuse(Refusal(408, f"the headers must come within {HEAD_SECONDS:g} seconds"))
        else:
            self.transport.close()

    def _refuse(self, error: Refusal) -> None:
        """Answer before there is a request, and close."""
        self._end_head()
        reply = reply_to(error)
        assert isinstance(reply.body, bytes)
        head = f"content-type: {reply.media}\r\ncontent-length: {len(reply.body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[reply.status] + head.encode() + reply.body)
        self.transport.close()


class Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        if isinstance(reply.body, bytes):
            await self._send({"type": "http.response.body", "body": reply.body, "more_body": False})
        else:
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
        reply = reply_to(error)
        if reply.status in (408, 413):
            reply = reply._replace(headers={**reply.headers, "connection": "close"})
        if not self.status:
            await self.answer(reply)


class Route(NamedTuple):
    """The operations at a path."""

    pattern: re.Pattern[str]
    """Finds the parts of the path that have names."""
    operations: dict[str, Operation]
    """By the verb."""


NOWHERE = Route(re.compile(""), {})


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
        self._routes: dict[str, Route] = {}  # by the path as the operations have it
        self._readers: dict[Operation, Callable[[bytes], msgspec.Struct]] = {}
        for operation in operations:
            pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(operation.path))
            route = self._routes.setdefault(operation.path, Route(re.compile(pattern), {}))
            route.operations[operation.verb] = operation
            if operation.body is not None:
                self._readers[operation] = reader_of(operation.body)
        self._find_again = functools.lru_cache(REMEMBERED)(self._find)  # most requests are for few bandits

    def find(self, path: str) -> tuple[Route, dict[str, str]]:
        """Return the route of a path and its parts that have names; long paths are not remembered."""
        return self._find_again(path) if len(path) <= LONGEST_REMEMBERED else self._find(path)

    def _find(self, path: str) -> tuple[Route, dict[str, str]]:
        """Look for the route of a path."""
        for route in self._routes.values():
            found = route.pattern.fullmatch(path)
            if found is not None:
                return route, found.groupdict()
        return NOWHERE, {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_background(receive, send)
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

    async def _run_background(self, receive: Receive, send: Send) -> None:
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
        answer = await self._call(exchange, operation, request)
        if not isinstance(answer, Response):
            message = answer if isinstance(answer, msgspec.Struct) else messages.sendable(answer)
            answer = Response(ENCODER.encode(message))
        await exchange.answer(answer)

    async def _call(self, exchange: Exchange, operation: Operation, request: Request) -> object:
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
        line = RequestLine(
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


def reader_of(kind: type[msgspec.Struct] | types.UnionType) -> Callable[[bytes], msgspec.Struct]:
    """Return a function that reads bodies of a type; of several messages each has a field that only it must have.

    >>> read = reader_of(messages.Tell | messages.Tells)
    >>> read(b'{"reward": 1.0, "decision": 7}').decision, len(read(b'{"rewards": [{"reward": 0}]}').rewards)
    (7, 1)
    """
    first, *others = get_args(kind) if get_origin(kind) is types.UnionType else (kind,)
    usual: msgspec.json.Decoder[msgspec.Struct] = msgspec.json.Decoder(first)
    marked: list[tuple[str, msgspec.json.Decoder[msgspec.Struct]]] = [
        (_mark(other, first), msgspec.json.Decoder(other)) for other in others
    ]

    def read(body: bytes) -> msgspec.Struct:
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
        now += 1 if bracket in b"[{" else -1
        deepest = max(deepest, now)
    return deepest


def query_of(text: bytes, kind: type[S]) -> S:
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


# From an address until the end.


class Server(uvicorn.Server):
    """uvicorn's server, which ends without an error when it is told to end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {one: signal.signal(one, self._end) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.should_exit = True


def check_address(service: Service, host: str) -> None:
    """Raise if others than this machine could connect and there is no token to tell them apart by."""
    if not is_loopback(host) and not service.access.needed:
        raise ValueError(
            f"host must be a loopback address such as 127.0.0.1 while the store has no token, got {host}; "
            "`rightarm tokens add` makes one"
        )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket on an address; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise OSError(f"cannot listen on {host} port {port}: {error.strerror}") from error
    made.setblocking(False)
    return made


def serve(service: Service, host: str, port: int, say: Callable[[str], object]) -> None:
    """Answer requests until SIGTERM or Ctrl-C; ``say`` hears the address when the first one can come."""
    check_address(service, host)
    place = listen(host, port)
    sys.setswitchinterval(SWITCH)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # the log has a line for each request
    config = uvicorn.Config(
        App(service, lambda: say(_address(host, place))),
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        http=Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE,
        backlog=BACKLOG,
    )
    with place:
        Server(config).run(sockets=[place])


def _address(host: str, place: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{place.getsockname()[1]}"
