"""Routes in the style of Azure Personalizer, so that its users can move: rank, reward and activate.

A thin layer: actions are arms, an event is a decision with its key, and contexts and features of actions are those of
`rightarm.Bandit`. What is different is said in `docs/service.md`.
"""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, Router, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from msgspec import Meta

from rightarm.messages import MOST_ARMS, Answer, Ask, Key, Message, Tell, Told
from rightarm.service.bandits import answered
from rightarm.service.bodies import arms_by_text, body_of
from rightarm.service.operations import operation
from rightarm.service.problems import Refusal
from rightarm.service.service import Service
from rightarm.store import NotFound, verbs
from rightarm.store.digests import digest_of
from rightarm.store.live import Live

Asked = Request[Any, Any, Any]
Features = list[dict[str, Any]]
ActionId = Annotated[str, Meta(min_length=1, max_length=200)]


class Action(Message, rename="camel"):
    """An arm that can be chosen, with its features."""

    id: ActionId
    features: Features = msgspec.field(default_factory=list)


class Rank(Message, rename="camel"):
    """A wish for a decision among some actions, in a context."""

    actions: Annotated[list[Action], Meta(min_length=1, max_length=MOST_ARMS)]
    context_features: Features = msgspec.field(default_factory=list)
    excluded_actions: list[ActionId] = msgspec.field(default_factory=list)
    event_id: Key | None = None
    defer_activation: bool = False


class Ranked(Answer, rename="camel"):
    """An action and the probability that it had."""

    id: str
    probability: float


class Ranking(Answer, rename="camel"):
    """The decision: the action that was chosen comes first, and the others by their probabilities."""

    ranking: list[Ranked]
    event_id: str
    reward_action_id: str


class Reward(Message):
    """The reward of an event."""

    value: float
    correct: bool = False
    """Whether this reward takes the place of another one."""


RANK = msgspec.json.Decoder(Rank)
REWARD = msgspec.json.Decoder(Reward)
RANKING = msgspec.json.Decoder(Ranking)


def rank(live: Live, wanted: Rank) -> Ranking:
    """Decide; the same event gets the same answer."""
    event = uuid.uuid4().hex if wanted.event_id is None else wanted.event_id
    request = digest_of(msgspec.json.encode(wanted, order="sorted"))
    before = live.answered_key("rank", event, request)
    if before is not None:
        return RANKING.decode(before)
    if wanted.defer_activation:
        raise ValueError("deferActivation must be false: here every decision counts, and cancel takes one back")
    context, features, among = _question(live, wanted)
    chances = live.bandit.probabilities(context, arm_features=features, among=among)
    [choice] = verbs.ask(live, Ask(context=context, arm_features=_by_text(features), among=among))
    known = {str(arm): chance for arm, chance in (chances | {choice.arm: choice.propensity}).items()}
    made = _ranking(wanted, event, str(choice.arm), known)
    live.remember_key("rank", event, request, msgspec.json.encode(made).decode())
    live.remember_key("event", event, digest_of(event), str(choice.decision))
    return made


def _question(live: Live, wanted: Rank) -> tuple[dict[str, Any] | None, dict[Any, Any] | None, list[Any]]:
    """Context, features of arms, and the arms that may be chosen."""
    arms, excluded = arms_by_text(live.bandit.arms), set(wanted.excluded_actions)
    possible = [action for action in wanted.actions if action.id not in excluded]
    if not possible:
        raise ValueError(f"excludedActions must leave an action, got all of {len(wanted.actions)}")
    if len({action.id for action in wanted.actions}) < len(wanted.actions):
        raise ValueError(f"actions must differ, got one of {len(wanted.actions)} twice")
    for action in possible:
        if action.id not in arms:
            raise ValueError(f"actions must be arms of {live.name}, which PATCH adds, got {action.id!r:.200}")
    features = {arms[action.id]: merged(action.features) for action in possible if action.features}
    context = merged(wanted.context_features) if wanted.context_features else None
    return context, features or None, [arms[action.id] for action in possible]


def _by_text(features: dict[Any, Any] | None) -> dict[str, Any] | None:
    return None if features is None else {str(arm): values for arm, values in features.items()}


def _ranking(wanted: Rank, event: str, chosen: str, chances: dict[str, float]) -> Ranking:
    order = sorted(wanted.actions, key=lambda action: (action.id != chosen, -chances.get(action.id, 0.0)))
    ranking = [Ranked(id=action.id, probability=chances.get(action.id, 0.0)) for action in order]
    return Ranking(ranking=ranking, event_id=event, reward_action_id=chosen)


def merged(features: Features) -> dict[str, Any]:
    """A list of objects with features as one; an object within, a namespace, gives its features its name.

    >>> merged([{"hour": 9}, {"user": {"device": "phone"}}])
    {'hour': 9, 'user.device': 'phone'}
    """
    return {name: value for each in features for name, value in _flat(each, "")}


def _flat(features: dict[str, Any], before: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in features.items():
        found += _flat(value, f"{before}{name}.") if isinstance(value, dict) else [(before + name, value)]
    return found


def decision_of(live: Live, event: str) -> int:
    """The decision of an event."""
    known = live.answered_key("event", event, digest_of(event))
    if known is None:
        raise NotFound(f"there is no event {event!r:.200} of {live.name}", "eventId")
    return int(known)


# The routes.


@post("/bandits/{name:str}/rank", opt=operation("ask", Ranking, body=Rank, made=True, conflicts=True))
async def rank_route(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Response[bytes]:
    """Decide among actions, as Azure Personalizer's rank does: the chosen one comes first."""
    wanted = await body_of(request, RANK)
    made = await service.commit(name, lambda live: rank(live, wanted))
    service.metrics.decisions[name] += 1
    return answered(made, 201)


@post(
    "/bandits/{name:str}/events/{event:str}/reward",
    status_code=200,
    opt=operation("tell", Told, body=Reward, conflicts=True),
)
async def reward_route(
    request: Asked, service: NamedDependency[Service], name: FromPath[str], event: FromPath[str]
) -> Response[bytes]:
    """The reward of the decision that rank made for an event."""
    wanted, known = await body_of(request, REWARD), check_event(event)

    def tell(live: Any) -> list[Told]:
        reward = Tell(decision=decision_of(live, known), reward=wanted.value, correct=wanted.correct)
        return verbs.tell(live, [reward])

    [told] = await service.commit(name, tell)
    service.metrics.rewards[name, told.outcome] += 1
    return answered(told)


class Activated(Answer, rename="camel"):
    """Whether an event counts."""

    activated: bool


@post("/bandits/{name:str}/events/{event:str}/activate", status_code=200, opt=operation("tell", Activated))
async def activate_route(
    service: NamedDependency[Service], name: FromPath[str], event: FromPath[str]
) -> Response[bytes]:
    """An event counts from the moment of its rank on, so that this changes nothing."""
    known = check_event(event)
    await service.read(name, lambda live: decision_of(live, known))
    return answered(Activated(activated=True))


def check_event(event: str) -> str:
    """The id of an event, if it can be one."""
    if "\0" in event or len(event) > 200:
        raise Refusal(
            422, f"eventId must be at most 200 characters, none of them U+0000, got {event!r:.120}", "eventId"
        )
    return event


def personalizer_router() -> Router:
    """The routes of this module."""
    return Router("/", route_handlers=[rank_route, reward_route, activate_route])
