"""Corrections leave no trace: afterwards all is what it would be had the right reward come, or nothing has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import BGE, Clock, arm_rows, forgetful
from rightarm.bandit import ledger
from rightarm.bandit.context_arms import ContextArms
from rightarm.estimators import ridge_regression
from rightarm.estimators.reward_statistics import COUNT
from rightarm.types import F64

ARMS = ["a", "b", "c"]
DIGITS = 1e-12
WRONG = [3.0, 1e9, 1794956542.0, 1e20]  # among them a moment in seconds, told by mistake


class Leaning(ra.estimators.Estimator):
    """An estimator of one's own, whose numbers depend on the order of the rewards."""

    KEEPS = 2

    @staticmethod
    def learn(kept: Any, reward: float) -> None:
        kept[0] += 0.1 * (reward - kept[0])
        kept[1] += 1.0

    @staticmethod
    def read(kept: Any) -> tuple[float, float]:
        return kept[0], kept[1]


def scaled(estimator: Any) -> ra.Policy:
    return ra.ScaledGumbel(estimator=estimator)


CASES: dict[str, tuple[ra.Policy, dict[str, Any]]] = {
    "default": (ra.ScaledGumbel(), {}),
    "discount": (ra.ScaledGumbel(), {"discount": 0.97}),
    "window": (ra.ScaledGumbel(), {"window": 40}),
    "catoni": (scaled(ra.estimators.Catoni(C=1.0)), {}),
    "catoni, discount": (scaled(ra.estimators.Catoni(C=1.0, discount=0.97)), {}),
    "catoni, window": (scaled(ra.estimators.Catoni(C=1.0, window=40)), {}),
    "median": (scaled(ra.estimators.MedianOfMeans(groups=5)), {}),
    "one's own": (scaled(Leaning()), {}),
    "linear": (scaled(ra.estimators.Linear(2)), {}),
    "linear, raw": (scaled(ra.estimators.Linear(2, standardise=False)), {}),
    "linear, discount": (scaled(ra.estimators.Linear(2, discount=0.97)), {}),
    "linear, shared": (scaled(ra.estimators.Linear(2, private=["x0"])), {}),
    "linear, shared, discount": (scaled(ra.estimators.Linear(2, private=["x0"], discount=0.97)), {}),
}
LOGISTIC = ra.BoltzmannGumbel(C=0.5, estimator=ra.estimators.Logistic(2))


class Story:
    """What happens to a bandit by chance: the same arms, contexts and rewards for all bandits of a seed."""

    def __init__(self, bandit: Any, seed: int, rewards: Any = None) -> None:
        self.bandit, self.random = bandit, np.random.default_rng(seed)
        self.rewards = rewards if rewards is not None else lambda random: 0.5 + 0.2 * random.normal()

    def context(self) -> Any:
        x = [float(self.random.normal()), float(self.random.normal(5.0))]
        return x if self.bandit.policy.estimator.asks_context else None

    def step(self, instead: float | None = None) -> Any:
        """Tell a reward, or another one instead."""
        arm, context, observes = ARMS[self.random.integers(3)], self.context(), self.random.random() < 0.1
        reward = float(self.rewards(self.random))
        if observes and instead is None:
            self.bandit.tell(arm=arm, reward=reward, context=context)
            return None
        decision = self.bandit.ask(allowed=[arm], context=context)
        self.bandit.tell(decision, reward if instead is None else instead)
        return decision

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()


def played(
    bandit: Any, seed: int, wrong: float, right: float, before: int = 20, after: int = 15, **options: Any
) -> Any:
    """Play a story in which one reward is told as ``wrong`` and corrected later."""
    story = Story(bandit, seed, **options)
    story.steps(before)
    decision = story.step(wrong)
    story.steps(after)
    if wrong != right:
        assert story.bandit.correct(decision, right) is True
    return bandit


