"""Chunks and who plays them: the same outcomes from everybody, whoever dies on the way."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from rightarm.lab import execution
from rightarm.lab.experiment.cell import Cell
from rightarm.lab.run import Progress, RunError, run
from rightarm.lab.run.chunks import LEAST, USUAL, Chunk, Kind, Pace, Queue
from rightarm.lab.run.executors import ChunkFailed, Crew, ProcessExecutor, Timed, executor, run_chunks
from rightarm.lab.run.transport import packed, unpacked
from rightarm.simulation.jobs import Job, Outcome, play_job

SHIFT = 0.25


def shifted(mean: Any) -> Any:
    return mean + SHIFT


@ra.policy
def helped(pulls, mean, *, C: float = 1.0):  # type: ignore[no-untyped-def]
    return shifted(mean) + C / np.sqrt(pulls)


@ra.policy
def broken(t, pulls, mean, *, C: float = 1.0):  # type: ignore[no-untyped-def]
    return mean + np.sqrt(C - t)


def cell(policy: ra.Policy | None = None, horizon: int = 500, replications: int = 70, **names: Any) -> Cell:
    chosen = policy or ra.BoltzmannGumbel(C=0.5)
    return Cell(chosen, ra.Bernoulli([0.6, 0.5, 0.4]), horizon, replications, 7, (10, horizon), tuple(names.items()))


def cells() -> list[Cell]:
    some = [ra.BoltzmannGumbel(C=0.5), ra.Boltzmann(ra.inverse_log(0.25)), ra.UCB(C=1.0), helped(C=0.5)]
    drawn = ra.RandomProblem(ra.Bernoulli, mean=ra.Uniform(low=[0.0] * 4, high=1.0))
    return [*map(cell, some), replace(cell(), problem=drawn)]


class Kept:
    """Results in memory, which refuse what they have."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int], Outcome] = {}

    def missing(self, cells: Iterable[Cell]) -> list[tuple[Cell, Job]]:
        return [(cell, job) for cell in cells for job in cell.blocks() if (cell.key, job.first) not in self.found]

    def put(self, found: Sequence[tuple[Cell, Job, Outcome]]) -> None:
        for cell, job, outcome in found:
            assert (cell.key, job.first) not in self.found, "computed twice"
            self.found[cell.key, job.first] = outcome


def expected(cells: Iterable[Cell]) -> dict[tuple[str, int], Outcome]:
    stop = threading.Event()
    return {(c.key, job.first): play_job(job, stop, lambda rounds: None) for c in cells for job in c.blocks()}


def assert_same(kept: Kept, cells: Iterable[Cell]) -> None:
    alone = expected(cells)
    assert kept.found.keys() == alone.keys()
    for key, outcome in alone.items():
        assert outcome.regret.tobytes() == kept.found[key].regret.tobytes()
        assert outcome.pulls.tobytes() == kept.found[key].pulls.tobytes()


def quick_pace(seconds: float = 1.0) -> Pace:
    """Every block takes so long, they say, so that chunks are many."""
    return Pace(lambda job: Kind(seconds, 0.0))


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_everybody_gives_the_same(kind: str) -> None:
    kept, said = Kept(), list[Progress]()
    with executor(kind, 2) as crew:
        assert run(cells(), kept, crew, said.append) == 15
        assert run(cells(), kept, crew) == 0
    assert_same(kept, cells())
    assert (said[-1].done, said[-1].cells, said[-1].share, said[-1].left) == (5, 5, 1.0, 0.0)
    assert str(replace(said[-1], rate=8.124e8, left=80.0)) == (
        "cells 5/5, 100%, 812 M rounds/s, 2 workers, 1 min 20 s left"
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # what Dask warns of is not ours
def test_dask_gives_the_same_though_a_worker_is_killed() -> None:
    kept, long = Kept(), [*cells(), cell(horizon=2_000_000, replications=256)]
    with executor("dask", 2, "local") as crew:
        client = crew.make_executor()._client  # type: ignore[attr-defined]
        killed: list[int] = []

        def kill(progress: Progress) -> None:
            if len(killed) < 2 and len(kept.found) > 8 * len(killed):
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[-1], signal.SIGKILL)

        run(long, kept, crew, kill, pace=quick_pace())
    assert len(set(killed)) == 2
    assert_same(kept, long)


