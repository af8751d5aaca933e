"""Parts of a bandit's state as JSON has them, and back, with a look at each; and as text."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from rightarm.formula import check_number, difference, from_specification, present
from rightarm.live.arms import shortened
from rightarm.scores.policy import Policy
from rightarm.text import number, table, wrapped


def check_floor(floor: Any) -> float:
    """``floor`` as a probability."""
    number = check_number("floor", floor)
    if not 0 <= number <= 1:
        raise ValueError(f"floor must be from 0 to 1, got {number}")
    return number


def listed(name: str, value: Any) -> list[Any]:
    """``value``, if it is a list."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, got {value!r:.60}")
    return value


def flag(value: Any) -> bool:
    """``value``, if it is true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"active must be true or false, got {value!r}")
    return value


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


def policy_from(specification: Mapping[str, Any]) -> Policy:
    """The policy that a text describes; nothing is imported for it."""
    found = from_specification(specification, present)
    if not isinstance(found, Policy):
        raise ValueError(f"policy must describe a policy, got {specification['formula']!r}")
    return found


def check_same_policy(policy: Policy, specification: Any) -> None:
    """Raise if a policy is not the one described; where its formulas stand does not matter, what they say does."""
    differing = difference(policy, specification)
    if differing is not None:
        what = {"formula": "formula differs", "parameters": "parameters differ"}[differing]
        wanted = specification["formula"]
        raise ValueError(f"policy must be the one of the state, {wanted}, got {policy!r}, whose {what}")


def as_text(head: str, rows: list[dict[str, Any]]) -> str:
    """`Bandit.table` for the eye."""
    titles = ["arm", "pulls", "estimate", "95% interval", "share", "probability", ""]
    lines = [
        [
            shortened(row["arm"], 40),
            number(row["pulls"], 6),
            number(row["estimate"]),
            "" if row["low"] is None else f"{number(row['low'])} to {number(row['high'])}",
            f"{row['share']:.3f}",
            number(row["probability"]),
            "retired" if row["retired"] else "",
        ]
        for row in rows
    ]
    return f"{wrapped(head)}\n{table(titles, lines)}"
