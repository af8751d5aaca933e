"""The bounds of the paper, and the Lai–Robbins lower bound, as functions of gaps, horizon and parameters.

Each takes a horizon or an array of them and returns as many values. Where the paper's statement is misprinted, the
corrected form is computed, and the docstring says what was changed. "The paper" is Cesa-Bianchi, Gentile, Lugosi, Neu:
Boltzmann Exploration Done Right, NeurIPS 2017.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm.formula import NonNegative, Positive, check_count, check_number, rule_of

EXP_GAMMA = math.exp(np.euler_gamma)

Values = NDArray[np.float64]


def _positive(**values: Any) -> tuple[float, ...]:
    return tuple(check_number(name, value, rule_of(Positive)) for name, value in values.items())


def _gaps(gaps: ArrayLike) -> Values:
    """The positive gaps; the best arm's zero does not count."""
    array = np.atleast_1d(np.asarray(gaps, dtype=float))
    if array.ndim != 1 or not np.isfinite(array).all() or (array < 0).any() or not (array > 0).any():
        raise ValueError(f"gaps must be non-negative numbers, one at least positive, got {np.asarray(gaps).tolist()}")
    return array[array > 0]


def _horizons(horizon: ArrayLike) -> Values:
    array = np.asarray(horizon, dtype=float)
    if not np.isfinite(array).all() or (array < 1).any():
        raise ValueError(f"horizon must be at least 1, got {np.asarray(horizon).tolist()}")
    return array


def lai_robbins(gaps: ArrayLike, horizon: ArrayLike, sigma: float = 1.0) -> Values:
    """The least regret, asymptotically, of any consistent policy when rewards are Gaussian with variance σ².

    R_T ≥ Σ_i (2σ²/Δ_i) log T · (1 + o(1)).  Lai and Robbins 1985.

    >>> float(lai_robbins([0.0, 0.5], horizon=np.e))
    4.0
    """
    (sigma,) = _positive(sigma=sigma)
    factor = float(np.sum(2 * sigma**2 / _gaps(gaps)))
    return factor * np.log(_horizons(horizon))


def bernoulli_divergence(p: ArrayLike, q: ArrayLike) -> Values:
    """kl(p, q) = p log(p/q) + (1−p) log((1−p)/(1−q)), the divergence of two Bernoulli laws.

    >>> float(bernoulli_divergence(0.5, 0.5))
    0.0
    """
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    for name, value in (("p", p), ("q", q)):
        if not ((value >= 0) & (value <= 1)).all():
            raise ValueError(f"{name} must be between 0 and 1, got {value.tolist()}")
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(p > 0, p * np.log(p / q), 0.0)
        miss = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return hit + miss


def lai_robbins_bernoulli(means: ArrayLike, horizon: ArrayLike) -> Values:
    """The least regret, asymptotically, of any consistent policy when rewards are Bernoulli.

    R_T ≥ Σ_i Δ_i / kl(μ_i, μ*) · log T · (1 + o(1)).  Lai and Robbins 1985.

    >>> float(lai_robbins_bernoulli([0.5, 0.5 + 1e-4], 10)) / float(lai_robbins([1e-4], 10, sigma=0.5)) > 0.99
    True
    """
    means = np.asarray(means, dtype=float)
    best = means.max()
    gaps = best - means
    worse = gaps > 0
    _gaps(gaps)
    factor = float(np.sum(gaps[worse] / bernoulli_divergence(means[worse], best)))
    return factor * np.log(_horizons(horizon))


def exploration(gap: float, horizon: float, sigma: float = 1.0) -> int:
    """The pulls of each of two Gaussian arms after which to commit, if gap and horizon are known.

    ⌈2 W(T²Δ⁴ / (32π)) / Δ²⌉ for variance 1, W being Lambert's function: W e^W = its argument.  Garivier, Kaufmann,
    Lattimore: On Explore-Then-Commit Strategies, NeurIPS 2016.

    >>> exploration(gap=0.5, horizon=10_000)
    71
    """
    gap, horizon, sigma = _positive(gap=gap, horizon=horizon, sigma=sigma)
    delta = gap / sigma
    argument = (horizon * delta**2) ** 2 / (32 * math.pi)
    if not 0 < argument < math.inf:
        raise ValueError(f"gap and horizon must be of a usual size, got {gap} and {horizon}")
    w = math.log1p(argument)  # above W, from where Newton's method for w + log w = log(argument) descends to it
    for _ in range(50):
        w -= w * (w + math.log(w / argument)) / (1 + w)
    return math.ceil(2 * w / delta**2)


def proposition1(gap: float, horizon: ArrayLike, temperature: Callable[[Values], ArrayLike]) -> Values:
    """The exact regret of Boltzmann exploration with two arms when the means are known all along.

    R_T = Δ Σ_{t=1}^T 1 / (1 + e^{Δ/β_t}), β_t = temperature(t).

    It grows faster than log(T)/Δ unless 1/β_t grows at least like log(tΔ²)/Δ; a temperature of 0 is greedy.

    >>> float(proposition1(0.5, 100, lambda t: np.inf * t))
    25.0
    """
    (gap,) = _positive(gap=gap)
    horizons = _horizons(horizon)
    t = np.arange(1.0, math.floor(horizons.max()) + 1)
    with np.errstate(divide="ignore"):
        exponent = gap / np.broadcast_to(np.asarray(temperature(t), dtype=float), t.shape)
    regret: Values = np.cumsum(gap * np.exp(-np.logaddexp(0.0, exponent)))
    return np.asarray(regret[np.floor(horizons).astype(int) - 1])


