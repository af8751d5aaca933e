"""What became of every decision of a log, found for all of them at once: `EventOrder` in arrays, for long logs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rightarm.logs.blocks import Block, Kind
from rightarm.logs.order import EventOrder
from rightarm.logs.stream import read_events
from rightarm.types import F64, I64

PART, REWARD, CANCEL, EXPIRY, CORRECTION = range(5)
KINDS = {"reward": REWARD, "cancel": CANCEL, "expiry": EXPIRY, "correction": CORRECTION}

DECISION = np.dtype([("id", "i8"), ("place", "i8")])  # place: the number of the event
ANSWER = np.dtype([("id", "i8"), ("place", "i8"), ("kind", "i1"), ("reward", "f8"), ("time", "f8")])

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Outcomes:
    """What became of the decisions of a log, in the order in which they were made."""

    ids: I64
    rewards: F64
    """The last reward of each, NaN if there is none."""
    told: F64
    """When each was answered, or a part of its reward came; NaN if neither happened."""
    answered: Flags
    cancelled: Flags
    corrected: Flags


class Answers:
    """Gathers decisions and what came of them, block by block."""

    def __init__(self) -> None:
        self._decisions, self._answers = [np.empty(0, DECISION)], [np.empty(0, ANSWER)]
        self._events = 0
        self.latest: float | None = None

    def take(self, block: Block) -> None:
        """Take the next events."""
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
        outcomes, order = self.outcomes(path), EventOrder()
        order.events, order.latest = self._events, self.latest
        order.decided.add_all(outcomes.ids)
        order.waiting = set(outcomes.ids[~outcomes.answered].tolist())
        order.last_id = int(outcomes.ids.max()) if outcomes.ids.size else None
        return order

    def outcomes(self, path: Path) -> Outcomes:
        """What became of the decisions; raises if events of the log at ``path`` cannot follow each other so."""
        decisions, answers = np.concatenate(self._decisions), np.concatenate(self._answers)
        answers = answers[np.argsort(answers["place"], kind="stable")]
        rows = _rows(decisions["id"], answers["id"])
        if rows is None or not _is_possible(decisions["place"], answers, rows):
            for _ in read_events(path):  # which raises, and says where
                pass
            raise ValueError(f"{path} has changed while it was read")
        return _outcomes(decisions["id"], answers, rows)


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
    answer = kinds != CORRECTION
    told[rows[answer]] = answers["time"][answer]
    flags = {name: np.zeros(ids.size, dtype=bool) for name in ("answered", "cancelled", "corrected")}
    flags["answered"][rows[answer & (kinds != PART)]] = True
    flags["cancelled"][rows[kinds == CANCEL]] = True
    flags["corrected"][rows[~answer]] = True
    return Outcomes(ids, rewards, told, **flags)
