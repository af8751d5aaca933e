"""Off-policy evaluation: formulas against plain loops, promises against simulations."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rightarm as ra
from adaptive_logs import LAW, MEANS, Log, adaptive_logs, even_log, softmax_log, z
from few import few
from rightarm.evaluation import Evaluation, evaluate, replay
from rightarm.logs import LogWriter


def test_estimates_are_their_formulas() -> None:
    log = softmax_log(1, 300)
    ips = snips = weights = dr = 0.0
    past: dict[str, list[float]] = {"a": [], "b": [], "c": []}
    everything: list[float] = [0.5]
    for arm, propensity, reward in zip(*log.values(), strict=True):
        w = LAW[arm] / propensity
        q = {name: (sum(own) + np.mean(everything)) / (len(own) + 1) for name, own in past.items()}
        ips, weights = ips + w * reward / 300, weights + w
        snips += w * reward
        dr += (sum(LAW[name] * q[name] for name in q) + w * (reward - q[arm])) / 300
        past[arm].append(reward)
        everything.append(reward)
    result = evaluate(log, LAW)
    assert (result.rows, result.left_out) == (300, 0)
    np.testing.assert_allclose([result.ips, result.snips, result.dr], [ips, snips / weights, dr], rtol=1e-10)
    own = np.array([LAW[arm] / p for arm, p in zip(log["arm"], log["propensity"], strict=True)])
    np.testing.assert_allclose(result.effective_rows, own.sum() ** 2 / (own**2).sum())
    np.testing.assert_allclose([result.mean_weight, result.max_weight], [own.mean(), own.max()])
    assert result.logged == pytest.approx(np.mean(log["reward"]))


def test_the_policy_of_the_log_has_the_logs_own_mean() -> None:
    """Weights of 1: the replayed policy is the one that collected the log, row by row."""
    policy, random = ra.Boltzmann(0.2), np.random.default_rng(4)
    pulls, means = np.zeros(3), np.zeros(3)
    log: Log = {"arm": [], "propensity": [], "reward": []}
    for t in range(200):
        p = policy.probabilities(t + 1, pulls, means)
        arm = int(random.choice(3, p=p))
        reward = 3.0 + 2.0 * float(random.random() < MEANS[arm])
        pulls[arm] += 1
        means[arm] += (reward - means[arm]) / pulls[arm]
        for name, value in zip(log, (arm, float(p[arm]), reward), strict=True):
            log[name].append(value)
    result = evaluate(log, policy, reward_range=(3.0, 5.0))
    assert result.mean_weight == pytest.approx(1.0, abs=1e-12)
    assert result.effective_rows == pytest.approx(200)
    assert [result.ips, result.snips] == pytest.approx([np.mean(log["reward"])] * 2)
    assert 3.0 < result.low < result.ips < result.high < 5.0


@pytest.fixture
def adaptive() -> list[Log]:
    return adaptive_logs()


def results(logs: list[Log], policy: Any, **options: Any) -> list[Evaluation]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [evaluate(log, policy, **options) for log in logs]


@pytest.mark.parametrize("law", few(1, [LAW, {"c": 1.0}, "uniform"]), ids=str)
def test_unbiased_and_covering_on_adaptive_logs(adaptive: list[Log], law: Any) -> None:
    truth = float(
        MEANS.mean() if law == "uniform" else sum(law.get(a, 0) * m for a, m in zip("abc", MEANS, strict=True))
    )
    found = results(adaptive, law)
    assert abs(z([one.ips for one in found], truth)) < 4.5
    assert abs(z([one.dr for one in found], truth)) < 4.5
    assert abs(z([one.mean_weight for one in found], 1.0)) < 4.5
    informed = results(adaptive[:100], law, floor=0.05)
    for some in (found, informed):
        missed = sum(not one.low <= truth <= one.high for one in some)
        assert missed <= len(some) * 0.05 + 4.5 * math.sqrt(len(some) * 0.05 * 0.95)
        assert np.mean([one.high - one.low for one in some]) < 0.7
    # Plain means of an arm are biased on such logs: the test can tell the difference.
    if law == {"c": 1.0}:
        plain = [np.mean([r for a, r in zip(log["arm"], log["reward"], strict=True) if a == "c"]) for log in adaptive]
        assert z([float(p) for p in plain], truth) < -4


def test_doubly_robust_is_steadier(adaptive: list[Log]) -> None:
    found = results(adaptive, {"c": 1.0})
    assert np.std([one.dr for one in found]) < 0.85 * np.std([one.ips for one in found])


def test_a_policy_that_learns_from_the_log(adaptive: list[Log]) -> None:
    """Estimates and intervals are about the mean value of its choices given the rows before, which a loop knows."""
    policy, errors, missed = ra.Boltzmann(0.1), [], 0
    for log in adaptive[:30]:
        pulls, means, value = np.zeros(3), np.zeros(3), 0.0
        for t, (name, reward) in enumerate(zip(log["arm"], log["reward"], strict=True)):
            value += float(policy.probabilities(t + 1, pulls, means) @ MEANS) / 200
            arm = "abc".index(name)
            pulls[arm] += 1
            means[arm] += (reward - means[arm]) / pulls[arm]
        result = results([log], policy)[0]
        errors.append(result.dr - value)
        missed += not result.low <= value <= result.high
    assert abs(z(errors, 0.0)) < 4.5
    assert missed <= 30 * 0.05 + 4.5 * math.sqrt(30 * 0.05 * 0.95)


def test_the_order_of_arms_does_not_tell_the_future() -> None:
    """A policy that first tries every arm in turn has weights of mean 1 on even logs, also over short ones."""
    logs = [even_log(seed, 12, means=[0.5] * 6) for seed in range(200)]
    names = list("abcdef")
    weights = [one.mean_weight for one in results(logs, ra.UCB(C=1.0), arms=names)]
    assert abs(z(weights, 1.0)) < 4.5
    full = [log for log in logs if len(set(log["arm"])) == 6]
    assert len(full) > 50
    assert [one.ips for one in results(full, ra.UCB(C=1.0), arms=names)] == [
        one.ips for one in results(full, ra.UCB(C=1.0))
    ]


def test_rewards_of_another_range() -> None:
    log = softmax_log(2, 400)
    plain = evaluate(log, LAW, floor=0.05)
    moved = evaluate(log | {"reward": [10 * r - 2 for r in log["reward"]]}, LAW, reward_range=(-2, 8), floor=0.05)
    for name in ("snips", "dr", "low", "high", "logged"):
        assert getattr(moved, name) == pytest.approx(10 * getattr(plain, name) - 2)
    assert moved.ips == pytest.approx(10 * plain.ips - 2 * plain.mean_weight)


def test_arms_to_choose_among() -> None:
    """Uniform over two arms where the log had two: weights of 1."""
    sets = [["a", "b"], ["b", "c"], ["a", "b", "c"]] * 50
    log: Log = {
        "arm": [row[i % len(row)] for i, row in enumerate(sets)],
        "propensity": [1 / len(row) for row in sets],
        "reward": [float(i % 2) for i in range(150)],
        "allowed": sets,
    }
    assert evaluate(log, "uniform").max_weight == pytest.approx(1.0)
    result = evaluate(log, {"a": 0.5, "b": 0.25, "c": 0.25})
    own = [{"a": 2 / 3, "b": 1 / 3}, {"b": 0.5, "c": 0.5}, {"a": 0.5, "b": 0.25, "c": 0.25}] * 50
    weights = [p[arm] * len(row) for p, arm, row in zip(own, log["arm"], sets, strict=True)]
    assert result.mean_weight == pytest.approx(np.mean(weights))


def test_a_log_is_read_from_its_file(tmp_path: Path) -> None:
    log = even_log(5, 120)
    with LogWriter(tmp_path / "log.jsonl") as writer:
        for i, (arm, propensity, reward) in enumerate(zip(*log.values(), strict=True)):
            writer.decision(i, arm, propensity, i + 1, i, 1.0)
            writer.reward(i, reward, 2.0)
    assert evaluate(tmp_path / "log.jsonl", LAW) == evaluate(log, LAW) == evaluate(pl.DataFrame(log), LAW)
    assert replay(tmp_path / "log.jsonl", ra.UCB(C=0.5)) == replay(log, ra.UCB(C=0.5))


def test_worthless_weights_are_said() -> None:
    log = {"arm": ["a"] * 199 + ["b"], "propensity": [0.99] * 199 + [0.01], "reward": [0.0, 1.0] * 100}
    with pytest.warns(UserWarning, match="rows|weight") as caught:
        result = evaluate(log, {"b": 1.0})
    assert "the effective sample size is 1.0, of 200 rows" in result.warnings[0]
    assert "one row has 100% of all weight, 100" in result.warnings[1]
    assert [str(one.message) for one in caught] == [f"{{'b': 1.0}}: {text}" for text in result.warnings]
    assert "warning: one row has 100%" in str(result)


def test_wrong_propensities_are_noticed() -> None:
    log = even_log(6, 2_000)
    with pytest.warns(UserWarning, match="mean weight|interval is empty"):
        doubled = evaluate(log | {"propensity": [1 / 6] * 2_000}, "uniform")
    assert "the mean weight is 2 and should be near 1" in doubled.warnings[0]
    assert "the interval is empty" in doubled.warnings[1]
    with pytest.warns(UserWarning, match="mean weight is 0.75|never shows"):
        unseen = evaluate(log, "uniform", arms=["a", "b", "c", "d"])
    assert "25% of the choices are of arms that the log never shows" in unseen.warnings[-1]
    assert evaluate(log, "uniform").warnings == ()


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "policy": (
        {},
        {"policy": "best"},
        "policy 'best' is no arm of the log, which are 'a', 'b'",
    ),
    "a number": (
        {"arm": list(range(30)) * 2, "propensity": [0.5] * 60, "reward": [0.0] * 60},
        {"policy": 30},
        "policy 30 is no arm of the log, which are 0, 1, .* 19, \\.\\.\\.$",
    ),
    "no name": (
        {},
        {"policy": ["a"]},
        "policy must be a policy, .*, an arm, probabilities by arm, or a function .*, got .'a'.",
    ),
    "family": ({}, {"policy": ra.UCB}, "call it with its parameters first"),
    "arm": ({}, {"policy": {"z": 1.0}}, "policy must give probabilities to arms of the log, .*, got 'z'"),
    "sum": ({}, {"policy": {"a": 0.5}}, "policy must have probabilities that add up to 1, got 0.5"),
    "negative": ({}, {"policy": {"a": 2.0, "b": -1.0}}, r"policy\['b'\] must be a probability, got -1.0"),
    "propensity": ({"propensity": [0.5, 0.0]}, {}, "propensity of row 2 must be above 0 and at most 1, got 0.0"),
    "tiny propensity": (
        {"propensity": [0.5, 1e-300]},
        {},
        "propensity must be at least 1e-100, got 1e-300 for arm 'b'",
    ),
    "huge range": (
        {},
        {"reward_range": (-1e308, 1e308)},
        r"reward_range must be at most 1e\+100 in size, got \(-1e\+308",
    ),
    "reward": ({"reward": [1.0, 1.5]}, {}, "reward must be from 0.0 to 1.0, see reward_range, got 1.5 in row 2"),
    "range": ({}, {"reward_range": (1, 1)}, r"reward_range must be two numbers, .*, got \(1, 1\)"),
    "no rewards": ({"reward": [None, None]}, {}, "log must have rows with rewards, got 2 rows without"),
    "arms": ({}, {"arms": ["a"]}, r"arms must include every arm of the log, got \['a'\] without 'b'"),
    "floor": ({"propensity": [0.5, 0.2]}, {"floor": 0.3}, "floor must be at most every propensity, got 0.3 and 0.2"),
    "confidence": ({}, {"confidence": 1.5}, "confidence must be between 0 and 1, got 1.5"),
}


@pytest.mark.parametrize(("columns", "options", "said"), WRONG.values(), ids=WRONG)
def test_wrong_arguments(columns: dict[str, Any], options: dict[str, Any], said: str) -> None:
    log = {"arm": ["a", "b"], "propensity": [0.5, 0.5], "reward": [0.0, 1.0]} | columns
    with pytest.raises((ValueError, TypeError), match=said):
        evaluate(log, **({"policy": "uniform"} | options))


def test_an_arm_stands_for_always_this_arm() -> None:
    log = {"arm": ["a", "b"] * 500, "propensity": [0.8, 0.2] * 500, "reward": [0.0, 1.0] * 500}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert replace(evaluate(log, "b"), policy="") == replace(evaluate(log, {"b": 1.0}), policy="")
        numbered = log | {"arm": [0, 1] * 500}
        assert evaluate(numbered, 1).ips == evaluate(log, "b").ips
