"""Results as people read them: cells with their arrays, frames of all cells, and panels of curves."""

from __future__ import annotations

import functools
import importlib
import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rightarm.display import counted, short, table, wrapped
from rightarm.errors import needed_for, polars_for
from rightarm.experiments.result_folder import CellDescription, Measurements, ResultFolder
from rightarm.formula import from_specification
from rightarm.policies.policy import Policy
from rightarm.problems.random import any_problem_from_specification
from rightarm.simulation.panels import Curve, MeanCurve, Panel, final_against, lowest, mean_and_error
from rightarm.simulation.result import (
    QUANTILES,
    SPARE,
    TITLES,
    best_share,
    distinct,
    final_regret,
    formatted,
    parameters_of,
    titles_of,
)
from rightarm.types import F64, I64

if TYPE_CHECKING:
    import polars

K = TypeVar("K", bound=Hashable)
BATCH = 1 << 24  # numbers that are read together
STATISTICS = tuple(TITLES)
SETTING_COLUMNS = ("horizon", "seed", "replications")
FRAME_COLUMNS = ("cell", *SETTING_COLUMNS, "finished", "complete", *STATISTICS)  # besides the names of cells
MOST_CURVES = 14  # of a panel; more could not be formatted apart
MOST_LEVELS = 4
MOST_PANELS = 12


def load(folder: str | os.PathLike[str]) -> Results:
    """Read the results of an experiment, finished or not, from the folder into which ``rightarm run`` wrote them.

    They are read as they are at this moment; a run that goes on meanwhile is not disturbed.

    Parameters
    ----------
    folder : str or path
        The folder.

    Returns
    -------
    Results
        The cells of the experiment, with what was measured of each.

    Examples
    --------
    >>> import tempfile
    >>> import rightarm as ra
    >>> from rightarm.experiments.cell import Cell
    >>> folder = tempfile.TemporaryDirectory()
    >>> with ResultFolder.open(folder.name, write=True) as results:
    ...     problem = ra.problems.Bernoulli([0.9, 0.1])
    ...     results.begin([Cell(ra.UCB(C=0.5), problem, 100, 16, seed=1, checkpoints=(10, 100))])
    >>> results = ra.experiments.load(folder.name)
    >>> results.frame["policy", "horizon", "replications", "finished", "regret"].rows()
    [('UCB(C=0.5)', 100, 16, 0, None)]
    >>> folder.cleanup()
    """
    with ResultFolder.open(folder) as opened:
        return Results(opened)


@dataclass(frozen=True, eq=False, repr=False)
class CellResult(CellDescription):
    """One cell of an experiment, and what was measured of it; arrays are read when they are asked for.

    Examples
    --------
    >>> import tempfile
    >>> import rightarm as ra
    >>> text = 'horizon = 100\\nproblems.a = "Bernoulli([0.9, 0.1])"\\npolicies.ucb = { use = "UCB", C = [0.5, 1.0] }'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.toml")
    ...     _ = path.write_text(text)
    ...     cell = ra.experiments.run(path, output=Path(folder, "two")).one(policy="ucb", C=0.5)
    ...     cell.policy, cell.regret.shape == (64, cell.rounds.size)
    (UCB(C=0.5), True)
    """

    index: int
    """The number of the cell."""
    finished: int
    """How many of its replications are there."""
    read: Callable[[int], Measurements]
    """Reads what was measured of the cell of a number."""

    @property
    def is_complete(self) -> bool:
        """Return whether all replications are there."""
        return self.finished == self.replications

    def value(self, name: str) -> Any:
        """Return the value of a name, or the horizon, seed or number of replications; None if it has none such."""
        return self.names.get(name, getattr(self, name) if name in SETTING_COLUMNS else None)

    @functools.cached_property
    def policy(self) -> Policy:
        """Return the policy; one of your own must be importable, and still be the same formula."""
        policy: Policy = from_specification(self.specification["policy"])
        return policy

    @functools.cached_property
    def problem(self) -> Any:
        """Return the problem, of whatever kind; one of your own must be importable, and still be the same formula."""
        return any_problem_from_specification(self.specification["problem"])

    @property
    def measurements(self) -> Measurements:
        """The replications that are there, with what was measured in each."""
        return self.read(self.index)

    @property
    def regret(self) -> F64:
        """The pseudo-regret, replications × checkpoints."""
        return self.measurements.regret

    @property
    def pulls(self) -> I64:
        """The final pulls, replications × arms."""
        return self.measurements.pulls

    @property
    def means(self) -> F64:
        """The mean reward of every arm in every replication, replications × arms."""
        measured = self.measurements
        if self.has_contexts:
            return np.full(measured.pulls.shape, np.nan)  # no arm has one mean
        if self.fixed_means is not None:
            return np.broadcast_to(np.array(self.fixed_means), measured.pulls.shape)
        return np.zeros(measured.pulls.shape) if measured.means is None else measured.means

    def curve(self, label: str = "") -> Curve:
        """Return regret against the round."""
        return Curve.of(label or self._title, self.rounds.astype(float), self.regret)

    def mean_curve(self, label: str) -> MeanCurve:
        """Return mean regret against the round, without the replications."""
        return MeanCurve.of(label, self.rounds, self.regret)

    @property
    def _title(self) -> str:
        return ", ".join(f"{name} {short(value)}" for name, value in self.names.items())

    def __repr__(self) -> str:
        return f"<CellResult: {self._title}, {self.finished:,} replications>"


