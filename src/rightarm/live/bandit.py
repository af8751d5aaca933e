"""`Bandit`: decisions one by one, with the exact probability of each, and rewards that may come late or never."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from rightarm.extras import polars_for
from rightarm.formula import check_count, check_number
from rightarm.inference import Best, Difference
from rightarm.live import answers, summary
from rightarm.live import state as saved
from rightarm.live.fold import State
from rightarm.live.ledger import Decision, Waiting
from rightarm.logs.events import Event, answer_event, check_arm_name
from rightarm.logs.writer import LogWriter
from rightarm.scores.policy import Policy
from rightarm.types import I64

if TYPE_CHECKING:
    import polars

OWN_STREAM = (2017,)  # users may draw their rewards from default_rng(seed): decisions must not use the same numbers

Answer = tuple[Decision | int, float]
Log = LogWriter | str | os.PathLike[str]


class Bandit:
    """A live bandit: `ask` for an arm, `tell` its reward, at any later time and in any order.

    - ``arms``: their names, anything hashable. ``policy``: a policy of rightarm, or one's own.
    - ``floor``: a probability that every arm has at least; the propensities say so.
    - ``discount`` or ``window``: for worlds that change. Rewards count the less the older they are, by this factor for
      every later reward, or only the last so many count.
    - ``seed``: the same seed and the same answers give the same decisions.
    - ``log``: a path, or a `LogWriter`, to which everything that happens is written before it counts.
    - ``clock``: seconds since 1970, for `expire` and the log.

    An arm is drawn from the exact probabilities of the moment, so the propensity is that of the choice by construction.
    While an arm has no reward, a policy that looks at means pulls it first, and again after as many decisions as there
    are arms if none has come by then; of several such arms, the one that was not chosen for the longest time. All
    methods may be called from several threads. A pending decision takes some 400 bytes; the rewards of the last 100,000
    answered ones are remembered, 30 MB at most, to notice what is told twice.

    >>> import rightarm as ra
    >>> bandit = ra.Bandit(["red", "green"], ra.Boltzmann(0.25), seed=1)
    >>> decision = bandit.ask()
    >>> decision.arm, decision.propensity
    ('red', 1.0)
    >>> bandit.tell(decision, 1.0)
    True
    >>> bandit.tell(arm="green", reward=0.5)
    True
    >>> decision = bandit.ask()
    >>> decision.id, decision.arm, round(decision.propensity, 12), decision.round
    (2, 'red', 0.880797077978, 3)
    """

    def __init__(
        self,
        arms: Iterable[Hashable],
        policy: Policy,
        *,
        seed: int | None = None,
        floor: float = 0.0,
        discount: float | None = None,
        window: int | None = None,
        log: Log | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
            raise TypeError(f"arms must be several names, got {arms!r}")
        entropy = seed if seed is None else check_count("seed", seed, least=0)
        random = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=OWN_STREAM))
        self._begin(State(policy, random, floor=floor, discount=discount, window=window), clock)
        names = _distinct(arms)
        if not names:
            raise ValueError("arms must name at least one arm, got none")
        if log is None:
            self._state.set_arms(names)
        else:
            with _opened(log) as writer:
                self._write_to(writer, names)
                self._change_arms(names)

    def _begin(self, state: State, clock: Callable[[], float]) -> None:
        if not callable(clock):
            raise TypeError(f"clock must be a function that gives seconds, got {clock!r}")
        self._state, self._clock = state, clock
        self._log: LogWriter | None = None
        self._lock = threading.RLock()

    def _write_to(self, log: LogWriter, names: Iterable[Hashable]) -> None:
        for name in names:
            check_arm_name("arms", name)
        self._log, ledger = log, self._state.ledger
        ledger.next_id = max(ledger.next_id, 1 + (log.last_id or 0))

    def close(self) -> None:
        """Close the log, if there is one; a bandit in a ``with`` statement does so at its end."""
        with self._lock:
            if self._log is not None:
                self._log.close()

    def __enter__(self) -> Bandit:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # What can be read off.

    @property
    def policy(self) -> Policy:
        """The policy that decides."""
        return self._state.known.policy

    @property
    def arms(self) -> list[Hashable]:
        """The arms that can be chosen."""
        with self._lock:
            return self._state.active_names()

    @property
    def pending(self) -> list[Decision]:
        """The decisions that wait for a reward, the oldest first."""
        with self._lock:
            return [waiting.decision for waiting in self._state.ledger.pending.values()]

    @property
    def version(self) -> int:
        """How often the state has changed: decisions of one version have the same probabilities."""
        return self._state.version

    @property
    def floor(self) -> float:
        """The probability that every arm has at least."""
        return self._state.floor

    @property
    def discount(self) -> float | None:
        """The factor by which a reward counts less with every later one, if there is one."""
        return self._state.known.discount

    @property
    def window(self) -> int | None:
        """How many of the last rewards count, if not all do."""
        return self._state.known.window

    @property
    def log(self) -> LogWriter | None:
        """The log, if there is one."""
        return self._log

    # Decisions.

    @overload
    def ask(self, *, among: Iterable[Hashable] | None = None) -> Decision: ...
    @overload
    def ask(self, size: int, *, among: Iterable[Hashable] | None = None) -> list[Decision]: ...
    def ask(self, size: int | None = None, *, among: Iterable[Hashable] | None = None) -> Decision | list[Decision]:
        """Decide: one arm, or ``size`` of them, each drawn by itself; ``among`` some arms only, if given.

        Each decision waits for its reward until it is told, cancelled or expired.
        """
        with self._lock:
            state = self._state
            members = None if among is None else state.chosen(among)
            if size is None:
                waiting = state.draw(members, self._now())
                if self._log is not None:
                    self._log_decisions(self._log, [waiting], members)
                state.decided(waiting)
                return waiting.decision
            made = state.draw_several(members, self._now(), check_count("size", size))
            if self._log is not None:
                self._log_decisions(self._log, made, members)
            for waiting in made:
                state.decided(waiting)
            return [waiting.decision for waiting in made]

    def _log_decisions(self, log: LogWriter, made: list[Waiting], members: I64 | None) -> None:
        among = {} if members is None else {"among": [self._state.names[i] for i in members]}
        try:
            log.write([waiting.as_event() | among for waiting in made])
        except BaseException:
            self._state.ledger.next_id += len(made)  # these ids are not used again: some may have been written
            raise

    def _now(self) -> float:
        now = self._clock()
        return now if type(now) is float and math.isfinite(now) else check_number("clock", now)

    # Rewards.

    @overload
    def tell(self, decision: Decision | int, reward: float) -> bool: ...
    @overload
    def tell(self, decision: Iterable[Answer] | Mapping[int, float]) -> list[bool]: ...
    @overload
    def tell(self, *, arm: Hashable, reward: float) -> bool: ...
    def tell(
        self,
        decision: Decision | int | Iterable[Answer] | Mapping[int, float] | None = None,
        reward: float | None = None,
        *,
        arm: Hashable = ...,
    ) -> bool | list[bool]:
        """Learn the reward of a decision (or of its id), of a batch of pairs of both, or of an arm without a decision.

        True if it was learned. The same reward for the same decision again is ignored: then it is False; another one is
        an error. Of a batch either all is taken or, if something is wrong, nothing.
        """
        with self._lock:
            if (decision is None) == (arm is ...):
                given = "neither" if decision is None else f"{decision!r} and arm={arm!r}"
                raise TypeError(f"tell takes either a decision or arm=, got {given}")
            if decision is None:
                return self._tell_arm(arm, reward)
            if isinstance(decision, Decision | int) or reward is not None:
                return self._tell_one(decision, reward)
            if not isinstance(decision, Iterable):
                raise TypeError(f"tell takes a decision and a reward, or pairs of both, got {decision!r}")
            return self._tell_batch(decision.items() if isinstance(decision, Mapping) else decision)

    def _tell_arm(self, arm: Hashable, reward: Any) -> bool:
        state = self._state
        number, value = state.arm_number("arm", arm), state.known.check(reward)
        state.known.rehearse([(number, value, 1.0)])
        if self._log is not None:
            event = {"event": "observation", "arm": state.names[number], "reward": value, "time": self._now()}
            self._log.write([event])
        state.observed(number, value)
        return True

    def _tell_one(self, decision: Any, reward: Any) -> bool:
        state = self._state
        ledger = state.ledger
        number, value = ledger.number_of(decision), state.known.check(reward)
        if number in ledger.pending:
            self._answer({number: value})
            return True
        ledger.check_again(number, value, ledger.answered[number])
        return False

    def _tell_batch(self, answers: Iterable[Any]) -> list[bool]:
        ledger, fresh, learned = self._state.ledger, dict[int, float](), list[bool]()
        for answer in answers:
            try:
                decision, reward = answer
            except (TypeError, ValueError):
                raise TypeError(f"a batch is pairs of decision and reward, got {answer!r}") from None
            number, value = ledger.number_of(decision), self._state.known.check(reward)
            learned.append(number in ledger.pending and number not in fresh)
            if learned[-1]:
                fresh[number] = value
            else:
                ledger.check_again(number, value, fresh.get(number, ledger.answered.get(number)))
        self._answer(fresh)
        return learned

    def _answer(self, rewards: Mapping[int, float | None]) -> None:
        """Close pending decisions, with their rewards or, where that is None, without."""
        state = self._state
        if state.known.remembers:
            waits = [(state.ledger.pending[number], reward) for number, reward in rewards.items()]
            state.known.rehearse([(one.arm, r, one.decision.propensity) for one, r in waits if r is not None])
        if self._log is not None and rewards:
            now = self._now()
            self._log.write([answer_event(number, reward, now) for number, reward in rewards.items()])
        for number, reward in rewards.items():
            state.answered(number, reward)

    def cancel(self, decision: Decision | int) -> bool:
        """Forget a decision that will have no reward; False if it does not wait for one any more."""
        with self._lock:
            ledger = self._state.ledger
            number = ledger.number_of(decision)
            waits = number in ledger.pending
            if waits:
                self._answer({number: None})
            return waits

    def expire(self, older_than: float | timedelta, reward: float | None = None) -> int:
        """Cancel all decisions that have waited longer than so many seconds, or give them ``reward``; says how many."""
        seconds = older_than.total_seconds() if isinstance(older_than, timedelta) else older_than
        if check_number("older_than", seconds) < 0:
            raise ValueError(f"older_than must not be negative, got {older_than}")
        with self._lock:
            value = None if reward is None else self._state.known.check(reward)
            late = self._state.ledger.older_than(self._now() - seconds)
            self._answer(dict.fromkeys(late, value))
            return len(late)

    # Arms.

    def add_arm(self, arm: Hashable) -> None:
        """Add an arm; a policy that looks at means pulls it first."""
        with self._lock:
            state, name = self._state, _name(arm)
            if name in state.index:
                hint = "" if state.active[state.index[name]] else "; it is retired: restore_arm brings it back"
                raise ValueError(f"arms must differ, got {name!r} again{hint}")
            if self._log is not None:
                check_arm_name("arm", name)
            self._change_arms([*state.active_names(), name])

    def retire_arm(self, arm: Hashable) -> None:
        """Choose an arm no more; what is pending for it is still learned."""
        with self._lock:
            self._set_active(self._state.arm_number("arm", arm), False)

    def restore_arm(self, arm: Hashable) -> None:
        """Choose a retired arm again, with what is known of it still."""
        with self._lock:
            self._set_active(self._state.arm_number("arm", arm), True)

    def _set_active(self, arm: int, active: bool) -> None:
        names, flags = self._state.names, self._state.active.copy()
        if flags[arm] != active:
            flags[arm] = active
            self._change_arms([name for name, flag in zip(names, flags, strict=True) if flag])

    def _change_arms(self, names: Sequence[Hashable]) -> None:
        """Let these arms be chosen and no others, and say so in the log."""
        self._state.check_floor(len(names))
        if self._log is not None:
            self._log.write([{"event": "arms", "arms": names, "time": self._now()}])
        self._state.set_arms(names)

    # What it knows.

    def probabilities(self, *, among: Iterable[Hashable] | None = None) -> dict[Hashable, float]:
        """The probability of every arm in the next decision."""
        with self._lock:
            law = self._state.law(None if among is None else self._state.chosen(among))
            names = self._state.names
            return {names[i]: p for i, p in zip(law.members.tolist(), law.chance.tolist(), strict=True)}

    def difference(self, arm: Hashable, other: Hashable, *, confidence: float = 0.95) -> Difference:
        """By how much the mean of ``arm`` is above that of ``other``: an interval that holds at any time.

        One may look after every reward and stop when one likes; that the bandit chose what to pull does not matter. The
        bandit's ``reward_range`` makes the interval hold for any number of rewards; without it is asymptotic, and says
        so. `rightarm.inference` has the same for statistics from elsewhere.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["blue", "red"], ra.UCB(C=0.5))
        >>> print(bandit.difference("blue", "red"))
        cannot tell yet: without a reward_range an arm needs 30 rewards that are not all equal
        """
        with self._lock:
            return answers.difference(self._state, arm, other, confidence)

    def best(self, *, confidence: float = 0.95, tolerance: float = 0.0) -> Best:
        """Which arms can still be the best, which one to choose, and what choosing it for good can cost; at any time.

        ``stop`` says whether that is ``tolerance`` per decision at most. Retired arms are left out.
        """
        with self._lock:
            return answers.best(self._state, confidence, tolerance)

    def table(self) -> list[dict[str, Any]]:
        """For every arm: pulls, estimate, mean of all rewards with a 95% interval, share, probability now, pending.

        The interval, from ``low`` to ``high``, holds at any time, as `difference` says; ``kind`` says what it rests on.
        It is about all rewards that were learned, also where the policy forgets some.
        """
        with self._lock:
            return summary.table(self._state)

    def summary(self) -> polars.DataFrame:
        """`table` as a Polars frame."""
        rows = [row | {"arm": str(row["arm"])} for row in self.table()]
        frame: polars.DataFrame = polars_for("summary()").DataFrame(rows, infer_schema_length=None)
        return frame

    def __str__(self) -> str:
        with self._lock:
            return summary.as_text(self._state)

    def __repr__(self) -> str:
        return f"<Bandit: {self.policy}, {len(self._state.names)} arms, {self._state.known.told:,} rewards>"

    def plot(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Draw every arm's estimate with its interval, its share of the pulls and its probability now.

        PNG, SVG or PDF by the path's ending.
        """
        with self._lock:
            rows, heading = self.table(), summary.heading(self._state)
        return summary.draw_arms(rows, Path(path), heading if title is None else title)

    # Its whole state as text.

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
            return saved.to_json(self._state, None if self._log is None else self._log.events)

    @classmethod
    def from_json(
        cls,
        text: str | bytes,
        *,
        policy: Policy | None = None,
        change_policy: bool = False,
        log: Log | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Bandit:
        """The bandit that `to_json` described; it goes on as the original would have.

        - ``policy``: found by its name if its module is imported already, else it must be given: text from elsewhere
          never imports anything.
        - ``change_policy``: go on with ``policy`` instead of the one that there was, and with what was learned so far;
          what does not carry over is refused. The log has this as an event.
        - ``log``: with the same log as before, what happened since the text was made is learned from there, to the last
          event: decisions, rewards, arms, other policies. A new log begins with what is pending.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.5), seed=7)
        >>> ra.Bandit.from_json(bandit.to_json(), policy=ra.BoltzmannGumbel(C=0.07), change_policy=True).policy
        BoltzmannGumbel(C=0.07, location=0.5772156649015329)
        """
        if policy is not None and not isinstance(policy, Policy):
            raise ValueError(f"policy must be a policy such as UCB(C=0.5), got {policy!r}")
        if change_policy and policy is None:
            raise TypeError("change_policy needs the policy to change to, got policy=None")
        state, events, specification = saved.from_json(text, policy)
        made = cls.__new__(cls)
        made._begin(state, clock)
        with contextlib.nullcontext() if log is None else _opened(log) as writer:
            new: list[Event] = []
            if writer is not None:
                made._write_to(writer, state.names)
                changed, new = saved.read_on(writer, state, events, policy)
                specification = changed or specification
            if policy is not None:
                new += saved.settle_policy(state, policy, specification, change_policy)
            if writer is not None and new:
                now = made._now()
                writer.write([{"time": now} | event for event in new])
        return made


@contextlib.contextmanager
def _opened(log: Log) -> Iterator[LogWriter]:
    """The writer of a log. If it is opened here, and what follows fails, it is closed: the next one finds no lock."""
    if isinstance(log, LogWriter):
        yield log
        return
    writer = LogWriter(log)
    try:
        yield writer
    except BaseException:
        writer.close()
        raise


def _name(arm: Hashable) -> Hashable:
    """An arm's name, if it can be one."""
    if not isinstance(arm, Hashable):
        raise TypeError(f"arm must be hashable, got {arm!r}")
    return arm.item() if isinstance(arm, np.generic) else arm  # a number that JSON and logs know


def _distinct(arms: Iterable[Hashable]) -> list[Hashable]:
    names: dict[Hashable, None] = {}
    for name in map(_name, arms):
        if name in names:
            raise ValueError(f"arms must differ, got {name!r} again")
        names[name] = None
    return list(names)
