"""`Bandit`: decisions one by one, with the exact probability of each, and rewards that may come late or never."""

from __future__ import annotations

import itertools
import json
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from rightarm.extras import polars_for
from rightarm.formula import check_count, check_number
from rightarm.live.arms import I64, NEVER, Arms, Decision, Law, check_reward, draw
from rightarm.live.state import (
    as_text,
    check_floor,
    check_same_policy,
    flag,
    listed,
    name_from,
    plain_name,
    policy_from,
)
from rightarm.logs.events import answer_event, check_arm_name, check_propensity
from rightarm.logs.writer import LogWriter
from rightarm.scores.live import MEAN, PULLS
from rightarm.scores.policy import Policy

if TYPE_CHECKING:
    import polars

FORMAT, VERSION = "rightarm bandit", 1
OWN_STREAM = (2017,)  # default_rng(seed) is what users draw their rewards from: the same numbers would decide again
REMEMBERED = 100_000  # answered decisions whose reward is remembered, to notice one that is told twice

Answer = tuple[Decision | int, float]


class Waiting(NamedTuple):
    """A decision that waits for its reward: the index of its arm, and when it was made."""

    decision: Decision
    arm: int
    time: float


class Bandit:
    """A live bandit: `ask` for an arm, `tell` its reward, at any later time and in any order.

    - ``arms``: their names, anything hashable. ``policy``: a policy of rightarm, or one's own.
    - ``floor``: a probability that every arm has at least; the propensities say so.
    - ``discount`` or ``window``: for worlds that change. Rewards count the less the older they are, by this factor for
      every later reward, or only the last so many count.
    - ``seed``: the same seed and the same answers give the same decisions.
    - ``log``: a path, or a `LogWriter`, to which every decision and every reward is written before it counts.
    - ``clock``: seconds since 1970, for `expire` and the log.

    An arm is drawn from the exact probabilities of the moment, so the propensity is that of the choice by construction.
    While an arm has no reward, a policy that looks at means pulls it first, and again after as many decisions as there
    are arms if none has come by then; of several such arms, that which was not chosen the longest. All methods may be
    called from several threads. A pending decision takes some 400 bytes; the rewards of the last 100,000 answered ones
    are remembered, 30 MB at most, to notice what is told twice.

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
        log: LogWriter | str | os.PathLike[str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
            raise TypeError(f"arms must be several names, got {arms!r}")
        if not callable(clock):
            raise TypeError(f"clock must be a function that gives seconds, got {clock!r}")
        self.known = Arms(policy, discount, window)
        self.floor = check_floor(floor)
        entropy = seed if seed is None else check_count("seed", seed, least=0)
        self.random = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=OWN_STREAM))
        self.clock = clock
        self.log: LogWriter | None = None
        self.version, self.next_id = 0, 1
        self.names: list[Hashable] = []
        self.index: dict[Hashable, int] = {}
        self.active: list[bool] = []
        self.waiting: list[int] = []  # pending decisions of each arm
        self.last: list[int] = []  # the latest decision for each arm
        self.pending: dict[int, Waiting] = {}
        self.answered: OrderedDict[int, float | None] = OrderedDict()
        self._all: I64 | None = None  # indices of the active arms, until they change
        self._logged: I64 | None = None  # those that the log was told of
        self._law: Law | None = None  # of all of them, until the state changes
        self._lock = threading.RLock()
        for arm in arms:
            self.add_arm(arm)
        if not self.names:
            raise ValueError("arms must name at least one arm, got none")
        if log is not None:
            self._write_to(log)

    @property
    def policy(self) -> Policy:
        """The policy that decides."""
        return self.known.policy

    def _write_to(self, log: LogWriter | str | os.PathLike[str]) -> LogWriter:
        for name in self.names:
            check_arm_name("arms", name)
        self.log = log if isinstance(log, LogWriter) else LogWriter(log)
        self.next_id = max(self.next_id, 1 + (self.log.last_id or 0))
        return self.log

    def _go_on_in(self, log: LogWriter, events: int | None) -> None:
        """Take over what the log has beyond so many events; a new one is told what is pending."""
        if not log.events:
            log.write([self._event(waiting.decision) for waiting in self.pending.values()])
        elif events is None and self.pending:
            raise ValueError(f"log must be a new one: this bandit has pending decisions and had no log, got {log.path}")
        elif events is not None and events > log.events:
            raise ValueError(f"log must be new or have the {events} events of before, got {log.events} in {log.path}")
        self.log = None  # nothing is to be written again
        for event in itertools.islice(log, log.events if events is None else events, None):
            self._take(event)
        self.log = log

    def _take(self, event: Mapping[str, Any]) -> None:
        match event["event"]:
            case "arms":
                for arm in event["arms"]:
                    if arm not in self.index:
                        self.add_arm(arm)
                self.active = [name in event["arms"] for name in self.names]
                self._arms_changed()
            case "decision":
                decision = Decision(*(event[name] for name in Decision._fields))
                self._register(decision, self._known_arm("arm", decision.arm), event["time"])
                self.next_id, self.version = max(self.next_id, decision.id + 1), max(self.version, decision.version)
                self.random.random()
            case "observation":
                self._learn(self._known_arm("arm", event["arm"]), event["reward"], 1.0)
            case _:
                self._answer({event["id"]: event.get("reward")})

    def close(self) -> None:
        """Close the log, if there is one; a bandit in a ``with`` statement does so at its end."""
        with self._lock:
            if self.log is not None:
                self.log.close()

    def __enter__(self) -> Bandit:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Decisions.

    @overload
    def ask(self, *, among: Iterable[Hashable] | None = None) -> Decision: ...
    @overload
    def ask(self, size: int, *, among: Iterable[Hashable] | None = None) -> list[Decision]: ...
    def ask(self, size: int | None = None, *, among: Iterable[Hashable] | None = None) -> Decision | list[Decision]:
        """Decide: one arm, or ``size`` of them, each by itself; ``among`` some arms only, if given.

        Each decision waits for its reward until it is told, cancelled or expired.
        """
        count = 1 if size is None else check_count("size", size)
        with self._lock:
            members = None if among is None else self._chosen(among)
            if size is None and self.log is None:
                return self._decide(members, self._now())
            before, now = self.last.copy(), self._now()
            made = [self._decide(members, now) for _ in range(count)]
            if self.log is not None:
                self._log_decisions(self.log, made, members, before)
        return made[0] if size is None else made

    def _decide(self, members: list[int] | None, now: float) -> Decision:
        law = self._law_of(members)
        place = draw(law.chance, law.heights, self.random.random())
        arm = law.members.item(place)
        decision = Decision(self.next_id, self.names[arm], law.chance.item(place), self.known.told + 1, self.version)
        self.next_id += 1
        self._register(decision, arm, now)
        return decision

    def _register(self, decision: Decision, arm: int, asked: float) -> None:
        self.pending[decision.id] = Waiting(decision, arm, asked)
        self.waiting[arm] += 1
        self.last[arm] = decision.id

    def _now(self) -> float:
        now = self.clock()
        return now if type(now) is float and math.isfinite(now) else check_number("clock", now)

    def _log_decisions(self, log: LogWriter, made: list[Decision], members: list[int] | None, last: list[int]) -> None:
        """Write decisions to the log, and before them the arms if these have changed; or unmake them."""
        now, among = self.pending[made[0].id].time, {} if members is None else {"among": self._named(members)}
        events = [self._event(decision) | among for decision in made]
        if self._logged is not self._members():
            events.insert(0, {"event": "arms", "arms": self._named(self._members().tolist()), "time": now})
        try:
            log.write(events)
            self._logged = self._all
        except BaseException:
            for decision in made:
                self.waiting[self.pending.pop(decision.id).arm] -= 1
            self.last = last  # ids are not used again: who knows how far the log came
            raise

    def _event(self, decision: Decision) -> dict[str, Any]:
        return {"event": "decision", **decision._asdict(), "time": self.pending[decision.id].time}

    def _named(self, arms: list[int]) -> list[Hashable]:
        return [self.names[i] for i in arms]

    def _chosen(self, among: Iterable[Hashable]) -> list[int]:
        if isinstance(among, str | bytes) or not isinstance(among, Iterable):
            raise TypeError(f"among must be several arms, got {among!r}")
        chosen = sorted({self._known_arm("among", arm) for arm in among})
        retired = [self.names[i] for i in chosen if not self.active[i]]
        if retired or not chosen:
            raise ValueError(f"among must be arms that are not retired, got {retired if retired else 'none'}")
        return chosen

    def _members(self) -> I64:
        if self._all is None:
            self._all = np.flatnonzero(self.active)
        return self._all

    def _law_of(self, members: list[int] | None) -> Law:
        if members is None and self._law is not None:
            return self._law
        arms = self._members() if members is None else np.array(members)
        if not arms.size:
            raise ValueError("every arm is retired; restore or add one")
        law = self.known.law(arms, self.last, self.next_id, self.floor)
        if members is None and law.settled:
            self._law = law
        return law

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
                self._observe(self._known_arm("arm", arm), self.known.check(reward))
                return True
            if isinstance(decision, Decision | int) or reward is not None:
                return self._tell_one(decision, reward)
            if not isinstance(decision, Iterable):
                raise TypeError(f"tell takes a decision and a reward, or pairs of both, got {decision!r}")
            return self._tell(decision.items() if isinstance(decision, Mapping) else decision)

    def _observe(self, arm: int, reward: float) -> None:
        self.known.rehearse([(arm, reward, 1.0)])
        if self.log is not None:
            self.log.write([{"event": "observation", "arm": self.names[arm], "reward": reward, "time": self._now()}])
        self._learn(arm, reward, 1.0)

    def _tell_one(self, decision: Any, reward: Any) -> bool:
        number, value = self._known_id(decision), self.known.check(reward)
        fresh = number in self.pending
        if fresh:
            self._answer({number: value})
        else:
            self._check_again(number, self.answered[number], value)
        return fresh

    def _tell(self, answers: Iterable[Any]) -> list[bool]:
        fresh: dict[int, float] = {}
        told = []
        for answer in answers:
            try:
                decision, reward = answer
            except (TypeError, ValueError):
                raise TypeError(f"a batch is pairs of decision and reward, got {answer!r}") from None
            number, value = self._known_id(decision), self.known.check(reward)
            told.append(number in self.pending and number not in fresh)
            if told[-1]:
                fresh[number] = value
            else:
                self._check_again(number, fresh.get(number, self.answered.get(number)), value)
        self._answer(fresh)
        return told

    def _check_again(self, number: int, before: float | None, value: float) -> None:
        if before != value:
            was = "cancelled or expired" if before is None else f"told the reward {before}"
            raise ValueError(f"decision {number} was {was} before, got the reward {value}")

    def _known_id(self, decision: Any) -> int:
        number = decision.id if isinstance(decision, Decision) else decision
        if type(number) is not int:
            if isinstance(number, bool) or not isinstance(number, int | np.integer):
                raise TypeError(f"decision must be a Decision or its id, got {decision!r}")
            number = int(number)
        waiting = self.pending.get(number)
        if waiting is not None and waiting.decision is decision:
            return number
        if waiting is not None and isinstance(decision, Decision) and waiting.decision != decision:
            raise ValueError(f"decision {number} is {waiting.decision} here, got {decision}")
        if waiting is not None or number in self.answered:
            return number
        if 0 < number < self.next_id:
            raise ValueError(f"decision {number} is not known: answered too long ago, or by another bandit of this log")
        raise ValueError(f"decision {number} was never made here")

    def _answer(self, rewards: Mapping[int, float | None]) -> None:
        """Close pending decisions, with their rewards or, where that is None, without."""
        if self.known.remembers:
            waits = [(self.pending[number], reward) for number, reward in rewards.items()]
            self.known.rehearse([(one.arm, r, one.decision.propensity) for one, r in waits if r is not None])
        if self.log is not None and rewards:
            now = self._now()
            self.log.write([answer_event(number, reward, now) for number, reward in rewards.items()])
        for number, reward in rewards.items():
            waiting = self.pending.pop(number)
            self.answered[number] = reward
            if reward is not None:
                self._learn(waiting.arm, reward, waiting.decision.propensity)
            self.waiting[waiting.arm] -= 1
        while len(self.answered) > REMEMBERED:
            self.answered.popitem(last=False)

    def _learn(self, arm: int, reward: float, propensity: float) -> None:
        self.known.learn(arm, reward, propensity)
        self._changed()

    def cancel(self, decision: Decision | int) -> bool:
        """Forget a decision that will have no reward; False if it waits for none any more."""
        with self._lock:
            number = self._known_id(decision)
            waits = number in self.pending
            if waits:
                self._answer({number: None})
            return waits

    def expire(self, older_than: float | timedelta, reward: float | None = None) -> int:
        """Cancel all decisions that have waited longer than so many seconds, or give them ``reward``; says how many."""
        seconds = older_than.total_seconds() if isinstance(older_than, timedelta) else older_than
        if check_number("older_than", seconds) < 0:
            raise ValueError(f"older_than must not be negative, got {older_than}")
        value = None if reward is None else self.known.check(reward)
        with self._lock:
            limit = self._now() - seconds
            late = [number for number, waiting in self.pending.items() if waiting.time < limit]
            self._answer(dict.fromkeys(late, value))
            return len(late)

    # Arms.

    def add_arm(self, arm: Hashable) -> None:
        """One arm more; if the policy looks at means, it goes first."""
        with self._lock:
            if not isinstance(arm, Hashable):
                raise TypeError(f"arm must be hashable, got {arm!r}")
            if isinstance(arm, np.generic):
                arm = arm.item()  # a number that JSON and logs know
            if arm in self.index:
                hint = "" if self.active[self.index[arm]] else "; it is retired: restore_arm brings it back"
                raise ValueError(f"arms must differ, got {arm!r} again{hint}")
            if self.log is not None:
                check_arm_name("arm", arm)
            self._check_floor(more=1)
            self.index[arm] = len(self.names)
            self.names.append(arm)
            self.active.append(True)
            self.waiting.append(0)
            self.last.append(NEVER)
            self.known.add()
            self._arms_changed()

    def _check_floor(self, more: int) -> None:
        arms = more + (sum(self.active) if self.floor else 0)
        if self.floor * arms > 1 + 1e-12:
            raise ValueError(f"floor must be at most 1/{arms} for {arms} arms, got {self.floor}")

    def retire_arm(self, arm: Hashable) -> None:
        """Choose an arm no more; what is pending for it is still learned."""
        self._set_active(arm, False)

    def restore_arm(self, arm: Hashable) -> None:
        """Choose a retired arm again, with what is known of it still."""
        self._set_active(arm, True)

    def _set_active(self, arm: Hashable, active: bool) -> None:
        with self._lock:
            index = self._known_arm("arm", arm)
            if self.active[index] != active:
                self._check_floor(more=int(active))
                self.active[index] = active
                self._arms_changed()

    def _arms_changed(self) -> None:
        self._all = None
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._law = None

    def _known_arm(self, name: str, arm: Hashable) -> int:
        try:
            return self.index[arm]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self.names[:20])) + (", ..." if len(self.names) > 20 else "")
            raise ValueError(f"{name} must be one of {known}, got {arm!r}") from None

    @property
    def arms(self) -> list[Hashable]:
        """The arms that can be chosen."""
        return [name for name, active in zip(self.names, self.active, strict=True) if active]

    # What it knows.

    def probabilities(self, *, among: Iterable[Hashable] | None = None) -> dict[Hashable, float]:
        """The probability of every arm in the next decision."""
        with self._lock:
            law = self._law_of(None if among is None else self._chosen(among))
            return {self.names[i]: p for i, p in zip(law.members.tolist(), law.chance.tolist(), strict=True)}

    def table(self) -> list[dict[str, Any]]:
        """For every arm: pulls, estimate, a 95% interval of the mean, share of pulls, probability now, what is pending.

        The interval is about the plain mean, by the normal law. Where a policy chose what to look at it is a guide, not
        a guarantee; `evaluate` has intervals that hold.
        """
        with self._lock:
            now = self.probabilities() if any(self.active) else {}
            pulls, estimates = self.known.row(PULLS).tolist(), self.known.row(MEAN).tolist()
            means, halves, total = self.known.means().tolist(), self.known.half_widths().tolist(), self.known.total
            return [
                {
                    "arm": name,
                    "pulls": pulls[i],
                    "estimate": estimates[i] if pulls[i] else None,
                    "low": means[i] - halves[i] if halves[i] < np.inf else None,
                    "high": means[i] + halves[i] if halves[i] < np.inf else None,
                    "share": pulls[i] / total if total else 0.0,
                    "probability": now.get(name, 0.0),
                    "pending": self.waiting[i],
                    "retired": not self.active[i],
                }
                for i, name in enumerate(self.names)
            ]

    def summary(self) -> polars.DataFrame:
        """`table` as a Polars frame."""
        rows = [row | {"arm": str(row["arm"])} for row in self.table()]
        frame: polars.DataFrame = polars_for("summary()").DataFrame(rows, infer_schema_length=None)
        return frame

    def __str__(self) -> str:
        return as_text(f"{self.policy}, {self.known.told:,} rewards, {len(self.pending):,} pending", self.table())

    def __reduce__(self) -> Any:
        raise TypeError(
            "a bandit cannot be pickled or copied: it holds a lock and a log; to_json() has its whole state"
        )

    def __repr__(self) -> str:
        return f"<Bandit: {self.policy}, {len(self.names)} arms, {self.known.told:,} rewards>"

    def plot(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Draw every arm's estimate with its interval, its share of the pulls and its probability now.

        PNG, SVG or PDF by the path's ending.
        """
        from rightarm.live.figure import draw_arms

        return draw_arms(self.table(), Path(path), str(self).partition("\n")[0] if title is None else title)

    # Its whole state as text.

    def to_json(self) -> str:
        """Everything: statistics, pending decisions, random state; `from_json` makes the same bandit of it.

        >>> import rightarm as ra
        >>> bandit = ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.5), seed=7)
        >>> waiting = bandit.ask(3)
        >>> same = Bandit.from_json(bandit.to_json())
        >>> same.tell(waiting[0], 1.0), bandit.tell(waiting[0], 1.0), same.ask() == bandit.ask()
        (True, True, True)
        """
        with self._lock:
            state = {
                "format": FORMAT,
                "version": VERSION,
                "policy": self.policy.specification(),
                "floor": self.floor,
                "discount": self.known.discount,
                "window": self.known.window,
                "arms": [plain_name(name) for name in self.names],
                "active": self.active,
                "state": self.version,
                "next_id": self.next_id,
                "last": self.last,
                "events": None if self.log is None else self.log.events,
                "statistics": self.known.to_json(),
                "pending": [
                    [w.decision.id, w.arm, w.decision.propensity, w.decision.round, w.decision.version, w.time]
                    for w in self.pending.values()
                ],
                "answered": [list(pair) for pair in self.answered.items()],
                "random": self.random.bit_generator.state,
            }
        return json.dumps(state, allow_nan=False)

    @classmethod
    def from_json(
        cls,
        text: str | bytes,
        *,
        policy: Policy | None = None,
        log: LogWriter | str | os.PathLike[str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Bandit:
        """The bandit that `to_json` described; it goes on as the original would have.

        A policy of one's own is found by its name if its module is imported already, else ``policy`` must be given:
        text from elsewhere never imports anything.

        With the same ``log`` as before, what happened since the text was made is learned from there, to the last event:
        decisions, rewards, arms.
        """
        try:
            state = json.loads(text)
            made = cls._restored(state, policy, clock)
            events = None if state["events"] is None else check_count("events", state["events"], least=0)
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
            raise ValueError(f"this is not the state of a bandit: {type(error).__name__}: {error}") from None
        if log is not None:
            made._go_on_in(made._write_to(log), events)
        return made

    @classmethod
    def _restored(cls, state: Any, policy: Policy | None, clock: Callable[[], float]) -> Bandit:
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise ValueError(f"this is not the state of a bandit: format must be {FORMAT!r}")
        if state.get("version") != VERSION:
            raise ValueError(f"version must be {VERSION}, got {state.get('version')!r}")
        if policy is not None and not isinstance(policy, Policy):
            raise ValueError(f"policy must be a policy such as UCB(C=0.5), got {policy!r}")
        found = policy_from(state["policy"]) if policy is None else policy
        check_same_policy(found, state["policy"])
        names = [name_from(name) for name in listed("arms", state["arms"])]
        made = cls(names, found, seed=0, discount=state["discount"], window=state["window"], clock=clock)
        made.known.restore(state["statistics"])
        made.active = [flag(active) for active in listed("active", state["active"])]
        if len(made.active) != len(names):
            raise ValueError(f"active must have one value for each of {len(names)} arms, got {len(made.active)}")
        made.floor = check_floor(state["floor"])
        made._check_floor(more=0)
        made.next_id = check_count("next_id", state["next_id"])
        for row in listed("pending", state["pending"]):
            made._restore_pending(*row)
        made.last = [check_count("last", number, least=0) for number in listed("last", state["last"])]
        if len(made.last) != len(names) or max(made.last) >= made.next_id:
            raise ValueError(f"last must be a decision below {made.next_id} for each arm, got {made.last}")
        for number, reward in listed("answered", state["answered"]):
            made._check_new(number)
            made.answered[number] = None if reward is None else check_reward(reward)
        made.random.bit_generator.state = state["random"]
        made._arms_changed()
        made.version = check_count("state", state["state"], least=0)
        return made

    def _restore_pending(self, number: Any, arm: Any, propensity: Any, round: Any, version: Any, asked: Any) -> None:
        self._check_new(number)
        index, chance = check_count("arm", arm, least=0), check_propensity("propensity", propensity)
        counts = check_count("round", round), check_count("version", version, least=0)
        self._register(Decision(number, self.names[index], chance, *counts), index, check_number("time", asked))

    def _check_new(self, number: Any) -> None:
        """Raise if it is not the number of a decision that was made, or is there already."""
        if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < self.next_id:
            raise ValueError(f"the id of a decision must be a whole number below {self.next_id}, got {number!r}")
        if number in self.pending or number in self.answered:
            raise ValueError(f"the ids of decisions must differ, got {number} again")
