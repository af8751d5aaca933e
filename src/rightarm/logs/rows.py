"""The decisions of a log that have a reward, with their contexts: what is evaluated, replayed and exported."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rightarm.contexts import Features
from rightarm.errors import WrongValue
from rightarm.formula import check_number
from rightarm.logs.events import Specification
from rightarm.logs.log import UNKNOWN, Log, check_lengths, check_propensity, listed, log_of
from rightarm.scores.rewards import check_reward_range
from rightarm.types import F64, I64

Ends = tuple[float, float]

ANY = (-math.inf, math.inf)  # the range of rewards that have none
LEAST = 1e-100  # propensity: squares of weights are summed


class Contexts(NamedTuple):
    """The contexts of decisions, a row of numbers for each."""

    rows: F64
    names: list[str]
    """What the columns are called."""

    def keeping(self, kept: I64) -> Contexts:
        """Return some of the rows."""
        return Contexts(self.rows[kept], self.names)


class ArmFeatures(NamedTuple):
    """The features of the arms that each decision could choose: a table for each, with a row for each of its arms."""

    tables: list[F64]
    names: list[str]

    def keeping(self, kept: I64) -> ArmFeatures:
        """Return those of some decisions."""
        return ArmFeatures([self.tables[i] for i in kept.tolist()], self.names)


@dataclass(frozen=True)
class Rows:
    """The rows of a log that have a reward, in the order of decisions; an arm is its place in ``names``."""

    names: list[Any]
    arms: I64
    propensities: F64
    rewards: F64
    among: list[I64] | None
    """The arms that each row could choose, or None if the log does not say it of every row."""
    left_out: int
    """How many rows of the log are not here."""
    places: I64
    """The place of each row in the log."""
    contexts: Contexts | None = None
    """The context of each row, or None if the log does not have that of every row."""
    arm_features: ArmFeatures | None = None
    """The features of the arms that each row could choose, or None likewise."""
    ids: list[Any] | None = None
    """The id of each row's decision, or None if the log has none."""
    ordered: bool = False
    """Whether the caller knows the order of ``names``: it was given, or they are 0, 1, 2 and so on."""
    open_windows: int = 0
    """How many of the rows that are not here have an open window of reward; the others have no reward."""
    reward_range: Ends = ANY
    """What rewards could be: as given, or as the log says, or 0 to 1."""
    floor: float | None = None
    """The propensity that no arm could fall below, as given or as the log says; None if neither does."""
    default: float | None = None
    """The reward that silence gets when a window closes, if the log says one."""

    @property
    def scaled(self) -> F64:
        """Return the rewards in units of their range, from 0 to 1."""
        low, high = self.reward_range
        return (self.rewards - low) / (high - low)

    def check_floor(self, floor: float) -> float:
        """Return ``floor`` if no propensity of the log is below it."""
        check_propensity("floor", floor)
        least = float(self.propensities.min())
        if least < floor * (1 - 1e-9):
            raise WrongValue("floor", f"must be at most every propensity, got {floor} and {least} in the log")
        return floor

    def check_weights(self) -> None:
        """Raise if a propensity is so small that the square of its weight is no number."""
        row = int(np.argmin(self.propensities))
        least = float(self.propensities[row])
        if least < LEAST:
            arm = self.names[self.arms[row]]
            raise WrongValue("propensity", f"must be at least {LEAST:g}, got {least} for arm {arm!r}")

    @functools.cached_property
    def every(self) -> I64:
        """Return all arms."""
        return np.arange(len(self.names))

    def available(self, row: int) -> I64:
        """Return the arms that a row could choose."""
        return self.every if self.among is None else self.among[row]


