"""Long lives of a bandit: against a model that counts, in worlds that change, in threads, with much pending."""

from __future__ import annotations

import itertools
import math
import sys
import threading
import tracemalloc
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandit_model import Model, by_exponents, by_gumbel
from bandits import (
    BGE,
    CANNOT_FORGET,
    CATONI,
    HISTORY,
    KNOWN,
    NO_SUMS,
    STATE,
    Clock,
    arm_rows,
    column,
    forgetful,
    forgetting,
    told,
)
from few import few
from rightarm import inference

# Long runs against the model that counts.


GAIN: dict[str, Any] = {"added": {"gain": lambda reward, propensity: reward / propensity}}


MODELS: dict[str, tuple[ra.Policy, dict[str, Any], dict[str, Any]]] = {
    "bge": (BGE, {}, {}),
    "bge with a floor": (BGE, {"floor": 0.02}, {}),
    "ucb": (ra.UCB(C=0.5), {"floor": 0.05}, {}),
    "softmax": (ra.Boltzmann(ra.schedules.inverse_log(0.5)), {}, {}),
    "beta": (ra.BetaThompson(), {}, {}),
    "exp3": (ra.EXP3(gamma=0.2), {}, GAIN),
    "exp3 with a floor": (ra.EXP3(gamma=0.2), {"floor": 0.02}, GAIN),
    "catoni": (CATONI, {}, {}),
    "window": (BGE, {"window": 37}, {}),
    "ucb in a window": (ra.UCB(C=0.5), {"window": 50, "floor": 0.01}, {}),
    "window of one": (BGE, {"window": 1}, {}),
    "exp3 in a window": (ra.EXP3(gamma=0.2), {"window": 37}, GAIN),
    "catoni in a window": (CATONI, {"window": 37}, {}),
    "discount": (BGE, {"discount": 0.97, "floor": 0.01}, {"chances": by_gumbel}),
    "exp3 with a discount": (ra.EXP3(gamma=0.2), {"discount": 0.97}, {"chances": by_exponents, **GAIN}),
    "catoni with a discount": (CATONI, {"discount": 0.97}, {"chances": by_gumbel}),
}


