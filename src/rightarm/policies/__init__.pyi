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
from rightarm.policies.ucb import CatoniUCB as CatoniUCB
from rightarm.formula import Count as Count
from rightarm.policies.thompson import LogisticThompson as LogisticThompson
from rightarm.policies.ucb import MedianUCB as MedianUCB
from rightarm.formula import NonNegative as NonNegative
from rightarm.policies.policy import Policy as Policy
from rightarm.formula import Positive as Positive
from rightarm.formula import Probability as Probability
from rightarm.policies.policy import policy as policy
from rightarm.policies.policy import probabilities as probabilities
from rightarm.policies import schedules as schedules

class _APE2(_PolicyFamily):
    def __call__(self, p: float, c: float, estimator: _Estimator | str = ...) -> _Policy:
        """Perturb a robust mean by Gumbel noise, for rewards of which only the p-th moment is finite, 1 < p ≤ 2."""

class _AnytimeMOSS(_PolicyFamily):
    def __call__(self, estimator: _Estimator | str = ...) -> _Policy:
        """Add the bonus of MOSS with the round in place of the horizon, which it need not know."""

class _BetaThompson(_PolicyFamily):
    def __call__(self, estimator: _Estimator | str = ...) -> _Policy:
        """Draw each arm's mean from its posterior law under a uniform prior, and pull the largest."""

class _Boltzmann(_PolicyFamily):
    def __call__(self, temperature: _ScheduleLike, estimator: _Estimator | str = ...) -> _Policy:
        """Choose an arm with a probability proportional to the exponential of its mean over the temperature."""

class _BoltzmannGumbel(_PolicyFamily):
    def __call__(self, C: float, location: float = 0.5772156649015329, estimator: _Estimator | str = ...) -> _Policy:
        """Perturb each arm's mean by Gumbel noise whose scale shrinks with the arm's own pulls."""

class _EXP3(_PolicyFamily):
    def __call__(self, gamma: float, estimator: _Estimator | str = ...) -> _Policy:
        """Choose by exponential weights on estimated gains, mixed with a uniform choice."""

class _EXP3PlusPlus(_PolicyFamily):
    def __call__(self, c: float = 18.0, estimator: _Estimator | str = ...) -> _Policy:
        """Exponential weights on estimated losses, whose exploration of an arm shrinks with its estimated gap."""

class _EXP3PlusPlusImproved(_PolicyFamily):
    def __call__(self, alpha: float = 3.0, beta: float = 256.0, estimator: _Estimator | str = ...) -> _Policy:
        """EXP3++ whose exploration follows gaps between confidence bounds on the arms' mean losses: regret of order log² T."""

class _EpsilonGreedy(_PolicyFamily):
    def __call__(self, epsilon: _ScheduleLike, estimator: _Estimator | str = ...) -> _Policy:
        """Pull the arm with the best mean, but with probability ε_t an arm drawn uniformly at random."""

class _ExploreThenCommit(_PolicyFamily):
    def __call__(self, each: float, estimator: _Estimator | str = ...) -> _Policy:
        """Pull every arm equally often, then for ever the one whose mean was best at that time."""

class _GaussianKLUCB(_PolicyFamily):
    def __call__(self, sigma: float = 0.5, c: float = 0.0, estimator: _Estimator | str = ...) -> _Policy:
        """Score an arm by the largest mean that it may have, by its rewards and the divergence of Gaussian laws."""

class _GaussianThompson(_PolicyFamily):
    def __call__(self, sigma: float = 1.0, estimator: _Estimator | str = ...) -> _Policy:
        """Perturb each arm's mean by Gaussian noise whose variance shrinks with the arm's own pulls."""

class _KLMS(_PolicyFamily):
    def __call__(self, estimator: _Estimator | str = ...) -> _Policy:
        """Maillard sampling for rewards in [0, 1], measured by the divergence of Bernoulli laws."""

class _KLUCB(_PolicyFamily):
    def __call__(self, c: float = 0.0, estimator: _Estimator | str = ...) -> _Policy:
        """Score an arm by the largest mean that it may have, by its rewards and the divergence of Bernoulli laws."""

class _LinMED(_PolicyFamily):
    def __call__(self, sigma: float = 0.5, alpha: float = 0.5, estimator: _Estimator | str = ...) -> _Policy:
        """Maillard sampling that measures a gap by how uncertain the gap itself is, for arms that have something in common."""

