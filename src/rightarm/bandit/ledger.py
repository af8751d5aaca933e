"""The decisions of a live bandit: those that wait for a reward, and those that were answered."""

from __future__ import annotations

import copy
import itertools
import secrets
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Self, TypeVar

import msgspec
import numpy as np

from rightarm.bandit.context_arms import StoredContext
from rightarm.errors import WrongType, WrongValue
from rightarm.estimators.added_features import Extension
from rightarm.logs.events import LARGEST_WHOLE, Decision, Unit
from rightarm.types import F64

SKIPPED_BITS = 36  # of ids, by chance: a bandit can come back some 10,000 times before ids reach 2^53
REMEMBERED = 100_000  # answers, and rewards without a decision, that are remembered: some day they may be corrected

AnyDecision = Decision[Any]
DecisionOrId = AnyDecision | int | str


class UnknownDecision(WrongValue):
    """A decision was never made here, or was answered too long ago to be remembered."""


class AlreadyAnswered(WrongValue):
    """A decision has another answer already, which stands."""


class PendingDecision(msgspec.Struct, frozen=True, gc=False):
    """A decision that waits for its reward."""

    decision: AnyDecision
    arm: int
    """The number of its arm."""
    so_far: float | None = None
    """The reward that has come so far."""
    context: StoredContext | None = None


class AnsweredDecision(msgspec.Struct, frozen=True, gc=False):
    """A decision that was rewarded, cancelled or expired, with what is needed to correct that."""

    reward: float | None
    """None if the decision was cancelled, or its time passed without a reward."""
    arm: int
    """The number of its arm."""
    learned: int = 0
    """How many rewards had been learned with this one; 0 if it was not learned."""
    propensity: float = 1.0
    silent: bool = False
    """True if the reward is the default, which stands for silence."""
    context: StoredContext | None = None
    time: float | None = None
    """When the decision was made; None for a reward that belongs to none."""
    late: float | None = None
    """The reward that came too late."""


OfDecision = TypeVar("OfDecision", PendingDecision, AnsweredDecision)


