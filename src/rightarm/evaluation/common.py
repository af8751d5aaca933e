"""Options and texts that `evaluate`, `replay` and `lift` share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rightarm.inference.one_value import one_value
from rightarm.logs.log import Log, check_propensity
from rightarm.logs.rows import Rows
from rightarm.notebook import html_table
from rightarm.scores.rewards import check_reward_range
from rightarm.text import number, table, wrapped

Ends = tuple[float, float]

LEAST = 1e-100  # propensity: squares of weights are summed


def declared(log: Log, reward_range: Ends | None, floor: float | None) -> tuple[Ends, float | None]:
    """Return the range of rewards and the floor: those that are given, or those of the log, or 0 to 1 and none."""
    limits = log.reward_range if reward_range is None else reward_range
    if floor is None:
        floor = log.floor or None
    return check_reward_range((0.0, 1.0) if limits is None else limits), floor


def warning_of(rows: Rows, log: Log) -> str:
    """Say why no number is to be trusted, where all rewards of a log are equal; empty otherwise."""
    value = float(rows.rewards[0]) if np.ptp(rows.rewards) == 0 else None
    silent = np.setdiff1d(np.arange(rows.places.size + rows.left_out), rows.places)
    return one_value(rows.rewards.size, value, rows.places.tolist(), silent.tolist(), log.settings.default)


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


def in_words(reward_range: Ends, floor: float | None) -> str:
    """Say what was taken as known beforehand."""
    low, high = map(number, reward_range)
    return f"rewards from {low} to {high}, {'no floor' if floor is None else f'a floor of {number(floor)}'}"


def rows_in_words(rows: int, left_out: int, open_windows: int) -> str:
    """Say how many rows were used, and how many were not and why."""
    reasons = {"without a reward": left_out - open_windows, "whose window of reward is open": open_windows}
    found = " and ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
    return f"{rows:,}" + (f" ({found} left out)" if found else "")


def as_text(title: str, pairs: Mapping[str, str], warnings: Iterable[str] = ()) -> str:
    """Return a title, a line for each pair of a name and a value, and the warnings."""
    lines = table(["", "", ""], [["", *pair] for pair in pairs.items()], words=3)
    return "\n".join([title, lines, *(wrapped(f"warning: {warning}", indent="  ") for warning in warnings)])


def as_html(title: str, pairs: Mapping[str, str], warnings: Iterable[str] = ()) -> str:
    """Return the same for notebooks."""
    notes = [f"warning: {warning}" for warning in warnings]
    return html_table(["", ""], list(pairs.items()), title=title, notes=notes)
