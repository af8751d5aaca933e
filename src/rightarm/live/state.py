"""The state of a live bandit as JSON, and back: every part is checked, and what happened since is read from its log."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from rightarm.formula import check_count, difference, from_specification, present
from rightarm.live.draws import Draws
from rightarm.live.fold import State
from rightarm.live.ledger import Waiting
from rightarm.live.names import listed, name_from, plain_name
from rightarm.live.settings import Settings
from rightarm.logs.events import Event
from rightarm.logs.journal import Journal
from rightarm.scores.policy import Policy

CONTINUES = "continues"  # marks the settings of a log whose bandit was not new
FORMAT, FORMAT_VERSION = "rightarm bandit", 2
READABLE = (1, 2)  # 0.1.0 wrote the first

Specification = Mapping[str, Any]


class Place(NamedTuple):
    """Up to where a log is part of a state."""

    log: str | None
    """The identity of the log; None if rightarm 0.1.0 began it."""
    events: int


class Saved(NamedTuple):
    """A state that was saved, up to where a log is part of it (None if it had none), and the policy that it names."""

    state: State
    place: Place | None
    specification: Specification


def to_json(state: State, log: Journal | None) -> str:
    """A state as text, with the number of events in the log that are part of it."""
    plain = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "policy": state.known.policy.specification(),
        **state.settings.as_json(),
        "arms": [plain_name(name) for name in state.names],
        "active": state.active,
        "harmful": [plain_name(name) for name in state.names if name in state.harmful],
        "state": state.version,
        **state.ledger.as_json(),
        "log": None if log is None else log.identity,
        "events": None if log is None else log.events,
        "statistics": state.known.to_json(),
        "random": state.draws.state(),
    }
    return json.dumps(plain, allow_nan=False)


def from_json(text: str | bytes, given: Policy | None) -> Saved:
    """The state that a text describes.

    Its policy is ``given``, or found by its name. If it is gone, ``given`` stands in for it where that makes no
    difference to the statistics.
    """
    try:
        plain = json.loads(text)
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise ValueError(f"this is not the state of a bandit: format must be {FORMAT!r}")
        if plain.get("version") not in READABLE:
            raise ValueError(f"version must be at most {FORMAT_VERSION}, got {plain.get('version')!r}")
        state = _restored(plain, given)
        place = None
        if plain["events"] is not None:
            place = Place(plain.get("log"), check_count("events", plain["events"], least=0))
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"this is not the state of a bandit: {type(error).__name__}: {error}") from None
    return Saved(state, place, plain["policy"])


def _restored(plain: dict[str, Any], given: Policy | None) -> State:
    policy = _policy_of(plain["policy"], given)
    names = [name_from(name) for name in listed("arms", plain["arms"])]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"arms must be different names, at least one, got {names!r:.200}")
    state = State(policy, Draws(plain["random"]), Settings.from_json(plain))
    state.add_arms(names)
    state.ledger.restore(names, plain)
    state.known.restore(plain["statistics"])
    for rows in (state.ledger.pending, state.ledger.answered, state.ledger.observed):
        for one in rows.values():
            state.known.check_context(one.context)
    state.active = [flag(active) for active in listed("active", plain["active"])]
    if len(state.active) != len(names):
        raise ValueError(f"active must have one value for each of {len(names)} arms, got {len(state.active)}")
    state.check_floor(sum(state.active))
    state.harmful = frozenset(name_from(name) for name in listed("harmful", plain.get("harmful", [])))
    state.version = check_count("state", plain["state"], least=0)
    if plain["version"] > 1 and state.reward_range is not None and not state.within(*state.reward_range):
        raise ValueError(
            f"means must be in the range of rewards, {state.reward_range}, got {state.lifetime()[1].tolist()}"
        )
    return state


# Settings.


def as_settings(state: State) -> dict[str, Any]:
    """What a log must say at its beginning so that `from_log` can make the bandit again."""
    random = state.draws.state()
    numbers = {name: str(value) for name, value in random["state"].items()}  # 128 bits: more than JSON's readers take
    return {
        **state.settings.as_json(),
        "policy": state.known.policy.specification(),
        "random": random | {"state": numbers},
        "first_id": state.ledger.first,
    }


def check_setting(settings: Settings, name: str, value: Any) -> None:
    """Raise if a setting that is given for a bandit that is there already is not the one that it has."""
    if name in ("seed", "prior"):
        return  # what it began with
    if name not in Settings.__dataclass_fields__:
        raise TypeError(f"unexpected option {name!r}")
    if dataclasses.replace(settings, **{name: value}) != settings:
        raise ValueError(f"{name} must be that of the bandit, {getattr(settings, name)!r}, got {value!r}")


def from_log(log: Journal, given: Policy | None, settings: Mapping[str, Any]) -> Saved:
    """The state with which the bandit of a log began, before its arms were named."""
    first, begin = next(log.since(0), None), Place(log.identity, 0)
    if first is None:
        raise ValueError(f"the log {log.path} has no events")
    if first["event"] != "settings":
        if given is None:
            raise ValueError(f"policy must be given: the log {log.path} does not say how its bandit was set up")
        return Saved(State(given, Draws.seeded(None), Settings(**settings)), begin, given.specification())
    if first["settings"].get(CONTINUES):
        raise ValueError(f"the log {log.path} goes on with a bandit that had learned before: from_json takes its state")
    try:
        plain = first["settings"]
        random = plain["random"]
        numbers = {name: int(value) for name, value in random["state"].items()}
        state = State(
            _policy_of(plain["policy"], given),
            Draws(random | {"state": numbers}),
            Settings.from_json(plain),
            check_count("first_id", plain["first_id"]),
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{log.path}: the settings are not those of a bandit: {error}") from None
    for name, value in settings.items():
        check_setting(state.settings, name, value)
    return Saved(state, begin, plain["policy"])


# Parts of a state.


def flag(value: Any) -> bool:
    """Return ``value`` if it is true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"active must be true or false, got {value!r}")
    return value


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
    log: Journal, state: State, place: Place | None, given: Policy | None
) -> tuple[Specification | None, list[Event]]:
    """Take the events of a log that are not part of a state yet.

    ``place`` says up to where they are, None if the bandit had no log. A policy is found by its specification, or is
    ``given``. Returns the policy that the log changed to, if it did, and the events that it still lacks: a new log
    those of pending decisions, and one that does not know the present arms these.
    """
    if not log.events:
        return None, _beginning(state)
    _check_same_log(log, place)
    assert place is not None
    specification, known = None, dict[str, Any]()
    for event in log.since(place.events):
        state.apply(event, lambda after: policy_from(after, given))
        specification = event["after"] if event["event"] == "policy" else specification
    state.recount()
    active = state.active_names()
    if log.identity is None:  # 0.1.0 wrote a change of arms with the next decision only
        known = next((event for event in reversed(list(log.since(0))) if event["event"] == "arms"), known)
        if known.get("arms") != active:
            return specification, [{"event": "arms", "arms": active}]
    return specification, []


