"""Reading a folder of results: a table, curves, arrays by the names of cells, and pictures."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rightarm.extras import needed_for, polars_for
from rightarm.formula import from_specification
from rightarm.lab.results.folder import CellRecord, Results, Sample, empty
from rightarm.problems.random import any_problem_from_specification
from rightarm.scores.policy import Policy
from rightarm.simulation.result import QUANTILES, SPARE, TITLES, best_share, final_regret, titles_of, told
from rightarm.simulation.statistics import Curve, mean_and_error
from rightarm.text import counted, short, table, wrapped
from rightarm.types import F64, I64

if TYPE_CHECKING:
    import polars

BATCH = 1 << 24  # numbers that are read together, and kept
STATISTICS = tuple(TITLES)
SETTINGS = ("horizon", "seed", "replications")
OWN = ("cell", *SETTINGS, "finished", "complete", *STATISTICS)  # columns of the frame


def load(folder: str | os.PathLike[str]) -> Loaded:
    """Read the results of an experiment, finished or not, from the folder into which ``rightarm run`` wrote them.

    They are read as they are at this moment; a run that goes on meanwhile is not disturbed.

    >>> import tempfile
    >>> import rightarm as ra
    >>> from rightarm.lab.experiment.cell import Cell
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Results.open(folder.name, write=True) as results:
    ...     results.begin([Cell(ra.UCB(C=0.5), ra.Bernoulli([0.9, 0.1]), 100, 16, seed=1, checkpoints=(10, 100))])
    >>> loaded = ra.load(folder.name)
    >>> loaded.frame["policy", "horizon", "replications", "finished", "regret"].rows()
    [('UCB(C=0.5)', 100, 16, 0, None)]
    >>> folder.cleanup()
    """
    with Results.open(folder) as results:
        return Loaded(results)


class Loaded:
    """The results of an experiment: ``cells`` in the experiment's order, and what came of each.

    Arrays are read when they are asked for. Cells that are not complete have what is there of them.
    """

    def __init__(self, results: Results) -> None:
        self._results = results
        self.folder, self.title = results.folder, results.title
        self.experiment = results.experiment
        """The experiment's file."""
        self.cells: tuple[CellRecord, ...] = tuple(results.records)
        """What each cell is, as plain data."""
        self.finished = [results.finished(cell.key, cell.replications) for cell in self.cells]
        """How many replications of each cell are there."""
        self._batches = _batches(self.cells)
        self._kept: tuple[range, dict[str, Sample]] = (range(0), {})

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def complete(self) -> bool:
        """Whether every cell has all its replications."""
        return all(done == cell.replications for done, cell in zip(self.finished, self.cells, strict=True))

    def __getitem__(self, i: int) -> CellResult:
        return CellResult(self, range(len(self))[i])

    def __iter__(self) -> Iterator[CellResult]:
        return (self[i] for i in range(len(self)))

    def where(self, **names: Any) -> list[CellResult]:
        """The cells that have these names and values: ``where(policy="bge", C=0.5)``, also horizon, seed, replications.

        A name with a dot is given as ``where(**{"temperature.c": 0.25})``.
        """
        known = dict.fromkeys([*(name for cell in self.cells for name in cell.names), *SETTINGS])
        for name in names.keys() - known.keys():
            raise ValueError(f"the cells have no {name}; they have {', '.join(known)}")
        return [cell for cell in self if all(cell.value(name) == value for name, value in names.items())]

    def one(self, **names: Any) -> CellResult:
        """The one cell that has these names and values."""
        found = self.where(**names)
        if len(found) != 1:
            told = ", ".join(f"{name}={value!r}" for name, value in names.items())
            raise ValueError(f"one({told}) must name one cell, got {len(found)} of {len(self)}")
        return found[0]

    def regret(self, i: int) -> F64:
        """Pseudo-regret of the i-th cell, replications × checkpoints."""
        return self.sample(i).regret

    def rounds(self, i: int) -> I64:
        """The rounds at which the regret of the i-th cell is recorded."""
        return self.cells[i].checkpoints

    def pulls(self, i: int) -> I64:
        """Final pulls of the i-th cell, replications × arms."""
        return self.sample(i).pulls

    def means(self, i: int) -> F64:
        """The mean reward of every arm in every replication of the i-th cell, replications × arms."""
        sample, fixed = self.sample(i), self.cells[i].means
        if "contexts" in self.cells[i].specification["problem"]:
            return np.full(sample.pulls.shape, np.nan)  # no arm has one mean
        if fixed is not None:
            return np.broadcast_to(np.array(fixed), sample.pulls.shape)
        return np.zeros(sample.pulls.shape) if sample.means is None else sample.means

    def sample(self, i: int) -> Sample:
        """All that is there of the i-th cell; its neighbours are read with it."""
        cell = self.cells[i]
        i %= len(self.cells)
        if i not in self._kept[0]:
            batch = next(batch for batch in self._batches if i in batch)
            self._kept = (batch, self._results.samples([self.cells[j].key for j in batch]))
        found = self._kept[1].get(cell.key)
        return empty(cell.checkpoints.size, cell.arms) if found is None else found.below(cell.replications)

    # Tables.

    @functools.cached_property
    def frame(self) -> polars.DataFrame:
        """A row for each cell: its names, how much of it is there, and its final regret.

        The columns ``regret`` (the mean), ``standard_error``, ``quantile_05``, ``median``, ``quantile_95`` and
        ``best_arm_share`` are null where nothing is there yet.
        """
        pl, rows = polars_for("frame"), [self._row(i) for i in range(len(self))]
        own = [_column(name, [row[name] for row in rows]) for name in OWN[1:]]
        frame: polars.DataFrame = pl.DataFrame([*self._name_columns(), *own]).with_row_index("cell")
        return frame

    def _row(self, i: int) -> dict[str, Any]:
        cell, done = self.cells[i], self.finished[i]
        row = {"horizon": cell.horizon, "seed": cell.seed, "replications": cell.replications}
        row |= {"finished": done, "complete": done == cell.replications}
        if not done:
            return row | dict.fromkeys(STATISTICS)
        best = best_share(self.pulls(i), self.means(i), cell.horizon)
        return row | final_regret(self.regret(i)[:, -1]) | {"best_arm_share": best}

    def curves(self) -> polars.DataFrame:
        """Regret over the rounds: a row for each checkpoint of each cell of which something is there.

        Columns: ``cell``, its names (``horizon``, ``seed`` and ``replications`` where they differ between cells),
        ``round``, ``mean``, ``standard_error``, ``quantile_05``, ``median`` and ``quantile_95``.
        """
        pl = polars_for("curves()")
        there = [i for i, done in enumerate(self.finished) if done]
        rows = [_curve_rows(self.cells[i].checkpoints, self.regret(i)) for i in there]
        values = np.concatenate([np.zeros((0, 3 + len(QUANTILES))), *rows])
        columns = dict(zip(("round", "mean", "standard_error", *QUANTILES), values.T, strict=True))
        numbers = pl.Series("cell", np.repeat(there, [len(own) for own in rows]), dtype=pl.get_index_type())
        names = pl.DataFrame(self._name_columns(("cell", *columns), self._varied())).with_row_index("cell")
        frame: polars.DataFrame = names.join(
            pl.DataFrame([numbers, *(pl.Series(name, column) for name, column in columns.items())]),
            on="cell",
            maintain_order="left_right",
        ).with_columns(pl.col("round").cast(pl.Int64))
        return frame

    def to_pandas(self) -> Any:
        """The frame as one of pandas; unlike ``frame.to_pandas()`` it needs no pyarrow."""
        with needed_for("to_pandas()", extra=None):
            pandas = importlib.import_module("pandas")
        return pandas.DataFrame(self.frame.to_dict(as_series=False))

    def _varied(self) -> list[str]:
        """The settings that differ between cells."""
        return [name for name in SETTINGS if len({getattr(cell, name) for cell in self.cells}) > 1]

    def _name_columns(self, taken: Sequence[str] = OWN, settings: Sequence[str] = ()) -> list[polars.Series]:
        """The names of the cells as columns, and some settings; one that takes another column's place is renamed."""
        names = dict.fromkeys(name for cell in self.cells for name in cell.names)
        own = {name: [getattr(cell, name) for cell in self.cells] for name in SETTINGS}
        named = [
            _column(f"{name} (swept)" if name in taken else name, values)
            for name in names
            for values in [[cell.names.get(name) for cell in self.cells]]
            if values != own.get(name)
        ]
        return named + [_column(name, own[name]) for name in settings]

    def __str__(self) -> str:
        done, asked = sum(self.finished), sum(cell.replications for cell in self.cells)
        whole = sum(n == cell.replications for n, cell in zip(self.finished, self.cells, strict=True))
        head = f"{self.title or self.folder}: {counted(len(self), 'cell')}, {counted(asked, 'replication')}"
        if not self.complete:
            head += f"; {counted(len(self) - whole, 'cell')} not complete, "
            head += f"{counted(asked - done, 'replication')} missing"
        names = [column.name for column in self._name_columns()]
        names += [name for name in self._varied() if name != "replications"]
        cells = self.frame.to_dicts()
        titles = titles_of(cells)
        rows = [[*(short(row[name]) for name in names), parts_of(row), *told(row, titles)] for row in cells]
        return f"{wrapped(head)}\n{table([*names, 'runs', *titles.values()], rows, words=len(names), spare=SPARE)}"

    def __repr__(self) -> str:
        return f"<Loaded: {self.folder}, {len(self):,} cells, {'' if self.complete else 'not '}complete>"

    # Pictures.

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        against: str | None = None,
        where: Mapping[str, Any] | None = None,
        title: str | None = None,
        log: bool = False,
        figsize: tuple[float, float] | None = None,
    ) -> Any:
        """Draw mean regret with 95% confidence bands, a panel for each problem.

        Into a file, PNG, SVG or PDF by the path's ending, and its path is given back; without one the figure is.

        - ``against="C"`` draws final regret against that parameter instead (of policies or problems, or the horizon),
          and a level line for each policy that does not have it.
        - ``where={"policy": "bge", "C": [0.5, 1.0]}`` draws only cells with these values.
        - ``figsize`` is the figure's width and height in inches.
        """
        from rightarm.lab.results.panels import panels_of
        from rightarm.simulation.figure import draw

        panels, note = panels_of(self, against, where or {})
        text = ", ".join(part for part in (self.title if title is None else title, note) if part)
        return draw(panels, None if path is None else Path(path), log=log, title=text, figsize=figsize)


