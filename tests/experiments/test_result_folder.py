"""A folder of results: what was put is there, whatever happens in between."""

from __future__ import annotations

import hashlib
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rightarm as ra
from rightarm.experiments.cell import Cell
from rightarm.experiments.result_folder import ResultFolder
from rightarm.experiments.result_reading import STATISTICS
from rightarm.simulation.jobs import Job, Outcome, play_jobs
from rightarm.types import F64, I64

CHECKPOINTS = (1, 10, 100)
PROBLEM = ra.problems.Bernoulli([0.4, 0.6, 0.5])


def cell(C: float = 0.5, replications: int = 100, **changes: Any) -> Cell:
    names = (("problem", "honest"), ("policy", "ucb"), ("C", C))
    return replace(Cell(ra.UCB(C=C), PROBLEM, 100, replications, 1, CHECKPOINTS, names), **changes)


def outcome(cell: Cell, first: int, count: int) -> Outcome:
    """Invented, but the same for a replication whatever its block, as simulated ones are."""
    regret, pulls = [], []
    for replication in range(first, first + count):
        luck = np.random.default_rng([int(cell.key, 16), replication])
        regret.append(np.cumsum(luck.random(len(cell.checkpoints))))
        pulls.append(luck.multinomial(cell.horizon, [1 / cell.problem.arms] * cell.problem.arms))
    return Outcome(np.array(regret), np.array(pulls))


def played(cell: Cell, job: Job) -> tuple[Cell, Job, Outcome]:
    return cell, job, outcome(cell, job.first, job.replications)


def fill(folder: Path, cells: Sequence[Cell], chunk: int = 3, chunks: int | None = None) -> list[Job]:
    """Begin and compute what is missing, or some of it; the jobs that were done."""
    with ResultFolder.open(folder, write=True) as results:
        results.begin(cells, "title = 'Some'\n", "Some")
        missing = results.missing(cells)
        done = missing if chunks is None else missing[: chunk * chunks]
        for i in range(0, len(done), chunk):
            results.put([played(*piece) for piece in done[i : i + chunk]])
    return [job for _, job in done]


def is_right(folder: Path, cells: Sequence[Cell]) -> None:
    """All is there, bit for bit, and nothing twice."""
    loaded = ra.experiments.load(folder)
    assert loaded.is_complete
    for i, cell in enumerate(cells):
        expected = outcome(cell, 0, cell.replications)
        np.testing.assert_array_equal(loaded[i].regret, expected.regret)
        np.testing.assert_array_equal(loaded[i].pulls, expected.pulls)
    rows = pl.concat([pl.read_parquet(path.read_bytes()) for path in (folder / "parts").glob("*.parquet")])
    assert not rows.select("key", "replication").is_duplicated().any()


def cells_file(folder: Path) -> Path:
    (path,) = folder.glob("cells-*.parquet")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "C=0.5 [some]*"  # which Polars would take for a pattern, and for a column


# What is there, and what is missing.


def test_what_is_put_is_there(folder: Path) -> None:
    cells = [
        cell(0.5),
        cell(1.0, checkpoints=(7, 100), replications=5),
        cell(2.0, problem=ra.problems.Bernoulli([0.5, 0.1])),
    ]
    fill(folder, cells)
    is_right(folder, cells)
    with ResultFolder.open(folder) as results:
        assert results.missing(cells) == []
        np.testing.assert_array_equal(
            results.measurements([cells[1].key])[cells[1].key].regret, outcome(cells[1], 0, 5).regret
        )
        assert results.measurements([cell(9.0).key]) == {}
    assert (folder / "experiment.toml").read_text() == "title = 'Some'\n"


def test_only_what_is_new_is_computed(folder: Path) -> None:
    fill(folder, [cell(0.5), cell(1.0)])
    assert fill(folder, [cell(1.0), cell(0.5)]) == []
    assert [job.policy for job in fill(folder, [cell(0.5), cell(0.7, replications=10)])] == [ra.UCB(C=0.7)]
    loaded = ra.experiments.load(folder)
    assert loaded.frame["C"].to_list() == [0.5, 0.7]  # the experiment as it is now
    assert loaded.is_complete
    assert fill(folder, [cell(1.0)]) == []  # and what it once had is still there
    is_right(folder, [cell(1.0)])


def test_more_replications_compute_only_the_new_ones(folder: Path) -> None:
    fill(folder, [cell(replications=100)])  # in blocks of 32
    jobs = fill(folder, [cell(replications=200)])  # in blocks of 64
    assert [(job.first, job.replications) for job in jobs] == [(100, 28), (128, 64), (192, 8)]
    assert [job.lanes for job in jobs] == [job.lanes for job in cell(replications=28).blocks()] + [64, 32]
    is_right(folder, [cell(replications=200)])
    fill(folder, [cell(replications=50)])
    is_right(folder, [cell(replications=50)])  # of fewer, the first


