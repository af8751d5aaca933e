"""Recovery of a bandit: it follows its journals, and comes back from its folder, its log or its JSON."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from rightarm.bandit import saved
from rightarm.bandit.context_arms import EncodedContext
from rightarm.bandit.decide import Draws, Guardrail, change, check_names, new_key
from rightarm.bandit.ledger import PendingDecision
from rightarm.bandit.rewards import close_windows
from rightarm.bandit.state import FindPolicy, State
from rightarm.errors import WrongType, WrongValue
from rightarm.files import PROCESS, remove_leftovers, write_whole
from rightarm.formula import difference, from_specification, present
from rightarm.logs.events import END_OF_TIME, Changed, Created, Event, Reward, check_time
from rightarm.logs.journals import Journal, LogWriter, MemoryJournal
from rightarm.logs.lines import IN_FOLDER
from rightarm.logs.settings import Settings
from rightarm.policies.policy import Policy

SNAPSHOT = "snapshot.json"
FEWEST = 1_000  # events after which the state is copied, or a quarter of what it remembers, to be folded from there

Log = Journal | str | os.PathLike[str]
Specification = Mapping[str, Any]


# Policies, by their specification.


def policy_from(specification: Specification, given: Policy | None = None) -> Policy:
    """Return the policy that a text describes: ``given`` if it is that, else one made anew.

    Nothing is imported for it.
    """
    try:
        if given is not None and difference(given, specification) is None:
            return given
        found = from_specification(specification, partial(_present, given))
    except (KeyError, TypeError, AttributeError) as error:
        raise WrongValue("policy", f"must be described, got {specification!r:.200}: {error}") from None
    if not isinstance(found, Policy):
        raise WrongValue("policy", f"must describe a policy, got {specification['formula']!r}")
    return found


def _present(given: Policy | None, address: str) -> object:
    """Return what stands at an address: the given policy's formula, or something in a module that is imported."""
    if given is not None and address == given.specification()["formula"]:
        return given.family
    return present(address)


def policy_finder(given: list[Policy]) -> FindPolicy:
    """Return a function that finds policies by their specification, among those given first.

    If a policy is gone, the first one given stands in for it where that makes no difference to the statistics.
    """

    def find(specification: Specification) -> Policy:
        for policy in given:
            if difference(policy, specification) is None:
                return policy
        if not given:
            return policy_from(specification)
        try:
            return policy_from(specification, given[0])
        except ValueError as error:
            return _stand_in(specification, given[0], error)

    return find


def _stand_in(specification: Specification, policy: Policy, error: ValueError) -> Policy:
    """Return a policy in the place of one that is gone, if nothing but the formula was that one's own."""
    estimators = [one["parameters"].get("estimator", "mean") for one in (specification, policy.specification())]
    if policy.columns or estimators[0] != estimators[1]:
        raise ValueError(f"{policy!r} cannot go on with what another policy has learned: {error}") from None
    return policy


def check_policy(policy: Policy | None, change_policy: bool = False) -> None:
    """Raise if what was given for a policy is none."""
    if policy is not None and not isinstance(policy, Policy):
        hint = "; call it with its parameters first" if callable(policy) else ""
        raise WrongType("policy", f"must be a policy such as UCB(C=0.5), got {policy!r}{hint}")
    if change_policy and policy is None:
        raise WrongType("change_policy", "needs the policy to change to, got policy=None")


# Folders and logs.


