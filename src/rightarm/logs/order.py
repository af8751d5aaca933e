"""The events that can follow each other: every id is decided once, answered at most once, and corrected after that.

`NEEDS` and `LEAVES` say it, for one event after the other (`EventOrder`) and for a whole log at once
(`rightarm.logs.outcomes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from rightarm.logs.events import (
    Arm,
    Cancellation,
    Changed,
    Correction,
    Created,
    Decision,
    Event,
    Expiry,
    LateReward,
    Reward,
    ids_of,
    kind_of,
)
from rightarm.logs.settings import Settings
from rightarm.types import I64

# The states of a decision.
NEW, WAITING, ANSWERED = range(3)

# What can happen to a decision: the state that each step needs, and the state that it leaves behind.
DECIDED, PART, REWARDED, CANCELLED, EXPIRED, CORRECTED, LATE = range(7)
NEEDS = (NEW, WAITING, WAITING, WAITING, WAITING, ANSWERED, ANSWERED)
LEAVES = (WAITING, WAITING, ANSWERED, ANSWERED, ANSWERED, ANSWERED, ANSWERED)

STEPS: dict[type[Event], int] = {
    Decision: DECIDED,
    Reward: REWARDED,
    Cancellation: CANCELLED,
    Expiry: EXPIRED,
    Correction: CORRECTED,
    LateReward: LATE,
}


def step_of(event: Event) -> int:
    """Return what an event about decisions does to them."""
    if isinstance(event, Reward) and event.part:
        return PART
    return STEPS[type(event)]


def refusal(event: Event, number: int, state: int) -> str:
    """Say why an event cannot come while the decision of this number is in such a state."""
    kind = kind_of(event)
    if kind == "decision":
        return f"id must be a new one for every decision, got {number} again"
    article = "an" if kind[0] in "aeiou" else "a"
    if state == NEW:
        return f"id must be that of a decision for {article} {kind}, got the unknown {number}"
    if state == WAITING:
        return f"id must be that of an answered decision for {article} {kind}, got {number}, which waits"
    return f"id must be that of a decision without a reward, got {number}, which is answered"


# Arms.


def check_arms(event: Event) -> None:
    """Raise if a list of arms has an arm twice, or an arm was chosen that was not among those to choose from."""
    if isinstance(event, Decision):
        if event.among is None:
            return
        _check_once("among", event.among)
        if _key(event.arm) not in map(_key, event.among):
            raise ValueError(f"arm must be among {event.among}, got {event.arm!r}")
    elif isinstance(event, Created | Changed) and event.arms is not None:
        _check_once("arms", event.arms)


def _check_once(name: str, arms: list[Arm]) -> None:
    if len(set(map(_key, arms))) < len(arms):
        raise ValueError(f"{name} must have every arm once, got {arms!r:.200}")


def _key(arm: Arm) -> tuple[bool, Arm]:
    """Return what tells arms apart: True equals 1, but is another name."""
    return isinstance(arm, bool), arm


# Settings.


def settings_after(settings: Settings, event: Event) -> Settings:
    """Return the settings of a bandit after an event; raises if the event changes them to what cannot be."""
    if isinstance(event, Created):
        return event.settings
    if isinstance(event, Changed) and event.settings:
        return settings.changed(**event.settings)
    return settings


# Events one after the other.


class WholeNumbers:
    """A set of whole numbers that needs no memory for those that follow each other."""

    def __init__(self) -> None:
        self.run: tuple[int, int] | None = None  # all n with run[0] ≤ n < run[1] are in the set
        self.others: set[int] = set()

    def __contains__(self, number: int) -> bool:
        return (self.run is not None and self.run[0] <= number < self.run[1]) or number in self.others

    def add(self, number: int) -> None:
        """Put a number into the set; if this is interrupted anywhere, it may be done again."""
        if number in self:
            return
        self.others.add(number)
        before = self.run or (number, number)
        low, high = before
        while high in self.others:
            high += 1
        while low - 1 in self.others:
            low -= 1
        self.run = low, high
        for found in chain(range(low, before[0]), range(before[1], high)):
            self.others.discard(found)

    def add_all(self, numbers: I64) -> None:
        """Put many numbers into a set that is still empty, in any order."""
        if not numbers.size:
            return
        ascending = np.sort(numbers)
        ends = np.append(np.flatnonzero(np.diff(ascending) != 1), numbers.size - 1)  # of numbers in a row
        longest = int(np.diff(ends, prepend=-1).argmax())
        first = int(ends[longest - 1]) + 1 if longest else 0
        last = int(ends[longest])
        self.run = int(ascending[first]), int(ascending[last]) + 1
        self.others = {*ascending[:first].tolist(), *ascending[last + 1 :].tolist()}


class EventOrder:
    """Knows of the events so far what says which events can follow."""

    def __init__(self) -> None:
        self.decided = WholeNumbers()
        self.waiting: set[int] = set()
        self.settings = Settings()
        self.last_id: int | None = None
        self.latest: float | None = None  # the latest time of an event
        self.events = 0

    def _state(self, number: int) -> int:
        if number in self.waiting:
            return WAITING
        return ANSWERED if number in self.decided else NEW

    def check(self, events: Sequence[Event]) -> None:
        """Raise if these events cannot follow, one after the other, those taken so far."""
        states = dict[int, int]()
        settings = self.settings
        for event in events:
            check_arms(event)
            settings = settings_after(settings, event)
            for number in ids_of(event):
                state = states.get(number)
                if state is None:
                    state = self._state(number)
                step = step_of(event)
                if state != NEEDS[step]:
                    raise ValueError(refusal(event, number, state))
                states[number] = LEAVES[step]

    def take(self, event: Event, place: int) -> None:
        """Count the event, which was checked and is the one of this number, from 1 on.

        An event is counted once: what was interrupted may be done again.
        """
        if place <= self.events:
            return
        for number in ids_of(event):
            if LEAVES[step_of(event)] == ANSWERED:
                self.waiting.discard(number)
            elif isinstance(event, Decision):
                self.decided.add(number)
                self.waiting.add(number)
                self.last_id = number if self.last_id is None else max(number, self.last_id)
        self.settings = settings_after(self.settings, event)
        self.latest = event.time if self.latest is None else max(event.time, self.latest)
        self.events = place
