"""This version's engine against another's: `python -m benchmarks.against OTHER_SRC`, the other's ``src`` folder.

CPU nanoseconds per round and replication on one core. Both versions are measured in turn, each in a process of its own,
and the least counts, so that a machine that is busy or changes its pace troubles both alike.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.common import POLICIES, TITLES, best_of, rightarm_ns, table

ARMS, HORIZON, REPLICATIONS, TURNS, TIMES, MOST = (10, 100), {10: 200_000, 100: 30_000}, 64, 6, 3, 1.03
OURS = Path(__file__).parent.parent / "src"


def measured(source: Path, policy: str, arms: int) -> float:
    """Nanoseconds of one version, in a process of its own."""
    path = os.pathsep.join([str(source), str(OURS.parent)])
    command = [sys.executable, "-m", "benchmarks.against", "measure", policy, str(arms)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(other: Path) -> None:
    """Measure both versions and print them."""
    rows = []
    for arms in ARMS:
        for policy, title in TITLES.items():
            pairs = [(measured(other, policy, arms), measured(OURS, policy, arms)) for _ in range(TURNS)]
            theirs, ours = (min(values) for values in zip(*pairs, strict=True))
            verdict = "reached" if ours <= MOST * theirs else "not reached"
            row = [f"{title}, K = {arms}", f"{theirs:.2f}", f"{ours:.2f}", f"{ours / theirs:.3f}", verdict]
            rows.append(row)
            print(" ".join(row), flush=True)
    print("\n" + table(["policy", "other, ns", "this, ns", "this / other", f"≤ {MOST}"], rows))


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        name, count = sys.argv[2], int(sys.argv[3])
        print(best_of(TIMES, lambda: rightarm_ns(POLICIES[name], count, HORIZON[count], REPLICATIONS)))
    else:
        main(Path(sys.argv[1]).resolve())
