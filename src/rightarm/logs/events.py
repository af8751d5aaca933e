"""What an event of a log is, and which events can follow which.

A log is a sequence of events, each a mapping with the name of its kind under ``event``:

- ``decision``: an arm was chosen. Its id, the arm, its propensity, the round and the version of the bandit's state, the
  time, and ``among``, the arms to choose from where these were not all active ones.
- ``reward``: the reward of a decision came. ``cancel``: a decision will have no reward.
- ``observation``: a reward of an arm that belongs to no decision.
- ``arms``: from now on these arms can be chosen; those not seen before are new, those left out are retired.
- ``policy``: from now on another policy decides. ``before`` and ``after`` are specifications of policies.

Times are seconds since 1970.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from rightarm.formula import check_number

Arm = str | int | float | bool
Event = dict[str, Any]

LARGEST_WHOLE = 2**63 - 1  # the largest whole number of Parquet and Polars
END_OF_TIME = 253_402_300_800.0  # seconds since 1970, at the end of the year 9999
OPTIONAL = {"among"}  # fields that an event may leave out

_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def as_line(event: Event) -> str:
    """An event as a line of JSON."""
    return _ENCODER.encode(event) + "\n"


# The fields of an event.


def check_arm_name(name: str, value: Any) -> Arm:
    """Return ``value`` if a log can keep it as an arm's name."""
    if not isinstance(value, str | int | float | bool):
        raise TypeError(f"{name} must be a text, a number, true or false, got {value!r}")
    if (isinstance(value, int) and abs(value) > LARGEST_WHOLE) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise ValueError(f"{name} must be a finite number of at most 64 bits, got {value}")
    return value


def check_propensity(name: str, value: Any) -> float:
    """Return ``value`` if it is a probability with which an arm can have been chosen."""
    number = check_number(name, value)
    if not 0 < number <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {number}")
    return number


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_WHOLE:
        raise ValueError(f"{name} must be a whole number from 0 to {LARGEST_WHOLE}, got {value!r}")
    return value


def _arms(name: str, value: Any) -> list[Arm]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a list of arms, got {value!r}")
    return [check_arm_name(f"{name}[{i}]", arm) for i, arm in enumerate(value)]


def _some_arms(name: str, value: Any) -> list[Arm]:
    if not value:
        raise TypeError(f"{name} must be a list of arms, got {value!r}")
    return _arms(name, value)


def _time(name: str, value: Any) -> float:
    number = check_number(name, value)
    if not 0 <= number < END_OF_TIME:
        raise ValueError(f"{name} must be in seconds since 1970, before the year 10000, got {number}")
    return number


def _specification(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be the specification of a policy, got {value!r:.200}")
    return value


CHECKS: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "decision": {
        "id": _whole,
        "arm": check_arm_name,
        "propensity": check_propensity,
        "round": _whole,
        "version": _whole,
        "time": _time,
        "among": _some_arms,
    },
    "reward": {"id": _whole, "reward": check_number, "time": _time},
    "cancel": {"id": _whole, "time": _time},
    "observation": {"arm": check_arm_name, "reward": check_number, "time": _time},
    "arms": {"arms": _arms, "time": _time},
    "policy": {"before": _specification, "after": _specification, "time": _time},
}


def checked(event: Any) -> Event:
    """Return the event with the fields of its kind, or raise an error that names the field that is wrong."""
    if not isinstance(event, dict) or event.get("event") not in CHECKS:
        raise ValueError(f"an event must be one of {', '.join(CHECKS)}, got {event!r:.200}")
    checks = CHECKS[event["event"]]
    missing = checks.keys() - event.keys() - OPTIONAL
    if missing:
        raise ValueError(f"the {event['event']} lacks {', '.join(sorted(missing))}, got {event!r:.200}")
    read = {name: check(name, event[name]) for name, check in checks.items() if name in event}
    if "among" in read and not any(_same(read["arm"], arm) for arm in read["among"]):
        raise ValueError(f"arm must be among {read['among']}, got {read['arm']!r}")
    return {"event": event["event"], **read}


def _same(one: Arm, other: Arm) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)  # True equals 1, but is another name


# Events that answer a decision.


def answer_event(id: int, reward: float | None, time: float) -> Event:
    """The event that closes a decision: its reward, or that there will be none."""
    if reward is None:
        return {"event": "cancel", "id": id, "time": time}
    return {"event": "reward", "id": id, "reward": reward, "time": time}


# The order of events.


class WholeNumbers:
    """A set of whole numbers that needs no memory for those that follow each other."""

    def __init__(self) -> None:
        self.low = self.high = 0  # all n with low ≤ n < high are in the set
        self.others: set[int] = set()

    def __contains__(self, number: int) -> bool:
        return self.low <= number < self.high or number in self.others

    def add(self, number: int) -> None:
        """Put a number into the set."""
        if self.low == self.high and not self.others:
            self.low = self.high = number
        self.others.add(number)
        while self.high in self.others:
            self.others.remove(self.high)
            self.high += 1
        while self.low - 1 in self.others:
            self.low -= 1
            self.others.remove(self.low)


class EventOrder:
    """Checks that every id is decided once and answered at most once, event by event."""

    def __init__(self) -> None:
        self.decided, self.waiting = WholeNumbers(), set[int]()
        self.last_id: int | None = None
        self.events = 0

    def check(self, event: Event) -> None:
        """Raise if the event cannot follow those taken so far."""
        if "id" not in event:
            return
        number = event["id"]
        if event["event"] == "decision":
            if number in self.decided:
                raise ValueError(f"id must be a new one for every decision, got {number} again")
        elif number not in self.decided:
            raise ValueError(f"id must be that of a decision for a {event['event']}, got the unknown {number}")
        elif number not in self.waiting:
            raise ValueError(f"id must be that of a decision without a reward, got {number}, which is answered")

    def take(self, event: Event) -> None:
        """Check an event and count it."""
        self.check(event)
        self.events += 1
        if "id" not in event:
            return
        number = event["id"]
        if event["event"] == "decision":
            self.decided.add(number)
            self.waiting.add(number)
            self.last_id = number if self.last_id is None else max(number, self.last_id)
        else:
            self.waiting.remove(number)
