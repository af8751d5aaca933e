"""Lift: against plain sums, and against what its interval promises on adaptive logs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from adaptive_logs import MEANS, adaptive_logs, softmax_log
from context_logs import F64, World, softmax
from few import few

ARMS = "abc"


def truths(log: dict[str, list[Any]], against: str, eta: float, floor: float) -> float:
    """The mean over the rows of what the log's law earns there minus what the other does."""
    pulls, sums, total = np.ones(3), np.full(3, 0.5), 0.0
    other = MEANS.mean() if against == "uniform" else MEANS[ARMS.index(against)]
    for arm, reward in zip(log["arm"], log["reward"], strict=True):
        weights = np.exp(eta * sums / pulls)
        total += float((floor + (1 - 3 * floor) * weights / weights.sum()) @ MEANS) - other
        pulls[ARMS.index(arm)] += 1
        sums[ARMS.index(arm)] += reward
    return total / len(log["arm"])


@pytest.mark.parametrize("floor", few(1, [0.05, None]))
@pytest.mark.parametrize("against", few(1, ["uniform", "a", "b"]))
def test_coverage_on_adaptive_logs(against: str, floor: float | None) -> None:
    logs = adaptive_logs()
    found = [ra.evaluation.lift(log, against, floor=floor) for log in logs]
    missed = 0
    for own, log in zip(found, logs, strict=True):
        missed += not own.low <= truths(log, against, 10.0, 0.05) <= own.high
    assert missed <= len(logs) * 0.05 + 4.5 * math.sqrt(len(logs) * 0.05 * 0.95)


def test_it_is_narrower_than_two_intervals() -> None:
    log = softmax_log(1, 5_000)
    uniform = ra.evaluate(log, "uniform")
    found = ra.evaluation.lift(log)
    assert found.low > 0.02
    assert found.high - found.low < 1.5 * (uniform.high - uniform.low)
    assert found.estimate == pytest.approx(uniform.logged - uniform.snips)


def test_a_floor_makes_it_narrower_where_rewards_are_rare() -> None:
    log = softmax_log(3, 4_000, eta=40.0, floor=0.05, means=[0.1, 0.03, 0.05])
    plain, floored = ra.evaluation.lift(log), ra.evaluation.lift(log, floor=0.05)
    assert floored.high - floored.low < 0.7 * (plain.high - plain.low)
    with pytest.raises(ValueError, match=r"floor must be at most every propensity, got 0\.3"):
        ra.evaluation.lift(log, floor=0.3)


def test_other_units_and_missing_rewards() -> None:
    log = softmax_log(2, 400)
    plain, scaled = ra.evaluation.lift(log, "b"), dict(log)
    scaled["reward"] = [20 * reward - 10 for reward in log["reward"]]
    other = ra.evaluation.lift(scaled, "b", reward_range=(-10, 10))
    assert [other.low, other.high, other.estimate] == pytest.approx(
        [20 * plain.low, 20 * plain.high, 20 * plain.estimate], rel=1e-6
    )
    scaled["reward"] = [None if i % 2 else reward for i, reward in enumerate(log["reward"])]
    assert ra.evaluation.lift(scaled).rows == 200
    assert ra.evaluation.lift(scaled, missing=0.0).rows == 400


def test_among_some_arms() -> None:
    log = {"arm": ["a", "b"], "propensity": [0.5, 0.25], "reward": [1.0, 0.0], "allowed": [["a", "b"], ["a", "b", "c"]]}
    assert ra.evaluation.lift(log).other == pytest.approx(1.0 / (1.0 + 4 / 3))
    assert ra.evaluation.lift(log, "b").other == 0.0
    with pytest.raises(ValueError, match="against must be an arm that every row could choose, got 'c'"):
        ra.evaluation.lift(log, "c")
    with pytest.raises(ValueError, match=r"against must be 'uniform' or one of \['a', 'b', 'c'\], got 'x'"):
        ra.evaluation.lift(log, "x")


def test_words() -> None:
    text = str(ra.evaluation.lift(softmax_log(1, 2_000), "b", confidence=0.9))
    assert " against always b: between +" in text
    assert text.endswith("(90%, at any time)")


def test_contexts_make_it_narrower_where_they_predict_rewards() -> None:
    def law(x: F64) -> F64:
        return 0.1 + 0.6 * softmax(3 * x[:4])

    widths, missed = [], 0
    for seed in range(30):
        world = World(seed, strength=2.0)
        log = world.log(600, law)
        found = [ra.evaluation.lift(one, floor=0.1) for one in (log, {k: v for k, v in log.items() if k != "context"})]
        truth = world.value(log, law) - world.value(log, lambda x: np.full(4, 0.25))
        missed += not found[0].low <= truth <= found[0].high
        widths.append([one.high - one.low for one in found])
    assert missed <= 30 * 0.05 + 4.5 * math.sqrt(30 * 0.05 * 0.95)
    narrower = np.diff(np.array(widths), axis=1)
    assert narrower.mean() > 4.5 * narrower.std() / math.sqrt(30)
