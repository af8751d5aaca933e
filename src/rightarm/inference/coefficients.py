"""Coefficients of linear models, with intervals that hold at any time.

Rows are x_t, rewards r_t = x_t · θ + noise that is σ-sub-Gaussian given all that came before; a row may depend on all
rewards before it. Let G = Σ x xᵀ, S = Σ x · noise. For any fixed v > 0, with probability 1 − δ at all times at once

    ‖S‖ in the norm of (v + G)⁻¹  ≤  σ √(2 log(√(det(v + G)/det v) / δ))  =  β

(Abbasi-Yadkori, Pál and Szepesvári, "Improved algorithms for linear stochastic bandits", NeurIPS 2011, theorem 1). Let
θ̂ be the least squares without any ridge. A combination w · θ follows from the rows if w = G c for some c; then
w · θ̂ − w · θ = c · S, whose size is at most ‖c‖ in the norm of (v + G), times β. No bound on θ is needed, and all
combinations are right at once. What no row tells apart, as two columns that are always equal, has no interval.

Rows of many arms are private columns and shared ones: G is an arrowhead, and all of it is done block by block.

`Regression` computes, from the sums in a `Gram`; `Coefficients` shows the result as a table, a text and a picture.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rightarm import display as text
from rightarm.display import counted, html_table, number, wrapped
from rightarm.errors import polars_for
from rightarm.types import F64

if TYPE_CHECKING:
    import polars

FIXED = 100.0  # v for every column, narrowest from some hundred rewards of an arm on; must not depend on the data
SINGULAR = 1e-8  # an eigenvalue of columns scaled to size 1 below which nothing is known of its direction
WITHIN = 1e-5  # share of a combination that may be in such a direction: rounding

APPROXIMATE = "approximate"
SHARED = "shared"
LINES = 60  # rows that a text shows
FEWEST = 3  # rows that a text shows of each arm, at least

PANELS = 6  # arms that have a panel each in a picture; of more it shows colours
MOST = 60  # features or arms in a picture; more could not be read
SURE = "#0072B2"  # Okabe and Ito's blue
UNSURE = "#999999"  # grey
REACH = 2.0  # how far an axis goes, in units of the largest coefficient; intervals may go on
HEIGHT = 0.28  # inches of a feature
WIDTH = 0.42  # inches of an arm
NAME = 28  # letters of a name in a picture

Name = TypeVar("Name", bound=Hashable)


class Gram(NamedTuple):
    """Σ row rowᵀ, and Σ row · reward, of arms whose rows are private columns and shared ones."""

    own: F64
    """Private with private columns of each arm: K × P × P."""
    cross: F64
    """Private with shared columns of each arm: K × P × S."""
    joint: F64
    """Shared with shared columns, of all arms: S × S."""
    own_sums: F64
    joint_sums: F64

    def sizes(self, arm: int) -> F64:
        """Return Σ x² of every column of an arm, private ones first; of shared ones over all arms."""
        return np.concatenate((np.diagonal(self.own[arm]), np.diagonal(self.joint)))


class Inverse(NamedTuple):
    """A generalised inverse of a matrix, or of several, and the combinations for which it is one."""

    matrix: F64
    scale: F64
    unknown: F64
    """The directions of which nothing is known, of scaled columns; zeros for the others."""
    rank: NDArray[np.int64]

    def knows(self, combinations: F64) -> NDArray[np.bool_]:
        """Return whether each combination, a row, follows from the data."""
        scaled = combinations * self.scale
        outside = np.linalg.norm(scaled @ self.unknown, axis=-1)
        return np.asarray(outside <= WITHIN * np.linalg.norm(scaled, axis=-1))


class Regression:
    """Least squares without a ridge, from sums, for each combination of coefficients."""

    def __init__(self, gram: Gram) -> None:
        self.gram = gram
        self.own = _inverse(gram.own, np.diagonal(gram.own, axis1=-2, axis2=-1))
        self.solved = self.own.matrix @ gram.cross  # K × P × S
        rest = gram.joint - np.einsum("kps,kpt->st", gram.cross, self.solved)
        self.joint = _inverse(rest, np.diagonal(gram.joint))
        self.joint_rest = gram.joint_sums - np.einsum("kps,kp->s", self.solved, gram.own_sums)
        self.lengths = np.einsum("kps,kpt->st", self.solved, self.solved)

    def combined(self, arm: int, own: F64, joint: F64) -> tuple[F64, F64]:
        """Return the estimate of each combination of an arm's coefficients and shared ones, a row each, and its width.

        The half of its interval is the width times β; both are NaN where the data say nothing of it.
        """
        first = own @ self.own.matrix[arm]
        rest = joint - first @ self.gram.cross[arm]
        shared = rest @ self.joint.matrix
        shift = shared @ self.solved[arm].T
        private = first - shift
        estimate = first @ self.gram.own_sums[arm] + shared @ self.joint_rest
        others = np.einsum("ms,st,mt->m", shared, self.lengths, shared) - (shift**2).sum(axis=1)
        square = (own * private).sum(axis=1) + (joint * shared).sum(axis=1)
        square += FIXED * ((private**2).sum(axis=1) + (shared**2).sum(axis=1) + np.maximum(others, 0.0))
        known = Inverse(*(part[arm] for part in self.own)).knows(own) & self.joint.knows(rest)
        return np.where(known, estimate, np.nan), np.where(known, np.sqrt(np.maximum(square, 0.0)), np.nan)

    def log_volumes(self) -> F64:
        """Return log √(det(v + G)/det v) for each arm: of its columns, or of all arms' together if any are shared."""
        grown = np.eye(self.gram.own.shape[-1]) + self.gram.own / FIXED
        own = np.linalg.slogdet(grown)[1] / 2
        if not self.gram.joint.size:
            return np.asarray(own)
        solved = np.linalg.solve(grown, self.gram.cross / FIXED)
        rest = np.eye(len(self.gram.joint)) + self.gram.joint / FIXED
        rest -= np.einsum("kps,kpt->st", self.gram.cross / FIXED, solved)
        return np.full(own.shape, own.sum() + np.linalg.slogdet(rest)[1] / 2)

    def ranks(self) -> NDArray[np.int64]:
        """Return how many combinations the rows tell apart: of each arm, or of all together if columns are shared."""
        if not self.gram.joint.size:
            return self.own.rank
        return np.full(self.own.rank.shape, self.own.rank.sum() + self.joint.rank)

    def bounds(self, sigma: F64 | float, confidence: float) -> F64:
        """Return β for each arm."""
        return np.asarray(sigma * np.sqrt(2 * (self.log_volumes() - math.log1p(-confidence))))


