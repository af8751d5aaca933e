"""Chunks and the threads that play them; what is lost is played again, and mistakes are named."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from some_cells import Kept, assert_same, broken, cell, cells, quick_pace

import rightarm as ra
from rightarm.experiments import executors
from rightarm.experiments.executors import Chunk, ChunkFailed, Crew, Timed, crew
from rightarm.experiments.runner import LEAST, USUAL, Pace, Progress, Queue, RunError, Timing, run_cells
from rightarm.simulation.jobs import Job


def test_threads_give_what_blocks_give_alone() -> None:
    kept, said = Kept(), list[Progress]()
    with crew(2) as players:
        assert run_cells(cells(), kept, players, said.append) == 10
        assert run_cells(cells(), kept, players) == 0
    assert_same(kept, cells())
    assert (said[-1].done, said[-1].cells, said[-1].share, said[-1].left) == (5, 5, 1.0, 0.0)
    last = replace(said[-1], rate=8.124e8, left=80.0)
    assert str(last) == "cells 5/5, 100%, 812 M rounds/s, 2 workers, 1 min 20 s left"
    assert str(replace(last, workers=0)).endswith("0 workers, waiting for workers")


def test_progress_after_a_resume_counts_what_was_there() -> None:
    every = [cell(ra.UCB(C=0.1 * i), horizon=1_000, replications=64) for i in range(1, 11)]
    kept, said = Kept(), list[Progress]()
    with crew(1) as players:
        run_cells(every[:8], kept, players)
        run_cells(every, kept, players, said.append, pace=quick_pace())
    assert said[0].done >= 8
    assert all(now.share >= 0.8 for now in said)
    assert (said[-1].done, said[-1].share) == (10, 1.0)


class Forgetful(Executor):
    """Plays some of the chunks, and loses the others in all the ways there are."""

    def __init__(self, random: np.random.Generator, share: float) -> None:
        self.random, self.share, self.broken = random, share, False

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        if self.broken:
            raise BrokenExecutor("broken before")
        future: Future[Any] = Future()
        lot = self.random.random() / self.share
        if lot < 0.3:
            future.cancel()
            future.set_running_or_notify_cancel()
        elif lot < 1:
            self.broken = lot > 0.8
            future.set_exception(BrokenExecutor("it went away"))
        else:
            future.set_result(function(*arguments, **keywords))
        return future


def test_what_is_lost_is_played_again() -> None:
    kept, random = Kept(), np.random.default_rng(5)
    players = Crew(lambda: Forgetful(random, 0.25), lambda chunk: (executors.play_chunk, chunk.jobs), lambda: 3)
    run_cells(cells(), kept, players, pace=quick_pace())
    assert_same(kept, cells())


def test_who_is_always_lost_is_named_alone() -> None:
    poison = cell(ra.UCB(C=0.5), policy_name="poison")
    company: list[int] = []
    lock, poisoned = threading.Lock(), threading.Event()

    class Pool(Executor):
        """As the standard library's: whoever is there when it breaks is lost with it."""

        def __init__(self) -> None:
            self.there: list[Future[Any]] = []

        def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
            future: Future[Any] = Future()

            def finish() -> None:
                poisoned.wait()
                with lock:
                    if not future.done():
                        future.set_result(function(*arguments))

            with lock:
                self.there = [*(other for other in self.there if not other.done()), future]
                if any(job.policy == poison.policy for job in arguments[0]):
                    poisoned.set()
                    company.append(len(self.there) - 1)
                    for lost in self.there:
                        lost.set_exception(BrokenExecutor("all gone"))
                else:
                    threading.Thread(target=finish).start()
            return future

    players = Crew(Pool, lambda chunk: (executors.play_chunk, chunk.jobs), lambda: 10)  # all at once
    with pytest.raises(RunError, match=r"^policy_name poison: lost 5 times, .*BrokenExecutor: all gone$"):
        run_cells([*cells()[:3], poison, *cells()[3:]], Kept(), players, pace=quick_pace(USUAL))
    assert company[0] > 0
    assert company[-3:] == [0, 0, 0]


def test_a_mistake_ends_the_run_and_is_named() -> None:
    wrong = cell(broken(C=100.0), policy_name="wrong", C=100.0)
    with crew(2) as players:
        with pytest.raises(RunError, match=r"^policy_name wrong, C 100.0: ValueError: .*score"):
            run_cells([*cells(), wrong], Kept(), players, pace=quick_pace())
        with pytest.raises(RunError, match=r"^policy_name wrong, C 100.0: ValueError: .*score"):
            run_cells([wrong], Kept(), players)  # in the calibration


def test_another_error_of_a_worker_is_not_played_again() -> None:
    calls: list[int] = []

    def call(chunk: Chunk) -> tuple[Any, ...]:
        calls.append(1)
        return _out_of_memory, chunk.jobs

    with crew(1) as players, pytest.raises(ChunkFailed, match="MemoryError: so much") as caught:
        Crew(players.make_executor, call, lambda: 1).run([Chunk(tuple(cell().blocks()))], _never, lambda: None)
    assert len(calls) == 1
    assert len(caught.value.jobs) == 2


def _out_of_memory(*jobs: Job) -> list[Timed]:
    raise MemoryError("so much")


def _never(chunk: Chunk, played: list[Timed]) -> None:
    raise AssertionError


def handed_out(jobs: Iterable[Job], pace: Pace, workers: int) -> list[Chunk]:
    return list(Queue(jobs, pace, lambda: workers))


