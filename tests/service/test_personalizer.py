"""Rank, reward and activate, as users of Azure Personalizer know them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import rightarm as ra
from rightarm.client import Service
from service_process import serving

FEATURES = {"numbers": ["hour", "user.age"], "arm": ["price"]}
ACTIONS = [{"id": name, "features": [{"price": float(i)}]} for i, name in enumerate(["news", "sport", "3"])]
CONTEXT = [{"hour": 9}, {"user": {"age": 40}}]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('store')}/home.db") as address:
        yield address


@pytest.fixture(scope="module")
def service(url: str) -> Iterator[Service]:
    with ra.connect(url) as found:
        estimator = ra.Linear(FEATURES["numbers"], arm_features=FEATURES["arm"])
        found.create("home", ["news", "sport", 3], ra.BoltzmannGumbel(C=0.1, estimator=estimator), seed=1)
        found.create("plain", ["news", "sport", 3], floor=0.1)
        yield found


@pytest.fixture(scope="module")
def post(url: str, service: Service) -> Iterator[Any]:
    with httpx.Client(base_url=f"{url}/bandits") as client:
        yield lambda path, **body: client.post(path, json=body)


def test_the_chosen_action_comes_first_and_the_rest_by_probability(post: Any, service: Service) -> None:
    plain = service["plain"]
    for arm, reward in [("news", 0.2), ("sport", 0.9), (3, 0.5)] * 30:
        plain.tell(arm=arm, reward=reward)
    chances = {str(arm): chance for arm, chance in plain.probabilities().items()}
    firsts = set()
    for _ in range(40):
        answer = post("plain/rank", actions=[{"id": name} for name in ("news", "sport", "3")])
        assert answer.status_code == 201
        ranking = answer.json()["ranking"]
        firsts.add(ranking[0]["id"])
        assert ranking[0]["id"] == answer.json()["rewardActionId"]
        assert {one["id"]: one["probability"] for one in ranking} == pytest.approx(chances, rel=1e-9)
        assert ranking[1]["probability"] >= ranking[2]["probability"]
    assert len(firsts) > 1, "it is a draw, not the largest probability"


def test_contexts_and_features_go_to_the_policy(post: Any, service: Service) -> None:
    answer = post("home/rank", contextFeatures=CONTEXT, actions=ACTIONS, eventId="first", excludedActions=["sport"])
    assert answer.status_code == 201
    ranking = answer.json()["ranking"]
    assert ranking[-1] == {"id": "sport", "probability": 0.0}
    assert sum(one["probability"] for one in ranking) == pytest.approx(1.0)
    decision = service["home"].events()[-1]
    assert (decision["event"], str(decision["arm"])) == ("decision", answer.json()["rewardActionId"])
    assert (decision["context"], decision["arm_features"]) == ([9.0, 40.0], [[0.0], [2.0]])
    assert decision["among"] == ["news", 3]
    assert decision["propensity"] == ranking[0]["probability"]


def test_an_event_is_decided_and_rewarded_once(post: Any, service: Service) -> None:
    body = {"contextFeatures": CONTEXT, "actions": ACTIONS, "eventId": "17 & more"}
    first = post("home/rank", **body)
    version = service["home"].version
    again = post("home/rank", **body)
    assert again.json() == first.json()
    assert service["home"].version == version
    assert post("home/rank", **body, excludedActions=["3"]).status_code == 409
    path = "home/events/17%20%26%20more"
    assert post(f"{path}/activate").json() == {"activated": True}
    told = post(f"{path}/reward", value=0.75)
    assert (told.status_code, told.json()["outcome"]) == (200, "learned")
    assert post(f"{path}/reward", value=0.75).json()["outcome"] == "duplicate"
    assert post(f"{path}/reward", value=0.5).status_code == 409
    assert service["home"].events()[-1]["reward"] == 0.75
    assert post("home/events/other/reward", value=1).status_code == 404
    assert post("home/events/other/activate").status_code == 404


def test_without_an_event_id_there_is_a_new_one(post: Any) -> None:
    ids = {post("plain/rank", actions=[{"id": "news"}, {"id": "sport"}]).json()["eventId"] for _ in range(3)}
    assert len(ids) == 3
    assert post(f"plain/events/{ids.pop()}/reward", value=1.0).json()["outcome"] == "learned"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"actions": []}, "length >= 1"),
        ({"actions": [{"id": "news"}], "deferActivation": True}, "deferActivation must be false"),
        ({"actions": [{"id": "news"}], "excludedActions": ["news"]}, "excludedActions must leave an action"),
        ({"actions": [{"id": "weather"}]}, "actions must be arms of plain, which PATCH adds, got 'weather'"),
        ({"actions": [{"id": "news"}, {"id": "news"}]}, "actions must differ"),
        ({"actions": [{"id": "news"}], "contextFeatures": [{"hour": 1}]}, "context must be left out"),
        ({"actions": [{"id": "news"}], "defer": True}, "unknown field `defer`"),
    ],
)
def test_what_is_not_possible_is_said(post: Any, body: dict[str, Any], text: str) -> None:
    answer = post("plain/rank", **body)
    assert answer.status_code == 422
    assert text in answer.json()["detail"]
