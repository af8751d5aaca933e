"""Charts of a report: what plotly.js draws, as plain data, and the HTML around it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex
from numpy.typing import NDArray

from rightarm.simulation.figure import MANY, STYLES, Curve
from rightarm.types import F64

SHOWN = 12  # curves of a chart at first; more could not be told apart
MOST_ARMS, MOST_BARS = 20, 24  # what can be told apart, and fits on paper
REST, GREY = "#c9ced4", "#555555"
DASHES = ("solid", "dash", "dot", "dashdot")
OWN_DASHES = ("solid", "dash", "dashdot", "dot", "8px,2px,2px,2px", "4px,3px", "10px,3px")  # of few curves, one each
STROKES = {"solid": "", "dash": "7,4", "dot": "2,3", "dashdot": "7,3,2,3"}  # the same in the legend
HEIGHT = 420
MARGIN = {"l": 10, "r": 14, "t": 30, "b": 10}  # room for the buttons above
FAR = 2.0  # times the highest curve, from where on a bound would press the curves flat
FONT = {"family": "system-ui, sans-serif", "size": 13, "color": "#1f2328"}
GRID = {"gridcolor": "#e6e9ec", "zerolinecolor": "#d5d9de", "linecolor": "#8c959f", "automargin": True}


@dataclass(frozen=True)
class Entry:
    """A line of a legend, and the traces that it shows and hides."""

    label: str
    color: str
    dash: str | None
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
        color: str,
        dash: str | None,
        traces: Iterable[dict[str, Any]],
        shown: bool = True,
        listed: bool | None = None,
    ) -> None:
        """Add traces that are shown and hidden together."""
        first = len(self.traces)
        self.traces += [trace | {"visible": shown, "showlegend": False} for trace in traces]
        own = tuple(range(first, len(self.traces)))
        self.entries.append(Entry(label, color, dash, own, shown, shown if listed is None else listed))

    @property
    def figure(self) -> dict[str, Any]:
        """What plotly.js is given."""
        return {"data": self.traces, "layout": self.layout}


def styles_of(labels: Sequence[str]) -> dict[str, tuple[str, str]]:
    """A colour and a dash for each label, by its place."""
    few = len(labels) <= MANY
    return {
        label: (STYLES[i % MANY]["color"], OWN_DASHES[i] if few else DASHES[i // MANY % len(DASHES)])
        for i, label in enumerate(labels)
    }


def line_chart(
    title: str,
    curves: Sequence[Curve],
    *,
    x: str,
    styles: dict[str, tuple[str, str]] | None = None,
    levels: Sequence[Curve] = (),
    bounds: Sequence[tuple[str, Any, Any]] = (),
    bars: bool = False,
) -> Chart:
    """Regret against the round with bands, or against a parameter with ``bars``; the best curves are shown at first."""
    ranked = sorted(curves, key=_rank if bars else _end)
    shown = ranked[:SHOWN]
    kept = styles if styles is not None and len(styles) <= SHOWN else styles_of([curve.label for curve in ranked])
    order = curves if len(curves) <= SHOWN else ranked
    chart = Chart(title, _line_layout(x, curves, bars))
    for curve in order:
        color, dash = kept[curve.label]
        traces = [_with_bars(curve, x, color, dash)] if bars else _with_band(curve, x, color, dash)
        chart.add(curve.label, color, dash, traces, curve in shown)
    span = (min(float(c.x.min()) for c in curves), max(float(c.x.max()) for c in curves))
    for i, level in enumerate(sorted(levels, key=_end)):
        dash = DASHES[1 + i % 3]
        chart.add(level.label, GREY, dash, [_level(level, span, dash)], i < SHOWN // 2)
    hidden = sum(not entry.shown for entry in chart.entries)
    if hidden:
        total = len(chart.entries)
        chart.note = f"The lowest {total - hidden} of {total:,} curves are shown; choose others below. "
    _add_bounds(chart, bounds, max(float(curve.mean.max()) for curve in shown))
    return chart


def _add_bounds(chart: Chart, bounds: Sequence[tuple[str, Any, Any]], top: float) -> None:
    """Add computed curves; one that is far above all others waits in the legend."""
    for label, at, value in bounds:
        end = float(np.max(value))
        far = end > FAR * top
        chart.add(label, GREY, "dot", [_bound(label, at, value)], not far, listed=True)
        if far:
            chart.note += f"{label}: {end:,.4g} at round {int(at[-1]):,}, far above the curves; the legend shows it."


def _end(curve: Curve) -> float:
    return float(curve.mean[-1])


def _rank(curve: Curve) -> float:
    return float(curve.mean.min())


def _line_layout(x: str, curves: Sequence[Curve], bars: bool) -> dict[str, Any]:
    values = np.concatenate([curve.x for curve in curves])
    log = bars and values.min() > 0 and values.max() / values.min() > 10
    tickformat = "~g" if bars else ",~g"
    return {
        "height": HEIGHT,
        "margin": MARGIN,
        "font": FONT,
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "hovermode": "closest",
        "hoverlabel": {"namelength": -1},
        "xaxis": GRID | {"title": {"text": text(x)}, "type": "log" if log else "linear", "tickformat": tickformat},
        "yaxis": GRID
        | {"title": {"text": "final regret" if bars else "regret"}, "rangemode": "tozero", "tickformat": ",~g"},
    }


def _with_band(curve: Curve, x: str, color: str, dash: str) -> list[dict[str, Any]]:
    """The mean, and its confidence band as a closed line around it."""
    line = {
        "type": "scatter",
        "mode": "lines" if len(curve.x) > 1 else "markers",
        "name": text(curve.label),
        "x": numbers(curve.x),
        "y": numbers(curve.mean),
        "customdata": numbers(curve.half),
        "line": {"color": color, "dash": dash, "width": 2},
        "hovertemplate": f"{text(x)} %{{x:,}}<br>regret %{{y:,.4~g}} ± %{{customdata:,.2~g}}",
    }
    some = curve.mean > 0  # where nothing was lost there is no band, and a logarithmic axis would tear it
    low, high = np.maximum(curve.mean - curve.half, 1e-3 * curve.mean)[some], (curve.mean + curve.half)[some]
    around = np.concatenate([curve.x[some], curve.x[some][::-1]])
    band = {
        "type": "scatter",
        "mode": "lines",
        "meta": "band",
        "x": numbers(around),
        "y": numbers(np.concatenate([high, low[::-1]])),
        "fill": "toself",
        "fillcolor": _faint(color),
        "line": {"width": 0},
        "hoverinfo": "skip",
    }
    return [band, line] if some.any() and curve.half.any() else [line]


def _with_bars(curve: Curve, x: str, color: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": text(curve.label),
        "x": numbers(curve.x),
        "y": numbers(curve.mean),
        "error_y": {"type": "data", "symmetric": False, "array": numbers(curve.half), "thickness": 1.2, "width": 4}
        | {"arrayminus": numbers(np.minimum(curve.half, curve.mean))},
        "customdata": numbers(curve.half),
        "line": {"color": color, "dash": dash, "width": 2},
        "marker": {"size": 7},
        "hovertemplate": f"{text(x)} %{{x}}<br>final regret %{{y:,.4~g}} ± %{{customdata:,.2~g}}",
    }


def _level(level: Curve, span: tuple[float, float], dash: str) -> dict[str, Any]:
    """A curve's end as a level line; it has points on the way, so that it can be pointed at."""
    low, high = span
    points = np.geomspace(low, high, 25) if low > 0 else np.linspace(low, high, 25)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": text(level.label),
        "x": numbers(points),
        "y": numbers(np.full(points.size, level.mean[-1])),
        "customdata": numbers(np.full(points.size, level.half[-1])),
        "line": {"color": GREY, "dash": dash, "width": 1.4},
        "hovertemplate": "final regret %{y:,.4~g} ± %{customdata:,.2~g}",
    }


