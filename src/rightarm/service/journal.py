"""The server's log: a line of JSON for each request, written by a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, TextIO

import msgspec

MOST = 100_000  # lines that wait to be written; where nobody reads them, the oldest are dropped
PAUSE = 0.05  # seconds between writes


class Line(msgspec.Struct, omit_defaults=True):
    """A request that was answered."""

    time: float
    method: str
    route: str
    """The path with the names of its parts: ``/bandits/{name}/ask``. What is secret or personal is not in it."""
    status: int
    ms: float
    token: str
    """The id of the token, never the token."""
    bandit: str = ""


class Journal:
    """Lines to a file; whoever adds one never waits for it."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._lines = file, deque[bytes](maxlen=MOST)
        self._wake, self._ended = threading.Event(), False
        self._encoder = msgspec.json.Encoder(decimal_format="number")
        self._thread = threading.Thread(target=self._write, name="journal", daemon=True)
        self._thread.start()

    def add(self, line: Line | dict[str, Any]) -> None:
        """Write a line soon."""
        self._lines.append(self._encoder.encode(line))
        if not self._wake.is_set():
            self._wake.set()

    def say(self, event: str, **more: Any) -> None:
        """Write that something happened."""
        self.add({"time": round(time.time(), 3), "event": event, **more})

    def close(self) -> None:
        """Write what is left, if that does not take long."""
        self._ended = True
        self._wake.set()
        self._thread.join(timeout=1.0)

    def _write(self) -> None:
        while not self._ended or self._lines:
            self._wake.wait()
            self._wake.clear()
            waiting = [self._lines.popleft() for _ in range(len(self._lines))]
            try:
                self._file.write("".join(line.decode() + "\n" for line in waiting))
                self._file.flush()
            except OSError:
                pass  # the disk is full, or nobody reads: these lines are lost, later ones may not be
            except ValueError:  # the file is closed
                return
            if not self._ended:
                time.sleep(PAUSE)
