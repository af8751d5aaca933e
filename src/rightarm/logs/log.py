"""`Log`: the decisions of a log as arrays, read from a file or from the columns of a table."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rightarm.errors import WrongType, WrongValue
from rightarm.formula import check_number
from rightarm.logs.events import Arm, Changed, Created, Decision, Specification
from rightarm.logs.lines import LINES, PARQUET, Block, Kind, Numbering, PathLike, log_at, part_paths, read_blocks
from rightarm.logs.outcomes import Flags, Period, Steps
from rightarm.logs.settings import Settings
from rightarm.types import F64, I64

Numbers = NDArray[np.int32] | NDArray[np.int64]

UNKNOWN = -1  # the number of a list of arms that the log does not give
NUMBERS = {"propensity": float, "round": int, "version": int}  # fields that every decision has
DEFAULTS = {"unit": None, "group": None, "meta": None, "context": None, "arm_features": None, "error": 0.0}
RARE = attrgetter("allowed", *DEFAULTS)  # fields that few decisions have
USUAL = (None, *DEFAULTS.values())
NEEDED = ("arm", "propensity", "reward")
MOST_ARMS = 20  # that are shown


@dataclass(frozen=True, eq=False)
class Log:
    """The decisions of a log, in the order in which they were made, with what became of them.

    `rightarm.evaluate` and whatever else takes the path of a log takes a `Log` too, which is read only once;
    `rightarm.logs.read_log` makes a frame of it. ``str()`` says what it holds. The arrays must not be changed.

    Attributes
    ----------
    names
        The arms.
    arms
        The arm of each decision, by its place in ``names``.
    propensities, rewards
        The propensity of each decision, and the reward that counts, NaN where there is none.
    lists
        The lists of arms that decisions could choose from, by places in ``names``.
    allowed
        The list of each decision, by its place in ``lists``; -1 where the log does not say.
    ids
        The ids of the decisions, None if they have none.
    times, answer_times
        When each decision was made, and when its reward came, in seconds since 1970; NaN where none came.
    open
        Which decisions have an open window of reward; None if none can have.
    more
        Other columns, such as context, unit and group, where the log has them.
    path, identity, parts
        The file, the identity that is the same in all copies of the log, and the number of files.
    events
        How many events of each kind the file has.
    span
        The time of the first event, and the latest time of any.
    changes
        The events that say how the bandit is set up, in their order.
    periods
        The settings of the bandit, one after the other.
    """

    names: list[Hashable]
    arms: Numbers
    propensities: F64
    rewards: F64
    lists: list[tuple[int, ...]]
    allowed: Numbers
    ids: I64 | list[Hashable] | None = None
    times: F64 | None = None
    answer_times: F64 | None = None
    open: Flags | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    identity: str | None = None
    parts: int = 1
    events: Counter[str] = field(default_factory=Counter)
    span: tuple[float, float] | None = None
    changes: Sequence[Created | Changed] = ()
    periods: Sequence[Period] = (Period(0, Settings()),)

    def __post_init__(self) -> None:
        for column in (self.arms, self.propensities, self.rewards, self.allowed):
            column.flags.writeable = False

    @staticmethod
    def read(path: PathLike) -> Log:
        """Read the log at a path, or of a bandit's folder, with all checks; errors name the line.

        Examples
        --------
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
        builder = _LogBuilder(checked_path(path))
        for block in read_blocks(builder.path, builder.numbering):
            builder.take(block)
        return builder.log()

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
    def chosen_from(self) -> list[tuple[Hashable, ...] | None]:
        """Return the arms that each decision could choose, by name; None where the log does not say."""
        named: list[tuple[Hashable, ...] | None] = [tuple(self.names[i] for i in one) for one in self.lists]
        named.append(None)  # which -1 finds
        return [named[i] for i in self.allowed.tolist()]

    def __str__(self) -> str:
        counts = np.bincount(self.arms, minlength=len(self.names)).tolist()
        chosen = Counter({arm: count for arm, count in zip(self.names, counts, strict=True) if count})
        states = [name for name in ("waiting", "cancelled", "corrected") if name in self.more]
        contexts = sum(context is not None for context in self.more.get("context", ()))
        times = [datetime.fromtimestamp(time, UTC) for time in self.span or ()]
        lines = {
            "identity": self.identity or "none: no events",
            "parts": f"{self.parts}",
            "events": ", ".join([f"{self.events.total():,}", *(f"{n:,} {kind}" for kind, n in self.events.items())]),
            "times, UTC": " to ".join(f"{time:%Y-%m-%d %H:%M:%S}" for time in times),
            "arms now": "not said" if self.active is None else ", ".join(map(repr, self.active)),
            "chosen": ", ".join(f"{arm!r} {count:,}" for arm, count in chosen.most_common(MOST_ARMS)),
            "decisions": f"{np.isfinite(self.rewards).sum():,} with a reward"
            + "".join(f", {self.more[name].sum():,} {name}" for name in states),
            "contexts": f"{contexts:,} decisions have one" if contexts else "",
        }
        title = "a log" if self.path is None else str(self.path)
        return "\n".join([title, *(f"  {name:<11} {text}" for name, text in lines.items() if text)])

    def check_propensities(self, rows: I64) -> None:
        """Raise if a propensity of one of these rows is no probability above 0."""
        is_right = (self.propensities[rows] > 0) & (self.propensities[rows] <= 1)
        for row in rows[~is_right][:1].tolist():
            check_propensity(f"propensity of row {row + 1}", float(self.propensities[row]))

    def check_lists(self, rows: I64) -> None:
        """Raise if the list of one of these rows does not have the arm that was chosen, or has an arm twice."""
        listed_rows = rows[self.allowed[rows] != UNKNOWN]
        count = len(self.names)
        codes = self.allowed[listed_rows].astype(np.int64) * count + self.arms[listed_rows]
        for code in np.unique(codes).tolist():
            one = self.lists[code // count]
            if len(set(one)) == len(one) and code % count in one:
                continue
            row = int(listed_rows[np.argmax(codes == code)])
            arm = self.names[self.arms[row]]
            arms = [self.names[i] for i in one]
            raise ValueError(f"allowed must have the arm {arm!r} of row {row + 1} and every arm once, got {arms}")


class Columns(Protocol):
    """The columns of a log by name: a frame of Polars or pandas, or a mapping."""

    def __getitem__(self, name: str, /) -> Any:
        """Return a column."""

    def __contains__(self, name: str, /) -> bool:
        """Say whether there is a column of this name."""


LogLike = PathLike | Log | Columns


def log_of(log: LogLike, needed: Sequence[str] = NEEDED) -> Log:
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


class _LogBuilder:
    """Gathers what a log holds, block by block; arms, and lists of them, are numbered as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.numbering = Numbering()
        self.steps = Steps()
        self.columns: dict[str, list[NDArray[Any]]] = {name: [np.empty(0, type_)] for name, type_ in NUMBERS.items()}
        self.others: dict[str, list[object]] = {name: [] for name in DEFAULTS}
        self.names = list[Arm]()
        self.places = dict[type, dict[Arm, int]]()  # of arms in the names, by type
        self.lists = dict[tuple[int, ...], int]()
        self.arms = [np.empty(0, np.int32)]
        self.allowed = [np.empty(0, np.int32)]
        self.events = Counter[str]()
        self.active = UNKNOWN  # the list of arms that can be chosen now
        self.changes = list[Created | Changed]()
        self.first: float | None = None  # the time of the first event

    def take(self, block: Block) -> None:
        """Take the next events."""
        self.steps.take(block)
        if self.first is None:
            self.first = block.events[0].time
        for type_, kind in block.kinds.items():
            self.events[str(type_.__struct_config__.tag)] += len(kind.events)
        changes = [(place, self._list_of(change.arms)) for place, change in block.changes if change.arms is not None]
        if Decision in block.kinds:
            self._take_decisions(block.kinds[Decision], changes)
        if changes:
            self.active = changes[-1][1]
        self.changes += [change for _, change in block.changes]

    def _take_decisions(self, decisions: Kind, changes: list[tuple[int, int]]) -> None:
        """Take decisions; ``changes`` are the numbers of events, and of the lists of arms that hold after them."""
        count = len(decisions.events)
        for name, type_ in NUMBERS.items():
            self.columns[name].append(np.fromiter(map(attrgetter(name), decisions.events), type_, count))
        self.arms.append(np.array(self._numbers_of([event.arm for event in decisions.events]), np.int32))
        active = np.array([self.active, *(number for _, number in changes)], dtype=np.int32)
        lists = active[np.searchsorted([place for place, _ in changes], decisions.places)]
        rare = list(map(RARE, decisions.events))
        others: Iterable[Sequence[object]] = [[default] * count for default in DEFAULTS.values()]
        if rare.count(USUAL) < count:
            allowed, *others = zip(*rare, strict=True)
            for i, arms in enumerate(allowed):
                if arms is not None:
                    lists[i] = self._list_of(arms)
        for column, values in zip(self.others.values(), others, strict=True):
            column += values
        self.allowed.append(lists)

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
        numbers = {name: np.concatenate(pieces) for name, pieces in self.columns.items()}
        rare = {name: column for name, column in self.others.items() if column.count(DEFAULTS[name]) < len(column)}
        latest = self.steps.latest
        return Log(
            names=_names(self.names),
            arms=np.concatenate(self.arms),
            propensities=numbers.pop("propensity"),
            rewards=outcomes.rewards,
            lists=list(self.lists),
            allowed=np.concatenate(self.allowed),
            ids=outcomes.ids,
            times=outcomes.times,
            answer_times=outcomes.answer_times,
            open=outcomes.open,
            more={
                **rare,
                **numbers,
                "waiting": outcomes.waiting,
                "cancelled": outcomes.cancelled,
                "corrected": outcomes.corrected,
            },
            path=self.path,
            identity=None if self.numbering.head is None else self.numbering.head.log,
            parts=len(part_paths(self.path)) if self.path.suffix == LINES else 1,
            events=self.events,
            span=None if self.first is None or latest is None else (self.first, latest),
            changes=self.changes,
            periods=self.steps.periods,
        )


def _names(arms: list[Arm]) -> list[Hashable]:
    """Return arms as a column names them, which has one type: as they are, or all by their JSON."""
    types = {type(arm) for arm in arms}
    if len(types) <= 1:
        return [*arms]
    return [float(arm) if types == {int, float} else json.dumps(arm) for arm in arms]


# From columns.


def _from_columns(log: Columns, needed: Sequence[str]) -> Log:
    """Return the log that has these columns."""
    if not hasattr(log, "__getitem__") or not hasattr(log, "__contains__") or isinstance(log, list | tuple):
        raise TypeError(f"log must be a path, a frame or a mapping of columns, got {log!r:.200}")
    for name in needed:
        if name not in log:
            raise ValueError(f"log must have the columns {', '.join(needed)}, got none called {name!r}")
    names = (*NEEDED, "id", "allowed", "open_window", "decided_at", "answered_at")
    columns = {name: listed(log[name]) for name in names if name in log}
    check_lengths([len(column) for column in columns.values()])
    count = len(columns["arm"])
    places = dict[Hashable, int]()
    lists = dict[tuple[int, ...], int]()
    arms = [places.setdefault(arm, len(places)) for arm in columns["arm"]]
    by_names: dict[tuple[Hashable, ...] | None, int] = {None: UNKNOWN}
    allowed = np.full(count, UNKNOWN)
    for i, row in enumerate(columns.get("allowed", ())):
        choices = None if row is None else tuple(row)
        if choices not in by_names:
            numbered = tuple(places.setdefault(arm, len(places)) for arm in choices or ())
            by_names[choices] = lists.setdefault(numbered, len(lists))
        allowed[i] = by_names[choices]
    rewards = columns.get("reward", [None] * count)
    still_open = columns.get("open_window")
    return Log(
        names=list(places),
        arms=np.array(arms, dtype=np.int64),
        propensities=_floats("propensity", columns["propensity"]),
        rewards=_floats("reward", [float(one) if one is True or one is False else one for one in rewards]),
        lists=list(lists),
        allowed=allowed,
        ids=columns.get("id"),
        times=_seconds(columns.get("decided_at")),
        answer_times=_seconds(columns.get("answered_at")),
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


def check_propensity(name: str, value: object) -> float:
    """Return ``value`` if it is a probability with which an arm can have been chosen."""
    number = check_number(name, value)
    if not 0 < number <= 1:
        raise WrongValue(name, f"must be above 0 and at most 1, got {number}")
    return number


def check_arm_name(name: str, value: object) -> Arm:
    """Return ``value`` if a log can keep it as an arm's name."""
    if not isinstance(value, str | int | float | bool):
        raise WrongType(name, f"must be a text, a number, true or false, got {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise WrongValue(name, f"must be finite, got {value}")
    return value