def _bound(label: str, x: Any, y: Any) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": text(label),
        "x": numbers(x),
        "y": numbers(y),
        "line": {"color": GREY, "dash": "dot", "width": 1.6},
        "hovertemplate": "round %{x:,}<br>%{y:,.4~g}",
    }


def share_chart(title: str, labels: Sequence[str], shares: Sequence[F64], arms: Sequence[str]) -> Chart:
    """How often each arm was pulled, a bar for each cell; the arms, and in them the cells, as they are given."""
    drawn = shares[:MOST_BARS]
    rows = [_wrapped(label) for label in labels[: len(drawn)]]
    lines = sum(row.count("<br>") + 1 for row in rows)
    layout = {
        "height": 70 + 12 * len(rows) + 17 * lines,
        "margin": MARGIN,
        "font": FONT,
        "barmode": "stack",
        "bargap": 0.25,
        "hovermode": "closest",
        "hoverlabel": {"namelength": -1},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "xaxis": GRID | {"range": [0, 1], "tickformat": ".0%", "title": {"text": "share of rounds"}},
        "yaxis": {"autorange": "reversed", "automargin": True, "tickmode": "array", "tickvals": list(range(len(rows)))}
        | {"ticktext": rows, "ticks": "", "fixedrange": True},
    }
    chart = Chart(title, layout, scales=False)
    table = np.array([np.append(own[:MOST_ARMS], own[MOST_ARMS:].sum()) for own in drawn]).T
    names = [*arms[:MOST_ARMS], f"the other {len(arms) - MOST_ARMS:,} arms"]
    for arm, (name, values) in enumerate(zip(names, table, strict=False)):
        if arm < min(len(arms), MOST_ARMS + 1):
            color = REST if arm == MOST_ARMS else _arm_color(arm, min(len(arms), MOST_ARMS))
            chart.add(name, color, None, [_bar(name, values, color, labels)])
    if len(shares) > MOST_BARS:
        chart.note = (
            f"The {MOST_BARS} cells of lowest regret, of {len(shares):,}; the table of all cells has the others."
        )
    return chart