class Results:
    """The results of an experiment: its cells, in the experiment's order, and what came of each.

    Cells that are not complete have the replications that are there.

    Attributes
    ----------
    folder : Path
        The folder that they were read from.
    title : str
        The title of the experiment.
    experiment : str
        The text of its file.
    """

    def __init__(self, opened: ResultFolder) -> None:
        self._opened = opened
        self.folder = opened.folder
        self.title = opened.title
        self.experiment = opened.experiment
        self._cells = [
            CellResult(
                **vars(cell), index=i, finished=opened.finished(cell.key, cell.replications), read=self._measured
            )
            for i, cell in enumerate(opened.descriptions)
        ]
        self._batches = _batches(self._cells)
        self._read: tuple[range, dict[str, Measurements]] = (range(0), {})

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, i: int) -> CellResult:
        return self._cells[i]

    def __iter__(self) -> Iterator[CellResult]:
        return iter(self._cells)

    @property
    def is_complete(self) -> bool:
        """Return whether every cell has all its replications."""
        return all(cell.is_complete for cell in self)

    @property
    def started(self) -> list[CellResult]:
        """The cells of which something is there."""
        return [cell for cell in self if cell.finished]

    def where(self, **names: object) -> list[CellResult]:
        """Return the cells that have these names and values.

        Parameters
        ----------
        **names
            Values by name: ``where(policy="bge", C=0.5)``, also horizon, seed, replications. A name with a dot is given
            as ``where(**{"temperature.c": 0.25})``.
        """
        available = dict.fromkeys([*(name for cell in self for name in cell.names), *SETTING_COLUMNS])
        for name in names.keys() - available.keys():
            raise ValueError(f"the cells have no {name}; they have {', '.join(available)}")
        return [cell for cell in self if all(cell.value(name) == value for name, value in names.items())]

    def one(self, **names: object) -> CellResult:
        """Return the one cell that has these names and values."""
        found = self.where(**names)
        if len(found) != 1:
            given = ", ".join(f"{name}={value!r}" for name, value in names.items())
            raise ValueError(f"one({given}) must name one cell, got {len(found)} of {len(self)}")
        return found[0]

    def _measured(self, i: int) -> Measurements:
        """Return what is there of a cell; its neighbours are read with it."""
        if i not in self._read[0]:
            batch = next(batch for batch in self._batches if i in batch)
            self._read = (batch, self._opened.measurements([self._cells[j].key for j in batch]))
        cell = self._cells[i]
        found = self._read[1].get(cell.key)
        if found is None:
            return Measurements.empty(cell.rounds.size, cell.arms)
        return found.below(cell.replications)

    # Tables.

    @functools.cached_property
    def frame(self) -> polars.DataFrame:
        """Return the cells as a table, a row for each: its names, how much of it is there, and its final regret.

        The columns ``regret`` (the mean), ``standard_error``, ``quantile_05``, ``median``, ``quantile_95`` and
        ``best_arm_share`` are null where nothing is there yet.
        """
        pl = polars_for("frame")
        rows = [_row(cell) for cell in self]
        measured = [_column(name, [row[name] for row in rows]) for name in FRAME_COLUMNS[1:]]
        frame: polars.DataFrame = pl.DataFrame([*self._name_columns(), *measured]).with_row_index("cell")
        return frame

    def curves(self) -> polars.DataFrame:
        """Return regret over the rounds: a row for each checkpoint of each cell of which something is there.

        Columns: ``cell``, its names (``horizon``, ``seed`` and ``replications`` where they differ between cells),
        ``round``, ``mean``, ``standard_error``, ``quantile_05``, ``median`` and ``quantile_95``.
        """
        pl = polars_for("curves()")
        rows = [_curve_rows(cell) for cell in self.started]
        values = np.concatenate([np.zeros((0, 3 + len(QUANTILES))), *rows])
        columns = dict(zip(("round", "mean", "standard_error", *QUANTILES), values.T, strict=True))
        cells = np.repeat([cell.index for cell in self.started], [len(own) for own in rows])
        numbers = pl.Series("cell", cells, dtype=pl.get_index_type())
        names = pl.DataFrame(self._name_columns(("cell", *columns), self._varied())).with_row_index("cell")
        frame: polars.DataFrame = names.join(
            pl.DataFrame([numbers, *(pl.Series(name, column) for name, column in columns.items())]),
            on="cell",
            maintain_order="left_right",
        ).with_columns(pl.col("round").cast(pl.Int64))
        return frame

    def to_pandas(self) -> Any:
        """Return the frame as one of pandas; unlike ``frame.to_pandas()`` it needs no pyarrow."""
        with needed_for("to_pandas()", extra=None):
            pandas = importlib.import_module("pandas")
        return pandas.DataFrame(self.frame.to_dict(as_series=False))

    def _varied(self) -> list[str]:
        """Return the settings that differ between cells."""
        return [name for name in SETTING_COLUMNS if len({getattr(cell, name) for cell in self}) > 1]

    def _name_columns(self, taken: Sequence[str] = FRAME_COLUMNS, settings: Sequence[str] = ()) -> list[polars.Series]:
        """Return the names of the cells as columns, and some settings; one in another column's place is renamed."""
        columns = []
        for name in dict.fromkeys(name for cell in self for name in cell.names):
            values = [cell.names.get(name) for cell in self]
            if name not in SETTING_COLUMNS or values != [getattr(cell, name) for cell in self]:
                columns.append(_column(f"{name} (swept)" if name in taken else name, values))
        return columns + [_column(name, [getattr(cell, name) for cell in self]) for name in settings]

    def __str__(self) -> str:
        asked = sum(cell.replications for cell in self)
        head = f"{self.title or self.folder}: {counted(len(self), 'cell')}, {counted(asked, 'replication')}"
        if not self.is_complete:
            incomplete = sum(not cell.is_complete for cell in self)
            missing = asked - sum(cell.finished for cell in self)
            head += f"; {counted(incomplete, 'cell')} not complete, {counted(missing, 'replication')} missing"
        names = [column.name for column in self._name_columns()]
        names += [name for name in self._varied() if name != "replications"]
        cells = self.frame.to_dicts()
        titles = titles_of(cells)
        rows = [[*(short(row[name]) for name in names), finished_of(row), *formatted(row, titles)] for row in cells]
        return f"{wrapped(head)}\n{table([*names, 'runs', *titles.values()], rows, words=len(names), spare=SPARE)}"

    def __repr__(self) -> str:
        return f"<Results: {self.folder}, {len(self):,} cells, {'' if self.is_complete else 'not '}complete>"

    # Pictures.

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        against: str | None = None,
        where: Mapping[str, object] | None = None,
        title: str | None = None,
        log: bool = False,
        figsize: tuple[float, float] | None = None,
    ) -> Any:
        """Draw mean regret with 95% confidence bands, a panel for each problem.

        Parameters
        ----------
        path : str or path, optional
            The file, PNG, SVG or PDF by its ending.
        against : str, optional
            Draw final regret against this parameter instead (of policies or problems, or the horizon), and a level line
            for each policy that does not have it.
        where : mapping, optional
            Draw only cells with these values: ``{"policy": "bge", "C": [0.5, 1.0]}``.
        title : str, optional
            The title; that of the experiment unless given.
        log : bool
            Use logarithmic axes.
        figsize : pair of float, optional
            The figure's width and height in inches.

        Returns
        -------
        Path or matplotlib.figure.Figure
            The path of the file, or the figure where no path is given.
        """
        from rightarm.simulation.figure import draw

        if not self.started:
            raise ValueError(f"{self.folder} has nothing to draw yet")
        cells = chosen(self.started, where or {})
        panels = over_rounds(cells) if against is None else panels_against(cells, against)
        parts = [self.title if title is None else title]
        if len(panels) > MOST_PANELS:
            parts.append(f"the first {MOST_PANELS} of {len(panels)} problems")
        drawn = [_readable(panel) for panel in panels[:MOST_PANELS]]
        text = ", ".join(part for part in parts if part)
        return draw(drawn, None if path is None else Path(path), log=log, title=text, figsize=figsize)


