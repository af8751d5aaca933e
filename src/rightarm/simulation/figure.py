"""Panels drawn by Matplotlib: into a file, onto axes of the user's own, or as a figure."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rightarm.errors import needed_for
from rightarm.pictures import Picture
from rightarm.simulation.panels import ROUND, Panel, Style, band, line_styles, styles_of, ticks

with needed_for("plot()"):
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INSIDE = 7  # entries up to which the legend of a single panel stands in it
PANEL = (6.0, 4.0)  # inches, of each of several panels
ROW = 0.19  # inches, of a line of the legend below several panels
# Ours where the user's rcParams are Matplotlib's own. Fonts go into files as TrueType, which journals ask for.
SETTINGS: dict[Any, Any] = {
    "figure.figsize": [8.0, 5.0],
    "lines.linewidth": 1.8,
    "savefig.dpi": 150.0,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
}


def draw(
    panels: Sequence[Panel],
    path: Path | None = None,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    log: bool = False,
    title: str | None = None,
) -> Any:
    """Draw panels side by side, and give the path of the file; without one, the figure.

    What has the same name in several panels looks the same. ``log`` makes the axes logarithmic. A single panel can be
    drawn onto ``ax``.
    """
    if log:
        panels = [replace(panel, log_x=panel.log_x or panel.x == ROUND, log_y=True) for panel in panels]
    styles = styles_of(curve.label for panel in panels for curve in panel.curves)
    with _settings():
        if ax is not None:
            (panel,) = panels
            draw_panel(ax, panel, styles)
            ax.legend(frameon=False, handlelength=3.6)
            return ax.figure if path is None else _saved(ax.figure, path)
        figure = _figure(panels, styles, figsize, title)
        return figure if path is None else _saved(figure, path)


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    usual = matplotlib.rcParamsDefault
    with matplotlib.rc_context({k: v for k, v in SETTINGS.items() if matplotlib.rcParams[k] == usual[k]}):
        yield


def _saved(figure: Any, path: Path) -> Path:
    figure.savefig(path)
    return path


def _figure(
    panels: Sequence[Panel], styles: dict[str, Style], figsize: tuple[float, float] | None, title: str | None
) -> Figure:
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    several = (columns * PANEL[0], rows * PANEL[1]) if len(panels) > 1 else None
    figure = Picture(figsize=figsize or several, layout="constrained")
    for place, panel in enumerate(panels, start=1):
        draw_panel(figure.add_subplot(rows, columns, place), panel, styles)
    if title:
        figure.suptitle(_fitted(title, figure.get_figwidth()))
    add_legend(figure, grow=figsize is None)
    return figure


def draw_panel(axes: Axes, panel: Panel, styles: dict[str, Style]) -> None:
    """Draw curves with their bands, level lines, and computed lines."""
    figure = axes.get_figure(root=True)
    if panel.title and figure is not None:
        wide = figure.get_figwidth() * axes.get_position().width * 1.15
        axes.set_title(_fitted(panel.title, wide), fontsize="medium")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.grid(alpha=0.3)
    for curve in panel.curves:
        style = styles[curve.label]
        marker = style.marker or ("." if panel.x != ROUND and len(curve.x) < 40 else "")
        every: dict[str, Any] = {"markevery": 0.12, "markersize": 4} if panel.x == ROUND else {}
        axes.plot(curve.x, curve.mean, label=curve.label, **_line(style), marker=marker, **every)
        axes.fill_between(curve.x, *band(curve, panel.log_y), color=style.color, alpha=0.14, linewidth=0)
    thin = 0.7 * matplotlib.rcParams["lines.linewidth"]
    for level, style in zip(panel.levels, line_styles(panel.levels, {}), strict=True):
        axes.axhline(float(level.mean[-1]), label=level.label, **_line(style), linewidth=thin)
    for line, style in zip(panel.lines, line_styles(panel.lines, styles), strict=True):
        axes.plot(line.x, line.y, label=line.label, **_line(style), linewidth=thin)
    if panel.curves:
        _scale(axes, panel)


def _line(style: Style) -> dict[str, Any]:
    return {"color": style.color, "linestyle": (0, style.dash) if style.dash else "-"}


def _scale(axes: Axes, panel: Panel) -> None:
    """Make axes logarithmic where the panel asks for them; others begin at zero."""
    if panel.log_x:
        axes.set_xscale("log")
    if panel.x == ROUND and not panel.log_x:
        axes.set_xlim(panel.begin, panel.span[1])
        axes.xaxis.set_major_formatter("{x:,.0f}")
    elif panel.log_x and panel.x != ROUND:
        values = ticks(float(x) for curve in panel.curves for x in curve.x)
        axes.set_xticks(values, [f"{value:.3g}" for value in values])
        axes.set_xticks([], minor=True)
    drawn = np.concatenate([*(curve.mean for curve in panel.curves), *(np.ravel(line.y) for line in panel.lines)])
    if panel.log_y:
        axes.set_yscale("log", nonpositive="mask")
        positive = drawn[drawn > 0]
        if positive.size:  # bands may leave the picture, as they come close to zero
            axes.set_ylim(bottom=0.7 * float(positive.min()))
    else:
        axes.set_ylim(bottom=min(0.0, float(drawn.min())))
        axes.yaxis.set_major_formatter("{x:,.10g}")


def _fitted(text: str, inches: float) -> str:
    """Return a title in two lines at most, about so wide."""
    return "\n".join(textwrap.wrap(text, max(20, int(12.5 * inches)), max_lines=2, placeholder=" …"))


def add_legend(figure: Figure, grow: bool) -> None:
    """Put the legend into a single panel while there is room, else below all panels, where it covers nothing."""
    entries = {
        label: handle for axes in figure.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    looks: dict[str, Any] = {"frameon": False, "handlelength": 3.6}  # so long that dashes are seen to be dashes
    if len(figure.axes) == 1 and len(entries) <= INSIDE:
        figure.axes[0].legend(**looks)
        return
    widest = 0.7 + 0.085 * max(map(len, entries), default=1)  # inches, about
    columns = max(1, min(len(entries), int(figure.get_figwidth() / widest)))
    if grow:
        figure.set_figheight(figure.get_figheight() + ROW * -(-len(entries) // columns))
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=columns, fontsize="small", **looks
    )
