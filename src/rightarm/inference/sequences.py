"""Confidence sequences for the means of arms, from the number of rewards of each, their mean and their spread.

An interval here holds at every moment at once and whatever chose when to pull the arm: one may look after every
reward, stop when one likes, and let a bandit decide by the same rewards. It needs rewards of an arm whose mean, given
all that came before, is the same every time. Where means drift, a `Bounded` interval is about their average over pulls.

Only statistics are needed that do not depend on the order of rewards: so nothing has to be kept up to date besides
sums, and a reward that is corrected later is corrected here too.

**Rewards in a range**, scaled to 0 to 1. A gambler who bets by a constant γ > 0 that the mean is above m has after n
rewards the capital Π (1 + γ x_t)/(1 + γ m), which is a fair game if the mean is m (`rightarm.inference.confidence`). Of
all rewards at least 0 with mean x̄ and mean square q, those make Σ log(1 + γ x_t) the least that are 0 or q/x̄: the third
derivative of the logarithm is positive, so this is Chebyshev's and Markov's problem of moments. So the gambler has
at least

    log capital  ≥  n (x̄²/q) log(1 + γ q/x̄)  −  n log(1 + γ m),

with equality for rewards that are 0 or 1. The capital is spread over many γ, by weights that do not depend on the data;
where the sum of all reaches 1/α, m is too small: by Ville's inequality that is ever wrong with probability α at most.
The logarithm of the sum is convex in m and falls, so Newton's steps from the left come near the bound from its
safe side. The upper bound is the lower one of 1 − x.

**Rewards without a range**: Robbins' normal mixture,  x̄ ± σ √(2 (nρ² + 1)/(n²ρ²) · log(√(nρ² + 1)/α)).  It holds for
sub-Gaussian rewards of a known σ; with σ estimated from the rewards it holds in the limit, and is called asymptotic.

The limit is far away where most rewards are equal and a few are large: the mean and σ are both too small until some
of the large ones came. So an arm has no asymptotic interval before it has 100 **effective rewards**,

    n d²/(d² + s²),        s² the variance, d the distance of the mean from the lowest or the highest reward, whichever
                           is nearer; from 0 where these are not known.

If the lowest reward is 0, and the highest is further from the mean, this is (Σx)²/Σx²: the number of purchases if all
are of one size, and fewer if sizes differ. It does not change when a constant is added to all rewards or when they
change their sign: revenue minus a cost needs as many purchases as revenue. Of rewards of two values it is the number of
the rarer ones, of normal rewards about 0.9 n, and of rewards that are all equal it is 0.

References: Krein and Nudel'man, "The Markov moment problem and extremal problems", 1977; Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting", JRSS B 2024; Robbins, "Statistical methods related to the
law of the iterated logarithm", 1970; Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit
theory and asymptotic confidence sequences", Annals of Statistics 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm.formula import check_number
from rightarm.inference.confidence import BETS, check_confidence
from rightarm.scores.rewards import check_reward_range
from rightarm.types import F64

Range = tuple[float, float]
Extremes = tuple[ArrayLike, ArrayLike]
"""The lowest and the highest reward of each arm."""

WEIGHTS: F64 = 1 / (1 + (np.log(BETS) / 2) ** 2)  # most on bets near 1, which suit some thousand rewards
WEIGHTS /= WEIGHTS.sum()
STEPS = 24  # of Newton's method from 0 on; 15 are enough for twelve digits
STEPS_ON = 6  # from a bound that is near
CASH = 0.1  # share of the capital that is not bet where two arms are compared, so that one cannot ruin the other
PARTS = 64  # in which the evidence is divided between two arms; more of them make bounds narrower by 1% at most
RHO = math.sqrt(0.02)  # of the normal mixture for a known σ: narrowest at some 450 rewards
RHO_ESTIMATED = math.sqrt(0.001)  # for an estimated σ: narrowest at some 9,000 rewards, and wide while it is poor
FEWEST = 100  # effective rewards below which the normal law, and an estimate of σ, are not to be relied on

BOUNDED, GAUSSIAN, ASYMPTOTIC = "bounded", "sub-Gaussian", "asymptotic"
IN_WORDS = {BOUNDED: "at any time", GAUSSIAN: "at any time", ASYMPTOTIC: "at any time, asymptotic"}
NO_REWARD = "no reward"
REMEDY = "declare a reward_range or wait"
LEAST = 1e-150  # a mean, of rewards from 0 to 1, below which it counts as 0: its square would be none


@dataclass(frozen=True, eq=False)
class Means:
    """Intervals for the means of arms, from ``lows`` to ``highs``, NaN where there is none; `means` makes them."""

    lows: F64
    highs: F64
    confidence: float
    kind: str
    """``bounded`` or ``sub-Gaussian``, which hold for any number of rewards, or ``asymptotic``."""


def means(
    counts: ArrayLike,
    means: ArrayLike,
    spreads: ArrayLike,
    reward_range: Range | None = None,
    confidence: float = 0.95,
    *,
    sigma: float | None = None,
    extremes: Extremes | None = None,
) -> Means:
    """An interval for the mean of each arm that holds at every moment at once, with probability ``confidence`` each.

    - ``counts``, ``means``, ``spreads``: of every arm the number of rewards, their mean, and Σ (x − mean)².
    - ``reward_range``: what rewards can be, known beforehand.
    - ``sigma``: without a range, a bound on the standard deviation that makes rewards sub-Gaussian.
    - ``extremes``: without either, the lowest and the highest reward of every arm so far, NaN where unknown.

    With neither range nor ``sigma`` the intervals are asymptotic: they hold for rewards of finite variance in the
    limit, and an arm has none before it has 100 effective rewards: (Σx)²/Σx² of them, or what the module's text says
    if ``extremes`` are given. Give them where rewards can be negative, or where the most frequent one is not 0.

    >>> found = means([1_000, 50], [0.02, 0.0], [19.6, 0.0], reward_range=(0, 1))
    >>> found.lows.round(4), found.highs.round(4), found.kind
    (array([0.0087, 0.    ]), array([0.0378, 0.0952]), 'bounded')
    """
    return rewards_of(counts, means, spreads, reward_range, sigma, extremes).intervals(check_confidence(confidence))


class Rewards(Protocol):
    """What is known of the rewards of several arms, and what follows for their means."""

    counts: F64
    means: F64
    kind: str
    sides: int
    """The errors that both ends of a difference cost: 2, or 1 where one event makes either of them wrong."""

    def intervals(self, confidence: float) -> Means:
        """An interval for each mean."""

    def gaps(self, error: float) -> F64:
        """In row j and column i a bound above (mean of j) − (mean of i), ever wrong with probability ``error``.

        Arms are the last axis of the statistics; others may stand before it.
        """

    def exceeds(self, gap: float, error: float) -> bool:
        """Of two arms: whether the second's mean is above the first's by more than ``gap``, by what `gaps` says."""

    def short_of(self) -> list[str]:
        """Of each arm what it lacks so that anything can be said of it; empty if nothing. Only for one row of arms."""


def rewards_of(
    counts: ArrayLike,
    means: ArrayLike,
    spreads: ArrayLike,
    reward_range: Range | None,
    sigma: float | None,
    extremes: Extremes | None = None,
) -> Rewards:
    """The statistics of arms, checked, with what is known beforehand of their rewards."""
    numbers, centres, squares = (np.array(values, dtype=float, ndmin=1) for values in (counts, means, spreads))
    if not numbers.shape == centres.shape == squares.shape:
        raise ValueError(f"statistics must be of one shape, got {numbers.shape}, {centres.shape}, {squares.shape}")
    for name, values in (("counts", numbers), ("spreads", squares)):
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"{name} must be finite and not negative, got {values.tolist()}")
    if not np.isfinite(centres).all():
        raise ValueError(f"means must be finite, got {centres.tolist()}")
    if reward_range is None:
        if sigma is not None:
            return Normal(numbers, centres, squares, check_number("sigma", sigma))
        return Normal(numbers, centres, squares, None, effective_rewards(numbers, centres, squares, extremes))
    low, high = check_reward_range(reward_range)
    outside = (numbers > 0) & ((centres < low - 1e-9 * (high - low)) | (centres > high + 1e-9 * (high - low)))
    if outside.any():
        raise ValueError(f"means must be in reward_range, {low} to {high}, got {centres[outside][0]}")
    return Bounded(numbers, centres, squares, (low, high))


def effective_rewards(counts: F64, means: F64, spreads: F64, extremes: Extremes | None) -> F64:
    """Return how many rewards of equal size the rewards of each arm are worth; the module's text has the formula."""
    from_zero = np.abs(means)
    distances = from_zero
    if extremes is not None:
        lowest, highest = (np.array(ends, dtype=float, ndmin=1) for ends in extremes)
        if not lowest.shape == highest.shape == counts.shape:
            raise ValueError(
                f"extremes must be of the arms' shape, {counts.shape}, got {lowest.shape}, {highest.shape}"
            )
        nearer = np.minimum(means - lowest, highest - means)  # negative only by rounding
        distances = np.where(np.isnan(nearer), from_zero, np.maximum(nearer, 0.0))
    squares, variances = distances**2, spreads / np.maximum(counts, 1)
    shares = np.divide(squares, squares + variances, out=np.zeros(counts.shape), where=variances > 0)
    return np.asarray((counts * shares).round(6))  # one purchase is one, whatever rounding made of the sums