def theorem2_start(c: float) -> int:
    """t_0 = ⌈(2/a)^{1/a}⌉ with a = c/2 − 1: from here on Σ e^{−η_t/2} ≤ 1/2 for η_t ≥ c log t.

    Printed as (2a)^{1/a}; the integral in the proof is t_0^{−a}/a.

    >>> theorem2_start(4.0)
    2
    """
    c = check_number("c", c)
    if c <= 2:
        raise ValueError(f"c must be larger than 2, got {c}")
    a = c / 2 - 1
    return math.ceil(math.pow(2 / a, 1 / a))


def theorem2(gap: float, horizon: ArrayLike, c: float) -> Values:
    """A lower bound on the regret of Boltzmann exploration whose learning rate is η_t ≥ c log t, c > 2: linear in T.

    R_T ≥ Δ (T − t_0) (1/2 − Δ)^{t_0} / 2, for arm 2 paying 1/2 always and arm 1 Bernoulli with mean 1/2 + Δ.

    >>> float(theorem2(0.25, 102, c=4.0))
    0.78125
    """
    gap = check_number("gap", gap)
    if not 0 < gap < 0.5:
        raise ValueError(f"gap must be between 0 and 1/2, got {gap}")
    start = theorem2_start(c)
    return gap * np.maximum(_horizons(horizon) - start, 0) * (0.5 - gap) ** start / 2


def theorem3(gap: float, arms: int, horizon: ArrayLike) -> Values:
    """An upper bound on the suboptimal pulls of the two-phase schedule, and so on its regret when gaps are at most 1.

    R_T ≤ 16 e K log(T) / Δ² + 9 K / Δ², for rewards in [0, 1] and the smallest gap Δ.

    >>> round(float(theorem3(0.5, 2, 1)), 3)
    72.0
    """
    (gap,) = _positive(gap=gap)
    arms = check_count("arms", arms, least=2)
    return (16 * math.e * arms * np.log(_horizons(horizon)) + 9 * arms) / gap**2


def theorem4(gaps: ArrayLike, horizon: ArrayLike, C: float, sigma: float, c: float | None = None) -> Values:
    """An upper bound on the regret of BGE with parameter C when rewards are σ²-subgaussian, for any C.

    R_T ≤ Σ_i [ 9C² log₊²(TΔ_i²/c²) + c² e^γ + 18C² e^{σ²/2C²} (1 + e^{−γ}) ] / Δ_i + Σ_i Δ_i,  any c > 0.

    log₊ = max{0, log}; printed with TΔ_i/c² inside, the proof has TΔ_i²/c². Without ``c``, the paper's c = σ. A C
    below σ is paid for by the factor e^{σ²/2C²}.

    >>> bool(theorem4([0.1], 1e6, C=0.5, sigma=0.5) < theorem4([0.1], 1e6, C=0.125, sigma=0.5))
    True
    """
    return _bge_bound(
        gaps, horizon, C, check_number("sigma", sigma, rule_of(NonNegative)) ** 2, sigma if c is None else c
    )


def theorem6(gaps: ArrayLike, horizon: ArrayLike, C: float, moment: float, c: float | None = None) -> Values:
    """Theorem 4's bound for BGE with Catoni's estimator, for rewards with E[X²] ≤ V = ``moment``: V in place of σ².

    >>> float(theorem6([0.1], 1e6, C=0.5, moment=0.25)) == float(theorem4([0.1], 1e6, C=0.5, sigma=0.5))
    True
    """
    (moment,) = _positive(moment=moment)
    return _bge_bound(gaps, horizon, C, moment, math.sqrt(moment) if c is None else c)


def _bge_bound(gaps: ArrayLike, horizon: ArrayLike, C: float, variance: float, c: float) -> Values:
    C, c = _positive(C=C, c=c)
    delta, horizons = _gaps(gaps), _horizons(horizon)[..., None]
    logarithm = np.maximum(np.log(horizons * delta**2 / c**2), 0.0)
    with np.errstate(over="ignore"):  # a C far below σ gives a bound of infinity
        constant = c**2 * EXP_GAMMA + 18 * C**2 * np.exp(variance / (2 * C**2)) * (1 + 1 / EXP_GAMMA)
    return np.asarray(np.sum((9 * C**2 * logarithm**2 + constant) / delta + delta, axis=-1))


def corollary1(arms: int, horizon: ArrayLike, sigma: float) -> Values:
    """An upper bound on the regret of BGE with C = σ that holds for all gaps: R_T ≤ 200 σ √(KT) log K.

    >>> round(float(corollary1(2, 100, 0.5)), 1)
    980.3
    """
    (sigma,) = _positive(sigma=sigma)
    arms = check_count("arms", arms, least=2)
    return 200 * sigma * np.sqrt(arms * _horizons(horizon)) * math.log(arms)


def theorem5(arms: int, horizon: ArrayLike, constant: float = 0.5) -> Values:
    """A lower bound on the regret of BGE with C = 1 on its worst problem: R_T ≥ ½ √(KT) log K, if √(K/T) log K ≤ 1.

    The problem: the best arm pays √(K/T) log K always, the others 0. The ½ is not proven as printed, the proof's last
    display drops the factors P[Z < 0] and P[A]; ``constant`` takes another one.

    >>> round(float(theorem5(10, 1_000)), 2)
    115.13
    """
    arms = check_count("arms", arms, least=2)
    (constant,) = _positive(constant=constant)
    horizons = _horizons(horizon)
    if (np.sqrt(arms / horizons) * math.log(arms) > 1).any():
        raise ValueError(
            f"horizon must be at least K log²K = {arms * math.log(arms) ** 2:.1f}, got {horizons.tolist()}"
        )
    return constant * np.sqrt(arms * horizons) * math.log(arms)