def read_rows(
    log: Any,
    arms: Iterable[Any] | None = None,
    *,
    reward_range: Ends | None = None,
    missing: float | None = None,
    floor: float | None = None,
    features: Features | None = None,
) -> Rows:
    """Return the rows of a log that have a reward, checked.

    ``log`` is a path, a `Log`, a frame such as `read_log` gives, or a mapping of columns ``arm``, ``propensity``,
    ``reward`` and perhaps ``among``, the arms that each row could choose, ``context`` and ``arm_features``. ``arms``
    names all arms, if the log does not show them all; ``missing`` is the reward of rows that have none, which are left
    out without it. Rows with an open window of reward (``open_window``) are left out in any case. ``reward_range`` and
    ``floor`` are those of the log's bandit where they are not given. ``features`` encode contexts that are not numbers
    yet.
    """
    log = log_of(log)
    limits = declared_range(log, reward_range)
    rewards, kept = _rewards(log, missing)
    _check_propensities(log, kept)
    _check_range(rewards, kept, limits)
    knows_lists = not (log.among == UNKNOWN).any()
    used = np.unique(log.among) if knows_lists else np.empty(0, dtype=np.int64)
    found = {*np.unique(log.arms).tolist(), *(arm for i in used.tolist() for arm in log.lists[i])}
    names = _names({log.names[i] for i in found}, arms)
    place = {name: i for i, name in enumerate(names)}
    places = np.array([place.get(name, UNKNOWN) for name in log.names], dtype=np.int64)
    contexts, of_arms = _features(log, names, arms is not None, features)
    return Rows(
        names=names,
        arms=places[log.arms[kept]],
        propensities=log.propensities[kept],
        rewards=rewards[kept],
        among=_numbered(log, kept, places) if knows_lists else None,
        left_out=log.arms.size - kept.size,
        places=kept,
        contexts=contexts if contexts is None else contexts.keeping(kept),
        arm_features=of_arms if of_arms is None else of_arms.keeping(kept),
        ids=None if log.ids is None else [log.ids[i] for i in kept.tolist()],
        ordered=arms is not None or names == list(range(len(names))),
        open_windows=0 if log.open is None else int(log.open.sum()),
        reward_range=limits,
        floor=log.floor or None if floor is None else floor,
        default=log.settings.default,
    )


def declared_range(log: Log, reward_range: Ends | None) -> Ends:
    """Return the range of rewards that is given, or that of the log's bandit, or 0 to 1."""
    if reward_range == ANY:
        return ANY
    own = log.reward_range or (0.0, 1.0)
    return check_reward_range(own if reward_range is None else reward_range)


def _rewards(log: Log, missing: float | None) -> tuple[F64, I64]:
    """Return all rewards, and which count: those that are there or have been filled in, and are not still open."""
    rewards = log.rewards.copy()
    still_open = np.zeros(rewards.size, dtype=bool) if log.open is None else log.open
    if missing is not None:
        rewards[np.isnan(rewards)] = check_number("missing", missing)
    kept = np.flatnonzero(~np.isnan(rewards) & ~still_open)
    if not kept.size:
        waits = f", of which {still_open.sum():,} have an open window of reward" if still_open.any() else ""
        raise ValueError(f"log must have rows with rewards, got {rewards.size} rows without{waits}")
    return rewards, kept


def _check_propensities(log: Log, kept: I64) -> None:
    right = (log.propensities[kept] > 0) & (log.propensities[kept] <= 1)
    for row in kept[~right][:1].tolist():
        check_propensity(f"propensity of row {row + 1}", float(log.propensities[row]))


def _check_range(rewards: F64, kept: I64, reward_range: Ends) -> None:
    low, high = reward_range
    outside = kept[(rewards[kept] < low) | (rewards[kept] > high) | np.isinf(rewards[kept])]
    if outside.size:
        row = outside[0]
        raise ValueError(
            f"reward must be from {low} to {high}, see reward_range, got {rewards[row]} in row {row + 1}; "
            "if rewards can be that, give reward_range=(low, high), or --range low high"
        )


def _names(found: set[Any], arms: Iterable[Any] | None) -> list[Any]:
    """Return the names of all arms, in the order given, or sorted.

    Not in the order in which the log shows them: that would tell a policy that begins with the first arm that it does
    not know which arm comes next.
    """
    if arms is None:
        return sorted(found, key=lambda arm: (isinstance(arm, str), arm))
    names = list(dict.fromkeys(arms))
    unknown = sorted(found - set(names), key=str)
    if unknown:
        raise ValueError(f"arms must include every arm of the log, got {names} without {unknown[0]!r}")
    return names


def _numbered(log: Log, kept: I64, places: I64) -> list[I64]:
    """Return the arms that each row could choose, by number and in order; rows with the same arms share one array."""
    log.check_lists(kept)
    numbers = [np.sort(places[list(one)]) for one in log.lists]
    return [numbers[i] for i in log.among[kept].tolist()]


def _features(
    log: Log, names: list[Any], is_given: bool, features: Features | None
) -> tuple[Contexts | None, ArmFeatures | None]:
    """Return the contexts of all decisions and the features of their arms, None where the log lacks some."""
    own, own_of_arms = features_of(log.policy)
    contexts = context_columns(log.more, log.arms.size, features, own)
    if "arm_features" not in log.more:
        return contexts, None
    lists: Any = log.chosen_from
    if None in lists:
        lists = [tuple(names)] * log.arms.size if is_given else None
    place = {name: i for i, name in enumerate(names)}
    return contexts, arm_columns(log.more, lists, place, own_of_arms)


