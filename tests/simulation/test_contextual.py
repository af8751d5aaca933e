"""Simulations with contexts: decision by decision against dense ridge regression, and what makes a result a result."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from naive_contexts import Arms, Ridge, Score, play
from rightarm.noise import Gaussian, Gumbel, Law
from rightarm.simulation.context_engine import ContextRun

SEED, ROUNDS = 20170529, 150


def arms_of(
    policy: ra.Policy, problem: ra.problems.ContextProblem, rounds: int, replication: int = 0
) -> tuple[list[int], float]:
    """The arm of every round, read off the counts after each, and the regret."""
    run = ContextRun(policy, problem, np.array([rounds]))
    run.begin(SEED, replication)
    arms, before = [], np.zeros(problem.arms, np.int64)
    for t in range(1, rounds + 1):
        run.advance(t)
        arms.append(int(np.flatnonzero(run.arrays.seen.counts - before)[0]))
        before = run.arrays.seen.counts.copy()
    return arms, float(run.regret[0])


def theta(arms: int, columns: int, seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(arms, columns)).round(3)


# Formulas of a user's own.


def visitor(u, v, w):  # type: ignore[no-untyped-def]
    return 1.0 * (u < 0.6), 24 * v, 30 + 10 * w


@ra.problems.context
def correlated(normals, uniforms, w, *, columns: int, share: ra.policies.Probability = 0.5):  # type: ignore[no-untyped-def]
    return np.sqrt(share) * w + np.sqrt(1 - share) * normals + uniforms[0]


def interest(x, arm, *, base, phone):  # type: ignore[no-untyped-def]
    return base + phone * x[0] + 0.01 * (arm - 1) * x[1]


def click(u, mean):  # type: ignore[no-untyped-def]
    return 1.0 * (u < mean)


def drifting(x, t, *, weights, since):  # type: ignore[no-untyped-def]
    return np.sum(x * weights) * np.where(t > since, -1.0, 1.0)


LINEAR = ra.problems.LinearProblem(theta(4, 3), noise=0.3, offset=[0.5, 0.0, -0.25, 0.1])
CLICKS = ra.problems.ContextProblem(visitor, interest, base=[0.2, 0.3, 0.25], phone=[0.3, 0.0, 0.1], reward=click)
DRIFT = ra.problems.ContextProblem(
    correlated(3, share=0.25), drifting, weights=theta(3, 3), since=[50.0, 60.0, 40.0], noise=0.1
)
SPHERE = ra.problems.LinearProblem(theta(3, 4), context=ra.problems.SphereContext(4, radius=2.0), noise=0.2)
RANDOM = np.random.default_rng(7)
DATA = ra.problems.Classification(RANDOM.normal(size=(40, 3)).round(2), RANDOM.choice(["cat", "dog", "eel"], 40))

# The scores, from the papers.


def ucb(C: float) -> Score:
    return lambda t, n, mean, z, arms: mean + C * math.sqrt(math.log(t) / n)


def bge(C: float) -> Score:
    return lambda t, n, mean, z, arms: mean + C / math.sqrt(n) * (float(np.euler_gamma) + z)


def thompson(sigma: float) -> Score:
    return lambda t, n, mean, z, arms: mean + sigma / math.sqrt(n + 1) * z


def maillard(sigma: float) -> Score:
    return lambda t, n, mean, z, arms: -n * (max(arms.means) - mean) ** 2 / (2 * sigma**2) + z


def scaled(t: float, n: float, mean: float, z: float, arms: Arms) -> float:
    spread = max(v * each / (each + 2) for v, each in zip(arms.variances, arms.pulls, strict=True))
    gap = max(arms.means) - mean
    sigma = math.sqrt(spread + (6 * gap**4 / (gap**2 + 6 * spread) if gap > 0 else 0.0))
    return float(mean + sigma / (2 * len(arms.means) ** (1 / 6) * math.sqrt(n)) * z)


def greedy(t: float, n: float, mean: float, z: float, arms: Arms) -> float:
    return mean


def private(problem: ra.problems.ContextProblem, **settings: Any) -> Ridge:
    return Ridge(problem.arms, [-1, *range(problem.columns)], **settings)


CASES: dict[str, tuple[Any, ra.problems.ContextProblem, Any, Score, Law | None]] = {
    "LinUCB": (ra.UCB(C=0.5, estimator=ra.estimators.Linear(3)), LINEAR, private, ucb(0.5), None),
    "LinBGE": (ra.BoltzmannGumbel(C=0.2, estimator=ra.estimators.Linear(3)), LINEAR, private, bge(0.2), Gumbel()),
    "own formulas": (ra.UCB(C=0.3, estimator=ra.estimators.Linear(3)), CLICKS, private, ucb(0.3), None),
    "changing": (
        ra.GaussianThompson(sigma=0.4, estimator=ra.estimators.Linear(3, discount=0.95)),
        DRIFT,
        lambda problem: private(problem, discount=0.95),
        thompson(0.4),
        Gaussian(),
    ),
    "not standardised": (
        ra.UCB(C=1.0, estimator=ra.estimators.Linear(4, standardise=False, intercept=False, ridge=0.25)),
        SPHERE,
        lambda problem: Ridge(3, range(4), private_ridge=0.25, standardise=False),
        ucb(1.0),
        None,
    ),
    "hybrid": (
        ra.BoltzmannGumbel(
            C=0.3, estimator=ra.estimators.Linear(["a", "b", "c"], private=["b"], private_ridge=5.0, ridge=0.5)
        ),
        LINEAR,
        lambda problem: Ridge(4, [-1, 1], [0, 2], ridge=0.5, private_ridge=5.0),
        bge(0.3),
        Gumbel(),
    ),
    "shared": (
        ra.GaussianThompson(sigma=0.5, estimator=ra.estimators.Linear(3, private=False)),
        LINEAR,
        lambda problem: Ridge(4, [], [-1, 0, 1, 2]),
        thompson(0.5),
        Gaussian(),
    ),
    "variance": (ra.ScaledGumbel(estimator=ra.estimators.Linear(3)), LINEAR, private, scaled, Gumbel()),
    "variance, hybrid": (
        ra.ScaledGumbel(estimator=ra.estimators.Linear(["a", "b", "c"], private=["b"])),
        LINEAR,
        lambda problem: Ridge(4, [-1, 1], [0, 2], private_ridge=100.0),
        scaled,
        Gumbel(),
    ),
    "best mean": (ra.Maillard(sigma=0.3, estimator=ra.estimators.Linear(3)), DATA, private, maillard(0.3), Gumbel()),
    "one draw of all coefficients": (
        ra.LinTS(sigma=0.3, estimator=ra.estimators.Linear(3)),
        LINEAR,
        private,
        lambda t, n, mean, z, arms: mean + 0.3 / math.sqrt(n) * z,
        Gaussian(),
    ),
    "data": (ra.UCB(C=0.2, estimator=ra.estimators.Linear(3)), DATA, private, ucb(0.2), None),
}


@pytest.mark.parametrize("name", CASES)
def test_every_decision_is_that_of_dense_ridge_regression(name: str) -> None:
    policy, problem, model, score, noise = CASES[name]
    expected, regret = play(problem, model(problem), score, noise, ROUNDS, SEED, replication=3)
    arms, found = arms_of(policy, problem, ROUNDS, replication=3)
    assert len(set(expected)) > 1
    assert arms == expected
    assert found == pytest.approx(regret, rel=1e-9)


def test_a_draw_that_all_arms_share() -> None:
    """It is the first arm's, and the score is the formula of it."""
    run = ContextRun(ra.RandUCB(C=0.5, estimator=ra.estimators.Linear(3)), LINEAR, np.array([ROUNDS]))
    run.begin(SEED, 0)
    for t in range(1, 20):
        run.advance(t)
        assert len(np.unique(run.arrays.choice.z)) == 1
        assert run.arrays.choice.z[0, 0] == run.arrays.luck.z[0, 0] >= 0
        seen, z = run.arrays.seen, run.arrays.choice.z
        bonus = run.arrays.choice.scores - seen.mean
        np.testing.assert_allclose(bonus * np.sqrt(seen.pulls), 0.5 * z, rtol=1e-6, atol=1e-9)


