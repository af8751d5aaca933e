"""Logs with contexts, made up for the tests of evaluation, and what is known of them the plain way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Log = dict[str, Any]
ARMS = ["a", "b", "c", "d"]


def softmax(scores: F64) -> F64:
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


class World:
    """Rewards of 0 or 1, with chances that are linear in the context: 0.5 + x · θ, cut to 0.02 and 0.98."""

    def __init__(self, seed: int, arms: int = 4, size: int = 5, strength: float = 0.5) -> None:
        self.random = np.random.default_rng(seed)
        self.theta = strength * self.random.normal(size=(arms, size)) / np.sqrt(size)
        self.arms, self.size = arms, size

    def means(self, x: F64) -> F64:
        return np.asarray(np.clip(0.5 + self.theta @ x, 0.02, 0.98))

    def log(self, rows: int, law: Callable[[F64], F64]) -> Log:
        """A log of a policy that does not learn, on contexts of odd scales."""
        made: Log = {"arm": [], "propensity": [], "reward": [], "context": []}
        for _ in range(rows):
            x = self.random.normal(size=self.size)
            p = law(x)
            arm = int(self.random.choice(self.arms, p=p))
            reward = float(self.random.random() < self.means(x)[arm])
            for name, value in zip(made, (arm, float(p[arm]), reward, x), strict=True):
                made[name].append(value)
        made["context"] = np.array(made["context"])
        return made

    def even_log(self, rows: int) -> Log:
        return self.log(rows, lambda x: np.full(self.arms, 1 / self.arms))

    def adaptive_log(self, rows: int) -> Log:
        """A log of softmax over the rewards that each arm had so far: the choices depend on rewards and contexts."""
        pulls, sums, x_sums = np.ones(self.arms), np.full(self.arms, 0.5), np.zeros((self.arms, self.size))

        def law(x: F64) -> F64:
            scores = 4 * sums / pulls + x_sums @ x / pulls
            return np.asarray(0.05 + (1 - 0.05 * self.arms) * softmax(scores))

        made: Log = {"arm": [], "propensity": [], "reward": [], "context": []}
        for _ in range(rows):
            one = self.log(1, law)
            arm, reward = one["arm"][0], one["reward"][0]
            pulls[arm] += 1
            sums[arm] += reward
            x_sums[arm] += (reward - 0.5) * one["context"][0]
            for name in made:
                made[name].append(one[name][0])
        made["context"] = np.array(made["context"])
        return made

    def value(self, log: Log, law: Callable[[F64], F64]) -> float:
        """What a policy earns in the contexts of a log."""
        return float(np.mean([law(x) @ self.means(x) for x in log["context"]]))


class DenseRidge:
    """Ridge regression for each arm by itself, solved anew for every question."""

    def __init__(self, arms: int, size: int) -> None:
        self.A = [np.eye(size) for _ in range(arms)]
        self.b = [np.zeros(size) for _ in range(arms)]

    def predict(self, row: F64) -> F64:
        return np.array([row @ np.linalg.solve(A, b) for A, b in zip(self.A, self.b, strict=True)])

    def pulls(self, row: F64) -> F64:
        return np.array([1 / (row @ np.linalg.solve(A, row)) for A in self.A])

    def learn(self, arm: int, row: F64, reward: float) -> None:
        self.A[arm] += np.outer(row, row)
        self.b[arm] += reward * row


def standard(contexts: F64) -> F64:
    """The last context, standardised by all of them, after a 1."""
    spread = contexts.std(axis=0)
    z = np.divide(contexts[-1] - contexts.mean(axis=0), spread, out=np.zeros(spread.size), where=spread > 0)
    return np.concatenate([[1.0], z])