def test_thousands_of_tiny_cells_are_few_chunks() -> None:
    jobs = [job for i in range(5_000) for job in cell(ra.UCB(C=0.1 + i), horizon=100, replications=16).blocks()]
    chunks = handed_out(jobs, Pace(lambda job: Timing(0.005, 1e-9)), 4)
    assert sum(len(chunk.jobs) for chunk in chunks) == 5_000
    assert len(chunks) < 60
    assert max(chunk.seconds for chunk in chunks) <= USUAL
    assert all(earlier.seconds >= later.seconds - 0.01 for earlier, later in itertools.pairwise(chunks))
    assert chunks[-1].seconds <= LEAST
    assert min(chunk.seconds for chunk in chunks[:-1]) > LEAST / 2


def test_a_huge_cell_is_spread_and_the_longest_go_first() -> None:
    huge = cell(horizon=10**8, replications=6_400)
    small = [cell(ra.UCB(C=1.0 + i), horizon=1_000 * (i + 1)) for i in range(20)]
    jobs = [job for each in (*small, huge) for job in each.blocks()]
    chunks = handed_out(jobs, Pace(lambda job: Timing(0.0, 1e-8)), 8)
    assert [len(chunk.jobs) for chunk in chunks[:100]] == [1] * 100
    assert all(chunk.jobs[0].checkpoints[-1] == 10**8 for chunk in chunks[:100])
    rest = [job.checkpoints[-1] * (job.lanes + 16) for chunk in chunks[100:] for job in chunk.jobs]
    assert rest == sorted(rest, reverse=True)


def test_the_outcomes_of_a_chunk_are_not_large() -> None:
    long = replace(cell(horizon=100_000, replications=6_400), checkpoints=tuple(range(1, 100_001, 10)))
    assert max(len(chunk.jobs) for chunk in handed_out(long.blocks(), quick_pace(1e-6), 1)) == 3


def test_pace_learns() -> None:
    job = cell().blocks()[0]
    pace = quick_pace(1.0)
    queue = Queue([job] * 10, pace, lambda: 1)
    assert queue.seconds == pytest.approx(10)
    for _ in range(100):
        pace.learn(job, 3.0)
    assert pace.seconds(job) == pytest.approx(3, rel=0.01)
    assert queue.seconds == pytest.approx(30, rel=0.01)


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where the tests were started
import numpy as np, rightarm as ra
from rightarm.experiments import Cell
from rightarm.experiments import run_cells
from rightarm.experiments.executors import crew

class Store:
    def missing(self, cells):
        return [(cell, job) for cell in cells for job in cell.blocks()]
    def put(self, found):
        pass

try:
    with crew(2) as players:
        cell = Cell(ra.UCB(C=0.5), ra.problems.Bernoulli([0.5, 0.4]), 10**11, 64, 1, (10**11,))
        run_cells([cell], Store(), players, lambda now: print("playing", flush=True))
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.exit(130)
"""


def test_ctrl_c() -> None:
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "playing\n"
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, errors
    assert "stopped" in output


STORED = """
import os, sys
from pathlib import Path
import numpy as np, rightarm as ra
from rightarm.experiments import Cell
from rightarm.experiments import run_cells
from rightarm.experiments.runner import Pace, Timing
from rightarm.experiments.executors import crew

class Store:
    def __init__(self, folder):
        self.folder = Path(folder)
    def path(self, cell, job):
        return self.folder / f"{cell.key}-{job.first}.npz"
    def missing(self, cells):
        return [(c, job) for c in cells for job in c.blocks() if not self.path(c, job).exists()]
    def put(self, found):
        for cell, job, outcome in found:
            path = self.path(cell, job)
            assert not path.exists(), "computed twice"
            part = path.with_suffix(".part")
            with part.open("wb") as file:
                np.savez(file, regret=outcome.regret, pulls=outcome.pulls)
            os.replace(part, path)
        print("kept", flush=True)

if __name__ == "__main__":
    problem = ra.problems.Bernoulli([0.5, 0.4])
    cells = [Cell(ra.UCB(C=0.1 * i), problem, 150_000, 256, 1, (150_000,)) for i in range(1, 41)]
    with crew(2, sys.argv[2] if len(sys.argv) > 2 else None) as players:
        run_cells(cells, Store(sys.argv[1]), players, pace=Pace(lambda job: Timing(1.0, 0.0)))
"""


@pytest.mark.full
@pytest.mark.parametrize("options", [[], ["local"]], ids=["threads", "dask"])
def test_the_run_is_killed_again_and_again(tmp_path: Path, options: list[str]) -> None:
    """Each time after it has kept some more blocks, however fast the machine is."""
    path, random = tmp_path / "stored.py", np.random.default_rng(11)
    path.write_text(STORED)
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        folder.mkdir()
    commands = [[sys.executable, str(path), str(folder), *options] for folder in folders]
    subprocess.run(commands[0], check=True, timeout=600)
    done: list[int] = []  # blocks that were there after each kill
    for _ in range(12):
        with subprocess.Popen(commands[1], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(int(random.integers(0, 6))):
                assert process.stdout.readline() == "kept\n"
            process.kill()
        done.append(len(list(folders[1].glob("*.npz"))))
    assert done == sorted(done)
    assert 12 < done[-1] < 160, "all kills are to hit unfinished work that got on"
    subprocess.run(commands[1], check=True, timeout=600)
    names = sorted(file.name for file in folders[0].glob("*.npz"))
    assert len(names) == 160
    assert names == sorted(file.name for file in folders[1].glob("*.npz"))
    for name in names:
        whole, killed = (np.load(folder / name) for folder in folders)
        assert all(whole[part].tobytes() == killed[part].tobytes() for part in ("regret", "pulls"))
