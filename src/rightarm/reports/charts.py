"""Charts, tables and templates of our pages."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex
from numpy.typing import ArrayLike

from rightarm.display import number, signed
from rightarm.errors import needed_for
from rightarm.simulation.panels import (
    NORMAL_95,
    ROUND,
    Line,
    MeanCurve,
    Panel,
    Style,
    band,
    half_width,
    line_styles,
    lowest,
    mean_and_error,
    styles_of,
    ticks,
)
from rightarm.types import F64, I64

with needed_for("a page of HTML"):
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

HERE = Path(__file__).parent


def render(template: str, **values: object) -> str:
    """Return a whole page from a template; style, script and plotly.js stand in it."""
    text: str = (
        _environment()
        .get_template(template)
        .render(
            **values,
            style=Markup((HERE / "style.css").read_text(encoding="utf-8")),
            script=Markup((HERE / "script.js").read_text(encoding="utf-8")),
            plotly=Markup(get_plotlyjs()),
        )
    )
    return text


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["mathematics"] = mathematics
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
    return environment


def mathematics(text: str) -> Markup:
    """Return text as HTML, with a_b, a_{bc}, a^b and a^{bc} as subscripts and superscripts, and powers of ten.

    >>> mathematics("R_T < 2e-10")
    Markup('R<sub>T</sub> &lt; 2·10<sup>−10</sup>')
    """
    text = re.sub(r"(\d)e([+-])0*(\d+)", lambda f: f"{f[1]}·10^{{{'−' * (f[2] == '-')}{f[3]}}}", text)
    text = escape(text, quote=False)
    for sign, tag in (("_", "sub"), ("^", "sup")):
        text = re.sub(rf"\{sign}(?:\{{([^}}]*)\}}|(\w|\+))", rf"<{tag}>\1\2</{tag}>", text)
    return Markup(text)


Trace = dict[str, object]
"""A part of a figure, as plotly.js is given it."""
MOST_POLICIES = 12  # of a table of all pairs
CLEAR = 3.0  # standard errors from which on a difference is marked
READING = (
    "Regret is pseudo-regret. Replication r of every policy meets the same luck, so differences of final regret are "
    "taken replication by replication, and their standard errors are those of the paired differences. z is the "
    f"difference in standard errors; differences of more than {CLEAR:g} are coloured. The best policy was chosen by "
    "these same data, and many pairs are looked at: differences of two or three standard errors are not yet news."
)


@dataclass(frozen=True)
class Value:
    """An entry of a table that can be sorted: its text, the value by which it is sorted, and its mark."""

    shown: str
    value: float | str | None
    mark: str = ""

    @property
    def is_sortable(self) -> bool:
        """Return whether it has a place in an order; what has none comes last."""
        return self.value is not None and self.value == self.value


@dataclass(frozen=True, eq=False)
class Finals:
    """The final regret of a cell in each of its replications."""

    label: str
    replications: I64
    regret: F64


@dataclass(frozen=True)
class PairedDifference:
    """The mean of paired differences and its standard error."""

    mean: float
    error: float
    pairs: int

    @property
    def z(self) -> float:
        """The mean in standard errors; NaN where there is no telling."""
        return self.mean / self.error if self.error > 0 else np.nan

    @property
    def mark(self) -> str:
        """The word for a difference that is clearly less or more than nothing."""
        return "" if not abs(self.z) > CLEAR else "less" if self.mean < 0 else "more"


def difference(one: Finals, other: Finals) -> PairedDifference:
    """Return one minus the other, over the replications that both have.

    >>> one = Finals("one", np.arange(3), np.array([3.0, 5.0, 4.0]))
    >>> difference(one, Finals("other", np.arange(1, 3), np.array([4.0, 1.0])))
    PairedDifference(mean=2.0, error=1.0, pairs=2)
    """
    _, mine, its = np.intersect1d(one.replications, other.replications, assume_unique=True, return_indices=True)
    gaps = one.regret[mine] - other.regret[its]
    if not gaps.size:
        return PairedDifference(np.nan, np.nan, 0)
    mean, error = mean_and_error(gaps)
    return PairedDifference(float(mean), float(error), gaps.size)


@dataclass(frozen=True)
class Comparison:
    """Policies of one setting, the best first: each against the best, and all pairs if they are few."""

    setting: str
    """The title that tells it from other comparisons of the page."""
    best: str
    rows: list[list[Value]]
    names: list[str]
    pairs: list[list[dict[str, str] | None]]
    """Row minus column; nothing on the diagonal."""


HEAD = ["policy", "difference", "standard error", "95% interval", "z", "pairs"]  # of a comparison's rows


def comparison(setting: str, finals: Sequence[Finals]) -> Comparison:
    """Compare every policy with the best one, and all with all if they are few."""
    best, *others = ranked = sorted(finals, key=lambda each: float(each.regret.mean()))
    matrix = ranked if 2 < len(ranked) <= MOST_POLICIES else []
    return Comparison(
        setting,
        best.label,
        [_row(each, difference(each, best)) for each in others],
        [each.label for each in matrix],
        [[None if row is column else _pair(row, column) for column in matrix] for row in matrix],
    )


def _row(own: Finals, gap: PairedDifference) -> list[Value]:
    half = NORMAL_95 * gap.error
    interval = f"{signed(gap.mean - half)} to {signed(gap.mean + half)}" if half == half else "–"
    return [
        Value(own.label, own.label),
        Value(signed(gap.mean), gap.mean, gap.mark),
        Value(number(gap.error, 3), gap.error),
        Value(interval, gap.mean),
        Value(signed(gap.z, 3), gap.z, gap.mark),
        Value(f"{gap.pairs:,}", gap.pairs),
    ]


def _pair(row: Finals, column: Finals) -> dict[str, str]:
    gap = difference(row, column)
    return {
        "mark": gap.mark,
        "hover": f"{row.label} − {column.label}, {gap.pairs:,} pairs",
        "mean": f"{signed(gap.mean, 3)} ± {number(gap.error, 2)}",
        "z": signed(gap.z, 2),
    }


SHOWN = 12  # curves of a chart at first; more could not be told apart
MOST_DOTS = 30  # on a curve
MOST_ARMS = 20  # arms that have a colour of their own
REST = "#c9ced4"  # of the other arms
HEIGHT = 400
MARGIN = {"l": 10, "r": 14, "t": 30, "b": 10}  # room for the buttons above
FAR = 2.0  # times the highest curve, from where on a line would press the curves flat
SYMBOLS = {"o": "circle", "s": "square", "^": "triangle-up", "D": "diamond", "v": "triangle-down", "X": "x"}


@dataclass(frozen=True)
class LegendEntry:
    """A line of a legend, and the traces that it shows and hides."""

    label: str
    style: Style | None
    """The look of its line; none for an area."""
    color: str
    traces: tuple[int, ...]
    shown: bool
    listed: bool
    """Whether it stands in the legend itself, and not among those that can be chosen."""


@dataclass
class Chart:
    """A chart under construction."""

    title: str
    layout: Trace
    traces: list[Trace] = field(default_factory=list)
    entries: list[LegendEntry] = field(default_factory=list)
    scales: bool = True
    """Whether the axes can be linear and logarithmic."""
    note: str = ""

    def add(
        self,
        label: str,
        style: Style,
        traces: Iterable[Trace],
        *,
        shown: bool = True,
        listed: bool | None = None,
        area: bool = False,
    ) -> None:
        """Add traces that are shown and hidden together."""
        first = len(self.traces)
        self.traces += [trace | {"visible": shown, "showlegend": False} for trace in traces]
        self.entries.append(
            LegendEntry(
                label,
                style=None if area else style,
                color=style.color,
                traces=tuple(range(first, len(self.traces))),
                shown=shown,
                listed=shown if listed is None else listed,
            )
        )

    @property
    def figure(self) -> Trace:
        """The data for plotly.js; colours of text, axes and paper are the page's."""
        return {"data": self.traces, "layout": self.layout}

    @property
    def legend(self) -> tuple[list[LegendEntry], list[LegendEntry]]:
        """The entries that are shown at once, and those that can be chosen."""
        few = len(self.entries) <= SHOWN + 2
        return [e for e in self.entries if e.listed or few], [e for e in self.entries if not (e.listed or few)]


