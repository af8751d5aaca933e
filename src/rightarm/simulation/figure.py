"""Regret curves, by matplotlib."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rightarm.simulation.types import F64, I64

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


def draw_regret(
    result: Result, path: Path, *, title: str | None, log: bool, bounds: Mapping[str, Callable[[I64], Any]]
) -> Path:
    """Mean regret of each policy with its confidence band; ``log`` makes both axes logarithmic."""
    figure, axes = _figure(result, title)
    mean, half = _mean_and_half(result)
    for label, style, m, h in zip(result.labels, _styles(len(result.labels)), mean, half, strict=True):
        _curve(axes, result.rounds, m, h, label, style)
    for (label, bound), dash in zip(bounds.items(), itertools.cycle(((2, 2), (6, 2), (1, 3)))):
        axes.plot(result.rounds, bound(result.rounds), color="#555555", linewidth=1.2, dashes=dash, label=label)
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log", nonpositive="mask")
    else:
        axes.set_xlim(result.rounds[-1] - result.horizon, result.rounds[-1])
        axes.set_ylim(bottom=min(0.0, float(result.regret.min())))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("round")
    return _save(figure, axes, path)


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
    figure, axes = _figure(result, title)
    mean, half = (values[:, -1] for values in _mean_and_half(result))
    values = np.array([value for points in curves.values() for value, _ in points])
    for (label, points), style in zip(curves.items(), _styles(len(curves)), strict=True):
        at = [i for _, i in points]
        _curve(axes, np.array([value for value, _ in points]), mean[at], half[at], label, style | {"marker": "."})
    shown = {i for points in curves.values() for _, i in points}
    for i, label in enumerate(result.labels):
        if i not in shown:  # it does not have the parameter: a line to compare with
            axes.axhline(mean[i], color="#555555", linewidth=1.2, dashes=(1 + 2 * (i % 4), 2), label=label)
    if values.min() > 0 and values.max() / values.min() > 10:
        axes.set_xscale("log")
    if log:
        axes.set_yscale("log", nonpositive="mask")
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel(parameter)
    return _save(figure, axes, path)


def _figure(result: Result, title: str | None) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(textwrap.fill(title if title is not None else result.specification["title"], 100), fontsize=10)
    axes.set_ylabel("regret")
    axes.grid(alpha=0.3)
    return figure, axes


def _mean_and_half(result: Result) -> tuple[F64, F64]:
    """Mean regret and half the width of its confidence interval, policies × rounds."""
    replications = result.regret.shape[1]
    mean = result.regret.mean(axis=1)
    if replications == 1:
        return mean, np.zeros_like(mean)
    return mean, NORMAL_95 * result.regret.std(axis=1, ddof=1) / np.sqrt(replications)


def _curve(axes: Axes, x: F64 | I64, mean: F64, half: F64, label: str, style: dict[str, Any]) -> None:
    axes.plot(x, mean, label=label, linewidth=1.8, **style)
    axes.fill_between(x, mean - half, mean + half, color=style["color"], alpha=0.14, linewidth=0)


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


def _save(figure: Figure, axes: Axes, path: Path) -> Path:
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) <= MANY:
        axes.legend(frameon=False)
    else:
        figure.set_figwidth(11)
        figure.legend(
            handles, labels, frameon=False, loc="outside right upper", fontsize=8, ncols=1 + len(labels) // 30
        )
    figure.savefig(path, dpi=150)
    return path
