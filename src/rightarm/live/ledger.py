"""The decisions of a live bandit: which of them wait for a reward, and how the others were answered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rightarm.formula import check_count, check_number
from rightarm.live.arms import NEVER, check_reward
from rightarm.logs.events import check_propensity

REMEMBERED = 100_000  # answered decisions whose reward is remembered, to notice one that is told twice


class Decision(NamedTuple):
    """One choice of an arm, with the probability that the arm had."""

    id: int
    """The number of the decision; a bandit counts its decisions from 1."""
    arm: Hashable
    """The arm chosen."""
    propensity: float
    """The probability with which it was chosen."""
    round: int
    """One more than the number of rewards that the bandit had learned, from its beginning on.

    The round that the policy's formula sees is one more than the number of rewards that *count*: the same, unless the
    bandit has a ``discount`` or a ``window``, which make old rewards count less or not at all.
    """
    version: int
    """The number of changes of the bandit's state before it: decisions of one version had the same probabilities."""


class Waiting(NamedTuple):
    """A decision that waits for its reward: the number of its arm, and when it was made."""

    decision: Decision
    arm: int
    time: float

    def as_event(self) -> dict[str, Any]:
        """The event of a log that says so."""
        return {"event": "decision", **self.decision._asdict(), "time": self.time}


class Ledger:
    """Every decision from `open` to `close`; arms are known by their numbers."""

    def __init__(self) -> None:
        self.next_id = 1
        self.pending: dict[int, Waiting] = {}
        self.answered: OrderedDict[int, float | None] = OrderedDict()  # None: cancelled
        self.waiting: list[int] = []  # how many decisions of each arm are pending
        self.last: list[int] = []  # the latest decision for each arm

    def add_arm(self) -> None:
        """One arm more, for which no decision was made."""
        self.waiting.append(0)
        self.last.append(NEVER)

    def open(self, waiting: Waiting) -> None:
        """A decision was made."""
        number, arm = waiting.decision.id, waiting.arm
        self.pending[number] = waiting
        self.waiting[arm] += 1
        self.last[arm] = number
        if number >= self.next_id:
            self.next_id = number + 1

    def close(self, number: int, reward: float | None) -> Waiting:
        """A pending decision has its reward, or will have none."""
        waiting = self.pending.pop(number)
        self.answered[number] = reward
        self.waiting[waiting.arm] -= 1
        if len(self.answered) > REMEMBERED:
            self.answered.popitem(last=False)
        return waiting

    def older_than(self, time: float) -> list[int]:
        """The pending decisions that were made before ``time``."""
        return [number for number, waiting in self.pending.items() if waiting.time < time]

    # Questions about decisions that users name.

    def number_of(self, decision: Any) -> int:
        """The number of a decision, given as such or by its number, that is pending or remembered."""
        number = decision.id if isinstance(decision, Decision) else decision
        if type(number) is not int:
            if isinstance(number, bool) or not isinstance(number, int | np.integer):
                raise TypeError(f"decision must be a Decision or its id, got {decision!r}")
            number = int(number)
        waiting = self.pending.get(number)
        if waiting is not None and waiting.decision is decision:
            return number
        if waiting is not None and isinstance(decision, Decision) and waiting.decision != decision:
            raise ValueError(f"decision {number} is {waiting.decision} here, got {decision}")
        if waiting is not None or number in self.answered:
            return number
        if 0 < number < self.next_id:
            raise ValueError(f"decision {number} is not known: answered too long ago, or by another bandit of this log")
        raise ValueError(f"decision {number} was never made here")

    def check_again(self, number: int, value: float, before: float | None) -> None:
        """Raise unless a reward told again is the reward that was told ``before``."""
        if before != value:
            was = "cancelled or expired" if before is None else f"told the reward {before}"
            raise ValueError(f"decision {number} was {was} before, got the reward {value}")

    # JSON.

    def pending_as_json(self) -> list[list[Any]]:
        """The pending decisions as plain lists."""
        return [
            [w.decision.id, w.arm, w.decision.propensity, w.decision.round, w.decision.version, w.time]
            for w in self.pending.values()
        ]

    def answered_as_json(self) -> list[list[Any]]:
        """The answers that are remembered, as pairs of a decision's number and its reward."""
        return [list(pair) for pair in self.answered.items()]

    def restore(self, names: Sequence[Any], next_id: Any, last: Any, pending: Any, answered: Any) -> None:
        """Take what a saved bandit had, after a look at all of it; ``names`` are those of the arms."""
        self.next_id = check_count("next_id", next_id)
        for number, arm, propensity, count, version, time in pending:
            self._check_new(number)
            index, chance = check_count("arm", arm, least=0), check_propensity("propensity", propensity)
            counts = check_count("round", count), check_count("version", version, least=0)
            decision = Decision(number, names[index], chance, *counts)
            self.open(Waiting(decision, index, check_number("time", time)))
        self.last = [check_count("last", number, least=0) for number in last]
        if len(self.last) != len(names) or max(self.last) >= self.next_id:
            raise ValueError(f"last must be a decision below {self.next_id} for each arm, got {self.last}")
        for number, reward in answered:
            self._check_new(number)
            self.answered[number] = None if reward is None else check_reward(reward)

    def _check_new(self, number: Any) -> None:
        """Raise if it is not the number of a decision that was made, or is there already."""
        if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < self.next_id:
            raise ValueError(f"the id of a decision must be a whole number below {self.next_id}, got {number!r}")
        if number in self.pending or number in self.answered:
            raise ValueError(f"the ids of decisions must differ, got {number} again")
