"""The decisions of a live bandit: which of them wait for a reward, and how the others were answered."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from rightarm.formula import check_count, check_number
from rightarm.live.arms import check_reward
from rightarm.live.contextual import Context
from rightarm.live.names import listed
from rightarm.logs.events import check_propensity
from rightarm.types import F64, I64

SKIPPED_BITS = 36  # of ids, by chance: a bandit can come back some 10,000 times before ids reach 2^53
REMEMBERED = 100_000  # answers, and rewards without a decision, that are remembered: some day they may be corrected

A = TypeVar("A", bound=Hashable)
Unit = str | int


class Unknown(ValueError):
    """A decision was never made here, or was answered too long ago to be remembered."""


class Answered(ValueError):
    """A decision has another answer already, which stands."""


class Decision(NamedTuple, Generic[A]):
    """One choice of an arm, with the probability that the arm had."""

    id: int
    """A number that no other decision of this bandit has.

    Ids begin with 1 if the bandit has a seed. Otherwise they begin anywhere, so that no two bandits share any.
    """
    arm: A
    """The arm chosen."""
    propensity: float
    """The probability with which it was chosen."""
    round: int
    """One more than the number of rewards that the bandit had learned, from its beginning on.

    The round that the policy's formula sees is one more than the number of rewards that *count*: the same, unless the
    bandit has a ``discount`` or a ``window``, which make old rewards count less or not at all.
    """
    version: int
    """The number of changes of the bandit's state before it.

    Decisions of one version had the same probabilities, if they chose among the same arms and each of these had a
    reward, and if the policy looks at no context.
    """
    group: str | None = None
    """"holdout" if the bandit has a holdout and the decision belongs to it."""
    error: float = 0.0
    """By how much the propensity may differ from the policy's own probability, where that is estimated.

    The arm was drawn with the propensity itself in any case.
    """

    @property
    def exact(self) -> bool:
        """Whether the propensity is the policy's own probability to the last digits."""
        return self.error == 0.0


class Waiting(NamedTuple):
    """A decision that waits for its reward: its arm's number, when and for whom it was made, its reward so far."""

    decision: Decision[Any]
    arm: int
    time: float
    unit: Unit | None = None
    so_far: float | None = None
    context: Context | None = None

    def as_event(self) -> dict[str, Any]:
        """The event of a log that says so; what is None is left out."""
        fields = {**self.decision._asdict(), "time": self.time, "unit": self.unit}
        fields["error"] = self.decision.error or None
        return {"event": "decision", **{name: value for name, value in fields.items() if value is not None}}


class Answer(NamedTuple):
    """How a decision was answered, and what is needed to correct that."""

    reward: float | None
    """None if the decision was cancelled, or its time passed without a reward."""
    arm: int
    """The number of its arm; −1 if that is not known, of a bandit that 0.1.0 saved."""
    learned: int = 0
    """How many rewards had been learned with this one; 0 if it was not learned."""
    propensity: float = 1.0
    silent: bool = False
    """Whether the reward is the default, which stands for silence."""
    context: Context | None = None
    time: float | None = None
    """When the decision was made, where rewards may come too late to be learned."""
    late: float | None = None
    """The reward that came too late."""


