"""The two requests that must be quick, ask and tell: answered before Litestar, whose routing takes as long again."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from rightarm import messages
from rightarm.service.bodies import decoded
from rightarm.service.problems import Refusal
from rightarm.service.service import Service
from rightarm.store import verbs

ENCODER = msgspec.json.Encoder()
ASK: msgspec.json.Decoder[messages.Ask] = msgspec.json.Decoder(messages.Ask)
TELL: msgspec.json.Decoder[messages.Tell] = msgspec.json.Decoder(messages.Tell)
TELLS: msgspec.json.Decoder[messages.Tells] = msgspec.json.Decoder(messages.Tells)


class _Whether(msgspec.Struct):
    rewards: msgspec.Raw = msgspec.Raw()


SEVERAL = msgspec.json.Decoder(_Whether)


async def ask(service: Service, name: str, body: bytes) -> bytes:
    """Decide: one arm, or ``size`` of them, or one for each of several contexts; written before it is answered."""
    wanted = decoded(ASK, body or b"{}")
    made = await service.commit(name, lambda live: verbs.ask(live, wanted))
    service.metrics.decisions[name] += len(made)
    if wanted.size is None and wanted.contexts is None:
        return ENCODER.encode(made[0])
    return ENCODER.encode(messages.Choices(decisions=made))


async def tell(service: Service, name: str, body: bytes) -> bytes:
    """Learn the reward of a decision, or several rewards, all or none; each counts once however often it is sent."""
    several = b'"rewards"' in body and decoded(SEVERAL, body).rewards != b""
    rewards = decoded(TELLS, body).rewards if several else [decoded(TELL, body)]
    told, delays = await service.commit(name, lambda live: _told(live, rewards))
    for one in told:
        service.metrics.rewards[name, one.outcome] += 1
    for seconds in delays:
        service.metrics.delayed(name, seconds)
    return ENCODER.encode(messages.ToldAll(rewards=told) if several else told[0])


def _told(live: Any, rewards: list[messages.Tell]) -> tuple[list[messages.Told], list[float]]:
    """What became of rewards, and how long after their decisions those came that were awaited."""
    now = time.time()
    made = [live.bandit.waiting_since(each.decision) for each in rewards if each.decision is not None]
    return verbs.tell(live, rewards), [now - at for at in made if at is not None]


Quick = Callable[[Service, str, bytes], Awaitable[bytes]]
QUICK: dict[str, tuple[str, Quick]] = {"ask": ("ask", ask), "tell": ("tell", tell)}
"""By the last part of the path: the scope that is needed, and what answers."""


def quick_route(path: str) -> tuple[str, str] | None:
    """The name of the bandit and the verb, if a path is ``/bandits/{name}/ask`` or ``/tell``.

    >>> quick_route("/bandits/home/ask"), quick_route("/bandits/home/summary")
    (('home', 'ask'), None)
    """
    parts = path.split("/")
    if len(parts) == 4 and not parts[0] and parts[1] == "bandits" and parts[3] in QUICK:
        return parts[2], parts[3]
    return None


def check_method(method: str) -> None:
    """Raise unless a quick route is posted to."""
    if method != "POST":
        raise Refusal(405, f"the method must be POST, got {method:.20}", None, {"allow": "POST"})
