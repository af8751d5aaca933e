"""Ranges of rewards, rewards that come late or are corrected, and several of them for one decision."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import BGE, Clock, arm_rows, column, forgetful

# Ranges.


@pytest.mark.parametrize("policy", [ra.BetaThompson(), ra.KLUCB(), ra.KLMS(), ra.EXP3(gamma=0.2)], ids=str)
def test_a_policy_for_rewards_from_0_to_1_refuses_others(policy: ra.Policy) -> None:
    bandit = ra.Bandit(["a", "b"], policy, seed=1)
    decision, before = bandit.ask(), bandit.to_json()
    for reward in (1.5, -0.1, 100):
        with pytest.raises(ValueError, match=rf"reward must be from 0 to 1, which .* is for.*, got {float(reward)}"):
            bandit.tell(decision, reward)
        with pytest.raises(ValueError, match="reward must be from 0 to 1"):
            bandit.tell(arm="b", reward=reward)
        with pytest.raises(ValueError, match="reward must be from 0 to 1"):
            bandit.tell([(decision, reward)])
    assert json.loads(bandit.to_json())["statistics"] == json.loads(before)["statistics"]
    assert bandit.reward_range == (0, 1)


@pytest.mark.parametrize("policy", [ra.BetaThompson(), ra.KLUCB(), ra.KLMS(), ra.EXP3(gamma=0.2)], ids=str)
def test_rewards_of_another_range_are_scaled(policy: ra.Policy) -> None:
    """The same decisions as with rewards from 0 to 1, and estimates in the unit of the rewards."""
    plain = ra.Bandit(["a", "b", "c"], policy, seed=1)
    wide = ra.Bandit(["a", "b", "c"], policy, seed=1, reward_range=(-16, 48))
    random = np.random.default_rng(2)
    for reward in random.integers(0, 65, 200) / 64:
        one, other = plain.ask(), wide.ask()
        assert one == other
        plain.tell(one, float(reward))
        wide.tell(other, -16 + 64 * float(reward))
    for arm, estimate in column(wide, "estimate").items():
        assert estimate == pytest.approx(-16 + 64 * column(plain, "estimate")[arm], abs=1e-12)
    for name in ("low", "high"):
        ends = column(wide, name)
        assert all(end == pytest.approx(-16 + 64 * column(plain, name)[arm], abs=1e-9) for arm, end in ends.items())
    with pytest.raises(ValueError, match="reward must be from -16 to 48, got 49"):
        wide.tell(wide.ask(), 49)
    again = ra.Bandit.from_json(wide.to_json())
    assert (again.reward_range, arm_rows(again)) == ((-16, 48), arm_rows(wide))


def test_a_declared_range_holds_for_every_policy() -> None:
    bandit = ra.Bandit(["a", "b"], BGE, seed=1, reward_range=(0, 500))
    with pytest.raises(ValueError, match="reward must be from 0 to 500, got 501"):
        bandit.tell(bandit.ask(), 501)
    for wrong in ((1, 0), (0, math.inf), (0,), "01"):
        with pytest.raises((ValueError, TypeError), match="reward_range must be"):
            ra.Bandit(["a", "b"], BGE, reward_range=wrong)  # type: ignore[arg-type]


# Corrections.


@pytest.mark.parametrize("settings", [{}, {"discount": 0.9}, {"window": 25}], ids=["all", "discount", "window"])
def test_corrected_statistics_are_those_of_the_right_rewards(settings: dict[str, Any], tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    right, wrong = random.random(60), random.random(60)
    settings = {"reward_range": (0, 1), **settings}
    expected = forgetful(["a", "b"], BGE, seed=1, **settings)
    bandit = forgetful(["a", "b"], BGE, seed=1, log=tmp_path / "log.jsonl", **settings)
    decisions = bandit.ask(60), expected.ask(60)
    for mine, theirs, first, last in zip(*decisions, wrong, right, strict=True):
        bandit.tell(mine, float(first))
        expected.tell(theirs, float(last))
    for decision, reward in zip(reversed(decisions[0]), reversed(right), strict=True):
        assert bandit.correct(decision, 0.5) is True
        assert bandit.correct(decision, float(reward)) is True
    for name in ("pulls", "estimate", "mean", "low", "high", "probability"):
        assert column(bandit, name) == pytest.approx(column(expected, name), rel=1e-9, abs=1e-12)
    frame = ra.logs.read_log(tmp_path / "log.jsonl")
    assert frame["reward"].to_list() == right.tolist()
    assert frame["corrected"].all()


def test_a_cancelled_decision_can_be_corrected() -> None:
    bandit = ra.Bandit(["a", "b"], ra.EXP3(gamma=0.3), seed=1)  # which cannot take back, but has nothing to
    first, second = bandit.ask(2)
    bandit.cancel(first)
    assert bandit.correct(first, 1.0) is True
    assert column(bandit, "pulls")[first.arm] == 1.0
    bandit.tell(second, 0.0)
    with pytest.raises(ValueError, match=r"EXP3\(gamma=0.3\) cannot correct a reward: gain cannot be taken back"):
        bandit.correct(second, 1.0)
    catoni = ra.Bandit(["a", "b"], ra.UCB(C=0.5, estimator=ra.estimators.Catoni(C=1.0)), seed=1)
    decision = catoni.ask()
    with pytest.raises(ValueError, match="has no reward yet that could be corrected: tell it"):
        catoni.correct(decision, 1.0)
    catoni.tell(decision, 1.0)
    assert catoni.correct(decision, 0.5) is True


# Windows of reward.


def windowed(**settings: Any) -> tuple[ra.Bandit[str], Clock]:
    clock = Clock()
    return ra.Bandit(["a", "b"], BGE, seed=1, reward_window=timedelta(seconds=100), clock=clock, **settings), clock


def test_at_close_nothing_is_learned_before() -> None:
    bandit, clock = windowed(learn="at close", default_reward=0.0)
    first, second = bandit.ask(2)
    assert bandit.tell(first, 0.25) is True
    assert bandit.tell(first, 0.25) is False
    assert bandit.tell(first, 0.75) is True  # the last one counts
    clock.now += 99
    assert bandit.ask().round == 1
    clock.now += 1
    assert bandit.ask().round == 3
    means = {first.arm: [0.75], second.arm: [0.0]} if first.arm != second.arm else {first.arm: [0.75, 0.0]}
    assert {arm: value for arm, value in column(bandit, "mean").items() if value is not None} == {
        arm: np.mean(values) for arm, values in means.items()
    }
    assert bandit.tell(second, 1.0) is True  # late: a correction
    assert sum(column(bandit, "pulls").values()) == 2.0
    assert bandit.correct(first, 0.5) is True


def test_at_once_rewards_are_learned_as_they_come() -> None:
    bandit, clock = windowed(default_reward=0.0)
    first, second, third = bandit.ask(3)
    bandit.tell(first, 1.0)
    assert bandit.ask().round == 2
    assert bandit.tell(first, 0.5) is True  # another one replaces it
    clock.now += 100
    assert bandit.ask().round == 5  # the others have the default
    assert bandit.tell(third, 1.0) is True
    total = sum((row["mean"] or 0.0) * row["pulls"] for row in arm_rows(bandit))
    assert total == pytest.approx(0.5 + 0.0 + 1.0)
    assert second.id not in {decision.id for decision in bandit.pending}


def test_without_a_default_silent_decisions_are_forgotten() -> None:
    bandit, clock = windowed(learn="at close")
    bandit.ask(3)
    clock.now += 100
    assert bandit.ask().round == 1
    assert len(bandit.pending) == 1


@pytest.mark.parametrize("learn", ["at once", "at close"])
def test_several_rewards_add_up(learn: str) -> None:
    bandit, clock = windowed(learn=learn, repeated="sum", default_reward=0.0, reward_range=(-10, 100))
    decision = bandit.ask()
    for reward in (20.0, 5.0, -1.0):
        assert bandit.tell(decision, reward) is True
    assert bandit.tell([(decision, 1.0), (decision, 1.0)]) == [True, True]
    with pytest.raises(ValueError, match="reward must be from -10 to 100, got 126"):
        bandit.tell(decision, 100.0)
    clock.now += 100
    bandit.ask()
    assert bandit.tell(decision, 4.0) is True
    assert column(bandit, "mean")[decision.arm] == 30.0


def test_windows_are_recovered_from_the_log(tmp_path: Path) -> None:
    clock, random = Clock(), np.random.default_rng(3)
    settings: dict[str, Any] = {"reward_window": 30.0, "default_reward": 0.0, "learn": "at close", "repeated": "sum"}
    bandit = ra.Bandit(["a", "b", "c"], BGE, seed=2, clock=clock, log=tmp_path / "log.jsonl", **settings)
    for _ in range(300):
        clock.now += float(random.integers(5))
        decision = bandit.ask()
        for old in bandit.pending[:: int(random.integers(1, 9))]:
            bandit.tell(old, float(random.random()))
        if random.random() < 0.1:
            bandit.tell(decision.id - 1 or 1, 1.0)
    expected, state = arm_rows(bandit), json.loads(bandit.to_json())
    bandit.close()
    with ra.Bandit.from_log(tmp_path / "log.jsonl", clock=clock) as again:
        found = json.loads(again.to_json())
        assert arm_rows(again) == expected
        assert {name: found[name] for name in ("pending", "answered", "statistics", "key", "next_id")} == {
            name: state[name] for name in ("pending", "answered", "statistics", "key", "next_id")
        }
    frame = ra.logs.read_log(tmp_path / "log.jsonl")
    assert math.fsum(frame["reward"].drop_nulls()) == pytest.approx(
        sum(row["pulls"] * (row["mean"] or 0) for row in expected)
    )
    assert any(one[11] is not None for one in state["pending"])  # which do not count before they are learned


@pytest.mark.full
def test_equal_arms_of_which_one_answers_slower_keep_equal_shares_at_close_and_not_at_once() -> None:
    """Rewards of both have the mean 0.1; those of b come after 55 rounds, those of a after 3; silence means 0."""
    shares = {"at once": list[float](), "at close": list[float]()}
    for learn, found in shares.items():
        for seed in range(100):
            random, clock = np.random.default_rng(seed), Clock()
            settings: dict[str, Any] = {"reward_window": 60.0, "default_reward": 0.0, "learn": learn}
            bandit = ra.Bandit(["a", "b"], ra.BetaThompson(), clock=clock, seed=seed, **settings)
            coming: dict[float, list[ra.Decision[str]]] = {}
            chosen = 0
            for _ in range(200):
                clock.now += 1.0
                for decision in coming.pop(clock.now, []):
                    bandit.tell(decision, 1.0)
                decision = bandit.ask()
                chosen += decision.arm == "a"
                if random.random() < 0.1:
                    coming.setdefault(clock.now + (3.0 if decision.arm == "a" else 55.0), []).append(decision)
            found.append(chosen / 200)
    z = {learn: (np.mean(x) - 0.5) / (np.std(x, ddof=1) / math.sqrt(len(x))) for learn, x in shares.items()}
    assert abs(z["at close"]) < 4.5
    assert z["at once"] > 4.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"default_reward": 0.0}, r"default_reward needs reward_window, got 0\.0 without it"),
        ({"learn": "at close"}, "learn needs reward_window, got 'at close' without it"),
        ({"reward_window": 0}, "reward_window must be positive, got 0"),
        ({"reward_window": 5, "learn": "later"}, "learn must be one of 'at once', 'at close', got 'later'"),
        ({"reward_window": 5, "repeated": "mean"}, "repeated must be one of 'last', 'sum', got 'mean'"),
        ({"reward_window": 5, "default_reward": 2, "reward_range": (0, 1)}, "^default_reward must be from 0 to 1"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ra.Bandit(["a", "b"], BGE, **settings)