def _batches(cells: Sequence[CellDescription]) -> list[range]:
    """Return cells that follow each other, together so large that they fit into memory well."""
    batches = []
    first = 0
    size = 0
    for i, cell in enumerate(cells):
        size += cell.replications * (cell.rounds.size + 2 * cell.arms)
        if size > BATCH and i > first:
            batches.append(range(first, i))
            first = i
            size = 0
    return [*batches, range(first, len(cells))]


def _row(cell: CellResult) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(cell, name) for name in (*SETTING_COLUMNS, "finished")}
    row["complete"] = cell.is_complete
    if not cell.finished:
        return row | dict.fromkeys(STATISTICS)
    best = best_share(cell.pulls, cell.means, cell.horizon)
    return row | final_regret(cell.regret[:, -1]) | {"best_arm_share": best}


def _curve_rows(cell: CellResult) -> F64:
    """Return, for each checkpoint, round, mean, standard error and quantiles."""
    regret = cell.regret
    quantiles = np.quantile(regret, list(QUANTILES.values()), axis=0)
    return np.column_stack([cell.rounds, *mean_and_error(regret), *quantiles])


def _column(name: str, values: list[Any]) -> polars.Series:
    """Return a column of one type: numbers, truth values, or texts; anything else is put in words."""
    pl = polars_for("frame")
    types = {type(value) for value in values if value is not None}
    if not types:
        dtype = pl.Float64 if name in STATISTICS else pl.String
    elif types == {int} and all(value is None or abs(value) < 2**63 for value in values):
        dtype = pl.Int64
    elif types in ({float}, {int, float}):
        dtype = pl.Float64
    else:
        dtype = pl.Boolean if types == {bool} else pl.String
    if dtype == pl.String:
        values = [None if value is None else short(value) for value in values]
    series: polars.Series = pl.Series(name, values, dtype=dtype, strict=False)
    return series