def test_pieces_of_simulations_are_the_whole(folder: Path) -> None:
    """In blocks of 32, then the rest of blocks of 64: bit for bit what one simulation gives."""
    for replications in (70, 130):
        asked = cell(replications=replications)
        with ResultFolder.open(folder, write=True) as results:
            results.begin([asked])
            work = {job: asked for asked, job in results.missing([asked])}
            for job, found in play_jobs(work, workers=2):
                results.put([(work[job], job, found)])
    whole = ra.simulate(ra.UCB(C=0.5), PROBLEM, horizon=100, replications=130, seed=1, checkpoints=CHECKPOINTS)
    loaded = ra.experiments.load(folder)
    np.testing.assert_array_equal(loaded[0].regret, whole.regret[0])
    np.testing.assert_array_equal(loaded[0].pulls, whole.pulls[0])
    (row,) = whole.summary().to_dicts()
    assert [loaded.frame[name][0] for name in STATISTICS] == pytest.approx([row[name] for name in STATISTICS])


def test_holes_are_filled_and_nothing_else(folder: Path) -> None:
    asked = cell(replications=64)
    block = asked.blocks()[0]
    with ResultFolder.open(folder, write=True) as results:
        results.begin([asked])
        for first, count in ((3, 2), (10, 1), (60, 4)):
            results.put([played(asked, replace(block, first=first, replications=count))])
        jobs = [job for _, job in results.missing([asked])]
    assert [(job.first, job.replications) for job in jobs] == [(0, 3), (5, 5), (11, 49)]
    fill(folder, [asked])
    is_right(folder, [asked])


def test_two_names_of_the_same_are_computed_once(folder: Path) -> None:
    twins = [cell(), cell(replications=120, names=(("problem", "honest"), ("policy", "twin")))]
    jobs = fill(folder, twins)
    assert sum(job.replications for job in jobs) == 120
    is_right(folder, twins)
    assert ra.experiments.load(folder).frame["policy"].to_list() == ["ucb", "twin"]


def test_other_code_is_another_cell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder, [cell()])
    monkeypatch.setattr("rightarm.experiments.cell.outcome_code", lambda: "changed")
    assert sum(job.replications for job in fill(folder, [cell()])) == 100


def test_what_makes_no_sense_is_refused(folder: Path) -> None:
    own, job = cell(), cell().blocks()[0]
    with ResultFolder.open(folder, write=True) as results:
        with pytest.raises(
            ValueError, match=r"cell must be one that was given to begin\(\), got UCB\(C=0\.5\) on Bern"
        ):
            results.put([played(own, job)])
        results.begin([own])
        results.put([])
        with pytest.raises(ValueError, match=r"regret must have shape \(64, 3\), got \(31, 3\)"):
            results.put([(own, job, outcome(own, 0, 31))])
    with pytest.raises(ValueError, match="are not open for writing"):
        results.put([played(own, job)])
    assert ra.experiments.load(folder)[0].finished == 0


# Faults.


def test_damaged_parts_do_not_count(folder: Path) -> None:
    cells, chance = [cell(C) for C in (0.5, 1.0)], random.Random(3)
    fill(folder, cells)
    for _ in range(12):
        parts = sorted((folder / "parts").glob("*.parquet"))
        victim = chance.choice(parts)
        content = bytearray(victim.read_bytes())
        place = chance.randrange(len(content))
        if chance.random() < 0.5:
            del content[place:]
        else:
            content[place] ^= 1 << chance.randrange(8)
        victim.write_bytes(content)
        with pytest.warns(UserWarning, match=r"\.parquet is damaged and does not count"):
            assert not ra.experiments.load(folder).is_complete
        with pytest.warns(UserWarning, match=r"is damaged, was renamed to \w+\.parquet\.damaged, and does not count"):
            fill(folder, cells)
        aside = victim.with_name(victim.name + ".damaged")
        assert aside.read_bytes() == content
        aside.unlink()
        is_right(folder, cells)


def test_leftovers_of_a_crash_are_removed(folder: Path) -> None:
    fill(folder, [cell()])
    for place in (folder / "cells-2-00.parquet.12ab.new", folder / "parts" / "x.parquet.12ab.new"):
        place.write_bytes(b"half")
    assert ra.experiments.load(folder).is_complete
    fill(folder, [cell()])
    assert not list(folder.rglob("*.new"))


