"""What must have come before there is an interval without a range, and what that makes of revenue."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from benchmarks.revenue import ERROR, PROBLEMS, Missed, Revenue, missed, played
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from few import some
from rightarm import inference
from rightarm.inference.sequences import effective_rewards, rewards_of
from rightarm.types import F64

CHANCE = stats.norm.sf(4.5)


def worth(values: list[float] | F64, known: bool = True) -> float:
    """The effective rewards of an arm with these."""
    x = np.array(values, dtype=float)
    ends = (np.array([x.min()]), np.array([x.max()])) if known else None
    return float(
        effective_rewards(np.array([float(x.size)]), x.mean(keepdims=True), np.array([x.size * x.var()]), ends)[0]
    )


def kish(x: F64) -> float:
    return float(x.sum() ** 2 / (x @ x))


# What effective rewards are.


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=20), st.integers(30, 300))
def test_of_revenue_they_are_the_squared_sum_over_the_sum_of_squares(sums: list[float], others: int) -> None:
    revenue = np.array(sums + [0.0] * others)
    for known in (True, False):
        assert worth(revenue, known) == pytest.approx(kish(revenue), abs=1e-6)
    for changed in (revenue - 1, revenue + 100, -revenue, 5 - revenue, 1e6 * revenue):
        assert worth(changed) == pytest.approx(kish(revenue), rel=1e-6, abs=1e-6)


def test_they_are_never_more_than_the_squared_sum_over_the_sum_of_squares_says_of_rewards_from_0_on() -> None:
    random = np.random.default_rng(1)
    for values in (random.exponential(size=50), random.uniform(3, 4, 50), 9 - random.exponential(size=50)):
        assert worth(values) <= kish(values) + 1e-6


def test_of_two_values_they_are_the_rarer_ones() -> None:
    for few in (1, 30, 50):
        for low, high in ((0.0, 1.0), (-1.0, 1.0), (7.0, 8.0)):
            for values in ([low] * few + [high] * (100 - few), [high] * few + [low] * (100 - few)):
                assert worth(values) == pytest.approx(few, rel=1e-9)


def test_of_equal_rewards_they_are_none_and_of_normal_ones_nearly_all() -> None:
    for value in (0.0, 3.0):
        assert worth([value] * 500) == worth([value] * 500, known=False) == 0
    centred = np.random.default_rng(2).normal(size=1_000)
    assert 850 < worth(centred) < 1_000
    assert worth(centred, known=False) < 20


def test_extremes_are_those_of_the_arms() -> None:
    with pytest.raises(ValueError, match=r"extremes must be of the arms' shape, \(2,\), got \(1,\), \(2,\)"):
        inference.means([5, 5], [0.0, 1.0], [1.0, 1.0], extremes=([0.0], [1.0, 2.0]))
    centred = inference.means([500, 500], [0.0, 0.0], [500.0] * 2, extremes=([-3.0, math.nan], [3.0, math.nan]))
    assert np.isnan(centred.lows).tolist() == [False, True]
    options: dict[str, Any] = {"extremes": ([-3.0, -3.0], [3.0, 3.0])}
    assert math.isinf(inference.difference([500, 500], [0.0, 0.2], [500.0] * 2).high)
    assert math.isfinite(inference.difference([500, 500], [0.0, 0.2], [500.0] * 2, **options).high)
    assert inference.best([500, 500], [0.0, 2.0], [500.0] * 2, **options).stop
    assert inference.harm([500, 500], [0.0, 2.0], [500.0] * 2, 0.5, **options)
    assert not inference.harm([500, 500], [0.0, 2.0], [500.0] * 2, 0.5)


# How often intervals miss.


def too_many(count: int, runs: int) -> bool:
    """Whether so many of the runs cannot be chance if each has the error at most."""
    return bool(stats.binom.sf(count - 1, runs, ERROR) < CHANCE)


def check(found: Missed, runs: int, any_arm: bool) -> None:
    assert not too_many(max(found.arms), runs)
    assert not too_many(found.difference, runs)
    if any_arm:
        assert not too_many(found.any, runs)


ADAPTIVE = ["Thompson", "BGE, C = σ/3", "ScaledGumbel"]


@pytest.mark.parametrize("policy", some(["ScaledGumbel"], [*ADAPTIVE, "even"]))
@pytest.mark.parametrize("name", PROBLEMS)
def test_revenue_is_covered_at_every_look(name: str, policy: str) -> None:
    """Of all runs at most 5% miss at any of twenty looks; for what is bought also with the intervals of any arm."""
    problem, runs = PROBLEMS[name], 1_000
    looks = played(problem, policy, runs, seed=11)
    now, before = missed(problem, looks), missed(problem, looks, gate=False)
    check(now, runs, any_arm=policy in ADAPTIVE and problem.sign > 0)
    assert now.opened > 0.05 * runs  # not by saying nothing
    if problem.buyers < 0.05:
        assert too_many(before.any, runs)


@pytest.mark.full
@pytest.mark.parametrize("policy", [*ADAPTIVE, "ε-greedy", "even"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_revenue_is_covered_in_many_runs(name: str, policy: str) -> None:
    problem, runs = PROBLEMS[name], 10_000
    check(missed(problem, played(problem, policy, runs, seed=12)), runs, policy in ADAPTIVE and problem.sign > 0)


def test_zero_alone_does_not_see_a_shift() -> None:
    """Revenue minus a cost of 10: counted from zero every visitor is evidence, and intervals miss."""
    problem, runs = Revenue(0.03, 1.0, 30_000, offset=-10.0), 400
    looks = played(problem, "BGE, C = σ/3", runs, seed=11)
    rewards = rewards_of(*looks[:3], None, None)
    found = rewards.intervals(1 - ERROR)
    wrong = ((found.lows > problem.mean) | (found.highs < problem.mean)).any(axis=(0, 2))
    assert too_many(int(wrong.sum()), runs)
    check(missed(problem, looks), runs, any_arm=True)


LAWS: dict[str, tuple[Callable[..., F64], float | None]] = {
    "normal": (lambda random, runs: random.normal(size=runs), 1.0),
    "normal, estimated": (lambda random, runs: random.normal(size=runs), None),
    "coin": (lambda random, runs: random.choice([-1.0, 1.0], runs), 1.0),
    "exponential": (lambda random, runs: random.exponential(size=runs), None),
}


@pytest.mark.parametrize("worse_first", [False, True])
@pytest.mark.parametrize("law", LAWS)
def test_differences_hold_at_the_whole_error(law: str, worse_first: bool) -> None:
    """Looked at after every reward, the arms taking turns, or always the one that looks worse."""
    runs, random, (draw, sigma) = 1_000, np.random.default_rng(3), LAWS[law]
    counts, sums, squares = (np.zeros((runs, 2)) for _ in range(3))
    lows, highs = np.full((runs, 2), np.inf), np.full((runs, 2), -np.inf)
    wrong, every = np.zeros(runs, dtype=bool), np.arange(runs)
    for t in range(1_000):
        means = sums / np.maximum(counts, 1)
        arms = means.argmin(axis=1) if worse_first and t >= 500 else np.full(runs, t % 2)
        x = draw(random, runs)
        for kept, value in ((counts, 1.0), (sums, x), (squares, x**2)):
            kept[every, arms] += value
        lows[every, arms], highs[every, arms] = np.minimum(lows[every, arms], x), np.maximum(highs[every, arms], x)
        means = sums / np.maximum(counts, 1)
        spreads = np.maximum(squares - counts * means**2, 0.0)
        rewards = rewards_of(counts, means, spreads, None, sigma, (lows, highs))
        above = rewards.gaps(ERROR / rewards.sides)
        wrong |= (above[:, 0, 1] < 0) | (above[:, 1, 0] < 0)
    assert np.isfinite(above[:, 0, 1]).mean() > 0.9
    assert not too_many(int(wrong.sum()), runs)
