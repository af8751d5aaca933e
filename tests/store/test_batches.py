"""Work that is done together: what fails touches nothing else, neither in memory nor in the database."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Any

import pytest

import rightarm as ra
from rightarm.messages import Ask, DecisionAnswer, Definition, Tell
from rightarm.store import Conflict, Missing, Store, StoredBandit, Unavailable, Work, open_store
from rightarm.store import store as store_module
from rightarm.store.connections import Damaged, connect
from rightarm.store.stored_bandit import load
from rightarm.store.verify import verify

POLICY = ra.BoltzmannGumbel(C=0.5)
DESCRIBE = Work("home", StoredBandit.describe)


def making(store: Store, name: str = "home", **options: Any) -> Work[Any]:
    plain: dict[str, Any] = {"arms": ["red", "blue"], "policy": repr(POLICY), "seed": 1} | options
    definition = Definition(**plain)
    return store.create(name, definition, POLICY, by="test")


def asking(name: str = "home", **request: Any) -> Work[Any]:
    return Work(name, partial(StoredBandit.ask, request=Ask(**request)))


def telling(decision: int, reward: float, **request: Any) -> Work[Any]:
    return Work("home", partial(StoredBandit.tell, rewards=[Tell(decision=decision, reward=reward, **request)]))


def play(store: Store, rounds: int = 8) -> None:
    for _ in range(rounds):
        made: list[DecisionAnswer] = store.do(asking())
        store.do(telling(made[0].decision, 1.0))


def findings(url: str) -> list[Any]:
    with closing(connect(url)) as database:
        return verify(database).findings


@pytest.mark.parametrize("after", ["a reward", "a start"])
def test_a_decision_that_is_refused_uses_no_random_number(sqlite_url: str, after: str) -> None:
    store = open_store(sqlite_url)
    store.do(making(store))
    [choice] = store.do(asking())
    with pytest.raises(ValueError, match="meta must be at most"):
        store.do(asking(meta={"text": "x" * 20_000}))
    if after == "a start":
        store.close()
        store = open_store(sqlite_url)
    store.do(telling(choice.decision, 1.0))
    play(store)
    store.close()
    assert findings(sqlite_url) == []


def test_one_name_is_made_once_in_a_batch(store_url: str) -> None:
    store = open_store(store_url)
    results = store.run([making(store), making(store, arms=["red", "green"]), making(store), asking(key="k")])
    assert results[0] is True
    assert isinstance(results[1], Conflict)
    assert results[2] is False
    assert store.do(asking(key="k")) == results[3]
    assert [store.do(making(store)), store.do(DESCRIBE).arms] == [False, ["red", "blue"]]
    store.close()
    assert findings(store_url) == []


def test_a_bandit_that_is_damaged_does_not_touch_others(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    store.run([making(store), making(store, "other")])
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
        connection.execute("UPDATE events SET line = line || ' ' WHERE bandit = 1 AND n = 1")
    store._bandits.clear()
    results = store.run([asking(), asking("other"), DESCRIBE])
    assert [type(result) for result in results] == [Damaged, list, Damaged]
    assert len(list(store.events("other"))) == 2
    store.close()


def test_a_snapshot_that_cannot_be_written_costs_nothing(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "EVERY", 5)
    store = open_store(sqlite_url)
    store.run([making(store), making(store, "other")])
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
        connection.execute("CREATE TRIGGER no BEFORE INSERT ON snapshots BEGIN SELECT RAISE(FAIL, 'no space'); END")
        for _ in range(5):
            assert [len(result) for result in store.run([asking(size=5), asking("other", size=5)])] == [5, 5]
        store.close()
        connection.execute("DROP TRIGGER no")
    assert findings(sqlite_url) == []


def test_a_database_that_fails_within_work_is_unavailable(store_url: str) -> None:
    def broken(live: StoredBandit) -> None:
        assert live.connection is not None
        live.connection.exec_driver_sql("SELECT * FROM nowhere")

    store = open_store(store_url)
    store.do(making(store))
    for works in ([Work("home", broken)], [asking(), Work("home", broken)]):
        with pytest.raises(Unavailable, match="the database does not answer"):
            store.run(works)
    assert store.do(DESCRIBE).decisions == 0
    store.close()


def test_keys_of_refused_work_are_free(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    store.do(making(store))
    [choice] = store.do(asking())
    store.do(telling(choice.decision, 1.0))
    rewards = [Tell(decision=choice.decision, reward=1.0, key="k"), Tell(decision=77, reward=1.0)]
    store.run([Work("home", partial(StoredBandit.tell, rewards=rewards)), asking()])
    [told] = store.do(telling(choice.decision, 0.5, correct=True, key="k"))
    assert told.outcome == "corrected"
    store.close()


def test_whoever_reads_follows_to_the_row_that_was_read(store_url: str) -> None:
    first, second = open_store(store_url), open_store(store_url)
    first.do(making(first))
    play(second, 2)
    with second.database.reads() as connection:
        row = store_module._row(connection, "home")
    play(first, 2)
    first._snapshot(first._bandits["home"])
    with second.database.reads() as connection:
        second._bandits["home"].follow(row, connection)
        loaded = load(row, connection)
    assert second._bandits["home"].version == loaded.version == row.last == 5
    for store in (first, second):
        store.close()


def test_times_are_seconds_of_any_type(sqlite_url: str) -> None:
    store = open_store(sqlite_url, clock=lambda: 1000)
    store.do(making(store))
    store._bandits.clear()
    assert store.do(DESCRIBE).created == 1000.0
    store.close()


def test_work_that_spoils_a_batch_is_left_out_once(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(live: StoredBandit) -> None:
        live.ask(Ask())
        raise ZeroDivisionError

    store = open_store(sqlite_url)
    store.do(making(store))
    sizes, run = list[int](), store._run

    def counted(works: Sequence[Work[Any]]) -> list[Any]:
        sizes.append(len(works))
        return run(works)

    monkeypatch.setattr(store, "_run", counted)
    spoils = Work("home", broken)
    results = store.run([asking(), asking(), spoils, asking(), spoils])
    assert [type(result) for result in results] == [list, list, ZeroDivisionError, list, ZeroDivisionError]
    assert [result[0].version for result in results if isinstance(result, list)] == [1, 2, 3]
    assert sizes == [5, 1, 1, 1, 1, 1]  # one by one, after the first try
    store.close()


def test_a_reward_that_is_refused_spoils_no_batch(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    store.do(making(store, reward_range=(0.0, 1.0)))
    made = store.do(asking(size=2))
    live = store._bandits["home"]
    for bad in (Tell(decision=77, reward=1.0), Tell(decision=made[1].decision, reward=7.0)):
        rewards = [Tell(decision=made[0].decision, reward=1.0), bad]
        [result] = store.run([Work("home", partial(StoredBandit.tell, rewards=rewards))])
        assert isinstance(result, Missing | ValueError)
    assert store._bandits["home"] is live  # it need not be folded again
    store.close()


@pytest.mark.parametrize("name", ["", "a b", "a\0b", "a\n", "ä", "x" * 101])
def test_names_that_are_none(store_url: str, name: str) -> None:
    store = open_store(store_url)
    store.do(making(store))
    with pytest.raises(ValueError, match="name must match"):
        making(store, name)
    results = store.run([Work(name, StoredBandit.describe), DESCRIBE])
    assert [isinstance(result, Missing) for result in results] == [True, False]
    with pytest.raises(Missing):
        store.head(name)
    store.close()


def test_texts_with_nul(store_url: str) -> None:
    store = open_store(store_url)
    store.do(making(store))
    results = store.run([asking(key="a\0b"), asking(unit="a\0b", meta={"a\0": "\0"})])
    assert "key must have no NUL" in str(results[0])
    [choice] = results[1]
    found = store.decision("home", choice.decision)
    assert found is not None
    assert (found["decision"]["unit"], found["decision"]["meta"]) == ("a\0b", {"a\0": "\0"})
    store.close()
    assert findings(store_url) == []
