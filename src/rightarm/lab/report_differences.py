"""Differences between policies that met the same luck, with paired standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from rightarm.lab.markup import Value, sortable
from rightarm.simulation.figure import NORMAL_95
from rightarm.simulation.statistics import mean_and_error
from rightarm.types import F64, I64

MOST_POLICIES = 12  # of a matrix
CLEAR = 3.0  # standard errors from which on a difference is marked
READING = (
    "Regret is pseudo-regret. Replication r of every policy meets the same luck, so differences of final regret are "
    "taken replication by replication, and their standard errors are those of the paired differences. z is the "
    f"difference in standard errors; differences of more than {CLEAR:g} are coloured. The best policy was chosen by "
    "these same data, and many pairs are looked at: differences of two or three standard errors are not yet news."
)


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


def differences_html(finals: Sequence[Finals]) -> str:
    """Every policy against the best one, and all against all if they are few."""
    ranked = sorted(finals, key=lambda own: float(own.regret.mean()))
    best, *others = ranked
    rows = [_row(own, difference(own, best)) for own in others]
    head = ["policy", "difference", "standard error", "95% interval", "z", "pairs"]
    table = sortable(head, rows, left=1)
    shown = f"<h4>Against the best, {escape(best.label)}</h4>{table}"
    if 2 < len(ranked) <= MOST_POLICIES:
        shown += f"<details open><summary>All pairs</summary>{_matrix(ranked)}</details>"
    return shown


def _row(own: Finals, gap: Difference) -> list[Value]:
    half = NORMAL_95 * gap.error
    mark = _mark(gap)
    return [
        (escape(own.label), own.label, ""),
        (signed(gap.mean), gap.mean, mark),
        (number(gap.error, 3), gap.error, ""),
        (f"{signed(gap.mean - half)} to {signed(gap.mean + half)}" if half == half else "–", gap.mean, ""),
        (signed(gap.z, 3), gap.z, mark),
        (f"{gap.pairs:,}", gap.pairs, ""),
    ]


def _matrix(ranked: Sequence[Finals]) -> str:
    """Row minus column, each pair with its standard error and z."""
    heads = "".join(f'<th title="{escape(own.label)}">{i}</th>' for i, own in enumerate(ranked, start=1))
    body = ""
    for i, row in enumerate(ranked):
        cells = "".join("<td>·</td>" if i == j else _pair(row, other) for j, other in enumerate(ranked))
        body += f'<tr><th scope="row">{i + 1} {escape(row.label)}</th>{cells}</tr>'
    inside = f"<thead><tr><th></th>{heads}</tr></thead><tbody>{body}</tbody>"
    return (
        '<p class="setting">Row minus column ± standard error, and z; below zero the row’s regret is the smaller.</p>'
        f'<div class="table"><table class="matrix">{inside}</table></div>'
    )


def _pair(row: Finals, column: Finals) -> str:
    gap = difference(row, column)
    hover = escape(f"{row.label} − {column.label}, {gap.pairs:,} pairs")
    return (
        f'<td class="{_mark(gap)}" title="{hover}">{signed(gap.mean, 3)} ± {number(gap.error, 2)}'
        f"<br /><small>z {signed(gap.z, 2)}</small></td>"
    )


def _mark(gap: Difference) -> str:
    if not abs(gap.z) > CLEAR:
        return ""
    return "less" if gap.mean < 0 else "more"


def number(value: float | None, digits: int = 4) -> str:
    """A number in a table: some digits, thousands apart, no powers of ten where they can be avoided.

    >>> number(12345.678), number(0.00123456), number(99.996), number(None)
    ('12,346', '0.001235', '100', '–')
    """
    if value is None or not np.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}".replace("-", "−")
    places = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
    plain = f"{value:,.{places}f}"
    return (plain.rstrip("0").rstrip(".") if "." in plain else plain).replace("-", "−")


def signed(value: float, digits: int = 4) -> str:
    """A number with its sign."""
    return f"+{number(value, digits)}" if value > 0 else number(value, digits)
