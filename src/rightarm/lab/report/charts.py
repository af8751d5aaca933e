"""Charts of our pages: panels as what plotly.js is given, and the legends beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from rightarm.simulation.panels import (
    ROUND,
    Line,
    Panel,
    Style,
    band,
    half_width,
    line_styles,
    lowest,
    styles_of,
    ticks,
)
from rightarm.simulation.statistics import MeanCurve
from rightarm.text import number
from rightarm.types import F64

SHOWN = 12  # curves of a chart at first; more could not be told apart
MOST_DOTS = 30  # on a curve
MOST_ARMS = 20  # arms that have a colour of their own
REST = "#c9ced4"  # of the other arms
HEIGHT = 400
MARGIN = {"l": 10, "r": 14, "t": 30, "b": 10}  # room for the buttons above
FAR = 2.0  # times the highest curve, from where on a line would press the curves flat
SYMBOLS = {"o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down", "X": "x"}


@dataclass(frozen=True)
class Entry:
    """A line of a legend, and the traces that it shows and hides."""

    label: str
    style: Style | None
    """How its line looks; none for an area."""
    color: str
    traces: tuple[int, ...]
    shown: bool
    listed: bool
    """Whether it stands in the legend itself, not among those that can be chosen."""


@dataclass
class Chart:
    """A chart under construction."""

    title: str
    layout: dict[str, Any]
    traces: list[dict[str, Any]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    scales: bool = True
    """Whether the axes can be linear and logarithmic."""
    note: str = ""

    def add(
        self,
        label: str,
        style: Style,
        traces: Iterable[dict[str, Any]],
        *,
        shown: bool = True,
        listed: bool | None = None,
        area: bool = False,
    ) -> None:
        """Add traces that are shown and hidden together."""
        first = len(self.traces)
        self.traces += [trace | {"visible": shown, "showlegend": False} for trace in traces]
        own = tuple(range(first, len(self.traces)))
        known = shown if listed is None else listed
        self.entries.append(Entry(label, None if area else style, style.color, own, shown, known))

    @property
    def figure(self) -> dict[str, Any]:
        """What plotly.js is given; colours of text, axes and paper are the page's."""
        return {"data": self.traces, "layout": self.layout}

    @property
    def legend(self) -> tuple[list[Entry], list[Entry]]:
        """The entries that are seen, and those that can be chosen."""
        few = len(self.entries) <= SHOWN + 2
        return [e for e in self.entries if e.listed or few], [e for e in self.entries if not (e.listed or few)]


def line_chart(panel: Panel, styles: Mapping[str, Style] | None = None) -> Chart:
    """Curves with their bands, level lines and computed lines; of many curves the lowest are shown at first."""
    curves = panel.curves
    shown = {id(curve) for curve in lowest(curves, SHOWN)}
    if len(curves) > SHOWN:
        curves = sorted(curves, key=lambda curve: float(curve.mean[-1]))
    if styles is None or len(styles) > SHOWN:
        styles = styles_of(curve.label for curve in curves)
    chart = Chart(panel.title, _layout(panel))
    for curve in curves:
        style = styles[curve.label]
        chart.add(curve.label, style, _with_band(curve, panel, style), shown=id(curve) in shown)
    levels = sorted(panel.levels, key=lambda level: float(level.mean[-1]))
    for i, (level, style) in enumerate(zip(levels, line_styles(levels, {}), strict=True)):
        chart.add(level.label, style, [_level(level, panel.span, style)], shown=i < SHOWN // 3)
    hidden = sum(not entry.shown for entry in chart.entries)
    if hidden:
        total = len(chart.entries)
        chart.note = f"The lowest {total - hidden} of {total:,} curves are shown; the legend has the others. "
    top = max((float(curve.mean.max()) for curve in curves if id(curve) in shown), default=math.inf)
    _add_lines(chart, panel, styles, math.inf if panel.log_y else top)
    return chart


def _add_lines(chart: Chart, panel: Panel, styles: Mapping[str, Style], top: float) -> None:
    """Add computed curves; one that is far above all others waits in the legend."""
    for line, style in zip(panel.lines, line_styles(panel.lines, styles), strict=True):
        end = float(np.max(line.y))
        far = end > FAR * top
        chart.add(line.label, style, [_line(line, panel, style)], shown=not far, listed=True)
        if far:
            where = f"{panel.x} {number(float(line.x[-1]), 7)}"
            chart.note += f"{line.label}: {number(end)} at {where}, far above the curves; the legend shows it."


def _layout(panel: Panel) -> dict[str, Any]:
    whole = panel.x in (ROUND, "T")
    x: dict[str, Any] = {"title": {"text": text(panel.x)}, "automargin": True, "tickformat": "~s" if whole else "~g"}
    values = [float(value) for curve in panel.curves for value in curve.x]
    if not whole and min(values, default=0) > 0:  # for when the axis is logarithmic; a script knows when that is
        chosen = ticks(values, most=8)
        x |= {"tickvals": chosen, "ticktext": [f"{value:.3g}" for value in chosen]}
    if panel.x == ROUND and not panel.log_x:  # without the room that markers would be given
        x["range"] = [panel.begin, panel.span[1]]
    y = {"title": {"text": text(panel.y)}, "automargin": True, "tickformat": ",~g", "rangemode": "tozero"}
    return {
        "height": HEIGHT,
        "margin": MARGIN,
        "hovermode": "closest",
        "hoverlabel": {"namelength": -1},
        "xaxis": x | {"type": "log" if panel.log_x else "linear"},
        "yaxis": y | {"type": "log" if panel.log_y else "linear"},
    }


def _with_band(curve: MeanCurve, panel: Panel, style: Style) -> list[dict[str, Any]]:
    """The mean, and its confidence band as a closed line around it."""
    dots = panel.x != ROUND or style.marker or len(curve.x) == 1
    line = _line(Line(curve.label, curve.x, curve.mean), panel, style) | {
        "mode": "lines+markers" if dots else "lines",
        "customdata": numbers(half_width(curve)),
        "marker": {"size": 6, "symbol": SYMBOLS.get(style.marker, "circle"), "maxdisplayed": MOST_DOTS},
    }
    line["hovertemplate"] += " ± %{customdata:,.2~g}"
    some = curve.mean > 0  # where nothing was lost there is no band, and a logarithmic axis would tear it
    low, high = (edge[some] for edge in band(curve))
    around = np.concatenate([curve.x[some], curve.x[some][::-1]])
    area = {
        "type": "scatter",
        "mode": "lines",
        "meta": "band",
        "x": numbers(around),
        "y": numbers(np.concatenate([high, low[::-1]])),
        "fill": "toself",
        "fillcolor": _faint(style.color),
        "line": {"width": 0},
        "hoverinfo": "skip",
    }
    return [area, line] if some.any() and half_width(curve).any() else [line]


def _level(level: MeanCurve, span: tuple[float, float], style: Style) -> dict[str, Any]:
    """A curve's end as a level line; it has points on the way, so that it can be pointed at."""
    low, high = span
    points = np.geomspace(low, high, 25) if low > 0 else np.linspace(low, high, 25)
    line = _line(Line(level.label, points, np.full(25, level.mean[-1])), Panel("", []), style)
    half = numbers(np.full(25, half_width(level)[-1]))
    return line | {"customdata": half, "hovertemplate": "final regret %{y:,.4~g} ± %{customdata:,.2~g}"}


def _line(line: Line, panel: Panel, style: Style) -> dict[str, Any]:
    dash = ",".join(f"{2 * part:g}px" for part in style.dash) or "solid"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": text(line.label),
        "x": numbers(line.x),
        "y": numbers(line.y),
        "line": {"color": style.color, "dash": dash, "width": 2},
        "hovertemplate": f"{text(panel.x)} %{{x:,}}<br>{text(panel.y)} %{{y:,.4~g}}",
    }


