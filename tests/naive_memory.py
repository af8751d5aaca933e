"""The oracle for policies with a state of their own: players in plain Python, as the papers print them.

Nothing here comes from rightarm. A player sees what a bandit's player sees: it is asked for an arm and told the reward.
Randomness is given to it: a value for each arm, and one uniform number for exploration. Exponential weights are kept
as they are printed, as probability vectors, and drawn by the Gumbel trick; scores that tie are broken uniformly, before
exploration takes the arm over.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence

from naive import Reward, pick


class Player:
    """A policy with what it has seen; the subclasses say how arms are scored, explored and learned about."""

    first_in_turn = True  # every arm is pulled once before anything is computed

    def __init__(self, arms: int) -> None:
        self.arms = arms
        self.rewards: list[list[float]] = [[] for _ in range(arms)]

    def pulls(self, arm: int) -> int:
        return len(self.rewards[arm])

    def mean(self, arm: int) -> float:
        return total(self.rewards[arm]) / len(self.rewards[arm])

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        """What the largest of is pulled."""
        raise NotImplementedError

    def floors(self, t: int) -> list[float]:
        """The probability with which each arm is explored."""
        return [0.0] * self.arms

    def choose(self, t: int, z: Sequence[float], share: float, ties: Iterator[int]) -> int:
        for arm in range(self.arms):
            if self.first_in_turn and not self.rewards[arm]:
                return arm
        arm = pick(self.scores(t, z), ties)
        height = 0.0
        for other, floor in enumerate(self.floors(t)):
            if height <= share < height + floor:
                arm = other
            height += floor
        return arm

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.rewards[arm].append(reward)


def total(values: Iterable[float]) -> float:
    """The sum, rounded once."""
    return math.fsum(values)


Make = Callable[[int], Player]
"""A player for a number of arms."""


def play(
    make: Make,
    arms: int,
    reward: Reward,
    noise: Iterable[Sequence[float]],
    shares: Iterable[float],
    luck: Iterable[tuple[float, float, float]],
    ties: Iterator[int],
) -> Iterator[int]:
    """The arm of every round, for as long as noise, shares (uniform numbers) and luck last."""
    player = make(arms)
    for t, (z, share, (u, v, w)) in enumerate(zip(noise, shares, luck, strict=True), start=1):
        arm = player.choose(t, z, share, ties)
        player.learn(t, arm, reward(t, player.pulls(arm) + 1, arm, u, v, w))
        yield arm


class EpsilonGreedy(Player):
    """Auer, Cesa-Bianchi, Fischer 2002, Figure 3."""

    def __init__(self, arms: int, epsilon: Callable[[int, int], float]) -> None:
        super().__init__(arms)
        self.epsilon = epsilon

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        return [self.mean(arm) for arm in range(self.arms)]

    def floors(self, t: int) -> list[float]:
        return [self.epsilon(t, self.arms) / self.arms] * self.arms


def decreasing(c: float, d: float) -> Callable[[int, int], float]:
    """ε_n = min{1, cK/(d²n)}."""
    return lambda n, arms: min(1.0, c * arms / (d * d * n))


class SquareCB(Player):
    """Foster and Rakhlin 2020, Algorithm 1, with predictions in place of losses: b is the best arm,
    p_a = 1/(K + γ (y_b − y_a)) for all others, p_b = 1 − Σ p_a; arms that are as good as b explore as the others do."""

    def __init__(self, arms: int, gamma: Callable[[int, int], float]) -> None:
        super().__init__(arms)
        self.gamma = gamma

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        return [self.mean(arm) for arm in range(self.arms)]

    def floors(self, t: int) -> list[float]:
        means, gamma = self.scores(t, ()), self.gamma(t, self.arms)
        return [1 / (self.arms + gamma * (max(means) - mean)) for mean in means]


class LinMED(Player):
    """Balagopalan and Jun 2025 without the optimal design, on rows that are unit vectors: V⁻¹ is diagonal, 1/n."""

    def __init__(self, arms: int, sigma: float, alpha: float) -> None:
        super().__init__(arms)
        self.sigma, self.alpha = sigma, alpha

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        means = [self.mean(arm) for arm in range(self.arms)]
        leaders = [arm for arm in range(self.arms) if means[arm] == max(means)]
        unsure = max(1 / self.pulls(arm) for arm in leaders)
        scores = []
        for arm, mean in enumerate(means):
            if arm in leaders:
                scores.append(math.log(self.alpha + (1 - self.alpha) / self.arms) + z[arm])
            else:
                divergence = (max(means) - mean) ** 2 / (2 * self.sigma**2 * (1 / self.pulls(arm) + unsure))
                scores.append(math.log((1 - self.alpha) / self.arms) - divergence + z[arm])
        return scores


class ExploreThenCommit(Player):
    """Each arm ``each`` times, then one arm, chosen once and for all."""

    def __init__(self, arms: int, each: int) -> None:
        super().__init__(arms)
        self.each = each
        self.committed: int | None = None

    def choose(self, t: int, z: Sequence[float], share: float, ties: Iterator[int]) -> int:
        if self.committed is not None:
            return self.committed
        if t > self.each * self.arms:
            self.committed = super().choose(t, z, share, ties)
            return self.committed
        return super().choose(t, z, share, ties)

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        if t > self.each * self.arms:
            return [self.mean(arm) for arm in range(self.arms)]
        return [-self.pulls(arm) for arm in range(self.arms)]


class ExponentialWeights(Player):
    """Probabilities (1 − Σ floors) w_i / Σ_j w_j + floor_i; a reward counts by its decision's own probability."""

    first_in_turn = False

    def __init__(self, arms: int) -> None:
        super().__init__(arms)
        self.estimates = [0.0] * arms
        self.probabilities = [1.0] * arms

    def rate(self, t: int) -> float:
        """The learning rate: weights are exp(rate · estimate)."""
        raise NotImplementedError

    def gain(self, reward: float) -> float:
        """What is estimated."""
        return reward

    def exponents(self, t: int) -> list[float]:
        """The logarithms of the weights."""
        return [self.rate(t) * estimate for estimate in self.estimates]

    def weights(self, t: int) -> list[float]:
        """Divided by the largest, as they would overflow."""
        exponents = self.exponents(t)
        return [math.exp(exponent - max(exponents)) for exponent in exponents]

    def distribution(self, t: int) -> list[float]:
        weights, floors = self.weights(t), self.floors(t)
        return [(1 - sum(floors)) * w / sum(weights) + floor for w, floor in zip(weights, floors, strict=True)]

    def choose(self, t: int, z: Sequence[float], share: float, ties: Iterator[int]) -> int:
        certain = self.first_in_turn and not all(self.rewards)
        self.probabilities = [1.0] * self.arms if certain else self.distribution(t)
        return super().choose(t, z, share, ties)

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        return [exponent + noise for exponent, noise in zip(self.exponents(t), z, strict=True)]

    def learn(self, t: int, arm: int, reward: float) -> None:
        super().learn(t, arm, reward)
        self.estimates[arm] += self.gain(reward) / self.probabilities[arm]


