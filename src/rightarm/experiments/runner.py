"""Runs: what an experiment lacks is played in chunks, by threads or by Dask, and each chunk is stored as it comes."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from rightarm.display import counted
from rightarm.experiments.cell import Cell
from rightarm.experiments.executors import MISTAKES, Chunk, ChunkFailed, Crew, Timed, check_dask, crew, structure_of
from rightarm.experiments.file import Experiment, read_experiment
from rightarm.experiments.result_folder import ResultFolder
from rightarm.experiments.result_reading import Results, load
from rightarm.simulation.jobs import Job, Outcome, play_job

NAMED = 5  # cells that an error names
USUAL = 2.0  # seconds of a chunk: a thousand times what it costs to send one, and little is lost with it
LEAST = 0.1  # seconds of a chunk at the end of a run
LARGEST = 16 * 2**20  # bytes of a chunk's outcomes
ENOUGH = 0.015  # seconds of a calibration's longest run
FIXED = 16  # lanes' worth of work in a round, however many lanes there are
TRUSTED = 0.05  # seconds of play that weigh as much as the calibration


class RunError(Exception):
    """A run ended because of what one of its cells did, or for want of workers; what was finished before is stored."""


# Running an experiment.


def run(
    experiment: str | os.PathLike[str] | Experiment,
    output: str | os.PathLike[str] | None = None,
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: bool = False,
    quick: bool = False,
) -> Results:
    """Run an experiment file and return its results.

    What the folder ``output`` has already is not computed again. Results are the same bit for bit whoever computes
    them. Ctrl-C ends the run cleanly, and the next one goes on.

    Parameters
    ----------
    experiment : str, path or Experiment
        The file, or what it describes.
    output : str or path, optional
        The folder of the results: ``results/<name of the file>`` unless given, and with ``quick``
        ``results/<name>-quick``.
    workers : int, optional
        How many threads, or local Dask workers, there are; one per core unless given.
    dask : str, optional
        ``"local"`` for worker processes on this machine, or the address of a scheduler.
    progress : bool
        Show a bar.
    quick : bool
        Run the smaller version that the file has under ``[quick]``.

    Returns
    -------
    Results
        The results, as `load` returns them.

    Examples
    --------
    >>> import tempfile
    >>> import rightarm as ra
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "gaps.toml"
    ...     _ = path.write_text('horizon = 100\\nproblems.a = "Bernoulli([0.6, 0.5])"\\npolicies.ucb = "UCB(C=0.5)"')
    ...     ra.experiments.run(path, output=Path(folder) / "gaps").frame["policy", "finished"].rows()
    [('ucb', 64)]
    """
    read = experiment if isinstance(experiment, Experiment) else read_experiment(experiment, quick)
    folder = folder_for(read, quick) if output is None else Path(output)
    run_into(folder, read, workers=workers, dask=dask, progress=progress)
    return load(folder)


def folder_for(experiment: Experiment, quick: bool = False) -> Path:
    """Return the folder of an experiment's results, unless another is asked for."""
    name = "experiment" if experiment.path is None else experiment.path.stem
    return Path("results") / (f"{name}-quick" if quick else name)


def run_into(
    folder: Path,
    experiment: Experiment,
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: bool = False,
) -> int:
    """Compute what ``folder`` lacks of an experiment, and return how many blocks that were."""
    check_dask(dask, workers)
    rounds = RoundCount()
    with (
        crew(workers, dask, rounds.add) as players,
        ResultFolder.open(folder, write=True) as results,
        _shown(progress, experiment.title or folder.name) as show,
    ):
        results.begin(experiment.cells, experiment.text, experiment.title)
        return run_cells(experiment.cells, results, players, show, rounds=rounds if dask is None else None)


@contextlib.contextmanager
def _shown(progress: bool, title: str) -> Iterator[Callable[[Progress], None]]:
    if not progress:
        yield lambda now: None
        return
    from rightarm.simulation.progress import watched

    with watched(title) as show:
        yield lambda now: show(now.share, now)


class OutcomeStore(Protocol):
    """A place for outcomes; `rightarm.experiments.ResultFolder` is one."""

    def missing(self, cells: Iterable[Cell]) -> list[tuple[Cell, Job]]:
        """Return the blocks whose outcomes are not there, each with its cell."""

    def put(self, found: Sequence[tuple[Cell, Job, Outcome]]) -> object:
        """Store outcomes, all of them or none."""


def run_cells(
    cells: Sequence[Cell],
    results: OutcomeStore,
    crew: Crew,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    *,
    rounds: RoundCount | None = None,
    pace: Pace | None = None,
) -> int:
    """Play all blocks that ``results`` misses, store each chunk as it comes, and return how many blocks were played.

    ``rounds`` counts those of chunks that are still played, if the crew adds to it.
    """
    work = _Work(cells, results, crew, on_progress, rounds or RoundCount(), pace or Pace())
    try:
        crew.run(work.chunks(), work.store, work.report)
    except ChunkFailed as error:
        raise RunError(work.describe(error)) from error
    except ConnectionError as error:  # the scheduler went away, and did not come back
        raise RunError(str(error)) from error
    work.report()
    return work.played


