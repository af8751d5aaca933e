"""The state of a live bandit: the fold of the events that happened to it.

`State.apply` is the only place that changes anything. A bandit in use, one that comes back from its log, a replica and
`verify` all call it, so all of them come to the same state.
"""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import msgspec
import numpy as np

from rightarm.bandit.arms import ArmReward, Arms, Chances, check_reward, draw
from rightarm.bandit.context_arms import ArmFeatures, ContextArms, EncodedContext, arms_for, carried_over
from rightarm.bandit.ledger import AnsweredDecision, AnyDecision, Ledger, PendingDecision
from rightarm.errors import WrongType, WrongValue
from rightarm.estimators.estimator import Estimator
from rightarm.estimators.features import Features
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
    Status,
)
from rightarm.logs.settings import Settings
from rightarm.policies.inputs import LARGEST, Scale, reward_scale
from rightarm.policies.policy import Policy
from rightarm.types import F64, I64

FindPolicy = Callable[[Mapping[str, Any]], Policy]

HOLDOUT = "holdout"
BELOW_1 = np.nextafter(1.0, 0.0).item()
SAME = 1e-6  # relative: rewards that are so near to each other are equal, since sums are rounded
ROUNDED = 1e-12  # relative to the range of rewards: what scaling them there and back may change


class Drawn(msgspec.Struct, frozen=True, gc=False):
    """An arm that was drawn: its number, its probability, and the group if the holdout drew it."""

    arm: int
    propensity: float
    group: str | None
    error: float


