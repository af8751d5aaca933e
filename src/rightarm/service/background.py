"""What the server does by itself: it loads bandits, closes windows, sees new tokens, and watches the ratio of arms."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from rightarm.service.problems import Refusal
from rightarm.service.ratio import Watch
from rightarm.service.service import Service
from rightarm.service.warm import warm_up
from rightarm.store import Damaged, Refused

EVERY = 1.0  # seconds, for windows
TOKENS, RATIO = 5.0, 60.0
LATEST = 60.0  # seconds until windows are looked at again, whatever the clock does


async def whole(service: Service) -> AsyncIterator[str]:
    """The names of the bandits that can be read: one that is damaged must not keep the others from being looked at."""
    for name in await service.in_thread(service.store.bandits):
        try:
            await service.read(name, lambda live: None)
        except Damaged as error:
            service.journal.say("damaged", bandit=name, detail=error.detail)
        else:
            yield name


async def load(service: Service, started: Callable[[], object]) -> None:
    """Fold every bandit and compile what its decisions need; then the service is ready."""
    while not service.ready:
        try:
            async for name in whole(service):
                await service.read(name, _warm)
        except Exception as error:  # whatever it is: it is said, and tried again
            service.journal.say("loading failed", detail=str(error)[:1000])
            await asyncio.sleep(EVERY)
        else:
            service.ready = True
            started()


def _warm(live: Any) -> None:
    warm_up(live.bandit)


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
                    self.next[name] = await service.commit(name, _next_window)


def _next_window(live: Any) -> float:
    """When the next window can close, after those that are due were; what is archived learns no more."""
    found: float | None = None if live.status == "archived" else live.bandit.close_windows()
    return math.inf if found is None else min(found, time.time() + LATEST)


async def see_tokens(service: Service) -> None:
    """Tokens are needed from the first one on."""
    await service.in_thread(service.access.look_again)


class Ratios:
    """Watches the ratio of arms of every bandit."""

    def __init__(self) -> None:
        self.watches: dict[str, Watch] = {}

    async def look(self, service: Service) -> None:
        """See the events since the last time."""
        async for name in whole(service):
            watch = self.watches.setdefault(name, Watch())
            await service.in_thread(watch.follow, service.store, name)
            service.metrics.e_values[name] = await service.in_thread(watch.look)


async def again(service: Service, seconds: float, function: Callable[[Service], Awaitable[None]]) -> None:
    """Do something every so many seconds; what the store refuses now it may do the next time."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await function(service)
        except (Refused, Refusal):
            pass
        except Exception as error:  # whatever it is: it is said, and done again the next time
            service.journal.say("background work failed", work=function.__qualname__, detail=repr(error)[:1000])


@contextlib.asynccontextmanager
async def background(service: Service, started: Callable[[], object]) -> AsyncIterator[None]:
    """While the server runs; at the end what was acknowledged is finished."""
    repeated = (EVERY, Windows().close), (TOKENS, see_tokens), (RATIO, Ratios().look)
    tasks = [asyncio.create_task(again(service, seconds, function)) for seconds, function in repeated]
    tasks.append(asyncio.create_task(load(service, started)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(service.close)
