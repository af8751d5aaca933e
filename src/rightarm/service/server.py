"""A server on an address: started when bandits are loaded, ended when what it acknowledged is written."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from rightarm.service.access import is_loopback
from rightarm.service.app import build
from rightarm.service.protocol import Protocol
from rightarm.service.service import Service

SWITCH = 0.0001  # seconds after which the commit thread gets its turn; SQLite gives it away at every row
GRACE = 20  # seconds for requests that are under way when the server is to end
BACKLOG = 2048


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
    """A socket on an address; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise OSError(f"cannot listen on {host} port {port}: {error.strerror}") from error
    made.setblocking(False)
    return made


def serve(service: Service, host: str, port: int, say: Callable[[str], object]) -> None:
    """Answer requests until SIGTERM or Ctrl-C; ``say`` hears the address when the first one can come."""
    check_address(service, host)
    place = listen(host, port)
    sys.setswitchinterval(SWITCH)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # the journal has a line for each request
    config = uvicorn.Config(
        build(service, lambda: say(_address(host, place))),
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
