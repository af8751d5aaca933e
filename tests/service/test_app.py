"""What the service answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from serving import HOME, Served, served

import rightarm as ra
from rightarm.service import operations
from rightarm.service.service import MOST_STREAMS, Service


@pytest.fixture
def app(sqlite_url: str) -> Iterator[Served]:
    with served(sqlite_url) as found:
        yield found


def test_a_bandit_is_made_once_and_shown(app: Served) -> None:
    again = app.client.put("/bandits/home", json=HOME)
    other = app.client.put("/bandits/home", json=HOME | {"floor": 0.1})
    assert (again.status_code, other.status_code, other.json()["field"]) == (200, 409, "name")
    shown = app.get("/bandits/home").json()
    assert (shown["arms"], shown["policy"], shown["status"]) == (["red", "blue"], "UCB(C=0.5)", "running")
    assert app.get("/bandits").json() == {"bandits": ["home"]}


def test_decisions_are_those_of_a_bandit_with_the_same_seed(app: Served) -> None:
    bandit = ra.Bandit(["red", "blue"], ra.UCB(C=0.5), reward_range=(0, 1), seed=1)
    for i in range(30):
        made, expected = app.ask(), bandit.ask()
        assert (made["decision"], made["arm"], made["propensity"]) == (expected.id, expected.arm, expected.propensity)
        reward = i % 3 / 2
        told = app.post("/bandits/home/tell", {"decision": made["decision"], "reward": reward}).json()
        assert (told["outcome"], bandit.tell(expected, reward)) == ("learned", True)
    rows = app.get("/bandits/home/summary").json()["arms"]
    assert rows == [{**row, "kind": "bounded"} for row in bandit.summary().to_dicts()]
    answer = app.get("/bandits/home/difference", params={"arm": "red", "other": "blue", "confidence": 0.9}).json()
    expected_difference = bandit.difference("red", "blue", confidence=0.9)
    assert (answer["low"], answer["high"]) == (expected_difference.low, expected_difference.high)
    assert app.get("/bandits/home/best?tolerance=0.5").json()["cost"] == bandit.best(tolerance=0.5).cost
    chances = app.post("/bandits/home/probabilities", {"allowed": ["red"]}).json()["probabilities"]
    assert chances == [{"arm": "red", "probability": 1.0}]


def test_without_evidence_answers_are_null_and_say_why(app: Served) -> None:
    for name, settings in (("home", {}), ("shop", {"reward_range": None})):
        assert app.client.put(f"/bandits/{name}", json=HOME | settings).status_code in (200, 201)
        best = app.get(f"/bandits/{name}/best?tolerance=9").json()
        assert (best["leader"], best["stop"], best["lacking"]) == (None, False, "no reward of red or blue")
        apart = app.get(f"/bandits/{name}/difference?arm=red&other=blue").json()
        assert (apart["estimate"], apart["better"]) == (None, None)
        assert apart["text"] == best["text"] == "cannot tell yet: no reward of red or blue"
        assert {row["lacking"] for row in app.get(f"/bandits/{name}/summary").json()["arms"]} == {"no reward"}
    for arm, reward in (("red", 0.0), ("red", 1.0), ("blue", 0.0)):
        app.post("/bandits/shop/tell", {"arm": arm, "reward": reward})
    rows = app.get("/bandits/shop/summary").json()["arms"]
    assert [(row["low"], row["high"], row["kind"]) for row in rows] == [(None, None, None)] * 2
    assert [row["lacking"] for row in rows] == [f"{count} of 100 effective rewards" for count in (1, 0)]
    apart, best = (app.get(f"/bandits/shop/{path}").json() for path in ("difference?arm=red&other=blue", "best"))
    assert (apart["low"], apart["high"], best["cost"], best["leader"], best["stop"]) == (None, None, None, None, False)
    assert apart["lacking"] == best["lacking"]
    assert best["lacking"].endswith("declare a reward_range or wait")


def test_a_key_gives_the_same_answer_and_a_unit_keeps_its_arm(app: Served) -> None:
    assert app.ask(key="k") == app.ask(key="k") != app.ask(key="l")
    assert app.ask(unit="visitor")["decision"] == app.ask(unit="visitor")["decision"]
    several = app.ask(size=3)["decisions"]
    assert len({one["decision"] for one in several}) == 3


def test_rewards_count_once_all_or_none(app: Served) -> None:
    first, second = (one["decision"] for one in app.ask(size=2)["decisions"])
    path = "/bandits/home/tell"
    wrong = app.post(path, {"rewards": [{"decision": first, "reward": 1}, {"decision": 3, "reward": 1}]})
    assert wrong.status_code == 404
    good = app.post(path, {"rewards": [{"decision": first, "reward": 1}, {"decision": second, "reward": 0}]})
    assert [one["outcome"] for one in good.json()["rewards"]] == ["learned", "learned"]
    assert app.post(path, {"decision": first, "reward": 1}).json()["outcome"] == "duplicate"
    assert app.post(path, {"decision": first, "reward": 0}).status_code == 409
    assert app.post(path, {"decision": first, "reward": 0, "correct": True}).json()["outcome"] == "corrected"
    tricky = app.post(path, {"arm": "red", "reward": 1, "context": {"rewards": 3}})  # no batch
    assert (tricky.status_code, tricky.json()["field"]) == (422, "context") or tricky.status_code == 422


def test_changes_name_who_and_pause_and_archive(app: Served) -> None:
    changed = app.client.patch("/bandits/home", json={"arms": ["red", "green"], "policy": "UCB(C=1)"}).json()
    assert (changed["arms"], changed["retired"], changed["policy"]) == (["red", "green"], ["blue"], "UCB(C=1.0)")
    assert app.client.patch("/bandits/home", json={"status": "paused"}).json()["status"] == "paused"
    refused = app.post("/bandits/home/ask")
    assert (refused.status_code, refused.json()["field"]) == (409, "status")
    events = [json.loads(line) for line in app.get("/bandits/home/events").text.splitlines()]
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
    assert {event["by"] for event in events if event["event"] in ("created", "change")} == {"local"}


def test_policies_with_contexts_are_made_from_text(app: Served) -> None:
    estimator = "Linear(Features(numbers=['hour'], categories={'device': ['phone', 'desktop']}))"
    made = app.client.put("/bandits/ctx", json={"arms": [1, 2], "policy": "UCB(C=0.5)", "estimator": estimator})
    assert made.status_code == 201, made.text
    asked = app.post("/bandits/ctx/ask", {"context": {"hour": 9, "device": "phone"}}).json()
    assert asked["arm"] in (1, 2)
    wrong = app.post("/bandits/ctx/ask", {"context": {"minute": 9}})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "context")
    assert app.post("/bandits/ctx/probabilities", {"context": [9, 0, 1, 0, 0, 0]}).status_code == 200


def test_arms_that_come_later_must_fit_into_memory_too(app: Served) -> None:
    estimator = f"Linear({[f'x{i}' for i in range(1000)]})"
    made = app.client.put("/bandits/wide", json={"arms": ["a", "b"], "policy": "UCB(C=0.5)", "estimator": estimator})
    assert made.status_code == 201, made.text
    answer = app.client.patch("/bandits/wide", json={"arms": [f"arm {i}" for i in range(100)]})
    assert (answer.status_code, answer.json()["field"]) == (422, "estimator")
    assert app.get("/bandits/wide").json()["arms"] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ({"policy": "os:system('true')"}, "policy"),
        ({"policy": "__import__('os')"}, "policy"),
        ({"policy": "UCB(C=-1)"}, "policy"),
        ({"policy": "UCB(C=1).family"}, "policy"),
        ({"policy": "EpsilonGreedy(decreasing(d=1e-200))"}, "policy"),
        ({"policy": "EpsilonGreedy(decreasing(d=1e200))"}, "policy"),
        ({"policy": "Maillard(sigma=1e200)"}, "policy"),
        ({"estimator": "Linear(100000)"}, "estimator"),
        ({"estimator": "UCB(C=1)"}, "estimator"),
        ({"policy": "UCB(C=1, estimator=Catoni(C=2))", "estimator": "Mean(window=9)"}, "estimator"),
        ({"floor": 7}, "floor"),
        ({"arms": []}, "arms"),
        ({"nonsense": 1}, "nonsense"),
        ({"reward_range": [1, 0]}, "reward_range"),
    ],
)
def test_what_a_bandit_cannot_be_made_of_is_said(app: Served, text: dict[str, Any], field: str) -> None:
    answer = app.client.put("/bandits/other", json={"arms": ["a", "b"]} | text)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert app.get("/bandits/other").status_code == 404


def test_a_policy_that_has_no_value_is_refused_before_it_decides(app: Served) -> None:
    text = "EpsilonGreedy(decreasing(d=1e-200))"
    answer = app.client.patch("/bandits/home", json={"policy": text})
    assert (answer.status_code, answer.json()["field"]) == (422, "policy"), answer.text
    assert "EpsilonGreedy(epsilon=decreasing(d=1e-200, c=5.0)) has no value in round" in answer.json()["detail"]
    assert app.get("/bandits/home").json()["policy"] == "UCB(C=0.5)"


@pytest.mark.parametrize(
    ("estimator", "policy"),
    [
        (None, "ScaledGumbel()"),
        ("Mean(window=9)", "ScaledGumbel(estimator=Mean(window=9))"),
        ("Linear(['hour'])", "ResidualGumbel(estimator=Linear(['hour']))"),
    ],
)
def test_the_default_policy_is_another_one_by_contexts(app: Served, estimator: str | None, policy: str) -> None:
    made = app.client.put("/bandits/other", json={"arms": ["a", "b"], "estimator": estimator})
    assert (made.status_code, made.json()["policy"]) == (201, policy), made.text


def test_decisions_history_and_ratio_can_be_read(app: Served) -> None:
    made = [app.ask() for _ in range(40)]
    found = app.get(f"/bandits/home/decisions/{made[3]['decision']}").json()
    assert (found["decision"]["arm"], found["answer"]) == (made[3]["arm"], None)
    assert app.get("/bandits/home/decisions/999").status_code == 404
    assert sum(row["decisions"] for row in app.get("/bandits/home/history").json()["hours"]) == 40
    ratio = app.get("/bandits/home/sample-ratio").json()
    assert (ratio["rows"], ratio["alarm"]) == (40, False)
    page = app.get("/bandits/home/events?after=2&limit=3").text.splitlines()
    assert [json.loads(line)["n"] for line in page] == [3, 4, 5]


def test_health_ready_metrics_and_a_line_for_each_request(app: Served) -> None:
    assert app.get("/health").json()["status"] == "alive"
    assert app.get("/ready").json()["status"] == "ready"
    told = app.post("/bandits/home/tell", {"decision": app.ask()["decision"], "reward": 1})
    assert told.status_code == 200
    text = app.get("/metrics").text
    for line in (
        'rightarm_decisions_total{bandit="home"} 1.0',
        'rightarm_rewards_total{bandit="home",outcome="learned"} 1.0',
        'rightarm_reward_delay_seconds_count{bandit="home"} 1.0',
        'rightarm_requests_total{method="POST",route="/bandits/{name}/ask",status="200"} 1.0',
    ):
        assert line in text
    app.service.log.close()
    lines = [json.loads(line) for line in app.log.getvalue().splitlines()]
    asked = next(line for line in lines if line["route"] == "/bandits/{name}/ask")
    assert (asked["status"], asked["token"], asked["bandit"], asked["method"]) == (200, "local", "home", "POST")


def test_only_so_many_read_events_at_once(app: Served) -> None:
    app.service.streams = MOST_STREAMS
    answer = app.get("/bandits/home/events")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_what_is_streamed_counts_while_it_is_prepared(app: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    counted, page = list[int](), operations._page

    def seen(service: Service, *arguments: Any) -> operations._Page:
        counted.append(service.streams)
        return page(service, *arguments)

    monkeypatch.setattr(operations, "_page", seen)
    for path in ("events", "export"):
        assert app.get(f"/bandits/home/{path}").text.endswith("\n")
    assert (counted, app.service.streams) == ([1, 1], 0)


PROBLEMS = [
    ("GET", "/nonsense", b"", 404, None),
    ("DELETE", "/bandits/home", b"", 405, None),
    ("GET", "/bandits/home/ask", b"", 405, None),
    ("POST", "/bandits/nobody/ask", b"{}", 404, "name"),
    ("POST", "/bandits/no%20name/ask", b"{}", 422, "name"),
    ("GET", "/bandits/-x/summary", b"", 422, "name"),
    ("POST", "/bandits/home/ask", b"{", 400, None),
    ("POST", "/bandits/home/ask", b'{"meta": {"a": NaN}}', 400, None),
    ("POST", "/bandits/home/ask", b'{"meta": {"a": 1e999}}', 422, "meta[...]"),
    ("POST", "/bandits/home/ask", b'{"meta": {"a": "\xff"}}', 400, None),
    ("POST", "/bandits/home/ask", b'{"unit": "\\u0000"}', 422, None),
    ("POST", "/bandits/home/ask", b'{"meta": {"a": ' + b"[" * 40 + b"]" * 40 + b"}}", 400, None),
    ("POST", "/bandits/home/ask", b'{"size": 0}', 422, "size"),
    ("POST", "/bandits/home/ask", b"x" * 1_000_001, 413, None),
    ("PUT", "/bandits/big", b"x" * 1_000_001, 413, None),
    ("POST", "/bandits/home/tell", b'{"decision": 1, "reward": "1"}', 422, "reward"),
    ("POST", "/bandits/home/tell", b'{"decision": 1}', 422, "reward"),
    ("GET", "/bandits/home/best?tolerance=nan", b"", 422, "tolerance"),
    ("GET", "/bandits/home/best?confidence=0.9&confidence=0.8", b"", 422, "confidence"),
    ("GET", "/bandits/home/history?days=3", b"", 422, "days"),
    ("GET", "/bandits/home/difference?arm=red&other=green", b"", 422, "other"),
    ("GET", "/bandits/home/difference?arm=red&other=blue&where=v", b"", 422, "where"),
    ("GET", "/bandits/home/decisions/x", b"", 422, "id"),
]


def test_every_error_is_a_problem(app: Served) -> None:
    for method, path, body, status, field in PROBLEMS:
        answer = app.client.request(method, path, content=body)
        problem = answer.json()
        assert (answer.status_code, problem["field"]) == (status, field), (path, answer.text)
        assert problem["type"] == f"urn:rightarm:problem:{problem['code']}" != "urn:rightarm:problem:"
        assert (problem["status"], answer.headers["content-type"]) == (status, "application/problem+json")
        assert problem["detail"]
        assert status != 405 or answer.headers["allow"]
