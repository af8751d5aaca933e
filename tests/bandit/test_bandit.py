"""The live bandit: rewards late or never, arms that come and go, the law of the decisions, mistakes."""

from __future__ import annotations

import enum
import json
import math
from collections import Counter
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import pytest

import rightarm as ra
from bandits import ALL, BGE, CATONI, HASHABLES, STATE, UNKNOWN_LAW, Clock, agrees, arm_rows, column, forgetting, told

GREEDY = ra.EpsilonGreedy(0.0)

# Rewards: late, in any order, doubled, lost.


def test_rewards_come_late_and_in_any_order() -> None:
    bandit = ra.Bandit(list("ab"), BGE, seed=1)
    decisions = [bandit.ask() for _ in range(6)]
    for decision in (decisions[4], decisions[1], decisions[5]):
        assert bandit.tell(decision, float(decision.id)) is True
    assert bandit.tell(str(decisions[0].id), 1.0) is True  # an id may be a text
    told_of = {arm: [d.id for d in decisions if d.arm == arm and d.id not in (3, 4)] for arm in "ab"}
    assert min(map(len, told_of.values())) > 0
    assert column(bandit, "pulls") == {arm: len(ids) for arm, ids in told_of.items()}
    assert column(bandit, "estimate") == {arm: np.mean(ids) for arm, ids in told_of.items()}
    assert sum(column(bandit, "pending").values()) == 2
    assert bandit.ask().round == 5


def test_a_reward_told_twice_counts_once() -> None:
    bandit = ra.Bandit(list("ab"), BGE, seed=1)
    decision = bandit.ask()
    assert bandit.tell(decision, 0.5) is True
    before = bandit.to_json()
    assert bandit.tell(decision, 0.5) is False
    assert bandit.tell(decision.id, 0.5) is False
    with pytest.raises(ValueError, match=r"decision 1 was told the reward 0\.5 before, got the reward 0\.75"):
        bandit.tell(decision, 0.75)
    assert bandit.to_json() == before


def test_a_reward_without_a_decision_is_learned() -> None:
    bandit = ra.Bandit(["a", None], BGE, seed=1)
    assert bandit.tell(arm="a", reward=0.25) is True
    assert bandit.tell(arm="a", reward=0.75) is True
    assert bandit.tell(arm=None, reward=1.0) is True
    assert column(bandit, "pulls") == {"a": 2.0, None: 1.0}
    assert column(bandit, "estimate") == {"a": 0.5, None: 1.0}


def test_a_batch_says_of_each_whether_it_was_learned() -> None:
    bandit = ra.Bandit(list("ab"), BGE, seed=1)
    first, second, third = bandit.ask(3)
    bandit.tell(first, 1.0)
    assert bandit.tell([(second, 0.5), (first, 1.0), (third.id, 0.0), (second.id, 0.5)]) == [True, False, True, False]
    assert bandit.tell(iter([(third, 0.0)])) == [False]
    assert bandit.tell([]) == []
    assert column(bandit, "pulls") == {"a": 2.0, "b": 1.0}


BAD_ANSWERS: dict[str, tuple[Any, str]] = {
    "another value": ((1, 0.75), r"decision 1 was told the reward 0\.5 before"),
    "another value in the batch": ((2, 0.75), r"decision 2 was told the reward 0\.5 in this batch"),
    "cancelled": ((4, 0.5), "decision 4 was cancelled or expired before"),
    "never made": ((99, 0.5), "decision 99 was never made"),
    "never made, negative": ((-1, 0.5), "decision -1 was never made"),
    "no id": (("x1", 0.5), "decision must be a Decision or its id, got 'x1'"),
    "no number": ((3, "1"), "reward must be a number, got '1'"),
    "not finite": ((3, math.nan), "reward must be finite, got nan"),
    "infinite": ((3, -math.inf), "reward must be finite, got -inf"),
}


