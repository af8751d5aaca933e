"""The bounds against the same formulas in plain Python, against the steps of the proofs, and against simulations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma, rel_entr, zeta

import rightarm as ra
from rightarm import theory

GAMMA = 0.5772156649015329
GAPS = [0.0, 0.05, 0.3, 1.2]


def test_lai_robbins() -> None:
    expected = sum(2 * 0.7**2 / gap for gap in GAPS[1:]) * math.log(5_000)
    assert theory.lai_robbins(GAPS, 5_000, sigma=0.7) == pytest.approx(expected, rel=1e-12)
    means = [0.9, 0.5, 0.2, 0.9]
    divergences = [rel_entr(m, 0.9) + rel_entr(1 - m, 0.1) for m in (0.5, 0.2)]
    expected = (0.4 / divergences[0] + 0.7 / divergences[1]) * math.log(5_000)
    assert theory.lai_robbins_bernoulli(means, 5_000) == pytest.approx(expected, rel=1e-12)


def test_divergence_at_the_edges() -> None:
    assert theory.bernoulli_divergence([0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.5, 0.5]) == pytest.approx(
        [0, 0, *[math.log(2)] * 2]
    )
    assert np.isinf(theory.bernoulli_divergence(0.5, [0.0, 1.0])).all()


def test_proposition1_is_the_sum() -> None:
    gap, c = 0.3, 0.1

    def temperature(t: float) -> float:
        return c / math.log(t + 1)

    sums = np.cumsum([gap / (1 + math.exp(gap / temperature(t))) for t in range(1, 501)])
    found = theory.proposition1(gap, [1, 20, 500], lambda t: c / np.log(t + 1))
    assert found == pytest.approx(sums[[0, 19, 499]], rel=1e-12)
    assert theory.proposition1(0.5, 10, lambda t: 0.0 * t) == 0.0  # a temperature of 0 is greedy


def test_proposition1_is_what_the_simulator_plays() -> None:
    """Deterministic rewards are known from the first pull on: rounds 3 to T are the proposition's."""
    gap, horizon = 0.2, 2_000
    schedule = ra.schedules.inverse_log(0.15)
    result = ra.simulate(
        ra.Boltzmann(schedule), ra.problems.Deterministic([gap, 0.0]), horizon=horizon, replications=256, seed=4
    )
    played = result.regret[0, :, -1] - gap  # the first pull of the worse arm

    def temperature(t: Any) -> Any:
        with np.errstate(divide="ignore"):
            return 0.15 / np.log(t)

    expected = float(np.diff(theory.proposition1(gap, [2, horizon], temperature))[0])
    z = (played.mean() - expected) / (played.std(ddof=1) / math.sqrt(played.size))
    assert abs(z) < 4.5


@pytest.mark.parametrize("c", [2.5, 3.0, 4.0, 6.0, 20.0])
def test_theorem2_starts_where_its_proof_needs_it(c: float) -> None:
    start = theory.theorem2_start(c)
    assert zeta(c / 2, start + 1) <= 0.5  # the sum of t^(-c/2) over t > t_0
    expected = 0.2 * (10_000 - start) * 0.3**start / 2 if start < 10_000 else 0.0
    assert theory.theorem2(0.2, 10_000, c) == pytest.approx(expected, rel=1e-12)


@ra.problems.problem(mean=lambda mean, certain: mean)
def half_certain(u, *, mean: float, certain: float):  # type: ignore[no-untyped-def]
    return np.where(certain > 0, mean, 1.0 * (u < mean))


def test_theorem2_holds() -> None:
    problem = half_certain(mean=[0.75, 0.5], certain=[0, 1])
    horizons = [100, 1_000, 10_000]
    result = ra.simulate(
        ra.Boltzmann(ra.schedules.inverse_log(1 / 4)),
        problem,
        horizon=10_000,
        replications=512,
        seed=3,
        checkpoints=horizons,
    )
    mean = result.regret[0].mean(axis=0)
    error = result.regret[0].std(axis=0, ddof=1) / math.sqrt(512)
    assert (mean + 4.5 * error > theory.theorem2(0.25, horizons, c=4.0)).all()
    assert mean[2] / mean[1] == pytest.approx(10, rel=0.1)  # linear