def _inverse(matrices: F64, sizes: F64) -> Inverse:
    """Return a generalised inverse; ``sizes`` are those of the columns, 0 where a column was always 0."""
    scale = np.where(sizes > 0, 1 / np.sqrt(np.where(sizes > 0, sizes, 1.0)), 1.0)
    alive = (sizes > 0) * scale
    values, vectors = np.linalg.eigh(alive[..., :, None] * matrices * alive[..., None, :])
    known = values > SINGULAR
    unknown = vectors * ~known[..., None, :]
    parts = vectors * np.where(known, 1 / np.where(known, values, 1.0), 0.0)[..., None, :]
    inverse = scale[..., :, None] * (parts @ np.swapaxes(vectors, -1, -2)) * scale[..., None, :]
    nothing = scale[..., :, None] * unknown
    onto = np.eye(sizes.shape[-1]) - nothing @ np.linalg.pinv(nothing)  # the shortest solutions: narrower intervals
    return Inverse(onto @ inverse @ onto, scale, unknown, known.sum(axis=-1))


class Row(NamedTuple):
    """One coefficient."""

    arm: Hashable
    """An arm, or "shared"."""
    feature: str
    coefficient: float
    """What one deviation of the column adds to the reward, by which the policy decides."""
    low: float | None
    high: float | None
    kind: str | None
    deviation: float
    """The number by which the column is divided at present; 1 where it is not standardised."""
    intercept: bool
    lacking: str
    """Why there is no interval; empty if there is one."""
    seen: bool = True
    """Whether its column was ever other than 0 where something was learned of it."""

    @property
    def sure(self) -> bool:
        """Return whether 0 is outside the interval."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    def plain(self) -> dict[str, Any]:
        """Return the row of a table, also per unit of the raw feature."""
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
        """Return whether a column is standardised."""
        return any(row.deviation != 1 for row in self.rows)

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each coefficient, as `Bandit.coefficients` describes it."""
        return [row.plain() for row in self.rows]

    def frame(self) -> polars.DataFrame:
        """Return `table` as a Polars frame."""
        rows = [row | {"arm": str(row["arm"])} for row in self.table()]
        frame: polars.DataFrame = polars_for("frame()").DataFrame(rows, infer_schema_length=None)
        return frame

    def _sure(self) -> str:
        return f"{100 * self.confidence:g}%, {'at any time' if self.kind != APPROXIMATE else APPROXIMATE}"

    def _titles(self) -> list[str]:
        units = ["per unit", "interval per unit"] if self.standardised else []
        return ["arm", "feature", "coefficient", self._sure(), *units]

    def _shown(self) -> list[Row]:
        """Return the rows of the text: of every arm the intercept and the largest coefficients of columns with data."""
        by_arm: dict[Hashable, list[Row]] = {}
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
        """Return what a reader of the numbers should know."""
        notes = []
        unseen = sum(not row.seen for row in self.rows)
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

        Parameters
        ----------
        path : path, optional
            A file to write, PNG, SVG or PDF by its ending.
        title : str, optional
            The title of the picture.

        Returns
        -------
        Path or figure
            The path, or a new figure if none was given.
        """
        figure = _drawn(self, "Coefficients" if title is None else title)
        if path is None:
            return figure
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=150)
        return target


def _first(row: Row) -> tuple[bool, float]:
    """Return what rows of an arm are put in order by: the intercept, then the largest."""
    return not row.intercept, -abs(row.coefficient)


def _interval(row: Row, unit: float) -> str:
    return "" if row.low is None or row.high is None else f"{number(row.low / unit)} to {number(row.high / unit)}"


# The picture.


def _drawn(found: Coefficients, title: str) -> Any:
    """Draw a line for each feature; a panel with intervals for each arm, or a column of colours."""
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


def _largest(named: list[tuple[Name, Row]]) -> tuple[list[Name], int]:
    """Return the features or arms with the largest coefficients, these first, and how many others there are."""
    size = dict[Name, float]()
    for name, row in named:
        size[name] = max(size.get(name, 0.0), abs(row.coefficient))
    shown = sorted(size, key=lambda name: size[name], reverse=True)[:MOST]
    return shown, len(size) - len(shown)


def _short(name: Hashable) -> str:
    """Return a name in few letters; its end stays, in which long names differ."""
    whole = str(name)
    return whole if len(whole) <= NAME else f"{whole[: NAME // 2]}…{whole[1 - NAME // 2 :]}"


def _panels(figure: Any, by_arm: dict[Hashable, list[Row]], places: dict[str, int]) -> None:
    """Draw a panel for each arm: coefficients with intervals, blue where 0 is outside."""
    reach = _reach([row for rows in by_arm.values() for row in rows])
    panels = figure.subplots(1, max(len(by_arm), 1), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (arm, rows) in zip(panels, by_arm.items(), strict=False):
        axes.axvline(0.0, color="black", linewidth=0.8)
        for row in rows:
            place = places[row.feature]
            colour = SURE if row.sure else UNSURE
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
    """Return how far the axis goes to either side: to the end of the intervals, if coefficients stay visible."""
    points = max((abs(row.coefficient) for row in rows), default=0.0)
    ends = max((abs(end) for row in rows for end in (row.low, row.high) if end is not None), default=0.0)
    return min(max(points, ends), REACH * points) or ends or 1.0


def _colours(figure: Any, by_arm: dict[Hashable, list[Row]], places: dict[str, int]) -> None:
    """Draw a column for each arm: orange above 0, purple below, a dot where 0 is outside the interval."""
    axes = figure.subplots()
    values = np.full((len(places), len(by_arm)), np.nan)
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