@pytest.mark.parametrize(("answer", "message"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_of_a_batch_with_a_mistake_nothing_is_learned(answer: Any, message: str) -> None:
    bandit = ra.Bandit(list("ab"), BGE, seed=1)
    bandit.ask(5)
    bandit.tell(1, 0.5)
    bandit.cancel(4)
    before = bandit.to_json()
    with pytest.raises((ValueError, TypeError), match=message):
        bandit.tell([(2, 0.5), (3, 0.5), answer, (5, 0.5)])
    assert bandit.to_json() == before


def test_a_cancelled_decision_has_no_reward() -> None:
    bandit = ra.Bandit(list("ab"), BGE, seed=1)
    first, second, third = bandit.ask(3)
    assert bandit.cancel(first) is True
    assert bandit.cancel(first.id) is False
    bandit.tell(second, 1.0)
    assert bandit.cancel(second) is False
    with pytest.raises(ValueError, match="decision 1 was cancelled or expired before"):
        bandit.tell(first, 1.0)
    assert column(bandit, "pulls") == {arm: float(arm == second.arm) for arm in "ab"}
    assert column(bandit, "pending") == {arm: int(arm == third.arm) for arm in "ab"}
    assert bandit.tell(third, 1.0) is True


def test_decisions_never_answered_expire() -> None:
    clock = Clock()
    bandit = ra.Bandit(list("ab"), BGE, seed=1, clock=clock)
    arms = []
    for _ in range(4):
        arms.append(bandit.ask().arm)
        clock.now += 10
    assert bandit.expire(40) == 0  # the first has waited for 40 seconds and not longer
    assert bandit.expire(25) == 2
    with pytest.raises(ValueError, match="decision 2 was cancelled or expired before"):
        bandit.tell(2, 1.0)
    assert bandit.expire(timedelta(seconds=15), reward=0.0) == 1
    assert bandit.tell(3, 0.0) is False
    with pytest.raises(ValueError, match=r"decision 3 was told the reward 0\.0 before"):
        bandit.tell(3, 1.0)
    assert column(bandit, "pulls") == {arm: float(arm == arms[2]) for arm in "ab"}
    assert column(bandit, "pending") == {arm: int(arm == arms[3]) for arm in "ab"}
    assert bandit.tell(4, 1.0) is True


def test_the_age_of_a_decision_survives_json() -> None:
    clock = Clock()
    bandit = ra.Bandit(list("ab"), BGE, seed=1, clock=clock)
    bandit.ask()
    clock.now += 10
    again = ra.Bandit.from_json(bandit.to_json(), clock=clock)
    again.ask()
    assert again.expire(5) == 1
    assert again.tell(2, 1.0) is True


# Arms.


class Colour(enum.Enum):
    RED = 1


def test_arms_are_any_hashable_names() -> None:
    arms = [*HASHABLES, Colour.RED, frozenset({1, 2}), b"bytes", str]
    bandit = ra.Bandit(arms, BGE, seed=1)
    for _ in arms:
        bandit.tell(bandit.ask(), 0.5)
    assert list(column(bandit, "pulls").items()) == [(arm, 1.0) for arm in arms]
    assert list(bandit.probabilities(allowed=[Colour.RED, b"bytes"])) == [Colour.RED, b"bytes"]
    with pytest.raises(TypeError, match=r"text, numbers or tuples of them, got <Colour\.RED: 1>"):
        bandit.to_json()


def test_an_arm_may_be_added_retired_and_restored() -> None:
    bandit = told({"a": [1.0], "b": [0.0]})
    bandit.add_arm("c")
    assert bandit.probabilities() == {"a": 0.0, "b": 0.0, "c": 1.0}
    waiting = bandit.ask()
    bandit.retire_arm("c")
    assert list(bandit.probabilities()) == ["a", "b"]
    assert column(bandit, "retired") == {"a": False, "b": False, "c": True}
    assert bandit.tell(waiting, 0.5) is True  # what is pending is still learned
    assert column(bandit, "estimate")["c"] == 0.5
    assert bandit.tell(arm="c", reward=1.0) is True
    assert {bandit.ask().arm for _ in range(200)} == {"a", "b"}
    bandit.restore_arm("c")
    expected = ra.probabilities(BGE, pulls=[1, 1, 2], means=[1.0, 0.0, 0.75], round=5)
    assert list(bandit.probabilities().values()) == pytest.approx(expected.tolist(), abs=1e-12)


def test_to_retire_or_restore_again_changes_nothing() -> None:
    bandit = told({"a": [1.0], "b": [0.0]}, floor=0.5)
    before = bandit.to_json()
    bandit.restore_arm("a")
    assert bandit.to_json() == before
    bandit.retire_arm("a")
    before = bandit.to_json()
    bandit.retire_arm("a")
    assert bandit.to_json() == before


def test_the_round_counts_all_rewards_whatever_is_forgotten() -> None:
    for settings in ({}, {"window": 3}, {"discount": 0.5}):
        bandit = told({"a": [0.5] * 6, "b": [0.25] * 4}, **settings)
        assert bandit.ask().round == 11


def test_when_all_arms_are_retired_asking_is_an_error_and_nothing_else() -> None:
    bandit = told({"a": [1.0], "b": [0.0]})
    for arm in "ab":
        bandit.retire_arm(arm)
    for ask in (bandit.ask, bandit.probabilities):
        with pytest.raises(ValueError, match="every arm is retired; restore or add one"):
            ask()
    assert column(ra.Bandit.from_json(bandit.to_json()), "probability") == {"a": 0.0, "b": 0.0}
    assert "retired" in str(bandit)
    bandit.restore_arm("b")
    assert bandit.ask().arm == "b"


def test_untried_arms_share_the_draw() -> None:
    """All of them while nothing is known; then those that wait for no reward go first."""
    bandit = ra.Bandit(list("abc"), BGE, seed=1)
    first = bandit.ask(3_000)
    assert {d.propensity for d in first} == {1 / 3}
    counts = np.array([sum(d.arm == arm for d in first) for arm in "abc"])
    assert (np.abs(counts - 1_000) < 4.5 * math.sqrt(3_000 * 2 / 9)).all()
    bandit = ra.Bandit(list("abc"), BGE, seed=1)
    chosen = []
    for left in (3, 2, 1):
        decision = bandit.ask()
        chosen.append(decision.arm)
        assert decision.propensity == 1 / left
        bandit.tell(decision, 0.5)
    assert sorted(chosen) == ["a", "b", "c"]


def test_an_arm_without_a_reward_takes_its_share_and_not_all() -> None:
    """It goes first; while its first reward is on the way, it has one decision in three, the policy the others."""
    bandit = told({"a": [1.0, 0.0], "b": [0.5]})
    law = bandit.probabilities()
    bandit.add_arm("c")
    first = bandit.ask()
    assert (first.arm, first.propensity) == ("c", 1.0)
    expected = {"a": law["a"] * 2 / 3, "b": law["b"] * 2 / 3, "c": 1 / 3}
    assert bandit.probabilities() == pytest.approx(expected, abs=1e-15)
    assert all(d.propensity == pytest.approx(expected[d.arm], abs=1e-15) for d in bandit.ask(30))
    bandit.tell(first, 0.5)
    assert bandit.probabilities() == pytest.approx(told({"a": [1.0, 0.0], "b": [0.5], "c": [0.5]}).probabilities())


def test_forgotten_arms_go_first() -> None:
    bandit = told({"a": [1.0], "b": [1.0], "c": [0.5] * 400}, forgetting(BGE, discount=0.5))
    assert bandit.probabilities() == {"a": 0.5, "b": 0.5, "c": 0.0}
    assert {bandit.ask().arm, bandit.ask().arm} == {"a", "b"}
    assert bandit.probabilities() == pytest.approx({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})


def test_a_policy_that_looks_at_no_pulls_has_no_first_arm() -> None:
    bandit = ra.Bandit(list("abcd"), ra.EXP3(gamma=0.5), seed=1)
    assert bandit.probabilities() == pytest.approx(dict.fromkeys("abcd", 0.25), abs=1e-15)


@pytest.mark.parametrize("name", sorted(UNKNOWN_LAW))
def test_a_policy_without_a_known_law_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="its probabilities are not known"):
        ra.Bandit(["a", "b"], ALL[name])


# The law of the decisions.

DRAWS = 20_000
LAWS = {"bge": BGE, "softmax": ra.Boltzmann(0.1), "greedy with a tie": ra.EpsilonGreedy(0.2), "catoni": CATONI}


@pytest.mark.parametrize("policy", [*LAWS.values(), ra.EXP3(gamma=0.3)], ids=[*LAWS, "exp3"])
@pytest.mark.parametrize("floor", [0.0, 0.05])
def test_batches_are_drawn_by_the_stated_law(policy: ra.Policy, floor: float) -> None:
    bandit = told(STATE, policy, floor=floor)
    law = bandit.probabilities()
    decisions = bandit.ask(DRAWS)
    assert all(d.propensity == law[d.arm] for d in decisions)
    assert bandit.probabilities() == law
    agrees(Counter(d.arm for d in decisions), law)
    after = Counter(zip((d.arm for d in decisions), (d.arm for d in decisions[1:]), strict=False))
    agrees(after, {(a, b): law[a] * law[b] for a in law for b in law})  # each by itself


def test_single_decisions_are_drawn_by_the_stated_law() -> None:
    bandit = told(STATE)
    law = bandit.probabilities()
    agrees(Counter(bandit.ask().arm for _ in range(DRAWS)), law)


def test_decisions_among_some_arms_are_drawn_by_their_own_law() -> None:
    bandit = told(STATE)
    law = bandit.probabilities(allowed=["d", "a", "a"])
    expected = ra.probabilities(BGE, pulls=[20, 10], means=[0.5, 0.6], round=76)
    assert [law["a"], law["d"]] == pytest.approx(expected.tolist(), abs=1e-12)
    decisions = bandit.ask(5_000, allowed=["a", "d"])
    assert all(d.propensity == law[d.arm] for d in decisions)
    agrees(Counter(d.arm for d in decisions), law)
    assert set(bandit.probabilities()) == set(STATE)


def test_among_may_be_read_once_only() -> None:
    assert {d.arm for d in told(STATE).ask(50, allowed=(arm for arm in "ab"))} == {"a", "b"}


@pytest.mark.parametrize("policy", [ra.UCB(C=0.5), GREEDY, ra.UCB1()], ids=str)
def test_ties_are_fair(policy: ra.Policy) -> None:
    bandit = told({"a": [0.5, 0.5], "b": [0.0, 0.5], "c": [0.5, 0.5], "d": [0.5, 0.5]}, policy)
    law = bandit.probabilities()
    assert law == pytest.approx({"a": 1 / 3, "b": 0.0, "c": 1 / 3, "d": 1 / 3}, abs=1e-15)
    agrees(Counter(d.arm for d in bandit.ask(3_000)), {"a": 1 / 3, "b": 0.0, "c": 1 / 3, "d": 1 / 3})


@pytest.mark.parametrize("policy", [ra.UCB(C=0.5), BGE, ra.EXP3(gamma=0.1), CATONI], ids=str)
def test_the_floor_holds_from_the_first_decision_on(policy: ra.Policy) -> None:
    bandit, random = ra.Bandit(list("abcd"), policy, seed=1, floor=0.01), np.random.default_rng(2)
    for _ in range(200):
        law = bandit.probabilities()
        assert min(law.values()) >= 0.01
        assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
        decision = bandit.ask()
        assert decision.propensity == law[decision.arm]
        bandit.tell(decision, float(decision.arm == "b") * random.random())


def test_the_floor_lifts_what_the_policy_says() -> None:
    bandit = told({"a": [1.0] * 9, "b": [0.0] * 9}, ra.EpsilonGreedy(0.0), floor=0.25)
    assert bandit.probabilities() == {"a": 0.75, "b": 0.25}
    agrees(Counter(d.arm for d in bandit.ask(5_000)), {"a": 0.75, "b": 0.25})
    everything = told({"a": [1.0], "b": [0.0]}, ra.UCB(C=0.1), floor=0.5)
    assert everything.probabilities() == {"a": 0.5, "b": 0.5}


def test_the_seed_decides() -> None:
    def arms(seed: int | None) -> list[Hashable]:
        bandit = ra.Bandit(list("ab"), ra.EXP3(gamma=1.0), seed=seed)
        return [d.arm for d in bandit.ask(100)]

    assert arms(1) == arms(1) != arms(2)
    assert arms(None) != arms(None)


def test_the_version_counts_the_events() -> None:
    assert ra.Bandit(list("abc"), BGE).version == 1  # that it was made
    bandit = told(STATE)
    assert bandit.version == 1 + sum(map(len, STATE.values()))
    first, second = bandit.ask(2)
    assert (first.version, second.version) == (bandit.version - 2, bandit.version - 1)
    versions = [first.version]
    before = bandit.version
    bandit.probabilities()
    arm_rows(bandit)
    assert bandit.cancel(second)
    assert not bandit.cancel(second)
    assert bandit.version == before + 1
    for change in (
        lambda: bandit.tell(first, 1.0),
        lambda: bandit.tell(arm="a", reward=0.0),
        lambda: bandit.retire_arm("a"),
        lambda: bandit.restore_arm("a"),
        lambda: bandit.add_arm("e"),
    ):
        change()
        versions.append(bandit.ask().version)
        assert versions[-1] == bandit.version - 1
    assert versions == sorted(set(versions))
    assert ra.Bandit.from_json(bandit.to_json()).ask().version == versions[-1] + 1


@pytest.mark.parametrize("C", [1e-320, 1e240])
def test_extreme_parameters_give_probabilities_too(C: float) -> None:
    law = told({"a": [0.5, 0.25], "b": [0.75]}, ra.BoltzmannGumbel(C=C)).probabilities()
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-9)


