"""What `evaluate`, `replay` and `lift` share: their options, by whom these are given, and results as text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rightarm.formula import check_number
from rightarm.inference.one_value import one_value
from rightarm.logs.events import check_propensity
from rightarm.logs.reader import is_log
from rightarm.logs.rows import Rows
from rightarm.logs.stream import read_events
from rightarm.notebook import html_table
from rightarm.scores.rewards import check_reward_range
from rightarm.text import number, table, wrapped

Ends = tuple[float, float]

LEAST = 1e-100  # propensity: squares of weights are summed


def settings_of(log: Any) -> dict[str, Any]:
    """How the bandit was set up that wrote a log; nothing if that is no path, or the log does not say."""
    if not isinstance(log, str | os.PathLike) or not is_log(log):
        return {}
    settings: dict[str, Any] = next(read_events(log), {}).get("settings", {})
    return settings


def declared(settings: Mapping[str, Any], reward_range: Ends | None, floor: float | None) -> tuple[Ends, float | None]:
    """The range of rewards and the floor: those that are given, or those of the settings, or 0 to 1 and none."""
    limits = settings.get("reward_range") if reward_range is None else reward_range
    if floor is None:
        own, holdout = (check_number(name, settings.get(name, 0.0)) for name in ("floor", "holdout"))
        floor = own * (1 - holdout) or None  # a holdout may take its share of every arm's
    return check_reward_range((0.0, 1.0) if limits is None else limits), floor


def warning_of(rows: Rows, settings: Mapping[str, Any]) -> str:
    """Say why no number is to be trusted, where all rewards of a log are equal; empty otherwise."""
    value = float(rows.rewards[0]) if np.ptp(rows.rewards) == 0 else None
    silent = np.setdiff1d(np.arange(rows.places.size + rows.left_out), rows.places)
    return one_value(rows.rewards.size, value, rows.places.tolist(), silent.tolist(), settings.get("default"))


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
    """What was taken as known beforehand, in words."""
    low, high = map(number, reward_range)
    return f"rewards from {low} to {high}, {'no floor' if floor is None else f'a floor of {number(floor)}'}"


def rows_in_words(rows: int, left_out: int, open_windows: int) -> str:
    """How many rows were used, and how many were not and why."""
    reasons = {"without a reward": left_out - open_windows, "whose window of reward is open": open_windows}
    found = " and ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
    return f"{rows:,}" + (f" ({found} left out)" if found else "")


def as_text(title: str, pairs: Mapping[str, str], warnings: Iterable[str] = ()) -> str:
    """A title, a line for each pair of a name and a value, and the warnings."""
    lines = table(["", "", ""], [["", *pair] for pair in pairs.items()], words=3)
    return "\n".join([title, lines, *(wrapped(f"warning: {warning}", indent="  ") for warning in warnings)])


def as_html(title: str, pairs: Mapping[str, str], warnings: Iterable[str] = ()) -> str:
    """The same for notebooks."""
    notes = [f"warning: {warning}" for warning in warnings]
    return html_table(["", ""], list(pairs.items()), title=title, notes=notes)
