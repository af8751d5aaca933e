"""The experiment files that come with the library say what the reproductions in Python say."""

from __future__ import annotations

from typing import Any

import pytest

from rightarm.lab import cells, figure1, study
from rightarm.lab.experiment import SHIPPED, read_experiment
from rightarm.lab.studies import STUDIES


def described(cell: cells.Cell | study.Cell, seed: int) -> tuple[Any, ...]:
    return cell.policy, cell.problem, cell.horizon, cell.checkpoints, cell.replications, seed, cell.start


@pytest.mark.parametrize("name", ["figure1", *(study.name for study in STUDIES)])
def test_a_shipped_file_has_the_cells_of_its_reproduction(name: str) -> None:
    plan = figure1.full_plan()
    own = figure1.cells(plan) if name == "figure1" else {s.name: s for s in STUDIES}[name].cells(False)
    read = read_experiment(SHIPPED / f"{name}.toml")
    assert {described(cell, cell.seed) for cell in read.cells} == {described(cell, plan.seed) for cell in own.values()}
    assert len(read.cells) == len(own)
    assert len({cell.key for cell in read.cells}) == len({cell.names for cell in read.cells}) == len(own)


def test_every_shipped_file_belongs_to_a_reproduction() -> None:
    assert {path.stem for path in SHIPPED.glob("*.toml")} == {"figure1", *(study.name for study in STUDIES)}
