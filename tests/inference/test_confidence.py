"""Confidence sequences: against the text's formula, and against what they promise, in simulations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from rightarm.inference.sequences import BETS, interval, joint_lower_bound, lower_bound

REPLICATIONS, ROUNDS = 150, 400
LIMIT = REPLICATIONS * 0.05 + 4.5 * math.sqrt(REPLICATIONS * 0.05 * 0.95)


def capital(values: list[float], v: float) -> float:
    """The average over bets, product by product."""
    return float(np.mean([math.prod((1 + bet * x) / (1 + bet * v) for x in values) for bet in BETS]))


def test_the_bound_is_where_the_capital_crosses() -> None:
    values = [0.3, 0.0, 1.0, 0.6, 0.9, 2.5, 0.4, 0.8, 0.7, 1.1]
    bound = lower_bound(values, 0.9)
    assert 0 < bound < 0.8
    assert capital(values, bound * (1 - 1e-9)) >= 10 > capital(values, bound * (1 + 1e-9))


@pytest.mark.parametrize("law", [(0.5, 0.5), (0.9, 0.1), (0.97, 0.02, 0.01)], ids=str)
def test_no_gambler_gains_in_a_fair_game(law: tuple[float, ...]) -> None:
    """The mean capital over all sequences of 5 draws is 1, at the true mean."""
    prizes = [0.0, 1.0, 30.0][: len(law)]
    mean = float(np.dot(law, prizes))
    total = sum(
        math.prod(law[i] for i in draws) * capital([prizes[i] for i in draws], mean)
        for draws in itertools.product(range(len(law)), repeat=5)
    )
    assert abs(total - 1) < 1e-10


def test_means_that_drift_can_only_lower_the_capital() -> None:
    """Two draws of different means: at the average mean the expected capital is at most 1, and it is not always 1."""
    for first, second in [(0.1, 0.9), (0.4, 0.5), (0.0, 1.0)]:
        total = 0.0
        for a, b in itertools.product((0.0, 1.0), repeat=2):
            chance = (first if a else 1 - first) * (second if b else 1 - second)
            total += chance * capital([a, b], (first + second) / 2)
        assert total < 1 - 1e-4


@pytest.mark.parametrize("mean", [0.5, 0.05])
def test_coverage_at_all_times_at_once(mean: float) -> None:
    draws = (np.random.default_rng(3).random((REPLICATIONS, ROUNDS)) < mean) * 1.0
    looks = [25, 100, 400]
    ends = np.array([[interval(row[:n]) for n in looks] for row in draws])
    missed = ((ends[:, :, 0] > mean) | (ends[:, :, 1] < mean)).any(axis=1).sum()
    assert missed <= LIMIT
    # The same for the interval of the textbook: looking three times breaks its promise, so the test can fail.
    means = np.array([[row[:n].mean() for n in looks] for row in draws])
    naive = stats.norm.ppf(0.975) * np.sqrt(means * (1 - means) / looks)
    assert (np.abs(means - mean) > naive).any(axis=1).sum() > LIMIT


def test_width_is_near_what_is_possible() -> None:
    """At most 2.1 times the width of the textbook's interval, which holds at one time only; and in its rate."""
    for mean, rounds in [(0.5, 10_000), (0.01, 10_000), (0.5, 1_000_000)]:
        low, high = interval(np.arange(rounds) < mean * rounds)
        assert low < mean < high
        assert (high - low) / 2 < 2.1 * 1.96 * math.sqrt(mean * (1 - mean) / rounds)


def test_several_sequences_are_nearly_as_good_as_the_best() -> None:
    random = np.random.default_rng(1)
    noisy, exact = random.exponential(0.5, 500) * (random.random(500) < 0.1) * 10, np.full(500, 0.5)
    alone, both = lower_bound(exact), joint_lower_bound([(exact, 0.0), (noisy, 0.0)], 0.95)
    assert lower_bound(noisy) < both < alone
    assert alone - both < 0.005
    assert lower_bound(noisy) < 0.4


def test_nothing_is_known_without_data() -> None:
    assert interval([]) == (0.0, 1.0)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"values must be from 0 to 1, got 0.0 to 1.5"):
        interval([0.0, 1.5])
    with pytest.raises(ValueError, match=r"values must be finite and at least -0.0, got -1.0"):
        lower_bound([-1.0, 2.0])
    with pytest.raises(ValueError, match=r"confidence must be between 0 and 1, got 1.0"):
        interval([0.5], confidence=1.0)