def test_a_worker_process_is_killed() -> None:
    kept, long = Kept(), [*cells(), cell(horizon=300_000, replications=256)]
    with executor("processes", 2) as crew:
        pool = crew.make_executor()
        assert isinstance(pool, ProcessExecutor)
        killed: list[int] = []

        def kill(progress: Progress) -> None:
            if pool.pids and len(killed) < 3 and len(kept.found) >= 3 * len(killed):
                killed.append(pool.pids[0])
                os.kill(killed[-1], signal.SIGKILL)

        run(long, kept, crew, kill, pace=quick_pace())
    assert len(killed) == 3
    assert_same(kept, long)
    assert pool.pids == []


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
    crew = Crew(lambda: Forgetful(random, 0.25), lambda chunk: (execution.play_chunk, chunk.jobs), lambda: 3)
    run(cells(), kept, crew, pace=quick_pace())
    assert_same(kept, cells())


def test_who_is_always_lost_is_named_alone() -> None:
    poison = cell(ra.UCB(C=0.5), policy_name="poison")
    company: list[int] = []
    lock = threading.Lock()

    class Pool(Executor):
        """As the standard library's: whoever is there when it breaks is lost with it."""

        def __init__(self) -> None:
            self.there: list[Future[Any]] = []

        def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
            future: Future[Any] = Future()

            def finish() -> None:
                with lock:
                    if not future.done():
                        future.set_result(function(*arguments))

            with lock:
                self.there = [*(other for other in self.there if not other.done()), future]
                if any(job.policy == poison.policy for job in arguments[0]):
                    company.append(len(self.there) - 1)
                    for lost in self.there:
                        lost.set_exception(BrokenExecutor("all gone"))
                else:
                    threading.Timer(0.05, finish).start()
            return future

    crew = Crew(Pool, lambda chunk: (execution.play_chunk, chunk.jobs), lambda: 2)
    with pytest.raises(RunError, match=r"^policy_name poison: lost 5 times, .*BrokenExecutor: all gone$"):
        run([*cells()[:3], poison, *cells()[3:]], Kept(), crew, pace=quick_pace(USUAL))
    assert company[0] > 0
    assert company[-3:] == [0, 0, 0]


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_mistake_ends_the_run_and_is_named(kind: str) -> None:
    wrong = cell(broken(C=100.0), policy_name="wrong", C=100.0)
    kept = Kept()
    with executor(kind, 2) as crew, pytest.raises(RunError, match=r"^policy_name wrong, C 100.0: ValueError: .*score"):
        run([*cells(), wrong], kept, crew, pace=quick_pace())
    with executor(kind, 2) as crew, pytest.raises(RunError, match=r"^policy_name wrong, C 100.0: ValueError: .*score"):
        run([wrong], kept, crew)  # in the calibration


def test_another_error_of_a_worker_is_not_played_again() -> None:
    calls: list[int] = []

    def call(chunk: Chunk) -> tuple[Any, ...]:
        calls.append(1)
        return _out_of_memory, chunk.jobs

    with executor("threads", 1) as crew, pytest.raises(ChunkFailed, match="MemoryError: so much") as caught:
        run_chunks(crew.make_executor, [Chunk(tuple(cell().blocks()))], call, _never, ahead=lambda: 1)
    assert len(calls) == 1
    assert len(caught.value.jobs) == 3


def _out_of_memory(*jobs: Job) -> list[Timed]:
    raise MemoryError("so much")


def _never(chunk: Chunk, played: list[Timed]) -> None:
    raise AssertionError


def test_formulas_travel_with_what_they_use() -> None:
    jobs = [job for each in cells() for job in each.blocks()]
    again = unpacked(packed(jobs))
    assert again[0] == jobs[0]
    theirs = next(job for job in again if job.policy.family.name == "helped")
    assert theirs.policy.family is not helped
    assert theirs.policy.specification() == helped(C=0.5).specification()
    assert unpacked(packed(jobs))[-4].policy == again[-4].policy


def test_other_code_on_the_worker_is_refused() -> None:
    sent = packed(cell(helped(C=0.5)).blocks())
    with pytest.raises(ValueError, match="client and worker differ: rightarm"):
        unpacked(replace(sent, ours=("0123", *sent.ours[1:])))
    with pytest.raises(ValueError, match="a formula is not the same on client and worker"):
        unpacked(replace(sent, theirs=("0123",)))


def handed_out(jobs: Iterable[Job], pace: Pace, workers: int) -> list[Chunk]:
    return list(Queue(jobs, pace, lambda: workers))


def test_thousands_of_tiny_cells_are_few_chunks() -> None:
    jobs = [job for i in range(5_000) for job in cell(ra.UCB(C=0.1 + i), horizon=100, replications=16).blocks()]
    chunks = handed_out(jobs, Pace(lambda job: Kind(0.005, 1e-9)), 4)
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
    chunks = handed_out(jobs, Pace(lambda job: Kind(0.0, 1e-8)), 8)
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
import sys, os, time
import numpy as np, rightarm as ra
from rightarm.lab.experiment.cell import Cell
from rightarm.lab.run.executors import executor
from rightarm.lab.run import run