class _LinTS(_PolicyFamily):
    def __call__(self, sigma: float, estimator: _Estimator | str = ...) -> _Policy:
        """Draw all coefficients of a linear model from what is believed of them, and pull the arm that is then the best."""

class _MOSS(_PolicyFamily):
    def __call__(self, horizon: float, estimator: _Estimator | str = ...) -> _Policy:
        """Add a bonus that vanishes once an arm has had its share of the horizon: minimax optimal."""

class _Maillard(_PolicyFamily):
    def __call__(self, sigma: float = 0.5, estimator: _Estimator | str = ...) -> _Policy:
        """Choose an arm with a probability that falls with its gap to the best mean and with how well the gap is known."""

class _PerturbedMean(_PolicyFamily):
    def __call__(self, noise: _Law, scale: float = 1.0, estimator: _Estimator | str = ...) -> _Policy:
        """Perturb each arm's mean by noise of any law, whose scale shrinks with the arm's own pulls."""

class _RandUCB(_PolicyFamily):
    def __call__(self, C: float, estimator: _Estimator | str = ...) -> _Policy:
        """Upper confidence bounds whose width is drawn anew for each decision, one draw for all arms."""

class _ResidualGumbel(_PolicyFamily):
    def __call__(self, estimator: _Estimator | str = ...) -> _Policy:
        """Explore by contexts without a parameter: noise in the scale of what predictions have left unexplained."""

class _RobustUCB(_PolicyFamily):
    def __call__(self, u: float, estimator: _Estimator | str = ...) -> _Policy:
        """Take an upper confidence bound on a truncated mean, for rewards of which only the second moment is bounded, by u."""

class _ScaledGumbel(_PolicyFamily):
    def __call__(self, estimator: _Estimator | str = ...) -> _Policy:
        """Explore without a parameter: Boltzmann–Gumbel noise whose scale is read off the rewards."""

class _SoftMix(_PolicyFamily):
    def __call__(self, d: float, estimator: _Estimator | str = ...) -> _Policy:
        """Exponential weights on estimated gains, with exploration and learning rate made for stochastic rewards."""

class _SquareCB(_PolicyFamily):
    def __call__(self, gamma: _ScheduleLike, estimator: _Estimator | str = ...) -> _Policy:
        """Explore each arm with a probability that falls with its gap to the best mean, and pull the best one otherwise."""

class _UCB(_PolicyFamily):
    def __call__(self, C: float, estimator: _Estimator | str = ...) -> _Policy:
        """Add to each arm's mean a bonus that grows slowly with time and shrinks with the arm's own pulls."""

class _UCB1(_PolicyFamily):
    def __call__(self, estimator: _Estimator | str = ...) -> _Policy:
        """Add to each arm's mean the classic upper confidence bound for rewards in [0, 1]."""

class _UCBImproved(_PolicyFamily):
    def __call__(self, horizon: float, estimator: _Estimator | str = ...) -> _Policy:
        """Pull all arms equally often, and after every phase eliminate those that are worse than the best by confidence."""

APE2: _APE2
AnytimeMOSS: _AnytimeMOSS
BetaThompson: _BetaThompson
Boltzmann: _Boltzmann
BoltzmannGumbel: _BoltzmannGumbel
EXP3: _EXP3
EXP3PlusPlus: _EXP3PlusPlus
EXP3PlusPlusImproved: _EXP3PlusPlusImproved
EpsilonGreedy: _EpsilonGreedy
ExploreThenCommit: _ExploreThenCommit
GaussianKLUCB: _GaussianKLUCB
GaussianThompson: _GaussianThompson
KLMS: _KLMS
KLUCB: _KLUCB
LinMED: _LinMED
LinTS: _LinTS
MOSS: _MOSS
Maillard: _Maillard
PerturbedMean: _PerturbedMean
RandUCB: _RandUCB
ResidualGumbel: _ResidualGumbel
RobustUCB: _RobustUCB
ScaledGumbel: _ScaledGumbel
SoftMix: _SoftMix
SquareCB: _SquareCB
UCB: _UCB
UCB1: _UCB1
UCBImproved: _UCBImproved
