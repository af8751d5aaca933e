"""Which events of a log can follow which: every id is decided once, answered at most once, and corrected after that."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from rightarm.logs.events import Event, ids_of
from rightarm.types import I64

NEW, WAITING, ANSWERED = "new", "waiting", "answered"


def state_after(event: Event, number: int, state: str) -> str:
    """What becomes of a decision by an event; raises if the event cannot come now."""
    kind = event["event"]
    if kind == "decision":
        if state != NEW:
            raise ValueError(f"id must be a new one for every decision, got {number} again")
        return WAITING
    if state == NEW:
        article = "an" if kind[0] in "aeiou" else "a"
        raise ValueError(f"id must be that of a decision for {article} {kind}, got the unknown {number}")
    if kind in ("correction", "late"):
        if state == WAITING:
            raise ValueError(f"id must be that of an answered decision for a {kind}, got {number}, which waits")
        return ANSWERED
    if state == ANSWERED:
        raise ValueError(f"id must be that of a decision without a reward, got {number}, which is answered")
    return WAITING if event.get("part") else ANSWERED


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
        first, last = int(ends[longest - 1]) + 1 if longest else 0, int(ends[longest])
        self.run = int(ascending[first]), int(ascending[last]) + 1
        self.others = {*ascending[:first].tolist(), *ascending[last + 1 :].tolist()}


class EventOrder:
    """What is known of the events so far, as far as it says which can follow."""

    def __init__(self) -> None:
        self.decided, self.waiting = WholeNumbers(), set[int]()
        self.last_id: int | None = None
        self.latest: float | None = None  # the latest time of an event
        self.events = 0

    def _state(self, number: int) -> str:
        return WAITING if number in self.waiting else ANSWERED if number in self.decided else NEW

    def check(self, events: Sequence[Event]) -> None:
        """Raise if these events cannot follow, one after the other, those taken so far."""
        states = dict[int, str]()
        for event in events:
            for number in ids_of(event):
                states[number] = state_after(event, number, states.get(number) or self._state(number))

    def take(self, event: Event, place: int) -> None:
        """Count the event, which was checked and is the one of this number, from 1 on.

        An event is counted once: what was interrupted may be done again.
        """
        if place <= self.events:
            return
        for number in ids_of(event):
            if event["event"] == "decision":
                self.decided.add(number)
                self.waiting.add(number)
                self.last_id = number if self.last_id is None else max(number, self.last_id)
            elif not event.get("part"):
                self.waiting.discard(number)
        self.latest = event["time"] if self.latest is None else max(event["time"], self.latest)
        self.events = place
