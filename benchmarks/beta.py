"""Beta Thompson sampling in this version and in another one: `python -m benchmarks.beta OTHER_SRC`.

CPU time of ask + tell and of a simulated round on one core; the versions take turns in processes of their own, and the
least of several measurements counts.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import rightarm as ra
from benchmarks.common import rightarm_ns, table

OURS = Path(__file__).parent.parent / "src"
TIMES = 3
ROUNDS = {10: 2_000, 100: 500, 1_000: 50}
TARGETS = {"ask + tell, K = 10": "≤ 15", "ask + tell, K = 100": "≤ 100", "a simulated round, K = 10": "≤ 0.15"}


def live(arms: int, rounds: int) -> float:
    """CPU microseconds per ask and tell on Bernoulli arms, every arm known."""
    bandit, luck = ra.Bandit(range(arms), ra.BetaThompson(), seed=1), random.Random(5)
    means: dict[Any, float] = {arm: luck.random() for arm in range(arms)}
    for arm in range(arms):
        bandit.tell(arm=arm, reward=0.5)
    bandit.ask()
    begun = time.process_time()
    for _ in range(rounds):
        decision = bandit.ask()
        bandit.tell(decision, float(luck.random() < means[decision.arm]))
    return 1e6 * (time.process_time() - begun) / rounds


def microseconds() -> dict[str, float]:
    """All that is measured, in this process."""
    found = {f"ask + tell, K = {arms:,}": live(arms, rounds) for arms, rounds in ROUNDS.items()}
    return found | {"a simulated round, K = 10": 1e-3 * rightarm_ns(ra.BetaThompson(), 10, 50_000, 64)}


def microseconds_of(source: Path) -> dict[str, float]:
    """The same of one version, in a process of its own."""
    path = os.pathsep.join([str(source), str(OURS.parent)])
    command = [sys.executable, "-m", "benchmarks.beta", "measure"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(other: Path) -> None:
    """Measure both versions in turns and print them."""
    runs = [(microseconds_of(other), microseconds_of(OURS)) for _ in range(TIMES)]
    theirs, ours = ({name: min(run[i][name] for run in runs) for name in runs[0][i]} for i in (0, 1))
    rows = [
        [name, f"{theirs[name]:,.2f}", f"{ours[name]:,.2f}", f"{theirs[name] / ours[name]:.1f}", TARGETS.get(name, "")]
        for name in ours
    ]
    print("Beta Thompson sampling, CPU µs\n")
    print(table(["", "before", "now", "times as fast", "target"], rows))


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        print(json.dumps(microseconds()))
    else:
        main(Path(sys.argv[1]).resolve())
