"""What pictures of a folder of results show: regret over the rounds, or against what was swept."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from rightarm.lab.results.folder import CellRecord
from rightarm.lab.results.reading import Loaded
from rightarm.simulation.panels import Panel, final_against, lowest
from rightarm.simulation.result import distinct, parameters_of
from rightarm.simulation.statistics import MeanCurve
from rightarm.text import short

K = TypeVar("K", bound=Hashable)
MOST_CURVES, MOST_LEVELS, MOST_PANELS = 14, 4, 12  # more could not be told apart


def panels_of(loaded: Loaded, against: str | None, where: Mapping[str, Any]) -> tuple[list[Panel], str]:
    """A panel for each problem, regret over the rounds or against a parameter, and a note on what is left out."""
    there = [i for i, done in enumerate(loaded.finished) if done]
    if not there:
        raise ValueError(f"{loaded.folder} has nothing to draw yet")
    there = chosen(loaded, there, where)
    panels = over_rounds(loaded, there) if against is None else _against(loaded, there, against)
    note = f"the first {MOST_PANELS} of {len(panels)} problems" if len(panels) > MOST_PANELS else ""
    return [_readable(panel) for panel in panels[:MOST_PANELS]], note


def chosen(loaded: Loaded, there: Sequence[int], where: Mapping[str, Any]) -> list[int]:
    """The cells that have these values; of a list of values any is right."""
    kept, values = list(there), {i: _values(loaded.cells[i]) for i in there}
    for name, wanted in where.items():
        known = {_plain(own[name]): short(own[name]) for own in values.values() if name in own}
        if not known:
            names = sorted({other for own in values.values() for other in own})
            raise ValueError(f"where must name something that cells have, {', '.join(names)}, got {name!r}")
        asked = {_plain(one): short(one) for one in (wanted if isinstance(wanted, list | tuple) else [wanted])}
        for value in asked.keys() - known.keys():
            raise ValueError(f"where: no cell has {name} = {asked[value]}; there are {', '.join(known.values())}")
        kept = [i for i in kept if name in values[i] and _plain(values[i][name]) in asked]
    if not kept:
        raise ValueError(f"where: no cell has all of {', '.join(f'{n} = {short(v)}' for n, v in where.items())}")
    return kept


def _plain(value: Any) -> float | str:
    """A value that can be compared: numbers as numbers, also where they are written as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return short(value)


def _readable(panel: Panel) -> Panel:
    """The panel with its lowest curves only, if there are too many, and a word on that in its title."""
    curves, levels = lowest(panel.curves, MOST_CURVES), lowest(panel.levels, MOST_LEVELS)
    told = [
        f"the {len(kept)} lowest of {len(given):,} {what}"
        for what, kept, given in (("curves", curves, panel.curves), ("levels", levels, panel.levels))
        if len(kept) < len(given)
    ]
    title = f"{panel.title} ({', '.join(told)})" if told else panel.title
    return replace(panel, title=title, curves=curves, levels=levels)


def over_rounds(loaded: Loaded, there: Sequence[int]) -> list[Panel]:
    """Regret over the rounds, a panel for each problem with each of its parameters."""
    panels = []
    swept = varied_of([loaded.cells[i] for i in there])
    for own in grouped(there, lambda i: problem_of(loaded.cells[i])).values():
        cells = [loaded.cells[i] for i in own]
        varied = varied_of(cells)
        labels = distinct([label_of(cell, varied) for cell in cells])
        curves = [curve_of(loaded, i, label) for i, label in zip(own, labels, strict=True)]
        panels.append(Panel(title_of(cells[0], swept - varied), curves))
    return panels


def title_of(cell: CellRecord, swept: set[str]) -> str:
    """A problem in short: by its name and what was swept of it, or else by its name and its formula."""
    name, own = str(cell.names["problem"]), [n for n in cell.names if n in swept]
    if own:
        return ", ".join([name, *(f"{n}={short(cell.names[n])}" for n in own)])
    return name if name == cell.problem else f"{name}: {cell.problem}"


def _against(loaded: Loaded, there: Sequence[int], parameter: str) -> list[Panel]:
    """Panels of the problems by name, whose own parameters may be swept as well."""
    numbers = {i: numbers_of(loaded.cells[i]) for i in there}
    if not any(parameter in own for own in numbers.values()):
        known = sorted({name for own in numbers.values() for name in own})
        raise ValueError(f"against must be a number that cells have, {', '.join(known)}, got {parameter!r}")
    named = grouped(there, lambda i: str(loaded.cells[i].names["problem"]))
    panels = [final_against(parameter, name, *against_of(loaded, own, parameter)) for name, own in named.items()]
    return [panel for panel in panels if panel.curves]


def against_of(loaded: Loaded, own: Sequence[int], parameter: str) -> tuple[list[MeanCurve], list[MeanCurve]]:
    """Final regret of some cells against a parameter, and the curves of those that do not have it."""
    values = {i: numbers[parameter] for i in own if parameter in (numbers := numbers_of(loaded.cells[i]))}
    varied = varied_of([loaded.cells[i] for i in own]) - {parameter}
    labels = {i: label_of(loaded.cells[i], varied) for i in own}
    points = grouped(sorted(values, key=values.__getitem__), labels.__getitem__)
    curves = [
        MeanCurve.joined(label, [(values[i], curve_of(loaded, i, label)) for i in places])
        for label, places in points.items()
    ]
    return curves, [curve_of(loaded, i, labels[i]) for i in own if i not in values]


def curve_of(loaded: Loaded, i: int, label: str) -> MeanCurve:
    """The regret of a cell over the rounds."""
    return MeanCurve.of(label, loaded.cells[i].checkpoints, loaded.regret(i))


def grouped(items: Iterable[int], key: Callable[[int], K]) -> dict[K, list[int]]:
    """Items by what they have in common, in their order."""
    groups: dict[K, list[int]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


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
    told = [f"{name}={short(value)}" for name, value in cell.names.items() if name in varied]
    return ", ".join([str(cell.names["policy"]), *told])


def numbers_of(cell: CellRecord) -> dict[str, float]:
    """All numbers that a cell is made of, by name; what the experiment calls so comes first."""
    return {
        name: float(value)
        for name, value in _values(cell).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _values(cell: CellRecord) -> dict[str, Any]:
    settings = {"horizon": cell.horizon, "replications": cell.replications, "seed": cell.seed}
    return parameters_of(cell.specification["policy"]) | settings | cell.names
