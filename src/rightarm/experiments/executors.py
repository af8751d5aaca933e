"""Executors: chunks of blocks, played by threads or by Dask, and played again if they were lost."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import pickle
import re
import socket
import sys
import sysconfig
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
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
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from rightarm.errors import needed_for
from rightarm.formula import Family, Formula
from rightarm.simulation.jobs import Job, Outcome, available_cores, outcome_code, play_job
from rightarm.simulation.kernels import WIDTH
from rightarm.simulation.result import versions

TICK = 0.1  # seconds between two looks, so that a signal never waits long
PATIENCE = 5  # times that a chunk may be lost
SUSPECT = 2  # times after which it is played alone, so that no other chunk is blamed for what it does
RECONNECT = 60.0  # seconds for which a scheduler that went away is waited for
# What a formula's mistake may raise. Anything else that a worker raises ends the run too, without the cell's name.
MISTAKES = (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError)
LOCAL = "local"  # Dask workers that are started here
Call = tuple[Any, ...]  # a function and its arguments
logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Blocks that are played one after another by one worker, and the seconds that they should take."""

    jobs: tuple[Job, ...]
    seconds: float = 0.0


class Timed(NamedTuple):
    """The outcome of a block, and the seconds that it took."""

    outcome: Outcome
    seconds: float


class JobFailed(Exception):
    """A block of a chunk raised an error: its position in the chunk, and what was raised, as text that travels."""

    def __init__(self, position: int, cause: str) -> None:
        super().__init__(position, cause)
        self.position = position
        self.cause = cause


class ChunkFailed(Exception):
    """A chunk cannot be played; ``jobs`` are the blocks in question."""

    def __init__(self, jobs: Sequence[Job], cause: str) -> None:
        super().__init__(cause)
        self.jobs = tuple(jobs)


Played = list[Timed] | JobFailed


# In the worker.

_prepared: set[Hashable] = set()


def structure_of(job: Job) -> Hashable:
    """Return what the time of a round depends on most: the formulas, numbers in them aside, and the number of arms."""
    return _structure(job.policy), _structure(job.problem), job.problem.arms


def _structure(formula: Formula) -> Hashable:
    parts = []
    for value in formula.values.values():
        if isinstance(value, Formula):
            parts.append(_structure(value))
        else:
            parts.append(None if isinstance(value, float | tuple) else value)
    family = formula.family
    return family.function if family.bare else family, *parts


def prepare(job: Job) -> None:
    """Compile what ``job`` needs, once in a process, so that it does not count as time of the first block."""
    structure = structure_of(job)
    if structure not in _prepared:
        first = replace(job, checkpoints=(job.start.rounds + 1,), replications=1, lanes=WIDTH)
        play_job(first, threading.Event(), lambda rounds: None)
        _prepared.add(structure)


def play_chunk(
    jobs: Sequence[Job], stop: threading.Event | None = None, on_rounds: Callable[[int], None] = lambda rounds: None
) -> list[Timed]:
    """Play the blocks of a chunk one after another, on this thread alone; an error says in which of them it arose."""
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


def play_packed(chunk: Packed) -> Played:
    """Play a chunk that came from another process; an error is returned, since Dask would log it at length."""
    try:
        return play_chunk(unpack(chunk))
    except JobFailed as error:
        return error


# In the client.


@dataclass(frozen=True)
class Crew:
    """Workers of one sort: how to reach them, what to submit, how many, and which exceptions mean a lost worker."""

    make_executor: Callable[[], Executor]
    """Returns an executor that works."""
    call: Callable[[Chunk], Call]
    """Makes of a chunk what is submitted."""
    count: Callable[[], int]
    """Returns the number of workers."""
    lost: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)
    """Errors which say that worker, pool or connection went away, not that the chunk is wrong."""

    def run(
        self, chunks: Iterable[Chunk], on_done: Callable[[Chunk, list[Timed]], None], on_tick: Callable[[], None]
    ) -> None:
        """Have all chunks played, and hand over each as it completes.

        Enough are submitted ahead that no worker waits for its next chunk. A chunk that was lost is played again; one
        that raised an error of its own ends the run.
        """
        dispatch = _Dispatch(self, iter(chunks))
        try:
            while dispatch.submit():
                for chunk, played in dispatch.completed():
                    on_done(chunk, played)
                on_tick()
        finally:
            dispatch.cancel()


