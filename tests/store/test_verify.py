"""A store that was changed behind our back is noticed, wherever the change is."""

import contextlib
import random
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rightarm as ra
from rightarm.cli import app
from rightarm.messages import Ask, Definition, Tell
from rightarm.store import Damaged, Store, StoredBandit, Work, open_store
from rightarm.store.connections import connect
from rightarm.store.verify import Verified, verify

FLIPS = 150


def fill(store: Store, name: str = "home", rounds: int = 40) -> None:
    definition = Definition(arms=["red", "blue"], policy="BoltzmannGumbel(C=0.5)", seed=1)
    store.do(store.create(name, definition, ra.BoltzmannGumbel(C=0.5), by="test"))
    for place in range(rounds):
        request = Ask(unit=f"visitor {place}", key=f"key {place}")
        [choice] = store.do(name, partial(StoredBandit.ask, request=request))
        store.do(name, partial(StoredBandit.tell, rewards=[Tell(decision=choice.decision, reward=place % 2)]))


@pytest.fixture
def url(store_url: str) -> str:
    store = open_store(store_url)
    fill(store)
    store.close()
    return store_url


def verified(url: str) -> Verified:
    database = connect(url)
    try:
        return verify(database)
    finally:
        database.close()


def test_what_was_not_touched_is_right(url: str) -> None:
    found = verified(url)
    assert not found.findings
    assert (found.bandits, found.events, found.decisions) == (1, 81, 40)


CHANGES = {
    "a propensity": "UPDATE events SET line = replace(line, '\"propensity\":0.5', '\"propensity\":0.6') WHERE n = 2",
    "a time": "UPDATE events SET line = replace(line, '\"time\":1', '\"time\":2') WHERE n = 10",
    "an event is gone": "DELETE FROM events WHERE n = 20",
    "the last event is gone": "DELETE FROM events WHERE n = 81",
    "the name": "UPDATE bandits SET name = 'hone'",
    "the definition": "UPDATE bandits SET definition = replace(definition, '0.5', '0.6')",
    "the status": "UPDATE bandits SET status = 'paused'",
    "a unit": "UPDATE decisions SET unit = 'visitor 3' WHERE n = 2",
    "an answer": "UPDATE decisions SET answer = 5 WHERE n = 2",
    "a decision is gone": "DELETE FROM decisions WHERE n = 2",
    "a count": "UPDATE counts SET decisions = decisions + 1 WHERE arm = 0",
    "a sum": "UPDATE counts SET total = total + 0.5 WHERE arm = 0",
    "a key": "UPDATE keys SET answer = replace(answer, 'red', 'blue')",
    "a snapshot": "UPDATE snapshots SET state = replace(state, '0', '1')",
    "a snapshot's number": "UPDATE snapshots SET n = n - 1",
    "the key of the draws": "UPDATE bandits SET key = '0123456789abcdef0123456789abcdef'",
    "rows of nobody": "UPDATE keys SET bandit = 7",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_behind_our_back_is_found(url: str, change: str) -> None:
    database = connect(url)
    with database.writing.begin() as connection:
        assert connection.exec_driver_sql(CHANGES[change]).rowcount
    database.close()
    assert verified(url).findings


def test_a_store_does_not_go_on_from_damaged_events(url: str) -> None:
    database = connect(url)
    with database.writing.begin() as connection:
        connection.exec_driver_sql("DELETE FROM snapshots")
        connection.exec_driver_sql("UPDATE events SET line = replace(line, 'red', 'rex') WHERE n = 1")
    database.close()
    store = open_store(url)
    with pytest.raises(Damaged, match="home: event 1 is not as it was written"):
        store.do("home", StoredBandit.describe)
    store.close()


def contents(path: Path) -> list[object] | None:
    """All that a file of SQLite says, None if it cannot be read."""
    try:
        connection = sqlite3.connect(path)
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in sorted(tables)]
        ok = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [found] if ok else None
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return None
    finally:
        connection.close()


