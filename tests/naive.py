"""The oracle: bandits in plain Python, one number at a time, written straight from the paper.

Nothing here comes from rightarm. Rounds count from 1, the decision of round t uses the rewards of rounds before t, an
arm never pulled goes first in order of its index, and equal scores are broken uniformly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

Temperature = Callable[[int, Any, int], Any]
"""β_t from the round, the spread of the means (largest − smallest) and the number of arms."""

Score = Callable[[int, int, float, float, Sequence[float]], float]
"""An arm's score from the round, its pulls, its mean, its noise, and the means of all arms."""

Reward = Callable[[int, int, int, float, float, float], float]
"""A reward from the round, the arm's pulls (this one included), the arm, u and v uniform and w Gaussian."""


# The temperatures of sections 3 and 6; the paper's learning rate is η_t = 1/β_t.


def constant(c: float) -> Temperature:
    return lambda t, spread, arms: c


def inverse_log(c: float) -> Temperature:
    return lambda t, spread, arms: c / math.log(t)


def inverse_sqrt(c: float) -> Temperature:
    return lambda t, spread, arms: c / math.sqrt(t)


def two_phase(gap: float, horizon: int) -> Temperature:
    """Theorem 3."""

    def temperature(t: int, spread: Any, arms: int) -> float:
        tau = 16 * math.e * arms * math.log(horizon) / gap**2
        eta = 1.0 if t < tau else math.log(t * gap**2) / gap
        return 1 / eta

    return temperature


def glie() -> Temperature:
    """Singh et al. (2000): η_t = log t / max_i (μ̂_best − μ̂_i)."""
    return lambda t, spread, arms: spread / math.log(t)


# The policies, as scores: the arm with the largest is pulled.


def boltzmann(temperature: Temperature) -> Score:
    """Equation (1), by the rule at the head of section 4."""
    return lambda t, n, mean, z, means: mean + temperature(t, max(means) - min(means), len(means)) * z


def boltzmann_gumbel(C: float, location: float) -> Score:
    """Equation (6)."""
    return lambda t, n, mean, z, means: mean + math.sqrt(C**2 / n) * (z + location)


def ucb(C: float) -> Score:
    """Section 6."""
    return lambda t, n, mean, z, means: mean + math.sqrt(C**2 * math.log(t) / n)


def perturbed_mean(scale: float) -> Score:
    """Kim and Tewari 2019, with the law that z has."""
    return lambda t, n, mean, z, means: mean + scale * z / math.sqrt(n)


def kl(p: float, q: float) -> float:
    """The divergence of Bernoulli laws, 0 log 0 being 0; log1p keeps its digits where p and q are close."""
    if p == q:
        return 0.0
    if (p > 0 and q <= 0) or (p < 1 and q >= 1):
        return math.inf
    wins = -p * math.log1p((q - p) / p) if p > 0 else 0.0
    losses = -(1 - p) * math.log1p((p - q) / (1 - p)) if p < 1 else 0.0
    return wins + losses


def within(mean: float) -> float:
    """A mean that rewards in [0, 1] may have; others count as the nearest."""
    return min(1.0, max(0.0, mean))


def exploration_rate(t: int, c: float) -> float:
    """log t + c log log t, of which the second part counts from where it is positive."""
    return math.log(t) + c * max(0.0, math.log(math.log(t)))


def kl_upper(p: float, level: float) -> float:
    """The largest q with kl(p, q) ≤ level, by halving an interval; near 1 one of x = −log(1 − q), which tells more."""
    if p == 1:
        return 1.0
    low, high = p, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if kl(p, middle) <= level else (low, middle)
    if low < 1 - 1e-9:
        return low
    left, right = 20.0, 20.0 + (level + 1) / (1 - p)
    for _ in range(60):
        x = (left + right) / 2
        wins = p * (math.log(p) - math.log1p(-math.exp(-x))) if p > 0 else 0.0
        left, right = (x, right) if wins + (1 - p) * (math.log(1 - p) + x) <= level else (left, x)
    return 1 - math.exp(-left)


