"""The coefficients of a bandit that decides by contexts, against dense regression on the rows that it learned."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from rightarm.bandit.explanations import centred, contextual, groups_of
from rightarm.inference.coefficients import FIXED
from rightarm.types import F64

FEATURES = ra.estimators.Features(
    numbers=["hour", "age"], categories={"device": ["phone", "desktop"], "plan": ["free"]}, required=["hour", "plan"]
)
ARM = ra.estimators.Features(numbers=["price"], categories={"brand": ["x", "y"]}, required=True)
ARMS = ["a", "b", "c"]
MODELS: dict[str, dict[str, Any]] = {
    "disjoint": {},
    "hybrid": {"private": ["device"]},
    "shared": {"private": False},
    "arms": {"arm_features": ARM},
    "arms, hybrid": {"arm_features": ARM, "private": ["hour"]},
    "without intercept": {"intercept": False},
}


def bandit_of(features: Any = FEATURES, *, seed: int = 1, policy: str = "BoltzmannGumbel", **options: Any) -> Any:
    """Options are those of the model and of the bandit."""
    model = {
        name: options.pop(name) for name in list(options) if name in {*ra.estimators.Linear.__annotations__, "discount"}
    }
    parameters = {"C": 0.1} if policy == "BoltzmannGumbel" else {}
    return ra.Bandit(
        ARMS, getattr(ra, policy)(**parameters, estimator=ra.estimators.Linear(features, **model)), seed=seed, **options
    )


def play(bandit: Any, rounds: int, high: float = 1.0, seed: int = 3) -> tuple[list[dict[str, Any]], F64]:
    """Contexts, and rewards from 0 to ``high``."""
    random, contexts, rewards = np.random.default_rng(seed), [], []
    for _ in range(rounds):
        context: dict[str, Any] = {"hour": random.normal(12, 5), "plan": random.choice(["free", "paid"])}
        context |= {} if random.random() < 0.1 else {"age": random.normal(40, 9)}
        context["device"] = random.choice(["phone", "desktop"])
        offered = {arm: {"price": random.normal(9, 2), "brand": random.choice(["x", "y"])} for arm in ARMS}
        given = {} if bandit.policy.estimator.arm_features is None else {"arm_features": offered}
        decision = bandit.ask(context=context, **given)
        contexts.append(context)
        rewards.append(high * random.random())
        bandit.tell(decision, rewards[-1])
    return contexts, np.array(rewards)


def learned(bandit: Any) -> tuple[F64, F64, F64]:
    """Rows of all arms side by side, their rewards, and the ridges of the columns."""
    known = contextual(bandit._state)
    own, joint, arms = known.design.own, known.design.joint, known.count
    X, rewards = [], []
    for answer in bandit._state.ledger.answered.values():
        x, row = np.zeros(arms * own + joint), np.frombuffer(answer.context.row)
        x[answer.arm * own : (answer.arm + 1) * own], x[arms * own :] = row[:own], row[own:]
        X.append(x)
        rewards.append(answer.reward)
    return np.array(X), np.array(rewards), np.repeat(known.ridges[::-1], [arms * own, joint])


def effective(bandit: Any) -> list[float]:
    """The effective rewards of each arm, from its rewards one by one."""
    found = []
    for arm in range(3):
        own = np.array([answer.reward for answer in bandit._state.ledger.answered.values() if answer.arm == arm])
        edges = [own - own.min(), own.max() - own]
        found.append(min(float(x.sum() ** 2 / (x @ x)) for x in edges))
    return found


def spread(bandit: Any, arm: int, own: F64, joint: F64) -> F64:
    known = contextual(bandit._state)
    w = np.zeros(known.count * own.size + joint.size)
    w[arm * own.size : (arm + 1) * own.size], w[known.count * own.size :] = own, joint
    return w


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("limits", [(0.0, 1.0), None], ids=["bounded", "approximate"])
def test_against_dense_regression(name: str, limits: Any) -> None:
    bandit = bandit_of(reward_range=limits, **MODELS[name])
    play(bandit, 500)
    X, rewards, ridges = learned(bandit)
    known, found = contextual(bandit._state), bandit.coefficients(confidence=0.9)
    own, joint = known.design.own, known.design.joint
    G = X.T @ X
    theta = np.linalg.solve(G + np.diag(ridges), X.T @ rewards)
    inverse = np.linalg.pinv(G, rcond=1e-9)
    names, seen = known.estimator.names, 0
    enough = effective(bandit)
    enough = [sum(enough)] * 3 if joint else enough
    for arm in range(3):
        mine = slice(arm * own, (arm + 1) * own)
        columns = X[:, mine] if not joint else X
        n = np.any(X[:, mine] != 0, axis=1).sum() if not joint else len(X)
        sigma = 0.5
        if limits is None:
            fitted = np.linalg.solve(
                columns.T @ columns + np.diag(ridges[mine] if not joint else ridges), columns.T @ rewards
            )
            chosen = np.any(X[:, mine] != 0, axis=1) if not joint else np.ones(len(X), dtype=bool)
            lost = ((rewards - columns @ fitted)[chosen] ** 2).sum() + (
                ridges[mine] if not joint else ridges
            ) @ fitted**2
            sigma = math.sqrt(lost / (n - np.linalg.matrix_rank(columns)))
        volume = np.linalg.slogdet(np.eye(columns.shape[1]) + columns.T @ columns / FIXED)[1]
        beta = sigma * math.sqrt(volume + 2 * math.log(10))
        matrix = centred(
            groups_of(known), np.concatenate(((X[:, mine] ** 2).sum(0), (X[:, 3 * own :] ** 2).sum(0))) > 0
        )
        for j, w in enumerate(spread(bandit, arm, row[:own], row[own:]) for row in matrix):
            (row,) = [
                one for one in found.rows if one.feature == names[j] and one.arm == (ARMS[arm] if j < own else "shared")
            ]
            assert row.coefficient == pytest.approx(w @ theta, abs=1e-8)
            c = inverse @ w
            if np.linalg.norm(G @ c - w) > 1e-6 or not w.any() or (limits is None and enough[arm] < 100):
                assert row.low is None
                continue
            seen += 1
            least = beta * math.sqrt(c @ (G + FIXED * np.eye(len(G))) @ c)  # where G is singular, of many bounds
            assert (row.low + row.high) / 2 == pytest.approx(c @ X.T @ rewards, abs=1e-7)
            assert 1 - 1e-6 < (row.high - row.low) / 2 / least < (1.2 if joint else 1 + 1e-6)
            assert row.kind == ("approximate" if limits is None else "bounded")
    assert seen >= (own + joint) / 2


@pytest.mark.parametrize("name", MODELS)
def test_centring_changes_no_prediction(name: str) -> None:
    bandit = bandit_of(reward_range=(0, 1), **MODELS[name])
    play(bandit, 60)
    known = contextual(bandit._state)
    rows = np.array([np.frombuffer(answer.context.row) for answer in bandit._state.ledger.answered.values()])
    matrix = centred(groups_of(known), (rows**2).sum(axis=0) > 0)
    theta = np.random.default_rng(1).normal(size=rows.shape[1])
    assert rows @ matrix @ theta == pytest.approx(rows @ theta)
    assert (matrix != np.eye(len(matrix))).any() or name == "without intercept"


def test_intervals_of_categories_beside_an_intercept() -> None:
    """All levels together are the intercept, yet each has an interval, against their average."""
    bandit = bandit_of(reward_range=(0, 1))
    play(bandit, 300)
    rows = {row["feature"]: row for row in bandit.coefficients().table() if row["arm"] == "a"}
    assert rows["device=phone"]["coefficient"] == pytest.approx(-rows["device=desktop"]["coefficient"])
    assert rows["device=phone"]["low"] == pytest.approx(-rows["device=desktop"]["high"])
    assert rows["1"]["low"] < rows["1"]["coefficient"] < rows["1"]["high"]
    assert rows["device=other"]["lacking"] == rows["device=missing"]["lacking"] == "never seen"


def test_per_unit_and_in_the_unit_of_rewards() -> None:
    """A policy for rewards from 0 to 1 sees them scaled; what is shown is in the rewards' own unit."""
    scaled, plain = bandit_of(policy="KLUCB", reward_range=(100, 500)), bandit_of(policy="KLUCB")
    for bandit, low, high in ((scaled, 100, 500), (plain, 0, 1)):
        random, contexts = np.random.default_rng(5), list[dict[str, Any]]()
        for _ in range(100):
            contexts.append({"hour": random.normal(12, 5), "age": random.normal(40, 9), "plan": "free"})
            bandit.tell(arm="a", reward=low + (high - low) * random.random(), context=contexts[-1])
    for row, other in zip(scaled.coefficients().table(), plain.coefficients().table(), strict=True):
        shift = 100 if row["feature"] == "1" else 0
        for name in ("coefficient", "low", "high"):
            if other[name] is not None:
                assert row[name] == pytest.approx(400 * other[name] + shift)
        if row["feature"] in ("hour", "age") and row["arm"] == "a":
            deviation = np.std([context[row["feature"]] for context in contexts])
            assert row["per_unit"] == pytest.approx(row["coefficient"] / deviation)
            assert row["per_unit_low"] == pytest.approx(row["low"] / deviation)