class Bounded:
    """Rewards in a range."""

    kind = BOUNDED
    sides = 2  # each end has bets of its own

    def __init__(self, counts: F64, means: F64, spreads: F64, reward_range: Range) -> None:
        self.counts, self.means = counts, means
        self.low, self.span = reward_range[0], reward_range[1] - reward_range[0]
        centres = np.clip((means - self.low) / self.span, 0.0, 1.0)
        self.centres = np.where(centres < LEAST, 0.0, centres)
        self.variances = spreads / self.span / self.span / np.maximum(counts, 1)
        self.gains = tuple(_gains(counts, centres, self.variances) for centres in (self.centres, 1 - self.centres))

    def intervals(self, confidence: float) -> Means:
        level = math.log(2 / (1 - confidence))
        below, above = (_bound(self.counts, gains, level, np.zeros(self.counts.shape), STEPS) for gains in self.gains)
        lows, highs = (np.where(self.counts > 0, self.low + self.span * end, np.nan) for end in (below, 1 - above))
        return Means(lows, highs, confidence, self.kind)

    def gaps(self, error: float) -> F64:
        """The evidence that j's mean is below m + δ, times that of i's being above m, is a fair game's capital too.

        It must reach 1/error for every m. Where the one has the logarithm s, the other must have log(1/error) − s: so
        the bound is the largest difference of both ends over all s. Between two values of s each end is taken at the
        wider one.
        """
        goal = -math.log(error)
        shares = np.linspace(math.log(CASH), goal - math.log(CASH), PARTS + 1)[1:]
        levels = [-math.inf, *(np.log((np.exp(shares) - CASH) / (1 - CASH)).tolist())]
        below, above = (_bounds(self.counts, gains, levels) for gains in self.gains)
        columns = [((1 - above[..., 1:]) - below[..., [i], :0:-1]).max(axis=-1) for i in range(self.counts.shape[-1])]
        return np.stack(columns, axis=-1) * self.span

    def exceeds(self, gap: float, error: float) -> bool:
        """First at one pair of means only, those that fit best: nearly always that is an answer, and a quick one."""
        least, weights = gap / self.span, self.counts / (self.variances + 1e-3)
        m = (weights @ (self.centres - [0.0, least])) / max(float(weights.sum()), 1e-300)
        at = np.clip([1 - m, m + least], 0.0, 1.0)  # of the first arm seen from above, of the second from below
        capital = np.logaddexp.reduce(
            np.stack([self.gains[1][0], self.gains[0][1]]) - self.counts[:, None] * np.log1p(BETS * at[:, None]), axis=1
        )
        both = np.logaddexp(math.log(CASH), math.log1p(-CASH) + capital).sum()
        return bool(both >= -math.log(error)) and float(self.gaps(error)[0, 1]) < -gap

    def short_of(self) -> list[str]:
        return ["" if count > 0 else NO_REWARD for count in self.counts.tolist()]


