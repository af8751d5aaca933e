"""From the command to the page: it goes on where it was killed, and the page stands by itself."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from rightarm.lab.studies import STUDIES
from typer.testing import CliRunner

from rightarm.cli import app
from rightarm.lab import figure1
from rightarm.lab import reproduce as lab
from rightarm.lab.page import PAPER, mathematics

COMMAND = ["reproduce", "all", "--quick", "--replications", "16"]
PROGRAM = [sys.executable, "-c", "from rightarm.cli import main; main()", *COMMAND]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the quick version of everything."""
    folder = tmp_path_factory.mktemp("all")
    outcome = CliRunner().invoke(app, [*COMMAND, "--output", str(folder)])
    assert outcome.exit_code == 0, outcome.output
    for study in STUDIES:
        assert re.search(rf"^{study.name}: (holds|does not hold as printed): ", outcome.output, re.MULTILINE)
    return folder


def test_the_page_is_whole(undisturbed: Path) -> None:
    text = (undisturbed / "all.html").read_text(encoding="utf-8")
    tree = ElementTree.fromstring(text)  # well-formed
    identifiers = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(identifiers) == len(set(identifiers))
    targets = [value for e in tree.iter() for name, value in e.items() if name == "href" and value.startswith("#")]
    targets += [f"#{name}" for name in re.findall(r"url\(#([^)]+)\)", text)]
    assert {target[1:] for target in targets} <= set(identifiers)
    for study in STUDIES:
        (section,) = (element for element in tree.iter("section") if element.get("id") == study.name)
        assert len(list(section.iter("svg"))) >= 2
        words = " ".join("".join(section.itertext()).split())
        assert "16 replications" in words
        assert ("holds: " in words) or ("does not hold as printed: " in words)
    assert text.count("<h3>Growth</h3>") >= 6
    assert "--seed 2017" in text
    assert re.search(r"numpy \d", text)
    assert "Not computed here yet" in text  # Figure 1


def test_the_page_needs_nothing_from_elsewhere(undisturbed: Path) -> None:
    text = (undisturbed / "all.html").read_text(encoding="utf-8")
    assert re.findall(r"https?://[^\s\"<]+", text) == [PAPER]
    for outside in (" src=", "<link", "@import", "<script", "<iframe", "url(h", "url('"):
        assert outside not in text


def test_points(undisturbed: Path) -> None:
    rows = (undisturbed / "all.csv").read_text(encoding="utf-8").splitlines()
    points = sum(len(cell.checkpoints) for study in STUDIES for cell in study.cells(True).values())
    assert len(rows) == points + 1
    assert rows[0].startswith("study,policy,problem,round,replications,mean_regret,")


def test_killed_it_goes_on_and_gives_the_same(undisturbed: Path, tmp_path: Path) -> None:
    process = subprocess.Popen([*PROGRAM, "--output", str(tmp_path)])
    while process.poll() is None and len(list(tmp_path.glob("*/cells/*.json"))) < 5:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/cells/*.json")}
    assert not (tmp_path / "all.html").exists()
    subprocess.run([*PROGRAM, "--output", str(tmp_path)], check=True)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing finished was computed again
    for name in ("all.csv", "all.html"):
        assert (tmp_path / name).read_bytes() == (undisturbed / name).read_bytes()


def test_interrupted_it_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(lab, "reproduce", interrupt)
    outcome = CliRunner().invoke(app, ["reproduce", "theorem3", "--quick", "--output", str(tmp_path)])
    assert outcome.exit_code == 130
    assert "the same command goes on from there" in outcome.output


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_one_study_shares_its_outcomes_with_all(undisturbed: Path, study: object) -> None:
    name = study.name  # type: ignore[attr-defined]
    cells = set((undisturbed / name / "cells").iterdir())
    command = ["reproduce", name, "--quick", "--replications", "16", "--output", str(undisturbed / name)]
    outcome = CliRunner().invoke(app, command)
    assert outcome.exit_code == 0, outcome.output
    assert set((undisturbed / name / "cells").iterdir()) == cells
    assert ElementTree.parse(undisturbed / name / f"{name}.html").getroot().tag == "html"


def test_figure1_is_shown_if_it_is_at_hand(tmp_path: Path) -> None:
    plan = figure1.Plan(horizon=200, replications=3, grid=(0.001, 0.25, 100.0), seed=5)
    lab.write_page([], tmp_path / "without.html", "Title", "made", (plan, tmp_path / "figure1"))
    assert not (tmp_path / "figure1").exists()
    assert "Not computed here yet" in (tmp_path / "without.html").read_text(encoding="utf-8")
    figure1.compute(plan, tmp_path / "figure1", 2, lambda rounds: None)
    lab.write_page([], tmp_path / "with.html", "Title", "made", (plan, tmp_path / "figure1"))
    text = (tmp_path / "with.html").read_text(encoding="utf-8")
    assert len(list(ElementTree.fromstring(text).iter("svg"))) == 1
    assert "BGE performs notably well" in text


def test_mathematics() -> None:
    assert (
        mathematics("R_T ≤ e^{Δη_t} + log_+²(x)") == "R<sub>T</sub> ≤ e<sup>Δη<sub>t</sub></sup> + log<sub>+</sub>²(x)"
    )


@pytest.mark.parametrize("option", [["--replications", "1"], ["--workers", "0"], ["--seed", "-1"]])
def test_options_are_checked(option: list[str]) -> None:
    outcome = CliRunner().invoke(app, ["reproduce", "theorem4", *option])
    assert outcome.exit_code == 2
    assert f"got {option[1]}" in re.sub(r"[\s│]+", " ", outcome.output)
