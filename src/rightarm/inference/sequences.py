"""Confidence sequences: intervals for means that hold at every moment at once, whatever chose the arms.

One may look after every reward, stop when one likes, and let a bandit decide by the same rewards.

**A sequence of values.** Let X_1, X_2, ... be at least zero and V_t the mean of X_t given all that came before it. A
gambler who bets on large values by a constant γ > 0 has after n rounds

    M_n(γ) = Π_t (1 + γ X_t) / (1 + γ V_t),

a product of factors of mean 1 each, whatever made the data adaptive: a martingale. So is its average over many γ, and
by Ville's inequality it ever reaches 1/α with probability α at most. The V_t may differ: log(1 + γ v) is concave, and
so with their average v = (V_1 + ... + V_n)/n the product of the denominators is at most (1 + γ v)ⁿ, and

    average over γ of Π_t (1 + γ X_t) / (1 + γ v)ⁿ  <  1/α        for all n at once, with probability 1 − α.

The left side falls in v; where it crosses 1/α is a lower bound on v. X needs no upper bound, which is what importance
weights want.

**Statistics of arms.** These intervals need rewards of an arm whose mean, given all that came before, is the same every
time. Where means drift, a `Bounded` interval is about their average over pulls. Only statistics are needed that do not
depend on the order of rewards: so nothing has to be kept up to date besides sums, and a reward that is corrected later
is corrected here too.

*Rewards in a range*, scaled to 0 to 1. A gambler who bets by a constant γ > 0 that the mean is above m has after n
rewards the capital Π (1 + γ x_t)/(1 + γ m), which is a fair game if the mean is m. Of all rewards at least 0 with mean
x̄ and mean square q, those make Σ log(1 + γ x_t) the least that are 0 or q/x̄: the third derivative of the logarithm is
positive, so this is Chebyshev's and Markov's problem of moments. So the gambler has at least

    log capital  ≥  n (x̄²/q) log(1 + γ q/x̄)  −  n log(1 + γ m),

with equality for rewards that are 0 or 1. The capital is spread over many γ, by weights that do not depend on the data;
where the sum of all reaches 1/α, m is too small: by Ville's inequality that is ever wrong with probability α at most.
The logarithm of the sum is convex in m and falls, so Newton's steps from the left come near the bound from its safe
side. The upper bound is the lower one of 1 − x.

*Rewards without a range*: Robbins' normal mixture,  x̄ ± σ √(2 (nρ² + 1)/(n²ρ²) · log(√(nρ² + 1)/α)).  It holds for
sub-Gaussian rewards of a known σ; with σ estimated from the rewards it holds in the limit, and is called asymptotic.

The limit is far away where most rewards are equal and a few are large: the mean and σ are both too small until some of
the large ones came. So an arm has no asymptotic interval before it has 100 *effective rewards*,

    n d²/(d² + s²),        s² the variance, d the distance of the mean from the lowest or the highest reward, whichever
                           is nearer; from 0 where these are not known.

If the lowest reward is 0, and the highest is further from the mean, this is (Σx)²/Σx²: the number of purchases if all
are of one size, and fewer if sizes differ. It does not change when a constant is added to all rewards or when they
change their sign: revenue minus a cost needs as many purchases as revenue. Of rewards of two values it is the number of
the rarer ones, of normal rewards about 0.9 n, and of rewards that are all equal it is 0.

References
----------
Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024; Orabona and Jun, "Tight
concentrations and confidence sequences from the regret of universal portfolio", IEEE Trans. Inf. Theory 2024 (the
average over bets); Karampatziakis, Mineiro and Ramdas, "Off-policy confidence sequences", ICML 2021; Krein and
Nudel'man, "The Markov moment problem and extremal problems", 1977; Robbins, "Statistical methods related to the law of
the iterated logarithm", 1970; Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and
asymptotic confidence sequences", Annals of Statistics 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm.errors import WrongValue
from rightarm.formula import check_number
from rightarm.policies.inputs import check_reward_range
from rightarm.types import F64

BETS: F64 = np.geomspace(1e-4, 1e5, 73)  # 8 a decade; a finer grid changes the bounds by less than 1% of their width
HALVINGS = 40


def lower_bound(values: ArrayLike, confidence: float = 0.95) -> float:
    """Return a bound below the average mean of values from 0 on, at all times with probability ``confidence``.

    It is the largest v ≥ 0 with  average over γ of Π_t (1 + γ x_t)/(1 + γ v)  ≥  1/(1 − confidence).

    >>> round(lower_bound([0.5, 0.75, 1.0] * 30), 2)
    0.69
    """
    return joint_lower_bound([(np.asarray(values, dtype=float), 0.0)], confidence)


def joint_lower_bound(bets: Sequence[tuple[F64, float]], confidence: float) -> float:
    """Return a bound below one average mean from several sequences that have it, each at least −``shift``.

    The gambler divides the capital among them: the bound is nearly as good as the best of them alone.
    """
    level = check_confidence(confidence)
    scaled = [_scaled(values, shift) for values, shift in bets]
    gains = [np.array([np.log1p(bet * values).sum() for bet in BETS]) for values in scaled]

    def log_capital(v: float) -> float:
        parts = [
            gain - values.size * np.log1p(BETS * (v + shift) / (1 + shift))
            for gain, values, (_, shift) in zip(gains, scaled, bets, strict=True)
        ]
        everything = np.concatenate(parts)
        top = float(everything.max())
        return top + math.log(float(np.exp(everything - top).mean()))

    limit = -math.log1p(-level)
    low = 0.0
    high = max(1.0, *(float(values.max(initial=0.0)) for values, _ in bets))
    if log_capital(low) < limit:
        return low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if log_capital(middle) >= limit:
            low = middle
        else:
            high = middle
    return low


def _scaled(values: F64, shift: float) -> F64:
    scaled = (values + shift) / (1 + shift)
    if not np.isfinite(scaled).all() or (scaled < -1e-9).any():
        raise WrongValue("values", f"must be finite and at least {-shift}, got {values.min()}")
    return np.maximum(scaled, 0.0)


def interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval for the average mean of values from 0 to 1, at all times with probability ``confidence``.

    >>> low, high = interval([0.0, 1.0] * 200)
    >>> round(low, 2), round(high, 2)
    (0.41, 0.59)
    """
    array = np.asarray(values, dtype=float)
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        raise WrongValue("values", f"must be from 0 to 1, got {array.min()} to {array.max()}", code="out_of_range")
    side = (1 + check_confidence(confidence)) / 2
    return lower_bound(array, side), 1 - lower_bound(1 - array, side)


