"""Jobs: the pieces of a simulation, the threads that play them, and the code that determines their outcomes."""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rightarm.formula.syntax import sources_hash
from rightarm.policies.policy import Policy
from rightarm.problems.contextual import ContextProblem
from rightarm.problems.random import AnyProblem
from rightarm.simulation.context_engine import ContextRun
from rightarm.simulation.engine import Run, Start
from rightarm.simulation.kernels import WIDTH
from rightarm.types import F64, I64

# Modules and folders of modules. Policies and problems are not here: each cell names its own by their identities.
DETERMINING = (
    "estimators",
    "formula",
    "noise",
    "problems/contexts",
    "problems/contextual",
    "problems/problem",
    "problems/random",
    "policies/compiled_scores",
    "policies/family",
    "policies/inputs",
    "policies/policy",
    "policies/program",
    "simulation/compiled_problems",
    "simulation/context_kernels",
    "simulation/context_engine",
    "simulation/engine",
    "simulation/jobs",
    "simulation/kernels",
    "simulation/lanes",
    "simulation/rounds",
    "streams",
)


def determining_files() -> list[Path]:
    """Return the source files that determine outcomes."""
    package = Path(__file__).parents[1]
    places = [package / name for name in DETERMINING]
    return [file for place in places for file in (place.with_suffix(".py"), *place.rglob("*.py")) if file.is_file()]


@functools.cache
def outcome_code() -> str:
    """Return a name for what these files say: docstrings, comments, layout and the version of Python do not matter."""
    return sources_hash(determining_files())


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
        """The rounds of all its replications."""
        return self.replications * (self.checkpoints[-1] - self.start.rounds)


@dataclass(frozen=True)
class Outcome:
    """The result of a job: regret (replications × checkpoints) and final pulls (replications × arms)."""

    regret: F64
    pulls: I64
    outside: int = 0
    """The number of rewards outside the range that the policy is for."""


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
    outside = int(run.lanes.pull.outside[kept].sum())
    return Outcome(run.regret[:, kept].T.copy(), run.statistics.pulls[:, kept].T.astype(np.int64), outside)


def _one_after_another(job: Job, run: ContextRun, stop: threading.Event, on_rounds: Callable[[int], None]) -> Outcome:
    """Play the replications of a job whose problem has contexts."""
    end = job.checkpoints[-1]
    regret = []
    pulls = []
    outside = 0
    for replication in range(job.first, job.first + job.replications):
        run.begin(job.seed, replication)
        while run.round < end:
            if stop.is_set():
                raise Stopped
            before = run.round
            run.advance(min(end, before + run.slice))
            on_rounds(run.round - before)
        regret.append(run.regret)
        pulls.append(run.arrays.seen.counts)
        outside += int(run.arrays.choice.outside[0])
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
    """Return the number of lanes that so many replications take."""
    return math.ceil(replications / WIDTH) * WIDTH


def lanes_for(replications: int, policies: int, workers: int) -> int:
    """Return the number of lanes of a job with which all jobs are done first, a job's cost growing like lanes + 16."""

    def makespan(lanes: int) -> int:
        return math.ceil(policies * math.ceil(replications / lanes) / workers) * (lanes + 16)

    return min(range(WIDTH, WIDEST + 1, WIDTH), key=makespan)


def share_of(replications: int, policies: int, workers: int) -> int:
    """Return how many replications a job plays one after another: so many that workers finish together."""
    return max(1, replications * policies // (workers * PIECES))


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
