"""Figure 1: its grid, its sentences judged from numbers, its report and its pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rightarm as ra
from rightarm.cli import app
from rightarm.lab.paper import figure1 as lab
from rightarm.lab.paper.figure1 import STUDY, STYLES, claims, difference, draw, report

GRID = (0.001, 0.25, 100.0)


def test_the_grid_is_the_papers() -> None:
    cells = STUDY.experiment().cells
    grid = sorted({dict(cell.names)["c2"] for cell in cells})
    steps = np.diff(np.log10(grid))
    assert (grid[0], grid[-1], len(grid)) == (0.001, 100.0, 17)
    assert 0.25 in grid
    assert steps.max() < 1.1 * steps.min()  # even
    assert {cell.horizon for cell in cells} == {lab.PAPER_HORIZON}
    assert min(cell.replications for cell in cells) >= 32
    assert set(grid) > {dict(cell.names)["c2"] for cell in STUDY.experiment(quick=True).cells}


def point(scenario: str, algorithm: str, c2: float, mean: float, spread: float = 10.0) -> lab.Point:
    return lab.Point(scenario, algorithm, c2, mean + spread * np.array([-1.0, 1.0, -1.0, 1.0]))


def made_up(**means: float) -> lab.Points:
    """Points of a figure in which each algorithm has one mean regret throughout, or another one in (b)."""
    names = {"const": "BE-const", "log": "BE-log", "sqrt": "BE-sqrt"}
    cells = []
    for algorithm in (*STYLES, "BGE, location 0", "BGE, location −γ"):
        key = next((short for short, name in names.items() if name == algorithm), algorithm.split(",")[0].lower())
        for scenario in "ab":
            mean = means.get(f"{key}_{scenario}", means.get(key, 9_000.0))
            cells += [point(scenario, algorithm, c2, mean) for c2 in GRID]
    return lab.Points(cells)


PLAN = lab.Plan(1_000_000, 4, GRID, 1, (0.0,) + (0.01,) * 9)


def test_claims_follow_the_numbers() -> None:
    as_printed = made_up(sqrt_a=4_000, bge=1_500, ucb=1_600)
    assert [claim.holds for claim in claims(as_printed, PLAN)] == [True] * 6
    opposite = made_up(sqrt_a=9_000, const_b=1_000, bge=7_000, ucb=1_600)
    assert [claim.holds for claim in claims(opposite, PLAN)] == [False] * 6


def test_difference_in_standard_errors() -> None:
    x, y = point("a", "BGE", 0.25, 130.0), point("a", "UCB", 0.25, 100.0)
    error = np.std([-10.0, 10.0, -10.0, 10.0], ddof=1) / 2
    assert difference(x, y) == pytest.approx(30 / (error * np.sqrt(2)))
    exact = [point("a", "UCB", 0.25, mean, spread=0.0) for mean in (1.0, 2.0)]
    assert difference(exact[0], exact[0]) == 0.0
    assert difference(exact[1], exact[0]) == np.inf


def test_report_and_pictures(tmp_path: Path) -> None:
    points = made_up(bge=7_000, ucb=1_600)
    text = report(points, PLAN)
    assert "**does not agree**" in text
    assert "| agrees |" in text
    assert "BGE, location −γ" in text
    assert "| 7000 (6) |" in text
    draw(points, PLAN, tmp_path / "figure.png", tmp_path / "figure.svg")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "figure.svg").read_text()


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"rightarm {ra.__version__}\n"
