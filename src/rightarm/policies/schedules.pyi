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
from rightarm.policies.family import Schedule as Schedule
from rightarm.policies.family import schedule as schedule

class _constant(_Family):
    def __call__(self, c: float) -> _Schedule:
        """β_t = c: BE-const of section 6, there with c = C²."""

class _decreasing(_Family):
    def __call__(self, d: float, c: float = 5.0) -> _Schedule:
        """ε_t = min{1, c K / (d² t)}: the ε_n-greedy rule of Auer, Cesa-Bianchi, Fischer (2002), 0 < d ≤ least gap."""

class _glie(_Family):
    def __call__(self) -> _Schedule:
        """η_t = log t / max_i (μ̂_best − μ̂_i): every arm keeps a probability of at least 1/(K t), greedy in the limit."""

class _increasing(_Family):
    def __call__(self, c: float) -> _Schedule:
        """γ_t = c √(K t): exploration falls off like 1/√t, for rewards that differ by about 1."""

class _inverse_log(_Family):
    def __call__(self, c: float) -> _Schedule:
        """β_t = c / log t: BE-log of section 6, there with c = C²."""

class _inverse_sqrt(_Family):
    def __call__(self, c: float) -> _Schedule:
        """β_t = c / √t: BE-sqrt of section 6, there with c = C²."""

class _two_phase(_Family):
    def __call__(self, gap: float, horizon: float) -> _Schedule:
        """Theorem 3: η_t = 1 before τ = 16 e K log(T) / Δ², and η_t = log(t Δ²) / Δ from then on."""

constant: _constant
decreasing: _decreasing
glie: _glie
increasing: _increasing
inverse_log: _inverse_log
inverse_sqrt: _inverse_sqrt
two_phase: _two_phase
