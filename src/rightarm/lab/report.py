"""A report of an experiment: one page of HTML with everything in it, to be looked at, pointed at and printed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from rightarm.files import write_whole
from rightarm.lab.loaded_plot import against_of, curve_of, grouped, label_of, numbers_of, problem_of, varied_of
from rightarm.lab.lower_bound import Bound, lai_robbins
from rightarm.lab.markup import STYLE, Value, sortable, table
from rightarm.lab.report_charts import Chart, chart_html, line_chart, share_chart, styles_of
from rightarm.lab.report_differences import READING, Finals, differences_html, number
from rightarm.lab.results import PARTS, CellRecord
from rightarm.lab.results.reading import OWN, Loaded, text_of
from rightarm.problems.random import any_problem_from_specification
from rightarm.simulation.figure import Curve
from rightarm.simulation.result import distinct
from rightarm.types import F64, I64

OPEN_PROBLEMS = 12  # more are folded away until they are asked for
BOUND = "Lai–Robbins lower bound, asymptotically"
UNSWEPT = {"seed", "replications"}  # numbers against which regret says nothing


def write_report(loaded: Loaded, path: str | Path) -> Path:
    """Write the report of an experiment's results, finished or not."""
    path = Path(path)
    write_whole(path, report(loaded).encode())
    return path


def report(loaded: Loaded) -> str:
    """The report as HTML; the same results give the same page."""
    here = Path(__file__)
    script, style = (here.with_suffix(ending).read_text(encoding="utf-8") for ending in (".js", ".css"))
    title = loaded.title or loaded.folder.resolve().name
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8" />',
            '<meta name="viewport" content="width=device-width, initial-scale=1" />',
            f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            "<noscript><p>Figures, and sorting, need JavaScript; the tables have all numbers.</p></noscript>",
            _what(loaded),
            *_problems(loaded),
            _all_cells(loaded),
            _versions(loaded.cells),
            f"<script>{_plotly()}</script><script>{script}</script></body></html>\n",
        ]
    )


def _plotly() -> str:
    """All of plotly.js, so that the page needs no network."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError("a report needs plotly: pip install 'rightarm[lab]'") from error
    return str(get_plotlyjs())


# What was run.


def _what(loaded: Loaded) -> str:
    cells = loaded.cells
    rounds = sum(done * cell.horizon for done, cell in zip(loaded.finished, cells, strict=True))
    facts = {
        "cells": f"{len(cells):,}",
        "problems": _listed(str(cell.names["problem"]) for cell in cells),
        "policies": _listed(str(cell.names["policy"]) for cell in cells),
        "rounds": _listed(f"{n:,}" for n in sorted({cell.horizon for cell in cells})),
        "replications": _listed(f"{n:,}" for n in sorted({cell.replications for cell in cells})),
        "seed": _listed(str(n) for n in sorted({cell.seed for cell in cells})),
        "simulated": f"{sum(loaded.finished):,} replications, {rounds:,} rounds in all",
        "written": _dates(loaded.folder),
    }
    rows = "".join(f"<dt>{name}</dt><dd>{escape(fact)}</dd>" for name, fact in facts.items() if fact)
    experiment = (
        f"<details><summary>The experiment’s file</summary><pre>{escape(loaded.experiment)}</pre></details>"
        if loaded.experiment.strip()
        else ""
    )
    facts_list = f'<dl class="facts">{rows}</dl>'
    return f'{_completeness(loaded)}{facts_list}{experiment}{_contents(loaded)}<p class="setting">{READING}</p>'


def _completeness(loaded: Loaded) -> str:
    if loaded.complete:
        return '<p class="verdict holds">Complete: every cell has all its replications.</p>'
    missing = [cell.replications - done for done, cell in zip(loaded.finished, loaded.cells, strict=True)]
    some, none = sum(n > 0 for n in missing), sum(not done for done in loaded.finished)
    return (
        f'<p class="verdict fails"><strong>Not complete:</strong> {some:,} of {len(loaded):,} cells lack replications, '
        f"{sum(missing):,} in all; of {none:,} cells there is nothing yet. Figures and tables show what is there.</p>"
    )


def _dates(folder: Path) -> str:
    """When results were written, by the files' dates."""
    times = sorted(path.stat().st_mtime for path in (folder / PARTS).glob("*.parquet"))
    if not times:
        return ""
    first, last = (f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}" for time in (times[0], times[-1]))
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"


