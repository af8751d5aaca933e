"""What follows from an event for the tables beside it: decisions, and counts by arm and hour."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from rightarm.live.state import State
from rightarm.logs.events import Cancellation, Correction, Decision, Event, Expiry, Observation, Reward, ids_of

HOUR = 3600


class Rows:
    """The rows that follow from some events of a bandit."""

    def __init__(self) -> None:
        self.decisions: dict[int, tuple[int, str | None]] = {}
        """Of each new decision the number of its event, and its unit as JSON."""
        self.answers: dict[int, int] = {}
        """Of each decision that was answered or corrected the number of the event."""
        self.counts: defaultdict[tuple[int, int], list[float]] = defaultdict(lambda: [0, 0, 0.0, 0.0])
        """By hour and arm: decisions, rewards, the sum of these, and that of their absolute values."""

    def add(self, state: State, event: Event, n: int) -> None:
        """Take the event of number ``n``; ``state`` is that before it."""
        hour = int(event.time // HOUR)
        match event:
            case Decision():
                unit = None if event.unit is None else msgspec.json.encode(event.unit).decode()
                self.decisions[event.id] = n, unit
                self.counts[hour, state.index[event.arm]][0] += 1
            case Observation():
                self._count(hour, state.index[event.arm], 1, event.reward)
            case Reward(part=True):
                pass
            case Reward() | Cancellation() | Expiry() | Correction():
                for number in ids_of(event):
                    self.answers[number] = n
                    self._answer(state, event, number, hour)

    def _answer(self, state: State, event: Reward | Cancellation | Expiry | Correction, number: int, hour: int) -> None:
        reward = None if isinstance(event, Cancellation) else event.reward
        waiting = state.ledger.pending.get(number)
        if waiting is not None:
            value = waiting.so_far if isinstance(event, Expiry) and reward is None else reward
            if value is not None:
                self._count(hour, waiting.arm, 1, value)
            return
        before = state.ledger.answered.get(number)
        if before is not None and reward is not None:
            if before.reward is None:
                self._count(hour, before.arm, 1, reward)
            else:
                self._count(hour, before.arm, 0, reward - before.reward)

    def _count(self, hour: int, arm: int, rewards: int, total: float) -> None:
        row = self.counts[hour, arm]
        row[1] += rewards
        row[2] += total
        row[3] += abs(total)

    def decision_rows(self, bandit: int) -> list[dict[str, Any]]:
        """Return the new decisions as the table has them."""
        return [
            {"bandit": bandit, "id": number, "n": n, "unit": unit, "answer": self.answers.get(number)}
            for number, (n, unit) in self.decisions.items()
        ]

    def answer_rows(self, bandit: int) -> list[dict[str, Any]]:
        """Return the answers of decisions that the table has already."""
        return [
            {"of": bandit, "number": number, "event": n}
            for number, n in self.answers.items()
            if number not in self.decisions
        ]

    def count_rows(self, bandit: int) -> list[dict[str, Any]]:
        """Return what is to be added to the counts."""
        return [
            {"bandit": bandit, "hour": hour, "arm": arm, "decisions": made, "rewards": rewards, "total": total}
            for (hour, arm), (made, rewards, total, _) in sorted(self.counts.items())
        ]
