"""Jobs: a simulation cut into pieces that threads play side by side. The kernels let go of Python's lock."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from rightarm.problems.contextual import ContextProblem
from rightarm.problems.random import AnyProblem
from rightarm.scores.policy import Policy
from rightarm.simulation.argmax import WIDTH
from rightarm.simulation.contextual import ContextRun
from rightarm.simulation.engine import Run, Start
from rightarm.types import F64, I64

PIECES = 16  # jobs for each worker, where replications are played one after another
WIDEST = 64  # lanes of a job; more would leave the first-level cache


@dataclass(frozen=True)
class Job:
    """Replications ``first`` to ``first + replications − 1`` of one policy on one problem."""

    policy: Policy
    problem: AnyProblem
    start: Start
    seed: int
    first: int
    replications: int
    checkpoints: tuple[int, ...]
    lanes: int

    @property
    def rounds(self) -> int:
        """All its rounds, every replication counted."""
        return self.replications * (self.checkpoints[-1] - self.start.rounds)


@dataclass(frozen=True)
class Outcome:
    """What a job found: regret (replications × checkpoints) and final pulls (replications × arms)."""

    regret: F64
    pulls: I64
    outside: int = 0
    """How many rewards were such that the policy is not for them."""


class Stopped(Exception):
    """A job was told to stop before its end."""


def play_job(job: Job, stop: threading.Event, on_rounds: Callable[[int], None]) -> Outcome:
    """Play ``job`` slice by slice, so that it can be stopped and watched."""
    end = job.checkpoints[-1]
    checkpoints = np.array(job.checkpoints)
    if isinstance(job.problem, ContextProblem):
        return _one_after_another(job, ContextRun(job.policy, job.problem, checkpoints), stop, on_rounds)
    run = Run(job.policy, job.problem, job.start, job.seed, job.first, job.lanes, checkpoints, job.replications)
    while run.round < end:
        if stop.is_set():
            raise Stopped
        before = run.round
        run.advance(min(end, before + run.slice))
        on_rounds(job.replications * (run.round - before))
    kept = slice(0, job.replications)  # the other lanes are padding
    outside = int(run.pull.outside[kept].sum())
    return Outcome(run.regret[:, kept].T.copy(), run.known.pulls[:, kept].T.astype(np.int64), outside)


def _one_after_another(job: Job, run: ContextRun, stop: threading.Event, on_rounds: Callable[[int], None]) -> Outcome:
    """The replications of a job whose problem has contexts."""
    end, regret, pulls, outside = job.checkpoints[-1], [], [], 0
    for replication in range(job.first, job.first + job.replications):
        run.begin(job.seed, replication)
        while run.round < end:
            if stop.is_set():
                raise Stopped
            before = run.round
            run.advance(min(end, before + run.slice))
            on_rounds(run.round - before)
        regret.append(run.regret)
        pulls.append(run.seen.counts)
        outside += int(run.choice.outside[0])
    return Outcome(np.array(regret), np.array(pulls), outside)


def play_jobs(
    jobs: Iterable[Job], workers: int, on_rounds: Callable[[int], None] = lambda rounds: None
) -> Iterator[tuple[Job, Outcome]]:
    """Play ``jobs`` on ``workers`` threads and give each outcome as it comes; an error or Ctrl-C ends all of them."""
    stop = threading.Event()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="rightarm")
    try:
        futures = {pool.submit(play_job, job, stop, on_rounds): job for job in jobs}
        while futures:
            # With a timeout, because without one a signal may wait for ever when another library handles it too.
            done, _ = wait(futures, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in done:
                yield futures.pop(future), future.result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def padded(replications: int) -> int:
    """The lanes that so many replications take."""
    return math.ceil(replications / WIDTH) * WIDTH


def lanes_for(replications: int, policies: int, workers: int) -> int:
    """The lanes of a job that get all done first, a job's cost growing like lanes + 16."""

    def makespan(lanes: int) -> int:
        return math.ceil(policies * math.ceil(replications / lanes) / workers) * (lanes + 16)

    return min(range(WIDTH, WIDEST + 1, WIDTH), key=makespan)


def share_of(replications: int, policies: int, workers: int) -> int:
    """The replications of a job that plays them one after another: so many that workers finish together."""
    return max(1, replications * policies // (workers * PIECES))


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