def line_chart(panel: Panel, styles: Mapping[str, Style] | None = None) -> Chart:
    """Draw curves with their bands, level lines and computed lines; of many curves the lowest are shown at first."""
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


def _layout(panel: Panel) -> Trace:
    whole = panel.x in (ROUND, "T")
    x: Trace = {"title": {"text": text(panel.x)}, "automargin": True, "tickformat": "~s" if whole else "~g"}
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


def _with_band(curve: MeanCurve, panel: Panel, style: Style) -> list[Trace]:
    """Return the mean, and its confidence band as a closed line around it."""
    dots = panel.x != ROUND or style.marker or len(curve.x) == 1
    line = _line(Line(curve.label, curve.x, curve.mean), panel, style) | {
        "mode": "lines+markers" if dots else "lines",
        "customdata": numbers(half_width(curve)),
        "marker": {"size": 6, "symbol": SYMBOLS.get(style.marker, "circle"), "maxdisplayed": MOST_DOTS},
        "hovertemplate": f"{_hover(panel)} ± %{{customdata:,.2~g}}",
    }
    some = curve.mean > 0  # where nothing was lost there is no band, and a logarithmic axis would tear it
    low, high = (edge[some] for edge in band(curve))
    around = np.concatenate([curve.x[some], curve.x[some][::-1]])
    area: Trace = {
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


def _level(level: MeanCurve, span: tuple[float, float], style: Style) -> Trace:
    """Return a curve's end as a level line; it has points on the way, so that it can be pointed at."""
    low, high = span
    points = np.geomspace(low, high, 25) if low > 0 else np.linspace(low, high, 25)
    line = _line(Line(level.label, points, np.full(25, level.mean[-1])), Panel("", []), style)
    half = numbers(np.full(25, half_width(level)[-1]))
    return line | {"customdata": half, "hovertemplate": "final regret %{y:,.4~g} ± %{customdata:,.2~g}"}


def _line(line: Line, panel: Panel, style: Style) -> Trace:
    dash = ",".join(f"{2 * part:g}px" for part in style.dash) or "solid"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": text(line.label),
        "x": numbers(line.x),
        "y": numbers(line.y),
        "line": {"color": style.color, "dash": dash, "width": 2},
        "hovertemplate": _hover(panel),
    }


