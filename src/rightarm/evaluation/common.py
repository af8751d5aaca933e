"""What `evaluate` and `replay` share: checks of their options, and results as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rightarm.logs.events import check_propensity
from rightarm.logs.rows import Rows
from rightarm.notebook import html_table
from rightarm.text import table, wrapped

LEAST = 1e-100  # propensity: squares of weights are summed


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


def as_html(title: str, pairs: Mapping[str, str], warnings: Iterable[str] = ()) -> str:
    """The same for notebooks."""
    notes = [f"warning: {warning}" for warning in warnings]
    return html_table(["", ""], list(pairs.items()), title=title, notes=notes)
