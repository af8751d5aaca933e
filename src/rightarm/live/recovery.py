"""A saved state comes back: what happened since is learned from its log, and its policy is the one that is wanted."""

from __future__ import annotations

from rightarm.formula import difference
from rightarm.live.fold import State
from rightarm.live.state import Specification, check_same_policy, policy_from
from rightarm.logs.events import Event
from rightarm.logs.writer import LogWriter
from rightarm.scores.policy import Policy


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
