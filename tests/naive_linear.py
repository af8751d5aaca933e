"""Ridge regression with contexts the plain way: one dense matrix for all arms, solved anew for every question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rightarm.types import F64


class NaiveLinear:
    """K arms whose rows are (private columns of the arm | shared columns), as one matrix with K·P + S columns."""

    def __init__(self, arms: int, private: int, shared: int, ridge: float, private_ridge: float, discount: float = 1.0):
        self.arms, self.private, self.shared, self.discount = arms, private, shared, discount
        self.prior = np.diag([private_ridge] * (arms * private) + [ridge] * shared)
        self.rows: list[tuple[F64, float]] = []

    def wide(self, arm: int, row: F64) -> F64:
        """The row of an arm among the columns of all arms."""
        out = np.zeros(self.arms * self.private + self.shared)
        out[arm * self.private : (arm + 1) * self.private] = row[: self.private]
        out[self.arms * self.private :] = row[self.private :]
        return out

    def learn(self, arm: int, row: F64, reward: float) -> None:
        self.rows.append((self.wide(arm, row), reward))

    def solved(self) -> tuple[F64, F64, F64]:
        """A, b, and how much every reward counts."""
        weights = self.discount ** np.arange(len(self.rows) - 1, -1, -1.0)
        A, b = self.prior.copy(), np.zeros(len(self.prior))
        for weight, (row, reward) in zip(weights, self.rows, strict=True):
            A += weight * np.outer(row, row)
            b += weight * row * reward
        return A, b, weights

    def read(self, arm: int, row: F64) -> tuple[float, float]:
        """The prediction, and the pulls that it is worth."""
        A, b, _ = self.solved()
        wide = self.wide(arm, row)
        return float(wide @ np.linalg.solve(A, b)), 1 / float(wide @ np.linalg.solve(A, wide))

    def objective(self) -> float:
        """Σ weight · residual² + θᵀ ridge θ at the best θ."""
        A, b, weights = self.solved()
        theta = np.linalg.solve(A, b)
        residuals = [reward - row @ theta for row, reward in self.rows]
        return float(weights @ np.square(residuals) + theta @ self.prior @ theta)


def standardised(seen: Sequence[F64], measured: Sequence[int]) -> F64:
    """The last of the contexts seen, its measured columns less their mean, over their deviation."""
    values, x = np.array(seen), np.array(seen[-1], dtype=float)
    for column in measured:
        deviation = values[:, column].std()
        x[column] = (x[column] - values[:, column].mean()) / deviation if deviation > 0 else 0.0
    return x


def probabilities(policy: Any, round: int, pulls: Any, means: Any) -> F64:
    """The probabilities of a policy by the two numbers of each arm: location and scale, and the law of the largest."""
    from rightarm.noise import probability_of_largest
    from rightarm.policies.inputs import ArmsState

    state = ArmsState(float(round), np.array(pulls), np.array(means), {}, None, len(pulls))
    return probability_of_largest(*policy._score_law(state))
