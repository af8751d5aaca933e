"""Executors: chunks of blocks, played by threads or by Dask, and played again if they were lost."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rightarm.extras import needed_for
from rightarm.lab.run.chunks import Chunk, kind_of
from rightarm.lab.run.transport import Packed, packed, unpacked
from rightarm.simulation.argmax import WIDTH
from rightarm.simulation.jobs import Job, Outcome, available_cores, play_job

TICK = 0.1  # seconds between two looks, so that a signal never waits long
PATIENCE = 5  # times that a chunk may be lost
SUSPECT = 2  # times after which it is played alone, so that no other chunk is blamed for what it does
RECONNECT = 60.0  # seconds for which a scheduler that went away is waited for
# What a formula's mistake may raise. Anything else that a worker raises ends the run too, without the cell's name.
MISTAKES = (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError)
LOCAL = "local"  # Dask workers that are started here
Call = tuple[Any, ...]  # a function and its arguments
logger = logging.getLogger(__name__)


class Timed(NamedTuple):
    """What a block gave, and the seconds that it took."""

    outcome: Outcome
    seconds: float


class JobFailed(Exception):
    """A block of a chunk raised an error: its position in the chunk, and what was raised, as text that travels."""

    def __init__(self, position: int, cause: str) -> None:
        super().__init__(position, cause)
        self.position, self.cause = position, cause


class ChunkFailed(Exception):
    """A chunk cannot be played: ``jobs`` are the blocks in question, and ``lost`` says whether it never came back."""

    def __init__(self, jobs: Sequence[Job], cause: str, lost: bool = False) -> None:
        super().__init__(cause)
        self.jobs, self.lost = tuple(jobs), lost


# In the worker.

_prepared: set[Any] = set()


def prepare(job: Job) -> None:
    """Compile what ``job`` needs, once in a process, so that it does not count as time of the first block."""
    kind = kind_of(job)
    if kind not in _prepared:
        first = replace(job, checkpoints=(job.start.rounds + 1,), replications=1, lanes=WIDTH)
        play_job(first, threading.Event(), lambda rounds: None)
        _prepared.add(kind)


def play_chunk(
    jobs: Sequence[Job], stop: threading.Event | None = None, on_rounds: Callable[[int], None] = lambda rounds: None
) -> list[Timed]:
    """Play the blocks of a chunk one after another, on this thread alone; what goes wrong says in which of them."""
    stop = stop or threading.Event()
    played = []
    for position, job in enumerate(jobs):
        try:
            prepare(job)
            start = time.perf_counter()
            outcome = play_job(job, stop, on_rounds)
        except MISTAKES as error:
            raise JobFailed(position, f"{type(error).__name__}: {error}") from error
        played.append(Timed(outcome, time.perf_counter() - start))
    return played


def play_packed(chunk: Packed) -> list[Timed] | JobFailed:
    """The same for a chunk that came from another process; an error is returned, since Dask would log it at length."""
    try:
        return play_chunk(unpacked(chunk))
    except JobFailed as error:
        return error


# In the client.


def run_chunks(
    make_executor: Callable[[], Executor],
    chunks: Iterable[Chunk],
    call: Callable[[Chunk], Call],
    on_done: Callable[[Chunk, list[Timed]], None],
    *,
    ahead: Callable[[], int],
    lost: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError),
    on_tick: Callable[[], None] = lambda: None,
) -> None:
    """Have all ``chunks`` played, some submitted ahead, and hand over each as it completes; what was lost, again.

    ``call`` makes of a chunk what is submitted. An error among ``lost`` says that worker, pool or connection went away,
    not that the chunk is wrong: ``make_executor`` is then asked for an executor that works. Any other error is the
    chunk's own; it is not played again, and the run ends.
    """
    source, again, losses = iter(chunks), deque[Chunk](), Counter[Chunk]()
    pending: dict[Future[list[Timed] | JobFailed], tuple[Chunk, Executor]] = {}
    executor = make_executor()

    def next_chunk() -> Chunk | None:
        if pending and any(losses[chunk] >= SUSPECT for chunk in (*again, *(chunk for chunk, _ in pending.values()))):
            return None  # a suspect is played alone
        return again.popleft() if again else next(source, None)

    try:
        while True:
            while len(pending) < ahead() and (chunk := next_chunk()) is not None:
                try:
                    pending[executor.submit(*call(chunk))] = chunk, executor
                except lost:  # found broken before it could take anything
                    again.appendleft(chunk)
                    executor = make_executor()
            if not pending:
                return
            for future in wait(pending, timeout=TICK, return_when=FIRST_COMPLETED).done:
                chunk, used = pending.pop(future)
                result = _result(future)
                if not isinstance(result, BaseException):
                    on_done(chunk, result)
                    continue
                _fail_unless_lost(chunk, result, lost)
                losses[chunk] += 1
                if losses[chunk] == PATIENCE:
                    raise ChunkFailed(chunk.jobs, _lost_for_good(result), lost=True) from result
                again.append(chunk)
                if used is executor:
                    executor = make_executor()
            on_tick()
    finally:
        for future in pending:
            future.cancel()


def _result(future: Future[list[Timed] | JobFailed]) -> list[Timed] | BaseException:
    """What a chunk gave, or the error that it ended with."""
    return CancelledError() if future.cancelled() else future.exception() or future.result()


def _fail_unless_lost(chunk: Chunk, error: BaseException, lost: tuple[type[BaseException], ...]) -> None:
    if isinstance(error, JobFailed):
        raise ChunkFailed([chunk.jobs[error.position]], error.cause) from error
    if not isinstance(error, lost):
        raise ChunkFailed(chunk.jobs, f"{type(error).__name__}: {error}") from error


def _lost_for_good(error: BaseException) -> str:
    return f"lost {PATIENCE} times, the last time by {type(error).__name__}: {error}".rstrip(": ")


# Who plays.


@dataclass(frozen=True)
class Crew:
    """Workers of one sort: how to reach them, what to submit, how many, and which exceptions mean a lost worker."""

    make_executor: Callable[[], Executor]
    call: Callable[[Chunk], Call]
    count: Callable[[], int]
    lost: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)

    def run(
        self, chunks: Iterable[Chunk], on_done: Callable[[Chunk, list[Timed]], None], on_tick: Callable[[], None]
    ) -> None:
        """`run_chunks` by this crew, with enough submitted ahead that no worker waits for its next chunk."""
        run_chunks(
            self.make_executor,
            chunks,
            self.call,
            on_done,
            ahead=lambda: 2 * max(1, self.count()) + 1,
            lost=self.lost,
            on_tick=on_tick,
        )


def crew(
    workers: int | None = None, dask: str | None = None, on_rounds: Callable[[int], None] = lambda rounds: None
) -> contextlib.AbstractContextManager[Crew]:
    """Threads, or Dask workers: "local" starts some here, and an address is that of a scheduler. Leaving ends it.

    ``workers`` is how many threads or local Dask workers there are, one per core unless given. ``on_rounds`` hears of
    rounds while they are played, from threads only.
    """
    check_dask(dask, workers)
    if dask is None:
        return threads(workers or available_cores(), on_rounds)
    return dask_local(workers or available_cores()) if dask == LOCAL else dask_at(dask)


def check_dask(dask: str | None, workers: int | None = None) -> None:
    """Refuse what is neither "local" nor the address of a scheduler, at once."""
    if dask is None or dask == LOCAL:
        return
    if not re.fullmatch(r"(\w+://)?[^\s:/]+:\d+/?|(inproc|ucx|ws|wss)://\S+", dask):
        raise ValueError(f"dask must be 'local' or the address of a scheduler, as tcp://10.0.0.1:8786, got {dask!r}")
    if workers is not None:
        raise ValueError(f"workers must be left out, the scheduler at {dask} has its own, got {workers}")


@contextlib.contextmanager
def threads(workers: int, on_rounds: Callable[[int], None] = lambda rounds: None) -> Iterator[Crew]:
    """Threads of this process; leaving stops them within a moment."""
    stop = threading.Event()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="rightarm")
    try:
        yield Crew(lambda: pool, lambda chunk: (play_chunk, chunk.jobs, stop, on_rounds), lambda: workers)
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _distributed() -> Any:
    with needed_for("Dask", "cluster"):
        import distributed
    return distributed


@contextlib.contextmanager
def dask_local(workers: int) -> Iterator[Crew]:
    """Dask workers on this machine, processes of one thread each; one that dies is replaced."""
    cluster = _distributed().LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        memory_limit=0,  # ours need little, and Dask's guess would stop them on a busy machine
        silence_logs=logging.ERROR,  # that a worker is ended in the middle of a chunk is no news
    )
    with cluster, dask_at(cluster.scheduler_address) as crew:
        yield crew


@contextlib.contextmanager
def dask_at(address: str) -> Iterator[Crew]:
    """The workers of the Dask scheduler at ``address``, as many as there are at any moment."""
    from distributed.client import ClosedClientError
    from distributed.scheduler import KilledWorker

    with _no_tracebacks():
        scheduler = _Scheduler(address)
        try:
            yield Crew(
                scheduler.executor,
                lambda chunk: (play_packed, packed(chunk.jobs)),
                scheduler.workers,
                (BrokenExecutor, CancelledError, OSError, KilledWorker, ClosedClientError),
            )
        finally:
            scheduler.close()


@contextlib.contextmanager
def _no_tracebacks() -> Iterator[None]:
    """Keep Dask's client from logging a lost connection as an error with a traceback; we tell of it in a line."""
    client = logging.getLogger("distributed.client")
    before = client.level
    client.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        client.setLevel(before)


