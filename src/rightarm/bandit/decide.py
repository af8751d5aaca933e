"""From a state and a request to the event that follows: everything is checked here, and nothing changes.

`Bandit` and the store append what these functions return to a journal and apply it to the state. A request that is
refused has changed nothing, so there is nothing to undo. `rightarm.bandit.rewards` does the same for rewards.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypedDict, Unpack, cast

import msgspec
import numpy as np

from rightarm.bandit import answers
from rightarm.bandit.context_arms import ArmFeatures, EncodedContext
from rightarm.bandit.ledger import AnyDecision, check_unit, distinct
from rightarm.bandit.state import State
from rightarm.errors import WrongType, WrongValue
from rightarm.formula import check_count, check_number, difference
from rightarm.logs.events import EXACT, LARGEST_WHOLE, Changed, Created, Decision, Event, Prior, Status, Unit
from rightarm.logs.settings import Late, Learn, Repeated, Settings, check_seconds
from rightarm.policies.inputs import LARGEST
from rightarm.policies.policy import Policy
from rightarm.types import I64

LARGEST_META = 10_000  # bytes of JSON
ARCHIVED: Status = "archived"
GUARDED = 20  # rewards after which the guardrail is looked at again, or 5% of all

STREAM = (2017,)  # users may draw their rewards from default_rng(seed): decisions must not use the same numbers
BLOCK = 64  # random numbers that are made at once
STEPS = BLOCK // 4  # of the generator's counter: each gives four numbers
KEY_BITS = 128
CHANCE_BITS = 31  # of the first id, so many are by chance
ZERO_BITS = 21  # and so many are zeros; ids stay below 2^53, which JSON keeps exactly

Meta = dict[str, Any]
Priors = Mapping[Any, "PriorLike | None"]
PriorLike = Sequence[float] | tuple[Literal["like"], Hashable, float]
"""A mean and a number of rewards, and their variance if there is a third number; or "like", another arm, a number."""


class SettingOptions(TypedDict, total=False):
    """The settings of a bandit, as keywords; `rightarm.Bandit` says what each is."""

    reward_range: tuple[float, float] | None
    floor: float
    reward_window: float | timedelta | None
    default_reward: float | None
    learn: Learn
    repeated: Repeated
    late: Late
    control: Hashable
    holdout: float


class ChangeOptions(SettingOptions, total=False):
    """The settings that `Bandit.change` can change."""

    guardrail: float | None


def names_and_priors(arms: Iterable[Any]) -> tuple[list[Any], Priors | None]:
    """Return the names of arms, and the priors of those that have one, where arms are a mapping to them."""
    names = distinct(arms)
    return names, dict(zip(names, arms.values(), strict=True)) if isinstance(arms, Mapping) else None


def create(
    arms: Sequence[Any],
    policy: Policy,
    settings: Settings,
    *,
    prior: Priors | None,
    first_id: int,
    now: float,
    by: str | None = None,
) -> tuple[Created, State]:
    """Return the first event of a bandit, and the state after it."""
    if not arms:
        raise WrongValue("arms", "must name at least one arm, got none")
    specification = policy.specification()
    event = Created(time=now, arms=list(arms), policy=specification, settings=settings, first_id=first_id, by=by)
    state = State(lambda specification: policy)
    state.apply(event)
    priors = _priors(state, arms, prior)
    if not priors:
        return event, state
    event = msgspec.structs.replace(event, prior=priors)
    state = State(lambda specification: policy)
    state.apply(event)
    return event, state


# Decisions.


class Draws:
    """Uniform numbers below 1, the n-th of which depends on a secret key and n alone.

    They are the numbers of NumPy's Philox generator with that key, in their order. So there is no state to save, to
    take back or to give away, and whoever has the key can draw every decision again.

    >>> draws = Draws(key=17)
    >>> same = np.random.Generator(np.random.Philox(key=17)).random(200)
    >>> [draws.number(n) == same.item(n) for n in (0, 199, 63, 64)]
    [True, True, True, True]
    """

    def __init__(self, key: int) -> None:
        self.key = key
        self._block: tuple[int, list[float]] = (-1, [])

    def number(self, n: int) -> float:
        """Return the n-th number, from 0 on."""
        block = n // BLOCK
        number, numbers = self._block
        if number != block:
            generator = np.random.Generator(np.random.Philox(key=self.key, counter=block * STEPS))
            numbers = generator.random(BLOCK).tolist()
            self._block = block, numbers
        return numbers[n % BLOCK]


def new_key(seed: int | None = None) -> int:
    """Return the key that belongs to a seed, or one by chance without a seed."""
    if seed is None:
        return secrets.randbits(KEY_BITS)
    low, high = np.random.SeedSequence(seed, spawn_key=STREAM).generate_state(2, np.uint64).tolist()
    return int(low) | int(high) << 64


def new_first_id(seed: int | None = None) -> int:
    """Return the id of a bandit's first decision: 1 with a seed, else one that no other bandit has used."""
    if seed is not None:
        return 1
    return 1 + (secrets.randbits(CHANCE_BITS) << ZERO_BITS)


