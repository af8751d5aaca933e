"""Services that are killed under load, and clients that write down everything that was acknowledged to them."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import random
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import independent

K = TypeVar("K")

PATIENCE = 120.0  # seconds after which something that was waited for counts as never coming
BANDITS: dict[str, dict[str, Any]] = {
    "home": {"arms": ["red", "green", "blue"], "policy": "BoltzmannGumbel(C=0.3)", "floor": 0.01},
    "shop": {"arms": ["old", "new"], "policy": "Boltzmann(temperature=0.25)"},
}
TIMED = {"timed": {"arms": ["a", "b"], "policy": "UCB(C=0.5)", "reward_window": 3600.0, "default_reward": 0.5}}
Bandits = Mapping[str, Mapping[str, Any]]


class Service:
    """A `rightarm serve` on a port of its own choice, which can be killed and started again."""

    program = Path(__file__).with_name("worse.py")

    def __init__(self, store: str, output: Path) -> None:
        self.store, self.output = store, output
        self.ready = threading.Event()
        self.address = "127.0.0.1", 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *worse: str, wait: bool = True) -> None:
        """Start it, in a worse world if options of `worse` say so, and wait until it says that it is ready."""
        options = ["serve", "--store", self.store, "--host", "127.0.0.1", "--port", "0"]
        command = [sys.executable, str(self.program), *worse, "--", *options]
        with self.output.open("ab") as file:
            before = file.tell()
            self._process = subprocess.Popen(command, stdout=file, stderr=file)
        self.address = "127.0.0.1", self._port(before)
        if wait:
            self.wait()

    def _port(self, before: int) -> int:
        """The port, which it prints."""
        assert self._process is not None
        pause = threading.Event()
        while True:
            ended = self._process.poll() is not None
            output = self.output.read_bytes()[before:]
            found = re.search(rb"http://127\.0\.0\.1:(\d+)\b.*\n", output)
            if found:
                return int(found[1])
            assert not ended, f"the service ended: {output.decode()}"
            pause.wait(0.01)

    def wait(self) -> None:
        """Wait until it is ready."""
        pause = threading.Event()
        while self.get("/ready")[0] != 200:
            pause.wait(0.01)
        self.ready.set()

    def kill(self) -> None:
        """End it with kill -9."""
        self.ready.clear()
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)

    def stop(self) -> int:
        """Ask it to end, as systemd does; its exit code."""
        self.ready.clear()
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(PATIENCE)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body."""
        connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def post(self, path: str, body: Any, method: str = "POST") -> tuple[int, Any, dict[str, str]]:
        """Status, body and headers."""
        connection = http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        with contextlib.closing(connection):
            return answer_to(connection, path, body, method)

    def make_bandits(self, bandits: Bandits = BANDITS) -> None:
        for name, definition in bandits.items():
            status, body, _ = self.post(f"/bandits/{name}", definition, "PUT")
            assert status in (200, 201), body

    def story(self, name: str) -> independent.Story:
        """All events of a bandit, read by the independent program."""
        status, body = self.get(f"/bandits/{name}/events")
        assert status == 200
        return independent.read(body.splitlines())


def answer_to(
    connection: http.client.HTTPConnection, path: str, body: Any, method: str = "POST"
) -> tuple[int, Any, dict[str, str]]:
    connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read()), {name.lower(): value for name, value in answer.getheaders()}


@dataclass
class Acknowledged:
    """What the clients of one bandit know for certain."""

    choices: dict[str, dict[str, Any]] = field(default_factory=dict)  # by key
    rewards: dict[int, float] = field(default_factory=dict)  # by decision

    def check(self, story: independent.Story) -> None:
        """Raise unless the events have just this: nothing lost, nothing twice, nothing else."""
        ids = Counter(choice["decision"] for choice in self.choices.values())
        assert [number for number, times in ids.items() if times > 1] == [], "two keys have one decision"
        assert sorted(ids.keys() - story.decisions.keys()) == [], "lost decisions"
        assert sorted(story.decisions.keys() - ids.keys()) == [], "decisions made twice"
        for choice in self.choices.values():
            event = story.decisions[choice["decision"]]
            assert (event["arm"], event["propensity"]) == (choice["arm"], choice["propensity"]), "another propensity"
            assert event["n"] == choice["version"] + 1, "another version"
        silent = {number: reward for number, reward in story.answers.items() if number not in self.rewards}
        assert story.answers == silent | self.rewards, "lost rewards"
        assert set(silent.values()) <= {story.settings.get("default_reward")} - {None}, "rewards of nobody"


