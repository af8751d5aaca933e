"""What pictures of regret show, whoever draws them: curves with their errors, computed lines, and how each looks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rightarm.simulation.statistics import MeanCurve
from rightarm.types import F64

NORMAL_95 = 1.96  # standard errors either side of a mean
ROUND = "round"
DECADE = 10.0  # a parameter whose values span so much is drawn on a logarithmic axis; how deep a band goes on one


@dataclass(frozen=True, eq=False)
class Line:
    """A computed curve: a bound, or an exact value."""

    label: str
    x: Any
    y: Any


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves and lines on one pair of axes."""

    title: str
    curves: Sequence[MeanCurve]
    lines: Sequence[Line] = ()
    levels: Sequence[MeanCurve] = ()
    """Curves whose last value is drawn as a level line, to compare with what depends on x."""
    x: str = ROUND
    y: str = "regret"
    log_x: bool = False
    log_y: bool = False
    begin: float = 0.0
    """The round before the first."""
    note: str = ""
    """A sentence on what is not shown."""

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest x of the curves."""
        return min(float(np.min(c.x)) for c in self.curves), max(float(np.max(c.x)) for c in self.curves)


def final_against(parameter: str, title: str, curves: Sequence[MeanCurve], levels: Sequence[MeanCurve] = ()) -> Panel:
    """Final regret against a parameter, on a logarithmic axis if its values span a decade."""
    panel = Panel(title, curves, levels=levels, x=parameter, y="final regret")
    if not curves:
        return panel
    low, high = panel.span
    return replace(panel, log_x=low > 0 and high > DECADE * low)


def relabelled(panel: Panel, labels: Mapping[str, str] | Sequence[str] | None) -> Panel:
    """The panel with other names for its curves: one for each, or by the names that they have."""
    if labels is None:
        return panel
    names = [curve.label for curve in panel.curves]
    if not isinstance(labels, Mapping):
        if isinstance(labels, str) or len(labels) != len(names):
            raise ValueError(f"labels must be one for each of {len(names)} curves, {', '.join(names)}, got {labels!r}")
        labels = dict(zip(names, labels, strict=True))
    renamed = [MeanCurve(labels.get(own.label, own.label), own.x, own.mean, own.error) for own in panel.curves]
    return replace(panel, curves=renamed)


def half_width(curve: MeanCurve) -> F64:
    """Half the width of the 95% confidence band; nothing where no error is known."""
    return NORMAL_95 * np.nan_to_num(curve.error)


def band(curve: MeanCurve, log: bool = False) -> tuple[F64, F64]:
    """The confidence band; its lower edge stays above zero, where a logarithmic axis would tear it.

    For such an axis (``log``) it stays within a decade of the mean: an edge that falls to zero would fill the picture.
    """
    half = half_width(curve)
    low = curve.mean - half
    least = curve.mean / DECADE if log else 1e-3 * curve.mean
    return np.where(curve.mean > 0, np.maximum(low, least), low), curve.mean + half


def lowest(curves: Sequence[MeanCurve], most: int) -> list[MeanCurve]:
    """The curves that end lowest, at most so many, in their order."""
    ranked = sorted(curves, key=lambda curve: float(curve.mean[-1]))
    kept = {id(curve) for curve in ranked[:most]}
    return [curve for curve in curves if id(curve) in kept]


def ticks(values: Iterable[float], most: int = 9) -> list[float]:
    """Where a logarithmic axis has numbers: at measured values that have room for them, or at powers of ten.

    >>> ticks([0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0])
    [0.05, 0.1, 0.2, 0.5, 1.0, 2.0]
    >>> ticks([0.001, 0.0158, 0.25, 3.98, 100.0])
    [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]
    """
    first, *others = sorted(set(values))
    last = others[-1] if others else first
    powers = [10.0**n for n in range(math.ceil(math.log10(first)), math.floor(math.log10(last)) + 1)]
    if len(powers) > 2 and any(float(f"{value:.2g}") != value for value in others):
        return powers
    kept, apart = [first], math.log(last / first) / most
    for value in others:
        if math.log(value / kept[-1]) >= apart and (value == last or math.log(last / value) >= apart):
            kept.append(value)
    return kept


# How curves look.


@dataclass(frozen=True)
class Style:
    """A colour, dashes and a marker."""

    color: str
    dash: tuple[float, ...] = ()
    """Lengths of strokes and gaps in line widths; none for a solid line."""
    marker: str = ""
    """As Matplotlib calls it; none if empty."""


# Okabe and Ito's colours, which colour-blind readers can tell apart, each with dashes of its own for black and white.
FEW = [
    Style("#0072B2"),
    Style("#D55E00", (4, 1.6)),
    Style("#009E73", (6, 1.6, 1, 1.6)),
    Style("#CC79A7", (1, 1.2)),
    Style("#E69F00", (5, 1, 1, 1, 1, 1)),
    Style("#56B4E9", (3, 2)),
    Style("#000000", (6, 2)),
]
DASHES: list[tuple[float, ...]] = [(), (4, 1.5), (1, 1.2), (6, 1.5, 1, 1.5)]  # of many curves, one for each colour
MARKERS = ["", "o", "s", "^", "D", "v", "X"]
GREY = "#555555"  # of lines that are computed
LINES = [Style(GREY, dash) for dash in ((1, 1.4), (5, 2), (6, 1.5, 1, 1.5), (3, 1.5))]


def styles_of(labels: Iterable[str]) -> dict[str, Style]:
    """How each of several curves looks: colours first, then other dashes and markers with the same colours.

    >>> len(set(styles_of(map(str, range(40))).values()))
    40
    """
    different = list(dict.fromkeys(labels))
    if len(different) <= len(FEW):
        return dict(zip(different, FEW, strict=False))
    return {
        label: Style(FEW[place].color, DASHES[lap % len(DASHES)], MARKERS[lap % len(MARKERS)])
        for i, label in enumerate(different)
        for lap, place in [divmod(i, len(FEW))]
    }


def line_styles(lines: Sequence[Any], styles: Mapping[str, Style]) -> list[Style]:
    """A line that belongs to a curve, by the end of its name, has the curve's colour; others are grey."""
    own = [next((style for name, style in styles.items() if line.label.endswith(name)), None) for line in lines]
    return [LINES[i % len(LINES)] if style is None else Style(style.color, (1, 1.4)) for i, style in enumerate(own)]
