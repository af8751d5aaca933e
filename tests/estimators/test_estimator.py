"""Estimators as they are written, printed, saved, refused, and as users write their own."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from rightarm.formula import from_specification
from rightarm.testing import check_estimator


def examples(kind: type[ra.estimators.Estimator]) -> Iterator[ra.estimators.Estimator]:
    """Yield an estimator with 2 for each parameter that it needs, and those that forget if it can."""
    parameters = inspect.signature(kind).parameters.values()
    given: dict[str, Any] = {each.name: 2 for each in parameters if each.default is each.empty}
    yield kind(**given)
    for forgetting in ({"discount": 0.95}, {"window": 40}):
        with contextlib.suppress(TypeError, ValueError):
            yield kind(**given, **forgetting)


ALL = [made for kind in ra.estimators.ESTIMATORS.values() for made in examples(kind)]
PLAIN = [made for made in ALL if not made.asks_context]  # contexts have contracts of their own


class LastReward(ra.estimators.Estimator):
    """The last reward of an arm, worth one pull."""

    KEEPS = 1

    @staticmethod
    def learn(kept: Any, reward: float) -> None:
        kept[0] = reward

    @staticmethod
    def read(kept: Any) -> tuple[float, float]:
        return kept[0], 1.0


class Clipped(ra.estimators.Estimator):
    """The mean of rewards cut off at a level; it can forget."""

    level: ra.policies.Positive = 1.0
    KEEPS = 2

    @staticmethod
    def learn(kept: Any, reward: float, level: float) -> None:
        kept[0] += np.minimum(np.maximum(reward, -level), level)
        kept[1] += 1.0

    @staticmethod
    def read(kept: Any, level: float) -> tuple[float, float]:
        return kept[0] / kept[1], kept[1]

    @staticmethod
    def estimate(rewards: Any, weights: Any, level: float) -> float:
        clipped = np.minimum(np.maximum(rewards, -level), level)
        total: float = np.sum(weights * clipped) / np.sum(weights)
        return total


OWN = [LastReward(), Clipped(level=0.5), Clipped(level=0.5, window=40), Clipped(discount=0.95)]


def test_all_are_there() -> None:
    assert {type(made).__name__ for made in ALL} >= {"Catoni", "Linear", "Logistic", "Mean", "MedianOfMeans"}
    assert {str(made) for made in PLAIN} >= {"Mean()", "Mean(window=40)", "Catoni(C=2, discount=0.95)"}
    assert set(ra.estimators.NAMED) >= {"mean", "catoni", "median"}
    assert ra.estimators.NAMED["median"] is ra.estimators.MedianOfMeans


@pytest.mark.parametrize("estimator", [*PLAIN, *OWN], ids=str)
def test_every_estimator_keeps_the_contract(estimator: ra.estimators.Estimator) -> None:
    check_estimator(estimator)


@pytest.mark.parametrize("estimator", [*ALL, *OWN], ids=str)
def test_it_is_made_again(estimator: ra.estimators.Estimator) -> None:
    names = {**ra.estimators.ESTIMATORS, "LastReward": LastReward, "Clipped": Clipped}
    assert eval(repr(estimator), names) == estimator
    assert pickle.loads(pickle.dumps(estimator)) == estimator
    assert from_specification(json.loads(json.dumps(estimator.specification()))) == estimator
    policy = ra.UCB(C=0.5, estimator=estimator)
    assert eval(repr(policy), names | {"UCB": ra.UCB}) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert from_specification(json.loads(json.dumps(policy.specification()))) == policy
    assert len({policy, ra.UCB(C=0.5, estimator=estimator), ra.UCB(C=0.5)}) == (
        1 if estimator == ra.estimators.Mean() else 2
    )


def test_the_plain_mean_goes_without_saying() -> None:
    assert repr(ra.UCB(C=0.5, estimator=ra.estimators.Mean())) == "UCB(C=0.5)"
    assert ra.UCB(C=0.5, estimator=ra.estimators.Mean()).specification() == ra.UCB(C=0.5).specification()
    assert (
        str(ra.BoltzmannGumbel(C=1 / 3, estimator=ra.estimators.Catoni(C=1 / 3)))
        == "BoltzmannGumbel(C=0.333333, Catoni(C=0.333333))"
    )


def test_the_names_that_0_1_0_had() -> None:
    assert ra.BoltzmannGumbel(C=0.3, estimator="catoni") == ra.BoltzmannGumbel(
        C=0.3, estimator=ra.estimators.Catoni(C=0.3)
    )
    assert ra.BoltzmannGumbel(C=0.3, estimator="mean") == ra.BoltzmannGumbel(C=0.3)
    assert ra.UCB(C=2.0, estimator="catoni").estimator == ra.estimators.Catoni(C=2.0)


@ra.policy(learn={"gain": lambda gain, reward: gain + reward})
def by_gain(t, gain):  # type: ignore[no-untyped-def]
    return gain / t


@ra.policy(explore=lambda pulls, arms: 0.5 / (arms * pulls))
def by_exploring(t):  # type: ignore[no-untyped-def]
    return 0.0 * t


@ra.policy(noise=ra.noise.Gumbel())
def by_schedule(z, *, temperature: ra.schedules.Schedule):  # type: ignore[no-untyped-def]
    return temperature * z


class TooShort(LastReward):
    """It keeps one value and uses two."""

    @staticmethod
    def read(kept: Any) -> tuple[float, float]:
        return kept[0], kept[1]


class NothingKept(LastReward):
    KEEPS = 0


class Unread(ra.estimators.Estimator):
    KEEPS = 1
    learn = LastReward.learn


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no statistics": (
        lambda: ra.EXP3(gamma=0.1, estimator=ra.estimators.Catoni(C=1.0)),
        TypeError,
        "EXP3 takes no estimator: none of its formulas asks for pulls, mean, best, worst or variance",
    ),
    "none in one's own": (
        lambda: by_gain(estimator=ra.estimators.Catoni(C=1.0)),
        TypeError,
        "by_gain takes no estimator",
    ),
    "unknown name": (
        lambda: ra.UCB(C=1.0, estimator="mode"),
        ValueError,
        "estimator must be one of 'catoni', 'mean', 'median', got 'mode'",
    ),
    "no C": (lambda: ra.UCB1(estimator="catoni"), ValueError, r"takes C from the policy, which UCB1 does not have"),
    "a class": (
        lambda: ra.UCB(C=1.0, estimator=ra.estimators.Mean),  # type: ignore[arg-type]
        TypeError,
        "estimator must be an estimator .*parameters first",
    ),
    "a number": (lambda: ra.UCB(C=1.0, estimator=3), TypeError, "estimator must be an estimator such as .*, got 3"),  # type: ignore[arg-type]
    "more than it keeps": (TooShort, TypeError, "TooShort: KEEPS is 1, but learn or read use more values"),
    "nothing kept": (NothingKept, TypeError, "KEEPS must be the number of values that learn and read keep.*got 0"),
    "without read": (Unread, TypeError, "Unread must have both learn and read, or neither; it has no read"),
    "both": (
        lambda: ra.estimators.Mean(discount=0.9, window=5),
        ValueError,
        r"discount and window exclude each other, got 0\.9 and 5",
    ),
    "discount": (lambda: ra.estimators.Mean(discount=1.0), ValueError, r"discount must be between 0 and 1, got 1\.0"),
    "window": (lambda: ra.estimators.Mean(window=0), ValueError, "window must be a whole number of at least 1, got 0"),
    "C": (lambda: ra.estimators.Catoni(C=-1.0), ValueError, r"C must be positive, got -1\.0"),
    "cannot forget": (lambda: LastReward(window=3), TypeError, "LastReward cannot forget"),
    "no sums": (
        lambda: ra.UCBImproved(horizon=100, estimator=ra.estimators.Mean(window=5)),
        ValueError,
        "window is for statistics that are sums, which the 'phases' of UCBImproved",
    ),
    "window below arms": (
        lambda: ra.simulate(
            ra.UCB(C=1.0, estimator=ra.estimators.Mean(window=2)), ra.problems.Bernoulli([0.5] * 3), horizon=5
        ),
        ValueError,
        "forgets an arm before all of the 3 arms have been pulled once",
    ),
    "start": (
        lambda: ra.simulate(
            ra.UCB(C=1.0, estimator=LastReward()), ra.problems.Bernoulli([0.5]), horizon=5, pulls=[1], means=[0.5]
        ),
        ValueError,
        "cannot start from pulls and means",
    ),
}


@pytest.mark.parametrize(("make", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_whoever_asks_for_statistics_takes_an_estimator() -> None:
    own = ra.estimators.Mean(window=50)
    for made in (
        by_exploring(estimator=own),
        by_schedule(ra.schedules.glie(), estimator=own),
        ra.RobustUCB(u=1.0, estimator=own),
    ):
        assert made.estimator == own
    with pytest.raises(TypeError, match="by_schedule takes no estimator"):
        by_schedule(0.1, estimator=own)


class Silent(ra.estimators.Estimator):
    """Broken: it does not know how many pulls its mean is worth."""

    KEEPS = 1

    @staticmethod
    def learn(kept: Any, reward: float) -> None:
        kept[0] = reward

    @staticmethod
    def read(kept: Any) -> tuple[float, float]:
        return kept[0], 0.0


class Remembering(ra.estimators.Estimator):
    """Broken: its state is not all in what it keeps."""

    KEEPS = 1
    LOSES = True

    @staticmethod
    def learn(kept: Any, reward: float) -> None:
        kept[0] += reward

    @staticmethod
    def read(kept: Any) -> tuple[float, float]:
        return kept[0], 1.0

    def to_json(self, kept: Any) -> Any:
        return [round(kept[0], 2)]


class Askew(ra.estimators.Estimator):
    """Broken: what it makes of the rewards that count is not their mean; it says so itself."""

    KEEPS = 1

    @staticmethod
    def learn(kept: Any, reward: float) -> None:
        kept[0] = math.nan

    @staticmethod
    def read(kept: Any) -> tuple[float, float]:
        return kept[0], 1.0


BROKEN = {
    "no pulls": (Silent(), "pulls and means are"),
    "not in JSON": (Remembering(), "after a reload"),
    "no number": (Askew(), "pulls and means are"),
}


@pytest.mark.parametrize(("estimator", "message"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_found(estimator: ra.estimators.Estimator, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_estimator(estimator)


def test_only_estimators_are_checked() -> None:
    with pytest.raises(TypeError, match="estimator must be an estimator"):
        check_estimator("mean")  # type: ignore[arg-type]


def test_a_specification_that_is_none() -> None:
    plain = ra.estimators.Mean().specification()
    with pytest.raises(ValueError, match="is not an estimator"):
        from_specification(plain | {"estimator": "os:remove", "parameters": {"path": "x"}})
    with pytest.raises(ValueError, match="has changed since this was saved"):
        from_specification(LastReward().specification() | {"code": "0"})


def test_own_estimators_in_evaluate_and_replay(tmp_path: Any) -> None:
    log = tmp_path / "log.jsonl"
    random = np.random.default_rng(1)
    with ra.Bandit(["a", "b"], ra.UCB(C=0.5), seed=1, floor=0.2, log=log) as bandit:
        for _ in range(200):
            bandit.tell(decision := bandit.ask(), float(random.random() < (0.7 if decision.arm == "a" else 0.3)))
    for estimator in (LastReward(), ra.estimators.Mean(window=30), ra.estimators.Catoni(C=1.0)):
        player = ra.BoltzmannGumbel(C=0.5, estimator=estimator)
        assert 0.0 < ra.evaluate(log, player).dr < 1.0
        assert 0.0 < ra.evaluation.replay(log, player, seed=1, floor=0.2).mean < 1.0


def test_the_code_of_the_page_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "estimators.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 2
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks:
        exec(block, namespace)
    assert namespace["bandit"].ask().propensity == 0.5
    check_estimator(namespace["Smoothed"](rate=0.05))
