"""The oracle for problems with contexts: ridge regression by solving dense equations anew, one number at a time.

Of rightarm only the Gaussian of a random word is used (``draws``); the random words, the order of a data set's rows,
the standardisation and the regression are written from their definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import naive
from compiled import draws
from naive import F64
from rightarm.noise import Gaussian, Law

Score = Callable[[float, float, float, float, "Arms"], float]
"""An arm's score from the round, its pulls, its mean, its noise, and what is known of all arms."""


@dataclass
class Arms:
    """What is known of all arms in a context."""

    pulls: Sequence[float]
    means: Sequence[float]
    variances: Sequence[float]


def gaussian(word: int) -> float:
    return float(draws(Gaussian(), np.array([word], np.uint32))[0])


def noise_of(words: Iterator[int], asked: Sequence[str], columns: int) -> dict[str, Any]:
    """The noise of a round in the order in which it is drawn: u and v of two words, w of one, then rows of them."""
    noise: dict[str, Any] = {"u": 0.5, "v": 0.5, "w": 0.0, "normals": np.zeros(columns), "uniforms": np.zeros(columns)}
    for name in ("u", "v", "w", "normals", "uniforms"):
        if name in asked:
            size = columns if name in ("normals", "uniforms") else 1
            drawn = [
                naive.uniform_of(next(words), next(words)) if name in ("u", "v", "uniforms") else gaussian(next(words))
                for _ in range(size)
            ]
            noise[name] = np.array(drawn) if size > 1 or name in ("normals", "uniforms") else drawn[0]
    return noise


def shuffled(order: list[int], words: Iterator[int]) -> list[int]:
    """Fisher and Yates, from the last place down."""
    order = list(order)
    for i in range(len(order) - 1, 0, -1):
        j = next(words) * (i + 1) >> 32
        order[i], order[j] = order[j], order[i]
    return order


def rows_in_order(count: int, words: Iterator[int]) -> Iterator[int]:
    order = list(range(count))
    while True:
        order = shuffled(order, words)
        yield from order


@dataclass
class Ridge:
    """Ridge regression on all rows so far. ``private`` and ``shared`` are columns of x, −1 the intercept."""

    arms: int
    private: Sequence[int]
    shared: Sequence[int] = ()
    ridge: float = 1.0
    private_ridge: float = 1.0
    standardise: bool = True
    discount: float = 1.0
    contexts: list[F64] = field(default_factory=list)
    learned: list[tuple[int, F64, float]] = field(default_factory=list)
    residuals: dict[int, float] = field(default_factory=dict)

    def seen(self, x: F64) -> F64:
        """The context in deviations of all contexts so far, this one included."""
        self.contexts.append(np.array(x))
        if not self.standardise:
            return np.array(x)
        every = np.array(self.contexts)
        deviation = every.std(axis=0)
        return np.where(deviation > 0, (x - every.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0), 0.0)

    def row(self, arm: int, x: F64) -> F64:
        """The row among the private columns of all arms and then the shared ones."""
        own = [1.0 if j < 0 else x[j] for j in self.private]
        row = np.zeros(self.arms * len(own) + len(self.shared))
        row[arm * len(own) : (arm + 1) * len(own)] = own
        row[self.arms * len(own) :] = [1.0 if j < 0 else x[j] for j in self.shared]
        return row

    def normal_equations(self) -> tuple[F64, F64]:
        private = self.arms * len(self.private)
        A = np.diag([self.private_ridge] * private + [self.ridge] * len(self.shared))
        b = np.zeros(len(A))
        for age, (_, row, reward) in enumerate(reversed(self.learned)):
            A = A + self.discount**age * np.outer(row, row)
            b = b + self.discount**age * row * reward
        return A, b

    def look(self, x: F64) -> Arms:
        A, b = self.normal_equations()
        inverse = np.linalg.inv(A)
        rows = [self.row(arm, x) for arm in range(self.arms)]
        counts = [max(1, sum(arm == each for each, _, _ in self.learned)) for arm in range(self.arms)]
        return Arms(
            [1 / float(row @ inverse @ row) for row in rows],
            [float(row @ inverse @ b) for row in rows],
            [
                sum(self.residuals.values()) / max(1, len(self.learned))
                if self.shared
                else self.residuals.get(arm, 0.0) / counts[arm]
                for arm in range(self.arms)
            ],
        )

    def learn(self, arm: int, x: F64, reward: float) -> None:
        """The residual of a reward is (reward − prediction)² / (1 + 1/pulls) before it is learned."""
        if self.discount == 1.0:
            before, row = self.look(x), self.row(arm, x)
            error = (reward - before.means[arm]) ** 2 / (1 + 1 / before.pulls[arm])
            self.residuals[arm] = self.residuals.get(arm, 0.0) + error
        else:
            row = self.row(arm, x)
        self.learned.append((arm, row, reward))


def play(
    problem: Any,
    model: Ridge,
    score: Score,
    noise: Law | None,
    horizon: int,
    seed: int,
    replication: int,
    epsilon: float = 0.0,
) -> tuple[list[int], float]:
    """The arm of every round, and the regret of all of them."""
    own, luck, ties, orders = (naive.words(seed, replication, role) for role in range(4))
    context, reward = problem.context, problem.reward
    rows = rows_in_order(len(context.data), orders) if hasattr(context, "data") else iter(())
    arms, regret = [], 0.0
    for t in range(1, horizon + 1):
        label = 0.0
        if hasattr(context, "data"):
            place = next(rows)
            x, label = context.data[place], context.labels[place]
        else:
            x = context.row({"t": float(t), **noise_of(luck, sorted(context.inputs), context.columns)})
        paid = {name: noise_of(luck, [name], 1)[name] for name in ("u", "v", "w") if name in reward.inputs}
        means = problem.means_at(x, t=float(t), label=label)
        seen = model.seen(x)
        known = model.look(seen)
        z = [0.0] * problem.arms
        if noise is not None:
            z = draws(noise, np.array([next(own) for _ in range(problem.arms)], np.uint32)).astype(float).tolist()
        now = 1 + sum(model.discount**age for age in range(t - 1))
        scores = [score(now, known.pulls[i], known.means[i], z[i], known) for i in range(problem.arms)]
        arm = naive.pick(scores, ties)
        if epsilon:
            share = (next(own) + 0.5) * 2.0**-32
            arm = int(share // (epsilon / problem.arms)) if share < epsilon else arm
        arms.append(arm)
        regret += float(means.max() - means[arm])
        given = float(problem.reward_at(arm, means[arm], x, paid, t=float(t), label=label))
        model.learn(arm, seen, given)
    return arms, regret