def kl_ucb(c: float) -> Score:
    """Cappé et al. 2013: the largest q with n kl(mean, q) ≤ log t + c log log t."""
    return lambda t, n, mean, z, means: kl_upper(within(mean), exploration_rate(t, c) / n)


def gaussian_kl_ucb(sigma: float, c: float) -> Score:
    """The same with the divergence of Gaussian laws, (q − mean)² / (2σ²), solved for q."""
    return lambda t, n, mean, z, means: mean + math.sqrt(2 * sigma**2 * exploration_rate(t, c) / n)


def kl_ms() -> Score:
    """Qin, Jun, Zhang 2023, Algorithm 1: p_i ∝ exp(−n_i kl(mean_i, best))."""
    return lambda t, n, mean, z, means: -n * kl(within(mean), within(max(means))) + z


# The problems.


def bernoulli(mean: Sequence[float]) -> Reward:
    return lambda t, n, arm, u, v, w: 1.0 if u < mean[arm] else 0.0


def gaussian(mean: Sequence[float], sigma: Sequence[float]) -> Reward:
    return lambda t, n, arm, u, v, w: mean[arm] + sigma[arm] * w


def deterministic(mean: Sequence[float]) -> Reward:
    return lambda t, n, arm, u, v, w: mean[arm]


def uniform(low: Sequence[float], high: Sequence[float]) -> Reward:
    return lambda t, n, arm, u, v, w: low[arm] + (high[arm] - low[arm]) * u


def pareto(alpha: Sequence[float], scale: Sequence[float]) -> Reward:
    """P[X > x] = (scale/x)^alpha, turned round at u."""
    return lambda t, n, arm, u, v, w: scale[arm] / u ** (1 / alpha[arm])


def student(mean: Sequence[float], df: Sequence[float], scale: Sequence[float]) -> Reward:
    """Bailey 1994, with u^(−2/df) − 1 = 2·sinh(x)·eˣ at x = −log(u)/df, which keeps its digits near u = 1."""

    def reward(t: int, n: int, arm: int, u: float, v: float, w: float) -> float:
        x = -math.log(u) / df[arm]
        radius = math.sqrt(df[arm] * 2 * math.sinh(x) * math.exp(x))
        return mean[arm] + scale[arm] * radius * math.cos(2 * math.pi * v)

    return reward


def lognormal(mu: Sequence[float], sigma: Sequence[float]) -> Reward:
    return lambda t, n, arm, u, v, w: math.exp(mu[arm]) * math.exp(sigma[arm] * w)


def contaminated(mean: Sequence[float], sigma: float, share: float, spread: float) -> Reward:
    return lambda t, n, arm, u, v, w: mean[arm] + (sigma * spread if u < share else sigma) * w


def corrupted(reward: Reward, arm: int, value: float, rounds: int = 0, pulls: int = 0) -> Reward:
    """Scenario (b) of section 6, in both readings."""

    def corrupt(t: int, n: int, pulled: int, u: float, v: float, w: float) -> float:
        return value if pulled == arm and (t <= rounds or n <= pulls) else reward(t, n, pulled, u, v, w)

    return corrupt


def pick(scores: Sequence[float], ties: Iterator[int]) -> int:
    """An arm with the largest score; among n equal ones a word of 32 bits takes that with index word·n / 2³²."""
    tied = [i for i in range(len(scores)) if scores[i] == max(scores)]
    return tied[0] if len(tied) == 1 else tied[next(ties) * len(tied) >> 32]


def play(
    score: Score,
    reward: Reward,
    noise: Iterable[Sequence[float]],
    luck: Iterable[tuple[float, float, float]],
    ties: Iterator[int],
    pulls: Sequence[int],
    means: Sequence[float],
) -> Iterator[int]:
    """The arm of every round, for as long as noise (a value for each arm) and luck (u, v and w) last.

    ``pulls`` and ``means`` are what is known at the start.
    """
    pulls, means = list(pulls), list(means)
    rewards = [[n * mean] for n, mean in zip(pulls, means, strict=True)]
    for t, (z, (u, v, w)) in enumerate(zip(noise, luck, strict=True), start=sum(pulls) + 1):
        if 0 in pulls:
            arm = pulls.index(0)
        else:
            scores = [score(t, pulls[i], means[i], z[i], means) for i in range(len(pulls))]
            arm = pick(scores, ties)
        pulls[arm] += 1
        rewards[arm].append(reward(t, pulls[arm], arm, u, v, w))
        means[arm] = math.fsum(rewards[arm]) / pulls[arm]
        yield arm


