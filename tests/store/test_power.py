"""The shim under SQLite that forgets what was not synced."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import power
from few import few

pytestmark = pytest.mark.skipif(
    power.library() is None, reason="the SQLite of this Python lies within it, and its functions cannot be reached"
)

ROWS = 200
PROGRAM = """
import os, sqlite3, sys
from pathlib import Path
import power

tape, path, mode, synchronous, rows = sys.argv[1:]
shim = power.Shim(Path(tape))
connection = sqlite3.connect(path, isolation_level=None)
connection.execute(f"PRAGMA journal_mode={mode}")
connection.execute(f"PRAGMA synchronous={synchronous}")
connection.execute("PRAGMA wal_autocheckpoint=20")
connection.execute("CREATE TABLE numbers (n INTEGER, text)")
shim.mark(b"0")
for n in range(1, int(rows) + 1):
    connection.execute("INSERT INTO numbers VALUES (?, ?)", (n, "x" * 700))
    shim.mark(b"%d" % n)
os._exit(0)  # at once, as without power: SQLite must not call a shim that Python has cleared away
"""


def taped(folder: Path, mode: str, synchronous: str) -> list[power.Record]:
    """What SQLite did to its files while it inserted rows one by one."""
    tape, path, tests = folder / "tape", folder / "numbers.db", Path(power.__file__).parent
    subprocess.run([sys.executable, "-c", PROGRAM, tape, path, mode, synchronous, str(ROWS)], check=True, cwd=tests)
    return list(power.records(tape))


def rows_after(files: dict[str, bytes], folder: Path) -> int:
    """How many rows a database has, which is whole and has the first ones."""
    power.put(files, folder)
    with closing(sqlite3.connect(folder / "numbers.db")) as connection:
        [(verdict,)] = connection.execute("PRAGMA integrity_check")
        assert verdict == "ok"
        if not connection.execute("SELECT name FROM sqlite_master").fetchall():
            return -1
        numbers = [n for (n,) in connection.execute("SELECT n FROM numbers ORDER BY n")]
    assert numbers == list(range(1, len(numbers) + 1))
    return len(numbers)


def lost(tape: list[power.Record], folder: Path, luck: random.Random | None, every: int) -> list[int]:
    """How many acknowledged rows are lost, if the power fails after each mark and at some places between."""
    disk, acknowledged, losses = power.Disk(), -1, list[int]()
    for place, record in enumerate(tape):
        disk.play([record])
        if record.kind == "mark":
            acknowledged = int(record.data)
        if record.kind == "mark" or place % every == 0:
            losses.append(acknowledged - rows_after(disk.left(luck), folder))
    return losses


@pytest.mark.parametrize("luck", few(1, [1, None, 2]))
@pytest.mark.parametrize(("mode", "synchronous"), [("WAL", "FULL"), ("DELETE", "EXTRA")])
def test_what_sqlite_promises_to_keep_is_kept_wherever_the_power_fails(
    tmp_path: Path, mode: str, synchronous: str, luck: int | None
) -> None:
    tape = taped(tmp_path, mode, synchronous)
    losses = lost(tape, tmp_path / "after", None if luck is None else random.Random(luck), 3)
    assert len(losses) > 2 * ROWS
    assert max(losses) <= 0  # a row that is not acknowledged yet may be there


@pytest.mark.parametrize(("mode", "synchronous", "most"), [("WAL", "NORMAL", 10), ("DELETE", "FULL", 1)])
def test_what_sqlite_does_not_promise_is_lost(tmp_path: Path, mode: str, synchronous: str, most: int) -> None:
    """Without this the shim would prove nothing; see https://sqlite.org/pragma.html#pragma_synchronous."""
    tape = taped(tmp_path, mode, synchronous)
    losses = lost(tape, tmp_path / "after", None, 1000)
    assert sum(loss > 0 for loss in losses) > ROWS / 2
    assert max(losses) >= most


def test_without_power_losses_the_tape_has_the_files(tmp_path: Path) -> None:
    tape = taped(tmp_path, "WAL", "NORMAL")
    closed = power.Record("sync", "numbers.db"), power.Record("sync", "numbers.db-wal", True)
    files = power.Disk().play([*tape, *closed]).left()
    assert rows_after(files, tmp_path / "after") == ROWS


def test_a_torn_record_at_the_end_of_a_tape_is_left_out(tmp_path: Path) -> None:
    tape = taped(tmp_path, "WAL", "FULL")
    path = tmp_path / "tape"
    path.write_bytes(path.read_bytes()[:-1])
    assert list(power.records(path)) == tape[:-1]