def naive_theorem4(gaps: list[float], horizon: float, C: float, variance: float, c: float) -> float:
    total = 0.0
    for gap in gaps:
        if gap > 0:
            log = max(0.0, math.log(horizon * gap**2 / c**2))
            total += 9 * C**2 * log**2 / gap
            total += (
                c**2 * math.exp(GAMMA) + 18 * C**2 * math.exp(variance / (2 * C**2)) * (1 + math.exp(-GAMMA))
            ) / gap
            total += gap
    return total


@pytest.mark.parametrize("C", [0.125, 0.5, 2.0])
@pytest.mark.parametrize("horizon", [1, 100, 1e9])
def test_theorem4_and_theorem6(C: float, horizon: float) -> None:
    expected = naive_theorem4(GAPS, horizon, C, 0.25, 0.5)
    assert theory.theorem4(GAPS, horizon, C, sigma=0.5) == pytest.approx(expected, rel=1e-12)
    assert theory.theorem6(GAPS, horizon, C, moment=0.25) == pytest.approx(expected, rel=1e-12)
    assert theory.theorem4(GAPS, horizon, C, 0.5, c=0.1) == pytest.approx(naive_theorem4(GAPS, horizon, C, 0.25, 0.1))


def test_the_other_bounds() -> None:
    assert theory.theorem3(0.1, 10, 1e6) == pytest.approx((16 * math.e * 10 * math.log(1e6) + 90) / 0.01)
    assert theory.corollary1(10, 1e6, 0.5) == pytest.approx(200 * 0.5 * math.sqrt(1e7) * math.log(10))
    assert theory.theorem5(10, 1e6) == pytest.approx(0.5 * math.sqrt(1e7) * math.log(10))
    assert theory.theorem5(10, 1e6, constant=0.1) == pytest.approx(0.1 * math.sqrt(1e7) * math.log(10))


def test_corollary1_follows_from_theorem4() -> None:
    """The proof by numbers: gaps up to σ√(K/T) log K cost that times T, others what Theorem 4 says.

    In units of σ√(KT) log K and without Σ Δ_i that is at most 1 + √K/log K · max_{x ≥ √K log K} (A + 9 log₊² x²)/x.
    """
    A = math.exp(GAMMA) + 18 * math.sqrt(math.e) * (1 + math.exp(-GAMMA))
    constants = []
    for arms in (2, 3, 4, 5, 7, 10, 30, 100, 10**4, 10**8):
        least = math.sqrt(arms) * math.log(arms)
        x = np.geomspace(least, 1e8 * least, 100_001)
        worst = ((A + 9 * np.maximum(np.log(x**2), 0.0) ** 2) / x).max()
        constants.append(1 + math.sqrt(arms) / math.log(arms) * worst)
        # in an interval of length 2σ the gaps add up to 2σ√(KT) at most
        assert theory.corollary1_constant(arms) == pytest.approx(constants[-1] + 2 / math.log(arms), rel=1e-9)
    assert max(constants) == constants[0] == pytest.approx(101.16, abs=0.01)
    assert (np.diff([theory.corollary1_constant(arms) for arms in range(2, 2_000)]) < 0).all()
    gap = 0.5 * math.sqrt(10 / 1e6) * math.log(10)
    assert theory.theorem4([gap] * 9, 1e6, C=0.5, sigma=0.5) < theory.corollary1(10, 1e6, 0.5)


def test_corollary1_as_printed_is_false() -> None:
    """Means 10⁴ and 0: one pull of the worse arm is more than the printed bound, and Σ Δ_i mends it."""
    result = ra.simulate(ra.BoltzmannGumbel(C=1.0), ra.problems.Gaussian([1e4, 0.0], sigma=1.0), horizon=100, seed=1)
    regret = result.regret[0, :, -1]
    assert (regret >= 1e4).all()
    assert theory.corollary1(2, 100, 1.0) == pytest.approx(1_960.5, abs=0.1)
    assert (regret <= theory.corollary1(2, 100, 1.0, gaps=[0.0, 1e4])).all()


def test_theorem2_near_its_threshold() -> None:
    assert theory.theorem2_start(2.01) == math.inf
    assert theory.theorem2_start(2.5) == math.ceil(8**4)
    assert theory.theorem2(0.2, [1, 10**9], c=2.01).tolist() == [0.0, 0.0]