def _beginning(state: State) -> list[Event]:
    """What a new log of a bandit that is not new begins with; with retired arms, for which decisions may be pending."""
    pending, active = state.ledger.pending.values(), state.active_names()
    parts = [(one.decision.id, one.so_far) for one in pending if one.so_far is not None]
    return [
        {"event": "settings", "settings": as_settings(state) | {CONTINUES: True}},
        {"event": "arms", "arms": state.names},
        *(one.as_event() | _context(state, one) for one in pending),
        *({"event": "reward", "id": number, "reward": value, "part": True} for number, value in parts),
        *([] if active == state.names else [{"event": "arms", "arms": active}]),
    ]


def _context(state: State, waiting: Waiting) -> dict[str, Any]:
    """The context of a pending decision; the features of arms are not kept."""
    if waiting.context is None or not state.settings.log_context:
        return {}
    return {"context": waiting.context.numbers()}


def _check_same_log(log: Journal, place: Place | None) -> None:
    """Raise if a log is not the one that a saved bandit wrote."""
    if place is None:
        raise ValueError(f"log must be a new one: this bandit had none, got {log.path} with {log.events:,} events")
    if place.log != log.identity:
        raise ValueError(f"log must be that of this bandit, {place.log}, or a new one, got {log.path}, {log.identity}")
    if place.events > log.events:
        raise ValueError(f"log must have the {place.events} events of before, got {log.events} in {log.path}")


def settle_policy(state: State, policy: Policy, specification: Specification, change: bool) -> list[Event]:
    """Let ``policy`` decide from now on: it is the one described, or it takes that one's place, which is an event."""
    if not change:
        check_same_policy(policy, specification)
    elif difference(policy, specification) is not None:
        state.set_policy(policy)
        return [{"event": "policy", "before": specification, "after": policy.specification()}]
    return []
