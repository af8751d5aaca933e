"""What a run of the tests compiles, and the seconds of each kernel: ``python -m benchmarks.kernels tests/policies``.

All arguments go to pytest. The run starts with nothing compiled, in a folder of its own. Processes that tests start by
themselves are not counted. A kernel that several processes compiled is one that they did not share.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, cast

NOTES = "RIGHTARM_KERNEL_NOTES"  # the file that processes write to
HASH = re.compile(r"_[0-9a-f]{24}$")  # which ends the name of a template made special by a formula
SHOWN = 40


class Stopwatch:
    """Notes the processor time of each compilation, without that of the compilations inside it."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes
        self.running: list[tuple[float, list[float]]] = []

    def start(self) -> None:
        self.running.append((time.thread_time(), []))

    def stop(self, kernel: str, arguments: str) -> None:
        started, inner = self.running.pop()
        seconds = time.thread_time() - started
        if self.running:
            self.running[-1][1].append(seconds)
        note = {"kernel": kernel, "arguments": arguments, "seconds": seconds - sum(inner), "process": os.getpid()}
        with self.notes.open("a") as file:
            file.write(json.dumps(note) + "\n")


def record(notes: Path) -> None:
    """Have Numba tell a stopwatch of every compilation in this process."""
    from numba.core import ccallback, event

    stopwatch, callback = Stopwatch(notes), cast(Any, ccallback.CFunc)

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            stopwatch.start()

        def on_end(self, event: Any) -> None:
            stopwatch.stop(event.data["dispatcher"].py_func.__qualname__, str(event.data["args"]))

    cast(Any, event).register("numba:compile", Listener())
    compile_function_pointer = callback._compile_uncached

    def timed(function: Any) -> Any:  # which has no event
        stopwatch.start()
        try:
            return compile_function_pointer(function)
        finally:
            stopwatch.stop(function._pyfunc.__qualname__, str(function._sig))

    callback._compile_uncached = timed


if NOTES in os.environ:  # as a plugin of pytest, in each of its processes
    record(Path(os.environ[NOTES]))


def show(notes: list[dict[str, Any]]) -> None:
    """Print the kernels, those that took longest first; the variants of a template are one line."""
    by_kernel: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for note in notes:
        by_kernel[HASH.sub("", note["kernel"])].append(note)
    seconds = {kernel: sum(note["seconds"] for note in of) for kernel, of in by_kernel.items()}
    print(f"{'seconds':>8} {'compiled':>9} {'different':>10} {'longest':>8}  kernel")
    for kernel in sorted(by_kernel, key=lambda kernel: -seconds[kernel])[:SHOWN]:
        of = by_kernel[kernel]
        different = len({(note["kernel"], note["arguments"]) for note in of})
        longest = max(note["seconds"] for note in of)
        print(f"{seconds[kernel]:8.1f} {len(of):9} {different:10} {longest:8.2f}  {kernel}")
    processes = len({note["process"] for note in notes})
    print(f"{sum(seconds.values()):8.1f} {len(notes):9} in all, in {processes} processes")


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        notes.touch()
        environment = os.environ | {NOTES: str(notes), "RIGHTARM_CACHE_DIR": str(Path(folder, "compiled"))}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.kernels", *arguments]
        code = subprocess.run(command, env=environment, check=False).returncode
        show([json.loads(line) for line in notes.read_text().splitlines()])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