def test_why_there_is_no_interval() -> None:
    twins = bandit_of(features=["x", "y", "z"], reward_range=(0, 1), standardise=False)
    few = bandit_of(features=["x"], intercept=False)
    old = bandit_of(features=["x"], reward_range=(0, 1), discount=0.99)
    random = np.random.default_rng(1)
    for _ in range(160):
        x, reward = random.normal(), random.random()
        twins.tell(arm="a", reward=reward, context=[x, 2 * x, random.normal()])
        few.tell(arm="a", reward=reward, context=[x])
        old.tell(arm="a", reward=reward, context=[x])
    few.tell(arm="b", reward=0.5, context=[1.0])
    few.tell(arm="b", reward=0.5, context=[2.0])
    rows = {(row["arm"], row["feature"]): row["lacking"] for row in twins.coefficients().table()}
    together = "not told apart from other columns"
    assert [rows["a", name] for name in ("1", "x", "y", "z")] == ["", together, together, ""]
    assert rows["b", "x"] == "never seen"
    assert [row["lacking"] for row in few.coefficients().table()] == ["", "needs 100 effective rewards", "never seen"]
    assert {row["lacking"] for row in old.coefficients().table()} == {"none with a discount"}
    assert "There are no intervals: none with a discount." in str(old.coefficients())


