"""A network that fails: between a service and its database, and cut in the middle of an answer."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from pathlib import Path
from urllib.parse import urlsplit


class Proxy:
    """Listens at a port of its own, and passes everything on to a socket until it is told to cut."""

    def __init__(self, target: Path) -> None:
        self._target, self._lock = str(target), threading.Lock()
        self._open: set[socket.socket] = set()
        self._left: int | None = None  # bytes that still pass before all connections are cut
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._listen, daemon=True).start()

    def url(self, url: str) -> str:
        """The address of a database, by way of this proxy."""
        return f"postgresql://postgres@127.0.0.1:{self._listener.getsockname()[1]}{urlsplit(url).path}"

    def cut(self, after: int) -> None:
        """Cut all connections when so many more bytes have come from the database, in the middle of an answer."""
        with self._lock:
            self._left = after

    def close(self) -> None:
        """Listen no more, and cut everything."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            self._cut()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._target)
            except OSError:  # the database is down
                client.close()
                server.close()
                continue
            with self._lock:
                self._open |= {client, server}
            threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(self._limited(data) if counted else data)
        with self._lock:
            for one in (source, sink):
                self._end(one)

    def _limited(self, data: bytes) -> bytes:
        """What of an answer still passes."""
        with self._lock:
            if self._left is None:
                return data
            passes = data[: self._left]
            self._left -= len(passes)
            if len(passes) < len(data):
                self._left = None
                self.cuts += 1
                self._cut()
            return passes

    def _cut(self) -> None:
        for one in list(self._open):
            self._end(one)

    def _end(self, one: socket.socket) -> None:
        """Reset a connection: the other side sees an error, and nothing that was still on its way."""
        self._open.discard(one)
        with contextlib.suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.shutdown(socket.SHUT_RDWR)  # which wakes the thread that reads it
        one.close()
