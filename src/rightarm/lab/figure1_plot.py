"""Figure 1 drawn in the paper's form: two panels, mean regret against C² on a logarithmic axis."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from rightarm.lab.figure1 import GAP, SUGGESTED, Plan, Points
from rightarm.simulation.figure import add_legend, draw_panel
from rightarm.simulation.panels import Curve, Line, Panel, Style

# Solid lines for what the paper recommends, broken ones for Boltzmann exploration.
DRAWN = {
    "BE-const": Style("#E69F00", (1, 1)),
    "BE-log": Style("#CC79A7", (4, 1.6)),
    "BE-sqrt": Style("#009E73", (6, 1.6, 1, 1.6)),
    "BGE": Style("#0072B2"),
    "UCB": Style("#D55E00"),
}
TITLES = {"a": "(a) i.i.d. initialization", "b": "(b) malicious initialization"}


def panels(points: Points, plan: Plan) -> list[Panel]:
    """Both panels, each with the regret of a uniform choice and a line at C² = 1/4."""
    ends = np.array([plan.grid[0], plan.grid[-1]])
    uniform = Line("uniform choice", ends, np.full(2, plan.uniform))
    suggested = Line("C² = 1/4", np.full(2, SUGGESTED), np.array([0.0, GAP * plan.horizon]))
    axes = {"x": "C²", "y": f"mean regret, T = {plan.horizon:,}", "log_x": True}
    return [
        Panel(title, [_curve(points, scenario, name) for name in DRAWN], [uniform, suggested], **axes)  # type: ignore[arg-type]
        for scenario, title in TITLES.items()
    ]


def _curve(points: Points, scenario: str, algorithm: str) -> Curve:
    row = points.row(scenario, algorithm)
    x, mean, error = np.array([(point.c2, point.mean, point.error) for point in row]).T
    return Curve(algorithm, x, mean, error)


def draw(points: Points, plan: Plan, *paths: Path) -> None:
    """The figure, in a file for each path."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    pair = figure.subplots(1, 2, sharey=True)
    for axes, panel in zip(pair, panels(points, plan), strict=True):
        draw_panel(axes, panel, DRAWN)
        axes.set_xlim(plan.grid[0], plan.grid[-1])
        axes.set_ylim(0, 1.05 * GAP * plan.horizon)
    pair[1].set_ylabel("")
    add_legend(figure, grow=False)
    for path in paths:
        figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)