# Contexts.


def context_columns(
    log: Mapping[str, Any], length: int, features: Features | None, own: Features | None
) -> Contexts | None:
    """Return the column ``context`` of a log, None if a decision has no context.

    It has rows of numbers, which are encoded already, mappings, or is a frame or a mapping of columns itself. What is
    named is encoded by ``features``, or is numbers. ``own`` are the features that the log says it has.
    """
    if "context" not in log:
        return None
    column = log["context"]
    if isinstance(column, np.ndarray) and column.ndim == 2 and column.dtype.kind in "biuf":
        found = _encoded(column.astype(float), own, features)
    elif isinstance(column, Mapping) or hasattr(type(column), "columns"):
        found = _by_name(column, list(getattr(column, "columns", column)), features)
    else:
        rows = listed(column)
        if any(row is None for row in rows):
            return None
        named = bool(rows) and all(isinstance(row, Mapping) for row in rows)
        found = _by_name(rows, list(rows[0]), features) if named else _encoded(_table(rows), own, features)
    check_lengths([length, len(found.rows)])
    return found


def _by_name(contexts: Any, names: list[str], features: Features | None) -> Contexts:
    """Encode contexts whose features are named; without features they are numbers."""
    known = features or Features.accept("context", names)
    return Contexts(known.encode_many(contexts), known.names)


def _encoded(table: F64, *known: Features | None) -> Contexts:
    """Take contexts that are numbers already, with the names of the features that are known."""
    wrong = ~np.isfinite(table).all(axis=1)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(f"context must be finite numbers, got {table[i].tolist()!r:.80} in row {i + 1}")
    return Contexts(table, column_names(table.shape[1], *known))


def column_names(size: int, *known: Features | None) -> list[str]:
    """Return the names of so many columns, by the first features that have as many."""
    plain = Features.accept("context", size)
    return next(one.names for one in (*known, plain) if one is not None and one.size == size)


def _table(rows: list[Any]) -> F64:
    """Return rows of numbers as an array."""
    for i, row in enumerate(rows):
        if not hasattr(row, "__len__") or isinstance(row, str | Mapping):
            raise TypeError(f"context must be a row of numbers or a mapping, got {row!r:.80} in row {i + 1}")
        if len(row) != len(rows[0]):
            raise ValueError(
                f"context must have as many numbers in every row, got {len(rows[0])} in row 1 and {len(row)} in row "
                f"{i + 1}; a log without the column context is evaluated without contexts"
            )
    try:
        return np.array(rows, dtype=float).reshape(len(rows), -1)
    except (TypeError, ValueError):
        text = "context must be numbers; Features.encode_many makes numbers of other values"
        raise TypeError(f"{text}, got {rows[0]!r:.80} in row 1") from None


# Features of arms.


def arm_columns(
    log: Mapping[str, Any], arms: list[tuple[Any, ...]] | None, place: Mapping[Any, int], own: Features | None
) -> ArmFeatures | None:
    """Return the column ``arm_features`` of a log, None if a decision has none: arms in the order of their numbers.

    ``arms`` has the arms of each decision in the order in which the log gives their features.
    """
    rows = listed(log["arm_features"]) if "arm_features" in log else [None]
    if any(row is None for row in rows):
        return None
    if arms is None:
        raise ValueError("arm_features need the column among, or arms, which say whose features they are")
    check_lengths([len(arms), len(rows)])
    orders = {some: np.argsort([place[arm] for arm in some]) for some in set(arms)}
    tables = list[F64]()
    size: int | None = None
    for i, (row, some) in enumerate(zip(rows, arms, strict=True)):
        table = _arm_table(row)
        size = table.shape[-1] if size is None else size
        if table.shape != (len(some), size) or not np.isfinite(table).all():
            raise ValueError(
                f"arm_features must be finite numbers, as many for every arm, got {row!r:.80} in row {i + 1}"
            )
        tables.append(table[orders[some]])
    return ArmFeatures(tables, column_names(size or 0, own))


def _arm_table(row: Any) -> F64:
    try:
        return np.array(row, dtype=float)
    except (TypeError, ValueError):  # a list that is uneven, or not of numbers
        return np.full((1, 1), np.nan)


def features_of(policy: Specification | None) -> tuple[Features | None, Features | None]:
    """Return the features of contexts and those of arms that a policy looks at, None where it looks at none."""
    given: Any = policy
    for name in ("parameters", "estimator", "parameters"):
        given = given.get(name) if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or "features" not in given:
        return None, None
    arms = given.get("arm_features")
    context = Features.accept("features", given["features"])
    return context, None if arms is None else Features.accept("arm_features", arms)
