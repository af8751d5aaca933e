"""The verbs of the service, where arms are numbers, and where decisions wait or were answered long ago."""

from functools import partial
from typing import Any

import pytest

import rightarm as ra
from rightarm.bandit import ledger
from rightarm.messages import Ask, Definition, RewardAnswer, Tell
from rightarm.store import Store, StoredBandit, open_store


def make(store: Store, arms: list[Any], policy: ra.Policy, **options: Any) -> None:
    store.do(store.create("home", Definition(arms=arms, policy=repr(policy), **options), policy, by="test"))


def tell(store: Store, **request: Any) -> RewardAnswer:
    [told] = store.do("home", partial(StoredBandit.tell, rewards=[Tell(**request)]))
    assert isinstance(told, RewardAnswer)
    return told


def test_features_of_arms_that_are_numbers(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    make(store, [1, 2], ra.UCB(C=0.5, estimator=ra.estimators.Linear(["hour"], arm_features=["price"])))
    prices: Any = {"1": {"price": 1.0}, "2": {"price": 2.0}}
    [choice] = store.do("home", partial(StoredBandit.ask, request=Ask(context={"hour": 1}, arm_features=prices)))
    assert choice.arm in (1, 2)
    assert tell(store, arm=1, reward=1.0, context={"hour": 1}, arm_features=prices).outcome == "learned"
    store.close()


def test_a_name_of_two_arms_is_refused(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    with pytest.raises(ValueError, match="prior must be for one arm, got '1', which two arms are called"):
        make(store, ["1", 1], ra.UCB(C=0.5), prior={"1": [0.5, 10.0]})
    make(store, ["1", 1, 2], ra.UCB(C=0.5), prior={"2": [0.5, 10.0]})
    store.close()


def test_a_reward_without_decision_corrects_nothing(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    make(store, ["red"], ra.UCB(C=0.5))
    with pytest.raises(TypeError, match="correct must be left out"):
        tell(store, arm="red", reward=1.0, correct=True)
    store.close()


def test_a_reward_that_waits_is_replaced_once(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    make(store, ["red"], ra.UCB(C=0.5), reward_window=1e9, learn="at close", repeated="sum")
    [choice] = store.do("home", partial(StoredBandit.ask, request=Ask()))
    told = partial(tell, store, decision=choice.decision, reward=1.0)
    assert [told().outcome, told().outcome] == ["noted", "noted"]
    assert [told(correct=True).outcome, told(correct=True).outcome] == ["noted", "duplicate"]
    assert len(list(store.events("home"))) == 5
    assert told(reward=0.0).outcome == "duplicate"  # which adds nothing
    assert len(list(store.events("home"))) == 5
    store.close()


def test_a_window_that_closed_long_ago_cannot_be_cancelled(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "REMEMBERED", 1)
    now = [1000.0]
    store = open_store(sqlite_url, clock=lambda: now[0])
    make(store, ["red"], ra.UCB(C=0.5), reward_window=60.0)
    made = store.do("home", partial(StoredBandit.ask, request=Ask(size=3)))
    now[0] += 61
    assert [store.do("home", partial(StoredBandit.cancel, number=one.decision)) for one in made] == [False] * 3
    store.close()
