"""`rightarm serve` as a process: how it starts and ends, and that nobody who is slow or greedy stops the others."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serving import HOME, connection, server
from typer.testing import CliRunner

from rightarm.cli import app
from rightarm.service.app import LARGEST_HEAD
from rightarm.store import open_store

Running = tuple["subprocess.Popen[str]", str]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with server(tmp_path_factory.mktemp("served")) as found:
        assert httpx.put(f"{found[1]}/bandits/home", json=HOME, timeout=60).status_code == 201
        yield found


def response_on(raw: object) -> bytes:
    """All that comes until the other side closes."""
    data = b""
    while part := raw.recv(65536):  # type: ignore[attr-defined]
        data += part
    return data


def test_who_sends_slowly_stops_nobody(running: Running) -> None:
    head = b"POST /bandits/home/ask HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{"
    slow = [connection(running[1]) for _ in range(40)]
    for one in slow[:20]:
        one.sendall(head)  # a body that does not come
    for one in slow[20:]:
        one.sendall(head[:30])  # a head that does not come
    answer = httpx.post(f"{running[1]}/bandits/home/ask", json={})
    assert answer.status_code == 200
    for one in slow:
        one.close()


def test_who_reads_nothing_stops_nobody(running: Running) -> None:
    greedy = connection(running[1])
    greedy.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 200)  # megabytes of answers
    assert httpx.get(f"{running[1]}/health").status_code == 200
    greedy.close()


def test_what_is_no_request_is_refused_as_a_problem(running: Running) -> None:
    for raw, status in [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * (LARGEST_HEAD + 10), b"431"),
        (
            b"POST /bandits/home/ask HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2000000\r\n\r\n" + b"y" * 1_100_000,
            b"413",
        ),
    ]:
        with connection(running[1]) as one:
            one.sendall(raw)
            answer = response_on(one)
        assert answer.startswith(b"HTTP/1.1 " + status), answer[:200]
        assert b"application/problem+json" in answer


TARGETS = [
    (b"GET /bandits HTTP/1.1\r\nhost: localhost\r\n", b"200"),
    (b"GET /bandits HTTP/1.1\r\nHOST: [::1]:80\r\n", b"200"),
    (b"GET /bandits HTTP/1.1\r\nhost: evil.example\r\n", b"421"),
    (b"GET /bandits HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n", b"400"),
    (b"GET /bandits HTTP/1.1\r\n", b"400"),
    (b"GET /bandits HTTP/1.0\r\n", b"400"),
    (b"GET http://evil.example/bandits HTTP/1.1\r\nhost: localhost\r\n", b"421"),
    (b"GET http://evil.example:80/bandits HTTP/1.1\r\n", b"421"),
    (b"GET http://localhost@evil.example/bandits HTTP/1.1\r\nhost: localhost\r\n", b"421"),
    (b"GET http://[::1]:80/bandits HTTP/1.1\r\nhost: evil.example\r\n", b"200"),
    (b"GET //evil.example/bandits HTTP/1.1\r\nhost: localhost\r\n", b"404"),
    (b"GET evil.example/bandits HTTP/1.1\r\nhost: localhost\r\n", b"400"),
]


@pytest.mark.parametrize(("head", "status"), TARGETS)
def test_a_request_is_for_the_host_that_its_target_names(running: Running, head: bytes, status: bytes) -> None:
    with connection(running[1]) as one:
        one.sendall(head + b"connection: close\r\n\r\n")
        answer = response_on(one)
    assert answer.split(b" ", 2)[1] == status, answer[:500]


def test_it_finishes_what_it_acknowledged_when_told_to_end(tmp_path: Path) -> None:
    with server(tmp_path) as (process, address):
        with httpx.Client(base_url=address, timeout=60) as client:
            client.put("/bandits/home", json=HOME)
        made: list[int] = []

        def play() -> None:
            with httpx.Client(base_url=address, timeout=60) as client:
                try:
                    while True:
                        answer = client.post("/bandits/home/ask", json={})
                        if answer.status_code == 200:
                            made.append(answer.json()["decision"])
                        if len(made) > 200:
                            enough.set()
                except httpx.TransportError:  # it has ended
                    return

        enough = threading.Event()
        players = [threading.Thread(target=play) for _ in range(4)]
        for player in players:
            player.start()
        assert enough.wait(60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        for player in players:
            player.join(60)
    store = open_store(f"sqlite:///{tmp_path}/home.db")
    assert all(store.decision("home", number) is not None for number in made)
    store.close()
    with server(tmp_path) as (_, address):  # and goes on where it was
        assert httpx.get(f"{address}/bandits/home", timeout=60).json()["decisions"] >= len(made)


def test_wrong_options_end_in_one_line(tmp_path: Path, running: Running) -> None:
    url, port = f"sqlite:///{tmp_path}/other.db", running[1].rpartition(":")[2]
    cases = [
        (["--store", url, "--host", "0.0.0.0"], "host must be a loopback address"),
        (["--store", url, "--port", port], "cannot listen on"),
        (["--store", "nonsense"], "store must be an address"),
        (["--store", url, "--rate", "0"], "rate must be positive"),
        (["--store", url, "--host-name", "http://x"], "host_name must be a name such as shop.example"),
        (["--store", url, "--module", "no_such_module"], "no_such_module"),
    ]
    for options, words in cases:
        result = CliRunner().invoke(app, ["serve", *options])
        assert (result.exit_code in (1, 2), words in result.output) == (True, True), result.output
        assert len(result.output.splitlines()) == 1
