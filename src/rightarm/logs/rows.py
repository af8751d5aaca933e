"""The decisions of a log that have a reward, as arrays."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rightarm.contexts import Features
from rightarm.formula import check_number
from rightarm.logs.contexts import (
    ArmFeatures,
    Contexts,
    arm_columns,
    check_lengths,
    context_columns,
    features_of,
    listed,
)
from rightarm.logs.events import check_propensity
from rightarm.logs.reader import read_decisions
from rightarm.logs.windows import Flags
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
        """The arms that a row could choose."""
        return self.every if self.among is None else self.among[row]


def read_rows(
    log: Any,
    arms: Iterable[Any] | None = None,
    reward_range: tuple[float, float] = ANY,
    missing: float | None = None,
    features: Features | None = None,
) -> Rows:
    """The rows of a log that have a reward, checked.

    ``log`` is a path, a frame such as `read_log` gives, or a mapping of columns ``arm``, ``propensity``, ``reward`` and
    perhaps ``among``, the arms that each row could choose, ``context`` and ``arm_features``. ``arms`` names all arms,
    if the log does not show them all; ``missing`` is the reward of rows that have none, which are left out without it.
    Rows with an open window of reward (``open_window``) are left out in any case.
    ``features`` encode contexts that are not numbers yet.
    """
    is_path = isinstance(log, str | os.PathLike)
    log, policy = read_decisions(log) if is_path else (log, None)
    columns = _columns(log)
    chosen, among = columns["arm"], columns["among"]
    some = None if any(row is None for row in among) else [tuple(row) for row in among]
    names = _names({*chosen, *(arm for row in set(some or ()) for arm in row)}, arms)
    place = {name: i for i, name in enumerate(names)}
    still_open = np.array(columns["open_window"], dtype=bool)
    rewards, kept = _rewards(columns["reward"], missing, still_open)
    if not is_path:  # read_decisions has checked what is in a file
        for i in kept:
            check_propensity(f"propensity of row {i + 1}", columns["propensity"][i])
    _check_range(rewards, kept, reward_range)
    own = features_of(policy) if policy is not None and "context" in log else None
    contexts = context_columns(log, len(chosen), features, own and own[0])
    lists = [tuple(names)] * len(chosen) if some is None and arms is not None else some
    of_arms = arm_columns(log, lists, place, own and own[1])
    return Rows(
        names,
        np.array([place[chosen[i]] for i in kept], dtype=np.int64),
        np.array([columns["propensity"][i] for i in kept], dtype=float),
        rewards[kept],
        None if some is None else _numbered(some, chosen, kept, place),
        len(chosen) - kept.size,
        kept,
        contexts if contexts is None else contexts.keeping(kept),
        of_arms if of_arms is None else of_arms.keeping(kept),
        [columns["id"][i] for i in kept] if "id" in columns else None,
        arms is not None or names == list(range(len(names))),
        int(still_open.sum()),
    )


def _columns(log: Any) -> dict[str, list[Any]]:
    for name in ("arm", "propensity", "reward"):
        if name not in log:
            raise ValueError(f"log must have the columns arm, propensity and reward, got none called {name!r}")
    known = ("id", "arm", "propensity", "reward", "among", "open_window")
    columns = {name: listed(log[name]) for name in known if name in log}
    columns.setdefault("among", [None] * len(columns["arm"]))
    columns.setdefault("open_window", [False] * len(columns["arm"]))
    check_lengths([len(column) for column in columns.values()])
    return columns


def _rewards(column: list[Any], missing: float | None, still_open: Flags) -> tuple[F64, I64]:
    """All rewards, and which of them count: those that are there or have been filled in, and are not still open."""
    rewards = np.array([np.nan if reward is None else reward for reward in column], dtype=float)
    if missing is not None:
        rewards[np.isnan(rewards)] = check_number("missing", missing)
    kept = np.flatnonzero(~np.isnan(rewards) & ~still_open)
    if not kept.size:
        waits = f", of which {still_open.sum():,} have an open window of reward" if still_open.any() else ""
        raise ValueError(f"log must have rows with rewards, got {len(column)} rows without{waits}")
    return rewards, kept


def _numbered(among: list[tuple[Any, ...]], chosen: list[Any], kept: I64, place: dict[Any, int]) -> list[I64]:
    """The arms that each row could choose, by number and in order; rows with the same arms share one array."""
    numbers = {arms: np.array(sorted({place[arm] for arm in arms})) for arms in set(among)}
    for i in kept.tolist():
        if numbers[among[i]].size < len(among[i]) or chosen[i] not in among[i]:
            arms = list(among[i])
            raise ValueError(f"among must have the arm {chosen[i]!r} of row {i + 1} and every arm once, got {arms}")
    return [numbers[among[i]] for i in kept.tolist()]


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
    """The names of all arms, in the order given, or sorted.

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
