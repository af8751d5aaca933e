"""What a live bandit knows of its arms: compiled, against NumPy's probabilities and against sums over all rewards."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import CANNOT_FORGET, KNOWN, NO_SUMS, arm_rows, forgetting
from cases import PLAYERS, POLICIES
from rightarm.bandit.arms import Arms, check_reward, draw
from rightarm.estimators.compiled_estimators import MEAN, MEMORY, PULLS, VARIANCE
from rightarm.estimators.reward_statistics import SPREAD
from rightarm.policies.inputs import mix

CASES: dict[str, ra.Policy] = {name: case.policy for name, case in POLICIES.items()}
CASES |= {name: case.policy for name, case in PLAYERS.items()} | {"beta": ra.BetaThompson()}
UNKNOWN = {"squashed", "exploring the worse"}  # scores that are not location + scale·z
SUMS = [name for name in CASES if name in KNOWN and name not in NO_SUMS | CANNOT_FORGET]


def arms_of(policy: ra.Policy, count: int, **memory: Any) -> Arms:
    made = Arms(forgetting(policy, **memory) if memory else policy)
    for _ in range(count):
        made.add()
    return made


def chances(known: Arms, members: list[int] | None = None) -> np.ndarray[Any, np.dtype[np.float64]]:
    some = np.arange(known.count) if members is None else np.array(members)
    return known.probabilities(some, [0] * known.count).chance


@pytest.mark.parametrize("name", [name for name in CASES if name not in UNKNOWN | CANNOT_FORGET])
def test_the_law_is_the_one_of_the_formulas(name: str) -> None:
    policy, random = CASES[name], np.random.default_rng(5)
    known = arms_of(policy, 4)
    pulls, means, memory = np.zeros(4), np.zeros(4), {column: np.zeros(4) for column in policy.columns}
    rewards: list[list[float]] = [[], [], [], []]
    for t in range(1, 121):
        spread = np.array([np.var(own) if own else 0.0 for own in rewards]) if policy.asks_variance else None
        expected = policy.probabilities(t, pulls, means, memory or None, spread)
        found = chances(known)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
        if t > 8:
            columns = {n: c[[0, 2]] for n, c in memory.items()} or None
            variances = None if spread is None else spread[[0, 2]]
            some = policy.probabilities(t, pulls[[0, 2]], means[[0, 2]], columns, variances)
            np.testing.assert_allclose(chances(known, [0, 2]), some, rtol=1e-7, atol=1e-9)
        arm = t % 4 if t <= 8 else int(random.choice(4, p=found / found.sum()))
        reward = float(random.random() < 0.3 + 0.1 * arm)
        known.learn(arm, reward, float(found[arm]) or 0.25)
        rewards[arm].append(reward)
        pulls[arm] += 1
        means[arm] = np.mean(rewards[arm])
        if isinstance(policy.estimator, ra.estimators.Catoni):
            means[arm] = policy.estimator.estimate_mean(rewards[arm])
        if memory:
            before = {column: float(values[arm]) for column, values in memory.items()}
            after = policy.learned(t, int(pulls[arm]), means[arm], reward, before, 4, float(found[arm]) or 0.25)
            for column, value in after.items():
                memory[column][arm] = value


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_a_policy_without_known_probabilities_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="its probabilities are not known"):
        Arms(CASES[name])


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("memory", [{"window": 30}, {"discount": 0.9}], ids=["window", "discount"])
def test_what_is_forgotten_is_as_if_it_had_not_been(name: str, memory: dict[str, Any]) -> None:
    """Pulls, means and spreads against sums over the rewards that count; columns against what each reward added."""
    policy, random = CASES[name], np.random.default_rng(6)
    known, told, added = arms_of(policy, 3, **memory), [], []
    for t in range(1, 151):
        arm, reward = int(random.integers(3)), float(random.normal(0.5, 0.2))
        before = known.table[MEMORY:, arm] * memory.get("discount", 1.0)
        known.learn(arm, reward, 0.4)
        told.append((arm, reward))
        added.append(known.table[MEMORY:, arm] - before)
        if memory.get("window") and t > 30:  # the oldest left while this one came; only other arms show what came
            added[-1] = added[-1] + (added[t - 31] if told[t - 31][0] == arm else 0.0)
    ages = np.arange(150)[::-1]
    weights = np.where(ages < 30, 1.0, 0.0) if "window" in memory else 0.9**ages
    arms, rewards = np.array([arm for arm, _ in told]), np.array([reward for _, reward in told])
    for arm in range(3):
        own = weights * (arms == arm)
        mean = (own @ rewards) / own.sum()
        assert known.table[PULLS, arm] == pytest.approx(own.sum(), rel=1e-12)
        assert known.means()[arm] == pytest.approx(mean, rel=1e-9)
        assert known.statistic(SPREAD)[arm] == pytest.approx(own @ (rewards - mean) ** 2, rel=1e-9)
        np.testing.assert_allclose(known.table[MEMORY:, arm], own @ np.array(added), rtol=1e-9)
        chances(known)
        if isinstance(policy.estimator, ra.estimators.Catoni):
            C, n = policy.estimator.C, own.sum()
            y = rewards / (C * math.sqrt(n))
            mean = C / math.sqrt(n) * float(own @ (np.sign(y) * np.log1p(np.abs(y) + y**2 / 2)))
        assert known.table[MEAN, arm] == pytest.approx(mean, rel=1e-9)
    assert known.total == pytest.approx(weights.sum())


def test_statistics_that_are_no_sums_cannot_be_forgotten() -> None:
    for policy in (ra.UCBImproved(horizon=100), CASES["steady, remembering"]):
        with pytest.raises(ValueError, match="window is for statistics that are sums, which the '"):
            forgetting(policy, window=10)
    with pytest.raises(ValueError, match="discount is for statistics that are sums, which the 'phases' of UCBImproved"):
        forgetting(ra.UCBImproved(horizon=100), discount=0.9)


def test_an_arm_that_left_the_window_goes_first_again() -> None:
    known = arms_of(ra.UCB(C=0.5), 2, window=5)
    known.learn(0, 1.0, 1.0)
    for _ in range(4):
        known.learn(1, 0.0, 1.0)
    assert known.table[PULLS].tolist()[:2] == [1.0, 4.0]
    known.learn(1, 0.0, 1.0)
    assert chances(known).tolist() == [1.0, 0.0]
    assert known.table[:, 0].tolist() == [0.0] * known.table.shape[0]


def test_large_rewards_keep_their_small_differences() -> None:
    """Ten thousand rewards of 10¹² ± 1: the mean is right to its last digit, and so is the spread."""
    known, random = arms_of(ra.UCB(C=0.5), 1), np.random.default_rng(7)
    small = random.choice([-1.0, 1.0], size=40_000)
    for value in small:
        known.learn(0, 1e12 + value, 1.0)
    assert abs(known.means()[0] - 1e12 - small.mean()) < 1.3e-4  # the distance of neighbours there
    assert known.statistic(SPREAD)[0] == pytest.approx(((small - small.mean()) ** 2).sum(), rel=1e-3)


def test_draws_never_give_an_arm_of_probability_zero() -> None:
    chance, heights = np.array([0.0, 0.5, 0.5, 0.0]), np.array([0.0, 0.5, 1.0 - 1e-16, 1.0 - 1e-16])
    for u, place in ((0.0, 1), (0.25, 1), (0.5, 2), (math.nextafter(1, 0), 2)):
        assert draw(chance, heights, u) == place


def test_rewards_that_are_none() -> None:
    assert [check_reward(value) for value in (True, np.False_, 3, np.float32(0.5))] == [1.0, 0.0, 3.0, 0.5]
    for value in (math.nan, math.inf, 1e101, 10**400):
        with pytest.raises(ValueError, match="reward must be"):
            check_reward(value)
    with pytest.raises(TypeError, match="reward must be a number, got 'x'"):
        check_reward("x")


def test_a_score_that_is_no_number_is_an_error() -> None:
    @ra.policy(noise=ra.noise.Gumbel())
    def broken(pulls, mean, z):  # type: ignore[no-untyped-def]
        return mean + np.sqrt(3 - pulls) * z

    known = arms_of(broken(), 1)
    for _ in range(5):
        known.learn(0, 0.5, 1.0)
    with pytest.raises(ValueError, match=r"broken.*the scores have no law in this state: scale must be finite"):
        chances(known)


def test_a_reward_of_which_nothing_finite_comes_is_refused_before_it_is_learned() -> None:
    @ra.policy(noise=ra.noise.Gumbel(), learn={"gain": lambda gain, reward: gain + 1.0 / reward})
    def inverse(pulls, gain, z):  # type: ignore[no-untyped-def]
        return gain / pulls + z

    bandit = ra.Bandit(["a", "b"], inverse(), seed=1)
    decisions = bandit.ask(2)
    before = bandit.to_json()
    with pytest.raises(
        ValueError, match=r"^reward must be one that inverse\(\) can learn: its columns .* \{'gain': inf\}, got 0\.0$"
    ):
        bandit.tell([(decisions[0], 1.0), (decisions[1], 0.0)])
    assert bandit.to_json() == before


def test_probabilities_that_are_none_never_become_a_decision() -> None:
    chance, heights = np.array([math.nan, 0.0]), np.empty(2)
    assert not mix(chance, np.zeros(2), 0.0, heights)
    assert not mix(np.zeros(2), np.zeros(2), 0.0, heights)
    assert mix(np.array([0.25, 0.75]), np.zeros(2), 0.0, heights)
    assert heights.tolist() == [0.25, 1.0]


def test_a_clock_that_fails_leaves_no_decision_behind() -> None:
    with pytest.raises(ValueError, match="clock must be finite, got nan"):
        ra.Bandit(["a", "b"], ra.UCB(C=0.5), clock=lambda: math.nan)
    times = itertools.chain([1.0], itertools.repeat(math.nan))
    bandit = ra.Bandit(["a", "b"], ra.UCB(C=0.5), clock=lambda: next(times))
    with pytest.raises(ValueError, match="clock must be finite, got nan"):
        bandit.ask(5)
    assert [row["pending"] for row in arm_rows(bandit)] == [0, 0]


@pytest.mark.parametrize("scale", [1e9, 1e17, 1e33, 1e60])
def test_a_window_is_right_as_soon_as_very_large_rewards_have_left_it(scale: float) -> None:
    known, random = arms_of(ra.UCB(C=0.5), 2, window=10), np.random.default_rng(8)
    rewards = random.normal(1.0, 0.5, 60)
    rewards[[13, 14, 30]] = scale * random.uniform(1, 2, 3)
    for t, reward in enumerate(rewards, 1):
        known.learn(t % 2, float(reward), 1.0)
        for arm in range(2):
            own = [rewards[i] for i in range(max(0, t - 10), t) if (i + 1) % 2 == arm]
            if own and max(own) < 100:
                assert known.means()[arm] == pytest.approx(np.mean(own), rel=1e-12)
                assert known.table[VARIANCE, arm] == pytest.approx(np.var(own), rel=1e-9, abs=1e-12)


@ra.policy(noise=ra.noise.Gumbel())
def three_of_each_first(pulls, mean, z):  # type: ignore[no-untyped-def]
    return np.where(pulls < 3, np.inf, mean) + z


def test_infinite_scores_are_the_same_live_and_simulated() -> None:
    """Arms at +∞ share the choice."""
    known = arms_of(three_of_each_first(), 3)
    for arm, count in enumerate((2, 5, 2)):
        for _ in range(count):
            known.learn(arm, 0.5, 1.0)
    assert chances(known).tolist() == [0.5, 0.0, 0.5]
    state: dict[str, Any] = {"pulls": [2, 5, 2], "means": [0.5] * 3}
    assert three_of_each_first().probabilities(10, **state).tolist() == [0.5, 0.0, 0.5]
    result = ra.simulate(
        three_of_each_first(), ra.problems.Bernoulli([0.5] * 3), horizon=1, replications=4_096, seed=1, **state
    )
    first = (result.pulls[0] - np.array(state["pulls"])).sum(axis=0)
    assert first[1] == 0
    assert abs(first[0] - 2_048) / 32 < 4.5
