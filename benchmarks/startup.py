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
ra.simulate(ra.{policy}, ra.Bernoulli([0.51] + [0.5] * 9), horizon=10_000, replications=32, seed=1)
"""


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
    print(table(["what", "seconds", "target"], rows))


if __name__ == "__main__":
    main()
