"""Figure 1: its plan, its numbers against plain simulation, its files, and that it goes on where it was killed."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rightarm.lab.archive import Archive
from rightarm.lab.driver import BLOCK
from rightarm.lab.figure1_report import claims, difference, report
from typer.testing import CliRunner

import rightarm as ra
from rightarm.cli import app
from rightarm.lab import figure1 as lab
from rightarm.lab.figure1_plot import draw

SMALL = lab.Plan(horizon=2_000, replications=6, grid=(0.001, 0.25, 100.0), seed=5)


def nothing(rounds: int) -> None:
    pass


def regrets(points: lab.Points) -> dict[tuple[str, str, float], list[float]]:
    return {cell: point.regret.tolist() for cell, point in points.cells.items()}


def test_the_grid_is_the_papers() -> None:
    plan = lab.full_plan()
    steps = np.diff(np.log10(plan.grid))
    assert plan.grid[0] == 0.001
    assert plan.grid[-1] == 100.0
    assert 0.25 in plan.grid
    assert steps.max() < 1.1 * steps.min()  # even
    assert plan.horizon == 1_000_000
    assert plan.replications >= 32
    assert plan.uniform == pytest.approx(9_000)


def test_points_equal_a_plain_simulation(tmp_path: Path) -> None:
    points = lab.compute(SMALL, tmp_path, 2, nothing)
    assert len(points.cells) == 2 * 7 * 3
    problem = ra.Bernoulli([0.51] + [0.5] * 9)
    corrupted = problem.corrupted(arm=0, rounds=5_000, reward=0.0)
    expected = {
        ("a", "BE-log"): ra.simulate(
            ra.Boltzmann(ra.inverse_log(0.25)), problem, horizon=2_000, replications=6, seed=5
        ),
        ("b", "BGE"): ra.simulate(ra.BoltzmannGumbel(C=0.5), corrupted, horizon=2_000, replications=6, seed=5),
        ("b", "UCB"): ra.simulate(ra.UCB(C=0.5), corrupted, horizon=2_000, replications=6, seed=5),
    }
    for (scenario, algorithm), result in expected.items():
        assert np.array_equal(points.at(scenario, algorithm).regret, result.regret[0, :, -1])


def test_more_replications_than_one_job_holds(tmp_path: Path) -> None:
    plan = lab.Plan(horizon=50, replications=BLOCK + 6, grid=(0.25,), seed=1)
    result = ra.simulate(ra.UCB(C=0.5), lab.SCENARIOS["a"], horizon=50, replications=BLOCK + 6, seed=1)
    points = lab.compute(plan, tmp_path, 2, nothing)
    assert np.array_equal(points.at("a", "UCB").regret, result.regret[0, :, -1])


def test_interrupted_it_goes_on_and_gives_the_same(tmp_path: Path) -> None:
    undisturbed = lab.compute(SMALL, tmp_path / "whole", 1, nothing)
    total = sum(job.rounds for job in lab.jobs(SMALL))
    done = 0

    def interrupt(rounds: int) -> None:
        nonlocal done
        done += rounds
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab.compute(SMALL, tmp_path / "cut", 1, interrupt)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cut" / "cells").glob("*.json")}
    assert 0 < len(kept) < len(lab.jobs(SMALL))
    continued = lab.compute(SMALL, tmp_path / "cut", 2, nothing)
    assert regrets(continued) == regrets(undisturbed)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing finished was computed again


def test_killed_it_goes_on(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from rightarm.lab import figure1 as lab;"
        "plan = lab.Plan(horizon=100_000, replications=6, grid=(0.001, 0.25, 100.0), seed=5);"
        f"lab.compute(plan, Path({str(tmp_path)!r}), 2, lambda rounds: None)"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    while process.poll() is None and len(list(tmp_path.glob("cells/*.json"))) < 5:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"
    plan = lab.Plan(horizon=100_000, replications=6, grid=(0.001, 0.25, 100.0), seed=5)
    archive = Archive(tmp_path / "cells")
    finished = [job for job in lab.jobs(plan) if archive.get(job) is not None]
    assert 5 <= len(finished) < len(lab.jobs(plan))
    subprocess.run([sys.executable, "-c", code], check=True)
    assert all(archive.get(job) is not None for job in lab.jobs(plan))


def test_an_outcome_belongs_to_all_that_determines_it(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    job = next(iter(lab.jobs(SMALL)))
    plans = [
        lab.Plan(2_001, 6, SMALL.grid, 5),
        lab.Plan(2_000, 7, SMALL.grid, 5),
        lab.Plan(2_000, 6, SMALL.grid, 6),
        lab.Plan(2_000, 6, (0.002, 0.25), 5),
    ]
    paths = {archive.path(next(iter(lab.jobs(plan)))) for plan in plans}
    assert len(paths | {archive.path(job)}) == len(plans) + 1


def point(scenario: str, algorithm: str, c2: float, mean: float, spread: float = 10.0) -> lab.Point:
    return lab.Point(scenario, algorithm, c2, mean + spread * np.array([-1.0, 1.0, -1.0, 1.0]))


def made_up(**means: float) -> lab.Points:
    """Points of a figure in which each algorithm has one mean regret throughout, or another one in (b)."""
    names = {"const": "BE-const", "log": "BE-log", "sqrt": "BE-sqrt"}
    cells = []
    for algorithm in lab.ALGORITHMS:
        key = next((short for short, name in names.items() if name == algorithm), algorithm.split(",")[0].lower())
        for scenario in "ab":
            mean = means.get(f"{key}_{scenario}", means.get(key, 9_000.0))
            cells += [point(scenario, algorithm, c2, mean) for c2 in SMALL.grid]
    return lab.Points(cells)


PLAN = lab.Plan(1_000_000, 4, SMALL.grid, 1)


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


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "quick_plan", lambda replications=6, seed=5: lab.Plan(500, replications, SMALL.grid, seed))
    outcome = CliRunner().invoke(
        app, ["reproduce", "figure1", "--quick", "--output", str(tmp_path / "new"), "--replications", "3"]
    )
    assert outcome.exit_code == 0, outcome.output
    assert sorted(os.listdir(tmp_path / "new")) == ["cells", "figure1.csv", "figure1.png", "figure1.svg", "report.md"]
    with (tmp_path / "new" / "figure1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 7 * 3
    assert {row["replications"] for row in rows} == {"3"}
    assert "500 rounds" in (tmp_path / "new" / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", [["--replications", "1"], ["--workers", "0"], ["--seed", "-1"]])
def test_command_line_refuses(option: list[str]) -> None:
    outcome = CliRunner().invoke(app, ["reproduce", "figure1", *option])
    assert outcome.exit_code == 2
    assert f"got {option[1]}" in re.sub(r"[\s│]+", " ", outcome.output)  # the box may break the line


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"rightarm {ra.__version__}\n"
