"""What a bandit shows of its arms: intervals, tables and text."""

from __future__ import annotations

import numpy as np
import pytest

import rightarm as ra
from bandits import CATONI, arm_rows, column, told
from rightarm import inference


def many(seed: int, count: int) -> list[float]:
    return [float(x) for x in np.random.default_rng(seed).random(count)]


def test_the_interval_is_that_of_all_rewards() -> None:
    """Without a range it is asymptotic, and there is none before 100 effective rewards."""
    rewards = {"a": many(1, 200), "b": many(2, 99), "c": [0.5] * 110, "d": []}
    rows = {row["arm"]: row for row in arm_rows(told(rewards))}
    found = inference.means([200], [np.mean(rewards["a"])], [200 * np.var(rewards["a"])])
    assert [rows["a"]["low"], rows["a"]["high"]] == pytest.approx([found.lows[0], found.highs[0]], rel=1e-12)
    assert (rows["a"]["kind"], rows["a"]["mean"]) == ("asymptotic", pytest.approx(np.mean(rewards["a"])))
    for arm in "bcd":
        assert [rows[arm][name] for name in ("low", "high", "kind")] == [None] * 3
    x = np.array(rewards["b"]) - min(rewards["b"])
    worth = min(int(x.sum() ** 2 / (x @ x)), int((x.max() - x).sum() ** 2 / ((x.max() - x) @ (x.max() - x))))
    reasons = [None, f"{worth} of 100 effective rewards", "0 of 100 effective rewards", "no reward"]
    assert [rows[arm]["lacking"] for arm in "abcd"] == reasons
    assert rows["d"]["estimate"] is rows["d"]["mean"] is None


def test_the_interval_of_a_robust_estimate_is_about_the_plain_mean() -> None:
    rewards = {"a": [*many(1, 810), 9.0], "b": many(2, 160)}
    plain, robust = told(rewards), told(rewards, CATONI)
    assert column(plain, "estimate") != column(robust, "estimate")
    for name in ("low", "high", "mean"):
        assert column(plain, name) == column(robust, name)


def test_the_answers_are_those_of_the_statistics() -> None:
    rewards = {"a": many(1, 900), "b": [x / 2 for x in many(2, 200)], "c": many(3, 160)}
    bandit = told(rewards)
    bandit.retire_arm("c")
    counts = [len(values) for values in rewards.values()]
    means = [np.mean(values) for values in rewards.values()]
    spreads = [len(values) * np.var(values) for values in rewards.values()]
    found = bandit.difference("b", "a", confidence=0.9)
    expected = inference.difference(counts[1::-1], means[1::-1], spreads[1::-1], None, 0.9, names=("b", "a"))
    assert [found.low, found.high] == pytest.approx([expected.low, expected.high], rel=1e-9)
    assert str(found) == str(expected)
    assert str(found).startswith("b is worse than a: by 0.")
    best = bandit.best(tolerance=0.01)
    assert (best.leader, best.candidates, best.arms) == ("a", ("a",), 2)
    for arm in "ab":
        bandit.retire_arm(arm)
    with pytest.raises(ValueError, match="every arm is retired"):
        bandit.best()
    with pytest.raises(ValueError, match="other must be one of 'a', 'b', 'c', got 'x'"):
        bandit.difference("a", "x")
    with pytest.raises(ValueError, match="other must be another arm than 'a', got 'a'"):
        bandit.difference("a", "a")


def test_the_summary_is_the_table() -> None:
    polars = pytest.importorskip("polars")
    bandit = told({"a": [0.5, 1.0], ("b", 1): [], 3: [0.25]})
    bandit.ask()
    frame = bandit.summary()
    assert isinstance(frame, polars.DataFrame)
    assert frame.to_dicts() == [row | {"arm": str(row["arm"])} for row in arm_rows(bandit)]


def test_the_text_shows_policy_arms_and_counts() -> None:
    bandit = told({"red": [0.5, 1.0], "green": [0.25]})
    bandit.ask(1_500)
    bandit.retire_arm("green")
    head, titles, red, green, *note = str(bandit).splitlines()
    assert "95%, at any time" in titles
    assert " ".join(note).startswith("Intervals are asymptotic, and an arm has none before 100 effective rewards:")
    assert "1 of 100 effective rewards" in red
    assert head == "BoltzmannGumbel(C=0.5), 3 rewards, 1,500 pending"
    assert red.split()[:3] == ["red", "2", "0.75"]
    assert green.split()[:3] == ["green", "1", "0.25"]
    assert green.endswith("retired")
    assert "retired" not in red


def test_contexts_are_no_comparison_of_arms() -> None:
    """The means of arms that were shown in different contexts are called what they are, in text, HTML and picture."""
    bandit = ra.Bandit(["a", "b"], ra.UCB(C=0.5, estimator=ra.estimators.Linear(1)), seed=1, reward_range=(0, 1))
    for x in range(20):
        bandit.tell(bandit.ask(context=[x]), x / 20)
    said = "Estimates and intervals are of the decisions where an arm was chosen."
    for shown in (str(bandit).replace("\n", " "), bandit._repr_html_()):
        assert said in shown
        assert "difference(arm, other, where=...) does" in shown
    means, shares = bandit.plot().axes
    assert means.get_xlabel().startswith("mean reward where it was chosen (compares no arms)")
    assert [label for _, label in zip(*shares.get_legend_handles_labels(), strict=True)] == ["share of pulls"]
    assert said not in str(told({"a": many(1, 5), "b": many(2, 5)}))
