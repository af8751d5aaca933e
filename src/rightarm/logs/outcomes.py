"""Outcomes of decisions: the order in which events can follow, and how each decision of a log ended.

Every decision is made once, answered at most once, and corrected after that. `EventOrder` checks this for one event
after the other, `Steps` in arrays, for a whole log at once.

Where a bandit has windows of reward, only decisions whose window has closed count: while windows are open, quick
rewards are there and silence is not. So an open one has no reward, whether one has come or not, and a closed one that
stayed silent has the default reward.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rightarm.logs.events import Arm, Changed, Created, Decision, Event, Expiry, Reward, Step, ids_of, kind_of
from rightarm.logs.lines import Block, Kind, Numbering, PathLike, log_at, read_blocks
from rightarm.logs.settings import Settings
from rightarm.types import F64, I64

Flags = NDArray[np.bool_]

# The states of a decision.
NEW, WAITING, ANSWERED = range(3)

# By step: the state that it needs, and the state that it leaves behind.
NEEDS = np.array([NEW, WAITING, WAITING, WAITING, WAITING, ANSWERED, ANSWERED])
LEAVES = np.array([WAITING, WAITING, ANSWERED, ANSWERED, ANSWERED, ANSWERED, ANSWERED])

NEVER = np.iinfo(np.int64).max  # the number of no event
STEP = np.dtype([("id", "i8"), ("place", "i8"), ("step", "i1"), ("reward", "f8"), ("time", "f8")])


def step_of(event: Event) -> Step | None:
    """Return what an event does to the decisions that it is about, None if it is about none."""
    return Step.PART if isinstance(event, Reward) and event.part else event.step


def refusal(event: Event, number: int, state: int) -> str:
    """Say why an event cannot come while the decision of this number is in such a state."""
    kind = kind_of(event)
    if kind == "decision":
        return f"id must be a new one for every decision, got {number} again"
    article = "an" if kind[0] in "aeiou" else "a"
    if state == NEW:
        return f"id must be that of a decision for {article} {kind}, got the unknown {number}"
    if state == WAITING:
        return f"id must be that of an answered decision for {article} {kind}, got {number}, which waits"
    return f"id must be that of a decision without a reward, got {number}, which is answered"


def check_arms(event: Event) -> None:
    """Raise if a list of arms has an arm twice, or an arm was chosen that was not among those to choose from."""
    if isinstance(event, Decision):
        if event.allowed is None:
            return
        _check_once("allowed", event.allowed)
        if _key(event.arm) not in map(_key, event.allowed):
            raise ValueError(f"arm must be among {event.allowed}, got {event.arm!r}")
    elif isinstance(event, Created | Changed) and event.arms is not None:
        _check_once("arms", event.arms)


def _check_once(name: str, arms: list[Arm]) -> None:
    if len(set(map(_key, arms))) < len(arms):
        raise ValueError(f"{name} must have every arm once, got {arms!r:.200}")


def _key(arm: Arm) -> tuple[bool, Arm]:
    """Return what tells arms apart: True equals 1, but is another name."""
    return isinstance(arm, bool), arm


def settings_after(settings: Settings, event: Event) -> Settings:
    """Return the settings of a bandit after an event; raises if the event changes them to what cannot be."""
    if isinstance(event, Created):
        return event.settings
    if isinstance(event, Changed) and event.settings:
        return settings.changed(**event.settings)
    return settings


# Events one after the other.


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
        first = int(ends[longest - 1]) + 1 if longest else 0
        last = int(ends[longest])
        self.run = int(ascending[first]), int(ascending[last]) + 1
        self.others = {*ascending[:first].tolist(), *ascending[last + 1 :].tolist()}


class EventOrder:
    """Keeps what it needs of the events so far to say which events can follow."""

    def __init__(self) -> None:
        self.decided = WholeNumbers()
        self.waiting: set[int] = set()
        self.settings = Settings()
        self.last_id: int | None = None
        self.latest: float | None = None  # the latest time of an event
        self.events = 0

    def _state_of(self, number: int) -> int:
        if number in self.waiting:
            return WAITING
        return ANSWERED if number in self.decided else NEW

    def check(self, events: Sequence[Event]) -> None:
        """Raise if these events cannot follow, one after the other, those taken so far."""
        states = dict[int, int]()
        settings = self.settings
        for event in events:
            check_arms(event)
            settings = settings_after(settings, event)
            step = step_of(event)
            if step is None:
                continue
            for number in ids_of(event):
                state = states.get(number)
                if state is None:
                    state = self._state_of(number)
                if state != NEEDS[step]:
                    raise ValueError(refusal(event, number, state))
                states[number] = LEAVES[step]

    def take(self, event: Event, place: int) -> None:
        """Count the event, which was checked and is the one of this number, from 1 on.

        An event is counted once: what was interrupted may be done again.
        """
        if place <= self.events:
            return
        for number in ids_of(event):
            if isinstance(event, Decision):
                self.decided.add(number)
                self.waiting.add(number)
                self.last_id = number if self.last_id is None else max(number, self.last_id)
            elif step_of(event) != Step.PART:
                self.waiting.discard(number)
        self.settings = settings_after(self.settings, event)
        self.latest = event.time if self.latest is None else max(event.time, self.latest)
        self.events = place


def read_events(path: PathLike, numbering: Numbering | None = None) -> Iterator[Event]:
    """Yield the events of a log one by one, each checked against those before it; errors say where it stands."""
    order = EventOrder()
    for block in read_blocks(log_at(path), Numbering() if numbering is None else numbering):
        for number, event in enumerate(block.events, start=block.first):
            try:
                order.check([event])
            except (TypeError, ValueError) as error:
                raise ValueError(f"{block.where(number)}: {error}") from None
            order.take(event, number)
            yield event


# All events at once.


class Period(NamedTuple):
    """The settings of a bandit in a part of its log."""

    last: int  # the number of the last event in it
    settings: Settings


@dataclass(frozen=True)
class Outcomes:
    """The decisions of a log in the order in which they were made, with what became of them."""

    ids: I64
    places: I64  # the number of the event that each is
    times: F64  # when each was made
    rewards: F64  # the last reward of each that counts, NaN if there is none
    answer_times: F64  # when the reward of each came, or its last part, or it was closed without one; NaN if none did
    answers: I64  # the number of the event that answered each, `NEVER` if none did
    cancelled: Flags
    corrected: Flags
    waiting: Flags  # which wait for an answer, or for their window of reward to close
    open: Flags | None = None  # which have an open window of reward, and so none that counts; None without windows


class Steps:
    """Gathers everything that happens to decisions, block by block."""

    def __init__(self) -> None:
        self._steps = [np.empty(0, STEP)]
        self._times = [np.empty(0)]  # of all events
        self._periods = [Period(0, Settings())]

    def take(self, block: Block) -> None:
        """Take the next events."""
        self._take_changes(block)
        times = np.fromiter(map(attrgetter("time"), block.events), float, len(block.events))
        found = [_steps_of(type_, kind) for type_, kind in block.kinds.items() if type_.step is not None]
        if found:
            steps = np.concatenate(found)
            steps = steps[np.argsort(steps["place"], kind="stable")]
            steps["time"] = times[steps["place"] - block.first]
            self._steps.append(steps)
        self._times.append(times)

    def _take_changes(self, block: Block) -> None:
        """Check lists of arms, and follow the settings."""
        decisions = block.kinds.get(Decision, Kind([], []))
        lists: list[tuple[int, Event]] = [pair for pair in zip(*decisions, strict=True) if pair[1].allowed is not None]
        for place, event in [*lists, *block.changes]:
            last = self._periods[-1]
            try:
                check_arms(event)
                settings = settings_after(last.settings, event)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{block.where(place)}: {error}") from None
            if settings != last.settings:
                self._periods[-1] = Period(place, last.settings)
                self._periods.append(Period(place, settings))

    @property
    def periods(self) -> list[Period]:
        """Return the settings one after the other; the last period ends with the last event."""
        events = sum(times.size for times in self._times)
        last = Period(events, self._periods[-1].settings)
        if len(self._periods) > 1 and self._periods[0].last == 1:  # the first event said how the bandit is set up
            return [*self._periods[1:-1], last]
        return [*self._periods[:-1], last]

    def order(self, path: Path) -> EventOrder:
        """Return what the writer of the log at ``path`` needs to go on."""
        outcomes = self._answered(path)
        made = EventOrder()
        times = np.concatenate(self._times)
        made.events = times.size
        made.latest = float(times.max()) if times.size else None
        made.decided.add_all(outcomes.ids)
        made.settings = self._periods[-1].settings
        made.waiting = set(outcomes.ids[outcomes.answers == NEVER].tolist())
        made.last_id = int(outcomes.ids.max()) if outcomes.ids.size else None
        return made

    def outcomes(self, path: Path) -> Outcomes:
        """Return what became of the decisions; raises if events of the log at ``path`` cannot follow each other so."""
        found = self._answered(path)
        periods = self.periods
        if all(period.settings.reward_window is None for period in periods):
            return found
        return in_windows(found, periods, np.concatenate(self._times))

    @property
    def latest(self) -> float | None:
        """Return the latest time of an event."""
        return max((float(times.max()) for times in self._times if times.size), default=None)

    def _answered(self, path: Path) -> Outcomes:
        """Return the decisions and their answers as they stand, whatever windows there are."""
        steps = np.concatenate(self._steps)
        rows = _rows(steps)
        if rows is None:
            for _ in read_events(path):  # which raises, and says where
                pass
            raise ValueError(f"{path} has changed while it was read")
        return _outcomes(steps, rows)


def read_order(path: Path, numbering: Numbering) -> EventOrder:
    """Read the log at ``path``, with all checks, and return what its writer needs to go on."""
    steps = Steps()
    for block in read_blocks(path, numbering):
        steps.take(block)
    return steps.order(path)


def _steps_of(type_: type[Event], kind: Kind) -> NDArray[np.void]:
    """Return a step for each event, and for each decision of an expiry; without their times."""
    events = kind.events
    if type_ is Expiry:
        some = [
            (number, place, Step.EXPIRED, math.nan if event.reward is None else event.reward, math.nan)
            for place, event in zip(kind.places, events, strict=True)
            for number in event.ids
        ]
        return np.array(some, STEP)
    steps = np.empty(len(events), STEP)
    steps["id"] = [event.id for event in events]
    steps["place"] = kind.places
    steps["step"] = type_.step
    steps["reward"] = [event.reward for event in events] if "reward" in type_.__struct_fields__ else math.nan
    if type_ is Reward:
        steps["step"][np.array([event.part for event in events])] = Step.PART
    return steps


def _rows(steps: NDArray[np.void]) -> I64 | None:
    """Return the row of the decision of each step, None if steps cannot follow each other so.

    ``steps`` are in the order in which they happened; rows are in the order of decisions.
    """
    by_id = np.argsort(steps["id"], kind="stable")
    ids = steps["id"][by_id]
    kinds = steps["step"][by_id]
    is_first = np.ones(ids.size, dtype=bool)
    is_first[1:] = ids[1:] != ids[:-1]
    states = np.full(ids.size, NEW)
    states[1:] = np.where(is_first[1:], NEW, LEAVES[kinds[:-1]])
    if (states != NEEDS[kinds]).any():
        return None
    numbers = np.cumsum(steps["step"] == Step.DECIDED) - 1
    rows = np.empty(ids.size, dtype=np.int64)
    rows[by_id] = numbers[by_id[is_first]][np.cumsum(is_first) - 1]
    return rows


def _outcomes(steps: NDArray[np.void], rows: I64) -> Outcomes:
    """Return what became of the decisions, by steps in the order in which they came: the last of several counts."""
    kinds = steps["step"]
    made = steps[kinds == Step.DECIDED]
    given = steps["reward"]
    silent = np.isnan(given)
    rewards = np.full(made.size, math.nan)
    says = (kinds == Step.CANCELLED) | (~silent & (kinds != Step.LATE))  # an expiry may leave the reward as it was
    rewards[rows[says]] = given[says]
    answer_times = np.full(made.size, math.nan)
    came = (kinds == Step.PART) | (kinds == Step.REWARDED) | (kinds == Step.CANCELLED)
    answer_times[rows[came]] = steps["time"][came]
    ended = (kinds == Step.EXPIRED) & silent & np.isnan(answer_times[rows])  # without any reward
    answer_times[rows[ended]] = steps["time"][ended]
    answers = np.full(made.size, NEVER)
    final = (kinds == Step.REWARDED) | (kinds == Step.CANCELLED) | (kinds == Step.EXPIRED)
    answers[rows[final]] = steps["place"][final]
    cancelled = np.zeros(made.size, dtype=bool)
    cancelled[rows[kinds == Step.CANCELLED]] = True
    corrected = np.zeros(made.size, dtype=bool)
    corrected[rows[kinds == Step.CORRECTED]] = True
    return Outcomes(
        ids=made["id"],
        places=made["place"],
        times=made["time"],
        rewards=rewards,
        answer_times=answer_times,
        answers=answers,
        cancelled=cancelled,
        corrected=corrected,
        waiting=answers == NEVER,
    )


# Windows of reward.


def in_windows(found: Outcomes, periods: list[Period], times: F64) -> Outcomes:
    """Return the outcomes with the rewards that count, where a bandit has windows of reward in some period.

    ``times`` are those of all events. The window of a decision is the one in force when it closed, or the last one. A
    window that has run out before the bandit wrote so has what the bandit will give it: the reward so far, or the
    default. Where a clock jumps ahead and comes back, decisions made after the jump are still open, as they are for the
    bandit.
    """
    ran_out = np.zeros(found.ids.size, dtype=bool)
    closed = np.zeros(found.ids.size, dtype=bool)  # by its answer, or since no window is awaited
    worth = np.full(found.ids.size, math.nan)  # of silence
    first = 1
    for period in periods:
        settings = period.settings
        answered = (first <= found.answers) & (found.answers <= period.last)
        if settings.reward_window is None or settings.at_close:
            closed |= answered
        if settings.reward_window is not None and first <= period.last:
            latest_from = np.maximum.accumulate(times[first - 1 : period.last][::-1])[::-1]
            some = np.flatnonzero(~ran_out & (found.places <= period.last))
            latest = latest_from[np.maximum(found.places[some], first) - first]
            over = some[found.times[some] + settings.reward_window <= latest]
            ran_out[over] = True
            worth[over] = math.nan if settings.default_reward is None else settings.default_reward
        first = period.last + 1
    closed |= ran_out
    is_answered = found.answers != NEVER
    has_window = periods[-1].settings.reward_window is not None
    given_up = is_answered & np.isnan(found.rewards)  # cancelled: nothing is awaited
    still_open = ~closed & ~given_up & has_window
    silent = ran_out & ~is_answered & np.isnan(found.rewards)
    rewards = np.where(silent, worth, found.rewards)
    rewards[~closed & has_window] = math.nan
    waiting = still_open | (~is_answered & ~ran_out)
    return replace(found, rewards=rewards, open=still_open, waiting=waiting)
