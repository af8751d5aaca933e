"""Corners: huge rewards, scores that are infinite or not numbers, arms alike, columns of one's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rightarm as ra

SHIFTED = [
    ra.BoltzmannGumbel(C=0.5),
    ra.UCB(C=0.5),
    ra.UCB(C=1.4),
    ra.GaussianThompson(),
    ra.Maillard(),
    ra.ScaledGumbel(),
]


@pytest.mark.parametrize("policy", SHIFTED, ids=str)
def test_rewards_of_a_million_million_keep_their_ones(policy: ra.Policy) -> None:
    """A shift of all rewards changes nothing but rounding: the sums reach 3·10¹⁷, where doubles are 32 apart."""
    plain, huge = (
        ra.simulate(
            policy, ra.problems.Deterministic([base + 1, base]), horizon=300_000, replications=32, seed=1
        ).regret[0, :, -1]
        for base in (0.0, 1e12)
    )
    spread = math.hypot(plain.std(ddof=1), huge.std(ddof=1)) / math.sqrt(32) + 0.01 * plain.mean()
    assert abs(plain.mean() - huge.mean()) / spread < 4.5


@ra.policy(keep={"width": lambda pulls: 1 / np.sqrt(pulls)})
def kept_width(t, mean, width):  # type: ignore[no-untyped-def]
    """UCB with C = 1, its width kept from pull to pull."""
    return mean + width * np.sqrt(np.log(t))


def test_a_clock_with_kept_columns_is_that_of_the_plain_formula() -> None:
    problem = ra.problems.Bernoulli([0.5, 0.6])
    assert kept_width().clocked
    result = ra.simulate([kept_width(), ra.UCB(C=1.0)], problem, horizon=2_000, replications=32, seed=3)
    assert np.array_equal(result.pulls[0], result.pulls[1])


@ra.policy
def capped(pulls, mean, *, cap: float = 50.0):  # type: ignore[no-untyped-def]
    """An arm with enough pulls is never pulled again."""
    return np.where(pulls >= cap, -np.inf, mean)


def test_scores_may_be_minus_infinity() -> None:
    result = ra.simulate(capped(), ra.problems.Bernoulli([0.9, 0.5, 0.1]), horizon=120, replications=32, seed=1)
    assert result.pulls.max() == 50
    memory = {"phases": [1.0, 1.0], "ended": [14.0, 14.0], "mark": [64.1, 64.9], "reach": [64.2, 65.0]}
    eliminated = ra.UCBImproved(horizon=1_000)
    assert eliminated.probabilities(29, [14, 14], [0.1, 0.9], memory).tolist() == [0.0, 1.0]


@ra.problems.problem(mean=lambda level: level)
def broken(u, *, level: float):  # type: ignore[no-untyped-def]
    return np.where(u < 0.01, np.nan, level)


@pytest.mark.parametrize("policy", [ra.BetaThompson(), ra.KLUCB(), ra.BoltzmannGumbel(C=0.5)], ids=str)
def test_a_reward_that_is_not_a_number_ends_the_run(policy: ra.Policy) -> None:
    with pytest.raises(ValueError, match=r"not a finite number|not a number"):
        ra.simulate(policy, broken([0.5, 0.4]), horizon=1_000, replications=1, seed=1)


EQUAL = ra.problems.Contaminated(mean=[0.0] * 3, sigma=1.0, share=0.2, spread=30.0)


@pytest.mark.parametrize("policy", [ra.RobustUCB(u=1.0), ra.BoltzmannGumbel(C=1.0, estimator="catoni")], ids=str)
def test_equal_arms_are_pulled_equally_often(policy: ra.Policy) -> None:
    pulls = ra.simulate(policy, EQUAL, horizon=1_000, replications=1_024, seed=5).pulls[0]
    for first, second in ((0, 1), (1, 2), (0, 2)):
        difference = pulls[:, first] - pulls[:, second]
        assert abs(difference.mean()) / (difference.std(ddof=1) / 32) < 4.5


def rising_sum(total, reward):  # type: ignore[no-untyped-def]
    return total + reward


def test_before_the_first_pull_a_score_must_be_a_number() -> None:
    @ra.policy(learn={"total": rising_sum, "count": lambda count: count + 1})
    def own_mean(total, count):  # type: ignore[no-untyped-def]
        return total / count

    with pytest.raises(ValueError, match="before the first pull"):
        ra.simulate(own_mean(), ra.problems.Bernoulli([0.5, 0.6]), horizon=10, replications=1, seed=1)


MISTAKES: dict[str, tuple[Any, str]] = {
    "a column named mean": (
        lambda: ra.policy(learn={"mean": rising_sum})(lambda pulls: pulls),
        "'mean' means something",
    ),
    "a column best_x": (
        lambda: ra.policy(learn={"best_x": rising_sum})(lambda pulls: pulls),
        "'best_x' means something",
    ),
    "no name": (
        lambda: ra.policy(learn={"my column": rising_sum})(lambda pulls: pulls),
        "must be a name, got 'my column'",
    ),
    "no mapping": (lambda: ra.policy(learn=rising_sum)(lambda pulls: pulls), "must map the name"),  # type: ignore[call-overload]
    "twice": (
        lambda: ra.policy(learn={"total": rising_sum}, keep={"total": lambda mean: mean})(lambda pulls: pulls),
        "must differ",
    ),
    "epsilon": (lambda: ra.EpsilonGreedy(1.5).probabilities(9, [4, 4], [0.1, 0.9]), "are not probabilities"),
    "memory left out": (
        lambda: ra.EXP3(gamma=0.1).choose(9, [4, 4], [0.1, 0.9], np.random.default_rng(1)),
        "remembers gain",
    ),
    "gamma": (lambda: ra.EXP3(gamma=0.0), "gamma must be above 0 and at most 1, got 0.0"),
    "learned": (lambda: ra.EXP3(gamma=0.1).learned(2, 1, 0.5, 0.5, {"gan": 0.0}, 2), "must have the columns gain"),
    "weight": (
        lambda: ra.EXP3(gamma=0.1).learned(2, 1, 0.5, 0.5, {"gain": 0.0}, 2, probability=0.0),
        "probability must be above 0 and at most 1, got 0.0",
    ),
}


@pytest.mark.parametrize("case", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(case: tuple[Any, str]) -> None:
    with pytest.raises((ValueError, TypeError), match=case[1]):
        case[0]()


def test_what_gives_no_single_number_is_named() -> None:
    problem = ra.problems.Bernoulli([0.5, 0.6])
    wrong = {
        "wrong_score must give one number for each arm": ra.policy(lambda pulls, mean: (pulls, mean)),
        r"learn\['total'\] must give one number": ra.policy(learn={"total": lambda total: (total, 1.0)})(
            lambda pulls, total: total
        ),
        "returned nothing": ra.policy(learn={"total": lambda total: None})(lambda pulls, total: total),
    }
    for message, family in wrong.items():
        family.name = "wrong_score"
        with pytest.raises(TypeError, match=message):
            ra.simulate(family(), problem, horizon=10, replications=1, seed=1)


def test_greedy_is_a_policy_too() -> None:
    result = ra.simulate(
        ra.EpsilonGreedy(0.0), ra.problems.Deterministic([0.2, 0.9]), horizon=100, replications=3, seed=1
    )
    assert (result.pulls == [1, 99]).all()
    assert str(ra.EpsilonGreedy(0.1)) == "EpsilonGreedy(epsilon=0.1)"
    assert str(ra.Boltzmann(ra.schedules.inverse_log(0.25))) == "Boltzmann(inverse_log(c=0.25))"


def test_shares_of_several_best_arms_add_up() -> None:
    result = ra.simulate(ra.UCB(C=0.5), ra.problems.Bernoulli([0.5, 0.5]), horizon=100, replications=3, seed=1)
    assert result.summary().to_dicts()[0]["best_arm_share"] == 1.0
