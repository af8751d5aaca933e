"""What the parameters of formulas may be, and the checks that say so in errors."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from rightarm.errors import WrongType, WrongValue


@dataclass(frozen=True)
class Rule:
    """What a parameter must be, beyond a finite number."""

    adjective: str
    holds: Callable[[float], bool]


Positive = Annotated[float, Rule("positive", lambda x: x > 0)]
NonNegative = Annotated[float, Rule("non-negative", lambda x: x >= 0)]
Probability = Annotated[float, Rule("between 0 and 1", lambda x: 0 <= x <= 1)]
WHOLE = Rule("a whole number", lambda x: x == int(x))
Count = Annotated[float, Rule("a whole number from 1 on", lambda x: x >= 1 and x == int(x))]


def check_number(name: str, value: Any, rule: Rule | None = None) -> float:
    """``value`` as a float, or an error that says which parameter it was and what it got."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | np.number):
        raise WrongType(name, f"must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of more than 308 digits
        number = math.inf
    if not math.isfinite(number):
        raise WrongValue(name, f"must be finite, got {number}", code="not_finite")
    if rule is not None and not rule.holds(number):
        raise WrongValue(name, f"must be {rule.adjective}, got {number}", code="out_of_range")
    return number


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """``value`` as an int of at least ``least``, and at most ``most``; 1e6 and 10**6 are the same to us."""
    number = check_number(name, value)
    if number != int(number) or number < least:
        raise WrongValue(name, f"must be a whole number of at least {least}, got {value!r}", code="out_of_range")
    if most is not None and number > most:
        raise WrongValue(name, f"must be at most {most:,}, got {value!r}", code="out_of_range")
    return int(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """``value`` if it is one of ``choices``, or an error that lists them."""
    if value not in choices:
        raise WrongValue(name, f"must be one of {', '.join(map(repr, choices))}, got {value!r}", code="unknown_choice")
    return str(value)


def rule_of(annotation: Any) -> Rule | None:
    """The rule in an annotation such as `Positive`."""
    return next((extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, Rule)), None)
