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
from rightarm.service.access import FRESH, Access, is_loopback
from rightarm.service.problems import Refusal
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
        app.service.journal.close()
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


@pytest.mark.parametrize(
    ("origin", "status"), [("http://evil.example", 403), ("null", 403), ("http://localhost:3000", 200)]
)
def test_pages_of_other_hosts_need_a_token(sqlite_url: str, origin: str, status: int) -> None:
    with served(sqlite_url) as app:
        headers = {"origin": origin, "content-type": "text/plain"}
        assert app.post("/bandits/home/ask", headers=headers).status_code == status
