"""From a state and rewards to the events that follow: everything is checked here, and nothing changes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
import numpy as np

from rightarm.bandit.arms import ArmReward, Arms
from rightarm.bandit.context_arms import ArmFeatures, EncodedContext
from rightarm.bandit.decide import ARCHIVED
from rightarm.bandit.ledger import REMEMBERED, AlreadyAnswered, AnsweredDecision, DecisionOrId, PendingDecision
from rightarm.bandit.state import State
from rightarm.errors import WrongType, WrongValue
from rightarm.logs.events import Cancellation, Correction, Decision, Event, Expiry, LateReward, Observation, Reward
from rightarm.logs.settings import check_seconds

Outcome = Literal["learned", "noted", "duplicate", "corrected", "late"]
LEARNED: Outcome = "learned"
NOTED: Outcome = "noted"
DUPLICATE: Outcome = "duplicate"
CORRECTED: Outcome = "corrected"
LATE: Outcome = "late"
TAKEN = frozenset((LEARNED, NOTED, CORRECTED))  # outcomes of which `Bandit.tell` says True


def reward(state: State, decision: DecisionOrId, value: object, now: float) -> tuple[list[Event], Outcome]:
    """Return what follows from the reward of one decision, and what becomes of it."""
    number = state.ledger.number_of(decision)
    is_usual = state.settings.reward_window is None and not state.arms.has_columns and state.status != ARCHIVED
    if is_usual and number in state.ledger.pending:
        return [Reward(id=number, reward=state.check_reward(value), time=now)], LEARNED
    rewards = Rewards(state, now)
    outcome = rewards.tell(number, value)
    return rewards.checked(), outcome


class Rewards:
    """Collects rewards one after the other, each as if those before it had been taken.

    `checked` gives the events, or raises if they cannot all be learned.
    """

    def __init__(self, state: State, now: float) -> None:
        _check_learns(state)
        self.state = state
        self.now = now
        self._events: list[Event] = []
        self._contexts: dict[int, EncodedContext] = {}  # of observations, by the place of their event
        self._so_far: dict[int, float] = {}  # of decisions that go on waiting
        self._answers: dict[int, AnsweredDecision] = {}  # of decisions that are answered or corrected here
        self._learned = 0
        self._corrects = False
        self._forgets = False

    def tell(self, decision: DecisionOrId, value: object) -> Outcome:
        """Take the reward of a decision, and say what becomes of it."""
        settings = self.state.settings
        number = self.state.ledger.number_of(decision)
        reward = self.state.check_reward(value)
        answer = self._answer(number)
        if answer is None:
            if settings.reward_window is not None:
                reward = self._combined(self._noted(number), reward)
            return self._take(number, reward)
        if answer.time is not None and settings.is_late(answer.time, self.now):
            return self._note_late(number, answer, reward)
        if settings.reward_window is None:
            return self._same_again(number, reward, answer.reward)
        before = None if answer.silent else answer.reward
        reward = self._combined(before, reward)
        if reward == before:
            return DUPLICATE
        self._correct(number, answer, reward)
        return CORRECTED

    def correct(self, decision: DecisionOrId, value: object) -> Outcome:
        """Let a reward take the place of another one of the same decision."""
        number = self.state.ledger.number_of(decision)
        reward = self.state.check_reward(value)
        answer = self._answer(number)
        if answer is not None:
            if reward == answer.reward:
                return DUPLICATE
            self._correct(number, answer, reward)
            return CORRECTED
        if self._noted(number) is None:
            what = f"{number} has no reward yet that could be corrected: tell it"
            raise WrongValue("decision", what, code="no_reward")
        return self._take(number, reward)

    def is_open(self, number: int) -> bool:
        """Say whether a decision waits for its reward."""
        return number in self.state.ledger.pending and number not in self._answers

    def replace(self, decision: DecisionOrId, value: object) -> Outcome:
        """Take a reward in the place of whatever has come of a decision that waits."""
        number = self.state.ledger.number_of(decision)
        return self._take(number, self.state.check_reward(value))

    def observe(
        self, arm: Any, value: object, context: object = None, arm_features: ArmFeatures | None = None
    ) -> Outcome:
        """Take a reward of an arm that belongs to no decision."""
        state = self.state
        number = state.arm_number("arm", arm)
        reward = state.check_reward(value)
        before = next(reversed(self._contexts.values()), None)
        encoded = state.encode(context, arm_features, np.array([number]), before)
        event = Observation(
            arm=state.names[number],
            reward=reward,
            time=self.now,
            context=None if encoded is None else encoded.encoded.tolist(),
            arm_features=None if encoded is None or encoded.arm_features is None else encoded.arm_features.tolist(),
        )
        if encoded is not None:
            self._contexts[len(self._events)] = encoded
        self._events.append(event)
        self._learned += 1
        return LEARNED

    def checked(self) -> list[Event]:
        """Return the events, after a rehearsal where a policy may be unable to learn them."""
        if self._corrects or (self._learned and self.state.arms.has_columns):
            self._rehearse()
        return self._events

    def contexts(self) -> list[EncodedContext | None]:
        """Return the context of each event, None where it has none."""
        return [self._contexts.get(place) for place in range(len(self._events))]

    def take(
        self, decision: Any, reward: object, arm: Any, context: object, arm_features: ArmFeatures | None
    ) -> bool | list[bool]:
        """Take rewards in any of the ways that `Bandit.tell` takes them, and say which were taken."""
        if (decision is None) == (arm is ...):
            given = "neither" if decision is None else f"{decision!r} and arm={arm!r}"
            raise WrongType("tell", f"takes either a decision or arm=, got {given}")
        if decision is None:
            return self.observe(arm, reward, context, arm_features) in TAKEN
        if context is not None or arm_features is not None:
            given = f"context={context!r:.200}, arm_features={arm_features!r:.200}"
            raise WrongType("context", f"must be left out: a decision has its context already, got {given}")
        if isinstance(decision, Decision | int | str) or reward is not None:
            return self.tell(decision, reward) in TAKEN
        if not isinstance(decision, Iterable):
            raise WrongType("decision", f"must be a decision, or pairs of decisions and rewards, got {decision!r}")
        pairs = decision.items() if isinstance(decision, Mapping) else decision
        return [self.tell(*_pair(pair)) in TAKEN for pair in pairs]

    # Decisions as they are after the rewards so far.

    def _answer(self, number: int) -> AnsweredDecision | None:
        return self._answers.get(number) or self.state.ledger.answered.get(number)

    def _noted(self, number: int) -> float | None:
        return self._so_far.get(number, self.state.ledger.pending[number].so_far)

    def _combined(self, before: float | None, reward: float) -> float:
        """Return the reward of a decision when another one comes, if it can be learned."""
        value = self.state.settings.combined(before, reward)
        try:
            return self.state.check_reward(value)
        except WrongValue as error:
            what = f"{str(error).removeprefix('reward ')}, the sum of {before} and {reward}"
            raise WrongValue("reward", what, code=error.code) from None

    def _take(self, number: int, reward: float) -> Outcome:
        """Take the reward of a pending decision: now, or when its window closes."""
        if self.state.settings.at_close:
            if reward == self._noted(number):
                return DUPLICATE
            self._so_far[number] = reward
            self._events.append(Reward(id=number, reward=reward, part=True, time=self.now))
            return NOTED
        self._events.append(Reward(id=number, reward=reward, time=self.now))
        self._learned += 1
        learned = self.state.arms.learned + self._learned
        self._answers[number] = _answered(self.state.ledger.pending[number], reward, learned)
        return LEARNED

    def _same_again(self, number: int, reward: float, before: float | None) -> Outcome:
        """Return DUPLICATE, or raise unless a reward that came again is the reward that came ``before``."""
        if before == reward:
            return DUPLICATE
        when = "in this batch" if number in self._answers else "before"
        was = "cancelled or expired" if before is None else f"told the reward {before}"
        what = f"{number} was {was} {when}, got the reward {reward}; a correction replaces a reward"
        raise AlreadyAnswered("decision", what, code="answered")

    def _correct(self, number: int, answer: AnsweredDecision, reward: float) -> None:
        if reward == answer.reward and not answer.silent:
            return
        self._events.append(Correction(id=number, reward=reward, time=self.now))
        self._corrects = True
        if answer.reward is None:
            self._learned += 1
            answer = msgspec.structs.replace(answer, learned=self.state.arms.learned + self._learned)
        self._answers[number] = msgspec.structs.replace(answer, reward=reward, silent=False)

    def _note_late(self, number: int, answer: AnsweredDecision, reward: float) -> Outcome:
        if reward == (answer.reward if answer.late is None else answer.late):
            return DUPLICATE
        self._events.append(LateReward(id=number, reward=reward, time=self.now))
        self._answers[number] = msgspec.structs.replace(answer, late=reward)
        return LATE

    # Rehearsal.

    def _rehearse(self) -> None:
        """Raise if the rewards cannot be learned, or corrections would leave a trace."""
        state = self.state
        self._check_remembered()
        arms = state.arms.copy()
        answers = dict[int, AnsweredDecision]()
        for place, event in enumerate(self._events):
            if isinstance(event, Correction):
                before = answers.get(event.id) or state.ledger.answered[event.id]
                answers[event.id] = self._rehearse_correction(arms, event, before)
            elif isinstance(event, Observation):
                arm = state.index[event.arm]
                context = self._contexts.get(place)
                stored = None if context is None else context.stored(arm)
                arms.rehearse(ArmReward(arm, state.scaled(event.reward), 1.0, stored))
            elif isinstance(event, Reward) and not event.part:
                pending = state.ledger.pending[event.id]
                arms.rehearse(_arm_reward(state, pending, event.reward))
                answers[event.id] = _answered(pending, event.reward, arms.learned)

    def _check_remembered(self) -> None:
        """Raise if the rewards of this batch would make the bandit forget an answer that the batch corrects."""
        answers = sum(isinstance(event, Reward) and not event.part for event in self._events)
        forgotten = self.state.ledger.oldest(answers)
        for event in self._events:
            if isinstance(event, Correction) and event.id in forgotten:
                what = f"{event.id} was answered too long ago to be corrected together with other rewards: do it alone"
                raise AlreadyAnswered("decision", what, code="too_late")
        self._forgets = bool(forgotten)

    def _rehearse_correction(self, arms: Arms, event: Correction, before: AnsweredDecision) -> AnsweredDecision:
        state = self.state
        after = msgspec.structs.replace(before, reward=event.reward, silent=False)
        if before.reward is None:
            arms.rehearse(state.reward_of(after))
            return msgspec.structs.replace(after, learned=arms.learned)
        if before.reward == event.reward:  # what was silence is known to be just that
            return after
        arms.check_correction()
        if not state.correct(arms, before, event.reward):
            found = len(state.remembered(before.arm))
            if self._forgets or not state.arms.is_made_of(before.arm, found):
                whose = "" if arms.mixes else f" of {state.names[before.arm]!r}"
                what = (
                    f"{event.id} cannot be corrected from {before.reward:g} to {event.reward:g}: all rewards{whose} "
                    f"would have to be learned again, and only {found:,} are remembered (the last {REMEMBERED:,}, and "
                    "no prior)"
                )
                raise AlreadyAnswered("decision", what, code="too_late")
        return after


def _pair(pair: Any) -> tuple[Any, Any]:
    try:
        decision, reward = pair
    except (TypeError, ValueError):
        raise WrongType("decision", f"must be pairs of decision and reward, got {pair!r}") from None
    return decision, reward


def _answered(pending: PendingDecision, reward: float, learned: int) -> AnsweredDecision:
    """Return a pending decision as it is once its reward was learned."""
    made = pending.decision
    return AnsweredDecision(
        reward, pending.arm, learned=learned, propensity=made.propensity, context=pending.context, time=made.time
    )


def _arm_reward(state: State, pending: PendingDecision, reward: float) -> ArmReward:
    return ArmReward(pending.arm, state.scaled(reward), pending.decision.propensity, pending.context)


def _check_learns(state: State) -> None:
    """Raise if a bandit is archived, and learns nothing any more."""
    if state.status == ARCHIVED:
        raise WrongValue("status", "is archived: the bandit learns nothing any more", code=ARCHIVED)


def cancel(state: State, decision: DecisionOrId, now: float) -> list[Event]:
    """Return what follows if a decision will have no reward: nothing, if it waits for none."""
    _check_learns(state)
    number = state.ledger.number_of(decision)
    if number not in state.ledger.pending:
        return []
    return [Cancellation(id=number, time=now)]


def expire(state: State, older_than: Any, reward: object, now: float) -> list[Event]:
    """Return what follows if decisions that have waited so long wait no more."""
    _check_learns(state)
    seconds = check_seconds("older_than", older_than)
    value = None if reward is None else state.check_reward(reward)
    events = list[Event]()
    for pending in state.ledger.older_than(now - seconds):
        number = pending.decision.id
        given = value if pending.so_far is None else pending.so_far
        events.append(Cancellation(id=number, time=now) if given is None else Reward(id=number, reward=given, time=now))
        _rehearse_one(state, pending, given)
    return events


def close_windows(state: State, now: float) -> list[Event]:
    """Return what follows for decisions whose window of reward has closed."""
    if state.settings.reward_window is None or state.status == ARCHIVED:
        return []
    default = state.settings.default_reward
    events = list[Event]()
    for is_silent, some in itertools.groupby(state.due(now), lambda pending: pending.so_far is None):
        group = list(some)
        for pending in group:
            _rehearse_one(state, pending, default if is_silent else pending.so_far)
        ids = [pending.decision.id for pending in group]
        events.append(Expiry(ids=ids, reward=default if is_silent else None, time=now))
    return events


def _rehearse_one(state: State, pending: PendingDecision, reward: float | None) -> None:
    """Raise if a policy cannot learn the reward of a decision."""
    if reward is not None and state.arms.has_columns:
        state.arms.copy().rehearse(_arm_reward(state, pending, reward))
