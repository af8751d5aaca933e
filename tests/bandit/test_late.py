"""Rewards that come after their window, where they are kept and not learned; and another policy on the way."""

import json
from pathlib import Path

import pytest

import rightarm as ra
from bandits import arm_rows
from rightarm.logs.events import LateReward
from rightarm.logs.outcomes import read_events


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def bandit_with(clock: Clock, log: Path | None = None, **settings: object) -> "ra.Bandit[str]":
    options: dict[str, object] = {"reward_window": 10.0, "late": "keep", "default_reward": 0.0} | settings
    return ra.Bandit(["a", "b"], ra.UCB(C=0.5), seed=1, clock=clock, log=log, **options)  # type: ignore[arg-type]


def rewards(bandit: "ra.Bandit[str]") -> float:
    total: float = sum(row["mean"] * row["pulls"] for row in arm_rows(bandit) if row["pulls"])
    return total


@pytest.mark.parametrize("learn", ["at once", "at close"])
def test_a_late_reward_is_in_the_log_and_is_not_learned(tmp_path: Path, learn: str) -> None:
    clock = Clock()
    bandit = bandit_with(clock, tmp_path / "log.jsonl", learn=learn)
    soon, silent = bandit.ask(2)
    assert bandit.tell(soon, 1.0)
    clock.now += 11
    assert not bandit.tell(silent, 1.0)
    assert not bandit.tell(silent, 1.0)  # again: nothing more is kept
    assert not bandit.tell(soon, 0.25)
    assert rewards(bandit) == 1.0
    late = [event for event in read_events(tmp_path / "log.jsonl") if isinstance(event, LateReward)]
    assert [(event.id, event.reward) for event in late] == [(silent.id, 1.0), (soon.id, 0.25)]
    text = bandit.to_json()
    again = ra.Bandit.from_json(text, clock=clock)
    assert not again.tell(silent, 1.0)
    assert json.loads(again.to_json()) == json.loads(text) | {"log": None}
    bandit.close()
    assert ra.Bandit.from_log(tmp_path / "log.jsonl", clock=clock).to_json() == text


def test_late_rewards_correct_unless_they_are_to_be_kept() -> None:
    clock = Clock()
    bandit = bandit_with(clock, late="correct")
    decision = bandit.ask()
    clock.now += 11
    assert bandit.tell(decision, 1.0)
    assert rewards(bandit) == 1.0


def test_late_needs_a_window() -> None:
    with pytest.raises(ValueError, match="late needs reward_window, got 'keep' without it"):
        ra.Bandit(["a"], late="keep")
    with pytest.raises(ValueError, match="late must be one of 'correct', 'keep', got 'lose'"):
        ra.Bandit(["a"], reward_window=1.0, late="lose")  # type: ignore[arg-type]


def test_another_policy_goes_on_with_what_was_learned(tmp_path: Path) -> None:
    bandit = ra.Bandit(["a", "b"], ra.UCB(C=0.5), seed=1, log=tmp_path / "log.jsonl")
    for _ in range(10):
        bandit.tell(bandit.ask(), 0.5)
    assert bandit.change(policy=ra.BoltzmannGumbel(C=0.5))
    assert not bandit.change(policy=ra.BoltzmannGumbel(C=0.5))
    assert sum(row["pulls"] for row in arm_rows(bandit)) == 10
    decision, text = bandit.ask(), bandit.to_json()
    assert decision.propensity < 1
    bandit.close()
    assert ra.Bandit.from_log(tmp_path / "log.jsonl").to_json() == text


def test_a_policy_that_cannot_go_on_changes_nothing() -> None:
    bandit = ra.Bandit(["a", "b"], ra.UCB(C=0.5), seed=1)
    bandit.tell(arm="a", reward=1.0)
    before = bandit.to_json()
    with pytest.raises(ValueError, match="does not carry over"):
        bandit.change(policy=ra.UCB(C=0.5, estimator=ra.estimators.Catoni(C=2.0)))
    assert bandit.to_json() == before
    with pytest.raises(TypeError, match=r"policy must be a policy such as UCB\(C=0\.5\), got 'UCB'"):
        bandit.change(policy="UCB")  # type: ignore[arg-type]
    assert bandit.change() is False
    assert bandit.to_json() == before


def test_a_clock_that_went_back_keeps_only_its_own_decisions_waiting() -> None:
    now = [1e9]
    bandit = ra.Bandit(["a"], seed=1, reward_window=60, default_reward=0.0, clock=lambda: now[0])
    ahead = bandit.ask()
    now[0] = 1000.0
    bandit.ask()
    now[0] = 1060.0
    bandit.close_windows()
    assert bandit.pending == [ahead]
    now[0] = 1e9 + 60
    bandit.close_windows()
    assert bandit.pending == []
