"""Write the state of a live bandit as JSON, and read it back; every part is checked."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import msgspec

from rightarm.bandit.arms import check_reward
from rightarm.bandit.context_arms import StoredContext, arms_for
from rightarm.bandit.decide import check_meta
from rightarm.bandit.ledger import AnsweredDecision, AnyDecision, Ledger, PendingDecision, check_unit
from rightarm.bandit.state import FindPolicy, State
from rightarm.formula import check_count, check_number
from rightarm.logs.events import Decision
from rightarm.logs.journals import key_from
from rightarm.logs.settings import Settings, check_share

Json = dict[str, Any]
Row = list[Any]

FORMAT = "rightarm bandit"
FORMAT_VERSION = 4
LARGEST_ID = 2**62  # there is room for as many decisions again, and JSON's whole numbers end at 2^63


class Place(NamedTuple):
    """Up to where a log is part of a state."""

    log: str
    """The identity of the log."""
    events: int


class Saved(NamedTuple):
    """A state that was saved, up to where a log is part of it (None if it had none), and its key."""

    state: State
    place: Place | None
    key: int | None


def to_json(state: State, place: Place | None, key: int | None) -> str:
    """Return a state as text, with the number of events in the log that are part of it."""
    settings = state.settings.plain()
    plain = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "policy": state.arms.policy.specification(),
        "settings": settings | {"control": plain_name(state.settings.control)},
        "arms": [plain_name(name) for name in state.names],
        "active": state.active,
        "harmful": [plain_name(name) for name in state.names if name in state.harmful],
        "status": state.status,
        "least": [state.least_floor, state.least_even],
        "events": state.events,
        **_ledger(state.ledger),
        "log": None if place is None else list(place),
        "statistics": state.arms.to_json(),
        "key": None if key is None else f"{key:032x}",
    }
    return json.dumps(plain, allow_nan=False)


def from_json(text: str | bytes, find_policy: FindPolicy) -> Saved:
    """Return the state that a text describes."""
    try:
        plain = json.loads(text)
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise ValueError(f"this is not the state of a bandit: format must be {FORMAT!r}")
        if plain.get("version") != FORMAT_VERSION:
            what = f"version must be {FORMAT_VERSION}, got {plain.get('version')!r:.60}"
            raise ValueError(f"{what}: another version of rightarm saved this bandit")
        state = _restored(plain, find_policy)
        place = None
        if plain["log"] is not None:
            identity, events = _row("log", plain["log"], 2)
            place = Place(str(identity), check_count("log", events, least=0))
        key = None if plain["key"] is None else key_from(plain["key"])
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"this is not the state of a bandit: {type(error).__name__}: {error}") from None
    return Saved(state, place, key)


def _restored(plain: Json, find_policy: FindPolicy) -> State:
    policy = find_policy(plain["policy"])
    names = [name_from(name) for name in listed("arms", plain["arms"])]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"arms must be different names, at least one, got {names!r:.200}")
    settings = msgspec.convert(plain["settings"] | {"control": name_from(plain["settings"]["control"])}, Settings)
    state = State(find_policy)
    state.specification = plain["policy"]
    state.set_up(settings, arms_for(policy))
    state.ledger = _ledger_from(plain, names)
    state.add_arms(names)
    for pending in state.ledger.pending.values():
        state.ledger.pending_counts[pending.arm] += 1
    state.arms.restore(plain["statistics"])
    for rows in (state.ledger.pending, state.ledger.answered, state.ledger.observed):
        for one in rows.values():
            state.arms.check_context(one.context)
    state.active = [_flag(active) for active in listed("active", plain["active"])]
    if len(state.active) != len(names):
        raise ValueError(f"active must have one value for each of {len(names)} arms, got {len(state.active)}")
    state.check_settings()
    state.harmful = frozenset(name_from(name) for name in listed("harmful", plain["harmful"]))
    if plain["status"] not in ("running", "paused", "archived"):
        raise ValueError(f"status must be running, paused or archived, got {plain['status']!r:.60}")
    state.status = plain["status"]
    least_floor, least_even = _row("least", plain["least"], 2)
    state.least_floor = check_share("least", least_floor)
    state.least_even = check_share("least", least_even)
    state.events = check_count("events", plain["events"], least=0)
    if state.reward_range is not None and not state.means_are_within(*state.reward_range):
        means = state.lifetime()[1].tolist()
        raise ValueError(f"means must be in the range of rewards, {state.reward_range}, got {means}")
    return state


# The ledger.


def _ledger(ledger: Ledger) -> Json:
    """Return all decisions as plain lists."""
    observed = [[one.learned, one.arm, one.reward, *_context(one)] for one in ledger.observed.values()]
    pending = [[*_decision(one.decision, one.arm), one.so_far, *_context(one)] for one in ledger.pending.values()]
    units = [_decision(decision, None) for decision in ledger.units.values()]
    answered = [[number, *_answer(answer)] for number, answer in ledger.answers()]
    return {
        "first_id": ledger.first,
        "next_id": ledger.next_id,
        "pending": pending,
        "answered": answered,
        "units": units,
        "settled": [[arm, *ends] for arm, ends in ledger.settled.items()],
        "observed": observed,
    }


def _decision(decision: AnyDecision, arm: int | None) -> Row:
    """Return a decision as a list; its arm by number, or by name without one."""
    name = plain_name(decision.arm) if arm is None else arm
    counts = [decision.propensity, decision.round, decision.version]
    rest = [decision.time, decision.group, decision.unit, decision.error]
    allowed = None if decision.allowed is None else [plain_name(one) for one in decision.allowed]
    return [decision.id, name, *counts, *rest, allowed, decision.meta]


def _answer(answer: AnsweredDecision) -> Row:
    counts = [answer.reward, answer.arm, answer.learned, answer.propensity, answer.silent]
    context = None if answer.context is None else answer.context.to_json()
    return [*counts, answer.time, answer.late, context]


def _context(one: PendingDecision | AnsweredDecision) -> Row:
    """Return the context at the end of a row, if there is one."""
    return [] if one.context is None else [one.context.to_json()]


def _ledger_from(plain: Json, names: Sequence[Hashable]) -> Ledger:
    """Return the ledger that a saved bandit had, after a look at all of it; ``names`` are those of the arms."""
    ledger = Ledger(check_count("first_id", plain["first_id"], most=LARGEST_ID))
    ledger.next_id = check_count("next_id", plain["next_id"], least=ledger.first, most=LARGEST_ID)
    for row in _rows(plain, "pending", 12, 13):
        *decision, so_far, context = row if len(row) == 13 else [*row, None]
        _check_new(ledger, decision[0])
        arm = _arm_number(decision[1], len(names))
        made = _decision_from(decision, names[arm])
        reward = None if so_far is None else check_reward(so_far)
        ledger.pending[made.id] = PendingDecision(made, arm, reward, _context_from(context))
    for number, *answer in _rows(plain, "answered", 9):
        _check_new(ledger, number)
        ledger.remember(number, _answer_from(answer, len(names)))
    for arm, *ends in _rows(plain, "settled", 3):
        for end in ends:
            ledger.settle(_arm_number(arm, len(names)), check_reward(end))
    for learned, arm, reward, *context in _rows(plain, "observed", 3, 4):
        ledger.observe(_answer_from([reward, arm, learned, 1.0, False, None, None, *(context or [None])], len(names)))
    for row in _rows(plain, "units", 11):
        name = name_from(row[1])
        if name not in names:
            raise ValueError(f"units must be decisions for known arms, got {row!r:.60}")
        made = _decision_from(row, name)
        if made.unit is None:
            raise ValueError(f"units must be decisions for a unit, got {row!r:.60}")
        pending = ledger.pending.get(made.id)
        ledger.units[made.unit] = made if pending is None else pending.decision
    return ledger


def _rows(plain: Json, name: str, *lengths: int) -> list[Row]:
    """Return the rows of that name, each of one of these lengths."""
    return [_row(name, row, *lengths) for row in listed(name, plain[name])]


def _row(name: str, row: object, *lengths: int) -> Row:
    if not isinstance(row, list) or len(row) not in lengths:
        expected = " or ".join(map(str, lengths))
        raise ValueError(f"{name} must have lists of {expected} values, got {row!r:.60}")
    return row


def _check_new(ledger: Ledger, number: object) -> None:
    """Raise if it is not the number of a decision that was made, or is there already."""
    if isinstance(number, bool) or not isinstance(number, int) or not ledger.first <= number < ledger.next_id:
        raise ValueError(f"the id of a decision must be from {ledger.first} to {ledger.next_id - 1}, got {number!r}")
    if number in ledger.pending or number in ledger.answered:
        raise ValueError(f"the ids of decisions must differ, got {number} again")


def _decision_from(row: Sequence[Any], name: Hashable) -> AnyDecision:
    number, _, propensity, count, version, time, group, unit, error, allowed, meta = row
    arms: Row | None = None if allowed is None else [name_from(one) for one in listed("allowed", allowed)]
    if group not in (None, "holdout"):
        raise ValueError(f"group must be 'holdout' or nothing, got {group!r}")
    return Decision(
        id=check_count("id", number, least=0),
        arm=name,
        propensity=_propensity(propensity),
        round=check_count("round", count),
        version=check_count("version", version, least=0),
        time=check_number("time", time),
        group=group,
        unit=None if unit is None else check_unit(unit),
        error=check_number("error", error),
        allowed=arms,
        meta=None if meta is None else check_meta(meta),
    )


def _propensity(value: object) -> float:
    number = check_number("propensity", value)
    if not 0 < number <= 1:
        raise ValueError(f"propensity must be above 0 and at most 1, got {number}")
    return number


def _context_from(plain: object) -> StoredContext | None:
    return None if plain is None else StoredContext.from_json(plain)


def _arm_number(arm: object, arms: int) -> int:
    """Return ``arm`` if it is the number of one of so many arms."""
    number = check_count("arm", arm, least=0)
    if number >= arms:
        raise ValueError(f"arm must be one of {arms}, got {number}")
    return number


def _answer_from(row: Sequence[Any], arms: int) -> AnsweredDecision:
    """Return an answer from a row of a state."""
    reward, arm, learned, propensity, silent, time, late, context = row
    if not isinstance(silent, bool):
        raise ValueError(f"silent must be true or false, got {silent!r}")
    return AnsweredDecision(
        reward=None if reward is None else check_reward(reward),
        arm=_arm_number(arm, arms),
        learned=check_count("learned", learned, least=0),
        propensity=_propensity(propensity),
        silent=silent,
        context=_context_from(context),
        time=None if time is None else check_number("time", time),
        late=None if late is None else check_number("late", late),
    )


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"active must be true or false, got {value!r}")
    return value


# Names of arms.


def plain_name(name: Hashable) -> Any:
    """Return an arm's name as JSON has it; a tuple differs from a list."""
    if isinstance(name, tuple):
        return {"tuple": [plain_name(part) for part in name]}
    if name is None or isinstance(name, str | int | float | bool):
        return name
    raise TypeError(f"to_json keeps arms that are text, numbers or tuples of them, got {name!r}")


def name_from(plain: object) -> Hashable:
    """Return an arm's name from what JSON has for it."""
    if isinstance(plain, dict):
        return tuple(name_from(part) for part in plain["tuple"])
    if isinstance(plain, float) and not math.isfinite(plain):
        raise ValueError(f"arms must be finite if they are numbers, got {plain}")
    if plain is None or isinstance(plain, str | int | float | bool):
        return plain
    raise ValueError(f"arms must be text, numbers or tuples of them, got {plain!r}")


def listed(name: str, value: object) -> Row:
    """Return ``value`` if it is a list."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, got {value!r:.60}")
    return value
