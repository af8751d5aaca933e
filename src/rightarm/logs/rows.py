"""The decisions of a log that have a reward, with their contexts: what is evaluated, replayed and exported."""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rightarm.errors import WrongValue
from rightarm.estimators.features import Features
from rightarm.formula import check_number
from rightarm.logs.events import Specification
from rightarm.logs.log import UNKNOWN, Log, LogLike, check_lengths, check_propensity, listed, log_of
from rightarm.policies.inputs import check_reward_range
from rightarm.types import F64, I64

Ends = tuple[float, float]

ANY = (-math.inf, math.inf)  # the range of rewards that have none
LEAST = 1e-100  # propensity: squares of weights are summed


class Contexts(NamedTuple):
    """The contexts of decisions, a row of numbers for each, and the names of the columns."""

    rows: F64
    names: list[str]


class ArmFeatures(NamedTuple):
    """The features of the arms that each decision could choose: a table for each, with a row for each of its arms."""

    tables: list[F64]
    names: list[str]


@dataclass(frozen=True)
class Rows:
    """The rows of a log that have a reward, in the order of decisions; an arm is its place in ``names``."""

    names: list[Hashable]
    arms: I64
    propensities: F64
    rewards: F64
    allowed: list[I64] | None  # the arms that each row could choose, or None if the log does not say it of every row
    left_out: int  # how many rows of the log are not here
    places: I64  # the place of each row in the log
    contexts: Contexts | None = None  # the context of each row, or None if the log does not have that of every row
    arm_features: ArmFeatures | None = None  # the features of the arms that each row could choose, or None likewise
    ids: list[Hashable] | None = None  # the id of each row's decision, or None if the log has none
    ordered: bool = False  # whether the caller can know the order of ``names``: given, or 0, 1, 2 and so on
    open_windows: int = 0  # how many rows are left out because their window of reward is open
    reward_range: Ends = ANY  # what rewards could be: as given, or as the log says, or 0 to 1
    floor: float | None = None  # the propensity that no arm could fall below, as given or as the log says
    default: float | None = None  # the reward that silence gets when a window closes, if the log says one

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
        return self.every if self.allowed is None else self.allowed[row]


def read_rows(
    log: LogLike,
    arms: Iterable[Hashable] | None = None,
    *,
    reward_range: Ends | None = None,
    missing: float | None = None,
    floor: float | None = None,
    features: Features | None = None,
) -> Rows:
    """Return the rows of a log that have a reward, checked.

    ``log`` is a path, a `Log`, a frame such as `read_log` gives, or a mapping of columns ``arm``, ``propensity``,
    ``reward`` and perhaps ``allowed``, the arms that each row could choose, ``context`` and ``arm_features``. ``arms``
    names all arms, if the log does not show them all; ``missing`` is the reward of rows that have none, which are left
    out without it. Rows with an open window of reward (``open_window``) are left out in any case. ``reward_range`` and
    ``floor`` are those of the log's bandit where they are not given. ``features`` encode contexts that are not numbers
    yet.
    """
    log = log_of(log)
    limits = declared_range(log, reward_range)
    rewards, used = _rewards(log, missing)
    log.check_propensities(used)
    _check_range(rewards, used, limits)
    has_lists = not (log.allowed == UNKNOWN).any()
    used_lists = np.unique(log.allowed) if has_lists else np.empty(0, dtype=np.int64)
    found = {*np.unique(log.arms).tolist(), *(arm for i in used_lists.tolist() for arm in log.lists[i])}
    names = _names({log.names[i] for i in found}, arms)
    place = {name: i for i, name in enumerate(names)}
    places = np.array([place.get(name, UNKNOWN) for name in log.names], dtype=np.int64)
    contexts, of_arms = _features(log, names, arms is not None, features)
    return Rows(
        names=names,
        arms=places[log.arms[used]],
        propensities=log.propensities[used],
        rewards=rewards[used],
        allowed=_numbered(log, used, places) if has_lists else None,
        left_out=log.arms.size - used.size,
        places=used,
        contexts=None if contexts is None else contexts._replace(rows=contexts.rows[used]),
        arm_features=None if of_arms is None else of_arms._replace(tables=[of_arms.tables[i] for i in used]),
        ids=None if log.ids is None else [log.ids[i] for i in used.tolist()],
        ordered=arms is not None or names == list(range(len(names))),
        open_windows=0 if log.open is None else int(log.open.sum()),
        reward_range=limits,
        floor=log.floor or None if floor is None else floor,
        default=log.settings.default_reward,
    )


def declared_range(log: Log, reward_range: Ends | None) -> Ends:
    """Return the range of rewards that is given, or that of the log's bandit, or 0 to 1."""
    if reward_range == ANY:
        return ANY
    if reward_range is None:
        reward_range = log.reward_range or (0.0, 1.0)
    return check_reward_range(reward_range)


def _rewards(log: Log, missing: float | None) -> tuple[F64, I64]:
    """Return all rewards, and which count: those that are there or have been filled in, and are not still open."""
    rewards = log.rewards.copy()
    still_open = np.zeros(rewards.size, dtype=bool) if log.open is None else log.open
    if missing is not None:
        rewards[np.isnan(rewards)] = check_number("missing", missing)
    used = np.flatnonzero(~np.isnan(rewards) & ~still_open)
    if not used.size:
        waits = f", of which {still_open.sum():,} have an open window of reward" if still_open.any() else ""
        raise ValueError(f"log must have rows with rewards, got {rewards.size} rows without{waits}")
    return rewards, used