def test_theorem2_stuck_is_the_product() -> None:
    def rate(t: Any) -> Any:
        return 2 * np.log(t) + 0.01

    chance = 1 - 0.95
    for t in range(3, 501):
        chance *= 1 - 1 / (1 + math.exp(0.9 * rate(t)))
    assert theory.theorem2_stuck(0.9, 0.95, 500, rate) == pytest.approx(chance, rel=1e-12)
    assert theory.theorem2_stuck(0.9, 0.95, 2, rate) == pytest.approx(0.05)
    long = [theory.theorem2_stuck(sure, sure + 0.05, 10**6, rate) for sure in (0.9, 0.5)]
    longer = [theory.theorem2_stuck(sure, sure + 0.05, 4 * 10**6, rate) for sure in (0.9, 0.5)]
    assert longer[0] > 0.999 * long[0]  # c r > 1: it stays
    assert longer[1] < 0.3 * long[1]  # c r = 1: it goes to zero


@pytest.mark.parametrize(("c", "share"), [(3, 0.074), (4, 0.170), (8, 0.245)])
def test_theorem2_stuck_at_the_end_of_the_study(c: int, share: float) -> None:
    """The product up to T = 10⁷ by logarithms of single factors, without the function's own algebra."""
    t = np.arange(3, 10**7 + 1, dtype=float)
    product = 0.25 * math.exp(np.log(t ** (c / 2) / (1 + t ** (c / 2))).sum())
    found = theory.theorem2_stuck(0.5, 0.75, 10**7, lambda t: c * np.log(t))
    assert found == pytest.approx(product, rel=1e-9)
    assert found == pytest.approx(share, abs=0.0005)


def test_theorem2_is_true_on_another_problem() -> None:
    """A sure 0.9 and a coin of 0.95: P(never back) ≥ 0.028 at η_t = 2 log t, and P rises with η_t."""

    def slowest(t: Any) -> Any:
        return 2 * np.log(t)

    T = 10**6
    later = zeta(1.8, T + 1)  # Σ_{t > T} 1/(1 + t^{1.8}) is less, and so is what the product loses after T
    assert theory.theorem2_stuck(0.9, 0.95, T, slowest) * (1 - later) > 0.028
    rates: list[Callable[[Any], Any]] = [
        lambda t: 2 * np.log(t) + 1e-6,
        lambda t: 3 * np.log(t) + 1e-6,
        lambda t: np.sqrt(t) + 8,
    ]
    for faster in rates:
        assert (faster(np.arange(1.0, T)) > slowest(np.arange(1.0, T))).all()
        assert theory.theorem2_stuck(0.9, 0.95, T, faster) > theory.theorem2_stuck(0.9, 0.95, T, slowest)


@pytest.mark.parametrize("gap", [0.1, 0.25, 0.4])
def test_theorem2_just_above_its_threshold_grows_like_a_power(gap: float) -> None:
    """T^{1−2Δ}, in simulations of the proof's problem and in the exact regret with known means; √T at Δ = 1/4 only."""
    assert theory.theorem2_power(gap) == pytest.approx(1 - 2 * gap)
    known = theory.proposition1(gap, [10**6, 10**7], lambda t: 1 / (2 * np.log(t) + 0.01))
    assert math.log10(known[1] / known[0]) == pytest.approx(1 - 2 * gap, abs=0.02)
    problem = half_certain(mean=[0.5 + gap, 0.5], certain=[0, 1])
    policy = ra.Boltzmann(lambda t: 1 / (2 * np.log(t) + 0.01))
    result = ra.simulate(policy, problem, horizon=10**5, replications=512, seed=7, checkpoints=[10**4, 10**5])
    regret = result.regret[0]
    # the standard error of the logarithm of the ratio of the means is about 0.005
    assert math.log10(regret[:, 1].mean() / regret[:, 0].mean()) == pytest.approx(1 - 2 * gap, abs=0.05)


