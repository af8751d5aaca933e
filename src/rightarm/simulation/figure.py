"""Regret curves, by matplotlib."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rightarm.simulation.statistics import mean_and_error
from rightarm.types import F64, I64

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError("plot() needs matplotlib: pip install 'rightarm[lab]'") from error

if TYPE_CHECKING:
    from rightarm.simulation.result import Result

# Okabe and Ito's colours, which colour-blind readers can tell apart, each with a line of its own for black and white.
STYLES: list[dict[str, Any]] = [
    {"color": "#0072B2", "linestyle": "-"},
    {"color": "#D55E00", "linestyle": "--"},
    {"color": "#009E73", "linestyle": "-."},
    {"color": "#CC79A7", "linestyle": (0, (1, 1))},
    {"color": "#E69F00", "linestyle": (0, (5, 1, 1, 1, 1, 1))},
    {"color": "#56B4E9", "linestyle": (0, (3, 2))},
    {"color": "#000000", "linestyle": (0, (6, 2))},
]
NORMAL_95 = 1.96  # standard errors either side of a mean
MANY = 7  # curves from which on colours come again with other lines, and the legend stands beside the picture
DASHES: list[Any] = ["-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5))]
MARKS = ["", "o", "s", "^", "D", "v", "X"]
ROUND = "round"


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean regret at some points, and half the width of its confidence interval."""

    label: str
    x: F64 | I64
    mean: F64
    half: F64

    @classmethod
    def of(cls, label: str, x: F64 | I64, regret: F64) -> Curve:
        """The curve of regret that was measured, replications × points."""
        mean, error = mean_and_error(regret)
        return cls(label, x, mean, NORMAL_95 * np.nan_to_num(error))

    @classmethod
    def joined(cls, label: str, points: Sequence[tuple[float, Curve]]) -> Curve:
        """The last points of several curves against other values of x."""
        x = np.array([value for value, _ in points], dtype=float)
        ends = np.array([(curve.mean[-1], curve.half[-1]) for _, curve in points])
        return cls(label, x, ends[:, 0], ends[:, 1])


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves of regret against the round, or against a parameter, on one pair of axes."""

    title: str
    curves: Sequence[Curve]
    x: str = ROUND
    begin: float = 0.0
    """The round before the first."""
    levels: Sequence[tuple[str, float]] = ()
    """Lines to compare with that do not depend on x."""
    bounds: Sequence[tuple[str, F64 | I64, Any]] = ()
    """Computed curves."""


def draw_regret(
    result: Result, path: Path, *, title: str | None, log: bool, bounds: Mapping[str, Callable[[I64], Any]]
) -> Path:
    """Mean regret of each policy with its confidence band; ``log`` makes both axes logarithmic."""
    lines = [(label, result.rounds, bound(result.rounds)) for label, bound in bounds.items()]
    begin = float(result.rounds[-1] - result.horizon)
    return draw([Panel(_title(result, title), _curves(result), begin=begin, bounds=lines)], path, log=log)


def draw_against(
    result: Result,
    curves: dict[str, list[tuple[float, int]]],
    parameter: str,
    path: Path,
    *,
    title: str | None,
    log: bool,
) -> Path:
    """Final mean regret against a parameter, the axis logarithmic if its values span a decade."""
    measured = _curves(result)
    joined = [Curve.joined(label, [(x, measured[i]) for x, i in points]) for label, points in curves.items()]
    shown = {i for points in curves.values() for _, i in points}
    levels = [(curve.label, float(curve.mean[-1])) for i, curve in enumerate(measured) if i not in shown]
    return draw([Panel(_title(result, title), joined, parameter, levels=levels)], path, log=log)


def _title(result: Result, title: str | None) -> str:
    return title if title is not None else result.specification["title"]


def _curves(result: Result) -> list[Curve]:
    return [Curve.of(label, result.rounds, regret) for label, regret in zip(result.labels, result.regret, strict=True)]


def draw(panels: Sequence[Panel], path: Path, *, log: bool, title: str | None = None) -> Path:
    """Draw panels side by side; what has the same name in several of them looks the same."""
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(8, 5) if columns == 1 else (12, 4 * rows), layout="constrained")
    labels = dict.fromkeys(curve.label for panel in panels for curve in panel.curves)
    styles = dict(zip(labels, _styles(len(labels)), strict=True))
    for place, panel in enumerate(panels, start=1):
        _draw_panel(figure.add_subplot(rows, columns, place), panel, styles, log)
    if title is not None:
        figure.suptitle(textwrap.fill(title, 120), fontsize=11)
    _legend(figure)
    figure.savefig(path, dpi=150)
    return path


def _draw_panel(axes: Axes, panel: Panel, styles: dict[str, dict[str, Any]], log: bool) -> None:
    axes.set_title(textwrap.fill(panel.title, 100 if len(axes.figure.axes) == 1 else 80), fontsize=10)
    axes.set_ylabel("regret")
    axes.set_xlabel(panel.x)
    axes.grid(alpha=0.3)
    mark = {} if panel.x == ROUND else {"marker": "."}
    for curve in panel.curves:
        style = styles[curve.label] | mark
        axes.plot(curve.x, curve.mean, label=curve.label, linewidth=1.8, **style)
        low, high = curve.mean - curve.half, curve.mean + curve.half
        axes.fill_between(curve.x, low, high, color=style["color"], alpha=0.14, linewidth=0)
    for i, (label, level) in enumerate(panel.levels):
        axes.axhline(level, color="#555555", linewidth=1.2, dashes=(1 + 2 * (i % 4), 2), label=label)
    for (label, x, y), dash in zip(panel.bounds, itertools.cycle(((2, 2), (6, 2), (1, 3)))):
        axes.plot(x, y, color="#555555", linewidth=1.2, dashes=dash, label=label)
    if panel.curves:
        _scale(axes, panel, log)


def _scale(axes: Axes, panel: Panel, log: bool) -> None:
    """Logarithmic axes where asked for, and for a parameter whose values span a decade."""
    x = np.concatenate([curve.x for curve in panel.curves])
    if panel.x == ROUND and not log:
        axes.set_xlim(panel.begin, x.max())
        axes.xaxis.set_major_formatter("{x:,.0f}")
    elif panel.x == ROUND or (x.min() > 0 and x.max() / x.min() > 10):
        axes.set_xscale("log")
    if log:
        axes.set_yscale("log", nonpositive="mask")
    else:
        axes.set_ylim(bottom=min(0.0, *(float(curve.mean.min()) for curve in panel.curves)))
        axes.yaxis.set_major_formatter("{x:,.10g}")


def _styles(curves: int) -> list[dict[str, Any]]:
    if curves <= MANY:
        return STYLES[:curves]
    return [
        {
            "color": STYLES[i % MANY]["color"],
            "linestyle": DASHES[i // MANY % len(DASHES)],
            "marker": MARKS[i // MANY % len(MARKS)],
            "markevery": 0.12,
            "markersize": 4,
        }
        for i in range(curves)
    ]


def _legend(figure: Figure) -> None:
    """In the picture while there is room, else beside it, once for all panels."""
    handles = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if len(figure.axes) == 1 and len(handles) <= MANY:
        figure.axes[0].legend(frameon=False)
    elif len(handles) <= MANY:
        figure.legend(handles.values(), handles.keys(), frameon=False, loc="outside lower center", ncols=4)
    else:
        figure.set_figwidth(figure.get_figwidth() + 3)
        figure.legend(
            handles.values(),
            handles.keys(),
            frameon=False,
            loc="outside right upper",
            fontsize=8,
            ncols=1 + len(handles) // 30,
        )
