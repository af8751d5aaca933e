"""Curves: means and standard errors over replications, and panels of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rightarm.types import F64, I64


def mean_and_error(samples: F64) -> tuple[F64, F64]:
    """Return the mean over the first axis, and its standard error; one replication tells no error, which is NaN then.

    >>> mean_and_error(np.array([1.0, 2.0, 3.0, 6.0]))
    (np.float64(3.0), np.float64(1.0801234497346435))
    """
    mean: F64 = samples.mean(axis=0)
    if len(samples) < 2:
        return mean, np.full_like(mean, np.nan)
    error: F64 = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return mean, error


@dataclass(frozen=True, eq=False)
class MeanCurve:
    """Means at some points, with their standard errors: what a picture shows of a curve."""

    label: str
    x: F64 | I64
    """Where it is measured, shape (P,)."""
    mean: F64
    error: F64
    """The standard errors; NaN where a single replication tells none."""

    @classmethod
    def of(cls, label: str, x: F64 | I64, samples: F64) -> Self:
        """Return the curve of what was measured, replications × points."""
        return cls(label, x, *mean_and_error(samples))

    @classmethod
    def joined(cls, label: str, points: Sequence[tuple[float, MeanCurve]]) -> MeanCurve:
        """Return the last points of several curves, against other values of x."""
        x = np.array([value for value, _ in points], dtype=float)
        ends = np.array([(curve.mean[-1], curve.error[-1]) for _, curve in points])
        return MeanCurve(label, x, ends[:, 0], ends[:, 1])


@dataclass(frozen=True, eq=False)
class Curve(MeanCurve):
    """A quantity (regret, mostly) against another (the round, mostly), with all its replications."""

    samples: F64
    """What was measured, shape (replications, P)."""

    @classmethod
    def of(cls, label: str, x: F64 | I64, samples: F64) -> Self:
        """Return the curve of what was measured, replications × points."""
        return cls(label, x, *mean_and_error(samples), samples)

    def over(self, unit: ArrayLike) -> Curve:
        """Return the same in another unit, which may differ from point to point."""
        return Curve.of(self.label, self.x, self.samples / np.asarray(unit, dtype=float))

    @classmethod
    def of_ends(cls, label: str, curves: Sequence[Curve], x: ArrayLike | None = None) -> Curve:
        """Return one curve from the last points of several, against their last x unless another ``x`` is given."""
        ends = [curve.x[-1] for curve in curves] if x is None else x
        samples = np.stack([curve.samples[:, -1] for curve in curves], axis=1)
        return cls.of(label, np.asarray(ends, dtype=float), samples)


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
    """Return the panel with other names for its curves: one for each, or by the names that they have."""
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
    """Return half the width of the 95% confidence band; 0 where there is no standard error."""
    return NORMAL_95 * np.nan_to_num(curve.error)


def band(curve: MeanCurve, log: bool = False) -> tuple[F64, F64]:
    """Return the confidence band; its lower edge stays above zero, where a logarithmic axis would tear it.

    For such an axis (``log``) it stays within a decade of the mean: an edge that falls to zero would fill the picture.
    """
    half = half_width(curve)
    low = curve.mean - half
    least = curve.mean / DECADE if log else 1e-3 * curve.mean
    return np.where(curve.mean > 0, np.maximum(low, least), low), curve.mean + half


def lowest(curves: Sequence[MeanCurve], most: int) -> list[MeanCurve]:
    """Return the curves that end lowest, at most so many, in their order."""
    ranked = sorted(curves, key=lambda curve: float(curve.mean[-1]))
    kept = {id(curve) for curve in ranked[:most]}
    return [curve for curve in curves if id(curve) in kept]


def ticks(values: Iterable[float], most: int = 9) -> list[float]:
    """Return where a logarithmic axis has numbers: at measured values that have room for them, or at powers of ten.

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
    kept = [first]
    apart = math.log(last / first) / most
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
    """Return the style of each of several curves: colours first, then other dashes and markers with the same colours.

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


def line_styles(lines: Sequence[Line | MeanCurve], styles: Mapping[str, Style]) -> list[Style]:
    """Return the style of each line: the colour of the curve whose name ends its label, or grey."""
    own = [next((style for name, style in styles.items() if line.label.endswith(name)), None) for line in lines]
    return [LINES[i % len(LINES)] if style is None else Style(style.color, (1, 1.4)) for i, style in enumerate(own)]
