"""The decisions of a log as a Polars frame, gathered block by block."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rightarm.extras import polars_for
from rightarm.logs.answers import Outcomes
from rightarm.logs.blocks import Block, Kind
from rightarm.logs.events import Arm, Event

if TYPE_CHECKING:
    import polars

I32 = NDArray[np.int32]

NUMBERS = {"propensity": float, "round": int, "version": int, "time": float}  # fields of decisions, and their types
TEXTS: dict[str, Callable[[Any], str]] = {"unit": str, "group": str, "meta": json.dumps}
OTHERS = (*TEXTS, "context", "arm_features", "error")  # columns that a frame has if a decision has the field
UNKNOWN = -1  # the number of a list of arms that the log does not give


class Table:
    """The columns of a frame; arms, and lists of them, are numbered as they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, list[Any]] = {name: [] for name in NUMBERS}
        self._arms, self._lists = dict[tuple[type, Arm], int](), dict[tuple[int, ...], int]()
        self._arm, self._among, self._rows = list[I32](), list[I32](), 0
        self._others: dict[str, list[tuple[int, list[Any]]]] = {name: [] for name in OTHERS}
        self._active = UNKNOWN
        self.policy: Event | None = None  # the last event that says which policy decides

    def take(self, block: Block) -> None:
        """Take the decisions of a block."""
        decisions, changes = block.kinds.get("decision"), block.kinds.get("arms", Kind("arms"))
        if decisions is not None:
            for name in NUMBERS:
                self._numbers[name].append(decisions.array(name))
            self._arm.append(np.array(self._numbers_of(decisions.column("arm")), dtype=np.int32))
            self._among.append(self._lists_of(decisions, changes))
            self._take_others(decisions)
            self._rows += len(decisions.events)
        if changes.events:
            self._active = self._list_of(changes.events[-1]["arms"])
        said = [block.kinds[kind] for kind in ("settings", "policy") if kind in block.kinds]
        if said:
            self.policy = max((kind.places[-1], kind.events[-1]) for kind in said)[1]

    def _take_others(self, decisions: Kind) -> None:
        for name in OTHERS:
            if having := decisions.having(name):
                column: list[Any] = [None] * len(decisions.events)
                text = TEXTS.get(name)
                for i in having:
                    value = decisions.events[i][name]
                    column[i] = value if text is None else text(value)
                self._others[name].append((self._rows, column))

    def _numbers_of(self, arms: list[Arm]) -> list[int]:
        known = self._arms
        keys = list(zip(map(type, arms), arms, strict=True))  # True and 1 are equal, but not the same name
        for key in dict.fromkeys(keys):
            known.setdefault(key, len(known))
        return [known[key] for key in keys]

    def _list_of(self, arms: list[Arm]) -> int:
        return self._lists.setdefault(tuple(self._numbers_of(arms)), len(self._lists))

    def _lists_of(self, decisions: Kind, changes: Kind) -> I32:
        """The number of the list of arms of each decision: its own, or that of the last change before it."""
        active = np.array([self._active, *(self._list_of(event["arms"]) for event in changes.events)], dtype=np.int32)
        lists = active[np.searchsorted(changes.places, decisions.places)]
        for i in decisions.having("among"):
            lists[i] = self._list_of(decisions.events[i]["among"])
        return lists

    def frame(self, outcomes: Outcomes) -> polars.DataFrame:
        """All decisions, with what became of them."""
        pl = polars_for("read_log()")
        numbers = {
            name: np.concatenate([np.empty(0, kind), *self._numbers.pop(name)]) for name, kind in NUMBERS.items()
        }
        names = _names([arm for _, arm in self._arms])
        arms = pl.Series("arm", names, dtype=None if names else pl.String)
        lists = pl.Series("among", [[names[i] for i in one] for one in self._lists], dtype=pl.List(arms.dtype))
        among = pl.Series(np.concatenate([np.empty(0, np.int32), *self._among]))
        frame: polars.DataFrame = pl.DataFrame(
            [
                pl.Series("id", outcomes.ids),
                arms.gather(np.concatenate([np.empty(0, np.int32), *self._arm])),
                pl.Series("propensity", numbers["propensity"]),
                pl.Series("reward", outcomes.rewards).fill_nan(None),
                pl.Series("round", numbers["round"]),
                pl.Series("version", numbers["version"]),
                _moments("asked", numbers["time"]),
                _moments("told", outcomes.told),
                pl.Series("cancelled", outcomes.cancelled),
                pl.Series("corrected", outcomes.corrected),
                lists.gather(among.replace(UNKNOWN, None)),
            ]
        )
        windows = [] if outcomes.open is None else [pl.Series("open_window", outcomes.open)]
        return frame.with_columns(windows + [self._other(name) for name, pieces in self._others.items() if pieces])

    def _other(self, name: str) -> polars.Series:
        """A column that few logs have, null where a decision has nothing."""
        pl = polars_for("read_log()")
        numbers = {"error": pl.Float64, "context": pl.List(pl.Float64), "arm_features": pl.List(pl.List(pl.Float64))}
        kind = numbers.get(name, pl.String)
        pieces, row = [], 0
        for first, values in [*self._others[name], (self._rows, [])]:
            pieces += [pl.Series(name, [None] * (first - row), dtype=kind), pl.Series(name, values, dtype=kind)]
            row = first + len(values)
        column: polars.Series = pl.concat(pieces)
        return column


def _moments(name: str, seconds: Any) -> polars.Series:
    """Seconds since 1970 as moments, null where there is none."""
    pl = polars_for("read_log()")
    micros: polars.Series = pl.Series(name, np.rint(seconds * 1e6)).fill_nan(None).cast(pl.Int64)
    return micros.cast(pl.Datetime("us", "UTC"))


def _names(arms: list[Arm]) -> list[Arm]:
    """How arms are named in a column, which has one type: by their names, or all by their JSON."""
    types = {type(arm) for arm in arms}
    if len(types) <= 1:
        return arms
    return list(map(float if types == {int, float} else json.dumps, arms))