def test_a_damaged_list_of_cells_is_made_anew(folder: Path) -> None:
    fill(folder, [cell()])
    for _ in range(2):
        path = cells_file(folder)
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(ValueError, match="is damaged; the experiment, run again, makes it anew"):
            ra.experiments.load(folder)
        with pytest.warns(UserWarning, match=r"was renamed to cells-1-\w+\.parquet\.damaged1?,"):
            assert fill(folder, [cell()]) == []
    assert len(list(folder.glob("cells-*.damaged*"))) == 2
    is_right(folder, [cell()])


def test_the_list_of_cells_changes_only_when_the_cells_do(folder: Path) -> None:
    fill(folder, [cell()])
    first = cells_file(folder)
    fill(folder, [cell()])
    assert cells_file(folder) == first
    fill(folder, [cell(), cell(1.0)])
    assert cells_file(folder).name.startswith("cells-2-")
    first.write_bytes(b"what a run that was killed did not remove")
    is_right(folder, [cell(), cell(1.0)])
    fill(folder, [cell(2.0)])
    assert cells_file(folder).name.startswith("cells-3-")
    is_right(folder, [cell(2.0)])


def test_damage_anywhere_is_never_taken_for_results(tmp_path: Path) -> None:
    """Single bytes changed in copies of a folder: it loads as it was, or as less with a warning, or not at all."""
    whole, chance = tmp_path / "whole", random.Random(11)
    fill(whole, [cell(0.5, replications=4), cell(1.0, replications=4)], chunk=1)
    files = [path for path in sorted(whole.rglob("*")) if path.is_file() and path.name != "lock"]
    before = ra.experiments.load(whole)
    for number in range(500):
        copy = tmp_path / str(number)
        shutil.copytree(whole, copy)
        victim = copy / files[number % len(files)].relative_to(whole)
        content = bytearray(victim.read_bytes())
        content[chance.randrange(len(content))] ^= chance.randrange(1, 256)
        if chance.random() < 0.2:
            del content[chance.randrange(len(content)) :]
        victim.write_bytes(content)
        if victim.name.startswith("cells-"):
            with pytest.raises(ValueError, match=f"{victim.name} is damaged"):
                ra.experiments.load(copy)
        else:
            with pytest.warns(UserWarning, match=f"{victim.name} is (damaged|not the file that was run)") as told:
                same_as_before(ra.experiments.load(copy), before)
            assert len(told) == 1
        if number % 7 == 0:  # which goes round all files
            with warnings.catch_warnings(action="ignore"):
                fill(copy, [cell(0.5, replications=4), cell(1.0, replications=4)])
            is_right(copy, [cell(0.5, replications=4), cell(1.0, replications=4)])
        shutil.rmtree(copy)


def same_as_before(after: ra.experiments.Results, before: ra.experiments.Results) -> None:
    assert [one.names for one in after] == [one.names for one in before]
    assert (after.title, after.experiment) == (before.title, before.experiment)
    for one, other in zip(after, before, strict=True):
        assert one.regret.shape[0] in (0, 4)
        if one.finished:
            np.testing.assert_array_equal(one.regret, other.regret)
            np.testing.assert_array_equal(one.pulls, other.pulls)


def test_parts_of_two_machines_go_together(folder: Path, tmp_path: Path) -> None:
    fill(folder, [cell()], chunk=2, chunks=1)
    fill(tmp_path / "other", [cell()], chunk=3)
    for part in (tmp_path / "other" / "parts").iterdir():
        part.rename(folder / "parts" / part.name)
    loaded = ra.experiments.load(folder)
    assert loaded.is_complete  # although some blocks are there twice
    np.testing.assert_array_equal(loaded[0].regret, outcome(cell(), 0, 100).regret)
    with ResultFolder.open(folder, write=True) as results:
        block = cell().blocks()[0]
        results.put([(cell(), block, outcome(cell(), 1, block.replications))])
    with pytest.raises(ValueError, match=r"replication 0 of the cell \w+ is there twice, with different outcomes"):
        _ = ra.experiments.load(folder)[0].regret


WRITER = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from test_result_folder import CELLS, ResultFolder, played
with ResultFolder.open(sys.argv[1], write=True) as results:
    results.begin(CELLS)
    missing = results.missing(CELLS)
    for i in range(0, len(missing), 2):
        results.put([played(*piece) for piece in missing[i : i + 2]])
        for cell, job in missing[i : i + 2]:
            print(cell.key, job.first, job.replications, flush=True)
