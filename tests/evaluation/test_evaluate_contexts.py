"""Off-policy evaluation with contexts: formulas against dense regression, promises against simulations."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rightarm as ra
from adaptive_logs import z
from context_logs import F64, DenseRidge, Log, World, softmax, standard
from few import few
from rightarm.evaluation import Evaluation, evaluate, replay
from rightarm.logs import LogWriter

POLICY = ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(5))


def quietly(log: Any, policy: Any, **options: Any) -> Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate(log, policy, **options)


def law(x: F64) -> F64:
    return softmax(3 * x[:4])


# Formulas.


@pytest.mark.parametrize("strength", [1.0, 0.0])
def test_doubly_robust_is_dense_regression_on_the_rows_before(strength: float) -> None:
    """Or means, where these have predicted better: with a strength of 0 contexts mean nothing."""
    log = World(1, strength=strength).even_log(250)
    ridge, average, total, errors, used = DenseRidge(4, 6), 0.5, 0.0, np.zeros(2), []
    pulls, sums = np.zeros(4), np.zeros(4)
    for t, (arm, propensity, reward, x) in enumerate(zip(*log.values(), strict=True)):
        row = standard(log["context"][: t + 1])
        both = (sums + average) / (pulls + 1), np.clip(average + ridge.predict(row), 0.0, 1.0)
        used.append(int(errors[1] < errors[0]))
        p, q = law(x), both[used[-1]]
        total += p @ q + p[arm] / propensity * (reward - q[arm])
        errors += [(reward - one[arm]) ** 2 for one in both]
        ridge.learn(arm, row, reward - average)
        pulls[arm] += 1
        sums[arm] += reward
        average = (0.5 + sum(log["reward"][: t + 1])) / (t + 2)
    assert np.mean(used[100:]) == (1.0 if strength else 0.0)
    result = quietly(log, law)
    assert result.dr == pytest.approx(total / 250, abs=1e-9)
    assert result.policy == "law"
    moved = log | {"reward": [10 * r - 2 for r in log["reward"]]}
    assert quietly(moved, law, reward_range=(-2, 8)).dr == pytest.approx(10 * result.dr - 2)


def test_a_policy_that_looks_at_contexts_is_dense_regression_in_its_formula() -> None:
    log = World(2).adaptive_log(200)
    ridge, weights = DenseRidge(4, 6), []
    for t, (arm, propensity, reward, _) in enumerate(zip(*log.values(), strict=True)):
        row = standard(log["context"][: t + 1])
        p = POLICY.probabilities(t + 1, ridge.pulls(row), ridge.predict(row))
        weights.append(p[arm] / propensity)
        ridge.learn(arm, row, reward)
    result = quietly(log, POLICY)
    assert result.ips == pytest.approx(np.mean(np.array(weights) * log["reward"]), abs=1e-9)
    assert result.mean_weight == pytest.approx(np.mean(weights), abs=1e-9)
    assert result.max_weight == pytest.approx(max(weights), rel=1e-6)


FEATURES = ra.estimators.Features(numbers=["hour"], categories={"device": ["phone", "desktop"]})
LIVE = {
    "private": (ra.estimators.Linear(FEATURES), None),
    "shared": (ra.estimators.Linear(FEATURES, arm_features=["price"]), {"z": [1.0], "y": [2.0], "x": [4.0]}),
}


def live_log(
    path: Path | LogWriter, estimator: ra.estimators.Linear, prices: Any, rows: int = 120, **options: Any
) -> ra.Policy:
    """The log of a live bandit whose arms are not in the order of their names, and come and go."""
    random, policy = np.random.default_rng(7), ra.BoltzmannGumbel(C=0.2, estimator=estimator)
    with ra.Bandit(["z", "y"], policy, log=path, seed=3, **options) as bandit:
        bandit.add_arm("x")
        for i in range(rows):
            context: dict[str, Any] = {
                "hour": float(random.integers(24)),
                "device": str(random.choice(["phone", "tv"])),
            }
            some = ["x", "z"] if i % 5 == 0 else None
            decision = bandit.ask(context=context, arm_features=prices, allowed=some)
            chance = 0.2 + 0.03 * context["hour"] * (decision.arm == "x")
            bandit.tell(decision, float(random.random() < min(chance, 1.0)))
    return policy


@pytest.mark.parametrize(("estimator", "prices"), LIVE.values(), ids=LIVE)
def test_the_policy_of_the_log_has_the_logs_own_mean(
    tmp_path: Path, estimator: ra.estimators.Linear, prices: Any
) -> None:
    path = tmp_path / "log.jsonl"
    policy = live_log(path, estimator, prices)
    result = evaluate(path, policy, arms=["z", "y", "x"])
    assert result.mean_weight == pytest.approx(1.0, abs=1e-12)
    assert result.max_weight == pytest.approx(1.0, abs=1e-12)
    assert result.ips == pytest.approx(result.logged)
    assert evaluate(path, policy).max_weight == pytest.approx(1.0, abs=1e-9)  # arms are sorted by name
    assert evaluate(ra.logs.read_log(path), policy) == evaluate(path, policy)
    assert evaluate(ra.logs.convert_log(path, tmp_path / "log.parquet"), policy) == evaluate(path, policy)


@pytest.mark.parametrize("rewards_in_order", [True, False])
def test_the_policy_of_a_log_with_late_rewards_has_other_weights(tmp_path: Path, rewards_in_order: bool) -> None:
    """It is told rewards in the order of decisions, each before the next one."""
    random, policy = np.random.default_rng(8), ra.BoltzmannGumbel(C=0.2)
    with ra.Bandit(["a", "b"], policy, log=tmp_path / "log.jsonl", seed=3) as bandit:
        for _ in range(30):
            decisions = [bandit.ask() for _ in range(1 if rewards_in_order else 4)]
            for decision in reversed(decisions):
                bandit.tell(decision, float(random.random() < 0.5))
    assert (quietly(tmp_path / "log.jsonl", policy).max_weight == pytest.approx(1.0, abs=1e-9)) == rewards_in_order


# Contexts in other forms.


def test_contexts_in_other_forms() -> None:
    log = World(3).even_log(60)
    plain = quietly(log, POLICY)
    X = log["context"]
    names = [f"f{i}" for i in range(5)]
    named = ra.BoltzmannGumbel(C=0.1, estimator=ra.estimators.Linear(names))
    frame = pl.DataFrame(X, schema=names, orient="row")
    forms = {"lists": X.tolist(), "series": pl.Series(X.tolist()), "rows": list(X)}
    for form in forms.values():
        assert quietly(log | {"context": form}, POLICY) == plain
    for form in (frame, frame.to_dicts(), pl.Series(frame.to_dicts()), frame.to_dict(as_series=False)):
        result = quietly(log | {"context": form}, named)
        assert (result.ips, result.dr, result.low) == (plain.ips, plain.dr, plain.low)
        assert quietly(log | {"context": form}, law) == quietly(log, law)


def test_tables_of_categories_are_encoded_by_the_policy() -> None:
    features = ra.estimators.Features(numbers=["hour"], categories={"device": ["phone"]}, required=True)
    policy, table = (
        ra.UCB(C=0.5, estimator=ra.estimators.Linear(features)),
        {"hour": [1, 5, 9] * 20, "device": ["phone", "tv"] * 30},
    )
    log: Log = {"arm": ["a", "b"] * 30, "propensity": [0.5] * 60, "reward": [0.0, 1.0, 1.0] * 20}
    encoded = quietly(log | {"context": features.encode_many(table)}, policy)
    assert quietly(log | {"context": table}, policy) == encoded
    with pytest.raises(TypeError, match="device must be a number, got 'phone'"):
        quietly(log | {"context": table}, law)


def test_rows_without_a_reward_are_left_out_with_their_contexts() -> None:
    log, gone = World(4).even_log(90), np.arange(90) % 3 == 0
    holes = log | {"reward": [None if no else r for no, r in zip(gone, log["reward"], strict=True)]}
    rest = {name: [v for no, v in zip(gone, column, strict=True) if not no] for name, column in log.items()}
    some = quietly(holes, POLICY)
    assert (some.rows, some.left_out) == (60, 30)
    assert some.dr == quietly(rest, POLICY).dr
    table = np.random.default_rng(1).random((90, 4))
    assert quietly(holes, law, rewards=table).dr == quietly(rest, law, rewards=table[~gone]).dr


# Functions.


def test_functions_give_probabilities_by_arm_or_in_order() -> None:
    log = World(5).even_log(50)
    named = log | {"arm": ["dcba"[i] for i in log["arm"]]}
    in_order = quietly(named, lambda x: law(x)[::-1].tolist(), arms="abcd")
    by_arm = quietly(named, lambda x: dict(zip("dcba", law(x), strict=True)))
    as_given = quietly(named, law, arms="dcba")
    for found in (in_order, by_arm, as_given):
        assert found.ips == pytest.approx(quietly(log, law).ips, abs=1e-12)
        assert found.dr == pytest.approx(quietly(log, law).dr, abs=1e-12)


def test_what_is_given_in_order_needs_an_order() -> None:
    """That of the log's arms, of their names, or of the arms of a bandit: nobody knows which was meant."""
    log: Log = {"arm": ["small", "large"] * 20, "propensity": [0.5] * 40, "reward": [0.0, 1.0] * 20}
    log["context"], table = [[1.0]] * 40, np.tile([0.0, 1.0], (40, 1))
    for use in (evaluate, replay):
        with pytest.raises(ValueError, match=r"row 1: give probabilities by arm, or arms= to say the order, got \[0.9"):
            use(log, lambda x: [0.9, 0.1])
    assert quietly(log, lambda x: [0.9, 0.1], arms=["small", "large"]).ips == pytest.approx(0.1)
    with pytest.raises(
        ValueError, match=r"give arms= to say the order of the columns of rewards; the arms are .'large'"
    ):
        evaluate(log, "uniform", rewards=table)
    assert quietly(log, "uniform", rewards=table, arms=["small", "large"]).dr == pytest.approx(0.5)


