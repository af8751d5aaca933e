"""The decisions of a live bandit: which of them wait for a reward, and how the others were answered."""

from __future__ import annotations

import copy
import itertools
import secrets
from collections import deque
from collections.abc import Iterator
from typing import Any, Self

import msgspec
import numpy as np

from rightarm.errors import WrongType, WrongValue
from rightarm.estimators.extension import Extension
from rightarm.live.contextual import Context
from rightarm.logs.events import LARGEST_WHOLE, Decision, Unit
from rightarm.types import F64, I64

SKIPPED_BITS = 36  # of ids, by chance: a bandit can come back some 10,000 times before ids reach 2^53
REMEMBERED = 100_000  # answers, and rewards without a decision, that are remembered: some day they may be corrected


class Unknown(WrongValue):
    """A decision was never made here, or was answered too long ago to be remembered."""


class Answered(WrongValue):
    """A decision has another answer already, which stands."""


class Waiting(msgspec.Struct, frozen=True):
    """A decision that waits for its reward."""

    decision: Decision[Any]
    arm: int
    """The number of its arm."""
    so_far: float | None = None
    """The reward that has come so far."""
    context: Context | None = None


class Answer(msgspec.Struct, frozen=True):
    """How a decision was answered, and what is needed to correct that."""

    reward: float | None
    """None if the decision was cancelled, or its time passed without a reward."""
    arm: int
    """The number of its arm."""
    learned: int = 0
    """How many rewards had been learned with this one; 0 if it was not learned."""
    propensity: float = 1.0
    silent: bool = False
    """Whether the reward is the default, which stands for silence."""
    context: Context | None = None
    time: float | None = None
    """When the decision was made; None for a reward that belongs to none."""
    late: float | None = None
    """The reward that came too late."""