class Ledger:
    """Every decision, by id: pending from `open` on, answered from `close` on; arms go by their numbers."""

    def __init__(self, first: int = 1) -> None:
        self.first = first
        self.next_id = first
        self.pending: dict[int, PendingDecision] = {}
        self.answered: dict[int, AnsweredDecision] = {}
        self._order: deque[int] = deque()  # of the answered: a dict finds its oldest key slowly
        self.observed: dict[int, AnsweredDecision] = {}  # rewards that belong to no decision, by their number
        self.units: dict[Unit, AnyDecision] = {}  # the latest decision for each
        self.pending_counts: list[int] = []  # how many decisions of each arm are pending
        self.settled: dict[int, tuple[float, float]] = {}  # of each arm the extremes of rewards not remembered here

    def copy(self) -> Self:
        """Return a copy that changes by itself."""
        twin = copy.copy(self)
        twin.pending = self.pending.copy()
        twin.answered = self.answered.copy()
        twin._order = self._order.copy()
        twin.observed = self.observed.copy()
        twin.units = self.units.copy()
        twin.pending_counts = self.pending_counts.copy()
        twin.settled = self.settled.copy()
        return twin

    def __len__(self) -> int:
        """Return about how much there is to copy."""
        return len(self.pending) + len(self.answered) + len(self.observed) + len(self.units)

    # Changes.

    def add_arms(self, count: int) -> None:
        """Add so many arms, for which no decision was made."""
        self.pending_counts += [0] * count

    def open(self, pending: PendingDecision) -> None:
        """Let a decision wait for its reward."""
        decision = pending.decision
        number = decision.id
        self.pending[number] = pending
        self.pending_counts[pending.arm] += 1
        if decision.unit is not None:
            self.units[decision.unit] = decision
        if number >= self.next_id:
            self.next_id = number + 1

    def note(self, number: int, so_far: float) -> None:
        """Note the reward so far of a pending decision."""
        self.pending[number] = msgspec.structs.replace(self.pending[number], so_far=so_far)

    def close(self, number: int, answer: AnsweredDecision) -> None:
        """End the waiting of a decision: it has its reward, or will have none."""
        del self.pending[number]
        self.pending_counts[answer.arm] -= 1
        self.remember(number, answer)

    def remember(self, number: int, answer: AnsweredDecision) -> None:
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

    def observe(self, answer: AnsweredDecision) -> None:
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
        twin = self.copy()
        twin.pending = _extended(self.pending, extension)
        twin.answered = _extended(self.answered, extension)
        twin.observed = _extended(self.observed, extension)
        return twin

    # Questions.

    def oldest(self, answers: int) -> set[int]:
        """Return the decisions that would be forgotten if so many more were answered."""
        return set(itertools.islice(self._order, max(0, len(self._order) + answers - REMEMBERED)))

    def answers(self) -> Iterator[tuple[int, AnsweredDecision]]:
        """Yield the remembered answers, the oldest first."""
        for number in self._order:
            yield number, self.answered[number]

    def extremes(self) -> tuple[F64, F64]:
        """Return the lowest and the highest reward of every arm, as rewards are now; NaN of an arm without any."""
        pairs = [(one.arm, one.reward) for one in self.answered.values() if one.reward is not None]
        pairs += [(arm, end) for arm, ends in self.settled.items() for end in ends]
        arms = np.array([arm for arm, _ in pairs], dtype=np.int64)
        rewards = np.array([reward for _, reward in pairs], dtype=float)
        lows = np.full(len(self.pending_counts), np.nan)
        highs = lows.copy()
        np.fmin.at(lows, arms, rewards)
        np.fmax.at(highs, arms, rewards)
        return lows, highs

    def older_than(self, time: float) -> list[PendingDecision]:
        """Return the pending decisions that were made before ``time``."""
        return [pending for pending in self.pending.values() if pending.decision.time < time]

    def number_of(self, decision: DecisionOrId) -> int:
        """Return the id of a decision, given as such or by its id, that is pending or remembered."""
        number = decision.id if isinstance(decision, Decision) else decision
        if type(number) is not int:
            number = whole_id(decision, number)
        pending = self.pending.get(number)
        if pending is not None:
            made = pending.decision
            if made is not decision and isinstance(decision, Decision) and made != decision:
                raise WrongValue("decision", f"{number} is {made} here, got {decision}")
            return number
        if number in self.answered:
            return number
        if self.first <= number < self.next_id:
            what = f"{number} is not known: answered too long ago, or by another bandit of this log"
            raise UnknownDecision("decision", what, code="unknown")
        raise UnknownDecision("decision", f"{number} was never made here", code="unknown")


def _extended(rows: dict[int, OfDecision], extension: Extension) -> dict[int, OfDecision]:
    found = dict[int, OfDecision]()
    for number, one in rows.items():
        assert one.context is not None
        found[number] = msgspec.structs.replace(one, context=one.context.extended(extension))
    return found


# Names that users give.


def hashable_name(arm: object) -> Hashable:
    """Return an arm's name, if it can be one."""
    if not isinstance(arm, Hashable):
        raise TypeError(f"arm must be hashable, got {arm!r}")
    return arm.item() if isinstance(arm, np.generic) else arm  # a number that JSON and logs know


def distinct(arms: Iterable[Hashable]) -> list[Any]:
    """Return the names of arms, if they are several that differ."""
    if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise WrongType("arms", f"must be several names, got {arms!r}")
    names: dict[Hashable, None] = {}
    for name in map(hashable_name, arms):
        if name in names:
            raise ValueError(f"arms must differ, got {name!r} again")
        names[name] = None
    return list(names)


def whole_id(decision: object, number: object) -> int:
    """Return the id of a decision as a whole number; as text too, as it comes in addresses of web pages."""
    if isinstance(number, str) and number.isascii() and number.isdigit():
        return int(number)
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise WrongType("decision", f"must be a Decision or its id, got {decision!r}")
    return int(number)


def check_unit(unit: object) -> Unit:
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