class WeightedMeans(ExponentialWeights):
    """Made up: every arm once, then weights that grow with the estimated gain per pull and the best of all gains."""

    first_in_turn = True

    def exponents(self, t: int) -> list[float]:
        best = max(self.estimates)
        return [0.5 * gain / self.pulls(arm) - 0.01 * (best - gain) for arm, gain in enumerate(self.estimates)]


class EXP3(ExponentialWeights):
    """Auer, Cesa-Bianchi, Freund, Schapire 2002, Figure 1."""

    def __init__(self, arms: int, gamma: float) -> None:
        super().__init__(arms)
        self.gamma = gamma

    def rate(self, t: int) -> float:
        return self.gamma / self.arms

    def floors(self, t: int) -> list[float]:
        return [self.gamma / self.arms] * self.arms


class SoftMix(ExponentialWeights):
    """Cesa-Bianchi and Fischer 1998; choices are uniform until log(t − 1) / (t − 1) falls."""

    def __init__(self, arms: int, d: float) -> None:
        super().__init__(arms)
        self.d = d

    def gamma(self, t: int) -> float:
        if t <= 3:
            return 1.0
        return min(1.0, 5 * self.arms * math.log(t - 1) / (self.d**2 * (t - 1)))

    def rate(self, t: int) -> float:
        spread = self.arms / self.gamma(t)
        return math.log(1 + self.d * (1 + spread) / (2 * spread - self.d**2)) / (1 + spread)

    def floors(self, t: int) -> list[float]:
        return [self.gamma(t) / self.arms] * self.arms


class EXP3PlusPlus(ExponentialWeights):
    """Seldin and Slivkins 2014, Algorithm 1, with the empirical gaps of section 4."""

    def __init__(self, arms: int, c: float) -> None:
        super().__init__(arms)
        self.c = c

    def gain(self, reward: float) -> float:
        return -(1 - reward)

    def rate(self, t: int) -> float:
        return math.sqrt(math.log(self.arms) / (t * self.arms)) / 2

    def floors(self, t: int) -> list[float]:
        losses = [-estimate for estimate in self.estimates]
        floors = []
        for loss in losses:
            gap = min(1.0, (loss - min(losses)) / max(t - 1, 1))
            xi = self.c * math.log(t) ** 2 / (t * gap**2) if gap > 0 else (0.0 if t == 1 else math.inf)
            floors.append(min(1 / (2 * self.arms), self.rate(t), xi))
        return floors