def test_functions_choose_among_the_arms_of_a_row() -> None:
    log: Log = {"arm": ["a", "c"], "propensity": [0.5, 0.5], "reward": [1.0, 1.0], "context": [[1.0], [2.0]]}
    result = quietly(log | {"allowed": [["b", "a"], ["c", "a"]]}, lambda x: {"a": 0.2, "b": 0.2, "c": 0.6})
    assert result.ips == pytest.approx((0.5 / 0.5 + 0.75 / 0.5) / 2)
    with pytest.raises(ValueError, match="row 2: the policy gives no probability to any of the arms"):
        quietly(log | {"allowed": [["b", "a"], ["c", "b"]]}, lambda x: {"a": 1.0})


def test_functions_are_told_which_columns_there_are(tmp_path: Path) -> None:
    def by_name(x: Any) -> dict[str, float]:
        return {"z": x["hour"]}

    live_log(tmp_path / "log.jsonl", *LIVE["private"])
    with pytest.raises(IndexError) as found:
        evaluate(tmp_path / "log.jsonl", by_name)
    assert found.value.__notes__ == [f"the context is an array with the columns {', '.join(FEATURES.names)}"]


WRONG: dict[str, tuple[Any, str]] = {
    "sum": (lambda x: [0.5, 0.4], r"row 3: policy must have probabilities that add up to 1, got 0.9"),
    "negative": (lambda x: [1.5, -0.5], r"row 3: policy\['b'\] must be a probability, got -0.5"),
    "nan": (lambda x: np.array([np.nan, 1.0]), r"row 3: policy\['a'\] must be a probability, got nan"),
    "count": (lambda x: [1.0], r"row 3: policy must give 2 probabilities, one for each arm, got \[1.0\]"),
    "arm": (lambda x: {"e": 1.0}, r"row 3: policy must give probabilities to arms of the log, .*, got 'e'"),
    "text": (lambda x: "a", r"row 3: policy must give probabilities by arm, or in the order of arms, got 'a'"),
    "number": (lambda x: ["1", 0], r"row 3: policy\['a'\] must be a number, got '1'"),
}


