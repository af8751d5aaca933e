"""The public names, as a type checker sees them: mypy --strict and pyright accept this file."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

import rightarm as ra


@ra.policy(noise=ra.noise.Gumbel())
def cautious(t, pulls, mean, z, *, C: float = 1.0):  # type: ignore[no-untyped-def]
    """Perturb the mean by noise that shrinks a little faster."""
    return mean + C / np.sqrt(pulls + np.log(t)) * z


def live(folder: Path) -> ra.Bandit[str]:
    """Decide live, in a folder that carries on after a crash."""
    chance = random.Random(1)
    bandit = ra.Bandit.open(
        folder,
        ["red", "green"],
        ra.BetaThompson(),
        floor=0.02,
        reward_window=3_600,
        default_reward=0.0,
        learn="at close",
        repeated="last",
        late="keep",
        control="red",
    )
    for _ in range(100):
        decision: ra.Decision[str] = bandit.ask()
        bandit.tell(decision, float(chance.random() < 0.1))
    bandit.change(floor=0.05, policy=ra.UCB(C=0.5))
    best = bandit.best()
    difference = bandit.difference("green", "red")
    print(bandit, best.leader, difference.low, difference.high)
    return bandit


def simulated() -> ra.Result:
    """Simulate policies on a problem."""
    problem: ra.problems.Problem = ra.problems.Bernoulli([0.6, 0.5])
    policies: list[ra.Policy] = [
        ra.BoltzmannGumbel(C=0.5),
        ra.Boltzmann(ra.schedules.inverse_log(0.25)),
        ra.UCB(C=0.5, estimator=ra.estimators.Mean(window=100)),
        ra.PerturbedMean(noise=ra.noise.Exponential(), scale=0.5),
    ]
    result = ra.simulate(policies, problem, horizon=1_000, seed=1)
    regret: float = float(result.regret.mean())
    print(regret, ra.probabilities(policies[0], pulls=[1, 2], means=[0.5, 0.4], round=4))
    return result


def contextual() -> ra.Bandit[str]:
    """Decide by contexts."""
    features = ra.estimators.Features(numbers=["hour"], categories={"device": ["phone", "desktop"]})
    policy = ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(features))
    bandit = ra.Bandit(["short", "long"], policy, reward_range=(0, 1), seed=1)
    decision = bandit.ask(context={"hour": 21, "device": "phone"})
    bandit.tell(decision, 1.0)
    return bandit


def evaluated(log: Path) -> float:
    """Estimate from a log what another policy would have earned."""
    evaluation: ra.evaluation.Evaluation = ra.evaluate(log, ra.UCB(C=0.5))
    return evaluation.dr


def remote(url: str) -> None:
    """Ask a service."""
    with ra.connect(url) as service:
        home = service.create("home", ["red", "green"], ra.BetaThompson())
        decision = home.ask(unit="visitor 17")
        home.tell(decision, 1.0)