class EXP3PlusPlusImproved(EXP3PlusPlus):
    """Seldin and Lugosi 2017; an arm's upper bound is that of its last pull."""

    first_in_turn = True

    def __init__(self, arms: int, alpha: float, beta: float) -> None:
        super().__init__(arms, c=beta)
        self.alpha = alpha
        self.upper = [math.nan] * arms

    def radius(self, t: int, arm: int) -> float:
        return math.sqrt(self.alpha * math.log(t * self.arms ** (1 / self.alpha)) / (2 * self.pulls(arm)))

    def floors(self, t: int) -> list[float]:
        floors = []
        for arm in range(self.arms):
            lower = max(0.0, 1 - self.mean(arm) - self.radius(t, arm))
            gap = max(0.0, lower - min(self.upper))
            xi = self.c * math.log(t) / (t * gap**2) if gap > 0 else math.inf
            floors.append(min(1 / (2 * self.arms), self.rate(t), xi))
        return floors

    def learn(self, t: int, arm: int, reward: float) -> None:
        super().learn(t, arm, reward)
        self.upper[arm] = min(1.0, 1 - self.mean(arm) + self.radius(t, arm))


class UCBImproved(Player):
    """Auer and Ortner 2010, Figure 1; the arms of a phase take turns, those with fewest pulls first."""

    def __init__(self, arms: int, horizon: int) -> None:
        super().__init__(arms)
        self.horizon, self.phase, self.active = horizon, 0, set(range(arms))

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        return [-self.pulls(arm) if arm in self.active else -math.inf for arm in range(self.arms)]

    def learn(self, t: int, arm: int, reward: float) -> None:
        super().learn(t, arm, reward)
        last_phase = math.floor(math.log2(self.horizon / math.e) / 2)
        if self.phase > last_phase or len(self.active) == 1:
            return
        delta = 2.0**-self.phase
        needed = math.ceil(2 * math.log(self.horizon * delta**2) / delta**2)
        if all(self.pulls(i) >= needed for i in self.active):
            radius = math.sqrt(math.log(self.horizon * delta**2) / (2 * needed))
            best = max(self.mean(i) - radius for i in self.active)
            self.active = {i for i in self.active if self.mean(i) + radius >= best}
            self.phase += 1


class RobustUCB(Player):
    """Bubeck, Cesa-Bianchi, Lugosi 2013: the truncated mean, ε = 1; a reward is truncated by δ of its own round,
    or of round K + 1 if that is later."""

    def __init__(self, arms: int, u: float) -> None:
        super().__init__(arms)
        self.u = u
        self.kept: list[list[float]] = [[] for _ in range(arms)]

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        spans = [4 * math.sqrt(self.u * math.log(t**2) / len(kept)) for kept in self.kept]
        return [total(kept) / len(kept) + span for kept, span in zip(self.kept, spans, strict=True)]

    def learn(self, t: int, arm: int, reward: float) -> None:
        super().learn(t, arm, reward)
        bound = math.sqrt(self.u * self.pulls(arm) / math.log(max(t, self.arms + 1) ** 2))
        self.kept[arm].append(reward if abs(reward) <= bound else 0.0)


class CatoniBoltzmannGumbel(Player):
    """Section 4 of the paper: equation (6) with Catoni's estimate, summed anew in every round."""

    def __init__(self, arms: int, C: float, location: float) -> None:
        super().__init__(arms)
        self.C, self.location = C, location
        self.known: list[float] = [math.nan] * arms

    def estimate(self, arm: int) -> float:
        n = self.pulls(arm)
        beta = math.sqrt(self.C**2 / n)
        return beta * math.fsum(influence(x / (beta * n)) for x in self.rewards[arm])

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        betas = [math.sqrt(self.C**2 / self.pulls(arm)) for arm in range(self.arms)]
        return [self.known[arm] + betas[arm] * (self.location + z[arm]) for arm in range(self.arms)]

    def learn(self, t: int, arm: int, reward: float) -> None:
        super().learn(t, arm, reward)
        self.known[arm] = self.estimate(arm)  # of the pulled arm only: that of the others is what it was


class CatoniUCB(Player):
    """A UCB on Catoni's estimate whose C belongs to a probability of T⁻²."""

    def __init__(self, arms: int, u: float, horizon: int) -> None:
        super().__init__(arms)
        self.u, self.C = u, math.sqrt(u / (2 * math.log(horizon**2)))
        self.known: list[float] = [math.nan] * arms

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        spans = [math.sqrt(2 * self.u * math.log(t**2) / self.pulls(arm)) for arm in range(self.arms)]
        return [known + span for known, span in zip(self.known, spans, strict=True)]

    def learn(self, t: int, arm: int, reward: float) -> None:
        super().learn(t, arm, reward)
        n = self.pulls(arm)
        alpha = 1 / (self.C * math.sqrt(n))
        self.known[arm] = math.fsum(influence(alpha * x) for x in self.rewards[arm]) / (alpha * n)


