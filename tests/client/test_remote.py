"""The client by itself: what it sends, how it reads answers, when it tries again. A made-up transport answers."""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import msgspec
import numpy as np
import polars as pl
import pytest

import rightarm as ra
from rightarm.client import ServiceError
from rightarm.client.service_requests import FIRST_PAUSE, LONGEST_PAUSE, Lost, Reply, ServiceRequest, with_retries
from rightarm.logs.events import Decision
from rightarm.messages import Ask, Change, Definition, Tell
from rightarm.store import open_store

URL = "http://service.test/prefix"
CHOICE: dict[str, Any] = {
    "decision": 7,
    "arm": "red",
    "propensity": 0.5,
    "exact": True,
    "error": 0.0,
    "round": 3,
    "version": 9,
}
CHOICE["time"] = 1.0
BANDIT = {
    **{"name": "home", "status": "running", "arms": ["red", 2], "retired": ["old"], "policy": "UCB(C=0.5)"},
    **{"settings": {}, "version": 12, "decisions": 5, "rewards": 4, "created": 1.0},
}


class Clock:
    now = 1e9

    def __call__(self) -> float:
        return self.now


class Recorder:
    """Answers what it is told to, by the last part of the path, and keeps the requests."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.requests = answers, list[httpx.Request]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        last = request.url.path.rpartition("/")[2]
        return httpx.Response(200, json=self.answers[last])

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests if request.content]

    def service(self, **options: Any) -> ra.client.RemoteService:
        return ra.connect(URL, transport=httpx.MockTransport(self), **options)


DECISION: Decision[Any] = Decision(id=7, arm="red", propensity=0.5, round=3, version=9, time=1.0)


def test_ask_sends_all_that_it_is_given_and_gives_decisions() -> None:
    recorder = Recorder(ask=CHOICE)
    home = recorder.service(token="ra_1_2")["home"]
    options: dict[str, Any] = {"context": {"hour": np.float64(9)}, "allowed": ("red", 2), "unit": "v", "meta": {"a": 1}}
    assert home.ask(**options, arm_features={"red": np.array([1.0]), 2: [2]}, key="k") == DECISION
    assert home.ask().exact
    request, (body, made) = recorder.requests[0], recorder.bodies
    assert (request.method, str(request.url)) == ("POST", f"{URL}/bandits/home/ask")
    assert request.headers["Authorization"] == "Bearer ra_1_2"
    assert body == {
        **{"context": {"hour": 9.0}, "allowed": ["red", 2], "unit": "v", "meta": {"a": 1}, "key": "k"},
        "arm_features": {"red": [1.0], "2": [2]},
    }
    assert made.keys() == {"key"}
    assert len(made["key"]) == 32


@pytest.mark.parametrize(
    "contexts",
    [
        [{"hour": 9}, {"hour": 10}],
        {"hour": [9, 10]},
        pl.DataFrame({"hour": [9, 10]}),
    ],
)
def test_several_decisions(contexts: Any) -> None:
    recorder = Recorder(ask={"decisions": [CHOICE, CHOICE | {"group": "holdout", "error": 0.1}]})
    home = recorder.service()["home"]
    others = msgspec.structs.replace(DECISION, group="holdout", error=0.1)
    assert home.ask(contexts=contexts) == home.ask(2) == [DECISION, others]
    first, second = recorder.bodies
    assert (first["contexts"], second["size"]) == ([{"hour": 9}, {"hour": 10}], 2)
    assert first["key"] != second["key"]


def test_a_table_of_features_goes_to_the_arms_in_their_order() -> None:
    recorder = Recorder(ask=CHOICE, home=BANDIT)
    home = recorder.service()["home"]
    home.ask(arm_features=np.array([[1.0], [2.0]]))
    home.ask(arm_features=[[3.0]], allowed=[2])
    assert [body["arm_features"] for body in recorder.bodies] == [{"red": [1.0], "2": [2.0]}, {"2": [3.0]}]
    with pytest.raises(ValueError, match="arm_features must have a row for each of 2 arms, got 1 rows"):
        home.ask(arm_features=[[3.0]])


def test_tell_has_the_forms_of_a_bandit() -> None:
    recorder = Recorder(tell={"outcome": "learned"})
    home = recorder.service()["home"]
    assert home.tell(DECISION, 1) is home.tell(7, True) is home.tell("7", np.float64(1)) is True
    assert home.tell(arm=2, reward=0.5, context=[1.0], key="k") is True
    assert home.correct(DECISION, 0.0) is True
    *told, arm, corrected = recorder.bodies
    assert [body | {"key": ""} for body in told] == [{"reward": 1.0, "decision": 7, "key": ""}] * 3
    assert len({body["key"] for body in told}) == 3
    assert arm == {"reward": 0.5, "arm": 2, "context": [1.0], "key": "k"}
    assert len(corrected.pop("key")) == 32  # sent again after another correction, it must not undo that one
    assert corrected == {"reward": 0.0, "decision": 7, "correct": True}
    recorder.answers["tell"] = {"outcome": "duplicate"}
    assert (home.tell(7, 1.0), home.correct(7, 1.0)) == (False, False)


def test_tell_answers_as_a_bandit_does(sqlite_url: str) -> None:
    """Whatever becomes of a reward: noted, learned, told before, too late."""
    clock = Clock()
    store = open_store(sqlite_url, clock=clock)
    for late in ("keep", "correct"):
        options: dict[str, Any] = {"reward_window": 60.0, "learn": "at close", "late": late, "seed": 1}
        bandit = ra.Bandit(["a", "b"], ra.UCB(C=0.5), clock=clock, **options)
        store.do(store.create(late, Definition(arms=["a", "b"], **options), ra.UCB(C=0.5), "me"))
        decision = bandit.ask()
        store.do(late, lambda live: live.ask(Ask()))
        outcomes, answers = list[str](), list[bool]()
        for seconds, reward in ((0, 1.0), (0, 1.0), (0, 0.5), (61, 0.25), (0, 0.25), (0, 0.75)):
            clock.now += seconds
            tell = Tell(decision=decision.id, reward=reward)
            [told] = store.do(late, lambda live, tell=tell: live.tell([tell]))  # type: ignore[misc]
            home = Recorder(tell={"outcome": told.outcome}).service()["home"]
            answers.append(bandit.tell(decision, reward))
            assert home.tell(decision, reward) is answers[-1], told.outcome
            outcomes.append(told.outcome)
        assert ("late" in outcomes, "corrected" in outcomes) == (late == "keep", late == "correct")
        assert True in answers
        assert False in answers
    store.close()


def test_a_batch_is_one_request() -> None:
    recorder = Recorder(tell={"rewards": [{"outcome": "learned"}, {"outcome": "duplicate"}]})
    home = recorder.service()["home"]
    assert home.tell([(DECISION, 1.0), (8, 0.0)]) == home.tell({7: 1.0, "8": 0.0}) == [True, False]
    assert home.tell([]) == []
    for body in recorder.bodies:
        assert [(row["decision"], row["reward"]) for row in body["rewards"]] == [(7, 1.0), (8, 0.0)]
        assert body["rewards"][0]["key"] != body["rewards"][1]["key"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda home: home.tell(), "tell takes either a decision or arm=, got neither"),
        (lambda home: home.tell(7, 1.0, arm="a"), "tell takes either a decision or arm="),
        (lambda home: home.tell(7.5, 1.0), "decision must be a Decision or its id, got 7.5"),
        (lambda home: home.tell(7, float("nan")), "reward must be"),
        (lambda home: home.ask(context={"x": float("inf")}), "JSON"),
        (lambda home: home.ask(allowed="red"), "allowed must be several arms, got 'red'"),
        (lambda home: home.ask(meta={"x": object()}), "a service can be sent what JSON knows"),
        (lambda home: home.add_arm("old"), "arms must differ, got 'old' again"),
        (lambda home: home.retire_arm("new"), "arm must be one of .*, got 'new'"),
        (lambda home: home.replace_arm("red", "old"), "by must be a new arm, got 'old'"),
    ],
)
def test_what_is_wrong_is_said_before_it_is_sent(call: Callable[[Any], Any], error: str) -> None:
    recorder = Recorder(home=BANDIT)
    with pytest.raises((TypeError, ValueError), match=error):
        call(recorder.service()["home"])
    assert all(request.method == "GET" for request in recorder.requests)


def test_arms_and_changes() -> None:
    recorder = Recorder(home=BANDIT)
    home = recorder.service()["home"]
    assert (home.arms, home.policy, home.version, home.status) == (["red", 2], "UCB(C=0.5)", 12, "running")
    home.add_arm("new", prior=(0.5, 10))
    home.retire_arm(2)
    home.restore_arm("old")
    home.replace_arm("red", "crimson")
    home.change(policy=ra.BoltzmannGumbel(C=0.1))
    home.change(policy="UCB(C=1)", estimator=ra.estimators.Linear(["hour"]))
    home.pause()
    home.resume()
    home.archive()
    assert recorder.bodies == [
        {"arms": ["red", 2, "new"], "prior": {"new": [0.5, 10]}},
        {"arms": ["red"]},
        {"arms": ["red", 2, "old"]},
        {"arms": ["crimson", 2]},
        {"policy": repr(ra.BoltzmannGumbel(C=0.1))},
        {"policy": "UCB(C=1)", "estimator": "Linear(['hour'])"},
        *({"status": status} for status in ("paused", "running", "archived")),
    ]


def test_settings_change_and_null_is_not_absent() -> None:
    recorder = Recorder(home=BANDIT)
    home = recorder.service()["home"]
    home.change(floor=0.1, default_reward=None, reward_window=timedelta(minutes=1))
    assert recorder.bodies == [{"floor": 0.1, "default_reward": None, "reward_window": 60.0}]
    read = msgspec.json.decode(recorder.requests[0].content, type=Change)
    assert (read.floor, read.default_reward, read.control) == (0.1, None, msgspec.UNSET)
    with pytest.raises(TypeError, match="change takes the settings of a bandit, got flor"):
        home.change(flor=0.1)  # type: ignore[call-arg]


def test_reads() -> None:
    difference = {
        "arm": "a",
        "other": "b",
        "estimate": 0.1,
        "low": None,
        "high": 1.0,
        "confidence": 0.9,
        "kind": "bounded",
    }
    recorder = Recorder(
        difference=difference | {"better": None, "text": "cannot tell yet", "later": "a field of a later version"},
        probabilities={"probabilities": [{"arm": "red", "probability": 0.25}, {"arm": 2, "probability": 0.75}]}
        | {"version": 3},
        cancel={"cancelled": True},
        bandits={"bandits": ["home", "shop"]},
    )
    service = recorder.service()
    home = service["home"]
    found = home.difference("a", 2, confidence=0.9)
    assert found == ra.inference.Difference("a", "b", 0.1, -math.inf, 1.0, 0.9, "bounded")
    said = str(found)
    assert (found.better, said.startswith("cannot tell yet: a − b is between – and 1")) == (None, True), said
    assert dict(recorder.requests[0].url.params) == {"arm": "a", "other": "2", "confidence": "0.9"}
    assert home.probabilities({"hour": 3}, allowed=["red", 2]) == {"red": 0.25, 2: 0.75}
    assert home.cancel(DECISION) is True
    assert list(service) == ["home", "shop"]
    assert "shop" in service


def test_create_sends_the_settings_of_a_bandit() -> None:
    recorder = Recorder(home=BANDIT)
    service = recorder.service()
    home = service.create("home", ["red", 2], ra.UCB(C=0.5), reward_window=timedelta(minutes=1), prior={2: (0.1, 3)})
    assert repr(home) == f"<RemoteBandit 'home' of {URL}>"
    service.create("home", ["red", 2], floor=0.1, estimator="Linear(['hour'])")
    first, second = recorder.bodies
    expected = {"arms": ["red", 2], "policy": "UCB(C=0.5)", "reward_window": 60.0, "prior": {"2": [0.1, 3]}}
    assert first == expected
    assert second == {"arms": ["red", 2], "floor": 0.1, "estimator": "Linear(['hour'])"}
    assert [request.method for request in recorder.requests] == ["PUT", "PUT"]
    with pytest.raises(TypeError, match="create takes the settings of a bandit, got flor"):
        service.create("home", ["red"], flor=0.1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"name must be up to 100 letters.*, got '../home'"):
        service["../home"]


@ra.policy(noise=ra.noise.Gumbel())
def Own(pulls, mean, z, *, C: float = 1.0):  # type: ignore[no-untyped-def]
    return mean + C / np.sqrt(pulls) * z


def test_policies_of_ones_own_are_sent_with_their_module(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(home=BANDIT)
    home = recorder.service()["home"]
    home.change(policy=Own(C=2.0))
    assert recorder.bodies == [{"policy": f"{__name__}:Own(C=2.0)"}]
    monkeypatch.setattr(Own.function, "__module__", "__main__")
    with pytest.raises(ValueError, match="policy must be one of a module, where a service can find it"):
        home.change(policy=Own(C=2.0))


# Errors and retries.


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ValueError),
        (401, PermissionError),
        (403, PermissionError),
        (404, LookupError),
        (409, ValueError),
        (422, ValueError),
        (500, ConnectionError),
    ],
)
def test_problems_are_the_exceptions_that_a_bandit_raises(status: int, kind: type[Exception]) -> None:
    problem = {"type": "about:blank", "title": "x", "status": status, "detail": "what is wrong", "field": "reward"}
    answers = [httpx.Response(status, json=problem), httpx.Response(status, text="<html>")]
    home = ra.connect(URL, transport=httpx.MockTransport(lambda _: answers.pop(0)))["home"]
    with pytest.raises(kind, match=rf"^what is wrong \(status {status}\)$") as found:
        home.ask()
    assert isinstance(found.value, ServiceError)
    assert (found.value.status, found.value.field) == (status, "reward")
    with pytest.raises(kind, match="<html>"):
        home.ask()


def test_an_answer_of_something_else_is_no_answer() -> None:
    home = ra.connect(URL, transport=httpx.MockTransport(lambda _: httpx.Response(200, text="<html>hello")))["home"]
    with pytest.raises(ConnectionError, match=r"none of a decision service.*<html>hello"):
        home.ask()


def pauses(answers: list[Reply | Lost], retries: int) -> tuple[list[float], Any]:
    """The pauses of a request that gets these answers, and what comes of it: a body or an error."""

    def steps() -> Any:
        return (yield ServiceRequest("POST", "/bandits/home/ask"))

    talk, answer, found = with_retries(steps(), retries, random.Random(1)), None, list[float]()
    left = list(answers)
    try:
        while True:
            step = talk.send(answer)
            answer = None
            if isinstance(step, float):
                found.append(step)
            else:
                answer = left.pop(0)
    except StopIteration as done:
        assert left == []
        return found, done.value
    except ServiceError as error:
        return found, error


def test_pauses_grow_and_are_random_and_then_it_gives_up() -> None:
    found, error = pauses([Lost("cut off")] * 9, retries=8)
    assert [0 < pause < min(LONGEST_PAUSE, FIRST_PAUSE * 2**i) for i, pause in enumerate(found)] == [True] * 8
    assert len(set(found)) == 8
    assert isinstance(error, ConnectionError)
    assert "tried 9 times: cut off" in str(error)
    assert pauses([Reply(200, b"ok")], retries=0) == ([], b"ok")


def test_the_service_says_how_long_to_wait() -> None:
    busy = Reply(503, b"busy", "3")
    found, body = pauses([busy, Reply(429, b"", "1"), Lost("x"), Reply(201, b"ok")], retries=3)
    assert body == b"ok"
    assert [3 < found[0] < 3.1, 1 < found[1] < 1.2, found[2] < 0.4] == [True] * 3
    for reply in (Reply(503, b"later", "3600"), Reply(503, b"later", "Fri, 31 Dec 2100 23:59:59 GMT")):
        found, error = pauses([reply], retries=5)
        assert found == [], "nobody waits for an hour"
        assert (error.status, error.detail) == (503, "later")
    assert pauses([Reply(502, b""), Reply(504, b""), Reply(200, b"ok")], retries=2)[1] == b"ok"
    found, _ = pauses([Reply(503, b"", "Fri, 31 Dec 1999 23:59:59 GMT"), Reply(503, b"", "soon"), Reply(200, b"")], 2)
    assert max(found) < 0.2


@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.ReadError("cut")])
def test_what_is_sent_again_has_the_same_key(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    slept = list[float]()
    monkeypatch.setattr("time.sleep", slept.append)
    recorder = Recorder(ask=CHOICE, tell={"outcome": "learned"})
    tries = list[httpx.Request]()

    def sometimes(request: httpx.Request) -> httpx.Response:
        tries.append(request)
        if len(tries) % 3:
            raise failure
        return recorder(request)

    home = ra.connect(URL, transport=httpx.MockTransport(sometimes))["home"]
    assert home.tell(home.ask(), 1.0) is True
    assert len({request.content for request in tries[:3]}) == len({request.content for request in tries[3:]}) == 1
    assert (len(tries), len(slept)) == (6, 4)


def test_wrong_arguments_are_not_tried_again() -> None:
    home = ra.connect("http://127.0.0.1:1", retries=0)["home"]
    with pytest.raises(ConnectionError, match="did not answer POST /bandits/home/ask, tried 1 times: ConnectError"):
        home.ask()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"url": "127.0.0.1:8080"}, "url must begin with http:// or https://, got '127.0.0.1:8080'"),
        ({"timeout": 0}, "timeout must be positive, in seconds, got 0"),
        ({"retries": -1}, "retries must be"),
        ({"token": "ra_é"}, "token must be one that `rightarm tokens add` gave, got something else"),
    ]
    for given, error in wrong:
        with pytest.raises(ValueError, match=error):
            ra.connect(**{"url": URL, **given})


@pytest.mark.parametrize("connect", [ra.connect, ra.client.connect_async])
def test_a_token_may_come_from_a_file_whose_line_ends(connect: Callable[..., Any]) -> None:
    assert connect(URL, "ra_secret\n")._transport.client.headers["authorization"] == "Bearer ra_secret"


def test_timeouts_are_set() -> None:
    recorder = Recorder(ask=CHOICE)
    recorder.service(timeout=2.5)["home"].ask()
    assert recorder.requests[0].extensions["timeout"] == dict.fromkeys(("connect", "read", "write", "pool"), 2.5)


# The same, awaited.


def test_the_verbs_can_be_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(ask=CHOICE, tell={"outcome": "learned"}, home=BANDIT, bandits={"bandits": ["home"]})
    lost, slept = [httpx.ConnectError("refused")], list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def answer(request: httpx.Request) -> httpx.Response:
        if lost:
            raise lost.pop()
        return recorder(request)

    async def talk() -> None:
        async with ra.client.connect_async(URL, transport=httpx.MockTransport(answer)) as service:
            home = await service.create("home", ["red", 2])
            decision = await home.ask(context={"hour": 3})
            assert decision == DECISION
            assert await home.tell(decision, 1.0) is True
            assert await home.arms == ["red", 2]
            assert [name async for name in service] == ["home"]
            both = await asyncio.gather(home.ask(), home.ask())
            assert list(both) == [DECISION, DECISION]

    monkeypatch.setattr("anyio.sleep", sleep)
    asyncio.run(talk())
    assert len(slept) == 1


def test_methods_say_what_they_are() -> None:
    import inspect

    home = Recorder().service()["home"]
    assert "context" in inspect.signature(home.ask).parameters
    assert "self" not in inspect.signature(home.ask).parameters
    assert (home.ask.__doc__ or "").startswith("Decide")


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ImportError, match=r"connect\(\) needs httpx: install rightarm with its extra \[client\]"):
        ra.connect(URL)