def finished_of(row: Mapping[str, Any]) -> str:
    """Return how many replications of a cell there are, and of how many if some are missing."""
    return f"{row['finished']:,}" + ("" if row["complete"] else f" of {row['replications']:,}")


# Panels.


def chosen(cells: Sequence[CellResult], where: Mapping[str, object]) -> list[CellResult]:
    """Return the cells that have these values; of a list of values any is right."""
    values = {cell.index: _values(cell) for cell in cells}
    remaining = list(cells)
    for name, wanted in where.items():
        available = {_comparable(each[name]): short(each[name]) for each in values.values() if name in each}
        if not available:
            names = sorted({other for each in values.values() for other in each})
            raise ValueError(f"where must name something that cells have, {', '.join(names)}, got {name!r}")
        asked = {_comparable(one): short(one) for one in (wanted if isinstance(wanted, list | tuple) else [wanted])}
        for value in asked.keys() - available.keys():
            raise ValueError(f"where: no cell has {name} = {asked[value]}; there are {', '.join(available.values())}")
        remaining = [
            cell for cell in remaining if name in values[cell.index] and _comparable(values[cell.index][name]) in asked
        ]
    if not remaining:
        raise ValueError(f"where: no cell has all of {', '.join(f'{n} = {short(v)}' for n, v in where.items())}")
    return remaining


