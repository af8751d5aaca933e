"""From a state and a request to the events that follow: everything is checked here, and nothing changes.

`Bandit` and the store append what these functions return to a journal and apply it to the state. A request that is
refused has changed nothing, so there is nothing to undo.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from rightarm.errors import WrongType, WrongValue
from rightarm.formula import check_count, check_number, difference
from rightarm.live import answers
from rightarm.live.contextual import Seen
from rightarm.live.draws import Draws
from rightarm.live.ledger import REMEMBERED, Answer, Answered, Waiting, check_unit
from rightarm.live.state import State
from rightarm.logs.events import (
    EXACT,
    LARGEST_WHOLE,
    Cancellation,
    Changed,
    Correction,
    Created,
    Decision,
    Event,
    Expiry,
    LateReward,
    Observation,
    Prior,
    Reward,
    Status,
    Unit,
)
from rightarm.logs.settings import Settings, check_seconds
from rightarm.scores.policy import Policy
from rightarm.scores.rewards import LARGEST
from rightarm.types import I64

Outcome = Literal["learned", "noted", "duplicate", "corrected", "late"]
LEARNED: Outcome = "learned"
NOTED: Outcome = "noted"
DUPLICATE: Outcome = "duplicate"
CORRECTED: Outcome = "corrected"
LATE: Outcome = "late"

LARGEST_META = 10_000  # bytes of JSON
ARCHIVED = "archived"
GUARDED = 20  # rewards after which the guardrail is looked at again, or 5% of all
FIXED = ("discount", "window", "log_context")  # settings that a bandit has for good


def create(
    arms: Sequence[Any],
    policy: Policy,
    settings: Settings,
    prior: Mapping[Any, Any] | None,
    first_id: int,
    now: float,
    by: str | None = None,
) -> tuple[Created, State]:
    """Return the first event of a bandit, and the state after it."""
    if not arms:
        raise WrongValue("arms", "must name at least one arm, got none")
    names: list[Any] = list(arms)
    plain = Created(time=now, arms=names, policy=policy.specification(), settings=settings, first_id=first_id, by=by)
    state = State(lambda specification: policy)
    state.apply(plain)
    if not prior:
        return plain, state
    priors = [prior_of(state, arms, name, given) for name, given in prior.items()]
    event = msgspec.structs.replace(plain, prior=priors)
    state = State(lambda specification: policy)
    state.apply(event)
    return event, state


# Decisions.


def decide(
    state: State,
    draws: Draws,
    now: float,
    members: I64 | None = None,
    seen: Seen | None = None,
    unit: Unit | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Decision[Any]:
    """Draw a decision, among ``members`` if given, in a context if the policy looks at any."""
    kept = None if meta is None else check_meta(meta)
    return _decision(state, draws, now, 0, state.ledger.waiting, members, seen, unit, kept)


def decide_several(
    state: State,
    draws: Draws,
    now: float,
    members: I64 | None,
    contexts: Sequence[Seen | None],
    meta: Mapping[str, Any] | None = None,
) -> list[Decision[Any]]:
    """Draw a decision for each of some contexts, each as if those before it had been made."""
    pending = state.ledger.waiting.copy()
    kept = None if meta is None else check_meta(meta)
    made = list[Decision[Any]]()
    for place, seen in enumerate(contexts):
        decision = _decision(state, draws, now, place, pending, members, seen, None, kept)
        pending[state.index[decision.arm]] += 1
        made.append(decision)
    return made


def _decision(
    state: State,
    draws: Draws,
    now: float,
    place: int,
    pending: I64,
    members: I64 | None,
    seen: Seen | None,
    unit: Unit | None,
    meta: dict[str, Any] | None,
) -> Decision[Any]:
    """Draw the decision that comes after ``place`` others, with so many ``pending`` of each arm."""
    if state.status != "running":
        raise WrongValue("status", f"is {state.status}: the bandit decides nothing now", code=state.status)
    ledger = state.ledger
    number = ledger.next_id + place
    drawn = state.draw(members, seen, pending, draws.number(number - ledger.first))
    return Decision(
        id=number,
        arm=state.names[drawn.arm],
        propensity=drawn.propensity,
        round=state.known.told + 1,
        version=state.events + place,
        group=drawn.group,
        error=drawn.error or EXACT,
        unit=unit,
        among=None if members is None else [state.names[i] for i in members],
        meta=meta,
        context=None if seen is None else seen.encoded.tolist(),
        arm_features=None if seen is None or seen.arm_features is None else seen.arm_features.tolist(),
        time=now,
    )


def contexts_of(state: State, size: int | None, contexts: Any, arm_features: Any, members: Any) -> list[Seen | None]:
    """Return several contexts, each seen after those before it; or none, so many times."""
    if size is not None:
        if isinstance(size, Mapping):
            raise WrongType("size", f"must be a number of decisions; a context is context=, got {size!r:.200}")
        return [state.see(None, arm_features, members)] * check_count("size", size)
    seen = list[Seen | None]()
    for row in state.features().encode_many(contexts):
        seen.append(state.see(row, arm_features, members, seen[-1] if seen else None))
    return seen


def assigned(state: State, unit: Any, members: I64 | None) -> Decision[Any] | None:
    """Return the decision that was made for a unit, if it still stands."""
    decision = state.ledger.units.get(check_unit(unit))
    if decision is None:
        return None
    arm = state.index[decision.arm]
    if not state.active[arm] or (members is not None and arm not in members):
        return None
    return decision


def check_meta(meta: Any) -> dict[str, Any]:
    """Return a copy of ``meta`` if it is a JSON object that a log can keep."""
    if not isinstance(meta, Mapping):
        raise WrongType("meta", f"must be a mapping, got {meta!r:.200}")
    plain = dict(meta)
    try:
        text = json.dumps(plain, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:  # a set, NaN, half a surrogate pair, a list in itself
        raise WrongValue("meta", f"must be JSON, got {plain!a:.200}: {error}") from None
    if len(text) > LARGEST_META:
        raise WrongValue("meta", f"must be at most {LARGEST_META:,} bytes of JSON, got {len(text):,}")
    copy: dict[str, Any] = json.loads(text)
    if copy != plain:  # a tuple, or a number for a key
        raise WrongValue("meta", f"must be JSON, with texts for keys and lists for sequences, got {plain!r:.200}")
    return copy


# Rewards.


def reward(state: State, decision: Any, value: Any, now: float) -> tuple[list[Event], Outcome]:
    """Return what follows from the reward of one decision, and what becomes of it."""
    number = state.ledger.number_of(decision)
    is_usual = state.settings.window_of_reward is None and not state.known.remembers and state.status != ARCHIVED
    if is_usual and number in state.ledger.pending:
        return [Reward(id=number, reward=state.check_reward(value), time=now)], LEARNED
    rewards = Rewards(state, now)
    outcome = rewards.tell(number, value)
    return rewards.checked(), outcome


class Rewards:
    """Collect rewards one after the other, each as if those before it had been taken.

    `checked` gives the events, or raises if they cannot all be learned.
    """

    def __init__(self, state: State, now: float) -> None:
        _check_learns(state)
        self.state = state
        self.now = now
        self._events: list[Event] = []
        self._seen: dict[int, Seen] = {}  # contexts of observations, by the place of their event
        self._so_far: dict[int, float] = {}  # of decisions that go on waiting
        self._answers: dict[int, Answer] = {}  # of decisions that are answered or corrected here
        self._learned = 0
        self._corrects = False
        self._forgets = False

    def tell(self, decision: Any, value: Any) -> Outcome:
        """Take the reward of a decision, and say what becomes of it."""
        settings = self.state.settings
        number = self.state.ledger.number_of(decision)
        reward = self.state.check_reward(value)
        answer = self._answer(number)
        if answer is not None and answer.time is not None and settings.is_late(answer.time, self.now):
            return self._keep_late(number, answer, reward)
        if settings.window_of_reward is None:
            if answer is not None:
                return _same_again(
                    number, reward, answer.reward, "in this batch" if number in self._answers else "before"
                )
            return self._take(number, reward)
        if answer is None:
            return self._take(number, self._combined(self._noted(number), reward))
        before = None if answer.silent else answer.reward
        reward = self._combined(before, reward)
        if reward == before:
            return DUPLICATE
        self._correct(number, answer, reward)
        return CORRECTED

    def correct(self, decision: Any, value: Any) -> Outcome:
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

    def replace(self, decision: Any, value: Any) -> Outcome:
        """Take a reward in the place of whatever has come of a decision that waits."""
        number = self.state.ledger.number_of(decision)
        return self._take(number, self.state.check_reward(value))

    def observe(self, arm: Any, value: Any, context: Any = None, arm_features: Any = None) -> Outcome:
        """Take a reward of an arm that belongs to no decision."""
        state = self.state
        number = state.arm_number("arm", arm)
        reward = state.check_reward(value)
        seen = state.see(context, arm_features, np.array([number]), next(reversed(self._seen.values()), None))
        event = Observation(
            arm=state.names[number],
            reward=reward,
            time=self.now,
            context=None if seen is None else seen.encoded.tolist(),
            arm_features=None if seen is None or seen.arm_features is None else seen.arm_features.tolist(),
        )
        if seen is not None:
            self._seen[len(self._events)] = seen
        self._events.append(event)
        self._learned += 1
        return LEARNED

    def checked(self) -> list[Event]:
        """Return the events, after a rehearsal where a policy may be unable to learn them."""
        if self._corrects or (self._learned and self.state.known.remembers):
            self._rehearse()
        return self._events

    def seen(self) -> list[Seen | None]:
        """Return the context of each event that has one."""
        return [self._seen.get(place) for place in range(len(self._events))]

    # Decisions as they are after the rewards so far.

    def _answer(self, number: int) -> Answer | None:
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
        waiting = self.state.ledger.pending[number]
        self._events.append(Reward(id=number, reward=reward, time=self.now))
        self._learned += 1
        learned = self.state.known.told + self._learned
        propensity = waiting.decision.propensity
        made = waiting.decision.time
        self._answers[number] = Answer(reward, waiting.arm, learned, propensity, False, waiting.context, made)
        return LEARNED

    def _correct(self, number: int, answer: Answer, reward: float) -> None:
        if reward == answer.reward and not answer.silent:
            return
        self._events.append(Correction(id=number, reward=reward, time=self.now))
        self._corrects = True
        if answer.reward is None:
            self._learned += 1
            answer = msgspec.structs.replace(answer, learned=self.state.known.told + self._learned)
        self._answers[number] = msgspec.structs.replace(answer, reward=reward, silent=False)

    def _keep_late(self, number: int, answer: Answer, reward: float) -> Outcome:
        known = answer.reward if answer.late is None else answer.late
        if reward == known:
            return DUPLICATE
        self._events.append(LateReward(id=number, reward=reward, time=self.now))
        self._answers[number] = msgspec.structs.replace(answer, late=reward)
        return LATE

    # Rehearsal.

    def _rehearse(self) -> None:
        """Raise if the rewards cannot be learned, or corrections would leave a trace."""
        state = self.state
        self._check_remembered()
        known = state.known.twin()
        answers = dict[int, Answer]()
        for place, event in enumerate(self._events):
            if isinstance(event, Correction):
                before = answers.get(event.id) or state.ledger.answered[event.id]
                answers[event.id] = self._rehearse_correction(known, event, before)
            elif isinstance(event, Observation):
                arm = state.index[event.arm]
                seen = self._seen.get(place)
                known.rehearse(arm, state.scaled(event.reward), 1.0, None if seen is None else seen.context(arm))
            elif isinstance(event, Reward) and not event.part:
                waiting = state.ledger.pending[event.id]
                propensity = waiting.decision.propensity
                known.rehearse(waiting.arm, state.scaled(event.reward), propensity, waiting.context)
                answers[event.id] = Answer(event.reward, waiting.arm, known.told, propensity, False, waiting.context)

    def _check_remembered(self) -> None:
        """Raise if the rewards of this batch would make the bandit forget an answer that the batch corrects."""
        answers = sum(isinstance(event, Reward) and not event.part for event in self._events)
        forgotten = self.state.ledger.oldest(answers)
        for event in self._events:
            if isinstance(event, Correction) and event.id in forgotten:
                what = f"{event.id} was answered too long ago to be corrected together with other rewards: do it alone"
                raise Answered("decision", what, code="too_late")
        self._forgets = bool(forgotten)

    def _rehearse_correction(self, known: Any, event: Correction, before: Answer) -> Answer:
        state = self.state
        after = msgspec.structs.replace(before, reward=event.reward, silent=False)
        if before.reward is None:
            known.rehearse(before.arm, state.scaled(event.reward), before.propensity, before.context)
            return msgspec.structs.replace(after, learned=known.told)
        if before.reward == event.reward:  # what was silence is known to be just that
            return after
        known.check_correction()
        if not state.correct(known, before, event.reward):
            found = len(state.remembered(before.arm))
            if self._forgets or not state.known.is_made_of(before.arm, found):
                whose = "" if known.mixes else f" of {state.names[before.arm]!r}"
                what = (
                    f"{event.id} cannot be corrected from {before.reward:g} to {event.reward:g}: all rewards{whose} "
                    f"would have to be learned again, and only {found:,} are remembered (the last {REMEMBERED:,}, and "
                    "no prior)"
                )
                raise Answered("decision", what, code="too_late")
        return after


def _check_learns(state: State) -> None:
    """Raise if a bandit is archived, and learns nothing any more."""
    if state.status == ARCHIVED:
        raise WrongValue("status", "is archived: the bandit learns nothing any more", code=ARCHIVED)


def _same_again(number: int, value: float, before: float | None, when: str) -> Outcome:
    """Return DUPLICATE, or raise unless a reward told again is the reward that was told ``before``."""
    if before == value:
        return DUPLICATE
    was = "cancelled or expired" if before is None else f"told the reward {before}"
    what = f"{number} was {was} {when}, got the reward {value}; a correction replaces a reward"
    raise Answered("decision", what, code="answered")


def cancel(state: State, decision: Any, now: float) -> list[Event]:
    """Return what follows if a decision will have no reward: nothing, if it waits for none."""
    _check_learns(state)
    number = state.ledger.number_of(decision)
    if number not in state.ledger.pending:
        return []
    return [Cancellation(id=number, time=now)]


def expire(state: State, older_than: Any, reward: Any, now: float) -> list[Event]:
    """Return what follows if decisions that have waited so long wait no more."""
    _check_learns(state)
    seconds = check_seconds("older_than", older_than)
    value = None if reward is None else state.check_reward(reward)
    events = list[Event]()
    for waiting in state.ledger.older_than(now - seconds):
        number = waiting.decision.id
        given = value if waiting.so_far is None else waiting.so_far
        events.append(Cancellation(id=number, time=now) if given is None else Reward(id=number, reward=given, time=now))
        _rehearse_one(state, waiting, given)
    return events


def close_windows(state: State, now: float) -> list[Event]:
    """Return what follows for decisions whose window of reward has closed."""
    if state.settings.window_of_reward is None or state.status == ARCHIVED:
        return []
    due = state.due(now)
    default = state.settings.default
    events = list[Event]()
    for is_silent, some in itertools.groupby(due, lambda waiting: waiting.so_far is None):
        group = list(some)
        for waiting in group:
            _rehearse_one(state, waiting, default if is_silent else waiting.so_far)
        ids = [waiting.decision.id for waiting in group]
        events.append(Expiry(ids=ids, reward=default if is_silent else None, time=now))
    return events


def _rehearse_one(state: State, waiting: Waiting, reward: float | None) -> None:
    """Raise if a policy cannot learn the reward of a decision."""
    if reward is not None and state.known.remembers:
        twin = state.known.twin()
        twin.rehearse(waiting.arm, state.scaled(reward), waiting.decision.propensity, waiting.context)


# Arms, policy, settings, status.


def change(
    state: State,
    now: float,
    *,
    arms: Sequence[Hashable] | None = None,
    prior: Mapping[Any, Any] | None = None,
    policy: Policy | None = None,
    status: Status | None = None,
    reason: str | None = None,
    by: str | None = None,
    **settings: Any,
) -> list[Event]:
    """Return the event that changes a bandit, after it was tried on a copy; none if everything is so already."""
    names = None if arms is None else _in_order(state, arms, settings.get("control", state.settings.control))
    if names is not None and set(names) == set(state.active_names()):
        names = None
    priors = [prior_of(state, arms or (), name, given) for name, given in (prior or {}).items()]
    for one in priors:
        if one.arm in state.index:
            raise WrongValue("prior", f"must be for new arms, got {one.arm!r}")
    event = Changed(
        time=now,
        arms=names,
        prior=priors,
        policy=None if policy is None or policy_is(state, policy) else policy.specification(),
        settings=_other_settings(state.settings, settings),
        status=_other_status(state, status),
        reason=reason,
        by=by,
    )
    if event == Changed(time=now, reason=reason, by=by):
        return []
    if state.status == ARCHIVED:
        raise WrongValue("status", "is archived, which is for good: nothing changes any more", code=ARCHIVED)
    trial = state.copy()
    if policy is not None:
        trial.find_policy = lambda specification: policy
    trial.apply(event)
    return [event]


def policy_is(state: State, policy: Policy) -> bool:
    """Say whether a bandit has this policy already."""
    return difference(policy, state.specification) is None


def _in_order(state: State, arms: Sequence[Hashable], control: Hashable | None) -> list[Any]:
    """Return arms in the order in which they first came, as a decision has the features of its arms."""
    if control is not None and control not in arms:
        raise WrongValue("arms", f"must have the control: {control!r} cannot be retired", code="control")
    return sorted(arms, key=lambda name: state.index.get(name, len(state.names)))


def _other_settings(before: Settings, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return, as JSON has them, those settings that are not what they were."""
    after = before.changed(**{name: _seconds(name, value) for name, value in given.items()})
    found = {name: getattr(after, name) for name in given if getattr(after, name) != getattr(before, name)}
    for name in found:
        if name in FIXED:
            raise WrongValue(name, f"cannot change: it is {getattr(before, name)!r} for good, got {given[name]!r}")
    if found.get("reward_range") is not None:
        found["reward_range"] = list(found["reward_range"])  # as JSON has it
    return found


