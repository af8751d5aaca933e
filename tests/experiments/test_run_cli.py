"""`rightarm run`: a small experiment, again, dry, and with mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rightarm as ra
from rightarm.cli import app

TWO = """
title = "Two"
horizon = 200
replications = 40

[problems.near]
use = "Bernoulli"
mean = [0.6, 0.5]

[policies.ucb]
use = "UCB"
C = [0.5, 1.0]
"""


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "two.toml"
    path.write_text(TWO)
    return path


def test_run_and_run_again(two: Path) -> None:
    done = CliRunner().invoke(app, ["run", str(two), "--workers", "2"])
    assert done.exit_code == 0, done.output
    assert "2 cells are complete; blocks of replications computed now: 4\nwrote results/two" in done.output
    assert "Two: cells 2/2, 100%, " in done.output
    again = CliRunner().invoke(app, ["run", str(two)])
    assert "2 cells are complete; blocks of replications computed now: 0" in again.output
    loaded = ra.experiments.load("results/two")
    assert loaded.is_complete
    expected = ra.simulate(ra.UCB(C=0.5), ra.problems.Bernoulli([0.6, 0.5]), horizon=200, replications=40, seed=0)
    assert (loaded[0].regret == expected.regret[0]).all()


def test_dry_run(two: Path) -> None:
    done = CliRunner().invoke(app, ["run", str(two), "--dry-run"])
    assert done.exit_code == 0, done.output
    assert "problem near, policy ucb, C 0.5" in done.output
    assert "2 cells, 4 blocks and 16,000 rounds left: about 0 s on " in done.output
    assert not Path("results").exists()


def test_the_papers_experiments_are_known_by_name(two: Path) -> None:
    done = CliRunner().invoke(app, ["run", "theorem2", "--dry-run"])
    assert done.exit_code == 0, done.output
    assert "rounds left: about" in done.output
    unknown = CliRunner().invoke(app, ["run", "theorem1"], env={"COLUMNS": "400"})
    assert unknown.exit_code == 2
    assert "there is no file theorem1; the paper's experiments are" in unknown.output


def test_from_python(two: Path) -> None:
    loaded = ra.experiments.run(two, workers=2)
    assert loaded.folder == Path("results/two")
    assert loaded.is_complete
    expected = ra.simulate(ra.UCB(C=1.0), ra.problems.Bernoulli([0.6, 0.5]), horizon=200, replications=40, seed=0)
    np.testing.assert_array_equal(loaded.one(C=1.0).regret, expected.regret[0])
    parts = set(Path("results/two/parts").iterdir())
    assert ra.experiments.run(str(two), output="results/two", progress=True).is_complete
    assert set(Path("results/two/parts").iterdir()) == parts
    two.write_text(TWO + "[quick]\nhorizon = 50\n")
    assert ra.experiments.run(two, quick=True)[0].horizon == 50
    assert Path("results/two-quick").is_dir()
    with pytest.raises(ValueError, match="dask must be 'local' or the address of a scheduler"):
        ra.experiments.run(two, dask="loca")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dask", "loca"], "dask must be 'local' or the address of a scheduler, as tcp://10.0.0.1:8786, got 'loca'"),
        (
            ["--dask", "tcp://localhost:1", "--workers", "2"],
            "workers must be left out, the scheduler at tcp://localhost",
        ),
        (["--quick"], "quick: is missing; a file that can be run quickly has a table [quick]"),
    ],
)
def test_what_is_wrong_is_said(two: Path, arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["run", str(two), *arguments], env={"COLUMNS": "400"})
    assert done.exit_code == 2
    assert said in done.output


def test_what_is_wrong_in_the_file_is_said(two: Path) -> None:
    two.write_text(TWO.replace("horizon = 200", 'horizon = "x"'))
    done = CliRunner().invoke(app, ["run", str(two)], env={"COLUMNS": "400"})
    assert done.exit_code == 2
    assert "horizon" in done.output
    assert not Path("results").exists()