class MedianUCB(Player):
    """A UCB on the median of the means of so many groups, to which rewards are dealt in turn; c = 1."""

    def __init__(self, arms: int, v: float, groups: int) -> None:
        super().__init__(arms)
        self.v, self.groups = v, groups

    def estimate(self, arm: int) -> float:
        dealt = [self.rewards[arm][g :: self.groups] for g in range(self.groups)]
        return statistics.median(math.fsum(group) / len(group) for group in dealt if group)

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        spans = [math.sqrt(self.v * math.log(t**2) / self.pulls(arm)) for arm in range(self.arms)]
        return [self.estimate(arm) + span for arm, span in enumerate(spans)]


class APE2(Player):
    """Lee, Yang, Lim, Oh 2020, with Gumbel noise; each reward is cut down by the n of its own pull."""

    def __init__(self, arms: int, p: float, c: float) -> None:
        super().__init__(arms)
        self.p, self.c = p, c
        q = (2 - p) / (p - 1)
        self.b = (2 * q ** (1 - 2 / p) + q ** (2 - 2 / p)) ** (-p / 2)
        self.cut: list[list[float]] = [[] for _ in range(arms)]

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        means = [total(cut) / len(cut) for cut in self.cut]
        return [
            m + self.c / len(cut) ** (1 - 1 / self.p) * noise for m, cut, noise in zip(means, self.cut, z, strict=True)
        ]

    def learn(self, t: int, arm: int, reward: float) -> None:
        super().learn(t, arm, reward)
        scale = self.c * self.pulls(arm) ** (1 / self.p)
        size = scale * math.log1p(abs(reward) / scale + self.b * (abs(reward) / scale) ** self.p)
        self.cut[arm].append(math.copysign(size, reward))


def influence(x: float) -> float:
    """ψ(x) = sign(x) log(1 + |x| + x²/2)."""
    return math.copysign(math.log1p(abs(x) + x * x / 2), x)


class Own(Player):
    """Made up: a score and floors as functions of the player, the round, the arm, and the noise."""

    def __init__(
        self,
        arms: int,
        score: Callable[[Own, int, int, float], float],
        floor: Callable[[Own, int, int], float] = lambda player, t, arm: 0.0,
    ) -> None:
        super().__init__(arms)
        self.score, self.floor = score, floor

    def largest(self, arm: int) -> float:
        """The largest reward, or zero where all were negative."""
        return max(0.0, *self.rewards[arm], 0.0)

    def best(self) -> float:
        return max(self.mean(arm) for arm in range(self.arms))

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        return [self.score(self, t, arm, z[arm]) for arm in range(self.arms)]

    def floors(self, t: int) -> list[float]:
        return [self.floor(self, t, arm) for arm in range(self.arms)]


class ScaledGumbel(Player):
    """score_i = mean_i + σ_i/(2 K^(1/6) √n_i) z,  σ_i² = V + a g_i⁴/(g_i² + a V),  a = 6.

    g_i is how far an arm is behind the best, and V the largest Σ(x − mean)²/(n + 2) of an arm.
    """

    def scores(self, t: int, z: Sequence[float]) -> list[float]:
        return [self.score(arm, z[arm]) for arm in range(self.arms)]

    def score(self, arm: int, z: float) -> float:
        behind = max(self.mean(other) for other in range(self.arms)) - self.mean(arm)
        shown = max(self.shown(other) for other in range(self.arms))
        variance = shown
        if behind > 0:
            variance += 6 * behind**4 / (behind**2 + 6 * shown)
        scale = math.sqrt(variance) / (2 * math.cbrt(math.sqrt(self.arms)) * math.sqrt(self.pulls(arm)))
        return self.mean(arm) + scale * z

    def shown(self, arm: int) -> float:
        """The variance that an arm has shown."""
        mean = self.mean(arm)
        return total((x - mean) ** 2 for x in self.rewards[arm]) / (self.pulls(arm) + 2)


class ResidualGumbel(ScaledGumbel):
    """score_i = mean_i + √(V/n_i)/(2 K^(1/6)) z."""

    def score(self, arm: int, z: float) -> float:
        shown = max(self.shown(other) for other in range(self.arms))
        return self.mean(arm) + math.sqrt(shown / self.pulls(arm)) / (2 * math.pow(self.arms, 1 / 6)) * z
