"""Stores beyond the contract: threads, replicas, decisions of long ago, copies, old tables, databases that fail."""

import json
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rightarm as ra
from rightarm.bandit import ledger
from rightarm.messages import Ask, Change, DecisionAnswer, Definition, Tell
from rightarm.store import Commits, Conflict, Missing, Store, StoredBandit, Unavailable, Work, open_store
from rightarm.store import store as store_module
from rightarm.store.connections import connect
from rightarm.store.store_exports import backup
from rightarm.store.stored_bandit import snapshot_of
from rightarm.store.verify import verify

POLICY = ra.BoltzmannGumbel(C=0.5)


def make(store: Store, name: str = "home", policy: ra.Policy = POLICY, **options: Any) -> None:
    definition = Definition(arms=["red", "blue"], policy=repr(policy), **options)
    store.do(store.create(name, definition, policy, by="test"))


def ask(store: Store, name: str = "home", **request: Any) -> list[DecisionAnswer]:
    choices: list[DecisionAnswer] = store.do(name, partial(StoredBandit.ask, request=Ask(**request)))
    return choices


def tell(store: Store, decision: int, reward: float, name: str = "home", **request: Any) -> str:
    rewards = [Tell(decision=decision, reward=reward, **request)]
    return str(store.do(name, partial(StoredBandit.tell, rewards=rewards))[0].outcome)


def check(url: str, decisions: int) -> None:
    with closing(connect(url)) as database:
        found = verify(database)
    assert not found.findings
    assert found.decisions == decisions


def test_an_address_that_cannot_be_read_is_said_without_its_password() -> None:
    for address in ("postgresql:/me:se:cret@host/db", "me:secret@host"):
        with pytest.raises(ValueError, match="store must be an address") as error:
            open_store(address)
        assert "cret" not in str(error.value)


