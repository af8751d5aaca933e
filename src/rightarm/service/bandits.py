"""Routes that make, show and change bandits."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, Router, get, patch, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath

from rightarm import messages
from rightarm.live import Bandit
from rightarm.scores.policy import Policy
from rightarm.service.access import Caller
from rightarm.service.bodies import arms_by_text, body_of
from rightarm.service.operations import JSON, operation
from rightarm.service.policies import blamed, check_size, with_estimator
from rightarm.service.service import Service
from rightarm.service.warm import warm_up
from rightarm.store import verbs

Asked = Request[Any, Any, Any]
DEFINITION = msgspec.json.Decoder(messages.Definition)
CHANGE = msgspec.json.Decoder(messages.Change)
CANCEL = msgspec.json.Decoder(messages.Cancel)
QUESTION = msgspec.json.Decoder(messages.Question)


def answered(answer: Any, status: int = 200) -> Response[bytes]:
    """An answer as JSON."""
    return Response(msgspec.json.encode(answer), status_code=status, media_type=JSON)


def caller_of(request: Asked) -> Caller:
    """Who makes the request."""
    caller: Caller = request.scope["state"]["caller"]
    return caller


def by(request: Asked) -> str:
    """Who makes the request, as changes of a bandit have it: the id of a token and its label."""
    caller = caller_of(request)
    return caller.id if caller.token is None else f"{caller.id} {caller.token.label}"


@get("/bandits", opt=operation("read", messages.Names))
async def names(request: Asked, service: NamedDependency[Service]) -> Response[bytes]:
    """The names of the bandits that the token may read."""
    caller, found = caller_of(request), await service.in_thread(service.store.bandits)
    return answered(messages.Names(bandits=[name for name in found if caller.allows("read", name)]))


@put(
    "/bandits/{name:str}",
    opt=operation("admin", messages.Bandit, body=messages.Definition, made=True, conflicts=True),
)
async def make(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Response[bytes]:
    """Make a bandit: 201. If it is there already, made of just this: 200; made of something else: 409."""
    wanted = await body_of(request, DEFINITION)
    policy = await service.in_thread(_compiled, service, wanted.policy, wanted.estimator, len(wanted.arms))
    work = service.store.create(name, wanted, policy, by(request))
    new = await service.commit(work)
    return answered(await service.read(name, verbs.describe), 201 if new else 200)


def _compiled(service: Service, policy: str | None, estimator: str | None, arms: int) -> Policy:
    """The policy of that text, compiled here and not where decisions would wait for it."""
    return _warm("policy", service.policies.read(policy, estimator, arms))


def _warm(field: str, policy: Policy) -> Policy:
    """The policy, compiled; if it decides nothing, the field is to blame that it came from."""
    blamed(field, lambda: warm_up(Bandit(["a", "b"], policy, seed=0)))
    return policy


@get("/bandits/{name:str}", opt=operation("read", messages.Bandit))
async def show(service: NamedDependency[Service], name: FromPath[str]) -> Response[bytes]:
    """A bandit as it is now: arms, policy, settings, and how many decisions and rewards it has had."""
    return answered(await service.read(name, verbs.describe))


@patch("/bandits/{name:str}", opt=operation("admin", messages.Bandit, body=messages.Change, conflicts=True))
async def change(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Response[bytes]:
    """Change arms, policy or status; the events have who did it and when."""
    wanted, who = await body_of(request, CHANGE), by(request)
    policy = await _changed_policy(service, name, wanted)
    return answered(await service.commit(name, lambda live: verbs.change(live, wanted, policy, who)))


async def _changed_policy(service: Service, name: str, wanted: messages.Change) -> Policy | None:
    """The policy that is to decide from now on, if that is another one."""
    if wanted.policy is None and wanted.estimator is None and wanted.arms is None:
        return None
    present, arms = await service.read(name, lambda live: (live.bandit.policy, list(live.actions.state.names)))
    count = len({*arms, *(wanted.arms or ())})  # retired ones keep what is known of them
    if wanted.policy is not None:
        return await service.in_thread(_compiled, service, wanted.policy, wanted.estimator, count)
    policy = present if wanted.estimator is None else with_estimator(present, wanted.estimator)
    check_size(policy, count)
    return None if wanted.estimator is None else await service.in_thread(_warm, "estimator", policy)


@post(
    "/bandits/{name:str}/cancel",
    status_code=200,
    opt=operation("tell", messages.Cancelled, body=messages.Cancel, conflicts=True),
)
async def cancel(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Response[bytes]:
    """Forget a decision that will have no reward."""
    wanted = await body_of(request, CANCEL)
    waited = await service.commit(name, lambda live: verbs.cancel(live, wanted.decision))
    return answered(messages.Cancelled(cancelled=waited))


@post(
    "/bandits/{name:str}/probabilities",
    status_code=200,
    opt=operation("read", messages.Probabilities, body=messages.Question),
)
async def probabilities(request: Asked, service: NamedDependency[Service], name: FromPath[str]) -> Response[bytes]:
    """The probability of every arm in the next decision; nothing is decided."""
    wanted = await body_of(request, QUESTION)
    return answered(await service.read(name, lambda live: _probabilities(live, wanted)))


def _probabilities(live: Any, wanted: messages.Question) -> messages.Probabilities:
    given, arms = wanted.arm_features, arms_by_text(live.bandit.arms)
    features = None if given is None else {arms.get(name, name): values for name, values in given.items()}
    found = live.bandit.probabilities(wanted.context, arm_features=features, among=wanted.among)
    chances = [messages.Chance(arm=arm, probability=chance) for arm, chance in found.items()]
    return messages.Probabilities(probabilities=chances, version=live.version)


def bandits_router() -> Router:
    """The routes of this module."""
    return Router("/", route_handlers=[names, make, show, change, cancel, probabilities])
