"""`Commits`: one transaction for all that waits. A thread of its own decides, writes, and then answers."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from rightarm.store.errors import Unavailable
from rightarm.store.live import Live
from rightarm.store.store import Store, Work

MOST = 512  # pieces of work in a transaction
LONGEST = 10_000  # that may wait; more are refused at once

Done = Callable[[Any], None]  # takes a result, or the error in its place
Item = tuple[Work, Done]


@dataclass
class Status:
    """How it is going."""

    waiting: int
    last_error: str | None


class Commits:
    """Takes work from any thread and does what waits together; a result comes when its transaction is committed.

    ``most``: how much work may be in one transaction.
    """

    def __init__(self, store: Store, most: int = MOST) -> None:
        self.store, self._most = store, most
        self.observe: Callable[[int, float, int], None] | None = None
        """Called after every transaction: how much work, seconds, and events of others that were folded."""
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._last_error: str | None = None
        self._closed, self._lock = False, threading.Lock()  # so that nothing is put behind the end
        self._thread = threading.Thread(target=self._loop, name="commits", daemon=True)
        self._thread.start()

    @property
    def status(self) -> Status:
        """How it is going."""
        return Status(self._queue.qsize(), self._last_error)

    def submit(self, work: Work | str, function: Callable[[Live], Any] | None = None) -> Future[Any]:
        """Have work done with others; the future gives its result, or raises its error."""
        if isinstance(work, str):
            assert function is not None
            work = Work(work, function)
        future: Future[Any] = Future()

        def done(result: Any) -> None:
            if future.set_running_or_notify_cancel():
                if isinstance(result, BaseException):
                    future.set_exception(result)
                else:
                    future.set_result(result)

        self.call(work, done)
        return future

    def call(self, work: Work, done: Done) -> None:
        """Have work done with others; ``done`` gets its result, or its error, in the thread of the commits."""
        with self._lock:
            if self._closed or self._queue.qsize() > LONGEST:
                raise Unavailable("the service is closing" if self._closed else "too many requests are waiting")
            self._queue.put((work, done))

    def close(self) -> None:
        """Finish what waits, and write snapshots; afterwards nothing is taken."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        self.store.close()

    def _loop(self) -> None:
        going = True
        while going:
            items, going = self._waiting()
            if items:
                self._commit(items)

    def _waiting(self) -> tuple[list[Item], bool]:
        """All that waits, after something does; and whether more may come."""
        items = list[Item]()
        item = self._queue.get()
        while item is not None:
            items.append(item)
            if len(items) == self._most:
                return items, True
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return items, True
        return items, False

    def _commit(self, items: list[Item]) -> None:
        begin, folded = time.perf_counter(), self.store.folded
        try:
            results = self.store.run([work for work, _ in items])
        except Exception as error:  # whatever it is, those who wait must hear of it
            self._last_error = str(error)
            results = [error] * len(items)
        else:
            self._last_error = None
        for (_, done), result in zip(items, results, strict=True):
            done(result)
        if self.observe is not None:
            self.observe(len(items), time.perf_counter() - begin, self.store.folded - folded)