def decide(
    state: State,
    draws: Draws,
    now: float,
    members: I64 | None = None,
    context: EncodedContext | None = None,
    *,
    unit: Unit | None = None,
    meta: Meta | None = None,
    place: int = 0,
    pending: Sequence[int] | None = None,
) -> AnyDecision:
    """Draw a decision, among ``members`` if given, in a context if the policy looks at any.

    In a batch it comes after ``place`` others, with so many decisions ``pending`` of each arm. ``meta`` must have been
    checked by `check_meta`.
    """
    if state.status != "running":
        raise WrongValue("status", f"is {state.status}: the bandit decides nothing now", code=state.status)
    ledger = state.ledger
    number = ledger.next_id + place
    counts = ledger.pending_counts if pending is None else pending
    drawn = state.draw(members, context, counts, draws.number(number - ledger.first))
    return Decision(
        id=number,
        arm=state.names[drawn.arm],
        propensity=drawn.propensity,
        round=state.arms.learned + 1,
        version=state.events + place,
        group=drawn.group,
        error=drawn.error or EXACT,
        unit=unit,
        allowed=None if members is None else [state.names[i] for i in members],
        meta=meta,
        context=None if context is None else context.encoded.tolist(),
        arm_features=None if context is None or context.arm_features is None else context.arm_features.tolist(),
        time=now,
    )


def decide_several(
    state: State,
    draws: Draws,
    now: float,
    members: I64 | None,
    contexts: Sequence[EncodedContext | None],
    *,
    meta: Meta | None = None,
) -> list[AnyDecision]:
    """Draw a decision for each of some contexts, each as if those before it had been made."""
    pending = state.ledger.pending_counts.copy()
    made = list[AnyDecision]()
    for place, context in enumerate(contexts):
        decision = decide(state, draws, now, members, context, meta=meta, place=place, pending=pending)
        pending[state.index[decision.arm]] += 1
        made.append(decision)
    return made


def encode_several(
    state: State, size: int | None, contexts: object, arm_features: ArmFeatures | None, members: I64 | None
) -> list[EncodedContext | None]:
    """Return several contexts in numbers, each after those before it; or none, ``size`` times."""
    if size is not None:
        if isinstance(size, Mapping):
            raise WrongType("size", f"must be a number of decisions; a context is context=, got {size!r:.200}")
        return [state.encode(None, arm_features, members)] * check_count("size", size)
    found = list[EncodedContext | None]()
    for row in state.features().encode_many(contexts):
        found.append(state.encode(row, arm_features, members, found[-1] if found else None))
    return found


def assigned(state: State, unit: object, members: I64 | None) -> AnyDecision | None:
    """Return the decision that was made for a unit, if it still stands."""
    decision = state.ledger.units.get(check_unit(unit))
    if decision is None:
        return None
    arm = state.index[decision.arm]
    if not state.active[arm] or (members is not None and arm not in members):
        return None
    return decision


