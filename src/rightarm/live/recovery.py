"""How a bandit that was saved goes on: with its log, with its policy or another one, with its arms or others."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from rightarm.errors import WrongType, WrongValue
from rightarm.live.another_policy import check_same_policy
from rightarm.live.decide import change, check_names
from rightarm.live.ledger import Waiting
from rightarm.live.saved import Place
from rightarm.live.state import State
from rightarm.logs.events import Changed, Created, Event, Reward, Specification, without_context
from rightarm.logs.journal import Journal
from rightarm.logs.settings import Settings
from rightarm.logs.writer import LogWriter
from rightarm.scores.policy import Policy

Log = Journal | str | os.PathLike[str]


@contextlib.contextmanager
def opened(log: Log) -> Iterator[Journal]:
    """Yield the writer of a log. If it is opened here and what follows fails, nothing of it stays."""
    if not isinstance(log, str | os.PathLike):
        yield log
        return
    writer = LogWriter(log)
    try:
        yield writer
    except BaseException:
        writer.discard()
        raise


def where(journal: Journal) -> Any:
    """Return where a journal is, for errors."""
    return getattr(journal, "path", journal.identity)


def check_policy(policy: Policy | None, change_policy: bool) -> None:
    """Raise if the policy with which a saved bandit is to go on is none."""
    if policy is not None and not isinstance(policy, Policy):
        hint = "; call it with its parameters first" if callable(policy) else ""
        raise WrongType("policy", f"must be a policy such as UCB(C=0.5), got {policy!r}{hint}")
    if change_policy and policy is None:
        raise WrongType("change_policy", "needs the policy to change to, got policy=None")


# From a log alone.


def from_log(
    log: Journal, find_policy: Callable[[Specification], Policy], given: Policy | None, settings: Mapping[str, Any]
) -> State:
    """Return the fold of a log; ``given`` and ``settings`` are for a log that no bandit wrote."""
    events = log.since(0)
    first = next(events, None)
    if first is None:
        raise WrongValue("log", f"{where(log)} has no events")
    state = State(find_policy)
    if isinstance(first, Created):
        if first.continues:
            what = f"{where(log)} goes on with a bandit that had learned before: from_json takes its state"
            raise WrongValue("log", what)
        state.apply(first)
        check_settings(state.settings, settings)
    else:
        if given is None:
            raise WrongValue("policy", f"must be given: the log {where(log)} does not say how its bandit was set up")
        state.apply(Created(time=first.time, arms=[], policy=given.specification(), settings=Settings(**settings)))
        state.events = 0  # the log does not have it
        events = itertools.chain([first], events)
    for event in events:
        state.apply(event)
    return state


def check_settings(settings: Settings, given: Mapping[str, Any]) -> None:
    """Raise if settings that are given for a bandit that is there already are not those that it has."""
    for name, value in given.items():
        if name in ("seed", "prior"):
            continue  # what it began with
        if name not in Settings.__struct_fields__:
            raise WrongType(name, f"is an unexpected option {name!r}")
        if settings.changed(**{name: value}) != settings:
            what = f"must be that of the bandit, {getattr(settings, name)!r}, got {value!r}; change() changes it"
            raise WrongValue(name, what)


# From a saved state, and what its log has since.


def read_on(log: Journal, state: State, place: Place | None) -> None:
    """Apply the events of a log that are not part of a state yet; ``place`` says up to where they are."""
    if place is None:
        what = f"must be a new one: this bandit had none, got {where(log)} with {log.events:,} events"
        raise WrongValue("log", what)
    if place.log != log.identity:
        what = f"must be that of this bandit, {place.log}, or a new one, got {where(log)}, {log.identity}"
        raise WrongValue("log", what)
    if place.events > log.events:
        raise WrongValue("log", f"must have the {place.events} events of before, got {log.events} in {where(log)}")
    for event in log.since(place.events):
        state.apply(event)


def beginning(state: State, now: float) -> list[Event]:
    """Return what a new log of a bandit that is not new begins with.

    It has retired arms too, for which decisions may be pending.
    """
    check_names(state.names)
    pending = state.ledger.pending.values()
    active = state.active_names()
    created = Created(
        time=now,
        arms=state.names,
        policy=state.known.policy.specification(),
        settings=state.settings,
        first_id=state.ledger.first,
        continues=True,
    )
    events: list[Event] = [created]
    events += [_with_context(waiting) for waiting in pending]
    events += [
        Reward(id=one.decision.id, reward=one.so_far, part=True, time=now) for one in pending if one.so_far is not None
    ]
    if active != state.names or state.status != "running":
        events.append(Changed(time=now, arms=active, status=state.status))  # type: ignore[arg-type]
    return events


def _with_context(waiting: Waiting) -> Event:
    """Return a pending decision with its context; the features of arms are not kept."""
    if waiting.context is None:
        return waiting.decision
    return msgspec.structs.replace(waiting.decision, context=waiting.context.numbers())


def begin(log: Journal, state: State, key: int, now: float) -> None:
    """Begin a new log of a bandit that is not new."""
    events = beginning(state, now)
    log.keep_key(key)
    log.append(events if state.settings.log_context else [without_context(event) for event in events])


# What is given for a bandit that is there already.


def check_agreement(state: State, policy: Policy | None, change_policy: bool) -> None:
    """Raise if a policy is not the one that there is, or could not take its place if it is to."""
    if policy is None:
        return
    if change_policy:
        change(state, 0.0, policy=policy)
    else:
        check_same_policy(policy, state.specification)


def wanted_arms(state: State, arms: Sequence[Hashable] | None, change_arms: bool) -> list[Hashable] | None:
    """Return the arms that a bandit is to have from now on; None if it has them.

    Arms that the guardrail has retired stay so.
    """
    if arms is None:
        return None
    check_names(arms)
    wanted = [arm for arm in arms if arm not in state.harmful]
    active = state.active_names()
    if set(wanted) == set(active):
        return None
    if not change_arms:
        raise WrongValue("arms", f"must be those of the bandit, {active}, got {arms}; change_arms=True changes them")
    return wanted
