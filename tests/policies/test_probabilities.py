"""Exact probabilities of policies: against draws, and against the formulas of the papers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from few import few

PULLS, MEANS, ROUND = [20, 5, 40, 10], [0.5, 0.6, 0.45, 0.6], 76
DRAWS = [20_000, pytest.param(200_000, marks=pytest.mark.full)]
KNOWN: dict[str, tuple[ra.Policy, dict[str, list[float]]]] = {
    "softmax": (ra.Boltzmann(ra.schedules.inverse_log(0.5)), {}),
    "glie": (ra.Boltzmann(ra.schedules.glie()), {}),
    "greedy with ties": (ra.EpsilonGreedy(0.2), {}),
    "squarecb with ties": (ra.SquareCB(ra.schedules.increasing(c=2.0)), {}),
    "randucb": (ra.RandUCB(C=0.5), {}),
    "linmed with ties": (ra.LinMED(), {}),
    "lints": (ra.LinTS(sigma=0.5), {}),
    "ucb": (ra.UCB(C=0.5), {}),
    "maillard": (ra.Maillard(), {}),
    "kl-ms": (ra.KLMS(), {}),
    "exp3": (ra.EXP3(gamma=0.3), {"gain": [20.0, 30.0, 10.0, 0.0]}),
    "softmix": (ra.SoftMix(d=0.9), {"gain": [20.0, 30.0, 10.0, 0.0]}),
    "exp3++": (ra.EXP3PlusPlus(c=0.01), {"loss": [20.0, 30.0, 10.0, 60.0]}),
    "bge": (ra.BoltzmannGumbel(C=0.5), {}),
    "gaussian": (ra.GaussianThompson(sigma=0.5), {}),
    "beta": (ra.BetaThompson(), {}),
    "exponential noise": (ra.PerturbedMean(ra.noise.Exponential(), scale=0.5), {}),
    "uniform noise": (ra.PerturbedMean(ra.noise.Uniform(), scale=0.5), {}),
}


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize(("policy", "memory"), KNOWN.values(), ids=KNOWN)
def test_first_choices_have_the_stated_probabilities(
    policy: ra.Policy, memory: dict[str, list[float]], draws: int
) -> None:
    """20,000 draws see a probability that is wrong by 0.016; in `make test-all`, 200,000 see one wrong by 0.005."""
    stated = policy.probabilities(ROUND, PULLS, MEANS, memory or None)
    assert abs(stated.sum() - 1) < 1e-12
    problem = ra.problems.Bernoulli([0.5] * 4)
    known: Any = {"pulls": PULLS, "means": MEANS, "memory": memory or None}
    result = ra.simulate(policy, problem, horizon=1, replications=draws, seed=11, lanes=2_048, **known)
    counts = (result.pulls[0] - np.array(PULLS)).sum(axis=0)
    for count, p in zip(counts, stated, strict=True):
        spread = math.sqrt(draws * p * (1 - p))
        assert (count == draws * p) if spread == 0 else abs(count - draws * p) / spread < 4.5


def test_formulas_of_the_papers() -> None:
    softmax = np.exp(np.array(MEANS) / (0.5 / math.log(ROUND)))
    np.testing.assert_allclose(
        ra.Boltzmann(ra.schedules.inverse_log(0.5)).probabilities(ROUND, PULLS, MEANS),
        softmax / softmax.sum(),
        rtol=1e-12,
    )
    weights = np.exp(0.3 / 4 * np.array([20.0, 30.0, 10.0, 0.0]))
    mixed = 0.7 * weights / weights.sum() + 0.3 / 4
    memory = {"gain": [20.0, 30.0, 10.0, 0.0]}
    np.testing.assert_allclose(ra.EXP3(gamma=0.3).probabilities(ROUND, PULLS, MEANS, memory), mixed, rtol=1e-12)
    greedy = ra.EpsilonGreedy(0.2).probabilities(ROUND, PULLS, MEANS)
    np.testing.assert_allclose(greedy, [0.05, 0.45, 0.05, 0.45], rtol=1e-12)
    kl = [n * float(ra.theory.bernoulli_divergence(m, 0.6)) for n, m in zip(PULLS, MEANS, strict=True)]
    expected = np.exp(-np.array(kl)) / np.exp(-np.array(kl)).sum()
    np.testing.assert_allclose(ra.KLMS().probabilities(ROUND, PULLS, MEANS), expected, rtol=1e-10)


def inverse_gaps(means: list[float], gamma: float) -> Any:
    """Foster and Rakhlin's weights, averaged over which of the arms with the best mean is called the best."""
    best = [arm for arm, mean in enumerate(means) if mean == max(means)]
    weights = np.zeros((len(best), len(means)))
    for row, chosen in zip(weights, best, strict=True):
        row[:] = [1 / (len(means) + gamma * (max(means) - mean)) for mean in means]
        row[chosen] = 1 - sum(row[arm] for arm in range(len(means)) if arm != chosen)
    return weights.mean(axis=0)


@pytest.mark.parametrize("means", [MEANS, [0.5], [0.5, 0.5], [0.5] * 7, [-3.0, 1e6, 1e6, 0.25], [0.0, 1e-12, 1e200]])
@pytest.mark.parametrize("gamma", [0.0, 1e-9, 7.5, 1e12])
def test_inverse_gap_weighting(means: list[float], gamma: float) -> None:
    pulls = [3] * len(means)
    found = ra.SquareCB(gamma).probabilities(sum(pulls) + 1, pulls, means)
    np.testing.assert_allclose(found, inverse_gaps(means, gamma), rtol=1e-12)
    growing = ra.SquareCB(ra.schedules.increasing(c=0.5)).probabilities(sum(pulls) + 1, pulls, means)
    now = 0.5 * math.sqrt(len(means) * (sum(pulls) + 1))
    np.testing.assert_allclose(growing, inverse_gaps(means, now), rtol=1e-12)