def test_flipped_bytes_of_a_file_are_found(tmp_path: Path) -> None:
    path = tmp_path / "home.db"
    store = open_store(f"sqlite:///{path}")
    fill(store)
    store.close()
    whole, before, luck, mattered = path.read_bytes(), contents(path), random.Random(1), 0
    for number in range(FLIPS):
        flipped, place = bytearray(whole), luck.randrange(100, len(whole))
        flipped[place] ^= 1 << luck.randrange(8)
        copy = tmp_path / f"{number}.db"
        copy.write_bytes(flipped)
        if contents(copy) == before:
            continue  # a byte that holds nothing
        mattered += 1
        assert verified(f"sqlite:///{copy}").findings, place
    assert mattered > FLIPS / 10


COMMANDS = {
    "verify": [],
    "migrate": [],
    "backup": ["sqlite:///{folder}/copy.db"],
    "export": ["home", "{folder}/x.jsonl"],
}


@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 0.3, 0.7, 0.95])
def test_commands_say_in_words_that_a_file_was_cut_off(share: float, tmp_path: Path) -> None:
    path = tmp_path / "home.db"
    store = open_store(f"sqlite:///{path}")
    fill(store)
    store.close()
    cut = path.read_bytes()[: int(share * path.stat().st_size)]
    for command, more in COMMANDS.items():
        path.write_bytes(cut)
        arguments = [command, f"sqlite:///{path}", *(each.format(folder=tmp_path) for each in more)]
        done = CliRunner().invoke(app, arguments)
        assert isinstance(done.exception, SystemExit) or done.exit_code == 0, arguments
        if command == "verify":
            words = "the file cannot be read: database disk image is malformed" if share else "tables are missing: "
            assert (done.exit_code, words in done.output, "damaged" in done.output) == (1, True, True), done.output
        elif share:
            assert done.exit_code == 1, done.output
            assert len(done.output.splitlines()) == 1


def test_a_server_that_is_gone_is_no_damage(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["verify", f"postgresql://me@/none?host={tmp_path}"])
    assert (done.exit_code, isinstance(done.exception, SystemExit)) == (1, True)
    assert done.output.startswith("rightarm: the database does not answer: ")
    assert "damaged" not in done.output


def test_the_command_says_so(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    fill(store)
    store.close()
    command = [sys.executable, "-c", "from rightarm.cli import main; main()", "verify", sqlite_url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1 bandits, 81 events, 40 decisions: all as it should be\n"), done
    sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None).execute(CHANGES["a time"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("home: event 9: home: event 10 is not as it was written\n")


def test_reads_change_nothing(store_url: str) -> None:
    store = open_store(store_url)
    fill(store, rounds=1)
    version = store.do(Work("home", lambda live: live.version, reads=True))
    assert store.do(Work("home", lambda live: live.state.probabilities().chance.sum(), reads=True)) == pytest.approx(1)
    assert store.do("home", lambda live: live.version) == version
    store.close()


def test_sums_of_large_rewards_in_another_order_are_no_finding(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    policy = ra.UCB(C=0.5)
    store.do(store.create("home", Definition(arms=["red"], policy=repr(policy)), policy, by="test"))
    made = store.do("home", lambda live: live.ask(Ask(size=3)))
    rewards = [Tell(decision=one.decision, reward=r) for one, r in zip(made, (1e12, -1e12, 0.1), strict=True)]
    for some in (rewards[:1], rewards[1:]):
        store.do("home", partial(StoredBandit.tell, rewards=some))
    assert not verify(store.database).findings
    store.close()


def test_a_replica_that_only_follows_writes_the_same_snapshot(sqlite_url: str) -> None:
    stores = [open_store(sqlite_url) for _ in range(2)]
    policy = ra.BoltzmannGumbel(C=0.5, estimator=ra.estimators.Catoni(C=0.25, discount=0.9))
    definition = Definition(arms=["red", "blue"], policy=repr(policy), seed=1)
    stores[0].do(stores[0].create("home", definition, policy, by="test"))
    for reward in (0.0, 1.0, 1.0, 0.0):
        [choice] = stores[0].do("home", lambda live: live.ask(Ask()))
        stores[0].do("home", partial(StoredBandit.tell, rewards=[Tell(decision=choice.decision, reward=reward)]))
    stores[0].do("home", lambda live: live.ask(Ask()))  # which looks at the rewards so far
    stores[1].do("home", StoredBandit.describe)
    for store in reversed(stores):
        store.close()
    with contextlib.closing(connect(sqlite_url)) as database:
        assert not verify(database).findings
