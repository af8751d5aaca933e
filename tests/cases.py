"""Every kind of policy and problem, the user's own among them, each beside what the oracle plays for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import naive
import naive_memory
import rightarm as ra
from rightarm.noise import Exponential, Gaussian, Gumbel, Shared, Uniform

ROUNDS = 400


def cooling(t):  # type: ignore[no-untyped-def]
    return 1 / (1 + 0.1 * t)


@ra.schedules.schedule
def crowded(t, arms, *, c: float):  # type: ignore[no-untyped-def]
    return c * arms / np.sqrt(t)


@ra.policy(noise=Gumbel())
def cautious(t, pulls, mean, z, *, C: float = 1.0):  # type: ignore[no-untyped-def]
    """BGE whose scale shrinks a little faster."""
    return mean + C / np.sqrt(pulls + np.log(t)) * z


@ra.policy(noise=Gaussian())
def thompson(pulls, mean, z, *, sigma: float = 1.0):  # type: ignore[no-untyped-def]
    return mean + sigma / np.sqrt(pulls + 1) * z


@ra.policy(noise=Gumbel())
def maillard(pulls, mean, best, z, *, sigma: float = 0.5):  # type: ignore[no-untyped-def]
    return -pulls * (best - mean) ** 2 / (2 * sigma**2) + z


@ra.policy(noise=Gumbel())
def crowd(pulls, mean, z, arms, *, C: float = 0.1):  # type: ignore[no-untyped-def]
    return mean + C * arms / np.sqrt(pulls) * z


@ra.policy(noise=Gumbel())
def squashed(pulls, mean, z, *, C: float = 1.0):  # type: ignore[no-untyped-def]
    """A score that is not affine in its noise."""
    return mean + C / np.sqrt(pulls) * np.tanh(z)


@ra.policy
def curious(pulls, mean, *, C: float = 1.0):  # type: ignore[no-untyped-def]
    """No noise, and no clock."""
    return mean + C / np.sqrt(pulls)


@ra.policy
def moss(t, pulls, mean, arms, *, C: float = 1.0):  # type: ignore[no-untyped-def]
    """No noise, and a clock of its own for every number of pulls (Audibert and Bubeck 2009)."""
    return mean + C * np.sqrt(np.maximum(np.log(t / (arms * pulls)), 0.0) / pulls)


# Policies that explore and remember, one for each way in which the simulator plays; a lazy one is in test_lazy.py.


def largest_reward(largest, reward):  # type: ignore[no-untyped-def]
    return np.maximum(largest, reward)


def gain_per_decision(gain, reward, probability):  # type: ignore[no-untyped-def]
    return gain + reward / probability


@ra.policy(noise=Gaussian(), explore=lambda arms: 0.2 / arms)
def steady_exploring(pulls, mean, z):  # type: ignore[no-untyped-def]
    return mean + z / np.sqrt(pulls)


@ra.policy(noise=Shared(Gumbel()), explore=lambda arms: 0.3 / arms)
def shared_exploring(t, pulls, mean, z):  # type: ignore[no-untyped-def]
    return mean + z / np.sqrt(pulls + np.log(t))


@ra.policy(explore=lambda t, arms, *, c: c / (arms * np.sqrt(t)))
def clocked_exploring(t, pulls, mean, *, c: float = 0.9):  # type: ignore[no-untyped-def]
    return mean + np.sqrt(np.log(t) / pulls)


@ra.policy(noise=Gumbel(), learn={"largest": largest_reward})
def steady_remembering(pulls, largest, z):  # type: ignore[no-untyped-def]
    return (largest + z) / np.sqrt(pulls)


@ra.policy(learn={"largest": largest_reward})
def clocked_remembering(t, pulls, largest):  # type: ignore[no-untyped-def]
    return largest + np.sqrt(np.log(t) / pulls)


@ra.policy(noise=Gumbel(), explore=lambda mean, best, arms: np.where(mean < best, 0.5, 0.25) / arms)
def exploring_the_worse(t, pulls, mean, z):  # type: ignore[no-untyped-def]
    return np.tanh(z) / pulls + mean * np.log(t)


@ra.policy(noise=Gumbel(), learn={"gain": gain_per_decision})
def weighted_means(pulls, gain, best_gain, z):  # type: ignore[no-untyped-def]
    return 0.5 * gain / pulls - 0.01 * (best_gain - gain) + z


@ra.problems.problem(mean=lambda level, spread: level)
def restless(t, pulls, arm, u, w, *, level: float, spread: float = 0.3):  # type: ignore[no-untyped-def]
    """A reward that asks for everything."""
    return level + spread * (u - 0.5) + spread * w + np.sin(t) / 10 + arm / (10 + pulls)


@ra.problems.problem(mean=lambda level, spread: level)
def settled(pulls, arm, u, w, *, level: float, spread: float = 0.3):  # type: ignore[no-untyped-def]
    """A reward that asks for everything but the round, so that regret can be reported."""
    return level + spread * (u - 0.5) + spread * w + arm / (10 + pulls)


@ra.problems.problem(mean=lambda level: level)
def second(v, *, level: float):  # type: ignore[no-untyped-def]
    """The second uniform noise without the first."""
    return level + v - 0.5


@ra.problems.problem(mean=lambda level: level, second_moment=lambda level: level**2 + 1 / 6)
def threefold(u, v, w, *, level: float):  # type: ignore[no-untyped-def]
    """All three kinds of noise."""
    return level + (u - 0.5) + (v - 0.5) * w


@dataclass(frozen=True)
class PolicyCase:
    policy: ra.Policy
    score: naive.Score
    error: float = 1e-12  # by which a score may differ from the oracle's
    shifts: bool = True  # a shift of all means changes no choice


@dataclass(frozen=True)
class PlayerCase:
    """A policy that remembers more than pulls and means, explores, or decides by its own past."""

    policy: ra.Policy
    make: naive_memory.Make


@dataclass(frozen=True)
class ProblemCase:
    problem: ra.problems.Problem
    reward: naive.Reward


GAMMA = 0.5772156649015329

POLICIES = {
    "constant": PolicyCase(ra.Boltzmann(ra.schedules.constant(0.2)), naive.boltzmann(naive.constant(0.2))),
    "inverse_log": PolicyCase(ra.Boltzmann(ra.schedules.inverse_log(0.5)), naive.boltzmann(naive.inverse_log(0.5))),
    "inverse_sqrt": PolicyCase(ra.Boltzmann(ra.schedules.inverse_sqrt(2.0)), naive.boltzmann(naive.inverse_sqrt(2.0))),
    # with gap 2 the second phase begins at round 209 for 3 arms, inside the rounds that are compared
    "two_phase": PolicyCase(ra.Boltzmann(ra.schedules.two_phase(2.0, 600)), naive.boltzmann(naive.two_phase(2.0, 600))),
    "glie": PolicyCase(ra.Boltzmann(ra.schedules.glie()), naive.boltzmann(naive.glie())),
    "function": PolicyCase(ra.Boltzmann(cooling), naive.boltzmann(lambda t, spread, arms: 1 / (1 + 0.1 * t))),
    "schedule": PolicyCase(
        ra.Boltzmann(crowded(0.5)), naive.boltzmann(lambda t, spread, arms: 0.5 * arms / math.sqrt(t))
    ),
    "gumbel": PolicyCase(ra.BoltzmannGumbel(C=0.5), naive.boltzmann_gumbel(0.5, GAMMA)),
    "gumbel centred": PolicyCase(ra.BoltzmannGumbel(C=1.0, location=-GAMMA), naive.boltzmann_gumbel(1.0, -GAMMA)),
    "ucb": PolicyCase(ra.UCB(C=0.7), naive.ucb(0.7)),
    "randucb": PolicyCase(ra.RandUCB(C=0.6), naive.perturbed_mean(0.6)),
    "lints": PolicyCase(ra.LinTS(sigma=0.4), naive.perturbed_mean(0.4)),
    "perturbed by one gaussian": PolicyCase(ra.PerturbedMean(Shared(Gaussian()), scale=0.5), naive.perturbed_mean(0.5)),
    "cautious": PolicyCase(cautious(C=0.5), lambda t, n, mean, z, means: mean + 0.5 / math.sqrt(n + math.log(t)) * z),
    "thompson": PolicyCase(thompson(sigma=0.6), lambda t, n, mean, z, means: mean + 0.6 / math.sqrt(n + 1) * z),
    "maillard": PolicyCase(maillard(), lambda t, n, mean, z, means: z - n * (max(means) - mean) ** 2 / (2 * 0.5**2)),
    "crowd": PolicyCase(crowd(), lambda t, n, mean, z, means: mean + 0.1 * len(means) / math.sqrt(n) * z),
    "squashed": PolicyCase(squashed(), lambda t, n, mean, z, means: mean + math.tanh(z) / math.sqrt(n)),
    "moss": PolicyCase(
        moss(), lambda t, n, mean, z, means: mean + math.sqrt(max(0.0, math.log(t / (len(means) * n))) / n)
    ),
    "gaussian thompson": PolicyCase(
        ra.GaussianThompson(), lambda t, n, mean, z, means: mean + math.sqrt(1 / (n + 1)) * z
    ),
    "maillard sampling": PolicyCase(
        ra.Maillard(sigma=1.5), lambda t, n, mean, z, means: z - n * (max(means) - mean) ** 2 / 4.5
    ),
    "ucb1": PolicyCase(ra.UCB1(), lambda t, n, mean, z, means: mean + math.sqrt(2 * math.log(t) / n)),
    "moss of a horizon": PolicyCase(
        ra.MOSS(horizon=200),
        lambda t, n, mean, z, means: mean + math.sqrt(max(0.0, math.log(200 / (len(means) * n))) / n),
    ),
    "anytime moss": PolicyCase(
        ra.AnytimeMOSS(), lambda t, n, mean, z, means: mean + math.sqrt(max(0.0, math.log(t / (len(means) * n))) / n)
    ),
    "curious": PolicyCase(curious(), lambda t, n, mean, z, means: mean + 1 / math.sqrt(n)),
    "kl-ucb": PolicyCase(ra.KLUCB(), naive.kl_ucb(0.0), error=1e-10, shifts=False),
    "kl-ucb of the theorem": PolicyCase(ra.KLUCB(c=3.0), naive.kl_ucb(3.0), error=1e-10, shifts=False),
    "gaussian kl-ucb": PolicyCase(ra.GaussianKLUCB(sigma=0.7, c=2.0), naive.gaussian_kl_ucb(0.7, 2.0)),
    "kl-ms": PolicyCase(ra.KLMS(), naive.kl_ms(), shifts=False),
    "perturbed by gumbel": PolicyCase(ra.PerturbedMean(Gumbel(), scale=0.5), naive.perturbed_mean(0.5)),
    "perturbed by gaussian": PolicyCase(ra.PerturbedMean(Gaussian()), naive.perturbed_mean(1.0)),
    "perturbed by exponential": PolicyCase(ra.PerturbedMean(Exponential(), scale=0.7), naive.perturbed_mean(0.7)),
    "perturbed by uniform": PolicyCase(ra.PerturbedMean(Uniform(), scale=2.0), naive.perturbed_mean(2.0)),
}

PLAYERS = {
    "epsilon-greedy": PlayerCase(
        ra.EpsilonGreedy(0.2), lambda arms: naive_memory.EpsilonGreedy(arms, lambda t, arms: 0.2)
    ),
    "epsilon-greedy, decreasing": PlayerCase(
        ra.EpsilonGreedy(ra.schedules.decreasing(d=0.8, c=2.0)),
        lambda arms: naive_memory.EpsilonGreedy(arms, naive_memory.decreasing(c=2.0, d=0.8)),
    ),
    "linmed": PlayerCase(ra.LinMED(), lambda arms: naive_memory.LinMED(arms, 0.5, 0.5)),
    "linmed, even": PlayerCase(ra.LinMED(sigma=0.3, alpha=0.0), lambda arms: naive_memory.LinMED(arms, 0.3, 0.0)),
    "squarecb": PlayerCase(ra.SquareCB(12.0), lambda arms: naive_memory.SquareCB(arms, lambda t, arms: 12.0)),
    "squarecb, increasing": PlayerCase(
        ra.SquareCB(ra.schedules.increasing(c=3.0)),
        lambda arms: naive_memory.SquareCB(arms, lambda t, arms: 3.0 * math.sqrt(arms * t)),
    ),
    "explore, then commit": PlayerCase(
        ra.ExploreThenCommit(each=20), lambda arms: naive_memory.ExploreThenCommit(arms, 20)
    ),
    "commit at once": PlayerCase(ra.ExploreThenCommit(each=1), lambda arms: naive_memory.ExploreThenCommit(arms, 1)),
    "exp3": PlayerCase(ra.EXP3(gamma=0.15), lambda arms: naive_memory.EXP3(arms, 0.15)),
    "exp3, exploring only": PlayerCase(ra.EXP3(gamma=1.0), lambda arms: naive_memory.EXP3(arms, 1.0)),
    "softmix": PlayerCase(ra.SoftMix(d=0.9), lambda arms: naive_memory.SoftMix(arms, 0.9)),
    "exp3++": PlayerCase(ra.EXP3PlusPlus(), lambda arms: naive_memory.EXP3PlusPlus(arms, 18.0)),
    "exp3++, few gaps explored": PlayerCase(
        ra.EXP3PlusPlus(c=0.01), lambda arms: naive_memory.EXP3PlusPlus(arms, 0.01)
    ),
    "ucb-improved": PlayerCase(ra.UCBImproved(horizon=400), lambda arms: naive_memory.UCBImproved(arms, 400)),
    "ucb-improved, soon over": PlayerCase(ra.UCBImproved(horizon=40), lambda arms: naive_memory.UCBImproved(arms, 40)),
    "robust ucb": PlayerCase(ra.RobustUCB(u=0.05), lambda arms: naive_memory.RobustUCB(arms, 0.05)),
    "exp3++ of 2017": PlayerCase(
        ra.EXP3PlusPlusImproved(), lambda arms: naive_memory.EXP3PlusPlusImproved(arms, 3.0, 256.0)
    ),
    "exp3++ of 2017, few gaps explored": PlayerCase(
        ra.EXP3PlusPlusImproved(alpha=0.1, beta=0.01), lambda arms: naive_memory.EXP3PlusPlusImproved(arms, 0.1, 0.01)
    ),
    "ucb on the median of means": PlayerCase(
        ra.policies.MedianUCB(v=0.1, horizon=2, c=1.0), lambda arms: naive_memory.MedianUCB(arms, 0.1, 13)
    ),
    "ucb on catoni's estimate": PlayerCase(
        ra.policies.CatoniUCB(u=0.2, horizon=400), lambda arms: naive_memory.CatoniUCB(arms, 0.2, 400)
    ),
    "ape2": PlayerCase(ra.APE2(p=1.5, c=0.4), lambda arms: naive_memory.APE2(arms, 1.5, 0.4)),
    "ape2 of second moments": PlayerCase(ra.APE2(p=2.0, c=0.4), lambda arms: naive_memory.APE2(arms, 2.0, 0.4)),
    "boltzmann-gumbel of catoni": PlayerCase(
        ra.BoltzmannGumbel(C=0.3, estimator="catoni"),
        lambda arms: naive_memory.CatoniBoltzmannGumbel(arms, 0.3, GAMMA),
    ),
    "scaled gumbel": PlayerCase(ra.ScaledGumbel(), naive_memory.ScaledGumbel),
    "residual gumbel": PlayerCase(ra.ResidualGumbel(), naive_memory.ResidualGumbel),
    "steady, exploring": PlayerCase(
        steady_exploring(),
        lambda arms: naive_memory.Own(
            arms, lambda own, t, i, z: own.mean(i) + z / math.sqrt(own.pulls(i)), lambda own, t, i: 0.2 / own.arms
        ),
    ),
    "shared, exploring": PlayerCase(
        shared_exploring(),
        lambda arms: naive_memory.Own(
            arms,
            lambda own, t, i, z: own.mean(i) + z / math.sqrt(own.pulls(i) + math.log(t)),
            lambda own, t, i: 0.3 / own.arms,
        ),
    ),
    "clocked, exploring": PlayerCase(
        clocked_exploring(),
        lambda arms: naive_memory.Own(
            arms,
            lambda own, t, i, z: own.mean(i) + math.sqrt(math.log(t) / own.pulls(i)),
            lambda own, t, i: 0.9 / (own.arms * math.sqrt(t)),
        ),
    ),
    "steady, remembering": PlayerCase(
        steady_remembering(),
        lambda arms: naive_memory.Own(arms, lambda own, t, i, z: (own.largest(i) + z) / math.sqrt(own.pulls(i))),
    ),
    "clocked, remembering": PlayerCase(
        clocked_remembering(),
        lambda arms: naive_memory.Own(
            arms, lambda own, t, i, z: own.largest(i) + math.sqrt(math.log(t) / own.pulls(i))
        ),
    ),
    "exploring the worse": PlayerCase(
        exploring_the_worse(),
        lambda arms: naive_memory.Own(
            arms,
            lambda own, t, i, z: math.tanh(z) / own.pulls(i) + own.mean(i) * math.log(t),
            lambda own, t, i: (0.5 if own.mean(i) < own.best() else 0.25) / own.arms,
        ),
    ),
    "weighted means": PlayerCase(weighted_means(), naive_memory.WeightedMeans),
}

BERNOULLI = ProblemCase(ra.problems.Bernoulli([0.5, 0.6, 0.4]), naive.bernoulli([0.5, 0.6, 0.4]))

PROBLEMS = {
    "bernoulli": BERNOULLI,
    "gaussian": ProblemCase(
        ra.problems.Gaussian([0.0, 0.5, 0.2, -3.0], sigma=[1.0, 0.5, 2.0, 0.0]),
        naive.gaussian([0.0, 0.5, 0.2, -3.0], [1.0, 0.5, 2.0, 0.0]),
    ),
    "deterministic": ProblemCase(
        ra.problems.Deterministic([0.25, 0.25, 0.125, 0.25]), naive.deterministic([0.25, 0.25, 0.125, 0.25])
    ),
    "uniform": ProblemCase(
        ra.problems.Uniform([0.0, 0.1, -1.0], 1.0), naive.uniform([0.0, 0.1, -1.0], [1.0, 1.0, 1.0])
    ),
    "corrupted by rounds": ProblemCase(
        BERNOULLI.problem.corrupted(arm=1, rounds=50, reward=0.0), naive.corrupted(BERNOULLI.reward, 1, 0.0, rounds=50)
    ),
    "corrupted by pulls": ProblemCase(
        BERNOULLI.problem.corrupted(arm=0, pulls=20, reward=0.9), naive.corrupted(BERNOULLI.reward, 0, 0.9, pulls=20)
    ),
    "corrupted twice": ProblemCase(
        BERNOULLI.problem.corrupted(arm=2, pulls=5, reward=1.0).corrupted(arm=2, rounds=9, reward=-1.0),
        naive.corrupted(naive.corrupted(BERNOULLI.reward, 2, 1.0, pulls=5), 2, -1.0, rounds=9),
    ),
    "restless": ProblemCase(
        restless([0.0, 0.3, 0.1]),
        lambda t, n, arm, u, v, w: [0.0, 0.3, 0.1][arm] + 0.3 * (u - 0.5) + 0.3 * w + math.sin(t) / 10 + arm / (10 + n),
    ),
    "settled": ProblemCase(
        settled([0.0, 0.3, 0.1]),
        lambda t, n, arm, u, v, w: [0.0, 0.3, 0.1][arm] + 0.3 * (u - 0.5) + 0.3 * w + arm / (10 + n),
    ),
    "second": ProblemCase(second([0.2, 0.1]), lambda t, n, arm, u, v, w: [0.2, 0.1][arm] + v - 0.5),
    "threefold": ProblemCase(
        threefold([0.2, 0.1]), lambda t, n, arm, u, v, w: [0.2, 0.1][arm] + (u - 0.5) + (v - 0.5) * w
    ),
    "pareto": ProblemCase(
        ra.problems.Pareto(alpha=[1.01, 1.5, 3.0, 8.0], scale=[0.01, 0.5, 1.0, 1.0]),
        naive.pareto([1.01, 1.5, 3.0, 8.0], [0.01, 0.5, 1.0, 1.0]),
    ),
    "student": ProblemCase(
        ra.problems.StudentT(mean=[0.5, 0.0, 0.3], df=[1.5, 4.0, 30.0], scale=[1.0, 2.0, 0.5]),
        naive.student([0.5, 0.0, 0.3], [1.5, 4.0, 30.0], [1.0, 2.0, 0.5]),
    ),
    "lognormal": ProblemCase(
        ra.problems.LogNormal(mu=[0.0, -1.0, 0.3], sigma=[1.0, 1.5, 0.1]),
        naive.lognormal([0.0, -1.0, 0.3], [1.0, 1.5, 0.1]),
    ),
    "contaminated": ProblemCase(
        ra.problems.Contaminated(mean=[0.5, 0.0, 0.3], sigma=0.5, share=0.1, spread=10.0),
        naive.contaminated([0.5, 0.0, 0.3], 0.5, 0.1, 10.0),
    ),
    "one arm": ProblemCase(ra.problems.Bernoulli([0.5]), naive.bernoulli([0.5])),
    "twelve arms": ProblemCase(
        ra.problems.Uniform(0.0, [0.5 + 0.04 * k for k in range(12)]),
        naive.uniform([0.0] * 12, [0.5 + 0.04 * k for k in range(12)]),
    ),
}