@pytest.mark.parametrize(("function", "said"), WRONG.values(), ids=WRONG)
def test_what_are_no_probabilities_is_refused_with_the_row(function: Any, said: str) -> None:
    """Row 3 of the log: the first two have no reward."""
    log = {"arm": ["a", "b"] * 2, "propensity": [0.5] * 4, "reward": [None, None, 1.0, 0.0], "context": [[1.0]] * 4}
    with pytest.raises((TypeError, ValueError), match=said):
        evaluate(log, function, arms="ab")


# What is refused.


def test_a_log_without_contexts(tmp_path: Path) -> None:
    policy = live_log(LogWriter(tmp_path / "log.jsonl", context=False), *LIVE["private"])
    for use in (evaluate, replay):
        for target in (policy, law):
            with pytest.raises(ValueError, match=r"log must have the context of every row .*\(context=False\)"):
                use(tmp_path / "log.jsonl", target)
    assert quietly(tmp_path / "log.jsonl", "uniform").rows == 120


def test_contexts_that_do_not_fit(tmp_path: Path) -> None:
    live_log(tmp_path / "log.jsonl", *LIVE["private"])
    wrong: dict[str, Any] = {
        "contexts of 3 numbers for .*, got 6": ra.estimators.Linear(3),
        "columns of .*, got 'hour' for 'minute'": ra.estimators.Linear(["minute", *(f"x{i}" for i in range(5))]),
        "features of arms of 2 numbers for .*, got none": ra.estimators.Linear(6, arm_features=2),
    }
    for said, estimator in wrong.items():
        with pytest.raises(ValueError, match=f"log must have .*{said}"):
            evaluate(tmp_path / "log.jsonl", ra.UCB(C=1.0, estimator=estimator))
    log: Log = {"arm": ["a", "b"], "propensity": [0.5, 0.5], "reward": [0.0, 1.0]}
    rows: dict[str, Any] = {
        "got 1 in row 1 and 2 in row 2": [[1.0], [1.0, 2.0]],
        r"finite numbers, got \[nan\] in row 2": [[1.0], [float("nan")]],
        "must be numbers; .* got .'x'. in row 1": [["x"], ["y"]],
        "a row of numbers or a mapping, got 1.0 in row 1": [1.0, 2.0],
        r"of one length, got \[2, 3\]": [[1.0]] * 3,
    }
    for said, contexts in rows.items():
        with pytest.raises((TypeError, ValueError), match=said):
            evaluate(log | {"context": contexts}, "uniform")


