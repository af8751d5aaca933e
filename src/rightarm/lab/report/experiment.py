"""The report of an experiment: one page with its curves, tables and differences, to be looked at and printed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rightarm.files import write_whole
from rightarm.lab.lower_bound import Bound, lai_robbins
from rightarm.lab.report.charts import Chart, line_chart, share_chart
from rightarm.lab.report.differences import HEAD, READING, Comparison, Finals, Value, comparison
from rightarm.lab.report.pages import render
from rightarm.lab.results import PARTS, CellRecord
from rightarm.lab.results.panels import against_of, curve_of, grouped, label_of, numbers_of, problem_of, varied_of
from rightarm.lab.results.reading import OWN, Loaded, parts_of
from rightarm.problems.random import any_problem_from_specification
from rightarm.simulation.panels import Line, Panel, Style, final_against, styles_of
from rightarm.simulation.result import TITLES, distinct, told
from rightarm.simulation.statistics import MeanCurve
from rightarm.text import counted, short
from rightarm.types import F64, I64

OPEN_PROBLEMS = 12  # more are folded away until they are asked for
MOST_BARS = 8  # of a chart of shares
BOUND = "Lai–Robbins lower bound, asymptotically"
UNSWEPT = {"seed", "replications"}  # numbers against which regret says nothing


def write_report(loaded: Loaded, path: str | Path) -> Path:
    """Write the report of an experiment's results, finished or not."""
    path = Path(path)
    write_whole(path, report(loaded).encode())
    return path


def report(loaded: Loaded) -> str:
    """The report as HTML; the same results give the same page."""
    return render(
        "experiment.html",
        title=loaded.title or loaded.folder.resolve().name,
        missing=_missing(loaded),
        facts={name: fact for name, fact in _facts(loaded).items() if fact},
        experiment=loaded.experiment.strip(),
        reading=READING,
        problems=list(_problems(loaded)),
        comparison_head=HEAD,
        cells=_all_cells(loaded),
        versions=_versions(loaded.cells),
    )


# What was run.


def _facts(loaded: Loaded) -> dict[str, str]:
    cells = loaded.cells
    rounds = sum(done * cell.horizon for done, cell in zip(loaded.finished, cells, strict=True))
    return {
        "cells": f"{len(cells):,}",
        "problems": _listed(str(cell.names["problem"]) for cell in cells),
        "policies": _listed(str(cell.names["policy"]) for cell in cells),
        "rounds": _listed(f"{n:,}" for n in sorted({cell.horizon for cell in cells})),
        "replications": _listed(f"{n:,}" for n in sorted({cell.replications for cell in cells})),
        "seed": _listed(str(n) for n in sorted({cell.seed for cell in cells})),
        "simulated": f"{sum(loaded.finished):,} replications, {rounds:,} rounds in all",
        "written": _dates(loaded.folder),
    }


def _missing(loaded: Loaded) -> str:
    """What is not there yet, in a sentence."""
    if loaded.complete:
        return ""
    missing = [cell.replications - done for done, cell in zip(loaded.finished, loaded.cells, strict=True)]
    some, none = sum(n > 0 for n in missing), sum(not done for done in loaded.finished)
    return (
        f"replications are missing in {some:,} of {counted(len(loaded), 'cell')}, {sum(missing):,} in all; of "
        f"{counted(none, 'cell')} there is nothing yet. Figures and tables show what is there."
    )


def _dates(folder: Path) -> str:
    """When results were written, by the files' dates."""
    times = sorted(path.stat().st_mtime for path in (folder / PARTS).glob("*.parquet"))
    if not times:
        return ""
    first, last = (f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}" for time in (times[0], times[-1]))
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"


def _listed(names: Iterable[str], most: int = 30) -> str:
    """Different names, in their order."""
    different = list(dict.fromkeys(names))
    more = f" and {len(different) - most:,} more" if len(different) > most else ""
    return ", ".join(different[:most]) + more


# Problems.


@dataclass(frozen=True, eq=False)
class Played:
    """What the charts and tables need of a cell of which something is there."""

    cell: CellRecord
    label: str
    curve: MeanCurve
    replications: I64
    final: F64
    shares: F64
    """Of the arms, as `_arm_names` orders them."""


@dataclass(frozen=True, eq=False)
class Variant:
    """A problem with one value of each of its parameters."""

    problem: str
    folded: bool
    regret: Chart
    shares: Chart
    comparisons: list[Comparison]


@dataclass(frozen=True, eq=False)
class Section:
    """A problem by name, with final regret against what was swept, and its variants."""

    name: str
    sweeps: list[Chart]
    variants: list[Variant]


def _problems(loaded: Loaded) -> Iterator[Section]:
    there = [i for i, done in enumerate(loaded.finished) if done]
    styles, drawn = _styles(loaded, there), itertools.count()
    for name, own in grouped(there, lambda i: str(loaded.cells[i].names["problem"])).items():
        variants = grouped(own, lambda i: problem_of(loaded.cells[i])).values()
        shown = [_variant(loaded, variant, styles, next(drawn) >= OPEN_PROBLEMS) for variant in variants]
        yield Section(name, list(_sweeps(loaded, own)), shown)


def _styles(loaded: Loaded, there: Sequence[int]) -> dict[str, Style]:
    """What has the same name on several problems looks the same."""
    problems = grouped(there, lambda i: problem_of(loaded.cells[i])).values()
    return styles_of(label for own in problems for label in _labels(loaded, own))


