"""Long logs, written and read: `python -m benchmarks.logs [OTHER_SRC]`, the ``src`` folder of another version.

500,000 decisions with rewards, a million events. CPU seconds, imports excluded, and the memory of the whole process;
each measurement is a process of its own, versions take turns, and the least counts.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars  # noqa: F401, read_log imports it, and that is not measured

import rightarm as ra
from benchmarks.common import table

DECISIONS, WRITTEN, BATCH, TURNS = 500_000, 10_000, 1_000, 3
ARMS = ["red", "green", "blue"]
OURS = Path(__file__).parent.parent / "src"
TARGETS = {"read": "≤ 3 s, ≤ 400 MB", "open": "≤ 3 s", "write": ""}
TITLES = {"read": "read_log, s", "open": "LogWriter opens it, s", "write": "a decision and its reward written, µs"}


def write(log: ra.logs.LogWriter, i: int, what: str) -> None:
    """Write a decision or its reward."""
    start = 1_700_000_000 + i / 3
    if what == "decision":
        log.decision(i, ARMS[i % 3], 1 / (1 + i % 7), round=i, version=i, time=start)
    else:
        log.reward(i, float(i % 5 == 0), time=start + 60.25)


def fill(path: Path, decisions: int) -> None:
    """Write a log of so many decisions."""
    with ra.logs.LogWriter(path) as log:
        log.arms(ARMS, 1_700_000_000.0)
        for first in range(1, decisions + 1, BATCH):
            for what in ("decision", "reward"):
                for i in range(first, first + BATCH):
                    write(log, i, what)


def use(what: str, path: Path) -> float:
    """CPU seconds, or microseconds for one decision written with its reward."""
    start = time.process_time()
    if what == "read":
        assert len(ra.logs.read_log(path)) == DECISIONS
    elif what == "open":
        with ra.logs.LogWriter(path) as log:
            assert log.last_id == DECISIONS
    else:
        with ra.logs.LogWriter(path.with_name("short.jsonl")) as log:
            for i in range(WRITTEN):
                write(log, i, "decision")
                write(log, i, "reward")
        path.with_name("short.jsonl").unlink()
        return 1e6 * (time.process_time() - start) / WRITTEN
    return time.process_time() - start


def measured(source: Path, what: str, path: Path) -> list[float]:
    """What `use` gives in a process of its own, and its memory in MB."""
    command = [sys.executable, "-m", "benchmarks.logs", what, str(path)]
    places = os.pathsep.join([str(source), str(OURS.parent)])
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": places}, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def main(versions: dict[str, Path]) -> None:
    """Measure all versions and print them."""
    with tempfile.TemporaryDirectory() as folder:
        logs = {}
        for number, (name, source) in enumerate(versions.items()):
            logs[name] = Path(folder) / f"{number}.jsonl"
            measured(source, "fill", logs[name])
        rows = []
        for what, title in TITLES.items():
            least = {name: [float("inf")] * 2 for name in versions}
            for _ in range(TURNS):
                for name, source in versions.items():
                    least[name] = [
                        min(pair) for pair in zip(least[name], measured(source, what, logs[name]), strict=True)
                    ]
            rows.append([title, *(f"{cpu:.2f}, {memory:.0f} MB" for cpu, memory in least.values()), TARGETS[what]])
    print(table(["", *versions, "target"], rows))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        if sys.argv[1] == "fill":
            fill(Path(sys.argv[2]), DECISIONS)
        else:
            print(use(sys.argv[1], Path(sys.argv[2])), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    else:
        main({f"other ({path})": Path(path).resolve() for path in sys.argv[1:2]} | {"this": OURS})
