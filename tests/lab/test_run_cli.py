"""`rightarm run`, over stand-ins for the experiment's file and the folder of results."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import rightarm as ra
from rightarm.cli import app
from rightarm.lab.cells import Cell
from rightarm.simulation.jobs import Job, Outcome

CELLS = tuple(
    Cell(ra.UCB(C=C), ra.Bernoulli([0.6, 0.5]), 200, 40, 1, (200,), (("policy", "ucb"), ("C", C))) for C in (0.5, 1.0)
)


class Folder:
    """Remembers what was put into which folder."""

    put_there: dict[str, list[tuple[str, int]]]

    def __init__(self, folder: Path) -> None:
        self.there = self.put_there.setdefault(str(folder), [])

    @classmethod
    def open(cls, folder: Path, write: bool) -> Folder:
        return cls(folder)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def begin(self, cells: Sequence[Cell], experiment: str, title: str) -> None:
        assert (experiment, title) == ("text", "Two")

    def missing(self, cells: Iterable[Cell]) -> list[tuple[Cell, Job]]:
        return [(c, job) for c in cells for job in c.blocks() if (c.key, job.first) not in self.there]

    def put(self, found: Sequence[tuple[Cell, Job, Outcome]]) -> None:
        self.there += [(cell.key, job.first) for cell, job, _ in found]


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    Folder.put_there = {}
    experiment: Any = ModuleType("rightarm.lab.experiment")
    experiment.ExperimentError = type("ExperimentError", (ValueError,), {})

    def read(path: Path) -> Any:
        if path.name == "wrong.toml":
            raise experiment.ExperimentError("horizon must be a whole number, got 'x'")
        return SimpleNamespace(cells=CELLS, title="Two", text="text")

    experiment.read_experiment = read
    results: Any = ModuleType("rightarm.lab.results")
    results.Results = Folder
    monkeypatch.setitem(sys.modules, "rightarm.lab.experiment", experiment)
    monkeypatch.setitem(sys.modules, "rightarm.lab.results", results)
    return Folder.put_there


def test_run_and_run_again(folders: dict[str, Any]) -> None:
    done = CliRunner().invoke(app, ["run", "some/two.toml", "--workers", "2"])
    assert done.exit_code == 0, done.output
    assert "2 cells, 4 blocks of them played now\nwrote results/two" in done.output
    assert "Two: cells 2/2, 100%, " in done.output
    assert len(folders["results/two"]) == 4
    again = CliRunner().invoke(app, ["run", "some/two.toml"])
    assert "2 cells, 0 blocks of them played now" in again.output


def test_dry_run(folders: dict[str, Any], tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["run", "two.toml", "--output", str(tmp_path / "new"), "--dry-run", "--workers", "3"]
    )
    assert done.exit_code == 0, done.output
    assert "  policy ucb, C 0.5\n" in done.output
    assert "2 cells, 4 blocks and 16,000 rounds left: about 0 s on 3 workers" in done.output
    assert not folders


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["two.toml", "--processes", "--dask", "local"], "--processes and --dask exclude each other"),
        (["two.toml", "--dask", "tcp://127.0.0.1:1", "--workers", "2"], "are what they are; leave out --workers"),
        (["wrong.toml"], "horizon must be a whole number, got 'x'"),
    ],
)
def test_what_is_wrong_is_said(folders: dict[str, Any], arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["run", *arguments], env={"COLUMNS": "400"})
    assert done.exit_code == 2
    assert said in done.output
    assert not folders
