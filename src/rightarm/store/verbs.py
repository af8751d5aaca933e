"""The verbs of the service: what each request does with a bandit of the store, for `Work`.

Each decides everything first, from the state and the database, and then lets it happen: a request that is refused has
changed nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rightarm.errors import WrongType, WrongValue
from rightarm.live import decide
from rightarm.live.ledger import Answered, Unknown
from rightarm.live.names import distinct
from rightarm.logs.events import Decision
from rightarm.logs.settings import Settings
from rightarm.messages import Ask, Change, Choice, Outcome, Tell, Told
from rightarm.messages import Bandit as Described
from rightarm.scores.policy import Policy
from rightarm.store.errors import Conflict
from rightarm.store.journal import digest_of
from rightarm.store.live import Live, by_name

_CHOICES = msgspec.json.Decoder(list[Choice])
_TOLD = msgspec.json.Decoder(Told)


def ask(live: Live, request: Ask) -> list[Choice]:
    """Decide; the same key always gets the same answer."""
    if request.key is None:
        return [_choice(one) for one in _decided(live, request)]
    digest = digest_of(msgspec.json.encode(request, order="sorted"))
    before = live.answered_key("ask", request.key, digest)
    if before is not None:
        return _CHOICES.decode(before)
    choices = [_choice(one) for one in _decided(live, request)]
    live.remember_key("ask", request.key, digest, msgspec.json.encode(choices).decode())
    return choices


def _decided(live: Live, request: Ask) -> list[Decision[Any]]:
    live.check("ask")
    state = live.state
    features = by_name("arm_features", request.arm_features, state.names)
    members = None if request.among is None else state.chosen(request.among)
    if request.size is not None or request.contexts is not None:
        if request.unit is not None:
            raise WrongType("unit", f"is for one decision, got {request.unit!r} and several")
        if request.context is not None or (request.size is not None and request.contexts is not None):
            raise WrongType("context", "must be left out where size or contexts is given, which exclude each other")
        seen = decide.contexts_of(state, request.size, request.contexts, features, members)
        made = decide.decide_several(state, live.draws, live.now, members, seen, request.meta)
        live.happen(made, seen)
        return made
    before = None if request.unit is None else decide.assigned(state, request.unit, members)
    if before is not None:
        return [before]
    context = state.see(request.context, features, members)
    decision = decide.decide(state, live.draws, live.now, members, context, request.unit, request.meta)
    live.happen([decision], [context])
    return [decision]


def _choice(made: Decision[Any]) -> Choice:
    return Choice(
        decision=made.id,
        arm=made.arm,
        propensity=made.propensity,
        exact=made.error == 0.0,
        error=made.error,
        round=made.round,
        version=made.version,
        time=made.time,
        group=made.group,
    )


def tell(live: Live, rewards: list[Tell]) -> list[Told]:
    """Take rewards, all of them or none."""
    live.check("tell")
    plan = decide.Rewards(live.state, live.now)
    keys = dict[str, tuple[bytes, Told]]()
    try:
        outcomes = [_keyed(live, plan, keys, one) for one in rewards]
        events = plan.checked()
    except Answered as error:
        hint = ': send it with "correct": true' if error.code == "answered" else ""
        raise Conflict(f"{error}{hint}", "reward", error.code) from None
    live.happen(events, plan.seen())
    for key, (digest, told) in keys.items():
        live.remember_key("tell", key, digest, msgspec.json.encode(told).decode())
    live.look_after()
    return outcomes


def _keyed(live: Live, plan: decide.Rewards, keys: dict[str, tuple[bytes, Told]], request: Tell) -> Told:
    """Plan a reward, unless one with its key came before; ``keys`` are those of the same batch."""
    if request.key is None:
        return _told(live, plan, request)
    digest = digest_of(msgspec.json.encode(request, order="sorted"))
    if request.key in keys:
        if keys[request.key][0] != digest:
            raise Conflict(f"key must be a new one for another request, got {request.key!r} again", "key")
        return Told(outcome=decide.DUPLICATE, decision=request.decision)
    before = live.answered_key("tell", request.key, digest)
    if before is not None:
        told = _TOLD.decode(before)
        told.outcome = decide.DUPLICATE
        return told
    told = _told(live, plan, request)
    keys[request.key] = digest, told
    return told


def _told(live: Live, plan: decide.Rewards, request: Tell) -> Told:
    number = request.decision
    if number is None:
        if request.correct:
            raise WrongType("correct", "must be left out: only the reward of a decision can be corrected")
        if request.arm is None:
            raise WrongType("decision", "must be given, or an arm")
        features = by_name("arm_features", request.arm_features, live.state.names)
        return Told(outcome=plan.observe(request.arm, request.reward, request.context, features))
    if request.arm is not None:
        raise WrongType("arm", f"must be left out with a decision, got {request.arm!r} and {number}")
    if request.context is not None or request.arm_features is not None:
        raise WrongType("context", "must be left out: a decision has its context already")
    try:
        outcome = _outcome(live, plan, number, request)
    except Unknown:
        outcome = _long_ago(live, number, request.reward)
    return Told(outcome=outcome, decision=number)


def _outcome(live: Live, plan: decide.Rewards, number: int, request: Tell) -> Outcome:
    """Plan the reward of a decision; where nothing was learned before, a correction is the first reward."""
    if request.correct and not plan.is_open(number):
        return plan.correct(number, request.reward)
    return plan.replace(number, request.reward) if request.correct else plan.tell(number, request.reward)


def _long_ago(live: Live, number: int, reward: float) -> Outcome:
    """Answer for a decision that is not in memory: the same reward is a duplicate, and nothing else can be learned."""
    if live.forgotten(number) == live.state.check_reward(reward):
        return decide.DUPLICATE
    raise Conflict(f"decision {number} was answered too long ago to be changed", "decision")


def cancel(live: Live, number: int) -> bool:
    """Forget a decision that will have no reward; False if it does not wait for one any more."""
    live.check("tell")
    try:
        events = decide.cancel(live.state, number, live.now)
    except Unknown:
        live.answer(number)
        return False
    live.happen(events)
    return bool(events)


def change(live: Live, request: Change, policy: Policy | None, by: str) -> Described:
    """Change arms, policy, settings or status, as one event that says who it was."""
    state = live.state
    names = None if request.arms is None else distinct(request.arms)
    if names is None and request.prior is not None:
        raise WrongValue("prior", "must come with arms, of which some are new")
    settings = {
        name: getattr(request, name)
        for name in Settings.__struct_fields__
        if getattr(request, name, msgspec.UNSET) is not msgspec.UNSET
    }
    prior = None if names is None else by_name("prior", request.prior, names)
    try:
        events = decide.change(
            state, live.now, arms=names, prior=prior, policy=policy, status=request.status, by=by, **settings
        )
    except WrongValue as error:
        if error.code == decide.ARCHIVED:
            raise Conflict(f"{live.name} is archived, which is for good", "status", error.code) from None
        raise
    live.happen(events)
    return describe(live)


def describe(live: Live) -> Described:
    """Return the bandit as it is now."""
    state = live.state
    active = state.active_names()
    return Described(
        name=live.name,
        status=live.status,  # type: ignore[arg-type]
        arms=active,
        retired=[name for name in state.names if name not in active],
        policy=repr(state.known.policy),
        settings=state.settings.plain(),
        version=live.version,
        decisions=state.ledger.next_id - state.ledger.first,
        rewards=state.known.told,
        created=live.created,
    )


def close_windows(live: Live) -> None:
    """Do nothing besides what every transaction does first: windows that have closed are learned."""
