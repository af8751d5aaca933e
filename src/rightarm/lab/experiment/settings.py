"""Horizon, replications, seed, checkpoints and the numbers under `let`: read, calculated and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rightarm.formula import check_count, check_number
from rightarm.lab.experiment import formulas
from rightarm.lab.experiment.errors import ExperimentError, a_table, blamed, inside, shown, unknown
from rightarm.lab.experiment.expressions import FUNCTIONS, Expression
from rightarm.lab.experiment.formulas import a_number
from rightarm.lab.experiment.sweeps import Entries, Sweep, columns

SETTINGS = ("horizon", "replications", "seed", "checkpoints")
DEFAULTS: dict[str, Any] = {"replications": 64, "seed": 0, "checkpoints": 100}
MOST = {"horizon": 2**53, "replications": 2**28, "checkpoints": 100_000}  # a float counts no further; memory


def let(document: Mapping[str, Any]) -> dict[tuple[str, ...], Sweep]:
    """The sweeps of the numbers under `let`, by their names."""
    if "let" not in document:
        return {}

    def check(key: str, name: str, value: Any) -> None:
        if not name.isidentifier() or name in formulas.TAKEN:
            taken = "that name means something already" if name in formulas.TAKEN else "a name is letters, digits and _"
            raise ExperimentError(f"{inside(key, name)}: cannot be mentioned, {taken}, got {shown(value)}")

    given = a_table("let", document["let"], "{ gap = [0.1, 0.2] }")
    return columns("let", calculated("let", given), Entries(a_number, check))


def calculated(key: str, table: Mapping[str, Any], whole: bool = False) -> dict[str, Any]:
    """A table of numbers, with those that are written as expressions calculated; ``whole`` rounds them."""
    return {name: _value(inside(key, name), v, whole) if isinstance(v, str) else v for name, v in table.items()}


def _value(key: str, text: str, whole: bool) -> Any:
    with blamed(key):
        value = Expression(text, "name", {}, list(FUNCTIONS)).value()
        if not whole:
            return value
        rounded = [round(check_number(key, each)) for each in (value if isinstance(value, list) else [value])]
    return list(dict.fromkeys(rounded)) if isinstance(value, list) else rounded[0]


def _allowed(name: str) -> str:
    if name == "seed":
        return "allowed is a whole number from 0 on, or a list of such to sweep it"
    if name == "checkpoints":
        return f"allowed is a number of them, up to {MOST[name]:,}, or a list of rounds; a list of lists sweeps it"
    return f"allowed is a whole number up to {MOST[name]:,}, or a list of such to sweep it"


def _setting(key: str, name: str, value: Any) -> Sweep:
    """One horizon, number of replications, seed, or choice of checkpoints."""

    def whole(own: str, number: Any, most: float) -> int:
        with blamed(own, name, _allowed(name)):
            count = check_count(name, number, least=0 if name == "seed" else 1)
            if count > most:
                raise ValueError(f"{name} must be at most {most:,}, got {number!r}")
            return count

    if isinstance(value, list) and name == "checkpoints":
        if not value:
            raise ExperimentError(f"{key}: must have one round at least, got {shown(value)}")
        made: int | list[int] = [whole(f"{key}[{i}]", each, MOST["horizon"]) for i, each in enumerate(value)]
    else:
        made = whole(key, value, MOST.get(name, math.inf))
    return Sweep.fixed(made)


def _check_setting(key: str, name: str, value: Any) -> None:
    if name not in SETTINGS:
        raise unknown(key, name, value, "key", "to be swept there are", SETTINGS)


def _is_rounds(name: str, values: list[Any]) -> bool:
    return name == "checkpoints" and not any(isinstance(each, list) for each in values)


ENTRIES = Entries(_setting, _check_setting, _is_rounds)
