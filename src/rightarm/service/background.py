"""Work that a service does by itself: it loads bandits, closes windows, and watches the ratio of arms."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from rightarm.evaluation import SampleRatio, sample_ratio
from rightarm.logs.events import Arm, Changed, Created, Decision
from rightarm.service.problem_details import Refusal
from rightarm.service.service import Service, compute_one, probabilities_of
from rightarm.store import Damaged, Refused, Store, StoredBandit
from rightarm.store.table_journal import StoredEvent

GROWTH = 1.1  # of the number of decisions, after which the evidence is computed again
PAGE = 10_000  # events that are read at once


class Watch:
    """The decisions of a bandit so far, and the evidence against their propensities."""

    def __init__(self) -> None:
        self.columns: dict[str, Any] = {"id": array("q"), "arm": [], "propensity": array("d"), "allowed": []}
        self.last = 0
        self.e_value = 1.0
        self._active: tuple[Arm, ...] = ()
        self._looked = 0

    def take(self, events: Iterable[StoredEvent]) -> None:
        """Take events, which are those after the last."""
        columns = self.columns
        for stored in events:
            self.last = stored.n
            event = stored.event()
            if isinstance(event, Created | Changed) and event.arms is not None:
                self._active = tuple(event.arms)
            elif isinstance(event, Decision):
                columns["id"].append(event.id)
                columns["arm"].append(event.arm)
                columns["propensity"].append(event.propensity)
                columns["allowed"].append(self._active if event.allowed is None else tuple(event.allowed))

    def follow(self, store: Store, name: str) -> None:
        """Take the events that the store has by now."""
        before = -1
        while before < self.last:
            before = self.last
            self.take(list(store.stored_events(name, self.last, PAGE)))

    def look(self) -> float:
        """Return the largest capital that somebody who bets against the propensities has had, as of not long ago."""
        rows = len(self.columns["arm"])
        if rows >= GROWTH * self._looked:
            self.e_value = sample_ratio(self.columns).e_value
            self._looked = max(rows, 1)
        return self.e_value


def ratio_of(store: Store, name: str, confidence: float) -> SampleRatio:
    """Check all decisions of a bandit."""
    watch = Watch()
    watch.follow(store, name)
    return sample_ratio(watch.columns, confidence=confidence)


WINDOWS = 1.0  # seconds between two looks at the windows,
TOKENS = 5.0  # at the tokens,
RATIO = 60.0  # and at the ratio of arms
LATEST = 60.0  # seconds until windows are looked at again, whatever the clock does


async def undamaged(service: Service) -> AsyncIterator[str]:
    """Yield the names of the bandits that can be read: a damaged one must not keep others from being looked at."""
    for name in await service.in_thread(service.store.bandits):
        try:
            await service.read(name, lambda live: None)
        except Damaged as error:
            service.log.say("damaged", bandit=name, detail=error.detail)
        else:
            yield name


async def load(service: Service, started: Callable[[], object]) -> None:
    """Fold every bandit and compile what its decisions need; then the service is ready."""
    while not service.ready:
        try:
            async for name in undamaged(service):
                await service.read(name, warm_up)
        except Exception as error:  # whatever it is: it is said, and tried again
            service.log.say("loading failed", detail=str(error)[:1000])
            await asyncio.sleep(WINDOWS)
        else:
            service.ready = True
            started()


def warm_up(bandit: StoredBandit) -> None:
    """Compile and compute what the next decision of a bandit needs; nothing is decided."""
    state = bandit.state
    compute_one(state.arms.policy, state.active_names(), partial(probabilities_of, state))


def close_windows(bandit: StoredBandit) -> float:
    """Close the windows that are due, and return when the next one can close; what is archived learns no more."""
    seconds = bandit.state.settings.reward_window
    if seconds is None or bandit.status == "archived":
        return math.inf
    bandit.close_windows()
    first = next(iter(bandit.state.ledger.pending.values()), None)
    return seconds + (time.time() if first is None else first.decision.time)


class Windows:
    """Closes the windows of bandits that nobody asks just now."""

    def __init__(self) -> None:
        self.next: dict[str, float] = {}  # when the next window of a bandit can close, in seconds since 1970

    async def close(self, service: Service) -> None:
        """Close those that are due."""
        now = time.time()
        for name in await service.in_thread(service.store.bandits):
            if self.next.get(name, 0.0) <= now:
                self.next[name] = now + LATEST  # if it is damaged, the others are still looked at
                with contextlib.suppress(Damaged):
                    self.next[name] = min(await service.commit(name, close_windows), time.time() + LATEST)


async def see_tokens(service: Service) -> None:
    """See whether there are tokens by now: they are needed from the first one on."""
    await service.in_thread(service.access.look_again)


class Ratios:
    """Watches the ratio of arms of every bandit."""

    def __init__(self) -> None:
        self.watches: dict[str, Watch] = {}

    async def look(self, service: Service) -> None:
        """See the events since the last time."""
        async for name in undamaged(service):
            watch = self.watches.setdefault(name, Watch())
            await service.in_thread(watch.follow, service.store, name)
            e_value = await service.in_thread(watch.look)
            service.metrics.e_values.labels(name).set(e_value)


async def repeat(service: Service, seconds: float, function: Callable[[Service], Awaitable[None]]) -> None:
    """Do something every so many seconds; what the store refuses now it may do the next time."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await function(service)
        except (Refused, Refusal):
            pass
        except Exception as error:  # whatever it is: it is said, and done again the next time
            service.log.say("background work failed", work=function.__qualname__, detail=repr(error)[:1000])


@contextlib.asynccontextmanager
async def background(service: Service, started: Callable[[], object]) -> AsyncIterator[None]:
    """Do all of it while the server runs; at the end finish what was acknowledged."""
    tasks = [
        asyncio.create_task(repeat(service, WINDOWS, Windows().close)),
        asyncio.create_task(repeat(service, TOKENS, see_tokens)),
        asyncio.create_task(repeat(service, RATIO, Ratios().look)),
        asyncio.create_task(load(service, started)),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(service.close)
