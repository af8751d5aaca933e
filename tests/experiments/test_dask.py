"""Dask workers: they give the same as threads, whatever formulas are sent and whoever dies on the way."""

from __future__ import annotations

import importlib
import logging
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from some_cells import Kept, assert_same, broken, cell, cells, expected, helped, quick_pace

import rightarm as ra
from rightarm.experiments import executors
from rightarm.experiments.executors import Crew, check_dask, crew, pack, unpack
from rightarm.experiments.runner import Progress, RunError, run_cells

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]  # what Dask warns of is not ours


@pytest.fixture(scope="module")
def players() -> Iterator[Crew]:
    """Two workers, processes of this machine."""
    with crew(2, "local") as players:
        yield players


def client_of(players: Crew) -> Any:
    return players.make_executor()._client  # type: ignore[attr-defined]


def test_dask_gives_the_same_as_threads(players: Crew) -> None:
    kept, said = Kept(), list[Progress]()
    assert run_cells(cells(), kept, players, said.append) == 10
    assert_same(kept, cells())
    assert (said[-1].done, said[-1].workers) == (5, 2)


# Everything that a user can write, in two modules that only the client has.

OTHER = """
import numpy as np
from rightarm.noise import Law

def bonus(t):
    return np.sqrt(np.log(t + 1))

def centred(u):
    return u - 0.5

class Centred(Law):
    def quantile(self, u):
        return centred(u)
"""
ONE = """
from __future__ import annotations  # so that annotations are texts, which a worker could not resolve

import numpy as np
import rightarm as ra
from rightarm.policies import Positive
from rightarm.noise import Law
from only_here_too import Centred, bonus

FAR = 0.5

def sum_of_squares(squares, reward):
    return squares + reward**2

@ra.policy(learn={"squares": sum_of_squares})
def remembering(pulls, mean, squares, *, C: Positive = 1.0):
    return mean + C * np.sqrt((squares / pulls + FAR) / pulls)

def evenly(t, arms, *, e: Positive):
    return e / arms + 0 * t

@ra.policy(explore=evenly)
def exploring(mean, *, e: Positive = 0.1):
    return mean

@ra.policy(keep={"width": lambda pulls: 1 / np.sqrt(pulls)})
def keeping(t, mean, width, *, C: Positive = 1.0):
    return mean + C * width * bonus(t)

@ra.schedules.schedule
def cooling(t, *, c: Positive):
    return c / np.log(t + 1)

class Own(Law):
    quantile = Centred.quantile

@ra.policy(noise=Own())
def noisy(pulls, mean, z, *, C: Positive = 1.0):
    return mean + C * z / np.sqrt(pulls)

@ra.problems.problem(mean=lambda p: p)
def coin(u, *, p: ra.policies.Probability):
    return 1.0 * (u < p)

def closed_over(width):
    @ra.policy
    def inside(pulls, mean):
        return mean + width / np.sqrt(pulls)
    return inside()

def visitor(u, w):
    return 1.0 * (u < FAR), w

@ra.problems.context
def bent(normals, *, columns: int, size: Positive = 1.0):
    return size * np.sqrt(np.abs(normals))

def interest(x, *, phone: ra.policies.Probability, others: ra.policies.Probability):
    return np.where(x[0] > FAR, phone, others) * bonus(2.0) / bonus(2.0)

shop = ra.problems.ContextProblem(
    visitor, interest, phone=[0.2, 0.5, 0.3], others=[0.6, 0.1, 0.2], reward=lambda u, mean: 1.0 * (u < mean)
)
rows = [[1.0, 0.0], [0.0, 1.0]]
bend = ra.problems.ContextProblem(bent(2, size=2.0), lambda x, *, row: np.sum(x * row), row=rows, noise=0.5)
coins = coin([0.6, 0.5, 0.4])
drawn = ra.problems.RandomProblem(coin, p=ra.problems.Uniform([0.0] * 3, 1.0))
POLICIES = {
    "memory": remembering(C=0.5),
    "exploration": exploring(e=0.2),
    "kept columns": keeping(C=0.5),
    "schedule": ra.Boltzmann(cooling(c=0.3)),
    "lambda as schedule": ra.Boltzmann(lambda t: 1 / np.log(t + 1)),
    "noise": noisy(C=0.5),
    "noise of another module": ra.PerturbedMean(Centred(), 0.5),
    "closure": closed_over(0.7),
    "lambda": ra.policy(lambda pulls, mean, *, C=1.0: mean + C / pulls)(C=0.5),
    "our own with memory": ra.EXP3(gamma=0.1),
}
PROBLEMS = {"problem": coins, "corrupted": coins.corrupted(arm=0, rounds=9), "random problem": drawn}
PROBLEMS |= {"contexts": shop, "law of contexts": bend}
"""
WRITTEN = ["memory", "exploration", "kept columns", "schedule", "lambda as schedule", "noise"]
WRITTEN += ["noise of another module", "closure", "lambda", "our own with memory"]
WRITTEN += ["problem", "corrupted", "random problem", "contexts", "law of contexts"]


