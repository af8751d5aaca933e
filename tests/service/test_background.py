"""What the server does by itself."""

from __future__ import annotations

import asyncio
import io
import json

from rightarm.messages import Ask, Definition
from rightarm.policies import UCB
from rightarm.service.background import Ratios, Windows, load
from rightarm.service.journal import Journal
from rightarm.service.service import Service
from rightarm.store import Commits, Store, open_store, verbs


class Clock:
    now = 1e9

    def __call__(self) -> float:
        return self.now


def made(url: str, clock: Clock) -> tuple[Store, Service]:
    store = open_store(url, clock=clock)
    definition = Definition(arms=["a", "b"], window_of_reward=60, default=0.0)
    store.do(store.create("home", definition, UCB(C=0.5), "me"))
    store.do(store.create("plain", Definition(arms=["a", "b"]), UCB(C=0.5), "me"))
    return store, Service(Commits(store), journal=Journal(io.StringIO()))


def kinds(store: Store, name: str) -> list[str]:
    return [json.loads(line)["event"] for line in store.events(name)]


def test_windows_are_closed_once_when_they_are_due(sqlite_url: str) -> None:
    clock = Clock()
    store, service = made(sqlite_url, clock)
    store.do("home", lambda live: verbs.ask(live, Ask()))
    for seconds, expected in ((30, 0), (31, 1), (1, 1)):
        clock.now += seconds
        windows = Windows()
        asyncio.run(windows.close(service))
        assert kinds(store, "home").count("expiry") == expected
    assert windows.next["plain"] == float("inf")  # it has none
    service.close()


def test_loading_warms_up_and_writes_nothing(sqlite_url: str) -> None:
    store, service = made(sqlite_url, Clock())
    before, heard = kinds(store, "home"), list[str]()
    asyncio.run(load(service, lambda: heard.append("started")))
    assert (service.ready, heard, kinds(store, "home")) == (True, ["started"], before)
    service.close()


def test_the_ratio_of_arms_is_watched(sqlite_url: str) -> None:
    store, service = made(sqlite_url, Clock())
    store.do("plain", lambda live: verbs.ask(live, Ask(size=20)))
    asyncio.run(Ratios().look(service))
    assert service.metrics.e_values["plain"] > 0
    assert b'rightarm_sample_ratio_e_value{bandit="plain"}' in service.metrics.text()
    service.close()