def learned(bandit: Any) -> dict[str, F64]:
    """All numbers that a bandit has learned, each row such that rounding is in proportion to its largest number."""
    known = bandit._state.arms
    counts, means, spreads = known.lifetime()
    plain = {"counts": counts, "means": means, "spreads": spreads}
    rows = {f"{name} of {arm}": plain[name][[arm]] for name in plain for arm in range(len(ARMS))}
    for arm in range(len(ARMS)):
        for name, value in (("count", known.statistic(COUNT)), ("mean", known.means())):
            rows[f"{name} that counts of {arm}"] = value[[arm]]
        if isinstance(known, ContextArms):
            R, u = ridge_regression.dense(known.factor, known.common, known.design.own, arm)
            rows |= {
                f"R of {arm}": R,
                f"u of {arm}": u,
                f"residuals of {arm}": known.factor[ridge_regression.RESIDUALS, [arm]],
            }
        else:
            rows |= {f"own of {arm}": known.sums[arm, 0, 4:], f"spread of {arm}": known.sums[arm, 0, [3]]}
    return rows


def assert_same(bandit: Any, expected: Any) -> None:
    ours, theirs = learned(bandit), learned(expected)
    for name, row in theirs.items():
        assert ours[name] == pytest.approx(row, rel=0, abs=DIGITS * np.abs(row).max(initial=0.0)), name
    context = [0.3, 5.5] if bandit.policy.estimator.asks_context else None
    assert bandit.probabilities(context) == pytest.approx(expected.probabilities(context), rel=DIGITS, abs=0.0)


def story(name: str, wrong: float, right: float = 0.2, seed: int = 1, **options: Any) -> Any:
    policy, settings = CASES[name]
    return played(forgetful(ARMS, policy, seed=1, **settings), seed, wrong, right, **options)


@pytest.mark.parametrize("name", CASES)
def test_it_is_as_if_the_right_reward_had_come(name: str, tmp_path: Path) -> None:
    policy, settings = CASES[name]
    expected = story(name, 0.2)
    for place, wrong in enumerate(WRONG):
        log = tmp_path / f"{place}.jsonl"
        with forgetful(ARMS, policy, seed=1, log=log, **settings) as bandit:
            played(bandit, 1, wrong, 0.2)
            assert_same(bandit, expected)
            statistics = bandit._state.arms.to_json()
            again = ra.Bandit.from_json(bandit.to_json(), policy=bandit.policy)
            assert again._state.arms.to_json() == statistics
        with ra.Bandit.from_log(log, bandit.policy) as folded:
            assert folded._state.arms.to_json() == statistics


@pytest.mark.parametrize("name", CASES)
def test_a_bandit_that_was_saved_in_between_is_corrected_alike(name: str) -> None:
    policy, settings = CASES[name]
    found = list[Any]()
    for saved in (False, True):
        life = Story(forgetful(ARMS, policy, seed=1, **settings), 2)
        life.steps(20)
        first, second = life.step(1e20), life.step(1e7)
        life.steps(10)
        for decision in (second, first):
            if saved:
                life.bandit = ra.Bandit.from_json(life.bandit.to_json(), policy=life.bandit.policy)
            life.bandit.correct(decision, 0.2)
            life.steps(3)
        found.append(life.bandit._state.arms.to_json())
    assert found[0] == found[1]


@pytest.mark.parametrize(("mean", "deviation"), [(1000.0, 1.0), (1e6, 1.0), (0.2, 1e-5), (0.3, 0.0)])
def test_rewards_far_from_0_and_narrow_ones(mean: float, deviation: float) -> None:
    right, options = mean + 0.3 * deviation, {"rewards": lambda random: mean + deviation * random.normal()}
    for name in ("default", "discount", "linear"):
        for shift in (0.1, 10.0, 1e4):
            for after in (1, 200):
                found = [story(name, wrong, right, 5, after=after, **options) for wrong in (right + shift, right)]
                assert_same(*found)


class Collinear(Story):
    """Contexts in which one column is nearly the other."""

    def context(self) -> Any:
        x = self.random.normal(1.0, 0.3)
        return [x, x + 1e-5 * self.random.normal()]


def test_columns_that_are_nearly_one() -> None:
    """What a correction adds is then known to a few digits only: all rows are learned again."""
    policy = scaled(ra.estimators.Linear(2, standardise=False, intercept=False, ridge=1e-9))
    found = list[Any]()
    for wrong in (0.7, 0.2):
        life = Collinear(forgetful(ARMS, policy, seed=1), 4)
        life.steps(20)
        decision = life.step(wrong)
        life.steps(40)
        if wrong != 0.2:
            life.bandit.correct(decision, 0.2)
        found.append(life.bandit)
    assert_same(*found)


