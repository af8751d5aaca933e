"""Evaluation and replay on two logs of the Open Bandit Dataset, where these are at hand."""

from __future__ import annotations

import math
import os
from pathlib import Path

import polars as pl
import pytest

import rightarm as ra
from rightarm.evaluation import evaluate, replay
from rightarm.logs import read_table

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
