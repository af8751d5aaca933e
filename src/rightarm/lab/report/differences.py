"""Differences between policies that met the same luck, with paired standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rightarm.simulation.panels import NORMAL_95
from rightarm.simulation.statistics import mean_and_error
from rightarm.text import number, signed
from rightarm.types import F64, I64

MOST_POLICIES = 12  # of a table of all pairs
CLEAR = 3.0  # standard errors from which on a difference is marked
READING = (
    "Regret is pseudo-regret. Replication r of every policy meets the same luck, so differences of final regret are "
    "taken replication by replication, and their standard errors are those of the paired differences. z is the "
    f"difference in standard errors; differences of more than {CLEAR:g} are coloured. The best policy was chosen by "
    "these same data, and many pairs are looked at: differences of two or three standard errors are not yet news."
)


@dataclass(frozen=True)
class Value:
    """A cell of a table that can be sorted: what it shows, the value by which it is sorted, and how it is marked."""

    shown: str
    value: float | str | None
    mark: str = ""

    @property
    def known(self) -> bool:
        """Whether it has a place in an order; what has none comes last."""
        return self.value is not None and self.value == self.value


@dataclass(frozen=True, eq=False)
class Finals:
    """The final regret of a cell in each of its replications."""

    label: str
    replications: I64
    regret: F64


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences and its standard error."""

    mean: float
    error: float
    pairs: int

    @property
    def z(self) -> float:
        """The mean in standard errors; not a number where there is no telling."""
        return self.mean / self.error if self.error > 0 else np.nan

    @property
    def mark(self) -> str:
        """Whether it is clearly less or more than nothing."""
        return "" if not abs(self.z) > CLEAR else "less" if self.mean < 0 else "more"


def difference(one: Finals, other: Finals) -> Difference:
    """One minus the other, over the replications that both have.

    >>> one = Finals("one", np.arange(3), np.array([3.0, 5.0, 4.0]))
    >>> difference(one, Finals("other", np.arange(1, 3), np.array([4.0, 1.0])))
    Difference(mean=2.0, error=1.0, pairs=2)
    """
    _, mine, its = np.intersect1d(one.replications, other.replications, assume_unique=True, return_indices=True)
    gaps = one.regret[mine] - other.regret[its]
    if not gaps.size:
        return Difference(np.nan, np.nan, 0)
    mean, error = mean_and_error(gaps)
    return Difference(float(mean), float(error), gaps.size)


@dataclass(frozen=True)
class Comparison:
    """Policies of one setting, the best first: each against the best, and all pairs if they are few."""

    setting: str
    """What tells it from other comparisons of the page."""
    best: str
    rows: list[list[Value]]
    names: list[str]
    pairs: list[list[dict[str, str] | None]]
    """Row minus column; nothing on the diagonal."""


HEAD = ["policy", "difference", "standard error", "95% interval", "z", "pairs"]  # of a comparison's rows


def comparison(setting: str, finals: Sequence[Finals]) -> Comparison:
    """Compare every policy with the best one, and all with all if they are few."""
    best, *others = ranked = sorted(finals, key=lambda own: float(own.regret.mean()))
    matrix = ranked if 2 < len(ranked) <= MOST_POLICIES else []
    return Comparison(
        setting,
        best.label,
        [_row(own, difference(own, best)) for own in others],
        [own.label for own in matrix],
        [[None if row is column else _pair(row, column) for column in matrix] for row in matrix],
    )


def _row(own: Finals, gap: Difference) -> list[Value]:
    half = NORMAL_95 * gap.error
    interval = f"{signed(gap.mean - half)} to {signed(gap.mean + half)}" if half == half else "–"
    return [
        Value(own.label, own.label),
        Value(signed(gap.mean), gap.mean, gap.mark),
        Value(number(gap.error, 3), gap.error),
        Value(interval, gap.mean),
        Value(signed(gap.z, 3), gap.z, gap.mark),
        Value(f"{gap.pairs:,}", gap.pairs),
    ]


def _pair(row: Finals, column: Finals) -> dict[str, str]:
    gap = difference(row, column)
    return {
        "mark": gap.mark,
        "hover": f"{row.label} − {column.label}, {gap.pairs:,} pairs",
        "mean": f"{signed(gap.mean, 3)} ± {number(gap.error, 2)}",
        "z": signed(gap.z, 2),
    }
