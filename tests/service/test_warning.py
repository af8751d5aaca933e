"""A service says that only clicks are told, in every answer about arms, and so does its client."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from serving import listening

import rightarm as ra
from bandits import Clock

SAID = "all 30 rewards are 1 and 870 decisions have none, so arms cannot be compared"
REMEDY = "give the bandit a window with a default of 0 (reward_window=..., default_reward=0)"


def test_only_clicks(sqlite_url: str) -> None:
    with listening(sqlite_url, Clock()) as url, ra.connect(url) as service:
        home = service.create("home", ["a", "b"], reward_range=(0, 1))
        decisions = home.ask(900)
        home.tell([(decision, 1.0) for decision in decisions[:4]])
        assert home.warning == ""
        home.tell([(decision, 1.0) for decision in decisions[4:30]])
        assert home.warning.startswith(SAID)
        assert home.warning.endswith(REMEDY)
        best, difference = home.best(tolerance=0.5), home.difference("a", "b")
        assert best.cost is not None
        assert best.cost <= 0.5
        assert not best.stop
        for found in (best, difference):
            assert found.warning == home.warning
            assert str(found) == f"cannot tell yet: {home.warning}"
        with pytest.warns(UserWarning, match=SAID):
            home.summary()
        answers = {name: httpx.get(f"{url}/bandits/home/{name}").json() for name in ("summary", "best")}
        assert [answer["warning"] for answer in answers.values()] == [home.warning] * 2
        assert answers["best"]["stop"] is False
        assert asyncio.run(awaited(url)) == home.warning
        home.tell(decisions[30], 0.0)
        assert home.warning == home.best().warning == ""
        assert home.best(tolerance=0.5).stop


async def awaited(url: str) -> str:
    async with ra.client.connect_async(url) as service:
        return await service["home"].warning


def test_windows_that_have_closed_are_not_pending(sqlite_url: str) -> None:
    """Also in a read, which changes nothing, before the server has closed them."""
    clock = Clock()
    with listening(sqlite_url, clock) as url, ra.connect(url) as service:
        home = service.create("home", ["a", "b"], reward_range=(0, 1), reward_window=60, default_reward=0.0)
        home.ask(40)
        clock.now += 60
        assert home.summary()["pending"].sum() == 0
        home.ask()
        with pytest.warns(UserWarning, match="no reward other than 0 has come"):
            assert home.summary()["pending"].sum() == 1
        assert home.warning.startswith("no reward other than 0 has come in 40,")
