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
from rightarm.service.policy_texts import Policies
from rightarm.service.problems import RETRY, Refusal
from rightarm.service.telemetry import Log, Metrics
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
        log: Log | None = None,
        host_names: Iterable[str] = (),
    ) -> None:
        self.commits = commits
        self.store = commits.store
        self.threads = ThreadPoolExecutor(THREADS, "reads")
        self._finds = ThreadPoolExecutor(2, "tokens")  # every request needs its token, however long reads take
        self.access = Access(self.store.tokens, rate, self._finds, host_names=host_names)
        self.policies = Policies(modules)
        self.metrics = Metrics()
        self.log = Log(sys.stderr) if log is None else log
        self.ready = False  # compiled and folded
        self.streams = 0
        self._reads = 0
        self._done: deque[tuple[asyncio.Future[Any], Any]] = deque()
        self._delivering = False  # whether the event loop has been called
        commits.observe = self.metrics.committed

    async def commit(self, work: Work | str, function: Callable[[Any], Any] | None = None) -> Any:
        """Return what work gives, or a function of the live bandit of this name, once all that it did is written."""
        if isinstance(work, str):
            assert function is not None
            work = Work(work, function)
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Any] = loop.create_future()

        def done(result: Any) -> None:  # in the thread of the commits
            self._done.append((waiter, result))
            if not self._delivering:
                self._delivering = True
                loop.call_soon_threadsafe(self._deliver)

        self.commits.call(work, done)
        return await waiter

    def _deliver(self) -> None:
        """Give the results that are there to those who wait: all at once, not each by itself."""
        self._delivering = False  # first, so that what comes from now on calls again
        while self._done:
            waiter, result = self._done.popleft()
            if waiter.done():  # nobody waits any more
                continue
            if isinstance(result, BaseException):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)

    async def read(self, name: str, function: Callable[[Any], T]) -> T:
        """Return what a function gives that changes nothing, of the live bandit of this name."""
        made: T = await self.commit(Work(name, function, reads=True))
        return made

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a function gives that may take long."""
        if self._reads >= MOST_READS:
            raise Refusal(503, f"{MOST_READS} others wait for reads; try again", None, RETRY, "busy")
        self._reads += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.threads, function, *arguments)
        finally:
            self._reads -= 1

    async def check_ready(self) -> None:
        """Raise unless a decision would be answered now: by trying all that it needs but the bandit."""
        if not self.ready:
            raise Refusal(503, self.commits.status.last_error or "bandits are being loaded", None, RETRY, "loading")
        await self.commit(PROBE)

    def check_streams(self) -> None:
        """Raise if as many answers are being streamed as may be."""
        if self.streams >= MOST_STREAMS:
            raise Refusal(503, f"{MOST_STREAMS} others read events; try again", None, RETRY, "busy")

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
        self.log.close()
