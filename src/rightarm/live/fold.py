"""What a live bandit knows: the fold of the events that happened to it.

Every change of a bandit is an event, and `State` has one method for each kind: `decided`, `noted`, `answered`,
`corrected`, `came_late`, `observed`, `set_arms`, `set_policy`. `Bandit` calls them as things happen, and `State.apply`
calls the same ones for the events of a log. So a bandit that comes back from a log is the one that wrote it.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rightarm.contexts import Features
from rightarm.live.another_policy import carried_over, change_of_scale
from rightarm.live.arms import Arms, Law, Lesson, check_reward, draw
from rightarm.live.contextual import ContextArms, Seen, arms_for
from rightarm.live.draws import Draws
from rightarm.live.ledger import REMEMBERED, Answer, Answered, Decision, Ledger, Unit, Waiting
from rightarm.live.settings import KEEP, Settings
from rightarm.scores.policy import Policy
from rightarm.scores.rewards import Scale, reward_scale
from rightarm.types import F64, I64

HOLDOUT = "holdout"
BELOW_1 = np.nextafter(1.0, 0.0).item()
SAME = 1e-6  # relative: rewards that are so near to each other are equal, since sums are rounded
ROUNDED = 1e-12  # relative to the range of rewards: what scaling them there and back may change


class State:
    """Statistics of the arms, decisions that wait, and the probabilities that follow; arms are known by numbers."""

    def __init__(self, policy: Policy, draws: Draws, settings: Settings, first_id: int = 1) -> None:
        self.settings, self.draws = settings, draws
        self.ledger = Ledger(first_id)
        self.version = 0  # counts changes: each reward, each arm that comes or goes, each other policy
        self.names: list[Any] = []  # of the type that the user has
        self.index: dict[Hashable, int] = {}
        self.active: list[bool] = []
        self.harmful: frozenset[Hashable] = frozenset()  # the arms that the guardrail has retired
        self._members: I64 | None = None  # the active arms, until they change
        self._law: Law | None = None  # their probabilities, until something changes
        self._place = draw.compiled
        known = arms_for(policy, settings.discount, settings.window)
        self._have(known, reward_scale(policy, settings.reward_range))

    def _have(self, known: Arms, scale: Scale | None) -> None:
        """Have what is known of the arms, and how rewards are scaled for its policy."""
        if self.settings.guardrail is not None and known.estimator.asks_context:
            raise ValueError(
                f"guardrail must be None where a policy decides by contexts, as {known.policy!r} does: arms are shown "
                f"to different people, so their means prove no harm, got {self.settings.guardrail}"
            )
        self.known, self.scale = known, scale
        declared = self.settings.reward_range
        self.reward_range = declared if declared is not None or scale is None else (scale.low, scale.high)
        """What rewards can be: as declared, or as the policy wants them; None if they can be anything."""

    # Rewards.

    def check_reward(self, reward: Any) -> float:
        """``reward``, if it can be learned."""
        value, limits = check_reward(reward), self.reward_range
        if limits is not None and not limits[0] <= value <= limits[1]:
            hint = "" if self.settings.reward_range else f", which {self.known.policy} is for; see reward_range"
            raise ValueError(f"reward must be from {limits[0]:g} to {limits[1]:g}{hint}, got {value}")
        self.known.estimator.check(value if self.scale is None else self.scale.apply(value))
        return value

    def scaled(self, reward: float) -> float:
        """A reward as the policy sees it."""
        return reward if self.scale is None else self.scale.apply(reward)

    def unscaled(self, value: F64) -> F64:
        """What the policy sees, in the unit of the rewards."""
        return value if self.scale is None else self.scale.back(value)

    def lifetime(self) -> tuple[F64, F64, F64]:
        """Of all rewards that were ever learned, of each arm: their number, mean, and Σ (x − mean)²."""
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
        """Whether the means of all arms are between two rewards."""
        return self.known.within(self.scaled(low), self.scaled(high))

    @property
    def _factor(self) -> float:
        """How much wider rewards are spread than what the policy sees of them."""
        scale = self.scale
        return 1.0 if scale is None else (scale.high - scale.low) / (scale.to_high - scale.to_low)

    # Events.

    def decided(self, waiting: Waiting, seen: Seen | None = None) -> None:
        """An arm was chosen, in a context if the policy looks at any."""
        self.ledger.open(waiting)
        self.draws.used += 1
        if seen is not None:
            self.known.notice(seen)

    def noted(self, waiting: Waiting, so_far: float) -> None:
        """A reward came that is learned when the window of its decision closes."""
        self.ledger.note(waiting.decision.id, so_far)

    def answered(self, waiting: Waiting, reward: float | None, silent: bool = False) -> None:
        """The reward of a pending decision came, or there will be none; ``silent`` if it is the default."""
        arm, propensity, learned = waiting.arm, waiting.decision.propensity, 0
        if reward is not None:
            value = reward if self.scale is None else self.scale.apply(reward)
            self.known.learn(arm, value, propensity, waiting.context)
            learned = self.known.told
            self.version += 1
            self._law = None
        made = waiting.time if self.settings.late == KEEP else None
        answer = Answer(reward, arm, learned, propensity, silent, waiting.context, made)
        self.ledger.close(waiting.decision.id, answer)

    def corrected(self, number: int, before: Answer, reward: float) -> None:
        """Another reward takes the place of a decision's answer."""
        answer = before._replace(reward=reward, silent=False)
        if before.reward is None:
            self.known.learn(*self._lesson(answer))
            answer = answer._replace(learned=self.known.told)
        self.ledger.answered[number] = answer
        if before.reward is not None and not self._correct(self.known, before, reward):
            answers = self._remembered(before.arm)
            if self.known.is_made_of(before.arm, len(answers)):  # else an earlier version of rightarm wrote the event
                self.known.learn_again(before.arm, map(self._lesson, answers))
        self._changed()

    def check_corrections(self, late: Iterable[tuple[int, Answer, float]]) -> None:
        """Raise if answers of decisions cannot be replaced, one after the other, by these rewards without a trace."""
        twin = self.known.twin()
        for number, before, reward in late:
            if before.reward is None:
                twin.learn(*self._lesson(before._replace(reward=reward)))
            elif not self._correct(twin, before, reward):
                found = len(self._remembered(before.arm))
                if not self.known.is_made_of(before.arm, found):
                    whose = "" if self.known.mixes else f" of {self.names[before.arm]!r}"
                    raise Answered(
                        f"decision {number} cannot be corrected from {before.reward:g} to {reward:g}: all rewards"
                        f"{whose} would have to be learned again, and only {found:,} are remembered (the last "
                        f"{REMEMBERED:,}, and no prior)"
                    )

    def _correct(self, known: Arms, before: Answer, reward: float) -> bool:
        assert before.reward is not None
        return known.correct(before.learned, self.scaled(before.reward), self._lesson(before._replace(reward=reward)))

    def _lesson(self, answer: Answer) -> Lesson:
        assert answer.reward is not None
        return Lesson(answer.arm, self.scaled(answer.reward), answer.propensity, answer.context)

    def _remembered(self, arm: int) -> list[Answer]:
        """The remembered rewards that bear on what is known of an arm, in the order in which they were learned."""
        everything, told = (
            itertools.chain(self.ledger.answered.values(), self.ledger.observed.values()),
            self.known.told,
        )
        found = [one for one in everything if 0 < one.learned <= told and (self.known.mixes or one.arm == arm)]
        return sorted(found, key=operator.attrgetter("learned"))

    def came_late(self, number: int, reward: float) -> None:
        """A reward came too late to be learned."""
        self.ledger.answered[number] = self.ledger.answered[number]._replace(late=reward)

    def observed(self, arm: int, reward: float, seen: Seen | None = None) -> None:
        """A reward of an arm came that belongs to no decision."""
        if seen is not None:
            self.known.notice(seen)
        answer = Answer(reward, arm, context=None if seen is None else seen.context(arm))
        self.known.learn(*self._lesson(answer))
        self.ledger.observe(answer._replace(learned=self.known.told))
        self._changed()

    def add_arms(self, names: Iterable[Hashable]) -> None:
        """Know these arms from now on; they cannot be chosen yet."""
        new = [name for name in names if name not in self.index]
        for name in new:
            self.index[name] = len(self.names)
            self.names.append(name)
            self.active.append(False)
            self.known.add()
        self.ledger.add_arms(len(new))

    def set_arms(
        self, names: Sequence[Hashable], priors: Iterable[Sequence[Any]] = (), reason: str | None = None
    ) -> None:
        """From now on these arms can be chosen: those not seen before are new, those left out are retired.

        ``priors`` has rows for some of the new ones: name, mean, number and variance of rewards to start from. With a
        ``reason`` it was the guardrail that left some out.
        """
        chosen = set(names)
        self.check_floor(len(chosen))
        if reason is not None:
            self.harmful = self.harmful | {name for name in self.active_names() if name not in chosen}
        self.harmful = self.harmful - chosen
        self.add_arms(names)
        before, self.active = self.active, [name in chosen for name in self.names]
        self._members = None
        self._changed(sum(map(operator.ne, before, self.active)))
        for name, mean, pulls, variance in priors:
            self.known.start(self.index[name], self.scaled(mean), pulls, variance / self._factor**2)

    def set_policy(self, policy: Policy) -> None:
        """From now on another policy decides, with the statistics that there are."""
        known, scale = carried_over(self.known, policy), reward_scale(policy, self.settings.reward_range)
        factor, shift = change_of_scale(self.scale, scale)
        if (factor, shift) != (1.0, 0.0):
            known.rescale(factor, shift)
        if policy.rewards is not None and not known.within(*policy.rewards):
            raise ValueError(
                f"{policy!r} is for other rewards than {self.known.policy!r} has learned; see reward_range"
            )
        self._check_awaited(policy)
        self._have(known, scale)
        self._changed()

    def _check_awaited(self, policy: Policy) -> None:
        """Raise if rewards that came so far, or the default, are not those that a policy is for."""
        limits = policy.rewards if self.settings.reward_range is None else self.settings.reward_range
        awaited = [self.settings.default, *(waiting.so_far for waiting in self.ledger.pending.values())]
        for value in awaited:
            if limits is not None and value is not None and not limits[0] <= value <= limits[1]:
                raise ValueError(f"{policy!r} is for rewards from {limits[0]:g} to {limits[1]:g}, got {value} so far")

    def _changed(self, times: int = 1) -> None:
        self.version += times
        self._law = None

    def apply(self, event: Mapping[str, Any], policy_from: Callable[[Mapping[str, Any]], Policy]) -> None:
        """Take an event from a log; ``policy_from`` finds a policy by its specification."""
        match event["event"]:
            case "decision":
                decision: Decision[Any] = Decision(**{name: event[name] for name in Decision._fields if name in event})
                arm, seen = self.arm_number("arm", event["arm"]), self.seen_before(event)
                context = None if seen is None else seen.context(arm)
                self.decided(Waiting(decision, arm, event["time"], event.get("unit"), context=context), seen)
                self.version = max(self.version, event["version"])
            case "reward" if event.get("part"):
                self.noted(self._pending(event["id"]), self.check_reward(event["reward"]))
            case "reward" | "cancel":
                value = self.check_reward(event["reward"]) if "reward" in event else None
                self.answered(self._pending(event["id"]), value)
            case "expiry":
                for waiting in map(self._pending, event["ids"]):
                    self.answered(waiting, event.get("reward", waiting.so_far), "reward" in event)
            case "correction":
                before = self.ledger.answered.get(event["id"])
                if before is not None:  # else it was answered too long ago to be remembered
                    self.corrected(event["id"], before, self.check_reward(event["reward"]))
            case "late" if event["id"] in self.ledger.answered:
                self.came_late(event["id"], event["reward"])
            case "observation":
                arm, seen = self.arm_number("arm", event["arm"]), self.seen_before(event)
                self.observed(arm, self.check_reward(event["reward"]), seen)
            case "arms":
                self.set_arms(event["arms"], event.get("prior", ()), event.get("reason"))
            case "policy":
                self.set_policy(policy_from(event["after"]))

    def fold(self, events: Iterable[Mapping[str, Any]], policy_from: Callable[[Mapping[str, Any]], Policy]) -> None:
        """Take the events that another process has written; the next random number is the first that they left."""
        for event in events:
            self.apply(event, policy_from)
        self.draws.rewind()

    def _pending(self, number: int) -> Waiting:
        if number not in self.ledger.pending:
            raise ValueError(f"log must be that of this bandit, got the answer of decision {number}")
        return self.ledger.pending[number]

    # What an interrupt breaks off is begun anew: an image is taken before, and put back, as often as need be.

    def drawn(self) -> tuple[int, Any]:
        """What `decided` changes, but for the ledger, where repeating changes nothing."""
        return self.draws.used, self.known.noticed()

    def forget_draws(self, image: tuple[int, Any]) -> None:
        """Put back what `drawn` gave."""
        self.draws.used, noticed = image
        self.known.put_back_noticed(noticed)

    def image(self, arm: int | None, rewards: int = 1) -> tuple[Any, ...]:
        """What learning so many rewards, of one arm or of any, changes, but for the ledger."""
        return self.version, self.known.image(arm, rewards)

    def put_back(self, image: tuple[Any, ...]) -> None:
        """Undo what was learned since the image was taken."""
        self.version, learned = image
        self._law = None
        self.known.put_back(learned)

    def correcting_image(self, rewards: int, late: Iterable[tuple[int, Answer, float]]) -> tuple[Any, ...]:
        """What so many rewards change, of which some take the place of others."""
        answers = {number: before for number, before, _ in late}
        return self.image(None, rewards), self.known.recent.copy(), self.known.largest.copy(), answers

    def put_back_corrected(self, image: tuple[Any, ...]) -> None:
        """Undo corrections: put back what `correcting_image` gave."""
        learned, recent, largest, answers = image
        self.put_back(learned)
        self.known.recent, self.known.largest = recent.copy(), largest.copy()
        self.ledger.answered.update(answers)  # from which all may have to be learned again

    def whole_image(self) -> tuple[Any, ...]:
        """What `set_arms` and `set_policy` change."""
        lists = self.names.copy(), self.index.copy(), self.active.copy(), self.harmful
        return *lists, self.version, self.scale, self.known, self.known.everything()

    def put_back_whole(self, image: tuple[Any, ...]) -> None:
        """Undo a change of arms or of the policy."""
        names, index, active, self.harmful, self.version, scale, known, learned = image
        self.names, self.index, self.active = names.copy(), index.copy(), active.copy()
        self._have(known, scale)
        self._members = self._law = None
        known.set_everything(learned)

    def recount(self) -> None:
        """Make counts right that an interrupt may have left wrong."""
        self.ledger.recount(len(self.names))
        self.draws.rewind()
        self._law = None

    # Arms.

    def arm_number(self, name: str, arm: Hashable) -> int:
        """The number of an arm, which errors call ``name``."""
        try:
            return self.index[arm]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self.names[:20])) + (", ..." if len(self.names) > 20 else "")
            raise ValueError(f"{name} must be one of {known}, got {arm!r}") from None

    def active_names(self) -> list[Any]:
        """The arms that can be chosen."""
        return [name for name, active in zip(self.names, self.active, strict=True) if active]

    def check_floor(self, arms: int) -> None:
        """Raise if so many arms cannot have the probability ``floor`` each."""
        floor, holdout = self.settings.floor, self.settings.holdout
        if floor * arms > 1 - holdout + 1e-12:
            rest = f" beside a holdout of {holdout:g}" if holdout else ""
            raise ValueError(f"floor must be at most {1 - holdout:g}/{arms} for {arms} arms{rest}, got {floor}")

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

    def see(self, context: Any, arm_features: Any, members: I64 | None, before: Seen | None = None) -> Seen | None:
        """A context as a decision among all active arms, or some of them, would see it; see `ContextArms.see`."""
        if isinstance(self.known, ContextArms):
            return self.known.see(context, arm_features, self._members_of(members), self.names, before)
        if context is not None or arm_features is not None:
            what = "arm_features" if context is None else "context"
            raise TypeError(
                f"{what} must be left out: {self.known.policy!r} does not look at it; give the policy an estimator "
                "such as Linear(features)"
            )
        return None

    def features(self) -> Features:
        """What a context has."""
        if isinstance(self.known, ContextArms):
            features: Features = self.known.features
            return features
        raise TypeError(f"contexts must be left out: {self.known.policy!r} does not look at them")

    def seen_before(self, event: Mapping[str, Any]) -> Seen | None:
        """The context of an event of a log, if the policy looks at any."""
        if not isinstance(self.known, ContextArms):
            return None
        if "context" not in event:
            raise ValueError(
                "log must have the contexts of a bandit that looks at them; log_context=False leaves them out"
            )
        among = None
        if event["event"] == "observation":
            among = np.array([self.index[event["arm"]]])
        elif "among" in event:
            among = self.chosen(event["among"])
        return self.known.see_encoded(event["context"], event.get("arm_features"), self._members_of(among))

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
            raise ValueError("every arm is retired; restore or add one")
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

    def draw(self, members: I64 | None, time: float, unit: Unit | None = None, seen: Seen | None = None) -> Waiting:
        """Draw the next decision; nothing has happened before `decided` takes it."""
        return self._draw(members, time, self.ledger.waiting, self.ledger.next_id, unit, seen)

    def draw_several(self, members: I64 | None, time: float, contexts: Sequence[Seen | None]) -> list[Waiting]:
        """Draw several decisions, each in its context and as if those before it had been made."""
        pending, made = self.ledger.waiting.copy(), list[Waiting]()
        for number, seen in enumerate(contexts, start=self.ledger.next_id):
            waiting = self._draw(members, time, pending, number, None, seen)
            pending[waiting.arm] += 1
            made.append(waiting)
        return made

    def _draw(
        self, members: I64 | None, time: float, pending: I64, number: int, unit: Unit | None, seen: Seen | None
    ) -> Waiting:
        law, group = self._law if members is None else None, None
        if law is None:
            law = self._policy_law(members, pending, seen)
        if self.settings.holdout:
            place, chance, group = self._draw_held(law)
        else:
            place = self._place(law.chance, law.heights, self.draws.next())
            chance = law.chance.item(place)
        arm = law.members.item(place)
        decision = Decision(number, self.names[arm], chance, self.known.told + 1, self.version, group, law.error)
        return Waiting(decision, arm, time, unit, context=None if seen is None else seen.context(arm))

    def _draw_held(self, law: Law) -> tuple[int, float, str | None]:
        """A place, its probability, and whether the holdout drew it."""
        u, share, held = self.draws.next(), self.settings.holdout, self._held(law.members)
        if held is None:
            place = draw(law.chance, law.heights, u)
            return place, law.chance.item(place), None
        if u < share:
            place, group = held.item(min(int(u / share * held.size), held.size - 1)), HOLDOUT
        else:
            place, group = draw(law.chance, law.heights, min((u - share) / (1 - share), BELOW_1)), None
        return place, mixed(law, held, share).chance.item(place), group

    def due(self, now: float) -> list[Waiting]:
        """The pending decisions whose window of reward has closed, the oldest first."""
        seconds, due = self.settings.seconds, list[Waiting]()
        if seconds is not None:
            for waiting in self.ledger.pending.values():
                if waiting.time > now:
                    continue  # a clock that went back must not keep all later ones waiting
                if waiting.time + seconds > now:
                    break
                due.append(waiting)
        return due


def mixed(law: Law, held: I64, share: float) -> Law:
    """The probabilities if that share of the decisions is drawn evenly from the places ``held``."""
    chance = (1 - share) * law.chance
    chance[held] += share / held.size
    return law._replace(chance=chance, heights=np.cumsum(chance))
