"""Panels drawn as SVG that can stand inside a page."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rightarm.lab.paper.finding import Panel
from rightarm.simulation.figure import NORMAL_95, STYLES
from rightarm.simulation.statistics import Curve
from rightarm.types import F64

SETTINGS: dict[Any, Any] = {"svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif"}  # text stays text
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def svg(panel: Panel, name: str) -> str:
    """The panel as an SVG element whose identifiers begin with ``name``, so that a page can hold several."""
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": name}):
        figure = Figure(figsize=(6, 4.4), layout="constrained")
        _draw(figure.add_subplot(), panel)
        columns = 2 if len(panel.curves) + len(panel.lines) > 3 else 1
        figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
        return inline(figure, name, panel.title)


def inline(figure: Figure, name: str, title: str) -> str:
    """A figure as an SVG element without anything that points outside of it."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata=NO_METADATA)
    text = file.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
    text = re.sub(r' width="[^"]*pt" height="[^"]*pt"', "", text, count=1)  # the page says how wide
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def _draw(axes: Axes, panel: Panel) -> None:
    styles = dict(zip((curve.label for curve in panel.curves), STYLES, strict=False))
    for curve in panel.curves:
        style, (low, high) = styles[curve.label], _band(curve)
        axes.plot(curve.x, curve.mean, label=curve.label, linewidth=1.8, marker=".", markersize=5, **style)
        axes.fill_between(curve.x, low, high, color=style["color"], alpha=0.2, linewidth=0)
    for line in panel.lines:
        axes.plot(line.x, line.y, label=line.label, linewidth=1.4, **_line_style(line.label, styles))
    axes.set_xscale("log")
    _scale_y(axes, panel)
    if panel.x != "T":
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.set_xticks(panel.curves[0].x)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.set_title(panel.title, fontsize=11)
    axes.grid(alpha=0.25)


def _band(curve: Curve) -> tuple[F64, F64]:
    """The confidence band; its lower edge stays above zero, where a logarithmic axis would tear it."""
    half = NORMAL_95 * curve.error
    return np.maximum(curve.mean - half, 1e-3 * curve.mean), curve.mean + half


def _scale_y(axes: Axes, panel: Panel) -> None:
    """From zero, or logarithmic; wide enough for means and lines, while a band may leave the picture."""
    drawn = np.concatenate([*(curve.mean for curve in panel.curves), *(line.y for line in panel.lines)])
    top = max(float(drawn.max()), *(float(_band(curve)[1].max()) for curve in panel.curves))
    if panel.log_y:
        axes.set_yscale("log", nonpositive="mask")
        axes.set_ylim(0.7 * float(drawn[drawn > 0].min(initial=top)), 1.4 * top)
    else:
        axes.set_ylim(0, 1.08 * top)
        axes.yaxis.set_major_formatter("{x:,.4g}" if top < 10 else "{x:,.0f}")


def _line_style(label: str, styles: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A line that belongs to a curve, by the end of its name, has the curve's colour; others are grey."""
    own = next((style["color"] for name, style in styles.items() if label.endswith(name)), "dimgray")
    return {"color": own, "linestyle": (0, (1, 1.2))}
