"""What happens in the middle of a transaction: the database goes, or others write."""

from __future__ import annotations

from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import event

import rightarm as ra
from postgres import Postgres
from rightarm.messages import Ask, DecisionAnswer, Definition
from rightarm.store import StoredBandit, Unavailable, Work, open_store


@pytest.mark.parametrize("others", [0, 2])
def test_work_during_which_the_connection_is_cut_is_unavailable_and_can_be_repeated(
    postgres: Postgres, postgres_url: str, others: int
) -> None:
    with closing(open_store(postgres_url)) as store:
        policy = ra.UCB(C=0.5)
        store.do(store.create("home", Definition(arms=["a", "b"], policy="UCB(C=0.5)"), policy, by="me"))

        def ask(live: StoredBandit) -> list[DecisionAnswer]:
            return live.ask(Ask(key="same"))

        def cut(live: StoredBandit) -> list[DecisionAnswer]:
            postgres.disconnect(postgres_url)
            return ask(live)

        def events() -> int:
            [(count,)] = postgres.execute("SELECT count(*) FROM events", urlsplit(postgres_url).path[1:])
            return int(count)

        before = events()
        with pytest.raises(Unavailable):
            store.run([*[Work("home", ask)] * others, Work("home", cut)])
        assert events() == before
        assert store.do("home", ask) == store.do("home", ask)
        assert events() == before + 1


def test_a_snapshot_that_fails_disturbs_nobody(
    postgres: Postgres, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rightarm.store.store.EVERY", 1)
    store, cuts = open_store(postgres_url), 0

    def cut(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        nonlocal cuts
        if "INTO snapshots" in statement:
            cuts += 1
            postgres.disconnect(postgres_url)

    event.listen(store.database.writing, "before_cursor_execute", cut)
    definition = Definition(arms=["a", "b"], policy="UCB(C=0.5)")
    assert store.do(store.create("home", definition, ra.UCB(C=0.5), by="me"))
    store.close()
    assert cuts > 0
    with closing(open_store(postgres_url)) as again:
        assert len(list(again.events("home"))) == 1


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("snapshot", [True, False])
def test_who_only_reads_sees_one_moment_though_others_write(postgres_url: str, known: bool, snapshot: bool) -> None:
    """Otherwise a replica that starts while others write believes that the store is damaged."""
    with closing(open_store(postgres_url)) as reader, closing(open_store(postgres_url)) as writer:
        definition = Definition(arms=["a", "b"], policy="UCB(C=0.5)")
        writer.do(writer.create("home", definition, ra.UCB(C=0.5), by="me"))
        version, writes = Work("home", lambda live: live.version, reads=True), 0

        def write() -> None:
            nonlocal writes
            writes += 1
            writer.do("home", lambda live: live.ask(Ask(size=5)))
            if snapshot:
                writer._snapshot(writer._bandits["home"])

        def between(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
            if "FROM bandits" in statement and writes < 2:
                write()  # after the row was read, and before its events are

        if known:
            assert reader.do(version) == 1
        write()
        event.listen(reader.database.writing, "after_cursor_execute", between)
        assert (reader.do(version), writes) == (6, 2)
        assert reader.do(version) == 11