def check_confidence(confidence: float) -> float:
    """Return ``confidence``; raise if it is no probability that can be promised."""
    if not 0 < check_number("confidence", confidence) < 1:
        raise WrongValue("confidence", f"must be between 0 and 1, got {confidence}", code="out_of_range")
    return confidence


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

BOUNDED = "bounded"
GAUSSIAN = "sub-Gaussian"
ASYMPTOTIC = "asymptotic"
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
    """Return an interval for the mean of each arm that holds at every moment at once.

    With neither range nor ``sigma`` the intervals are asymptotic: they hold for rewards of finite variance in the
    limit, and an arm has none before it has 100 effective rewards: (Σx)²/Σx² of them, or what the module's text says
    if ``extremes`` are given. Give them where rewards can be negative, or where the most frequent one is not 0.

    Parameters
    ----------
    counts, means, spreads : array_like
        The number of rewards of every arm, their mean, and Σ (x − mean)².
    reward_range : tuple of two floats, optional
        The lowest and the highest reward that can come.
    confidence : float
        The probability, for each arm, that its interval is never wrong.
    sigma : float, optional
        Without a range: a bound on the standard deviation that makes rewards sub-Gaussian.
    extremes : tuple of two array_like, optional
        Without either: the lowest and the highest reward of every arm so far, NaN where unknown.

    Examples
    --------
    >>> found = means([1_000, 50], [0.02, 0.0], [19.6, 0.0], reward_range=(0, 1))
    >>> found.lows.round(4), found.highs.round(4), found.kind
    (array([0.0087, 0.    ]), array([0.0378, 0.0952]), 'bounded')
    """
    return rewards_of(counts, means, spreads, reward_range, sigma, extremes).intervals(check_confidence(confidence))


def rewards_of(
    counts: ArrayLike,
    means: ArrayLike,
    spreads: ArrayLike,
    reward_range: Range | None,
    sigma: float | None,
    extremes: Extremes | None = None,
) -> Rewards:
    """Return the statistics of arms, checked, with what is known beforehand of their rewards."""
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
    slack = 1e-9 * (high - low)
    outside = (numbers > 0) & ((centres < low - slack) | (centres > high + slack))
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
    squares = distances**2
    variances = spreads / np.maximum(counts, 1)
    shares = np.divide(squares, squares + variances, out=np.zeros(counts.shape), where=variances > 0)
    return np.asarray((counts * shares).round(6))  # one purchase is one, whatever rounding made of the sums