def test_exploration_is_mixed_in() -> None:
    policy = ra.EpsilonGreedy(0.3, estimator=ra.estimators.Linear(3))
    expected, _ = play(LINEAR, private(LINEAR), greedy, None, ROUNDS, SEED, 0, epsilon=0.3)
    assert arms_of(policy, LINEAR, ROUNDS)[0] == expected


def one():  # type: ignore[no-untyped-def]
    return 1.0


def constant(*, level):  # type: ignore[no-untyped-def]
    return level


@pytest.mark.parametrize(
    "make",
    [
        lambda **given: ra.UCB(C=0.5, **given),
        lambda **given: ra.BoltzmannGumbel(C=0.3, **given),
        lambda **given: ra.GaussianThompson(sigma=0.5, **given),
        lambda **given: ra.ScaledGumbel(**given),
        lambda **given: ra.EpsilonGreedy(0.1, **given),
    ],
)
def test_a_context_of_ones_is_the_plain_simulation(make: Any) -> None:
    """The same words make the same luck in both, so that regret agrees replication by replication."""
    means = [0.5, 0.3, 0.1]
    linear = ra.estimators.Linear(1, ridge=0.0, standardise=False, intercept=False)
    settings: dict[str, Any] = {"horizon": 300, "replications": 32, "seed": 5}
    plain = ra.simulate(make(), ra.problems.Gaussian(means, sigma=0.5), **settings)
    problem = ra.problems.ContextProblem(one, constant, level=means, noise=0.5)
    contextual = ra.simulate([make(estimator=linear), make()], problem, **settings)
    for found in contextual.regret:
        np.testing.assert_allclose(found, plain.regret[0], rtol=1e-9, atol=1e-9)
    assert (contextual.pulls == plain.pulls).all()


