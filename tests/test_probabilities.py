"""Exact probabilities, where they have a closed form: against draws, and against the formulas of the papers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rightarm as ra

PULLS, MEANS, ROUND = [20, 5, 40, 10], [0.5, 0.6, 0.45, 0.6], 76
DRAWS = 200_000
CLOSED: dict[str, tuple[ra.Policy, dict[str, list[float]]]] = {
    "softmax": (ra.Boltzmann(ra.inverse_log(0.5)), {}),
    "glie": (ra.Boltzmann(ra.glie()), {}),
    "greedy with ties": (ra.EpsilonGreedy(0.2), {}),
    "ucb": (ra.UCB(C=0.5), {}),
    "maillard": (ra.Maillard(), {}),
    "kl-ms": (ra.KLMS(), {}),
    "exp3": (ra.EXP3(gamma=0.3), {"gain": [20.0, 30.0, 10.0, 0.0]}),
    "softmix": (ra.SoftMix(d=0.9), {"gain": [20.0, 30.0, 10.0, 0.0]}),
    "exp3++": (ra.EXP3PlusPlus(c=0.01), {"loss": [20.0, 30.0, 10.0, 60.0]}),
}


@pytest.mark.parametrize(("policy", "memory"), CLOSED.values(), ids=CLOSED)
def test_first_choices_have_the_stated_probabilities(policy: ra.Policy, memory: dict[str, list[float]]) -> None:
    stated = policy.probabilities(ROUND, PULLS, MEANS, memory or None)
    assert abs(stated.sum() - 1) < 1e-12
    problem = ra.Bernoulli([0.5] * 4)
    known: Any = {"pulls": PULLS, "means": MEANS, "memory": memory or None}
    result = ra.simulate(policy, problem, horizon=1, replications=DRAWS, seed=11, **known)
    counts = (result.pulls[0] - np.array(PULLS)).sum(axis=0)
    for count, p in zip(counts, stated, strict=True):
        spread = math.sqrt(DRAWS * p * (1 - p))
        assert (count == DRAWS * p) if spread == 0 else abs(count - DRAWS * p) / spread < 4.5


def test_formulas_of_the_papers() -> None:
    softmax = np.exp(np.array(MEANS) / (0.5 / math.log(ROUND)))
    np.testing.assert_allclose(
        ra.Boltzmann(ra.inverse_log(0.5)).probabilities(ROUND, PULLS, MEANS), softmax / softmax.sum(), rtol=1e-12
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


def test_large_gains_do_not_overflow() -> None:
    gains = {"gain": [1e9, 1e9 - 40.0, 0.0]}
    p = ra.EXP3(gamma=0.3).probabilities(10, [3, 3, 3], [0.5] * 3, gains)
    ratio = math.exp(-0.1 * 40)
    np.testing.assert_allclose(p, [0.7 / (1 + ratio) + 0.1, 0.7 * ratio / (1 + ratio) + 0.1, 0.1], rtol=1e-6)


def test_an_arm_never_pulled_goes_first() -> None:
    assert ra.UCB(C=1.0).probabilities(3, [1, 0, 0], [0.5, 0.0, 0.0]).tolist() == [0.0, 1.0, 0.0]
    assert ra.EXP3(gamma=0.5).probabilities(1, [0, 0], [0.0, 0.0]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("policy", [ra.BoltzmannGumbel(C=0.5), ra.GaussianThompson(), ra.BetaThompson()], ids=str)
def test_without_a_closed_form_it_says_so(policy: ra.Policy) -> None:
    with pytest.raises(ValueError, match="no closed form"):
        policy.probabilities(ROUND, PULLS, MEANS)


def test_equal_pulls_give_gumbel_noise_one_scale() -> None:
    equal = ra.BoltzmannGumbel(C=0.5).probabilities(9, [4, 4], [0.0, 0.25 * math.log(3)])
    np.testing.assert_allclose(equal, [0.25, 0.75], rtol=1e-9)