print("end", flush=True)
"""
CELLS = [cell(0.1 * i, replications=300) for i in range(1, 25)]


def writer(folder: Path) -> subprocess.Popen[str]:
    places = [str(Path(__file__).parent), str(Path(ra.__file__).parents[1])]
    return subprocess.Popen([sys.executable, "-c", WRITER, str(folder), *places], stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str], lines: int) -> Iterator[str]:
    """What a writer says until it is killed after so many lines."""
    assert process.stdout is not None
    yield from (process.stdout.readline() for _ in range(lines))
    process.kill()
    yield from process.stdout.read().splitlines(keepends=True)
    process.wait()
    process.stdout.close()


def test_nothing_acknowledged_is_lost_by_kill_9(folder: Path) -> None:
    chance, acknowledged = random.Random(7), list[tuple[str, int]]()
    for _ in range(4):
        for line in said(writer(folder), chance.randrange(30)):
            if line.endswith("\n") and line != "end\n":
                key, first, count = line.split()
                acknowledged += [(key, int(first) + i) for i in range(int(count))]
        if list(folder.glob("cells-*.parquet")):
            with ResultFolder.open(folder) as results:
                assert all(results.finished(key, n + 1) > results.finished(key, n) for key, n in acknowledged)
    assert len(set(acknowledged)) == len(acknowledged) > 1000  # nothing was computed twice
    fill(folder, CELLS)
    is_right(folder, CELLS)


FORKING = """
import os, signal, sys
from rightarm.experiments import ResultFolder
results = ResultFolder.open(sys.argv[1], write=True)
ready, tell = os.pipe()
child = os.fork()
if child:
    os.read(ready, 1)  # the child lives, and has let go of what it inherited
    print(child, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
os.write(tell, b"1")
signal.pause()
"""


def test_workers_that_outlive_their_run_do_not_lock_its_folder(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", FORKING, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        process.wait()
        os.kill(child, 0)  # it lives
        fill(folder, [cell()])
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def half(file: int, data: memoryview) -> int:
    if len(data) < 1000:
        full()
    return WRITE(file, data[: len(data) // 2])


WRITE = os.write
FAILING: dict[str, Callable[..., Any]] = {"write": half, "fsync": full, "replace": full}


@pytest.mark.parametrize("failing", FAILING)
def test_a_full_disk_leaves_the_results_as_they_were(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    cells = [cell(0.5), cell(1.0)]
    fill(folder, cells, chunk=1, chunks=2)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with ResultFolder.open(folder, write=True) as results:
        missing = results.missing(cells)
        with monkeypatch.context() as patch:
            patch.setattr(os, failing, FAILING[failing])
            with pytest.raises(OSError, match=r"No space left on device: .*parts.*\.parquet"):
                results.put([played(*missing[0])])
            with pytest.raises(OSError, match=r"No space left on device: .*cells-2-\w+\.parquet"):
                results.begin([cell(3.0)])
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
        assert results.missing(cells) == missing
        results.put([played(*piece) for piece in missing])
    is_right(folder, cells)


def test_a_folder_that_cannot_be_written(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file"):
        ResultFolder.open(tmp_path / "file" / "folder", write=True)
    fill(folder, [cell()])
    opened = os.open

    def refuse(path: Any, flags: int, *rest: Any) -> int:  # as a folder of another user does, which root never sees
        if flags & (os.O_CREAT | os.O_RDWR | os.O_WRONLY):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, *rest)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match=r"Permission denied: .*lock"):
        ResultFolder.open(folder, write=True)
    assert ra.experiments.load(folder).is_complete  # which needs no writing


def test_a_second_writer_is_refused(folder: Path) -> None:
    with ResultFolder.open(folder, write=True) as results:
        results.begin([cell()])
        with pytest.raises(
            BlockingIOError,
            match=r"another writer has this folder of results open, in this process or another; .*C=0\.5 \[some",
        ):
            ResultFolder.open(folder, write=True)
        assert not ra.experiments.load(folder).is_complete  # readers are welcome
    fill(folder, [cell()])
    is_right(folder, [cell()])


def test_folders_that_hold_no_results(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        ra.experiments.load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"is not a folder of results: it has no cells-\*\.parquet"):
        ra.experiments.load(tmp_path)
    content = io.BytesIO()
    pl.DataFrame({"x": [1]}).write_parquet(content, metadata={"rightarm": '{"format": 9}'})
    name = hashlib.sha256(content.getvalue()).hexdigest()[:32]
    (tmp_path / f"cells-1-{name}.parquet").write_bytes(content.getvalue())
    for write in (False, True):
        with pytest.raises(ValueError, match=r"cells-1-.*\.parquet was written in another format than 1"):
            ResultFolder.open(tmp_path, write=write)


def test_arrays_have_their_types(folder: Path) -> None:
    fill(folder, [cell()])
    loaded = ra.experiments.load(folder)
    regret: F64 = loaded[0].regret
    pulls: I64 = loaded[0].pulls
    assert regret.dtype == np.float64
    assert pulls.dtype == np.int64
