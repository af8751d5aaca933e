"""The paper's Figure 1: mean regret against C², from honest and from malicious initial rewards (its section 6)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rightarm.lab import driver
from rightarm.lab.archive import Archive
from rightarm.lab.study import Cell
from rightarm.policies import UCB, Boltzmann, BoltzmannGumbel, Policy, constant, inverse_log, inverse_sqrt
from rightarm.problems import Bernoulli, Problem
from rightarm.simulation.jobs import Job

PAPER_HORIZON, ARMS, GAP, CORRUPTED_ROUNDS, SUGGESTED = 1_000_000, 10, 0.01, 5_000, 0.25

# The paper's five, and BGE with two other noise locations, which stand in the report's table only.
ALGORITHMS: dict[str, Callable[[float], Policy]] = {
    "BE-const": lambda c2: Boltzmann(constant(c2)),
    "BE-log": lambda c2: Boltzmann(inverse_log(c2)),
    "BE-sqrt": lambda c2: Boltzmann(inverse_sqrt(c2)),
    "BGE": lambda c2: BoltzmannGumbel(C=np.sqrt(c2)),
    "UCB": lambda c2: UCB(C=np.sqrt(c2)),
    "BGE, location 0": lambda c2: BoltzmannGumbel(C=np.sqrt(c2), location=0.0),
    "BGE, location −γ": lambda c2: BoltzmannGumbel(C=np.sqrt(c2), location=-np.euler_gamma),
}

HONEST = Bernoulli([0.5 + GAP] + [0.5] * (ARMS - 1))
SCENARIOS: dict[str, Problem] = {
    "a": HONEST,
    "b": HONEST.corrupted(arm=0, rounds=CORRUPTED_ROUNDS, reward=0.0),
}


@dataclass(frozen=True)
class Plan:
    """How much is computed: the paper's own size, or a smaller one of the same form."""

    horizon: int
    replications: int
    grid: tuple[float, ...]
    seed: int

    @property
    def smaller(self) -> bool:
        """Whether it is not the paper's own size."""
        return self.horizon < PAPER_HORIZON

    @property
    def uniform(self) -> float:
        """The regret of choosing arms uniformly at random."""
        return float(self.horizon * HONEST.gaps.mean())


def grid(points: int) -> tuple[float, ...]:
    """C² from 10⁻³ to 10², evenly on a logarithmic scale on either side of the suggested 1/4."""
    below = round((points - 1) * np.log(SUGGESTED / 1e-3) / np.log(1e2 / 1e-3))
    left, right = np.geomspace(1e-3, SUGGESTED, below + 1), np.geomspace(SUGGESTED, 1e2, points - below)
    return tuple(float(f"{c2:.3g}") for c2 in [*left, *right[1:]])


def full_plan(replications: int = 64, seed: int = 2017) -> Plan:
    """The paper's size: 10⁶ rounds."""
    return Plan(PAPER_HORIZON, replications, grid(17), seed)


def quick_plan(replications: int = 32, seed: int = 2017) -> Plan:
    """A fifth of the rounds and half of the grid."""
    return Plan(PAPER_HORIZON // 5, replications, grid(9), seed)


def plan(quick: bool, replications: int | None, seed: int) -> Plan:
    """One of the two, with its own number of replications unless another is given."""
    make = quick_plan if quick else full_plan
    return make(seed=seed) if replications is None else make(replications, seed)


@dataclass(frozen=True)
class Point:
    """One cell of the figure: final regret of all replications."""

    scenario: str
    algorithm: str
    c2: float
    regret: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Mean regret."""
        return float(self.regret.mean())

    @property
    def error(self) -> float:
        """Its standard error."""
        return float(self.regret.std(ddof=1) / np.sqrt(self.regret.size))

    @property
    def text(self) -> str:
        """Mean and standard error, as the tables show them."""
        return f"{self.mean:.0f} ({self.error:.0f})"


class Points:
    """All cells, to be looked up."""

    def __init__(self, points: list[Point]) -> None:
        self.cells = {(point.scenario, point.algorithm, point.c2): point for point in points}

    def __iter__(self) -> Iterator[Point]:
        return iter(self.cells.values())

    def row(self, scenario: str, algorithm: str) -> list[Point]:
        """One curve, in order of C²."""
        found = [point for point in self if (point.scenario, point.algorithm) == (scenario, algorithm)]
        return sorted(found, key=lambda point: point.c2)

    def best(self, scenario: str, *algorithms: str) -> Point:
        """The cell with the least mean regret among some curves."""
        return min((point for name in algorithms for point in self.row(scenario, name)), key=lambda point: point.mean)

    def at(self, scenario: str, algorithm: str, c2: float = SUGGESTED) -> Point:
        """One cell, at the suggested C² unless another is given."""
        return self.cells[scenario, algorithm, c2]


def cells(plan: Plan) -> dict[tuple[str, str, float], Cell]:
    """The simulations: every scenario, algorithm and C²."""
    return {
        (scenario, algorithm, c2): Cell(make(c2), problem, (plan.horizon,), plan.replications)
        for scenario, problem in SCENARIOS.items()
        for algorithm, make in ALGORITHMS.items()
        for c2 in plan.grid
    }


def jobs(plan: Plan) -> dict[Job, tuple[str, str, float]]:
    """The work, with the cell that each piece belongs to."""
    return driver.jobs_of(cells(plan), plan.seed)


def rounds_left(plan: Plan, folder: Path) -> int:
    """What ``folder`` does not hold yet."""
    return driver.rounds_left(jobs(plan), Archive(folder / "cells"))


def compute(plan: Plan, folder: Path, workers: int, on_rounds: Callable[[int], None]) -> Points:
    """All cells of the figure; those that ``folder`` holds already are not computed again."""
    samples = driver.compute(cells(plan), plan.seed, Archive(folder / "cells"), workers, on_rounds)
    return Points([Point(*cell, sample.regret[:, -1]) for cell, sample in samples.items()])


def write_csv(points: Points, path: Path) -> None:
    """A row for each cell."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["scenario", "algorithm", "C2", "replications", "mean_regret", "standard_error"])
        for p in points:
            writer.writerow([p.scenario, p.algorithm, p.c2, p.regret.size, f"{p.mean:.3f}", f"{p.error:.3f}"])
