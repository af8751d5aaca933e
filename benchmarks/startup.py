"""How long until something happens: `python -m benchmarks.startup`."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.common import best_of, table

FIRST = """
import rightarm as ra
ra.simulate(ra.{policy}, ra.problems.Bernoulli([0.51] + [0.5] * 9), horizon=10_000, replications=32, seed=1)
"""


LIVE = """
import time
import numba, rightarm as ra
from numba.core.registry import cpu_target
cpu_target.target_context.refresh()  # what Numba imports when it compiles first
start = time.process_time()
bandit = ra.Bandit(["a", "b", "c"], ra.{policy})
made = time.process_time()
bandit.tell(bandit.ask(), 1.0)
answered = time.process_time()
for _ in range(4):
    bandit.tell(bandit.ask(), 0.0)
print(made - start, 1e3 * (answered - made), 1e3 * (time.process_time() - answered) / 4)
"""


def live(policy: str, folder: str) -> list[float]:
    """CPU seconds of making a bandit in a new process; milliseconds of its first ask and tell, and of later ones."""
    command = [sys.executable, "-c", LIVE.format(policy=policy)]
    environment = os.environ | {"RIGHTARM_CACHE_DIR": folder}
    told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return [float(number) for number in told.split()]


def live_rows(policy: str) -> list[list[str]]:
    """A bandit in an empty folder of machine code, and again."""
    with tempfile.TemporaryDirectory() as folder:
        cold = live(policy, folder)
        warm = min(live(policy, folder) for _ in range(3))
    name = f"a live bandit with {policy}, CPU seconds beyond imports"
    return [
        [f"{name}: made, everything compiled", f"{cold[0]:.2f}", "< 5"],
        [f"{name}: made, warm cache", f"{warm[0]:.2f}", "< 0.3"],
        ["its first ask and tell, milliseconds", f"{cold[1]:.2f}", "< 1"],
        ["those after, milliseconds", f"{cold[2]:.2f}", ""],
    ]


def seconds(code: str, **variables: str) -> float:
    """Wall time of a new process that runs ``code``."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=os.environ | variables, check=True)
    return time.perf_counter() - start


def main() -> None:
    """Measure everything and print it."""
    numpy, ours = (best_of(5, functools.partial(seconds, f"import {m}")) for m in ("numpy", "rightarm"))
    with tempfile.TemporaryDirectory() as folder:
        first = FIRST.format(policy="BoltzmannGumbel(C=0.5)")
        cold = seconds(first, RIGHTARM_CACHE_DIR=folder)
        another = seconds(FIRST.format(policy="UCB(C=0.5)"), RIGHTARM_CACHE_DIR=folder)
        warm = best_of(3, lambda: seconds(first, RIGHTARM_CACHE_DIR=folder))
    rows = [
        ["import numpy", f"{numpy:.2f}", ""],
        ["import rightarm, beyond NumPy", f"{ours - numpy:.2f}", "< 0.3"],
        ["first simulation ever, everything compiled", f"{cold:.2f}", ""],
        ["then the first of another policy in a new process, its formula compiled", f"{another:.2f}", ""],
        ["first simulation of a new process, warm cache", f"{warm:.2f}", "< 3"],
    ]
    for policy in ("ScaledGumbel()", "BetaThompson()", "UCB(C=0.5)"):
        rows += live_rows(policy)
    print(table(["what", "seconds", "target"], rows))


if __name__ == "__main__":
    main()