class LogOdds(ra.estimators.Linear):
    sums = False


def test_of_log_odds() -> None:
    """A model that does not predict rewards: nothing is scaled, nothing is said of intervals."""
    features, found = ["x"], []
    for model in (ra.estimators.Linear(features), LogOdds(features)):
        bandit = ra.Bandit(["a"], ra.KLUCB(estimator=model), seed=1, reward_range=(0, 10))
        for x in range(30):
            decision = bandit.ask(context=[x])
            bandit.tell(decision, x / 3)
        found.append((bandit.coefficients(), bandit.explain(decision)))
    (plain, explained), (odds, other) = found
    assert [10 * row.coefficient for row in odds.rows] == pytest.approx([row.coefficient for row in plain.rows])
    assert other.prediction is not None
    assert 10 * other.prediction == pytest.approx(explained.prediction)
    assert 10 * other.arms[0]["prediction"] == pytest.approx(explained.arms[0]["prediction"])
    assert {row.lacking for row in odds.rows} == {"none for log-odds"}
    assert "adds to the log-odds" in str(odds)
    assert "Predictions and contributions are log-odds." in str(other)


def test_no_ridge() -> None:
    bandit, random = bandit_of(["x", "y"], reward_range=(0, 1), ridge=0.0), np.random.default_rng(1)
    for _ in range(300):
        bandit.tell(bandit.ask(context=random.normal(size=2)), random.random())
    for row in bandit.coefficients().rows:
        assert row.coefficient == pytest.approx((row.low + row.high) / 2, abs=1e-9)


