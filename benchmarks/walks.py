"""Which modules of rightarm a call passes through: `python -m benchmarks.walks`.

A module counts when one of its Python functions is entered between the call and its result, in any thread. Compiled
code does not show. Every walk is warmed up first, so that neither imports nor compiling count, and then taken several
times: the shortest counts, in which nothing else went on in the background.

Only public names are used here, so that the walks can be taken again whatever the modules are called.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import json
import os
import queue
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import rightarm as ra
from benchmarks.common import table

PACKAGE = "rightarm"
WARM_UP, TIMES = 20, 10  # walks that do not count, and those of which the shortest does
ROWS = 500  # of the log that is evaluated: enough that nothing has to be warned of
ARMS, POLICY = ["red", "green", "blue"], ra.BoltzmannGumbel(C=0.5)
LIMITS = {
    "Bandit.tell, in memory": 8,
    "Bandit.tell, with a log": 8,
    "Bandit.ask": 8,
    "HTTP ask, SQLite": 14,
    "simulate": 9,
    "evaluate": 8,
}


class Footprints:
    """The modules of the package that are entered while it records, in the order in which they were entered first."""

    def __init__(self) -> None:
        self.is_recording = False
        self.modules: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Note the module of a function that is entered; what Python calls as its profile function."""
        if self.is_recording and event == "call":
            module = frame.f_globals.get("__name__", "")
            if module == PACKAGE or module.startswith(f"{PACKAGE}."):
                self.modules.setdefault(module)

    def install(self) -> None:
        """Watch this thread, and all threads that are started from now on."""
        threading.setprofile(self)
        sys.setprofile(self)

    def of(self, call: Callable[[], object]) -> list[str]:
        """Return the modules that a call enters."""
        self.modules = {}
        self.is_recording = True
        try:
            call()
        finally:
            self.is_recording = False
        return list(self.modules)


def shortest(footprints: Footprints, prepare: Callable[[], Callable[[], object]]) -> list[str]:
    """Return the shortest of several walks; ``prepare`` makes each call, and what it does itself does not count."""
    for _ in range(WARM_UP):
        prepare()()
    walks = [footprints.of(prepare()) for _ in range(TIMES)]
    return min(walks, key=len)


def told(bandit: ra.Bandit[str], rewards: random.Random) -> Callable[[], object]:
    """Ask, and return a call that tells the reward."""
    return functools.partial(bandit.tell, bandit.ask(), float(rewards.random() < 0.5))


def asked(bandit: ra.Bandit[str], rewards: random.Random) -> Callable[[], object]:
    """Have the bandit learn something, so that its probabilities must be computed anew, and return a call that asks."""
    told(bandit, rewards)()
    return bandit.ask


@contextlib.contextmanager
def logging_bandit() -> Iterator[tuple[ra.Bandit[str], Path]]:
    """Make a bandit that writes a log, and remove the log at the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.jsonl"
        bandit = ra.Bandit(ARMS, POLICY, seed=1, log=path)
        try:
            yield bandit, path
        finally:
            bandit.close()


class Said(io.StringIO):
    """The standard output of the server, whose lines another thread waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: queue.Queue[str] = queue.Queue()

    def write(self, text: str) -> int:
        length = super().write(text)  # which refuses bytes, as a text file must
        if text.strip():
            self.lines.put(text.strip())
        return length


def post(connection: http.client.HTTPConnection, verb: str, body: dict[str, Any]) -> Any:
    """Send a request, and wait for the whole answer."""
    connection.request("POST", f"/bandits/home/{verb}", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != http.client.OK:
        raise RuntimeError(f"the service answered {answer.status}: {text!r}")
    return json.loads(text)


def ask_over(connection: http.client.HTTPConnection) -> Callable[[], object]:
    """Have the bandit learn something over HTTP, and return a call that asks over HTTP."""
    decision = post(connection, "ask", {})["decision"]
    post(connection, "tell", {"decision": decision, "reward": 1.0})
    return functools.partial(post, connection, "ask", {})


def asked_over_http(footprints: Footprints, said: Said, found: list[Any]) -> None:
    """Wait for the server, take the walk of an ask, and end the server; ``found`` gets the walk, or the error."""
    try:
        address = said.lines.get(timeout=60).split()[-1]
        with ra.connect(address) as service:
            service.create("home", ARMS, POLICY)
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
        with contextlib.closing(connection):
            found.append(shortest(footprints, functools.partial(ask_over, connection)))
    except Exception as error:
        found.append(error)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def http_walk(footprints: Footprints) -> list[str]:
    """Return the walk of an ask over HTTP: ``rightarm serve`` runs in this thread, and the client in another one."""
    from rightarm.cli import main as command

    said, found, before = Said(), list[Any](), sys.argv
    client = threading.Thread(target=asked_over_http, args=(footprints, said, found))
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["rightarm", "serve", "--store", f"sqlite:///{folder}/home.db", "--port", "0"]
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
                client.start()
                with contextlib.suppress(SystemExit):
                    command()
        finally:
            sys.argv = before
            client.join()
    if isinstance(found[0], Exception):
        raise found[0]
    walk: list[str] = found[0]
    return walk


def walks(footprints: Footprints) -> Iterator[list[str]]:
    """Take the walks, in the order of LIMITS."""
    bandit, rewards = ra.Bandit(ARMS, POLICY, seed=1), random.Random(1)
    yield shortest(footprints, functools.partial(told, bandit, rewards))
    with logging_bandit() as (logging, path):
        yield shortest(footprints, functools.partial(told, logging, rewards))
        yield shortest(footprints, functools.partial(asked, bandit, rewards))
        yield http_walk(footprints)
        problem = ra.problems.Bernoulli([0.6, 0.5, 0.4])
        simulate = functools.partial(ra.simulate, POLICY, problem, horizon=100, replications=64, seed=1)
        yield shortest(footprints, lambda: simulate)
        for _ in range(ROWS):
            told(logging, rewards)()
        yield shortest(footprints, lambda: functools.partial(ra.evaluate, path, ra.BoltzmannGumbel(C=1.0)))


def main() -> None:
    """Take all walks and print them."""
    footprints = Footprints()
    footprints.install()
    taken = dict(zip(LIMITS, walks(footprints), strict=True))
    sys.setprofile(None)
    threading.setprofile(None)
    rows = [[name, len(walk), LIMITS[name]] for name, walk in taken.items()]
    print(table(["walk", "modules", "at most"], rows))
    for name, walk in taken.items():
        print(f"\n{name}: {', '.join(module.removeprefix(f'{PACKAGE}.') for module in walk)}")


if __name__ == "__main__":
    main()
