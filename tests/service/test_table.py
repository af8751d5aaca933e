"""One table: routes, access, OpenAPI and the client follow from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from serving import served

import rightarm as ra
from rightarm.messages import AnswerMessage, Message
from rightarm.service.operations import TABLE, Request, operation
from rightarm.store import open_store


class Wish(Message):
    """What is wished for."""

    wish: str
    times: int = 1


class Granted(AnswerMessage):
    """What became of a wish."""

    wish: str
    of: str


@pytest.fixture
def wished() -> Iterator[None]:
    @operation("POST", "/bandits/{name}/wishes", "tell")
    async def wish(request: Request, body: Wish) -> Granted:
        """Grant a wish."""
        return Granted(wish=body.wish * body.times, of=request.name)

    yield
    del TABLE[-1]


def test_adding_a_route_is_one_function(wished: None, sqlite_url: str) -> None:
    with served(sqlite_url) as app:
        entry = app.get("/openapi.json").json()["paths"]["/bandits/{name}/wishes"]["post"]
        assert (entry["operationId"], entry["summary"]) == ("wish", "Grant a wish.")
        assert entry["description"] == "Needs the scope `tell`."
        assert entry["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Wish"}
        assert app.post("/bandits/home/wishes", {"wish": "a"}).json() == {"wish": "a", "of": "home"}
        refused = app.post("/bandits/home/wishes", {"wish": 7}).json()
        assert (refused["status"], refused["field"], refused["code"]) == (422, "wish", "wrong_type")
        assert app.get("/bandits/home/wishes").headers["allow"] == "POST"
        assert 'route="/bandits/{name}/wishes",status="200"' in app.get("/metrics").text
        with ra.connect(str(app.client.base_url)) as service:
            assert service["home"].call("wish", wish="ab", times=2) == {"wish": "abab", "of": "home"}
            assert service.call("wish", name="shop", wish="c") == {"wish": "c", "of": "shop"}
            with pytest.raises(ValueError, match=r"wish.*\(status 422\)") as error:
                service["home"].call("wish")
        assert error.value.code == "missing_field"  # type: ignore[attr-defined]


def test_a_new_route_needs_the_scope_that_it_declares(wished: None, sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    tokens = {scope: store.tokens.add(scope, scope) for scope in ("ask", "tell", "read", "admin")}
    store.close()
    with served(sqlite_url) as app:
        for scope, text in tokens.items():
            answer = app.post("/bandits/home/wishes", {"wish": "a"}, headers={"authorization": f"Bearer {text}"})
            assert answer.status_code == (200 if scope == "tell" else 403)


def test_the_client_can_do_every_operation(sqlite_url: str) -> None:
    with served(sqlite_url) as app, ra.connect(str(app.client.base_url)) as service:
        home = service["home"]
        made = home.call("ask", unit="visitor 17")
        assert home.call("tell", decision=made["decision"], reward=1.0)["outcome"] == "learned"
        assert home.call("best", tolerance=0.5)["text"] == str(home.best(tolerance=0.5))
        assert home.call("decision", id=made["decision"])["answer"]["reward"] == 1.0
        assert home.call("events", after=0).count(b"\n") == home.call("show")["version"]
        assert service.call("names") == {"bandits": ["home"]}
        with pytest.raises(TypeError, match="best takes confidence, tolerance, got arm"):
            home.call("best", arm="red")
        with pytest.raises(ValueError, match=r"operation must be one of .*best, "):
            home.call("worst")

        async def awaited() -> Any:
            async with ra.client.connect_async(str(app.client.base_url)) as service:
                return await service["home"].call("summary")

        assert asyncio.run(awaited())["version"] == home.version


def test_methods_are_those_of_the_document(sqlite_url: str) -> None:
    with served(sqlite_url) as app:
        for path, entry in app.get("/openapi.json").json()["paths"].items():
            at = path.replace("{name}", "home").replace("{id}", "1")
            for verb in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE"):
                answer = app.client.request(verb, at)
                assert (answer.status_code == 405) == (verb.lower() not in entry), (verb, path)
                allowed = ", ".join(sorted(each.upper() for each in entry))
                assert answer.status_code != 405 or answer.headers["allow"] == allowed


def test_schemas_are_such_that_generators_understand_them(app_document: Any) -> None:
    def walk(schema: Any) -> Iterator[Any]:
        if isinstance(schema, dict):
            yield schema
            for value in schema.values():
                yield from walk(value)
        elif isinstance(schema, list):
            for value in schema:
                yield from walk(value)

    names = [entry["operationId"] for path in app_document["paths"].values() for entry in path.values()]
    assert len(set(names)) == len(names) == len(TABLE)
    for each in walk(app_document):
        assert "prefixItems" not in each
        assert each.get("items") is not False
        if each.get("type") == "object":
            assert "properties" in each or "additionalProperties" in each
    schemas = app_document["components"]["schemas"]
    assert schemas["Definition"]["required"] == ["arms"]
    assert schemas["DecisionAnswer"]["required"] == list(schemas["DecisionAnswer"]["properties"])
    assert schemas["Ask"]["properties"]["context"]["anyOf"][0] == {"type": "object", "additionalProperties": True}
    assert not any("default" in kind for schema in schemas.values() for kind in schema["properties"].values())


@pytest.fixture
def app_document(sqlite_url: str) -> Any:
    with served(sqlite_url) as app:
        found = app.get("/openapi.json")
        assert found.headers["content-type"] == "application/json"
        return msgspec.json.decode(found.content)


def test_results_are_the_same_here_and_there(sqlite_url: str) -> None:
    with served(sqlite_url) as app, ra.connect(str(app.client.base_url)) as service:
        home, model = service["home"], ra.Bandit(["red", "blue"], ra.UCB(C=0.5), reward_range=(0, 1), seed=1)
        for place in range(60):
            mine, theirs = home.ask(), model.ask()
            if place in (0, 1, 40):
                for found, known in (
                    (home.difference("red", "blue"), model.difference("red", "blue")),
                    (home.best(tolerance=0.1), model.best(tolerance=0.1)),
                ):
                    assert type(found) is type(known)
                    assert (repr(found), str(found)) == (repr(known), str(known))
            home.tell(mine, place % 2)
            model.tell(theirs, place % 2)
        ratio = home.sample_ratio()
        assert type(ratio) is type(ra.evaluation.sample_ratio({"arm": ["a"], "propensity": [1.0]}))
        assert (ratio.rows, ratio.alarm, ratio.findings) == (60, False, ())
