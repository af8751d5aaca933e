"""The rows of a log that have a reward: which they are, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import rightarm as ra
from adaptive_logs import even_log
from rightarm.evaluation import evaluate


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


def test_columns_must_be_there() -> None:
    with pytest.raises(ValueError, match="got none called 'propensity'"):
        evaluate({"arm": ["a"], "reward": [1.0]}, "uniform")


def test_columns_of_unequal_length_are_refused() -> None:
    log = {"arm": ["a", "b"] * 5, "propensity": [0.5] * 10, "reward": [0.0] * 6}
    with pytest.raises(ValueError, match=r"the columns of a log must be of one length, got \[6, 10\]"):
        ra.evaluate(log, "uniform")


AMONG: dict[str, list[Any]] = {"an arm that it had not": [["a", "b"], ["a", "c"]], "an arm twice": [["a", "a"], ["b"]]}


@pytest.mark.parametrize("allowed", AMONG.values(), ids=AMONG)
def test_arms_that_cannot_have_been_chosen_among_are_refused(allowed: list[Any]) -> None:
    log = {"arm": ["a", "b"], "propensity": [0.5, 0.5], "reward": [0.0, 1.0], "allowed": allowed}
    with pytest.raises(
        ValueError, match=r"allowed must have the arm '.' of row . and every arm once, got \['a', '.'\]"
    ):
        evaluate(log, "uniform")