class Bounded:
    """Statistics of the rewards of several arms in a range, and what follows for their means."""

    kind = BOUNDED
    sides = 2  # the errors that both ends of a difference cost: each end has bets of its own

    def __init__(self, counts: F64, means: F64, spreads: F64, reward_range: Range) -> None:
        self.counts = counts
        self.means = means
        self.low = reward_range[0]
        self.span = reward_range[1] - reward_range[0]
        centres = np.clip((means - self.low) / self.span, 0.0, 1.0)
        self.centres = np.where(centres < LEAST, 0.0, centres)
        self.variances = spreads / self.span / self.span / np.maximum(counts, 1)
        self.gains = tuple(_gains(counts, centres, self.variances) for centres in (self.centres, 1 - self.centres))

    def intervals(self, confidence: float) -> Means:
        """Return an interval for each mean."""
        level = math.log(2 / (1 - confidence))
        below, above = (_bound(self.counts, gains, level, np.zeros(self.counts.shape), STEPS) for gains in self.gains)
        lows, highs = (np.where(self.counts > 0, self.low + self.span * end, np.nan) for end in (below, 1 - above))
        return Means(lows, highs, confidence, self.kind)

    def gaps(self, error: float) -> F64:
        """Return in row j and column i a bound above (mean of j) − (mean of i), ever wrong with probability ``error``.

        Arms are the last axis of the statistics; others may stand before it.

        The evidence that j's mean is below m + δ, times that of i's being above m, is a fair game's capital too. It
        must reach 1/error for every m. Where the one has the logarithm s, the other must have log(1/error) − s: so
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
        """Return whether, of two arms, the second's mean is above the first's by more than ``gap``, as `gaps` says.

        It looks at one pair of means first, those that fit best: nearly always that is an answer, and a quick one.
        """
        least = gap / self.span
        weights = self.counts / (self.variances + 1e-3)
        m = (weights @ (self.centres - [0.0, least])) / max(float(weights.sum()), 1e-300)
        at = np.clip([1 - m, m + least], 0.0, 1.0)  # of the first arm seen from above, of the second from below
        gains = np.stack([self.gains[1][0], self.gains[0][1]])
        capital = np.logaddexp.reduce(gains - self.counts[:, None] * np.log1p(BETS * at[:, None]), axis=1)
        both = np.logaddexp(math.log(CASH), math.log1p(-CASH) + capital).sum()
        return bool(both >= -math.log(error)) and float(self.gaps(error)[0, 1]) < -gap

    def short_of(self) -> list[str]:
        """Return what each arm lacks before anything can be said of it; empty if nothing. Only for one row of arms."""
        return ["" if count > 0 else NO_REWARD for count in self.counts.tolist()]


def _gains(counts: F64, means: F64, variances: F64) -> F64:
    """Return the logarithm of Π (1 + γ x_t) for each bet γ, at least; the last axis is that of the bets."""
    top = np.minimum(means + np.divide(variances, means, out=np.ones(means.shape), where=means > 0), 1.0)
    share = means / top
    return np.asarray((counts * share)[..., None] * np.log1p(BETS * top[..., None]) + np.log(WEIGHTS))


def _bound(counts: F64, gains: F64, level: float, start: F64, steps: int) -> F64:
    """Return the m from ``start`` on at which the logarithm of the capital falls to ``level``, or less; at most 1.

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
    """Return `_bound` for levels that rise, in the last axis; for the least of all levels it is 1."""
    found = []
    m = np.zeros(counts.shape)
    steps = STEPS
    for level in reversed(levels[1:]):
        m = _bound(counts, gains, level, m, steps)
        steps = STEPS_ON
        found.append(m)
    return np.stack([np.ones(counts.shape), *reversed(found)], axis=-1)


def _pairs(operation: np.ufunc, values: NDArray[np.generic]) -> NDArray[Any]:
    """Return the operation on all pairs of the last axis."""
    return np.asarray(operation(values[..., :, None], values[..., None, :]))


class Normal:
    """Statistics of rewards of any size: sub-Gaussian with a known σ, or with a finite variance; as `Bounded`."""

    # The mixture over both signs of a bet depends on (x̄ − m)² alone. So the capital on both arms together excludes a
    # difference δ by (x̄_j − x̄_i − δ)², on whichever side it lies: that the true one is ever excluded, above or below,
    # is one event, of probability α at most by Ville's inequality, and not two.
    sides = 1

    def __init__(
        self, counts: F64, means: F64, spreads: F64, sigma: float | None, effective: F64 | None = None
    ) -> None:
        self.counts = counts
        self.means = means
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
        """Multiply both arms' mixtures, at the means with this difference for which the product is the least."""
        goal = -math.log(error) + _pairs(np.add, self.cost)
        half = np.sqrt(goal * _pairs(np.add, self.scale))
        half[~_pairs(np.logical_and, self.known)] = np.inf
        return np.asarray(_pairs(np.subtract, self.means) + half)

    def exceeds(self, gap: float, error: float) -> bool:
        return float(self.gaps(error)[0, 1]) < -gap

    def short_of(self) -> list[str]:
        found = [f"{int(effective)} of {FEWEST} effective rewards" for effective in self.effective]
        found = [text if count else NO_REWARD for text, count in zip(found, self.counts, strict=True)]
        return ["" if known else text for text, known in zip(found, self.known, strict=True)]


Rewards = Bounded | Normal
