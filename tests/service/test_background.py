"""What the server does by itself."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import sqlite3
import time

import pytest

from rightarm.messages import Ask, Definition
from rightarm.policies import UCB
from rightarm.service import background
from rightarm.service.background import LATEST, Ratios, Windows, load, repeat
from rightarm.service.monitoring import ServiceLog
from rightarm.service.service import Service
from rightarm.store import Commits, Damaged, Store, open_store


class Clock:
    now = 1e9

    def __call__(self) -> float:
        return self.now


def made(url: str, clock: Clock) -> tuple[Store, Service]:
    store = open_store(url, clock=clock)
    definition = Definition(arms=["a", "b"], reward_window=60, default_reward=0.0)
    store.do(store.create("home", definition, UCB(C=0.5), "me"))
    store.do(store.create("plain", Definition(arms=["a", "b"]), UCB(C=0.5), "me"))
    return store, Service(Commits(store), log=ServiceLog(io.StringIO()))


def kinds(store: Store, name: str) -> list[str]:
    return [json.loads(line)["event"] for line in store.events(name)]


def test_windows_are_closed_once_when_they_are_due(sqlite_url: str) -> None:
    clock = Clock()
    store, service = made(sqlite_url, clock)
    store.do("home", lambda live: live.ask(Ask()))
    for seconds, expected in ((30, 0), (31, 1), (1, 1)):
        clock.now += seconds
        windows = Windows()
        asyncio.run(windows.close(service))
        assert kinds(store, "home").count("expiry") == expected
    assert windows.next["plain"] > time.time() + LATEST - 10  # it has none now
    service.close()


def test_loading_warms_up_and_writes_nothing(sqlite_url: str) -> None:
    store, service = made(sqlite_url, Clock())
    before, heard = kinds(store, "home"), list[str]()
    asyncio.run(load(service, lambda: heard.append("started")))
    assert (service.ready, heard, kinds(store, "home")) == (True, ["started"], before)
    service.close()


def test_the_ratio_of_arms_is_watched(sqlite_url: str) -> None:
    store, service = made(sqlite_url, Clock())
    store.do("plain", lambda live: live.ask(Ask(size=20)))
    asyncio.run(Ratios().look(service))
    assert b'rightarm_sample_ratio_e_value{bandit="plain"} ' in service.metrics.text()
    service.close()


def test_a_damaged_bandit_does_not_keep_others_waiting(sqlite_url: str) -> None:
    store, service = made(sqlite_url, Clock())
    service.close()
    with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as file:
        file.execute("DELETE FROM snapshots")
        file.execute("UPDATE events SET line = replace(line, 'time', 'tine') WHERE bandit = 1 AND n = 1")
    log = io.StringIO()
    store = open_store(sqlite_url, clock=Clock())
    service = Service(Commits(store), log=ServiceLog(log))
    asyncio.run(load(service, lambda: None))
    asyncio.run(Windows().close(service))
    assert service.ready
    assert store.do("plain", lambda live: live.version) == 1
    service.close()
    service.log.close()
    assert "home: event 1 is not as it was written" in log.getvalue()


def test_an_event_that_is_gone_is_damage_that_is_said(sqlite_url: str) -> None:
    store, service = made(sqlite_url, Clock())
    [choice] = store.do("home", lambda live: live.ask(Ask()))
    service.close()  # which writes a snapshot
    assert not service.log._thread.is_alive()
    with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as file:
        file.execute("DELETE FROM events WHERE bandit = 1 AND n = 2")
    log = io.StringIO()
    store = open_store(sqlite_url, clock=Clock())
    service = Service(Commits(store), log=ServiceLog(log))
    asyncio.run(asyncio.wait_for(load(service, lambda: None), 20))
    with pytest.raises(Damaged, match="event 2 is not there any more"):
        store.decision("home", choice.decision)
    service.close()
    assert "home cannot be used: event 2 is not there any more" in log.getvalue()


def test_what_fails_in_the_background_is_said_and_done_again(sqlite_url: str) -> None:
    log, calls = io.StringIO(), list[int]()
    service = Service(Commits(open_store(sqlite_url)), log=ServiceLog(log))

    async def play() -> None:
        often = asyncio.Event()

        async def function(service: Service) -> None:
            calls.append(1)
            if len(calls) == 3:
                often.set()
            raise ZeroDivisionError("a defect")

        task = asyncio.create_task(repeat(service, 0.0, function))
        await asyncio.wait([task, asyncio.create_task(often.wait())], return_when=asyncio.FIRST_COMPLETED)
        task.cancel()

    asyncio.run(play())
    service.close()
    service.log.close()
    assert len(calls) >= 3
    assert "ZeroDivisionError('a defect')" in log.getvalue()


def test_loading_is_tried_again_whatever_was_wrong(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    errors, heard = [KeyError("a defect")], list[str]()
    _, service = made(sqlite_url, Clock())
    monkeypatch.setattr(background, "WINDOWS", 0.0)

    def warm(live: object) -> None:
        if errors:
            raise errors.pop()

    monkeypatch.setattr(background, "warm_up", warm)
    asyncio.run(load(service, lambda: heard.append("started")))
    assert (service.ready, heard) == (True, ["started"])
    service.close()
