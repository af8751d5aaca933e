"""Names of arms: which can be one, and how JSON has them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np


def hashable_name(arm: Hashable) -> Hashable:
    """An arm's name, if it can be one."""
    if not isinstance(arm, Hashable):
        raise TypeError(f"arm must be hashable, got {arm!r}")
    return arm.item() if isinstance(arm, np.generic) else arm  # a number that JSON and logs know


def distinct(arms: Iterable[Hashable]) -> list[Hashable]:
    """The names of arms, if they differ."""
    names: dict[Hashable, None] = {}
    for name in map(hashable_name, arms):
        if name in names:
            raise ValueError(f"arms must differ, got {name!r} again")
        names[name] = None
    return list(names)


def plain_name(name: Hashable) -> Any:
    """An arm's name as JSON has it; a tuple is told from a list."""
    if isinstance(name, tuple):
        return {"tuple": [plain_name(part) for part in name]}
    if name is None or isinstance(name, str | int | float | bool):
        return name
    raise TypeError(f"to_json keeps arms that are text, numbers or tuples of them, got {name!r}")


def name_from(plain: Any) -> Hashable:
    """An arm's name, from what JSON has for it."""
    if isinstance(plain, dict):
        return tuple(name_from(part) for part in plain["tuple"])
    if isinstance(plain, float) and not math.isfinite(plain):
        raise ValueError(f"arms must be finite if they are numbers, got {plain}")
    if plain is None or isinstance(plain, str | int | float | bool):
        return plain
    raise ValueError(f"arms must be text, numbers or tuples of them, got {plain!r}")


def listed(name: str, value: Any) -> list[Any]:
    """Return ``value`` if it is a list."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, got {value!r:.60}")
    return value