class CellResult:
    """One cell of an experiment, and what was measured; arrays are read when they are asked for.

    >>> import tempfile
    >>> import rightarm as ra
    >>> text = 'horizon = 100\\nproblems.a = "Bernoulli([0.9, 0.1])"\\npolicies.ucb = { use = "UCB", C = [0.5, 1.0] }'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.toml")
    ...     _ = path.write_text(text)
    ...     cell = ra.run(path, output=Path(folder, "two")).one(policy="ucb", C=0.5)
    ...     cell.policy, cell.regret.shape == (64, cell.rounds.size)
    (UCB(C=0.5), True)
    """

    def __init__(self, loaded: Loaded, index: int) -> None:
        self._loaded, self.index = loaded, index
        self.record = loaded.cells[index]
        """What the cell is, as plain data."""

    def value(self, name: str) -> Any:
        """The value of one of its names, or its horizon, seed or number of replications; None if it has none such."""
        return self.record.names.get(name, getattr(self.record, name) if name in SETTINGS else None)

    @functools.cached_property
    def policy(self) -> Policy:
        """The policy; one of the user's own must be importable, and still be the same formula."""
        policy: Policy = from_specification(self.record.specification["policy"])
        return policy

    @functools.cached_property
    def problem(self) -> Any:
        """The problem, whatever kind it is; one of the user's own must be importable, and still be the same formula."""
        return any_problem_from_specification(self.record.specification["problem"])

    @property
    def horizon(self) -> int:
        """The last round."""
        return self.record.horizon

    @property
    def rounds(self) -> I64:
        """The rounds at which regret is recorded, shape (checkpoints,)."""
        return self._loaded.rounds(self.index)

    @property
    def regret(self) -> F64:
        """Pseudo-regret, replications × checkpoints."""
        return self._loaded.regret(self.index)

    @property
    def pulls(self) -> I64:
        """Final pulls, replications × arms."""
        return self._loaded.pulls(self.index)

    @property
    def means(self) -> F64:
        """The mean reward of every arm in every replication, replications × arms."""
        return self._loaded.means(self.index)

    def curve(self, label: str = "") -> Curve:
        """Regret against the round."""
        return Curve.of(label or self._named(), self.rounds.astype(float), self.regret)

    def _named(self) -> str:
        return ", ".join(f"{name} {short(value)}" for name, value in self.record.names.items())

    def __repr__(self) -> str:
        return f"<CellResult: {self._named()}, {len(self.regret):,} replications>"


