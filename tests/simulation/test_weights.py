"""Exploration, and learning from probabilities: shares of choices, estimates without bias, and very long runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import naive_memory
import rightarm as ra
from cases import weighted_means
from naive import F64
from rightarm.simulation.engine import Run, Start

PULLS, MEANS = [400, 200, 100, 300], [0.5, 0.25, 0.75, 0.625]
T = sum(PULLS) + 1


def shares(player: naive_memory.ExponentialWeights, estimates: list[float]) -> list[float]:
    """The oracle's probabilities in round T."""
    player.estimates = estimates
    return player.distribution(T)


FIRST: dict[str, tuple[ra.Policy, dict[str, Any] | None, list[float]]] = {
    "exp3": (
        ra.EXP3(gamma=0.2),
        {"gain": [310.0, 300.0, 290.0, 250.0]},
        shares(naive_memory.EXP3(4, 0.2), [310.0, 300.0, 290.0, 250.0]),
    ),
    "softmix": (
        ra.SoftMix(d=0.8),
        {"gain": [310.0, 290.0, 270.0, 200.0]},
        shares(naive_memory.SoftMix(4, 0.8), [310.0, 290.0, 270.0, 200.0]),
    ),
    "exp3++": (
        ra.EXP3PlusPlus(c=0.01),
        {"loss": [400.0, 450.0, 600.0, 800.0]},
        shares(naive_memory.EXP3PlusPlus(4, 0.01), [-400.0, -450.0, -600.0, -800.0]),
    ),
    "epsilon-greedy": (ra.EpsilonGreedy(0.4), None, [0.1, 0.1, 0.7, 0.1]),
    "explored by its own column": (
        ra.policy(learn={"share": lambda share: share}, explore=lambda share: share)(lambda mean: mean)(),
        {"share": [0.3, 0.0, 0.05, 0.25]},
        [0.3, 0.0, 0.05 + 0.4, 0.25],
    ),
    "explored to the last": (
        ra.policy(learn={"share": lambda share: share}, explore=lambda share: share)(lambda mean: mean)(),
        {"share": [0.5, 0.25, 0.0, 0.25]},
        [0.5, 0.25, 0.0, 0.25],
    ),
}


def check_shares(counts: Any, probabilities: list[float]) -> None:
    size = np.sum(counts)
    assert sum(probabilities) == pytest.approx(1)
    for count, p in zip(counts, probabilities, strict=True):
        spread = math.sqrt(size * p * (1 - p))
        z = (count - size * p) / spread if spread else count - size * p
        assert abs(z) < 4.5, f"{counts}, by the formula {size * np.array(probabilities)}"


@pytest.mark.parametrize(("policy", "memory", "probabilities"), FIRST.values(), ids=FIRST)
def test_first_choices_simulated(policy: ra.Policy, memory: Any, probabilities: list[float]) -> None:
    start: dict[str, Any] = {"pulls": PULLS, "means": MEANS, "memory": memory, "lanes": 3_200}
    result = ra.simulate(policy, ra.problems.Deterministic(MEANS), horizon=1, replications=32_000, seed=2, **start)
    check_shares((result.pulls[0] - PULLS).sum(axis=0), probabilities)


@pytest.mark.parametrize(("policy", "memory", "probabilities"), FIRST.values(), ids=FIRST)
def test_first_choices_live(policy: ra.Policy, memory: Any, probabilities: list[float]) -> None:
    random = np.random.default_rng(3)
    arms = [policy.choose(T, PULLS, MEANS, random, memory) for _ in range(4_000)]
    check_shares(np.bincount(arms, minlength=4), probabilities)


# Estimates of what every arm would have paid.

LANES, ROUNDS = 8_192, 60
PAYING = ra.problems.Bernoulli([0.5, 0.7, 0.2]).corrupted(arm=1, rounds=20, reward=0.0)


def remembered(policy: ra.Policy, problem: ra.problems.Problem, rounds: int, lanes: int) -> tuple[F64, F64]:
    """The first column and the pulls after some rounds: arms × lanes."""
    run = Run(policy, problem, Start((0,) * problem.arms, (0.0,) * problem.arms), 5, 0, lanes, np.array([rounds]))
    run.advance(rounds)
    return run.statistics.memory[0], run.statistics.pulls


TOTALS = np.array([0.5 * ROUNDS, 0.7 * (ROUNDS - 20), 0.2 * ROUNDS])
UNBIASED: dict[str, tuple[ra.Policy, F64]] = {
    "exp3": (ra.EXP3(gamma=0.3), TOTALS),
    "softmix": (ra.SoftMix(d=1.0), TOTALS),
    "exp3++": (ra.EXP3PlusPlus(), ROUNDS - TOTALS),
    # every arm's first pull is certain, and counts once; in those three rounds the others are not pulled
    "weighted means": (weighted_means(), TOTALS - np.array([2 * 0.5, 0.0, 2 * 0.2])),
}