def _check_range(rewards: F64, used: I64, reward_range: Ends) -> None:
    low, high = reward_range
    outside = used[(rewards[used] < low) | (rewards[used] > high) | np.isinf(rewards[used])]
    if outside.size:
        row = outside[0]
        raise ValueError(
            f"reward must be from {low} to {high}, see reward_range, got {rewards[row]} in row {row + 1}; "
            "if rewards can be that, give reward_range=(low, high), or --range low high"
        )


def _names(found: set[Hashable], arms: Iterable[Hashable] | None) -> list[Hashable]:
    """Return the names of all arms, in the order given, or sorted.

    Not in the order in which the log shows them: that would tell a policy that begins with the first arm that it does
    not know which arm comes next.
    """
    if arms is None:
        return sorted(found, key=_sort_key)
    names = list(dict.fromkeys(arms))
    unknown = sorted(found - set(names), key=str)
    if unknown:
        raise ValueError(f"arms must include every arm of the log, got {names} without {unknown[0]!r}")
    return names


def _sort_key(arm: Any) -> tuple[bool, Any]:
    """Return what arms are sorted by: numbers, then texts."""
    return isinstance(arm, str), arm


def _numbered(log: Log, used: I64, places: I64) -> list[I64]:
    """Return the arms that each row could choose, by number and in order; rows with the same arms share one array."""
    log.check_lists(used)
    numbers = [np.sort(places[list(one)]) for one in log.lists]
    return [numbers[i] for i in log.allowed[used].tolist()]


def _features(
    log: Log, names: list[Hashable], is_given: bool, features: Features | None
) -> tuple[Contexts | None, ArmFeatures | None]:
    """Return the contexts of all decisions and the features of their arms, None where the log lacks some."""
    context_features, arm_features = features_of(log.policy)
    contexts = None
    if "context" in log.more:
        contexts = _contexts(log.more["context"], features, context_features)
    if contexts is not None:
        check_lengths([log.arms.size, len(contexts.rows)])
    if "arm_features" not in log.more:
        return contexts, None
    lists = log.chosen_from
    if is_given and None in lists:
        lists = [tuple(names)] * log.arms.size
    return contexts, _arm_features(listed(log.more["arm_features"]), lists, names, arm_features)


# Contexts.


def _contexts(column: Any, features: Features | None, logged: Features | None) -> Contexts | None:
    """Return the column ``context`` of a log as numbers, None if a decision has no context.

    It has rows of numbers, which are encoded already, mappings, or is a frame or a mapping of columns itself. What is
    named is encoded by ``features``, or is numbers. ``logged`` are the features that the log says it has.
    """
    if isinstance(column, np.ndarray) and column.ndim == 2 and column.dtype.kind in "biuf":
        return _encoded(column.astype(float), logged, features)
    if isinstance(column, Mapping) or hasattr(type(column), "columns"):
        return _by_name(column, list(getattr(column, "columns", column)), features)
    rows = listed(column)
    if any(row is None for row in rows):
        return None
    if rows and all(isinstance(row, Mapping) for row in rows):
        return _by_name(rows, list(rows[0]), features)
    return _encoded(_table(rows), logged, features)


def _by_name(contexts: Any, names: list[str], features: Features | None) -> Contexts:
    """Encode contexts whose features are named; without features they are numbers."""
    encoder = features or Features.accept("context", names)
    return Contexts(encoder.encode_many(contexts), encoder.names)


def _encoded(table: F64, *candidates: Features | None) -> Contexts:
    """Return contexts that are numbers already, named by the first features that fit."""
    wrong = ~np.isfinite(table).all(axis=1)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ValueError(f"context must be finite numbers, got {table[i].tolist()!r:.80} in row {i + 1}")
    return Contexts(table, column_names(table.shape[1], *candidates))


def column_names(size: int, *candidates: Features | None) -> list[str]:
    """Return the names of so many columns, by the first features that have as many, or x0, x1 and so on."""
    plain = Features.accept("context", size)
    return next(one.names for one in (*candidates, plain) if one is not None and one.size == size)


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


def _arm_features(
    rows: list[Any], arms: Sequence[tuple[Hashable, ...] | None], names: list[Hashable], logged: Features | None
) -> ArmFeatures | None:
    """Return the features of arms of each decision, in the order of ``names``; None if a decision has none.

    ``arms`` has the arms of each decision in the order in which the log gives their features.
    """
    if any(row is None for row in rows):
        return None
    check_lengths([len(arms), len(rows)])
    place = {name: i for i, name in enumerate(names)}
    orders = dict[tuple[Hashable, ...], I64]()
    tables = list[F64]()
    for i, (row, some) in enumerate(zip(rows, arms, strict=True)):
        if some is None:
            raise ValueError("arm_features need the column allowed, or arms, which say whose features they are")
        if some not in orders:
            orders[some] = np.argsort([place[arm] for arm in some])
        table = _arm_table(row)
        size = (tables[0] if tables else table).shape[-1]
        if table.shape != (len(some), size) or not np.isfinite(table).all():
            raise ValueError(
                f"arm_features must be finite numbers, as many for every arm, got {row!r:.80} in row {i + 1}"
            )
        tables.append(table[orders[some]])
    return ArmFeatures(tables, column_names(tables[0].shape[-1] if tables else 0, logged))


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
