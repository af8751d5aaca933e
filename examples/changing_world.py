"""Live bandits in a world that changes: the best of three arms turns into the worst, and then another one is the best.

`python examples/changing_world.py [changing_world.png]` takes about ten seconds, and draws what was earned.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import rightarm as ra

PHASES = [{"a": 0.6, "b": 0.5, "c": 0.3}, {"a": 0.3, "b": 0.5, "c": 0.6}, {"a": 0.5, "b": 0.7, "c": 0.3}]
ROUNDS, REPLICATIONS, SMOOTHED = 3_000, 20, 150
MEMORIES = {
    "all rewards count": (ra.estimators.Mean(), "#D55E00"),
    "discount=0.998": (ra.estimators.Mean(discount=0.998), "#0072B2"),
    "window=1_000": (ra.estimators.Mean(window=1_000), "#009E73"),
}


def play(seed: int, memory: ra.estimators.Mean) -> list[float]:
    """The mean that each chosen arm had, round by round."""
    bandit = ra.Bandit(["a", "b", "c"], ra.ScaledGumbel(estimator=memory), seed=seed)
    luck, chosen = np.random.default_rng(seed), []
    for means in PHASES:
        for _ in range(ROUNDS):
            decision = bandit.ask()
            chosen.append(means[str(decision.arm)])
            bandit.tell(decision, luck.random() < chosen[-1])
    return chosen


def smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of the last rounds before each."""
    return np.convolve(values, np.ones(SMOOTHED) / SMOOTHED, mode="valid")


def main(path: str) -> None:
    """Play, print what each bandit earned, and draw it."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    best = np.repeat([max(means.values()) for means in PHASES], ROUNDS)
    axes.plot(best, color="#555555", linewidth=1, linestyle=":", label="the best arm")
    for title, (memory, colour) in MEMORIES.items():
        earned = np.array([play(seed, memory) for seed in range(REPLICATIONS)])
        print(f"{title:<20} {earned.mean():.4f} per round of {best.mean():.4f}")
        axes.plot(np.arange(SMOOTHED - 1, best.size), smoothed(earned.mean(axis=0)), color=colour, label=title)
    axes.set_xlabel("round")
    axes.set_ylabel("mean of the arm chosen")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "changing_world.png")
