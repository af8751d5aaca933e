"""The exported contract checks pass what is sound and catch what is not."""

from __future__ import annotations

import numpy as np
import pytest

import rightarm as ra
from cases import POLICIES, PROBLEMS
from rightarm.testing import check_policy, check_problem


@pytest.mark.parametrize("name", ["glie", "gumbel", "ucb", "thompson", "moss"])
def test_sound_policies(name: str) -> None:
    check_policy(POLICIES[name].policy)


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


def test_a_mean_that_is_not_the_rewards() -> None:
    @ra.problem(mean=lambda p: p + 0.01)
    def boastful(u, *, p: float):  # type: ignore[no-untyped-def]
        return 1.0 * (u < p)

    with pytest.raises(AssertionError, match=r"boastful.*arm 0 pays.*mean is said to be 0.51"):
        check_problem(boastful([0.5]))


def test_a_second_moment_that_is_not_the_rewards() -> None:
    @ra.problem(mean=lambda s: 0.0 * s, second_moment=lambda s: 1.01 * s**2)
    def boastful(w, *, s: float):  # type: ignore[no-untyped-def]
        return s * w

    with pytest.raises(AssertionError, match=r"boastful.*arm 0 has the second moment 0.99.*said to be 1.01"):
        check_problem(boastful([1.0]))


def test_a_second_moment_below_the_squared_mean() -> None:
    @ra.problem(mean=lambda m: m, second_moment=lambda m: m)
    def impossible(w, *, m: float):  # type: ignore[no-untyped-def]
        return m + w

    with pytest.raises(AssertionError, match="second moment below mean²"):
        check_problem(impossible([2.0]))


def test_rewards_that_are_not_finite_though_no_sample_tells_the_mean() -> None:
    @ra.problem(mean=lambda m: m, second_moment=lambda m: np.inf)
    def endless(u, *, m: float):  # type: ignore[no-untyped-def]
        return np.where(u < 0.001, np.inf, m)

    with pytest.raises((AssertionError, ValueError), match="finite"):
        check_problem(endless([2.0]))
