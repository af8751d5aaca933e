"""From the command to the page: run and reproduce share a folder, and the page stands by itself."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs
from typer.testing import CliRunner

import rightarm as ra
from pages import Page
from rightarm.cli import app
from rightarm.experiments.file import Experiment, read_experiment
from rightarm.experiments.result_folder import ResultFolder
from rightarm.paper import STUDIES
from rightarm.paper.evidence import Verdict
from rightarm.paper.finding import Study
from rightarm.paper.reproducing import PAPER
from rightarm.reports.charts import mathematics

COMMAND = ["reproduce", "all", "--quick", "--replications", "16"]


def smaller(path: Path, quick: bool = False) -> Experiment:
    """Figure 1 with few rounds, which are too many else; all other files as they are."""
    read = read_experiment(path, quick)
    if path.stem != "figure1":
        return read
    return replace(read, cells=tuple(replace(cell, horizon=2_000, checkpoints=(2_000,)) for cell in read.cells))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The results of the quick version of everything."""
    folder = tmp_path_factory.mktemp("all")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rightarm.paper.finding.read_experiment", smaller)
        outcome = CliRunner().invoke(app, [*COMMAND, "--strict", "--output", str(folder)])
        assert outcome.exit_code == 1, outcome.output  # Figure 1 is not predicted by the guarantees
        for study in STUDIES:
            begin = rf"^{study.name}: (as printed fails|as printed cannot tell|statement|holds|fails|cannot tell)[: ]"
            assert re.search(begin, outcome.output, re.MULTILINE), study.name
        yield folder


def page_text(text: str) -> str:
    """The beginning of a text as the words of a page have it, subscripts and all."""
    return re.split(r"[_^]", text)[0].strip()


def test_the_page_is_whole(undisturbed: Path) -> None:
    page = Page((undisturbed / "all-quick.html").read_text(encoding="utf-8"))
    assert len(page.identifiers) == len(set(page.identifiers))
    targets = [target for target in page.targets if target.startswith("#")]
    assert {target[1:] for target in targets} <= set(page.identifiers)
    assert page.identifiers == [study.name for study in STUDIES]
    words = " ".join(page.words.split())
    for study in STUDIES:
        assert words.count(study.title) >= 2, "in the overview, and over its section"
    assert words.count("16 replications") >= len(STUDIES)
    assert words.count("What decides") == len(STUDIES)
    for study in STUDIES:
        assert words.index(study.title) < words.index(page_text(study.criteria[-1]))
    assert len(page.figures) >= 2 * len(STUDIES)
    for figure in page.figures:
        go.Figure(figure)  # plotly knows every property
    assert words.count("Growth curve") == 4
    assert words.count("As the paper prints it:") == 2
    assert words.count("In the paper’s proof:") == 1
    assert "rightarm reproduce all --quick --replications 16" in words
    assert re.search(r"numpy \d", words)
    assert "A quick look: smaller than the paper’s setting" in words


def test_the_page_needs_nothing_from_elsewhere(undisturbed: Path) -> None:
    text = (undisturbed / "all-quick.html").read_text(encoding="utf-8")
    library = get_plotlyjs()
    assert text.count(library) == 1
    rest = text.replace(library, "")
    assert re.findall(r"https?://[^\s\"<]+", rest) == [PAPER]
    for outside in (" src=", "<link", "@import", "<iframe", "url(", "fetch("):
        assert outside not in rest


