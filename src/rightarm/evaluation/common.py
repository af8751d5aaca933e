"""What `evaluate` and `replay` share: checks of their options, and results as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from rightarm.logs.events import check_propensity
from rightarm.logs.rows import Rows
from rightarm.text import table, wrapped


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