def test_refused_without_contexts() -> None:
    with pytest.raises(TypeError, match=r"UCB.* has no coefficients: it does not look at contexts"):
        ra.Bandit(["a"], ra.UCB(C=0.5)).coefficients()
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, got 1"):
        bandit_of().coefficients(confidence=1)


def test_as_text_frame_and_html() -> None:
    bandit = bandit_of(reward_range=(0, 1), arm_features=ARM, private=["device"])
    play(bandit, 200)
    found = bandit.coefficients()
    frame = found.frame()
    assert frame["feature"].to_list() == [row["feature"] for row in found.table()]
    assert frame.columns[:6] == ["arm", "feature", "coefficient", "low", "high", "kind"]
    assert frame["arm"].unique(maintain_order=True).to_list() == ["a", "b", "c", "shared"]
    text = str(found)
    assert "1 (intercept)" in text
    assert "95%, at any time" in text
    assert "rewards are linear in these columns" in text.replace("\n", " ")
    assert found._repr_html_().count("<tr>") == sum(row.seen for row in found.rows) + 1
    assert "approximate" in str(bandit_of(features=["x"]).coefficients())


@pytest.mark.parametrize(("arms", "features"), [(3, 8), (20, 70), (2, 0)])
def test_pictures(arms: int, features: int, tmp_path: Path) -> None:
    names = [f"feature {i}" for i in range(features)]
    bandit = ra.Bandit(range(arms), ra.UCB(C=0.1, estimator=ra.estimators.Linear(names)), seed=1, reward_range=(0, 1))
    random = np.random.default_rng(1)
    for _ in range(20):
        bandit.tell(bandit.ask(context=random.normal(size=features)), random.random())
    found = bandit.coefficients()
    assert found.plot(tmp_path / "c.png") == tmp_path / "c.png"
    figure = found.plot()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(labels) == min(features, 60)
    assert ("not shown: 10 features" in figure.get_supxlabel()) == (features == 70)
    if arms == 3:
        seen = {str(row.arm) for row in found.rows if row.seen}
        assert [axes.get_title() for axes in figure.axes] == sorted(seen)
        assert sorted(labels) == names


def test_text_and_picture_show_what_was_seen_the_largest_first() -> None:
    bandit = bandit_of(reward_range=(0, 1), seed=2)
    play(bandit, 300)
    found = bandit.coefficients()
    unseen = [row.feature for row in found.rows if not row.seen]
    assert {*unseen} == {row.feature for row in found.rows if row.lacking == "never seen"} != set()
    text = str(found)
    assert f"{len(unseen)} coefficients not shown: the column was never seen" in text.replace("\n", " ")
    assert "never seen " not in text.split("coefficients not shown")[0]
    shown = [row for row in found.rows if row.seen]
    for arm in ARMS:
        own = {row.feature: abs(row.coefficient) for row in shown if row.arm == arm}
        lines = [line[5:] for line in text.splitlines() if line.startswith(f"{arm}    ")]
        first, *features = [line.split("  ")[0] for line in lines]
        assert first == "1 (intercept)"
        assert {"1", *features} == own.keys()
        assert [own[name] for name in features] == sorted((own[name] for name in features), reverse=True)
    figure, sizes = found.plot(), dict[str, float]()
    for row in shown:
        sizes[row.feature] = max(sizes.get(row.feature, 0.0), abs(row.coefficient))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert {"1", *labels} == sizes.keys()
    assert [sizes[name] for name in labels] == sorted((sizes[name] for name in labels), reverse=True)
    assert f"{len(unseen)} coefficients of columns never seen" in figure.get_supxlabel()


