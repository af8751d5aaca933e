"""Everything that can happen to a live bandit: checked first, then written and done, wholly or not at all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rightarm.formula import check_number, difference
from rightarm.live import answers
from rightarm.live.changes import Changes
from rightarm.live.contextual import Seen
from rightarm.live.fold import State
from rightarm.live.folder import Folder
from rightarm.live.ledger import Answer, Decision, Unit, Waiting
from rightarm.logs.events import Event, answer_event, check_arm_name
from rightarm.scores.policy import Policy
from rightarm.scores.rewards import LARGEST
from rightarm.types import I64

LEARNED, NOTED, DUPLICATE, CORRECTED, LATE = "learned", "noted", "duplicate", "corrected", "late"  # rewards
GUARDED = 20  # rewards after which the guardrail is looked at again, or 5% of all


class Actions(Changes):
    """What `rightarm.Bandit` lets happen, without its locks; each method is one action."""

    def __init__(self, state: State, clock: Callable[[], float]) -> None:
        super().__init__(state)
        if not callable(clock):
            raise TypeError(f"clock must be a function that gives seconds, got {clock!r}")
        self.clock = clock
        self.folder: Folder | None = None
        self.next_guard = 0  # the number of rewards at which the guardrail is looked at again

    def now(self) -> float:
        """The time, in seconds since 1970."""
        now = self.clock()
        return now if type(now) is float and math.isfinite(now) else check_number("clock", now)

    # Decisions.

    def decide(
        self,
        made: list[Waiting],
        members: I64 | None,
        meta: Mapping[str, Any] | None,
        seen: Sequence[Seen | None],
    ) -> None:
        """Make decisions that were drawn, among ``members`` if given, each in its context."""
        state, rows = self.state, list(zip(made, seen, strict=True))
        self.make(state.forget_draws, state.drawn(), state.decided, rows, _decisions, state, rows, members, meta)
        if self.folder is not None:
            self.count()

    def assigned(self, unit: Unit, members: I64 | None) -> Decision[Any] | None:
        """The decision that was made for a unit, if it still stands."""
        state = self.state
        waiting = state.ledger.units.get(unit)
        if waiting is None or not state.active[waiting.arm] or (members is not None and waiting.arm not in members):
            return None
        return waiting.decision

    # Rewards.

    def tell_arm(self, arm: Hashable, reward: Any, context: Any, arm_features: Any) -> bool:
        """Learn a reward of an arm that belongs to no decision."""
        state = self.state
        number, value = state.arm_number("arm", arm), state.check_reward(reward)
        members = np.array([number])
        seen = state.see(context, arm_features, members)
        state.known.rehearse([(number, state.scaled(value), 1.0)])

        def events() -> list[Event]:
            told = {"event": "observation", "arm": state.names[number], "reward": value, "time": self.now()}
            return [told | _context(state, seen)]

        self.make(state.put_back, state.image(number), state.observed, [(number, value, seen)], events)
        self.count()
        return True

    def tell_one(self, decision: Any, reward: Any) -> str:
        """Take the reward of a decision, and say what became of it."""
        state = self.state
        ledger = state.ledger
        number, value = ledger.number_of(decision), state.check_reward(reward)
        waiting = ledger.pending.get(number)
        if waiting is None or state.settings.window_of_reward is not None:
            return self.tell_batch([(number, value)])[0]
        self.answer([(waiting, value)])
        return LEARNED

    def tell_batch(self, pairs: Iterable[Any]) -> list[str]:
        """Take pairs of decisions and rewards, all or none, and say what became of each."""
        state, now = self.state, self.now()
        ledger, settings, told, late = state.ledger, state.settings, dict[int, float](), dict[int, float]()
        outcomes = list[str]()
        for answer in pairs:
            try:
                decision, reward = answer
            except (TypeError, ValueError):
                raise TypeError(f"a batch is pairs of decision and reward, got {answer!r}") from None
            number, value = ledger.number_of(decision), state.check_reward(reward)
            waiting, answered = ledger.pending.get(number), ledger.answered.get(number)
            if answered is not None and answered.time is not None and settings.is_late(answered.time, now):
                known = late.get(number, answered.reward if answered.late is None else answered.late)
                outcomes.append(DUPLICATE if value == known else LATE)
                if value != known:
                    late[number] = value
                continue
            if number in told:
                before: float | None = told[number]
            elif answered is not None:
                before = None if answered.silent and settings.seconds is not None else answered.reward
            else:
                before = waiting.so_far if waiting is not None else None
            if settings.seconds is None:
                if waiting is None or number in told:
                    ledger.check_again(number, value, before)
                    outcomes.append(DUPLICATE)
                    continue
            else:
                value = self._combined(before, value)
            taken = CORRECTED if waiting is None else NOTED if settings.at_close else LEARNED
            outcomes.append(taken if value != before else DUPLICATE)
            told[number] = value
        self.take(told)
        self._keep_late(late)
        return outcomes

    def _keep_late(self, late: Mapping[int, float]) -> None:
        """Keep rewards that came too late to be learned."""
        if late:
            now = self.now()
            events = [{"event": "late", "id": number, "reward": value, "time": now} for number, value in late.items()]
            self.make(_nothing, None, self.state.came_late, list(late.items()), lambda: events)

    def _combined(self, before: float | None, reward: float) -> float:
        """The reward of a decision when another one comes, if it can be learned."""
        value = self.state.settings.combined(before, reward)
        try:
            return self.state.check_reward(value)
        except ValueError as error:
            raise ValueError(f"{error}, the sum of {before} and {reward}") from None

    def take(self, told: Mapping[int, float]) -> None:
        """Take rewards of decisions: of pending ones now or when their window closes, of others as corrections."""
        state = self.state
        pending, answered, at_close = state.ledger.pending, state.ledger.answered, state.settings.at_close
        waits = [(pending[number], value) for number, value in told.items() if number in pending]
        waits = [(one, value) for one, value in waits if one.so_far != value]  # else it is noted already
        late = [(number, answered[number], value) for number, value in told.items() if number not in pending]
        late = [(number, before, value) for number, before, value in late if before.reward != value]
        if not late and (not at_close or not waits):
            self.answer(waits)
            return
        self._check_late(late)
        lessons = [] if at_close else [(one.arm, value, one.decision.propensity) for one, value in waits]
        self._rehearse([*lessons, *((before.arm, value, before.propensity) for _, before, value in late)])

        def events() -> list[Event]:
            now, part = self.now(), {"part": True} if at_close else {}
            corrections = [
                {"event": "correction", "id": number, "reward": value, "time": now} for number, _, value in late
            ]
            return corrections + [answer_event(one.decision.id, value, now) | part for one, value in waits]

        step = state.noted if at_close else state.answered
        rows = [(state.corrected, *one) for one in late] + [(step, *one) for one in waits]
        image = state.correcting_image(len(rows), late)
        self.make(state.put_back_corrected, image, _call, rows, events)
        self.count()

    def _check_late(self, late: Sequence[tuple[int, Answer, float]]) -> None:
        """Raise if an answer cannot be replaced."""
        for number, before, _ in late:
            if before.arm < 0:
                raise ValueError(f"decision {number} cannot be corrected: an earlier version of rightarm answered it")
            if before.reward is not None:
                self.state.known.check_correction()
        if late:
            self.state.check_corrections(late)

    def _rehearse(self, lessons: Iterable[tuple[int, float | None, float]]) -> None:
        """Raise if the policy cannot learn these rewards of arms that were chosen with these propensities."""
        if self.state.known.remembers:
            scaled = self.state.scaled
            self.state.known.rehearse([(arm, scaled(r), chance) for arm, r, chance in lessons if r is not None])

    def answer(self, answers: Sequence[tuple[Waiting, float | None]]) -> None:
        """Close pending decisions, with their rewards or, where that is None, without."""
        state = self.state
        if not answers:
            return
        if state.known.remembers:
            self._rehearse((one.arm, reward, one.decision.propensity) for one, reward in answers)
        only = answers[0][0].arm if len(answers) == 1 else None
        image = state.image(only, len(answers))
        self.make(state.put_back, image, state.answered, answers, self._answers, answers)
        if self.folder is not None or state.settings.guardrail is not None:
            self.count()

    def _answers(self, answers: Sequence[tuple[Waiting, float | None]]) -> list[Event]:
        now = self.now()
        return [answer_event(one.decision.id, reward, now) for one, reward in answers]

    def close_windows(self, now: float) -> None:
        """Learn the decisions whose window of reward has closed."""
        state = self.state
        due = state.due(now)
        if not due:
            return
        default = state.settings.default
        silent = default is not None  # else the decision ends as a cancelled one does, also when a log is read
        rows = [(one, default, silent) if one.so_far is None else (one, one.so_far, False) for one in due]
        self._rehearse((one.arm, reward, one.decision.propensity) for one, reward, _ in rows)

        def events() -> list[Event]:
            groups = [(silent, list(some)) for silent, some in itertools.groupby(due, lambda one: one.so_far is None)]
            given = {} if default is None else {"reward": default}
            return [
                {"event": "expiry", "ids": [one.decision.id for one in some], "time": now} | (given if silent else {})
                for silent, some in groups
            ]

        self.make(state.put_back, state.image(None, len(rows)), state.answered, rows, events)
        self.count()

    # Arms.

    def set_active(self, arm: int, active: bool) -> None:
        """Retire an arm, or bring it back."""
        state = self.state
        flags = state.active.copy()
        if flags[arm] != active:
            flags[arm] = active
            self.change_arms([name for name, flag in zip(state.names, flags, strict=True) if flag])

    def change_arms(
        self,
        names: Sequence[Hashable],
        priors: Sequence[tuple[Any, ...]] = (),
        *,
        reason: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Let these arms be chosen and no others, and say so in the log, which begins with the settings.

        The log has them in the order in which they first came, as a decision has the features of its arms.
        """
        state = self.state
        names = sorted(names, key=lambda name: state.index.get(name, len(state.names)))
        if state.settings.control is not None and state.settings.control not in names:
            raise ValueError(f"the control, {state.settings.control!r}, cannot be retired")
        state.check_floor(len(names))
        if self.log is not None:
            for name in names:
                check_arm_name("arm", name)
        if priors:
            state.known.check_prior()

        def events() -> list[Event]:
            extra: dict[str, Any] = {"prior": [list(row) for row in priors]} if priors else {}
            extra |= {} if reason is None else {"reason": reason}
            now = self.now()
            first = [] if settings is None else [{"event": "settings", "settings": settings, "time": now}]
            return [*first, {"event": "arms", "arms": names, "time": now} | extra]

        self.make(state.put_back_whole, state.whole_image(), state.set_arms, [(names, priors, reason)], events)
        self.count()

    def prior(self, names: Sequence[Hashable], arm: Hashable, prior: Any) -> tuple[Hashable, float, float, float]:
        """A prior as name, mean, number and variance of rewards."""
        state = self.state
        if arm not in names:
            raise ValueError(f"prior must be for some of the arms, got {arm!r}")
        if isinstance(prior, Sequence) and len(prior) == 3 and prior[0] == "like":
            if prior[1] not in state.index:
                raise ValueError(f"prior must be like an arm that has rewards, got {prior[1]!r}")
            other, pulls = state.index[prior[1]], prior[2]
            counts, means, spreads = state.lifetime()
            if not counts[other]:
                raise ValueError(f"prior must be like an arm that has rewards, got {prior[1]!r}")
            low, high = state.reward_range or (-LARGEST, LARGEST)
            mean, variance = min(max(means.item(other), low), high), spreads.item(other) / counts.item(other)
        elif isinstance(prior, Sequence) and not isinstance(prior, str) and len(prior) in (2, 3):
            mean, pulls, variance = [*prior, 0.0][:3]
        else:
            raise ValueError(f"prior must be a mean and a number of rewards, or ('like', arm, number), got {prior!r}")
        numbers = state.check_reward(mean), check_number("prior", pulls), check_number("prior", variance)
        if numbers[1] <= 0 or numbers[2] < 0:
            raise ValueError(f"prior must have a positive number of rewards, and no negative variance, got {prior!r}")
        return arm, *numbers

    def change_policy(self, policy: Policy) -> bool:
        """Let another policy decide from now on, with what was learned so far; False if it is the same one."""
        state, before = self.state, self.state.known.policy.specification()
        if difference(policy, before) is None:
            return False
        image = state.whole_image()
        state.set_policy(policy)  # which refuses what does not carry over
        state.put_back_whole(image)

        def events() -> list[Event]:
            return [{"event": "policy", "before": before, "after": policy.specification(), "time": self.now()}]

        self.make(state.put_back_whole, image, state.set_policy, [(policy,)], events)
        return True

    def count(self) -> None:
        """Look whether the guardrail has to be looked at, or a snapshot is due."""
        state = self.state
        if state.settings.guardrail is not None and state.known.told >= self.next_guard:
            self.next_guard = state.known.told + max(GUARDED, state.known.told // GUARDED)
            for arm in answers.harmful(state, state.settings.guardrail):
                reason = f"worse than the control by more than {state.settings.guardrail:g}"
                self.change_arms([name for name in state.active_names() if name != arm], reason=f"{arm}: {reason}")
        if self.folder is not None and self.log is not None:
            self.folder.look(state, self.log)


def _decisions(
    state: State, made: list[tuple[Waiting, Seen | None]], members: I64 | None, meta: Mapping[str, Any] | None
) -> list[Event]:
    """The events of decisions."""
    extra: dict[str, Any] = {} if members is None else {"among": [state.names[i] for i in members]}
    if meta is not None:
        extra["meta"] = dict(meta)
    return [waiting.as_event() | extra | _context(state, seen) for waiting, seen in made]


def _context(state: State, seen: Seen | None) -> dict[str, Any]:
    """What events say of a context."""
    if seen is None or not state.settings.log_context:
        return {}
    arms = {} if seen.arm_features is None else {"arm_features": seen.arm_features.tolist()}
    return {"context": seen.encoded.tolist()} | arms


def _nothing(image: None) -> None:
    """There is nothing to put back: keeping a reward twice is keeping it once."""


def _call(function: Callable[..., None], *arguments: Any) -> None:
    function(*arguments)
