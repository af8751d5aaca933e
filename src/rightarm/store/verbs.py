"""The verbs of the service: what each request does with a bandit of the store, for `Work`."""

from __future__ import annotations

from typing import Any

import msgspec

from rightarm.live.actions import DUPLICATE
from rightarm.live.ledger import Answered, Decision, Unknown
from rightarm.live.names import distinct
from rightarm.messages import Ask, Change, Choice, Outcome, Tell, Told
from rightarm.messages import Bandit as Described
from rightarm.scores.policy import Policy
from rightarm.store.digests import digest_of
from rightarm.store.errors import Conflict
from rightarm.store.live import Live, by_name

_CHOICES = msgspec.json.Decoder(list[Choice])
_TOLD = msgspec.json.Decoder(Told)


def ask(live: Live, request: Ask) -> list[Choice]:
    """Decide; the same key always gets the same answer."""
    key = request.key
    if key is None:
        return _ask(live, request)
    digest = digest_of(msgspec.json.encode(request, order="sorted"))
    before = live.answered_key("ask", key, digest)
    if before is not None:
        return _CHOICES.decode(before)
    choices = _ask(live, request)
    live.remember_key("ask", key, digest, msgspec.json.encode(choices).decode())
    return choices


def _ask(live: Live, request: Ask) -> list[Choice]:
    live.check("ask")
    bandit, state = live.bandit, live.actions.state
    options: dict[str, Any] = {
        "size": request.size,
        "context": request.context,
        "contexts": request.contexts,
        "arm_features": by_name("arm_features", request.arm_features, state.names),
        "among": request.among,
        "unit": request.unit,
        "meta": request.meta,
    }
    state.version = live.version  # here a decision's version is the number of the event before it
    made: Any = bandit.ask(**options)
    if not isinstance(made, list):
        return [_choice(made)]
    first = live.version - len(made)
    return [_choice(_numbered(live, one, first + place)) for place, one in enumerate(made)]


def _numbered(live: Live, made: Decision[Any], version: int) -> Decision[Any]:
    """One of several decisions that were drawn together, with the number of the event before it as its version."""
    pending, numbered = live.actions.state.ledger.pending, made._replace(version=version)
    pending[made.id] = pending[made.id]._replace(decision=numbered)
    return numbered


def _choice(made: Decision[Any]) -> Choice:
    return Choice(
        decision=made.id,
        arm=made.arm,
        propensity=made.propensity,
        exact=made.exact,
        error=made.error,
        round=made.round,
        version=made.version,
        group=made.group,
    )


def tell(live: Live, rewards: list[Tell]) -> list[Told]:
    """Take rewards, all of them or none."""
    live.check("tell")
    for one in rewards[1:]:
        _look(live, one)
    return [_tell(live, one) for one in rewards]


def _look(live: Live, request: Tell) -> None:
    """Raise if a reward will be refused: once others were learned, the bandit has to be folded again."""
    state, number = live.actions.state, request.decision
    state.check_reward(request.reward)
    known = number is None or number in state.ledger.pending or number in state.ledger.answered
    if number is not None and not known and request.key is None:
        _long_ago(live, number, request.reward)


def _tell(live: Live, request: Tell) -> Told:
    key = request.key
    if key is None:
        return _told(live, request)
    digest = digest_of(msgspec.json.encode(request, order="sorted"))
    before = live.answered_key("tell", key, digest)
    if before is not None:
        told = _TOLD.decode(before)
        told.outcome = DUPLICATE  # type: ignore[assignment]
        return told
    told = _told(live, request)
    live.remember_key("tell", key, digest, msgspec.json.encode(told).decode())
    return told


def _told(live: Live, request: Tell) -> Told:
    number = request.decision
    if number is None and request.correct:
        raise TypeError("correct must be left out: only the reward of a decision can be corrected")
    if number is None or request.arm is not None:
        live.bandit.tell(
            number,  # type: ignore[call-overload]
            request.reward,
            arm=... if request.arm is None else request.arm,
            context=request.context,
            arm_features=by_name("arm_features", request.arm_features, live.actions.state.names),
        )
        return Told(outcome="learned")
    if request.context is not None or request.arm_features is not None:
        raise TypeError("context must be left out: a decision has its context already")
    try:
        outcome = (
            _corrected(live, number, request.reward) if request.correct else _learned(live, number, request.reward)
        )
    except Answered as error:
        raise Conflict(str(error).replace("correct() replaces", '"correct": true replaces'), "reward") from None
    except Unknown:
        outcome = _long_ago(live, number, request.reward)
    return Told(outcome=outcome, decision=number)


def _learned(live: Live, number: int, reward: float) -> Outcome:
    outcome: Outcome = live.actions.tell_one(number, reward)  # type: ignore[assignment]
    return outcome


def _corrected(live: Live, number: int, reward: float) -> Outcome:
    state = live.actions.state
    waiting, value = state.ledger.pending.get(number), state.check_reward(reward)
    if waiting is not None and waiting.so_far == value:
        return "duplicate"
    if waiting is not None:  # nothing was learned before: this is the first
        live.actions.take({number: value})
        return "noted" if state.settings.at_close else "learned"
    return "corrected" if live.bandit.correct(number, reward) else "duplicate"


def _long_ago(live: Live, number: int, reward: float) -> Outcome:
    """A decision that is not in memory: the same reward is a duplicate, and nothing else can be learned."""
    if live.forgotten(number) == live.actions.state.check_reward(reward):
        return "duplicate"
    raise Conflict(f"decision {number} was answered too long ago to be changed", "decision")


def cancel(live: Live, number: int) -> bool:
    """Forget a decision that will have no reward; False if it does not wait for one any more."""
    live.check("tell")
    try:
        return live.bandit.cancel(number)
    except Unknown:
        live.answer(number)
        return False


def change(live: Live, request: Change, policy: Policy | None, by: str) -> Described:
    """Change arms, policy or status; each an event that says who it was."""
    live.pages.by = by
    try:
        if policy is not None:
            live.bandit.change_policy(policy)
        if request.arms is not None:
            _change_arms(live, request)
        elif request.prior is not None:
            raise ValueError("prior must come with arms, of which some are new")
        if request.status is not None and request.status != live.status:
            if live.status == "archived":
                raise Conflict(f"{live.name} is archived, which is for good", "status")
            event = {"event": "status", "status": request.status, "time": live.actions.now()}
            live.pages.write([event])
            live.status = request.status
    finally:
        live.pages.by = None
    return describe(live)


def _change_arms(live: Live, request: Change) -> None:
    state = live.actions.state
    names = distinct(request.arms or [])
    priors = by_name("prior", request.prior, names) or {}
    for name in priors:
        if name in state.index:
            raise ValueError(f"prior must be for new arms, got {name!r}")
    if set(names) != set(state.active_names()):
        live.actions.change_arms(names, [live.actions.prior(names, name, one) for name, one in priors.items()])


def describe(live: Live) -> Described:
    """The bandit as it is now."""
    state, ledger = live.actions.state, live.actions.state.ledger
    active = state.active_names()
    return Described(
        name=live.name,
        status=live.status,
        arms=active,
        retired=[name for name in state.names if name not in active],
        policy=repr(state.known.policy),
        settings=state.settings.as_json(),
        version=live.version,
        decisions=ledger.next_id - ledger.first,
        rewards=state.known.told,
        created=live.created,
    )


def close_windows(live: Live) -> None:
    """Nothing besides what every transaction does first: windows that have closed are learned."""
