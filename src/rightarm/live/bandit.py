"""`Bandit`: decisions one by one, with the exact probability of each, and rewards that may come late or never."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, overload

from numpy.typing import NDArray

from rightarm.extras import polars_for
from rightarm.files import write_whole
from rightarm.formula import check_count
from rightarm.inference import Best, Coefficients, Difference
from rightarm.live import answers, explanations, recovery, summary
from rightarm.live import coefficients as linear
from rightarm.live import state as saved
from rightarm.live.actions import CORRECTED, LEARNED, NOTED, Actions
from rightarm.live.contextual import Seen
from rightarm.live.draws import Draws
from rightarm.live.explanations import Explanation
from rightarm.live.fold import State
from rightarm.live.folder import Folder
from rightarm.live.ledger import A, Decision, Unit, Waiting, check_unit
from rightarm.live.names import distinct, hashable_name
from rightarm.live.recovery import Log
from rightarm.live.settings import AT_ONCE, CORRECT, LAST, Settings, check_seconds
from rightarm.logs.journal import Journal
from rightarm.policies.gumbel import ScaledGumbel
from rightarm.scores.policy import Policy

if TYPE_CHECKING:
    import polars

TAKEN = frozenset((LEARNED, NOTED, CORRECTED))  # rewards of which `tell` says True
ID_BITS = 31, 21  # of the first id: so many by chance, and so many zeros; ids stay below 2^53, which JSON keeps exactly


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
    - ``seed``: the same seed and the same answers give the same decisions, ids included. Without it ids begin at a
      number that no other bandit has used.
    - ``log_context``: whether the log has the contexts; without them nobody can evaluate or recover from it.
    - ``log``: a path, or a `LogWriter`, to which everything that happens is written before it counts. It must be a new
      one: `open`, `from_json` and `from_log` go on with one that has events.
    - ``clock``: seconds since 1970, for windows, `expire` and the log.

    An arm is drawn from the exact probabilities of the moment, so the propensity is that of the choice by construction.
    While arms have no reward, a policy that looks at means tries them first: they share the draw evenly. One that waits
    for its reward meanwhile gets one decision in as many as there are arms, and the policy chooses among the others.

    All methods may be called from several threads; an exception from a signal handler, Ctrl-C say, leaves things done
    wholly or not at all. A process that is forked must make its own bandit. A pending decision takes some 500 bytes;
    the answers of the last 100,000 others are remembered, to notice or correct what is told again.

    >>> import rightarm as ra
    >>> bandit = ra.Bandit(["red", "green"], ra.Boltzmann(0.25), seed=1)
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
        if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
            raise TypeError(f"arms must be several names, got {arms!r}")
        entropy = seed if seed is None else check_count("seed", seed, least=0)
        settings = Settings(
            floor,
            discount,
            window,
            reward_range,
            window_of_reward,
            default,
            learn,
            several,
            None if control is None else hashable_name(control),
            holdout,
            guardrail,
            log_context,
            late,
        )
        names = distinct(arms)
        if not names:
            raise ValueError("arms must name at least one arm, got none")
        if control is not None and settings.control not in names:
            raise ValueError(f"control must be one of the arms, got {control!r}")
        first_id = 1 if seed is not None else 1 + (secrets.randbits(ID_BITS[0]) << ID_BITS[1])
        state = State(ScaledGumbel() if policy is None else policy, Draws.seeded(entropy), settings, first_id)
        if settings.default is not None:
            state.check_reward(settings.default)
        self._begin(Actions(state, clock))
        priors = [self._actions.prior(names, name, given) for name, given in (prior or {}).items()]
        with contextlib.nullcontext() if log is None else recovery.opened(log) as writer:
            if writer is not None:
                recovery.write_to(self._actions, writer, names)
                if writer.events:
                    raise ValueError(
                        f"log must be a new one, got {writer.path} with {writer.events:,} events: "
                        "Bandit.open, from_json and from_log go on with a log"
                    )
            self._actions.change_arms(names, priors, settings=saved.as_settings(state))

    @classmethod
    def _of(cls, actions: Actions) -> Bandit[Any]:
        """A bandit that lets these actions happen."""
        made: Bandit[Any] = cls.__new__(cls)
        made._begin(actions)
        return made

    def _begin(self, actions: Actions) -> None:
        self._state, self._actions = actions.state, actions
        self._process, self._threads = os.getpid(), threading.RLock()

    @property
    def _lock(self) -> AbstractContextManager[bool]:
        """The lock that every method takes; an error where it must not be taken.

        In a process that was forked it may belong to a thread that is not there, and would be waited for without end.
        """
        if self._process != os.getpid():
            raise RuntimeError(
                f"this bandit was made by process {self._process}, of which this one is a fork: both would make "
                "the same decisions. Make the bandit after forking, or have one process decide for all"
            )
        if self._actions.note is not None and self._threads._is_owned():  # type: ignore[attr-defined]
            raise RuntimeError(
                "a signal handler called the bandit in the middle of an action: let it raise an exception instead"
            )
        return self._threads

    def _ready(self) -> State:
        """The state, after what was broken off is finished; to be called with the lock."""
        if self._actions.note is not None:
            self._actions.settle()
        return self._state

    def _due(self) -> list[Waiting]:
        """The decisions whose window of reward has closed and which are not learned yet; to be called with the lock."""
        state = self._ready()
        return [] if state.settings.seconds is None else state.due(self._actions.now())

    def close(self) -> None:
        """Close the log, if there is one; a bandit in a ``with`` statement does so at its end.

        In a process that was forked there is nothing to close: the log was left to the parent.
        """
        if self._process != os.getpid():
            return
        with self._lock:
            self._ready()
            actions = self._actions
            if actions.log is not None:
                try:
                    if actions.folder is not None:
                        folder, actions.folder = actions.folder, None
                        folder.save(self._ready(), actions.log)
                finally:
                    actions.log.close()

    def __enter__(self) -> Bandit[A]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # What can be read off.

    @property
    def policy(self) -> Policy:
        """The policy that decides."""
        return self._state.known.policy

    @property
    def arms(self) -> list[A]:
        """The arms that can be chosen."""
        with self._lock:
            return self._ready().active_names()

    @property
    def pending(self) -> list[Decision[A]]:
        """The decisions that wait for a reward, the oldest first; not those whose ``window_of_reward`` has closed."""
        with self._lock:
            state = self._ready()
            closed = {waiting.decision.id for waiting in self._due()}
            return [one.decision for number, one in state.ledger.pending.items() if number not in closed]

    @property
    def version(self) -> int:
        """How often the state has changed: rewards, arms that come or go, another policy."""
        return self._state.version

    @property
    def floor(self) -> float:
        """The probability that every arm has at least."""
        return self._state.settings.floor

    @property
    def discount(self) -> float | None:
        """The factor by which a reward counts less with every later one, if there is one."""
        return self._state.known.discount

    @property
    def window(self) -> int | None:
        """How many of the last rewards count, if not all do."""
        return self._state.known.window

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """What rewards can be; None if they can be anything."""
        return self._state.reward_range

    @property
    def log(self) -> Journal | None:
        """The log, if there is one."""
        return self._actions.log

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
            state, now = self._state if self._actions.note is None else self._ready(), self._actions.now()
            if state.settings.window_of_reward is not None:
                self._actions.close_windows(now)
            members = None if among is None else state.chosen(among)
            if size is not None or contexts is not None:
                if unit is not None:
                    raise TypeError(f"unit is for one decision, got unit={unit!r} and {size=}")
                if context is not None or (size is not None and contexts is not None):
                    raise TypeError(f"ask takes one of size, contexts and context, got {size=}, {context=!r:.200}")
                seen = self._contexts(size, contexts, arm_features, members)
                self._actions.begin()
                made = state.draw_several(members, now, seen)
                self._actions.decide(made, members, meta, seen)
                return [waiting.decision for waiting in made]
            if unit is not None:
                before = self._actions.assigned(check_unit(unit), members)
                if before is not None:
                    return before
            one = state.see(context, arm_features, members)
            self._actions.begin()
            waiting = state.draw(members, now, unit, one)
            self._actions.decide([waiting], members, meta, [one])
            return waiting.decision

    def _contexts(
        self, size: int | None, contexts: Any, arm_features: Mapping[A, Any] | NDArray[Any] | None, members: Any
    ) -> list[Seen | None]:
        """Several contexts, each seen after those before it; or none, so many times."""
        state = self._state
        if size is not None:
            if isinstance(size, Mapping):
                raise TypeError(f"size must be a number of decisions; a context is context=, got {size!r:.200}")
            count = check_count("size", size)
            return [state.see(None, arm_features, members)] * count
        features, seen = state.features(), list[Seen | None]()
        for row in features.encode_many(contexts):
            seen.append(state.see(row, arm_features, members, seen[-1] if seen else None))
        return seen

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
            state = self._state if self._actions.note is None else self._ready()
            if state.settings.window_of_reward is not None:
                self._actions.close_windows(self._actions.now())
            alone = arm is ... and context is None and arm_features is None
            if type(decision) is Decision and reward is not None and alone:  # by far the most
                return self._actions.tell_one(decision, reward) in TAKEN
            if (decision is None) == (arm is ...):
                given = "neither" if decision is None else f"{decision!r} and arm={arm!r}"
                raise TypeError(f"tell takes either a decision or arm=, got {given}")
            if decision is None:
                return self._actions.tell_arm(arm, reward, context, arm_features)
            if context is not None or arm_features is not None:
                given = f"context={context!r:.200}, arm_features={arm_features!r:.200}"
                raise TypeError(f"a decision has its context already, got {given}")
            if isinstance(decision, Decision | int | str) or reward is not None:
                return self._actions.tell_one(decision, reward) in TAKEN
            if not isinstance(decision, Iterable):
                raise TypeError(f"tell takes a decision and a reward, or pairs of both, got {decision!r}")
            pairs = decision.items() if isinstance(decision, Mapping) else decision
            return [outcome in TAKEN for outcome in self._actions.tell_batch(pairs)]

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
            state = self._ready()
            if state.settings.window_of_reward is not None:
                self._actions.close_windows(self._actions.now())
            number, value = state.ledger.number_of(decision), state.check_reward(reward)
            waiting = state.ledger.pending.get(number)
            if waiting is not None and waiting.so_far is None:
                raise ValueError(f"decision {number} has no reward yet that could be corrected: tell it")
            before = state.ledger.answered[number].reward if waiting is None else waiting.so_far
            self._actions.take({number: value})
            return before != value

    def cancel(self, decision: Decision[A] | int | str) -> bool:
        """Forget a decision that will have no reward; False if it does not wait for one any more."""
        with self._lock:
            state = self._ready()
            if state.settings.window_of_reward is not None:
                self._actions.close_windows(self._actions.now())
            waiting = state.ledger.pending.get(state.ledger.number_of(decision))
            if waiting is not None:
                self._actions.answer([(waiting, None)])
            return waiting is not None

    def expire(self, older_than: float | timedelta, reward: float | None = None) -> int:
        """Cancel all decisions that have waited longer than so many seconds, or give them ``reward``; says how many.

        A decision that has a reward so far (``learn="at close"``) keeps that. Decisions whose ``window_of_reward`` has
        closed need no call: every `ask` and `tell` sees to them first.
        """
        seconds = check_seconds("older_than", older_than)
        with self._lock:
            state = self._ready()
            if state.settings.window_of_reward is not None:
                self._actions.close_windows(self._actions.now())
            value = None if reward is None else state.check_reward(reward)
            pending = state.ledger.pending
            late = [pending[number] for number in state.ledger.older_than(self._actions.now() - seconds)]
            self._actions.answer([(one, value if one.so_far is None else one.so_far) for one in late])
            return len(late)

    def waiting_since(self, decision: Decision[A] | int) -> float | None:
        """When a decision that waits for its reward was made, in seconds since 1970; None if it does not wait."""
        with self._lock:
            waiting = self._ready().ledger.pending.get(decision.id if isinstance(decision, Decision) else decision)
            return None if waiting is None else waiting.time

    def close_windows(self) -> float | None:
        """Learn the decisions whose window of reward has closed; says when the next one can close, if they ever do.

        Every `ask` and `tell` does this first: it is for bandits that nobody asks for a while.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a"], window_of_reward=60, default=0.0, clock=lambda: 1000.0)
        >>> bandit.close_windows()
        1060.0
        """
        with self._lock:
            state, now = self._ready(), self._actions.now()
            seconds = state.settings.seconds
            if seconds is None:
                return None
            self._actions.close_windows(now)
            first = next(iter(state.ledger.pending.values()), None)
            return seconds + (now if first is None else first.time)

    # Arms.

    def add_arm(self, arm: A, *, prior: Any = None) -> None:
        """Add an arm; a policy that looks at means tries it first, unless it has a ``prior``.

        That is what it starts from as if it had been seen: a pair of the mean and the number of rewards, or these and
        their variance; or ``("like", another arm, number)``: that one's mean and variance, as so many rewards. Priors
        are part of what the policy sees, never of the intervals.
        """
        with self._lock:
            state, name = self._ready(), hashable_name(arm)
            if name in state.index:
                hint = "" if state.active[state.index[name]] else "; it is retired: restore_arm brings it back"
                raise ValueError(f"arms must differ, got {name!r} again{hint}")
            names = [*state.active_names(), name]
            self._actions.change_arms(names, [] if prior is None else [self._actions.prior(names, name, prior)])

    def replace_arm(self, arm: A, by: A, *, prior: Any = None) -> None:
        """Retire an arm and add the one that comes in its place, at once: a new version starts with nothing known."""
        with self._lock:
            state, name = self._ready(), hashable_name(by)
            old = state.arm_number("arm", arm)
            if name in state.index:
                raise ValueError(f"by must be a new arm, got {name!r}")
            names = [name if one == state.names[old] else one for one in state.active_names()]
            if name not in names:
                raise ValueError(f"arm must be one that is not retired, got {arm!r}")
            self._actions.change_arms(names, [] if prior is None else [self._actions.prior(names, name, prior)])

    def retire_arm(self, arm: A) -> None:
        """Choose an arm no more; what is pending for it is still learned."""
        with self._lock:
            state = self._ready()
            self._actions.set_active(state.arm_number("arm", arm), False)

    def restore_arm(self, arm: A) -> None:
        """Choose a retired arm again, with what is known of it still."""
        with self._lock:
            state = self._ready()
            self._actions.set_active(state.arm_number("arm", arm), True)

    def change_policy(self, policy: Policy) -> bool:
        """Let another policy decide from now on, with what was learned so far; False if it is the same one.

        What does not carry over, such as the memory of another estimator, is refused. The log has this as an event.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.5), seed=7)
        >>> bandit.change_policy(ra.BoltzmannGumbel(C=0.07)), bandit.policy.C
        (True, 0.07)
        """
        recovery.check_policy(policy, True)
        with self._lock:
            self._ready()
            return self._actions.change_policy(policy)

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
            state = self._ready()
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
            return answers.difference(self._ready(), self._actions.log, arm, other, where, confidence)

    def best(self, *, confidence: float = 0.95, tolerance: float = 0.0) -> Best:
        """Which arms can still be the best, which one to choose, and what choosing it for good can cost; at any time.

        ``stop`` says whether that is ``tolerance`` per decision at most; never while an arm lacks rewards, as
        ``lacking`` says then. ``leader`` is None while there is nothing to choose an arm by. Retired arms are left out.
        A bandit that decides by contexts has no best arm: see `difference`.
        """
        with self._lock:
            return answers.best(self._ready(), confidence, tolerance)

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
            state = self._ready()
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
            return explanations.explain(self._ready(), decision)

    def table(self) -> list[dict[str, Any]]:
        """For every arm: pulls, estimate, mean of all rewards with a 95% interval, share, probability now, pending.

        The interval, from ``low`` to ``high``, holds at any time, as `difference` says; ``kind`` says what it rests on,
        and where there is none ``lacking`` says why. It is about all rewards that were learned, also where the policy
        forgets some. Where a policy decides by contexts, mean and interval are those of the decisions where the arm was
        chosen, and do not compare arms.
        """
        with self._lock:
            return summary.table(self._ready(), self._due())

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
            return answers.warning(self._ready())

    def summary(self) -> polars.DataFrame:
        """`table` as a Polars frame; if there is a `warning`, it is one of Python's too."""
        if self.warning:
            warnings.warn(self.warning, stacklevel=2)
        rows = [row | {"arm": str(row["arm"])} for row in self.table()]
        frame: polars.DataFrame = polars_for("summary()").DataFrame(rows, infer_schema_length=None)
        return frame

    def __str__(self) -> str:
        with self._lock:
            return summary.as_text(self._ready(), self._due())

    def __repr__(self) -> str:
        return f"<Bandit: {self.policy}, {len(self._state.names)} arms, {self._state.known.told:,} rewards>"

    def _repr_html_(self) -> str:
        with self._lock:
            return summary.as_html(self._ready(), self._due())

    def plot(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> Any:
        """Draw every arm's estimate with its interval, its share of the pulls and its probability now.

        Into a file, PNG, SVG or PDF by the path's ending, and its path is given back; or into a new figure, which is
        given back and which a notebook shows.
        """
        with self._lock:
            state, due = self._ready(), self._due()
            rows, heading = summary.table(state, due), summary.heading(state, due)
            heading += f"; cannot tell yet: {answers.warning(state)}" if answers.warning(state) else ""
        return summary.draw_arms(rows, None if path is None else Path(path), heading if title is None else title)

    # Its whole state, as text and as files.

    def __reduce__(self) -> Any:
        raise TypeError(
            "a bandit cannot be pickled or copied: it holds a lock and a log; to_json() has its whole state"
        )

    def to_json(self) -> str:
        """Everything as text: statistics, pending decisions, random state; `from_json` makes the same bandit of it.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.5), seed=7)
        >>> waiting = bandit.ask(3)
        >>> same = Bandit.from_json(bandit.to_json())
        >>> same.tell(waiting[0], 1.0), bandit.tell(waiting[0], 1.0), same.ask() == bandit.ask()
        (True, True, True)
        """
        with self._lock:
            return saved.to_json(self._ready(), self._actions.log)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write `to_json` to one file, wholly or not at all."""
        target = Path(path)
        write_whole(target, self.to_json().encode())
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
        found = saved.from_json(text, policy)
        with contextlib.nullcontext() if log is None else recovery.opened(log) as writer:
            if writer is None or not writer.events:
                found.state.ledger.skip_ids()
            return cls._of(recovery.go_on(found, writer, policy, change_policy, clock))

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

        ``policy`` is needed if its module is not imported, or if the log was not written by a bandit, so that it does
        not name one; for such a log ``settings`` are those of `Bandit` (``floor``, ``discount``, ``window``).
        """
        recovery.check_policy(policy, change_policy)
        with recovery.opened(log) as writer:
            found = saved.from_log(writer, policy, settings)
            return cls._of(recovery.go_on(found, writer, policy, change_policy, clock))

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

        The folder has a log, in which everything is before it counts, and a snapshot, which is written whole after
        ``every`` so many events (or a tenth of all) and by `close`. ``settings`` are the other options of `Bandit`.

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
        with folder.opened(sync, rotate) as log:
            if not log.events:
                if arms is None:
                    raise ValueError(f"arms must be given to make a bandit: there is none in {path}")
                made: Bandit[Any] = cls(arms, policy, log=log, clock=clock, **settings)
            else:
                names = None if arms is None else distinct(arms)

                def agree(state: State) -> None:
                    recovery.check_agreement(state, settings, names, change_arms)

                actions = recovery.go_on(folder.load(log, policy), log, policy, change_policy, clock, agree)
                recovery.change_arms_to(actions, names, settings.get("prior"))
                made = cls._of(actions)
            made._actions.folder = folder
            folder.look(made._state, log)
            return made
