"""What a bandit shows of its arms: intervals, tables and text."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rightarm as ra
from bandits import CATONI, column, told


def test_the_interval_is_the_normal_one_of_a_variance_that_leans_on_all_arms() -> None:
    """Σ (x − mean)² is 0.6875 and 0.5 in arms a and b, 1.1875 of 3 + 1 in all: a common variance of 0.296875."""
    bandit = told({"a": [0.0, 1.0, 1.0, 0.5], "b": [0.5, 1.5], "c": [0.25], "d": []})
    low, high = column(bandit, "low"), column(bandit, "high")
    for arm, mean, variance, pulls in (
        ("a", 0.625, (0.6875 + 0.296875) / 4, 4),
        ("b", 1.0, (0.5 + 0.296875) / 2, 2),
        ("c", 0.25, 0.296875, 1),
    ):
        half = 1.96 * math.sqrt(variance / pulls)
        assert [low[arm], high[arm]] == pytest.approx([mean - half, mean + half], rel=1e-12)
    assert [low["d"], high["d"], column(bandit, "estimate")["d"]] == [None] * 3


def test_without_two_rewards_of_one_arm_there_is_no_interval() -> None:
    bandit = told({"a": [0.0], "b": [0.5], "c": []})
    assert set(column(bandit, "low").values()) | set(column(bandit, "high").values()) == {None}


def test_the_interval_of_a_robust_estimate_is_about_the_plain_mean() -> None:
    rewards = {"a": [0.0, 1.0, 9.0], "b": [0.5, 0.25]}
    plain, robust = told(rewards), told(rewards, CATONI)
    assert column(plain, "estimate") != column(robust, "estimate")
    for name in ("low", "high"):
        assert column(plain, name) == column(robust, name)


@pytest.mark.parametrize("reward", [0.1, 0.45, 0.6, 1 / 3])
def test_equal_rewards_have_no_spread(reward: float) -> None:
    """Whatever rounding does to their mean: the interval is a point, and the state can be kept."""
    bandit = told({"a": [], "b": [reward]})
    for _ in range(100):
        bandit.tell(arm="a", reward=reward)
        for row in bandit.table()[: bandit.ask().round > 3]:
            assert [row["low"], row["high"]] == pytest.approx([reward, reward], abs=1e-12)
        assert ra.Bandit.from_json(bandit.to_json()).table() == bandit.table()


def test_the_interval_in_a_window_is_that_of_the_last_rewards() -> None:
    bandit, rewards = told({"a": [], "b": []}, window=8), np.random.default_rng(3).random(100).tolist()
    for reward in rewards:
        bandit.tell(arm="a", reward=1e6 + reward)
    spread = 8 * np.var(rewards[-8:])
    half = 1.96 * math.sqrt((spread + spread / 7) / 8 / 8)
    row = bandit.table()[0]
    assert row["high"] - row["low"] == pytest.approx(2 * half, rel=1e-6)


def test_the_interval_forgets_by_the_discount() -> None:
    bandit = told({"a": [0.0, 1.0] * 20 + [0.5] * 400, "b": []}, discount=0.9)
    row = bandit.table()[0]
    assert row["estimate"] == pytest.approx(0.5, abs=1e-9)
    assert 0 <= row["high"] - row["low"] < 1e-6  # 0.9^400 of what it was


def test_the_summary_is_the_table() -> None:
    polars = pytest.importorskip("polars")
    bandit = told({"a": [0.5, 1.0], ("b", 1): [], 3: [0.25]})
    bandit.ask()
    frame = bandit.summary()
    assert isinstance(frame, polars.DataFrame)
    assert frame.to_dicts() == [row | {"arm": str(row["arm"])} for row in bandit.table()]


def test_the_text_shows_policy_arms_and_counts() -> None:
    bandit = told({"red": [0.5, 1.0], "green": [0.25]})
    bandit.ask(1_500)
    bandit.retire_arm("green")
    head, _, red, green = str(bandit).splitlines()
    assert head == "BoltzmannGumbel(C=0.5), 3 rewards, 1,500 pending"
    assert red.split()[:3] == ["red", "2", "0.75"]
    assert green.split()[:3] == ["green", "1", "0.25"]
    assert green.endswith("retired")
    assert "retired" not in red
