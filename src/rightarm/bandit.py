"""`Bandit`: decisions one by one, with the exact probability of each, and rewards that may come late or never."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from rightarm.arms import F64, Decision, Statistics
from rightarm.formula import check_count, check_number, from_specification
from rightarm.policies.policy import Policy

if TYPE_CHECKING:
    import polars

VERSION = 1
REMEMBERED = 100_000  # answered decisions whose reward is remembered, to notice one that is told twice

Answer = tuple["Decision | int", float]


class Pending(NamedTuple):
    """A decision that waits for its reward."""

    arm: int
    propensity: float
    round: int
    version: int
    time: float


class Bandit:
    """A live bandit: `ask` for an arm, `tell` its reward, at any later time and in any order.

    - ``arms``: their names, anything hashable. ``policy``: a policy of rightarm, or one's own.
    - ``floor``: a probability that every arm has at least; the propensities say so.
    - ``discount`` or ``window``: for worlds that change. Rewards count the less the older they are, by this factor for
      every later reward, or only the last so many count.
    - ``seed``: the same seed and the same answers give the same decisions.
    - ``clock``: seconds since some fixed time, for `expire`.

    An arm is drawn from the exact probabilities of the moment, so the propensity is that of the choice by construction.
    All methods may be called from several threads.

    >>> import rightarm as ra
    >>> bandit = ra.Bandit(["red", "green"], ra.Boltzmann(0.25), seed=1)
    >>> decision = bandit.ask()
    >>> decision.arm, decision.propensity
    ('red', 1.0)
    >>> bandit.tell(decision, 1.0)
    True
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
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(policy, Policy):
            hint = "; call it with its parameters first" if callable(policy) else ""
            raise TypeError(f"policy must be a policy such as UCB(C=0.5), got {policy!r}{hint}")
        self.policy, self.clock = policy, clock
        self.floor = check_number("floor", floor)
        self.random = np.random.default_rng(seed if seed is None else check_count("seed", seed, least=0))
        self.known = Statistics(policy, discount, window)
        self.names: list[Hashable] = []
        self.active: list[bool] = []
        self.index: dict[Hashable, int] = {}
        self.version, self.next_id = 0, 1
        self.pending: dict[int, Pending] = {}
        self.waiting: list[int] = []  # pending decisions of each arm
        self.answered: OrderedDict[int, float | None] = OrderedDict()
        self._current: tuple[list[int], F64] | None = None  # arms and probabilities, until the state changes
        self._lock = threading.RLock()
        for arm in arms:
            self.add_arm(arm)
        if not self.names:
            raise ValueError("arms must name at least one arm, got none")

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
            made = [self._decide(self._choosable(among)) for _ in range(count)]
        return made[0] if size is None else made

    def _decide(self, choosable: list[int] | None) -> Decision:
        arms, probabilities = self._law(choosable)
        place = int(np.searchsorted(np.cumsum(probabilities), self.random.random() * probabilities.sum(), side="right"))
        place = min(place, len(arms) - 1)
        while not probabilities[place]:  # rounding at the end of the sum
            place -= 1
        arm, propensity = arms[place], float(probabilities[place])
        number, self.next_id = self.next_id, self.next_id + 1
        self.pending[number] = Pending(arm, propensity, self.known.rounds + 1, self.version, self.clock())
        self.waiting[arm] += 1
        if self.known.pulls[arm] == 0:  # which arm goes first depends on what is waiting
            self._current = None
        return Decision(number, self.names[arm], propensity, self.known.rounds + 1, self.version)

    def _choosable(self, among: Iterable[Hashable] | None) -> list[int] | None:
        if among is None:
            return None
        chosen = sorted({self._known_arm("among", arm) for arm in among})
        retired = [self.names[i] for i in chosen if not self.active[i]]
        if retired or not chosen:
            raise ValueError(f"among must be arms that are not retired, got {retired if retired else 'none'}")
        return chosen

    def _law(self, choosable: list[int] | None) -> tuple[list[int], F64]:
        """The arms that can be chosen and the probability of each."""
        if choosable is None and self._current is not None:
            return self._current
        arms = [i for i, active in enumerate(self.active) if active] if choosable is None else choosable
        if not arms:
            raise ValueError("every arm is retired; restore or add one")
        if self.floor * len(arms) > 1:
            raise ValueError(f"floor must be at most 1/{len(arms)} for {len(arms)} arms, got {self.floor}")
        law = arms, self.floor + (1 - self.floor * len(arms)) * self._by_policy(arms)
        if choosable is None:
            self._current = law
        return law

    def _by_policy(self, arms: list[int]) -> F64:
        """The policy's own probabilities; an arm never pulled goes first, of those the one for which least waits."""
        pulls = self.known.counted[arms]
        if self.policy.needs_pulls and not pulls.all():
            waiting = np.where(pulls == 0, np.array(self.waiting)[arms], np.inf)
            return 1.0 * (np.arange(len(arms)) == waiting.argmin())
        memory = {name: column[arms] for name, column in self.known.memory.items()}
        return self.policy.probabilities(self.known.rounds + 1, pulls, self.known.estimate[arms], memory or None)

    # Rewards.

    @overload
    def tell(self, decision: Decision | int, reward: float) -> bool: ...
    @overload
    def tell(self, decision: Iterable[Answer]) -> list[bool]: ...
    @overload
    def tell(self, *, arm: Hashable, reward: float) -> bool: ...
    def tell(
        self,
        decision: Decision | int | Iterable[Answer] | None = None,
        reward: float | None = None,
        *,
        arm: Hashable = None,
    ) -> bool | list[bool]:
        """Learn the reward of a decision (or of its id), of a batch of pairs of both, or of an arm without a decision.

        True if it was learned. The same reward for the same decision again is ignored: then it is False; another one is
        an error. Of a batch either all is taken or, if something is wrong, nothing.
        """
        with self._lock:
            if decision is None:
                return self._tell_arm(arm, reward)
            if arm is not None:
                raise TypeError(f"tell takes a decision or an arm, got {decision!r} and arm={arm!r}")
            if isinstance(decision, Decision | int):
                return self._tell_all([(decision, reward)])[0]
            if reward is not None:
                raise TypeError(f"a batch is pairs of decision and reward, got reward={reward!r} besides")
            return self._tell_all(list(decision))

    def _tell_arm(self, arm: Hashable, reward: Any) -> bool:
        index, value = self._known_arm("arm", arm), check_number("reward", reward)
        self._learn(index, value, 1.0)
        return True

    def _tell_all(self, answers: Sequence[tuple[Any, Any]]) -> list[bool]:
        fresh: dict[int, float] = {}
        told = []
        for answer in answers:
            decision, reward = answer
            number, value = self._known_id(decision), check_number("reward", reward)
            before = (
                fresh.get(number) if number in fresh else self.answered.get(number) if number in self.answered else None
            )
            if number in self.pending and number not in fresh:
                fresh[number] = value
                told.append(True)
            elif before != value:
                was = "cancelled or expired" if before is None else f"told the reward {before}"
                raise ValueError(f"decision {number} was {was} before, got the reward {value}")
            else:
                told.append(False)
        for number, value in fresh.items():
            waiting = self._close(number, value)
            self._learn(waiting.arm, value, waiting.propensity)
        return told

    def _known_id(self, decision: Any) -> int:
        number = decision.id if isinstance(decision, Decision) else decision
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"decision must be a Decision or its id, got {decision!r}")
        if number in self.pending or number in self.answered:
            return number
        if 0 < number < self.next_id:
            raise ValueError(f"decision {number} was answered so long ago that its reward is not remembered")
        raise ValueError(f"decision {number} was never made here")

    def _close(self, number: int, reward: float | None) -> Pending:
        waiting = self.pending.pop(number)
        self.waiting[waiting.arm] -= 1
        self.answered[number] = reward
        if len(self.answered) > REMEMBERED:
            self.answered.popitem(last=False)
        self._current = None
        return waiting

    def _learn(self, arm: int, reward: float, propensity: float) -> None:
        self.known.learn(arm, reward, propensity)
        self.version += 1
        self._current = None

    def cancel(self, decision: Decision | int) -> bool:
        """Forget a decision that will have no reward; False if it waits for none any more."""
        with self._lock:
            number = self._known_id(decision)
            if number not in self.pending:
                return False
            self._close(number, None)
            return True

    def expire(self, older_than: float | timedelta, reward: float | None = None) -> int:
        """Cancel all decisions that have waited longer than so many seconds, or give them ``reward``; says how many."""
        seconds = older_than.total_seconds() if isinstance(older_than, timedelta) else older_than
        limit = self.clock() - check_number("older_than", seconds)
        value = None if reward is None else check_number("reward", reward)
        with self._lock:
            late = [number for number, waiting in self.pending.items() if waiting.time < limit]
            for number in late:
                waiting = self._close(number, value)
                if value is not None:
                    self._learn(waiting.arm, value, waiting.propensity)
            return len(late)

    # Arms.

    def add_arm(self, arm: Hashable) -> None:
        """One arm more; if the policy looks at pulls, it goes first."""
        with self._lock:
            if arm in self.index:
                raise ValueError(f"the arm {arm!r} is there already")
            if self.floor * (sum(self.active) + 1) > 1:
                raise ValueError(f"floor must be at most 1/{sum(self.active) + 1} for one arm more, got {self.floor}")
            self.index[arm] = len(self.names)
            self.names.append(arm)
            self.active.append(True)
            self.waiting.append(0)
            self.known.add_arm()
            self._changed()

    def retire_arm(self, arm: Hashable) -> None:
        """Choose an arm no more; what is pending for it is still learned."""
        self._set_active(arm, False)

    def restore_arm(self, arm: Hashable) -> None:
        """Choose a retired arm again; nothing of it was forgotten."""
        self._set_active(arm, True)

    def _set_active(self, arm: Hashable, active: bool) -> None:
        with self._lock:
            self.active[self._known_arm("arm", arm)] = active
            self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._current = None

    def _known_arm(self, name: str, arm: Hashable) -> int:
        if arm not in self.index:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, self.names))}, got {arm!r}")
        return self.index[arm]

    @property
    def arms(self) -> list[Hashable]:
        """The arms that can be chosen."""
        return [name for name, active in zip(self.names, self.active, strict=True) if active]

    # What it knows.

    def probabilities(self, *, among: Iterable[Hashable] | None = None) -> dict[Hashable, float]:
        """The probability of every arm in the next decision."""
        with self._lock:
            arms, probabilities = self._law(self._choosable(among))
            return {self.names[i]: float(p) for i, p in zip(arms, probabilities, strict=True)}

    def table(self) -> list[dict[str, Any]]:
        """For every arm: pulls, estimate, a 95% interval of the mean, share of pulls, probability now, what is pending.

        The interval is the normal one; under adaptive choice it is a guide, not a guarantee.
        """
        with self._lock:
            now = self.probabilities() if any(self.active) else {}
            known, half = self.known, self.known.half_width()
            total = known.pulls.sum()
            return [
                {
                    "arm": name,
                    "pulls": float(known.pulls[i]),
                    "estimate": float(known.estimate[i]) if known.pulls[i] else None,
                    "low": float(known.mean[i] - half[i]) if np.isfinite(half[i]) else None,
                    "high": float(known.mean[i] + half[i]) if np.isfinite(half[i]) else None,
                    "share": float(known.pulls[i] / total) if total else 0.0,
                    "probability": now.get(name, 0.0),
                    "pending": self.waiting[i],
                    "retired": not self.active[i],
                }
                for i, name in enumerate(self.names)
            ]

    def summary(self) -> polars.DataFrame:
        """`table` as a Polars frame."""
        from rightarm.extras import polars_for

        rows = [row | {"arm": str(row["arm"])} for row in self.table()]
        frame: polars.DataFrame = polars_for("summary()").DataFrame(rows, infer_schema_length=None)
        return frame

    def __str__(self) -> str:
        head = f"{self.policy}, {self.known.rounds:,} rewards, {len(self.pending):,} pending"
        rows = [f"{'arm':<20} {'pulls':>10} {'estimate':>10} {'95% interval':>23} {'share':>7} {'probability':>12}"]
        for row in self.table():
            interval = "" if row["low"] is None else f"{row['low']:.4g} to {row['high']:.4g}"
            estimate = "" if row["estimate"] is None else f"{row['estimate']:.4g}"
            numbers = (
                f"{row['pulls']:>10.6g} {estimate:>10} {interval:>23} {row['share']:>7.3f} {row['probability']:>12.4g}"
            )
            rows.append(f"{row['arm']!s:<20} {numbers}{'  retired' if row['retired'] else ''}")
        return "\n".join([head, *rows])

    def __repr__(self) -> str:
        return f"<Bandit: {self.policy}, {len(self.names)} arms, {self.known.rounds:,} rewards>"

    # Its whole state as text.

    def to_json(self) -> str:
        """Everything: statistics, pending decisions, random state; `from_json` makes the same bandit of it."""
        with self._lock:
            state = {
                "format": "rightarm bandit",
                "version": VERSION,
                "policy": self.policy.specification(),
                "floor": self.floor,
                "discount": self.known.discount,
                "window": self.known.window,
                "arms": [_plain_name(name) for name in self.names],
                "active": self.active,
                "state": self.version,
                "next_id": self.next_id,
                "statistics": self.known.to_json(),
                "pending": {str(number): list(waiting) for number, waiting in self.pending.items()},
                "answered": {str(number): reward for number, reward in self.answered.items()},
                "random": self.random.bit_generator.state,
            }
        return json.dumps(state, allow_nan=False)

    @classmethod
    def from_json(
        cls, text: str | bytes, *, policy: Policy | None = None, clock: Callable[[], float] = time.time
    ) -> Bandit:
        """The bandit that `to_json` described; it goes on as the original would have.

        A policy of one's own is found by its name if its module is imported already, else ``policy`` must be given:
        text from elsewhere never imports anything.
        """
        try:
            return cls._restored(json.loads(text), policy, clock)
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
            raise ValueError(f"this is not the state of a bandit: {type(error).__name__} {error}") from None

    @classmethod
    def _restored(cls, state: Any, policy: Policy | None, clock: Callable[[], float]) -> Bandit:
        if not isinstance(state, dict) or state.get("format") != "rightarm bandit":
            raise ValueError("this is not the state of a bandit")
        if state.get("version") != VERSION:
            raise ValueError(f"version must be {VERSION}, got {state.get('version')!r}")
        found = _policy_from(state["policy"]) if policy is None else policy
        if found.specification() != state["policy"]:
            raise ValueError(f"policy must be the one of the state, {state['policy']['formula']}, got {found!r}")
        names = [_name_from(name) for name in state["arms"]]
        settings = {"floor": state["floor"], "discount": state["discount"], "window": state["window"]}
        made = cls(names, found, seed=0, clock=clock, **settings)
        made.known.restore(state["statistics"], len(names))
        made.active = [_flag(active) for active in state["active"]]
        made.version = check_count("state", state["state"], least=0)
        made.next_id = check_count("next_id", state["next_id"])
        made.pending = {int(number): made._pending_from(waiting) for number, waiting in state["pending"].items()}
        made.answered = OrderedDict(
            (int(number), None if reward is None else check_number("reward", reward))
            for number, reward in state["answered"].items()
        )
        made._check_restored()
        made.random.bit_generator.state = state["random"]
        return made

    def _pending_from(self, row: Sequence[Any]) -> Pending:
        arm, propensity, round_, version, asked = row
        if not 0 < check_number("propensity", propensity) <= 1 + 1e-9:
            raise ValueError(f"propensity must be between 0 and 1, got {propensity}")
        index = check_count("arm", arm, least=0)
        self.waiting[index] += 1
        return Pending(
            index,
            propensity,
            check_count("round", round_),
            check_count("version", version, least=0),
            check_number("time", asked),
        )

    def _check_restored(self) -> None:
        if len(self.active) != len(self.names):
            raise ValueError(f"active must have one value for each of {len(self.names)} arms, got {len(self.active)}")
        numbers = [*self.pending, *self.answered]
        if len(set(numbers)) != len(numbers) or any(not 0 < number < self.next_id for number in numbers):
            raise ValueError("pending and answered decisions must differ and be below next_id")


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"active must be true or false, got {value!r}")
    return value


