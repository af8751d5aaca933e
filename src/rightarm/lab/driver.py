"""The driver: cells cut into jobs, played through the archive, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import numpy as np

from rightarm.lab.archive import Archive
from rightarm.lab.study import Cell, Sample
from rightarm.simulation.jobs import Job, Outcome, padded

BLOCK = 64  # replications of a job at most; fixed, so that a folder can be continued on any machine

K = TypeVar("K")


def jobs_of(cells: Mapping[K, Cell], seed: int) -> dict[Job, K]:
    """The work, the longest first so that no thread ends late, with the cell that each piece belongs to."""
    jobs = {
        Job(cell.policy, cell.problem, cell.start, seed, first, size, cell.checkpoints, padded(size)): key
        for key, cell in cells.items()
        for first in range(0, cell.replications, BLOCK)
        for size in [min(BLOCK, cell.replications - first)]
    }
    return dict(sorted(jobs.items(), key=lambda item: -item[0].rounds * item[0].problem.arms))


def rounds_left(jobs: Iterable[Job], archive: Archive) -> int:
    """What the archive does not hold yet."""
    return sum(job.rounds for job in jobs if archive.get(job) is None)


def compute(
    cells: Mapping[K, Cell], seed: int, archive: Archive, workers: int, on_rounds: Callable[[int], None]
) -> dict[K, Sample]:
    """What every cell gives; what the archive holds already is not computed again."""
    jobs = jobs_of(cells, seed)
    parts: dict[K, dict[int, Outcome]] = {key: {} for key in cells}
    for job, outcome in archive.play(list(jobs), workers, on_rounds):
        parts[jobs[job]][job.first] = outcome
    return {key: _together(cells[key], found) for key, found in parts.items()}


def _together(cell: Cell, found: dict[int, Outcome]) -> Sample:
    in_order = [found[first] for first in sorted(found)]
    return Sample(
        cell, np.concatenate([part.regret for part in in_order]), np.concatenate([part.pulls for part in in_order])
    )
