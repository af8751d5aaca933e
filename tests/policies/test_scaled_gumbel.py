"""The default policy: safe beside quiet arms, never done with an arm, and the same in every unit of rewards."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import rightarm as ra
from few import few

POLICY = ra.ScaledGumbel()


@ra.problems.problem(
    mean=lambda share, size, noise: share * size,
    second_moment=lambda share, size, noise: share * size**2 + noise**2,
)
def Paid(u, w, *, share: ra.policies.Probability, size: float, noise: float = 0.0):  # type: ignore[no-untyped-def]
    """One size of reward with some probability, and Gaussian noise on top: a coin, a sure arm or a quiet one."""
    return np.where(u < share, size, 0.0) + noise * w


def coin_beside(coin: float, quiet: float, noise: float = 0.0) -> ra.problems.Problem:
    """A coin that is worth more than the arm beside it, which pays about the same each time."""
    made: ra.problems.Problem = Paid(share=[coin, 1.0], size=[1.0, quiet], noise=[0.0, noise])
    return made


QUIET = {
    "coin 0.6, sure 0.5": coin_beside(0.6, 0.5),
    "coin 0.3, quiet 0.2": coin_beside(0.3, 0.2, noise=0.05),
    "coin 0.1, sure 0.05": coin_beside(0.1, 0.05),
}


@pytest.mark.parametrize("name", few(1, QUIET))
def test_a_quiet_arm_does_not_end_the_search(name: str) -> None:
    """At most one run in 200 stays with the worse arm.

    A scale that is read off the quiet arm loses the coin after a few zeros, in 6 to 70% of these runs.
    """
    problem, horizon, runs = QUIET[name], 100_000, 600
    regret = ra.simulate(POLICY, problem, horizon=horizon, replications=runs, seed=7).regret[0, :, -1]
    gap = problem.means.max() - problem.means.min()
    stuck = int((regret > 0.9 * gap * horizon).sum())
    assert stats.binom.sf(stuck - 1, runs, 0.005) > 1e-6


@pytest.mark.parametrize("arms", [2, 5])
def test_a_sure_worse_arm_is_tried_again_and_again(arms: int) -> None:
    """With σ̂ ≥ g √(2 − 1/a) for every arm, the one with the fewest pulls, m, has a chance of e^(−√m/b)/(2eK) at least.

    Here nothing but gaps is known, and the scale of the worse arms is g √a / (2 K^(1/6) √n).
    """
    for pulls in (1.0, 10.0, 100.0, 1_000.0):
        state = [10_000.0] + [pulls] * (arms - 1)
        means = [1.0] + [0.0] * (arms - 1)
        chance = POLICY.probabilities(int(sum(state)) + 1, state, means, variances=[0.0] * arms)[1:]
        slope = math.sqrt(2 - 1 / 6) / (2 * arms ** (1 / 6))
        assert chance.min() >= math.exp(-math.sqrt(pulls) / slope) / (2 * math.e * arms)
        with_certain_best = -math.expm1(-math.exp(-2 * arms ** (1 / 6) * math.sqrt(pulls / 6)))
        shared = 1 - (1 - with_certain_best) ** (arms - 1)
        assert chance.sum() == pytest.approx(shared, rel=1e-9)


SCALES = [2.0**-498, 2.0**-30, 2.0**30, 2.0**498]  # 10⁻¹⁵⁰ to 10¹⁵⁰; powers of two, by which products are exact


@pytest.mark.parametrize("scale", SCALES)
def test_the_unit_of_rewards_changes_no_pull(scale: float) -> None:
    def pulls(unit: float) -> list[np.ndarray]:
        values = unit * np.array([0.0, 0.125, 0.25, 1.0])
        problems = [
            ra.problems.Gaussian(values, sigma=unit * np.array([0.5, 0.0, 0.125, 1.0])),
            ra.problems.Deterministic(values),
        ]
        return [ra.simulate(POLICY, each, horizon=2_000, replications=32, seed=3).pulls for each in problems]

    for plain, scaled in zip(pulls(1.0), pulls(scale), strict=True):
        assert np.array_equal(plain, scaled)


@pytest.mark.parametrize("scale", [1e-150, 3.0, 1e98])  # live rewards may be 10¹⁰⁰
@pytest.mark.parametrize("shift", [0.0, 1.0, -40.0])
@pytest.mark.parametrize(
    "estimator", [None, ra.estimators.Linear(1, ridge=0.0, standardise=False, intercept=False)], ids=str
)
def test_shifted_and_multiplied_rewards_change_no_probability(
    scale: float, shift: float, estimator: ra.estimators.Linear | None
) -> None:
    """Live, with arms that pay different numbers, always the same number, and a single reward."""
    rewards = {"noisy": [0.0, 1.0, 0.5, 0.0], "sure": [0.25, 0.25, 0.25], "once": [0.375]}
    found = []
    for unit, start in ((1.0, 0.0), (scale, shift)):
        bandit = ra.Bandit(list(rewards), POLICY if estimator is None else ra.ScaledGumbel(estimator=estimator), seed=1)
        for arm, own in rewards.items():
            for reward in own:
                context = None if estimator is None else [1.0]
                bandit.tell(arm=arm, reward=unit * (reward + start), context=context)
        found.append(bandit.probabilities() if estimator is None else bandit.probabilities([1.0]))
    assert list(found[1].values()) == pytest.approx(list(found[0].values()), rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e150])
def test_arms_that_all_paid_the_same_are_alike(value: float) -> None:
    probabilities = POLICY.probabilities(10, [1, 3, 5], [value] * 3, variances=[0.0] * 3)
    assert probabilities == pytest.approx([1 / 3] * 3)


def test_sure_arms_but_one_best() -> None:
    """Without any spread an arm's gap alone is its scale; the best one has none."""
    scores = POLICY.scores(5, [1, 4], [2.0, 1.0], z=[10.0, 10.0], variances=[0.0, 0.0])
    assert scores == pytest.approx([2.0, 1.0 + math.sqrt(6) / (2 * 2 ** (1 / 6) * 2) * 10])


def proved_chance(arms: int, fewest: float) -> float:
    """Return the lower bound of Proposition 1 in docs/which-policy.md for an arm with the fewest pulls."""
    kappa = 1 / (2 * arms ** (1 / 6))
    b = kappa * math.sqrt(2 - 1 / 6)
    zeta = min(math.log(arms), math.sqrt(fewest) / (kappa * math.sqrt(6)))
    return (1 - 1 / math.e) * math.exp(-zeta - math.sqrt(fewest) / b - (arms - 1) * math.exp(-zeta))


@pytest.mark.parametrize("arms", [2, 5, 10, 50])
def test_an_arm_with_the_fewest_pulls_has_the_chance_that_is_proved(arms: int) -> None:
    random = np.random.default_rng(arms)
    for _ in range(150):
        pulls = np.floor(1 + random.pareto(1.0, arms) * random.choice([1, 5, 20])).clip(max=300)
        means = random.exponential(size=arms) * 10 ** random.uniform(-2, 1, arms)
        variances = random.exponential(size=arms) * 10 ** random.uniform(-4, 1)
        state = {"pulls": pulls, "means": means, "variances": variances}
        chances = ra.probabilities(ra.ScaledGumbel(), round=int(pulls.sum()) + 1, **state)
        fewest = int(np.argmin(pulls))
        assert chances[fewest] >= proved_chance(arms, pulls[fewest])