class State:
    """The statistics of the arms, the decisions, the settings, and the probabilities that follow from them.

    A new state is empty; the first event that it takes is `Created`. ``find_policy`` makes a policy of its
    specification. Arms go by their numbers; ``names`` has what users call them.
    """

    specification: Specification
    """The policy, as the events describe it."""
    settings: Settings
    arms: Arms
    scale: Scale | None
    """How rewards are scaled for the policy, if they are."""
    reward_range: tuple[float, float] | None
    """The range of rewards: as declared, or as the policy wants them; None if they can be anything."""

    def __init__(self, find_policy: FindPolicy) -> None:
        self.find_policy = find_policy
        self.ledger = Ledger()
        self.events = 0  # that were applied
        self.status: Status = "running"
        self.least_floor = 1.0  # the lowest floor that there ever was
        self.least_even = 1.0  # the lowest share of decisions that was drawn evenly from all arms
        self.names: list[Any] = []  # of the type that the user has
        self.index: dict[Hashable, int] = {}
        self.active: list[bool] = []
        self.harmful: frozenset[Hashable] = frozenset()  # the arms that the guardrail has retired
        self._members: I64 | None = None  # the active arms, until they change
        self._chances: Chances | None = None  # their probabilities, until something changes
        self._place = draw.compiled

    def copy(self) -> Self:
        """Return a copy that changes by itself."""
        twin = copy.copy(self)
        twin.ledger = self.ledger.copy()
        twin.names = self.names.copy()
        twin.index = self.index.copy()
        twin.active = self.active.copy()
        twin.arms = self.arms.copy()
        return twin

    def set_up(self, settings: Settings, arms: Arms) -> None:
        """Take these settings and these statistics, and scale rewards as their policy wants."""
        if settings.guardrail is not None and arms.estimator.asks_context:
            what = (
                f"must be None where a policy decides by contexts, as {arms.policy!r} does: arms are shown to "
                f"different people, so their means prove no harm, got {settings.guardrail}"
            )
            raise WrongValue("guardrail", what)
        self.settings = settings
        self.arms = arms
        self.has_contexts = arms.estimator.asks_context
        has_check = type(arms.estimator).check is not Estimator.check
        self._check = arms.estimator.check if has_check else None
        scale = reward_scale(arms.policy, settings.reward_range)
        self.scale = scale
        self.least_floor = min(self.least_floor, settings.floor)
        self.least_even = min(self.least_even, settings.holdout if settings.control is None else 0.0)
        declared = settings.reward_range
        self.reward_range = declared if declared is not None or scale is None else (scale.low, scale.high)

    # Rewards.

    def check_reward(self, reward: object, field: str = "reward") -> float:
        """Return ``reward``, if it can be learned."""
        is_usual = type(reward) is float and -LARGEST <= reward <= LARGEST  # by far the most
        value: float = reward if is_usual else check_reward(reward)  # type: ignore[assignment]
        limits = self.reward_range
        if limits is not None and not limits[0] <= value <= limits[1]:
            hint = "" if self.settings.reward_range else f", which {self.arms.policy} is for; see reward_range"
            what = f"must be from {limits[0]:g} to {limits[1]:g}{hint}, got {value}"
            raise WrongValue(field, what, code="out_of_range")
        if self._check is not None:
            self._check(self.scaled(value))
        return value

    def scaled(self, reward: float) -> float:
        """Return a reward as the policy sees it."""
        return reward if self.scale is None else self.scale.apply(reward)

    def unscaled(self, value: F64) -> F64:
        """Return what the policy sees in the unit of the rewards."""
        return value if self.scale is None else self.scale.back(value)

    def lifetime(self) -> tuple[F64, F64, F64]:
        """Return number, mean and Σ (x − mean)² of all rewards of each arm that were ever learned."""
        counts, means, spreads = self.arms.lifetime()
        if self.scale is not None:
            means = np.where(counts > 0, self.scale.back(means), 0.0)
            spreads = spreads * self._factor**2
        return counts, means, spreads

    def only_reward(self) -> float | None:
        """Return the reward that all rewards ever learned are equal to, but for rounding; None if they differ."""
        has_rewards = self.lifetime()[0] > 0
        counts, means, spreads = (column[has_rewards] for column in self.lifetime())
        if not counts.size:
            return None
        scaling = 0.0 if self.scale is None else ROUNDED * max(abs(self.scale.low), abs(self.scale.high))
        apart = SAME * float(np.abs(means).max())
        spread = float((spreads / counts).max())
        if np.ptp(means) > apart + scaling or spread > apart**2 + scaling**2:
            return None
        value = means.item(0)
        return 0.0 if abs(value) <= scaling else float(f"{value:.9g}")

    def means_are_within(self, low: float, high: float) -> bool:
        """Say whether the means of all arms are between two rewards."""
        return self.arms.are_within(self.scaled(low), self.scaled(high))

    @property
    def _factor(self) -> float:
        """Return how much wider rewards are spread than what the policy sees of them."""
        scale = self.scale
        return 1.0 if scale is None else (scale.high - scale.low) / (scale.to_high - scale.to_low)

    # Events.

    def apply(self, event: Event, context: EncodedContext | None = None) -> None:
        """Change the state by one event; nothing else ever changes it.

        ``context`` is that of a decision or observation, for those who have encoded it already.
        """
        match event:
            case Decision():
                self._decided(event, context)
            case Reward():
                self._rewarded(event)
            case Expiry():
                self._expired(event)
            case Cancellation():
                self._answer(self._pending(event.id), None)
            case Correction():
                self._corrected(event)
            case LateReward():
                self._came_late(event)
            case Observation():
                self._observed(event, context)
            case Changed():
                self._change(event)
            case Created():
                self._create(event)
            case _:
                raise TypeError(f"State.apply has no case for the event {type(event).__name__}")
        self.events += 1

    def _create(self, event: Created) -> None:
        if self.events:
            raise ValueError("a bandit is created once, by the first of its events")
        self.set_up(event.settings, arms_for(self.find_policy(event.policy)))
        self.specification = event.policy
        self.ledger = Ledger(event.first_id)
        self._set_arms(event.arms, event.prior)
        self.check_settings()
        if event.settings.default_reward is not None:
            self.check_reward(event.settings.default_reward, "default_reward")

    def _decided(self, event: AnyDecision, context: EncodedContext | None) -> None:
        arm = self.arm_number("arm", event.arm)
        stored = None
        if self.has_contexts:
            context = self.encoded_again(event) if context is None else context
            self.arms.decided(context)
            stored = context.stored(arm)
        if event.context is not None or event.meta is not None:  # which only the log needs
            event = msgspec.structs.replace(event, context=None, arm_features=None, meta=None)
        self.ledger.open(PendingDecision(event, arm, None, stored))

    def _rewarded(self, event: Reward) -> None:
        pending = self._pending(event.id)
        if event.part:
            self.ledger.note(event.id, event.reward)
        else:
            self._answer(pending, event.reward)

    def _expired(self, event: Expiry) -> None:
        for pending in map(self._pending, event.ids):
            if event.reward is None:
                self._answer(pending, pending.so_far)
            else:
                self._answer(pending, event.reward, silent=True)

    def _answer(self, pending: PendingDecision, reward: float | None, silent: bool = False) -> None:
        """Learn the reward of a pending decision, or that there will be none; ``silent`` if it is the default."""
        decision = pending.decision
        arm = pending.arm
        propensity = decision.propensity
        context = pending.context
        learned = 0
        if reward is not None:
            self.arms.learn(arm, reward if self.scale is None else self.scale.apply(reward), propensity, context)
            learned = self.arms.learned
            self._chances = None
        answer = AnsweredDecision(reward, arm, learned, propensity, silent, context, decision.time)
        self.ledger.close(decision.id, answer)

    def _corrected(self, event: Correction) -> None:
        before = self.ledger.answered.get(event.id)
        if before is None:  # it was answered too long ago to be remembered
            return
        answer = msgspec.structs.replace(before, reward=event.reward, silent=False)
        if before.reward is None:
            self.arms.learn(*self.reward_of(answer))
            answer = msgspec.structs.replace(answer, learned=self.arms.learned)
        self.ledger.answered[event.id] = answer
        if before.reward == event.reward:
            return
        if before.reward is not None and not self.correct(self.arms, before, event.reward):
            self.arms.learn_again(before.arm, map(self.reward_of, self.remembered(before.arm)))
        self._chances = None

    def _came_late(self, event: LateReward) -> None:
        before = self.ledger.answered.get(event.id)
        if before is not None:
            self.ledger.answered[event.id] = msgspec.structs.replace(before, late=event.reward)

    def _observed(self, event: Observation, context: EncodedContext | None) -> None:
        arm = self.arm_number("arm", event.arm)
        stored = None
        if self.has_contexts:
            context = self.encoded_again(event) if context is None else context
            self.arms.decided(context)
            stored = context.stored(arm)
        answer = AnsweredDecision(event.reward, arm, context=stored)
        self.arms.learn(*self.reward_of(answer))
        self.ledger.observe(msgspec.structs.replace(answer, learned=self.arms.learned))
        self._chances = None

    def _change(self, event: Changed) -> None:
        if event.policy is not None or event.settings:
            settings = self.settings.changed(**_settings_from(event.settings))
            policy = self.arms.policy if event.policy is None else self.find_policy(event.policy)
            self._set_policy(policy, settings)
            self.specification = self.specification if event.policy is None else event.policy
        if event.arms is not None:
            self._set_arms(event.arms, event.prior, event.reason)
        if event.status is not None:
            self.status = event.status
        self.check_settings()
        self._check_range()
        self._chances = None

    def add_arms(self, names: Iterable[Hashable]) -> None:
        """Add those of these arms that are new; they cannot be chosen yet."""
        new = [name for name in names if name not in self.index]
        for name in new:
            self.index[name] = len(self.names)
            self.names.append(name)
            self.active.append(False)
            self.arms.add()
        self.ledger.add_arms(len(new))

    def _set_arms(self, names: Sequence[Hashable], priors: Iterable[Prior], reason: str | None = None) -> None:
        """Let these arms be chosen: those that are not here yet are new, those left out are retired.

        With a ``reason`` it was the guardrail that left some out.
        """
        chosen = set(names)
        if reason is not None:
            self.harmful = self.harmful | {name for name in self.active_names() if name not in chosen}
        self.harmful = self.harmful - chosen
        self.add_arms(names)
        self.active = [name in chosen for name in self.names]
        self._members = None
        self._chances = None
        for prior in priors:
            arm = self.arm_number("prior", prior.arm)
            self.arms.start(arm, self.scaled(prior.mean), prior.pulls, prior.variance / self._factor**2)

    def _set_policy(self, policy: Policy, settings: Settings) -> None:
        """Let a policy decide, by these settings, with the statistics that there are."""
        arms = self.arms
        before = arms.policy
        if policy is not before:
            arms, extension = carried_over(arms, policy)
            if extension is not None:
                self.ledger = self.ledger.extended(extension)
        factor, shift = change_of_scale(self.scale, reward_scale(policy, settings.reward_range))
        if (factor, shift) != (1.0, 0.0):
            arms.rescale(factor, shift)
        is_other = policy is not before
        if is_other and policy.reward_range is not None and not arms.are_within(*policy.reward_range):
            what = f"{policy!r} is for other rewards than {before!r} has learned; see reward_range"
            raise WrongValue("policy", f"must be for the rewards that there were: {what}")
        self.set_up(settings, arms)
        self._check_awaited()

    def _check_range(self) -> None:
        """Raise if a reward that was ever learned, or a prior, is outside the range of rewards."""
        if self.reward_range is None:
            return
        low, high = self.reward_range
        lows, highs = self.ledger.extremes()
        if (lows < low).any() or (highs > high).any() or not self.means_are_within(low, high):
            raise WrongValue("reward_range", f"must have all rewards that were learned, got {low:g} to {high:g}")

    def _check_awaited(self) -> None:
        """Raise if rewards that came so far, or the default, are not those that can be learned."""
        if self.settings.default_reward is not None:
            self.check_reward(self.settings.default_reward, "default_reward")
        for pending in self.ledger.pending.values():
            if pending.so_far is None:
                continue
            number = pending.decision.id
            try:
                self.check_reward(pending.so_far)
            except WrongValue as error:
                what = f"of decision {number} so far {str(error).removeprefix('reward ')}"
                raise WrongValue("reward", what, code=error.code) from None
            if not self.settings.at_close:
                what = f"must stay 'at close' while decisions have a reward so far, as {number} has"
                raise WrongValue("learn", what)

    def check_settings(self) -> None:
        """Raise if the settings are not for the arms that there are."""
        arms = sum(self.active)
        floor = self.settings.floor
        holdout = self.settings.holdout
        if floor * arms > 1 - holdout + 1e-12:
            rest = f" beside a holdout of {holdout:g}" if holdout else ""
            raise WrongValue("floor", f"must be at most {1 - holdout:g}/{arms} for {arms} arms{rest}, got {floor}")
        control = self.settings.control
        if control is not None and (control not in self.index or not self.active[self.index[control]]):
            raise WrongValue("control", f"must be one of the arms, got {control!r}")

    def _pending(self, number: int) -> PendingDecision:
        pending = self.ledger.pending.get(number)
        if pending is None:
            raise ValueError(f"log must be that of this bandit, got the answer of decision {number}")
        return pending

    # Corrections.

    def correct(self, arms: Arms, before: AnsweredDecision, reward: float) -> bool:
        """Replace a reward in the statistics of the arms; False if all has to be learned again for that."""
        assert before.reward is not None
        after = self.reward_of(msgspec.structs.replace(before, reward=reward))
        return arms.correct(before.learned, self.scaled(before.reward), after)

    def reward_of(self, answer: AnsweredDecision) -> ArmReward:
        """Return the reward of a decision as the policy learns it."""
        assert answer.reward is not None
        return ArmReward(answer.arm, self.scaled(answer.reward), answer.propensity, answer.context)

    def remembered(self, arm: int) -> list[AnsweredDecision]:
        """Return the remembered rewards that bear on the statistics of an arm, in the order they were learned in."""
        everything = itertools.chain(self.ledger.answered.values(), self.ledger.observed.values())
        found = [one for one in everything if one.learned > 0 and (self.arms.mixes or one.arm == arm)]
        return sorted(found, key=operator.attrgetter("learned"))

    # Arms.

    def arm_number(self, name: str, arm: Hashable) -> int:
        """Return the number of an arm, which errors call ``name``."""
        try:
            return self.index[arm]
        except (KeyError, TypeError):
            names = ", ".join(map(repr, self.names[:20])) + (", ..." if len(self.names) > 20 else "")
            raise WrongValue(name, f"must be one of {names}, got {arm!r}") from None

    def active_names(self) -> list[Any]:
        """Return the arms that can be chosen."""
        return [name for name, active in zip(self.names, self.active, strict=True) if active]

    def chosen(self, allowed: Iterable[Hashable]) -> I64:
        """Return the numbers of some arms that can be chosen."""
        if isinstance(allowed, str | bytes) or not isinstance(allowed, Iterable):
            raise WrongType("allowed", f"must be several arms, got {allowed!r}")
        chosen = sorted({self.arm_number("allowed", arm) for arm in allowed})
        retired = [self.names[i] for i in chosen if not self.active[i]]
        if retired or not chosen:
            raise WrongValue("allowed", f"must be arms that are not retired, got {retired if retired else 'none'}")
        return np.array(chosen)

    # Contexts.

    def encode(
        self,
        context: object,
        arm_features: ArmFeatures | None,
        members: I64 | None,
        before: EncodedContext | None = None,
    ) -> EncodedContext | None:
        """Return a context in numbers, for a decision among all active arms or some; see `ContextArms.encode`."""
        if isinstance(self.arms, ContextArms):
            return self.arms.encode(context, arm_features, self._members_of(members), self.names, before)
        if context is not None or arm_features is not None:
            what = "arm_features" if context is None else "context"
            hint = "give the policy an estimator such as Linear(features)"
            raise WrongType(what, f"must be left out: {self.arms.policy!r} does not look at it; {hint}")
        return None

    def features(self) -> Features:
        """Return the features that a context has."""
        if isinstance(self.arms, ContextArms):
            features: Features = self.arms.features
            return features
        raise WrongType("contexts", f"must be left out: {self.arms.policy!r} does not look at them")

    def encoded_again(self, event: AnyDecision | Observation) -> EncodedContext:
        """Return the context of an event from the numbers that a log has."""
        assert isinstance(self.arms, ContextArms)
        if event.context is None:
            what = "must have the contexts of a bandit that looks at them; LogWriter(context=False) leaves them out"
            raise WrongValue("log", what)
        allowed = None
        if isinstance(event, Observation):
            allowed = np.array([self.index[event.arm]])
        elif event.allowed is not None:
            allowed = self.chosen(event.allowed)
        return self.arms.encode_numbers(event.context, event.arm_features, self._members_of(allowed))

    # Decisions.

    def _members_of(self, members: I64 | None) -> I64:
        if members is not None:
            return members
        if self._members is None:
            self._members = np.flatnonzero(self.active)
        return self._members

    def probabilities(self, members: I64 | None = None, context: EncodedContext | None = None) -> Chances:
        """Return the probabilities of all active arms, or of some of them, in the next decision."""
        chances = self._chances if members is None else None
        if chances is None:
            chances = self._policy_chances(members, self.ledger.pending_counts, context)
        held = self._held(chances.members)
        return chances if held is None else mixed(chances, held, self.settings.holdout)

    def named_probabilities(
        self, context: object = None, arm_features: ArmFeatures | None = None, allowed: Iterable[Hashable] | None = None
    ) -> dict[Any, float]:
        """Return the probabilities of the next decision by the names of the arms."""
        members = None if allowed is None else self.chosen(allowed)
        found = self.probabilities(members, self.encode(context, arm_features, members))
        return {self.names[i]: p for i, p in zip(found.members.tolist(), found.chance.tolist(), strict=True)}

    def _policy_chances(self, members: I64 | None, pending: Sequence[int], context: EncodedContext | None) -> Chances:
        """Return the probabilities by which the policy decides, before a holdout is mixed in."""
        arms = self._members_of(members)
        if not arms.size:
            raise WrongValue("arms", "are of no use: every arm is retired; restore or add one", code="no_arms")
        settings = self.settings
        found = self.arms.probabilities(arms, pending, settings.floor / (1 - settings.holdout), context)
        if members is None and context is None and found.is_lasting:
            self._chances = found
        return found

    def _held(self, members: I64) -> I64 | None:
        """Return the places, among some arms, of those that the holdout draws from evenly, if there is a holdout."""
        if not self.settings.holdout:
            return None
        if self.settings.control is None:
            return np.arange(members.size)
        places = np.flatnonzero(members == self.index[self.settings.control])
        return places if places.size else None

    def draw(self, members: I64 | None, context: EncodedContext | None, pending: Sequence[int], number: float) -> Drawn:
        """Draw an arm with its probability, by a uniform random ``number``; nothing changes.

        ``pending`` is the number of decisions of every arm that wait for a reward.
        """
        chances = self._chances if members is None else None
        if chances is None:
            chances = self._policy_chances(members, pending, context)
        chance = chances.chance
        if self.settings.holdout:
            share = self.settings.holdout
            held = self._held(chances.members)
            if held is not None:
                chance = mixed(chances, held, share).chance
                if number < share:
                    place = held.item(min(int(number / share * held.size), held.size - 1))
                    return Drawn(chances.members.item(place), chance.item(place), HOLDOUT, chances.error)
                number = min((number - share) / (1 - share), BELOW_1)
        place = self._place(chances.chance, chances.heights, number)
        return Drawn(chances.members.item(place), chance.item(place), None, chances.error)

    def due(self, now: float) -> list[PendingDecision]:
        """Return the pending decisions whose window of reward has closed, the oldest first."""
        seconds = self.settings.reward_window
        due = list[PendingDecision]()
        if seconds is None:
            return due
        for pending in self.ledger.pending.values():
            made = pending.decision.time
            if made > now:
                continue  # a clock that went back must not keep all later ones waiting
            if made + seconds > now:
                break
            due.append(pending)
        return due


def mixed(chances: Chances, held: I64, share: float) -> Chances:
    """Return the probabilities if that share of the decisions is drawn evenly from the places ``held``."""
    chance = (1 - share) * chances.chance
    chance[held] += share / held.size
    return msgspec.structs.replace(chances, chance=chance, heights=np.cumsum(chance))


def change_of_scale(before: Scale | None, after: Scale | None) -> tuple[float, float]:
    """Return the factor and what is added that make of a reward as one policy sees it the reward as another does."""
    low, high = (0.0, 1.0) if before is None else (before.back(0.0), before.back(1.0))
    if after is not None:
        low = after.apply(low)
        high = after.apply(high)
    return high - low, low


def _settings_from(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that an event has as JSON in their own types."""
    found = dict(plain)
    if isinstance(found.get("reward_range"), list):
        found["reward_range"] = tuple(found["reward_range"])
    return found
