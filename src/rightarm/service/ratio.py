"""Checks from its events that the arms of a bandit came as their propensities say."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import msgspec

from rightarm.evaluation import SampleRatio, sample_ratio
from rightarm.store import Store

GROWTH = 1.1  # of the number of decisions, after which the evidence is computed again
PAGE = 10_000  # events that are read at once


class Event(msgspec.Struct):
    """The part of an event that is needed here."""

    event: str
    n: int = 0
    id: int = -1
    arm: Any = None
    propensity: float = 1.0
    among: tuple[Any, ...] | None = None
    arms: tuple[Any, ...] | None = None


EVENT = msgspec.json.Decoder(Event)


class Watch:
    """The decisions of a bandit so far, and the evidence against their propensities.

    >>> watch = Watch()
    >>> watch.take([b'{"event": "created", "n": 1, "arms": ["a", "b"]}', b'{"event": "decision", "n": 2, "id": 1, '
    ...             b'"arm": "b", "propensity": 0.5}'])
    >>> watch.columns["among"], watch.last
    ([('a', 'b')], 2)
    """

    def __init__(self) -> None:
        self.columns: dict[str, Any] = {"id": array("q"), "arm": [], "propensity": array("d"), "among": []}
        self.last = 0
        self.e_value = 1.0
        self._active: tuple[Any, ...] | None = None
        self._looked = 0

    def take(self, lines: Iterable[bytes]) -> None:
        """Take events, which are those after the last."""
        columns = self.columns
        for line in lines:
            event = EVENT.decode(line)
            self.last = event.n
            if event.event in ("created", "change"):
                self._active = self._active if event.arms is None else event.arms
            elif event.event == "decision":
                columns["id"].append(event.id)
                columns["arm"].append(event.arm)
                columns["propensity"].append(event.propensity)
                columns["among"].append(self._active if event.among is None else event.among)

    def follow(self, store: Store, name: str) -> None:
        """Take the events that the store has by now."""
        before = -1
        while before < self.last:
            before = self.last
            self.take(list(store.events(name, self.last, PAGE)))

    def look(self) -> float:
        """Return the largest capital that somebody who bets against the propensities has had, as of not long ago."""
        rows = len(self.columns["arm"])
        if rows >= GROWTH * self._looked:
            self.e_value = sample_ratio(self.columns).e_value
            self._looked = max(rows, 1)
        return self.e_value


def ratio_of(store: Store, name: str, confidence: float) -> SampleRatio:
    """Check all decisions of a bandit."""
    watch = Watch()
    watch.follow(store, name)
    return sample_ratio(watch.columns, confidence=confidence)
