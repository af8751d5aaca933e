"""Boltzmann exploration (softmax) and its temperature schedules: what everybody uses and the paper proves to fail."""

from __future__ import annotations

import numbers
import types
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from rightarm.errors import WrongValue
from rightarm.formula import Count, Family, Formula, NonNegative, Positive, check_number, rule_of
from rightarm.noise import Gumbel
from rightarm.scores.policy import Policy, policy


class Schedule(Formula):
    """A temperature β_t, as a formula; the paper's learning rate is η_t = 1/β_t."""

    INPUTS: ClassVar[dict[str, str]] = {name: Policy.INPUTS[name] for name in ("t", "best", "worst", "arms")}

    def as_argument(self, name: str) -> str:
        """As it is printed in a policy: a constant as its number alone."""
        return f"{name}={self.values['c']:.6g}" if self.family is constant else str(self)

    @classmethod
    def accept(cls, name: str, value: Any) -> Formula:
        """A schedule, a number (a constant temperature), or a function of t."""
        if isinstance(value, cls):
            return value
        if isinstance(value, types.FunctionType):
            made: Schedule = Family(value, cls, bare=True)()
            for t in (2.0, 10.0):
                first = made.evaluate({"t": t, "best": 1.0, "worst": 0.0, "arms": 2.0})
                if not np.all(np.asarray(first) >= 0):
                    raise WrongValue(name, f"must not be negative, got {first} at t = {t:.0f}", code="out_of_range")
            return made
        if not isinstance(value, numbers.Real):
            message = f"{name} must be a schedule such as inverse_log(0.25), a number or a function of t, got {value!r}"
            raise TypeError(message)
        fixed: Schedule = constant(check_number(name, value, rule_of(NonNegative)))
        return fixed


def schedule(function: Callable[..., Any]) -> Family:
    """Make a family of schedules from a formula of t (and best, worst, arms), parameters behind a *.

    >>> import rightarm as ra
    >>> @ra.schedule
    ... def cooling(t, *, rate: float):
    ...     return 1 / (1 + rate * t)
    >>> ra.Boltzmann(cooling(rate=0.1))
    Boltzmann(temperature=cooling(rate=0.1))
    """
    return Family(function, Schedule)


@schedule
def constant(*, c: NonNegative):
    """β_t = c: BE-const of section 6, there with c = C²."""
    return c


@schedule
def inverse_log(t, *, c: Positive):
    """β_t = c / log t: BE-log of section 6, there with c = C²."""
    return c / np.log(t)


@schedule
def inverse_sqrt(t, *, c: Positive):
    """β_t = c / √t: BE-sqrt of section 6, there with c = C²."""
    return c / np.sqrt(t)


@schedule
def two_phase(t, arms, *, gap: Positive, horizon: Count):
    """Theorem 3: η_t = 1 before τ = 16 e K log(T) / Δ², and η_t = log(t Δ²) / Δ from then on.

    It needs the gap Δ and the horizon T, and explores long: at Δ = 0.01, K = 10 and T = 10⁶, τ is 6·10⁷.
    """
    tau = 16 * np.e * arms * np.log(horizon) / gap**2
    # np.where computes both values: before τ, where t·Δ² may be 1, the maximum keeps the second from dividing by zero
    return np.where(t < tau, 1.0, gap / np.log(np.maximum(t * gap**2, np.e)))


@schedule
def glie(t, best, worst):
    """η_t = log t / max_i (μ̂_best − μ̂_i): every arm keeps a probability of at least 1/(K t), greedy in the limit.

    Singh, Jaakkola, Littman, Szepesvári: Convergence Results for Single-Step On-Policy Reinforcement-Learning
    Algorithms, Machine Learning 38, 2000.
    """
    return (best - worst) / np.log(t)


@policy(noise=Gumbel())
def Boltzmann(mean, z, *, temperature: Schedule):
    """Choose an arm with a probability proportional to the exponential of its mean over the temperature.

    P[I = i] ∝ e^(μ̂_i / β_t), drawn as arg max_i { μ̂_i + β_t Z_i } with Z_i Gumbel (the Gumbel–softmax trick).

    Equation (1) of the paper. The temperature is the same for all arms, however often each was pulled, and that is why
    it fails (Theorem 2). It is a schedule, a number or a function of t.

    >>> import rightarm as ra
    >>> ra.Boltzmann(ra.inverse_log(0.25)).scores(round=10, pulls=[5, 5], means=[0.2, 0.5], z=[1.0, 0.0]).round(3)
    array([0.309, 0.5  ])
    """
    return mean + temperature * z
