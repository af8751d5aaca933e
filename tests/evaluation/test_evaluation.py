"""Off-policy evaluation and replay: formulas against plain loops, promises against simulations, real logs."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rightarm as ra
from rightarm.evaluation import Evaluation, evaluate, replay
from rightarm.logs import LogWriter, read_table

MEANS = np.array([0.7, 0.4, 0.5])
LAW = {"a": 0.2, "b": 0.5, "c": 0.3}
Log = dict[str, list[Any]]


def softmax_log(seed: int, rounds: int, eta: float = 4.0, floor: float = 0.05, means: Any = MEANS) -> Log:
    """A log of softmax over the means so far, mixed with a floor: as adaptive as a log can be."""
    random, means = np.random.default_rng(seed), np.asarray(means)
    pulls, sums = np.ones(means.size), np.full(means.size, 0.5)
    rows: Log = {"arm": [], "propensity": [], "reward": []}
    for _ in range(rounds):
        weights = np.exp(eta * sums / pulls)
        p = floor + (1 - floor * means.size) * weights / weights.sum()
        arm = int(random.choice(means.size, p=p))
        reward = float(random.random() < means[arm])
        pulls[arm] += 1
        sums[arm] += reward
        for name, value in zip(rows, ("abcdefgh"[arm], float(p[arm]), reward), strict=True):
            rows[name].append(value)
    return rows


def even_log(seed: int, rounds: int, means: Any = MEANS) -> Log:
    return softmax_log(seed, rounds, eta=0.0, floor=0.0, means=means)


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
    assert result.ips == result.snips == pytest.approx(np.mean(log["reward"]))
    assert 3.0 < result.low < result.ips < result.high < 5.0


@pytest.fixture(scope="module")
def adaptive() -> list[Log]:
    return [softmax_log(seed, 200, eta=10.0) for seed in range(300)]


def results(logs: list[Log], policy: Any, **options: Any) -> list[Evaluation]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [evaluate(log, policy, **options) for log in logs]


def z(values: list[float], truth: float) -> float:
    return (float(np.mean(values)) - truth) / (float(np.std(values, ddof=1)) / math.sqrt(len(values)))


@pytest.mark.parametrize("law", [LAW, {"c": 1.0}, "uniform"], ids=str)
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


def test_rows_without_a_reward() -> None:
    log = even_log(3, 300)
    holes = log | {"reward": [None if i % 3 == 0 else r for i, r in enumerate(log["reward"])]}
    some = evaluate(holes, "uniform")
    assert (some.rows, some.left_out) == (200, 100)
    assert "(100 without a reward left out)" in str(some)
    kept = {name: [v for i, v in enumerate(column) if i % 3] for name, column in log.items()}
    assert some.ips == evaluate(kept, "uniform").ips
    zeros = log | {"reward": [0.0 if i % 3 == 0 else r for i, r in enumerate(log["reward"])]}
    assert evaluate(holes, "uniform", missing=0.0) == evaluate(zeros, "uniform")


def test_arms_to_choose_among() -> None:
    """Uniform over two arms where the log had two: weights of 1."""
    sets = [["a", "b"], ["b", "c"], ["a", "b", "c"]] * 50
    log: Log = {
        "arm": [row[i % len(row)] for i, row in enumerate(sets)],
        "propensity": [1 / len(row) for row in sets],
        "reward": [float(i % 2) for i in range(150)],
        "among": sets,
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
    log = {"arm": ["a"] * 199 + ["b"], "propensity": [0.99] * 199 + [0.01], "reward": [1.0] * 200}
    with pytest.warns(UserWarning, match="rows|weight") as caught:
        result = evaluate(log, {"b": 1.0})
    assert "the 200 rows are worth only 1.0 of the policy's own" in result.warnings[0]
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
    "policy": ({}, {"policy": "best"}, "policy must be a policy, 'uniform', or probabilities by arm, got 'best'"),
    "family": ({}, {"policy": ra.UCB}, "call it with its parameters first"),
    "arm": ({}, {"policy": {"z": 1.0}}, "policy must give probabilities to arms of the log, .*, got 'z'"),
    "sum": ({}, {"policy": {"a": 0.5}}, "policy must have probabilities that add up to 1, got 0.5"),
    "negative": ({}, {"policy": {"a": 2.0, "b": -1.0}}, r"policy\['b'\] must be a probability, got -1.0"),
    "propensity": ({"propensity": [0.5, 0.0]}, {}, "propensity of row 2 must be above 0 and at most 1, got 0.0"),
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


def test_columns_must_be_there() -> None:
    with pytest.raises(ValueError, match="got none called 'propensity'"):
        evaluate({"arm": ["a"], "reward": [1.0]}, "uniform")


# Replay.


def live(policy: ra.Policy, rounds: int, seed: int) -> float:
    """The mean reward of a policy that plays for itself."""
    random, earned = np.random.default_rng(1_000 + seed), 0.0
    pulls, means, memory = np.zeros(3), np.zeros(3), {name: np.zeros(3) for name in policy.columns}
    for t in range(1, rounds + 1):
        probability = policy.probabilities(t, pulls, means, memory) if policy.weighted else np.ones(3)
        arm = policy.choose(t, pulls, means, random, memory)
        reward = float(random.random() < MEANS[arm])
        earned, pulls[arm] = earned + reward, pulls[arm] + 1
        means[arm] += (reward - means[arm]) / pulls[arm]
        own = {name: float(column[arm]) for name, column in memory.items()}
        p = float(probability[arm])
        for name, value in policy.learned(t, int(pulls[arm]), means[arm], reward, own, 3, p).items():
            memory[name][arm] = value
    return earned / rounds


@pytest.mark.parametrize("policy", [ra.UCB(C=0.5), ra.GaussianThompson(), ra.EXP3(gamma=0.2)], ids=str)
def test_replay_earns_what_the_policy_earns_live(policy: ra.Policy) -> None:
    rounds, replayed, played = 30, [], []
    for seed in range(50):
        result = replay(even_log(seed, 180), policy, seed=seed)
        assert result.kept == len(result.rewards) == sum(result.pulls.values())
        assert result.kept > rounds
        replayed.append(float(result.rewards[:rounds].mean()))
        played.append(live(policy, rounds, seed))
    difference = np.array(replayed) - np.array(played)
    assert abs(z(difference.tolist(), 0.0)) < 4.5
    assert np.mean(replayed) > MEANS.mean()


def test_replay_of_a_fixed_law_and_its_interval() -> None:
    missed, truth = 0, float(sum(LAW[a] * m for a, m in zip("abc", MEANS, strict=True)))
    for seed in range(60):
        result = replay(even_log(seed, 300), LAW, seed=seed)
        missed += not result.low <= truth <= result.high
    assert missed <= 60 * 0.05 + 4.5 * math.sqrt(60 * 0.05 * 0.95)
    assert result.high - result.low < 0.5


def test_replay_thins_a_log_that_is_not_even(adaptive: list[Log]) -> None:
    with pytest.raises(
        ValueError, match=r"replay needs a log collected evenly at random, got propensities from 0\.\d+"
    ):
        replay(adaptive[0], "uniform")
    kept = [replay(log, "uniform", floor=0.05, seed=seed) for seed, log in enumerate(adaptive)]
    assert abs(z([one.kept / one.rows for one in kept], 0.05)) < 4.5
    assert abs(z([one.pulls["b"] / one.rows for one in kept], 0.05 / 3)) < 4.5


def test_replay_wants_all_arms() -> None:
    log = {"arm": ["a", "b"], "propensity": [0.25, 0.25], "reward": [0.0, 1.0]}
    with pytest.raises(ValueError, match=r"a propensity of 0.25 in every row means about 4 arms, got 2; say which"):
        replay(log, "uniform")
    assert replay(log, {"a": 1.0}, arms=["a", "b", "c", "d"]).kept == 1
    with pytest.raises(ValueError, match="agreed with none of the log's 2 rows"):
        replay(log, {"c": 1.0}, arms=["a", "b", "c", "d"])


# Real logs.

DATA = os.environ.get("RIGHTARM_OPEN_BANDIT")
real = pytest.mark.skipif(DATA is None, reason="RIGHTARM_OPEN_BANDIT does not name the folder of the Open Bandit logs")


def open_bandit(name: str) -> pl.DataFrame:
    return read_table(Path(str(DATA)) / name, arm="item_id", propensity="propensity_score", reward="click")


@real
def test_the_click_rate_of_the_random_policy_from_the_log_of_another() -> None:
    even, other = open_bandit("men-random.csv"), open_bandit("men-bts.csv")
    truth = float(even["reward"].mean() or 0.0)  # type: ignore[arg-type]
    result = evaluate(other, "uniform")
    assert result.low <= truth <= result.high
    weighted = (1 / 34 / other["propensity"] * other["reward"]).to_numpy()
    error = math.sqrt(weighted.var() / weighted.size + truth * (1 - truth) / len(even))
    assert abs(result.ips - truth) < 4.5 * error
    assert result.effective_rows == pytest.approx(655.7, abs=0.1)


@real
def test_replay_over_the_random_log() -> None:
    even = open_bandit("men-random.csv")
    for policy in (ra.BoltzmannGumbel(C=0.1), ra.UCB(C=0.1)):
        result = replay(even, policy)
        assert abs(result.kept - 10_000 / 34) < 4.5 * math.sqrt(10_000 / 34)
        assert result.low <= 0.0046 <= result.high


def test_columns_of_unequal_length_are_refused() -> None:
    log = {"arm": ["a", "b"] * 5, "propensity": [0.5] * 10, "reward": [0.0] * 6}
    with pytest.raises(ValueError, match=r"the columns of a log must be of one length, got \[6, 10\]"):
        ra.evaluate(log, "uniform")


def test_replay_notices_an_arm_too_many() -> None:
    log = {"arm": list(range(34)) * 3, "propensity": [1 / 34] * 102, "reward": [0.0] * 102}
    with pytest.raises(ValueError, match="about 34 arms, got 35"):
        ra.replay(log, ra.UCB(C=0.5), arms=range(35))
