"""Bounds on regret: those of the paper, those that it quotes, and the Lai–Robbins lower bound.

Each takes a horizon or an array of them and returns as many values. Where the paper's statement is misprinted or wrong,
the docstring says what is computed instead; docs/paper.md has the whole list. "The paper" is Cesa-Bianchi, Gentile,
Lugosi, Neu: Boltzmann Exploration Done Right, NeurIPS 2017. Constants of other authors that were written down without
the printed page at hand are marked "from memory".

Parameters that all of them share
---------------------------------
gaps, gap
    Δ_i: how far the mean of each arm is below the best one; those that are 0 do not count. Or one gap Δ for all.
arms
    K, the number of arms.
horizon
    T, the number of rounds, or an array of such numbers.
sigma, moment
    σ, where rewards are σ²-subgaussian, and V, a bound on E[X²].
C, c
    The parameter of BGE, and a constant of the bound that may be chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm.formula import NonNegative, Positive, check_count, check_number, rule_of
from rightarm.problems import Bernoulli, Gaussian, Problem
from rightarm.problems.random import AnyProblem

EXP_GAMMA = math.exp(np.euler_gamma)
LARGEST_LOG = math.log(1e300)  # beyond it a count is infinity

Values = NDArray[np.float64]
Bound = Callable[[ArrayLike], Values]


def _positive(name: str, value: float) -> float:
    return check_number(name, value, rule_of(Positive))


def _gaps(gaps: ArrayLike) -> Values:
    """Return the positive gaps; the best arm's zero does not count."""
    array = np.atleast_1d(np.asarray(gaps, dtype=float))
    if array.ndim != 1 or not np.isfinite(array).all() or (array < 0).any() or not (array > 0).any():
        raise ValueError(f"gaps must be non-negative numbers, one at least positive, got {np.asarray(gaps).tolist()}")
    return array[array > 0]


def _horizons(horizon: ArrayLike) -> Values:
    array = np.asarray(horizon, dtype=float)
    if not np.isfinite(array).all() or (array < 1).any():
        raise ValueError(f"horizon must be at least 1, got {np.asarray(horizon).tolist()}")
    return array


def _half_gap(gap: float) -> float:
    """Return the gap of a coin of mean 1/2 + gap."""
    gap = check_number("gap", gap)
    if not 0 < gap < 0.5:
        raise ValueError(f"gap must be between 0 and 1/2, got {gap}")
    return gap


def lai_robbins(gaps: ArrayLike, horizon: ArrayLike, sigma: float = 1.0) -> Values:
    """Return the least regret, asymptotically, of any consistent policy when rewards are Gaussian with variance σ².

    R_T ≥ Σ_i (2σ²/Δ_i) log T · (1 + o(1)).  Lai and Robbins 1985.

    >>> float(lai_robbins([0.0, 0.5], horizon=np.e))
    4.0
    """
    sigma = _positive("sigma", sigma)
    factor = float(np.sum(2 * sigma**2 / _gaps(gaps)))
    return factor * np.log(_horizons(horizon))


def bernoulli_divergence(p: ArrayLike, q: ArrayLike) -> Values:
    """Return kl(p, q) = p log(p/q) + (1−p) log((1−p)/(1−q)), the divergence of two Bernoulli distributions.

    >>> float(bernoulli_divergence(0.5, 0.5))
    0.0
    """
    p = np.asarray(p, dtype=float)
    q = np.asarray(q, dtype=float)
    for name, value in (("p", p), ("q", q)):
        if not ((value >= 0) & (value <= 1)).all():
            raise ValueError(f"{name} must be between 0 and 1, got {value.tolist()}")
    with np.errstate(divide="ignore", invalid="ignore"):
        hit = np.where(p > 0, p * np.log(p / q), 0.0)
        miss = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return hit + miss


