"""What Catoni's estimator costs: `python -m benchmarks.catoni`.

CPU nanoseconds on one core, all compiled, the least of several measurements.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rightarm as ra
from benchmarks.common import best_of, rightarm_ns, table
from rightarm.estimators.compiled_estimators import average, simulated_estimator
from rightarm.estimators.means import SIZE, estimate, push
from rightarm.estimators.reward_statistics import OWN
from rightarm.formula.compile import jit
from rightarm.simulation.kernels import count_pull

F64 = NDArray[np.float64]
ARMS, LANES, ROUNDS, TIMES = 10, 64, 20_000, 5
STREAMS = (100, 1_000, 10_000)
TARGET = 8.0  # the policy with Catoni's estimates over the policy with plain means, at most

LAWS: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], F64], float]] = {  # rewards, and C
    "Bernoulli(0.5), C = 0.5": (lambda random, shape: random.integers(0, 2, shape).astype(float), 0.5),
    "N(1, 2²), C = 2": (lambda random, shape: random.normal(1.0, 2.0, shape), 2.0),
    "Pareto(2.1), C = 1": (lambda random, shape: 1 + random.pareto(2.1, shape), 1.0),
    "N(1000, 1), C = 1: no value is small": (lambda random, shape: random.normal(1_000.0, 1.0, shape), 1.0),
}


@jit
def catoni_rounds(learn: Any, arm: Any, reward: F64, C: F64, kept: F64, pulls: F64, mean: F64, new: F64) -> None:
    """Rounds of the simulator that only learn, by Catoni's estimator."""
    nothing, pulled = np.zeros((0, 0)), np.zeros(new.size)
    for t in range(arm.shape[0]):
        learn(arm[t], reward[t], 1.0, C, kept, pulls, mean, nothing, pulled, new)


@jit
def mean_rounds(arm: Any, reward: F64, pulls: F64, pulled: F64, lost: F64, total: F64, mean: F64, new: F64) -> None:
    """Rounds of the simulator that only learn, by plain means; counting pulls is included."""
    for t in range(arm.shape[0]):
        count_pull(arm[t], pulls, pulled)
        average(arm[t], pulled[0], reward[t], total, lost, mean, new)


@jit
def streaming(values: F64, C: float, kept: F64) -> float:
    """One stream with an estimate after every value."""
    checksum = 0.0
    for i in range(values.size):
        push(kept, values[i], C)
        checksum += estimate(C, kept)
    return checksum


@jit
def naive(values: F64, C: float) -> float:
    """One stream, with the whole sum of the paper computed anew after every value."""
    checksum = 0.0
    for i in range(values.size):
        beta, total = C / math.sqrt(i + 1), 0.0
        scale = 1 / (beta * (i + 1))
        for s in range(i + 1):
            y = abs(values[s]) * scale
            total += math.copysign(math.log1p(y + y * y / 2), values[s])
        checksum += beta * total
    return checksum


def cpu_ns(call: Callable[[], Any], units: int) -> float:
    """CPU nanoseconds per unit."""
    start = time.process_time()
    call()
    return 1e9 * (time.process_time() - start) / units


def lanes_row(name: str) -> list[str]:
    """Nanoseconds per pull of both kinds of learning, 64 replications side by side."""
    law, C = LAWS[name]
    random = np.random.default_rng(1)
    arm, reward = random.integers(0, ARMS, (ROUNDS, LANES)), law(random, (ROUNDS, LANES))

    def outputs() -> tuple[F64, F64, F64]:
        return np.zeros((ARMS, LANES)), np.zeros((ARMS, LANES)), np.zeros(LANES)

    def catoni() -> float:
        estimator, kept, arrays = ra.estimators.Catoni(C), np.zeros((ARMS, LANES, OWN + SIZE)), outputs()
        learn = simulated_estimator(estimator).learn
        return cpu_ns(lambda: catoni_rounds(learn, arm, reward, estimator.numbers, kept, *arrays), arm.size)

    def plain() -> float:
        pulls, pulled, lost = np.zeros((ARMS, LANES)), np.zeros((1, LANES)), np.zeros((ARMS, LANES))
        arrays = outputs()
        return cpu_ns(lambda: mean_rounds(arm, reward, pulls, pulled, lost, *arrays), arm.size)

    catoni(), plain()  # compiled here
    ours, mean = best_of(TIMES, catoni), best_of(TIMES, plain)
    return [name, f"{ours:.1f}", f"{mean:.1f}", f"{ours - mean:.1f}"]


def stream_row(size: int) -> list[str]:
    """Nanoseconds per value of one stream, up to date after every value."""
    values, times = np.random.default_rng(1).standard_t(2.5, size), max(1, 1_000_000 // size**2)

    def ours() -> float:
        repeats = max(1, 1_000_000 // size)
        sums = [np.zeros(SIZE) for _ in range(repeats)]
        return cpu_ns(lambda: [streaming(values, 1.0, one) for one in sums], size * repeats)

    def printed() -> float:
        return cpu_ns(lambda: [naive(values, 1.0) for _ in range(times)], size * times)

    same = streaming(values, 1.0, np.zeros(SIZE)), naive(values, 1.0)  # compiled here
    assert math.isclose(*same, rel_tol=1e-9), same
    fast, slow = best_of(TIMES, ours), best_of(3, printed)
    return [f"{size:,}", f"{fast:.1f}", f"{slow:,.0f}", f"{slow / fast:,.1f}"]


def simulated_row() -> list[str]:
    """The whole policy at T = 10⁶, K = 10."""
    policies = ra.BoltzmannGumbel(C=0.5, estimator="catoni"), ra.BoltzmannGumbel(C=0.5)
    ours, mean = (best_of(TIMES, functools.partial(rightarm_ns, p, ARMS, 1_000_000, LANES)) for p in policies)
    verdict = "reached" if ours / mean <= TARGET else "not reached"
    return [f"{ours:.1f}", f"{mean:.1f}", f"{ours / mean:.2f}", f"≤ {TARGET:.0f}", verdict]


def main() -> None:
    """Measure everything and print it."""
    print(f"Learning alone, {ARMS} arms, {LANES} replications, ns per pull\n")
    print(table(["rewards", "Catoni", "plain mean", "difference"], [lanes_row(name) for name in LAWS]) + "\n")
    print("One stream, Student-t(2.5), an estimate after every value, ns per value\n")
    rows = [stream_row(size) for size in STREAMS]
    print(table(["values", "streaming", "the sum as printed", "printed / streaming"], rows) + "\n")
    print("BGE, Bernoulli arms, K = 10, T = 10⁶, ns per round\n")
    print(table(["Catoni", "plain mean", "Catoni / plain", "target", ""], [simulated_row()]))


if __name__ == "__main__":
    main()
