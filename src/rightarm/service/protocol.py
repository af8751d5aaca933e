"""How bytes become requests: uvicorn's protocol, with limits of time and size before a request has begun."""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from rightarm.service import problems
from rightarm.service.problems import Refusal

HEAD_SECONDS = 10.0  # for the first line and the headers of a request
STALLED = 30.0  # seconds after which somebody who takes none of an answer is dropped
LARGEST_HEAD = 65_536  # bytes


class Protocol(HttpToolsProtocol):
    """A connection. Who sends headers slowly, or endlessly, or reads nothing, loses it; others never notice."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._head: int | None = 0  # bytes of a head that is not complete; None while none is coming
        self._clock: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._rest: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._end_rest()
        self.resume_writing()
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
        self._end_rest()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The rest of a body whose request is answered already must come soon, or the connection is closed."""
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:
            self._rest = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(STALLED, self.transport.abort)

    def resume_writing(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """What cannot be read as HTTP."""
        self._refuse(Refusal(400, "the request must be HTTP/1.1"))

    def _take_host_of_target(self) -> None:
        """A request for a whole address, ``GET http://host/path``, is for the host in there, whatever Host says."""
        target = httptools.parse_url(self.url)
        if target.host:
            host = b"[%b]" % target.host if b":" in target.host else target.host
            port = b"" if target.port is None else b":%d" % target.port
            self.headers[:] = [(b"host", host + port), *(one for one in self.headers if one[0] != b"host")]

    def _begin_head(self) -> None:
        self._head = 0
        self._clock = self.loop.call_later(HEAD_SECONDS, self._late)

    def _end_head(self) -> None:
        self._head = None
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _end_rest(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _late(self) -> None:
        """A head did not come in time; a connection on which nothing came at all is closed without a word."""
        if self._head:
            self._refuse(Refusal(408, f"the headers must come within {HEAD_SECONDS:g} seconds"))
        else:
            self.transport.close()

    def _refuse(self, error: Refusal) -> None:
        """Answer before there is a request, and close."""
        self._end_head()
        found = problems.wire(error)
        head = f"content-type: {problems.MEDIA}\r\ncontent-length: {len(found.body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[found.status] + head.encode() + found.body)
        self.transport.close()
