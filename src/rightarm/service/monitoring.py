"""`Metrics` for Prometheus, and `ServiceLog`: a line of JSON for each request."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import TextIO

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
DELAYS = (0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0, 259_200.0, 604_800.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024)
PAUSE = 0.05  # seconds between writes of the log
METRICS_MEDIA = "text/plain; version=0.0.4"
MOST_LINES = 100_000  # that wait to be written; where nobody reads them, later ones are dropped
E_VALUE = "Evidence that arms do not come as their propensities say; 1 at the beginning, above 100 is an alarm."


class Metrics:
    """Everything that the service counts."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.requests = self._counter("requests", "Requests answered.", "method", "route", "status")
        self.seconds = self._histogram("request_seconds", "From a request to its answer.", SECONDS, "route")
        self.decisions = self._counter("decisions", "Decisions made.", "bandit")
        self.rewards = self._counter("rewards", "Rewards told.", "bandit", "outcome")
        self.delays = self._histogram("reward_delay_seconds", "From a decision to its reward.", DELAYS, "bandit")
        self.commit_sizes = self._histogram("commit_requests", "Requests of one commit.", SIZES)
        self.commit_seconds = self._histogram("commit_seconds", "How long a commit took.", SECONDS)
        self.folded = self._counter("folded_events", "Events of other replicas that were folded.")
        self.e_values = Gauge("rightarm_sample_ratio_e_value", E_VALUE, ["bandit"], registry=self.registry)
        self._answered: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}  # finding them takes longer

    def _counter(self, name: str, words: str, *labels: str) -> Counter:
        return Counter(f"rightarm_{name}", words, labels, registry=self.registry)

    def _histogram(self, name: str, words: str, bounds: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"rightarm_{name}", words, labels, buckets=bounds, registry=self.registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        found = self._answered.get((method, route, status))
        if found is None:
            found = self.requests.labels(method, route, status), self.seconds.labels(route)
            self._answered[method, route, status] = found
        counter, histogram = found
        counter.inc()
        histogram.observe(seconds)

    def committed(self, requests: int, seconds: float, folded: int) -> None:
        """Count a commit: so many requests, in so many seconds, after so many events of other replicas."""
        self.commit_sizes.observe(requests)
        self.commit_seconds.observe(seconds)
        self.folded.inc(folded)

    def text(self) -> bytes:
        """Return all numbers as Prometheus reads them."""
        return generate_latest(self.registry)


class RequestLine(msgspec.Struct, omit_defaults=True):
    """A request that was answered."""

    time: float
    method: str
    route: str
    """The path with the names of its parts: ``/bandits/{name}/ask``. What is secret or personal is not in it."""
    status: int
    ms: float
    token: str
    """The id of the token, never the token."""
    bandit: str = ""


Line = RequestLine | dict[str, str | float]


class ServiceLog:
    """Lines of JSON to a file, written by a thread of its own; whoever adds one never waits for it."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._lines: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()

    def add(self, line: Line) -> None:
        """Write a line soon."""
        if self._lines.qsize() < MOST_LINES:
            self._lines.put_nowait(line)

    def say(self, event: str, **more: str | float) -> None:
        """Write that something happened."""
        self.add({"time": round(time.time(), 3), "event": event, **more})

    def close(self) -> None:
        """Write what is left, if that does not take long."""
        if not self._closed:
            self._closed = True
            self._lines.put_nowait(None)
            self._thread.join(timeout=1.0)

    def _write_all(self) -> None:
        """Write what came in a while together: waking for each line would take as long as to answer a request."""
        encoder = msgspec.json.Encoder()
        is_open = True
        while is_open:
            lines = [self._lines.get()]
            time.sleep(PAUSE)
            lines += [self._lines.get_nowait() for _ in range(self._lines.qsize())]
            if lines[-1] is None:
                lines.pop()
                is_open = False
            with contextlib.suppress(OSError, ValueError):  # the disk is full, or nobody reads: the lines are lost
                self._file.write(encoder.encode_lines(lines).decode())
                self._file.flush()
