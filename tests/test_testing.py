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

    with pytest.raises(AssertionError, match=r"boundless.*not finite"):
        check_policy(boundless())


def test_a_mean_that_is_not_the_rewards() -> None:
    @ra.problem(mean=lambda p: p + 0.01)
    def boastful(u, *, p: float):  # type: ignore[no-untyped-def]
        return 1.0 * (u < p)

    with pytest.raises(AssertionError, match=r"boastful.*arm 0 pays.*mean is said to be 0.51"):
        check_problem(boastful([0.5]))
