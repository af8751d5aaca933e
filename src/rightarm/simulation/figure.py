"""Regret curves, by matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

try:
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


def draw_regret(result: Result, path: Path, *, title: str | None, log: bool) -> Path:
    """Mean regret of each policy with its confidence band; ``log`` makes both axes logarithmic."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for i, label in enumerate(result.labels):
        mean = result.regret[i].mean(axis=0)
        half = (
            NORMAL_95 * result.regret[i].std(axis=0, ddof=1) / np.sqrt(result.regret.shape[1])
            if len(result.regret[i]) > 1
            else 0
        )
        style = STYLES[i % len(STYLES)]
        axes.plot(result.rounds, mean, label=label, linewidth=1.8, **style)
        axes.fill_between(result.rounds, mean - half, mean + half, color=style["color"], alpha=0.18, linewidth=0)
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        axes.set_xlim(result.rounds[-1] - result.horizon, result.rounds[-1])
        axes.set_ylim(bottom=min(0.0, float(result.regret.min())))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("round")
    axes.set_ylabel("regret")
    axes.set_title(title if title is not None else result.specification["title"], fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=150)
    return path