# Predictions of others.


class Recorder:
    """A regression that predicts the mean of the arm's rewards, and notes on what it was fitted."""

    fits: list[tuple[F64, F64]]

    def __init__(self, arms: int) -> None:
        self.arms, self.fits = arms, []

    def __deepcopy__(self, memo: Any) -> Recorder:
        twin = Recorder(self.arms)
        twin.fits = self.fits
        return twin

    def fit(self, X: F64, y: F64) -> None:
        self.fits.append((X.copy(), y.copy()))
        self.means = np.array([y[column == 1].mean() for column in X.T[-self.arms :]])

    def predict(self, X: F64) -> F64:
        return np.asarray(X[:, -self.arms :] @ self.means)


def test_a_regression_is_fitted_on_the_parts_before() -> None:
    log, model = World(6).even_log(103), Recorder(4)
    rewards, arms = np.array(log["reward"]), np.array(log["arm"])
    result = quietly(log, law, rewards=model, folds=4)
    starts = [25, 51, 77]
    assert [len(y) for _, y in model.fits] == starts
    for (X, y), start in zip(model.fits, starts, strict=True):
        np.testing.assert_array_equal(X, np.hstack([log["context"][:start], np.eye(4)[arms[:start]]]))
        np.testing.assert_array_equal(y, rewards[:start])
    total = 25 * quietly({name: column[:25] for name, column in log.items()}, law, arms=range(4)).dr
    for start, stop in zip(starts, [*starts[1:], 103], strict=True):
        q = np.array([rewards[:start][arms[:start] == arm].mean() for arm in range(4)])
        for t in range(start, stop):
            p = law(log["context"][t])
            total += p @ q + p[arms[t]] * 4 * (rewards[t] - q[arms[t]])
    assert result.dr == pytest.approx(total / 103, abs=1e-12)
    moved = log | {"reward": 10 * rewards - 2}
    again = quietly(moved, law, rewards=Recorder(4), folds=4, reward_range=(-2, 8))
    assert again.dr == pytest.approx(10 * result.dr - 2)