@pytest.fixture(scope="module")
def only_here(players: Crew, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The modules, which come to be where no worker looks."""
    folder = tmp_path_factory.mktemp("only here")
    (folder / "only_here.py").write_text(ONE)
    (folder / "only_here_too.py").write_text(OTHER)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("only_here")
    for name in ("only_here", "only_here_too"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("what", WRITTEN)
def test_whatever_a_user_writes_travels(players: Crew, only_here: Any, what: str) -> None:
    assert not any(client_of(players).run(_can_import, "only_here").values())
    asked = cell(only_here.POLICIES.get(what), horizon=200, replications=40)
    if what in only_here.PROBLEMS:
        asked = replace(asked, problem=only_here.PROBLEMS[what])
    kept = Kept()
    run_cells([asked], kept, players, pace=quick_pace())
    assert_same(kept, [asked])
    assert not any(client_of(players).run(_can_import, "only_here").values())


def _can_import(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def test_all_that_is_written_is_tried(only_here: Any) -> None:
    assert {*only_here.POLICIES, *only_here.PROBLEMS} == set(WRITTEN)


def test_a_mistake_on_a_worker_is_named_as_in_threads(players: Crew, capfd: pytest.CaptureFixture[str]) -> None:
    wrong = [*cells(), cell(broken(C=100.0), policy_name="wrong", C=100.0)]
    said = []
    with crew(2) as threads:
        for who in (players, threads):
            with pytest.raises(RunError) as caught:
                run_cells(wrong, Kept(), who, pace=quick_pace())
            said.append(str(caught.value))
    assert said[0] == said[1]
    assert said[0].startswith("policy_name wrong, C 100.0: ValueError: ")
    assert "Traceback" not in "".join(capfd.readouterr())


def test_formulas_are_the_same_again_on_every_arrival() -> None:
    jobs = [job for each in cells() for job in each.blocks()]
    once, again = unpack(pack(jobs)), unpack(pack(jobs))
    theirs = [next(job for job in jobs if job.policy.family.name == "helped") for jobs in (once, again)]
    assert theirs[0].policy.family is not helped
    assert theirs[0].policy.family is theirs[1].policy.family  # or it would be compiled again
    assert once[0] == jobs[0]


def test_other_code_on_the_worker_is_refused() -> None:
    sent = pack(cell(helped(C=0.5)).blocks())
    with pytest.raises(ValueError, match="client and worker differ: rightarm"):
        unpack(replace(sent, code=("0123", *sent.code[1:])))


# Deaths.


def test_workers_are_killed() -> None:
    """Workers of their own: the other tests need both of theirs at all times."""
    kept, some, killed = Kept(), cells(), list[int]()

    def kill(progress: Progress) -> None:
        if len(killed) < 2 and len(kept.found) >= 4 * len(killed):
            alive = set(client.run(os.getpid, on_error="ignore").values()) - set(killed)
            for pid in list(alive)[:1]:
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)

    with crew(2, "local") as players:
        client = client_of(players)
        run_cells(some, kept, players, kill, pace=quick_pace())
    assert len(set(killed)) == 2
    assert_same(kept, some)


SCHEDULER = """
import asyncio
from distributed import Scheduler

async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(main())
"""


def test_a_scheduler_that_dies_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import dask
    import distributed  # noqa: F401  # first, or leaving `config.set` would take away all settings that it brings

    monkeypatch.setattr(executors, "RECONNECT", 0.0)
    command = [sys.executable, "-c", SCHEDULER]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as scheduler,
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        caplog.at_level(logging.WARNING),
    ):
        assert scheduler.stdout is not None
        address = scheduler.stdout.readline().strip()
        try:
            with (
                crew(None, address) as players,
                pytest.raises(RunError, match=rf"^no Dask scheduler answers at {address}: .*refused"),
            ):
                run_cells(cells(), Kept(), players, lambda now: scheduler.kill(), pace=quick_pace())
        finally:
            scheduler.kill()
    ours = [record for record in caplog.records if record.name.startswith("rightarm")]
    assert "went away; waiting 0 s for it" in ours[0].getMessage()
    assert not [record for record in caplog.records if record.exc_info]


def test_no_scheduler_and_no_address() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nobody else can take this port, and nobody listens there
        port = silent.getsockname()[1]
        with (
            pytest.raises(ConnectionError, match=rf"no Dask scheduler answers at tcp://127.0.0.1:{port}: .*refused"),
            crew(None, f"tcp://127.0.0.1:{port}"),
        ):
            pass
    for wrong in ("loca", "", "tcp://", "a b:1", "host:port"):
        with pytest.raises(ValueError, match=f"dask must be 'local' or the address of a scheduler.*got {wrong!r}"):
            check_dask(wrong)
    for right in ("10.0.0.1:8786", "tcp://host:8786", "tls://host:8786", "ucx://host:1"):
        check_dask(right)


SCRIPT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where the tests were started
import numpy as np, rightarm as ra
from rightarm.experiments import Cell
from rightarm.experiments import run_cells
from rightarm.experiments.executors import crew

@ra.policy
def own(pulls, mean, *, C: float = 1.0):  # of __main__
    return mean + C / np.sqrt(pulls)

class Store:
    def missing(self, cells):
        return [(cell, job) for cell in cells for job in cell.blocks()]
    def put(self, found):
        print("found", *(int(outcome.pulls.sum()) for _, _, outcome in found), flush=True)

if __name__ == "__main__":
    try:
        with crew(2, "local") as players:
            pids = players.make_executor()._client.run(os.getpid)
            short = Cell(own(C=0.5), ra.problems.Bernoulli([0.5, 0.4]), 1_000, 64, 1, (1_000,))
            run_cells([short], Store(), players)
            long = Cell(own(C=0.5), ra.problems.Bernoulli([0.5, 0.4]), 10**11, 64, 1, (10**11,))
            run_cells([long], Store(), players, lambda now: print("playing", *pids.values(), flush=True))
    except KeyboardInterrupt:
        print("stopped", flush=True)
        sys.exit(130)
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_nobody_outlives_the_client(tmp_path: Path, number: int, code: int) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            first = next(line for line in lines if line.startswith("playing"))
            workers = [os.pidfd_open(int(pid)) for pid in first.split()[1:]]
            process.send_signal(number)
            output, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == code
    assert ("stopped" in output) == (code == 130)
    for worker in workers:
        assert select.select([worker], [], [], 60)[0], "a worker is still there"
        os.close(worker)


def test_what_blocks_give_alone_is_fixed() -> None:
    """The oracle of this file, on a block small enough to be written down."""
    (outcome,) = expected([cell(ra.UCB(C=1.0), horizon=3, replications=1)]).values()
    np.testing.assert_array_equal(outcome.pulls, [[1, 1, 1]])
