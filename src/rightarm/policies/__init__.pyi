# Written by `python -m rightarm.stubs`.

from collections.abc import Callable
from typing import Any

from rightarm.estimators import Estimator
from rightarm.formula import Family
from rightarm.noise import Law
from rightarm.policies.boltzmann import Schedule as Schedule
from rightarm.policies.boltzmann import schedule as schedule
from rightarm.policies.robust import catoni_ucb as catoni_ucb
from rightarm.policies.robust import median_ucb as median_ucb
from rightarm.policies.thompson import logistic_thompson as logistic_thompson
from rightarm.scores.policy import Policy as Policy
from rightarm.scores.policy import PolicyFamily
from rightarm.scores.policy import policy as policy
from rightarm.scores.policy import probabilities as probabilities

ScheduleLike = Schedule | float | Callable[..., Any]

class _APE2(PolicyFamily):
    def __call__(self, p: float, c: float, estimator: Estimator | str = ...) -> Policy:
        """Perturb a robust mean by Gumbel noise, for rewards of which only the p-th moment is finite, 1 < p ≤ 2."""

class _EXP3(PolicyFamily):
    def __call__(self, gamma: float) -> Policy:
        """Choose by exponential weights on estimated gains, mixed with a uniform choice."""

class _KLMS(PolicyFamily):
    def __call__(self, estimator: Estimator | str = ...) -> Policy:
        """Maillard sampling for rewards in [0, 1], measured by the divergence of Bernoulli laws."""

class _KLUCB(PolicyFamily):
    def __call__(self, c: float = 0.0, estimator: Estimator | str = ...) -> Policy:
        """The largest mean that an arm may have by its rewards, measured by the divergence of Bernoulli laws."""

class _MOSS(PolicyFamily):
    def __call__(self, horizon: float, estimator: Estimator | str = ...) -> Policy:
        """A bonus that vanishes once an arm has had its share of the horizon: minimax optimal."""

class _UCB(PolicyFamily):
    def __call__(self, C: float, estimator: Estimator | str = ...) -> Policy:
        """Add to each arm's mean a bonus that grows slowly with time and shrinks with the arm's own pulls."""

class _UCB1(PolicyFamily):
    def __call__(self, estimator: Estimator | str = ...) -> Policy:
        """The classic upper confidence bound for rewards in [0, 1]."""

class _AnytimeMOSS(PolicyFamily):
    def __call__(self, estimator: Estimator | str = ...) -> Policy:
        """MOSS with the round in place of the horizon, which it need not know."""

class _BetaThompson(PolicyFamily):
    def __call__(self, estimator: Estimator | str = ...) -> Policy:
        """Draw each arm's mean from its posterior law under a uniform prior, and pull the largest."""

class _Boltzmann(PolicyFamily):
    def __call__(self, temperature: ScheduleLike, estimator: Estimator | str = ...) -> Policy:
        """Choose an arm with a probability proportional to the exponential of its mean over the temperature."""

class _BoltzmannGumbel(PolicyFamily):
    def __call__(self, C: float, location: float = 0.5772156649015329, estimator: Estimator | str = ...) -> Policy:
        """Perturb each arm's mean by Gumbel noise whose scale shrinks with the arm's own pulls."""

class _EXP3PlusPlus(PolicyFamily):
    def __call__(self, c: float = 18.0) -> Policy:
        """Exponential weights on estimated losses, whose exploration of an arm shrinks with its estimated gap."""

class _EXP3PlusPlus2017(PolicyFamily):
    def __call__(self, alpha: float = 3.0, beta: float = 256.0, estimator: Estimator | str = ...) -> Policy:
        """EXP3++ whose exploration follows gaps between confidence bounds on the arms' mean losses: regret of order log² T."""

class _EpsilonGreedy(PolicyFamily):
    def __call__(self, epsilon: ScheduleLike, estimator: Estimator | str = ...) -> Policy:
        """Pull the arm with the best mean, but with probability ε_t an arm drawn uniformly at random."""

class _ExploreThenCommit(PolicyFamily):
    def __call__(self, each: float, estimator: Estimator | str = ...) -> Policy:
        """Pull every arm equally often, then for ever the one whose mean was best at that time."""

class _GaussianKLUCB(PolicyFamily):
    def __call__(self, sigma: float = 0.5, c: float = 0.0, estimator: Estimator | str = ...) -> Policy:
        """The largest mean that an arm may have by its rewards, measured by the divergence of Gaussian laws."""

class _GaussianThompson(PolicyFamily):
    def __call__(self, sigma: float = 1.0, estimator: Estimator | str = ...) -> Policy:
        """Perturb each arm's mean by Gaussian noise whose variance shrinks with the arm's own pulls."""