def test_bits_are_the_same_for_any_number_of_workers_and_pieces() -> None:
    policies = [ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(3)), ra.UCB(C=0.5)]
    results = [
        ra.simulate(policies, DATA, horizon=200, replications=70, seed=3, workers=workers, lanes=lanes, checkpoints=7)
        for workers, lanes in ((1, None), (2, 32), (2, 64))
    ]
    for other in results[1:]:
        assert (other.regret == results[0].regret).all()
        assert (other.pulls == results[0].pulls).all()


def test_slices_do_not_matter() -> None:
    policy, rounds = ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(3)), 3_000
    found = []
    for step in (rounds, 700, 1):
        run = ContextRun(policy, CLICKS, np.array([17, rounds]))
        run.begin(SEED, 2)
        while run.round < rounds:
            run.advance(min(rounds, run.round + step))
        found.append(run.regret)
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_classification_counts_mistakes_over_fresh_orders() -> None:
    result = ra.simulate(ra.UCB(C=0.5), DATA, horizon=80, replications=20, seed=1, checkpoints=[40, 80])
    assert ((result.regret % 1 == 0) & (result.regret >= 0)).all()
    right = np.array([(DATA.context.labels == k).sum() for k in range(3)])
    # an arm that is always pulled is wrong wherever the label is another: exactly known after every pass
    always = ra.simulate(ra.ExploreThenCommit(each=1), DATA, horizon=4_000, replications=4, seed=1)
    last = always.pulls[0].argmax(axis=1)
    slack = 3 * 3  # the first pulls, of other arms
    assert (np.abs(always.regret[0, :, -1] - (4_000 - 100 * right[last])) <= slack).all()


def test_contexts_are_worth_something() -> None:
    random = np.random.default_rng(3)
    X = random.normal(size=(300, 4))
    problem = ra.problems.Classification(X, np.argmax(X @ random.normal(size=(4, 3)), axis=1))
    policies = [ra.BoltzmannGumbel(C=0.05, estimator=ra.estimators.Linear(4)), ra.BoltzmannGumbel(C=0.05)]
    result = ra.simulate(policies, problem, horizon=600, replications=20, seed=2)
    difference = result.regret[1, :, -1] - result.regret[0, :, -1]
    assert difference.mean() > 4.5 * difference.std(ddof=1) / math.sqrt(20)


@ra.policy
def by_mean(mean):  # type: ignore[no-untyped-def]
    return mean


def test_all_policies_meet_the_same_contexts_and_luck() -> None:
    """Two policies that always agree have the same regret to the last bit, though one of them draws noise."""
    policies = [by_mean(estimator=ra.estimators.Linear(3)), ra.EpsilonGreedy(0.0, estimator=ra.estimators.Linear(3))]
    result = ra.simulate(policies, CLICKS, horizon=300, replications=8, seed=1)
    assert (result.regret[0] == result.regret[1]).all()
    assert len(np.unique(result.regret[0, :, -1])) == 8