def _listed(names: Iterator[str], most: int = 30) -> str:
    """Different names, in their order."""
    different = list(dict.fromkeys(names))
    more = f" and {len(different) - most:,} more" if len(different) > most else ""
    return ", ".join(different[:most]) + more


def _contents(loaded: Loaded) -> str:
    names = list(
        dict.fromkeys(str(cell.names["problem"]) for cell, n in zip(loaded.cells, loaded.finished, strict=True) if n)
    )
    links = [f'<a href="#problem-{i}">{escape(name)}</a>' for i, name in enumerate(names)]
    links += ['<a href="#cells">All cells</a>', '<a href="#versions">Machine and versions</a>']
    return f"<nav>{' · '.join(links)}</nav>"


# Problems.


@dataclass(frozen=True, eq=False)
class Played:
    """What the charts and tables need of a cell of which something is there."""

    cell: CellRecord
    label: str
    curve: Curve
    replications: I64
    final: F64
    shares: F64
    """Of the arms, as `_arms` orders them."""


def _problems(loaded: Loaded) -> Iterator[str]:
    """A section for each problem, with a part for each value of its own parameters."""
    there = [i for i, done in enumerate(loaded.finished) if done]
    ids, drawn = itertools.count(), itertools.count()
    named = grouped(there, lambda i: str(loaded.cells[i].names["problem"]))
    styles = _styles(loaded, there)
    for place, (name, own) in enumerate(named.items()):
        variants = list(grouped(own, lambda i: problem_of(loaded.cells[i])).values())
        sweeps = "".join(f"{chart_html(chart, f'chart-{next(ids)}')}" for chart in _sweeps(loaded, own))
        sweeps = f'<div class="panels">{sweeps}</div>' if sweeps else ""
        parts = [f'<section id="problem-{place}"><h2>{escape(name)}</h2>', sweeps if len(variants) > 1 else ""]
        for variant in variants:
            charts, rest = _variant(loaded, variant, styles)
            htmls = [chart_html(chart, f"chart-{next(ids)}") for chart in charts]
            between = sweeps if len(variants) == 1 else ""
            body = f"{htmls[0]}{between}{''.join(htmls[1:])}{rest}"
            parts.append(_folded(loaded.cells[variant[0]].problem, body, next(drawn) >= OPEN_PROBLEMS))
        yield "".join([*parts, "</section>"])


def _folded(problem: str, body: str, folded: bool) -> str:
    title = f'<span class="formula">{escape(problem)}</span>'
    if folded:
        return f'<details class="more"><summary>{title}</summary>{body}</details>'
    return f'<p class="formula">{escape(problem)}</p>{body}'


def _styles(loaded: Loaded, there: Sequence[int]) -> dict[str, tuple[str, str]]:
    """What has the same name on several problems looks the same."""
    labels: dict[str, None] = {}
    for own in grouped(there, lambda i: problem_of(loaded.cells[i])).values():
        labels |= dict.fromkeys(_labels(loaded, own))
    return styles_of(list(labels))


def _labels(loaded: Loaded, own: Sequence[int]) -> tuple[str, ...]:
    cells = [loaded.cells[i] for i in own]
    varied = varied_of(cells)
    return distinct([label_of(cell, varied) for cell in cells])


def _variant(loaded: Loaded, own: Sequence[int], styles: dict[str, tuple[str, str]]) -> tuple[list[Chart], str]:
    """The charts and the tables of one problem."""
    played = [_played(loaded, i, label) for i, label in zip(own, _labels(loaded, own), strict=True)]
    bound, rounds = _bound(played[0].cell), max((p.curve.x for p in played), key=lambda x: float(x[-1]))
    bounds = [] if bound is None else [(BOUND, rounds, bound(rounds))]
    curves = [p.curve for p in played]
    ranked = sorted(played, key=lambda p: float(p.curve.mean[-1]))
    charts = [
        line_chart("Mean regret with 95% confidence bands", curves, x="round", styles=styles, bounds=bounds),
        share_chart(
            "Shares of arms, the cells in the order of their regret",
            [p.label for p in ranked],
            [p.shares for p in ranked],
            _arm_names(played[0].cell),
        ),
    ]
    return charts, _differences(played)


