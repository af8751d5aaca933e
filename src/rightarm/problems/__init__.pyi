# Written by `python -m rightarm.stubs`.

from collections.abc import Callable, Sequence
from typing import Any, Literal

from numpy.typing import NDArray

from rightarm.estimators import Estimator as _Estimator
from rightarm.formula import Family as _Family
from rightarm.noise import Law as _Law
from rightarm.policies.family import PolicyFamily as _PolicyFamily
from rightarm.policies.family import Schedule as _Schedule
from rightarm.policies.policy import Policy as _Policy
from rightarm.problems.contexts import ContextDistribution as _ContextDistribution
from rightarm.problems.problem import Problem as _Problem
from rightarm.problems.problem import ProblemFamily as _ProblemFamily

_ScheduleLike = _Schedule | float | Callable[..., Any]
_PerArm = float | Sequence[float] | NDArray[Any]
FAMILIES: dict[str, Any]
__all__: list[str]
from rightarm.problems.contextual import Classification as Classification
from rightarm.problems.contexts import ContextDistribution as ContextDistribution
from rightarm.problems.contextual import ContextProblem as ContextProblem
from rightarm.problems.contexts import DataContext as DataContext
from rightarm.problems.contextual import LinearProblem as LinearProblem
from rightarm.problems.problem import Problem as Problem
from rightarm.problems.problem import ProblemFamily as ProblemFamily
from rightarm.problems.random import RandomProblem as RandomProblem
from rightarm.problems.contexts import context as context
from rightarm.problems.problem import problem as problem

class _Bernoulli(_ProblemFamily):
    def __call__(self, mean: _PerArm) -> _Problem:
        """Pay 1 with probability ``mean``, else 0."""

class _Contaminated(_ProblemFamily):
    def __call__(self, mean: _PerArm, sigma: _PerArm, share: _PerArm, spread: _PerArm) -> _Problem:
        """Pay ``mean`` plus Gaussian noise, whose deviation ``sigma`` is ``spread`` times as large in a ``share`` of pulls."""

class _Deterministic(_ProblemFamily):
    def __call__(self, mean: _PerArm) -> _Problem:
        """Pay ``mean``, always."""

class _Gaussian(_ProblemFamily):
    def __call__(self, mean: _PerArm, sigma: _PerArm = 1.0) -> _Problem:
        """Pay ``mean`` plus Gaussian noise with standard deviation ``sigma``."""

class _GaussianContext(_Family):
    def __call__(self, columns: int, mean: float = 0.0, sigma: float = 1.0) -> _ContextDistribution:
        """Draw independent Gaussian numbers with this mean and standard deviation."""

class _LogNormal(_ProblemFamily):
    def __call__(self, mu: _PerArm, sigma: _PerArm = 1.0) -> _Problem:
        """Pay exp(mu + sigma·w), w a standard Gaussian: the mean is exp(mu + sigma²/2), the median exp(mu)."""

class _Pareto(_ProblemFamily):
    def __call__(self, alpha: _PerArm, scale: _PerArm = 1.0) -> _Problem:
        """Pay at least ``scale``, and more than x with probability (scale / x)^alpha."""

class _SphereContext(_Family):
    def __call__(self, columns: int, radius: float = 1.0) -> _ContextDistribution:
        """Draw a point that is uniform on the sphere of this radius."""

class _StudentT(_ProblemFamily):
    def __call__(self, mean: _PerArm, df: _PerArm, scale: _PerArm = 1.0) -> _Problem:
        """Pay ``mean`` plus ``scale`` times Student's t with ``df`` degrees of freedom, not necessarily a whole number."""

class _Uniform(_ProblemFamily):
    def __call__(self, low: _PerArm, high: _PerArm) -> _Problem:
        """Pay uniformly between ``low`` and ``high``."""

class _UniformContext(_Family):
    def __call__(self, columns: int, low: float = 0.0, high: float = 1.0) -> _ContextDistribution:
        """Draw independent numbers, uniform between ``low`` and ``high``."""

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
