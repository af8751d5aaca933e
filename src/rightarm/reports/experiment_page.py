"""The report of an experiment: one page with its curves, tables and differences, to be looked at and printed."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rightarm.display import counted, short
from rightarm.experiments.result_folder import PARTS
from rightarm.experiments.result_reading import (
    FRAME_COLUMNS,
    CellResult,
    Results,
    finished_of,
    grouped,
    labels_of,
    numbers_of,
    panel_against,
    problem_key,
    varied_names,
)
from rightarm.files import write_whole
from rightarm.reports.charts import (
    HEAD,
    READING,
    Chart,
    Comparison,
    Finals,
    Value,
    comparison,
    line_chart,
    render,
    share_chart,
)
from rightarm.simulation.panels import Line, Panel, Style, styles_of
from rightarm.simulation.result import TITLES, formatted
from rightarm.theory import lower_bound
from rightarm.types import F64

OPEN_PROBLEMS = 12  # more are folded away until they are asked for
MOST_BARS = 8  # of a chart of shares
BOUND = "Lai–Robbins lower bound, asymptotically"
UNSWEPT = {"seed", "replications"}  # numbers against which regret says nothing


def write_report(results: Results, path: str | Path) -> Path:
    """Write the report of an experiment's results, finished or not.

    Parameters
    ----------
    results : Results
        The results, as `rightarm.experiments.load` returns them.
    path : str or Path
        The file of the page, HTML that needs no network.

    Returns
    -------
    Path
        The path of the file.
    """
    path = Path(path)
    write_whole(path, report(results).encode())
    return path


def report(results: Results) -> str:
    """Return the report as HTML; the same results give the same page."""
    return render(
        "experiment.html",
        title=results.title or results.folder.resolve().name,
        missing=_missing(results),
        facts={name: fact for name, fact in _facts(results).items() if fact},
        experiment=results.experiment.strip(),
        reading=READING,
        problems=list(_problems(results.started)),
        comparison_head=HEAD,
        cells=_all_cells(results),
        versions=_versions(results),
    )


# What was run.


def _facts(results: Results) -> dict[str, str]:
    rounds = sum(cell.finished * cell.horizon for cell in results)
    replications = sum(cell.finished for cell in results)
    return {
        "cells": f"{len(results):,}",
        "problems": _listed(str(cell.names["problem"]) for cell in results),
        "policies": _listed(str(cell.names["policy"]) for cell in results),
        "rounds": _listed(f"{n:,}" for n in sorted({cell.horizon for cell in results})),
        "replications": _listed(f"{n:,}" for n in sorted({cell.replications for cell in results})),
        "seed": _listed(str(n) for n in sorted({cell.seed for cell in results})),
        "simulated": f"{replications:,} replications, {rounds:,} rounds in all",
        "written": _dates(results.folder),
    }


def _missing(results: Results) -> str:
    """Return a sentence on what is not there yet."""
    if results.is_complete:
        return ""
    missing = sum(cell.replications - cell.finished for cell in results)
    incomplete = sum(not cell.is_complete for cell in results)
    not_started = len(results) - len(results.started)
    return (
        f"replications are missing in {incomplete:,} of {counted(len(results), 'cell')}, {missing:,} in all; of "
        f"{counted(not_started, 'cell')} there is nothing yet. Figures and tables show what is there."
    )


def _dates(folder: Path) -> str:
    """Return when results were written, by the files' dates."""
    times = sorted(path.stat().st_mtime for path in (folder / PARTS).glob("*.parquet"))
    if not times:
        return ""
    first, last = (f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}" for time in (times[0], times[-1]))
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"


def _listed(names: Iterable[str], most: int = 30) -> str:
    """Return different names, in their order."""
    different = list(dict.fromkeys(names))
    more = f" and {len(different) - most:,} more" if len(different) > most else ""
    return ", ".join(different[:most]) + more


# Problems.


@dataclass(frozen=True, eq=False)
class ProblemCharts:
    """The charts and tables of a problem with one value of each of its parameters."""

    problem: str
    folded: bool
    regret: Chart
    shares: Chart
    comparisons: list[Comparison]


@dataclass(frozen=True, eq=False)
class ProblemSection:
    """A problem by name, with final regret against what was swept, and its variants."""

    name: str
    sweeps: list[Chart]
    variants: list[ProblemCharts]


def _problems(cells: Sequence[CellResult]) -> Iterator[ProblemSection]:
    drawn = itertools.count()
    variants = grouped(cells, problem_key).values()
    styles = styles_of(
        label for group in variants for label in labels_of(group)
    )  # one style for a name on all problems
    for name, group in grouped(cells, lambda cell: str(cell.names["problem"])).items():
        charts = [
            _problem_charts(variant, styles, folded=next(drawn) >= OPEN_PROBLEMS)
            for variant in grouped(group, problem_key).values()
        ]
        yield ProblemSection(name, list(_sweeps(group)), charts)


