"""What all requests share: the store, its commits, who may do what, and threads for what takes long."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from rightarm.service.access import Access
from rightarm.service.journal import Journal
from rightarm.service.metrics import Metrics
from rightarm.service.policies import Policies
from rightarm.service.problems import RETRY, Refusal
from rightarm.store import PROBE, Commits, Work

T = TypeVar("T")
THREADS = 4  # for reads
MOST_READS = 100  # that wait for a thread
MOST_STREAMS = 32


class Service:
    """A store and what answers requests about it."""

    def __init__(
        self,
        commits: Commits,
        modules: Iterable[str] = (),
        rate: float | None = None,
        journal: Journal | None = None,
        host_names: Iterable[str] = (),
    ) -> None:
        self.commits, self.store = commits, commits.store
        self.threads = ThreadPoolExecutor(THREADS, "reads")
        self._finds = ThreadPoolExecutor(2, "tokens")  # every request needs its token, however long reads take
        self.access = Access(self.store.tokens, rate, self._finds, host_names=host_names)
        self.policies, self.metrics = Policies(modules), Metrics()
        self.journal = Journal(sys.stderr) if journal is None else journal
        self.ready = False  # compiled and folded
        self.streams = self._reads = 0
        self._delivery = Delivery()
        commits.observe = self.metrics.committed

    async def commit(self, work: Work | str, function: Callable[[Any], Any] | None = None) -> Any:
        """What work gives, or a function of the live bandit of this name, once all that it did is written."""
        if isinstance(work, str):
            assert function is not None
            work = Work(work, function)
        waiter, done = self._delivery.awaited()
        self.commits.call(work, done)
        return await waiter

    async def read(self, name: str, function: Callable[[Any], T]) -> T:
        """What a function gives that changes nothing, of the live bandit of this name."""
        made: T = await self.commit(Work(name, function, reads=True))
        return made

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives that may take long."""
        if self._reads >= MOST_READS:
            raise Refusal(503, f"{MOST_READS} others wait for reads; try again", None, RETRY)
        self._reads += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)
        finally:
            self._reads -= 1

    async def check_ready(self) -> None:
        """Raise unless a decision would be answered now: by trying all that it needs but the bandit."""
        if not self.ready:
            raise Refusal(503, self.commits.status.last_error or "bandits are being loaded", None, RETRY)
        await self.commit(PROBE)

    def check_streams(self) -> None:
        """Raise if as many answers are being streamed as may be."""
        if self.streams >= MOST_STREAMS:
            raise Refusal(503, f"{MOST_STREAMS} others read events; try again", None, RETRY)

    @contextlib.contextmanager
    def streaming(self) -> Iterator[None]:
        """Count an answer that is streamed: while it is prepared, and while it is sent."""
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    def close(self) -> None:
        """Finish what was acknowledged."""
        self.commits.close()
        for threads in (self._finds, self.threads):
            threads.shutdown(cancel_futures=True)
        self.journal.close()


class Delivery:
    """Brings results of the commit thread to the event loop: all that are there at once, not each by itself."""

    def __init__(self) -> None:
        self._done: deque[tuple[asyncio.Future[Any], Any]] = deque()
        self._coming = False  # whether the loop has been called

    def awaited(self) -> tuple[asyncio.Future[Any], Callable[[Any], None]]:
        """What waits in the event loop, and what the commit thread calls with the result or the error."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Any] = loop.create_future()

        def done(result: Any) -> None:
            self._done.append((waiter, result))
            if not self._coming:
                self._coming = True
                loop.call_soon_threadsafe(self._deliver)

        return waiter, done

    def _deliver(self) -> None:
        self._coming = False  # first, so that what comes from now on calls again
        while self._done:
            waiter, result = self._done.popleft()
            if waiter.done():  # nobody waits any more
                continue
            if isinstance(result, BaseException):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)