def test_points(undisturbed: Path) -> None:
    rows = (undisturbed / "all-quick.csv").read_text(encoding="utf-8").splitlines()
    points = sum(len(cell.checkpoints) for study in STUDIES for cell in study.experiment(quick=True).cells)
    assert len(rows) == points + 1
    assert rows[0].startswith("study,policy,problem,round,replications,mean_regret,")


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_the_folder_is_that_of_an_experiment(undisturbed: Path, study: Study) -> None:
    folder = undisturbed / f"{study.name}-quick"
    parts = set((folder / "parts").iterdir())
    loaded = ra.experiments.load(folder)
    assert loaded.is_complete
    assert loaded.title == study.title
    command = ["reproduce", study.name, "--quick", "--strict", "--replications", "16", "--output", str(folder)]
    outcome = CliRunner().invoke(app, command)
    found = study.judge(loaded).of_quick()
    assert outcome.exit_code == {Verdict.HOLDS: 0, Verdict.FAILS: 1, Verdict.OPEN: 3}[found.verdict], outcome.output
    stated = re.findall(
        r"^(?:holds|fails|cannot tell)  +(?:as printed: |in the proof: )?", outcome.output, re.MULTILINE
    )
    assert len(stated) == len(found.claims) + len(found.printed) + len(found.proof)
    assert set((folder / "parts").iterdir()) == parts  # nothing was computed again
    assert Page((folder / f"{study.name}.html").read_text(encoding="utf-8")).identifiers == [study.name]
    assert str(loaded) + "\n" == CliRunner().invoke(app, ["results", str(folder)]).output


def test_run_finds_what_reproduce_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["reproduce", "theorem2", "--quick"])
    assert done.exit_code == 0, done.output  # though a quick run does not tell that growth is linear
    assert "wrote results/theorem2-quick/theorem2.html" in done.output
    again = CliRunner().invoke(app, ["run", "theorem2", "--quick"])
    assert "7 cells are complete; blocks of replications computed now: 0\nwrote results/theorem2-quick" in again.output
    dry = CliRunner().invoke(app, ["run", "theorem2", "--quick", "--dry-run"])
    assert "7 cells, 0 blocks and 0 rounds left" in dry.output


def test_figure1_has_its_own_files(undisturbed: Path) -> None:
    folder = undisturbed / "figure1-quick"
    names = {path.name for path in folder.iterdir()}
    assert {"figure1.csv", "figure1.png", "figure1.svg", "report.md"} <= names
    with (folder / "figure1.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 7 * 9
    assert {row["replications"] for row in rows} == {"16"}
    assert "2,000 rounds" in (folder / "report.md").read_text(encoding="utf-8")


def test_interrupted_it_says_how_to_go_on_and_gives_the_same(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, kept = ResultFolder.put, 0

    def interrupt(results: ResultFolder, pieces: Any) -> None:
        nonlocal kept
        if kept == 2:
            raise KeyboardInterrupt
        kept += 1
        put(results, pieces)

    command = ["reproduce", "theorem5", "--quick", "--replications", "16", "--output", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(ResultFolder, "put", interrupt)
        outcome = CliRunner().invoke(app, command)
    assert outcome.exit_code == 130
    assert "the same command goes on from there" in outcome.output
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").iterdir()}
    assert len(parts) == 2
    assert not (tmp_path / "theorem5.html").exists()
    outcome = CliRunner().invoke(app, command)
    assert outcome.exit_code == 0, outcome.output
    assert {path: path.stat().st_mtime_ns for path in parts} == parts  # nothing finished was computed again
    whole = undisturbed / "theorem5-quick"
    assert CliRunner().invoke(app, [*command[:-1], str(whole)]).exit_code == 0  # which writes its page
    for name in ("theorem5.csv", "theorem5.html"):
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes()


def test_mathematics() -> None:
    assert (
        mathematics("R_T ≤ e^{Δη_t} + log_+²(x)") == "R<sub>T</sub> ≤ e<sup>Δη<sub>t</sub></sup> + log<sub>+</sub>²(x)"
    )


@pytest.mark.parametrize("option", [["--replications", "1"], ["--workers", "0"], ["--seed", "-1"]])
def test_options_are_checked(option: list[str]) -> None:
    outcome = CliRunner().invoke(app, ["reproduce", "theorem4", *option])
    assert outcome.exit_code == 2
    assert f"got {option[1]}" in re.sub(r"[\s│]+", " ", outcome.output)
