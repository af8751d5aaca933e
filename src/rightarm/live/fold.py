"""What a live bandit knows: the fold of the events that happened to it.

Every change of a bandit is an event, and `State` has one method for each kind: `decided`, `answered`, `observed`,
`set_arms`, `set_policy`. `Bandit` calls them as things happen, and `State.apply` calls the same ones for the events of
a log. So a bandit that comes back from a log is the one that wrote it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rightarm.formula import check_number, difference
from rightarm.live.arms import Arms, Law, draw
from rightarm.live.ledger import Decision, Ledger, Waiting
from rightarm.scores.policy import Policy
from rightarm.types import I64


class State:
    """Statistics of the arms, decisions that wait, and the probabilities that follow; arms are known by numbers."""

    def __init__(
        self,
        policy: Policy,
        random: np.random.Generator,
        *,
        floor: float = 0.0,
        discount: float | None = None,
        window: int | None = None,
    ) -> None:
        self.known = Arms(policy, discount, window)
        self.floor = check_floor(floor)
        self.random = random
        self.ledger = Ledger()
        self.version = 0  # counts changes: each reward, each arm that comes or goes, each other policy
        self.names: list[Hashable] = []
        self.index: dict[Hashable, int] = {}
        self.active: list[bool] = []
        self._members: I64 | None = None  # the active arms, until they change
        self._law: Law | None = None  # their probabilities, until something changes

    # Events.

    def decided(self, waiting: Waiting) -> None:
        """An arm was chosen."""
        self.ledger.open(waiting)

    def answered(self, number: int, reward: float | None) -> None:
        """The reward of a pending decision came, or there will be none."""
        waiting = self.ledger.close(number, reward)
        if reward is not None:
            self.known.learn(waiting.arm, reward, waiting.decision.propensity)
            self._changed()

    def observed(self, arm: int, reward: float) -> None:
        """A reward of an arm came that belongs to no decision."""
        self.known.learn(arm, reward, 1.0)
        self._changed()

    def set_arms(self, names: Sequence[Hashable]) -> None:
        """From now on these arms can be chosen: those not seen before are new, those left out are retired."""
        chosen = set(names)
        self.check_floor(len(chosen))
        for name in names:
            if name not in self.index:
                self.index[name] = len(self.names)
                self.names.append(name)
                self.active.append(False)
                self.ledger.add_arm()
                self.known.add()
        before, self.active = self.active, [name in chosen for name in self.names]
        self._members = None
        self._changed(sum(map(operator.ne, before, self.active)))

    def set_policy(self, policy: Policy) -> None:
        """From now on another policy decides, with the statistics that there are."""
        self.known = carried_over(self.known, policy)
        self._changed()

    def _changed(self, times: int = 1) -> None:
        self.version += times
        self._law = None

    def apply(self, event: Mapping[str, Any], policy_from: Callable[[Mapping[str, Any]], Policy]) -> None:
        """Take an event from a log; ``policy_from`` finds a policy by its specification."""
        match event["event"]:
            case "decision":
                decision = Decision(*(event[name] for name in Decision._fields))
                self.decided(Waiting(decision, self.arm_number("arm", decision.arm), event["time"]))
                self.version = max(self.version, decision.version)
                self.random.random()  # the number that it was drawn by
            case "reward" | "cancel":
                if event["id"] not in self.ledger.pending:
                    raise ValueError(f"log must be that of this bandit, got the answer of decision {event['id']}")
                self.answered(event["id"], self.known.check(event["reward"]) if "reward" in event else None)
            case "observation":
                self.observed(self.arm_number("arm", event["arm"]), self.known.check(event["reward"]))
            case "arms":
                self.set_arms(event["arms"])
            case "policy":
                self.set_policy(policy_from(event["after"]))

    # Arms.

    def arm_number(self, name: str, arm: Hashable) -> int:
        """The number of an arm, which errors call ``name``."""
        try:
            return self.index[arm]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self.names[:20])) + (", ..." if len(self.names) > 20 else "")
            raise ValueError(f"{name} must be one of {known}, got {arm!r}") from None

    def active_names(self) -> list[Hashable]:
        """The arms that can be chosen."""
        return [name for name, active in zip(self.names, self.active, strict=True) if active]

    def check_floor(self, arms: int) -> None:
        """Raise if so many arms cannot have the probability ``floor`` each."""
        if self.floor * arms > 1 + 1e-12:
            raise ValueError(f"floor must be at most 1/{arms} for {arms} arms, got {self.floor}")

    def chosen(self, among: Iterable[Hashable]) -> I64:
        """The numbers of some arms that can be chosen."""
        if isinstance(among, str | bytes) or not isinstance(among, Iterable):
            raise TypeError(f"among must be several arms, got {among!r}")
        chosen = sorted({self.arm_number("among", arm) for arm in among})
        retired = [self.names[i] for i in chosen if not self.active[i]]
        if retired or not chosen:
            raise ValueError(f"among must be arms that are not retired, got {retired if retired else 'none'}")
        return np.array(chosen)

    # Decisions.

    def law(self, members: I64 | None = None) -> Law:
        """The probabilities of all active arms in the next decision, or of some of them."""
        return self._law_of(members, self.ledger.last, self.ledger.next_id)

    def _law_of(self, members: I64 | None, last: Sequence[int], number: int) -> Law:
        if members is None and self._law is not None:
            return self._law
        if self._members is None:
            self._members = np.flatnonzero(self.active)
        arms = self._members if members is None else members
        if not arms.size:
            raise ValueError("every arm is retired; restore or add one")
        law = self.known.law(arms, last, number, self.floor)
        if members is None and law.settled:
            self._law = law
        return law

    def draw(self, members: I64 | None, time: float) -> Waiting:
        """Draw the next decision; nothing has happened before `decided` takes it."""
        return self._draw(members, time, self.ledger.last, self.ledger.next_id)

    def draw_several(self, members: I64 | None, time: float, count: int) -> list[Waiting]:
        """Draw several decisions, each as if those before it had been made."""
        last, made = self.ledger.last.copy(), list[Waiting]()
        for number in range(self.ledger.next_id, self.ledger.next_id + count):
            waiting = self._draw(members, time, last, number)
            last[waiting.arm] = number
            made.append(waiting)
        return made

    def _draw(self, members: I64 | None, time: float, last: Sequence[int], number: int) -> Waiting:
        law = self._law_of(members, last, number)
        place = draw(law.chance, law.heights, self.random.random())
        arm = law.members.item(place)
        decision = Decision(number, self.names[arm], law.chance.item(place), self.known.told + 1, self.version)
        return Waiting(decision, arm, time)


def check_floor(floor: Any) -> float:
    """Return ``floor`` if it is a probability."""
    number = check_number("floor", floor)
    if not 0 <= number <= 1:
        raise ValueError(f"floor must be from 0 to 1, got {number}")
    return number


# Another policy.


def carried_over(known: Arms, policy: Policy) -> Arms:
    """The same statistics for another policy, or an error that says what does not carry over.

    Pulls, means and spreads do, whatever the policy is. An estimator's state is of use to the same estimator only, and
    what a policy remembers besides (``learn``) to a policy that learns it by the same formulas and parameters.
    """
    before = known.policy
    try:
        _check_memory(before, policy)
        new = Arms(policy, known.discount, known.window)
        for _ in range(known.count):
            new.add()
        new.restore(known.to_json())
    except ValueError as error:
        raise ValueError(f"what {before!r} has learned does not carry over to {policy!r}: {error}") from None
    return new


def _check_memory(before: Policy, after: Policy) -> None:
    if before.estimator != after.estimator:
        raise ValueError(f"the estimator was {before.estimator} and would be {after.estimator}")
    if before.columns != after.columns:
        columns = [", ".join(policy.columns) or "nothing" for policy in (before, after)]
        raise ValueError(f"it remembers {columns[0]} of an arm besides pulls and mean, the other {columns[1]}")
    for name, part in after.learn.items():
        other = difference(part, before.learn[name].specification())
        if other is not None:
            raise ValueError(f"it learned {name} by {'another formula' if other == 'formula' else 'other parameters'}")