def test_large_gains_do_not_overflow() -> None:
    gains = {"gain": [1e9, 1e9 - 40.0, 0.0]}
    p = ra.EXP3(gamma=0.3).probabilities(10, [3, 3, 3], [0.5] * 3, gains)
    ratio = math.exp(-0.1 * 40)
    np.testing.assert_allclose(p, [0.7 / (1 + ratio) + 0.1, 0.7 * ratio / (1 + ratio) + 0.1, 0.1], rtol=1e-6)


def test_arms_never_pulled_go_first_and_share_the_draw() -> None:
    assert ra.UCB(C=1.0).probabilities(3, [1, 0, 0], [0.5, 0.0, 0.0]).tolist() == [0.0, 0.5, 0.5]
    assert ra.UCB(C=1.0).probabilities(1, [0, 0], [0.0, 0.0]).tolist() == [0.5, 0.5]
    assert ra.EXP3(gamma=0.5).probabilities(1, [0, 0], [0.0, 0.0]).tolist() == [0.5, 0.5]


FAR_PULLS, FAR_MEANS = np.array([1, 30, 1_000, 1_000_000_000]), np.array([0.2, 0.45, 0.5, 0.51])


def drawn(name: str, random: np.random.Generator, size: int) -> Any:
    """The scores as the papers write them, for one block of decisions."""
    shape, scale = (size, FAR_PULLS.size), 0.5 / np.sqrt(FAR_PULLS)
    if name == "beta":
        return random.beta(1 + FAR_PULLS * FAR_MEANS, 1 + FAR_PULLS * (1 - FAR_MEANS), shape)
    if name == "gaussian":
        return FAR_MEANS + 0.5 / np.sqrt(FAR_PULLS + 1) * random.standard_normal(shape)
    if name == "randucb":
        return FAR_MEANS + scale * np.abs(random.standard_normal((size, 1)))
    if name == "lints":
        return FAR_MEANS + scale * random.standard_normal(shape)
    if name == "linmed with ties":  # none here: the last arm is the best
        unsure = 1 / FAR_PULLS + 1 / FAR_PULLS[-1]
        weights = np.array([0.125, 0.125, 0.125, 0.625]) * np.exp(-((0.51 - FAR_MEANS) ** 2) / (0.5 * unsure))
        return np.log(weights) + random.gumbel(size=shape)
    if name == "squarecb with ties":
        gamma = 2.0 * math.sqrt(4 * (10**9 + 1_032))
        others = np.cumsum(1 / (4 + gamma * (0.51 - FAR_MEANS[:3])))
        chosen = np.searchsorted(others, random.random(size), side="right")
        return np.eye(4)[chosen]
    if name == "bge":
        return FAR_MEANS + scale * (np.euler_gamma + random.gumbel(size=shape))
    z = random.standard_exponential(shape) if name == "exponential noise" else random.uniform(-1, 1, shape)
    return FAR_MEANS + scale * z


SEVERAL = ["bge", "gaussian", "beta", "exponential noise", "uniform noise"]
SEVERAL += ["randucb", "lints", "linmed with ties", "squarecb with ties"]


@pytest.mark.parametrize("blocks", few(1, [5, 50]))
@pytest.mark.parametrize("name", SEVERAL)
def test_millions_of_draws(name: str, blocks: int) -> None:
    size = 200_000
    stated = KNOWN[name][0].probabilities(10**9 + 1_032, FAR_PULLS, FAR_MEANS)
    random, counts = np.random.default_rng(12), np.zeros(FAR_PULLS.size)
    for _ in range(blocks):
        counts += np.bincount(drawn(name, random, size).argmax(axis=1), minlength=FAR_PULLS.size)
    for count, p in zip(counts, stated, strict=True):
        assert abs(count - blocks * size * p) < 4.5 * math.sqrt(blocks * size * p * (1 - p)) + 1


@ra.policy(noise=ra.noise.Gumbel())
def bounded(pulls, mean, z):  # type: ignore[no-untyped-def]
    return mean + np.minimum(z, 3.0) / pulls


def test_without_a_known_law_it_says_so() -> None:
    with pytest.raises(ValueError, match=r"bounded\(\): its probabilities are not known"):
        bounded().probabilities(ROUND, PULLS, MEANS)


@pytest.mark.parametrize(("policy", "memory"), KNOWN.values(), ids=KNOWN)
def test_the_function_and_the_method_say_the_same(policy: ra.Policy, memory: dict[str, list[float]]) -> None:
    stated = ra.probabilities(policy, pulls=PULLS, means=MEANS, round=ROUND, memory=memory or None)
    assert stated.tolist() == policy.probabilities(ROUND, PULLS, MEANS, memory or None).tolist()


def test_a_policy_must_be_one() -> None:
    with pytest.raises(TypeError, match="policy must be a policy"):
        ra.probabilities("UCB", pulls=[1], means=[0.5], round=2)  # type: ignore[arg-type]


def test_reference_value_with_the_location_of_the_paper() -> None:
    """By mpmath: means (0.6, 0.5), pulls (1, 100), C = 0.5."""
    found = ra.BoltzmannGumbel(C=0.5).probabilities(102, [1, 100], [0.6, 0.5])
    np.testing.assert_allclose(found[0], 0.85404043791727407, rtol=1e-12)


def test_equal_pulls_give_gumbel_noise_one_scale() -> None:
    equal = ra.BoltzmannGumbel(C=0.5).probabilities(9, [4, 4], [0.0, 0.25 * math.log(3)])
    np.testing.assert_allclose(equal, [0.25, 0.75], rtol=1e-9)