def test_many_threads_and_two_replicas_lose_nothing(store_url: str) -> None:
    replicas = [Commits(open_store(store_url)) for _ in range(2)]
    make(replicas[0].store)
    sizes, told = list[int](), list[tuple[int, float]]()
    replicas[0].observe = lambda requests, seconds, folded: sizes.append(requests)

    def play(number: int) -> None:
        for place in range(25):
            commits = replicas[(number + place) % 2]
            [choice] = commits.submit("home", partial(StoredBandit.ask, request=Ask(key=f"{number}-{place}"))).result()
            rewards = [Tell(decision=choice.decision, reward=float(place % 2))]
            [one] = commits.submit("home", partial(StoredBandit.tell, rewards=rewards)).result()
            assert one.outcome == "learned"
            told.append((choice.decision, float(place % 2)))

    threads = [threading.Thread(target=play, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    described = [replica.submit("home", StoredBandit.describe).result() for replica in replicas]
    assert [(one.decisions, one.rewards, one.version) for one in described] == [(400, 400, 801)] * 2
    assert len(set(told)) == 400
    assert replicas[0].store.folded
    assert max(sizes) > 1  # some were committed together
    for replica in replicas:
        replica.close()
    check(store_url, 400)


def test_what_waits_is_done_before_closing(sqlite_url: str) -> None:
    commits = Commits(open_store(sqlite_url))
    make(commits.store)
    futures: list[Future[Any]] = [commits.submit("home", partial(StoredBandit.ask, request=Ask())) for _ in range(50)]
    commits.close()
    assert len({future.result()[0].decision for future in futures}) == 50
    with pytest.raises(Unavailable, match="closing"):
        commits.submit("home", StoredBandit.describe)
    check(sqlite_url, 50)


def test_decisions_of_long_ago_are_still_known(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "REMEMBERED", 3)
    store = open_store(sqlite_url)
    make(store)
    made = ask(store, size=10)
    for choice in made[:8]:
        assert tell(store, choice.decision, 0.5) == "learned"
    assert store.do("home", partial(StoredBandit.cancel, number=made[8].decision))
    assert tell(store, made[0].decision, 0.5) == "duplicate"
    with pytest.raises(Conflict, match="too long ago"):
        tell(store, made[0].decision, 0.25)
    with pytest.raises(Conflict, match="too long ago"):
        tell(store, made[0].decision, 0.25, correct=True)
    assert not store.do("home", partial(StoredBandit.cancel, number=made[0].decision))
    with pytest.raises(Missing, match="decision 7 was never made by home"):
        store.do("home", partial(StoredBandit.cancel, number=7))
    store.close()


@pytest.mark.parametrize("policy", [ra.ScaledGumbel(), ra.ScaledGumbel(estimator=ra.estimators.Linear(1))], ids=str)
def test_a_correction_leaves_no_trace(store_url: str, policy: ra.Policy) -> None:
    """Also in snapshots, in a replica, and where all is folded again."""
    first, replica = open_store(store_url), open_store(store_url)
    contexts = [[i % 5] if policy.estimator.asks_context else None for i in range(40)]
    for name in ("wrong", "right"):
        make(first, name, policy, seed=1)
        made = [ask(first, name, allowed=["blue" if i % 3 else "red"], context=x)[0] for i, x in enumerate(contexts)]
        for i, choice in enumerate(made):
            reward = 0.2 if i == 7 else i % 4 / 4
            tell((first, replica)[i % 2], choice.decision, 1794956542 if i == 7 and name == "wrong" else reward, name)
        if name == "wrong":
            assert tell(replica, made[7].decision, 0.2, name, correct=True) == "corrected"
    for store in (first, replica):
        wrong, right = (
            [ask(store, name, context=contexts[0])[0].propensity for _ in range(5)] for name in ("wrong", "right")
        )
        assert wrong == pytest.approx(right, rel=1e-12)
        store.close()  # which writes snapshots
    check(store_url, 100)
    again = open_store(store_url)
    states = [again.do(name, lambda live: live.state.arms.to_json()) for name in ("wrong", "right")]
    assert states[0] == states[1]
    again.close()


def test_a_correction_that_would_leave_a_trace_is_refused(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "REMEMBERED", 3)
    store = open_store(sqlite_url)
    make(store, seed=1)
    made = ask(store, size=10)
    for choice in made:
        tell(store, choice.decision, 1e20 if choice is made[-1] else 0.5)
    before = list(store.events("home"))
    with pytest.raises(Conflict, match=r"cannot be corrected from 1e\+20 to 0.2: .*, and only \d are remembered"):
        tell(store, made[-1].decision, 0.2, correct=True)
    assert list(store.events("home")) == before
    store.close()
    check(sqlite_url, 10)


def test_rewards_that_add_up_count_once_with_a_key(store_url: str) -> None:
    store = open_store(store_url)
    make(store, reward_window=1e9, repeated="sum", learn="at close")
    [choice] = ask(store)
    outcomes = [tell(store, choice.decision, 1.0, key=key) for key in ("a", "a", "b", "b", "a")]
    assert outcomes == ["noted", "duplicate", "noted", "duplicate", "duplicate"]
    with pytest.raises(Conflict, match="key must be a new one"):
        tell(store, choice.decision, 2.0, key="a")
    waiting = store.do("home", lambda live: live.state.ledger.pending[choice.decision].so_far)
    assert waiting == 2.0
    store.close()


def test_snapshots_are_written_and_make_a_start_quick(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "EVERY", 50)
    store = open_store(store_url)
    make(store)
    for _ in range(20):
        for choice in ask(store, size=10):
            tell(store, choice.decision, 1.0)
    states = store.do("home", lambda live: snapshot_of(live.state, live.journal))
    store._bandits.clear()
    assert store.do("home", lambda live: live.in_snapshot) > 300
    assert store.do("home", lambda live: snapshot_of(live.state, live.journal)) == states
    store.database.close()  # as if the process were killed: nothing is written at the end
    check(store_url, 200)


CASES: dict[str, Callable[[Store], Any]] = {
    "arms": lambda store: make(store, "bad", control="green"),
    "floor": lambda store: make(store, "bad", floor=0.7),
    "size": lambda store: ask(store, size=2, unit="u"),
    "allowed": lambda store: ask(store, allowed=["green"]),
    "context": lambda store: ask(store, context={"hour": 1}),
    "reward": lambda store: tell(store, ask(store)[0].decision, 1e300),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_an_error_and_no_event(case: str, sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    make(store, reward_range=(0, 1))
    with pytest.raises((TypeError, ValueError)):
        CASES[case](store)
    assert [name for name in store.bandits() if name != "home"] == []
    kinds = [json.loads(line)["event"] for line in store.events("home")]
    assert kinds in (["created"], ["created", "decision"])
    store.close()


def test_contexts_and_features_of_arms(store_url: str) -> None:
    store = open_store(store_url)
    policy = ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(["hour"], arm_features=["price"]))
    make(store, policy=policy)
    prices = {"red": {"price": 1.0}, "blue": {"price": 2.0}}
    for hour in range(10):
        [choice] = ask(store, context={"hour": hour}, arm_features=prices)
        tell(store, choice.decision, hour / 10)
    assert len(ask(store, contexts=[{"hour": 1}, {"hour": 2}], arm_features=prices)) == 2
    store.close()
    check(store_url, 12)


def test_a_database_that_fails_is_unavailable_and_nothing_is_half_done(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    make(store)
    [choice] = ask(store)
    path = sqlite_url.removeprefix("sqlite:///")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TRIGGER no BEFORE INSERT ON events BEGIN SELECT RAISE(FAIL, 'no space'); END")
    for _ in range(2):
        with pytest.raises(Unavailable, match="no space"):
            tell(store, choice.decision, 1.0)
    assert store.do("home", lambda live: live.version) == 2
    other.execute("DROP TRIGGER no")
    assert tell(store, choice.decision, 1.0) == "learned"
    other.close()
    store.close()
    check(sqlite_url, 1)


def test_one_process_decides_on_a_file(sqlite_url: str) -> None:
    store, other = open_store(sqlite_url), open_store(sqlite_url)
    store.hold()
    with pytest.raises(BlockingIOError, match="another writer has this store open"):
        other.hold()
    store.close()
    other.hold()
    other.close()


@pytest.mark.parametrize("given", ["home.db", "mysql://host/db", "sqlite://", "postgresql+asyncpg", ""])
def test_addresses_that_are_none(given: str) -> None:
    with pytest.raises(ValueError, match="store must"):
        open_store(given)


def test_a_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()
    with pytest.raises(ValueError, match="store must be empty or one of rightarm, got tables customers"):
        open_store(f"sqlite:///{tmp_path}/other.db")


def test_tables_of_a_newer_version_are_refused(sqlite_url: str) -> None:
    open_store(sqlite_url).close()
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(ValueError, match="version 9999: a newer rightarm made it"):
        open_store(sqlite_url)


def test_a_copy_has_everything_and_goes_on(store_url: str, tmp_path: Path) -> None:
    store = open_store(store_url)
    make(store)
    for choice in ask(store, size=20):
        tell(store, choice.decision, 1.0)
    token = store.tokens.add("me", ["ask"])
    for target in (f"sqlite:///{tmp_path}/copy.db", store_url):
        with closing(connect(store_url)) as source, closing(connect(target)) as copied:
            if target == store_url:
                with pytest.raises(ValueError, match="target must be empty"):
                    backup(source, copied)
            else:
                assert backup(source, copied) == 41
    copy = open_store(f"sqlite:///{tmp_path}/copy.db")
    found = copy.tokens.find(token)
    assert found is not None
    assert found.label == "me"
    assert ask(copy)[0].propensity == ask(store)[0].propensity
    make(copy, "another")
    assert copy.bandits() == ["another", "home"]
    copy.close()
    store.close()


def test_archived_is_for_good(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    make(store)
    [choice] = ask(store)
    change = partial(StoredBandit.change, policy=None, by="me")
    store.do("home", partial(change, request=Change(status="archived")))
    for refused in (lambda: ask(store), lambda: tell(store, choice.decision, 1.0)):
        with pytest.raises(Conflict, match="home is archived"):
            refused()
    with pytest.raises(Conflict, match="for good"):
        store.do("home", partial(change, request=Change(status="running")))
    store.close()
    check(sqlite_url, 1)


def test_bandits_of_one_transaction(store_url: str) -> None:
    store = open_store(store_url)
    names = [f"bandit-{number}" for number in range(5)]
    for name in names:
        make(store, name)
    works = [Work(name, partial(StoredBandit.ask, request=Ask())) for name in names * 3]
    assert len({choice[0].decision for choice in store.run(works)}) == 15
    assert [store.do(name, StoredBandit.describe).decisions for name in names] == [3] * 5
    store.close()
    check(store_url, 15)
