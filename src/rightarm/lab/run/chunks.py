"""Chunks: blocks packed into pieces of about two seconds, by a calibration that is corrected by what is played."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from rightarm.formula import Formula
from rightarm.simulation.jobs import Job, play_job

USUAL = 2.0  # seconds of a chunk: a thousand times what it costs to send one, and little is lost with it
LEAST = 0.1  # seconds of a chunk at the end of a run
LARGEST = 16 * 2**20  # bytes of a chunk's outcomes
ENOUGH = 0.015  # seconds of a calibration's longest run
FIXED = 16  # lanes' worth of work in a round, however many lanes there are
TRUSTED = 0.05  # seconds of play that weigh as much as the calibration


@dataclass(frozen=True, eq=False)
class Chunk:
    """Blocks that are played one after another by one worker, and the seconds that they should take."""

    jobs: tuple[Job, ...]
    seconds: float = 0.0


def kind_of(job: Job) -> tuple[Any, ...]:
    """What the time of a round depends on most: the formulas, numbers in them aside, and the number of arms."""
    return _structure(job.policy), _structure(job.problem), job.problem.arms


def _structure(formula: Formula) -> tuple[Any, ...]:
    values = (
        _structure(value) if isinstance(value, Formula) else None if isinstance(value, float | tuple) else value
        for value in formula.values.values()
    )
    family = formula.family
    return family.function if family.bare else family, *values


def _work(job: Job) -> int:
    return (job.checkpoints[-1] - job.start.rounds) * (job.lanes + FIXED)


@dataclass
class Kind:
    """What is known of one kind of block: seconds for each, seconds per unit of work, actual over predicted time."""

    fixed: float
    per_work: float
    expected: float = TRUSTED
    taken: float = TRUSTED

    def first_guess(self, job: Job) -> float:
        """Seconds by the calibration."""
        return self.fixed + self.per_work * _work(job)

    @property
    def correction(self) -> float:
        """What blocks took over what the calibration said."""
        return self.taken / self.expected


def calibrated(job: Job) -> Kind:
    """Play the beginning of ``job``, some hundredths of a second of it; what must be compiled is compiled first."""
    horizon = job.checkpoints[-1] - job.start.rounds
    _seconds(job, 1)
    fixed = _seconds(job, 1)
    rounds = min(64, horizon)
    while (taken := _seconds(job, rounds)) < ENOUGH and rounds < horizon:
        rounds = min(4 * rounds, horizon)
    return Kind(fixed, max(taken - fixed, 0.1 * taken) / (rounds * (job.lanes + FIXED)))


def _seconds(job: Job, rounds: int) -> float:
    """Seconds of a core, so that other work on this machine does not count."""
    start = time.thread_time()
    play_job(replace(job, checkpoints=(job.start.rounds + rounds,)), threading.Event(), lambda rounds: None)
    return time.thread_time() - start


class Pace:
    """Seconds that blocks take: each kind is calibrated when it is first met, and corrected by what is played."""

    def __init__(self, calibrate: Callable[[Job], Kind] = calibrated) -> None:
        self._calibrate = calibrate
        self._kinds: dict[tuple[Any, ...], Kind] = {}

    def kind(self, job: Job) -> Kind:
        """What is known of blocks such as this one."""
        name = kind_of(job)
        if name not in self._kinds:
            self._kinds[name] = self._calibrate(job)
        return self._kinds[name]

    def seconds(self, job: Job) -> float:
        """Seconds that ``job`` should take."""
        kind = self.kind(job)
        return kind.correction * kind.first_guess(job)

    def learn(self, job: Job, seconds: float) -> None:
        """``job`` took so many seconds."""
        kind = self.kind(job)
        kind.expected += kind.first_guess(job)
        kind.taken += seconds


class Queue:
    """Blocks that were not handed out yet, the longest first; iterating hands them out in chunks.

    A chunk takes about two seconds, or one block, and towards the end less, so that all workers finish together.
    """

    def __init__(self, jobs: Iterable[Job], pace: Pace, workers: Callable[[], int]) -> None:
        self._pace, self._workers = pace, workers
        guessed = [(pace.kind(job).first_guess(job), job) for job in jobs]
        self._jobs = [job for _, job in sorted(guessed, key=lambda item: item[0])]  # taken from the end
        self._left: dict[int, tuple[Kind, float]] = {}
        for guess, job in guessed:
            self._count(job, guess)

    def _count(self, job: Job, guess: float) -> None:
        kind = self._pace.kind(job)
        before = self._left.get(id(kind), (kind, 0.0))[1]
        self._left[id(kind)] = kind, before + guess

    @property
    def seconds(self) -> float:
        """Seconds that all of them should take one worker, by what is known now."""
        if not self._jobs:
            return 0.0
        return max(0.0, sum(kind.correction * guess for kind, guess in self._left.values()))

    def __iter__(self) -> Iterator[Chunk]:
        while self._jobs:
            yield self._chunk()

    def _chunk(self) -> Chunk:
        target = min(USUAL, max(LEAST, self.seconds / (2 * max(1, self._workers()))))
        jobs: list[Job] = []
        seconds, size = 0.0, 0
        while self._jobs:
            job = self._jobs[-1]
            more, larger = self._pace.seconds(job), _bytes(job)
            if jobs and (seconds + more > target or size + larger > LARGEST):
                break
            jobs.append(self._jobs.pop())
            self._count(job, -self._pace.kind(job).first_guess(job))
            seconds, size = seconds + more, size + larger
        return Chunk(tuple(jobs), seconds)


def _bytes(job: Job) -> int:
    return 8 * job.replications * (len(job.checkpoints) + job.problem.arms)
