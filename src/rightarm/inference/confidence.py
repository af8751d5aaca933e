"""Bounds on a mean that hold however the data were collected, and whenever one looks: confidence sequences by betting.

Let X_1, X_2, ... be at least zero and V_t the mean of X_t given all that came before it. A gambler who bets on large
values by a constant γ > 0 has after n rounds

    M_n(γ) = Π_t (1 + γ X_t) / (1 + γ V_t),

a product of factors of mean 1 each, whatever made the data adaptive: a martingale. So is its average over many γ, and
by Ville's inequality it ever reaches 1/α with probability α at most. The V_t may differ: log(1 + γ v) is concave, and
so with their average v = (V_1 + ... + V_n)/n the product of the denominators is at most (1 + γ v)ⁿ, and

    average over γ of Π_t (1 + γ X_t) / (1 + γ v)ⁿ  <  1/α        for all n at once, with probability 1 − α.

The left side falls in v; where it crosses 1/α is a lower bound on v. X needs no upper bound, which is what importance
weights want.

References: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024; Orabona and
Jun, "Tight concentrations and confidence sequences from the regret of universal portfolio", IEEE Trans. Inf. Theory
2024 (the average over bets); Karampatziakis, Mineiro and Ramdas, "Off-policy confidence sequences", ICML 2021.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rightarm.errors import WrongValue
from rightarm.formula import check_number
from rightarm.types import F64

BETS: F64 = np.geomspace(1e-4, 1e5, 73)  # 8 a decade; a finer grid changes the bounds by less than 1% of their width
HALVINGS = 40


def lower_bound(values: ArrayLike, confidence: float = 0.95) -> float:
    """A bound below the average mean of values from 0 on, at all times at once with probability ``confidence``.

    The largest v ≥ 0 with  average over γ of Π_t (1 + γ x_t)/(1 + γ v)  ≥  1/(1 − confidence); see the module's text.

    Waudby-Smith and Ramdas, JRSS B 2024; Orabona and Jun, IEEE Trans. Inf. Theory 2024.

    >>> round(lower_bound([0.5, 0.75, 1.0] * 30), 2)
    0.69
    """
    return joint_lower_bound([(np.asarray(values, dtype=float), 0.0)], confidence)


def joint_lower_bound(bets: Sequence[tuple[F64, float]], confidence: float) -> float:
    """A bound below one average mean from several sequences that have it, each at least −``shift``.

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
    low, high = 0.0, max(1.0, *(float(values.max(initial=0.0)) for values, _ in bets))
    if log_capital(low) < limit:
        return low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if log_capital(middle) >= limit else (low, middle)
    return low


def _scaled(values: F64, shift: float) -> F64:
    scaled = (values + shift) / (1 + shift)
    if not np.isfinite(scaled).all() or (scaled < -1e-9).any():
        raise WrongValue("values", f"must be finite and at least {-shift}, got {values.min()}")
    return np.maximum(scaled, 0.0)


def interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """An interval for the average mean of values from 0 to 1, at all times at once with probability ``confidence``.

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
    """``confidence`` if it is a probability that can be promised."""
    if not 0 < check_number("confidence", confidence) < 1:
        raise WrongValue("confidence", f"must be between 0 and 1, got {confidence}", code="out_of_range")
    return confidence