def lai_robbins_bernoulli(means: ArrayLike, horizon: ArrayLike) -> Values:
    """Return the least regret, asymptotically, of any consistent policy when rewards are Bernoulli.

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


def lower_bound(problem: AnyProblem) -> Bound | None:
    """Return the Lai–Robbins lower bound for a problem as a function of the horizon, or None where there is none here.

    There is one for Bernoulli rewards with means below 1, and for Gaussian rewards with one variance, if means differ.

    >>> bound = lower_bound(Gaussian([0.0, 0.5]))
    >>> float(bound(np.e))
    4.0
    """
    if not isinstance(problem, Problem) or not (problem.gaps > 0).any():
        return None
    if problem.family is Bernoulli and problem.means.max() < 1:
        return lambda horizon: lai_robbins_bernoulli(problem.means, horizon)
    sigmas = set(problem.values.get("sigma", ()))
    if problem.family is Gaussian and len(sigmas) == 1 and min(sigmas) > 0:
        return lambda horizon: lai_robbins(problem.gaps, horizon, sigma=min(sigmas))
    return None


def exploration(gap: float, horizon: float, sigma: float = 1.0) -> int:
    """Return the pulls of each of two Gaussian arms after which to commit, given gap and horizon.

    ⌈2 W(T²Δ⁴ / (32π)) / Δ²⌉ for variance 1, W being Lambert's function: W e^W = its argument.  Garivier, Kaufmann,
    Lattimore: On Explore-Then-Commit Strategies, NeurIPS 2016.

    >>> exploration(gap=0.5, horizon=10_000)
    71
    """
    gap = _positive("gap", gap)
    horizon = _positive("horizon", horizon)
    sigma = _positive("sigma", sigma)
    delta = gap / sigma
    argument = (horizon * delta**2) ** 2 / (32 * math.pi)
    if not 0 < argument < math.inf:
        raise ValueError(f"gap and horizon must be of a usual size, got {gap} and {horizon}")
    w = math.log1p(argument)  # above W, from where Newton's method for w + log w = log(argument) descends to it
    for _ in range(50):
        w -= w * (w + math.log(w / argument)) / (1 + w)
    return math.ceil(2 * w / delta**2)


def proposition1(gap: float, horizon: ArrayLike, temperature: Callable[[Values], ArrayLike]) -> Values:
    """Return the exact regret of Boltzmann exploration with two arms when the means are known all along.

    R_T = Δ Σ_{t=1}^T 1 / (1 + e^{Δ/β_t}), β_t = temperature(t).

    It grows faster than log(T)/Δ unless 1/β_t grows at least like log(tΔ²)/Δ; a temperature of 0 is greedy.

    >>> float(proposition1(0.5, 100, lambda t: np.inf * t))
    25.0
    """
    gap = _positive("gap", gap)
    horizons = _horizons(horizon)
    t = np.arange(1.0, math.floor(horizons.max()) + 1)
    with np.errstate(divide="ignore"):
        exponent = gap / np.broadcast_to(np.asarray(temperature(t), dtype=float), t.shape)
    regret: Values = np.cumsum(gap * np.exp(-np.logaddexp(0.0, exponent)))
    return np.asarray(regret[np.floor(horizons).astype(int) - 1])


def theorem2_start(c: float) -> float:
    """Return t_0 = ⌈(2/a)^{1/a}⌉ with a = c/2 − 1: from here on Σ e^{−η_t/2} ≤ 1/2 for η_t ≥ c log t.

    Printed as (2a)^{1/a}; the integral in the proof is t_0^{−a}/a. Near c = 2 it is beyond all numbers: infinity.

    >>> theorem2_start(4.0), theorem2_start(2.01)
    (2.0, inf)
    """
    c = check_number("c", c)
    if c <= 2:
        raise ValueError(f"c must be larger than 2, got {c}")
    a = c / 2 - 1
    logarithm = math.log(2 / a) / a
    return float(math.ceil(math.pow(2 / a, 1 / a))) if logarithm < LARGEST_LOG else math.inf


def theorem2(gap: float, horizon: ArrayLike, c: float) -> Values:
    """Return a lower bound, linear in T, on the regret of Boltzmann exploration whose rate is η_t ≥ c log t, c > 2.

    R_T ≥ Δ (T − t_0) (1/2 − Δ)^{t_0} / 2, for arm 2 paying 1/2 always and arm 1 Bernoulli with mean 1/2 + Δ.

    This is what the proof shows. The theorem states linear regret for all η_t > 2 log t, on some problem. On this one
    that is false: at η_t = 2 log t + 0.01 the regret grows like T^{1−2Δ} (`theorem2_power`). But the statement is true:
    `theorem2_stuck` has a problem whose sure arm pays more than 1/2, and there it holds.

    >>> float(theorem2(0.25, 102, c=4.0))
    0.78125
    """
    gap = _half_gap(gap)
    start = theorem2_start(c)
    return np.asarray(gap * np.maximum(_horizons(horizon) - start, 0) * (0.5 - gap) ** start / 2)


def theorem2_stuck(sure: float, chance: float, horizon: int, rate: Callable[[Values], ArrayLike]) -> float:
    """Return the exact probability that Boltzmann exploration never comes back to the better of two arms up to round T.

    P = (1 − p) Π_{t=3}^T (1 − 1/(1 + e^{r η_t})), η_t = rate(t): arm 2 pays r = ``sure`` always; arm 1 pays 1 with
    probability p = ``chance``, else 0. Both are pulled once, and arm 1 pays 0 then.

    The regret is at least (p − r)(T − 1) P. With η_t = c log t, P stays above 0 for ever if c r > 1. P rises with every
    η_t, so the rate 2 log t is the worst case of Theorem 2: with r = 0.9 and p = 0.95, P is at least 0.028 for every T
    and every η_t > 2 log t, and the regret at least 0.0014 (T − 1). This proves the theorem's statement.

    >>> float(round(theorem2_stuck(0.9, 0.95, 100_000, lambda t: 2 * np.log(t) + 0.01), 4))
    0.0282
    """
    chance = check_number("chance", chance)
    sure = check_number("sure", sure)
    if not 0 < sure < chance < 1:
        raise ValueError(f"sure and chance must fulfil 0 < sure < chance < 1, got {sure} and {chance}")
    t = np.arange(3.0, check_count("horizon", horizon, least=2) + 1)
    away = np.logaddexp(0.0, sure * np.asarray(rate(t), dtype=float))  # log(1 + e^{r η})
    return float((1 - chance) * np.exp(np.sum(np.log1p(-np.exp(-away)))))


def theorem2_power(gap: float) -> float:
    """Return the power of T by which regret grows on the problem of Theorem 2's proof at η_t = 2 log t + 0.01: 1 − 2Δ.

    Once the means are known, the sure arm is pulled with a probability of about e^{−Δη_t} = t^{−2Δ}, whose sum over the
    rounds is of order T^{1−2Δ}. Runs that have seen nothing but zeros of the coin pull it about log t times up to round
    t, so that about t^{−1/2−Δ} of them are left; their sum is of order T^{1/2−Δ}, which is less.

    >>> theorem2_power(0.25)
    0.5
    """
    return 1 - 2 * _half_gap(gap)


def theorem3_start(gap: float, arms: int, horizon: ArrayLike) -> Values:
    """Return τ = 16 e K log(T) / Δ², the round from which the schedule of Theorem 3 is in its second phase.

    >>> round(float(theorem3_start(0.5, 5, 10_000)))
    8012
    """
    gap = _positive("gap", gap)
    return 16 * math.e * check_count("arms", arms, least=2) * np.log(_horizons(horizon)) / gap**2


def theorem3(gap: float, arms: int, horizon: ArrayLike) -> Values:
    """Return the paper's upper bound on the suboptimal pulls of the two-phase schedule; for many arms it is false.

    R_T ≤ 16 e K log(T) / Δ² + 9 K / Δ², for rewards in [0, 1] and the smallest gap Δ (at most 1).

    The printed proof is broken: with η_t = log(tΔ²)/Δ its sum Σ e^{−η_tΔ/2} is about 2√T/Δ, not log(T+1)/Δ². And with
    1,000 arms, of which one pays 1 always and the others 0, `theorem3_known` is above it from T = 10^11.3 on
    (`theorem3_exceeded`). We know of no proof for few arms; simulations are below the bound there. `theorem3_repaired`
    is a bound that the proof's steps do show, for twice the learning rate.

    >>> round(float(theorem3(0.5, 2, 1)), 3)
    72.0
    >>> bool(theorem3_known(1.0, 1_000, 1e12) > theorem3(1.0, 1_000, 1e12))
    True
    """
    gap = _positive("gap", gap)
    return theorem3_start(gap, arms, horizon) + 9 * arms / gap**2


def theorem3_known(gap: float, arms: int, horizon: ArrayLike) -> Values:
    """Bound the suboptimal pulls of Theorem 3's schedule from below, when the means are known and all gaps are Δ.

    τ' (K−1)/(K−1+e^Δ) + Σ_{τ ≤ t ≤ T} (K−1)/(K−1+tΔ²),  τ' = min{⌈τ⌉ − 1, T}: the sum by its integral, which is less.

    Known means are what rewards without noise give after one pull of each arm, which costs no less.

    >>> round(float(theorem3_known(0.5, 2, 100)), 1)
    37.8
    """
    first = _first_phase(gap, arms, horizon)
    others = arms - 1
    return first * others / (others + math.exp(gap)) + theorem3_second(gap, arms, horizon)


def theorem3_second(gap: float, arms: int, horizon: ArrayLike) -> Values:
    """Return the part of `theorem3_known` that belongs to the second phase: about (K−1) log(T/τ)/Δ².

    >>> round(float(theorem3_second(1.0, 1_000, 1e12)))
    13617
    """
    gap = _positive("gap", gap)
    first = _first_phase(gap, arms, horizon)
    offset = (arms - 1) / gap**2
    return np.asarray(offset * np.log((_horizons(horizon) + 1 + offset) / (first + 1 + offset)))


def _first_phase(gap: float, arms: int, horizon: ArrayLike) -> Values:
    """Return the rounds before τ."""
    return np.asarray(np.minimum(np.ceil(theorem3_start(gap, arms, horizon)) - 1, _horizons(horizon)))


def theorem3_exceeded(arms: int, gap: float = 1.0) -> float:
    """Return log₁₀ of the first T at which `theorem3_known` exceeds the bound of Theorem 3; infinity if it never does.

    As T grows, the excess divided by K log(T)/Δ² tends to (K−1)/K − 16e·e^Δ/(K−1+e^Δ), which is positive from 118 arms
    on if the gap is 1, and from 45 on as the gap goes to 0. The pulls of this example are always less than
    1 + 1/(16e) = 1.023 times the bound, and come close to that as first T and then K grow. That is no limit for other
    problems: rewards with noise may exceed the bound earlier and by more.

    >>> [round(theorem3_exceeded(arms), 1) for arms in (1_000, 500, 200, 100)]
    [11.3, 12.7, 23.4, inf]
    """
    gap = _positive("gap", gap)
    others = check_count("arms", arms, least=2) - 1
    # of the first phase the best arm has this share
    best = math.exp(gap) / (others + math.exp(gap))
    if others <= 16 * math.e * arms * best:
        return math.inf

    def excess(log_horizon: float) -> float:
        """Return pulls minus bound, times Δ²; without rounding τ, which does not matter at this size."""
        start = 16 * math.e * arms * log_horizon
        end = np.logaddexp(log_horizon + 2 * math.log(gap), math.log(others))
        return others * float(end - math.log(start + others)) - best * start - 9 * arms

    low = 1.0
    high = 2.0
    while excess(high) < 0:
        low = high
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if excess(middle) < 0:
            low = middle
        else:
            high = middle
    return high / math.log(10)


def theorem3_repaired(gap: float, arms: int, horizon: ArrayLike) -> Values:
    """Return the bound on suboptimal pulls that Theorem 3's proof does show, for the learning rate 2 log(tΔ²)/Δ.

    R_T ≤ 16 e K log(T) / Δ² + K log(T+1)/Δ² + 2 K (1 + 8/Δ²): the last display of the proof drops the second term and
    one of the two last.

    >>> bool(theorem3_repaired(1.0, 1_000, 1e12) > theorem3_known(1.0, 1_000, 1e12))
    True
    """
    gap = _positive("gap", gap)
    more = arms * np.log(_horizons(horizon) + 1) / gap**2 + 2 * arms * (1 + 8 / gap**2)
    return np.asarray(theorem3_start(gap, arms, horizon) + more)


def theorem4(gaps: ArrayLike, horizon: ArrayLike, C: float, sigma: float, c: float | None = None) -> Values:
    """Return an upper bound on the regret of BGE with parameter C when rewards are σ²-subgaussian, for any C.

    R_T ≤ Σ_i [ 9C² log₊²(TΔ_i²/c²) + c² e^γ + 18C² e^{σ²/2C²} (1 + e^{−γ}) ] / Δ_i + Σ_i Δ_i,  any c > 0.

    log₊ = max{0, log}; printed with TΔ_i/c² inside, the proof has TΔ_i²/c². Without ``c``, the paper's c = σ. A C
    below σ is paid for by the factor e^{σ²/2C²}.

    >>> bool(theorem4([0.1], 1e6, C=0.5, sigma=0.5) < theorem4([0.1], 1e6, C=0.125, sigma=0.5))
    True
    """
    variance = check_number("sigma", sigma, rule_of(NonNegative)) ** 2
    return _bge_bound(gaps, horizon, C, variance=variance, c=sigma if c is None else c)


def theorem6(gaps: ArrayLike, horizon: ArrayLike, C: float, moment: float, c: float | None = None) -> Values:
    """Return Theorem 4's bound for BGE with Catoni's estimator, for rewards with E[X²] ≤ V = ``moment``: V for σ².

    >>> float(theorem6([0.1], 1e6, C=0.5, moment=0.25)) == float(theorem4([0.1], 1e6, C=0.5, sigma=0.5))
    True
    """
    moment = _positive("moment", moment)
    return _bge_bound(gaps, horizon, C, variance=moment, c=math.sqrt(moment) if c is None else c)


def _bge_bound(gaps: ArrayLike, horizon: ArrayLike, C: float, variance: float, c: float) -> Values:
    C = _positive("C", C)
    c = _positive("c", c)
    delta = _gaps(gaps)
    horizons = _horizons(horizon)[..., None]
    logarithm = np.maximum(np.log(horizons * delta**2 / c**2), 0.0)
    with np.errstate(over="ignore"):  # a C far below σ gives a bound of infinity
        constant = c**2 * EXP_GAMMA + 18 * C**2 * np.exp(variance / (2 * C**2)) * (1 + 1 / EXP_GAMMA)
    return np.asarray(np.sum((9 * C**2 * logarithm**2 + constant) / delta + delta, axis=-1))


def lemma1(gap: float, horizon: int, C: float, sigma: float) -> float:
    """Return Lemma 1's bound on the pulls of an arm while its mean is above μ_i + Δ_i/3; the first pull counts.

    1 + e^{σ²/2C²} Σ_{k=1}^{T−1} e^{−Δ_i√k/(3C)},  for σ²-subgaussian rewards; for Catoni's estimator σ = √V.

    >>> round(lemma1(0.5, 3_000, C=1.0, sigma=1.0))
    119
    """
    return 1 + _moment_bound(C, sigma) * _root_sum(gap, horizon, C)


def lemma2(gap: float, horizon: int, C: float, sigma: float) -> float:
    """Return Lemma 2's bound on the pulls of an arm while neither its mean nor its noise is too high.

    e^{−γ} e^{σ²/2C²} Σ_{k=1}^{T−1} e^{−Δ_i√k/(3C)}. Printed with k = 0 too, when the best arm has no mean; every arm is
    pulled once first.

    >>> round(lemma2(0.5, 3_000, C=1.0, sigma=1.0))
    66
    """
    return _moment_bound(C, sigma) * _root_sum(gap, horizon, C) / EXP_GAMMA


def lemma3(gap: float, horizon: ArrayLike, C: float, c: float) -> Values:
    """Return Lemma 3's bound on the pulls of an arm whose mean is not too high, but whose noise is: μ̃_i > μ_1 − Δ_i/3.

    [ 9C² log₊²(TΔ_i²/c²) + c² e^γ ] / Δ_i²,  any c > 0.

    >>> round(float(lemma3(0.5, 3_000, C=1.0, c=1.0)))
    1585
    """
    gap = _positive("gap", gap)
    C = _positive("C", C)
    c = _positive("c", c)
    logarithm = np.maximum(np.log(_horizons(horizon) * gap**2 / c**2), 0.0)
    return (9 * C**2 * logarithm**2 + c**2 * EXP_GAMMA) / gap**2


def catoni_moment(moment: float, C: float) -> float:
    """Return the bound of equation (catoni): E exp(±(μ − μ̂)/β) ≤ e^{V/2C²}, μ̂ Catoni's estimate of n rewards, β = C/√n.

    For rewards with E[X²] ≤ V = ``moment``, and every n.  Catoni 2012, proposition 2.1.

    >>> round(catoni_moment(4.0, C=2.0), 3)
    1.649
    """
    moment = _positive("moment", moment)
    return _moment_bound(C, math.sqrt(moment))


def _moment_bound(C: float, sigma: float) -> float:
    C = _positive("C", C)
    sigma = _positive("sigma", sigma)
    exponent = sigma**2 / (2 * C**2)
    return math.exp(exponent) if exponent < LARGEST_LOG else math.inf


def _root_sum(gap: float, horizon: int, C: float) -> float:
    """Return Σ_{k=1}^{T−1} e^{−Δ√k/(3C)}, which is at most 18C²/Δ²."""
    gap = _positive("gap", gap)
    C = _positive("C", C)
    return float(np.exp(-gap * np.sqrt(np.arange(1.0, check_count("horizon", horizon))) / (3 * C)).sum())


def corollary1(arms: int, horizon: ArrayLike, sigma: float, gaps: ArrayLike = 0.0) -> Values:
    """Return 200 σ √(KT) log K + Σ_i Δ_i: a bound on the regret of BGE with C = σ, whatever the gaps are.

    Printed without Σ_i Δ_i, the price of pulling every arm once; so, without ``gaps``, it is false where they are large
    against σ: means 10⁴ and 0, σ = 1 and T = 100 give a regret of at least 10⁴ against 1,960. For rewards in an
    interval, whatever its length B = 2σ, gaps cannot be so large, and the printed bound holds (`corollary1_constant`).
    For rewards with E[X²] ≤ V and Catoni's estimator σ = C = √V.

    >>> round(float(corollary1(2, 100, 1.0))), round(float(corollary1(2, 100, 1.0, gaps=[0.0, 1e4])))
    (1961, 11961)
    """
    sigma = _positive("sigma", sigma)
    arms = check_count("arms", arms, least=2)
    once = float(np.sum(np.asarray(gaps, dtype=float)))
    return 200 * sigma * np.sqrt(arms * _horizons(horizon)) * math.log(arms) + once


def corollary1_constant(arms: int) -> float:
    """Return what the proof of Corollary 1 gives in the place of 200 if rewards lie in an interval of length B = 2σ.

    1 + (A + 9 log₊²(K log²K))/log²K + 2/log K,  A = e^γ + 18√e (1 + e^{−γ}) ≈ 48.1

    Gaps up to σ√(K/T) log K cost at most that times T; the others what Theorem 4 says, where (A + 9 log₊² x²)/x falls
    in x = Δ√T/σ. The last term is Σ_i Δ_i ≤ 2σ√(KT): there are fewer than K gaps of at most 2σ if T ≥ K, and the whole
    regret is at most 2σT else. It is largest at K = 2. Without the last term it belongs to `corollary1` with gaps.

    >>> round(corollary1_constant(2), 1), round(corollary1_constant(10), 1)
    (104.0, 37.7)
    """
    log = math.log(check_count("arms", arms, least=2))
    constant = EXP_GAMMA + 18 * math.sqrt(math.e) * (1 + 1 / EXP_GAMMA)
    return 1 + (constant + 9 * max(math.log(arms * log**2), 0.0) ** 2) / log**2 + 2 / log


def ucb1(gaps: ArrayLike, horizon: ArrayLike) -> Values:
    """Return an upper bound on the regret of UCB1 for rewards in [0, 1]: Σ_i 8 log(T)/Δ_i + (1 + π²/3) Σ_i Δ_i.

    Auer, Cesa-Bianchi, Fischer 2002, theorem 1.

    >>> round(float(ucb1([0.0, 0.5], np.e)), 3)
    18.145
    """
    delta = _gaps(gaps)
    return np.asarray(np.sum(8 / delta) * np.log(_horizons(horizon)) + (1 + math.pi**2 / 3) * delta.sum())


def ucb1_free(arms: int, horizon: ArrayLike, gaps: ArrayLike) -> Values:
    """Return UCB1's bound for all gaps, of order √(KT log T), for rewards in [0, 1].

    R_T ≤ 4 √(2KT log T) + (1 + π²/3) Σ_i Δ_i: gaps below √(8K log(T)/T) cost at most that times T, for the others the
    bound of `ucb1` is at most as large.

    >>> round(float(ucb1_free(10, 1e6, gaps=0.0)))
    66490
    """
    arms = check_count("arms", arms, least=2)
    horizons = _horizons(horizon)
    once = (1 + math.pi**2 / 3) * float(np.sum(np.asarray(gaps, dtype=float)))
    return 4 * np.sqrt(2 * arms * horizons * np.log(horizons)) + once


def moss(arms: int, horizon: ArrayLike) -> Values:
    """Return MOSS's bound for all gaps, rewards in [0, 1]: 49 √(KT).  Audibert and Bubeck 2009; the 49 is from memory.

    >>> float(moss(4, 100))
    980.0
    """
    return 49 * np.sqrt(check_count("arms", arms, least=2) * _horizons(horizon))


def ucb_improved(gaps: ArrayLike, horizon: ArrayLike, least: float | None = None) -> Values:
    """Return an upper bound on the regret of UCB-Improved for rewards in [0, 1], of order Σ_i log(TΔ_i²)/Δ_i.

    Σ_{Δ_i > λ} (Δ_i + 32 log(TΔ_i²)/Δ_i + 96/Δ_i) + Σ_{0 < Δ_i ≤ λ} 64/λ + max_{Δ_i ≤ λ} Δ_i T, any λ ≥ √(e/T); without
    ``least`` λ = √(e/T).  Auer and Ortner 2010, theorem 3.1; its 32, 96 and 64 are from memory.

    >>> round(float(ucb_improved([0.0, 0.5], 10_000)), 1)
    693.2
    """
    delta = _gaps(gaps)
    horizons = _horizons(horizon)[..., None]
    limit = np.sqrt(math.e / horizons) if least is None else np.full_like(horizons, check_number("least", least))
    if (limit < np.sqrt(math.e / horizons) * (1 - 1e-12)).any():
        raise ValueError(f"least must be at least √(e/T), got {least}")
    far = delta > limit
    apart = delta + (32 * np.log(np.maximum(horizons * delta**2, 1.0)) + 96) / delta
    near = np.where(far, 0.0, delta).max(axis=-1) * horizons[..., 0]
    return np.asarray(np.where(far, apart, 64 / limit).sum(axis=-1) + near)


ORDERS: dict[str, Callable[[float, Values], Values]] = {
    "√(KT)": lambda K, T: np.sqrt(K * T),
    "√(KT log K)": lambda K, T: np.sqrt(K * T * np.log(K)),
    "√(KT) log K": lambda K, T: np.sqrt(K * T) * np.log(K),
    "√(KT log T)": lambda K, T: np.sqrt(K * T * np.log(T)),
}


def order(name: str, arms: int, horizon: ArrayLike) -> Values:
    """Return an order of regret that the paper quotes, for all gaps and without its constant: a unit, no bound.

    √(KT): MOSS.  √(KT log K): UCB-Improved, and Gaussian Thompson sampling (Agrawal and Goyal 2013, who give no
    constant).  √(KT) log K: BGE.  √(KT log T): UCB.

    >>> float(order("√(KT)", 4, 100))
    20.0
    """
    if name not in ORDERS:
        raise ValueError(f"name must be one of {', '.join(ORDERS)}, got {name!r}")
    return np.asarray(ORDERS[name](check_count("arms", arms, least=2), _horizons(horizon)))


def glie_exponent(gap: float) -> float:
    """Return the power of T by which GLIE's regret grows on Theorem 2's problem, up to logarithms: √(1 − 4Δ²).

    With η_t = log t / (best − worst) the arm behind is pulled with probability 1/(1+t), so about log t times up to
    round t. After a bad start the coin, of mean 1/2 + Δ, must climb to 1/2 again; the chance that it has not after n
    pulls is ρⁿ up to powers of n, ρ = 2√((1/2+Δ)(1/2−Δ)) = √(1−4Δ²). For n a Poisson number of mean log t that is
    t^{ρ−1}, and its sum over the rounds is T^ρ.

    >>> round(glie_exponent(0.3), 3)
    0.8
    """
    return math.sqrt(1 - 4 * _half_gap(gap) ** 2)


def theorem5(arms: int, horizon: ArrayLike, constant: float = 0.5) -> Values:
    """Return ½ √(KT) log K: a lower bound on the regret of BGE with C = 1 on its worst problem, if √(K/T) log K ≤ 1.

    The problem: the best arm pays √(K/T) log K always, the others 0. The ½ is not proven as printed, the proof's last
    display drops the factors P[Z < 0] and P[A]; ``constant`` takes another one.

    >>> round(float(theorem5(10, 1_000)), 2)
    115.13
    """
    arms = check_count("arms", arms, least=2)
    constant = _positive("constant", constant)
    horizons = _horizons(horizon)
    if (np.sqrt(arms / horizons) * math.log(arms) > 1).any():
        raise ValueError(
            f"horizon must be at least K log²K = {arms * math.log(arms) ** 2:.1f}, got {horizons.tolist()}"
        )
    return constant * np.sqrt(arms * horizons) * math.log(arms)
