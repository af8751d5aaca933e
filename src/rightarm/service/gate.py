"""The outermost layer: who asks, how long it may take, and a line in the log for every request."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from rightarm.service import problems
from rightarm.service.access import Caller, check_allowed
from rightarm.service.bodies import LARGEST, check_name
from rightarm.service.decisions import QUICK, check_method, quick_route
from rightarm.service.journal import Line
from rightarm.service.problems import Refusal, Wire
from rightarm.service.service import Service

PATIENCE = 30.0  # seconds for a request, and then for each further part of a long answer
OPEN = ("/health", "/ready", "/openapi.json")  # for these nobody needs a token
UNKNOWN = "(unknown)"
JSON = (b"content-type", b"application/json")
PROBLEM = (b"content-type", problems.MEDIA.encode())


class Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope: Any = scope
        self._receive, self._send = receive, send
        self.status, self.caller = 0, "-"
        self.whole = self.reading = False  # whether the body is here; whether a part of it is awaited
        self.limit: asyncio.Timeout | None = None

    async def receive(self) -> Any:
        """The next part of the body; of a client that is gone before its end nothing is done."""
        self.reading = True
        message = await self._receive()
        self.reading = False
        if message["type"] == "http.disconnect" and not (self.whole or self.status):
            raise Refusal(400, "the body must come to its end")
        self.whole = self.whole or not message.get("more_body")
        return message

    async def send(self, message: Message) -> None:
        """A part of the answer; who takes a long one steadily may take it as long as it needs."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif self.limit is not None and message.get("more_body"):
            self.limit.reschedule(asyncio.get_running_loop().time() + PATIENCE)
        await self._send(message)

    async def body(self) -> bytes:
        """The whole body, if it is not too long."""
        message = await self.receive()
        body: bytes = message.get("body", b"")
        if self.whole and len(body) <= LARGEST:
            return body
        parts, size = [body], len(body)
        while not self.whole and size <= LARGEST:
            parts.append((await self.receive()).get("body", b""))
            size += len(parts[-1])
        if size > LARGEST:
            raise Refusal(413, f"the body must have at most {LARGEST:,} bytes")
        return b"".join(parts)

    async def answer(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """The whole answer."""
        self.status = status
        length = (b"content-length", str(len(body)).encode())
        await self._send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def refuse(self, error: Exception) -> None:
        """The problem that an error is, if the answer has not begun; the rest of a bad body is not awaited."""
        found: Wire = problems.wire(error)
        if not self.status:
            more = {"connection": "close"} if found.status in (408, 413) else {}
            headers = [(name.encode(), value.encode()) for name, value in (found.headers | more).items()]
            await self.answer(found.status, [PROBLEM, *headers], found.body)


class Gate:
    """An ASGI application around the one of Litestar."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self.app(scope, receive, send)
            return
        began, exchange, found = time.perf_counter(), Exchange(scope, receive, send), quick_route(scope["path"])
        try:
            self.service.access.check_host(exchange.scope["headers"])
            async with asyncio.timeout(PATIENCE) as exchange.limit:
                await (self._litestar(exchange) if found is None else self._quick(exchange, *found))
        except TimeoutError as error:
            slow = Refusal(408, f"the body must come within {PATIENCE:g} seconds")
            await exchange.refuse(slow if exchange.reading else error)
        except Exception as error:  # whatever it is: the client is told, and the server goes on
            await exchange.refuse(error)
        finally:
            self._note(exchange, time.perf_counter() - began, found)

    async def _quick(self, exchange: Exchange, name: str, verb: str) -> None:
        check_method(exchange.scope["method"])
        scope, function = QUICK[verb]
        caller = await self._caller(exchange)
        check_allowed(caller, scope, check_name(name))
        answer = await function(self.service, name, await exchange.body())
        await exchange.answer(200, [JSON], answer)

    async def _litestar(self, exchange: Exchange) -> None:
        if exchange.scope["path"] not in OPEN:
            exchange.scope.setdefault("state", {})["caller"] = await self._caller(exchange)
        await self.app(exchange.scope, exchange.receive, exchange.send)

    async def _caller(self, exchange: Exchange) -> Caller:
        caller = await self.service.access.caller(exchange.scope["headers"])
        exchange.caller = caller.id
        return caller

    def _note(self, exchange: Exchange, seconds: float, found: tuple[str, str] | None) -> None:
        """Count the request and write its line."""
        scope = exchange.scope
        route = scope.get("path_template") or UNKNOWN if found is None else f"/bandits/{{name}}/{found[1]}"
        method = scope["method"] if route != UNKNOWN else "(any)"  # else whoever likes could fill the memory
        self.service.metrics.answered(method, route, exchange.status, seconds)
        bandit = found[0] if found else scope.get("path_params", {}).get("name", "")
        line = Line(
            time=round(time.time(), 3),
            method=scope["method"],
            route=route,
            status=exchange.status,
            ms=round(1e3 * seconds, 2),
            token=exchange.caller,
            bandit=str(bandit)[:100],
        )
        self.service.journal.add(line)
