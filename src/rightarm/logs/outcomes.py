"""The decisions of a log with what became of them, found for all of them at once.

This is `rightarm.logs.order.EventOrder` in arrays, for long logs. Where a bandit has windows of reward, only decisions
whose window has closed count: while windows are open, quick rewards are there and silence is not. So an open one has no
reward, whether one has come or not, and a closed one that stayed silent has the default reward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rightarm.logs import order
from rightarm.logs.blocks import Block, Kind, read_blocks, read_events
from rightarm.logs.events import Cancellation, Changed, Created, Decision, Event, Expiry, Reward
from rightarm.logs.lines import Numbering
from rightarm.logs.order import EventOrder
from rightarm.logs.settings import Settings
from rightarm.types import F64, I64

Flags = NDArray[np.bool_]

NEVER = np.iinfo(np.int64).max  # the number of no event
STEP = np.dtype([("id", "i8"), ("place", "i8"), ("step", "i1"), ("reward", "f8"), ("time", "f8")])
NEEDS = np.array(order.NEEDS)
LEAVES = np.array(order.LEAVES)
NOTHING = Kind([], [])


class Period(NamedTuple):
    """The settings of a bandit in a part of its log."""

    last: int
    """The number of the last event in it."""
    settings: Settings


@dataclass(frozen=True)
class Outcomes:
    """The decisions of a log in the order in which they were made, with what became of them."""

    ids: I64
    places: I64
    """The number of the event that each is."""
    times: F64
    """When each was made."""
    rewards: F64
    """The last reward of each that counts, NaN if there is none."""
    told: F64
    """When the reward of each came, or its last part, or it was closed without one; NaN if none of that happened."""
    answers: I64
    """The number of the event that answered each, `NEVER` if none did."""
    cancelled: Flags
    corrected: Flags
    waiting: Flags
    """Which wait for an answer, or for their window of reward to close."""
    open: Flags | None = None
    """Which have an open window of reward, and so no reward that counts; None if the bandit has no windows."""


class Steps:
    """Gathers everything that happens to decisions, block by block."""

    def __init__(self) -> None:
        self._steps = [np.empty(0, STEP)]
        self._times = [np.empty(0)]  # of all events
        self._periods = [Period(0, Settings())]

    def take(self, block: Block) -> None:
        """Take the next events."""
        self._take_changes(block)
        times = np.array([event.time for event in block.events])
        found = [_steps_of(type_, kind) for type_, kind in block.kinds.items() if type_ in order.STEPS]
        if found:
            steps = np.concatenate(found)
            steps = steps[np.argsort(steps["place"], kind="stable")]
            steps["time"] = times[steps["place"] - block.first]
            self._steps.append(steps)
        self._times.append(times)

    def _take_changes(self, block: Block) -> None:
        """Check lists of arms, and follow the settings."""
        places = list[int]()
        decisions = block.kinds.get(Decision, NOTHING)
        if [event for event in decisions.events if event.among is not None]:
            places += decisions.places
        places += sorted(block.kinds.get(Created, NOTHING).places + block.kinds.get(Changed, NOTHING).places)
        for place in places:
            event = block.events[place - block.first]
            last = self._periods[-1]
            try:
                order.check_arms(event)
                settings = order.settings_after(last.settings, event)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{block.where(place - block.first)}: {error}") from None
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
        if all(period.settings.window_of_reward is None for period in periods):
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


def _steps_of(type_: type[Event], kind: Kind) -> NDArray[Any]:
    """Return a step for each event, and for each decision of an expiry; without their times."""
    events = kind.events
    if type_ is Expiry:
        nothing = math.nan
        some = [
            (number, place, order.EXPIRED, nothing if event.reward is None else event.reward, nothing)
            for place, event in zip(kind.places, events, strict=True)
            for number in event.ids
        ]
        return np.array(some, STEP)
    steps = np.empty(len(events), STEP)
    steps["id"] = [event.id for event in events]
    steps["place"] = kind.places
    steps["step"] = order.STEPS[type_]
    has_none = type_ is Cancellation or order.STEPS[type_] == order.DECIDED
    steps["reward"] = math.nan if has_none else [event.reward for event in events]
    if type_ is Reward:
        steps["step"][np.array([event.part for event in events])] = order.PART
    return steps


def _rows(steps: NDArray[Any]) -> I64 | None:
    """Return the row of the decision of each step, None if steps cannot follow each other so.

    ``steps`` are in the order in which they happened; rows are in the order of decisions.
    """
    by_id = np.argsort(steps["id"], kind="stable")
    ids = steps["id"][by_id]
    kinds = steps["step"][by_id]
    is_first = np.ones(ids.size, dtype=bool)
    is_first[1:] = ids[1:] != ids[:-1]
    states = np.full(ids.size, order.NEW)
    states[1:] = np.where(is_first[1:], order.NEW, LEAVES[kinds[:-1]])
    if (states != NEEDS[kinds]).any():
        return None
    numbers = np.cumsum(steps["step"] == order.DECIDED) - 1
    rows = np.empty(ids.size, dtype=np.int64)
    rows[by_id] = numbers[by_id[is_first]][np.cumsum(is_first) - 1]
    return rows


def _outcomes(steps: NDArray[Any], rows: I64) -> Outcomes:
    """Return what became of the decisions, by steps in the order in which they came: the last of several counts."""
    kinds = steps["step"]
    made = steps[kinds == order.DECIDED]
    given = steps["reward"]
    silent = np.isnan(given)
    rewards = np.full(made.size, math.nan)
    says = (kinds == order.CANCELLED) | (~silent & (kinds != order.LATE))  # an expiry may leave the reward as it was
    rewards[rows[says]] = given[says]
    told = np.full(made.size, math.nan)
    came = (kinds == order.PART) | (kinds == order.REWARDED) | (kinds == order.CANCELLED)
    told[rows[came]] = steps["time"][came]
    ended = (kinds == order.EXPIRED) & silent & np.isnan(told[rows])  # without any reward
    told[rows[ended]] = steps["time"][ended]
    answers = np.full(made.size, NEVER)
    final = (kinds == order.REWARDED) | (kinds == order.CANCELLED) | (kinds == order.EXPIRED)
    answers[rows[final]] = steps["place"][final]
    cancelled = np.zeros(made.size, dtype=bool)
    cancelled[rows[kinds == order.CANCELLED]] = True
    corrected = np.zeros(made.size, dtype=bool)
    corrected[rows[kinds == order.CORRECTED]] = True
    return Outcomes(
        ids=made["id"],
        places=made["place"],
        times=made["time"],
        rewards=rewards,
        told=told,
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
        if settings.window_of_reward is None or settings.at_close:
            closed |= answered
        if settings.window_of_reward is not None and first <= period.last:
            latest_from = np.maximum.accumulate(times[first - 1 : period.last][::-1])[::-1]
            some = np.flatnonzero(~ran_out & (found.places <= period.last))
            latest = latest_from[np.maximum(found.places[some], first) - first]
            over = some[found.times[some] + settings.window_of_reward <= latest]
            ran_out[over] = True
            worth[over] = math.nan if settings.default is None else settings.default
        first = period.last + 1
    closed |= ran_out
    is_answered = found.answers != NEVER
    has_window = periods[-1].settings.window_of_reward is not None
    given_up = is_answered & np.isnan(found.rewards)  # cancelled: nothing is awaited
    still_open = ~closed & ~given_up & has_window
    silent = ran_out & ~is_answered & np.isnan(found.rewards)
    rewards = np.where(silent, worth, found.rewards)
    rewards[~closed & has_window] = math.nan
    waiting = still_open | (~is_answered & ~ran_out)
    return replace(found, rewards=rewards, open=still_open, waiting=waiting)