class Life:
    """A bandit and its model, to which the same things happen."""

    def __init__(self, policy: ra.Policy, settings: dict[str, Any], counted: dict[str, Any], seed: int) -> None:
        self.clock, self.random = Clock(), np.random.default_rng(seed)
        self.bandit = forgetful(list("abcd"), policy, seed=seed, clock=self.clock, **settings)
        self.model = Model("abcd", policy, **settings, **counted)
        self.names = (f"new {i}" for i in itertools.count())
        self.forgets = not {"discount", "window"}.isdisjoint(settings)

    def any_of(self, things: Any) -> Any:
        things = list(things)
        return things[self.random.integers(len(things))]

    def value(self) -> float:
        return float(self.random.random())

    def active(self) -> list[Hashable]:
        return [arm for arm in self.model.arms if arm not in self.model.retired]

    def ask(self) -> None:
        some = self.random.random() < 0.2
        allowed = [arm for arm in self.active() if self.random.random() < 0.5] or self.active()[:1] if some else None
        law = self.bandit.probabilities(allowed=allowed)
        assert law == pytest.approx(self.model.probabilities(allowed), abs=1e-9)
        decision = self.bandit.ask(allowed=allowed)
        assert decision.propensity == law[decision.arm] > 0
        assert decision.round == self.model.round
        self.model.ask(decision, self.clock.now)

    def ask_several(self) -> None:
        for decision in self.bandit.ask(int(self.random.integers(1, 5))):
            assert decision.propensity == pytest.approx(self.model.probabilities()[decision.arm], abs=1e-9)
            self.model.ask(decision, self.clock.now)

    def tell(self) -> None:
        number, reward = self.any_of([0, *self.model.pending]), self.value()
        if number:
            assert self.bandit.tell(number, reward) is self.model.tell(number, reward) is True

    def tell_batch(self) -> None:
        numbers = [n for n in self.model.pending if self.random.random() < 0.5]
        self.random.shuffle(numbers)
        answers = [(n, self.value()) for n in numbers]
        answers += [self.any_of(answers) for _ in answers[:2]]
        assert self.bandit.tell(answers) == [self.model.tell(*answer) for answer in answers]

    def tell_again(self) -> None:
        number = self.any_of([0, *self.model.told])
        if not number:
            return
        before, other = self.model.told[number], self.value()
        if before is not None:
            assert self.bandit.tell(number, before) is self.model.tell(number, before) is False
        with pytest.raises(ValueError, match=f"decision {number} was"):
            self.bandit.tell([*((n, 1.0) for n in self.model.pending), (number, other)])

    def correct(self) -> None:
        number, reward = self.any_of([0, *self.model.told]), self.value()
        if not number:
            return
        policy, learned = self.bandit.policy, self.model.told[number] is not None
        if learned and policy.columns:
            with pytest.raises(ValueError, match="cannot correct a reward"):
                self.bandit.correct(number, reward)
        else:
            assert self.bandit.correct(number, reward) is True
            self.model.correct(number, reward)
            assert self.bandit.correct(str(number), reward) is False

    def tell_arm(self) -> None:
        arm, reward = self.any_of(self.model.arms), self.value()
        assert self.bandit.tell(arm=arm, reward=reward) is True
        self.model.reward(arm, reward)

    def cancel(self) -> None:
        number = self.any_of([0, *self.model.pending, *list(self.model.told)[:3]])
        if number:
            assert self.bandit.cancel(number) is self.model.cancel(number)

    def expire(self) -> None:
        age, reward = float(self.random.integers(20, 40)), self.any_of([None, self.value()])
        assert self.bandit.expire(age, reward) == self.model.expire(self.clock.now - age, reward)

    def change_arms(self) -> None:
        if len(self.model.arms) < 8:
            name = next(self.names)
            self.bandit.add_arm(name)
            self.model.arms.append(name)
        arm = self.any_of(self.model.arms)
        if arm in self.model.retired:
            self.bandit.restore_arm(arm)
            self.model.retired.discard(arm)
        elif len(self.active()) > 2:
            self.bandit.retire_arm(arm)
            self.model.retired.add(arm)

    def reload(self) -> None:
        self.bandit = ra.Bandit.from_json(self.bandit.to_json(), clock=self.clock)

    def compare(self) -> None:
        law, rows = self.model.probabilities(), arm_rows(self.bandit)
        assert [row["arm"] for row in rows] == self.model.arms
        pulls = {arm: self.model.pulls(arm) for arm in self.model.arms}
        intervals = inference.means(*self.model.lifetime(), self.bandit.reward_range)
        for i, row in enumerate(rows):
            arm = row["arm"]
            assert row["pulls"] == pytest.approx(pulls[arm], abs=1e-9)
            assert row["pending"] == self.model.waiting(arm)
            assert row["retired"] is (arm in self.model.retired)
            assert row["probability"] == pytest.approx(law.get(arm, 0.0), abs=1e-9)
            assert row["share"] == pytest.approx(pulls[arm] / (sum(pulls.values()) or 1), abs=1e-9)
            if pulls[arm] > 1e-6:
                assert row["estimate"] == pytest.approx(self.model.estimate(arm), abs=1e-9)
            if math.isnan(intervals.lows[i]):
                assert row["low"] is row["high"] is None
            else:
                expected = [intervals.lows[i], intervals.highs[i]]
                assert [row["low"], row["high"]] == pytest.approx(expected, rel=1e-6, abs=1e-7)