# A result is an ordinary one.


def test_a_result_can_be_saved_loaded_and_repeated(tmp_path: Path) -> None:
    for problem in (LINEAR, DATA, DRIFT, CLICKS):
        policies = [ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(3)), ra.UCB(C=0.5)]
        result = ra.simulate(policies, problem, horizon=50, replications=4, seed=1)
        loaded = ra.Result.load(result.save(tmp_path / "result.parquet"))
        assert loaded.problem == problem
        assert loaded.policies == tuple(policies)
        assert (loaded.repeat().regret == result.regret).all()
        assert str(loaded) == str(result)
        assert all(math.isnan(row["best_arm_share"]) for row in result.summary().to_dicts())
    result.plot(tmp_path / "figure.png")


@pytest.mark.parametrize("problem", [LINEAR, DATA, DRIFT, CLICKS, SPHERE], ids=str)
def test_problems_are_values(problem: ra.problems.ContextProblem) -> None:
    copy = pickle.loads(pickle.dumps(problem))
    assert copy == problem
    assert hash(copy) == hash(problem)
    assert copy.specification() == problem.specification()
    assert (copy.means_at([0.5] * problem.columns) == problem.means_at([0.5] * problem.columns)).all()


def test_problems_differ_by_what_they_are() -> None:
    row = [[1.0, 0.0], [0.0, 1.0]]
    problems = [
        ra.problems.LinearProblem(row),
        ra.problems.LinearProblem(row, noise=0.5),
        ra.problems.LinearProblem(row, offset=1.0),
        ra.problems.LinearProblem(row, context=ra.problems.UniformContext(2)),
        ra.problems.LinearProblem([[1.0, 0.0], [0.0, 2.0]]),
        ra.problems.Classification(row, [0, 1]),
        ra.problems.Classification(row, [1, 0]),
        ra.problems.Classification(row, ["a", "b"]),
    ]
    assert len(set(problems)) == len(problems)
    assert len({str(problem.specification()) for problem in problems}) == len(problems)


# Errors.

PLAIN = ra.problems.Bernoulli([0.5, 0.4])
BGE = ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(3))


@pytest.mark.parametrize(
    ("policy", "problem", "settings", "message"),
    [
        (BGE, PLAIN, {}, "decides by a context, and Bernoulli"),
        (ra.UCB(C=1.0, estimator=ra.estimators.Linear(5)), LINEAR, {}, "contexts of 5 columns, those of .* have 3"),
        (ra.UCB(C=1.0, estimator=ra.estimators.Linear(3, arm_features=2)), LINEAR, {}, "features of arms"),
        (ra.LinMED(estimator=ra.estimators.Linear(3)), LINEAR, {}, "asks for gap_variance"),
        (ra.LinMED(), LINEAR, {}, "asks for gap_variance"),
        (ra.LinTS(sigma=1.0, estimator=ra.estimators.Linear(3, private=False)), LINEAR, {}, "all coefficients at once"),
        (ra.policies.LogisticThompson(3), LINEAR, {}, "of linear models only Linear"),
        (ra.EXP3(gamma=0.1), DATA, {}, "remembers gain"),
        (ra.UCB(C=1.0, estimator=ra.estimators.Mean(window=100)), DATA, {}, "one by one"),
        (BGE, LINEAR, {"pulls": [1] * 4, "means": [0.5] * 4}, "without contexts"),
    ],
)
def test_what_cannot_be_played_is_refused(policy: Any, problem: Any, settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ra.simulate(policy, problem, horizon=10, **settings)


def test_a_reward_that_is_not_a_number_ends_the_run() -> None:
    problem = ra.problems.ContextProblem(visitor, interest, base=[0.2, 0.3], phone=0.1, reward=lambda u: 1 / (u - u))
    with pytest.raises(ValueError, match="reward was not a finite number in round 1"):
        ra.simulate(ra.UCB(C=0.5), problem, horizon=10)


def test_rewards_outside_a_policys_range_are_counted() -> None:
    with pytest.warns(UserWarning, match=r"outside \[0, 1\]"):
        ra.simulate(ra.UCB1(), LINEAR, horizon=50, replications=2, seed=1)