class Ledger:
    """Every decision from `open` to `close`; arms are known by their numbers."""

    def __init__(self, first: int = 1) -> None:
        self.first = first
        self.next_id = first
        self.pending: dict[int, Waiting] = {}
        self.answered: dict[int, Answer] = {}
        self._order: deque[int] = deque()  # of the answered: a dict finds its oldest key slowly
        self.observed: dict[int, Answer] = {}  # rewards that belong to no decision, by their number
        self.units: dict[Unit, Decision[Any]] = {}  # the latest decision for each
        self.waiting: I64 = np.zeros(0, dtype=np.int64)  # how many decisions of each arm are pending
        self.settled: dict[int, tuple[float, float]] = {}  # of each arm the extremes of rewards not remembered here

    def copy(self) -> Self:
        """Return a ledger that goes its own way from now on."""
        twin = copy.copy(self)
        twin.pending = self.pending.copy()
        twin.answered = self.answered.copy()
        twin._order = self._order.copy()
        twin.observed = self.observed.copy()
        twin.units = self.units.copy()
        twin.waiting = self.waiting.copy()
        twin.settled = self.settled.copy()
        return twin

    def __len__(self) -> int:
        """Return about how much there is to copy."""
        return len(self.pending) + len(self.answered) + len(self.observed) + len(self.units)

    # Changes.

    def add_arms(self, count: int) -> None:
        """Have so many arms more, for which no decision was made."""
        self.waiting = np.append(self.waiting, np.zeros(count, dtype=np.int64))

    def open(self, waiting: Waiting) -> None:
        """Let a decision wait for its reward."""
        decision = waiting.decision
        self.pending[decision.id] = waiting
        self.waiting[waiting.arm] += 1
        if decision.unit is not None:
            self.units[decision.unit] = decision
        if decision.id >= self.next_id:
            self.next_id = decision.id + 1

    def note(self, number: int, so_far: float) -> None:
        """Keep the reward so far of a pending decision."""
        self.pending[number] = msgspec.structs.replace(self.pending[number], so_far=so_far)

    def close(self, number: int, answer: Answer) -> None:
        """End the waiting of a decision: it has its reward, or will have none."""
        del self.pending[number]
        self.waiting[answer.arm] -= 1
        self.remember(number, answer)

    def remember(self, number: int, answer: Answer) -> None:
        """Remember how a decision was answered, and forget the oldest answer if there are too many."""
        self.answered[number] = answer
        self._order.append(number)
        if len(self._order) > REMEMBERED:
            oldest = self.answered.pop(self._order.popleft())
            if oldest.reward is not None:
                self.settle(oldest.arm, oldest.reward)

    def settle(self, arm: int, reward: float) -> None:
        """Remember of a reward that will never be corrected only how low or high it was."""
        low, high = self.settled.get(arm, (reward, reward))
        self.settled[arm] = min(low, reward), max(high, reward)

    def observe(self, answer: Answer) -> None:
        """Remember a reward that belongs to no decision as long as answers are."""
        self.observed[answer.learned] = answer
        if answer.reward is not None:
            self.settle(answer.arm, answer.reward)
        if len(self.observed) > REMEMBERED:
            del self.observed[next(iter(self.observed))]

    def skip_ids(self) -> None:
        """Leave out some ids, unless a seed decides them: another copy of this bandit may have used the next ones."""
        if self.first != 1:
            self.next_id += secrets.randbits(SKIPPED_BITS)

    def extended(self, extension: Extension) -> Self:
        """Return the same ledger with contexts that have more features, which are missing in all of them."""

        def more(rows: dict[int, Any]) -> dict[int, Any]:
            return {
                number: msgspec.structs.replace(one, context=one.context.extended(extension))
                for number, one in rows.items()
            }

        twin = self.copy()
        twin.pending = more(self.pending)
        twin.answered = more(self.answered)
        twin.observed = more(self.observed)
        return twin

    # Questions.

    def oldest(self, answers: int) -> set[int]:
        """Return the decisions that would be forgotten if so many more were answered."""
        return set(itertools.islice(self._order, max(0, len(self._order) + answers - REMEMBERED)))

    def answers(self) -> Iterator[tuple[int, Answer]]:
        """Yield the remembered answers, the oldest first."""
        for number in self._order:
            yield number, self.answered[number]

    def extremes(self) -> tuple[F64, F64]:
        """Return the lowest and the highest reward of every arm, as rewards are now; NaN of an arm without any."""
        answers = self.answered.values()
        settled = self.settled.items()
        arms = np.array([one.arm for one in answers] + [arm for arm, ends in settled for _ in ends], dtype=np.int64)
        rewards = np.array([one.reward for one in answers] + [end for _, ends in settled for end in ends], dtype=float)
        known = ~np.isnan(rewards)  # without a reward it is None
        lows = np.full(self.waiting.size, np.nan)
        highs = lows.copy()
        np.fmin.at(lows, arms[known], rewards[known])
        np.fmax.at(highs, arms[known], rewards[known])
        return lows, highs

    def older_than(self, time: float) -> list[Waiting]:
        """Return the pending decisions that were made before ``time``."""
        return [waiting for waiting in self.pending.values() if waiting.decision.time < time]

    def number_of(self, decision: Any) -> int:
        """Return the id of a decision, given as such or by its id, that is pending or remembered."""
        number = decision.id if isinstance(decision, Decision) else decision
        if type(number) is not int:
            number = whole_id(decision, number)
        waiting = self.pending.get(number)
        if waiting is not None:
            if waiting.decision is not decision and isinstance(decision, Decision) and waiting.decision != decision:
                raise WrongValue("decision", f"{number} is {waiting.decision} here, got {decision}")
            return number
        if number in self.answered:
            return number
        if self.first <= number < self.next_id:
            what = f"{number} is not known: answered too long ago, or by another bandit of this log"
            raise Unknown("decision", what, code="unknown")
        raise Unknown("decision", f"{number} was never made here", code="unknown")


def whole_id(decision: Any, number: Any) -> int:
    """Return the id of a decision as a whole number; as text too, as it comes in addresses of web pages."""
    if isinstance(number, str) and number.isascii() and number.isdigit():
        return int(number)
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise WrongType("decision", f"must be a Decision or its id, got {decision!r}")
    return int(number)


def check_unit(unit: Any) -> Unit:
    """Return ``unit`` if it can stand for whom a decision is made."""
    if isinstance(unit, bool) or not isinstance(unit, str | int):
        raise WrongType("unit", f"must be a text or a whole number, got {unit!r}")
    if isinstance(unit, int):
        if not 0 <= unit <= LARGEST_WHOLE:
            raise WrongValue("unit", f"must be from 0 to {LARGEST_WHOLE:,} if it is a number, got {unit}")
        return unit
    try:
        unit.encode()
    except UnicodeEncodeError:
        raise WrongValue("unit", f"must be a text that UTF-8 can encode, got {unit!a:.200}") from None
    return unit
