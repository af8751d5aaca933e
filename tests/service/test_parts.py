"""The small parts of the service, each by itself."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvicorn
from serving import served
from uvicorn.server import ServerState

from rightarm.errors import WrongType, WrongValue
from rightarm.evaluation import sample_ratio
from rightarm.logs.events import ENCODER, Changed, Decision, Event
from rightarm.service import app as app_module
from rightarm.service import app as server
from rightarm.service.access import LOCAL
from rightarm.service.app import App, depth
from rightarm.service.background import Watch
from rightarm.service.monitoring import Metrics, ServiceLog
from rightarm.service.operations import Operation, Request, arms_by_text
from rightarm.service.problem_details import Refusal, Response, refusal_of, reply_to
from rightarm.service.service import Policies, Service
from rightarm.store import Commits, Conflict, Missing, Unavailable, open_store
from rightarm.store.table_journal import StoredEvent


def problem_of(error: Exception) -> Any:
    reply = reply_to(error)
    assert isinstance(reply.body, bytes)
    return json.loads(reply.body)


def test_errors_have_their_statuses() -> None:
    with pytest.raises(msgspec.ValidationError) as missing:
        msgspec.json.decode(b'{"rewards": [{}]}', type=dict[str, list[msgspec.defstruct("One", [("reward", float)])]])  # type: ignore[misc]
    cases: list[tuple[Exception, int, str | None, str]] = [
        (Missing("no", "name"), 404, "name", "not_found"),
        (Conflict("no", "key"), 409, "key", "conflict"),
        (Conflict("no", "key", code="key_taken"), 409, "key", "key_taken"),
        (Unavailable("no"), 503, None, "unavailable"),
        (TimeoutError(), 503, None, "unavailable"),
        (WrongValue("holdout", "must be below 1, got 1.0", code="out_of_range"), 422, "holdout", "out_of_range"),
        (WrongType("arms", "must be several names, got 'a'"), 422, "arms", "wrong_type"),
        (ValueError("floor must be better"), 422, None, "invalid"),  # nothing is found in words
        (RecursionError("too deep"), 400, None, "malformed"),
        (missing.value, 422, "[...][0].reward", "missing_field"),
    ]
    for error, status, field, code in cases:
        found = refusal_of(error)
        assert (found.status, found.field, found.code) == (status, field, code), error
    assert reply_to(Unavailable("no")).headers == {"retry-after": "1"}
    half = problem_of(ValueError("half a pair: \ud800"))
    assert (half["detail"], half["type"]) == ("half a pair: ?", "urn:rightarm:problem:invalid")


def test_our_own_faults_say_where_they_are_but_not_to_clients(capsys: pytest.CaptureFixture[str]) -> None:
    found = problem_of(ZeroDivisionError("secret"))
    assert (found["status"], "secret" in str(found)) == (500, False)
    assert "ZeroDivisionError: secret" in capsys.readouterr().err


def test_depth_is_that_of_brackets_outside_of_texts() -> None:
    assert depth(b'{"a]": ["\\"[[", {"b": [1]}]}') == 4
    assert depth(b'["' + b'\\"' * 500_000 + b"[[") == 1  # a text without an end is looked through once


def test_arms_of_an_address_are_texts_or_numbers() -> None:
    assert (arms_by_text(["a", 7])["7"], arms_by_text(["7", 7])["7"], arms_by_text([7, "7"])["7"]) == (7, "7", "7")


def test_policies_of_modules_that_were_named_at_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import rightarm as ra\n@ra.policy\ndef Sloth(pulls, mean, *, C: float = 1.0):\n    return mean / pulls\n"
    (tmp_path / "mine_of_service.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    policies = Policies(["mine_of_service"])
    assert repr(policies.read("mine_of_service:Sloth(C=2)", None, 2)) == "Sloth(C=2.0)"
    for text in ("mine_of_service:ra", "json:loads('1')", "rightarm.policies:UCB1()"):
        with pytest.raises(Refusal, match="there is no"):
            policies.read(text, None, 2)
    assert str(tmp_path) not in sys.path


def test_the_watch_gives_what_sample_ratio_gives() -> None:
    arms = ["a"] * 30 + ["b"] * 30
    events: list[Event] = [Changed(arms=["a", "b"], time=1.0)]
    for n, arm in enumerate(arms, start=2):
        events.append(Decision(id=n, arm=arm, propensity=0.5, round=n, version=n - 1, time=1.0))
    stored = [StoredEvent(n, ENCODER.encode(event).decode(), b"") for n, event in enumerate(events, start=1)]
    watch = Watch()
    watch.take(stored[:40])
    watch.take(stored[40:])
    expected = sample_ratio({"arm": arms, "propensity": [0.5] * 60, "allowed": [["a", "b"]] * 60}).e_value
    assert watch.look() == expected > 100


def test_histograms_are_prometheus_own() -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.004, 99.0):
        metrics.committed(3, seconds, 2)
    text = metrics.text().decode()
    for line in (
        'rightarm_commit_seconds_bucket{le="0.001"} 1.0',
        'rightarm_commit_seconds_bucket{le="+Inf"} 3.0',
        'rightarm_commit_requests_bucket{le="4.0"} 3.0',
        "rightarm_folded_events_total 6.0",
    ):
        assert line in text


def test_who_writes_to_the_log_never_waits_for_it() -> None:
    read, write = __import__("os").pipe()
    with contextlib.suppress(BrokenPipeError), open(write, "w") as file:
        log = ServiceLog(file)
        for i in range(20_000):  # far more than a pipe holds that nobody reads
            log.say("something", number=i)
        log.close()
        __import__("os").close(read)


def test_lines_are_written_in_their_order() -> None:
    file = io.StringIO()
    log = ServiceLog(file)
    for i in range(100):
        log.say("something", number=i)
    log.close()
    assert [json.loads(line)["number"] for line in file.getvalue().splitlines()] == list(range(100))


def test_a_full_disk_does_not_end_the_log() -> None:
    class Full(io.StringIO):
        refused = threading.Event()

        def write(self, text: str) -> int:
            if not self.refused.is_set():
                self.refused.set()
                raise OSError(28, "No space left on device")
            return super().write(text)

    file = Full()
    log = ServiceLog(file)
    log.say("lost")
    assert file.refused.wait(60)
    log.say("kept")
    log.close()
    assert json.loads(file.getvalue())["event"] == "kept"


def test_results_and_errors_come_to_the_event_loop(sqlite_url: str) -> None:
    service = Service(Commits(open_store(sqlite_url)), log=ServiceLog(io.StringIO()))
    dones = list[Any]()
    service.commits.call = lambda work, done: dones.append(done)  # type: ignore[method-assign]

    async def play() -> list[Any]:
        waiters = [asyncio.ensure_future(service.commit("home", lambda live: None)) for _ in range(3)]
        await asyncio.sleep(0)
        waiters[2].cancel()
        for done, result in zip(dones, (7, ValueError("no"), 8), strict=True):
            await asyncio.to_thread(done, result)
        return list(await asyncio.gather(*waiters[:2], return_exceptions=True))

    value, error = asyncio.run(play())
    assert (value, str(error)) == (7, "no")
    service.close()


class Slow:
    """A service of which nothing is used but its metrics and its log."""

    def __init__(self) -> None:
        self.metrics, self.log = Metrics(), ServiceLog(io.StringIO())
        self.access = self

    def check_host(self, headers: Any) -> None:
        pass

    async def caller(self, headers: Any) -> Any:
        return LOCAL


async def never(request: Request, body: Any = None) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(("body", "status"), [(dict[str, Any], 408), (None, 503)])
def test_a_request_has_an_end(monkeypatch: pytest.MonkeyPatch, body: Any, status: int) -> None:
    monkeypatch.setattr(app_module, "PATIENCE", 0.01)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    slow = Operation(never, "POST", "/slow", "ask", body)
    app = App(Slow(), operations=[slow])  # type: ignore[arg-type]
    asyncio.run(app({"type": "http", "path": "/slow", "method": "POST", "headers": []}, receive, send))
    assert sent[0]["status"] == status
    assert json.loads(sent[1]["body"])["status"] == status


def test_a_stream_ends_when_the_client_is_gone() -> None:
    ended, sent = list[str](), list[Any]()

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"more"
                await asyncio.sleep(0)
        finally:
            ended.append("closed")

    async def stream(request: Request) -> Response:
        return Response(endless(), media="text/plain")

    async def receive() -> Any:
        while len(sent) < 5:
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = App(Slow(), operations=[Operation(stream, "GET", "/stream", None)])  # type: ignore[arg-type]
    asyncio.run(app({"type": "http", "path": "/stream", "method": "GET", "headers": []}, receive, send))
    assert ended == ["closed"]
    assert sent[-1]["more_body"]  # it has not come to its end


@pytest.mark.parametrize("parts", [[], [b'{"unit": "x"}']])
@pytest.mark.parametrize("path", ["/bandits/home/ask", "/bandits/home/cancel"])
def test_what_a_client_did_not_send_to_its_end_is_not_done(sqlite_url: str, path: str, parts: list[bytes]) -> None:
    sent: list[Any] = []
    messages: list[Any] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages.append({"type": "http.disconnect"})

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    with served(sqlite_url) as app:
        before = app.get("/bandits/home").json()["version"]
        scope: Any = {"type": "http", "path": path, "method": "POST", "headers": [(b"host", b"localhost")]}
        asyncio.run(app.app(scope, receive, send))
        assert app.get("/bandits/home").json()["version"] == before
    assert sent[0]["status"] == 400


def test_the_rest_of_a_body_whose_request_is_answered_must_come_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.05)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def play() -> bytes:
        config = uvicorn.Config(app, http=server.Protocol, lifespan="off", log_config=None, timeout_keep_alive=75)
        config.load()
        loop, state = asyncio.get_running_loop(), ServerState()
        made = await loop.create_server(lambda: server.Protocol(config, state, {}), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*made.sockets[0].getsockname())
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{")
        found = await asyncio.wait_for(reader.read(), 20)  # to the end: the connection is closed
        writer.close()
        made.close()
        return found

    assert asyncio.run(play()).startswith(b"HTTP/1.1 401")