def _played(loaded: Loaded, i: int, label: str) -> Played:
    cell, sample = loaded.cells[i], loaded.sample(i)
    order = np.argsort(-loaded.means(i), axis=1, kind="stable")
    pulls = np.take_along_axis(sample.pulls, order, axis=1)
    shares = (pulls / pulls.sum(axis=1, keepdims=True)).mean(axis=0)
    return Played(cell, label, curve_of(loaded, i, label), sample.replications, sample.regret[:, -1], shares)


def _arm_names(cell: CellRecord) -> list[str]:
    """The arms from the best to the worst; where replications draw their own problems, only these places are common."""
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
            curves, levels = against_of(loaded, own, parameter)
            yield line_chart(
                f"Final regret against {parameter}, with 95% intervals", curves, x=parameter, levels=levels, bars=True
            )


def _differences(played: Sequence[Played]) -> str:
    """Pairs that met the same luck for equally many rounds, by seed and horizon."""
    settings: dict[tuple[int, int], list[Finals]] = {}
    for p in played:
        settings.setdefault((p.cell.horizon, p.cell.seed), []).append(Finals(p.label, p.replications, p.final))
    parts = [
        (f"<h4>T = {horizon:,}, seed {seed}</h4>" if len(settings) > 1 else "") + differences_html(finals)
        for (horizon, seed), finals in settings.items()
        if len(finals) > 1
    ]
    if not parts:
        return ""
    return f"<h3>Differences of final regret</h3>{''.join(parts)}"


# Tables.

STATISTICS = {
    "regret": "regret",
    "standard_error": "± s.e.",
    "median": "median",
    "quantile_05": "5%",
    "quantile_95": "95%",
}


def _all_cells(loaded: Loaded) -> str:
    """Final regret of every cell."""
    frame = loaded.frame
    names = [name for name in frame.columns if name not in OWN]
    names += [name for name in ("horizon", "seed") if frame[name].n_unique() > 1]
    head = [*map(escape, names), "replications", *STATISTICS.values(), "best arm"]
    rows = [_cell_row(row, names) for row in frame.iter_rows(named=True)]
    find = '<input type="search" class="find" placeholder="only rows with these words" aria-label="search" />'
    return (
        '<section id="cells"><h2>Final regret of every cell</h2><p class="setting">A click on a heading sorts. Mean '
        "regret with its standard error, its median, the quantiles between which 90% of replications lie, and the "
        f"share of rounds in which a best arm was pulled.</p>{find}{sortable(head, rows, left=len(names))}</section>"
    )


def _cell_row(row: dict[str, Any], names: Sequence[str]) -> list[Value]:
    part = f"{row['finished']:,}" + ("" if row["complete"] else f" of {row['replications']:,}")
    share = row["best_arm_share"]
    return [
        *((escape(text_of(row[name])), row[name], "") for name in names),
        (part, row["finished"], "" if row["complete"] else "more"),
        *((number(row[name], 2 if name == "standard_error" else 4), row[name], "") for name in STATISTICS),
        ("–" if share is None else f"{share:.1%}", share, ""),
    ]


def _versions(cells: Sequence[CellRecord]) -> str:
    """What computed the cells, by what they say of themselves."""
    kinds: dict[str, int] = {}
    for cell in cells:
        kind = json.dumps({**cell.specification["versions"], "code": cell.specification["code"]})
        kinds[kind] = kinds.get(kind, 0) + 1
    made = [(json.loads(kind), count) for kind, count in kinds.items()]
    names = list(dict.fromkeys(name for own, _ in made for name in own))
    rows = [[f"{count:,}", *(escape(str(own.get(name, "–"))) for name in names)] for own, count in made]
    several = "<p>Not all cells were computed by the same versions.</p>" if len(made) > 1 else ""
    return (
        f'<section id="versions"><h2>Machine and versions</h2>{several}{table(["cells", *map(escape, names)], rows)}'
        '<p class="setting">The code is a hash of rightarm’s own sources. What a replication gives does not depend on '
        "the number of threads, processes or machines.</p></section>"
    )