def _gains(counts: F64, means: F64, variances: F64) -> F64:
    """The logarithm of Π (1 + γ x_t) for each bet γ, at least; the last axis is that of the bets."""
    top = np.minimum(means + np.divide(variances, means, out=np.ones(means.shape), where=means > 0), 1.0)
    share = means / top
    return np.asarray((counts * share)[..., None] * np.log1p(BETS * top[..., None]) + np.log(WEIGHTS))


def _bound(counts: F64, gains: F64, level: float, start: F64, steps: int) -> F64:
    """The m, from ``start`` on, at which the logarithm of the capital falls to ``level``; at most that, and at most 1.

    Newton's steps on a convex function that falls: from the left they never go too far.
    """
    m = start
    for _ in range(steps):
        odds = 1 + BETS * m[..., None]
        each = gains - counts[..., None] * np.log(odds)
        top = each.max(axis=-1)
        parts = np.exp(each - top[..., None])
        total = parts.sum(axis=-1)
        over = top + np.log(total) - level
        slope = counts * (parts * (BETS / odds)).sum(axis=-1) / total
        step = np.divide(over, slope, out=np.full(over.shape, np.inf), where=slope > 0)
        m = np.where(over > 0, np.minimum(m + step, 1.0), m)
    return m


def _bounds(counts: F64, gains: F64, levels: list[float]) -> F64:
    """`_bound` for levels that rise, in the last axis; for the least of all levels it is 1."""
    found, m, steps = [], np.zeros(counts.shape), STEPS
    for level in reversed(levels[1:]):
        m = _bound(counts, gains, level, m, steps)
        steps = STEPS_ON
        found.append(m)
    return np.stack([np.ones(counts.shape), *reversed(found)], axis=-1)


