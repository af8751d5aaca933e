"""Policies that look at what the predictions of arms have in common, against dense ridge regression."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import naive_ridge
import rightarm as ra
from naive import F64
from rightarm.noise import Gaussian, Joint, probability_of_largest


@dataclass(frozen=True)
class Model:
    """A linear model of ours beside the columns that it must have."""

    linear: ra.estimators.Linear
    columns: naive_ridge.Columns
    private: int
    shared: int
    ridges: tuple[float, float] = (1.0, 1.0)
    arm_features: bool = False


MODELS = {
    "private": Model(ra.estimators.Linear(2, standardise=False), lambda x, a: ([1.0, *x], []), 3, 0),
    "shared": Model(
        ra.estimators.Linear(2, arm_features=2, standardise=False, ridge=0.5),
        lambda x, a: ([], [1.0, *x, *a, *(one * other for one in x for other in a)]),
        0,
        9,
        (0.5, 0.5),
        True,
    ),
    "hybrid": Model(
        ra.estimators.Linear(
            ["u", "w"],
            arm_features=2,
            private=["u"],
            interactions=False,
            ridge=0.5,
            private_ridge=2.0,
            standardise=False,
        ),
        lambda x, a: ([1.0, x[0]], [x[1], *a]),
        2,
        3,
        (0.5, 2.0),
        True,
    ),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def played(policy: ra.Policy, model: Model, arms: int, rounds: int) -> tuple[ra.Bandit[Any], naive_ridge.Ridge, Any]:
    """A bandit after some rounds, the dense regression of the same rows, and what draws contexts for both."""
    random, names = np.random.default_rng(7), [f"arm {k}" for k in range(arms)]
    bandit = ra.Bandit(names, policy, seed=3)
    dense = naive_ridge.Ridge(arms, model.private, model.shared, *model.ridges)

    def draw() -> tuple[Any, Any, F64]:
        x, features = random.standard_normal(2), random.standard_normal((arms, 2))
        given = dict(zip(names, features.tolist(), strict=True)) if model.arm_features else None
        columns = [model.columns(x.tolist(), features[k].tolist()) for k in range(arms)]
        return x.tolist(), given, np.array([dense.row(k, columns[k]) for k in range(arms)])

    for _ in range(rounds):
        x, given, rows = draw()
        decision = bandit.ask(context=x, arm_features=given)
        arm = names.index(decision.arm)
        reward = float(0.3 * arm + x[0] + 0.5 * random.standard_normal())
        bandit.tell(decision, reward)
        dense.learn(rows[arm], reward)
    return bandit, dense, draw


@every_model
@pytest.mark.parametrize(("sigma", "alpha"), [(0.5, 0.99), (2.0, 0.0)])
def test_linmed(model: Model, sigma: float, alpha: float) -> None:
    bandit, dense, draw = played(ra.LinMED(sigma=sigma, alpha=alpha, estimator=model.linear), model, 5, 60)
    for _ in range(20):
        x, given, rows = draw()
        found = list(bandit.probabilities(x, arm_features=given).values())
        mean, covariance = dense.predicted(rows)
        np.testing.assert_allclose(found, naive_ridge.linmed(mean, covariance, sigma, alpha), rtol=1e-8)
        some = [3, 1, 4]
        among = bandit.probabilities(x, arm_features=given, allowed=[f"arm {k}" for k in some])
        mean, covariance = dense.predicted(rows[some])
        expected = naive_ridge.linmed(mean, covariance, sigma, alpha)
        np.testing.assert_allclose([among[f"arm {k}"] for k in some], expected, rtol=1e-8)
        assert bandit.ask(context=x, arm_features=given).exact


@every_model
def test_lints_of_many_arms(model: Model) -> None:
    """Against a million draws of θ: estimates keep within their bound; private coefficients leave none to be made."""
    bandit, dense, draw = played(ra.LinTS(sigma=0.7, estimator=model.linear), model, 5, 15)
    random, size = np.random.default_rng(8), 1_000_000
    for _ in range(3):
        x, given, rows = draw()
        found = np.array(list(bandit.probabilities(x, arm_features=given).values()))
        drawn = naive_ridge.lints(*dense.predicted(rows), 0.7, size, random)
        decision = bandit.ask(context=x, arm_features=given)
        assert decision.propensity == found[int(str(decision.arm)[-1])]
        slack = 4.5 * np.sqrt(drawn * (1 - drawn) / size) + 1e-6
        assert (np.abs(found - drawn) <= decision.error + slack).all()
        assert decision.exact == (model.shared == 0)
        if model.shared:
            assert decision.error == pytest.approx(math.sqrt(math.log(2 * 5 / 1e-3) / 2**15), abs=1e-9)
            assert (np.abs(found - drawn) < 4.5 * np.sqrt(drawn * (1 - drawn) / 2**14) + slack).all()


@every_model
def test_lints_of_two_arms_is_exact(model: Model) -> None:
    bandit, dense, draw = played(ra.LinTS(sigma=0.7, estimator=model.linear), model, 2, 15)
    for _ in range(10):
        x, given, rows = draw()
        mean, covariance = dense.predicted(rows)
        deviation = 0.7 * math.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
        expected = stats.norm.cdf((mean[0] - mean[1]) / deviation)
        assert bandit.probabilities(x, arm_features=given)["arm 0"] == pytest.approx(expected, abs=1e-8)
        assert bandit.ask(context=x, arm_features=given).exact


@every_model
def test_private_noise_differs_from_the_joint_draw_where_arms_share_something(model: Model) -> None:
    bandit, dense, draw = played(ra.LinTS(sigma=0.7, estimator=model.linear), model, 2, 15)
    x, given, rows = draw()
    mean, covariance = dense.predicted(rows)
    apart = probability_of_largest(Gaussian(), mean, 0.7 * np.sqrt(np.diag(covariance)))
    joint = bandit.probabilities(x, arm_features=given)["arm 0"]
    assert (abs(joint - apart[0]) < 1e-8) == (model.shared == 0)


def test_decisions_are_the_same_after_loading_and_in_another_bandit() -> None:
    """Estimates depend on the state alone."""
    model = MODELS["hybrid"]
    bandit, _, draw = played(ra.LinTS(sigma=0.7, estimator=model.linear), model, 5, 15)
    x, given, _ = draw()
    again = ra.Bandit.from_json(bandit.to_json())
    assert again.probabilities(x, arm_features=given) == bandit.probabilities(x, arm_features=given)
    decision = bandit.ask(context=x, arm_features=given)
    assert again.ask(context=x, arm_features=given) == decision
    assert not decision.exact


def test_the_log_has_the_error_and_gives_the_same_bandit(tmp_path: Path) -> None:
    model, log = MODELS["shared"], tmp_path / "log.jsonl"
    policy = ra.LinTS(sigma=0.7, estimator=model.linear)
    given = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [1.0, 1.0]}
    with ra.Bandit(["a", "b", "c"], policy, seed=3, log=log) as bandit:
        for x in (0.5, -1.0, 2.0):
            decision = bandit.ask(context=[x, 1.0], arm_features=given)
            bandit.tell(decision, x)
        expected = bandit.probabilities([0.0, 0.0], arm_features=given)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["error"] for event in events if event["event"] == "decision"] == [decision.error] * 3
    assert decision.error == pytest.approx(math.sqrt(math.log(2 * 3 / 1e-3) / 2**15))
    again = ra.Bandit.from_log(log, policy)
    assert again.probabilities([0.0, 0.0], arm_features=given) == expected


# The law by itself.


def vectors(random: np.random.Generator, arms: int, shared: int) -> tuple[F64, F64, F64, F64]:
    return (
        random.standard_normal(arms),
        np.abs(random.standard_normal(arms)) + 0.1,
        np.abs(random.standard_normal(arms)),
        random.standard_normal((arms, shared)),
    )


def together(location: F64, scale: F64, own: F64, joint: F64) -> tuple[F64, float]:
    chance = np.empty(location.size)
    found, error = Joint().correlated_solver()(location, scale, own, joint, chance)
    assert found > 0
    return chance, error


def test_arms_that_share_nothing_or_the_same_are_independent() -> None:
    location, scale, own, joint = vectors(np.random.default_rng(1), 6, 0)
    chance, error = together(location, scale, own, joint)
    np.testing.assert_allclose(chance, probability_of_largest(Gaussian(), location, scale), atol=1e-12)
    assert error == 0.0
    joint = np.ones((6, 2))
    lengths = np.full(6, 2.0)
    chance, error = together(location, np.full(6, math.sqrt(6.0)), lengths, joint)
    np.testing.assert_allclose(chance, probability_of_largest(Gaussian(), location, lengths), atol=1e-12)
    assert error == 0.0


def test_hopeless_arms_are_left_out_and_counted_in_the_error() -> None:
    location, scale, own, joint = vectors(np.random.default_rng(2), 5, 3)
    location[[0, 3, 4]] -= 1e3
    chance, error = together(location, scale, own, joint)
    assert chance[[0, 3, 4]].tolist() == [0.0, 0.0, 0.0]
    assert 0 < error < 2e-10  # two arms are left, whose probabilities are exact
    lengths = np.sqrt(own**2 + (joint**2).sum(axis=1))
    v = joint * (scale / lengths)[:, None]
    a = own * scale / lengths
    deviation = math.sqrt(a[1] ** 2 + a[2] ** 2 + ((v[1] - v[2]) ** 2).sum())
    assert chance[1] == pytest.approx(stats.norm.cdf((location[1] - location[2]) / deviation), abs=1e-12)
    location[1] += 1e3
    chance, error = together(location, scale, own, joint)
    assert chance.tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]
    assert 0 < error < 2e-10  # of one arm there is nothing to draw


def test_more_columns_than_arms() -> None:
    """Nine columns of three arms are turned into three; against a million draws of the nine."""
    random, size = np.random.default_rng(6), 1_000_000
    location, scale, own, joint = vectors(random, 3, 9)
    chance, error = together(0.3 * location, scale, own, joint)
    factor = scale / np.sqrt(own**2 + (joint**2).sum(axis=1))
    covariance = np.diag((own * factor) ** 2) + (joint * factor[:, None]) @ (joint * factor[:, None]).T
    drawn = naive_ridge.lints(0.3 * location, covariance, 1.0, size, random)
    assert (np.abs(chance - drawn) < 4.5 * np.sqrt(drawn * (1 - drawn) * (1 / 2**14 + 1 / size))).all()
    assert error > 0.01


def test_equal_arms_share_their_wins() -> None:
    location, scale, joint = np.zeros(4), np.ones(4), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    chance, _ = together(location, scale, np.zeros(4), joint)
    assert chance[0] == chance[2]
    np.testing.assert_allclose(chance, [0.1875, 0.25, 0.1875, 0.375], atol=0.02)  # angles of 135°, 90° and 135°
    alone, _ = together(np.array([0.0, 1.0, 0.5]), np.zeros(3), np.zeros(3), np.zeros((3, 2)))
    assert alone.tolist() == [0.0, 1.0, 0.0]


def test_the_error_bound_holds() -> None:
    """The largest of 3 errors, in 200 states, is beyond the bound of 99.9% in none or hardly any."""
    random, beyond = np.random.default_rng(3), 0
    for _ in range(200):
        location, scale, own, joint = vectors(random, 3, 1)
        own[:] = 0.0  # then scores are lines in one number, whose probabilities are exact
        chance, error = together(location, scale, own, joint)
        exact = probability_of_largest(ra.noise.Shared(Gaussian()), location, scale * np.sign(joint[:, 0]))
        beyond += bool(np.abs(chance - exact).max() > error)
        assert np.abs(chance - exact).max() < 4.5 * math.sqrt(0.25 / 2**14)
    assert beyond <= 2


def test_wrong_numbers_are_refused() -> None:
    location, scale, own, joint = vectors(np.random.default_rng(4), 3, 1)
    for wrong, row in ((np.nan, location), (np.inf, scale)):
        before, row[1] = row[1], wrong
        found, _ = Joint().correlated_solver()(location, scale, own, joint, np.empty(3))
        assert found < 0
        row[1] = before


@pytest.mark.parametrize(
    "policy", [ra.LinMED(estimator=ra.estimators.Linear(2)), ra.LinTS(sigma=1.0, estimator=ra.estimators.Linear(2))]
)
def test_without_a_context_nothing_is_known(policy: ra.Policy) -> None:
    with pytest.raises(ValueError, match="looks at what arms have in common in a context: ask a Bandit"):
        policy.probabilities(9, [4.0, 4.0], [0.5, 0.25])