class Ledger:
    """Every decision from `open` to `close`; arms are known by their numbers.

    What an interrupt broke off may be repeated: afterwards `recount` makes the counts right.
    """

    def __init__(self, first: int = 1) -> None:
        self.first = self.next_id = first
        self.pending: dict[int, Waiting] = {}
        self.answered: OrderedDict[int, Answer] = OrderedDict()
        self.observed: dict[int, Answer] = {}  # rewards that belong to no decision, by their number
        self.units: dict[Unit, Waiting] = {}  # the latest decision for each, without context or reward
        self.waiting: I64 = np.zeros(0, dtype=np.int64)  # how many decisions of each arm are pending
        self.settled: dict[int, tuple[float, float]] = {}  # of each arm the extremes of rewards not remembered here

    def add_arms(self, count: int) -> None:
        """So many arms more, for which no decision was made."""
        self.waiting = np.append(self.waiting, np.zeros(count, dtype=np.int64))

    def open(self, waiting: Waiting) -> None:
        """A decision was made."""
        number = waiting.decision.id
        self.pending[number] = waiting
        self.waiting[waiting.arm] += 1
        if waiting.unit is not None:
            self.units[waiting.unit] = waiting._replace(context=None)
        if number >= self.next_id:
            self.next_id = number + 1

    def note(self, number: int, so_far: float) -> None:
        """A part of the reward of a pending decision came."""
        self.pending[number] = self.pending[number]._replace(so_far=so_far)

    def close(self, number: int, answer: Answer) -> None:
        """A pending decision has its reward, or will have none."""
        self.pending.pop(number, None)
        self.answered[number] = answer
        self.waiting[answer.arm] -= 1
        if len(self.answered) > REMEMBERED:
            _, oldest = self.answered.popitem(last=False)
            if oldest.reward is not None and oldest.arm >= 0:
                self.settle(oldest.arm, oldest.reward)

    def settle(self, arm: int, reward: float) -> None:
        """A reward will never be corrected: only the lowest and the highest of these are remembered."""
        low, high = self.settled.get(arm, (reward, reward))
        self.settled[arm] = min(low, reward), max(high, reward)

    def extremes(self) -> tuple[F64, F64]:
        """Return the lowest and the highest reward of every arm, as rewards are now; NaN of an arm without any."""
        answers, settled = self.answered.values(), self.settled.items()
        arms = np.array([one.arm for one in answers] + [arm for arm, ends in settled for _ in ends], dtype=np.int64)
        rewards = np.array([one.reward for one in answers] + [end for _, ends in settled for end in ends], dtype=float)
        known = (arms >= 0) & ~np.isnan(rewards)  # without a reward it is None; 0.1.0 saved answers without their arm
        lows, highs = np.full(self.waiting.size, np.nan), np.full(self.waiting.size, np.nan)
        np.fmin.at(lows, arms[known], rewards[known])
        np.fmax.at(highs, arms[known], rewards[known])
        return lows, highs

    def observe(self, answer: Answer) -> None:
        """A reward came that belongs to no decision; it is remembered as long as answers are."""
        self.observed[answer.learned] = answer
        if answer.reward is not None:
            self.settle(answer.arm, answer.reward)
        if len(self.observed) > REMEMBERED:
            del self.observed[next(iter(self.observed))]

    def recount(self, arms: int) -> None:
        """Count anew how many decisions of each of so many arms are pending."""
        pending = [waiting.arm for waiting in self.pending.values()]
        self.waiting = np.bincount(np.array(pending, dtype=np.int64), minlength=arms)

    def older_than(self, time: float) -> list[int]:
        """The pending decisions that were made before ``time``."""
        return [number for number, waiting in self.pending.items() if waiting.time < time]

    def skip_ids(self) -> None:
        """Leave out some ids, unless a seed decides them: another copy of this bandit may have used the next ones."""
        if self.first != 1:
            self.next_id += secrets.randbits(SKIPPED_BITS)

    # Questions about decisions that users name.

    def number_of(self, decision: Any) -> int:
        """The number of a decision, given as such or by its id, that is pending or remembered."""
        number = decision.id if isinstance(decision, Decision) else decision
        if type(number) is not int:
            number = whole_id(decision, number)
        waiting = self.pending.get(number)
        if waiting is not None and waiting.decision is decision:
            return number
        if waiting is not None and isinstance(decision, Decision) and waiting.decision != decision:
            raise ValueError(f"decision {number} is {waiting.decision} here, got {decision}")
        if waiting is not None or number in self.answered:
            return number
        if self.first <= number < self.next_id:
            raise Unknown(f"decision {number} is not known: answered too long ago, or by another bandit of this log")
        raise Unknown(f"decision {number} was never made here")

    def check_again(self, number: int, value: float, before: float | None) -> None:
        """Raise unless a reward told again is the reward that was told ``before``."""
        if before != value:
            was = "cancelled or expired" if before is None else f"told the reward {before}"
            raise Answered(f"decision {number} was {was} before, got the reward {value}; correct() replaces a reward")

    # JSON.

    def as_json(self) -> dict[str, Any]:
        """All decisions as plain lists."""
        observed = [[one.learned, one.arm, one.reward, *_context(one)] for one in self.observed.values()]
        return {
            "first_id": self.first,
            "next_id": self.next_id,
            "pending": [_as_list(waiting) for waiting in self.pending.values()],
            "answered": [[number, *answer[:5], *_context_and_time(answer)] for number, answer in self.answered.items()],
            "units": [_as_list(waiting) for waiting in self.units.values()],
            "settled": [[arm, *ends] for arm, ends in self.settled.items()],
        } | ({"observed": observed} if observed else {})

    def restore(self, names: Sequence[Any], plain: dict[str, Any]) -> None:
        """Take what a saved bandit had, after a look at all of it; ``names`` are those of the arms."""
        self.next_id = check_count("next_id", plain["next_id"])
        self.first = check_count("first_id", plain.get("first_id", 1))
        for row in listed("pending", plain["pending"]):
            self._check_new(row[0])
            self.open(_from_list(row, names))
        for number, *answer in listed("answered", plain["answered"]):
            self._check_new(number)
            self.answered[number] = _answer_from(answer, len(names))
        for arm, *ends in listed("settled", plain.get("settled", [])):
            for end in ends:
                self.settle(_known_arm(arm, len(names)), check_reward(end))
        for learned, arm, reward, *context in listed("observed", plain.get("observed", [])):
            self.observe(_answer_from([reward, arm, learned, 1.0, False, *context], len(names)))
        self.units.clear()  # which stand in their own order
        for row in listed("units", plain.get("units", [])):
            waiting = _from_list(row, names)
            if waiting.unit is None:
                raise ValueError(f"units must be decisions for a unit, got {row!r:.60}")
            known = self.pending.get(waiting.decision.id, waiting)
            self.units[waiting.unit] = known._replace(so_far=None, context=None)

    def _check_new(self, number: Any) -> None:
        """Raise if it is not the number of a decision that was made, or is there already."""
        if isinstance(number, bool) or not isinstance(number, int) or not self.first <= number < self.next_id:
            raise ValueError(f"the id of a decision must be from {self.first} to {self.next_id - 1}, got {number!r}")
        if number in self.pending or number in self.answered:
            raise ValueError(f"the ids of decisions must differ, got {number} again")


