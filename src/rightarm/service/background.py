"""What the server does by itself: it loads bandits, closes windows, sees new tokens, and watches the ratio of arms."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from rightarm.service import reading
from rightarm.service.problems import Refusal
from rightarm.service.ratio import Watch
from rightarm.service.service import Service
from rightarm.store import Damaged, Refused

WINDOWS, TOKENS, RATIO = 1.0, 5.0, 60.0  # seconds between two looks
LATEST = 60.0  # seconds until windows are looked at again, whatever the clock does


async def whole(service: Service) -> AsyncIterator[str]:
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
            async for name in whole(service):
                await service.read(name, reading.warm_up)
        except Exception as error:  # whatever it is: it is said, and tried again
            service.log.say("loading failed", detail=str(error)[:1000])
            await asyncio.sleep(WINDOWS)
        else:
            service.ready = True
            started()


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
                    self.next[name] = min(await service.commit(name, reading.next_window), time.time() + LATEST)


async def see_tokens(service: Service) -> None:
    """See whether there are tokens by now: they are needed from the first one on."""
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
            e_value = await service.in_thread(watch.look)
            service.metrics.e_values.labels(name).set(e_value)


async def again(service: Service, seconds: float, function: Callable[[Service], Awaitable[None]]) -> None:
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
    repeated = (WINDOWS, Windows().close), (TOKENS, see_tokens), (RATIO, Ratios().look)
    tasks = [asyncio.create_task(again(service, seconds, function)) for seconds, function in repeated]
    tasks.append(asyncio.create_task(load(service, started)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(service.close)
