"""The exported contract checks pass what is sound and catch what is not."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import rightarm as ra
from cases import PROBLEMS
from naive import F64
from rightarm.testing import check_policy, check_problem


def test_noise_is_drawn_from_the_law_of_the_policy() -> None:
    """A score that is a number for z between −1 and 1 only, as uniform noise is."""

    @ra.policy(noise=ra.noise.Uniform())
    def arched(pulls, mean, z):  # type: ignore[no-untyped-def]
        return mean + np.sqrt(1 - z * z) / np.sqrt(pulls)

    check_policy(arched())


def test_variances_are_given_to_those_who_ask() -> None:
    @ra.policy(noise=ra.noise.Gaussian(), learn={"spread": lambda spread, variance: spread + variance})
    def varied(pulls, mean, variance, best_variance, spread, z):  # type: ignore[no-untyped-def]
        return mean + np.sqrt((variance + best_variance + 0.1) / pulls) * z + 0.01 * spread / pulls

    check_policy(varied())

    @ra.policy
    def ucb_v(t, pulls, mean, variance):  # type: ignore[no-untyped-def]
        """Without noise, so that arms with the same rewards in another order tie by all but rounding."""
        return mean + np.sqrt(2 * variance * np.log(t) / pulls) + 3 * np.log(t) / pulls

    check_policy(ucb_v())


def test_the_module_is_found_without_an_import_of_its_own() -> None:
    code = "import sys, rightarm as ra; assert 'rightarm.testing' not in sys.modules; ra.testing.check_problem"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="module 'rightarm' has no attribute 'nothing'"):
        _ = ra.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["bernoulli", "gaussian", "deterministic", "uniform", "corrupted by pulls"])
def test_sound_problems(name: str) -> None:
    check_problem(PROBLEMS[name].problem)


def test_scores_that_depend_on_the_order_of_arms() -> None:
    @ra.policy
    def partial(mean):  # type: ignore[no-untyped-def]
        return mean + np.arange(np.size(mean))

    with pytest.raises(AssertionError, match=r"partial.*order"):
        check_policy(partial())


def test_scores_that_are_not_finite() -> None:
    @ra.policy
    def boundless(pulls, mean):  # type: ignore[no-untyped-def]
        return mean + np.where(pulls < 500, np.inf, 0.0)

    with pytest.raises(AssertionError, match=r"boundless.*infinite"):
        check_policy(boundless())


def test_scores_that_are_not_numbers() -> None:
    @ra.policy
    def rootless(pulls, mean):  # type: ignore[no-untyped-def]
        return np.sqrt(mean - 0.1 + 0 * pulls)

    with np.errstate(invalid="ignore"), pytest.raises(AssertionError, match=r"rootless.*not a number"):
        check_policy(rootless())


def test_scores_that_are_said_to_rise_and_fall() -> None:
    @ra.policy(rising=True)
    def tiring(t, pulls, mean):  # type: ignore[no-untyped-def]
        return mean + 1 / np.log(t + pulls)

    with pytest.raises(AssertionError, match=r"tiring.*a score falls while its arm rests"):
        check_policy(tiring())


@pytest.mark.parametrize(("floor", "shown"), [(0.3, "0.3"), (-0.1, "-0.1")])
def test_exploration_that_is_no_law(floor: float, shown: str) -> None:
    """Of five arms."""

    @ra.policy(explore=lambda arms: floor + 0 * arms)
    def eager(mean):  # type: ignore[no-untyped-def]
        return mean

    with pytest.raises(ValueError, match=rf"eager.*what it explores are not probabilities: \[{shown}"):
        check_policy(eager())


def test_memory_that_is_no_number() -> None:
    @ra.policy(noise=ra.noise.Gumbel(), learn={"root": lambda root, reward: root + np.sqrt(reward - 0.1)})
    def rooted(pulls, root, z):  # type: ignore[no-untyped-def]
        return root / pulls + z

    with pytest.raises(AssertionError, match=r"rooted.*a column is not finite"):
        check_policy(rooted())


def test_another_law_live_than_compiled() -> None:
    class Crooked(ra.noise.Gumbel):
        def sample(self, random: np.random.Generator, size: int) -> F64:
            return 2 * random.gumbel(size=size)

    @ra.policy(noise=Crooked())
    def two_faced(mean, z):  # type: ignore[no-untyped-def]
        return 10 * mean + z

    with pytest.raises(AssertionError, match=r"two_faced.*of 5000 live.*of 20480 compiled"):
        check_policy(two_faced())


def test_an_arm_that_is_never_pulled() -> None:
    @ra.policy(learn={"seen": lambda seen, reward: seen + 1})
    def stubborn(seen):  # type: ignore[no-untyped-def]
        return seen

    with pytest.raises(AssertionError, match=r"stubborn.*an arm was never pulled"):
        check_policy(stubborn())


def test_a_mean_that_is_not_the_rewards() -> None:
    @ra.problems.problem(mean=lambda p: p + 0.01)
    def boastful(u, *, p: float):  # type: ignore[no-untyped-def]
        return 1.0 * (u < p)

    with pytest.raises(AssertionError, match=r"boastful.*arm 0 pays.*mean is said to be 0.51"):
        check_problem(boastful([0.5]))


def test_a_second_moment_that_is_not_the_rewards() -> None:
    @ra.problems.problem(mean=lambda s: 0.0 * s, second_moment=lambda s: 1.01 * s**2)
    def boastful(w, *, s: float):  # type: ignore[no-untyped-def]
        return s * w

    with pytest.raises(AssertionError, match=r"boastful.*arm 0 has the second moment 0.99.*said to be 1.01"):
        check_problem(boastful([1.0]))


def test_a_second_moment_below_the_squared_mean() -> None:
    @ra.problems.problem(mean=lambda m: m, second_moment=lambda m: m)
    def impossible(w, *, m: float):  # type: ignore[no-untyped-def]
        return m + w

    with pytest.raises(AssertionError, match="second moment below mean²"):
        check_problem(impossible([2.0]))


def test_rewards_that_are_not_finite_though_no_sample_tells_the_mean() -> None:
    @ra.problems.problem(mean=lambda m: m, second_moment=lambda m: np.inf)
    def endless(u, *, m: float):  # type: ignore[no-untyped-def]
        return np.where(u < 0.001, np.inf, m)

    with pytest.raises((AssertionError, ValueError), match="finite"):
        check_problem(endless([2.0]))


def test_contexts_are_not_checked_here() -> None:
    linear = ra.estimators.Linear(2)
    with pytest.raises(TypeError, match="policy must not ask for contexts"):
        ra.testing.check_policy(ra.UCB(C=0.5, estimator=linear))
    with pytest.raises(TypeError, match="estimator must not ask for contexts"):
        ra.testing.check_estimator(linear)


def visits(u, w):  # type: ignore[no-untyped-def]
    return 1.0 * (u < 0.5), w


def interest(x, *, level):  # type: ignore[no-untyped-def]
    return level + 0.1 * x[0]


def test_problems_with_contexts_pay_what_they_say() -> None:
    check_problem(ra.problems.LinearProblem([[1.0, -1.0], [0.5, 0.0]], noise=0.5, offset=[0.0, 1.0]))
    check_problem(ra.problems.Classification([[0.0], [1.0], [2.0]], [0, 1, 1]))
    check_problem(
        ra.problems.ContextProblem(visits, interest, level=[0.2, 0.4], reward=lambda mean, u: 1.0 * (u < mean))
    )


def test_a_reward_of_another_mean_is_found() -> None:
    problem = ra.problems.ContextProblem(visits, interest, level=[0.2, 0.4], reward=lambda mean, u: 1.1 * (u < mean))
    with pytest.raises(AssertionError, match="its mean is said to be"):
        check_problem(problem)