# Rewards of any size.


@pytest.mark.parametrize("policy", [BGE, ra.UCB(C=0.5), ra.ScaledGumbel()], ids=str)
@pytest.mark.parametrize("settings", [{}, {"window": 4}, {"discount": 0.5}], ids=["all", "window", "discount"])
def test_large_rewards_are_learned_and_kept(policy: ra.Policy, settings: dict[str, Any]) -> None:
    bandit = told({"b": [0.5, 0.25], "a": [1e100, -1e100, 1e100]}, policy, **settings)
    expected = 1e100 * (0.75 / 1.75 if "discount" in settings else 1 / 3)
    assert column(bandit, "estimate")["a"] == pytest.approx(expected, rel=1e-12)
    assert math.fsum(bandit.probabilities().values()) == pytest.approx(1, abs=1e-9)
    assert arm_rows(ra.Bandit.from_json(bandit.to_json())) == arm_rows(bandit)


@pytest.mark.parametrize("policy", [BGE, CATONI], ids=str)
@pytest.mark.parametrize("reward", [math.nextafter(1e100, math.inf), -1e101, 1.7e308])
def test_rewards_that_are_too_large_are_refused_and_change_nothing(reward: float, policy: ra.Policy) -> None:
    bandit = ra.Bandit(list("ab"), policy, seed=1)
    first, second = bandit.ask(2)
    before = bandit.to_json()
    for wrong in (
        lambda: bandit.tell(first, reward),
        lambda: bandit.tell(arm="a", reward=reward),
        lambda: bandit.tell([(first, 0.5), (second, reward)]),
        lambda: bandit.expire(0.0, reward=reward),
    ):
        with pytest.raises(ValueError, match=r"reward must be at most 1e\+100 in size, got"):
            wrong()
    assert bandit.to_json() == before


