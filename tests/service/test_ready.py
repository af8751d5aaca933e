"""/ready is 200 just when an ask would be answered: while the database is there, and as soon as it is back."""

from __future__ import annotations

import asyncio
import io
import itertools
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import faults
import pytest
from faults import BANDITS, PATIENCE, services

from postgres import Postgres
from rightarm.messages import Ask, Definition
from rightarm.policies import UCB
from rightarm.service.background import Ratios, Windows, load, see_tokens
from rightarm.service.monitoring import ServiceLog
from rightarm.service.problem_details import Refusal
from rightarm.service.service import Service
from rightarm.store import Commits, Unavailable, open_store


async def ask(service: Service) -> None:
    await service.commit("home", lambda live: live.ask(Ask()))


FIRST: dict[str, Callable[[Service], Awaitable[None]]] = {
    "ready": Service.check_ready,
    "ask": ask,
    "windows": lambda service: Windows().close(service),
    "ratios": lambda service: Ratios().look(service),
    "tokens": see_tokens,
}


@pytest.mark.parametrize("first", FIRST)
def test_connections_that_were_cut_while_nobody_asked_are_not_noticed(
    first: str, postgres: Postgres, postgres_url: str
) -> None:
    """Whoever comes first when the database is back, a request or work in the background, gets its answer."""
    store = open_store(postgres_url)
    store.do(store.create("home", Definition(arms=["a", "b"], reward_window=60, default_reward=0.0), UCB(C=0.5), "me"))
    service = Service(Commits(store), log=ServiceLog(io.StringIO()))

    async def play() -> None:
        await load(service, lambda: None)
        for function in FIRST.values():
            await function(service)
        assert postgres.disconnect(postgres_url) >= 2  # those that write, and those that read
        await FIRST[first](service)
        assert service.commits.status.last_error is None
        for function in FIRST.values():
            await function(service)

    asyncio.run(play())
    service.close()


def test_a_service_that_loads_or_ends_is_not_ready(sqlite_url: str) -> None:
    service = Service(Commits(open_store(sqlite_url)), log=ServiceLog(io.StringIO()))

    async def play() -> None:
        with pytest.raises(Refusal, match="bandits are being loaded"):
            await service.check_ready()
        await load(service, lambda: None)
        await service.check_ready()
        service.close()
        with pytest.raises(Unavailable, match="the service is closing"):
            await service.check_ready()

    asyncio.run(play())


class Poll(NamedTuple):
    """An answer of /ready, and the phase when it was asked for and when it came."""

    before: int
    status: int
    after: int


class Poller:
    """Asks a service every 100 ms whether it is ready, and nothing else."""

    def __init__(self, service: faults.Service) -> None:
        self.service, self.phase = service, 0
        self.polls = list[Poll]()
        self._changed, self._end = threading.Condition(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(0.1):
            before = self.phase
            status = self.service.get("/ready")[0]
            with self._changed:
                self.polls.append(Poll(before, status, self.phase))
                self._changed.notify_all()

    def in_phase(self, phase: int) -> list[int]:
        """What /ready answered while the database did not change."""
        return [poll.status for poll in self.polls if poll.before == poll.after == phase]

    def wait(self, times: int) -> None:
        """Wait until it was asked so many times in this phase."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.in_phase(self.phase)) >= times, PATIENCE)

    def close(self) -> None:
        self._end.set()
        self._thread.join(PATIENCE)


def restart(times: int, polls: int, postgres: Postgres, url: str, folder: Path) -> None:
    """Restart the database under two idle services, slowly and quickly; after each change see what an ask gets."""

    def again() -> None:
        postgres.stop()
        postgres.start()

    with services([url, url], folder) as running:
        pollers = [Poller(service) for service in running]
        phases = phases_of(pollers)
        for _ in range(times):
            for change, expected in ((postgres.stop, 503), (postgres.start, 200), (again, 200)):
                next(phases)
                change()
                phase = next(phases)
                for poller in pollers:
                    poller.wait(polls)
                for poller in pollers:
                    asked = poller.service.post(f"/bandits/{next(iter(BANDITS))}/ask", {})[0]
                    assert (asked, set(poller.in_phase(phase))) == (expected, {expected}), poller.polls[-20:]
        for poller in pollers:
            poller.close()
            counts = Counter(poll.status for poll in poller.polls)
            assert counts.keys() == {200, 503}
            print(f"/ready was asked {counts.total():,} times: {dict(counts)}")


def phases_of(pollers: list[Poller]) -> Iterator[int]:
    """Numbers of phases, each said to all pollers."""
    for phase in itertools.count(1):
        for poller in pollers:
            poller.phase = phase
        yield phase


def test_ready_says_what_an_ask_would_get(postgres: Postgres, postgres_url: str, tmp_path: Path) -> None:
    restart(1, 3, postgres, postgres_url, tmp_path)


@pytest.mark.full
def test_ready_says_what_an_ask_would_get_at_20_restarts(postgres: Postgres, postgres_url: str, tmp_path: Path) -> None:
    restart(10, 20, postgres, postgres_url, tmp_path)