@pytest.mark.parametrize(("policy", "expected"), UNBIASED.values(), ids=UNBIASED)
def test_estimates_are_right_on_average(policy: ra.Policy, expected: F64) -> None:
    estimates, pulls = remembered(policy, PAYING, ROUNDS, LANES)
    errors = estimates.std(axis=1) / math.sqrt(LANES)
    z = (estimates.mean(axis=1) - expected) / errors
    assert np.abs(z).max() < 4.5, f"{estimates.mean(axis=1)}, not {expected}"
    assert (errors < 0.05 * ROUNDS).all()
    assert (pulls.std(axis=1) > 0).all()


# Very long runs.

WEIGHTS = {"exp3": ra.EXP3(gamma=0.1), "softmix": ra.SoftMix(d=0.5), "exp3++": ra.EXP3PlusPlus()}
LONG = pytest.mark.parametrize("rounds", [200_000, pytest.param(10_000_000, marks=pytest.mark.full)])


def exploration(policy: ra.Policy, rounds: int) -> float:
    """What an arm is explored in all, whatever it pays: EXP3 and SoftMix."""
    if policy.family.name == "EXP3":
        return policy.gamma / 2 * rounds  # type: ignore[attr-defined, no-any-return]
    t = np.arange(5, rounds + 1) - 1.0
    return float(2.0 + np.minimum(1.0, 5 * 2 * np.log(t) / (policy.d**2 * t)).sum() / 2)  # type: ignore[attr-defined]


@LONG
@pytest.mark.parametrize("policy", WEIGHTS.values(), ids=WEIGHTS)
def test_rewards_of_one_for_ever(policy: ra.Policy, rounds: int) -> None:
    """Raw weights would overflow after some ten thousand rounds."""
    estimates, pulls = remembered(policy, ra.problems.Deterministic([1.0, 1.0]), rounds, 32)
    assert np.isfinite(estimates).all()
    assert (pulls.sum(axis=0) == rounds).all()
    if policy.family.name == "EXP3PlusPlus":
        assert (estimates == 0).all()  # no losses: all arms alike for ever
        assert abs(pulls[0].sum() - 16 * rounds) / math.sqrt(32 * rounds / 4) < 4.5
    else:
        assert (pulls > exploration(policy, rounds) - 4.5 * math.sqrt(exploration(policy, rounds))).all()
        assert abs(estimates.mean() / rounds - 1) < 4.5 * estimates.mean(axis=0).std() / math.sqrt(32) / rounds + 1e-3


@LONG
@pytest.mark.parametrize("policy", WEIGHTS.values(), ids=WEIGHTS)
def test_rewards_of_one_and_zero_for_ever(policy: ra.Policy, rounds: int) -> None:
    """The worse arm is pulled as often as it is explored, but for the rounds in which that had to be learned."""
    estimates, pulls = remembered(policy, ra.problems.Deterministic([1.0, 0.0]), rounds, 32)
    assert np.isfinite(estimates).all()
    if policy.family.name == "EXP3PlusPlus":
        assert (estimates[0] == 0).all()
        assert abs(estimates[1].mean() / rounds - 1) < 0.05
        assert (pulls[1] < 0.05 * rounds).all()
    else:
        explored = exploration(policy, rounds)
        assert (estimates[1] == 0).all()
        assert abs(estimates[0].mean() / rounds - 1) < 0.01
        assert (pulls[1] > explored - 4.5 * math.sqrt(explored)).all()
        assert (pulls[1] < explored + 4.5 * math.sqrt(explored) + 500).all()


LOGARITHMIC: dict[str, Callable[[int], ra.Policy]] = {
    "kl-ucb": lambda rounds: ra.KLUCB(),
    "kl-ms": lambda rounds: ra.KLMS(),
    "beta thompson": lambda rounds: ra.BetaThompson(),
    "gaussian kl-ucb": lambda rounds: ra.GaussianKLUCB(),
    "ucb-improved": lambda rounds: ra.UCBImproved(horizon=rounds),
    "anytime moss": lambda rounds: ra.AnytimeMOSS(),
    "moss": lambda rounds: ra.MOSS(horizon=rounds),
    "epsilon-greedy": lambda rounds: ra.EpsilonGreedy(ra.schedules.decreasing(d=0.2)),
    "catoni": lambda rounds: ra.BoltzmannGumbel(C=1.0, estimator="catoni"),
    "robust ucb": lambda rounds: ra.RobustUCB(u=1.0),
}


@LONG
@pytest.mark.parametrize("make", LOGARITHMIC.values(), ids=LOGARITHMIC)
def test_regret_stays_small(make: Callable[[int], ra.Policy], rounds: int) -> None:
    """Not below a quarter of what Lai and Robbins ask of consistent policies, and far from linear."""
    problem = ra.problems.Bernoulli([0.4, 0.6])
    result = ra.simulate(make(rounds), problem, horizon=rounds, replications=32, seed=3, checkpoints=1)
    regret = result.regret[0, :, -1].mean()
    divergence = 0.4 * math.log(0.4 / 0.6) + 0.6 * math.log(0.6 / 0.4)
    assert 0.25 * 0.2 * math.log(rounds) / divergence < regret < 0.05 * 0.2 * rounds