def test_rewards_may_be_flags() -> None:
    bandit = ra.Bandit(list("ab"), BGE, seed=1)
    decisions = [bandit.ask(allowed=[arm]) for arm in "ab"]
    assert bandit.tell(decisions[0], True) is True
    assert bandit.tell(decisions[0], 1.0) is False
    assert bandit.tell([(decisions[1], np.False_)]) == [True]  # type: ignore[list-item]
    assert column(bandit, "estimate") == {"a": 1.0, "b": 0.0}


def test_equal_rewards_in_another_order_tie() -> None:
    rewards = np.random.default_rng(8).random(50)
    bandit = told({arm: np.random.default_rng(i).permutation(rewards).tolist() for i, arm in enumerate("abcd")}, GREEDY)
    assert len(set(column(bandit, "estimate").values())) == 1
    assert bandit.probabilities() == dict.fromkeys("abcd", 0.25)


def test_a_reward_that_the_estimator_refuses_changes_nothing() -> None:
    bandit = ra.Bandit(list("ab"), ra.BoltzmannGumbel(C=1e-300, estimator="catoni"), seed=1)
    first, second = bandit.ask(2)
    before = bandit.to_json()
    with pytest.raises(ValueError, match=r"reward must be a finite multiple of C = 1e-300, got 1e\+90"):
        bandit.tell([(first, 0.5), (second, 1e90)])
    assert bandit.to_json() == before


