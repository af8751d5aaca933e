"""Figure 1: its grid, its sentences judged from numbers, its report and its pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import rightarm as ra
from rightarm.cli import app
from rightarm.paper import figure1 as lab
from rightarm.paper.evidence import Verdict
from rightarm.paper.figure1 import STYLES, best_half, claims, draw, guaranteed, report
from rightarm.paper.finding import study_of
from rightarm.simulation.panels import Curve

GRID = (0.001, 0.25, 100.0)
STUDY = study_of("figure1")


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


HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


def curve(algorithm: str, *means: float, spread: float = 10.0) -> Curve:
    """A curve over the grid whose replications lie about these means."""
    luck = spread * np.tile([-1.0, -1.0, 1.0, 1.0], 4)
    return Curve.of(algorithm, np.array(GRID), np.array(means) + luck[:, None])


def made_up(spread: float = 10.0, **means: float) -> lab.Curves:
    """Curves in which each algorithm has one mean regret throughout, or another in (b), or at C² = 1/4 ("at")."""
    names = {"const": "BE-const", "log": "BE-log", "sqrt": "BE-sqrt"}
    curves = {}
    for algorithm in (*STYLES, "BGE, location 0", "BGE, location −γ"):
        key = next((short for short, name in names.items() if name == algorithm), algorithm.split(",")[0].lower())
        for scenario in "ab":
            mean = means.get(f"{key}_{scenario}", means.get(key, 9_000.0))
            there = means.get(f"{key}_at", mean)
            curves[scenario, algorithm] = curve(
                algorithm, *(there if c2 == 0.25 else mean for c2 in GRID), spread=spread
            )
    return curves


PLAN = lab.FigurePlan(1_000_000, 16, GRID, 1, (0.0,) + (0.01,) * 9)


def test_claims_follow_the_numbers() -> None:
    as_printed = made_up(sqrt_a=4_000, bge=1_500, ucb=1_600)
    assert [claim.verdict for claim in claims(as_printed, PLAN)] == [HOLDS] * 11
    opposite = made_up(sqrt_a=9_000, const_b=1_000, bge=7_000, bge_at=12_000, ucb=1_600)
    assert [claim.verdict for claim in claims(opposite, PLAN)] == [FAILS] * 11
    noise = made_up(spread=20_000.0, sqrt_a=4_000, bge=1_500, ucb=1_600)
    assert {claim.verdict for claim in claims(noise, PLAN)} <= {OPEN, HOLDS}
    assert sum(claim.verdict is OPEN for claim in claims(noise, PLAN)) >= 3


def test_each_word_has_its_edge() -> None:
    """“Comparable” and “notably well” are 1.5 times, “outperforming” is less, “fail” is 90% of a uniform choice."""
    behind = [claim.verdict for claim in claims(made_up(sqrt_a=4_000, bge=1_700, ucb=1_600), PLAN)]
    assert behind[3:7] == [HOLDS, HOLDS, FAILS, FAILS]
    far = [claim.verdict for claim in claims(made_up(sqrt_a=4_000, bge=1_500, bge_at=2_400, ucb=1_600), PLAN)]
    assert far[7:] == [FAILS, FAILS, FAILS, FAILS] or far[7:] == [FAILS, FAILS, OPEN, OPEN]
    fails = [claim.verdict for claim in claims(made_up(log_b=8_000.0, bge=1_500, ucb=1_600), PLAN)]
    assert fails[1] is FAILS


def test_a_smaller_version_cannot_tell() -> None:
    small = replace(PLAN, horizon=200_000)
    points = made_up(sqrt_a=4_000, bge=1_500, ucb=1_600)
    assert {claim.verdict for claim in claims(points, small)} == {OPEN}
    assert "it cannot tell" in report(points, small)


def test_no_guarantee_speaks_of_the_figure() -> None:
    for plan in (PLAN, replace(PLAN, horizon=200_000)):
        claim = guaranteed(plan)
        assert claim.verdict is FAILS
        assert "Theorem 4 promises 83,5" in claim.evidence
        assert "Corollary 1 728,141" in claim.evidence
    assert guaranteed(replace(PLAN, gaps=(0.0, 0.9))).verdict is HOLDS


def test_the_best_is_chosen_by_one_half_and_judged_by_the_other() -> None:
    lucky = np.tile([0.0, 1_000.0], 8)  # the best by its even replications
    others = np.full(16, 400.0)
    samples = np.stack([others, lucky, others], axis=1)
    found = best_half({("a", "BGE"): Curve.of("BGE", np.array(GRID), samples)}, "a", "BGE")
    assert (found.c2, found.regret.mean()) == (0.25, 1_000.0)


def test_report_and_pictures(tmp_path: Path) -> None:
    points = made_up(bge=7_000, ucb=1_600)
    text = report(points, PLAN)
    assert "| fails |" in text
    assert "| holds |" in text
    assert all(criterion in text for criterion in STUDY.criteria)
    assert "BGE, location −γ" in text
    assert "| 7000 (3) |" in text
    draw(points, PLAN, tmp_path / "figure.png", tmp_path / "figure.svg")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "figure.svg").read_text()


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"rightarm {ra.__version__}\n"
