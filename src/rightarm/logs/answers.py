"""What became of every decision of a log, found for all of them at once: `EventOrder` in arrays, for long logs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rightarm.logs.blocks import Block, Kind
from rightarm.logs.order import EventOrder
from rightarm.logs.stream import read_events
from rightarm.logs.windows import Flags, window_of
from rightarm.types import F64, I64

PART, REWARD, CANCEL, EXPIRY, CORRECTION = range(5)
KINDS = {"reward": REWARD, "cancel": CANCEL, "expiry": EXPIRY, "correction": CORRECTION}

DECISION = np.dtype([("id", "i8"), ("place", "i8")])  # place: the number of the event
ANSWER = np.dtype([("id", "i8"), ("place", "i8"), ("kind", "i1"), ("reward", "f8"), ("time", "f8")])


@dataclass(frozen=True)
class Outcomes:
    """What became of the decisions of a log, in the order in which they were made."""

    ids: I64
    rewards: F64
    """The last reward of each, NaN if there is none."""
    told: F64
    """When the reward of each came, or its last part, or it was closed without one; NaN if none of that happened."""
    answered: Flags
    cancelled: Flags
    corrected: Flags
    open: Flags | None = None
    """Which have an open window of reward, and so no reward that counts; None if the bandit has no windows."""


class Answers:
    """Gathers decisions and what came of them, block by block."""

    def __init__(self) -> None:
        self._decisions, self._answers = [np.empty(0, DECISION)], [np.empty(0, ANSWER)]
        self._events = 0
        self._settings: Mapping[str, Any] = {}
        self._times = [np.empty(0)]  # of all events, where the bandit has windows of reward
        self.latest: float | None = None

    def take(self, block: Block) -> None:
        """Take the next events."""
        if not self._events and block.events:  # a bandit says first how it is set up
            self._settings = block.events[0].get("settings", {})
        if self._settings.get("window_of_reward") is not None:
            self._times.append(np.array([event["time"] for event in block.events]))
        for name, kind in block.kinds.items():
            if name == "decision":
                made = np.empty(len(kind.events), DECISION)
                made["id"], made["place"] = kind.array("id"), kind.places
                self._decisions.append(made)
            elif name in KINDS:
                self._answers.append(_expiries(kind) if name == "expiry" else _answers(kind))
            self.latest = float(max(kind.array("time").max(), self.latest or 0.0))
        self._events += len(block.events)

    def order(self, path: Path) -> EventOrder:
        """What the writer of the log at ``path`` needs to go on."""
        outcomes, order = self._answered(path)[1], EventOrder()
        order.events, order.latest = self._events, self.latest
        order.decided.add_all(outcomes.ids)
        order.waiting = set(outcomes.ids[~outcomes.answered].tolist())
        order.last_id = int(outcomes.ids.max()) if outcomes.ids.size else None
        return order

    def outcomes(self, path: Path) -> Outcomes:
        """What became of the decisions; raises if events of the log at ``path`` cannot follow each other so."""
        places, found = self._answered(path)
        window = window_of(self._settings)
        if window is None:
            return found
        ran_out = window.ran_out(places, np.concatenate(self._times))
        rewards, still_open = window.rewards(found.rewards, found.answered, ran_out)
        return replace(found, rewards=rewards, open=still_open)

    def _answered(self, path: Path) -> tuple[I64, Outcomes]:
        """The numbers of the events of decisions, and their answers as they stand, whatever windows there are."""
        decisions, answers = np.concatenate(self._decisions), np.concatenate(self._answers)
        answers = answers[np.argsort(answers["place"], kind="stable")]
        rows = _rows(decisions["id"], answers["id"])
        if rows is None or not _is_possible(decisions["place"], answers, rows):
            for _ in read_events(path):  # which raises, and says where
                pass
            raise ValueError(f"{path} has changed while it was read")
        return decisions["place"], _outcomes(decisions["id"], answers, rows)


def _answers(kind: Kind) -> NDArray[Any]:
    answers = np.empty(len(kind.events), ANSWER)
    answers["id"], answers["place"], answers["kind"] = kind.array("id"), kind.places, KINDS[kind.kind]
    answers["reward"] = math.nan if kind.kind == "cancel" else kind.array("reward")
    answers["time"] = kind.array("time")
    if kind.kind == "reward":
        answers["kind"][kind.having("part")] = PART
    return answers


def _expiries(kind: Kind) -> NDArray[Any]:
    """An answer for each of the decisions that expired."""
    answers = [
        (number, place, EXPIRY, event.get("reward", math.nan), event["time"])
        for place, event in zip(kind.places, kind.events, strict=True)
        for number in event["ids"]
    ]
    return np.array(answers, ANSWER)


def _rows(ids: I64, answered: I64) -> I64 | None:
    """The rows of decisions by their ids; None if one is unknown, or an id is there twice."""
    order = np.argsort(ids, kind="stable")
    ascending = ids[order]
    if (ascending[1:] == ascending[:-1]).any() or (answered.size and not ids.size):
        return None
    places = np.searchsorted(ascending, answered)
    places[places == ids.size] = 0
    return order[places] if (ascending[places] == answered).all() else None


def _is_possible(made: I64, answers: NDArray[Any], rows: I64) -> bool:
    """Whether every answer comes after its decision, there is one at most, and corrections after it only."""
    kinds, places = answers["kind"], answers["place"]
    part, correction = kinds == PART, kinds == CORRECTION
    last = ~part & ~correction
    if (places <= made[rows]).any() or (np.bincount(rows[last], minlength=1) > 1).any():
        return False
    answered = np.full(made.size, np.iinfo(np.int64).max)
    answered[rows[last]] = places[last]
    early, late = places[part] < answered[rows[part]], places[correction] > answered[rows[correction]]
    return bool(early.all() and late.all())


def _outcomes(ids: I64, answers: NDArray[Any], rows: I64) -> Outcomes:
    """What became of the decisions, by answers in the order in which they came: the last of several counts."""
    kinds, rewards, told = answers["kind"], np.full(ids.size, math.nan), np.full(ids.size, math.nan)
    says = (kinds == CANCEL) | ~np.isnan(answers["reward"])  # an expiry may leave the reward as it was
    rewards[rows[says]] = answers["reward"][says]
    came = (kinds != CORRECTION) & (kinds != EXPIRY)
    told[rows[came]] = answers["time"][came]
    ended = (kinds == EXPIRY) & np.isnan(answers["reward"]) & np.isnan(told[rows])  # without any reward
    told[rows[ended]] = answers["time"][ended]
    flags = {name: np.zeros(ids.size, dtype=bool) for name in ("answered", "cancelled", "corrected")}
    flags["answered"][rows[(kinds != PART) & (kinds != CORRECTION)]] = True
    flags["cancelled"][rows[kinds == CANCEL]] = True
    flags["corrected"][rows[kinds == CORRECTION]] = True
    return Outcomes(ids, rewards, told, **flags)