EVENTS: list[tuple[Callable[[Life], None], float]] = [
    (Life.ask, 0.36),
    (Life.ask_several, 0.07),
    (Life.tell, 0.32),
    (Life.tell_batch, 0.03),
    (Life.tell_again, 0.06),
    (Life.correct, 0.02),
    (Life.tell_arm, 0.04),
    (Life.cancel, 0.04),
    (Life.expire, 0.02),
    (Life.change_arms, 0.02),
    (Life.reload, 0.02),
]


@pytest.mark.parametrize("name", few(5, MODELS))
def test_a_long_life_is_that_of_a_model_that_counts(name: str) -> None:
    """Rewards late, lost, doubled, reordered; arms that come and go; a reload now and then."""
    life = Life(*MODELS[name], seed=7)
    events, weights = zip(*EVENTS, strict=True)
    for place in life.random.choice(len(events), size=600, p=weights):
        life.clock.now += 1
        events[place](life)
        life.compare()
    assert len(life.model.learned) > 200
    assert len(life.model.arms) > 5
    assert None in life.model.told.values()


# Worlds that change.


def earned(seed: int, horizon: int = 600, **settings: Any) -> float:
    """What BGE earns per round after the better of two arms has become the worse one."""
    bandit, luck = forgetful([0, 1], ra.BoltzmannGumbel(C=0.5), seed=seed, **settings), np.random.default_rng(seed)
    sums = [0.0, 0.0]
    for t in range(2 * horizon):
        late = t >= horizon
        decision = bandit.ask()
        reward = float(luck.random() < (0.8 if (decision.arm == 1) == late else 0.2))
        bandit.tell(decision, reward)
        sums[late] += reward
    return sums[1] / horizon


@pytest.mark.parametrize(
    "settings",
    [{"window": 100}, {"discount": 0.98}],
    ids=["window", "discount"],
)
def test_what_forgets_earns_more_after_a_change(settings: dict[str, Any]) -> None:
    """The mean of the first arm stays above (0.8·600 + 0.2·600)/1200 = 0.5 to the end: BGE hardly looks elsewhere."""
    gains = np.array([earned(seed, **settings) - earned(seed) for seed in range(6)])
    assert gains.mean() / (gains.std(ddof=1) / math.sqrt(6)) > 4.5
    assert gains.mean() > 0.15


SUMS = [name for name in KNOWN if name not in NO_SUMS | CANNOT_FORGET]


@pytest.mark.parametrize("name", [name for name in SUMS if name not in HISTORY])
def test_every_policy_of_sums_may_forget(name: str) -> None:
    """In a window of six, the old rewards of an arm are as good as never told."""
    recent = [("a", 0.5), ("b", 0.25), ("a", 1.0), ("b", 0.0), ("b", 0.5), ("a", 0.75)]
    laws = []
    for old in ([("a", 0.1), ("b", 0.9)] * 5, []):
        bandit = ra.Bandit(list("ab"), forgetting(KNOWN[name], window=6), seed=1)
        for arm, reward in [*old, *recent]:
            bandit.tell(arm=arm, reward=reward)
        laws.append(bandit.probabilities())
    assert laws[0] == pytest.approx(laws[1], abs=1e-9)


@pytest.mark.parametrize("name", SUMS)
def test_every_policy_of_sums_may_discount(name: str) -> None:
    bandit = ra.Bandit(list("abc"), forgetting(KNOWN[name], discount=0.9), seed=1)
    random = np.random.default_rng(4)
    for _ in range(50):
        decision = bandit.ask()
        bandit.tell(decision, random.random())
    assert sum(column(bandit, "pulls").values()) == pytest.approx((1 - 0.9**50) / 0.1, rel=1e-9)
    assert math.fsum(bandit.probabilities().values()) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("case", sorted(NO_SUMS))
