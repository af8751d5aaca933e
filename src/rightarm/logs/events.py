"""What an event of a log is, and which fields it has.

A log is a sequence of events, each a mapping with the name of its kind under ``event``:

- ``decision``: an arm was chosen. Its id, the arm, its propensity, the round and the version of the bandit's state, the
  time. Where it applies: ``among``, the arms to choose from if these were not all active ones; ``unit``, whom the
  decision was made for; ``group``, such as "holdout"; ``meta``, a JSON object of the user's own; ``context``, as
  numbers, and ``arm_features``, those of each arm that could be chosen; ``error``, by how much the propensity may
  differ from the policy's own probability.
- ``reward``: the reward of a decision came. With ``part`` the decision goes on waiting, and ``reward`` is what it has
  so far. ``cancel``: a decision will have no reward.
- ``expiry``: the time in which the decisions ``ids`` could be rewarded is over. With ``reward`` they all get that one,
  otherwise each keeps what it has.
- ``correction``: the reward of a decision that was rewarded, cancelled or expired is this one from now on.
- ``observation``: a reward of an arm that belongs to no decision.
- ``arms``: from now on these arms can be chosen; those not seen before are new, those left out are retired.
  ``reason`` says why, ``prior`` what new ones start from.
- ``policy``: from now on another policy decides. ``before`` and ``after`` are specifications of policies.
- ``settings``: how the bandit that writes the log is set up, a JSON object.
- ``late``: a reward came after its time, and is not learned.
- ``status``: from now on the bandit is "running", "paused" (it learns, but decides nothing) or "archived".

Where people change a bandit of a service, ``by`` says who it was.

Times are seconds since 1970. Which events can follow which is said in `rightarm.logs.order`, how they stand in a file
in `rightarm.logs.lines`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from rightarm.formula import check_number

Arm = str | int | float | bool
Event = dict[str, Any]
Check = Callable[[str, Any], Any]

LARGEST_WHOLE = 2**63 - 1  # the largest whole number of Parquet and Polars
END_OF_TIME = 253_402_300_800.0  # seconds since 1970, at the end of the year 9999
LARGEST_META, LARGEST_SETTINGS, LARGEST_PRIOR = 10_000, 100_000, 10_000_000  # bytes of JSON

# The fields of an event.


def check_text(name: str, value: Any) -> str:
    """Return ``value`` if it is a text that can be written to a file: half of a surrogate pair cannot."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {value!r}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{name} must be a text that UTF-8 can encode, got {value!a:.200}") from None
    return value


def check_arm_name(name: str, value: Any) -> Arm:
    """Return ``value`` if a log can keep it as an arm's name."""
    if isinstance(value, str):
        return check_text(name, value)
    if not isinstance(value, int | float | bool):
        raise TypeError(f"{name} must be a text, a number, true or false, got {value!r}")
    if (isinstance(value, int) and abs(value) > LARGEST_WHOLE) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise ValueError(f"{name} must be a finite number of at most 64 bits, got {value}")
    return value


def check_finite(name: str, value: Any) -> float:
    """Return ``value`` as a float if it is a finite number."""
    return value if type(value) is float and math.isfinite(value) else check_number(name, value)  # most are: it is fast


def check_propensity(name: str, value: Any) -> float:
    """Return ``value`` if it is a probability with which an arm can have been chosen."""
    number = check_finite(name, value)
    if not 0 < number <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {number}")
    return number


