"""The client against a real service: it does what `Bandit` does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import rightarm as ra
from rightarm.client import RemoteService
from rightarm.store import open_store
from service_process import serving


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('store')}/home.db") as address:
        yield address


@pytest.fixture
def service(url: str) -> Iterator[RemoteService]:
    with ra.connect(url) as found:
        yield found


def test_the_service_decides_as_a_bandit_with_the_same_seed(service: RemoteService) -> None:
    settings: dict[str, Any] = {"reward_range": (0, 1), "floor": 0.05, "holdout": 0.1, "control": "red"}
    home = service.create("same", ["red", "green", 3], ra.BoltzmannGumbel(C=0.1), seed=5, **settings)
    model = ra.Bandit(["red", "green", 3], ra.BoltzmannGumbel(C=0.1), seed=5, **settings)
    for i in range(40):
        options: dict[str, Any] = {"allowed": ["red", 3]} if i % 3 == 0 else {}
        mine, theirs = home.ask(**options), model.ask(**options)
        assert mine == theirs
        assert home.tell(mine, i % 2) is model.tell(theirs, i % 2) is True
        if i == 0:
            for found, known in ((home.best(), model.best()), (home.difference("red", 3), model.difference("red", 3))):
                assert (str(found), found.lacking) == (str(known), known.lacking)
    waiting, theirs = home.ask(3), model.ask(3)
    assert [one.id for one in waiting] == [one.id for one in theirs]
    assert home.tell([(one, 1.0) for one in waiting]) == model.tell([(one, 1.0) for one in theirs]) == [True] * 3
    assert home.correct(waiting[0], 0.0) is model.correct(theirs[0], 0.0) is True
    last, other = home.ask(), model.ask()
    assert [home.cancel(last), home.cancel(last)] == [model.cancel(other), model.cancel(other)] == [True, False]
    assert home.tell(arm=3, reward=0.5) is model.tell(arm=3, reward=0.5) is True
    assert home.probabilities() == pytest.approx(model.probabilities(), rel=1e-12)
    assert home.summary().equals(model.summary())
    assert str(home.difference("red", 3)) == str(model.difference("red", 3))
    found, known = home.best(tolerance=0.5), model.best(tolerance=0.5)
    assert (found.leader, found.stop, str(found)) == (known.leader, known.stop, str(known))


def test_a_refund_within_a_window_and_a_moment_told_by_mistake(service: RemoteService) -> None:
    settings: dict[str, Any] = {"reward_window": 1e6, "learn": "at close", "default_reward": 0.0}
    home, model = (
        service.create("refunds", ["a"], ra.UCB(C=0.5), seed=1, **settings),
        ra.Bandit(["a"], ra.UCB(C=0.5), seed=1, **settings),
    )
    mine, theirs = home.ask(), model.ask()
    assert home.tell(mine, 1.0) is model.tell(theirs, 1.0) is True
    assert home.correct(mine, 0.0) is model.correct(theirs, 0.0) is True
    assert home.correct(mine, 0.0) is model.correct(theirs, 0.0) is False
    stamped, right = service.create("stamped", ["a", "b"], seed=1), ra.Bandit(["a", "b"], seed=1)
    made = stamped.ask(30), right.ask(30)
    for i, (one, other) in enumerate(zip(*made, strict=True)):
        stamped.tell(one, 1794956542 if i == 4 else i / 30)
        right.tell(other, 0.2 if i == 4 else i / 30)
    assert stamped.correct(made[0][4], 0.2) is True
    assert stamped.probabilities() == pytest.approx(right.probabilities(), rel=1e-12)
    assert stamped.summary().equals(right.summary())


def test_contexts_and_features_of_arms(service: RemoteService) -> None:
    policy = ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(["hour"], arm_features=["price"]))
    home, model = service.create("offers", ["a", "b"], policy, seed=1), ra.Bandit(["a", "b"], policy, seed=1)
    features = {"a": {"price": 1.0}, "b": {"price": 2.0}}
    for hour in range(5):
        asked: dict[str, Any] = {"context": {"hour": hour}, "arm_features": features}
        mine, theirs = home.ask(**asked), model.ask(**asked)
        assert mine == theirs
        home.tell(mine, hour / 5)
        model.tell(theirs, hour / 5)
    later: dict[str, Any] = {"contexts": {"hour": [1, 2]}, "arm_features": np.array([[1.0], [2.0]])}
    several, known = home.ask(**later), model.ask(**later)
    assert [one.propensity for one in several] == [one.propensity for one in known]
    with pytest.raises(ValueError, match="hour is required"):
        home.ask(context={}, arm_features=features)


def test_keys_and_units_are_the_same_decision(service: RemoteService) -> None:
    home = service.create("sticky", ["a", "b"])
    assert home.ask(unit="visitor 17") == home.ask(unit="visitor 17")
    first = home.ask(key="once")
    assert home.ask(key="once") == first != home.ask(key="twice")
    with pytest.raises(ValueError, match=r"key must be a new one .* \(status 409\)"):
        home.ask(key="once", allowed=["a"])
    assert [home.tell(first, 1.0), home.tell(first, 1.0)] == [True, False]
    assert [home.tell(arm="a", reward=1.0, key="k"), home.tell(arm="a", reward=1.0, key="k")] == [True, False]
    assert home.summary()["pulls"].sum() == 2


def test_changes(service: RemoteService) -> None:
    home = service.create("changing", ["a", "b"], "UCB(C=0.5)")
    home.add_arm("c", prior=(0.5, 10))
    assert home.arms == ["a", "b", "c"]
    home.retire_arm("a")
    home.replace_arm("b", "d")
    assert (set(home.arms), home.describe().retired) == ({"c", "d"}, ["a", "b"])
    home.restore_arm("a")
    assert set(home.arms) == {"a", "c", "d"}
    home.change(policy=ra.ScaledGumbel())
    assert home.policy == "ScaledGumbel()"
    home.pause()
    with pytest.raises(ValueError, match=r"changing is paused: it does not ask now \(status 409\)"):
        home.ask()
    home.resume()
    assert home.ask().arm in home.arms
    kinds = [event["event"] for event in home.events()]
    assert kinds.count("change") == 7
    assert home.events(after=home.version - 1)[0]["event"] == "decision"
    assert sum(hour.decisions for hour in home.history()) == 1


def test_errors(service: RemoteService) -> None:
    home = service.create("errors", ["a", "b"], reward_range=(0, 1))
    decision = home.ask()
    home.tell(decision, 1.0)
    refused: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: service["nobody"].ask(), LookupError, "there is no bandit nobody"),
        (lambda: home.tell(12345, 1.0), LookupError, "decision 12345 was never made"),
        (lambda: home.tell(decision, 0.0), ValueError, "409"),
        (lambda: home.tell(home.ask(), 2.0), ValueError, "reward must be from 0"),
        (lambda: home.ask(allowed=["x"]), ValueError, "allowed must be"),
        (lambda: service.create("errors", ["a", "c"]), ValueError, "errors is there already"),
        (lambda: service.create("wrong", ["a", "b"], "os.system('x')"), ValueError, "policy"),
    ]
    for call, kind, text in refused:
        with pytest.raises(kind, match=text):
            call()
    assert service.create("errors", ["a", "b"], reward_range=(0, 1)).arms == ["a", "b"]
    assert "errors" in list(service)
    assert "wrong" not in list(service)


class Forgetful(httpx.HTTPTransport):
    """Delivers every request, and loses the first answer to each."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = set[tuple[str, str, bytes]]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        this = request.method, str(request.url), request.content
        if this in self.seen:
            return answer
        self.seen.add(this)
        answer.read()
        answer.close()
        raise httpx.ReadError("the connection was cut")


