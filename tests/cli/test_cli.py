"""`rightarm evaluate` and `rightarm replay`; and how commands end that cannot go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import rightarm as ra
from rightarm.cli import app
from rightarm.cli.policy_commands import every_policy
from rightarm.policies.policy import PolicyFamily
from rightarm.policies.text import families

COLUMNS = ["--arm", "item", "--propensity", "p", "--reward", "click"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    random = np.random.default_rng(7)
    items = random.integers(3, size=400)
    rewards = (random.random(400) < 0.2 + 0.2 * items) * 1.0
    path = tmp_path / "log.csv"
    pl.DataFrame({"item": items, "p": np.full(400, 1 / 3), "click": rewards}).write_csv(path)
    return path


def test_columns_of_a_table_are_contexts(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    items, hours = random.integers(2, size=300), random.integers(24, size=300)
    rewards = ((hours < 12) == (items == 1)) * 1.0
    columns = {"item": items, "p": np.full(300, 0.5), "click": rewards, "hour": hours, "device": ["a", "b", None] * 100}
    pl.DataFrame(columns).write_csv(tmp_path / "log.csv")
    context = ["--context", "hour", "--context", "device"]
    names = {"arm": "item", "propensity": "p", "reward": "click"}
    plain = str(ra.evaluate(ra.logs.read_table(tmp_path / "log.csv", **names), "uniform"))
    informed = str(
        ra.evaluate(ra.logs.read_table(tmp_path / "log.csv", **names, context=["hour", "device"]), "uniform")
    )
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "log.csv"), "--policy", "uniform", *COLUMNS, *context])
    assert done.output == informed + "\n" != plain + "\n"


def test_both_say_what_the_library_says(table: Path) -> None:
    frame = ra.logs.read_table(table, arm="item", propensity="p", reward="click")
    done = CliRunner().invoke(
        app, ["evaluate", str(table), "--policy", "uniform", "--policy", "Boltzmann(0.1)", *COLUMNS, "--floor", "0.3"]
    )
    assert done.exit_code == 0, done.output
    law = CliRunner().invoke(app, ["evaluate", str(table), "--policy", '{"0": 0.25, "2": 0.75}', *COLUMNS])
    assert str(ra.evaluate(frame, {0: 0.25, 2: 0.75})) in law.output
    for policy in ("uniform", ra.Boltzmann(0.1)):
        assert str(ra.evaluate(frame, policy, floor=0.3)) in done.output
    done = CliRunner().invoke(app, ["replay", str(table), "--policy", "UCB(C=0.5)", *COLUMNS, "--seed", "3"])
    assert done.exit_code == 0, done.output
    assert str(ra.evaluation.replay(frame, ra.UCB(C=0.5), seed=3)) in done.output


def test_an_arm_stands_for_always_this_arm(table: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["evaluate", str(table), "--policy", "2", *COLUMNS])
    assert (
        done.output == str(ra.evaluate(ra.logs.read_table(table, arm="item", propensity="p", reward="click"), 2)) + "\n"
    )
    named = {"arm": ["large", "UCB1"] * 200, "propensity": [0.5] * 400, "reward": [0.0, 1.0] * 200}
    pl.DataFrame(named).write_csv(tmp_path / "named.csv")
    runs: dict[str, Callable[..., Any]] = {"evaluate": ra.evaluate, "replay": ra.evaluation.replay}
    for command, run in runs.items():
        done = CliRunner().invoke(app, [command, str(tmp_path / "named.csv"), "--policy", "large", "--policy", "UCB1"])
        assert done.output == f"{run(named, 'large')}\n{run(named, 'UCB1')}\n"


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet"])
def test_logs_of_rightarm(tmp_path: Path, name: str) -> None:
    with ra.logs.LogWriter(tmp_path / "log.jsonl") as log:
        for i in range(4):
            log.decision(i, "ab"[i % 2], 0.5, i + 1, i, 1.0)
            log.reward(i, 2.0 * (i % 2), 1.0)
    if name != "log.jsonl":
        ra.logs.convert_log(tmp_path / "log.jsonl", tmp_path / name)
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / name), "--policy", "uniform", "--range", "0", "2"])
    assert done.exit_code == 0, done.output
    assert "doubly robust" in done.output
    assert "warning: the effective sample size is 4.0, of 4 rows" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policy", "Nobody"], "unknown policy Nobody"),
        (["--policy", "Nobody"], "and 'Nobody' is no arm of the log, which are 0, 1, 2"),
        (["--policy", '{"0": 1'], 'policy must be JSON if it begins with a brace, got {"0": 1'),
        (["--policy", "uniform", "--arm", "thing"], "got 'thing'"),
        (["--policy", "uniform", "--confidence", "2"], "confidence must be between 0 and 1, got 2.0"),
        ([], "Missing option '--policy'"),
    ],
)
def test_what_is_wrong_is_said(table: Path, arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["evaluate", str(table), *COLUMNS, *arguments], env={"COLUMNS": "400"})
    assert done.exit_code == 2
    assert said in done.output


def test_logs_are_converted(tmp_path: Path) -> None:
    lines, packed, again = (tmp_path / name for name in ("log.jsonl", "log.parquet", "again.jsonl"))
    with ra.logs.LogWriter(lines) as log:
        log.decision(1, "red", 0.5, round=1, version=0, time=1_700_000_000.0)
    for source, target in ((lines, packed), (packed, again)):
        done = CliRunner().invoke(app, ["convert", str(source), str(target)])
        assert done.exit_code == 0, done.output
    assert again.read_bytes() == lines.read_bytes()


def test_replay_begins_with_the_same_seed_as_the_library(table: Path) -> None:
    frame = ra.logs.read_table(table, arm="item", propensity="p", reward="click")
    done = CliRunner().invoke(app, ["replay", str(table), "--policy", "BoltzmannGumbel(C=0.5)", *COLUMNS])
    assert str(ra.evaluation.replay(frame, ra.BoltzmannGumbel(C=0.5))) in done.output
    assert str(ra.evaluation.replay(frame, ra.BoltzmannGumbel(C=0.5), seed=2017)) not in done.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["results", "nowhere"],
        ["plot", "nowhere"],
        ["report", "nowhere"],
        ["run", "nowhere.toml"],
        ["evaluate", "nowhere.csv", "--policy", "uniform"],
        ["replay", "nowhere.jsonl", "--policy", "uniform"],
        ["compare", "Nobody"],
        ["policies", "Nobody"],
        ["problems", "Nobody"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_is_wrong_is_one_line(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    (line,) = done.output.splitlines()
    assert line.startswith("rightarm: ")
    assert "nowhere" in line or "Nobody" in line


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(app, ["compare", "UCB1", "--output", str(tmp_path / "file" / "regret.png")])
    assert done.exit_code == 1
    (line,) = done.output.splitlines()
    assert line.startswith("rightarm: ")


def test_all_shipped_experiments_are_named() -> None:
    text = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "200"}).output
    for name in ("figure1", "proposition1", "theorem2", "theorem6", "corollary1", "heavy-tails"):
        assert name in text


def test_a_missing_file_is_one_line_and_a_traceback_is_there_for_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = CliRunner().invoke(app, ["evaluate", "nowhere.jsonl", "--policy", "uniform"])
    assert (outcome.exit_code, outcome.output) == (2, "rightarm: nowhere.jsonl: No such file or directory\n")
    outcome = CliRunner().invoke(app, ["run", "theorem9"])
    assert outcome.exit_code == 2
    assert "there is no file theorem9; the paper's experiments are glie, " in outcome.output
    monkeypatch.setenv("RIGHTARM_TRACEBACK", "1")
    assert isinstance(CliRunner().invoke(app, ["run", "theorem9"]).exception, ValueError)


def test_warm_compiles_the_policies_that_it_is_given() -> None:
    done = CliRunner().invoke(app, ["warm", "UCB(C=0.5)", "BetaThompson"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert done.output.startswith("UCB(C=0.5)\nBetaThompson()\npolicies ready: 2, problems: 0; ")
    assert CliRunner().invoke(app, ["warm", "Nonsense"]).exit_code == 2


def test_warm_knows_every_policy_and_schedule() -> None:
    """By what is compiled: families, and among their members schedules and laws of noise."""
    texts = {str(policy) for policy in every_policy()}
    assert {policy.family.name for policy in every_policy()} == set(families(PolicyFamily))
    assert {"Boltzmann(temperature=0.5)", "Boltzmann(glie())", "PerturbedMean(Uniform())"} <= texts
    assert len(texts) == len(every_policy())