def _problem_charts(cells: Sequence[CellResult], styles: Mapping[str, Style], folded: bool) -> ProblemCharts:
    curves = {label: cell.mean_curve(label) for label, cell in zip(labels_of(cells), cells, strict=True)}
    labelled = dict(zip(curves, cells, strict=True))
    rounds = max((cell.rounds for cell in cells), key=lambda rounds: int(rounds[-1]))
    panel = Panel("Mean regret with 95% confidence bands", list(curves.values()), _bound(cells[0], rounds))
    ranked = sorted(labelled, key=lambda label: float(curves[label].mean[-1]))
    return ProblemCharts(
        cells[0].problem_text,
        folded,
        line_chart(panel, styles),
        _share_chart({label: labelled[label] for label in ranked}),
        _comparisons(labelled),
    )


def _share_chart(ranked: Mapping[str, CellResult]) -> Chart:
    """Draw how often each arm was pulled: by the best cell of each policy, or by the best cells of the only one."""
    best: dict[object, str] = {}
    for label, cell in ranked.items():
        best.setdefault(cell.names["policy"], label)
    shown = list(best.values() if len(best) > 1 else ranked)[:MOST_BARS]
    chart = share_chart(
        "Shares of arms", shown, [_shares(ranked[label]) for label in shown], _arm_names(next(iter(ranked.values())))
    )
    if len(shown) < len(ranked):
        which = "the cell of lowest regret of each policy" if len(best) > 1 else "the cells of lowest regret"
        chart.note = f"Only {which}; the table of all cells has the best arm’s share of every one."
    return chart


def _shares(cell: CellResult) -> F64:
    """Return the share of pulls of each arm, from the best to the worst."""
    order = np.argsort(-cell.means, axis=1, kind="stable")
    pulls = np.take_along_axis(cell.pulls, order, axis=1)
    shares: F64 = (pulls / pulls.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def _arm_names(cell: CellResult) -> list[str]:
    """Return the arms from the best to the worst; where replications draw their own problems, only places."""
    means = cell.fixed_means
    if cell.has_contexts:
        return [f"arm {i}" for i in range(cell.arms)]
    if means is None:
        return ["best arm", *(f"arm {i + 1} by mean" for i in range(1, cell.arms))]
    return [f"arm {i} (mean {means[i]:.6g})" for i in np.argsort(-np.array(means), kind="stable")]


def _bound(cell: CellResult, rounds: Any) -> list[Line]:
    """Return the lower bound, where there is one: for no problem but our own, so nobody's modules are imported."""
    if not cell.specification["problem"]["formula"].startswith("rightarm."):
        return []
    try:
        bound = lower_bound(cell.problem)
    except (ImportError, ValueError):  # results of another version
        return []
    return [] if bound is None else [Line(BOUND, rounds, bound(rounds))]


def _sweeps(cells: Sequence[CellResult]) -> Iterator[Chart]:
    """Draw final regret against each number that was swept."""
    for parameter in sorted(varied_names(cells) - UNSWEPT):
        values = {numbers_of(cell).get(parameter) for cell in cells} - {None}
        if len(values) > 1:
            yield line_chart(panel_against(parameter, f"Final regret against {parameter}, with 95% bands", cells))


def _comparisons(labelled: Mapping[str, CellResult]) -> list[Comparison]:
    """Compare pairs that met the same luck for equally many rounds, by seed and horizon."""
    settings: dict[str, list[Finals]] = {}
    for label, cell in labelled.items():
        setting = f"T = {cell.horizon:,}, seed {cell.seed}"
        measured = cell.measurements
        finals = Finals(label, measured.replications, measured.regret[:, -1])
        settings.setdefault(setting, []).append(finals)
    return [comparison(setting, finals) for setting, finals in settings.items() if len(finals) > 1]


# Tables.


def _all_cells(results: Results) -> dict[str, object]:
    """Return final regret of every cell, as a table that can be sorted; its first columns are words."""
    frame = results.frame
    names = [name for name in frame.columns if name not in FRAME_COLUMNS]
    names += [name for name in ("horizon", "seed") if frame[name].n_unique() > 1]
    rows = [_cell_row(row, names) for row in frame.iter_rows(named=True)]
    return {"head": [*names, "replications", *TITLES.values()], "rows": rows, "words": len(names)}


def _cell_row(row: dict[str, Any], names: Sequence[str]) -> list[Value]:
    return [
        *(Value(short(row[name]), row[name]) for name in names),
        Value(finished_of(row), row["finished"], "" if row["complete"] else "more"),
        *(Value(shown, row[name]) for name, shown in zip(TITLES, formatted(row), strict=True)),
    ]


def _versions(results: Results) -> dict[str, object]:
    """Return what computed the cells, by their descriptions."""
    specifications = [cell.specification for cell in results]
    counts = Counter(json.dumps({**each["versions"], "code": each["code"]}) for each in specifications)
    made = [(json.loads(kind), count) for kind, count in counts.items()]
    names = list(dict.fromkeys(name for versions, _ in made for name in versions))
    rows = [[f"{count:,}", *(str(versions.get(name, "–")) for name in names)] for versions, count in made]
    return {"head": ["cells", *names], "rows": rows}