def _labels(loaded: Loaded, own: Sequence[int]) -> tuple[str, ...]:
    cells = [loaded.cells[i] for i in own]
    varied = varied_of(cells)
    return distinct([label_of(cell, varied) for cell in cells])


def _variant(loaded: Loaded, own: Sequence[int], styles: dict[str, Style], folded: bool) -> Variant:
    played = [_played(loaded, i, label) for i, label in zip(own, _labels(loaded, own), strict=True)]
    bound, rounds = _bound(played[0].cell), max((p.curve.x for p in played), key=lambda x: float(x[-1]))
    lines = [] if bound is None else [Line(BOUND, rounds, bound(rounds))]
    panel = Panel("Mean regret with 95% confidence bands", [p.curve for p in played], lines)
    return Variant(played[0].cell.problem, folded, line_chart(panel, styles), _shares(played), _comparisons(played))


def _played(loaded: Loaded, i: int, label: str) -> Played:
    cell, sample = loaded.cells[i], loaded.sample(i)
    order = np.argsort(-loaded.means(i), axis=1, kind="stable")
    pulls = np.take_along_axis(sample.pulls, order, axis=1)
    shares = (pulls / pulls.sum(axis=1, keepdims=True)).mean(axis=0)
    return Played(cell, label, curve_of(loaded, i, label), sample.replications, sample.regret[:, -1], shares)


def _shares(played: Sequence[Played]) -> Chart:
    """How often each arm was pulled: by the best cell of each policy, or by the best cells of the only one."""
    ranked = sorted(played, key=lambda p: float(p.curve.mean[-1]))
    best = {str(p.cell.names["policy"]): p for p in reversed(ranked)}
    shown = [p for p in ranked if len(best) < 2 or p in best.values()][:MOST_BARS]
    chart = share_chart(
        "Shares of arms", [p.label for p in shown], [p.shares for p in shown], _arm_names(played[0].cell)
    )
    if len(shown) < len(played):
        which = "the cell of lowest regret of each policy" if len(best) > 1 else "the cells of lowest regret"
        chart.note = f"Only {which}; the table of all cells has the best arm’s share of every one."
    return chart


def _arm_names(cell: CellRecord) -> list[str]:
    """The arms from the best to the worst; where replications draw their own problems, only these places are common."""
    if "contexts" in cell.specification["problem"]:
        return [f"arm {i}" for i in range(cell.arms)]
    if cell.means is None:
        return ["best arm", *(f"arm {i + 1} by mean" for i in range(1, cell.arms))]
    order = np.argsort(-np.array(cell.means), kind="stable")
    return [f"arm {i} (mean {cell.means[i]:.6g})" for i in order]


def _bound(cell: CellRecord) -> Bound | None:
    """The lower bound, where it is known: for no problem but our own, so nobody's modules are imported for it."""
    if not cell.specification["problem"]["formula"].startswith("rightarm."):
        return None
    try:
        return lai_robbins(any_problem_from_specification(cell.specification["problem"]))
    except (ImportError, ValueError):  # results of another version
        return None


def _sweeps(loaded: Loaded, own: Sequence[int]) -> Iterator[Chart]:
    """Final regret against each number that was swept."""
    cells = [loaded.cells[i] for i in own]
    for parameter in sorted(varied_of(cells) - UNSWEPT):
        values = {numbers[parameter] for cell in cells if parameter in (numbers := numbers_of(cell))}
        if len(values) > 1:
            title = f"Final regret against {parameter}, with 95% bands"
            yield line_chart(final_against(parameter, title, *against_of(loaded, own, parameter)))


def _comparisons(played: Sequence[Played]) -> list[Comparison]:
    """Pairs that met the same luck for equally many rounds, by seed and horizon."""
    settings: dict[str, list[Finals]] = {}
    for p in played:
        setting = f"T = {p.cell.horizon:,}, seed {p.cell.seed}"
        settings.setdefault(setting, []).append(Finals(p.label, p.replications, p.final))
    return [comparison(setting, finals) for setting, finals in settings.items() if len(finals) > 1]


# Tables.


def _all_cells(loaded: Loaded) -> dict[str, Any]:
    """Final regret of every cell, as a table that can be sorted; its first columns are words."""
    frame = loaded.frame
    names = [name for name in frame.columns if name not in OWN]
    names += [name for name in ("horizon", "seed") if frame[name].n_unique() > 1]
    rows = [_cell_row(row, names) for row in frame.iter_rows(named=True)]
    return {"head": [*names, "replications", *TITLES.values()], "rows": rows, "words": len(names)}


def _cell_row(row: dict[str, Any], names: Sequence[str]) -> list[Value]:
    return [
        *(Value(short(row[name]), row[name]) for name in names),
        Value(parts_of(row), row["finished"], "" if row["complete"] else "more"),
        *(Value(shown, row[name]) for name, shown in zip(TITLES, told(row), strict=True)),
    ]


def _versions(cells: Sequence[CellRecord]) -> dict[str, Any]:
    """What computed the cells, by what they say of themselves."""
    kinds: dict[str, int] = {}
    for cell in cells:
        kind = json.dumps({**cell.specification["versions"], "code": cell.specification["code"]})
        kinds[kind] = kinds.get(kind, 0) + 1
    made = [(json.loads(kind), count) for kind, count in kinds.items()]
    names = list(dict.fromkeys(name for own, _ in made for name in own))
    rows = [[f"{count:,}", *(str(own.get(name, "–")) for name in names)] for own, count in made]
    return {"head": ["cells", *names], "rows": rows}
