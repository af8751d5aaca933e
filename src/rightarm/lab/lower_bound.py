"""The least regret that any consistent policy can have on a problem: the Lai–Robbins bound, where it is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from rightarm import theory
from rightarm.problems import Bernoulli, Gaussian, Problem
from rightarm.problems.random import AnyProblem

Bound = Callable[[ArrayLike], Any]


def lai_robbins(problem: AnyProblem) -> Bound | None:
    """The Lai–Robbins lower bound for ``problem`` as a function of the horizon, where it is known."""
    if not isinstance(problem, Problem):
        return None
    if not (problem.gaps > 0).any():
        return None
    if problem.family is Bernoulli and problem.means.max() < 1:
        return lambda rounds: theory.lai_robbins_bernoulli(problem.means, rounds)
    sigmas = set(problem.values.get("sigma", ()))
    if problem.family is Gaussian and len(sigmas) == 1 and min(sigmas) > 0:
        return lambda rounds: theory.lai_robbins(problem.gaps, rounds, sigma=min(sigmas))
    return None