FAR = 1.0

@ra.policy
def own(pulls, mean, *, C: float = 1.0):
    return mean + FAR * C / np.sqrt(pulls)

class Store:
    def missing(self, cells):
        return [(cell, job) for cell in cells for job in cell.blocks()]
    def put(self, found):
        print(*(int(outcome.pulls.sum()) for _, _, outcome in found), flush=True)

if __name__ == "__main__":
    kind, horizon = sys.argv[1], int(sys.argv[2])
    cell = Cell(own(C=0.5), ra.Bernoulli([0.5, 0.4]), horizon, 64, 1, (horizon,))
    try:
        with executor(kind, 2) as crew:
            print("pids", flush=True)
            run([cell], Store(), crew, lambda now: print(*getattr(crew.make_executor(), "pids", []), flush=True))
    except KeyboardInterrupt:
        print("stopped", flush=True)
        sys.exit(130)
"""


@contextlib.contextmanager
def script(tmp_path: Path, kind: str, horizon: int) -> Iterator[subprocess.Popen[str]]:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, str(path), kind, str(horizon)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("kind", ["processes", pytest.param("dask", marks=pytest.mark.slow)])
def test_formulas_of_a_script(tmp_path: Path, kind: str) -> None:
    with script(tmp_path, kind, 1_000) as process:
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert sum(map(int, " ".join(line for line in output.splitlines() if "000" in line).split())) >= 64_000


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """The workers' ids, once both are there."""
    assert process.stdout is not None
    for line in process.stdout:
        if len(line.split()) == 2 and all(word.isdigit() for word in line.split()):
            return [int(word) for word in line.split()]
    raise AssertionError("no workers")


def wait_until_gone(pids: list[int]) -> None:
    for _ in range(200):
        if not any(map(is_running, pids)):
            return
        time.sleep(0.05)
    raise AssertionError(f"{pids} are still there")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_nobody_outlives_the_client(tmp_path: Path, number: int, code: int) -> None:
    with script(tmp_path, "processes", 10**11) as process:
        pids = workers_of(process)
        process.send_signal(number)
        output, _ = process.communicate(timeout=20)
        assert process.returncode == code
        assert ("stopped" in output) == (code == 130)
        wait_until_gone(pids)


@pytest.mark.parametrize("kind", ["threads", pytest.param("dask", marks=pytest.mark.slow)])
def test_ctrl_c(tmp_path: Path, kind: str) -> None:
    with script(tmp_path, kind, 10**11) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "pids\n"
        assert process.stdout.readline() == "\n"  # the first progress, so that it plays
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "stopped" in output


STORED = """
import os, sys
from pathlib import Path
import numpy as np, rightarm as ra
from rightarm.lab.experiment.cell import Cell
from rightarm.lab.run.executors import executor
from rightarm.lab.run.chunks import Kind, Pace
from rightarm.lab.run import run

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
    cells = [Cell(ra.UCB(C=0.1 * i), ra.Bernoulli([0.5, 0.4]), 150_000, 256, 1, (150_000,)) for i in range(1, 41)]
    with executor(sys.argv[1], 2) as crew:
        run(cells, Store(sys.argv[2]), crew, pace=Pace(lambda job: Kind(1.0, 0.0)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_the_run_is_killed_at_random_moments(tmp_path: Path, kind: str) -> None:
    path, random = tmp_path / "stored.py", np.random.default_rng(11)
    path.write_text(STORED)
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        folder.mkdir()
    commands = [[sys.executable, str(path), kind, str(folder)] for folder in folders]
    subprocess.run(commands[0], check=True, timeout=300)
    done: list[int] = []  # blocks that were there after each kill
    for kill in range(20):
        with subprocess.Popen(commands[1], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            if kill % 2:  # some while it starts, some after it kept something
                assert process.stdout.readline() == "kept\n"
            time.sleep(random.uniform(0.0, 0.6 if kill % 2 else 2.5))
            process.kill()
        done.append(len(list(folders[1].glob("*.npz"))))
    assert done == sorted(done)
    assert done[-1] < 160, "all kills are to hit unfinished work"
    assert len(set(done)) >= 10, "and half of them a run that got on"
    subprocess.run(commands[1], check=True, timeout=300)
    names = sorted(file.name for file in folders[0].glob("*.npz"))
    assert len(names) == 160
    assert names == sorted(file.name for file in folders[1].glob("*.npz"))
    for name in names:
        whole, killed = (np.load(folder / name) for folder in folders)
        assert all(whole[part].tobytes() == killed[part].tobytes() for part in ("regret", "pulls"))
