"""What is taken out of a store is what the bandit is, on both databases."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import rightarm as ra
from bandits import Clock, arm_rows
from rightarm.bandit import summary
from rightarm.messages import Ask, Definition, Tell
from rightarm.store import Missing, StoredBandit, open_store
from rightarm.store.store_exports import ENDINGS, export, log_lines


def test_the_log_makes_the_bandit_again(store_url: str, tmp_path: Path) -> None:
    with closing(open_store(store_url)) as store:
        definition = Definition(arms=["a", 2], policy="UCB(C=0.5)", seed=3)
        store.do(store.create("home", definition, ra.UCB(C=0.5), by="me"))
        for i in range(50):
            [choice] = store.do("home", lambda live: live.ask(Ask()))
            if i % 5:
                told = Tell(decision=choice.decision, reward=float(i % 2))
                store.do("home", partial(StoredBandit.tell, rewards=[told]))
        table = store.do("home", lambda live: summary.arm_rows(live.state, []))
        for ending in ENDINGS.values():
            assert export(store, "home", tmp_path / f"home{ending}").stat().st_size > 0
        assert (tmp_path / "home.jsonl").read_bytes() == b"".join(log_lines(store, "home"))
        with pytest.raises(Missing, match="there is no bandit nobody"):
            export(store, "nobody", tmp_path / "nobody.jsonl")
    assert {path.name for path in tmp_path.glob("*") if "store" not in path.name} == {
        f"home{ending}" for ending in ENDINGS.values()
    }
    assert ra.logs.read_log(tmp_path / "home.jsonl")["reward"].drop_nulls().len() == 40
    with ra.Bandit.from_log(tmp_path / "home.jsonl") as again:
        assert arm_rows(again) == table
        assert again.ask().propensity > 0


def test_open_windows_of_reward_are_left_out(store_url: str, tmp_path: Path) -> None:
    """Three decisions that stayed silent are exported as 0, a click in an open window is not."""
    clock = Clock()
    with closing(open_store(store_url, clock=clock)) as store:
        definition = Definition(arms=["a", "b"], policy="UCB(C=0.5)", seed=3, reward_window=60.0, default_reward=0.0)
        store.do(store.create("home", definition, ra.UCB(C=0.5), by="me"))
        store.do("home", lambda live: live.ask(Ask(size=3)))
        clock.now += 60.0
        choices = store.do("home", lambda live: live.ask(Ask(size=2)))
        store.do("home", partial(StoredBandit.tell, rewards=[Tell(decision=choices[0].decision, reward=1.0)]))
        made = {ending: export(store, "home", tmp_path / f"home{ending}") for ending in ENDINGS.values()}
    with np.load(made[".npz"]) as feedback:
        assert feedback["reward"].tolist() == [0.0] * 3
        assert feedback["open_windows"] == 2
    assert len(made[".dsjson"].read_text().splitlines()) == 3
    for ending in (".jsonl", ".parquet"):
        assert ra.logs.read_log(made[ending])["reward"].to_list() == [0.0, 0.0, 0.0, None, None]