# Bad input.


def fresh(**settings: Any) -> ra.Bandit[Any]:
    bandit = ra.Bandit(["a", "b"], BGE, seed=1, **settings)
    bandit.ask(2)
    return bandit


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "arms, none": (lambda: ra.Bandit([], BGE), "arms must name at least one arm, got none"),
    "arms, twice": (lambda: ra.Bandit(["a", "a"], BGE), "arms must differ, got 'a' again"),
    "arms, a text": (lambda: ra.Bandit("abc", BGE), "arms must be several names, got 'abc'"),
    "arms, bytes": (lambda: ra.Bandit(b"abc", BGE), "arms must be several names, got b'abc'"),
    "policy, a text": (lambda: ra.Bandit(list("ab"), "UCB"), "policy must be a policy such as .*, got 'UCB'"),  # type: ignore[arg-type]
    "policy, a family": (lambda: ra.Bandit(["a"], ra.UCB), "policy must be .*, got UCB; call it with its parameters"),  # type: ignore[arg-type]
    "seed, negative": (lambda: ra.Bandit(list("ab"), BGE, seed=-1), "seed must be .*, got -1"),
    "seed, a text": (lambda: ra.Bandit(list("ab"), BGE, seed="1"), "seed must be a number, got '1'"),  # type: ignore[arg-type]
    "seed, a fraction": (lambda: ra.Bandit(list("ab"), BGE, seed=1.5), r"seed must be .*, got 1\.5"),  # type: ignore[arg-type]
    "floor, too high": (lambda: fresh(floor=0.51), r"floor must be .*, got 0\.51"),
    "floor, a text": (lambda: fresh(floor="1"), "floor must be a number, got '1'"),
    "floor, nan": (lambda: fresh(floor=math.nan), "floor must be finite, got nan"),
    "floor, one arm more": (lambda: fresh(floor=0.5).add_arm("c"), r"floor must be .*, got 0\.5"),
    "discount, 1": (lambda: ra.estimators.Mean(discount=1.0), r"discount must be between 0 and 1, got 1\.0"),
    "discount, 0": (lambda: ra.estimators.Mean(discount=0.0), r"discount must be between 0 and 1, got 0\.0"),
    "discount, nan": (lambda: ra.estimators.Mean(discount=math.nan), "discount must be finite, got nan"),
    "discount, a flag": (lambda: ra.estimators.Mean(discount=True), "discount must be a number, got True"),
    "window, 0": (lambda: ra.estimators.Mean(window=0), "window must be .*, got 0"),
    "window, a fraction": (lambda: ra.estimators.Mean(window=2.5), r"window must be .*, got 2\.5"),  # type: ignore[arg-type]
    "window, a text": (lambda: ra.estimators.Mean(window="9"), "window must be a number, got '9'"),  # type: ignore[arg-type]
    "both": (
        lambda: ra.estimators.Mean(window=5, discount=0.5),
        r"discount and window exclude each other, got 0\.5 and 5",
    ),
    "size, 0": (lambda: fresh().ask(0), "size must be .*, got 0"),
    "size, a fraction": (lambda: fresh().ask(1.5), r"size must be .*, got 1\.5"),  # type: ignore[call-overload]
    "size, a flag": (lambda: fresh().ask(True), "size must be a number, got True"),
    "among, unknown": (lambda: fresh().ask(allowed=["c"]), "allowed must be one of 'a', 'b', got 'c'"),
    "among, a text": (lambda: fresh().ask(allowed="ab"), "allowed must be several arms, got 'ab'"),
    "among, none": (lambda: fresh().ask(allowed=[]), "allowed must be arms that are not retired, got none"),
    "among, retired": (
        lambda: retired().probabilities(allowed=["a", "b"]),
        r"allowed must be .* not retired, got \['a'\]",
    ),
    "decision, a flag": (lambda: fresh().tell(True, 1.0), "decision must be a Decision or its id, got True"),
    "decision, unknown": (lambda: fresh().tell(9, 1.0), "decision 9 was never made"),
    "decision, cancelled": (lambda: fresh().cancel(9), "decision 9 was never made"),
    "decision, a text": (lambda: fresh().cancel("one"), "decision must be a Decision or its id, got 'one'"),
    "decision and arm": (lambda: fresh().tell(1, 1.0, arm="a"), "either a decision or arm=, got 1 and arm='a'"),  # type: ignore[call-overload]
    "neither decision nor arm": (lambda: fresh().tell(reward=1.0), "either a decision or arm=, got neither"),  # type: ignore[call-overload]
    "batch and reward": (lambda: fresh().tell([(1, 1.0)], 1.0), r"decision must be .*, got \[\(1, 1\.0\)\]"),  # type: ignore[call-overload]
    "reward, none": (lambda: fresh().tell(1), "reward must be a number, got None"),  # type: ignore[call-overload]
    "reward, a text": (lambda: fresh().tell(1, "1"), "reward must be a number, got '1'"),  # type: ignore[call-overload]
    "reward, nan": (lambda: fresh().tell(1, math.nan), "reward must be finite, got nan"),
    "reward, of many digits": (lambda: fresh().tell(1, 10**400), "reward must be finite, got inf"),
    "reward of an arm": (lambda: fresh().tell(arm="a", reward=math.inf), "reward must be finite, got inf"),
    "arm, unknown": (lambda: fresh().tell(arm="c", reward=1.0), "arm must be one of 'a', 'b', got 'c'"),
    "arm, unknown, retired": (lambda: fresh().retire_arm("c"), "arm must be one of 'a', 'b', got 'c'"),
    "arm, unknown, restored": (lambda: fresh().restore_arm(1), "arm must be one of 'a', 'b', got 1"),
    "arm, there already": (lambda: retired().add_arm("a"), "arms must differ, got 'a' again"),
    "older_than, a text": (lambda: fresh().expire("1"), "older_than must be a number, got '1'"),  # type: ignore[arg-type]
    "older_than, nan": (lambda: fresh().expire(math.nan), "older_than must be finite, got nan"),
    "expire, reward": (lambda: fresh().expire(0.0, reward=math.nan), "reward must be finite, got nan"),
    "policy of a state": (
        lambda: ra.Bandit.from_json(fresh().to_json(), policy=ra.UCB(C=1.0)),
        r"policy must be the one of the state, .*BoltzmannGumbel, got UCB\(C=1\.0\), whose formula differs",
    ),
}