def test_what_keeps_more_than_sums_says_that_it_cannot_forget(case: str) -> None:
    policy = KNOWN[case]
    for name, value in (("discount", 0.9), ("window", 10)):
        settings: dict[str, Any] = {name: value}
        message = (
            rf"{name} is for statistics that are sums, which the '(phases|largest|upper)' of {policy.family.name}\("
        )
        with pytest.raises(ValueError, match=message):
            forgetting(policy, **settings)


@pytest.mark.parametrize("case", sorted(CANNOT_FORGET))
def test_an_estimator_that_cannot_forget_says_so(case: str) -> None:
    with pytest.raises(TypeError, match="MedianOfMeans cannot forget: it has no function `estimate`"):
        forgetting(KNOWN[case], window=10)


# Threads and memory.


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Threads change places as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def in_threads(work: Callable[[int], Any], threads: int = 4) -> list[Any]:
    results: list[Any] = [None] * threads
    together = threading.Barrier(threads)

    def run(place: int) -> None:
        together.wait()
        try:
            results[place] = work(place)
        except Exception as error:
            results[place] = error

    started = [threading.Thread(target=run, args=(place,)) for place in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


@pytest.mark.usefixtures("eager_switching")
def test_threads_lose_nothing_and_count_nothing_twice() -> None:
    bandit = ra.Bandit(list("abc"), BGE, seed=1)

    def work(place: int) -> list[tuple[ra.Decision[Any], float | None]]:
        random, open_ = np.random.default_rng(place), list[ra.Decision[Any]]()
        made: list[tuple[ra.Decision[Any], float | None]] = []
        for i in range(400):
            open_.extend(bandit.ask(2) if i % 5 == 0 else [bandit.ask()])
            decision = open_.pop(random.integers(len(open_)))
            if i % 7 == 0:
                assert bandit.cancel(decision) is True
            elif i % 11 == 0:
                made.append((decision, None))  # never answered
            else:
                reward = float(random.integers(8))
                assert bandit.tell(decision, reward) is True
                made.append((decision, reward))
            if i % 100 == 0:
                bandit.to_json()
                arm_rows(bandit)
        return made + [(decision, None) for decision in open_]

    made = [pair for part in in_threads(work) for pair in part]
    assert len({decision.id for decision, _ in made}) == len(made)
    for row in arm_rows(bandit):
        rewards = [reward for decision, reward in made if decision.arm == row["arm"]]
        learned = [reward for reward in rewards if reward is not None]
        assert row["pulls"] == len(learned)
        assert row["estimate"] == pytest.approx(np.mean(learned), rel=1e-9)
        assert row["pending"] == rewards.count(None)
    assert bandit.ask().round == sum(reward is not None for _, reward in made) + 1


@pytest.mark.usefixtures("eager_switching")
def test_of_threads_that_tell_the_same_reward_one_is_heard() -> None:
    bandit = ra.Bandit(list("abc"), BGE, seed=1)
    decisions = bandit.ask(2_000)
    heard = in_threads(lambda place: [bandit.tell(decision, 1.0) for decision in decisions])
    assert [sum(answers) for answers in zip(*heard, strict=True)] == [1] * 2_000
    assert sum(column(bandit, "pulls").values()) == 2_000


def test_a_hundred_thousand_pending_decisions_cost_bounded_memory() -> None:
    """At most 600 bytes each, and no more when they are told and forgotten."""
    bandit = told(STATE)
    bandit.ask(1_000)
    tracemalloc.start()
    for _ in range(100):
        bandit.ask(1_000)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(column(bandit, "pending").values()) == 101_000
    assert held / 100_000 < 600


def test_answers_are_remembered_for_long_but_not_for_ever() -> None:
    bandit = told(STATE)
    bandit.ask(100_001)
    for number in range(1, 100_002):
        bandit.cancel(number)
    with pytest.raises(ValueError, match="decision 1 is not known: answered too long ago"):
        bandit.tell(1, 1.0)
    with pytest.raises(ValueError, match="decision 2 was cancelled or expired before"):
        bandit.tell(2, 1.0)