class Folder:
    """The folder of a bandit; a snapshot is due after so many events, or a tenth of all if that is more."""

    def __init__(self, path: Path, snapshot_every: int) -> None:
        self.path = path
        self.snapshot_every = snapshot_every
        self.saved = 0  # how many events the last snapshot has

    @contextlib.contextmanager
    def opened(self, sync: bool, rotate: str | None) -> Iterator[LogWriter]:
        """Yield the log. If what follows fails, it is closed, and nothing that was made here stays."""
        missing = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            log = LogWriter(self.path / IN_FOLDER, sync=sync, rotate=rotate)
            try:
                remove_leftovers(self.path)
                if not log.events and (self.path / SNAPSHOT).exists():
                    raise ValueError(f"{self.path} has a snapshot, but its log has no events")
                yield log
            except BaseException:
                log.discard()
                raise
        except BaseException:
            with contextlib.suppress(OSError):  # a folder in which there is something stays
                for folder in missing:
                    folder.rmdir()
            raise

    def load(self, log: Journal, find_policy: FindPolicy, policy: Policy | None) -> State:
        """Return the state of the folder's bandit: its snapshot and the events since, or all events."""
        snapshot = self.path / SNAPSHOT
        if not snapshot.exists():
            return from_log(log, find_policy, policy, {})
        try:
            found = saved.from_json(snapshot.read_bytes(), find_policy)
        except ValueError as error:
            raise ValueError(f"{snapshot}: {error}; without this file all of the log is read") from None
        if found.place is None:
            raise ValueError(f"{snapshot} must be a snapshot with its log, got the state of a bandit that had none")
        self.saved = found.place.events
        read_on(log, found.state, found.place)
        return found.state

    def save_if_due(self, state: State, log: Journal) -> None:
        """Write a snapshot if one is due."""
        if log.events - self.saved < max(self.snapshot_every, self.saved // 10):
            return
        try:
            self.save(state, log)
        except OSError as error:  # the log has everything: what was asked or told must not fail for this
            self.saved = log.events
            warnings.warn(f"no snapshot could be written, the next one is tried later: {error}", stacklevel=2)

    def save(self, state: State, log: Journal) -> None:
        """Write a snapshot; what it says of the log must be on the disk before it."""
        log.flush()
        place = saved.Place(log.identity, log.events)
        write_whole(self.path / SNAPSHOT, saved.to_json(state, place, None).encode())
        self.saved = place.events


@contextlib.contextmanager
def opened(log: Log | None) -> Iterator[Journal | None]:
    """Yield the writer of a log, if there is one. If it is opened here and what follows fails, nothing of it stays."""
    if not isinstance(log, str | os.PathLike):
        yield log
        return
    writer = LogWriter(log)
    try:
        yield writer
    except BaseException:
        writer.discard()
        raise


def where(journal: Journal) -> str:
    """Return where a journal is, for errors."""
    return str(getattr(journal, "path", journal.identity))


def begin_new(log: Journal, created: Created, key: int) -> None:
    """Begin the log of a new bandit, which must have no events yet."""
    check_names(created.arms)
    if log.events:
        what = (
            f"must be a new one, got {where(log)} with {log.events:,} events: "
            "Bandit.open, from_json and from_log go on with a log"
        )
        raise WrongValue("log", what)
    log.keep_key(key)
    log.append([created])


def from_log(log: Journal, find_policy: FindPolicy, given: Policy | None, settings: Mapping[str, Any]) -> State:
    """Return the fold of a log; ``given`` and ``settings`` are for a log that no bandit wrote."""
    events = log.since(0)
    first = next(events, None)
    if first is None:
        raise WrongValue("log", f"{where(log)} has no events")
    state = State(find_policy)
    if isinstance(first, Created):
        if first.continues:
            what = f"{where(log)} goes on with a bandit that had learned before: from_json takes its state"
            raise WrongValue("log", what)
        state.apply(first)
        check_settings(state.settings, settings)
    else:
        if given is None:
            raise WrongValue("policy", f"must be given: the log {where(log)} does not say how its bandit was set up")
        state.apply(Created(time=first.time, arms=[], policy=given.specification(), settings=Settings(**settings)))
        state.events = 0  # the log does not have it
        events = itertools.chain([first], events)
    for event in events:
        state.apply(event)
    return state


def read_on(log: Journal, state: State, place: saved.Place | None) -> None:
    """Apply the events of a log that are not part of a state yet; ``place`` says up to where they are."""
    if place is None:
        what = f"must be a new one: this bandit had none, got {where(log)} with {log.events:,} events"
        raise WrongValue("log", what)
    if place.log != log.identity:
        what = f"must be that of this bandit, {place.log}, or a new one, got {where(log)}, {log.identity}"
        raise WrongValue("log", what)
    if place.events > log.events:
        raise WrongValue("log", f"must have the {place.events} events of before, got {log.events} in {where(log)}")
    for event in log.since(place.events):
        state.apply(event)


def begin_again(log: Journal, state: State, key: int, now: float) -> None:
    """Begin a new log of a bandit that is not new."""
    events = beginning(state, now)
    log.keep_key(key)
    log.append(events)


def beginning(state: State, now: float) -> list[Event]:
    """Return what a new log of a bandit that is not new begins with.

    It has retired arms too, for which decisions may be pending.
    """
    check_names(state.names)
    pending = state.ledger.pending.values()
    active = state.active_names()
    created = Created(
        time=now,
        arms=state.names,
        policy=state.arms.policy.specification(),
        settings=state.settings,
        first_id=state.ledger.first,
        continues=True,
    )
    events: list[Event] = [created]
    events += [_with_context(one) for one in pending]
    events += [
        Reward(id=one.decision.id, reward=one.so_far, part=True, time=now) for one in pending if one.so_far is not None
    ]
    if active != state.names or state.status != "running":
        events.append(Changed(time=now, arms=active, status=state.status))
    return events


def _with_context(pending: PendingDecision) -> Event:
    """Return a pending decision with its context; the features of arms are not stored."""
    if pending.context is None:
        return pending.decision
    return msgspec.structs.replace(pending.decision, context=pending.context.numbers())


def key_of(log: Journal) -> int:
    """Return the secret key beside a log, or a new one if there is none."""
    key = log.key()
    if key is None:
        key = new_key()
        log.keep_key(key)
    return key


# What is given for a bandit that is there already.


def check_settings(settings: Settings, given: Mapping[str, Any]) -> None:
    """Raise if settings that are given for a bandit that is there already are not those that it has."""
    for name, value in given.items():
        if name == "seed":
            continue  # what it began with
        if name not in Settings.__struct_fields__:
            raise WrongType(name, f"is an unexpected option {name!r}")
        if settings.changed(**{name: value}) != settings:
            what = f"must be that of the bandit, {getattr(settings, name)!r}, got {value!r}; change() changes it"
            raise WrongValue(name, what)


def check_agreement(state: State, policy: Policy | None, change_policy: bool) -> None:
    """Raise if a policy is not the one that there is, or could not take its place if it is to."""
    if policy is None:
        return
    if change_policy:
        change(state, 0.0, policy=policy)
        return
    other = difference(policy, state.specification)
    if other is not None:
        differs = {"formula": "formula differs", "parameters": "parameters differ"}[other]
        what = f"must be the one of the state, {state.specification['formula']}, got {policy!r}, whose {differs}"
        raise WrongValue("policy", f"{what}; change_policy=True changes it on purpose")


def wanted_arms(state: State, arms: Sequence[Hashable] | None, change_arms: bool) -> list[Hashable] | None:
    """Return the arms that a bandit is to have from now on; None if it has them.

    Arms that the guardrail has retired stay so.
    """
    if arms is None:
        return None
    check_names(arms)
    wanted = [arm for arm in arms if arm not in state.harmful]
    active = state.active_names()
    if set(wanted) == set(active):
        return None
    if not change_arms:
        raise WrongValue("arms", f"must be those of the bandit, {active}, got {arms}; change_arms=True changes them")
    return wanted


class Journaled:
    """A state that follows its journals: events are appended, then applied; what breaks off is folded again.

    There is a journal in memory, back to the last copy of the state, and a log beside it if one was given.
    """

    def _begin(
        self, state: State, policies: list[Policy], key: int, log: Journal | None, clock: Callable[[], float]
    ) -> None:
        self._policies = policies  # that were given, to be found by their specification
        state.find_policy = policy_finder(policies)
        self._state = state
        self._draws = Draws(key)
        self._log = log
        self._clock = clock
        self._folder: Folder | None = None
        self._guardrail = Guardrail()
        self._process = PROCESS[0]
        self._threads = threading.RLock()
        self._is_stale = False  # True if something broke off between a journal and the state
        self._recent = MemoryJournal()
        self._before = 0, 0  # how many events both journals had before the last ones
        self._set_base()

    @property
    def _lock(self) -> AbstractContextManager[bool]:
        """Return the lock that every method takes; an error where it must not be taken.

        In a process that was forked it may belong to a thread that is not there, and would be waited for without end.
        """
        if self._process != PROCESS[0]:
            raise RuntimeError(
                f"this bandit was made by process {self._process}, of which this one is a fork: both would make "
                "the same decisions. Make the bandit after forking, or have one process decide for all"
            )
        if self._threads._is_owned():  # type: ignore[attr-defined]
            raise RuntimeError(
                "a signal handler called the bandit in the middle of an action: let it raise an exception instead"
            )
        return self._threads

    def _current(self) -> State:
        """Return the state, folded again if something was broken off; to be called with the lock."""
        if self._is_stale:
            self._refold()
        return self._state

    def _look(self) -> State:
        """Return the state for those who only look at it; the lock is taken where something was broken off."""
        if not self._is_stale:
            return self._state
        with self._lock:
            return self._current()

    def _ready(self) -> tuple[State, float]:
        """Return the state after windows that have closed, and the time; to be called with the lock."""
        if self._is_stale:
            self._refold()
        state = self._state
        now = self._clock()
        if type(now) is not float or not 0.0 <= now < END_OF_TIME:
            now = check_time(now)
        if state.settings.reward_window is not None:
            self._happen(close_windows(state, now), now)
        return state, now

    def _happen(self, events: Sequence[Event], now: float, contexts: Sequence[EncodedContext | None] = ()) -> None:
        """Let events happen, and then what is due after them: the guardrail, a copy of the state, a snapshot."""
        if events:
            self._apply(events, contexts)
        if self._until_base <= 0 or self._folder is not None or self._state.settings.guardrail is not None:
            self._look_after(now)

    def _apply(self, events: Sequence[Event], contexts: Sequence[EncodedContext | None] = ()) -> None:
        """Append events to the journals, and let them change the state.

        Whatever breaks off in between, the journals say what has happened, and the state is folded again.
        """
        log = self._log
        if log is not None:
            self._before = self._recent.events, log.events
        self._is_stale = True
        self._recent.append(events)
        if log is not None:
            log.append(events)
        apply = self._state.apply
        if contexts:
            for event, context in zip(events, contexts, strict=True):
                apply(event, context)
        else:
            for event in events:
                apply(event)
        self._until_base -= len(events)
        self._is_stale = False

    def _look_after(self, now: float) -> None:
        state = self._state
        harm = self._guardrail.events(state, now)
        if harm:
            self._apply(harm)
        if self._until_base <= 0:
            self._set_base()
        if self._folder is not None and self._log is not None:
            self._folder.save_if_due(state, self._log)

    def _refold(self) -> None:
        """Fold the events that have happened again; may be broken off itself."""
        base, place = self._base
        if self._log is not None:
            recent, logged = self._before
            self._recent.cut(recent + self._log.events - logged)
        state = base.copy()
        for event in self._recent.since(place):
            state.apply(event)
        self._state = state
        self._is_stale = False

    def _set_base(self) -> None:
        """Set aside a copy of the state, from which it can be folded again, and forget the events before."""
        place = self._recent.events
        self._base = self._state.copy(), place
        self._recent.forget(place)
        self._until_base = FEWEST + len(self._state.ledger) // 4  # how many events more until the next copy

    def _due(self) -> list[PendingDecision]:
        """Return decisions whose window has closed and which are not learned yet; to be called with the lock."""
        state = self._current()
        return [] if state.settings.reward_window is None else state.due(check_time(self._clock()))

    def close(self) -> None:
        """Close the log, if there is one; a bandit in a ``with`` statement does so at its end.

        In a process that was forked there is nothing to close: the log was left to the parent.
        """
        if self._process != PROCESS[0]:
            return
        with self._lock:
            state = self._current()
            if self._log is not None:
                try:
                    folder = self._folder
                    self._folder = None
                    if folder is not None:
                        folder.save(state, self._log)
                finally:
                    self._log.close()