class _Dispatch:
    """Chunks under way: those with the workers, and those to be played again."""

    def __init__(self, crew: Crew, chunks: Iterator[Chunk]) -> None:
        self.crew = crew
        self.chunks = chunks
        self.again = deque[Chunk]()
        self.losses = Counter[Chunk]()
        self.pending: dict[Future[Played], tuple[Chunk, Executor]] = {}
        self.executor = crew.make_executor()

    def submit(self) -> bool:
        """Submit chunks until enough are under way, and return whether any is."""
        while len(self.pending) <= 2 * max(1, self.crew.count()):
            chunk = self._next()
            if chunk is None:
                break
            try:
                future = self.executor.submit(*self.crew.call(chunk))
            except self.crew.lost:  # found broken before it could take anything
                self.again.appendleft(chunk)
                self.executor = self.crew.make_executor()
            else:
                self.pending[future] = chunk, self.executor
        return bool(self.pending)

    def _next(self) -> Chunk | None:
        underway = [*self.again, *(chunk for chunk, _ in self.pending.values())]
        if self.pending and any(self.losses[chunk] >= SUSPECT for chunk in underway):
            return None  # a suspect is played alone
        return self.again.popleft() if self.again else next(self.chunks, None)

    def completed(self) -> Iterator[tuple[Chunk, list[Timed]]]:
        """Wait a moment, and yield what completed in it; a chunk that was lost is to be played again."""
        for future in wait(self.pending, timeout=TICK, return_when=FIRST_COMPLETED).done:
            chunk, executor = self.pending.pop(future)
            error = CancelledError() if future.cancelled() else future.exception()
            played = future.result() if error is None else []
            if isinstance(played, JobFailed):
                error = played
            elif error is None:
                yield chunk, played
                continue
            self._lose(chunk, error)
            if executor is self.executor:
                self.executor = self.crew.make_executor()

    def _lose(self, chunk: Chunk, error: BaseException | None) -> None:
        """Let a chunk be played again, unless it is wrong or was lost too often."""
        if isinstance(error, JobFailed):
            raise ChunkFailed([chunk.jobs[error.position]], error.cause) from error
        if not isinstance(error, self.crew.lost):
            raise ChunkFailed(chunk.jobs, f"{type(error).__name__}: {error}") from error
        self.losses[chunk] += 1
        if self.losses[chunk] == PATIENCE:
            text = f"lost {PATIENCE} times, the last time by {type(error).__name__}: {error}".rstrip(": ")
            raise ChunkFailed(chunk.jobs, text) from error
        self.again.append(chunk)

    def cancel(self) -> None:
        """Cancel what is under way."""
        for future in self.pending:
            future.cancel()


# Who plays.


def crew(
    workers: int | None = None, dask: str | None = None, on_rounds: Callable[[int], None] = lambda rounds: None
) -> contextlib.AbstractContextManager[Crew]:
    """Return a crew of threads or of Dask workers; leaving the context ends it.

    Parameters
    ----------
    workers : int, optional
        How many threads or local Dask workers there are, one per core unless given.
    dask : str, optional
        ``"local"`` starts Dask workers here; an address is that of a scheduler. Threads play unless it is given.
    on_rounds : function
        Called with the number of rounds as they are played, by threads only.
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
    """Return threads of this process; leaving stops them within a moment."""
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
    """Start Dask workers on this machine, processes of one thread each; one that dies is replaced."""
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
    """Return the workers of the Dask scheduler at ``address``, as many as there are at any moment."""
    from distributed.client import ClosedClientError
    from distributed.scheduler import KilledWorker

    with _no_tracebacks():
        scheduler = _Scheduler(address)
        try:
            yield Crew(
                scheduler.executor,
                lambda chunk: (play_packed, pack(chunk.jobs)),
                scheduler.workers,
                (BrokenExecutor, CancelledError, OSError, KilledWorker, ClosedClientError),
            )
        finally:
            scheduler.close()


@contextlib.contextmanager
def _no_tracebacks() -> Iterator[None]:
    """Keep Dask's client from logging a lost connection as an error with a traceback; our log has a line for it."""
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
        self._counted = 0.0
        self._count = 0
        self._connect(0.0)

    def _connect(self, seconds: float) -> None:
        _wait_for(self.address, seconds)
        # Not the default client: other work of the user's with Dask is none of our business.
        try:
            self._client = _distributed().Client(self.address, set_as_default=False, timeout=10)
        except OSError as error:
            raise ConnectionError(f"no Dask scheduler answers at {self.address}: {error}") from error

    def executor(self) -> Executor:
        """Return an executor over a connection that stands."""
        if self._client.status != "running":
            logger.warning("the Dask scheduler at %s went away; waiting %.0f s for it", self.address, RECONNECT)
            self.close()
            self._connect(RECONNECT)
        made: Executor = self._client.get_executor(pure=False)
        return made

    def workers(self) -> int:
        """Count the threads that work there, about once in a second."""
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


