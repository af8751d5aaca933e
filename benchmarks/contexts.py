"""Decisions by contexts, beside other libraries: `python -m benchmarks.contexts`.

CPU microseconds of ask + tell on one core, ours with the exact propensity of every decision; processes take turns, and
the least of several measurements counts.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np

import rightarm as ra
from benchmarks.common import CACHE, table
from benchmarks.peers import contextual

TIMES = 5
ROUNDS = {(10, 10): 2_000, (100, 20): 500, (1_000, 10): 300}
PEERS: Mapping[tuple[int, int], Mapping[str, int]] = {
    (10, 10): {"obp": 5, "river": 12},
    (100, 20): {"obp": 12},
}
AT_MOST = {(1_000, 10): 120}
SHARED, SHARED_AT_MOST = (1_000, 50), 500
TITLES = {"obp": "obp's LinUCB", "river": "river's LinUCBDisjoint"}


def bandit(arms: int, estimator: ra.estimators.Linear) -> ra.Bandit[int]:
    """A bandit by Boltzmann–Gumbel exploration."""
    return ra.Bandit(range(arms), ra.BoltzmannGumbel(C=0.05, estimator=estimator), seed=1)


def disjoint(arms: int, size: int, rounds: int) -> float:
    """Our time, every arm with coefficients of its own."""
    ours = bandit(arms, ra.estimators.Linear(size))
    rows = contextual.contexts(size, rounds)
    return contextual.timed(rows, lambda row: ours.ask(context=row), lambda one, row, reward: ours.tell(one, reward))


def shared(arms: int, size: int, rounds: int) -> float:
    """Our time if coefficients are shared, and arms have features that come with every decision."""
    ours = bandit(arms, ra.estimators.Linear(0, arm_features=size, intercept=False))
    rows: Any = np.random.default_rng(1).normal(size=(rounds, arms, size))
    nothing = np.zeros(0)
    return contextual.timed(
        rows, lambda row: ours.ask(context=nothing, arm_features=row), lambda one, row, reward: ours.tell(one, reward)
    )


def lines() -> list[list[object]]:
    """A line for each size and each peer."""
    found: list[list[object]] = []
    for (arms, size), rounds in ROUNDS.items():
        peers = PEERS.get((arms, size), {})
        ours, theirs = float("inf"), dict.fromkeys(peers, float("inf"))
        for _ in range(TIMES):
            ours = min(ours, disjoint(arms, size, rounds))
            for name in peers:
                theirs[name] = min(theirs[name], contextual.run(name, arms, size, max(200, rounds // 4), CACHE))
        head = [f"{arms:,}", size, f"{ours:,.1f}"]
        for name, target in peers.items():
            found.append([*head, f"{TITLES[name]}: {theirs[name]:,.0f}", f"{theirs[name] / ours:.1f}", f"≥ {target}"])
        if (arms, size) in AT_MOST:
            found.append([*head, "", "", f"≤ {AT_MOST[arms, size]} µs"])
    arms, size = SHARED
    time = min(shared(arms, size, 60) for _ in range(TIMES))
    found.append([f"{arms:,}", f"{size}, shared", f"{time:,.1f}", "", "", f"≤ {SHARED_AT_MOST} µs"])
    return found


def memory(arms: int, size: int) -> list[object]:
    """Bytes of a bandit, of a pending decision, and of its state as JSON."""
    tracemalloc.start()
    ours = bandit(arms, ra.estimators.Linear(size))
    made = tracemalloc.get_traced_memory()[0]
    decisions = [ours.ask(context=row) for row in contextual.contexts(size, 1_000)]
    pending = (tracemalloc.get_traced_memory()[0] - made) / len(decisions)
    tracemalloc.stop()
    text = ours.to_json()
    of_model = len(json.dumps(json.loads(text)["statistics"]))
    return [f"{arms:,}", size, f"{made / 1e3:,.0f} kB", f"{pending:,.0f}", f"{of_model / 1e3:,.0f} kB"]


def main() -> None:
    """Measure everything and print it."""
    print("ask + tell with the exact propensity recorded, µs\n")
    print(table(["K", "d", "rightarm", "peer", "times as fast", "target"], lines()))
    print("\nmemory\n")
    sizes = [memory(arms, size) for arms, size in ((10, 10), (100, 20), (1_000, 10))]
    print(table(["K", "d", "bandit", "bytes of a pending decision", "model as JSON"], sizes))


if __name__ == "__main__":
    main()
