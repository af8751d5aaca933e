"""Exported logs, read back by the programs that they are for."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import read_by_obp
import rightarm as ra

ODD = "blue | sky: 5%"
LOG: dict[str, list[Any]] = {
    "arm": ["red", ODD, "red", "green", ODD],
    "propensity": [0.5, 0.25, 0.125, 0.7, 1 / 3],
    "reward": [1.0, 0.0, None, 0.25, -2.0],
}


def test_feedback_for_obp() -> None:
    feedback = ra.logs.to_obp(LOG, missing=0.5)
    assert feedback["arms"] == sorted(["red", "green", ODD])
    assert [feedback["arms"][i] for i in feedback["action"]] == LOG["arm"]
    assert feedback["reward"].tolist() == [1.0, 0.0, 0.5, 0.25, -2.0]
    assert feedback["pscore"].tolist() == LOG["propensity"]
    assert (feedback["n_rounds"], feedback["n_actions"]) == (5, 3)
    assert ra.logs.to_obp(LOG, arms=["red", "green", ODD, "new"])["n_rounds"] == 4
    assert feedback["action_context"].shape == (3, 3)


@pytest.mark.full
def test_obp_agrees(tmp_path: Path) -> None:
    try:
        python = read_by_obp.install(tmp_path / "environment")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"Open Bandit Pipeline cannot be installed: {error.stderr.strip()[-300:]}")
    random = np.random.default_rng(1)
    arms, law = random.choice(3, p=[0.5, 0.3, 0.2], size=500), [0.2, 0.2, 0.6]
    log = {"arm": arms, "propensity": np.array([0.5, 0.3, 0.2])[arms], "reward": random.random(500)}
    contexts = {"context": random.normal(size=(500, 4)), "arm_features": [[[1.0, 0.5], [2.0, 0.0], [0.0, 3.0]]] * 500}
    for one in (log, log | contexts):
        feedback = {name: np.array(v).tolist() for name, v in ra.logs.to_obp(one, arms=range(3)).items()}
        theirs = read_by_obp.estimates(python, feedback, law)
        rewards = np.clip(theirs["rewards"], 0.0, 1.0)
        ours = ra.evaluate(one, dict(enumerate(law)), arms=range(3), rewards=theirs["rewards"])
        assert rewards.tolist() == theirs["rewards"]  # which are between 0 and 1, so that nothing is cut
        estimates = [ours.ips, ours.snips, ours.dr]
        np.testing.assert_allclose([theirs["ipw"], theirs["snipw"], theirs["dr"]], estimates, rtol=1e-12)


CONTEXTS: dict[str, list[Any]] = {
    "arm": ["red", "blue", "red"],
    "propensity": [0.5, 0.25, 0.5],
    "reward": [1.0, 0.5, 0.0],
    "allowed": [["red", "blue"], ["blue", "red"], ["red"]],
    "context": [{"hour | UTC": 21.5, "_id": 0.0}, {"hour | UTC": -1e-7, "_id": 1.0}, {"hour | UTC": 0.0, "_id": 0.0}],
    "arm_features": [[[1.0, 2.0], [3.0, 0.0]], [[3.0, 0.0], [1.0, 2.0]], [[1.0, 2.0]]],
}


def test_feedback_with_features_for_obp() -> None:
    feedback = ra.logs.to_obp(CONTEXTS)
    assert feedback["context"].tolist() == [[21.5, 0.0], [-1e-7, 1.0], [0.0, 0.0]]
    assert feedback["action_context"].tolist() == [[3.0, 0.0], [1.0, 2.0]]
    changing = CONTEXTS | {"arm_features": [*CONTEXTS["arm_features"][:2], [[1.0, 2.5]]]}
    assert ra.logs.to_obp(changing)["action_context"].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert ra.logs.to_obp(CONTEXTS, arms=["red", "blue", "new"])["action_context"].tolist() == np.eye(3).tolist()


def test_features_as_text_for_vowpal_wabbit(tmp_path: Path) -> None:
    blue, red = "|arm blue |features x0:3.0", "|arm red |features x0 x1:2.0"
    assert ra.logs.to_vw(CONTEXTS, tmp_path / "log.txt").read_text() == (
        f"shared |context hour%20%7C%20UTC:21.5\n{blue}\n0:-1.0:0.5 {red}\n\n"
        f"shared |context hour%20%7C%20UTC:-1e-07 %5Fid\n0:-0.5:0.25 {blue}\n{red}\n\n"
        f"shared |context\n0:-0.0:0.5 {red}\n\n"
    )


@pytest.mark.parametrize("ending", ["dsjson", "txt"])
def test_vowpal_wabbit_reads_the_features(tmp_path: Path, ending: str) -> None:
    vw = pytest.importorskip("vowpalwabbit")
    text = ra.logs.to_vw(CONTEXTS, tmp_path / f"log.{ending}").read_text()
    texts = text.splitlines() if ending == "dsjson" else text.removesuffix("\n\n").split("\n\n")
    workspace = vw.Workspace("--cb_explore_adf --noconstant --quiet" + (" --dsjson" if ending == "dsjson" else ""))
    features = {
        "context": ["hour%20%7C%20UTC", "%5Fid"],
        "arm": ["red", "blue"],
        "features": ["x0", "x1"],
    }
    names = {
        workspace.hash_feature(name, workspace.hash_space(space)): (space, name)
        for space, some in features.items()
        for name in some
    }
    found = []
    for one in texts:
        examples = workspace.parse(one)
        found.append([read_features(example, names) for example in examples])
        workspace.learn(examples)
        workspace.finish_example(examples)
    workspace.finish()
    hour, number = ("context", "hour%20%7C%20UTC"), ("context", "%5Fid")
    blue = {("arm", "blue"): 1.0, ("features", "x0"): 3.0}
    red = {("arm", "red"): 1.0, ("features", "x0"): 1.0, ("features", "x1"): 2.0}
    expected = [[{hour: 21.5}, blue, red], [{hour: -1e-7, number: 1.0}, blue, red], [{}, red]]
    assert found == [[pytest.approx(one, rel=1e-6) for one in row] for row in expected]


def read_features(example: Any, names: dict[int, tuple[str, str]]) -> dict[tuple[str, str], float]:
    """The features of an example as Vowpal Wabbit read it, by namespace and name."""
    return {
        names[example.feature(space, i)]: example.feature_weight(space, i)
        for space in range(example.num_namespaces())
        for i in range(example.num_features_in(space))
    }


def test_features_are_called_as_in_the_policy_of_the_log(tmp_path: Path) -> None:
    features = ra.estimators.Features(numbers=["hour", "reward"], categories={"device": ["phone"]}, required=True)
    policy = ra.UCB(C=1.0, estimator=ra.estimators.Linear(features, arm_features=["price"]))
    with ra.Bandit(["red", "blue"], policy, log=tmp_path / "log.jsonl") as bandit:
        context = {"hour": 7, "reward": 3, "device": "phone"}
        bandit.tell(bandit.ask(context=context, arm_features={"red": [2.0], "blue": [5.0]}), 1.0)
    text = ra.logs.to_vw(tmp_path / "log.jsonl", tmp_path / "log.txt").read_text()
    assert text.startswith("shared |context hour:7.0 reward:3.0 device%3Dphone\n")
    assert "|arm red |features price:2.0\n" in text
    wide = ra.logs.read_log(tmp_path / "log.jsonl", features=True)
    assert wide["hour", "context reward", "device=phone", "device=other"].rows() == [(7.0, 3.0, 1.0, 0.0)]
    assert wide["reward"].to_list() == [1.0]
    assert "context" not in wide.columns
    wide.drop("allowed", "arm_features", strict=False).write_csv(tmp_path / "log.csv")
    assert ra.logs.read_table(tmp_path / "log.csv")["reward"].to_list() == [1.0]


def test_events_are_called_as_decisions_are(tmp_path: Path) -> None:
    def event_ids(log: Any) -> list[str]:
        return [
            json.loads(line)["EventId"] for line in ra.logs.to_vw(log, tmp_path / "log.dsjson").read_text().splitlines()
        ]

    with ra.logs.LogWriter(tmp_path / "log.jsonl") as log:
        for i in (17, 5, 9):
            log.decision(i, "red", 1.0, 1, 1, 1.0)
        log.reward(9, 1.0, 2.0)
        log.reward(17, 0.0, 2.0)
    assert event_ids(tmp_path / "log.jsonl") == event_ids(ra.logs.read_log(tmp_path / "log.jsonl")) == ["17", "9"]
    assert event_ids(LOG | {"id": [f"visit {i}" for i in range(5)]}) == ["visit 0", "visit 1", "visit 3", "visit 4"]
    assert event_ids(LOG) == ["1", "2", "3", "4"]


def labels(examples: Any, kind: Any) -> list[list[tuple[float, float]]]:
    """Cost and probability of every action of a row, as Vowpal Wabbit read it."""
    costs = [[(c.cost, c.probability) for c in one.get_label(kind).costs] for one in examples]
    return [own for own in costs if not own or own[0][1] >= 0]  # not the line that all actions share


@pytest.mark.parametrize("ending", ["dsjson", "txt"])
def test_vowpal_wabbit_reads_it(tmp_path: Path, ending: str) -> None:
    vw = pytest.importorskip("vowpalwabbit")
    path = ra.logs.to_vw(LOG, tmp_path / f"log.{ending}")
    texts = path.read_text().splitlines() if ending == "dsjson" else path.read_text().strip().split("\n\n")
    workspace = vw.Workspace("--cb_explore_adf --quiet" + (" --dsjson" if ending == "dsjson" else ""))
    names, kept = sorted(["red", "green", ODD]), [0, 1, 3, 4]
    assert len(texts) == len(kept)
    numbers = []
    for text, row in zip(texts, kept, strict=True):
        examples = workspace.parse(text)
        read, chosen = labels(examples, vw.LabelType.CONTEXTUAL_BANDIT), names.index(LOG["arm"][row])
        assert [len(own) for own in read] == [int(i == chosen) for i in range(3)]
        assert read[chosen] == [pytest.approx((-LOG["reward"][row], LOG["propensity"][row]), rel=1e-6)]
        numbers.append([one.get_feature_number() for one in examples[-3:]])
        workspace.learn(examples)
        workspace.finish_example(examples)
    assert numbers == [[2, 2, 2]] * len(kept)  # an arm is one feature, besides the constant
    workspace.finish()


@pytest.mark.parametrize("ending", ["dsjson", "txt"])
def test_vowpal_wabbit_learns_the_best_arm(tmp_path: Path, ending: str) -> None:
    vw = pytest.importorskip("vowpalwabbit")
    random = np.random.default_rng(2)
    arms = random.choice(3, p=[0.2, 0.2, 0.6], size=600)
    rewards = (random.random(600) < np.array([0.2, 0.9, 0.4])[arms]) * 1.0
    log = {"arm": np.array(["a", "b b", "c"])[arms].tolist(), "propensity": np.array([0.2, 0.2, 0.6])[arms]}
    path = ra.logs.to_vw(log | {"reward": rewards}, tmp_path / f"log.{ending}")
    options = "--dsjson" if ending == "dsjson" else ""
    workspace = vw.Workspace(f"--cb_explore_adf --epsilon 0.1 {options} --quiet")
    texts = path.read_text().splitlines() if ending == "dsjson" else path.read_text().strip().split("\n\n")
    for text in texts:
        workspace.learn(text)
    final = workspace.predict(texts[0])
    assert int(np.argmax(final)) == 1
    workspace.finish()


@pytest.mark.parametrize("ending", ["dsjson", "txt"])
def test_vowpal_wabbit_learns_the_best_arm_of_each_context(tmp_path: Path, ending: str) -> None:
    vw = pytest.importorskip("vowpalwabbit")
    random = np.random.default_rng(3)
    arms, phone = random.integers(2, size=800), random.integers(2, size=800)
    log = {"arm": arms, "propensity": [0.5] * 800, "reward": random.random(800) < 0.2 + 0.6 * (arms == phone)}
    features = ra.estimators.Features(categories={"device": ["tv", "phone"]}, required=True)
    contexts = features.encode_many([{"device": ["tv", "phone"][i]} for i in phone])
    path = ra.logs.to_vw(log | {"context": contexts}, tmp_path / f"log.{ending}")
    texts = path.read_text().splitlines() if ending == "dsjson" else path.read_text().strip().split("\n\n")
    options = "--dsjson" if ending == "dsjson" else ""
    workspace = vw.Workspace(f"--cb_explore_adf --epsilon 0.1 -q ca {options} --quiet")
    for text in texts:
        workspace.learn(text)
    chosen = [int(np.argmax(workspace.predict(text))) for text in texts[:50]]
    workspace.finish()
    assert chosen == phone[:50].tolist()


def test_arms_to_choose_among(tmp_path: Path) -> None:
    log = {"arm": [2, 3], "propensity": [0.5, 0.5], "reward": [1.0, 0.5], "allowed": [[1, 2], [3, 2]]}
    text = ra.logs.to_vw(log, tmp_path / "log.txt").read_text()
    assert text == "|arm 1\n0:-1.0:0.5 |arm 2\n\n|arm 2\n0:-0.5:0.5 |arm 3\n\n"


def test_wrong_endings() -> None:
    with pytest.raises(ValueError, match=r"path must end in .dsjson or .txt, got log.vw"):
        ra.logs.to_vw(LOG, "log.vw")