def _pairs(operation: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """The operation on all pairs of the last axis."""
    return np.asarray(operation(values[..., :, None], values[..., None, :]))


class Normal:
    """Rewards of any size, sub-Gaussian with a known σ, or with a finite variance and so many effective rewards."""

    # The mixture over both signs of a bet depends on (x̄ − m)² alone. So the capital on both arms together excludes a
    # difference δ by (x̄_j − x̄_i − δ)², on whichever side it lies: that the true one is ever excluded, above or below,
    # is one event, of probability α at most by Ville's inequality, and not two.
    sides = 1

    def __init__(
        self, counts: F64, means: F64, spreads: F64, sigma: float | None, effective: F64 | None = None
    ) -> None:
        self.counts, self.means = counts, means
        self.effective = counts if effective is None else effective
        if sigma is not None and sigma <= 0:
            raise ValueError(f"sigma must be positive, got {sigma}")
        self.kind = ASYMPTOTIC if sigma is None else GAUSSIAN
        self.known = self.effective >= FEWEST if sigma is None else counts > 0
        variances = spreads / np.maximum(counts - 1, 1) if sigma is None else np.full(counts.shape, sigma**2)
        rho = RHO_ESTIMATED if sigma is None else RHO
        grown = counts * rho**2 + 1
        self.cost = np.log(grown) / 2
        self.scale = np.divide(2 * variances * grown, (counts * rho) ** 2, out=np.zeros(grown.shape), where=self.known)

    def intervals(self, confidence: float) -> Means:
        half = np.sqrt((-math.log1p(-confidence) + self.cost) * self.scale)
        half[~self.known] = np.nan
        return Means(self.means - half, self.means + half, confidence, self.kind)

    def gaps(self, error: float) -> F64:
        """Both arms' mixtures multiplied, at the means with this difference for which the product is the least."""
        goal = -math.log(error) + _pairs(np.add, self.cost)
        half = np.sqrt(goal * _pairs(np.add, self.scale))
        half[~_pairs(np.logical_and, self.known)] = np.inf
        return np.asarray(_pairs(np.subtract, self.means) + half)

    def exceeds(self, gap: float, error: float) -> bool:
        return float(self.gaps(error)[0, 1]) < -gap

    def short_of(self) -> list[str]:
        return [
            "" if known else NO_REWARD if not count else f"{int(effective)} of {FEWEST} effective rewards"
            for known, count, effective in zip(self.known, self.counts, self.effective, strict=True)
        ]
