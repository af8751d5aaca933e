"""Which rewards policies are for: what is declared, how others are scaled, and what simulations and evaluations do."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rightarm as ra
from rightarm.policies.inputs import Scale, check_reward_range, reward_scale
from rightarm.policies.policy import PolicyFamily
from rightarm.simulation.engine import Run, Start

FOR_UNIT = {
    "AnytimeMOSS",
    "BetaThompson",
    "EXP3",
    "EXP3PlusPlus",
    "EXP3PlusPlusImproved",
    "KLMS",
    "KLUCB",
    "MOSS",
    "SoftMix",
    "UCB1",
    "UCBImproved",
}
MISFITS = [ra.KLUCB(), ra.BetaThompson(), ra.KLMS(), ra.EXP3(gamma=0.1), ra.UCB1(), ra.MOSS(horizon=100)]


def test_policies_without_a_scale_of_their_own_are_for_rewards_between_0_and_1() -> None:
    families = {name: getattr(ra, name) for name in ra.__all__ if isinstance(getattr(ra, name), PolicyFamily)}
    assert {name for name, family in families.items() if family.reward_range == (0.0, 1.0)} == FOR_UNIT
    assert {family.reward_range for name, family in families.items() if name not in FOR_UNIT} == {None}
    said = re.compile(r"(?m)^For rewards in \[0, 1\]|^.* bound for rewards in \[0, 1\]")
    assert {name for name, family in families.items() if said.search(inspect.getdoc(family.function) or "")} <= FOR_UNIT


def test_exp3plusplus2017_refuses_rewards_that_it_is_not_for() -> None:
    bandit = ra.Bandit(["a", "b"], ra.EXP3PlusPlusImproved(), seed=1)
    for reward in (-0.01, 1.01, 7.0):
        with pytest.raises(ValueError, match=f"reward must be .*, got {reward}"):
            bandit.tell(bandit.ask(), reward)
    assert bandit.tell(bandit.ask(), 1.0)


def own(mean):  # type: ignore[no-untyped-def]
    return mean


def test_a_range_is_no_part_of_a_policy_s_identity() -> None:
    """What was saved before the range was stated goes on loading."""
    plain, ranged = ra.policy(own), ra.policy(reward_range=(-1, 2))(own)
    assert plain().reward_range is None
    assert ranged().reward_range == (-1.0, 2.0)
    assert plain.identity == ranged.identity
    assert plain() == ranged()


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "one number": (5, TypeError, "reward_range must be two numbers, the lower one first, got 5"),
    "text": ("01", TypeError, "reward_range must be two numbers, the lower one first, got '01'"),
    "three": ((0, 1, 2), TypeError, r"reward_range must be two numbers, the lower one first, got \(0, 1, 2\)"),
    "no numbers": (("a", "b"), TypeError, "reward_range must be a number, got 'a'"),
    "turned round": ((1, 0), ValueError, r"reward_range must be two numbers, the lower one first, got \(1, 0\)"),
    "empty": ((1, 1), ValueError, r"reward_range must be two numbers, the lower one first, got \(1, 1\)"),
    "infinite": ((0, np.inf), ValueError, "reward_range must be finite, got inf"),
    "too wide": ((-1e308, 1e308), ValueError, r"reward_range must be at most 1e\+100 in size"),
}


@pytest.mark.parametrize(("value", "kind", "message"), WRONG.values(), ids=WRONG)
def test_ranges_that_are_refused(value: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        check_reward_range(value)
    with pytest.raises(kind, match=message):
        ra.policy(reward_range=value)(own)


ENDS = st.floats(-1e6, 1e6)


@given(st.tuples(ENDS, ENDS).filter(lambda ends: ends[1] - ends[0] > 1e-3), st.floats(0, 1))
def test_scaling_keeps_the_range_and_comes_back(ends: tuple[float, float], share: float) -> None:
    scale = Scale(*ends, 0.0, 1.0)
    assert (scale.apply(ends[0]), scale.apply(ends[1])) == (0.0, 1.0)
    reward = min(ends[0] + share * (ends[1] - ends[0]), ends[1])
    seen = scale.apply(reward)
    assert 0 <= seen <= 1
    assert scale.back(seen) == pytest.approx(reward, abs=1e-9 * max(map(abs, ends)))


def test_rewards_of_the_policy_s_own_range_stay_as_they_are() -> None:
    scale = reward_scale(ra.KLUCB(), None)
    assert scale == (0.0, 1.0, 0.0, 1.0)
    values = np.random.default_rng(1).random(1_000)
    assert scale.apply(values).tolist() == values.tolist()
    assert reward_scale(ra.BoltzmannGumbel(C=0.5), (0.0, 500.0)) is None


# In simulation.


@ra.problems.problem(mean=lambda high: high / 2)
def unknown(u, *, high: float):  # type: ignore[no-untyped-def]
    """Rewards of which it is not said what they can be."""
    return high * u


@pytest.mark.parametrize("policy", MISFITS, ids=str)
def test_a_simulation_counts_rewards_outside(policy: ra.Policy) -> None:
    """Deterministic rewards, so that the count follows from the pulls; 40 replications leave some lanes unused."""
    problem = ra.problems.Deterministic([0.5, 1.5, -0.25])
    with pytest.warns(UserWarning, match="outside") as caught:
        result = ra.simulate(policy, problem, horizon=100, replications=40, seed=1)
    count = int(result.pulls[0, :, 1:].sum())
    share = f"{count:,} of 4,000 rewards ({count / 4000:.1%}) outside [0, 1]"
    assert [str(warning.message) for warning in caught] == [
        f"policies got rewards that they are not for: {policy} on {problem}: {share}"
    ]


def test_one_warning_for_several_policies_and_problems() -> None:
    problems = {"wide": ra.problems.Uniform(low=[-1.0, 0.0], high=1.0), "fine": ra.problems.Bernoulli([0.5, 0.4])}
    with pytest.warns(UserWarning, match="KLUCB") as caught:
        ra.simulate([ra.KLUCB(), ra.UCB(C=0.5), ra.BetaThompson()], problems, horizon=50, replications=3, seed=1)
    (warning,) = caught
    assert str(warning.message).count(" outside [0, 1]") == 2
    assert "UCB(C=0.5)" not in str(warning.message)


def test_corruption_may_lead_outside() -> None:
    problem = ra.problems.Bernoulli([0.5, 0.5]).corrupted(arm=0, pulls=3, reward=2.0)
    with pytest.warns(UserWarning, match=r": 192 of 6,400 rewards \(3\.0%\) outside"):
        ra.simulate(ra.KLUCB(), problem, horizon=100, replications=64, seed=1)


def test_random_problems_are_looked_at_one_by_one() -> None:
    low = ra.problems.Deterministic([0.0, 0.0])
    inside = ra.problems.RandomProblem(ra.problems.Uniform, low=low, high=ra.problems.Uniform(low=[0.1, 0.1], high=1.0))
    ra.simulate(ra.KLUCB(), inside, horizon=50, replications=8, seed=1)
    outside = ra.problems.RandomProblem(
        ra.problems.Uniform, low=low, high=ra.problems.Uniform(low=[0.1, 0.1], high=9.0)
    )
    with pytest.warns(UserWarning, match="outside"):
        ra.simulate(ra.KLUCB(), outside, horizon=50, replications=8, seed=1)


def test_nothing_is_said_where_all_rewards_are_inside() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ra.simulate(MISFITS, ra.problems.Bernoulli([0.5, 0.4]), horizon=50, replications=2, seed=1)
        ra.simulate(MISFITS, unknown(high=[1.0, 0.5]), horizon=50, replications=2, seed=1)
        ra.simulate(ra.UCB(C=1.0), ra.problems.Gaussian([0.0, 0.5]), horizon=50, replications=2, seed=1)


def test_rewards_are_counted_only_where_some_may_be_outside() -> None:
    def limits(policy: ra.Policy, problem: ra.problems.Problem) -> list[float]:
        run = Run(policy, problem, Start((0, 0), (0.0, 0.0)), 1, 0, 32, np.array([10]))
        return list(run.lanes.setting.limits)

    assert limits(ra.KLUCB(), ra.problems.Bernoulli([0.5, 0.4])) == []
    assert limits(ra.KLUCB(), ra.problems.Uniform(low=[0.0, 0.25], high=1.0)) == []
    assert limits(ra.UCB(C=1.0), ra.problems.Gaussian([0.0, 0.5])) == []
    assert limits(ra.KLUCB(), ra.problems.Gaussian([0.0, 0.5])) == [0.0, 1.0]
    assert limits(ra.KLUCB(), unknown(high=[1.0, 0.5])) == [0.0, 1.0]


# In evaluations.


def logged(low: float, high: float) -> dict[str, Any]:
    random = np.random.default_rng(3)
    arms = random.integers(0, 3, 600)
    rewards = random.random(600) < np.array([0.2, 0.5, 0.6])[arms]
    values = np.where(rewards, high, low)
    return {"arm": arms.tolist(), "propensity": [1 / 3] * 600, "reward": values.tolist()}


@pytest.mark.parametrize("policy", [ra.KLUCB(), ra.BetaThompson(), ra.EXP3(gamma=0.2)], ids=str)
@pytest.mark.filterwarnings("ignore:.*effective sample size")
def test_evaluations_scale_rewards_for_the_policy(policy: ra.Policy) -> None:
    """−3 and 5 are to such a policy what 0 and 1 are; −3 and 5 as they stand would be a coin flip."""
    plain, wide = (logged(0.0, 1.0), (0.0, 1.0)), (logged(-3.0, 5.0), (-3.0, 5.0))
    one, other = (ra.evaluate(log, policy, reward_range=ends) for log, ends in (plain, wide))
    assert other.ips == pytest.approx(-3 * one.mean_weight + 8 * one.ips, rel=1e-9)
    assert other.dr == pytest.approx(-3 + 8 * one.dr, rel=1e-9)
    first, second = (ra.evaluation.replay(log, policy, reward_range=ends) for log, ends in (plain, wide))
    assert second.pulls == first.pulls
    assert second.mean == pytest.approx(-3 + 8 * first.mean)


# The contract checks.


def test_check_policy_uses_rewards_that_a_policy_is_for() -> None:
    @ra.policy(noise=ra.noise.Gumbel(), reward_range=(10, 20))
    def picky(pulls, mean, z):  # type: ignore[no-untyped-def]
        return np.where((mean >= 10) & (mean <= 20), mean, np.nan) + z / np.sqrt(pulls)

    ra.testing.check_policy(picky())


def test_check_problem_finds_a_support_that_is_not_kept() -> None:
    @ra.problems.problem(mean=lambda high: high / 2, support=lambda high: (0.25 * high, high))
    def boastful(u, *, high: float):  # type: ignore[no-untyped-def]
        return high * u

    with pytest.raises(AssertionError, match=r"pays from .* its support is said to be 0\.25 to 1\.0"):
        ra.testing.check_problem(boastful(high=[1.0]))
