"""A saved state and its log: what happened after it was saved is learned from the log."""

from __future__ import annotations

from rightarm.live.fold import State
from rightarm.live.state import Specification, policy_from
from rightarm.logs.writer import LogWriter
from rightarm.scores.policy import Policy


def go_on_in(
    log: LogWriter, state: State, events: int | None, given: Policy | None, now: float
) -> Specification | None:
    """Take the events of a log that are not part of a state yet; returns the policy that they changed to, if they did.

    ``events`` is how many are part of it, or None if it had no log. A policy is found by its specification, or is
    ``given``. A new log begins with the decisions that are pending and with the arms.
    """
    pending = state.ledger.pending
    if not log.events:
        log.write([waiting.as_event() for waiting in pending.values()])
        events = log.events
    elif events is None and pending:
        raise ValueError(f"log must be a new one: this bandit has pending decisions and had no log, got {log.path}")
    elif events is not None and events > log.events:
        raise ValueError(f"log must be new or have the {events} events of before, got {log.events} in {log.path}")
    arms, specification = None, None
    for place, event in enumerate(log):
        if event["event"] == "arms":
            arms = event["arms"]
        if events is not None and place >= events:
            state.apply(event, lambda after: policy_from(after, given))
            specification = event["after"] if event["event"] == "policy" else specification
    active = state.active_names()
    if arms != active:  # a new log, one of another program, or a change that 0.1.0 had yet to write
        log.write([{"event": "arms", "arms": active, "time": now}])
    return specification
