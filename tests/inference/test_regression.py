"""Least squares of an arrowhead, block by block, against dense matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rightarm.inference.coefficients import FIXED, Gram, Regression
from rightarm.types import F64


def rows(arms: int, own: int, joint: int, count: int, seed: int) -> tuple[F64, F64]:
    """Rows of all arms side by side, and rewards; of the first arm two columns are equal, of the last one is 0."""
    random = np.random.default_rng(seed)
    X, rewards = np.zeros((count, arms * own + joint)), random.normal(size=count)
    for x in X:
        arm = random.integers(arms)
        mine = random.normal(size=own)
        if own > 1 and arm == 0:
            mine[1] = mine[0]
        if own > 1 and arm == arms - 1:
            mine[-1] = 0.0
        x[arm * own : (arm + 1) * own], x[arms * own :] = mine, random.normal(size=joint)
    return X, rewards


def blocks(X: F64, rewards: F64, arms: int, own: int) -> Gram:
    G, b, end = X.T @ X, X.T @ rewards, arms * own
    places = [slice(i * own, (i + 1) * own) for i in range(arms)]
    return Gram(
        np.array([G[place, place] for place in places]),
        np.array([G[place, end:] for place in places]),
        G[end:, end:],
        b[:end].reshape(arms, own),
        b[end:],
    )


def naive(X: F64, rewards: F64, w: F64) -> tuple[float, float]:
    """The estimate of w · θ and its width, NaN if no row tells it."""
    G = X.T @ X
    c = np.linalg.pinv(G, rcond=1e-10) @ w
    if np.linalg.norm(G @ c - w) > 1e-6:
        return math.nan, math.nan
    return float(c @ X.T @ rewards), math.sqrt(c @ (G + FIXED * np.eye(len(G))) @ c)


@pytest.mark.parametrize(("own", "joint"), [(4, 2), (4, 0), (0, 5), (1, 1), (1, 0)])
def test_against_dense_matrices(own: int, joint: int) -> None:
    arms = 3
    X, rewards = rows(arms, own, joint, 80, 1)
    found = Regression(blocks(X, rewards, arms, own))
    combinations = np.vstack([np.eye(own + joint), np.random.default_rng(2).normal(size=(3, own + joint))])
    told = 0
    for arm in range(arms):
        estimates, widths = found.combined(arm, combinations[:, :own], combinations[:, own:])
        for one, estimate, width in zip(combinations, estimates, widths, strict=True):
            w = np.zeros(X.shape[1])
            w[arm * own : (arm + 1) * own], w[arms * own :] = one[:own], one[own:]
            assert (estimate, width) == pytest.approx(naive(X, rewards, w), rel=1e-6, nan_ok=True)
            told += math.isfinite(width)
    assert told == {4: arms * (own + joint + 3) - 3 - 6, 0: 24, 1: arms * (own + joint + 3)}[own]


@pytest.mark.parametrize(("own", "joint"), [(4, 2), (0, 5), (3, 0)])
def test_volumes_and_ranks(own: int, joint: int) -> None:
    arms = 3
    X, rewards = rows(arms, own, joint, 80, 3)
    found = Regression(blocks(X, rewards, arms, own))
    parts = [X] * arms if joint else [X[:, i * own : (i + 1) * own] for i in range(arms)]
    grown = [np.linalg.slogdet(np.eye(part.shape[1]) + part.T @ part / FIXED)[1] / 2 for part in parts]
    assert found.log_volumes() == pytest.approx(grown)
    assert found.ranks().tolist() == [np.linalg.matrix_rank(part) for part in parts]
    expected = [2.0 * math.sqrt(2 * (volume + math.log(20))) for volume in grown]
    assert found.bounds(2.0, 0.95) == pytest.approx(expected)


def test_nothing_was_seen() -> None:
    found = Regression(Gram(*(np.zeros(shape) for shape in ((2, 3, 3), (2, 3, 1), (1, 1), (2, 3), (1,)))))
    estimates, widths = found.combined(0, np.eye(4)[:, :3], np.eye(4)[:, 3:])
    assert np.isnan(estimates).all()
    assert np.isnan(widths).all()
    assert found.ranks().tolist() == [0, 0]
