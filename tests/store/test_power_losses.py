"""A store whose power fails at any place of what it writes, checkpoints of the log included."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import independent
import power

pytestmark = pytest.mark.skipif(
    power.library() is None, reason="the SQLite of this Python lies within it, and its functions cannot be reached"
)

PROGRAM = """
import json, os, random, sys
from pathlib import Path
import power

tape, path, synchronous, transactions = sys.argv[1:]
shim = power.Shim(Path(tape))

import rightarm as ra
from sqlalchemy import event
from rightarm.messages import Ask, Definition, Tell
from rightarm.store import Work, open_store

store, luck = open_store("sqlite:///" + path), random.Random(1)
store.database.writing.dispose()
event.listen(store.database.writing, "connect", lambda one, _: one.execute(f"PRAGMA synchronous={synchronous}"))
arms, policy = ["a", "b", "c"], ra.BoltzmannGumbel(C=0.3)
store.do(store.create("home", Definition(arms=arms, policy="BoltzmannGumbel(C=0.3)"), policy, by="me"))
shim.mark(b"{}")
waiting = []
for number in range(int(transactions)):
    keys = [f"{number}-{place}" for place in range(luck.randint(1, 6))]
    works = [Work("home", lambda live, key=key: live.ask(Ask(key=key))) for key in keys]
    told = {one: luck.choice([0.0, 0.25, 1.0]) for one in waiting[: luck.randint(0, 6)]}
    tells = [Tell(decision=one, reward=reward) for one, reward in told.items()]
    works += [Work("home", lambda live, tell=tell: live.tell([tell])) for tell in tells]
    results = store.run(works)
    made = [choice.decision for [choice] in results[: len(keys)]]
    waiting = waiting[len(told) :] + made
    shim.mark(json.dumps({"made": made, "told": told}).encode())
os._exit(0)  # at once, as without power: SQLite must not call a shim that Python has cleared away
"""


def taped(folder: Path, synchronous: str, transactions: int) -> list[power.Record]:
    tape, path, tests = folder / "tape", folder / "store.db", Path(power.__file__).parent
    subprocess.run([sys.executable, "-c", PROGRAM, tape, path, synchronous, str(transactions)], check=True, cwd=tests)
    return list(power.records(tape))


def events_after(files: dict[str, bytes], folder: Path) -> list[str]:
    power.put(files, folder)
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = connection.execute("SELECT n, line FROM events ORDER BY n")
        return [f'{{"n":{n},{line[1:]}' for n, line in rows]


class Seen:
    """What was acknowledged at a place of the tape, and how much of it was lost at all places so far."""

    def __init__(self) -> None:
        self.made: set[int] = set()
        self.told: dict[int, float] = {}
        self.begun = False
        self.losses = list[int]()

    def hear(self, mark: bytes) -> None:
        heard = json.loads(mark)
        self.begun = True
        self.made |= set(heard.get("made", []))
        self.told |= {int(number): reward for number, reward in heard.get("told", {}).items()}

    def look(self, lines: list[str]) -> None:
        events = [json.loads(line) for line in lines]
        assert [event["n"] for event in events] == list(range(1, len(events) + 1))
        made = {event["id"] for event in events if event["event"] == "decision"}
        told = {event["id"]: event["reward"] for event in events if event["event"] == "reward"}
        self.losses.append(len(self.made - made) + sum(told.get(one) != reward for one, reward in self.told.items()))


def play(tape: list[power.Record], folder: Path, luck: random.Random, places: int) -> tuple[Seen, list[str]]:
    """Let the power fail at so many places, at every other of which some of what was not synced is there."""
    disk, seen, lines = power.Disk(), Seen(), list[str]()
    first = next(place for place, record in enumerate(tape) if record.kind == "mark")
    chosen = set(luck.sample(range(first, len(tape)), places))
    for place, record in enumerate(tape):
        disk.play([record])
        if record.kind == "mark":
            seen.hear(record.data)
        if place in chosen:
            lines = events_after(disk.left(luck if place % 2 else None), folder)
            seen.look(lines)
    return seen, lines


def check(folder: Path, transactions: int, places: int) -> None:
    tape = taped(folder, "FULL", transactions)
    assert sum(record.kind == "sync" and record.file == "store.db" for record in tape) > 1  # there were checkpoints
    seen, lines = play(tape, folder / "after", random.Random(2), places)
    assert len(seen.losses) == places
    assert max(seen.losses) == 0
    assert independent.read(lines).recomputed > transactions
    print(f"{places} power losses, {len(seen.made):,} decisions and {len(seen.told):,} rewards acknowledged, none lost")


def test_nothing_that_was_acknowledged_is_lost_wherever_the_power_fails(tmp_path: Path) -> None:
    check(tmp_path, 400, 40)


@pytest.mark.full
def test_nothing_is_lost_at_2000_places(tmp_path: Path) -> None:
    check(tmp_path, 1500, 2000)


def test_with_less_syncing_something_is_lost(tmp_path: Path) -> None:
    """So the tests above would notice."""
    seen, _ = play(taped(tmp_path, "NORMAL", 200), tmp_path / "after", random.Random(2), 50)
    assert sum(loss > 0 for loss in seen.losses) > 20