def test_many_wrong_rewards_that_are_corrected_one_after_the_other() -> None:
    """Each is hardly larger than those that are left, and all together are as large as a moment in seconds."""
    for name in ("default", "discount", "window", "linear", "linear, shared"):
        found = list[Any]()
        for times in (1.5, 0.0):
            life = Story(forgetful(ARMS, CASES[name][0], seed=1, **CASES[name][1]), 3)
            life.steps(10)
            right = life.random.normal(0.5, 0.2, 38)
            decisions = [life.step(float(x + (times**i if times else 0.0))) for i, x in enumerate(right)]
            if times:
                for decision, reward in reversed(list(zip(decisions, right, strict=True))):
                    life.bandit.correct(decision, float(reward))
            found.append(life.bandit)
        assert_same(*found)


def test_a_wrong_reward_that_left_the_window_before() -> None:
    for wrong in (3.0, 1e3, 1e5, 1e20):
        assert_same(story("window", wrong, after=50), story("window", 0.2, after=50))


def test_rewards_that_are_chances() -> None:
    found = [
        played(ra.Bandit(ARMS, LOGISTIC, seed=1), 1, wrong, 0.2, rewards=lambda random: random.random())
        for wrong in (1.0, 0.2)
    ]
    assert_same(*found)


def test_a_policy_that_sees_rewards_scaled() -> None:
    found = [played(ra.Bandit(ARMS, ra.KLUCB(), seed=1, reward_range=(0, 2e9)), 1, x, 0.2) for x in (1794956542, 0.2)]
    assert_same(*found)
    for bandit in found:
        assert bandit.change(policy=ra.ScaledGumbel())
    assert_same(*found)


def test_arms_that_came_between() -> None:
    for name in ("default", "linear, shared, discount"):
        found = list[Any]()
        for wrong in (1e20, 0.2):
            life = Story(forgetful(ARMS, CASES[name][0], seed=1), 4)
            life.steps(10)
            decision = life.step(wrong)
            life.bandit.add_arm("late")
            life.steps(10)
            if wrong != 0.2:
                life.bandit.correct(decision, 0.2)
            found.append(life.bandit)
        assert_same(*found)


def test_several_late_rewards_at_once() -> None:
    found = list[Any]()
    for wrong in (1e20, None):
        clock = Clock()
        bandit = ra.Bandit(ARMS, seed=1, clock=clock, reward_window=10.0)
        decisions = bandit.ask(12)
        for i, decision in enumerate(decisions[:8]):
            bandit.tell(decision, wrong if wrong is not None and i in (2, 5) else 0.1 * i)
        clock.now += 10
        bandit.close_windows()
        rewards = [0.7, 0.6, 0.3] if wrong is None else [0.2, 0.7, 0.5, 0.6, 0.3]
        late = [8, 9, 10] if wrong is None else [2, 8, 5, 9, 10]
        bandit.tell([(decisions[i], reward) for i, reward in zip(late, rewards, strict=True)])
        found.append(bandit)
    assert arm_rows(found[0]) == arm_rows(found[1])


# What cannot be done without a trace is refused.


@pytest.mark.parametrize("name", ["default", "discount", "catoni", "linear", "linear, shared"])
def test_refused_if_too_few_rewards_are_remembered(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "REMEMBERED", 20)
    policy, settings = CASES[name]
    with forgetful(ARMS, policy, seed=1, log=tmp_path / "log.jsonl", **settings) as bandit:
        life = Story(bandit, 1)
        life.steps(40)
        wrong = life.step(1e9)
        life.steps(5)
        before, text = bandit.to_json(), (tmp_path / "log.jsonl").read_text()
        with pytest.raises(
            ValueError,
            match=rf"decision {wrong.id} cannot be corrected from 1e\+09 to 0.2: all rewards .*, and only \d+ are",
        ):
            bandit.correct(wrong, 0.2)
        with pytest.raises(ValueError, match="cannot be corrected from"):
            bandit.correct(wrong.id, 0.3)
        assert (bandit.to_json(), (tmp_path / "log.jsonl").read_text()) == (before, text)