def _hover(panel: Panel) -> str:
    return f"{text(panel.x)} %{{x:,}}<br>{text(panel.y)} %{{y:,.4~g}}"


def share_chart(title: str, labels: Sequence[str], shares: Sequence[F64], arms: Sequence[str]) -> Chart:
    """Draw how often each arm was pulled, a bar for each label; the arms are stacked as they are given."""
    rows = [_wrapped(label) for label in labels]
    lines = sum(row.count("<br>") + 1 for row in rows)
    layout: Trace = {
        "height": 70 + 12 * len(rows) + 17 * lines,
        "margin": MARGIN,
        "barmode": "stack",
        "bargap": 0.25,
        "hovermode": "closest",
        "hoverlabel": {"namelength": -1},
        "xaxis": {"range": [0, 1], "tickformat": ".0%", "title": {"text": "share of rounds"}, "automargin": True},
        "yaxis": named_rows(rows),
    }
    chart = Chart(title, layout, scales=False)
    coloured = min(len(arms), MOST_ARMS)
    named = [(name, _arm_color(i, coloured), [row[i] for row in shares]) for i, name in enumerate(arms[:coloured])]
    if len(arms) > coloured:
        named.append((f"the other {len(arms) - coloured:,} arms", REST, [row[coloured:].sum() for row in shares]))
    for name, color, values in named:
        chart.add(name, Style(color), [_bar(name, np.array(values), color, labels)], area=True)
    return chart


def named_rows(names: Sequence[str]) -> Trace:
    """Return a vertical axis with a name for each row, from the top."""
    return {
        "autorange": "reversed",
        "automargin": True,
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "ticks": "",
        "fixedrange": True,
    }


def _bar(name: str, values: F64, color: str, labels: Sequence[str]) -> Trace:
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
    """Return a colour from blue, the best arm, to yellow."""
    return to_hex(colormaps["viridis"](0.2 + 0.78 * arm / max(arms - 1, 1)))


def _faint(color: str) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"


def _wrapped(label: str, width: int = 26) -> str:
    """Return a label in lines that are not longer than a narrow screen allows."""
    lines = [""]
    for piece in label.split(", "):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += (", " if lines[-1] else "") + piece
    return "<br>".join(text(line if len(line) <= 40 else line[:39] + "…") for line in lines)


def text(plain: str) -> str:
    """Return text for plotly.js, which takes some tags for tags and entities for characters."""
    return escape(plain, quote=False)


def numbers(values: ArrayLike) -> list[float | None]:
    """Return numbers as short as a picture needs them; None where there is none."""
    return [_short(float(value)) for value in np.asarray(values)]


def _short(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 1e15 else float(f"{value:.5g}")