def _bar(name: str, values: F64, color: str, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": text(name),
        "x": numbers(values),
        "y": list(range(len(values))),
        "customdata": [text(label) for label in labels[: len(values)]],
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
    """Numbers as short as a picture needs them; what is none is None."""
    return [_short(float(value)) for value in values]


def _short(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 1e15 else float(f"{value:.5g}")


# HTML.


def chart_html(chart: Chart, name: str) -> str:
    """A chart with its legend; the script of the page draws it from the data within."""
    data = json.dumps(chart.figure, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    safe = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    title = escape(chart.title)
    return (
        f'<figure class="chart" id="{name}"><figcaption>{title}</figcaption>{_scales(chart) if chart.scales else ""}'
        f'<div class="plot" role="img" aria-label="{title}" style="height:{chart.layout["height"]}px"></div>'
        f"{_legend(chart)}"
        f'<script type="application/json">{safe}</script></figure>'
    )


def _scales(chart: Chart) -> str:
    """Buttons for the scales of both axes."""
    parts = []
    for axis, label in (("xaxis", chart.layout["xaxis"]["title"]["text"]), ("yaxis", "regret")):
        now = chart.layout[axis].get("type", "linear")
        buttons = "".join(
            f'<button type="button" data-axis="{axis}" data-type="{kind}" aria-pressed="{pressed}">{kind}</button>'
            for kind, pressed in (("linear", str(now == "linear").lower()), ("log", str(now == "log").lower()))
        )
        parts.append(f'<span class="scale">{label}: {buttons}</span>')
    return f'<div class="scales">{"".join(parts)}</div>'


def _legend(chart: Chart) -> str:
    few = len(chart.entries) <= SHOWN + 2
    shown, hidden = ([e for e in chart.entries if (e.listed or few) is state] for state in (True, False))
    more = ""
    if hidden:
        more = (
            f'<details class="choose"><summary>{len(hidden):,} more curves</summary>'
            '<input type="search" placeholder="only those with these words" aria-label="only those with these words" />'
            f'<ul class="legend">{"".join(map(_entry, hidden))}</ul></details>'
        )
    note = f'<p class="setting">{escape(chart.note)}</p>' if chart.note else ""
    return f'{note}<ul class="legend">{"".join(map(_entry, shown))}</ul>{more}'


def _entry(entry: Entry) -> str:
    if entry.dash is None:
        mark = f'<rect width="14" height="10" x="6" y="1" fill="{entry.color}" />'
    else:
        stroke = STROKES.get(entry.dash, entry.dash.replace("px", ""))
        mark = f'<path d="M0 6H26" stroke="{entry.color}" stroke-width="2.5" stroke-dasharray="{stroke}" />'
    traces = " ".join(map(str, entry.traces))
    return (
        f'<li><label><input type="checkbox" data-traces="{traces}"{" checked" if entry.shown else ""} />'
        f'<svg width="26" height="12" aria-hidden="true">{mark}</svg>{escape(entry.label)}</label></li>'
    )
