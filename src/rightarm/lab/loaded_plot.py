"""Pictures of a folder of results: regret over the rounds, or against what was swept."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from rightarm.lab.results.folder import CellRecord
from rightarm.lab.results.reading import Loaded, text_of
from rightarm.simulation.figure import Curve, Panel, draw
from rightarm.simulation.result import distinct, parameters_of

K = TypeVar("K", bound=Hashable)
MOST_CURVES, MOST_PANELS = 40, 12  # more could not be read


def draw_loaded(loaded: Loaded, path: Path, *, against: str | None, title: str, log: bool) -> Path:
    """A panel for each problem: regret over the rounds, or against a parameter."""
    there = [i for i, done in enumerate(loaded.finished) if done]
    if not there:
        raise ValueError(f"{loaded.folder} has nothing to draw yet")
    panels = _over_rounds(loaded, there) if against is None else _against(loaded, there, against)
    if len(panels) > MOST_PANELS:
        title = ", ".join(text for text in (title, f"the first {MOST_PANELS} of {len(panels)} problems") if text)
    return draw(panels[:MOST_PANELS], path, log=log, title=title or None)


def _over_rounds(loaded: Loaded, there: Sequence[int]) -> list[Panel]:
    panels = []
    for own in grouped(there, lambda i: problem_of(loaded.cells[i])).values():
        cells = [loaded.cells[i] for i in own]
        varied = varied_of(cells)
        labels = distinct([label_of(cell, varied) for cell in cells])
        curves, note = _best([curve_of(loaded, i, label) for i, label in zip(own, labels, strict=True)])
        name, problem = cells[0].names["problem"], cells[0].problem
        panels.append(Panel((problem if name == problem else f"{name}: {problem}") + note, curves))
    return panels


def _against(loaded: Loaded, there: Sequence[int], parameter: str) -> list[Panel]:
    """Panels of the problems by name, whose own parameters may be swept as well."""
    numbers = {i: numbers_of(loaded.cells[i]) for i in there}
    if not any(parameter in own for own in numbers.values()):
        known = sorted({name for own in numbers.values() for name in own})
        raise ValueError(f"against must be a number that cells have, {', '.join(known)}, got {parameter!r}")
    panels = []
    for name, own in grouped(there, lambda i: str(loaded.cells[i].names["problem"])).items():
        swept, rest = against_of(loaded, own, parameter)
        (curves, note), (levels, _) = _best(swept), _best(rest)
        if curves:
            lines = [(curve.label, float(curve.mean[-1])) for curve in levels]
            panels.append(Panel(name + note, curves, parameter, levels=lines))
    return panels


def against_of(loaded: Loaded, own: Sequence[int], parameter: str) -> tuple[list[Curve], list[Curve]]:
    """Final regret of some cells against a parameter, and the curves of those that do not have it."""
    values = {i: numbers[parameter] for i in own if parameter in (numbers := numbers_of(loaded.cells[i]))}
    varied = varied_of([loaded.cells[i] for i in own]) - {parameter}
    labels = {i: label_of(loaded.cells[i], varied) for i in own}
    points = grouped(sorted(values, key=values.__getitem__), labels.__getitem__)
    curves = [
        Curve.joined(label, [(values[i], curve_of(loaded, i, label)) for i in places])
        for label, places in points.items()
    ]
    return curves, [curve_of(loaded, i, labels[i]) for i in own if i not in values]


def curve_of(loaded: Loaded, i: int, label: str) -> Curve:
    """The regret of a cell over the rounds."""
    return Curve.of(label, loaded.cells[i].checkpoints, loaded.regret(i))


def grouped(items: Iterable[int], key: Callable[[int], K]) -> dict[K, list[int]]:
    """Items by what they have in common, in their order."""
    groups: dict[K, list[int]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _best(curves: list[Curve]) -> tuple[list[Curve], str]:
    """The curves that end lowest if there are too many, and a word on that."""
    if len(curves) <= MOST_CURVES:
        return curves, ""
    best = set(sorted(curves, key=lambda curve: float(curve.mean[-1]))[:MOST_CURVES])
    return [curve for curve in curves if curve in best], f" (the {MOST_CURVES} lowest of {len(curves):,} curves)"


def problem_of(cell: CellRecord) -> str:
    """What the cells of one problem, parameters included, have in common."""
    return json.dumps([cell.names["problem"], cell.specification["problem"]], sort_keys=True)


def varied_of(cells: Sequence[CellRecord]) -> set[str]:
    """The names of which these cells have several values."""
    values: dict[str, set[str]] = {}
    for cell in cells:
        for name, value in cell.names.items():
            values.setdefault(name, set()).add(json.dumps(value))
    return {name for name, several in values.items() if len(several) > 1} - {"problem", "policy"}


def label_of(cell: CellRecord, varied: set[str]) -> str:
    """What tells a cell from the others of its panel."""
    told = [f"{name}={text_of(value)}" for name, value in cell.names.items() if name in varied]
    return ", ".join([str(cell.names["policy"]), *told])


def numbers_of(cell: CellRecord) -> dict[str, float]:
    """All numbers that a cell is made of, by name; what the experiment calls so comes first."""
    settings = {"horizon": cell.horizon, "replications": cell.replications, "seed": cell.seed}
    values = parameters_of(cell.specification["policy"]) | settings | cell.names
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