class _Scheduler:
    """A Dask scheduler, connected to again if the connection was lost."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client: Any = None
        self._counted, self._count = 0.0, 0
        self._connect(0.0)

    def _connect(self, seconds: float) -> None:
        _wait_for(self.address, seconds)
        # Not the default client: other work of the user's with Dask is none of our business.
        try:
            self._client = _distributed().Client(self.address, set_as_default=False, timeout=10)
        except OSError as error:
            raise ConnectionError(f"no Dask scheduler answers at {self.address}: {error}") from error

    def executor(self) -> Executor:
        """An executor over a connection that stands."""
        if self._client.status != "running":
            logger.warning("the Dask scheduler at %s went away; waiting %.0f s for it", self.address, RECONNECT)
            self.close()
            self._connect(RECONNECT)
        made: Executor = self._client.get_executor(pure=False)
        return made

    def workers(self) -> int:
        """How many threads work there, asked about once in a second."""
        if time.monotonic() - self._counted > 1.0:
            with contextlib.suppress(OSError):  # a scheduler that went away is noticed elsewhere
                self._count = sum(self._client.nthreads().values())
            self._counted = time.monotonic()
        return self._count

    def close(self) -> None:
        """Let go of the connection, and with it of all that was submitted."""
        self._client.close(timeout=2)


def _wait_for(address: str, seconds: float) -> None:
    """Wait until something listens at the address of a scheduler; Dask itself would log a traceback for every try."""
    found = re.fullmatch(r"(?:tcp://|tls://)?([^\s:/]+):(\d+)/?", address)
    until = time.monotonic() + seconds
    while found:
        try:
            socket.create_connection((found[1], int(found[2])), timeout=5).close()
            return
        except OSError as error:
            if time.monotonic() >= until:
                raise ConnectionError(f"no Dask scheduler answers at {address}: {error}") from None
        time.sleep(0.5)
