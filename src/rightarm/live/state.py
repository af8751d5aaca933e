"""The state of a live bandit: the fold of the events that happened to it.

`State.apply` is the only place that changes anything. A bandit in use, one that comes back from its log, a replica and
`verify` all call it, so they all know the same.
"""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Self

import msgspec
import numpy as np

from rightarm.contexts import Features
from rightarm.errors import WrongType, WrongValue
from rightarm.estimators.estimator import Estimator
from rightarm.live.another_policy import carried_over, change_of_scale, policy_from
from rightarm.live.arms import Arms, Law, Lesson, check_reward, draw
from rightarm.live.contextual import ContextArms, Seen, arms_for
from rightarm.live.ledger import Answer, Ledger, Waiting
from rightarm.logs.events import (
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
    Specification,
)
from rightarm.logs.settings import Settings
from rightarm.scores.policy import Policy
from rightarm.scores.rewards import LARGEST, Scale, reward_scale
from rightarm.types import F64, I64

HOLDOUT = "holdout"
RUNNING = "running"
BELOW_1 = np.nextafter(1.0, 0.0).item()
SAME = 1e-6  # relative: rewards that are so near to each other are equal, since sums are rounded
ROUNDED = 1e-12  # relative to the range of rewards: what scaling them there and back may change


class Drawn(msgspec.Struct, frozen=True):
    """An arm that was drawn: its number, its probability, and the group if the holdout drew it."""

    arm: int
    propensity: float
    group: str | None
    error: float


