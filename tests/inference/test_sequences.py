"""Intervals for means: against loops over the formula, and against what they promise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_sequences as naive
from rightarm import inference
from rightarm.inference.sequences import FEWEST, RHO, RHO_ESTIMATED, interval

CASES = {
    "half": (400, 0.5, 100.0),
    "clicks": (1_000, 0.02, 19.6),
    "no click": (85, 0.0, 0.0),
    "always": (2, 1.0, 0.0),
    "equal": (50, 0.3, 0.0),
    "narrow": (3_000, 0.61, 1.2),
    "revenue": (20_000, 0.004, 2.1),
    "one": (1, 0.25, 0.0),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("confidence", [0.9, 0.999])
def test_the_ends_are_where_the_capital_crosses(case: str, confidence: float) -> None:
    arm = CASES[case]
    found = inference.means([arm[0]], [arm[1]], [arm[2]], (0, 1), confidence)
    assert [found.lows[0], found.highs[0]] == pytest.approx(naive.interval(arm, confidence), abs=1e-9)
    assert found.kind == "bounded"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0.01, 1))
def test_statistics_never_say_more_than_the_rewards(values: list[float], m: float) -> None:
    assert naive.log_capital(naive.statistics(values), m) <= math.log(naive.capital(values, m)) + 1e-9


def test_of_zeros_and_ones_they_say_all() -> None:
    values = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    for m in (0.01, 0.2, 0.9):
        expected = math.log(naive.capital(values, m))
        assert naive.log_capital(naive.statistics(values), m) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("law", [(0.5, 0.5, 0.0), (0.1, 0.1, 0.8), (0.9, 0.09, 0.01)], ids=str)
def test_nobody_gains_in_a_fair_game(law: tuple[float, ...]) -> None:
    """The mean capital over all sequences of 5 draws is at most 1, on either side of the true mean."""
    prizes = [0.0, 0.4, 1.0]
    mean = float(np.dot(law, prizes))
    below = above = 0.0
    for draws in itertools.product(range(3), repeat=5):
        arm, chance = naive.statistics([prizes[i] for i in draws]), math.prod(law[i] for i in draws)
        below += chance * math.exp(naive.log_capital(arm, mean))
        above += chance * math.exp(naive.log_capital(naive.mirrored(arm), 1 - mean))
    assert 0.5 < below <= 1 + 1e-12
    assert 0.5 < above <= 1 + 1e-12


def test_units_do_not_matter() -> None:
    counts, means, spreads = np.array([30.0, 500.0]), np.array([0.2, 0.7]), np.array([3.0, 50.0])
    plain = inference.means(counts, means, spreads, (0, 1))
    scaled = inference.means(counts, 600 * means - 100, 600**2 * spreads, (-100, 500))
    assert scaled.lows == pytest.approx(600 * plain.lows - 100, rel=1e-9)
    assert scaled.highs == pytest.approx(600 * plain.highs - 100, rel=1e-9)
    mirrored = inference.means(counts, 1 - means, spreads, (0, 1))
    assert mirrored.lows == pytest.approx(1 - plain.highs, rel=1e-9)


def test_arms_do_not_influence_each_other() -> None:
    counts, means, spreads = zip(*CASES.values(), strict=True)
    together = inference.means(counts, means, spreads, (0, 1))
    for i, arm in enumerate(CASES.values()):
        alone = inference.means([arm[0]], [arm[1]], [arm[2]], (0, 1))
        assert [together.lows[i], together.highs[i]] == [alone.lows[0], alone.highs[0]]


def test_large_counts_stay_narrow_and_ordered() -> None:
    for n in (10**6, 10**9):
        found = inference.means([n], [0.3], [0.21 * n], (0, 1))
        assert 0 < 0.3 - found.lows[0] < 2.5 * math.sqrt(0.21 / n) * 1.96
        assert 0 < found.highs[0] - 0.3 < 2.5 * math.sqrt(0.21 / n) * 1.96


def test_a_first_day_is_not_certain() -> None:
    """No clicks of 85, and two of two: nothing is certain yet."""
    found = inference.means([85, 2], [0.0, 1.0], [0.0, 0.0], (0, 1))
    assert found.lows[0] == 0
    assert 0.04 < found.highs[0] < 0.08
    assert 0.05 < found.lows[1] < 0.2
    assert found.highs[1] == 1


def test_without_rewards_there_is_no_interval() -> None:
    found = inference.means([0, 5], [0.0, 0.5], [0.0, 1.0], (0, 1))
    assert np.isnan([found.lows[0], found.highs[0]]).all()
    assert found.lows[1] < 0.5 < found.highs[1]


def test_widths_beside_the_interval_of_all_rewards() -> None:
    """Not wider than betting on the rewards one by one, but for few rewards that are neither 0 nor 1."""
    random = np.random.default_rng(5)
    cases: list[tuple[Callable[[int], Any], dict[int, float]]] = [
        (lambda n: (random.random(n) < 0.02) * 1.0, {1_000: 1.0, 30_000: 1.0}),
        (lambda n: (random.random(n) < 0.5) * 1.0, {100: 1.0, 10_000: 1.0}),
        (lambda n: random.beta(6, 4, n), {100: 1.5, 1_000: 1.1, 10_000: 1.0}),
        (lambda n: np.minimum((random.random(n) < 0.05) * np.exp(random.normal(3.5, 0.8, n)), 500) / 500, {3_000: 1.3}),
    ]
    for draw, most in cases:
        for n, ratio in most.items():
            values = draw(n)
            low, high = interval(values)
            found = inference.means([n], [values.mean()], [n * values.var()], (0, 1))
            assert found.highs[0] - found.lows[0] < ratio * (high - low)


# Rewards without a range.


def test_the_normal_mixture_is_the_published_formula() -> None:
    n, mean, spread, alpha = 200, 7.0, 800.0, 0.05
    deviation = math.sqrt(spread / (n - 1))
    for sigma, known, rho in ((None, deviation, RHO_ESTIMATED), (3.0, 3.0, RHO)):
        found = inference.means([n], [mean], [spread], sigma=sigma)
        inner = 2 * (n * rho**2 + 1) / (n**2 * rho**2) * math.log(math.sqrt(n * rho**2 + 1) / alpha)
        half = known * math.sqrt(inner)
        assert [found.lows[0], found.highs[0]] == pytest.approx([mean - half, mean + half], rel=1e-12)
        assert found.kind == ("asymptotic" if sigma is None else "sub-Gaussian")


@pytest.mark.full
@pytest.mark.parametrize("law", ["clicks", "exponential"])
def test_asymptotic_intervals_hold_for_rewards_that_are_not_normal(law: str) -> None:
    """At 120 looks between 30 and 3,000 rewards; clicks are of 5%."""
    random, runs, rounds = np.random.default_rng(11), 300, 3_000
    size, means = (runs, rounds), {"clicks": 0.05, "exponential": 1.0}
    rewards = (random.random(size) < 0.05) * 1.0 if law == "clicks" else random.exponential(1.0, size)
    counts = np.unique(np.geomspace(30, rounds, 120).astype(int))
    centres = np.cumsum(rewards, axis=1)[:, counts - 1] / counts
    spreads = np.cumsum(rewards**2, axis=1)[:, counts - 1] - counts * centres**2
    found = inference.means(np.broadcast_to(counts, centres.shape), centres, np.maximum(spreads, 0))
    missed = ((found.lows > means[law]) | (found.highs < means[law])).any(axis=1).sum()
    assert missed <= 0.05 * runs + 4.5 * math.sqrt(0.05 * 0.95 * runs)
    assert np.isfinite(found.lows[:, -1]).all()


def test_without_a_range_few_rewards_or_equal_ones_say_nothing() -> None:
    """With one purchase of each size for a number of zeros, (Σx)²/Σx² is the number of purchases."""
    clicks, visitors = np.array([99.0, 100.0, 100.0, 0.0, 0.0]), np.array([9_000.0, 9_000.0, 100.0, 9_000.0, 0.0])
    means = clicks / np.maximum(visitors, 1)
    found = inference.means(visitors, means, clicks * (1 - means))
    assert np.isnan(found.lows).tolist() == [True, False, True, True, True]
    assert FEWEST == 100
    known = inference.means([1, 0], [0.5, 0.0], [0.0, 0.0], sigma=1.0)
    assert np.isnan(known.lows).tolist() == [False, True]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1], [0.5], [-1.0]), {}, r"spreads must be finite and not negative, got \[-1.0\]"),
        (([-1], [0.5], [1.0]), {}, r"counts must be finite and not negative, got \[-1.0\]"),
        (([1], [math.nan], [0.0]), {}, r"means must be finite, got \[nan\]"),
        (([1, 2], [0.5], [0.0]), {}, r"statistics must be of one shape, got \(2,\), \(1,\), \(1,\)"),
        (([1], [1.5], [0.0]), {"reward_range": (0, 1)}, r"means must be in reward_range, 0.0 to 1.0, got 1.5"),
        (([1], [0.5], [0.0]), {"reward_range": (1, 0)}, r"reward_range must be two numbers, the lower one first"),
        (([1], [0.5], [0.0]), {"sigma": -1.0}, r"sigma must be positive, got -1.0"),
        (([1], [0.5], [0.0]), {"confidence": 1.0}, r"confidence must be between 0 and 1, got 1.0"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, Any, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inference.means(*arguments, **options)
