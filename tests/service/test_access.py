"""Tokens, scopes and rates."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from serving import HOME, served

from rightarm.messages import Definition
from rightarm.policies import UCB
from rightarm.service.access import FRESH, Access, check_host_name, is_loopback
from rightarm.service.problem_details import Refusal
from rightarm.service.service import THREADS
from rightarm.store import open_store


def bearer(text: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}"}


def test_tokens_are_needed_once_there_is_one_and_are_good_for_their_scopes(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    definition = Definition(arms=["red", "blue"], policy="UCB(C=0.5)")
    store.do(store.create("shop-home", definition, UCB(C=0.5), "me"))
    shop = store.tokens.add("the shop", ["ask"], "shop-*")
    reader, admin = store.tokens.add("reader", ["read"]), store.tokens.add("admin", ["admin"], "blog")
    store.close()
    with served(sqlite_url) as app:
        assert app.get("/health").status_code == app.get("/openapi.json").status_code == 200
        for text in ("", "Bearer x", f"Bearer {shop[:-1]}", f"Basic {shop}"):
            answer = app.post("/bandits/shop-home/ask", headers={"authorization": text})
            assert (answer.status_code, answer.headers["www-authenticate"][:6]) == (401, "Bearer")
        statuses = {
            ("POST", "/bandits/shop-home/ask"): (200, 403, 403),
            ("POST", "/bandits/shop-home/tell"): (403, 403, 403),
            ("POST", "/bandits/blog/ask"): (403, 403, 403),
            ("GET", "/bandits/shop-home"): (403, 200, 403),
            ("GET", "/metrics"): (403, 200, 403),
            ("PUT", "/bandits/blog"): (403, 403, 201),
            ("PUT", "/bandits/other"): (403, 403, 403),
        }
        for (method, path), expected in statuses.items():
            body: dict[str, Any] = {"json": HOME} if method == "PUT" else {}
            found = [app.client.request(method, path, headers=bearer(one), **body) for one in (shop, reader, admin)]
            assert tuple(one.status_code for one in found) == expected, (method, path)
        assert app.get("/bandits", headers=bearer(shop)).json() == {"bandits": []}
        assert app.get("/bandits", headers=bearer(reader)).json() == {"bandits": ["blog", "shop-home"]}
        app.service.log.close()
        for text in (shop, reader, admin):
            assert text not in app.log.getvalue()
            assert text.split("_")[1] in app.log.getvalue()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_token_has_its_rate_and_a_revoked_one_is_refused_soon(sqlite_url: str) -> None:
    store, clock, threads = open_store(sqlite_url), Clock(), ThreadPoolExecutor(1)
    text = store.tokens.add("slow", "ask", rate=2)
    access = Access(store.tokens, None, threads, clock)
    headers = [(b"authorization", f"Bearer {text}".encode())]

    def status() -> int:
        try:
            asyncio.run(access.caller(headers))
        except Refusal as error:
            return error.status if error.status != 429 else 428 + int(error.headers["retry-after"])
        return 200

    assert [status() for _ in range(3)] == [200, 200, 429]
    clock.now += 0.5
    assert [status(), status()] == [200, 429]
    store.tokens.revoke(text.split("_")[1])
    clock.now += FRESH + 1
    assert status() == 401
    threads.shutdown()
    store.close()


def test_whoever_guesses_tokens_is_slowed_down_and_nobody_else(sqlite_url: str) -> None:
    store, clock, threads = open_store(sqlite_url), Clock(), ThreadPoolExecutor(1)
    texts = [store.tokens.add(name, "ask") for name in ("old", "new")]
    access = Access(store.tokens, None, threads, clock)

    def status(text: str) -> int:
        try:
            asyncio.run(access.caller([(b"authorization", f"Bearer {text}".encode())]))
        except Refusal as error:
            return error.status
        return 200

    assert status(texts[0]) == 200
    found = [status(f"ra_{place:016x}_{'x' * 43}") for place in range(100)]
    assert found == sorted(found)
    assert set(found) == {401, 429}
    clock.now += FRESH + 1
    for place in range(100, 200):
        status(f"ra_{place:016x}_{'x' * 43}")
    assert status(texts[0]) == 200  # it was found before
    assert status(texts[1]) == 429
    clock.now += 1.0
    assert status(texts[1]) == 200
    threads.shutdown()
    store.close()


@pytest.mark.parametrize(("host", "expected"), [("127.0.0.5", True), ("::", False), ("example.org", False)])
def test_loopback_addresses(host: str, expected: bool) -> None:
    assert is_loopback(host) == expected


def test_tokens_are_found_however_long_reads_take(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    store.do(store.create("home", Definition(arms=["red", "blue"]), UCB(C=0.5), "me"))
    text = store.tokens.add("the shop", ["ask"])
    store.close()
    with served(sqlite_url) as app:
        end = threading.Event()
        for _ in range(THREADS):
            app.service.threads.submit(end.wait, 60)
        answer = app.post("/bandits/home/ask", headers=bearer(text))
        waited = not end.is_set()
        end.set()
    assert (answer.status_code, waited) == (200, True)


HOSTS = [
    (["localhost"], 200),
    (["LOCALHOST:1"], 200),
    (["localhost.:8080"], 200),
    (["127.0.0.1:8080"], 200),
    (["127.9.9.9"], 200),
    (["[::1]:8080"], 200),
    (["shop.example"], 200),
    (["Shop.Example.:443"], 200),
    (["evil.example"], 421),
    (["evil.example:8080"], 421),
    (["localhost.evil.example"], 421),
    (["a.shop.example"], 421),
    (["shop.example.evil"], 421),
    (["evil.example#localhost"], 421),
    (["localhost@evil.example"], 421),
    (["evil.example@localhost"], 421),
    (["evil.example:localhost"], 421),
    (["127.0.0.1.evil.example"], 421),
    (["0.0.0.0:8080"], 421),
    (["10.0.0.7"], 421),
    (["[::]"], 421),
    (["[::1"], 421),
    (["localhost\xff"], 421),
    ([""], 421),
    ([], 400),
    (["localhost", "localhost"], 400),
    (["localhost", "evil.example"], 400),
]
ORIGINS = [
    ("http://localhost:3000", 200),
    ("http://[::1]:3000", 200),
    ("https://shop.example", 200),
    ("http://evil.example", 403),
    ("http://localhost.evil.example", 403),
    ("http://[::1", 403),
    ("null", 403),
    ("", 403),
]


def status_of(access: Access, *headers: tuple[str, str]) -> int:
    try:
        access.check_host([(name.encode(), value.encode("latin-1")) for name, value in headers])
    except Refusal as error:
        return error.status
    return 200


def test_where_nobody_needs_a_token_requests_name_this_machine(sqlite_url: str) -> None:
    store, threads = open_store(sqlite_url), ThreadPoolExecutor(1)
    access = Access(store.tokens, None, threads, host_names=["SHOP.example."])
    for hosts, status in HOSTS:
        assert status_of(access, *(("host", host) for host in hosts)) == status, hosts
    for origin, status in ORIGINS:
        assert status_of(access, ("host", "localhost"), ("origin", origin)) == status, origin
    store.tokens.add("the shop", "ask")
    access.look_again()
    for hosts, _ in HOSTS:
        assert status_of(access, *(("host", host) for host in hosts), ("origin", "http://evil.example")) == 200
    threads.shutdown()
    store.close()


@pytest.mark.parametrize(
    "name", ["http://shop.example", "shop.example:80", "shop.example/path", "*", "", "a..b", "ä.de"]
)
def test_names_of_hosts_are_names(name: str) -> None:
    with pytest.raises(ValueError, match="host_name must be a name such as"):
        check_host_name(name)


PATHS = ["/health", "/ready", "/openapi.json", "/metrics", "/bandits", "/bandits/home/events", "/nonsense"]


def test_a_page_whose_name_leads_here_reads_nothing(sqlite_url: str) -> None:
    """DNS rebinding: to the browser, evil.example is the origin of the page and the host of the request."""
    with served(sqlite_url) as app:
        for path in PATHS:
            answer = app.get(path, headers={"host": "evil.example:8080"})
            assert (answer.status_code, answer.headers["content-type"]) == (421, "application/problem+json"), path
            assert "got 'evil.example:8080'; `rightarm serve --host-name` allows other names" in answer.json()["detail"]
        for path in ("/bandits/home/ask", "/bandits/home/probabilities"):
            assert app.post(path, headers={"host": "evil.example:8080"}).status_code == 421
        assert app.get("/bandits/home").json()["decisions"] == 0
        assert "421" in app.get("/openapi.json").json()["paths"]["/bandits"]["get"]["responses"]


@pytest.mark.parametrize(
    ("origin", "status"), [("http://evil.example", 403), ("null", 403), ("http://localhost:3000", 200)]
)
def test_pages_of_other_hosts_need_a_token(sqlite_url: str, origin: str, status: int) -> None:
    with served(sqlite_url) as app:
        headers = {"origin": origin, "content-type": "text/plain"}
        assert app.post("/bandits/home/ask", headers=headers).status_code == status


def test_other_names_are_those_that_it_was_started_with(sqlite_url: str) -> None:
    with served(sqlite_url, host_names=["shop.example"]) as app:
        for host, status in (("shop.example", 200), ("evil.example", 421)):
            assert app.post("/bandits/home/ask", headers={"host": host}).status_code == status
        headers = {"host": "shop.example", "origin": "https://shop.example"}
        assert app.post("/bandits/home/ask", headers=headers).status_code == 200
