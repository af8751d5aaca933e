"""The report: one page that stands by itself, says what is there, and takes names for what they are."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs
from typer.testing import CliRunner

import rightarm as ra
from pages import Page
from rightarm.cli import app
from rightarm.experiments.cell import Cell
from rightarm.experiments.result_folder import ResultFolder
from rightarm.reports.charts import HERE, MOST_ARMS, SHOWN, Finals, difference, share_chart
from rightarm.reports.experiment_page import BOUND, report, write_report
from rightarm.simulation.jobs import Outcome

ROUNDS = (1, 10, 100)
EASY = ra.problems.Bernoulli([0.4, 0.6])
HOSTILE = "</script><script>alert(1)</script>"


def cell(policy: Any, name: str, problem: Any = EASY, where: str = "easy", n: int = 8, **swept: Any) -> Cell:
    return Cell(policy, problem, 100, n, 1, ROUNDS, (("problem", where), ("policy", name), *swept.items()))


def sweep() -> list[Cell]:
    cells = [cell(ra.UCB(C=C), "ucb", C=C) for C in (2.0, 0.5, 1.0)]
    return [*cells, cell(ra.BetaThompson(), "thompson")]


def fill(folder: Path, cells: Sequence[Cell], blocks: int | None = None, title: str = "Gaps") -> ra.experiments.Results:
    with ResultFolder.open(folder, write=True) as results:
        results.begin(cells, 'title = "as it was written"', title)
        for place, (own, job) in enumerate(results.missing(cells)[:blocks]):
            luck = np.random.default_rng([place, job.first])
            regret = np.cumsum(luck.random((job.replications, len(ROUNDS))), axis=1)
            pulls = luck.multinomial(own.horizon, [1 / own.problem.arms] * own.problem.arms, job.replications)
            results.put([(own, job, Outcome(regret, pulls))])
    return ra.experiments.load(folder)


def names(figure: dict[str, Any], visible: bool | None = None) -> list[str]:
    traces = [t for t in figure["data"] if "name" in t and visible in (None, t["visible"])]
    return [trace["name"] for trace in traces]


def test_the_page_has_everything(tmp_path: Path) -> None:
    text = report(fill(tmp_path, sweep()))
    page = Page(text)
    for words in ("Gaps", "Complete: every cell", 'title = "as it was written"', "Differences of final regret"):
        assert words in page.words
    for words in (
        "Machine and versions",
        "numba",
        "32 replications, 3,200 rounds",
        "arm 1 (mean 0.6)",
        "All pairs",
    ):
        assert words in page.words
    curves, against, shares = page.figures
    assert names(curves) == [
        "ucb, C=2",
        "ucb, C=0.5",
        "ucb, C=1",
        "thompson",
        BOUND,
    ]
    assert names(against) == ["ucb", "thompson"]
    assert against["data"][1]["x"] == [0.5, 1, 2]
    assert names(shares) == ["arm 1 (mean 0.6)", "arm 0 (mean 0.4)"]
    for figure in page.figures:
        go.Figure(figure)  # plotly knows every property
    assert len(page.identifiers) == len(set(page.identifiers))
    assert {target[1:] for target in page.targets} <= set(page.identifiers)
    assert report(ra.experiments.load(tmp_path)) == text  # the same again


def test_the_curves_are_the_results(tmp_path: Path) -> None:
    loaded = fill(tmp_path, sweep())
    band, line = Page(report(loaded)).figures[0]["data"][:2]
    regret = loaded[0].regret
    half = 1.96 * regret.std(axis=0, ddof=1) / np.sqrt(8)
    assert line["x"] == list(ROUNDS)
    assert line["y"] == pytest.approx(regret.mean(axis=0), rel=1e-4)
    assert line["customdata"] == pytest.approx(half, rel=1e-4)
    assert band["x"] == [1, 10, 100, 100, 10, 1]
    assert band["y"][:3] == pytest.approx(regret.mean(axis=0) + half, rel=1e-4)


def test_a_sweep_has_the_same_bands_and_its_numbers_do_not_collide(tmp_path: Path) -> None:
    values = (0.05, 0.1, 0.2, 0.21, 0.22, 0.25, 0.5, 1.0, 2.0)
    loaded = fill(tmp_path, [cell(ra.UCB(C=C), "ucb", C=C) for C in values])
    band, line = Page(report(loaded)).figures[1]["data"]
    ends = [loaded[i].regret[:, -1] for i in range(len(values))]
    half = np.array([1.96 * own.std(ddof=1) / np.sqrt(own.size) for own in ends])
    mean = np.array([own.mean() for own in ends])
    assert line["y"] == pytest.approx(mean, rel=1e-4)
    assert band["y"] == pytest.approx([*(mean + half), *(mean - half)[::-1]], rel=1e-4)
    axis = Page(report(loaded)).figures[1]["layout"]["xaxis"]
    assert axis["type"] == "log"
    assert axis["tickvals"] == [0.05, 0.1, 0.2, 0.5, 1.0, 2.0]
    assert axis["ticktext"] == ["0.05", "0.1", "0.2", "0.5", "1", "2"]


def test_shares_are_of_the_best_cell_of_each_policy(tmp_path: Path) -> None:
    loaded = fill(tmp_path, sweep())
    shares = Page(report(loaded)).figures[2]
    best = loaded.frame.filter(loaded.frame["policy"] == "ucb").sort("regret")["C"][0]
    assert sorted(shares["layout"]["yaxis"]["ticktext"]) == ["thompson", f"ucb, C={best:g}"]


def test_the_machine_is_not_read_as_a_formula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert "x86_64" in report(fill(tmp_path, sweep())).replace(get_plotlyjs(), "")


def test_light_and_dark_have_the_same_colours_by_name() -> None:
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    parts = style.split("@media (prefers-color-scheme: dark)")
    light, dark = (set(re.findall(r"(--[\w-]+):", part)) for part in parts)
    assert light == dark
    assert set(re.findall(r"var\((--[\w-]+)\)", style)) <= light
    assert {f"--{name}" for name in re.findall(r'colour\("(\w+)"\)', script)} <= light


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    text = report(fill(tmp_path, sweep()))
    library = get_plotlyjs()
    assert text.count(library) == 1
    rest = text.replace(library, "")
    assert "//" not in re.sub(r"^\s*//.*$|, // .*$|; // .*$", "", rest, flags=re.MULTILINE)  # but comments
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "img", "object", "base"}
    assert not [attributes for _, attributes in page.tags if "src" in attributes]
    for outside in ("@import", "url(", "fetch(", "XMLHttpRequest"):
        assert outside not in rest
    assert "showSendToCloud: false" in rest
    assert {trace["type"] for figure in page.figures for trace in figure["data"]} == {"scatter", "bar"}  # no maps


def test_the_page_does_not_tell_where_it_was_made(tmp_path: Path) -> None:
    rest = report(fill(tmp_path, sweep(), title="")).replace(get_plotlyjs(), "")
    assert f"<h1>{tmp_path.name}</h1>" in rest
    assert str(tmp_path.parent) not in rest
    assert str(Path.cwd()) not in rest
    assert os.uname().nodename not in rest
    assert sys.prefix not in rest


def test_hostile_names_are_only_names(tmp_path: Path) -> None:
    def hostile(C: float) -> dict[str, Any]:
        return {"<i>C": C}

    cells = [cell(ra.UCB(C=C), HOSTILE, where=f"<b>{HOSTILE}", **hostile(C)) for C in (0.5, 1.0)]
    cells.append(cell(ra.UCB1(), '"><img src=x onerror=alert(1)>', where=f"<b>{HOSTILE}"))
    page = Page(report(fill(tmp_path, cells, title=f"<h1>{HOSTILE}")))
    plain = Page(report(fill(tmp_path / "plain", sweep())))
    assert page.count("script") == len(page.figures) + 2 == plain.count("script")
    assert page.count("img") == page.count("b") == page.count("i") == 0
    assert page.count("h1") == 1
    assert HOSTILE in page.words
    assert "&lt;/script&gt;" in names(page.figures[0])[0]  # plotly.js takes it for characters


def test_unfinished_results_say_so(tmp_path: Path) -> None:
    cells = [replace(own, replications=40) for own in sweep()]
    empty = Page(report(fill(tmp_path, cells, blocks=0)))
    assert (
        "Not complete: replications are missing in 4 of 4 cells, 160 in all; of 4 cells there is nothing yet"
        in empty.words
    )
    assert empty.figures == []
    some = Page(report(fill(tmp_path, cells, blocks=3)))
    assert "Not complete: replications are missing in 3 of 4 cells, 88 in all; of 2 cells" in some.words
    assert "32 of 40" in some.words
    assert names(some.figures[0])[:2] == ["ucb, C=2", "ucb, C=0.5"]


def test_many_cells_stay_readable(tmp_path: Path) -> None:
    cells = [cell(ra.UCB(C=(i + 1) / 10), "ucb", n=2, C=(i + 1) / 10) for i in range(100)]
    cells += [cell(ra.UCB1(), "ucb1", ra.problems.Bernoulli([0.5, 0.1 + i / 50]), "swept", 2, gap=i) for i in range(15)]
    page = Page(report(fill(tmp_path, cells)))
    curves = page.figures[0]
    assert len(names(curves)) == 101
    assert len([name for name in names(curves, True) if name.startswith("ucb")]) == SHOWN
    assert "The lowest 12 of 100 curves are shown; the legend has the others" in page.words
    ends = {t["name"]: t["y"][-1] for t in curves["data"] if t.get("name", "").startswith("ucb")}
    assert set(sorted(ends, key=ends.__getitem__)[:SHOWN]) == set(names(curves, True)) & set(ends)
    assert page.words.count("ucb1") >= 15  # the table has all
    folded = [attributes for tag, attributes in page.tags if tag == "details" and attributes.get("class") == "more"]
    assert len(folded) == 16 - 12


def test_corners(tmp_path: Path) -> None:
    law = ra.problems.RandomProblem(ra.problems.Bernoulli, mean=ra.problems.Uniform(low=[0.0] * 3, high=1.0))
    cells = [cell(ra.UCB1(), "one", law, "random", 1), cell(ra.BetaThompson(), "other", law, "random", 1)]
    page = Page(report(fill(tmp_path, cells)))  # one replication, so no errors; no bound; no fixed arms
    assert names(page.figures[0]) == ["one", "other"]
    assert names(page.figures[1]) == ["best arm", "arm 2 by mean", "arm 3 by mean"]
    assert "nan" not in page.words.lower()


def test_few_arms_have_colours_and_the_rest_is_together() -> None:
    chart = share_chart("shares", ["a"], [np.full(50, 0.02)], [f"arm {i}" for i in range(50)])
    assert len(chart.traces) == MOST_ARMS + 1
    assert chart.traces[-1]["name"] == "the other 30 arms"
    assert chart.traces[-1]["x"] == [pytest.approx(0.6)]


def test_differences_are_paired() -> None:
    luck = np.random.default_rng(1)
    common = 100 * luck.random(50)
    one = Finals("one", np.arange(50), common + luck.random(50))
    other = Finals("other", np.arange(10, 50), common[10:])
    gap = difference(one, other)
    own = one.regret[10:] - common[10:]
    assert (gap.mean, gap.error) == pytest.approx((own.mean(), own.std(ddof=1) / np.sqrt(40)))
    assert gap.pairs == 40
    assert gap.z == pytest.approx(gap.mean / gap.error)
    assert difference(one, Finals("none", np.arange(60, 62), np.zeros(2))).pairs == 0
    assert np.isnan(difference(one, one).z)


def test_the_command(tmp_path: Path) -> None:
    loaded = fill(tmp_path / "some", sweep())

    def run(*arguments: object) -> Any:
        return CliRunner().invoke(app, ["report", *map(str, arguments)], env={"COLUMNS": "400"})

    assert run(tmp_path / "some").output == f"wrote {tmp_path / 'some' / 'report.html'}\n"
    output = tmp_path / "new" / "x.html"
    assert run(tmp_path / "some", "--output", output).exit_code == 0
    assert output.read_bytes() == write_report(loaded, tmp_path / "y.html").read_bytes()
    assert "output must end in .html, got x.pdf" in run(tmp_path / "some", "--output", "x.pdf").output
    assert "there is no folder" in run(tmp_path / "nowhere").output
