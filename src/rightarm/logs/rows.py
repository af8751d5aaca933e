"""The decisions of a log that have a reward, as arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rightarm.formula import check_number
from rightarm.logs.events import check_propensity
from rightarm.logs.reader import read_log
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
    """How many rows of the log have no reward."""

    @property
    def every(self) -> I64:
        """All arms."""
        return np.arange(len(self.names))


def read_rows(
    log: Any, arms: Iterable[Any] | None = None, reward_range: tuple[float, float] = ANY, missing: float | None = None
) -> Rows:
    """The rows of a log that have a reward, checked.

    ``log`` is a path, a frame such as `read_log` gives, or a mapping of columns ``arm``, ``propensity``, ``reward`` and
    perhaps ``among``, the arms that each row could choose. ``arms`` names all arms, if the log does not show them all;
    ``missing`` is the reward of rows that have none, which are left out without it.
    """
    is_path = isinstance(log, str | os.PathLike)
    columns = _columns(read_log(log) if is_path else log)
    chosen, among = columns["arm"], columns["among"]
    some = None if any(row is None for row in among) else [tuple(row) for row in among]
    names = _names({*chosen, *(arm for row in set(some or ()) for arm in row)}, arms)
    place = {name: i for i, name in enumerate(names)}
    rewards = np.array([np.nan if reward is None else reward for reward in columns["reward"]], dtype=float)
    if missing is not None:
        rewards[np.isnan(rewards)] = check_number("missing", missing)
    kept = np.flatnonzero(~np.isnan(rewards))
    if not kept.size:
        raise ValueError(f"log must have rows with rewards, got {len(chosen)} rows without")
    if not is_path:  # read_log has checked what is in a file
        for i in kept:
            check_propensity(f"propensity of row {i + 1}", columns["propensity"][i])
    _check_range(rewards, kept, reward_range)
    return Rows(
        names,
        np.array([place[chosen[i]] for i in kept], dtype=np.int64),
        np.array([columns["propensity"][i] for i in kept], dtype=float),
        rewards[kept],
        None if some is None else _numbered(some, chosen, kept, place),
        len(chosen) - kept.size,
    )


def _columns(log: Any) -> dict[str, list[Any]]:
    for name in ("arm", "propensity", "reward"):
        if name not in log:
            raise ValueError(f"log must have the columns arm, propensity and reward, got none called {name!r}")
    columns = {name: _listed(log[name]) for name in ("arm", "propensity", "reward", "among") if name in log}
    columns.setdefault("among", [None] * len(columns["arm"]))
    lengths = sorted({len(column) for column in columns.values()})
    if len(lengths) > 1:
        raise ValueError(f"the columns of a log must be of one length, got {lengths}")
    return columns


def _numbered(among: list[tuple[Any, ...]], chosen: list[Any], kept: I64, place: dict[Any, int]) -> list[I64]:
    """The arms that each row could choose, by number and in order; rows with the same arms share one array."""
    numbers = {arms: np.array(sorted({place[arm] for arm in arms})) for arms in set(among)}
    for i in kept.tolist():
        if numbers[among[i]].size < len(among[i]) or chosen[i] not in among[i]:
            arms = list(among[i])
            raise ValueError(f"among must have the arm {chosen[i]!r} of row {i + 1} and every arm once, got {arms}")
    return [numbers[among[i]] for i in kept.tolist()]


def _listed(column: Any) -> list[Any]:
    """A column as plain values, not as those of NumPy, Polars or pandas."""
    for method in ("to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def _check_range(rewards: F64, kept: I64, reward_range: tuple[float, float]) -> None:
    low, high = reward_range
    outside = kept[(rewards[kept] < low) | (rewards[kept] > high) | np.isinf(rewards[kept])]
    if outside.size:
        row = outside[0]
        raise ValueError(f"reward must be from {low} to {high}, see reward_range, got {rewards[row]} in row {row + 1}")


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