def _plain_name(name: Hashable) -> Any:
    """An arm's name as JSON has it; a tuple is told from a list."""
    if isinstance(name, tuple):
        return {"tuple": [_plain_name(part) for part in name]}
    if name is None or isinstance(name, str | int | float | bool):
        return name
    raise TypeError(f"to_json keeps arms that are text, numbers or tuples of them, got {name!r}")


def _name_from(plain: Any) -> Hashable:
    if isinstance(plain, dict):
        return tuple(_name_from(part) for part in plain["tuple"])
    if plain is None or isinstance(plain, str | int | float | bool):
        return plain
    raise ValueError(f"arms must be text, numbers or tuples of them, got {plain!r}")


def _policy_from(specification: Mapping[str, Any]) -> Policy:
    """The policy, if all formulas in its description are of modules that are imported already."""
    _check_imported(specification)
    found = from_specification(specification)
    if not isinstance(found, Policy):
        raise ValueError(f"policy must describe a policy, got {specification['formula']!r}")
    return found


def _check_imported(specification: Any) -> None:
    if not isinstance(specification, Mapping):
        return
    address = specification.get("formula") or specification.get("law")
    module = str(address).partition(":")[0]
    if module not in sys.modules:
        raise ValueError(f"{address} is of a module that is not imported; import it, or give policy=")
    for value in (specification.get("parameters") or {}).values():
        _check_imported(value)