# Random words: xoshiro128++ of Blackman and Vigna, Scrambled linear pseudorandom number generators, 2021.


def xoshiro128(state: Iterable[int]) -> Iterator[int]:
    def rotated(x: int, k: int) -> int:
        return (x << k | x >> (32 - k)) & 0xFFFFFFFF

    s0, s1, s2, s3 = state
    while True:
        yield (rotated((s0 + s3) & 0xFFFFFFFF, 7) + s0) & 0xFFFFFFFF
        shifted = (s1 << 9) & 0xFFFFFFFF
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        s3 = rotated(s3, 11)


def words(seed: int, replication: int, role: int) -> Iterator[int]:
    """A stream of one replication: role 0 is the policy's, 1 the problem's, 2 breaks ties."""
    return xoshiro128(np.random.SeedSequence(seed, spawn_key=(replication, role)).generate_state(4).tolist())


def uniform_of(high: int, low: int) -> float:
    """52 bits of two words, and half a unit more: strictly between 0 and 1."""
    return high * 2.0**-32 + (low & 0xFFFFF000) * 2.0**-64 + 2.0**-53


# Many replications at once on NumPy's own randomness, for comparisons in distribution: a row is a replication.
# Boltzmann exploration is drawn from its probabilities here, not by perturbed scores.

Choice = Callable[[int, F64, F64, np.random.Generator], I64]
"""The arm of every replication from the round, pulls and means (replications × arms)."""


def softmax(temperature: Temperature) -> Choice:
    """Equation (1) as it stands: p_i ∝ exp(η_t μ̂_i)."""

    def choose(t: int, pulls: F64, means: F64, random: np.random.Generator) -> I64:
        best = means.max(axis=1, keepdims=True)
        beta = np.broadcast_to(temperature(t, best - means.min(axis=1, keepdims=True), means.shape[1]), best.shape)
        weights = np.exp((means - best) / np.where(beta > 0, beta, 1.0))  # β = 0 only where all means are equal
        cumulative = np.cumsum(weights, axis=1)
        chosen: I64 = (cumulative < random.random((len(means), 1)) * cumulative[:, -1:]).sum(axis=1)
        return chosen

    return choose


def perturbed(scale: Callable[[F64], F64], draw: Callable[[np.random.Generator, tuple[int, int]], F64]) -> Choice:
    """arg max_i {μ̂_i + scale(N_i) Z_i}."""
    return lambda t, pulls, means, random: np.argmax(means + scale(pulls) * draw(random, means.shape), axis=1)


def optimistic(C: float) -> Choice:
    """UCB of section 6, ties broken by a random key."""

    def choose(t: int, pulls: F64, means: F64, random: np.random.Generator) -> I64:
        scores = means + np.sqrt(C**2 * math.log(t) / pulls)
        chosen: I64 = np.argmax((scores == scores.max(axis=1, keepdims=True)) * random.random(scores.shape), axis=1)
        return chosen

    return choose


def regret_of_many(
    choose: Choice,
    reward: Callable[[int, I64, np.random.Generator], F64],
    gaps: Sequence[float],
    rounds: int,
    replications: int,
    random: np.random.Generator,
) -> F64:
    """Σ_i Δ_i N_i of every replication; ``reward`` takes the round and the pulled arms."""
    every = np.arange(replications)
    pulls, sums = np.zeros((replications, len(gaps))), np.zeros((replications, len(gaps)))
    for t in range(1, rounds + 1):
        arm = np.full(replications, t - 1) if t <= len(gaps) else choose(t, pulls, sums / pulls, random)
        pulls[every, arm] += 1
        sums[every, arm] += reward(t, arm, random)
    regret: F64 = pulls @ np.array(gaps)
    return regret
