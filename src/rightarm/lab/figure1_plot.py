"""Figure 1 drawn in the paper's form: two panels, mean regret against C² on a logarithmic axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rightarm.lab.paper.figure1 import SUGGESTED, Plan, Points
from rightarm.simulation.figure import NORMAL_95

# Okabe and Ito's colours; solid lines for what the paper recommends, broken ones for Boltzmann exploration.
DRAWN: dict[str, dict[str, Any]] = {
    "BE-const": {"color": "#E69F00", "linestyle": (0, (1, 1))},
    "BE-log": {"color": "#CC79A7", "linestyle": "--"},
    "BE-sqrt": {"color": "#009E73", "linestyle": "-."},
    "BGE": {"color": "#0072B2", "linestyle": "-"},
    "UCB": {"color": "#D55E00", "linestyle": "-"},
}
TITLES = {"a": "(a) i.i.d. initialization", "b": "(b) malicious initialization"}


def draw(points: Points, plan: Plan, *paths: Path) -> None:
    """The figure, in a file for each path."""
    drawn = figure(points, plan)
    for path in paths:
        drawn.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)


def figure(points: Points, plan: Plan) -> Figure:
    """Both panels with 95% confidence bands, the dotted line at C² = 1/4, and the regret of a uniform choice."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (scenario, title) in zip(panels, TITLES.items(), strict=True):
        for algorithm, style in DRAWN.items():
            row = points.row(scenario, algorithm)
            c2, mean = np.array([p.c2 for p in row]), np.array([p.mean for p in row])
            half = NORMAL_95 * np.array([p.error for p in row])
            axes.plot(c2, mean, label=algorithm, linewidth=1.8, **style)
            axes.fill_between(c2, mean - half, mean + half, color=style["color"], alpha=0.2, linewidth=0)
        axes.axvline(SUGGESTED, color="black", linestyle=":", linewidth=1.2)
        axes.axhline(plan.uniform, color="gray", linewidth=0.8)
        where = {"xytext": (-4, 3), "textcoords": "offset points", "ha": "right", "fontsize": 8, "color": "dimgray"}
        axes.annotate("uniform choice", (plan.grid[-1], plan.uniform), **where)
        axes.set_xscale("log")
        axes.set_xlim(plan.grid[0], plan.grid[-1])
        axes.set_ylim(0, 1.05 * plan.gap * plan.horizon)
        axes.set_xlabel("$C^2$")
        axes.set_title(title)
        axes.grid(alpha=0.25)
    panels[0].set_ylabel(f"mean regret, T = {plan.horizon:,}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(DRAWN), frameon=False)
    return figure