def test_nothing_counts_twice_if_every_answer_is_lost_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with ra.connect(url, transport=Forgetful()) as service:
        home = service.create("lost", ["a", "b"], repeated="sum", reward_window=3600.0, learn="at once")
        decisions = [home.ask() for _ in range(10)] + home.ask(10)
        assert len({decision.id for decision in decisions}) == 20
        for decision in decisions[:10]:
            home.tell(decision, 1.0)
            home.tell(decision, 1.0)  # another purchase
        home.tell([(decision, 1.0) for decision in decisions[10:]])
        home.tell(arm="a", reward=1.0)
        found = home.describe()
        assert found.decisions == 20
        rewards = [event for event in home.events() if "reward" in event]
        assert len(rewards) == 10 + 10 + 10 + 1
        assert home.summary()["pulls"].sum() == 21


def test_the_same_awaited(url: str) -> None:
    async def visits() -> list[float]:
        async with ra.client.connect_async(url) as service:
            home = await service.create("awaited", ["a", "b"])
            decisions = await asyncio.gather(*(home.ask(unit=f"visitor {i}") for i in range(50)))
            told = await asyncio.gather(*(home.tell(decision, 1.0) for decision in decisions))
            assert told == [True] * 50
            assert "awaited" in [name async for name in service]
            return (await home.summary())["pulls"].to_list()

    with pytest.warns(UserWarning, match="all 50 rewards are 1"):
        assert sum(asyncio.run(visits())) == 50


def test_tokens_are_needed_once_there_are_some(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/home.db"
    opened = open_store(store)
    admin, shop = opened.tokens.add("admin", "admin"), opened.tokens.add("shop", "ask,tell", "shop-*")
    opened.close()
    with serving(store) as url:
        for wrong in (None, "ra_0123456789abcdef_" + "x" * 43):
            with pytest.raises(PermissionError, match=r"token.*\(status 401\)"):
                ra.connect(url, wrong)["shop-home"].ask()
        ra.connect(url, admin).create("shop-home", ["a", "b"])
        home = ra.connect(url, shop)["shop-home"]
        assert home.tell(home.ask(), 1.0) is True
        for call in (home.describe, ra.connect(url, shop)["blog"].ask, ra.connect(url, admin)["shop-home"].ask):
            with pytest.raises(PermissionError, match=r"the token must have the scope \w+ for [\w-]+ \(status 403\)"):
                call()


def test_arms_are_compared_in_a_segment(service: RemoteService) -> None:
    policy = ra.BoltzmannGumbel(
        C=0.1, estimator=ra.estimators.Linear(ra.estimators.Features(categories={"device": ["phone", "desktop"]}))
    )
    home = service.create("segments", ["red", "blue"], policy, reward_range=(0, 1))
    for place in range(40):
        home.tell(home.ask(context={"device": ["phone", "desktop"][place % 2]}), place % 2)
    everywhere, phones = home.difference("red", "blue"), home.difference("red", "blue", where={"device": "phone"})
    assert "device = phone" in str(phones)
    assert "device = phone" not in str(everywhere)
    with pytest.raises(ValueError, match="where"):
        home.difference("red", "blue", where={"device": "watch"})
