"""What the server does by itself: it loads bandits, closes windows, sees new tokens, and watches the ratio of arms."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from rightarm.service.ratio import Watch
from rightarm.service.service import Service
from rightarm.service.warm import warm_up
from rightarm.store import Refused, Work, verbs

EVERY = 1.0  # seconds, for windows
TOKENS, RATIO = 5.0, 60.0


async def load(service: Service, started: Callable[[], object]) -> None:
    """Fold every bandit and compile what its decisions need; then the service is ready."""
    while not service.ready:
        try:
            for name in await service.in_thread(service.store.bandits):
                await service.read(name, _warm)
            service.ready = True
            started()
        except Refused as error:
            service.journal.say("loading failed", detail=error.detail)
            await asyncio.sleep(EVERY)


def _warm(live: Any) -> None:
    warm_up(live.bandit)


async def close_windows(service: Service) -> None:
    """Close the windows of bandits that nobody asks just now."""
    now = time.time()
    for name in await service.in_thread(service.store.bandits):
        if await service.read(name, lambda live: verbs.windows_due(live, now)):
            await service.commit(Work(name, verbs.close_windows))


async def see_tokens(service: Service) -> None:
    """Tokens are needed from the first one on."""
    await service.in_thread(service.access.look_again)


class Ratios:
    """Watches the ratio of arms of every bandit."""

    def __init__(self) -> None:
        self.watches: dict[str, Watch] = {}

    async def look(self, service: Service) -> None:
        """See the events since the last time."""
        for name in await service.in_thread(service.store.bandits):
            watch = self.watches.setdefault(name, Watch())
            await service.in_thread(watch.follow, service.store, name)
            service.metrics.e_values[name] = await service.in_thread(watch.look)


async def again(service: Service, seconds: float, function: Callable[[Service], Awaitable[None]]) -> None:
    """Do something every so many seconds; what the store refuses now it may do the next time."""
    while True:
        await asyncio.sleep(seconds)
        with contextlib.suppress(Refused, ValueError):
            await function(service)


@contextlib.asynccontextmanager
async def background(service: Service, started: Callable[[], object]) -> AsyncIterator[None]:
    """While the server runs; at the end what was acknowledged is finished."""
    repeated = (EVERY, close_windows), (TOKENS, see_tokens), (RATIO, Ratios().look)
    tasks = [asyncio.create_task(again(service, seconds, function)) for seconds, function in repeated]
    tasks.append(asyncio.create_task(load(service, started)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(service.close)
