"""The factor of an arrowhead against dense matrices, and after very many badly scaled rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from naive_linear import NaiveLinear
from rightarm.estimators import ridge_regression
from rightarm.types import F64

SHAPES = {"disjoint": (3, 0), "shared": (0, 4), "hybrid": (2, 3), "one column": (1, 0)}


class Model:
    """The compiled model for some arms."""

    def __init__(self, arms: int, private: int, shared: int, ridge: float, private_ridge: float) -> None:
        self.private, self.ridges = private, (ridge, private_ridge)
        self.factor: F64 = np.zeros((ridge_regression.sizes(private, shared)[0], arms))
        self.common: F64 = np.zeros((shared, shared + 2))
        for arm in range(arms):
            ridge_regression.begin(self.factor, arm, private, shared, private_ridge)
        for j in range(shared):
            self.common[j, 1 + j] = np.sqrt(ridge)
            self.common[j, 0] = 1 / np.sqrt(ridge) if ridge else 0.0

    def take(self, arm: int, row: F64, reward: float) -> float:
        return float(ridge_regression.take(np.append(row, reward), arm, self.private, self.factor, self.common))

    def read(self, private: F64, shared: F64) -> tuple[F64, F64]:
        arms = self.factor.shape[1]
        pulls, mean = np.empty(arms), np.empty(arms)
        ridge_regression.read(private, shared, self.factor, self.common, arms, pulls, mean)
        return pulls, mean


@pytest.mark.parametrize("discount", [1.0, 0.9])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_ridge_regression(shape: str, discount: float) -> None:
    private, shared = SHAPES[shape]
    arms, ridge, private_ridge = 130, 0.5, 2.0  # more arms than are looked at together
    random = np.random.default_rng(1)
    model, naive = (
        Model(arms, private, shared, ridge, private_ridge),
        NaiveLinear(arms, private, shared, ridge, private_ridge, discount),
    )
    for _ in range(60):
        arm, row, reward = int(random.choice([0, 7, 128])), random.normal(size=private + shared), random.normal()
        if discount < 1:
            ridge_regression.fade(model.factor, model.common, arms, private, discount, ridge, private_ridge)
        ridge_regression.learn(row, reward, arm, private, model.factor, model.common)
        naive.learn(arm, row, reward)
    row, joint = random.normal(size=private), random.normal(size=(shared, arms))
    pulls, mean = model.read(row, joint)
    for arm in (0, 7, 64, 128, 129):
        expected = naive.read(arm, np.concatenate((row, joint[:, arm])))
        assert mean[arm] == pytest.approx(expected[0], rel=1e-9, abs=1e-11)
        assert pulls[arm] == pytest.approx(expected[1], rel=1e-9)
    assert model.factor[ridge_regression.RESIDUALS].sum() == pytest.approx(naive.objective(), rel=1e-9)
    assert model.factor[ridge_regression.COUNTING].sum() == pytest.approx(naive.solved()[2].sum())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_corrected_reward_is_one_that_came_in_its_place(shape: str) -> None:
    private, shared = SHAPES[shape]
    random = np.random.default_rng(2)
    model, naive = Model(3, private, shared, 1.0, 1.0), NaiveLinear(3, private, shared, 1.0, 1.0)
    rows = [(int(random.integers(3)), random.normal(size=private + shared), random.normal()) for _ in range(30)]
    for arm, row, reward in rows:
        ridge_regression.learn(row, reward, arm, private, model.factor, model.common)
    arm, row, before = rows[11]
    assert ridge_regression.correct(row, before, 5.0, 1.0, arm, private, model.factor, model.common, 0.0) < math.inf
    for i, (k, x, reward) in enumerate(rows):
        naive.learn(k, x, 5.0 if i == 11 else reward)
    pulls, mean = model.read(row[:private], np.repeat(row[private:, None], 3, axis=1))
    for k in range(3):
        assert (mean[k], pulls[k]) == pytest.approx(naive.read(k, row), rel=1e-9)
    assert model.factor[ridge_regression.RESIDUALS].sum() == pytest.approx(naive.objective(), rel=1e-9)


def test_without_a_ridge_nothing_is_known_of_a_new_direction() -> None:
    model = Model(2, 2, 0, 0.0, 0.0)
    assert model.read(np.array([1.0, 0.0]), np.zeros((0, 2)))[0].tolist() == [0.0, 0.0]
    for _ in range(4):
        model.take(0, np.array([2.0, 0.0]), 3.0)
    pulls, mean = model.read(np.array([1.0, 0.0]), np.zeros((0, 2)))
    assert pulls.tolist() == [16.0, 0.0]
    assert mean.tolist() == [1.5, 0.0]
    assert model.read(np.array([1.0, 1e-3]), np.zeros((0, 2)))[0].tolist() == [0.0, 0.0]


def test_without_a_ridge_collinear_columns_are_as_one() -> None:
    """An intercept beside all levels of a category: predictions are those of the levels alone."""
    random, model, alone = np.random.default_rng(8), Model(1, 3, 0, 0.0, 0.0), Model(1, 2, 0, 0.0, 0.0)
    for _ in range(2_000):
        level, reward = np.eye(2)[random.integers(2)], float(random.normal())
        model.take(0, np.append(1.0, level), reward)
        alone.take(0, level, reward)
    for level in np.eye(2):
        both = [one.read(row, np.zeros((0, 1))) for one, row in ((model, np.append(1.0, level)), (alone, level))]
        assert both[0][0][0] == pytest.approx(both[1][0][0], rel=1e-9)
        assert both[0][1][0] == pytest.approx(both[1][1][0], rel=1e-9)


def test_of_a_row_of_zeros_everything_is_known() -> None:
    pulls, mean = Model(1, 2, 0, 1.0, 1.0).read(np.zeros(2), np.zeros((0, 1)))
    assert (pulls[0], mean[0]) == (ridge_regression.MOST, 0.0)


def test_equal_histories_tie() -> None:
    """The mean of n rewards in any order, at one column of ones, as it is without contexts."""
    random = np.random.default_rng(3)
    rewards, model = random.integers(0, 2, 1_000).astype(float), Model(2, 1, 0, 0.0, 0.0)
    for arm, order in enumerate((rewards, random.permutation(rewards))):
        for reward in order:
            model.take(arm, np.ones(1), reward)
    pulls, mean = model.read(np.ones(1), np.zeros((0, 2)))
    assert pulls[0] == pulls[1] == 1_000
    assert mean[0] == mean[1] == pytest.approx(rewards.mean(), rel=1e-11)


def badly_scaled(random: np.random.Generator, kind: str, count: int) -> F64:
    """Rows of ten features whose sizes go from 1e-3 to 1e3."""
    sizes = np.logspace(-3, 3, 10)
    rows = random.normal(size=(count, 10))
    if kind == "offset":
        rows += 10
    if kind == "collinear":
        rows[:, 9] = rows[:, 0] + 1e-4 * rows[:, 9]
    return np.asarray(rows * sizes)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["scaled", "offset", "collinear"])
def test_a_million_badly_scaled_rows(kind: str) -> None:
    """Against the matrix summed in extended precision: means in deviations, beyond the 40 bits that formulas see."""
    ridge, model = 1e-6, Model(1, 10, 0, 0.0, 1e-6)
    random = np.random.default_rng(5)
    A = np.eye(10, dtype=np.longdouble) * ridge
    b = np.zeros(10, dtype=np.longdouble)
    for _ in range(10):
        rows, noise = badly_scaled(random, kind, 100_000), random.normal(size=100_000)
        rewards = rows @ (1 / np.logspace(-3, 3, 10)) + noise
        for row, reward in zip(rows, rewards, strict=True):
            model.take(0, row, reward)
        exact = rows.astype(np.longdouble)
        A += exact.T @ exact
        b += exact.T @ rewards.astype(np.longdouble)
    theta, inverse = solved(A, b)
    worst_width = worst_mean = 0.0
    for row in badly_scaled(random, kind, 50):
        pulls, mean = model.read(row, np.zeros((0, 1)))
        width = float(row @ inverse @ row)
        worst_width = max(worst_width, abs(1 / pulls[0] / width - 1))
        expected = float(row @ theta)
        error = max(abs(float(mean[0] - row @ theta)) - 2.0**-40 * abs(expected), 0.0)
        worst_mean = max(worst_mean, error / np.sqrt(width))
    assert worst_width < 1e-8
    assert worst_mean < 1e-8


def solved(A: Any, b: Any) -> tuple[F64, F64]:
    """A⁻¹ b and A⁻¹ in the precision of A: Gauss and Jordan, largest pivots first, after scaling."""
    scale = 1 / np.sqrt(np.diag(A))
    work = np.concatenate([A * scale[:, None] * scale, np.diag(scale), (b * scale)[:, None]], axis=1)
    for j in range(len(A)):
        pivot = j + int(np.argmax(np.abs(work[j:, j])))
        work[[j, pivot]] = work[[pivot, j]]
        work[j] /= work[j, j]
        for i in range(len(A)):
            if i != j:
                work[i] -= work[i, j] * work[j]
    inverse = work[:, len(A) : 2 * len(A)] * scale[:, None]
    return np.asarray(work[:, -1] * scale), np.asarray(inverse)
