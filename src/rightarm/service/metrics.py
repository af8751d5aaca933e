"""What Prometheus is told: plain numbers that requests count up, put into its format when it asks."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
DELAYS = (0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0, 259_200.0, 604_800.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024)
MEDIA = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """How many values were at most each of some bounds, and their sum.

    >>> histogram = Histogram([1, 10])
    >>> for value in (0.5, 7, 70):
    ...     histogram.add(value)
    >>> histogram.buckets(), histogram.total
    ([('1', 1), ('10', 2), ('+Inf', 3)], 77.5)
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, int]]:
        """The counts in Prometheus' way: each includes those before it."""
        names = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        return list(zip(names, itertools.accumulate(self.counts), strict=True))


class Metrics(Collector):
    """All that is counted. The commit thread and the event loop both add to it, but never to the same number."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()  # by method, route and status
        self.seconds: dict[str, Histogram] = {}  # by route
        self.decisions: Counter[str] = Counter()  # by bandit
        self.rewards: Counter[tuple[str, str]] = Counter()  # by bandit and outcome
        self.delays: dict[str, Histogram] = {}  # by bandit
        self.e_values: dict[str, float] = {}  # by bandit
        self.commit_sizes, self.commit_seconds, self.folded = Histogram(SIZES), Histogram(SECONDS), 0
        self._lock = threading.Lock()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self.requests[method, route, status] += 1
        if route not in self.seconds:
            self.seconds[route] = Histogram(SECONDS)
        self.seconds[route].add(seconds)

    def committed(self, requests: int, seconds: float, folded: int) -> None:
        """What waited was written: so many requests, in so many seconds, after so many events of other replicas."""
        self.commit_sizes.add(requests)
        self.commit_seconds.add(seconds)
        self.folded += folded

    def delayed(self, bandit: str, seconds: float) -> None:
        """A reward came so long after its decision."""
        if bandit not in self.delays:
            self.delays[bandit] = Histogram(DELAYS)
        self.delays[bandit].add(seconds)

    def text(self) -> bytes:
        """All of it as Prometheus reads it."""
        with self._lock:
            return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        yield _counter("requests", "Requests answered.", ["method", "route", "status"], self.requests.copy())
        yield _histograms("request_seconds", "From a request's first line to its answer.", "route", self.seconds)
        yield _counter("decisions", "Decisions made.", ["bandit"], {(n,): c for n, c in self.decisions.copy().items()})
        yield _counter("rewards", "Rewards told.", ["bandit", "outcome"], self.rewards.copy())
        yield _histograms("reward_delay_seconds", "From a decision to its reward.", "bandit", self.delays)
        yield _histograms("commit_requests", "Requests of one commit.", None, {"": self.commit_sizes})
        yield _histograms("commit_seconds", "How long a commit took.", None, {"": self.commit_seconds})
        yield _counter("folded_events", "Events of other replicas that were folded.", [], {(): self.folded})
        ratio = GaugeMetricFamily(
            "rightarm_sample_ratio_e_value",
            "Evidence that arms do not come as their propensities say; 1 at the beginning, above 100 is an alarm.",
            labels=["bandit"],
        )
        for bandit, value in self.e_values.copy().items():
            ratio.add_metric([bandit], value)
        yield ratio


def _counter(name: str, words: str, labels: list[str], counts: Mapping[Any, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"rightarm_{name}", words, labels=labels)
    for values, count in counts.items():
        family.add_metric([str(value) for value in values], count)
    return family


def _histograms(name: str, words: str, label: str | None, found: dict[str, Histogram]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"rightarm_{name}", words, labels=[] if label is None else [label])
    for value, histogram in list(found.items()):
        family.add_metric([] if label is None else [value], histogram.buckets(), sum_value=histogram.total)
    return family
