"""What the tests of runs share: some cells, results in memory, and what blocks give when they are played alone."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import rightarm as ra
from rightarm.experiments.cell import Cell
from rightarm.experiments.runner import Pace, Timing
from rightarm.simulation.jobs import Job, Outcome, play_job

SHIFT = 0.25


def shifted(mean: Any) -> Any:
    return mean + SHIFT


@ra.policy
def helped(pulls, mean, *, C: float = 1.0):  # type: ignore[no-untyped-def]
    return shifted(mean) + C / np.sqrt(pulls)


@ra.policy
def broken(t, pulls, mean, *, C: float = 1.0):  # type: ignore[no-untyped-def]
    return mean + np.sqrt(C - t)


def cell(policy: ra.Policy | None = None, horizon: int = 500, replications: int = 70, **names: Any) -> Cell:
    chosen = policy or ra.BoltzmannGumbel(C=0.5)
    return Cell(
        chosen, ra.problems.Bernoulli([0.6, 0.5, 0.4]), horizon, replications, 7, (10, horizon), tuple(names.items())
    )


def cells() -> list[Cell]:
    some = [ra.BoltzmannGumbel(C=0.5), ra.Boltzmann(ra.schedules.inverse_log(0.25)), ra.UCB(C=1.0), helped(C=0.5)]
    drawn = ra.problems.RandomProblem(ra.problems.Bernoulli, mean=ra.problems.Uniform(low=[0.0] * 4, high=1.0))
    return [*map(cell, some), replace(cell(), problem=drawn)]


class Kept:
    """Results in memory, which refuse what they have."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int], Outcome] = {}

    def missing(self, cells: Iterable[Cell]) -> list[tuple[Cell, Job]]:
        return [(cell, job) for cell in cells for job in cell.blocks() if (cell.key, job.first) not in self.found]

    def put(self, found: Sequence[tuple[Cell, Job, Outcome]]) -> None:
        for cell, job, outcome in found:
            assert (cell.key, job.first) not in self.found, "computed twice"
            self.found[cell.key, job.first] = outcome


def expected(cells: Iterable[Cell]) -> dict[tuple[str, int], Outcome]:
    stop = threading.Event()
    return {(c.key, job.first): play_job(job, stop, lambda rounds: None) for c in cells for job in c.blocks()}


def assert_same(kept: Kept, cells: Iterable[Cell]) -> None:
    alone = expected(cells)
    assert kept.found.keys() == alone.keys()
    for key, outcome in alone.items():
        assert outcome.regret.tobytes() == kept.found[key].regret.tobytes()
        assert outcome.pulls.tobytes() == kept.found[key].pulls.tobytes()


def quick_pace(seconds: float = 1.0) -> Pace:
    """Every block takes so long, they say, so that chunks are many."""
    return Pace(lambda job: Timing(seconds, 0.0))
