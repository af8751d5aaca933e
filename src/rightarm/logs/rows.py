"""The decisions of a log that have a reward: what is evaluated, replayed and exported."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rightarm.contexts import Features
from rightarm.formula import check_number
from rightarm.logs.contexts import ArmFeatures, Contexts, arm_columns, context_columns, features_of
from rightarm.logs.log import UNKNOWN, Log, check_propensity, log_of
from rightarm.types import F64, I64

ANY = (-math.inf, math.inf)  # the range of rewards that have none


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

    @functools.cached_property
    def every(self) -> I64:
        """All arms."""
        return np.arange(len(self.names))

    def available(self, row: int) -> I64:
        """Return the arms that a row could choose."""
        return self.every if self.among is None else self.among[row]


def read_rows(
    log: Any,
    arms: Iterable[Any] | None = None,
    reward_range: tuple[float, float] = ANY,
    missing: float | None = None,
    features: Features | None = None,
) -> Rows:
    """Return the rows of a log that have a reward, checked.

    ``log`` is a path, a `Log`, a frame such as `read_log` gives, or a mapping of columns ``arm``, ``propensity``,
    ``reward`` and perhaps ``among``, the arms that each row could choose, ``context`` and ``arm_features``. ``arms``
    names all arms, if the log does not show them all; ``missing`` is the reward of rows that have none, which are left
    out without it. Rows with an open window of reward (``open_window``) are left out in any case.
    ``features`` encode contexts that are not numbers yet.
    """
    log = log_of(log)
    rewards, kept = _rewards(log, missing)
    _check_propensities(log, kept)
    _check_range(rewards, kept, reward_range)
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
    )


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


def _check_range(rewards: F64, kept: I64, reward_range: tuple[float, float]) -> None:
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
