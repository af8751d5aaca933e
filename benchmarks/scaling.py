"""Time and memory by rounds, arms and cores: `python -m benchmarks.scaling`."""

from __future__ import annotations

import functools
import subprocess
import sys
import time

import rightarm as ra
from benchmarks.common import POLICIES, best_of, table
from benchmarks.peers import bernoulli_means
from rightarm import Policy

HORIZONS = (10**4, 10**5, 10**6, 10**7)
ARMS = (2, 10, 100, 1_000, 10_000)
CELL = """
import resource, sys
import rightarm as ra
from benchmarks.common import POLICIES, rightarm_ns
policy, arms, horizon = POLICIES[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
times = [rightarm_ns(policy, arms, horizon, 32, all_known=True) for _ in range(2)]
print(min(times), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def cell(policy: str, arms: int, horizon: int) -> tuple[float, float]:
    """Return nanoseconds per round and replication and the peak memory in MiB, measured in a process of its own."""
    command = [sys.executable, "-c", CELL, policy, str(arms), str(horizon)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(output[0]), float(output[1])


def wall(policy: Policy, workers: int) -> float:
    """Return the seconds on the clock of a simulation of some seconds."""
    problem = ra.problems.Bernoulli(bernoulli_means(10))
    start = time.perf_counter()
    ra.simulate(policy, problem, horizon=1_000_000, replications=256, seed=1, workers=workers)
    return time.perf_counter() - start


def main() -> None:
    """Measure everything and print it."""
    rows = []
    for horizon in HORIZONS:
        ns, memory = cell("bge", 10, horizon)
        rows.append([f"T = {horizon:,}", f"{ns:.1f}", f"{memory:.0f}"])
    print("BGE, K = 10, 32 replications\n\n" + table(["rounds", "ns per round", "peak memory, MiB"], rows) + "\n")
    rows = []
    for arms in ARMS:
        horizon = max(1_000, 10**8 // (32 * arms))
        ns, memory = cell("bge", arms, horizon)
        rows.append([f"K = {arms:,}", f"{horizon:,}", f"{ns:.1f}", f"{ns / arms:.2f}", f"{memory:.0f}"])
    titles = ["arms", "rounds", "ns per round", "ns per round and arm", "peak memory, MiB"]
    print("BGE, 32 replications\n\n" + table(titles, rows) + "\n")
    rows = []
    for name, policy in POLICIES.items():
        wall(policy, 2)
        one, two = (best_of(3, functools.partial(wall, policy, workers)) for workers in (1, 2))
        rows.append([name, f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}"])
    print(
        "K = 10, T = 10⁶, 256 replications, wall time\n\n"
        + table(["policy", "1 thread, s", "2 threads, s", "ratio"], rows)
    )


if __name__ == "__main__":
    main()