def test_predictions_as_an_array() -> None:
    log = World(7).even_log(80)
    table = np.random.default_rng(2).random((80, 4)) * 1.5 - 0.2
    q, total = np.clip(table, 0, 1), 0.0
    for t, (arm, propensity, reward, x) in enumerate(zip(*log.values(), strict=True)):
        p = law(x)
        total += (p @ q[t] + p[arm] / propensity * (reward - q[t, arm])) / 80
    ours, given = quietly(log, law, floor=0.25), quietly(log, law, rewards=table, floor=0.25)
    assert given.dr == pytest.approx(total, abs=1e-12)
    assert (given.low, given.high, given.ips) == (ours.low, ours.high, ours.ips)
    assert quietly({k: v for k, v in log.items() if k != "context"}, "uniform", rewards=table).rows == 80


class Wrong:
    """Predicts what it is told to: of the first arm, and of the others."""

    def __init__(self, first: list[float], others: list[float]) -> None:
        self.first, self.others = first, others

    def fit(self, X: F64, y: F64) -> None:
        pass

    def predict(self, X: F64) -> list[float]:
        return self.first if X[0, -4] else self.others


BAD: dict[str, tuple[Any, str]] = {
    "few": (Wrong([0.5], [0.5]), r"rewards must predict a finite number for each row, got \[0.5\]"),
    "uneven": (Wrong([0.5, 0.5], [0.25]), r"rewards must predict a finite number for each row, got \[0.25\]"),
    "infinite": (Wrong([0.5, 0.5], [0.25, np.inf]), r"a finite number for each row, got \[0.25  inf\]"),
    "shape": (np.zeros((3, 4)), r"rewards must be an array of 20 rows and 4 arms, .*, got the shape \(3, 4\)"),
    "kind": ("ridge", r"rewards must be an array of 20 rows and 4 arms, or have fit and predict, got 'ridge'"),
    "nan": (np.full((20, 4), np.nan), "rewards must be finite, got nan in row 1 for 0"),
}


