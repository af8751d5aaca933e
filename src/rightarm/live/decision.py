"""`Decision`: what `Bandit.ask` gives."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple


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