# How blocks travel to another process.


@dataclass(frozen=True)
class Packed:
    """Blocks as bytes, and the versions of rightarm and its libraries for which they were made."""

    jobs: bytes
    code: tuple[object, ...]


def pack(jobs: Sequence[Job]) -> Packed:
    """Pack ``jobs`` for another process.

    Our own formulas travel by name. A user's travel as code, with all that they use: so a formula of a script or of a
    notebook, or of a module that a worker cannot import or imported before it was edited, is played all the same.
    """
    with _users_modules_by_value():
        return Packed(_pickled(tuple(jobs)), _our_code())


def unpack(chunk: Packed) -> tuple[Job, ...]:
    """Return the blocks again, or raise an error if this process has other versions than the one that sent them."""
    if chunk.code != _our_code():
        raise ValueError(f"client and worker differ: rightarm and its libraries are {chunk.code} and {_our_code()}")
    jobs: tuple[Job, ...] = pickle.loads(chunk.jobs)
    return jobs


def _our_code() -> tuple[object, ...]:
    return (outcome_code(), *sorted(versions().items()))


def _cloudpickle() -> Any:
    with needed_for("Dask", "cluster"):
        import cloudpickle
    return cloudpickle


def _pickled(value: object) -> bytes:
    buffer = io.BytesIO()
    _pickler()(buffer).dump(value)
    return buffer.getvalue()


@functools.cache
def _pickler() -> type[Any]:
    cloudpickle = _cloudpickle()

    class ByValue(cloudpickle.Pickler):  # type: ignore[misc,name-defined]
        """Pickles families that are not ours as code."""

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, Family) and not _is_importable(value):
                _register(sys.modules.get(value.function.__module__))
                state = {**value.__getstate__(), "annotations": value.annotations}
                return _family, (_pickled((type(value), state)),)
            if isinstance(value, Formula) and value.family.bare:
                return value.family, ()
            return super().reducer_override(value)

    return ByValue


def _is_importable(family: Family) -> bool:
    """Return whether a worker finds this very family by its name, because it is one of ours."""
    module = family.function.__module__
    found = getattr(sys.modules.get(module), family.function.__name__, None)
    return module.partition(".")[0] == "rightarm" and found is family


@functools.lru_cache(maxsize=256)
def _family(code: bytes) -> Family:
    """Return the family again, the same one every time, so that what was compiled for it is found again."""
    kind, state = pickle.loads(code)
    family: Family = kind.__new__(kind)
    vars(family).update(state)
    return family


@contextlib.contextmanager
def _users_modules_by_value() -> Iterator[None]:
    """Let cloudpickle send functions and classes of users' modules as code for a while."""
    cloudpickle = _cloudpickle()
    before = set(cloudpickle.list_registry_pickle_by_value())
    for module in list(sys.modules.values()):
        if _is_users(getattr(module, "__file__", None)):
            _register(module)
    try:
        yield
    finally:
        for name in set(cloudpickle.list_registry_pickle_by_value()) - before:
            cloudpickle.unregister_pickle_by_value(sys.modules[name])


def _register(module: ModuleType | None) -> None:
    # Those of __main__ go as code anyway, and ours are everywhere.
    if module is not None and module.__name__ != "__main__" and module.__name__.partition(".")[0] != "rightarm":
        _cloudpickle().register_pickle_by_value(module)


@functools.cache
def _is_users(file: str | None) -> bool:
    """Return whether a module's file belongs neither to Python nor to an installed package."""
    if file is None:
        return False
    installed = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return not any(Path(file).is_relative_to(folder) for folder in installed)