def test_the_axis_is_that_of_the_coefficients() -> None:
    """Few rewards have wide intervals, which are cut and end in arrows; with many the axis ends where they do."""

    def axis(rounds: int) -> tuple[float, float, float, set[str]]:
        bandit, random = bandit_of(["x"], reward_range=(0, 1), floor=0.25), np.random.default_rng(1)
        for _ in range(rounds):
            x = random.uniform(-1, 1)
            bandit.tell(bandit.ask(context=[x]), float(random.random() < 0.5 + 0.5 * x))
        rows = [row for row in bandit.coefficients().rows if not row.intercept]
        figure = bandit.coefficients().plot()
        markers = {str(line.get_marker()) for axes in figure.axes for line in axes.lines}
        points, ends = (max(map(abs, each)) for each in ([r.coefficient for r in rows], [r.high for r in rows]))
        return points, ends, figure.axes[0].get_xlim()[1], markers

    points, ends, edge, markers = axis(30)
    assert ends > 3 * points
    assert edge == pytest.approx(1.06 * 2 * points)
    assert {"<", ">"} <= markers
    _, ends, edge, markers = axis(3_000)
    assert edge == pytest.approx(1.06 * ends)
    assert not {"<", ">"} & markers


def test_of_one_arm() -> None:
    bandit = bandit_of(reward_range=(0, 1), private=["device"])
    play(bandit, 100)
    found, everything = bandit.coefficients(arm="b"), bandit.coefficients()
    assert found.table() == [row for row in everything.table() if row["arm"] in ("b", "shared")]
    with pytest.raises(ValueError, match="arm must be one of 'a', 'b', 'c', got 'd'"):
        bandit.coefficients(arm="d")


def test_many_arms_have_few_lines_each() -> None:
    bandit = ra.Bandit(range(12), ra.UCB(C=0.1, estimator=ra.estimators.Linear(9)), seed=1)
    random = np.random.default_rng(1)
    for arm in range(12):
        bandit.tell(arm=arm, reward=random.random(), context=random.normal(size=9))
        bandit.tell(arm=arm, reward=random.random(), context=random.normal(size=9))
    text = str(bandit.coefficients())
    assert [sum(line.startswith(f"{arm} ") for line in text.splitlines()) for arm in range(12)] == [5] * 12
    assert "60 more coefficients not shown: frame() has all" in text


@pytest.mark.full
@pytest.mark.parametrize("standardise", [False, True])
def test_coverage_under_adaptive_choice(standardise: bool) -> None:
    """Looked at ten times, the coefficients of an arm are ever outside in 5% of runs at most, all of them at once."""
    runs, theta = 150, {"a": [0.5, 0.15, -0.1], "b": [0.45, -0.1, 0.2], "c": [0.3, 0.0, 0.0]}
    wrong = textbook = 0
    for seed in range(runs):
        bandit = bandit_of(["x", "y"], seed=seed, reward_range=(0, 1), standardise=standardise)
        random, missed, missed_too = np.random.default_rng([seed, 1]), False, False
        for _ in range(10):
            for _ in range(80):
                x = random.uniform(-1, 1, 2)
                decision = bandit.ask(context=x)
                mean = theta[decision.arm] @ np.array([1.0, *x])
                bandit.tell(decision, float(random.random() < mean))
            for row, truth in zip(bandit.coefficients().table()[1:3], theta["a"][1:], strict=True):
                missed |= row["low"] is not None and not row["per_unit_low"] <= truth <= row["per_unit_high"]
            missed_too |= abs(textbook_score(bandit, theta["a"])) > 1.96
        wrong, textbook = wrong + missed, textbook + missed_too
    allowed = 0.05 * runs + 4.5 * math.sqrt(0.05 * 0.95 * runs)
    assert wrong <= allowed
    assert standardise or textbook > allowed


def textbook_score(bandit: Any, theta: list[float]) -> float:
    """How many standard errors least squares of the first arm are from the truth, for its second coefficient."""
    X, rewards, _ = learned(bandit)
    chosen = X[:, 0] != 0
    X, rewards = X[chosen, :3], rewards[chosen]
    if len(X) < 30:
        return 0.0
    found, lost, *_ = np.linalg.lstsq(X, rewards)
    error = math.sqrt(float(lost[0]) / (len(X) - 3) * np.linalg.inv(X.T @ X)[1, 1])
    return (float(found[1]) - theta[1]) / error