def _seconds(name: str, value: Any) -> Any:
    return check_seconds(name, value, above=0.0) if name == "window_of_reward" and value is not None else value


def _other_status(state: State, status: Status | None) -> Status | None:
    if status is None or status == state.status:
        return None
    if status not in ("running", "paused", "archived"):
        raise WrongValue("status", f"must be 'running', 'paused' or 'archived', got {status!r}")
    return status


def prior_of(state: State, names: Sequence[Hashable], arm: Hashable, prior: Any) -> Prior:
    """Return the rewards that an arm starts from, given in any of the ways that `Bandit.add_arm` takes."""
    if arm not in names:
        raise WrongValue("prior", f"must be for some of the arms, got {arm!r}")
    state.known.check_prior()
    is_sequence = isinstance(prior, Sequence) and not isinstance(prior, str)
    if is_sequence and len(prior) == 3 and prior[0] == "like":
        mean, variance = _like(state, prior[1])
        pulls = prior[2]
    elif is_sequence and len(prior) in (2, 3):
        mean, pulls, variance = [*prior, 0.0][:3]
    else:
        raise WrongValue("prior", f"must be a mean and a number of rewards, or ('like', arm, number), got {prior!r}")
    mean = state.check_reward(mean, "prior")
    pulls = check_number("prior", pulls)
    variance = check_number("prior", variance)
    if pulls <= 0 or variance < 0:
        raise WrongValue("prior", f"must have a positive number of rewards, and no negative variance, got {prior!r}")
    return Prior(arm, mean, pulls, variance)


