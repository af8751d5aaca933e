"""`Bandit`: decisions one by one, with the exact probability of each, and rewards that may come late or never."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, overload

from numpy.typing import NDArray

from rightarm.errors import WrongType, WrongValue
from rightarm.extras import polars_for
from rightarm.files import PROCESS, write_whole
from rightarm.formula import check_count
from rightarm.inference import Best, Coefficients, Difference
from rightarm.live import answers, decide, explanations, recovery, saved, summary
from rightarm.live import coefficients as linear
from rightarm.live.another_policy import finder
from rightarm.live.contextual import Seen
from rightarm.live.draws import Draws, new_first_id, new_key
from rightarm.live.explanations import Explanation
from rightarm.live.folder import Folder
from rightarm.live.ledger import Waiting
from rightarm.live.names import distinct, hashable_name
from rightarm.live.recovery import Log
from rightarm.live.state import State
from rightarm.logs.events import END_OF_TIME, A, Decision, Event, Status, Unit, check_time, without_context
from rightarm.logs.journal import Journal, MemoryJournal
from rightarm.logs.settings import AT_ONCE, CORRECT, LAST, Settings, check_seconds
from rightarm.policies.gumbel import ScaledGumbel
from rightarm.scores.policy import Policy

if TYPE_CHECKING:
    import polars

TAKEN = frozenset((decide.LEARNED, decide.NOTED, decide.CORRECTED))  # rewards of which `tell` says True
FEWEST = (
    1_000  # events after which the state is copied, or a quarter of what it remembers; it is folded again from there
)
UNCHANGED: Any = ...  # a setting that `change` leaves as it is


class Bandit(Generic[A]):
    """A live bandit: `ask` for an arm, `tell` its reward, at any later time and in any order.

    - ``arms``: their names, anything hashable. ``policy``: a policy of rightarm, or one's own; `ScaledGumbel`,
      which has no parameter to choose, unless given.
    - ``reward_range``: what rewards can be, such as ``(0, 500)``. Others are errors. Policies for rewards from 0 to 1
      (``policy.rewards``) get them scaled; without a range of one's own, such policies take rewards from 0 to 1 only.
    - ``floor``: a probability that every arm has at least; the propensities say so.
    - ``discount`` or ``window``: for worlds that change. Rewards count the less the older they are, by this factor for
      every later reward, or only the last so many count.
    - ``window_of_reward``: how long rewards of a decision are awaited, in seconds or as a `timedelta`. After that it
      gets the reward ``default``, or none if that is None. ``learn="at once"`` learns a reward when it comes;
      ``"at close"`` when the window of its decision closes, so that quick answers and slow ones weigh the same. If
      ``several`` rewards of one decision come, the ``"last"`` counts, or their ``"sum"``. ``late`` ones
      ``"correct"`` what was learned, or are only kept (``"keep"``): the log has them, the policy does not.
    - ``control``: the arm that others are compared with. ``holdout``: this share of all decisions is given to the
      control, or drawn evenly from all arms if there is none, whatever the policy says; propensities include it.
      ``guardrail``: an arm that is shown to be worse than the control by more than this is retired by itself; not where
      the policy decides by contexts.
    - ``prior``: for some arms the mean and the number of rewards to start from, as `add_arm` takes it.
    - ``seed``: the same seed and the same answers give the same decisions, ids included. So whoever knows the seed can
      predict them. Without it decisions are drawn by a secret key, and ids begin at a number that no other bandit has
      used.
    - ``log_context``: whether the log has the contexts; without them nobody can evaluate or recover from it.
    - ``log``: a path, a `LogWriter` or another journal (`rightarm.logs.journal.Journal`), to which everything that
      happens is written before it counts. It must be a new one: `open`, `from_json` and `from_log` go on with one that
      has events. The secret key is in a file beside the log, whose name ends in ``.key``.
    - ``clock``: seconds since 1970, for windows, `expire` and the log.

    An arm is drawn from the exact probabilities of the moment, so the propensity is that of the choice by construction.
    While arms have no reward, a policy that looks at means tries them first: they share the draw evenly. One that waits
    for its reward meanwhile gets one decision in as many as there are arms, and the policy chooses among the others.

    All methods may be called from several threads; an exception from a signal handler, Ctrl-C say, leaves things done
    wholly or not at all. A process that is forked must make its own bandit. A pending decision takes some 500 bytes;
    the answers of the last 100,000 others are remembered, to notice or correct what is told again.

    >>> import rightarm as ra
    >>> bandit = ra.Bandit(["red", "green"], ra.Boltzmann(0.25), seed=2)
    >>> decision = bandit.ask()
    >>> decision.arm, decision.propensity
    ('green', 0.5)
    >>> bandit.tell(decision, 0.5)
    True
    >>> bandit.tell(arm="red", reward=1.0)
    True
    >>> decision = bandit.ask()
    >>> decision.id, decision.arm, round(decision.propensity, 12), decision.round
    (2, 'red', 0.880797077978, 3)
    """

    def __init__(
        self,
        arms: Iterable[A],
        policy: Policy | None = None,
        *,
        reward_range: tuple[float, float] | None = None,
        floor: float = 0.0,
        discount: float | None = None,
        window: int | None = None,
        window_of_reward: float | timedelta | None = None,
        default: float | None = None,
        learn: str = AT_ONCE,
        several: str = LAST,
        late: str = CORRECT,
        control: A | None = None,
        holdout: float = 0.0,
        guardrail: float | None = None,
        prior: Mapping[A, Any] | None = None,
        log_context: bool = True,
        seed: int | None = None,
        log: Log | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        names = _several(arms)
        entropy = seed if seed is None else check_count("seed", seed, least=0)
        settings = Settings(
            floor=floor,
            discount=discount,
            window=window,
            reward_range=reward_range,
            window_of_reward=None if window_of_reward is None else _seconds(window_of_reward),
            default=default,
            learn=learn,
            several=several,
            control=None if control is None else hashable_name(control),
            holdout=holdout,
            guardrail=guardrail,
            log_context=log_context,
            late=late,
        )
        if not callable(clock):
            raise WrongType("clock", f"must be a function that gives seconds, got {clock!r}")
        chosen = ScaledGumbel() if policy is None else policy
        recovery.check_policy(chosen, False)
        key = new_key(entropy)
        created, state = decide.create(names, chosen, settings, prior, new_first_id(entropy), check_time(clock()))
        with contextlib.nullcontext() if log is None else recovery.opened(log) as journal:
            if journal is not None:
                decide.check_names(names)
                if journal.events:
                    what = (
                        f"must be a new one, got {recovery.where(journal)} with {journal.events:,} events: "
                        "Bandit.open, from_json and from_log go on with a log"
                    )
                    raise WrongValue("log", what)
                journal.keep_key(key)
                journal.append([created])
            self._begin(state, [chosen], Draws(key), journal, clock)

    @classmethod
    def _of(
        cls,
        state: State,
        policies: list[Policy],
        key: int | None,
        log: Journal | None,
        clock: Callable[[], float],
    ) -> Bandit[Any]:
        """Return a bandit that goes on from a state."""
        made: Bandit[Any] = cls.__new__(cls)
        if key is None:
            key = new_key()
            if log is not None:
                log.keep_key(key)
        made._begin(state, policies, Draws(key), log, clock)
        return made

    def _begin(
        self,
        state: State,
        policies: list[Policy],
        draws: Draws,
        log: Journal | None,
        clock: Callable[[], float],
    ) -> None:
        self._policies = policies  # that were given, to be found by their specification
        state.find_policy = finder(policies)
        self._state = state
        self._draws = draws
        self._log = log
        self._clock = clock
        self._until_base = 0  # how many events more until the state is copied
        self._folder: Folder | None = None
        self._guardrail = decide.Guardrail()
        self._process = PROCESS[0]
        self._threads = threading.RLock()
        self._is_stale = False  # whether something broke off between a journal and the state
        self._recent = MemoryJournal()
        self._before = 0, 0  # how many events both journals had before the last ones
        self._keep_base()

    # Decide, append, apply.

    @property
    def _lock(self) -> AbstractContextManager[bool]:
        """The lock that every method takes; an error where it must not be taken.

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
        if state.settings.window_of_reward is not None:
            self._happen(decide.close_windows(state, now))
            self._look_after(now)
        return state, now

    def _happen(self, events: Sequence[Event], seen: Sequence[Seen | None] = ()) -> None:
        """Let events happen: they are appended to the journals, and then change the state.

        Whatever breaks off in between, the journals say what has happened, and the state is folded again.
        """
        if not events:
            return
        if self._log is not None:
            self._before = self._recent.events, self._log.events
        self._is_stale = True
        self._recent.append(events)
        if self._log is not None:
            keeps_all = self._state.settings.log_context
            self._log.append(events if keeps_all else [without_context(event) for event in events])
        apply = self._state.apply
        if seen:
            for event, context in zip(events, seen, strict=True):
                apply(event, context)
        else:
            for event in events:
                apply(event)
        self._until_base -= len(events)
        self._is_stale = False

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

    def _keep_base(self) -> None:
        """Keep a copy of the state, from which it can be folded again, and forget the events before."""
        place = self._recent.events
        self._base = self._state.copy(), place
        self._recent.forget(place)
        self._until_base = FEWEST + len(self._state.ledger) // 4

    def _look_after(self, now: float) -> None:
        """Do what is due now and then: look at the guardrail, copy the state, write a snapshot."""
        state = self._state
        if state.settings.guardrail is not None:
            self._happen(self._guardrail.events(state, now))
        if self._until_base <= 0:
            self._keep_base()
        if self._folder is not None and self._log is not None:
            self._folder.look(state, self._log)

    def _due(self) -> list[Waiting]:
        """Return decisions whose window has closed and which are not learned yet; to be called with the lock."""
        state = self._current()
        return [] if state.settings.window_of_reward is None else state.due(check_time(self._clock()))

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
                    if self._folder is not None:
                        folder, self._folder = self._folder, None
                        folder.save(state, self._log)
                finally:
                    self._log.close()

    def __enter__(self) -> Bandit[A]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # What can be read off.

    @property
    def policy(self) -> Policy:
        """The policy that decides."""
        return self._look().known.policy

    @property
    def arms(self) -> list[A]:
        """The arms that can be chosen."""
        with self._lock:
            return self._current().active_names()

    @property
    def pending(self) -> list[Decision[A]]:
        """The decisions that wait for a reward, the oldest first; not those whose ``window_of_reward`` has closed."""
        with self._lock:
            state = self._current()
            closed = {waiting.decision.id for waiting in self._due()}
            return [one.decision for number, one in state.ledger.pending.items() if number not in closed]

    @property
    def version(self) -> int:
        """The number of events that have happened to the bandit, its making included."""
        with self._lock:
            return self._current().events

    @property
    def settings(self) -> Settings:
        """All options besides arms and policy, as they are now; `change` changes them."""
        return self._look().settings

    @property
    def status(self) -> str:
        """Say whether the bandit is "running", "paused" (it learns, but decides nothing) or "archived"."""
        return self._look().status

    @property
    def floor(self) -> float:
        """The probability that every arm has at least."""
        return self._look().settings.floor

    @property
    def discount(self) -> float | None:
        """The factor by which a reward counts less with every later one, if there is one."""
        return self._look().known.discount

    @property
    def window(self) -> int | None:
        """How many of the last rewards count, if not all do."""
        return self._look().known.window

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """What rewards can be; None if they can be anything."""
        return self._look().reward_range

    @property
    def log(self) -> Journal | None:
        """The log, if there is one."""
        return self._log

    # Decisions.

    @overload
    def ask(
        self,
        *,
        context: Any = None,
        arm_features: Mapping[A, Any] | NDArray[Any] | None = None,
        among: Iterable[A] | None = None,
        unit: Unit | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Decision[A]: ...
    @overload
    def ask(
        self, size: int, *, among: Iterable[A] | None = None, meta: Mapping[str, Any] | None = None
    ) -> list[Decision[A]]: ...
    @overload
    def ask(
        self,
        *,
        contexts: Any,
        arm_features: Mapping[A, Any] | NDArray[Any] | None = None,
        among: Iterable[A] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> list[Decision[A]]: ...
    def ask(
        self,
        size: int | None = None,
        *,
        context: Any = None,
        contexts: Any = None,
        arm_features: Mapping[A, Any] | NDArray[Any] | None = None,
        among: Iterable[A] | None = None,
        unit: Unit | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Decision[A] | list[Decision[A]]:
        """Decide: one arm, or ``size`` of them, each drawn by itself; ``among`` some arms only, if given.

        A policy with the estimator `Linear` decides by a ``context``: a mapping, or a row of numbers, with the features
        that it was made for; or by several ``contexts``, a list of such or a data frame, one decision each. If arms
        have features, ``arm_features`` maps every arm in question to its own, or is an array with a row for each, in
        the order of `arms`.

        Each decision waits for its reward until it is told, cancelled or expired. For a ``unit``, a visitor say, the
        decision is made once: asked again, it comes back as it was, unless its arm is retired or not ``among`` those
        given. ``meta`` is a mapping that goes to the log.
        """
        with self._lock:
            state, now = self._ready()
            members = None if among is None else state.chosen(among)
            if size is not None or contexts is not None:
                if unit is not None:
                    raise WrongType("unit", f"is for one decision, got unit={unit!r} and {size=}")
                if context is not None or (size is not None and contexts is not None):
                    what = f"takes one of size, contexts and context, got {size=}, {context=!r:.200}"
                    raise WrongType("ask", what)
                several = decide.contexts_of(state, size, contexts, arm_features, members)
                made = decide.decide_several(state, self._draws, now, members, several, meta)
                self._happen(made, several)
                self._look_after(now)
                return [state.ledger.pending[decision.id].decision for decision in made]
            if unit is not None:
                before = decide.assigned(state, unit, members)
                if before is not None:
                    return before
            one = state.see(context, arm_features, members)
            decision = decide.decide(state, self._draws, now, members, one, unit, meta)
            self._happen((decision,), () if one is None else (one,))
            if self._until_base <= 0 or self._folder is not None:
                self._look_after(now)
            return decision if one is None else state.ledger.pending[decision.id].decision

    # Rewards.

    @overload
    def tell(self, decision: Decision[A] | int | str, reward: float) -> bool: ...
    @overload
    def tell(self, decision: Iterable[tuple[Decision[A] | int | str, float]] | Mapping[Any, float]) -> list[bool]: ...
    @overload
    def tell(
        self, *, arm: A, reward: float, context: Any = None, arm_features: Mapping[A, Any] | NDArray[Any] | None = None
    ) -> bool: ...
    def tell(
        self,
        decision: Any = None,
        reward: float | None = None,
        *,
        arm: Any = ...,
        context: Any = None,
        arm_features: Any = None,
    ) -> bool | list[bool]:
        """Learn the reward of a decision (or of its id), of a batch of pairs of both, or of an arm without a decision.

        In the last case a policy that decides by contexts needs the ``context``, as `ask` takes it.

        True if it was taken, False if it came too late to be learned (``late="keep"``). The same reward for the same
        decision again is ignored: then it is False; another one is an error, see `correct`. With a
        ``window_of_reward`` another one is the last, or is added, as ``several`` says. Of a batch either all is
        taken or, if something is wrong, nothing.
        """
        with self._lock:
            state, now = self._ready()
            alone = arm is ... and context is None and arm_features is None
            if alone and reward is not None and isinstance(decision, Decision | int | str):  # by far the most
                events, outcome = decide.reward(state, decision, reward, now)
                self._happen(events)
                if self._until_base <= 0 or self._folder is not None or state.settings.guardrail is not None:
                    self._look_after(now)
                return outcome in TAKEN
            rewards = decide.Rewards(state, now)
            outcomes = _told(rewards, decision, reward, arm, context, arm_features)
            self._happen(rewards.checked(), rewards.seen())
            self._look_after(now)
            return outcomes

    def correct(self, decision: Decision[A] | int | str, reward: float) -> bool:
        """Replace the reward of a decision: a refund, a click after its time, a wrong message.

        What is known becomes what it would be had this reward come in the place of the other one, to 12 digits. True if
        something changed. A decision that was cancelled, or expired without a reward, learns it now. While its window
        is open, the reward so far is replaced.

        Refused, and nothing changes, where a policy's memory cannot be taken back (`EXP3`), for decisions that were
        answered too long ago, and where all rewards have to be learned again for it and not all are remembered.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a", "b"], seed=1)
        >>> decision = bandit.ask()
        >>> bandit.tell(decision, 20.0), bandit.correct(decision, 0.0)
        (True, True)
        >>> [row["estimate"] for row in bandit.table() if row["arm"] == decision.arm]
        [0.0]
        """
        with self._lock:
            state, now = self._ready()
            rewards = decide.Rewards(state, now)
            outcome = rewards.correct(decision, reward)
            self._happen(rewards.checked())
            self._look_after(now)
            return outcome != decide.DUPLICATE

    def cancel(self, decision: Decision[A] | int | str) -> bool:
        """Forget a decision that will have no reward; False if it does not wait for one any more."""
        with self._lock:
            state, now = self._ready()
            events = decide.cancel(state, decision, now)
            self._happen(events)
            self._look_after(now)
            return bool(events)

    def expire(self, older_than: float | timedelta, reward: float | None = None) -> int:
        """Cancel all decisions that have waited longer than so many seconds, or give them ``reward``; says how many.

        A decision that has a reward so far (``learn="at close"``) keeps that. Decisions whose ``window_of_reward`` has
        closed need no call: every `ask` and `tell` sees to them first.
        """
        with self._lock:
            state, now = self._ready()
            events = decide.expire(state, older_than, reward, now)
            self._happen(events)
            self._look_after(now)
            return len(events)

    def waiting_since(self, decision: Decision[A] | int) -> float | None:
        """When a decision that waits for its reward was made, in seconds since 1970; None if it does not wait."""
        with self._lock:
            number = decision.id if isinstance(decision, Decision) else decision
            waiting = self._current().ledger.pending.get(number)
            return None if waiting is None else waiting.decision.time

    def close_windows(self) -> float | None:
        """Learn the decisions whose window of reward has closed; says when the next one can close, if they ever do.

        Every `ask` and `tell` does this first: it is for bandits that nobody asks for a while.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a"], window_of_reward=60, default=0.0, clock=lambda: 1000.0)
        >>> bandit.close_windows()
        1060.0
        """
        with self._lock:
            state, now = self._ready()
            seconds = state.settings.window_of_reward
            if seconds is None:
                return None
            first = next(iter(state.ledger.pending.values()), None)
            return seconds + (now if first is None else first.decision.time)

    # Changes.

    def change(
        self,
        *,
        arms: Iterable[A] | None = None,
        prior: Mapping[A, Any] | None = None,
        policy: Policy | None = None,
        status: Status | None = None,
        reward_range: tuple[float, float] | None = UNCHANGED,
        floor: float = UNCHANGED,
        window_of_reward: float | timedelta | None = UNCHANGED,
        default: float | None = UNCHANGED,
        learn: str = UNCHANGED,
        several: str = UNCHANGED,
        late: str = UNCHANGED,
        control: A | None = UNCHANGED,
        holdout: float = UNCHANGED,
        guardrail: float | None = UNCHANGED,
    ) -> bool:
        """Change arms, policy, status or settings from now on, as one event of the log; what is left out stays.

        Everything is tried first on a copy: if one part is refused, nothing changes. False if all of it was so already.

        Parameters
        ----------
        arms
            All arms that can be chosen from now on: others are retired, new ones added, with a ``prior`` if given.
        policy
            Another policy, which decides by what was learned so far; what does not carry over is refused. A policy with
            the estimator `Linear` may have more features than before: older rows have them missing.
        status
            "running", "paused" (it learns, but decides nothing) or "archived", which is for good.
        reward_range, floor, window_of_reward, default, learn, several, late, control, holdout, guardrail
            The options of `Bandit`. Decisions that wait follow the new ones too.

        Examples
        --------
        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.5), seed=7)
        >>> bandit.change(policy=ra.BoltzmannGumbel(C=0.07), floor=0.05), bandit.policy.C, bandit.floor
        (True, 0.07, 0.05)
        >>> bandit.change(floor=0.05)
        False
        """
        recovery.check_policy(policy, False)
        given = {
            "reward_range": reward_range,
            "floor": floor,
            "window_of_reward": window_of_reward,
            "default": default,
            "learn": learn,
            "several": several,
            "late": late,
            "control": control if control is UNCHANGED else hashable_name(control),
            "holdout": holdout,
            "guardrail": guardrail,
        }
        settings = {name: value for name, value in given.items() if value is not UNCHANGED}
        names = None if arms is None else _several(arms)
        with self._lock:
            return self._change(arms=names, prior=prior, policy=policy, status=status, **settings)

    def _change(self, **wanted: Any) -> bool:
        """Change something; to be called with the lock."""
        state, now = self._ready()
        if self._log is not None:
            decide.check_names(wanted.get("arms") or ())
        events = decide.change(state, now, **wanted)
        if wanted.get("policy") is not None:
            self._policies.append(wanted["policy"])
        self._happen(events)
        self._look_after(now)
        return bool(events)

    def add_arm(self, arm: A, *, prior: Any = None) -> None:
        """Add an arm; a policy that looks at means tries it first, unless it has a ``prior``.

        That is what it starts from as if it had been seen: a pair of the mean and the number of rewards, or these and
        their variance; or ``("like", another arm, number)``: that one's mean and variance, as so many rewards. Priors
        are part of what the policy sees, never of the intervals.
        """
        with self._lock:
            state, _ = self._ready()
            name = hashable_name(arm)
            if name in state.index:
                hint = "" if state.active[state.index[name]] else "; it is retired: restore_arm brings it back"
                raise WrongValue("arms", f"must differ, got {name!r} again{hint}")
            self._change(arms=[*state.active_names(), name], prior=None if prior is None else {name: prior})

    def replace_arm(self, arm: A, by: A, *, prior: Any = None) -> None:
        """Retire an arm and add the one that comes in its place, at once: a new version starts with nothing known."""
        with self._lock:
            state, _ = self._ready()
            name = hashable_name(by)
            old = state.names[state.arm_number("arm", arm)]
            if name in state.index:
                raise WrongValue("by", f"must be a new arm, got {name!r}")
            active = state.active_names()
            if old not in active:
                raise WrongValue("arm", f"must be one that is not retired, got {arm!r}")
            names = [name if one == old else one for one in active]
            self._change(arms=names, prior=None if prior is None else {name: prior})

    def retire_arm(self, arm: A) -> None:
        """Choose an arm no more; what is pending for it is still learned."""
        with self._lock:
            state, _ = self._ready()
            name = state.names[state.arm_number("arm", arm)]
            self._change(arms=[one for one in state.active_names() if one != name])

    def restore_arm(self, arm: A) -> None:
        """Choose a retired arm again, with what is known of it still."""
        with self._lock:
            state, _ = self._ready()
            name = state.names[state.arm_number("arm", arm)]
            self._change(arms=[one for one in state.names if one == name or state.active[state.index[one]]])

    # What it knows.

    def probabilities(
        self,
        context: Any = None,
        *,
        arm_features: Mapping[A, Any] | NDArray[Any] | None = None,
        among: Iterable[A] | None = None,
    ) -> dict[A, float]:
        """The probability of every arm in the next decision, in a context if the policy decides by it."""
        with self._lock:
            state = self._current()
            members = None if among is None else state.chosen(among)
            law = state.law(members, state.see(context, arm_features, members))
            names: list[Any] = state.names
            return {names[i]: p for i, p in zip(law.members.tolist(), law.chance.tolist(), strict=True)}

    def difference(
        self, arm: A, other: A, *, where: Mapping[str, Any] | None = None, confidence: float = 0.95
    ) -> Difference:
        """By how much the mean of ``arm`` is above that of ``other``: an interval that holds at any time.

        One may look after every reward and stop when one likes; that the bandit chose what to pull does not matter. The
        bandit's ``reward_range`` makes the interval hold for any number of rewards; without it is asymptotic, says so,
        and there is none before 100 effective rewards of both arms (`rightarm.inference.means`); ``lacking`` says what
        has to come. `rightarm.inference` has the same for statistics from elsewhere.

        A bandit that decides by contexts shows arms to different people: there decisions are weighted by propensities,
        and a ``reward_range`` is needed. ``where`` asks for a segment, ``{"device": "phone", "hour": (9, 17)}``: a
        level or a list of levels of categories, a value or two ends of numbers; see `Features.select`.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["blue", "red"], ra.UCB(C=0.5))
        >>> print(bandit.difference("blue", "red"))
        cannot tell yet: no reward of blue or red
        """
        with self._lock:
            return answers.difference(self._current(), self._log, arm, other, where, confidence)

    def best(self, *, confidence: float = 0.95, tolerance: float = 0.0) -> Best:
        """Which arms can still be the best, which one to choose, and what choosing it for good can cost; at any time.

        ``stop`` says whether that is ``tolerance`` per decision at most; never while an arm lacks rewards, as
        ``lacking`` says then. ``leader`` is None while there is nothing to choose an arm by. Retired arms are left out.
        A bandit that decides by contexts has no best arm: see `difference`.
        """
        with self._lock:
            return answers.best(self._current(), confidence, tolerance)

    def coefficients(self, *, arm: A | None = None, confidence: float = 0.95) -> Coefficients:
        """What each column of a context adds to the reward of each arm, with intervals: printed, as a table or drawn.

        A row of its ``table()`` has the ``arm``, or "shared", the ``feature``, the ``coefficient`` by which the policy
        decides, in the unit of the rewards and for one deviation of the column, the ends ``low`` and ``high`` of an
        interval, its ``kind``, and the same ``per_unit`` of the raw feature, by its present deviation. Levels of a
        category are compared with the average of those seen. With a ``reward_range`` intervals hold at any time, for
        rewards that are linear in the columns; without, the noise is estimated and they are "approximate". Where there
        is none, ``lacking`` says why. With ``arm`` the rows are those of one arm, and the shared ones.
        `rightarm.inference.regression` has the formulas.

        >>> import rightarm as ra
        >>> policy = ra.BoltzmannGumbel(C=0.05, estimator=ra.Linear(["hour"], intercept=False))
        >>> bandit = ra.Bandit(["red"], policy, seed=1, reward_range=(-1, 1))
        >>> for hour in range(24):
        ...     _ = bandit.tell(bandit.ask(context={"hour": hour}), hour / 24)
        >>> [(row["arm"], row["feature"], round(row["coefficient"], 2)) for row in bandit.coefficients().table()]
        [('red', 'hour', 0.33)]
        """
        with self._lock:
            state = self._current()
            return linear.coefficients(state, answers.limits(state), confidence, arm)

    def explain(self, decision: Decision[A] | int | str) -> Explanation:
        """Why a decision, pending or remembered, chose its arm: a page of text, or HTML in a notebook.

        It has the probability with which the arm was drawn; by what is known now, the arm's prediction and how many
        pulls that is worth, and what each column of the context contributes to it; and for all arms prediction, pulls,
        probability, and location and scale of the score, in that context as the decision saw it. ``frame()`` has the
        contributions. Without contexts there are no columns.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["red"], ra.UCB(C=0.5, estimator=ra.Linear(["hour"])), seed=1)
        >>> found = bandit.explain(bandit.ask(context={"hour": 9}))
        >>> found.arm, found.propensity, [row["column"] for row in found.columns]
        ('red', 1.0, ['1', 'hour'])
        """
        with self._lock:
            return explanations.explain(self._current(), decision)

    def table(self) -> list[dict[str, Any]]:
        """For every arm: pulls, estimate, mean of all rewards with a 95% interval, share, probability now, pending.

        The interval, from ``low`` to ``high``, holds at any time, as `difference` says; ``kind`` says what it rests on,
        and where there is none ``lacking`` says why. It is about all rewards that were learned, also where the policy
        forgets some. Where a policy decides by contexts, mean and interval are those of the decisions where the arm was
        chosen, and do not compare arms.
        """
        with self._lock:
            return summary.table(self._current(), self._due())

    @property
    def warning(self) -> str:
        """A sentence that says so, and what to do, if all rewards so far are equal; else nothing.

        Then arms cannot be compared, and often only clicks are told: `best`, `difference`, `print` and `summary` say
        it too. That is the case from 20 rewards on; or from 5, where 20 decisions that are older than usual have none.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["red", "blue"], seed=1)
        >>> for decision in bandit.ask(500)[::10]:
        ...     _ = bandit.tell(decision, 1.0)  # the clicks, and nothing else
        >>> bandit.warning.partition(", ")[0]
        'all 50 rewards are 1 and 450 decisions have none'
        """
        with self._lock:
            return answers.warning(self._current())

    def summary(self) -> polars.DataFrame:
        """`table` as a Polars frame; if there is a `warning`, it is one of Python's too."""
        if self.warning:
            warnings.warn(self.warning, stacklevel=2)
        rows = [row | {"arm": str(row["arm"])} for row in self.table()]
        frame: polars.DataFrame = polars_for("summary()").DataFrame(rows, infer_schema_length=None)
        return frame

    def __str__(self) -> str:
        with self._lock:
            return summary.as_text(self._current(), self._due())

    def __repr__(self) -> str:
        return (
            f"<Bandit: {self._state.known.policy}, {len(self._state.names)} arms, {self._state.known.told:,} rewards>"
        )

    def _repr_html_(self) -> str:
        with self._lock:
            return summary.as_html(self._current(), self._due())

    def plot(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> Any:
        """Draw every arm's estimate with its interval, its share of the pulls and its probability now.

        Into a file, PNG, SVG or PDF by the path's ending, and its path is given back; or into a new figure, which is
        given back and which a notebook shows.
        """
        with self._lock:
            state, due = self._current(), self._due()
            rows, heading = summary.table(state, due), summary.heading(state, due)
            heading += f"; cannot tell yet: {answers.warning(state)}" if answers.warning(state) else ""
        return summary.draw_arms(rows, None if path is None else Path(path), heading if title is None else title)

    # Its whole state, as text and as files.

    def __reduce__(self) -> Any:
        raise TypeError(
            "a bandit cannot be pickled or copied: it holds a lock and a log; to_json() has its whole state"
        )

    def to_json(self) -> str:
        """Return everything as text: statistics, pending decisions, the key of its draws.

        `from_json` makes the same bandit of it. Who has the text can predict decisions.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.5), seed=7)
        >>> waiting = bandit.ask(3)
        >>> same = Bandit.from_json(bandit.to_json())
        >>> same.tell(waiting[0], 1.0), bandit.tell(waiting[0], 1.0), same.ask() == bandit.ask()
        (True, True, True)
        """
        with self._lock:
            state = self._current()
            place = None if self._log is None else saved.Place(self._log.identity, self._log.events)
            return saved.to_json(state, place, self._draws.key)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `to_json` to one file, wholly or not at all."""
        target = Path(path)
        write_whole(target, self.to_json().encode(), mode=0o600)  # it has the key of the draws
        return target

    @classmethod
    def from_json(
        cls,
        text: str | bytes,
        *,
        policy: Policy | None = None,
        change_policy: bool = False,
        log: Log | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Bandit[Any]:
        """The bandit that `to_json` described; it goes on as the original would have.

        - ``policy``: found by its name if its module is imported already, else it must be given: text from elsewhere
          never imports anything.
        - ``change_policy``: go on with ``policy`` instead of the one that there was, and with what was learned so far;
          what does not carry over is refused. The log has this as an event.
        - ``log``: with the same log as before, what happened since the text was made is learned from there, to the last
          event: decisions, rewards, arms, other policies. A new log begins with what is pending; the log of another
          bandit is refused.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.5), seed=7)
        >>> ra.Bandit.from_json(bandit.to_json(), policy=ra.BoltzmannGumbel(C=0.07), change_policy=True).policy
        BoltzmannGumbel(C=0.07, location=0.5772156649015329)
        """
        recovery.check_policy(policy, change_policy)
        policies = [] if policy is None else [policy]
        found = saved.from_json(text, finder(policies))
        with contextlib.nullcontext() if log is None else recovery.opened(log) as journal:
            state = found.state
            is_new = journal is None or not journal.events
            if journal is not None and journal.events:
                recovery.read_on(journal, state, found.place)
            recovery.check_agreement(state, policy, change_policy)
            if is_new:
                state.ledger.skip_ids()
            key = found.key if found.key is not None or journal is None else journal.key()
            key = new_key() if key is None else key
            if journal is not None and is_new:
                recovery.begin(journal, state, key, check_time(clock()))
            made = cls._of(state, policies, key, journal, clock)
            made._go_on(policy if change_policy else None)
            return made

    @classmethod
    def from_log(
        cls,
        log: Log,
        policy: Policy | None = None,
        *,
        change_policy: bool = False,
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> Bandit[Any]:
        """The bandit that wrote a log, from the log alone; it goes on with it.

        Without the file of its key, it goes on with a new key. ``policy`` is needed if its module is not imported, or
        if the log was not written by a bandit, so that it does not name one; for such a log ``settings`` are those of
        `Bandit` (``floor``, ``discount``, ``window``).
        """
        recovery.check_policy(policy, change_policy)
        policies = [] if policy is None else [policy]
        with recovery.opened(log) as journal:
            state = recovery.from_log(journal, finder(policies), policy, settings)
            recovery.check_agreement(state, policy, change_policy)
            made = cls._of(state, policies, journal.key(), journal, clock)
            made._go_on(policy if change_policy else None)
            return made

    def _go_on(self, policy: Policy | None, arms: list[Any] | None = None) -> None:
        """Go on with another policy, or with other arms, where they are given.

        Arms that the guardrail retires when windows close just now stay retired.
        """
        if policy is None and arms is None:
            return
        with self._lock:
            state, _ = self._ready()
            wanted = None if arms is None else recovery.wanted_arms(state, arms, change_arms=True)
            if policy is not None or wanted is not None:
                self._change(policy=policy, arms=wanted)

    @overload
    @classmethod
    def open(
        cls, path: str | os.PathLike[str], arms: Iterable[A], policy: Policy | None = None, **options: Any
    ) -> Bandit[A]: ...
    @overload
    @classmethod
    def open(
        cls, path: str | os.PathLike[str], arms: None = None, policy: Policy | None = None, **options: Any
    ) -> Bandit[Any]: ...
    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        arms: Iterable[Any] | None = None,
        policy: Policy | None = None,
        *,
        change_policy: bool = False,
        change_arms: bool = False,
        every: int = 10_000,
        sync: bool = False,
        rotate: str | None = None,
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> Bandit[Any]:
        """The bandit of a folder: made if it is not there, gone on with if it is, to the last event, after any crash.

        The folder has a log, to which everything is written before it counts, the secret key of its draws, and a
        snapshot, which is written whole after ``every`` so many events (or a tenth of all) and by `close`. ``settings``
        are the other options of `Bandit`.

        - ``arms``, ``policy``, ``settings``: needed to make it (``policy`` and ``settings`` have defaults). Afterwards
          they may be left out; what is given must be what there is. ``change_arms`` adds and retires arms so that there
          are those given, ``change_policy`` changes the policy; both are events of the log.
        - ``sync``: an event is on the disk, not only with the operating system, before it counts. ``rotate``: the log
          goes on in a new file at a size such as "100MB", or every "day".

        >>> import rightarm as ra, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> for _ in range(3):
        ...     with ra.Bandit.open(folder.name + "/home.bandit", ["red", "blue"]) as bandit:
        ...         _ = bandit.tell(bandit.ask(), 1.0)
        >>> sum(row["pulls"] for row in bandit.table())
        3.0
        >>> folder.cleanup()
        """
        recovery.check_policy(policy, change_policy)
        if settings.get("log_context") is False:
            raise ValueError("log_context must be True: a folder comes back from its log, got False")
        folder = Folder(Path(path), check_count("every", every))
        policies = [] if policy is None else [policy]
        with folder.opened(sync, rotate) as log:
            if not log.events:
                if arms is None:
                    raise WrongValue("arms", f"must be given to make a bandit: there is none in {path}")
                made: Bandit[Any] = cls(arms, policy, log=log, clock=clock, **settings)
            else:
                state = _opened(folder, log, finder(policies), policy)
                recovery.check_settings(state.settings, settings)
                names = None if arms is None else distinct(arms)
                recovery.wanted_arms(state, names, change_arms)  # which refuses others, unless they are to be
                recovery.check_agreement(state, policy, change_policy)
                made = cls._of(state, policies, log.key(), log, clock)
                made._go_on(policy if change_policy else None, names if change_arms else None)
            made._folder = folder
            folder.look(made._state, log)
            return made


def _opened(
    folder: Folder, log: Journal, find_policy: Callable[[Mapping[str, Any]], Policy], policy: Policy | None
) -> State:
    """Return the state of a folder's bandit: its snapshot and the events since, or all events."""
    found = folder.load(find_policy)
    if found is None:
        return recovery.from_log(log, find_policy, policy, {})
    recovery.read_on(log, found.state, found.place)
    return found.state


def _several(arms: Any) -> list[Any]:
    """Return the names of arms, if they are several that differ."""
    if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise WrongType("arms", f"must be several names, got {arms!r}")
    return distinct(arms)


def _seconds(value: float | timedelta) -> float:
    return check_seconds("window_of_reward", value, above=0.0)


def _told(
    rewards: decide.Rewards, decision: Any, reward: Any, arm: Any, context: Any, arm_features: Any
) -> bool | list[bool]:
    """Take rewards in any of the ways that `Bandit.tell` takes them, and say which were taken."""
    if (decision is None) == (arm is ...):
        given = "neither" if decision is None else f"{decision!r} and arm={arm!r}"
        raise WrongType("tell", f"takes either a decision or arm=, got {given}")
    if decision is None:
        return rewards.observe(arm, reward, context, arm_features) in TAKEN
    if context is not None or arm_features is not None:
        given = f"context={context!r:.200}, arm_features={arm_features!r:.200}"
        raise WrongType("context", f"must be left out: a decision has its context already, got {given}")
    if isinstance(decision, Decision | int | str) or reward is not None:
        return rewards.tell(decision, reward) in TAKEN
    if not isinstance(decision, Iterable):
        raise WrongType("decision", f"must be a decision, or pairs of decisions and rewards, got {decision!r}")
    pairs = decision.items() if isinstance(decision, Mapping) else decision
    return [rewards.tell(*_pair(pair)) in TAKEN for pair in pairs]


def _pair(pair: Any) -> tuple[Any, Any]:
    try:
        decision, reward = pair
    except (TypeError, ValueError):
        raise WrongType("decision", f"must be pairs of decision and reward, got {pair!r}") from None
    return decision, reward