class _LinMED(PolicyFamily):
    def __call__(self, sigma: float = 0.5, alpha: float = 0.5, estimator: Estimator | str = ...) -> Policy:
        """Maillard sampling that measures a gap by how uncertain the gap itself is, for arms that have something in common."""

class _LinTS(PolicyFamily):
    def __call__(self, sigma: float, estimator: Estimator | str = ...) -> Policy:
        """Draw all coefficients of a linear model from what is believed of them, and pull the arm that is then the best."""

class _Maillard(PolicyFamily):
    def __call__(self, sigma: float = 0.5, estimator: Estimator | str = ...) -> Policy:
        """Choose an arm with a probability that falls with its gap to the best mean and with how well the gap is known."""

class _PerturbedMean(PolicyFamily):
    def __call__(self, noise: Law, scale: float = 1.0, estimator: Estimator | str = ...) -> Policy:
        """Perturb each arm's mean by noise of any law, whose scale shrinks with the arm's own pulls."""

class _RandUCB(PolicyFamily):
    def __call__(self, C: float, estimator: Estimator | str = ...) -> Policy:
        """Upper confidence bounds whose width is drawn anew for each decision, one draw for all arms."""

class _RobustUCB(PolicyFamily):
    def __call__(self, u: float, estimator: Estimator | str = ...) -> Policy:
        """An upper confidence bound on a truncated mean, for rewards of which only the second moment is known to be ≤ u."""

class _ScaledGumbel(PolicyFamily):
    def __call__(self, estimator: Estimator | str = ...) -> Policy:
        """Explore without a parameter: Boltzmann–Gumbel noise whose scale is read off the rewards."""

class _SoftMix(PolicyFamily):
    def __call__(self, d: float) -> Policy:
        """Exponential weights on estimated gains, with exploration and learning rate made for stochastic rewards."""

class _SquareCB(PolicyFamily):
    def __call__(self, gamma: ScheduleLike, estimator: Estimator | str = ...) -> Policy:
        """Explore each arm with a probability that falls with its gap to the best mean, and pull the best one otherwise."""

class _UCBImproved(PolicyFamily):
    def __call__(self, horizon: float, estimator: Estimator | str = ...) -> Policy:
        """Pull all arms equally often, and after every phase eliminate those that are worse than the best by confidence."""

class _constant(Family):
    def __call__(self, c: float) -> Schedule:
        """β_t = c: BE-const of section 6, there with c = C²."""

class _decreasing(Family):
    def __call__(self, d: float, c: float = 5.0) -> Schedule:
        """ε_t = min{1, c K / (d² t)}: the ε_n-greedy rule of Auer, Cesa-Bianchi, Fischer (2002), 0 < d ≤ least gap."""

class _glie(Family):
    def __call__(self) -> Schedule:
        """η_t = log t / max_i (μ̂_best − μ̂_i): every arm keeps a probability of at least 1/(K t), greedy in the limit."""

class _increasing(Family):
    def __call__(self, c: float) -> Schedule:
        """γ_t = c √(K t): exploration falls off like 1/√t, for rewards that differ by about 1."""

class _inverse_log(Family):
    def __call__(self, c: float) -> Schedule:
        """β_t = c / log t: BE-log of section 6, there with c = C²."""

class _inverse_sqrt(Family):
    def __call__(self, c: float) -> Schedule:
        """β_t = c / √t: BE-sqrt of section 6, there with c = C²."""

class _two_phase(Family):
    def __call__(self, gap: float, horizon: float) -> Schedule:
        """Theorem 3: η_t = 1 before τ = 16 e K log(T) / Δ², and η_t = log(t Δ²) / Δ from then on."""

APE2: _APE2
EXP3: _EXP3
KLMS: _KLMS
KLUCB: _KLUCB
MOSS: _MOSS
UCB: _UCB
UCB1: _UCB1
AnytimeMOSS: _AnytimeMOSS
BetaThompson: _BetaThompson
Boltzmann: _Boltzmann
BoltzmannGumbel: _BoltzmannGumbel
EXP3PlusPlus: _EXP3PlusPlus
EXP3PlusPlus2017: _EXP3PlusPlus2017
EpsilonGreedy: _EpsilonGreedy
ExploreThenCommit: _ExploreThenCommit
GaussianKLUCB: _GaussianKLUCB
GaussianThompson: _GaussianThompson
LinMED: _LinMED
LinTS: _LinTS
Maillard: _Maillard
PerturbedMean: _PerturbedMean
RandUCB: _RandUCB
RobustUCB: _RobustUCB
ScaledGumbel: _ScaledGumbel
SoftMix: _SoftMix
SquareCB: _SquareCB
UCBImproved: _UCBImproved
constant: _constant
decreasing: _decreasing
glie: _glie
increasing: _increasing
inverse_log: _inverse_log
inverse_sqrt: _inverse_sqrt
two_phase: _two_phase
