"""A database that is gone in the middle of a transaction."""

from __future__ import annotations

from contextlib import closing

import pytest

import rightarm as ra
from postgres import Postgres
from rightarm.messages import Ask, Choice, Definition
from rightarm.store import Unavailable, Work, open_store, verbs
from rightarm.store.live import Live


@pytest.mark.parametrize("others", [0, 2])
def test_work_during_which_the_connection_is_cut_is_unavailable_and_can_be_repeated(
    postgres: Postgres, postgres_url: str, others: int
) -> None:
    with closing(open_store(postgres_url)) as store:
        policy = ra.UCB(C=0.5)
        store.do(store.create("home", Definition(arms=["a", "b"], policy="UCB(C=0.5)"), policy, by="me"))

        def ask(live: Live) -> list[Choice]:
            return verbs.ask(live, Ask(key="same"))

        def cut(live: Live) -> list[Choice]:
            postgres.disconnect(postgres_url)
            return ask(live)

        before = len(list(store.events("home")))
        with pytest.raises(Unavailable):
            store.run([*[Work("home", ask)] * others, Work("home", cut)])
        assert len(list(store.events("home"))) == before
        assert store.do("home", ask) == store.do("home", ask)
        assert len(list(store.events("home"))) == before + 1