def whole_id(decision: Any, number: Any) -> int:
    """The id of a decision as a whole number; as text too, as it comes in addresses of web pages."""
    if isinstance(number, str) and number.isascii() and number.isdigit():
        return int(number)
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise TypeError(f"decision must be a Decision or its id, got {decision!r}")
    return int(number)


def check_unit(unit: Any) -> Unit:
    """Return ``unit`` if it can stand for whom a decision is made."""
    if isinstance(unit, bool) or not isinstance(unit, str | int):
        raise TypeError(f"unit must be a text or a whole number, got {unit!r}")
    return unit


def _as_list(waiting: Waiting) -> list[Any]:
    decision = waiting.decision
    counts = [decision.propensity, decision.round, decision.version]
    known = [decision.id, waiting.arm, *counts, waiting.time, decision.group, waiting.unit, waiting.so_far]
    return [*known, *([decision.error] if decision.error or waiting.context else []), *_context(waiting)]


def _context(one: Waiting | Answer) -> list[Any]:
    """The context at the end of a row, if there is one."""
    return [] if one.context is None else [one.context.to_json()]


def _context_and_time(answer: Answer) -> list[Any]:
    """The end of a row; whatever is last and None is left out."""
    if answer.time is not None:
        return [None if answer.context is None else answer.context.to_json(), answer.time, answer.late]
    return _context(answer)


def _from_list(row: Sequence[Any], names: Sequence[Any]) -> Waiting:
    """A decision from a row of a state; rows of 0.1.0 end with the time."""
    padded = [*row, *[None] * (11 - len(row))]
    number, arm, propensity, count, version, time, group, unit, so_far, error, context = padded
    index, chance = check_count("arm", arm, least=0), check_propensity("propensity", propensity)
    counts = check_count("round", count), check_count("version", version, least=0)
    if group not in (None, "holdout"):
        raise ValueError(f"group must be 'holdout' or nothing, got {group!r}")
    decision = Decision(check_count("id", number, least=0), names[index], chance, *counts, group)
    if error is not None:
        decision = decision._replace(error=check_number("error", error))
    unit, told = None if unit is None else check_unit(unit), None if so_far is None else check_reward(so_far)
    return Waiting(decision, index, check_number("time", time), unit, told, _context_from(context))


def _context_from(plain: Any) -> Context | None:
    return None if plain is None else Context.from_json(plain)


def _known_arm(arm: Any, arms: int, least: int = 0) -> int:
    """Return ``arm`` if it is the number of one of so many arms."""
    if not least <= check_count("arm", arm, least=least) < arms:
        raise ValueError(f"arm must be one of {arms}, got {arm}")
    return int(arm)


def _answer_from(row: Sequence[Any], arms: int) -> Answer:
    """An answer from a row of a state; 0.1.0 wrote the reward alone."""
    full = [*row, -1, 0, 1.0, False] if len(row) == 1 else row
    reward, arm, learned, propensity, silent, context, time, late = [*full, None, None, None][:8]
    arm = _known_arm(arm, arms, least=-1)
    value = None if reward is None else check_reward(reward)
    if not isinstance(silent, bool):
        raise ValueError(f"silent must be true or false, got {silent!r}")
    counted, chance = check_count("learned", learned, least=0), check_propensity("propensity", propensity)
    rest = [None if one is None else check_number(name, one) for name, one in (("time", time), ("late", late))]
    return Answer(value, arm, counted, chance, silent, _context_from(context), *rest)