class Load:
    """Clients that ask and tell without end, and repeat what is not acknowledged until it is.

    Each request goes to any of the services; a key stays with a question, however often and wherever it is asked.
    """

    def __init__(
        self, services: Sequence[Service], bandits: Bandits = BANDITS, clients: int = 8, seed: int = 1
    ) -> None:
        self.services, self.bandits = services, bandits
        self.known = {name: Acknowledged() for name in bandits}
        self.done = 0  # requests that were acknowledged
        self.failed: Counter[str] = Counter()
        self.error: BaseException | None = None
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._clients = [threading.Thread(target=self._run, args=(i,), daemon=True) for i in range(clients)]

    def __enter__(self) -> Load:
        for client in self._clients:
            client.start()
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        """Let every client finish what it has begun."""
        self._stopping.set()
        if kind is not None:
            return  # the clients end with the process
        for client in self._clients:
            client.join(PATIENCE)
            assert not client.is_alive(), f"a client waits for an answer; failures: {self.failed}"
        if self.error is not None:
            raise self.error

    def wait(self, more: int) -> None:
        """Wait until so many more requests were acknowledged."""
        until = self.done + more
        self._wait(lambda: self.done >= until)

    def wait_for_failures(self, kind: str, more: int) -> None:
        """Wait until so many more requests have failed in this way."""
        until = self.failed[kind] + more
        self._wait(lambda: self.failed[kind] >= until)

    def _wait(self, sign: Callable[[], bool]) -> None:
        with self._changed:
            came = self._changed.wait_for(lambda: sign() or self.error is not None, PATIENCE)
        if self.error is not None:
            raise self.error
        assert came, f"{self.done} requests, then nothing for {PATIENCE:.0f} s; failures: {self.failed}"

    def _run(self, number: int) -> None:
        try:
            with contextlib.closing(Client(self, number)) as client:
                client.live()
        except BaseException as error:  # which `wait` raises in the thread of the test
            self.error = error
            self.count("error")

    def count(self, failure: str | None = None) -> None:
        """Count a request that was acknowledged, or one that failed."""
        with self._changed:
            if failure is None:
                self.done += 1
            else:
                self.failed[failure] += 1
            self._changed.notify_all()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def check(self, service: Service) -> None:
        """Raise unless the store has just what was acknowledged, and the same keys get the same answers."""
        luck = random.Random(1)
        for name, known in self.known.items():
            known.check(service.story(name))
            for key in some(luck, known.choices):
                assert service.post(f"/bandits/{name}/ask", {"key": key})[:2] == (200, known.choices[key])
            for decision in some(luck, known.rewards):
                told = {"decision": decision, "reward": known.rewards[decision]}
                assert service.post(f"/bandits/{name}/tell", told)[1]["outcome"] == "duplicate"
            known.check(service.story(name))
        self._print()

    def _print(self) -> None:
        """Print what was done: ``pytest -rP`` shows it."""
        decisions = sum(len(known.choices) for known in self.known.values())
        rewards = sum(len(known.rewards) for known in self.known.values())
        failed = ", ".join(f"{kind} {times:,}" for kind, times in sorted(self.failed.items()))
        print(f"{decisions:,} decisions and {rewards:,} rewards acknowledged; requests that failed: {failed or 'none'}")


def some(luck: random.Random, these: Mapping[K, Any]) -> list[K]:
    """Up to fifty of the keys."""
    return luck.sample(list(these), min(50, len(these)))


class Client:
    """One of them: a thread with connections of its own."""

    def __init__(self, load: Load, number: int) -> None:
        self.load, self.number = load, number
        self._luck = random.Random(number)
        self._open: dict[tuple[str, int], http.client.HTTPConnection] = {}

    def live(self) -> None:
        for count in itertools.count():
            if self.load.stopping:
                return
            name, key = self._luck.choice(list(self.load.bandits)), f"{self.number}-{count}"
            choice, _ = self._acknowledged(f"/bandits/{name}/ask", {"key": key})
            self.load.known[name].choices[key] = choice
            self.load.count()
            if self._luck.random() < 0.1:
                assert self._acknowledged(f"/bandits/{name}/ask", {"key": key})[0] == choice
            if self._luck.random() < 0.9:
                self._tell(name, choice["decision"])

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()

    def _tell(self, name: str, decision: int) -> None:
        told = {"decision": decision, "reward": self._luck.choice([0.0, 0.25, 1.0])}
        answer, tries = self._acknowledged(f"/bandits/{name}/tell", told)
        timed = "reward_window" in self.load.bandits[name]  # then it may come too late, and correct something
        assert answer["outcome"] == "learned" or timed or (answer["outcome"] == "duplicate" and tries > 1), answer
        self.load.known[name].rewards[decision] = told["reward"]
        self.load.count()
        if self._luck.random() < 0.1:
            assert self._acknowledged(f"/bandits/{name}/tell", told)[0]["outcome"] == "duplicate"

    def _acknowledged(self, path: str, body: Any) -> tuple[Any, int]:
        """The answer, after as many tries as it takes, and how many it took."""
        pause = threading.Event()
        for tries in itertools.count(1):
            address = self._anywhere()
            try:
                status, answer, headers = answer_to(self._connection(address), path, body)
            except (OSError, http.client.HTTPException) as error:
                self._open.pop(address).close()
                self.load.count(type(error).__name__)
                pause.wait(0.01)
                continue
            if status == 200:
                return answer, tries
            assert status == 503, (status, answer)
            assert int(headers["retry-after"]) > 0
            self.load.count("503")
            pause.wait(0.05)
        raise AssertionError("unreachable")

    def _anywhere(self) -> tuple[str, int]:
        """The address of a service that is ready, or of the next that will be."""
        running = [service for service in self.load.services if service.ready.is_set()]
        service = self._luck.choice(running or list(self.load.services))
        service.ready.wait(PATIENCE)
        return service.address

    def _connection(self, address: tuple[str, int]) -> http.client.HTTPConnection:
        if address not in self._open:
            self._open[address] = http.client.HTTPConnection(*address, timeout=PATIENCE)
        return self._open[address]


@contextlib.contextmanager
def services(stores: Sequence[str], folder: Path, *worse: str, bandits: Bandits = BANDITS) -> Iterator[list[Service]]:
    """Running services, one for each store, with the bandits; killed at the end, if they still run."""
    made = [Service(store, folder / f"output {number}") for number, store in enumerate(stores)]
    try:
        for service in made:
            service.start(*worse)
        made[0].make_bandits(bandits)
        yield made
    finally:
        for service in made:
            service.kill()
