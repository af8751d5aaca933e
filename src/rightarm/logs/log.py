"""`Log`: a log as arrays, read once, which whatever evaluates, exports or shows it takes.

A path is read into arrays, and so are the columns of a frame or a mapping.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rightarm.errors import WrongType, WrongValue
from rightarm.formula import check_number
from rightarm.logs.blocks import Block, Kind, read_blocks
from rightarm.logs.events import Arm, Changed, Created, Decision, Specification, kind_of
from rightarm.logs.lines import LINES, Numbering, PathLike, log_at, part_paths
from rightarm.logs.outcomes import NOTHING, Flags, Period, Steps
from rightarm.logs.parquet import PARQUET
from rightarm.logs.settings import Settings
from rightarm.types import F64, I64

I32 = NDArray[np.int32]

UNKNOWN = -1  # the number of a list of arms that the log does not give
NUMBERS = {"propensity": float, "round": int, "version": int}  # fields of every decision
DEFAULTS = {"unit": None, "group": None, "meta": None, "context": None, "arm_features": None, "error": 0.0}
RARE = attrgetter("among", *DEFAULTS)  # fields that few decisions have
USUAL = (None, *DEFAULTS.values())
NEEDED = ("arm", "propensity", "reward")


@dataclass(frozen=True, eq=False)
class Log:
    """The decisions of a log, in the order in which they were made, with what became of them.

    `rightarm.read_log` gives them as a frame. Nothing here is to be changed.
    """

    names: list[Any]
    """The arms."""
    arms: NDArray[np.integer[Any]]
    """The arm of each decision, by its place in ``names``."""
    propensities: F64
    rewards: F64
    """The reward of each decision that counts, NaN where there is none."""
    lists: list[tuple[int, ...]]
    """The lists of arms that decisions could choose from, by places in ``names``."""
    among: NDArray[np.integer[Any]]
    """The list of each decision, by its place in ``lists``; -1 where it is not known."""
    ids: Any = None
    """The ids of the decisions, None if there are none."""
    times: F64 | None = None
    """When each decision was made, in seconds since 1970."""
    told: F64 | None = None
    """When the reward of each came, NaN where none did."""
    open: Flags | None = None
    """Which decisions have an open window of reward; None if none can have."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other columns, such as context, unit and group, where the log has them."""
    path: Path | None = None
    identity: str | None = None
    """The identity of a log that was read from a file."""
    parts: int = 1
    events: Counter[str] = field(default_factory=Counter)
    """How many events of each kind the file has."""
    span: tuple[float, float] | None = None
    """The time of the first event, and the latest time of any."""
    changes: Sequence[Created | Changed] = ()
    """The events that say how the bandit is set up, in their order."""
    periods: Sequence[Period] = (Period(0, Settings()),)
    """The settings of the bandit, one after the other."""

    def __post_init__(self) -> None:
        for array in (self.arms, self.propensities, self.rewards, self.among):
            array.flags.writeable = False

    @staticmethod
    def read(path: PathLike) -> Log:
        """Read the log at a path, or of a bandit's folder, with all checks; errors name the line.

        >>> import tempfile
        >>> from rightarm.logs import LogWriter
        >>> folder = tempfile.TemporaryDirectory()
        >>> with LogWriter(folder.name + "/log.jsonl") as writer:
        ...     writer.decision(1, "red", 0.5, round=1, version=0, time=1_700_000_000.0)
        ...     writer.decision(2, "blue", 0.25, round=1, version=0, time=1_700_000_001.5)
        ...     writer.reward(1, 1.0, time=1_700_000_002.0)
        >>> log = Log.read(folder.name + "/log.jsonl")
        >>> log.names, log.arms, log.propensities, log.rewards
        (['red', 'blue'], array([0, 1], dtype=int32), array([0.5 , 0.25]), array([ 1., nan]))
        >>> folder.cleanup()
        """
        gathered = _Gathered(checked_path(path))
        for block in read_blocks(gathered.path, gathered.numbering):
            gathered.take(block)
        return gathered.log()

    @property
    def settings(self) -> Settings:
        """Return the last settings of the bandit, the defaults if the log does not say any."""
        return self.periods[-1].settings

    @property
    def policy(self) -> Specification | None:
        """Return the specification of the policy that decided last, None if the log does not say it."""
        found = [change.policy for change in self.changes if change.policy is not None]
        return found[-1] if found else None

    @property
    def active(self) -> list[Arm] | None:
        """Return the arms that can be chosen at the end, None if the log does not say them."""
        found = [change.arms for change in self.changes if change.arms is not None]
        return found[-1] if found else None

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """Return the range of rewards that the bandit was given: if it changed, one that has all of them in it."""
        found = [period.settings.reward_range for period in self.periods if period.settings.reward_range is not None]
        if not found:
            return None
        return min(low for low, _ in found), max(high for _, high in found)

    @property
    def floor(self) -> float:
        """Return the propensity that no arm could ever fall below; a holdout may take its share of every arm's."""
        return min(period.settings.floor * (1 - period.settings.holdout) for period in self.periods)

    @cached_property
    def chosen_from(self) -> list[tuple[Any, ...] | None]:
        """Return the arms that each decision could choose, by name; None where it is not known."""
        named: list[tuple[Any, ...] | None] = [tuple(self.names[i] for i in one) for one in self.lists]
        named.append(None)  # which -1 finds
        return [named[i] for i in self.among.tolist()]

    def check_lists(self, rows: I64) -> None:
        """Raise if the list of one of these rows does not have the arm that was chosen, or has an arm twice."""
        known = rows[self.among[rows] != UNKNOWN]
        count = len(self.names)
        codes = self.among[known].astype(np.int64) * count + self.arms[known]
        for code in np.unique(codes).tolist():
            one = self.lists[code // count]
            if len(set(one)) == len(one) and code % count in one:
                continue
            row = int(known[np.argmax(codes == code)])
            arm = self.names[self.arms[row]]
            arms = [self.names[i] for i in one]
            raise ValueError(f"among must have the arm {arm!r} of row {row + 1} and every arm once, got {arms}")


def log_of(log: Any, needed: Sequence[str] = NEEDED) -> Log:
    """Return a log as arrays: one that was read already, the one at a path, or the columns of a frame or a mapping.

    ``needed`` are the columns that must be there.
    """
    if isinstance(log, Log):
        return log
    if isinstance(log, str | os.PathLike):
        return Log.read(log)
    return _from_columns(log, needed)


# From a file.


def checked_path(path: PathLike) -> Path:
    """Return the path of a log, or raise if its ending says that there is none."""
    found = log_at(path)
    if found.suffix not in (PARQUET, LINES):
        raise WrongValue(
            "path",
            f"must end in {LINES} or {PARQUET} (read_table reads tables of others), or be the folder of a bandit, "
            f"got {found}",
        )
    return found


class _Gathered:
    """Gathers what a log holds, block by block; arms, and lists of them, are numbered as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.numbering = Numbering()
        self.steps = Steps()
        self.columns: dict[str, list[Any]] = {name: [] for name in NUMBERS}
        self.others: dict[str, list[tuple[int, Sequence[Any]]]] = {name: [] for name in DEFAULTS}
        self.names = list[Arm]()
        self.places = dict[type, dict[Arm, int]]()  # of arms in the names, by type
        self.lists = dict[tuple[int, ...], int]()
        self.arms = list[I32]()
        self.among = list[I32]()
        self.rows = 0
        self.events = Counter[str]()
        self.active = UNKNOWN  # the list of arms that can be chosen now
        self.changes = list[Created | Changed]()
        self.first: float | None = None  # the time of the first event

    def take(self, block: Block) -> None:
        """Take the next events."""
        self.steps.take(block)
        if self.first is None:
            self.first = block.events[0].time
        for kind in block.kinds.values():
            self.events[kind_of(kind.events[0])] += len(kind.events)
        made, changed = (block.kinds.get(type_, NOTHING) for type_ in (Created, Changed))
        changes = sorted(zip(made.places + changed.places, made.events + changed.events, strict=True))
        if Decision in block.kinds:
            self._take_decisions(block.kinds[Decision], changes)
        for _, change in changes:
            self.changes.append(change)
            if change.arms is not None:
                self.active = self._list_of(change.arms)

    def _take_decisions(self, decisions: Kind, changes: list[tuple[int, Any]]) -> None:
        for name in NUMBERS:
            self.columns[name].append(np.array(list(map(attrgetter(name), decisions.events))))
        self.arms.append(np.array(self._numbers_of([event.arm for event in decisions.events]), dtype=np.int32))
        own = [(place, self._list_of(change.arms)) for place, change in changes if change.arms is not None]
        active = np.array([self.active, *(number for _, number in own)], dtype=np.int32)
        lists = active[np.searchsorted([place for place, _ in own], decisions.places)]
        rare = list(map(RARE, decisions.events))
        if rare.count(USUAL) < len(rare):
            among, *others = zip(*rare, strict=True)
            for i, arms in enumerate(among):
                if arms is not None:
                    lists[i] = self._list_of(arms)
            for (name, default), values in zip(DEFAULTS.items(), others, strict=True):
                if values.count(default) < len(values):
                    self.others[name].append((self.rows, values))
        self.among.append(lists)
        self.rows += len(decisions.events)

    def _numbers_of(self, arms: list[Arm]) -> list[int]:
        """Return the numbers of arms; True and 1 are equal, but not the same name."""
        types = set(map(type, arms))
        if len(types) > 1:
            return [self._numbers_of([arm])[0] for arm in arms]
        places = self.places.setdefault(next(iter(types), str), {})
        for arm in dict.fromkeys(arms):
            if arm not in places:
                places[arm] = len(self.names)
                self.names.append(arm)
        return list(map(places.__getitem__, arms))

    def _list_of(self, arms: list[Arm]) -> int:
        return self.lists.setdefault(tuple(self._numbers_of(arms)), len(self.lists))

    def log(self) -> Log:
        """Return all of it."""
        outcomes = self.steps.outcomes(self.path)
        numbers = {name: np.concatenate([np.empty(0, kind), *self.columns[name]]) for name, kind in NUMBERS.items()}
        more: dict[str, Any] = {name: self._other(name) for name, pieces in self.others.items() if pieces}
        more |= {name: numbers[name] for name in ("round", "version")}
        more |= {"cancelled": outcomes.cancelled, "corrected": outcomes.corrected, "waiting": outcomes.waiting}
        latest = self.steps.latest
        return Log(
            names=_names(self.names),
            arms=np.concatenate([np.empty(0, np.int32), *self.arms]),
            propensities=numbers["propensity"],
            rewards=outcomes.rewards,
            lists=list(self.lists),
            among=np.concatenate([np.empty(0, np.int32), *self.among]),
            ids=outcomes.ids,
            times=outcomes.times,
            told=outcomes.told,
            open=outcomes.open,
            more=more,
            path=self.path,
            identity=None if self.numbering.head is None else self.numbering.head.log,
            parts=len(part_paths(self.path)) if self.path.suffix == LINES else 1,
            events=self.events,
            span=None if self.first is None or latest is None else (self.first, latest),
            changes=self.changes,
            periods=self.steps.periods,
        )

    def _other(self, name: str) -> list[Any]:
        """Return a column that few logs have, with its default where a decision has nothing."""
        values = list[Any]()
        for first, own in self.others[name]:
            values += [DEFAULTS[name]] * (first - len(values))
            values += own
        return values + [DEFAULTS[name]] * (self.rows - len(values))


def _names(arms: list[Arm]) -> list[Arm]:
    """Return arms as a column names them, which has one type: as they are, or all by their JSON."""
    types = {type(arm) for arm in arms}
    if len(types) <= 1:
        return arms
    return [float(arm) if types == {int, float} else json.dumps(arm) for arm in arms]


# From columns.


def _from_columns(log: Any, needed: Sequence[str]) -> Log:
    """Take the columns of a log that there are."""
    for name in needed:
        if name not in log:
            raise ValueError(f"log must have the columns {', '.join(needed)}, got none called {name!r}")
    known = (*NEEDED, "id", "among", "open_window", "asked", "told")
    columns = {name: listed(log[name]) for name in known if name in log}
    check_lengths([len(column) for column in columns.values()])
    count = len(columns["arm"])
    places = dict[Any, int]()
    lists = dict[tuple[int, ...], int]()
    arms = [places.setdefault(arm, len(places)) for arm in columns["arm"]]
    by_names: dict[tuple[Any, ...] | None, int] = {None: UNKNOWN}
    among = np.full(count, UNKNOWN)
    for i, row in enumerate(columns.get("among", ())):
        own = None if row is None else tuple(row)
        if own not in by_names:
            numbered = tuple(places.setdefault(arm, len(places)) for arm in own or ())
            by_names[own] = lists.setdefault(numbered, len(lists))
        among[i] = by_names[own]
    rewards = columns.get("reward", [None] * count)
    still_open = columns.get("open_window")
    return Log(
        names=list(places),
        arms=np.array(arms, dtype=np.int64),
        propensities=_floats("propensity", columns["propensity"]),
        rewards=_floats("reward", [float(one) if one is True or one is False else one for one in rewards]),
        lists=list(lists),
        among=among,
        ids=columns.get("id"),
        times=_seconds(columns.get("asked")),
        told=_seconds(columns.get("told")),
        open=None if still_open is None else np.array(still_open, dtype=bool),
        more={name: log[name] for name in DEFAULTS if name in log},
    )


def _floats(name: str, column: list[Any]) -> F64:
    """Return numbers as an array, NaN where there is none."""
    if set(map(type, column)) <= {float}:
        return np.array(column, dtype=float)
    found = np.full(len(column), math.nan)
    for i, value in enumerate(column):
        if isinstance(value, float):
            found[i] = value
        elif value is not None:
            found[i] = check_number(f"{name} of row {i + 1}", value)
    return found


def _seconds(column: list[Any] | None) -> F64 | None:
    """Return moments as seconds since 1970, NaN where there is none."""
    if column is None:
        return None
    return np.array([math.nan if moment is None else moment.timestamp() for moment in column], dtype=float)


def listed(column: Any) -> list[Any]:
    """Return a column as plain values, not as those of NumPy, Polars or pandas."""
    for method in ("to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def check_lengths(lengths: list[int]) -> None:
    """Raise if columns are not equally long."""
    if len(set(lengths)) > 1:
        raise ValueError(f"the columns of a log must be of one length, got {sorted(set(lengths))}")


# Fields.


def check_propensity(name: str, value: Any) -> float:
    """Return ``value`` if it is a probability with which an arm can have been chosen."""
    number = check_number(name, value)
    if not 0 < number <= 1:
        raise WrongValue(name, f"must be above 0 and at most 1, got {number}")
    return number


def check_arm_name(name: str, value: Any) -> Arm:
    """Return ``value`` if a log can keep it as an arm's name."""
    if not isinstance(value, str | int | float | bool):
        raise WrongType(name, f"must be a text, a number, true or false, got {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise WrongValue(name, f"must be finite, got {value}")
    return value