def retired() -> ra.Bandit[Any]:
    bandit = fresh()
    bandit.retire_arm("a")
    return bandit


@pytest.mark.parametrize(("mistake", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(mistake: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        mistake()


UNNAMED: dict[str, tuple[Callable[[], Any], str]] = {
    "arms, a number": (lambda: ra.Bandit(5, BGE), "arms must .*got 5"),  # type: ignore[arg-type]
    "arms, a list among them": (lambda: ra.Bandit([["a"]], BGE), r"arm.* got \['a'\]"),
    "floor, negative": (lambda: fresh(floor=-0.1), r"floor must be .*, got -0\.1"),
    "floor, one arm again": (lambda: one_more(floor=0.5).restore_arm("a"), r"floor must be .*, got 0\.5"),
    "clock, a number": (lambda: fresh(clock=5), "clock must be .*, got 5"),
    "clock, no number": (lambda: fresh(clock=lambda: "noon"), "clock must .*, got 'noon'"),
    "among, a number": (lambda: fresh().ask(allowed=5), "allowed must be .*, got 5"),  # type: ignore[call-overload]
    "among, a list among them": (lambda: fresh().ask(allowed=[["a"]]), r"allowed must be .*, got \['a'\]"),
    "arm, a list": (lambda: fresh().retire_arm(["a"]), r"arm must be .*, got \['a'\]"),
    "arm to add, a list": (lambda: fresh().add_arm(["a"]), r"arm must be .*, got \['a'\]"),
    "decision, a text": (lambda: fresh().tell("1.0", 1.0), "decision must be a Decision or its id, got '1.0'"),
    "decision, a fraction": (lambda: fresh().tell(1.5, 1.0), r"decision must be .*, got 1\.5"),  # type: ignore[call-overload]
    "batch of three": (lambda: fresh().tell([(1, 1.0, 2.0)]), r"pairs .*got \(1, 1\.0, 2\.0\)"),  # type: ignore[list-item]
    "batch of ids": (lambda: fresh().tell([1, 2]), "pairs .*got 1"),  # type: ignore[list-item]
    "older_than, negative": (lambda: fresh().expire(-1.0), r"older_than must not be negative, got -1\.0"),
    "policy of a state, a family": (
        lambda: ra.Bandit.from_json(fresh().to_json(), policy=ra.UCB),  # type: ignore[arg-type]
        "policy must be .*, got UCB",
    ),
}


def one_more(floor: float) -> ra.Bandit[Any]:
    bandit = fresh(floor=floor)
    bandit.retire_arm("a")
    bandit.add_arm("c")
    return bandit


@pytest.mark.parametrize(("mistake", "message"), UNNAMED.values(), ids=UNNAMED)
def test_more_mistakes_are_named(mistake: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        mistake()


def test_an_id_may_be_a_number_of_numpy() -> None:
    assert fresh().tell(np.int64(1), 0.5) is True  # type: ignore[call-overload]


def test_settings_may_be_numbers_of_numpy() -> None:
    bandit = fresh(floor=np.float32(0.125))
    assert json.loads(bandit.to_json())["settings"]["floor"] == 0.125
    bandit = ra.Bandit(["a"], forgetting(BGE, window=np.int64(5)))
    assert json.loads(bandit.to_json())["policy"]["parameters"]["estimator"]["parameters"]["window"] == 5


def test_a_decision_of_another_bandit_is_noticed() -> None:
    other = ra.Bandit(["x", "y"], BGE, seed=1).ask()
    bandit = fresh()
    before = bandit.to_json()
    for use in (
        lambda: bandit.tell(other, 1.0),
        lambda: bandit.tell([(2, 1.0), (other, 1.0)]),
        lambda: bandit.cancel(other),
        lambda: bandit.tell(msgspec.structs.replace(other, arm="a", propensity=0.25), 1.0),
    ):
        with pytest.raises(
            ValueError, match=r"decision 1 is Decision\(id=1, arm='[ab]', .*\) here, got Decision\(id=1"
        ):
            use()
    assert bandit.to_json() == before
