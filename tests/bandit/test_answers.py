"""A bandit's answers are about all rewards that it has learned, as they are now, in their own unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import BGE, arm_rows, forgetting
from rightarm import inference


def rewards(seed: int, count: int, high: float = 1.0) -> list[float]:
    return [float(high * x) for x in np.random.default_rng(seed).random(count)]


def statistics(*own: list[float]) -> tuple[Any, Any, Any]:
    return [len(x) for x in own], [np.mean(x) for x in own], [len(x) * np.var(x) for x in own]


def told(bandit: ra.Bandit[str], **own: list[float]) -> ra.Bandit[str]:
    for arm, values in own.items():
        for value in values:
            bandit.tell(arm=arm, reward=value)
    return bandit


def check(bandit: ra.Bandit[str], own: list[list[float]], limits: tuple[float, float] | None) -> None:
    """Intervals, a difference and the best arm are those of these rewards of a and b."""
    found, expected = arm_rows(bandit), inference.means(*statistics(*own), limits)
    for row, low, high in zip(found, expected.lows, expected.highs, strict=True):
        assert [row["low"], row["high"], row["kind"]] == [pytest.approx(low), pytest.approx(high), expected.kind]
    apart, other = bandit.difference("a", "b"), inference.difference(*statistics(*own), limits)
    assert [apart.low, apart.high] == pytest.approx([other.low, other.high])
    best, other_best = bandit.best(), inference.best(*statistics(*own), limits, names="ab")
    assert (best.leader, best.candidates) == (other_best.leader, other_best.candidates)
    assert best.cost == pytest.approx(other_best.cost)


@pytest.mark.parametrize("policy", [BGE, ra.BetaThompson(), ra.UCB1()], ids=str)
def test_in_a_declared_range(policy: ra.Policy) -> None:
    bandit = ra.Bandit(["a", "b"], policy, reward_range=(0, 500))
    a, b = rewards(1, 12, 200.0), rewards(2, 40, 400.0)
    check(told(bandit, a=a, b=b), [a, b], (0, 500))


def test_the_range_of_a_policy() -> None:
    a, b = rewards(1, 12), rewards(2, 40)
    check(told(ra.Bandit(["a", "b"], ra.BetaThompson()), a=a, b=b), [a, b], (0, 1))


@pytest.mark.parametrize("options", [{"discount": 0.9}, {"window": 7}], ids=str)
def test_what_is_forgotten_counts_too(options: dict[str, Any]) -> None:
    a, b = rewards(1, 30), rewards(2, 40)
    bandit = told(ra.Bandit(["a", "b"], forgetting(BGE, **options), reward_range=(0, 1)), a=a, b=b)
    check(bandit, [a, b], (0, 1))
    assert arm_rows(bandit)[1]["mean"] == pytest.approx(np.mean(b))
    assert arm_rows(bandit)[1]["estimate"] != pytest.approx(np.mean(b), abs=1e-3)


def test_a_corrected_reward_is_corrected() -> None:
    bandit, last = ra.Bandit(["a", "b"], BGE, reward_range=(0, 1), seed=1), dict[str, ra.Decision[str]]()
    own: dict[str, list[float]] = {"a": [], "b": []}
    for value in rewards(1, 30):
        decision = bandit.ask()
        bandit.tell(decision, value)
        own[decision.arm].append(value)
        last[decision.arm] = decision
    for arm, decision in last.items():
        bandit.correct(decision, 0.0)
        own[arm][-1] = 0.0
    check(bandit, [own["a"], own["b"]], (0, 1))


def test_a_prior_proves_nothing() -> None:
    a, b = rewards(1, 30), rewards(2, 40)
    bandit = ra.Bandit({"a": (0.9, 100), "b": None}, BGE, reward_range=(0, 1))
    check(told(bandit, a=a, b=b), [a, b], (0, 1))


def test_the_text_has_no_note_where_intervals_hold() -> None:
    bandit = told(ra.Bandit(["a", "b"], BGE, reward_range=(0, 1)), a=[1.0, 0.5])
    assert len(str(bandit).splitlines()) == 4