def _batches(cells: Sequence[CellRecord]) -> list[range]:
    """Cells that follow each other, together so large that they fit into memory well."""
    first, size, batches = 0, 0, []
    for i, cell in enumerate(cells):
        size += cell.replications * (cell.checkpoints.size + 2 * cell.arms)
        if size > BATCH and i > first:
            batches.append(range(first, i))
            first, size = i, 0
    return [*batches, range(first, len(cells))]


def _column(name: str, values: list[Any]) -> polars.Series:
    """A column of one type: numbers, truth values, or texts; anything else is told in words."""
    pl = polars_for("frame")
    types = {type(value) for value in values if value is not None}
    plain = {frozenset({float}): pl.Float64, frozenset({int, float}): pl.Float64, frozenset({bool}): pl.Boolean}
    if not types:
        dtype = pl.Float64 if name in STATISTICS else pl.String
    elif types == {int} and all(value is None or abs(value) < 2**63 for value in values):
        dtype = pl.Int64
    else:
        dtype = plain.get(frozenset(types), pl.String)
    plain_values = [None if value is None else short(value) for value in values] if dtype == pl.String else values
    series: polars.Series = pl.Series(name, plain_values, dtype=dtype, strict=False)
    return series


def _curve_rows(rounds: I64, regret: F64) -> F64:
    """Of each checkpoint: round, mean, standard error, quantiles."""
    quantiles = np.quantile(regret, list(QUANTILES.values()), axis=0)
    return np.column_stack([rounds, *mean_and_error(regret), *quantiles])


def parts_of(row: Mapping[str, Any]) -> str:
    """How many replications of a cell there are, and of how many if some are missing."""
    return f"{row['finished']:,}" + ("" if row["complete"] else f" of {row['replications']:,}")