def test_theorem3_and_its_steps() -> None:
    gap, arms, T = 0.5, 5, 20_000
    tau = 16 * math.e * arms * math.log(T) / gap**2
    assert theory.theorem3_start(gap, arms, T) == pytest.approx(tau)
    known = sum(
        (arms - 1) / (arms - 1 + (math.exp(gap) if t < tau else t * gap**2)) for t in range(1, T + 1)
    )  # e^{η Δ} is e^Δ first and tΔ² then
    assert theory.theorem3_known(gap, arms, T) == pytest.approx(known, rel=1e-4)
    assert theory.theorem3_known(gap, arms, T) <= known
    second = sum((arms - 1) / (arms - 1 + t * gap**2) for t in range(math.ceil(tau), T + 1))
    assert theory.theorem3_second(gap, arms, T) == pytest.approx(second, rel=1e-2)
    # the step of the proof that is wrong: its sum is of order √T, not log T
    t = np.arange(math.ceil(tau), 10**7)
    assert np.exp(-np.log(t * gap**2) / gap * gap / 2).sum() > 50 * math.log(10**7) / gap**2
    assert np.exp(-2 * np.log(t * gap**2) / gap * gap / 2).sum() <= math.log(10**7 + 1) / gap**2


def test_theorem3_as_printed_is_false_for_very_many_arms() -> None:
    """Rewards without noise, all known after one pull of each arm: the printed bound is exceeded, the repaired not."""
    T, gap = 10**12, 1.0
    for arms in (1_000, 5_000):
        tau = 16 * math.e * arms * math.log(T)
        first = (math.ceil(tau) - 1) * (arms - 1) / (arms - 1 + math.e)
        second = (arms - 1) * (digamma(T + arms) - digamma(math.ceil(tau) + arms - 1))
        assert first + second > tau + 9 * arms == theory.theorem3(gap, arms, T)
        assert theory.theorem3_known(gap, arms, T) == pytest.approx(first + second, rel=1e-9)
        assert first + second + arms < theory.theorem3_repaired(gap, arms, T)
    assert theory.theorem3_known(0.5, 5, 1e12) < theory.theorem3(0.5, 5, 1e12)


@pytest.mark.parametrize(("arms", "power"), [(1_000, 11.3), (500, 12.7), (200, 23.4)])
def test_theorem3_is_exceeded_from_there_on(arms: int, power: float) -> None:
    found = theory.theorem3_exceeded(arms)
    assert found == pytest.approx(power, abs=0.05)
    before, after = 10 ** (found - 0.01), 10 ** (found + 0.01)
    assert theory.theorem3_known(1.0, arms, before) < theory.theorem3(1.0, arms, before)
    assert theory.theorem3_known(1.0, arms, after) > theory.theorem3(1.0, arms, after)
    horizons = np.geomspace(after, 1e300, 1_000)
    over = theory.theorem3_known(1.0, arms, horizons) / theory.theorem3(1.0, arms, horizons)
    assert (over > 1).all()
    assert over.max() < 1 + 1 / (16 * math.e)  # 2.3%


def test_theorem3_is_never_exceeded_by_few_arms_without_noise() -> None:
    assert [math.isinf(theory.theorem3_exceeded(arms)) for arms in (2, 100, 117, 118)] == [True, True, True, False]
    assert [math.isinf(theory.theorem3_exceeded(arms, gap=1e-6)) for arms in (44, 45)] == [True, False]
    horizons = np.geomspace(2, 1e300, 2_000)
    assert (theory.theorem3_known(1.0, 100, horizons) < theory.theorem3(1.0, 100, horizons)).all()


def test_lemmas_are_the_parts_of_theorem4() -> None:
    """The sums are at most 18C²/Δ², with which the three lemmas and the first pull are Theorem 4's bound."""
    gap, T, C, sigma = 0.5, 3_000, 1.0, 1.0
    sums = sum(math.exp(-gap * math.sqrt(k) / (3 * C)) for k in range(1, T))
    moment = math.exp(sigma**2 / (2 * C**2))
    assert theory.lemma1(gap, T, C, sigma) == pytest.approx(1 + moment * sums, rel=1e-12)
    assert theory.lemma2(gap, T, C, sigma) == pytest.approx(moment * math.exp(-GAMMA) * sums, rel=1e-12)
    assert sums <= 18 * C**2 / gap**2
    log = math.log(T * gap**2 / sigma**2)
    expected = (9 * C**2 * log**2 + sigma**2 * math.exp(GAMMA)) / gap**2
    assert theory.lemma3(gap, T, C, sigma) == pytest.approx(expected, rel=1e-12)
    whole = theory.lemma1(gap, T, C, sigma) + theory.lemma2(gap, T, C, sigma) + theory.lemma3(gap, T, C, sigma)
    assert gap * whole <= theory.theorem4([gap], T, C, sigma) <= gap * whole * 1.01
    assert theory.catoni_moment(4.0, 2.0) == pytest.approx(math.exp(0.5))
    assert theory.catoni_moment(4.0, 0.01) == math.inf


