"""What `evaluate` and `replay` share: checks of their options, and results as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rightarm.formula import check_number
from rightarm.logs.events import check_propensity
from rightarm.logs.rows import Rows
from rightarm.text import table, wrapped

LARGEST = 1e100  # of rewards, as in a live bandit
LEAST = 1e-100  # propensity: squares of weights are summed


def check_range(reward_range: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of the range of rewards, the lower one first."""
    low, high = (check_number("reward_range", end) for end in reward_range)
    if not low < high:
        raise ValueError(f"reward_range must be two numbers, the lower one first, got {reward_range}")
    if max(abs(low), abs(high)) > LARGEST:
        raise ValueError(f"reward_range must be at most {LARGEST:g} in size, got {reward_range}")
    return low, high


def check_propensities(rows: Rows) -> None:
    """Raise if a propensity is so small that the square of its weight is no number."""
    least = rows.propensities.min()
    if least < LEAST:
        raise ValueError(f"propensity must be at least {LEAST:g}, got {least} for arm {_arm_of(rows, least)!r}")


def _arm_of(rows: Rows, propensity: float) -> Any:
    return rows.names[rows.arms[int(np.argmax(rows.propensities == propensity))]]


def check_floor(floor: float, rows: Rows) -> float:
    """Return ``floor`` if no propensity of the log is below it."""
    check_propensity("floor", floor)
    below = rows.propensities < floor * (1 - 1e-9)
    if below.any():
        row = int(np.argmax(below))
        raise ValueError(f"floor must be at most every propensity, got {floor} and {rows.propensities[row]} in the log")
    return floor


def as_text(title: str, pairs: Mapping[str, str], warnings: Iterable[str] = ()) -> str:
    """A title, a line for each pair of a name and a value, and the warnings."""
    lines = table(["", "", ""], [["", *pair] for pair in pairs.items()], words=3)
    return "\n".join([title, lines, *(wrapped(f"warning: {warning}", indent="  ") for warning in warnings)])
