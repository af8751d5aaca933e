"""Run the tests again and again in random order while all cores are busy.

``python tests/stress.py 10 tests/experiments``:

The first argument is how often, all others go to pytest. A run that fails says the seed of its order.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time

HOURS = 2  # after which the other work ends by itself, whatever became of this process


def be_busy(until: float) -> None:
    parent = os.getppid()
    while time.monotonic() < until and os.getppid() == parent:
        sum(range(1_000_000))


def run_tests(seed: int, arguments: list[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "--random-order", f"--random-order-seed={seed}", *arguments]
    start = time.monotonic()
    passed = subprocess.run(command, check=False).returncode == 0
    minutes = (time.monotonic() - start) / 60
    print(f"order {seed}: {'passed' if passed else 'FAILED'} in {minutes:.1f} min", flush=True)
    return passed


def main(times: int, arguments: list[str]) -> None:
    """Exit with 1 if any of the runs failed."""
    until = time.monotonic() + 3_600 * HOURS
    others = [multiprocessing.Process(target=be_busy, args=(until,), daemon=True) for _ in range(os.cpu_count() or 1)]
    for other in others:
        other.start()
    try:
        passed = [run_tests(seed, arguments) for seed in range(1, times + 1)]
    finally:
        for other in others:
            other.terminate()
    print(f"{sum(passed)} of {times} runs passed while {len(others)} other processes kept the cores busy")
    sys.exit(not all(passed))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:])
