"""A service to test: in a thread of this process, or as a process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from rightarm.service.app import App, Protocol, listen
from rightarm.service.monitoring import ServiceLog
from rightarm.service.service import Service
from rightarm.store import Commits, open_store

HOME = {"arms": ["red", "blue"], "policy": "UCB(C=0.5)", "reward_range": [0, 1], "seed": 1}


class Served:
    """A client, and the service behind it."""

    def __init__(self, client: httpx.Client, app: App, log: io.StringIO) -> None:
        self.client, self.app, self.service, self.log = client, app, app.service, log

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.client.get(path, **more)

    def post(self, path: str, json: Any = None, **more: Any) -> httpx.Response:
        return self.client.post(path, json=json, **more) if json is not None else self.client.post(path, **more)

    def ask(self, **more: Any) -> Any:
        return self.post("/bandits/home/ask", more).json()


@contextlib.contextmanager
def served(store: str, **options: Any) -> Iterator[Served]:
    """A service on a store, with a bandit ``home``, if nobody needs a token."""
    log = io.StringIO()
    app = App(Service(Commits(open_store(store)), log=ServiceLog(log), **options))
    with running(app) as address, httpx.Client(base_url=address, timeout=60) as client:
        if not app.service.access.needed:
            assert client.put("/bandits/home", json=HOME).status_code == 201
        yield Served(client, app, log)


@contextlib.contextmanager
def listening(store: str, clock: Callable[[], float]) -> Iterator[str]:
    """The address of a service in this process whose clock the test moves."""
    with running(App(Service(Commits(open_store(store, clock=clock)), log=ServiceLog(io.StringIO())))) as address:
        yield address


@contextlib.contextmanager
def running(app: App) -> Iterator[str]:
    """The address of an application that runs in a thread, when its bandits are loaded."""
    ready, place = threading.Event(), listen("127.0.0.1", 0)
    app._started = ready.set
    config = uvicorn.Config(app, http=Protocol, lifespan="on", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([place],))
    thread.start()
    try:
        assert ready.wait(60)
        yield f"http://127.0.0.1:{place.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        place.close()


@contextlib.contextmanager
def server(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`rightarm serve` as a process, and its address, which it says when it is ready."""
    store = f"sqlite:///{folder}/home.db"
    program = "from rightarm.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", "--store", store, "--port", "0", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env={**os.environ}
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    try:
        yield process, line.removeprefix("rightarm answers at ").strip()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(ValueError):
            process.communicate(timeout=60)


def connection(address: str) -> socket.socket:
    """A bare connection to a server."""
    host, _, port = address.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=60)
