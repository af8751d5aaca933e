"""Problems with contexts in experiment files: what a file gives, how it is run, and what is wrong with it."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import rightarm as ra
from rightarm.experiments.document import ExperimentError
from rightarm.experiments.executors import pack, unpack
from rightarm.experiments.file import read_experiment, read_text
from rightarm.reports.experiment_page import write_report
from rightarm.simulation.jobs import play_job

FILE = """
horizon = 60
replications = 6
seed = 4
checkpoints = [10, 60]

[problems.linear]
use = "LinearProblem"
theta = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]]
context = { use = "GaussianContext", columns = 2, sigma = [1.0, 2.0] }
noise = 0.5

[problems.sphere]
use = "LinearProblem"
theta = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
context = "SphereContext(3)"
noise = [0.1, 1.0]
offset = [0.5, 0.0]

[problems.data]
use = "Classification"
file = "data.csv"
label = "kind"

[policies.bge]
use = "BoltzmannGumbel"
C = [0.05, 0.2]
estimator = "Linear(columns)"

[policies]
plain = "UCB(C=0.5)"
"""
ROWS = [(0.5, 1.0, "cat"), (0.25, -1.0, "dog"), (1.5, 0.0, "cat"), (-1.0, 2.0, "eel"), (0.0, 0.0, "dog")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = "".join(f"{a},{b},{kind}\n" for a, b, kind in ROWS)
    (tmp_path / "data.csv").write_text(f"height,weight,kind\n{rows}")
    (tmp_path / "experiment.toml").write_text(FILE)
    return tmp_path / "experiment.toml"


def test_a_file_gives_problems_and_policies(path: Path) -> None:
    cells = read_experiment(path).cells
    assert len(cells) == (2 + 2 + 1) * 3
    problems = list(dict.fromkeys(cell.problem for cell in cells))
    theta = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]]
    assert problems[:2] == [
        ra.problems.LinearProblem(theta, context=ra.problems.GaussianContext(2, sigma=sigma), noise=0.5)
        for sigma in (1.0, 2.0)
    ]
    sphere = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert problems[2] == ra.problems.LinearProblem(
        sphere, context=ra.problems.SphereContext(3), noise=0.1, offset=[0.5, 0.0]
    )
    assert problems[4] == ra.problems.Classification([row[:2] for row in ROWS], [row[2] for row in ROWS])
    assert {cell.policy.estimator for cell in cells if cell.problem == problems[2]} == {
        ra.estimators.Linear(3),
        ra.estimators.Mean(),
    }


def test_it_is_run_read_and_reported(path: Path, tmp_path: Path) -> None:
    ra.experiments.run(path, tmp_path / "results")
    loaded = ra.experiments.load(tmp_path / "results")
    assert "best arm" not in str(loaded)  # which arm is the best depends on the context
    for cell in loaded:
        alone = ra.simulate(cell.policy, cell.problem, horizon=60, replications=6, seed=4, checkpoints=[10, 60])
        assert (cell.regret == alone.regret[0]).all()
        assert (cell.pulls == alone.pulls[0]).all()
        assert np.isnan(cell.means).all()
    assert loaded.frame["best_arm_share"].is_nan().all()
    page = write_report(loaded, tmp_path / "report.html").read_text()
    assert "LinearProblem" in page
    assert "by mean" not in page


def test_blocks_travel(path: Path) -> None:
    for cell in read_experiment(path).cells:
        [job] = cell.blocks()
        [there] = unpack(pack([job]))
        outcomes = [play_job(each, threading.Event(), lambda rounds: None) for each in (job, there)]
        assert (outcomes[0].regret == outcomes[1].regret).all()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("columns = 2,", "columns = 3,", "problems.linear: theta must have 3 coefficients"),
        ("columns = 2,", "columns = 0,", "problems.linear.context: columns must be a whole number of at least 1"),
        ("noise = 0.5", "noise = -0.5", "problems.linear.noise: must be non-negative, got -0.5"),
        ("noise = 0.5", "noice = 0.5", "problems.linear.noice: unknown parameter.*did you mean noise"),
        ("theta = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]]", "", "problems.linear.theta: is missing"),
        ('"SphereContext(3)"', '"SphereContex(3)"', "problems.sphere.context: unknown name SphereContex"),
        ('label = "kind"', 'label = "sort"', "problems.data.label: must be a column of the file, height, weight, kind"),
        ('label = "kind"', "", "problems.data.label: must be text.*it is missing"),
        ('file = "data.csv"', 'file = "other.csv"', "problems.data.file: .*other.csv"),
        ('file = "data.csv"', 'file = "data.txt"', "problems.data.file: must end in .csv or .parquet"),
        ('"Linear(columns)"', '"Linear(2)"', "policies.bge: .*for contexts of 2 columns.*have 3"),
        ('"UCB(C=0.5)"', '"UCB(C=gap)"', "policies.plain: gap is not known: problems.linear has contexts"),
        ('use = "Classification"', 'use = "Bernoulli"\nmean = [0.5]', "problems.data.file: unknown parameter"),
        ('"UCB(C=0.5)"', '"EXP3(gamma=0.1)"', "policies.plain: .*remembers gain"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(path: Path, before: str, after: str, message: str) -> None:
    assert before in FILE
    path.write_text(FILE.replace(before, after))
    with pytest.raises(ExperimentError, match=f"(?s){message}"):
        read_experiment(path)


def test_columns_are_those_of_contexts_only() -> None:
    text = 'horizon = 9\nproblems.a = "Bernoulli([0.5, 0.4])"\npolicies.b = "UCB(C=1.0, estimator=Linear(columns))"'
    with pytest.raises(ExperimentError, match=r"policies.b: columns is not known: problems.a has no contexts"):
        read_text(text)
