"""Without a range a bandit says nothing of arms before there is evidence, and what is missing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

import rightarm as ra
from bandits import BGE, arm_rows
from rightarm.bandit import ledger
from rightarm.types import F64

NAMES = ["a", "b"]


def revenue(random: np.random.Generator, size: int, buyers: float = 0.05, offset: float = 0.0) -> F64:
    return np.asarray(offset + (random.random(size) < buyers) * np.exp(random.normal(3, 1, size)))


def worth(values: list[float]) -> float:
    """What an arm's rewards are worth, from all of them: from the lowest or the highest on, whichever says less."""
    x = np.array(values or [0.0])
    sides = [x - x.min(), x.max() - x]
    return min(round(float(one.sum() ** 2 / (one @ one)), 6) if one.any() else 0.0 for one in sides)


def check(bandit: ra.Bandit[Any], own: dict[str, list[float]]) -> list[bool]:
    """Intervals, the difference and the best arm are there exactly where there is evidence; which arms have it."""
    enough = [worth(own[arm]) >= 100 for arm in NAMES]
    rows, apart, best = arm_rows(bandit), bandit.difference("a", "b"), bandit.best(tolerance=1e9)
    for row, known in zip(rows, enough, strict=True):
        assert (row["low"] is not None) == (row["high"] is not None) == (row["kind"] is not None) == known
        said = f"{int(worth(own[row['arm']]))} of 100 effective rewards" if own[row["arm"]] else "no reward"
        assert row["lacking"] == (None if known else said)
        assert (said in str(bandit)) == (not known)
    assert np.isfinite([apart.low, apart.high]).all() == all(enough)
    assert (apart.lacking == best.lacking == "") == all(enough)
    assert (best.leader is not None) == best.stop == all(enough)
    return enough


@pytest.mark.parametrize("offset", [0.0, -1.0, -30.0], ids=str)
def test_revenue_with_or_without_a_cost(offset: float) -> None:
    random, bandit = np.random.default_rng(1), ra.Bandit(NAMES, ra.BoltzmannGumbel(C=20.0), seed=1)
    own, seen = {arm: list[float]() for arm in NAMES}, set[tuple[bool, ...]]()
    for t, reward in enumerate(revenue(random, 14_000, offset=offset).tolist()):
        if t in (0, 1, 5, 50) or t % 1_000 == 0:
            seen.add(tuple(check(bandit, own)))
        decision = bandit.ask()
        bandit.tell(decision, reward)
        own[decision.arm].append(reward)
    seen.add(tuple(check(bandit, own)))
    assert {(False, False), (True, True)} <= seen
    assert "declare a reward_range or wait" in " ".join(str(bandit).split())


def test_rewards_around_zero_have_intervals() -> None:
    random, bandit = np.random.default_rng(1), ra.Bandit(NAMES, BGE, seed=1, floor=0.3)
    for reward in random.normal(size=500):
        bandit.tell(bandit.ask(), float(reward))
    assert [row["kind"] for row in arm_rows(bandit)] == ["asymptotic"] * 2


def test_the_extremes_are_those_of_the_rewards_as_they_are_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Corrected ones too, those told of an arm, and those that are not remembered one by one any more."""
    monkeypatch.setattr(ledger, "REMEMBERED", 30)
    random, bandit = np.random.default_rng(1), ra.Bandit(NAMES, BGE, seed=1)
    own = {arm: list[float]() for arm in NAMES}
    for _ in range(200):
        decision, reward = bandit.ask(), float(random.normal())
        bandit.tell(decision, 3 * reward)  # from near enough that the sums have the digits
        bandit.correct(decision, reward)
        own[decision.arm].append(reward)
    bandit.tell(arm="a", reward=-7.0)
    own["a"].append(-7.0)
    for one in (bandit, ra.Bandit.from_json(bandit.to_json())):
        lows, highs = one._state.ledger.extremes()
        assert lows.tolist() == [min(own[arm]) for arm in NAMES]
        assert highs.tolist() == [max(own[arm]) for arm in NAMES]
    assert len(json.loads(bandit.to_json())["settled"]) == 2
    assert np.isnan(ra.Bandit(NAMES, BGE)._state.ledger.extremes()).all()


def test_without_rewards_there_is_no_leader() -> None:
    for limits in (None, (0.0, 1.0)):
        bandit = ra.Bandit(NAMES, BGE, seed=1, reward_range=limits)
        assert bandit.best(tolerance=5).leader is None
        assert not bandit.best(tolerance=5).stop
        assert str(bandit.best()) == str(bandit.difference("a", "b")) == "cannot tell yet: no reward of a or b"
        bandit.tell(arm="a", reward=1.0)
        assert str(bandit.difference("b", "a")).startswith("cannot tell yet: no reward of b")
        assert str(bandit.best()).startswith("cannot tell yet: no reward of b")
        assert not bandit.best(tolerance=5).stop


def test_a_guardrail_waits_for_evidence() -> None:
    """Fifty rewards that happen to be low retire no arm whose purchases have not come yet."""
    bandit = ra.Bandit(NAMES, BGE, control="a", seed=1)
    bandit.change(guardrail=0.1)
    for reward in revenue(np.random.default_rng(1), 4_000, 0.2):
        bandit.tell(arm="a", reward=float(reward))
    for _ in range(3_000):
        bandit.tell(arm="b", reward=0.0)
    bandit.tell(arm="b", reward=0.01)
    assert [row["retired"] for row in arm_rows(bandit)] == [False, False]


def test_the_picture_says_how_many_arms_have_no_interval() -> None:
    bandit = ra.Bandit(NAMES, BGE, seed=1)
    bandit.tell(arm="a", reward=1.0)
    assert "2 arms without interval: too few rewards" in bandit.plot().axes[0].get_xlabel()
    known = ra.Bandit(NAMES, BGE, seed=1, reward_range=(0, 1))
    for arm in NAMES:
        known.tell(arm=arm, reward=1.0)
    assert "without interval" not in known.plot().axes[0].get_xlabel()


@pytest.mark.full
@pytest.mark.parametrize("policy", [ra.ScaledGumbel(), ra.BoltzmannGumbel(C=12.0)], ids=str)
def test_whole_bandits_are_covered(policy: ra.Policy) -> None:
    """Equal arms, 5% buyers: what bandits themselves say at twenty looks is wrong in at most 5% of runs."""
    runs, rounds, mean = 120, 9_000, 0.05 * np.exp(3.5)
    looks = set(np.geomspace(100, rounds, 20).astype(int).tolist())
    wrong, opened = np.zeros((runs, 3), dtype=bool), 0
    for seed in range(runs):
        random, bandit = np.random.default_rng([seed, 3]), ra.Bandit(NAMES, policy, seed=seed)
        for t, reward in enumerate(revenue(random, rounds)):
            bandit.tell(bandit.ask(), float(reward))
            if t + 1 in looks:
                rows = [(row["low"], row["high"]) for row in arm_rows(bandit)]
                outside = [low is not None and not low <= mean <= high for low, high in rows]
                wrong[seed] |= [*outside, bandit.difference("a", "b").better is not None]
        opened += any(row["low"] is not None for row in arm_rows(bandit))
    assert opened > runs / 2
    for column in wrong.T:
        assert stats.binom.sf(column.sum() - 1, runs, 0.05) > stats.norm.sf(4.5)
