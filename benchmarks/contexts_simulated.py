"""What a round with contexts costs in simulation: `python -m benchmarks.contexts_simulated`.

CPU nanoseconds of a round on one core, all compiled, the least of several measurements: a linear problem with Gaussian
contexts, Boltzmann–Gumbel exploration with a linear model of each arm. A C program written by hand for AVX2 takes 303
at K = d = 10, without intercept and standardisation.
"""

from __future__ import annotations

import time

import numpy as np

import rightarm as ra
from benchmarks.common import best_of, table
from rightarm.simulation.context_engine import ContextRun

SHAPES = ((10, 10), (10, 50), (100, 20))  # arms, columns
TIMES = 10
MULTIPLICATIONS = 60_000_000  # about so many in a measurement
TARGET, IN_C = 700.0, 303.0  # nanoseconds at the first shape


def round_ns(policy: ra.Policy, arms: int, columns: int) -> float:
    """Nanoseconds of a round."""
    theta = np.random.default_rng(1).normal(size=(arms, columns)) / np.sqrt(columns)
    problem = ra.problems.LinearProblem(theta, noise=0.1)
    rounds = MULTIPLICATIONS // (1_000 + arms * columns**2)
    run = ContextRun(policy, problem, np.array([rounds]))
    run.begin(seed=1, replication=0)
    run.advance(1)

    def measured() -> float:
        run.begin(seed=1, replication=0)
        start = time.thread_time()
        run.advance(rounds)
        return 1e9 * (time.thread_time() - start) / rounds

    return best_of(TIMES, measured)


def main() -> None:
    """Measure and print."""
    rows = []
    for arms, columns in SHAPES:
        bare = ra.estimators.Linear(columns, standardise=False, intercept=False)
        models = (bare, ra.estimators.Linear(columns), ra.estimators.Mean())
        found = [round_ns(ra.BoltzmannGumbel(C=0.05, estimator=each), arms, columns) for each in models]
        rows.append([arms, columns, *(f"{ns:,.0f}" for ns in found)])
        if (arms, columns) == SHAPES[0]:
            first = found[0]
    titles = ["arms", "columns", "linear model", "with intercept, standardised", "without contexts"]
    print("BGE with contexts, ns per round and replication on one core\n")
    print(table(titles, rows))
    print(f"\nK = d = 10: {first:.0f} ns, {first / IN_C:.1f} times C ({IN_C:.0f} ns); at most {TARGET:.0f} wanted")


if __name__ == "__main__":
    main()