def _comparable(value: Any) -> float | str:
    """Return a value that can be compared: numbers as numbers, also where they are written as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return short(value)


def _readable(panel: Panel) -> Panel:
    """Return the panel with its lowest curves only, if there are too many, and a word on that in its title."""
    curves = lowest(panel.curves, MOST_CURVES)
    levels = lowest(panel.levels, MOST_LEVELS)
    notes = [
        f"the {len(lowest_ones)} lowest of {len(given):,} {what}"
        for what, lowest_ones, given in (("curves", curves, panel.curves), ("levels", levels, panel.levels))
        if len(lowest_ones) < len(given)
    ]
    title = f"{panel.title} ({', '.join(notes)})" if notes else panel.title
    return replace(panel, title=title, curves=curves, levels=levels)


def over_rounds(cells: Sequence[CellResult]) -> list[Panel]:
    """Return regret over the rounds, a panel for each problem with each of its parameters."""
    panels = []
    swept = varied_names(cells)
    for group in grouped(cells, problem_key).values():
        curves = [cell.mean_curve(label) for cell, label in zip(group, labels_of(group), strict=True)]
        panels.append(Panel(_problem_title(group[0], swept - varied_names(group)), curves))
    return panels


def _problem_title(cell: CellResult, swept: set[str]) -> str:
    """Return a problem in short: by its name and what was swept of it, or else by its name and its formula."""
    name = str(cell.names["problem"])
    parts = [f"{other}={short(value)}" for other, value in cell.names.items() if other in swept]
    if parts:
        return ", ".join([name, *parts])
    return name if name == cell.problem_text else f"{name}: {cell.problem_text}"


def panels_against(cells: Sequence[CellResult], parameter: str) -> list[Panel]:
    """Return final regret against a parameter, a panel for each problem by name, whose parameters may be swept too."""
    if not any(parameter in numbers_of(cell) for cell in cells):
        available = sorted({name for cell in cells for name in numbers_of(cell)})
        raise ValueError(f"against must be a number that cells have, {', '.join(available)}, got {parameter!r}")
    named = grouped(cells, lambda cell: str(cell.names["problem"]))
    panels = [panel_against(parameter, name, group) for name, group in named.items()]
    return [panel for panel in panels if panel.curves]


def panel_against(parameter: str, title: str, cells: Sequence[CellResult]) -> Panel:
    """Return final regret of some cells against a parameter; those that do not have it are level lines."""
    varied = varied_names(cells) - {parameter}
    values = {cell.index: numbers[parameter] for cell in cells if parameter in (numbers := numbers_of(cell))}
    with_value = sorted((cell for cell in cells if cell.index in values), key=lambda cell: values[cell.index])
    curves = [
        MeanCurve.joined(label, [(values[cell.index], cell.mean_curve(label)) for cell in group])
        for label, group in grouped(with_value, lambda cell: _label_of(cell, varied)).items()
    ]
    levels = [cell.mean_curve(_label_of(cell, varied)) for cell in cells if cell.index not in values]
    return final_against(parameter, title, curves, levels)


def grouped(cells: Iterable[CellResult], key: Callable[[CellResult], K]) -> dict[K, list[CellResult]]:
    """Return cells by what they have in common, in their order."""
    groups: dict[K, list[CellResult]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return groups


def problem_key(cell: CellResult) -> str:
    """Return what the cells of one problem, parameters included, have in common."""
    return json.dumps([cell.names["problem"], cell.specification["problem"]], sort_keys=True)


def varied_names(cells: Sequence[CellResult]) -> set[str]:
    """Return the names of which these cells have several values."""
    values: dict[str, set[str]] = {}
    for cell in cells:
        for name, value in cell.names.items():
            values.setdefault(name, set()).add(json.dumps(value))
    return {name for name, different in values.items() if len(different) > 1} - {"problem", "policy"}


def labels_of(cells: Sequence[CellResult]) -> tuple[str, ...]:
    """Return what tells each cell of a panel from the others."""
    varied = varied_names(cells)
    return distinct([_label_of(cell, varied) for cell in cells])


def _label_of(cell: CellResult, varied: set[str]) -> str:
    parts = [f"{name}={short(value)}" for name, value in cell.names.items() if name in varied]
    return ", ".join([str(cell.names["policy"]), *parts])


def numbers_of(cell: CellResult) -> dict[str, float]:
    """Return all numbers that a cell is made of, by name; names of the experiment come first."""
    return {
        name: float(value)
        for name, value in _values(cell).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _values(cell: CellResult) -> dict[str, Any]:
    settings = {"horizon": cell.horizon, "replications": cell.replications, "seed": cell.seed}
    return parameters_of(cell.specification["policy"]) | settings | cell.names
