"""Differences and the best arm: against loops over both means, and against what they say in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import naive_sequences as naive
from few import few
from rightarm import inference
from rightarm.inference.sequences import REMEDY, RHO, rewards_of

PAIRS = {
    "alike": ((200, 0.6, 8.0), (200, 0.5, 10.0)),
    "one well known": ((60, 0.8, 9.6), (5_000, 0.3, 1_050.0)),
    "clicks": ((900, 0.05, 42.75), (300, 0.2, 48.0)),
    "nothing of one": ((0, 0.0, 0.0), (300, 0.2, 48.0)),
}


Columns = tuple[list[float], list[float], list[float]]


def columns(arms: Sequence[naive.Statistics]) -> Columns:
    counts, means, spreads = zip(*arms, strict=True)
    return list(counts), list(means), list(spreads)


def reversed_columns(statistics: Columns) -> Columns:
    return statistics[0][::-1], statistics[1][::-1], statistics[2][::-1]


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "nothing of one"])
def test_the_bound_on_a_difference_is_that_of_all_pairs_of_means(name: str) -> None:
    """At least the naive one, which has a grid of 1/400, and wider by 3% at most besides."""
    arms = PAIRS[name]
    found = inference.difference(*columns(arms), (0, 1), 0.9)
    for bound, expected in (
        (found.high, naive.largest_gap(arms[0], arms[1], 0.05)),
        (-found.low, naive.largest_gap(arms[1], arms[0], 0.05)),
    ):
        assert expected <= bound <= expected + 2 / 400 + 0.03 * (found.high - found.low)


def test_an_arm_without_rewards_can_be_anything() -> None:
    arms = PAIRS["nothing of one"]
    found = inference.difference(*columns(arms), (0, 1))
    known = inference.means(*columns(arms), (0, 1))
    assert found.better is None
    assert found.high > 1 - known.lows[1] - 0.02
    assert found.low < -known.highs[1] + 0.02


def test_a_difference_is_narrower_than_two_intervals() -> None:
    for arms in (PAIRS["alike"], PAIRS["clicks"]):
        both = inference.means(*columns(arms), (0, 1), 0.975)
        found = inference.difference(*columns(arms), (0, 1), 0.95)
        assert found.high - found.low < 0.9 * float((both.highs - both.lows).sum())


def test_the_other_way_round_is_the_negative() -> None:
    one, two = PAIRS["clicks"]
    settings: list[dict[str, Any]] = [{"reward_range": (0, 1)}, {"sigma": 0.5}, {}]
    for options in settings:
        there = inference.difference(*columns([one, two]), **options)
        back = inference.difference(*columns([two, one]), **options)
        assert [there.low, there.high] == pytest.approx([-back.high, -back.low], rel=1e-9)


def test_the_normal_difference_is_the_least_product_of_two_mixtures() -> None:
    """Both ends at the whole error: the mixture is of bets on either side."""
    arms, sigma, error = PAIRS["one well known"], 0.5, 0.05

    def log_mixture(arm: naive.Statistics, m: float) -> float:
        n, mean, _ = arm
        total = n * (mean - m) / sigma
        return total**2 * RHO**2 / (2 * (n * RHO**2 + 1)) - math.log(n * RHO**2 + 1) / 2

    found = inference.difference(*columns(arms), sigma=sigma)
    for gap in (found.low, found.high):
        grid = np.linspace(-1, 2, 30_001)
        least = min(log_mixture(arms[0], m + gap) + log_mixture(arms[1], m) for m in grid)
        assert least == pytest.approx(-math.log(error), abs=1e-4)


def test_words() -> None:
    statistics = columns([(20_000, 0.05, 950.0), (30_000, 0.03, 873.0)])
    good = inference.difference(*statistics, (0, 1), names=("blue", "red"))
    assert str(good).startswith("blue is better than red: by 0.01")
    assert str(good).endswith("(95%, at any time)")
    bad = inference.difference(*reversed_columns(statistics), (0, 1), 0.9, names=("red", "blue"))
    assert str(bad).startswith("red is worse than blue: by 0.01")
    assert "(90%, at any time)" in str(bad)
    unclear = inference.difference([20, 30], [0.05, 0.03], [0.95, 0.873], (0, 1), names=("blue", "red"))
    assert str(unclear).startswith("cannot tell yet: blue − red is between −")
    few = inference.difference([400, 40_000], [0.05, 0.03], [19.0, 1_164.0], names=("blue", "red"))
    assert str(few) == "cannot tell yet: blue has 20 of 100 effective rewards; declare a reward_range or wait"
    assert (few.low, few.high, few.better) == (-math.inf, math.inf, None)
    assert str(inference.difference(*statistics)).endswith("(95%, at any time, asymptotic)")


# The best arm.

FIVE = [(400, 0.50, 100.0), (5_000, 0.70, 1_050.0), (90, 0.66, 20.0), (2_000, 0.45, 495.0), (300, 0.69, 64.0)]


def test_candidates_cost_and_leader_are_those_of_all_pairs() -> None:
    above = rewards_of(*columns(FIVE), (0, 1), None).gaps(0.05 / 4)
    for i, j in [(0, 1), (3, 1), (2, 4)]:
        assert naive.largest_gap(FIVE[i], FIVE[j], 0.05 / 4) <= above[i, j]
    found = inference.best(*columns(FIVE), (0, 1), names="abcde")
    able = [i for i in range(5) if all(above[i, j] >= 0 for j in range(5) if j != i)]
    assert set(found.candidates) == {"abcde"[i] for i in able} == {"b", "c", "e"}
    assert found.candidates[0] == "b"
    costs = [max(above[j, i] for j in range(5) if j != i) for i in range(5)]
    assert (found.leader, found.cost) == ("b", costs[1])
    assert costs[1] == min(costs)
    assert not found.stop
    assert str(found).startswith(
        "cannot tell yet: the best of 5 arms is b, e or c; stopping now with b costs at most 0."
    )


def test_when_to_stop() -> None:
    cost = inference.best(*columns(FIVE), (0, 1)).cost
    assert inference.best(*columns(FIVE), (0, 1), tolerance=cost).stop
    enough = inference.best(*columns(FIVE), (0, 1), tolerance=0.2, names="abcde")
    assert str(enough).startswith("one can stop with b: it costs at most 0.")
    assert not inference.best(*columns(FIVE), (0, 1), tolerance=0.99 * cost).stop
    clear = inference.best([900, 50_000], [0.01, 0.03], [8.9, 1455.0], (0, 1), names=["a", "b"])
    assert (clear.candidates, clear.cost, clear.stop) == (("b",), 0.0, True)
    assert str(clear) == "b is the best of 2 arms (95%, at any time): one can stop"


def test_without_rewards_nothing_is_said() -> None:
    """There is no leader, no difference "by the means so far", and no tolerance lets one stop."""
    for options in ({"reward_range": (0, 5)}, {"sigma": 1.0}, {}):
        nothing = inference.best([0, 0, 0], [0.0] * 3, [0.0] * 3, tolerance=9.0, names="abc", **options)
        assert (nothing.leader, nothing.candidates, nothing.stop) == (None, ("a", "b", "c"), False)
        assert str(nothing) == "cannot tell yet: no reward of a, b or c"
        apart = inference.difference([0, 0], [0.0] * 2, [0.0] * 2, names=("a", "b"), **options)
        assert math.isnan(apart.estimate)
        assert str(apart) == "cannot tell yet: no reward of a or b"
        one = inference.difference([0, 7_000], [0.0, 0.5], [0.0, 1_750.0], names=("a", "b"), **options)
        assert math.isnan(one.estimate)
        assert (one.better, str(one)) == (None, "cannot tell yet: no reward of a")
    assert inference.best([0, 0], [0.0] * 2, [0.0] * 2, (0, 5)).cost == 5.0
    assert "no reward of 20 arms" in str(inference.best([0] * 20, [0.0] * 20, [0.0] * 20, (0, 1)))


def test_an_arm_without_a_reward_is_no_leader_and_keeps_one_from_stopping() -> None:
    found = inference.best([0, 500, 500], [0.0, -0.8, -0.2], [0.0, 80.0, 80.0], (-1, 1), tolerance=2.0, names="abc")
    assert (found.leader, found.candidates, found.stop) == ("c", ("c", "a"), False)
    assert str(found) == "cannot tell yet: no reward of a"
    assert found.cost == pytest.approx(1.2, abs=0.1)  # the range's end minus what c has at least
    assert str(inference.best([3], [0.5], [0.0], (0, 1), names=["a"])) == "a is the only arm"
    assert inference.best([0], [0.0], [0.0], names=["a"]).leader == "a"


def test_without_evidence_there_is_no_leader() -> None:
    few = inference.best([500, 50, 500], [0.5, 0.1, 0.9], [125.0, 4.5, 45.0], names="abc", tolerance=9.0)
    assert (few.leader, few.cost, few.stop) == (None, math.inf, False)
    assert few.candidates == ("c", "b")
    assert str(few) == "cannot tell yet: b has 5 of 100 effective rewards; declare a reward_range or wait"
    many = inference.best([100] * 12 + [0], [0.1] * 12 + [0.0], [9.0] * 12 + [0.0])
    assert str(many).startswith("cannot tell yet: no reward of 12; 0 has 10 of 100 effective rewards, 1 has 10 of 100")
    assert str(many).endswith("7 has 10 of 100 effective rewards and 4 more arms have too few; " + REMEDY)
    assert not inference.harm([400, 9_000], [0.01, 0.05], [3.96, 427.5], 0.005)


def test_many_candidates_are_counted() -> None:
    many = inference.best([10] * 40, [0.5] * 40, [2.5] * 40, (0, 1))
    assert "the best of 40 arms is one of 40 arms" in str(many)


# Harm.


def test_harm_is_a_difference_below_minus_the_budget() -> None:
    statistics = columns([(400, 0.01, 3.96), (9_000, 0.05, 427.5)])
    above = rewards_of(*statistics, (0, 1), None).gaps(0.05)[0, 1]
    assert above < 0
    assert inference.harm(*statistics, -above - 1e-9, (0, 1))
    assert not inference.harm(*statistics, -above + 1e-9, (0, 1))
    assert not inference.harm(*reversed_columns(statistics), 0.0, (0, 1))
    assert inference.harm(*statistics, 0.0, sigma=0.1)


@pytest.mark.parametrize("runs", few(1, [20, 60]))
def test_the_quick_answer_is_the_same(runs: int) -> None:
    """At random: harm is asked near the bound, on either side of it."""
    random, found = np.random.default_rng(1), []
    for _ in range(runs):
        counts = np.exp(random.uniform(2, 9, 2)).round()
        means = np.sort(random.random(2) * 0.9)
        spreads = counts * means * (1 - means) * random.random(2)
        for error in (0.05, 1e-4):
            above = float(rewards_of(counts, means, spreads, (0, 1), None).gaps(error)[0, 1])
            for budget in (-above - 1e-3, -above + 1e-3):
                if -means[0] < budget < float(means[1] - means[0]):
                    found.append(budget < -above)
                    assert inference.harm(counts, means, spreads, budget, (0, 1), 1 - error) == found[-1]
    assert runs / 2 < sum(found) < len(found) - runs / 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inference.difference([1], [0.5], [0.0]), "a difference is that of two arms, got statistics of 1"),
        (lambda: inference.best([], [], []), "names must be those of at least one arm, got 0 names of 0 arms"),
        (lambda: inference.best([1], [0.5], [0.0], tolerance=-1), "tolerance must not be negative, got -1"),
        (
            lambda: inference.harm([1], [0.5], [0.0], 0.0),
            "harm is that of an arm against a control, got statistics of 1",
        ),
    ],
)
def test_wrong_arguments(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
