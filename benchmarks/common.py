"""What the measurements share."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rightarm as ra
from benchmarks.peers import PARAMETERS, bernoulli_means
from rightarm import Policy

CACHE = Path(__file__).parent.parent / ".cache"
POLICIES: dict[str, Policy] = {
    "bge": ra.BoltzmannGumbel(C=PARAMETERS["bge"]),
    "belog": ra.Boltzmann(ra.schedules.inverse_log(PARAMETERS["belog"])),
    "ucb": ra.UCB(C=PARAMETERS["ucb"]),
}
TITLES = {"bge": "BGE", "belog": "BE-log", "ucb": "UCB"}


def rightarm_ns(policy: Policy, arms: int, horizon: int, replications: int, all_known: bool = False) -> float:
    """CPU nanoseconds per round and replication of our engine on one core, compilation excluded.

    With ``all_known`` every arm was pulled once before, so that no round is a first pull, which costs less.
    """
    problem = ra.problems.Bernoulli(bernoulli_means(arms))
    before: dict[str, Any] = {"pulls": [1] * arms, "means": bernoulli_means(arms)} if all_known else {}
    ra.simulate(policy, problem, horizon=1, replications=1, seed=1, workers=1)
    start = time.process_time()
    ra.simulate(policy, problem, horizon=horizon, replications=replications, seed=1, workers=1, **before)
    return 1e9 * (time.process_time() - start) / (horizon * replications)


def best_of(times: int, measure: Callable[[], float]) -> float:
    """The least of several measurements: what the machine can do when nobody disturbs it."""
    return min(measure() for _ in range(times))


def table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as Markdown."""
    lines = [titles, ["---", *["---:"] * (len(titles) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