@pytest.mark.parametrize(("rewards", "said"), BAD.values(), ids=BAD)
def test_predictions_that_are_refused(rewards: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        evaluate(World(8).even_log(20), "uniform", rewards=rewards, arms=range(4))


def test_folds_and_contexts_are_needed_for_a_regression() -> None:
    log = World(8).even_log(20)
    with pytest.raises(ValueError, match=r"folds must be .* got 21"):
        evaluate(log, "uniform", rewards=Recorder(4), folds=21)
    with pytest.raises(ValueError, match="log must have the context of every row"):
        evaluate({k: v for k, v in log.items() if k != "context"}, "uniform", rewards=Recorder(4))


# Replay.


def test_replay_is_dense_regression_on_the_rows_kept() -> None:
    log = World(9).even_log(400)
    ridge, random, kept, seen = DenseRidge(4, 6), np.random.default_rng(5), list[int](), list[F64]()
    for t, (arm, _, reward, x) in enumerate(zip(*log.values(), strict=True)):
        row = standard(np.array([*seen, x]))
        p = POLICY.probabilities(len(kept) + 1, ridge.pulls(row), ridge.predict(row))
        if int(np.searchsorted(np.cumsum(p), random.random())) == arm:
            ridge.learn(arm, row, reward)
            kept.append(t)
            seen.append(x)
    result = replay(log, POLICY, seed=5)
    assert result.rewards.tolist() == [log["reward"][t] for t in kept]
    assert list(result.pulls.values()) == np.bincount([log["arm"][t] for t in kept]).tolist()


def test_replay_of_a_function_earns_its_value() -> None:
    world = World(10)
    log = world.even_log(8_000)
    result = replay(log, law)
    truth = world.value(log, law)
    assert abs(result.mean - truth) < 4.5 * math.sqrt(truth * (1 - truth) / result.rounds)
    assert result.low <= truth <= result.high
    assert result.policy == "law"


# Promises.


class Classes:
    """A data set as a bandit, like digits: the reward is 1 for the arm that is the label, else 0."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        centres = np.random.default_rng(0).normal(size=(6, 8))
        labels = random.integers(6, size=1_200)
        X = 1.2 * centres[labels] + random.normal(size=(1_200, 8))
        arms = random.integers(6, size=1_200)
        self.centres = centres
        self.truth = float(np.mean([self.law(x)[label] for x, label in zip(X, labels, strict=True)]))
        self.log: Log = {"arm": arms, "propensity": np.full(1_200, 1 / 6), "reward": arms == labels, "context": X}

    def law(self, x: F64) -> F64:
        return 0.1 / 6 + 0.9 * softmax(3 * (self.centres @ x - (self.centres**2).sum(axis=1) / 2))


def test_half_the_error_on_even_logs() -> None:
    worlds = [Classes(seed) for seed in range(40)]
    found = [quietly(world.log | {"reward": world.log["reward"] * 1.0}, world.law) for world in worlds]
    ips = np.array([one.ips - world.truth for one, world in zip(found, worlds, strict=True)])
    dr = np.array([one.dr - world.truth for one, world in zip(found, worlds, strict=True)])
    assert abs(z(dr.tolist(), 0.0)) < 4.5
    assert abs(z(ips.tolist(), 0.0)) < 4.5
    assert np.sqrt((dr**2).mean()) < 0.6 * np.sqrt((ips**2).mean())


@pytest.mark.parametrize("adaptive", few(1, [True, False]))
def test_unbiased_and_covering(adaptive: bool) -> None:
    errors: dict[str, list[float]] = {"ridge": [], "regression": []}
    missed = {"plain": 0, "floor": 0, "regression": 0}
    for seed in range(60):
        world = World(100 + seed)
        log = world.adaptive_log(200) if adaptive else world.even_log(200)
        truth = world.value(log, law)
        plain, informed = quietly(log, law), quietly(log, law, floor=0.05)
        fitted = quietly(log, law, floor=0.05, rewards=Memory(), folds=4)
        errors["ridge"].append(plain.dr - truth)
        errors["regression"].append(fitted.dr - truth)
        for name, one in zip(missed, (plain, informed, fitted), strict=True):
            missed[name] += not one.low <= truth <= one.high
    for some in errors.values():
        assert abs(z(some, 0.0)) < 4.5
    assert max(missed.values()) <= 60 * 0.05 + 4.5 * math.sqrt(60 * 0.05 * 0.95)


class Memory:
    """Knows by heart what it has seen, and expects nothing elsewhere: on its own rows it would be badly biased."""

    def fit(self, X: F64, y: F64) -> None:
        self.seen = {row.tobytes(): reward for row, reward in zip(X, y, strict=True)}

    def predict(self, X: F64) -> F64:
        return np.array([self.seen.get(row.tobytes(), 0.0) for row in X])


def test_a_contextual_policy_that_learns_from_the_log() -> None:
    """Estimates are about the mean value of its choices given the rows before, which a dense loop knows."""
    errors, missed = [], 0
    for seed in range(15):
        world = World(300 + seed)
        log = world.adaptive_log(120)
        ridge, value = DenseRidge(4, 6), 0.0
        for t, (arm, _, reward, x) in enumerate(zip(*log.values(), strict=True)):
            row = standard(log["context"][: t + 1])
            chances = POLICY.probabilities(t + 1, ridge.pulls(row), ridge.predict(row))
            value += float(chances @ world.means(x)) / 120
            ridge.learn(arm, row, reward)
        result = quietly(log, POLICY)
        errors.append(result.dr - value)
        missed += not result.low <= value <= result.high
    assert abs(z(errors, 0.0)) < 4.5
    assert missed <= 15 * 0.05 + 4.5 * math.sqrt(15 * 0.05 * 0.95)
