"""The coefficients of a linear model with their intervals: as a table, as text and as a picture."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rightarm import text
from rightarm.extras import polars_for
from rightarm.notebook import html_table
from rightarm.text import counted, number, wrapped

if TYPE_CHECKING:
    import polars

APPROXIMATE = "approximate"
SHARED = "shared"
LINES, FEWEST = 60, 3  # rows that a text shows, and of each arm at least
PANELS = 6  # arms that have a panel each in a picture; of more it shows colours
MOST = 60  # features or arms in a picture; more could not be read
SURE, UNSURE = "#0072B2", "#999999"  # Okabe and Ito's blue, and grey
REACH = 2.0  # how far an axis goes, in units of the largest coefficient; intervals may go on
HEIGHT, WIDTH = 0.28, 0.42  # inches, of a feature and of an arm
NAME = 28  # letters of a name in a picture


class Row(NamedTuple):
    """One coefficient."""

    arm: Any
    """An arm, or "shared"."""
    feature: str
    coefficient: float
    """What one deviation of the column adds to the reward, by which the policy decides."""
    low: float | None
    high: float | None
    kind: str | None
    deviation: float
    """By what the column is divided at present; 1 where it is not standardised."""
    intercept: bool
    lacking: str
    """Why there is no interval; empty if there is one."""
    seen: bool = True
    """Whether its column was ever other than 0 where something was learned of it."""

    @property
    def sure(self) -> bool:
        """Whether 0 is outside the interval."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    def plain(self) -> dict[str, Any]:
        """The row of a table, also per unit of the raw feature."""
        ends = {"per_unit": self.coefficient, "per_unit_low": self.low, "per_unit_high": self.high}
        units = {name: None if end is None else end / self.deviation for name, end in ends.items()}
        return {name: getattr(self, name) for name in self._fields[:6]} | units | {"lacking": self.lacking}


