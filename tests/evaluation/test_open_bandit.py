"""Evaluation and replay on two logs of the Open Bandit Dataset, where these are at hand."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path

import polars as pl
import pytest

import rightarm as ra
from adaptive_logs import z
from rightarm.evaluation import evaluate, replay
from rightarm.logs import read_table

DATA = os.environ.get("RIGHTARM_OPEN_BANDIT")
real = pytest.mark.skipif(DATA is None, reason="RIGHTARM_OPEN_BANDIT does not name the folder of the Open Bandit logs")
USER = [f"user_feature_{i}" for i in range(4)]  # of which the logs have digests


def open_bandit(name: str, context: ra.estimators.Features | None = None) -> pl.DataFrame:
    path = Path(str(DATA)) / name
    return read_table(path, arm="item_id", propensity="propensity_score", reward="click", context=context)


def user_features() -> ra.estimators.Features:
    """What is known of users, with the levels of the random log; others are "other"."""
    table = pl.read_csv(Path(str(DATA)) / "men-random.csv")
    if not set(USER) <= set(table.columns):
        pytest.skip("these logs are without the features of users; those of the package obp have them")
    return ra.estimators.Features(
        categories={name: table[name].unique().sort().to_list() for name in USER}, required=True
    )


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
        assert abs(result.rounds - 10_000 / 34) < 4.5 * math.sqrt(10_000 / 34)
        assert result.low <= 0.0046 <= result.high


@real
def test_the_click_rate_of_the_other_half_from_the_random_log() -> None:
    """The arms that Thompson sampling chose, in their shares, would have earned on the random log what it earned."""
    even, other = open_bandit("men-random.csv"), open_bandit("men-bts.csv")
    shares = {arm: count / len(other) for arm, count in other["arm"].value_counts().iter_rows()}
    truth = float(other["reward"].mean() or 0.0)  # type: ignore[arg-type]
    result = evaluate(even, shares)
    assert result.low <= truth <= result.high
    weighted = even["reward"].to_numpy() * [34 * shares.get(arm, 0.0) for arm in even["arm"]]
    error = math.sqrt(weighted.var() / len(even) + truth * (1 - truth) / len(other))
    assert abs(result.ips - truth) < 4.5 * error
    assert abs(result.dr - truth) < 4.5 * error


@real
def test_features_of_users() -> None:
    features = user_features()
    even, other = open_bandit("men-random.csv", features), open_bandit("men-bts.csv", features)
    plain, informed = evaluate(other.drop("context"), "uniform"), evaluate(other, "uniform")
    assert (informed.ips, informed.low, informed.high) == (plain.ips, plain.low, plain.high)
    assert informed.dr == pytest.approx(plain.dr, abs=2e-4)  # clicks are rare, and the means predict them better
    policy = ra.BoltzmannGumbel(C=0.05, estimator=ra.estimators.Linear(features))
    result = evaluate(even[:3_000], policy, arms=range(34))
    assert result.low <= 0.0046 <= result.high
    replayed = replay(even[:3_000], policy, arms=range(34))
    assert abs(replayed.rounds - 3_000 / 34) < 4.5 * math.sqrt(3_000 / 34)


@real
def test_a_policy_with_features_of_users_has_weights_of_mean_one() -> None:
    features = user_features()
    even = open_bandit("men-random.csv", features)
    policy = ra.BoltzmannGumbel(C=0.05, estimator=ra.estimators.Linear(features))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the parts are short
        parts = [evaluate(even[i : i + 500], policy, arms=range(34)) for i in range(0, 10_000, 500)]
    assert abs(z([part.mean_weight for part in parts], 1.0)) < 4.5
