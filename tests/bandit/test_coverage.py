"""What a bandit's answers promise, over whole runs that are looked at twenty times: few are ever wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import rightarm as ra
from rightarm import inference
from rightarm.inference.sequences import Rewards, rewards_of
from rightarm.types import F64

RUNS, PAIRED, ROUNDS, LOOKS = 200, 100, 1_000, 20
ERROR = 0.05
WHEN = np.unique(np.geomspace(10, ROUNDS, LOOKS).astype(int))
POLICIES = {
    "bge": ra.BoltzmannGumbel(C=0.1),
    "ucb": ra.UCB(C=0.1),
    "thompson": ra.BetaThompson(),
    "greedy": ra.EpsilonGreedy(0.1),
}
RATES, LOCATION, SCALE, MOST = np.array([0.05, 0.08, 0.06]), 3.5, 0.8, 500.0


def truncated_log_normal() -> float:
    """The mean of min(X, 500) for log X ~ N(3.5, 0.8²)."""
    end = (math.log(MOST) - LOCATION) / SCALE
    below = math.exp(LOCATION + SCALE**2 / 2) * stats.norm.cdf(end - SCALE)
    return float(below + MOST * stats.norm.sf(end))


def revenue(random: np.random.Generator) -> F64:
    """Some buy, for a log-normal sum; in units of 500."""
    sums = np.minimum(np.exp(random.normal(LOCATION, SCALE, (ROUNDS, 3))), MOST) / MOST
    return np.asarray((random.random((ROUNDS, 3)) < RATES) * sums)


def clicks(random: np.random.Generator) -> F64:
    return np.asarray(random.random((ROUNDS, 3)) < [0.3, 0.35, 0.2], dtype=float)


PROBLEMS: dict[str, tuple[F64, Callable[[np.random.Generator], F64]]] = {
    "clicks": (np.array([0.3, 0.35, 0.2]), clicks),
    "revenue": (RATES * truncated_log_normal() / MOST, revenue),
    "router": (np.array([0.6, 0.5, 0.625]), lambda random: random.beta([6, 5, 5], [4, 5, 3], (ROUNDS, 3))),
}


def played(policy: ra.Policy, draw: Callable[[np.random.Generator], F64], seed: int) -> F64:
    """Counts, means and spreads of the arms at every look of one run, summed up here."""
    rewards, bandit = draw(np.random.default_rng([seed, 7])), ra.Bandit(range(3), policy, seed=seed)
    mine: list[list[float]] = [[], [], []]
    found = []
    for t in range(ROUNDS):
        decision = bandit.ask()
        arm: Any = decision.arm
        reward = float(rewards[t, arm])
        bandit.tell(decision, reward)
        mine[arm].append(reward)
        if t + 1 in WHEN:
            found.append([[len(own), np.mean(own or [0.0]), len(own) * np.var(own or [0.0])] for own in mine])
    return np.moveaxis(np.array(found), -1, 0)


def too_many(wrong: Any) -> bool:
    """Whether more runs than the error allows were wrong at some look; the second axis is that of looks."""
    runs = len(wrong)
    return bool(wrong.any(axis=1).sum() > ERROR * runs + 4.5 * math.sqrt(ERROR * (1 - ERROR) * runs))


def check_pairs(rewards: Rewards, means: F64) -> None:
    """Differences, candidates and costs."""
    best, gaps = int(means.argmax()), rewards.gaps(ERROR / rewards.sides)
    one_sided = rewards.gaps(ERROR / 2)  # for three arms the error of a comparison is half
    for i, j in ((0, 1), (1, 2)):
        wrong = (gaps[..., i, j] < means[i] - means[j]) | (gaps[..., j, i] < means[j] - means[i])
        assert not too_many(wrong)
    np.einsum("...ii->...i", one_sided)[:] = 0.0
    assert not too_many((one_sided[..., best, :] < 0).any(axis=-1))
    costs = one_sided.max(axis=-2)
    leaders = costs.argmin(axis=-1)
    cost = np.take_along_axis(costs, leaders[..., None], axis=-1)[..., 0]
    assert not too_many(means[best] - means[leaders] > cost + 1e-12)


@pytest.mark.full
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_answers_hold_over_whole_runs(problem: str, policy: str) -> None:
    means, draw = PROBLEMS[problem]
    runs = np.array([played(POLICIES[policy], draw, seed) for seed in range(RUNS)])
    counts, centres, spreads = np.moveaxis(runs, 1, 0)
    found = inference.means(counts, centres, spreads, (0, 1))
    for arm in range(3):
        assert not too_many((found.lows[..., arm] > means[arm]) | (found.highs[..., arm] < means[arm]))
    check_pairs(rewards_of(counts[:PAIRED], centres[:PAIRED], spreads[:PAIRED], (0, 1), None), means)
    # The interval of the textbook breaks its promise in the same runs, so this test can fail.
    half = 1.96 * np.sqrt(spreads) / np.maximum(counts, 1)
    assert any(too_many(np.abs(centres - means)[..., arm] > half[..., arm]) for arm in range(3))


@pytest.mark.full
def test_asymptotic_intervals_hold_nearly() -> None:
    """Normal rewards, for which 100 are enough to know the deviation by; and sub-Gaussian ones from the first on."""
    means = np.array([0.0, 0.3, 0.1])

    def draw(random: np.random.Generator) -> F64:
        return random.normal(means, 1.0, (ROUNDS, 3))

    runs = np.array([played(ra.BoltzmannGumbel(C=0.5), draw, seed) for seed in range(RUNS)])
    counts, centres, spreads = np.moveaxis(runs, 1, 0)
    for sigma in (None, 1.0):
        found = inference.means(counts, centres, spreads, sigma=sigma)
        for arm in range(3):
            assert not too_many((found.lows[..., arm] > means[arm]) | (found.highs[..., arm] < means[arm]))
        check_pairs(rewards_of(counts[:PAIRED], centres[:PAIRED], spreads[:PAIRED], None, sigma), means)
