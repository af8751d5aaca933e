"""An independent reader of a bandit's events: folds them again, and recomputes every propensity from the formulas.

Nothing here comes from rightarm. It takes lines of JSON, as the service gives them at ``/events`` or the store at
``events``, and raises a `Wrong` at the first thing that cannot be: a gap in the numbers, an id twice, a decision that
is answered twice, a propensity that does not follow from the events before it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import quad

CLOSE = 1e-9  # relative
Statistics = Mapping[Any, Sequence[float]]
"""The rewards of each arm."""
Scores = Callable[[float, Sequence[Sequence[float]]], tuple[list[float], list[float]]]
"""From the round and the rewards of each arm: location and scale of each score, whose noise is standard Gumbel."""


class Wrong(AssertionError):
    """Events that cannot be."""


# The formulas of the paper, and that of ScaledGumbel.


def mean(rewards: Sequence[float]) -> float:
    return math.fsum(rewards) / len(rewards)


def boltzmann(temperature: Callable[[float], float]) -> Scores:
    """Equation (1): p_i ∝ exp(μ̂_i / β_t), which Gumbel noise of scale β_t gives."""
    return lambda t, arms: ([mean(arm) for arm in arms], [temperature(t)] * len(arms))


def boltzmann_gumbel(C: float, location: float) -> Scores:
    """Equation (6): μ̂_i + β_i Z_i, where β_i = √(C² / N_i)."""

    def scores(t: float, arms: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
        beta = [math.sqrt(C**2 / len(arm)) for arm in arms]
        return [mean(arm) + b * location for arm, b in zip(arms, beta, strict=True)], beta

    return scores


def ucb(C: float) -> Scores:
    """Section 6: μ̂_i + √(C² log t / N_i)."""
    return lambda t, arms: ([mean(arm) + C * math.sqrt(math.log(t) / len(arm)) for arm in arms], [0.0] * len(arms))


def scaled_gumbel(t: float, arms: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """Scale σ̂_i / (2 K^(1/6) √N_i), where σ̂_i² = V + 6 g_i⁴ / (g_i² + 6 V).

    V = max_j S_j / (N_j + 2), g_i = max_j μ̂_j − μ̂_i.
    """
    means = [mean(arm) for arm in arms]
    spread = max(
        math.fsum((x - center) ** 2 for x in arm) / (len(arm) + 2) for arm, center in zip(arms, means, strict=True)
    )
    gaps = [max(means) - center for center in means]
    sigma = [math.sqrt(spread + (6 * g**4 / (g**2 + 6 * spread) if g > 0 else 0.0)) for g in gaps]
    return means, [s / (2 * len(arms) ** (1 / 6) * math.sqrt(len(arm))) for s, arm in zip(sigma, arms, strict=True)]


def temperature_of(schedule: Mapping[str, Any]) -> Callable[[float], float]:
    c = schedule["parameters"]["c"]
    return {"constant": lambda t: c, "inverse_log": lambda t: c / math.log(t), "inverse_sqrt": lambda t: c / t**0.5}[
        schedule["formula"].partition(":")[2]
    ]


def scores_of(policy: Mapping[str, Any]) -> Scores:
    """The formula that a specification in the events names."""
    numbers = policy["parameters"]
    match policy["formula"].partition(":")[2]:
        case "Boltzmann":
            return boltzmann(temperature_of(numbers["temperature"]))
        case "BoltzmannGumbel":
            return boltzmann_gumbel(**numbers)
        case "UCB":
            return ucb(**numbers)
        case "ScaledGumbel":
            return scaled_gumbel
        case name:
            raise NotImplementedError(f"no formula for {name}")


# The probability that each score is the largest.


def largest(location: Sequence[float], scale: Sequence[float]) -> list[float]:
    """The probability of each arm: without noise the best ones share it, with noise of one scale it is the softmax."""
    best = max(location)
    if max(scale) == 0.0:
        tied = [float(one == best) for one in location]
        return [one / sum(tied) for one in tied]
    if min(scale) == max(scale):
        weights = [math.exp((one - best) / scale[0]) for one in location]
        return [one / math.fsum(weights) for one in weights]
    if min(scale) == 0.0:
        return beside_sure(location, scale)
    return [integral(i, np.array(location), np.array(scale)) for i in range(len(location))]


def beside_sure(location: Sequence[float], scale: Sequence[float]) -> list[float]:
    """The same where some scores are sure and some are not: the largest of the sure ones is to be beaten.

    P(i) = ∫ exp(−Σ_j e^(−(x − m_j)/β_j)) du over u = e^(−(x − m_i)/β_i) from 0 to its value where x is that score.
    """
    noisy = [i for i, own in enumerate(scale) if own > 0]
    top = max(one for one, own in zip(location, scale, strict=True) if own == 0)
    chance = [float(one == top and own == 0) for one, own in zip(location, scale, strict=True)]
    below = math.exp(-math.fsum(math.exp((location[j] - top) / scale[j]) for j in noisy))
    chance = [below * one / sum(chance) for one in chance]
    for i in noisy:

        def density(u: float, i: int = i) -> float:
            x = location[i] - scale[i] * math.log(u)
            return math.exp(-math.fsum(math.exp((location[j] - x) / scale[j]) for j in noisy))

        end = math.exp((location[i] - top) / scale[i])
        chance[i] = quad(density, 0.0, end, epsabs=0.0, epsrel=1e-12, limit=500)[0]
    return chance


def integral(i: int, location: Any, scale: Any) -> float:
    """∫ f(z) Π_j F((m_i + β_i z − m_j) / β_j) dz over j ≠ i, f and F those of the standard Gumbel law.

    The logarithm g of the integrand is concave, so it has one peak. The trapezoid rule on the line converges
    exponentially; its step is a part of the narrowest of the factors.
    """
    with np.errstate(over="ignore"):
        ratio, shift = scale[i] / scale, (location[i] - location) / scale  # for j = i: 1 and 0

        def g(z: Any) -> Any:
            return -z - np.exp(-np.outer(z, ratio) - shift).sum(axis=1)

        def rises(z: float) -> bool:
            return bool((ratio * np.exp(-z * ratio - shift)).sum() > 1)

        peak = halved(rises, -800.0, 1e9)
        height = g(np.array([peak]))[0]
        left = halved(lambda z: g(np.array([z]))[0] < height - 45, peak - 100.0, peak)
        z = np.arange(left, peak + 45.0, 0.3 / max(1.0, ratio.max()))
        return float(np.exp(g(z)).sum() * (z[1] - z[0]))


def halved(low_side: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition ends that holds below it."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if low_side(middle) else (low, middle)
        if high - low < 1e-6:
            break
    return low


# The events.


@dataclass
class Story:
    """What happened to a bandit."""

    number: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    arms: list[Any] = field(default_factory=list)
    active: list[Any] = field(default_factory=list)
    decisions: dict[int, dict[str, Any]] = field(default_factory=dict)
    so_far: dict[int, float] = field(default_factory=dict)
    answers: dict[int, float | None] = field(default_factory=dict)
    waiting: Counter[Any] = field(default_factory=Counter)
    rewards: dict[Any, list[float]] = field(default_factory=dict)
    recomputed: int = 0

    @property
    def learned(self) -> int:
        return sum(map(len, self.rewards.values()))

    def take(self, event: Mapping[str, Any]) -> None:
        if event["n"] != self.number + 1:
            raise Wrong(f"event {event['n']} follows {self.number}")
        self.number += 1
        match event["event"]:
            case "created" | "change":
                self._change(event)
            case "decision":
                self._decide(event)
            case "reward" if event.get("part"):
                self.so_far[self._pending(event["id"])] = event["reward"]
            case "reward" | "cancel":
                self._answer(event["id"], event.get("reward"))
            case "expiry":
                for number in event["ids"]:
                    self._answer(number, event.get("reward", self.so_far.get(number)))
            case "correction":
                self._correct(event["id"], event["reward"])
            case "observation":
                self.rewards.setdefault(event["arm"], []).append(event["reward"])
            case "late":  # it came after its time, and is not learned
                if event["id"] not in self.answers:
                    raise Wrong(f"the reward of decision {event['id']} is late before its time is over")
            case kind:
                raise NotImplementedError(f"events of the kind {kind}")

    def _change(self, event: Mapping[str, Any]) -> None:
        self.settings = {**self.settings, **event.get("settings", {})}
        self.policy = event.get("policy", self.policy)
        self.active = event.get("arms", self.active)
        self.arms += [arm for arm in self.active if arm not in self.arms]
        if event.get("prior"):
            raise NotImplementedError("priors")

    def _decide(self, event: Mapping[str, Any]) -> None:
        number, arm = event["id"], event["arm"]
        if number in self.decisions:
            raise Wrong(f"decision {number} is made twice")
        if event["round"] != self.learned + 1:
            raise Wrong(f"decision {number} is of round {event['round']} after {self.learned} rewards")
        chance = self.probabilities(event.get("allowed"))
        if not math.isclose(event["propensity"], chance[arm], rel_tol=CLOSE):
            raise Wrong(f"decision {number} has the propensity {event['propensity']}, but {arm} had {chance[arm]}")
        self.decisions[number] = dict(event)
        self.waiting[arm] += 1
        self.recomputed += 1

    def _pending(self, number: int) -> int:
        if number not in self.decisions or number in self.answers:
            raise Wrong(f"decision {number} is answered {'again' if number in self.answers else 'before it is made'}")
        return number

    def _answer(self, number: int, reward: float | None) -> None:
        arm = self.decisions[self._pending(number)]["arm"]
        self.answers[number] = reward
        self.waiting[arm] -= 1
        if reward is not None:
            self.rewards.setdefault(arm, []).append(reward)

    def _correct(self, number: int, reward: float) -> None:
        if number not in self.answers:
            raise Wrong(f"decision {number} is corrected before it is answered")
        before, learned = self.answers[number], self.rewards.setdefault(self.decisions[number]["arm"], [])
        if before is not None:
            learned.remove(before)
        learned.append(reward)
        self.answers[number] = reward

    def probabilities(self, allowed: Iterable[Any] | None = None) -> dict[Any, float]:
        """Of each arm that can be chosen: the floor and the holdout mixed with what the policy wants."""
        names, settings = self.active if allowed is None else list(allowed), self.settings
        holdout, control = settings.get("holdout") or 0.0, settings.get("control")
        floor = (settings.get("floor") or 0.0) / (1 - holdout)
        chance = {name: floor + (1 - len(names) * floor) * own for name, own in self._wanted(names).items()}
        held = names if control is None else [name for name in names if name == control]
        if not holdout or not held:
            return chance
        return {name: (1 - holdout) * own + (name in held) * holdout / len(held) for name, own in chance.items()}

    def _wanted(self, names: Sequence[Any]) -> dict[Any, float]:
        """What the policy wants; while some arms have no reward, these share the draw in the documented way."""
        known = [name for name in names if self.rewards.get(name)]
        untried = [name for name in names if name not in known]
        free = [name for name in untried if not self.waiting[name]]
        if untried and (free or not known):
            first = free if known else untried
            return {name: (name in first) / len(first) for name in names}
        location, scale = scores_of(self.policy)(self.learned + 1, [self.rewards[name] for name in known])
        own = dict(zip(known, largest(location, scale), strict=True))
        return {name: own[name] * len(known) / len(names) if name in own else 1 / len(names) for name in names}


def read(lines: Iterable[str | bytes]) -> Story:
    """All events of a bandit, checked."""
    story = Story()
    for line in lines:
        event = json.loads(line)
        if event["event"] != "head":  # of a log in files
            story.take(event)
    return story