def share_chart(title: str, labels: Sequence[str], shares: Sequence[F64], arms: Sequence[str]) -> Chart:
    """How often each arm was pulled, a bar for each label; the arms are stacked as they are given."""
    rows = [_wrapped(label) for label in labels]
    lines = sum(row.count("<br>") + 1 for row in rows)
    layout = {
        "height": 70 + 12 * len(rows) + 17 * lines,
        "margin": MARGIN,
        "barmode": "stack",
        "bargap": 0.25,
        "hovermode": "closest",
        "hoverlabel": {"namelength": -1},
        "xaxis": {"range": [0, 1], "tickformat": ".0%", "title": {"text": "share of rounds"}, "automargin": True},
        "yaxis": {"autorange": "reversed", "automargin": True, "tickmode": "array", "tickvals": list(range(len(rows)))}
        | {"ticktext": rows, "ticks": "", "fixedrange": True},
    }
    chart = Chart(title, layout, scales=False)
    own = min(len(arms), MOST_ARMS)
    named = [(name, _arm_color(i, own), [row[i] for row in shares]) for i, name in enumerate(arms[:own])]
    if len(arms) > own:
        named.append((f"the other {len(arms) - own:,} arms", REST, [row[own:].sum() for row in shares]))
    for name, color, values in named:
        chart.add(name, Style(color), [_bar(name, np.array(values), color, labels)], area=True)
    return chart


def _bar(name: str, values: F64, color: str, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": text(name),
        "x": numbers(values),
        "y": list(range(len(values))),
        "customdata": [text(label) for label in labels],
        "marker": {"color": color, "line": {"color": "white", "width": 0.5}},
        "hovertemplate": "%{customdata}<br>%{x:.2%}",
    }


def _arm_color(arm: int, arms: int) -> str:
    """From blue, the best arm, to yellow."""
    return to_hex(colormaps["viridis"](0.2 + 0.78 * arm / max(arms - 1, 1)))


def _faint(color: str) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"


def _wrapped(label: str, width: int = 26) -> str:
    """A label in lines that are not longer than a narrow screen allows."""
    lines = [""]
    for piece in label.split(", "):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += (", " if lines[-1] else "") + piece
    return "<br>".join(text(line if len(line) <= 40 else line[:39] + "…") for line in lines)


def text(plain: str) -> str:
    """Text for plotly.js, which takes some tags for tags and entities for characters."""
    return escape(plain, quote=False)


def numbers(values: NDArray[Any]) -> list[float | None]:
    """Numbers as short as a picture needs them; None where there is none."""
    return [_short(float(value)) for value in values]


def _short(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 1e15 else float(f"{value:.5g}")
