"""The server: connections with limits of time and size, from an address until it is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from rightarm.service.access import is_loopback
from rightarm.service.app import App
from rightarm.service.problems import Refusal, reply_to
from rightarm.service.service import Service

HEAD_SECONDS = 10.0  # for the first line and the headers of a request
STALLED = 30.0  # seconds after which somebody who takes none of an answer is dropped
LARGEST_HEAD = 65_536  # bytes
SWITCH = 0.0001  # seconds after which the commit thread gets its turn; SQLite gives it away at every row
GRACE = 20  # seconds for requests that are under way when the server is to end
BACKLOG = 2048


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
