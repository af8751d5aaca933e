"""A run: what is missing of an experiment, played and kept chunk by chunk."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rightarm.lab.experiment.cell import Cell
from rightarm.lab.run.chunks import Chunk, Pace, Queue
from rightarm.lab.run.executors import MISTAKES, ChunkFailed, Crew, Timed
from rightarm.simulation.jobs import Job, Outcome
from rightarm.text import counted

NAMED = 5  # cells that an error names


class Store(Protocol):
    """Where outcomes are kept; `rightarm.lab.results.Results` is one."""

    def missing(self, cells: Iterable[Cell]) -> list[tuple[Cell, Job]]:
        """The blocks whose outcomes are not there, each with its cell."""

    def put(self, found: Sequence[tuple[Cell, Job, Outcome]]) -> object:
        """Keep outcomes, all of them or none."""


class RunError(Exception):
    """A run ended because of what one of its cells did, or for want of workers; what was finished before is kept."""


class Rounds:
    """A count of rounds to which several threads add while they play; give `add` to `executors.crew`."""

    def __init__(self) -> None:
        self._each: list[int] = []

    def add(self, rounds: int) -> None:
        """So many more were played."""
        self._each.append(rounds)  # one step, which needs no lock

    def taken(self) -> int:
        """All since the last time that this was asked."""
        taken = [self._each.pop() for _ in range(len(self._each))]
        return sum(taken)


@dataclass(frozen=True)
class Progress:
    """How far a run is: cells, the share of all its work, rounds per second, workers, seconds left.

    Cells and share count what earlier runs into the same folder have done; the rate does not.
    """

    done: int
    cells: int
    share: float
    rate: float
    workers: int
    left: float

    def __str__(self) -> str:
        workers = counted(self.workers, "worker")
        rate = f"{self.rate / 1e6:,.0f} M rounds/s" if self.rate >= 1e7 else f"{self.rate / 1e6:,.2f} M rounds/s"
        left = f"{duration(self.left)} left" if self.workers else "waiting for workers"
        return f"cells {self.done}/{self.cells}, {self.share:.0%}, {rate}, {workers}, {left}"


def duration(seconds: float) -> str:
    """Seconds in words.

    >>> duration(80), duration(0.4), duration(7_260), duration(200_000)
    ('1 min 20 s', '0 s', '2 h 1 min', '2 d 7 h')
    """
    whole = round(seconds)
    for size, larger, smaller, part in ((86_400, "d", "h", 3_600), (3_600, "h", "min", 60), (60, "min", "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {larger} {rest} {smaller}" if rest else f"{whole // size} {larger}"
    return f"{whole} s"


def name_of(cell: Cell) -> str:
    """What the experiment calls a cell, or else what it is."""
    return ", ".join(f"{name} {value}" for name, value in cell.names) or f"{cell.policy} on {cell.problem}"


def run_cells(
    cells: Sequence[Cell],
    results: Store,
    crew: Crew,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    rounds: Rounds | None = None,
    pace: Pace | None = None,
) -> int:
    """Play all blocks that ``results`` misses, keep each chunk as it comes, and say how many blocks were played.

    ``rounds`` counts those of chunks that are still played, if the crew tells it of them.
    """
    work = _Work(cells, results, crew, on_progress, rounds or Rounds(), pace or Pace())
    try:
        crew.run(work.chunks(), work.keep, work.tell)
    except ChunkFailed as error:
        raise RunError(work.said_of(error)) from error
    except ConnectionError as error:  # the scheduler went away, and did not come back
        raise RunError(str(error)) from error
    work.tell()
    return work.played


class _Work:
    """A run under way: what is missing, what is with the workers, and how long the rest should take."""

    def __init__(
        self,
        cells: Sequence[Cell],
        results: Store,
        crew: Crew,
        on_progress: Callable[[Progress], None],
        rounds: Rounds,
        pace: Pace,
    ) -> None:
        self.results, self.crew, self.on_progress, self.live, self.pace = results, crew, on_progress, rounds, pace
        missing = results.missing(cells)
        self.owners = {job: cell for cell, job in missing}
        self.cells = [cell.key for cell in cells]
        self.unfinished = Counter(cell.key for cell, _ in missing)  # blocks that each cell waits for
        self.queue = Queue(self.owners, calibrate(missing, pace), crew.count)
        self.played, self.seconds = 0, 0.0
        self.before = self._seconds_of_finished(cells)  # what earlier runs have played, in seconds of one worker
        self.rounds, self.running = 0, 0  # of chunks that are done, and of others, as far as is known
        self.out_rounds, self.out_seconds = 0, 0.0  # of chunks that are with the workers
        self.started = time.perf_counter()

    def _seconds_of_finished(self, cells: Sequence[Cell]) -> float:
        """An estimate, from what is missing, of the seconds that went into what is there: as many for a round."""
        missing = sum(job.rounds for job in self.owners)
        total = sum(cell.replications * (cell.horizon - cell.start.rounds) for cell in cells)
        return self.queue.seconds * (total - missing) / missing if missing else 0.0

    def chunks(self) -> Iterator[Chunk]:
        """The chunks, counted as they go out."""
        for chunk in self.queue:
            self.out_seconds += chunk.seconds
            self.out_rounds += sum(job.rounds for job in chunk.jobs)
            yield chunk

    def keep(self, chunk: Chunk, played: list[Timed]) -> None:
        """Keep what a chunk gave, first of all."""
        self.results.put(
            [(self.owners[job], job, timed.outcome) for job, timed in zip(chunk.jobs, played, strict=True)]
        )
        rounds = sum(job.rounds for job in chunk.jobs)
        self.rounds += rounds
        self.out_rounds -= rounds
        self.out_seconds -= chunk.seconds
        self.running = max(0, self.running + self.live.taken() - rounds)
        self.played += len(chunk.jobs)
        for job, timed in zip(chunk.jobs, played, strict=True):
            self.seconds += timed.seconds
            self.unfinished[self.owners[job].key] -= 1
            self.pace.learn(job, timed.seconds)

    def tell(self) -> None:
        """Report progress."""
        self.running += self.live.taken()
        played = min(1.0, self.running / self.out_rounds) * self.out_seconds if self.out_rounds else 0.0
        left = self.queue.seconds + (self.out_seconds - played if self.out_rounds else 0.0)
        done, workers = self.before + self.seconds + played, self.crew.count()
        rate = (self.rounds + self.running) / (time.perf_counter() - self.started)
        finished = sum(not self.unfinished[key] for key in self.cells)
        share = done / (done + left) if left > 0 else 1.0
        self.on_progress(Progress(finished, len(self.cells), share, rate, workers, left / max(1, workers)))

    def said_of(self, error: ChunkFailed) -> str:
        """An error in words, with the names of its cells."""
        names = list(dict.fromkeys(name_of(self.owners[job]) for job in error.jobs))
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return f"{'; '.join(names[:NAMED])}{more}: {error}"


def calibrate(missing: Iterable[tuple[Cell, Job]], pace: Pace) -> Pace:
    """The pace of all kinds of blocks, or an error that names the cell whose formula is wrong."""
    for cell, job in missing:
        try:
            pace.kind(job)
        except MISTAKES as error:
            raise RunError(f"{name_of(cell)}: {type(error).__name__}: {error}") from error
    return pace


def seconds_of(missing: Sequence[tuple[Cell, Job]], pace: Pace | None = None) -> dict[str, float]:
    """The seconds that what is missing of each cell should take one worker, by the cell's key."""
    pace = calibrate(missing, pace or Pace())
    seconds: dict[str, float] = {}
    for cell, job in missing:
        seconds[cell.key] = seconds.get(cell.key, 0.0) + pace.seconds(job)
    return seconds
