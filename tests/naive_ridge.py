"""The oracle for policies on a linear model: one dense ridge regression of all arms, as the papers write it.

Nothing here comes from rightarm. Coefficients are those of every arm's private columns, then the shared ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from naive import F64

Columns = Callable[[Sequence[float], Sequence[float]], tuple[list[float], list[float]]]
"""The private and the shared columns of a row, from a context and the features of an arm."""


class Ridge:
    """A = ridge + Σ row rowᵀ and b = Σ row · reward, solved anew each time."""

    def __init__(self, arms: int, private: int, shared: int, ridge: float, private_ridge: float) -> None:
        self.arms, self.private, self.shared = arms, private, shared
        self.A = np.diag([private_ridge] * (arms * private) + [ridge] * shared)
        self.b = np.zeros(arms * private + shared)

    def row(self, arm: int, columns: tuple[list[float], list[float]]) -> F64:
        """A row with the private columns at the arm's place."""
        own, joint = columns
        row = np.zeros(self.b.size)
        row[arm * self.private : (arm + 1) * self.private] = own
        row[self.arms * self.private :] = joint
        return row

    def learn(self, row: F64, reward: float) -> None:
        self.A += np.outer(row, row)
        self.b += reward * row

    def predicted(self, rows: F64) -> tuple[F64, F64]:
        """The predictions of some rows, and their covariances over the variance of one reward."""
        return rows @ np.linalg.solve(self.A, self.b), rows @ np.linalg.solve(self.A, rows.T)


def linmed(mean: F64, covariance: F64, sigma: float, alpha: float) -> F64:
    """Balagopalan and Jun 2025 without the optimal design."""
    best, variance = int(np.argmax(mean)), np.diag(covariance)
    apart = variance + variance[best] - 2 * covariance[:, best]
    weights = np.full(mean.size, (1 - alpha) / mean.size)
    weights[best] += alpha
    for arm in range(mean.size):
        if arm != best:
            weights[arm] *= np.exp(-((mean[best] - mean[arm]) ** 2) / (2 * sigma**2 * apart[arm]))
    chances: F64 = weights / weights.sum()
    return chances


def lints(mean: F64, covariance: F64, sigma: float, draws: int, random: np.random.Generator) -> F64:
    """How often each arm is the best if all coefficients are drawn from N(θ̂, σ² A⁻¹); ties are shared."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    wins = np.zeros(mean.size)
    for size in [50_000] * (draws // 50_000):
        scores = mean + sigma * random.standard_normal((size, mean.size)) @ root.T
        wins += np.bincount(scores.argmax(axis=1), minlength=mean.size)
    return wins / draws
