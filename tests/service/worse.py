"""Starts `rightarm` in a world that is worse than the real one: python worse.py OPTIONS -- serve --store ...

- ``--tape FILE``: SQLite stands on the shim of `power`, which writes a tape. ``--full FILE``: while there is such a
  file, the disk is full.
- ``--jumps SEED``: the clock jumps, back and forth, by up to two hours.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

HOURS = 2 * 3600.0


def jumping(seed: int, real: Callable[[], float] = time.time) -> Callable[[], float]:
    """A clock that jumps at one reading in fifty."""
    luck, offset = random.Random(seed), 0.0

    def clock() -> float:
        nonlocal offset
        if luck.random() < 0.02:
            offset = luck.uniform(-HOURS, HOURS)
        return real() + offset

    return clock


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tape", type=Path)
    parser.add_argument("--full", type=Path)
    parser.add_argument("--jumps", type=int)
    parser.add_argument("command", nargs="*")
    options = parser.parse_args(arguments)
    if options.tape is not None:
        sys.path.append(str(Path(__file__).parents[1]))
        import power

        keep.append(power.Shim(options.tape, options.full))
    if options.jumps is not None:
        time.time = jumping(options.jumps)  # before rightarm is imported, which takes this clock
    from rightarm.cli import main

    sys.argv = ["rightarm", *options.command]
    main()


keep: list[object] = []  # SQLite calls the shim until the process ends

if __name__ == "__main__":
    main(sys.argv[1:])