def check_meta(meta: object) -> Meta:
    """Return a copy of ``meta`` if it is a JSON object that a log can have."""
    if not isinstance(meta, Mapping):
        raise WrongType("meta", f"must be a mapping, got {meta!r:.200}")
    plain = dict(meta)
    try:
        text = json.dumps(plain, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:  # a set, NaN, half a surrogate pair, a list in itself
        raise WrongValue("meta", f"must be JSON, got {plain!a:.200}: {error}") from None
    if len(text) > LARGEST_META:
        raise WrongValue("meta", f"must be at most {LARGEST_META:,} bytes of JSON, got {len(text):,}")
    copy: Meta = json.loads(text)
    if copy != plain:  # a tuple, or a number for a key
        raise WrongValue("meta", f"must be JSON, with texts for keys and lists for sequences, got {plain!r:.200}")
    return copy


def check_names(names: Iterable[Hashable]) -> None:
    """Raise if a log could not have the name of an arm."""
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


# Arms, policy, settings, status.


def change(
    state: State,
    now: float,
    *,
    arms: Sequence[Hashable] | None = None,
    prior: Priors | None = None,
    policy: Policy | None = None,
    status: Status | None = None,
    reason: str | None = None,
    by: str | None = None,
    **settings: Unpack[ChangeOptions],
) -> list[Event]:
    """Return the event that changes a bandit, after it was tried on a copy; none if everything is so already."""
    names = None if arms is None else _in_order(state, arms, settings.get("control", state.settings.control))
    if names is not None and set(names) == set(state.active_names()):
        names = None
    priors = _priors(state, arms or (), prior)
    for one in priors:
        if one.arm in state.index:
            raise WrongValue("prior", f"must be for new arms, got {one.arm!r}")
    event = Changed(
        time=now,
        arms=names,
        prior=priors,
        policy=None if policy is None or _has_policy(state, policy) else policy.specification(),
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


def _has_policy(state: State, policy: Policy) -> bool:
    return difference(policy, state.specification) is None


def _in_order(state: State, arms: Sequence[Hashable], control: Hashable | None) -> list[Any]:
    """Return arms in the order in which they first came, as a decision has the features of its arms."""
    if control is not None and control not in arms:
        raise WrongValue("arms", f"must have the control: {control!r} cannot be retired", code="control")
    return sorted(arms, key=lambda name: state.index.get(name, len(state.names)))


def _other_settings(before: Settings, options: ChangeOptions) -> dict[str, Any]:
    """Return, as JSON has them, those settings that are not what they were."""
    given = cast("dict[str, Any]", options)
    if given.get("reward_window") is not None:
        given["reward_window"] = check_seconds("reward_window", given["reward_window"], above=0.0)
    after = before.changed(**given)
    found = {name: getattr(after, name) for name in given if getattr(after, name) != getattr(before, name)}
    if found.get("reward_range") is not None:
        found["reward_range"] = list(found["reward_range"])  # as JSON has it
    return found


def _other_status(state: State, status: Status | None) -> Status | None:
    if status is None or status == state.status:
        return None
    if status not in ("running", "paused", "archived"):
        raise WrongValue("status", f"must be 'running', 'paused' or 'archived', got {status!r}")
    return status


def _priors(state: State, names: Sequence[Hashable], given: Priors | None) -> list[Prior]:
    """Return the rewards that arms start from, for those of these arms that start from any."""
    return [_prior_of(state, names, arm, one) for arm, one in (given or {}).items() if one is not None]


def _prior_of(state: State, names: Sequence[Hashable], arm: Hashable, prior: Any) -> Prior:
    """Return the rewards that an arm starts from, given in any of the ways that `Bandit.add_arm` takes."""
    if arm not in names:
        raise WrongValue("prior", f"must be for some of the arms, got {arm!r}")
    state.arms.check_prior()
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
        learned = state.arms.learned
        if budget is None or learned < self.next:
            return []
        harmful = answers.harmful(state, budget)
        if not harmful:
            self.next = learned + max(GUARDED, learned // GUARDED)
            return []
        names = [name for name in state.active_names() if name not in harmful]
        reason = f"{', '.join(map(str, harmful))}: worse than the control by more than {budget:g}"
        return change(state, now, arms=names, reason=reason)