def test_bounds_of_others() -> None:
    gaps = [g for g in GAPS if g > 0]
    expected = sum(8 * math.log(5_000) / g for g in gaps) + (1 + math.pi**2 / 3) * sum(gaps)
    assert theory.ucb1(GAPS, 5_000) == pytest.approx(expected, rel=1e-12)
    for gap in np.geomspace(1e-4, 1.0, 50):  # the bound for all gaps is above what the other one, or ΔT, gives
        least = min(float(theory.ucb1([gap] * 9, 1e5)), gap * 1e5)
        assert least <= theory.ucb1_free(10, 1e5, [gap] * 9)
    assert theory.moss(10, 1e6) == pytest.approx(49 * math.sqrt(1e7))
    limit, T = math.sqrt(math.e / 5_000), 5_000
    far = sum(g + 32 * math.log(T * g**2) / g + 96 / g for g in gaps if g > limit)
    assert theory.ucb_improved(GAPS, T) == pytest.approx(far, rel=1e-12)
    near = sum(g + 32 * math.log(T * g**2) / g + 96 / g for g in gaps if g > 0.2) + 64 / 0.2 + 0.05 * T
    assert theory.ucb_improved(GAPS, T, least=0.2) == pytest.approx(near, rel=1e-12)
    assert theory.order("√(KT) log K", 10, 1e4) == pytest.approx(math.sqrt(1e5) * math.log(10))
    # the guarantee of BGE improves on UCB's only beyond 10^65 rounds, for two arms and rewards in [0, 1]
    for power, less in ((64.0, False), (66.0, True)):
        assert bool(theory.corollary1(2, 10**power, 0.5) < theory.ucb1_free(2, 10**power, 0.0)) is less


def test_glie_exponent_is_the_chance_of_not_climbing() -> None:
    """A coin of mean 1/2 + Δ that started with 0 is behind after n pulls with a probability of ρⁿ, up to powers."""
    gap, n = 0.3, 4_000
    walk = np.zeros(2 * n + 3)
    offset, chances = n + 1, []
    walk[offset - 1] = 1.0  # sums of ±1, behind while below 0
    for _ in range(n):
        step = np.zeros_like(walk)
        step[1:] += walk[:-1] * (0.5 + gap)
        step[:-1] += walk[1:] * (0.5 - gap)
        step[offset:] = 0.0
        walk = step
        chances.append(walk.sum())
        walk = walk / chances[-1]
    two_steps = chances[-1] * chances[-2]  # sums are even and odd in turn
    assert math.sqrt(two_steps) == pytest.approx(theory.glie_exponent(gap), rel=1e-3)


def test_theorem4_holds_for_the_simulator() -> None:
    problem = ra.problems.Bernoulli([0.6, 0.5, 0.3])
    for C in (0.125, 0.5):
        result = ra.simulate(ra.BoltzmannGumbel(C=C), problem, horizon=10_000, replications=64, seed=2)
        assert (result.regret[0].mean(axis=0) < theory.theorem4(problem.gaps, result.rounds, C, sigma=0.5)).all()


