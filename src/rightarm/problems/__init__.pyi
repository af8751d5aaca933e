# Written by `python -m rightarm.stubs`.

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from rightarm.problems.problem import Problem as Problem
from rightarm.problems.problem import ProblemFamily as ProblemFamily
from rightarm.problems.problem import problem as problem
from rightarm.problems.random import RandomProblem as RandomProblem

PerArm = float | Sequence[float] | NDArray[Any]

class _Bernoulli(ProblemFamily):
    def __call__(self, mean: PerArm) -> Problem:
        """Pay 1 with probability ``mean``, else 0."""

class _Contaminated(ProblemFamily):
    def __call__(self, mean: PerArm, sigma: PerArm, share: PerArm, spread: PerArm) -> Problem:
        """Pay ``mean`` plus Gaussian noise, whose deviation ``sigma`` is ``spread`` times as large in a ``share`` of pulls."""

class _Deterministic(ProblemFamily):
    def __call__(self, mean: PerArm) -> Problem:
        """Pay ``mean``, always."""

class _Gaussian(ProblemFamily):
    def __call__(self, mean: PerArm, sigma: PerArm = 1.0) -> Problem:
        """Pay ``mean`` plus Gaussian noise with standard deviation ``sigma``."""

class _LogNormal(ProblemFamily):
    def __call__(self, mu: PerArm, sigma: PerArm = 1.0) -> Problem:
        """Pay exp(mu + sigma·w), w a standard Gaussian: the mean is exp(mu + sigma²/2), the median exp(mu)."""

class _Pareto(ProblemFamily):
    def __call__(self, alpha: PerArm, scale: PerArm = 1.0) -> Problem:
        """Pay at least ``scale``, and more than x with probability (scale / x)^alpha."""

class _StudentT(ProblemFamily):
    def __call__(self, mean: PerArm, df: PerArm, scale: PerArm = 1.0) -> Problem:
        """Pay ``mean`` plus ``scale`` times Student's t with ``df`` degrees of freedom, not necessarily a whole number."""

class _Uniform(ProblemFamily):
    def __call__(self, low: PerArm, high: PerArm) -> Problem:
        """Pay uniformly between ``low`` and ``high``."""

Bernoulli: _Bernoulli
Contaminated: _Contaminated
Deterministic: _Deterministic
Gaussian: _Gaussian
LogNormal: _LogNormal
Pareto: _Pareto
StudentT: _StudentT
Uniform: _Uniform