def _like(state: State, arm: Hashable) -> tuple[float, float]:
    """Return the mean and the variance of an arm's rewards, for a prior."""
    counts, means, spreads = state.lifetime()
    number = state.index.get(arm)
    if number is None or not counts[number]:
        raise WrongValue("prior", f"must be like an arm that has rewards, got {arm!r}")
    low, high = state.reward_range or (-LARGEST, LARGEST)
    mean = min(max(means.item(number), low), high)
    return mean, spreads.item(number) / counts.item(number)


class Guardrail:
    """Finds, now and then, the arms that are shown to be worse than the control."""

    def __init__(self) -> None:
        self.next = 0  # the number of rewards at which it is looked at again

    def events(self, state: State, now: float) -> list[Event]:
        """Return the event that retires an arm, if one is shown to do harm."""
        budget = state.settings.guardrail
        if budget is None or state.known.told < self.next:
            return []
        harmful = answers.harmful(state, budget)
        if not harmful:
            self.next = state.known.told + max(GUARDED, state.known.told // GUARDED)
            return []
        names = [name for name in state.active_names() if name not in harmful]
        reason = f"{', '.join(map(str, harmful))}: worse than the control by more than {budget:g}"
        return change(state, now, arms=names, reason=reason)


def check_names(names: Iterable[Any]) -> None:
    """Raise if a log could not keep the name of an arm."""
    for name in names:
        if isinstance(name, str):
            try:
                name.encode()
            except UnicodeEncodeError:
                raise WrongValue("arms", f"must be texts that UTF-8 can encode, got {name!a:.200}") from None
        elif not isinstance(name, int | float | bool):
            raise WrongType("arms", f"must be texts, numbers, true or false in a log, got {name!r}")
        elif (isinstance(name, int) and abs(name) > LARGEST_WHOLE) or not math.isfinite(name):
            raise WrongValue("arms", f"must be finite numbers of at most 64 bits in a log, got {name}")


__all__ = [
    "CORRECTED",
    "DUPLICATE",
    "LATE",
    "LEARNED",
    "NOTED",
    "Guardrail",
    "Outcome",
    "Rewards",
    "assigned",
    "cancel",
    "change",
    "check_names",
    "close_windows",
    "contexts_of",
    "create",
    "decide",
    "decide_several",
    "expire",
    "policy_is",
    "prior_of",
    "reward",
]
