"""Contexts in logs: written, read, converted, counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import rightarm as ra
from log_story import START
from rightarm.logs import Log, LogWriter, convert_log, read_log

CONTEXTS: list[Any] = [[0.1, -2.0, 0.0], None, [1, 2, 3], [1e300, 5e-324, 1 / 3]]
ARM_FEATURES: list[Any] = [[[1.0], [2.5]], None, None, [[0.0], [-1.0]]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with LogWriter(tmp_path / "log.jsonl") as log:
        log.arms(["red", "blue"], START)
        for i, (context, arms) in enumerate(zip(CONTEXTS, ARM_FEATURES, strict=True)):
            error = 1e-3 if i == 2 else None
            log.decision(i, "red", 0.5, i, 0, START, context=context, arm_features=arms, error=error)
            log.reward(i, i / 4, START)
    return tmp_path / "log.jsonl"


def test_contexts_are_read_as_they_were_written(path: Path) -> None:
    frame = read_log(path)
    assert frame["context"].to_list() == CONTEXTS
    assert frame["arm_features"].to_list() == ARM_FEATURES
    assert frame["error"].to_list() == [0.0, 0.0, 1e-3, 0.0]
    assert frame.schema["context"] == pl.List(pl.Float64)
    assert frame.schema["arm_features"] == pl.List(pl.List(pl.Float64))
    assert "contexts    3 decisions have one" in str(Log.read(path))


def test_logs_without_contexts_have_no_such_columns(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "log.jsonl") as log:
        log.decision(1, "red", 0.5, 1, 0, START)
    assert not {"context", "arm_features", "error"} & set(read_log(tmp_path / "log.jsonl").columns)
    assert "decisions have one" not in str(Log.read(tmp_path / "log.jsonl"))


def test_parquet_keeps_contexts(path: Path, tmp_path: Path) -> None:
    packed = convert_log(path, tmp_path / "log.parquet")
    assert read_log(packed).equals(read_log(path))
    assert convert_log(packed, tmp_path / "again.jsonl").read_bytes() == path.read_bytes()


WRONG = {
    "nan": {"context": [1.0, float("nan")]},
    "both infinities": {"context": [float("inf"), -float("inf")]},
    "text": {"context": [1.0, "2"]},
    "arms": {"arm_features": [[1.0], [None]]},
    "error": {"error": float("inf")},
}


@pytest.mark.parametrize("given", WRONG.values(), ids=WRONG)
def test_what_is_no_context_is_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    with LogWriter(tmp_path / "log.jsonl") as log, pytest.raises((TypeError, ValueError), match=next(iter(given))):
        log.decision(1, "red", 0.5, 1, 0, START, **given)


def test_features_stand_in_the_order_of_the_arms(tmp_path: Path) -> None:
    """Also after an arm came in the place of another, and was at the front of a list."""
    policy = ra.UCB(C=1.0, estimator=ra.estimators.Linear(1, arm_features=1))
    prices = {"a": [1.0], "b": [2.0], "c": [3.0], "d": [4.0]}
    with ra.Bandit(["a", "b", "c"], policy, log=tmp_path / "log.jsonl") as bandit:
        bandit.replace_arm("a", "d")
        bandit.ask(context=[0.5], arm_features=prices)
        bandit.retire_arm("b")
        bandit.restore_arm("b")
        bandit.ask(context=[0.5], arm_features=prices, allowed=["d", "b"])
    frame = read_log(tmp_path / "log.jsonl")
    for among, features in zip(frame["allowed"], frame["arm_features"], strict=True):
        assert features.to_list() == [prices[arm] for arm in among]


def test_a_column_for_each_feature(path: Path, tmp_path: Path) -> None:
    wide = read_log(path, features=True)
    assert wide["x0", "x1", "x2"].rows() == [tuple(row or [None] * 3) for row in CONTEXTS]
    assert wide.drop("x0", "x1", "x2").equals(read_log(path).drop("context"))
    with LogWriter(path) as log:
        log.decision(9, "red", 0.5, 1, 0, START, context=[1.0])
    with pytest.raises(ValueError, match=r"features must be as many in all contexts of a log, got \[1, 3\]"):
        read_log(path, features=True)
    with LogWriter(tmp_path / "plain.jsonl") as log:
        log.decision(1, "red", 0.5, 1, 0, START)
    assert read_log(tmp_path / "plain.jsonl", features=True).equals(read_log(tmp_path / "plain.jsonl"))