class State:
    """Statistics of the arms, decisions that wait, and the probabilities that follow; arms are known by numbers.

    A new state knows nothing; the first event that it takes is `Created`. ``find_policy`` makes a policy of its
    specification.
    """

    specification: Specification
    """The policy, as the events describe it."""
    settings: Settings
    known: Arms
    scale: Scale | None

    def __init__(self, find_policy: Callable[[Specification], Policy] = policy_from) -> None:
        self.find_policy = find_policy
        self.ledger = Ledger()
        self.events = 0  # that were applied
        self.status = RUNNING
        self.least_floor = 1.0  # the lowest floor that there ever was
        self.least_even = 1.0  # the lowest share of decisions that was drawn evenly from all arms
        self.names: list[Any] = []  # of the type that the user has
        self.index: dict[Hashable, int] = {}
        self.active: list[bool] = []
        self.harmful: frozenset[Hashable] = frozenset()  # the arms that the guardrail has retired
        self._members: I64 | None = None  # the active arms, until they change
        self._law: Law | None = None  # their probabilities, until something changes
        self._place = draw.compiled

    def copy(self) -> Self:
        """Return a state that goes its own way from now on."""
        twin = copy.copy(self)
        twin.ledger = self.ledger.copy()
        twin.names = self.names.copy()
        twin.index = self.index.copy()
        twin.active = self.active.copy()
        twin.known = self.known.twin()
        return twin

    def have(self, settings: Settings, known: Arms, scale: Scale | None) -> None:
        """Have these settings, what is known of the arms, and how rewards are scaled for the policy."""
        if settings.guardrail is not None and known.estimator.asks_context:
            what = (
                f"must be None where a policy decides by contexts, as {known.policy!r} does: arms are shown to "
                f"different people, so their means prove no harm, got {settings.guardrail}"
            )
            raise WrongValue("guardrail", what)
        self.settings = settings
        self.known = known
        self._contextual = known.estimator.asks_context
        has_check = type(known.estimator).check is not Estimator.check
        self._check = known.estimator.check if has_check else None
        self.scale = scale
        self.least_floor = min(self.least_floor, settings.floor)
        self.least_even = min(self.least_even, settings.holdout if settings.control is None else 0.0)
        declared = settings.reward_range
        self.reward_range = declared if declared is not None or scale is None else (scale.low, scale.high)
        """What rewards can be: as declared, or as the policy wants them; None if they can be anything."""

    # Rewards.

    def check_reward(self, reward: Any, field: str = "reward") -> float:
        """Return ``reward``, if it can be learned."""
        is_usual = type(reward) is float and -LARGEST <= reward <= LARGEST  # by far the most
        value = reward if is_usual else check_reward(reward)
        limits = self.reward_range
        if limits is not None and not limits[0] <= value <= limits[1]:
            hint = "" if self.settings.reward_range else f", which {self.known.policy} is for; see reward_range"
            what = f"must be from {limits[0]:g} to {limits[1]:g}{hint}, got {value}"
            raise WrongValue(field, what, code="out_of_range")
        if self._check is not None:
            self._check(value if self.scale is None else self.scale.apply(value))
        return value

    def scaled(self, reward: float) -> float:
        """Return a reward as the policy sees it."""
        return reward if self.scale is None else self.scale.apply(reward)

    def unscaled(self, value: F64) -> F64:
        """Return what the policy sees in the unit of the rewards."""
        return value if self.scale is None else self.scale.back(value)

    def lifetime(self) -> tuple[F64, F64, F64]:
        """Return number, mean and Σ (x − mean)² of all rewards of each arm that were ever learned."""
        counts, means, spreads = self.known.lifetime()
        if self.scale is not None:
            means, spreads = np.where(counts > 0, self.scale.back(means), 0.0), spreads * self._factor**2
        return counts, means, spreads

    def only_reward(self) -> float | None:
        """Return what every reward that was ever learned is, if all are equal but for rounding; else None."""
        counts, means, spreads = (column[self.lifetime()[0] > 0] for column in self.lifetime())
        if not counts.size:
            return None
        scaling = 0.0 if self.scale is None else ROUNDED * max(abs(self.scale.low), abs(self.scale.high))
        apart, spread = SAME * float(np.abs(means).max()), float((spreads / counts).max())
        if np.ptp(means) > apart + scaling or spread > apart**2 + scaling**2:
            return None
        value = means.item(0)
        return 0.0 if abs(value) <= scaling else float(f"{value:.9g}")

    def within(self, low: float, high: float) -> bool:
        """Say whether the means of all arms are between two rewards."""
        return self.known.within(self.scaled(low), self.scaled(high))

    @property
    def _factor(self) -> float:
        """Return how much wider rewards are spread than what the policy sees of them."""
        scale = self.scale
        return 1.0 if scale is None else (scale.high - scale.low) / (scale.to_high - scale.to_low)

    # Events.

    def apply(self, event: Event, seen: Seen | None = None) -> None:
        """Change the state by one event; nothing else ever changes it.

        ``seen`` is the context of a decision or observation, for those who have it already.
        """
        match event:
            case Decision():
                self._decided(event, seen)
            case Reward():
                self._rewarded(event)
            case Expiry():
                self._expired(event)
            case Cancellation():
                self._answered(self._pending(event.id), None)
            case Correction():
                self._corrected(event)
            case LateReward():
                self._came_late(event)
            case Observation():
                self._observed(event, seen)
            case Changed():
                self._change(event)
            case Created():
                self._create(event)
        self.events += 1

    def _create(self, event: Created) -> None:
        if self.events:
            raise ValueError("a bandit is created once, by the first of its events")
        policy = self.find_policy(event.policy)
        self.specification = event.policy
        settings = event.settings
        known = arms_for(policy, settings.discount, settings.window)
        self.have(settings, known, reward_scale(policy, settings.reward_range))
        self.ledger = Ledger(event.first_id)
        self._set_arms(event.arms, event.prior)
        self.check_settings()
        if settings.default is not None:
            self.check_reward(settings.default, "default")

    def _decided(self, event: Decision[Any], seen: Seen | None) -> None:
        arm = self.arm_number("arm", event.arm)
        if not self._contextual:
            self.ledger.open(Waiting(lean(event), arm))
            return
        if seen is None:
            seen = self.seen_before(event)
        self.known.notice(seen)
        self.ledger.open(Waiting(lean(event), arm, None, seen.context(arm)))

    def _rewarded(self, event: Reward) -> None:
        waiting = self._pending(event.id)
        if event.part:
            self.ledger.note(event.id, event.reward)
        else:
            self._answered(waiting, event.reward)

    def _expired(self, event: Expiry) -> None:
        for waiting in map(self._pending, event.ids):
            if event.reward is None:
                self._answered(waiting, waiting.so_far)
            else:
                self._answered(waiting, event.reward, silent=True)

    def _answered(self, waiting: Waiting, reward: float | None, silent: bool = False) -> None:
        """Learn the reward of a pending decision, or that there will be none; ``silent`` if it is the default."""
        decision = waiting.decision
        learned = 0
        if reward is not None:
            value = reward if self.scale is None else self.scale.apply(reward)
            self.known.learn(waiting.arm, value, decision.propensity, waiting.context)
            learned = self.known.told
            self._law = None
        answer = Answer(reward, waiting.arm, learned, decision.propensity, silent, waiting.context, decision.time)
        self.ledger.close(decision.id, answer)

    def _corrected(self, event: Correction) -> None:
        before = self.ledger.answered.get(event.id)
        if before is None:  # it was answered too long ago to be remembered
            return
        answer = msgspec.structs.replace(before, reward=event.reward, silent=False)
        if before.reward is None:
            self.known.learn(*self._lesson(answer))
            answer = msgspec.structs.replace(answer, learned=self.known.told)
        self.ledger.answered[event.id] = answer
        if before.reward == event.reward:
            return
        if before.reward is not None and not self.correct(self.known, before, event.reward):
            self.known.learn_again(before.arm, map(self._lesson, self.remembered(before.arm)))
        self._law = None

    def _came_late(self, event: LateReward) -> None:
        before = self.ledger.answered.get(event.id)
        if before is not None:
            self.ledger.answered[event.id] = msgspec.structs.replace(before, late=event.reward)

    def _observed(self, event: Observation, seen: Seen | None) -> None:
        arm = self.arm_number("arm", event.arm)
        if self._contextual:
            seen = self.seen_before(event) if seen is None else seen
            self.known.notice(seen)
        answer = Answer(event.reward, arm, context=None if seen is None else seen.context(arm))
        self.known.learn(*self._lesson(answer))
        self.ledger.observe(msgspec.structs.replace(answer, learned=self.known.told))
        self._law = None

    def _change(self, event: Changed) -> None:
        if event.policy is not None or event.settings:
            settings = self.settings.changed(**_settings_from(event.settings))
            policy = self.known.policy if event.policy is None else self.find_policy(event.policy)
            self._set_policy(policy, settings)
            self.specification = self.specification if event.policy is None else event.policy
        if event.arms is not None:
            self._set_arms(event.arms, event.prior, event.reason)
        if event.status is not None:
            self.status = event.status
        self.check_settings()
        self._check_range()
        self._law = None

    def add_arms(self, names: Iterable[Hashable]) -> None:
        """Know these arms from now on; they cannot be chosen yet."""
        new = [name for name in names if name not in self.index]
        for name in new:
            self.index[name] = len(self.names)
            self.names.append(name)
            self.active.append(False)
            self.known.add()
        self.ledger.add_arms(len(new))

    def _set_arms(self, names: Sequence[Hashable], priors: Iterable[Prior], reason: str | None = None) -> None:
        """Let these arms be chosen: those not seen before are new, those left out are retired.

        With a ``reason`` it was the guardrail that left some out.
        """
        chosen = set(names)
        if reason is not None:
            self.harmful = self.harmful | {name for name in self.active_names() if name not in chosen}
        self.harmful = self.harmful - chosen
        self.add_arms(names)
        self.active = [name in chosen for name in self.names]
        self._members = None
        self._law = None
        for prior in priors:
            arm = self.arm_number("prior", prior.arm)
            self.known.start(arm, self.scaled(prior.mean), prior.pulls, prior.variance / self._factor**2)

    def _set_policy(self, policy: Policy, settings: Settings) -> None:
        """Let a policy decide, by these settings, with the statistics that there are."""
        known = self.known
        scale = reward_scale(policy, settings.reward_range)
        if policy is not known.policy:
            known, self.ledger = carried_over(known, policy, self.ledger)
        factor, shift = change_of_scale(self.scale, scale)
        if (factor, shift) != (1.0, 0.0):
            known.rescale(factor, shift)
        before = self.known.policy
        if policy is not before and policy.rewards is not None and not known.within(*policy.rewards):
            what = f"{policy!r} is for other rewards than {before!r} has learned; see reward_range"
            raise WrongValue("policy", f"must be for the rewards that there were: {what}")
        self.have(settings, known, scale)
        self._check_awaited()

    def _check_range(self) -> None:
        """Raise if a reward that was ever learned, or a prior, is outside the range of rewards."""
        if self.reward_range is None:
            return
        low, high = self.reward_range
        lows, highs = self.ledger.extremes()
        if (lows < low).any() or (highs > high).any() or not self.within(low, high):
            raise WrongValue("reward_range", f"must have all rewards that were learned, got {low:g} to {high:g}")

    def _check_awaited(self) -> None:
        """Raise if rewards that came so far, or the default, are not those that can be learned."""
        if self.settings.default is not None:
            self.check_reward(self.settings.default, "default")
        for waiting in self.ledger.pending.values():
            if waiting.so_far is None:
                continue
            self._check_so_far(waiting.decision.id, waiting.so_far)
            if not self.settings.at_close:
                what = f"must stay 'at close' while decisions have a reward so far, as {waiting.decision.id} has"
                raise WrongValue("learn", what)

    def _check_so_far(self, number: int, reward: float) -> None:
        """Raise if the reward that a decision has so far could not be learned."""
        try:
            self.check_reward(reward)
        except WrongValue as error:
            what = f"of decision {number} so far {str(error).removeprefix('reward ')}"
            raise WrongValue("reward", what, code=error.code) from None

    def check_settings(self) -> None:
        """Raise if the settings are not for the arms that there are."""
        self.check_floor(sum(self.active))
        control = self.settings.control
        if control is not None and (control not in self.index or not self.active[self.index[control]]):
            raise WrongValue("control", f"must be one of the arms, got {control!r}")

    def _pending(self, number: int) -> Waiting:
        waiting = self.ledger.pending.get(number)
        if waiting is None:
            raise ValueError(f"log must be that of this bandit, got the answer of decision {number}")
        return waiting

    # Corrections.

    def correct(self, known: Arms, before: Answer, reward: float) -> bool:
        """Replace a reward in what is known of the arms; False if all has to be learned again for that."""
        assert before.reward is not None
        after = self._lesson(msgspec.structs.replace(before, reward=reward))
        return known.correct(before.learned, self.scaled(before.reward), after)

    def _lesson(self, answer: Answer) -> Lesson:
        assert answer.reward is not None
        return Lesson(answer.arm, self.scaled(answer.reward), answer.propensity, answer.context)

    def remembered(self, arm: int) -> list[Answer]:
        """Return the remembered rewards that bear on what is known of an arm, in the order they were learned in."""
        everything = itertools.chain(self.ledger.answered.values(), self.ledger.observed.values())
        found = [one for one in everything if one.learned > 0 and (self.known.mixes or one.arm == arm)]
        return sorted(found, key=operator.attrgetter("learned"))

    # Arms.

    def arm_number(self, name: str, arm: Hashable) -> int:
        """The number of an arm, which errors call ``name``."""
        try:
            return self.index[arm]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self.names[:20])) + (", ..." if len(self.names) > 20 else "")
            raise WrongValue(name, f"must be one of {known}, got {arm!r}") from None

    def active_names(self) -> list[Any]:
        """The arms that can be chosen."""
        return [name for name, active in zip(self.names, self.active, strict=True) if active]

    def check_floor(self, arms: int) -> None:
        """Raise if so many arms cannot have the probability ``floor`` each."""
        floor, holdout = self.settings.floor, self.settings.holdout
        if floor * arms > 1 - holdout + 1e-12:
            rest = f" beside a holdout of {holdout:g}" if holdout else ""
            raise WrongValue("floor", f"must be at most {1 - holdout:g}/{arms} for {arms} arms{rest}, got {floor}")

    def chosen(self, among: Iterable[Hashable]) -> I64:
        """The numbers of some arms that can be chosen."""
        if isinstance(among, str | bytes) or not isinstance(among, Iterable):
            raise WrongType("among", f"must be several arms, got {among!r}")
        chosen = sorted({self.arm_number("among", arm) for arm in among})
        retired = [self.names[i] for i in chosen if not self.active[i]]
        if retired or not chosen:
            raise WrongValue("among", f"must be arms that are not retired, got {retired if retired else 'none'}")
        return np.array(chosen)

    # Decisions.

    def see(self, context: Any, arm_features: Any, members: I64 | None, before: Seen | None = None) -> Seen | None:
        """A context as a decision among all active arms, or some of them, would see it; see `ContextArms.see`."""
        if isinstance(self.known, ContextArms):
            return self.known.see(context, arm_features, self._members_of(members), self.names, before)
        if context is not None or arm_features is not None:
            what = "arm_features" if context is None else "context"
            hint = "give the policy an estimator such as Linear(features)"
            raise WrongType(what, f"must be left out: {self.known.policy!r} does not look at it; {hint}")
        return None

    def features(self) -> Features:
        """Return the features that a context has."""
        if isinstance(self.known, ContextArms):
            features: Features = self.known.features
            return features
        raise WrongType("contexts", f"must be left out: {self.known.policy!r} does not look at them")

    def seen_before(self, event: Decision[Any] | Observation) -> Seen:
        """Return the context of an event as the policy sees it."""
        assert isinstance(self.known, ContextArms)
        if event.context is None:
            what = "must have the contexts of a bandit that looks at them; log_context=False leaves them out"
            raise WrongValue("log", what)
        among = None
        if isinstance(event, Observation):
            among = np.array([self.index[event.arm]])
        elif event.among is not None:
            among = self.chosen(event.among)
        return self.known.see_encoded(event.context, event.arm_features, self._members_of(among))

    def _members_of(self, members: I64 | None) -> I64:
        if self._members is None:
            self._members = np.flatnonzero(self.active)
        return self._members if members is None else members

    def law(self, members: I64 | None = None, seen: Seen | None = None) -> Law:
        """The probabilities of all active arms in the next decision, or of some of them."""
        law = self._policy_law(members, self.ledger.waiting, seen)
        held = self._held(law.members)
        return law if held is None else mixed(law, held, self.settings.holdout)

    def _policy_law(self, members: I64 | None, waiting: I64, seen: Seen | None) -> Law:
        """The probabilities by which the policy decides, before a holdout is mixed in."""
        if members is None and self._law is not None:
            return self._law
        arms = self._members_of(members)
        if not arms.size:
            raise WrongValue("arms", "are of no use: every arm is retired; restore or add one", code="no_arms")
        law = self.known.law(arms, waiting, self.settings.floor / (1 - self.settings.holdout), seen)
        if members is None and seen is None and law.settled:
            self._law = law
        return law

    def _held(self, members: I64) -> I64 | None:
        """The places, among some arms, of those that the holdout draws from evenly; None where there is no holdout."""
        if not self.settings.holdout:
            return None
        if self.settings.control is None:
            return np.arange(members.size)
        places = np.flatnonzero(members == self.index[self.settings.control])
        return places if places.size else None

    def draw(self, members: I64 | None, seen: Seen | None, pending: I64, number: float) -> Drawn:
        """Draw an arm with its probability, by a uniform random ``number``; nothing changes.

        ``pending`` is the number of decisions of every arm that wait for a reward.
        """
        law = self._law if members is None else None
        if law is None:
            law = self._policy_law(members, pending, seen)
        if self.settings.holdout:
            return self._draw_held(law, number)
        place = self._place(law.chance, law.heights, number)
        return Drawn(law.members.item(place), law.chance.item(place), None, law.error)

    def _draw_held(self, law: Law, number: float) -> Drawn:
        """Draw an arm where a share of all decisions is drawn evenly from some arms."""
        share = self.settings.holdout
        held = self._held(law.members)
        if held is None:
            place = draw(law.chance, law.heights, number)
            return Drawn(law.members.item(place), law.chance.item(place), None, law.error)
        if number < share:
            place = held.item(min(int(number / share * held.size), held.size - 1))
            group = HOLDOUT
        else:
            place = draw(law.chance, law.heights, min((number - share) / (1 - share), BELOW_1))
            group = None
        return Drawn(law.members.item(place), mixed(law, held, share).chance.item(place), group, law.error)

    def due(self, now: float) -> list[Waiting]:
        """The pending decisions whose window of reward has closed, the oldest first."""
        seconds = self.settings.window_of_reward
        due = list[Waiting]()
        if seconds is None:
            return due
        for waiting in self.ledger.pending.values():
            made = waiting.decision.time
            if made > now:
                continue  # a clock that went back must not keep all later ones waiting
            if made + seconds > now:
                break
            due.append(waiting)
        return due


def mixed(law: Law, held: I64, share: float) -> Law:
    """The probabilities if that share of the decisions is drawn evenly from the places ``held``."""
    chance = (1 - share) * law.chance
    chance[held] += share / held.size
    return law._replace(chance=chance, heights=np.cumsum(chance))


def lean(event: Decision[Any]) -> Decision[Any]:
    """Return a decision without what only the log needs to keep of it."""
    if event.context is None and event.meta is None:
        return event
    return msgspec.structs.replace(event, context=None, arm_features=None, meta=None)


def _settings_from(plain: dict[str, Any]) -> dict[str, Any]:
    """Return settings that an event has as JSON in their own types."""
    found = dict(plain)
    if isinstance(found.get("reward_range"), list):
        found["reward_range"] = tuple(found["reward_range"])
    return found