BOUNDS: dict[str, Callable[[Any], Any]] = {
    "lai_robbins": lambda T: theory.lai_robbins(GAPS, T),
    "lai_robbins_bernoulli": lambda T: theory.lai_robbins_bernoulli([0.5, 0.4], T),
    "proposition1": lambda T: theory.proposition1(0.5, T, lambda t: 1 / t),
    "theorem2": lambda T: theory.theorem2(0.2, T, 4.0),
    "theorem3": lambda T: theory.theorem3(0.2, 3, T),
    "theorem4": lambda T: theory.theorem4(GAPS, T, 0.5, 0.5),
    "theorem6": lambda T: theory.theorem6(GAPS, T, 0.5, 0.25),
    "corollary1": lambda T: theory.corollary1(3, T, 0.5),
    "theorem5": lambda T: theory.theorem5(3, T),
}


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
def test_vectorised_over_horizons(bound: Callable[[Any], Any]) -> None:
    horizons = [10, 100, 1_000]
    together = bound(horizons)
    assert together.shape == (3,)
    assert together == pytest.approx([float(bound(T)) for T in horizons])
    assert (np.diff(together) >= 0).all()
    for wrong in (0, -5, math.nan, math.inf):
        with pytest.raises(ValueError, match="horizon must be at least 1, got"):
            bound(wrong)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.lai_robbins([0.0, 0.0], 10), r"gaps must be non-negative.*got \[0\.0, 0\.0\]"),
        (lambda: theory.lai_robbins([-0.1], 10), r"gaps must be non-negative.*got \[-0\.1\]"),
        (lambda: theory.lai_robbins([0.1], 10, sigma=0), r"sigma must be positive, got 0\.0"),
        (lambda: theory.bernoulli_divergence(1.5, 0.5), r"p must be between 0 and 1, got 1\.5"),
        (lambda: theory.theorem2(0.5, 10, 4.0), r"gap must be between 0 and 1/2, got 0\.5"),
        (lambda: theory.theorem2(0.2, 10, 2.0), r"c must be larger than 2, got 2\.0"),
        (lambda: theory.theorem2_stuck(0.5, 0.5, 10, lambda t: t), r"0 < sure < chance < 1, got 0\.5 and 0\.5"),
        (lambda: theory.lemma1(0.0, 10, 1.0, 1.0), r"gap must be positive, got 0\.0"),
        (lambda: theory.ucb_improved([0.1], 10, least=0.1), r"least must be at least √\(e/T\), got 0\.1"),
        (lambda: theory.order("√K", 2, 10), r"name must be one of √\(KT\), .*, got '√K'"),
        (lambda: theory.glie_exponent(0.5), r"gap must be between 0 and 1/2, got 0\.5"),
        (lambda: theory.theorem2_power(0.0), r"gap must be between 0 and 1/2, got 0\.0"),
        (lambda: theory.theorem3_exceeded(1), "arms must be a whole number of at least 2, got 1"),
        (lambda: theory.corollary1_constant(1), "arms must be a whole number of at least 2, got 1"),
        (lambda: theory.theorem3(0.2, 1, 10), "arms must be a whole number of at least 2, got 1"),
        (lambda: theory.theorem4([0.1], 10, C=-1, sigma=1), r"C must be positive, got -1\.0"),
        (lambda: theory.theorem4([0.1], 10, C=1, sigma=1, c=0.0), r"c must be positive, got 0\.0"),
        (lambda: theory.theorem6([0.1], 10, C=1, moment=0), r"moment must be positive, got 0\.0"),
        (lambda: theory.theorem5(100, 10), r"horizon must be at least K log²K = 2120\.8, got 10\.0"),
    ],
)
def test_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("gap", "horizon", "sigma"), [(0.5, 10_000, 1.0), (0.1, 10**6, 0.5), (1.0, 50, 2.0), (0.01, 100, 1.0)]
)
def test_exploration_solves_its_equation(gap: float, horizon: int, sigma: float) -> None:
    """n = ⌈2w/Δ²⌉ with w e^w = T²Δ⁴/(32π): Garivier, Kaufmann, Lattimore 2016."""
    from scipy.special import lambertw

    delta = gap / sigma
    w = float(lambertw(horizon**2 * delta**4 / (32 * math.pi)).real)
    assert ra.theory.exploration(gap, horizon, sigma) == math.ceil(2 * w / delta**2)


def test_lower_bounds() -> None:
    rounds = np.array([10, 1_000])
    bernoulli, gaussian = (
        theory.lower_bound(ra.problems.Bernoulli([0.75, 0.5])),
        theory.lower_bound(ra.problems.Gaussian([0.0, 0.5], sigma=2.0)),
    )
    assert bernoulli is not None
    assert gaussian is not None
    divergence = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    np.testing.assert_allclose(bernoulli(rounds), 0.25 / divergence * np.log(rounds))
    np.testing.assert_allclose(gaussian(rounds), 2 * 4 / 0.5 * np.log(rounds))
    for without in (
        ra.problems.Bernoulli([0.5, 0.5]),
        ra.problems.Bernoulli([1.0, 0.5]),
        ra.problems.Pareto([2.0, 3.0]),
    ):
        assert theory.lower_bound(without) is None
