"""The state of a live bandit as JSON, and back: every part is checked, and what happened since is read from its log."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any

import numpy as np

from rightarm.formula import check_count, difference, from_specification, present
from rightarm.live.fold import State, check_floor
from rightarm.logs.events import Event
from rightarm.logs.writer import LogWriter
from rightarm.scores.policy import Policy

FORMAT, FORMAT_VERSION = "rightarm bandit", 1

Specification = Mapping[str, Any]


def to_json(state: State, events: int | None) -> str:
    """A state as text, with the number of events in the log that are part of it."""
    known, ledger = state.known, state.ledger
    plain = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "policy": known.policy.specification(),
        "floor": state.floor,
        "discount": known.discount,
        "window": known.window,
        "arms": [plain_name(name) for name in state.names],
        "active": state.active,
        "state": state.version,
        "next_id": ledger.next_id,
        "last": ledger.last,
        "events": events,
        "statistics": known.to_json(),
        "pending": ledger.pending_as_json(),
        "answered": ledger.answered_as_json(),
        "random": state.random.bit_generator.state,
    }
    return json.dumps(plain, allow_nan=False)


def from_json(text: str | bytes, given: Policy | None) -> tuple[State, int | None, Specification]:
    """The state that a text describes, how many events of its log are part of it, and the policy that it names.

    That policy is ``given``, or found by its name. If it is gone, ``given`` stands in for it where that makes no
    difference to the statistics.
    """
    try:
        plain = json.loads(text)
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise ValueError(f"this is not the state of a bandit: format must be {FORMAT!r}")
        if plain.get("version") != FORMAT_VERSION:
            raise ValueError(f"version must be {FORMAT_VERSION}, got {plain.get('version')!r}")
        state = _restored(plain, given)
        events = None if plain["events"] is None else check_count("events", plain["events"], least=0)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"this is not the state of a bandit: {type(error).__name__}: {error}") from None
    return state, events, plain["policy"]


def _restored(plain: dict[str, Any], given: Policy | None) -> State:
    policy = _policy_of(plain["policy"], given)
    names = [name_from(name) for name in listed("arms", plain["arms"])]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"arms must be different names, at least one, got {names!r:.200}")
    state = State(policy, np.random.default_rng(0), discount=plain["discount"], window=plain["window"])
    state.set_arms(names)
    state.known.restore(plain["statistics"])
    state.active = [flag(active) for active in listed("active", plain["active"])]
    if len(state.active) != len(names):
        raise ValueError(f"active must have one value for each of {len(names)} arms, got {len(state.active)}")
    state.floor = check_floor(plain["floor"])
    state.check_floor(sum(state.active))
    lists = {name: listed(name, plain[name]) for name in ("last", "pending", "answered")}
    state.ledger.restore(names, plain["next_id"], **lists)
    state.random.bit_generator.state = plain["random"]
    state.version = check_count("state", plain["state"], least=0)
    return state


# Parts of a state.


def listed(name: str, value: Any) -> list[Any]:
    """Return ``value`` if it is a list."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list, got {value!r:.60}")
    return value


def flag(value: Any) -> bool:
    """Return ``value`` if it is true or false."""
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


# Policies.


def policy_from(specification: Specification, given: Policy | None = None) -> Policy:
    """The policy that a text describes: ``given`` if it is that, else one made anew; nothing is imported for it."""
    try:
        if given is not None and difference(given, specification) is None:
            return given
        found = from_specification(specification, partial(_present, given))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"policy must be described, got {specification!r:.200}: {error}") from None
    if not isinstance(found, Policy):
        raise ValueError(f"policy must describe a policy, got {specification['formula']!r}")
    return found


def _present(given: Policy | None, address: str) -> Any:
    """What stands at an address: the given policy's formula, or something in a module that is imported already."""
    if given is not None and address == given.specification()["formula"]:
        return given.family
    return present(address)


def check_same_policy(policy: Policy, specification: Specification) -> None:
    """Raise if a policy is not the one described; where its source stands does not matter."""
    other = difference(policy, specification)
    if other is not None:
        what = {"formula": "formula differs", "parameters": "parameters differ"}[other]
        raise ValueError(
            f"policy must be the one of the state, {specification['formula']}, got {policy!r}, whose {what}; "
            "change_policy=True changes it on purpose"
        )


def _policy_of(specification: Specification, given: Policy | None) -> Policy:
    """The policy of a state, or ``given`` in its place if that one is gone and nothing but its formula was its own."""
    try:
        return policy_from(specification, given)
    except ValueError as error:
        if given is None:
            raise
        estimators = [one["parameters"].get("estimator", "mean") for one in (specification, given.specification())]
        if given.columns or estimators[0] != estimators[1]:
            raise ValueError(f"{given!r} cannot go on with what another policy has learned: {error}") from None
        return given


# What happened since.


def read_on(
    log: LogWriter, state: State, events: int | None, given: Policy | None
) -> tuple[Specification | None, list[Event]]:
    """Take the events of a log that are not part of a state yet.

    ``events`` is how many are part of it, or None if it had no log. A policy is found by its specification, or is
    ``given``. Returns the policy that the log changed to, if it did, and the events that it still lacks: a new log
    those of pending decisions, and any log that does not know the present arms these.
    """
    pending = state.ledger.pending
    if log.events and events is None and pending:
        raise ValueError(f"log must be a new one: this bandit has pending decisions and had no log, got {log.path}")
    if log.events and events is not None and events > log.events:
        raise ValueError(f"log must be new or have the {events} events of before, got {log.events} in {log.path}")
    lacking = [] if log.events else [waiting.as_event() for waiting in pending.values()]
    arms, specification = None, None
    for place, event in enumerate(log):
        if event["event"] == "arms":
            arms = event["arms"]
        if events is not None and place >= events:
            state.apply(event, lambda after: policy_from(after, given))
            specification = event["after"] if event["event"] == "policy" else specification
    active = state.active_names()
    if arms != active:  # a new log, one of another program, or a change that 0.1.0 had yet to write
        lacking.append({"event": "arms", "arms": active})
    return specification, lacking


def settle_policy(state: State, policy: Policy, specification: Specification, change: bool) -> list[Event]:
    """Let ``policy`` decide from now on: it is the one described, or it takes that one's place, which is an event."""
    if not change:
        check_same_policy(policy, specification)
    elif difference(policy, specification) is not None:
        state.set_policy(policy)
        return [{"event": "policy", "before": specification, "after": policy.specification()}]
    return []