class _Work:
    """A run under way: what is missing, what is with the workers, and how long the rest should take."""

    def __init__(
        self,
        cells: Sequence[Cell],
        results: OutcomeStore,
        crew: Crew,
        on_progress: Callable[[Progress], None],
        live: RoundCount,
        pace: Pace,
    ) -> None:
        self.results = results
        self.crew = crew
        self.on_progress = on_progress
        self.live = live
        self.pace = pace
        missing = results.missing(cells)
        self.owners = {job: cell for cell, job in missing}
        self.cells = [cell.key for cell in cells]
        self.unfinished = Counter(cell.key for cell, _ in missing)  # blocks that each cell waits for
        calibrate(missing, pace)
        self.queue = Queue(self.owners, pace, crew.count)
        self.played = 0
        self.seconds = 0.0
        self.before = self._seconds_of_finished(cells)  # what earlier runs have played, in seconds of one worker
        self.rounds = 0  # of chunks that are done
        self.running = 0  # of chunks that are with the workers, as far as is known
        self.out_rounds = 0  # of these chunks in all
        self.out_seconds = 0.0
        self.started = time.perf_counter()

    def _seconds_of_finished(self, cells: Sequence[Cell]) -> float:
        """Estimate, from what is missing, the seconds that went into what is there: as many for a round."""
        missing = sum(job.rounds for job in self.owners)
        total = sum(cell.replications * (cell.horizon - cell.start.rounds) for cell in cells)
        return self.queue.seconds * (total - missing) / missing if missing else 0.0

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks, counted as they go out."""
        for chunk in self.queue:
            self.out_seconds += chunk.seconds
            self.out_rounds += sum(job.rounds for job in chunk.jobs)
            yield chunk

    def store(self, chunk: Chunk, played: list[Timed]) -> None:
        """Store the outcomes of a chunk, first of all."""
        timed = list(zip(chunk.jobs, played, strict=True))
        self.results.put([(self.owners[job], job, each.outcome) for job, each in timed])
        rounds = sum(job.rounds for job in chunk.jobs)
        self.rounds += rounds
        self.out_rounds -= rounds
        self.out_seconds -= chunk.seconds
        self.running = max(0, self.running + self.live.taken() - rounds)
        self.played += len(chunk.jobs)
        for job, each in timed:
            self.seconds += each.seconds
            self.unfinished[self.owners[job].key] -= 1
            self.pace.learn(job, each.seconds)

    def report(self) -> None:
        """Report progress."""
        self.running += self.live.taken()
        played = min(1.0, self.running / self.out_rounds) * self.out_seconds if self.out_rounds else 0.0
        left = self.queue.seconds + (self.out_seconds - played if self.out_rounds else 0.0)
        done = self.before + self.seconds + played
        workers = self.crew.count()
        self.on_progress(
            Progress(
                done=sum(not self.unfinished[key] for key in self.cells),
                cells=len(self.cells),
                share=done / (done + left) if left > 0 else 1.0,
                rate=(self.rounds + self.running) / (time.perf_counter() - self.started),
                workers=workers,
                left=left / max(1, workers),
            )
        )

    def describe(self, error: ChunkFailed) -> str:
        """Return an error in words, with the names of its cells."""
        names = list(dict.fromkeys(self.owners[job].title for job in error.jobs))
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        return f"{'; '.join(names[:NAMED])}{more}: {error}"


# Progress.


class RoundCount:
    """A count of rounds to which several threads add while they play; give `add` to `executors.crew`."""

    def __init__(self) -> None:
        self._each: list[int] = []

    def add(self, rounds: int) -> None:
        """Add rounds that were played."""
        self._each.append(rounds)  # one step, which needs no lock

    def taken(self) -> int:
        """Return all rounds since the last call."""
        return sum([self._each.pop() for _ in range(len(self._each))])


@dataclass(frozen=True)
class Progress:
    """The progress of a run: cells, the share of all its work, rounds per second, workers, seconds left.

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
    """Return seconds in words.

    >>> duration(80), duration(0.4), duration(7_260), duration(200_000)
    ('1 min 20 s', '0 s', '2 h 1 min', '2 d 7 h')
    """
    whole = round(seconds)
    for size, larger, smaller, part in ((86_400, "d", "h", 3_600), (3_600, "h", "min", 60), (60, "min", "s", 1)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {larger} {rest} {smaller}" if rest else f"{whole // size} {larger}"
    return f"{whole} s"


# How long blocks take.


@dataclass
class Timing:
    """The measured time of blocks of one structure: seconds for each, and seconds per unit of work.

    ``taken`` over ``expected`` is the actual over the predicted time of those that were played.
    """

    fixed: float
    per_work: float
    expected: float = TRUSTED
    taken: float = TRUSTED

    def first_guess(self, job: Job) -> float:
        """Return the seconds of a block by the calibration."""
        return self.fixed + self.per_work * (job.checkpoints[-1] - job.start.rounds) * (job.lanes + FIXED)

    @property
    def correction(self) -> float:
        """The time that blocks took over what the calibration said."""
        return self.taken / self.expected


def measure(job: Job) -> Timing:
    """Play the beginning of ``job``, some hundredths of a second of it; what must be compiled is compiled first."""
    horizon = job.checkpoints[-1] - job.start.rounds
    _seconds(job, 1)
    fixed = _seconds(job, 1)
    rounds = min(64, horizon)
    while (taken := _seconds(job, rounds)) < ENOUGH and rounds < horizon:
        rounds = min(4 * rounds, horizon)
    return Timing(fixed, max(taken - fixed, 0.1 * taken) / (rounds * (job.lanes + FIXED)))


def _seconds(job: Job, rounds: int) -> float:
    """Return seconds of a core, so that other work on this machine does not count."""
    start = time.thread_time()
    play_job(replace(job, checkpoints=(job.start.rounds + rounds,)), threading.Event(), lambda rounds: None)
    return time.thread_time() - start


class Pace:
    """Seconds that blocks take: each structure is measured when it is first met, and corrected by what is played."""

    def __init__(self, measure: Callable[[Job], Timing] = measure) -> None:
        self._measure = measure
        self._timings: dict[Hashable, Timing] = {}

    def timing(self, job: Job) -> Timing:
        """Return what is known of blocks such as this one."""
        structure = structure_of(job)
        if structure not in self._timings:
            self._timings[structure] = self._measure(job)
        return self._timings[structure]

    def seconds(self, job: Job) -> float:
        """Return the seconds that ``job`` should take."""
        timing = self.timing(job)
        return timing.correction * timing.first_guess(job)

    def learn(self, job: Job, seconds: float) -> None:
        """Learn the seconds that ``job`` took."""
        timing = self.timing(job)
        timing.expected += timing.first_guess(job)
        timing.taken += seconds


def calibrate(missing: Iterable[tuple[Cell, Job]], pace: Pace) -> None:
    """Measure all kinds of blocks; an error names the cell whose formula is wrong."""
    for cell, job in missing:
        try:
            pace.timing(job)
        except MISTAKES as error:
            raise RunError(f"{cell.title}: {type(error).__name__}: {error}") from error


def seconds_of(missing: Sequence[tuple[Cell, Job]], pace: Pace | None = None) -> dict[str, float]:
    """Return the seconds that what is missing of each cell should take one worker, by the cell's key."""
    pace = pace or Pace()
    calibrate(missing, pace)
    seconds: dict[str, float] = {}
    for cell, job in missing:
        seconds[cell.key] = seconds.get(cell.key, 0.0) + pace.seconds(job)
    return seconds


class Queue:
    """Blocks that were not handed out yet, the longest first; iterating hands them out in chunks.

    A chunk takes about two seconds, or one block, and towards the end less, so that all workers finish together.
    """

    def __init__(self, jobs: Iterable[Job], pace: Pace, workers: Callable[[], int]) -> None:
        self._pace = pace
        self._workers = workers
        guessed = [(pace.timing(job).first_guess(job), job) for job in jobs]
        self._jobs = [job for _, job in sorted(guessed, key=lambda item: item[0])]  # taken from the end
        self._left: dict[int, tuple[Timing, float]] = {}
        for guess, job in guessed:
            self._count(job, guess)

    def _count(self, job: Job, guess: float) -> None:
        timing = self._pace.timing(job)
        _, before = self._left.get(id(timing), (timing, 0.0))
        self._left[id(timing)] = timing, before + guess

    @property
    def seconds(self) -> float:
        """The seconds that all of them should take one worker, by what is known now."""
        if not self._jobs:
            return 0.0
        return max(0.0, sum(timing.correction * guess for timing, guess in self._left.values()))

    def __iter__(self) -> Iterator[Chunk]:
        while self._jobs:
            yield self._chunk()

    def _chunk(self) -> Chunk:
        target = min(USUAL, max(LEAST, self.seconds / (2 * max(1, self._workers()))))
        jobs: list[Job] = []
        seconds = 0.0
        size = 0
        while self._jobs:
            job = self._jobs[-1]
            more = self._pace.seconds(job)
            larger = 8 * job.replications * (len(job.checkpoints) + job.problem.arms)
            if jobs and (seconds + more > target or size + larger > LARGEST):
                break
            jobs.append(self._jobs.pop())
            self._count(job, -self._pace.timing(job).first_guess(job))
            seconds += more
            size += larger
        return Chunk(tuple(jobs), seconds)
