"""Options and texts that `evaluate`, `replay` and `lift` share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from rightarm.inference.one_value import one_value
from rightarm.logs.rows import Ends, Rows
from rightarm.notebook import html_table
from rightarm.text import number, table, wrapped


def warning_of(rows: Rows) -> str:
    """Say why no number is to be trusted, where all rewards of a log are equal; empty otherwise."""
    value = float(rows.rewards[0]) if np.ptp(rows.rewards) == 0 else None
    silent = np.setdiff1d(np.arange(rows.places.size + rows.left_out), rows.places)
    return one_value(rows.rewards.size, value, rows.places.tolist(), silent.tolist(), rows.default)


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