def test_what_has_its_digits_is_corrected_however_much_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "REMEMBERED", 20)
    for name in ("default", "discount", "window", "linear", "linear, shared"):
        assert_same(story(name, 0.9, before=60), story(name, 0.2, before=60))


def test_a_prior_cannot_be_learned_again() -> None:
    bandit = ra.Bandit(dict.fromkeys(ARMS) | {"a": (0.5, 20, 0.04)}, seed=1)
    first, second = bandit.ask(allowed=["a"]), bandit.ask(allowed=["a"])
    bandit.tell([(first, 1e9), (second, 0.4)])
    before = arm_rows(bandit)
    with pytest.raises(
        ValueError, match=r"all rewards of 'a' would have .* again, and only 2 are remembered \(.*, and no prior\)"
    ):
        bandit.correct(first, 0.4)
    assert arm_rows(bandit) == before
    assert bandit.correct(second, 0.5) is True


# Refunds while a window is open.


def windowed(tmp_path: Path, **settings: Any) -> tuple[ra.Bandit[str], Clock]:
    clock = Clock()
    bandit = ra.Bandit(
        ["a", "b"], BGE, seed=1, clock=clock, log=tmp_path / "log.jsonl", reward_window=100.0, **settings
    )
    return bandit, clock


@pytest.mark.parametrize("learn", ["at once", "at close"])
@pytest.mark.parametrize("repeated", ["last", "sum"])
def test_a_refund_within_the_window(learn: str, repeated: str, tmp_path: Path) -> None:
    bandit, clock = windowed(tmp_path, learn=learn, repeated=repeated, default_reward=0.0)
    refunded, bought = bandit.ask(2)
    for decision in (refunded, bought):
        bandit.tell(decision, 20.0)
    assert bandit.correct(refunded, 5.0) is True
    assert bandit.correct(refunded, 5.0) is False
    assert bandit.tell(refunded, 3.0) is True
    assert bandit.correct(str(refunded.id), 0.0) is True
    clock.now += 100
    bandit.close_windows()
    total = sum((row["mean"] or 0.0) * row["pulls"] for row in arm_rows(bandit))
    assert (total, bandit.ask().round) == (20.0, 3)
    assert bandit.correct(bought, 1.0) is True  # now that it has closed
    bandit.close()
    frame = ra.logs.read_log(tmp_path / "log.jsonl")
    assert frame["reward"].to_list() == [0.0, 1.0, None]
    with ra.Bandit.from_log(tmp_path / "log.jsonl", clock=clock) as again:
        assert arm_rows(again) == arm_rows(bandit)


def test_a_refund_of_a_sum_goes_on_from_there(tmp_path: Path) -> None:
    bandit, _ = windowed(tmp_path, learn="at close", repeated="sum")
    decision = bandit.ask()
    bandit.tell(decision, 2.0)
    bandit.tell(decision, 3.0)
    bandit.correct(decision, 1.5)
    bandit.tell(decision, 3.0)
    bandit.close()
    with ra.Bandit.from_log(tmp_path / "log.jsonl", clock=Clock()) as again:
        assert again._state.ledger.pending[decision.id].so_far == 4.5


def test_a_refund_and_a_cancellation(tmp_path: Path) -> None:
    bandit, clock = windowed(tmp_path, learn="at close", late="keep", default_reward=0.0)
    first, second, third = bandit.ask(3)
    with pytest.raises(ValueError, match=f"decision {first.id} has no reward yet that could be corrected: tell it"):
        bandit.correct(first, 0.0)
    bandit.tell(first, 1.0)
    bandit.correct(first, 0.5)
    assert bandit.cancel(first) is True
    assert sum(row["pulls"] for row in arm_rows(bandit)) == 0
    assert bandit.correct(first, 0.25) is True  # a cancelled decision learns it
    bandit.tell(second, 1.0)
    clock.now += 100
    assert bandit.tell(third, 1.0) is False  # kept: it came too late
    assert bandit.correct(second, 0.75) is True
    total = sum((row["mean"] or 0.0) * row["pulls"] for row in arm_rows(bandit))
    assert total == pytest.approx(0.25 + 0.75 + 0.0)
