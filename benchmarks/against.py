"""This version against another: `python -m benchmarks.against OTHER_SRC`, the other's ``src`` folder.

CPU time on one core: of the engine per round and replication, and of a live bandit's ask and tell, in memory and with a
log. Both versions are measured in turn, each in a process of its own, and the least counts, so that a machine that is
busy or changes its pace troubles both alike. ``live`` as a second argument measures live bandits only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rightarm as ra
from benchmarks.common import POLICIES, TITLES, best_of, rightarm_ns, table

ARMS = (10, 100)
HORIZON = {10: 200_000, 100: 30_000}
REPLICATIONS = 64
TURNS = 6
TIMES = 3
MOST = 1.03  # this version over the other
LIVE_ROUNDS = 20_000
OURS = Path(__file__).parent.parent / "src"


def measured(source: Path, policy: str, arms: int | str) -> float:
    """Return the time of one version, in a process of its own."""
    path = os.pathsep.join([str(source), str(OURS.parent)])
    command = [sys.executable, "-m", "benchmarks.against", "measure", policy, str(arms)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return float(done.stdout)


def live_us(where: str) -> float:
    """Return CPU microseconds of an ask and a tell of BGE with 10 arms, in memory or with a log."""
    with tempfile.TemporaryDirectory() as folder:
        log = None if where == "memory" else f"{folder}/log.jsonl"
        bandit = ra.Bandit(range(10), ra.BoltzmannGumbel(C=0.5), seed=1, log=log)
        begin = time.process_time()
        for _ in range(LIVE_ROUNDS):
            bandit.tell(bandit.ask(), 0.5)
        return 1e6 * (time.process_time() - begin) / LIVE_ROUNDS


def compare_live(other: Path) -> None:
    """Measure live bandits of both versions and print them."""
    rows = []
    for where in ("memory", "log"):
        pairs = [(measured(other, "live", where), measured(OURS, "live", where)) for _ in range(TURNS)]
        theirs, ours = (min(values) for values in zip(*pairs, strict=True))
        rows.append([f"ask + tell, K = 10, {where}", f"{theirs:.2f}", f"{ours:.2f}", f"{ours / theirs:.3f}"])
    print("\n" + table(["live BGE", "other, µs", "this, µs", "this / other"], rows))


def compare_engines(other: Path) -> None:
    """Measure the engines of both versions and print them."""
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
    if sys.argv[1] != "measure":
        if "live" not in sys.argv[2:]:
            compare_engines(Path(sys.argv[1]).resolve())
        compare_live(Path(sys.argv[1]).resolve())
    elif sys.argv[2] == "live":
        print(best_of(TIMES, lambda: live_us(sys.argv[3])))
    else:
        name, count = sys.argv[2], int(sys.argv[3])
        print(best_of(TIMES, lambda: rightarm_ns(POLICIES[name], count, HORIZON[count], REPLICATIONS)))
