# Written by `python -m rightarm.stubs`.

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from rightarm.formula import Family
from rightarm.problems.contexts import Context as Context
from rightarm.problems.contexts import DataContext as DataContext
from rightarm.problems.contexts import context as context
from rightarm.problems.contextual import Classification as Classification
from rightarm.problems.contextual import ContextProblem as ContextProblem
from rightarm.problems.contextual import LinearProblem as LinearProblem
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

class _GaussianContext(Family):
    def __call__(self, columns: int, mean: float = 0.0, sigma: float = 1.0) -> Context:
        """Independent Gaussian numbers with this mean and standard deviation."""

class _LogNormal(ProblemFamily):
    def __call__(self, mu: PerArm, sigma: PerArm = 1.0) -> Problem:
        """Pay exp(mu + sigma·w), w a standard Gaussian: the mean is exp(mu + sigma²/2), the median exp(mu)."""

class _Pareto(ProblemFamily):
    def __call__(self, alpha: PerArm, scale: PerArm = 1.0) -> Problem:
        """Pay at least ``scale``, and more than x with probability (scale / x)^alpha."""

class _SphereContext(Family):
    def __call__(self, columns: int, radius: float = 1.0) -> Context:
        """A point that is uniform on the sphere of this radius."""

class _StudentT(ProblemFamily):
    def __call__(self, mean: PerArm, df: PerArm, scale: PerArm = 1.0) -> Problem:
        """Pay ``mean`` plus ``scale`` times Student's t with ``df`` degrees of freedom, not necessarily a whole number."""

class _Uniform(ProblemFamily):
    def __call__(self, low: PerArm, high: PerArm) -> Problem:
        """Pay uniformly between ``low`` and ``high``."""

class _UniformContext(Family):
    def __call__(self, columns: int, low: float = 0.0, high: float = 1.0) -> Context:
        """Independent numbers, uniform between ``low`` and ``high``."""

Bernoulli: _Bernoulli
Contaminated: _Contaminated
Deterministic: _Deterministic
Gaussian: _Gaussian
GaussianContext: _GaussianContext
LogNormal: _LogNormal
Pareto: _Pareto
SphereContext: _SphereContext
StudentT: _StudentT
Uniform: _Uniform
UniformContext: _UniformContext