@dataclass(frozen=True)
class Coefficients:
    """The coefficients of every arm, and those that arms share; `Bandit.coefficients` makes them."""

    rows: list[Row]
    confidence: float
    kind: str
    """``bounded``, intervals that hold at any time, or ``approximate``."""
    lacking: str
    """Why none has an interval; empty if some have one."""
    centred: bool
    """Whether levels of categories are compared with their average."""
    of: str = "reward"
    """What the model predicts."""

    @property
    def standardised(self) -> bool:
        """Whether a column is standardised."""
        return any(row.deviation != 1 for row in self.rows)

    def table(self) -> list[dict[str, Any]]:
        """A row for each coefficient, as `Bandit.coefficients` says."""
        return [row.plain() for row in self.rows]

    def frame(self) -> polars.DataFrame:
        """`table` as a Polars frame."""
        rows = [row | {"arm": str(row["arm"])} for row in self.table()]
        frame: polars.DataFrame = polars_for("frame()").DataFrame(rows, infer_schema_length=None)
        return frame

    def _sure(self) -> str:
        return f"{100 * self.confidence:g}%, {'at any time' if self.kind != APPROXIMATE else APPROXIMATE}"

    def _titles(self) -> list[str]:
        units = ["per unit", "interval per unit"] if self.standardised else []
        return ["arm", "feature", "coefficient", self._sure(), *units]

    def _shown(self) -> list[Row]:
        """The rows of the text: of every arm the intercept and the largest coefficients, of columns that were seen."""
        by_arm: dict[Any, list[Row]] = {}
        for row in self.rows:
            if row.seen:
                by_arm.setdefault(row.arm, []).append(row)
        ordered = [sorted(rows, key=_first) for rows in by_arm.values()]
        most = LINES if sum(map(len, ordered)) <= LINES else max(LINES // len(ordered), FEWEST)
        return [row for rows in ordered for row in rows[:most]][:LINES]

    def _lines(self) -> list[list[str]]:
        lines = []
        for row in self._shown():
            name = f"{row.feature} (intercept)" if row.intercept else row.feature
            units = [number(row.coefficient / row.deviation), _interval(row, row.deviation)]
            lines.append([str(row.arm), name, number(row.coefficient), row.lacking or _interval(row, 1.0), *units])
        return lines if self.standardised else [line[:4] for line in lines]

    def notes(self) -> list[str]:
        """What one should know of the numbers."""
        notes, unseen = [], sum(not row.seen for row in self.rows)
        more = len(self.rows) - unseen - len(self._shown())
        if more:
            notes.append(
                f"{counted(more, 'more coefficient')} not shown: frame() has all, coefficients(arm=...) an arm's."
            )
        if unseen:
            notes.append(f"{counted(unseen, 'coefficient')} not shown: the column was never seen with that arm.")
        if self.standardised:
            notes.append(
                f"A coefficient is what one deviation of its column adds to the {self.of}; per unit it is divided by "
                "the present deviation."
            )
        if self.centred:
            notes.append("Levels of a category are compared with the average of those that were seen.")
        if self.lacking:
            return [*notes, f"There are no intervals: {self.lacking}."]
        notes.append(
            "Intervals are about least squares without the ridge, which draws coefficients to 0. They suppose that "
            "rewards are linear in these columns; all of an arm are right at once."
        )
        if self.kind == APPROXIMATE:
            notes.append("The noise is estimated from residuals; a reward_range makes intervals hold at any time.")
        return notes

    def __str__(self) -> str:
        shown = text.table(self._titles(), self._lines(), words=2, spare=["interval per unit"])
        return "\n".join([shown, *map(wrapped, self.notes())])

    def _repr_html_(self) -> str:
        return html_table(self._titles(), self._lines(), words=2, notes=self.notes())

    def plot(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> Any:
        """Draw all coefficients but the intercepts, the largest first: with intervals, or as colours for many arms.

        Columns that were never seen are left out. The axis is that of the coefficients: an interval that ends in an
        arrow goes on.

        Into a file, PNG, SVG or PDF by the path's ending, and its path is given back; or into a new figure.
        """
        figure = _drawn(self, "Coefficients" if title is None else title)
        if path is None:
            return figure
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=150)
        return target


def _first(row: Row) -> tuple[bool, float]:
    """By what rows of an arm are put in order: the intercept, then the largest."""
    return not row.intercept, -abs(row.coefficient)


def _interval(row: Row, unit: float) -> str:
    return "" if row.low is None or row.high is None else f"{number(row.low / unit)} to {number(row.high / unit)}"


# The picture.


def _drawn(found: Coefficients, title: str) -> Any:
    """A line for each feature; a panel with intervals for each arm, or a column of colours."""
    from rightarm.pictures import Picture

    rows = [row for row in found.rows if row.seen and not row.intercept]
    features, left_out = _largest([(row.feature, row) for row in rows])
    largest, arms_out = _largest([(row.arm, row) for row in rows])
    arms = [arm for arm in dict.fromkeys(row.arm for row in rows) if arm in largest]  # in their own order
    places = {name: place for place, name in enumerate(features)}
    by_arm = {arm: [row for row in rows if row.arm == arm and row.feature in places] for arm in arms}
    wide = 2.6 + (1.9 * len(arms) if len(arms) <= PANELS else 1.0 + WIDTH * len(arms))
    figure = Picture(figsize=(max(wide, 6.0), 1.9 + HEIGHT * max(len(features), 4)), layout="constrained")
    if len(arms) <= PANELS:
        _panels(figure, by_arm, places)
    else:
        _colours(figure, by_arm, places)
    figure.axes[0].set_yticks(range(len(features)), [_short(name) for name in features])
    figure.axes[0].set_ylim(max(len(features), 1) - 0.5, -0.5)
    unseen = sum(not row.seen for row in found.rows)
    missing = (left_out, "features"), (arms_out, "arms"), (unseen, "coefficients of columns never seen")
    gone = [f"{count} {what}" for count, what in missing if count]
    unit = f"{found.of} per {'deviation' if found.standardised else 'unit'} of a column"
    words = "interval" if len(arms) <= PANELS else "a dot where 0 is outside the interval"
    interval = f"; {words} ({found._sure()})"
    below = [f"{unit}{'' if found.lacking else interval}", *([f"not shown: {', '.join(gone)}"] if gone else [])]
    figure.supxlabel("\n".join(below), fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


def _largest(named: list[tuple[Any, Row]]) -> tuple[list[Any], int]:
    """The features or arms with the largest coefficients, these first, and how many others there are."""
    size = dict[Any, float]()
    for name, row in named:
        size[name] = max(size.get(name, 0.0), abs(row.coefficient))
    shown = sorted(size, key=lambda name: size[name], reverse=True)[:MOST]
    return shown, len(size) - len(shown)


def _short(name: Any) -> str:
    """A name in few letters; its end stays, in which long names differ."""
    whole = str(name)
    return whole if len(whole) <= NAME else f"{whole[: NAME // 2]}…{whole[1 - NAME // 2 :]}"


def _panels(figure: Any, by_arm: dict[Any, list[Row]], places: dict[str, int]) -> None:
    """A panel for each arm: coefficients with intervals, blue where 0 is outside."""
    reach = _reach([row for rows in by_arm.values() for row in rows])
    panels = figure.subplots(1, max(len(by_arm), 1), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (arm, rows) in zip(panels, by_arm.items(), strict=False):
        axes.axvline(0.0, color="black", linewidth=0.8)
        for row in rows:
            place, colour = places[row.feature], SURE if row.sure else UNSURE
            if row.low is not None and row.high is not None:
                ends = np.clip([row.low, row.high], -reach, reach)
                axes.plot(ends, [place, place], color=colour, linewidth=2, solid_capstyle="butt")
                for goes_on, edge, arrow in ((row.low < -reach, -reach, "<"), (row.high > reach, reach, ">")):
                    if goes_on:
                        axes.plot(edge, place, arrow, color=colour, markersize=4.5)
            filled = "white" if row.lacking else colour
            axes.plot(row.coefficient, place, "o", color=colour, markerfacecolor=filled, markersize=4.5)
        axes.set_title(_short(arm), fontsize=9)
        axes.grid(axis="both", alpha=0.25)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=8)
        axes.locator_params(axis="x", nbins=4)
        axes.set_xlim(-1.06 * reach, 1.06 * reach)


def _reach(rows: list[Row]) -> float:
    """How far the axis goes to either side: to the end of the intervals, if that lets the coefficients be seen."""
    points = max((abs(row.coefficient) for row in rows), default=0.0)
    ends = max((abs(end) for row in rows for end in (row.low, row.high) if end is not None), default=0.0)
    return min(max(points, ends), REACH * points) or ends or 1.0


def _colours(figure: Any, by_arm: dict[Any, list[Row]], places: dict[str, int]) -> None:
    """A column for each arm: orange above 0, purple below, a dot where 0 is outside the interval."""
    axes, values = figure.subplots(), np.full((len(places), len(by_arm)), np.nan)
    for column, rows in enumerate(by_arm.values()):
        for row in rows:
            place = places[row.feature]
            values[place, column] = row.coefficient
            if row.sure:
                axes.plot(column, place, "o", color="black", markeredgecolor="white", markeredgewidth=0.7, markersize=5)
    largest = float(np.nanquantile(np.abs(values), 0.99)) or 1.0
    image = axes.imshow(values, cmap="PuOr_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    axes.set_facecolor("#eeeeee")
    axes.set_xticks(
        range(len(by_arm)), [_short(arm) for arm in by_arm], rotation=60, ha="right", rotation_mode="anchor"
    )
    axes.tick_params(labelsize=8)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02, extend="both")
    bar.ax.tick_params(labelsize=8)