def check_whole(name: str, value: Any) -> int:
    """Return ``value`` if it is a whole number of at most 63 bits."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_WHOLE:
        raise ValueError(f"{name} must be a whole number from 0 to {LARGEST_WHOLE}, got {value!r}")
    return value


def check_time(name: str, value: Any) -> float:
    """Return ``value`` if it is a moment before the year 10000."""
    number = check_finite(name, value)
    if not 0 <= number < END_OF_TIME:
        raise ValueError(f"{name} must be in seconds since 1970, before the year 10000, got {number}")
    return number


def _arms(name: str, value: Any) -> list[Arm]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a list of arms, got {value!r}")
    arms = [check_arm_name(f"{name}[{i}]", arm) for i, arm in enumerate(value)]
    if len(set(map(_key, arms))) < len(arms):
        raise ValueError(f"{name} must have every arm once, got {arms!r:.200}")
    return arms


def _some_arms(name: str, value: Any) -> list[Arm]:
    if not value:
        raise TypeError(f"{name} must be a list of arms, got {value!r}")
    return _arms(name, value)


def _key(arm: Arm) -> tuple[bool, Arm]:
    return isinstance(arm, bool), arm  # True equals 1, but is another name


def _ids(name: str, value: Any) -> list[int]:
    if not isinstance(value, list | tuple) or not value:
        raise TypeError(f"{name} must be a list of ids, got {value!r:.200}")
    numbers = [check_whole(f"{name}[{i}]", number) for i, number in enumerate(value)]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{name} must differ, got {numbers!r:.200}")
    return numbers


def _numbers(name: str, value: Any) -> list[float]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a list of numbers, got {value!r:.200}")
    if set(map(type, value)) == {float} and math.isfinite(sum(value)):  # no sum is finite of which a part is not
        return list(value)
    return [check_finite(f"{name}[{i}]", number) for i, number in enumerate(value)]


def _rows(name: str, value: Any) -> list[list[float]]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a list with the numbers of each arm, got {value!r:.200}")
    return [_numbers(f"{name}[{i}]", row) for i, row in enumerate(value)]


def _unit(name: str, value: Any) -> str | int:
    return check_text(name, value) if isinstance(value, str) else check_whole(name, value)


def _true(name: str, value: Any) -> bool:
    if value is not True:
        raise ValueError(f"{name} must be true where it is given, got {value!r}")
    return True


def _specification(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be the specification of a policy, got {value!r:.200}")
    _encoded(name, value)
    return value


def _encoded(name: str, value: Any) -> bytes:
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:  # a set, NaN, half a surrogate pair, a list in itself
        raise ValueError(f"{name} must be JSON, got {value!a:.200}: {error}") from None


def _json(largest: int, *kinds: type) -> Check:
    """A check for JSON of a bounded size."""

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(
                f"{name} must be a JSON {' or '.join(JSON_NAMES[kind] for kind in kinds)}, got {value!r:.200}"
            )
        text = _encoded(name, value)
        if len(text) > largest:
            raise ValueError(f"{name} must be at most {largest:,} bytes of JSON, got {len(text):,}")
        if json.loads(text) != value:  # a tuple, or a number for a key
            raise ValueError(f"{name} must be JSON, with texts for keys and lists for sequences, got {value!r:.200}")
        return value

    return check


JSON_NAMES: dict[type, str] = {dict: "object", list: "list"}
_META, _SETTINGS, _MORE = _json(LARGEST_META, dict), _json(LARGEST_SETTINGS, dict), _json(LARGEST_PRIOR, dict, list)

CHECKS: dict[str, dict[str, Check]] = {
    "decision": {
        "id": check_whole,
        "arm": check_arm_name,
        "propensity": check_propensity,
        "round": check_whole,
        "version": check_whole,
        "time": check_time,
        "among": _some_arms,
        "unit": _unit,
        "group": check_text,
        "meta": _META,
        "context": _numbers,
        "arm_features": _rows,
        "error": check_finite,
    },
    "reward": {"id": check_whole, "reward": check_finite, "time": check_time, "part": _true},
    "cancel": {"id": check_whole, "time": check_time},
    "expiry": {"ids": _ids, "time": check_time, "reward": check_finite},
    "correction": {"id": check_whole, "reward": check_finite, "time": check_time},
    "observation": {
        "arm": check_arm_name,
        "reward": check_finite,
        "time": check_time,
        "context": _numbers,
        "arm_features": _rows,
    },
    "arms": {"arms": _arms, "time": check_time, "reason": check_text, "prior": _MORE, "by": check_text},
    "policy": {"before": _specification, "after": _specification, "time": check_time, "by": check_text},
    "settings": {"settings": _SETTINGS, "time": check_time, "by": check_text},
    "late": {"id": check_whole, "reward": check_finite, "time": check_time},
    "status": {"status": check_text, "time": check_time, "by": check_text},
}
OPTIONAL = {  # fields that an event may leave out
    "decision": {"among", "unit", "group", "meta", "context", "arm_features", "error"},
    "observation": {"context", "arm_features"},
    "reward": {"part"},
    "expiry": {"reward"},
    "arms": {"reason", "prior", "by"},
    "policy": {"by"},
    "settings": {"by"},
    "status": {"by"},
}
REQUIRED = {kind: checks.keys() - OPTIONAL.get(kind, set()) for kind, checks in CHECKS.items()}


def checked(event: Any) -> Event:
    """Return the event with the fields of its kind, or raise an error that names the field that is wrong."""
    kind = event.get("event") if isinstance(event, dict) else None
    if not isinstance(kind, str) or kind not in CHECKS:
        raise ValueError(f"an event must be one of {', '.join(CHECKS)}, got {event!r:.200}")
    checks = CHECKS[kind]
    if not REQUIRED[kind] <= event.keys():
        raise ValueError(f"the {kind} lacks {', '.join(sorted(REQUIRED[kind] - event.keys()))}, got {event!r:.200}")
    read = {name: check(name, event[name]) for name, check in checks.items() if name in event}
    if "among" in read:
        check_among(read["arm"], read["among"])
    return {"event": kind, **read}


def check_among(arm: Arm, among: list[Arm]) -> None:
    """Raise if an arm is not among those that could be chosen."""
    if _key(arm) not in map(_key, among):
        raise ValueError(f"arm must be among {among}, got {arm!r}")


def ids_of(event: Event) -> Iterable[int]:
    """The decisions that an event is about."""
    return event["ids"] if event["event"] == "expiry" else (event["id"],) if "id" in event else ()


# Events that answer a decision.


def answer_event(id: int, reward: float | None, time: float) -> Event:
    """The event that closes a decision: its reward, or that there will be none."""
    if reward is None:
        return {"event": "cancel", "id": id, "time": time}
    return {"event": "reward", "id": id, "reward": reward, "time": time}
