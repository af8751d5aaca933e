"""The code in the README and in the pages of docs/ runs, with fewer rounds."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rightarm.experiments.file import read_experiment

ROOT = Path(__file__).parent.parent
CAUTIOUS = """
import numpy as np
import rightarm as ra


@ra.policy(noise=ra.noise.Gumbel())
def cautious(pulls, mean, z, *, C: float = 1.0):
    return mean + C / np.sqrt(pulls) * z
"""


def blocks(page: str, language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    return [re.sub(r"1_?000_000|100_000", "1_000", block) for block in found]


def run(page: str, count: int) -> dict[str, Any]:
    """All blocks of a page, one after the other; what they define."""
    codes = blocks(page, "python")
    assert len(codes) == count
    namespace: dict[str, Any] = {"__name__": "page"}
    for code in codes:
        exec(compile(code, page, "exec", dont_inherit=True), namespace)
    return namespace


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_readme(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("README.md", 2)
    (printed,) = blocks("README.md", "text")
    assert capsys.readouterr().out.startswith(printed)
    assert names["result"].regret.shape[:2] == (2, 64)


def test_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 120


def test_simulations_with_contexts(folder: Path) -> None:
    (folder / "iris.csv").write_bytes((ROOT / "examples" / "iris.csv").read_bytes())
    names = run("docs/contexts-simulated.md", 5)
    right = names["right"].mean(axis=1)
    assert (right[:3] > 0.75).all()
    assert right[4] < 0.4
    assert (folder / "contexts.png").stat().st_size > 10_000
    (file,) = blocks("docs/contexts-simulated.md", "toml")
    (folder / "contexts.toml").write_text(file, encoding="utf-8")
    assert len(read_experiment(folder / "contexts.toml").cells) == (2 + 1) * (4 + 1)


def test_formulas() -> None:
    names = run("docs/formulas.md", 6)
    assert names["drawn"].means.shape == (1_000, 10)
    assert names["Triangular"](high=[3.0, 1.5]).means.tolist() == pytest.approx([2.0, 1.0])
    psi = [math.copysign(math.log(1 + abs(x) + x * x / 2), x) for x in np.array([0.3, -0.1, 1e12]) / 3**0.5]
    assert names["estimate"] == pytest.approx(sum(psi) / 3**0.5, rel=1e-12)


def test_live(folder: Path) -> None:
    names = run("docs/live.md", 2)
    assert (names["decision"].propensity, names["decision"].round) == (1 / 3, 1)
    assert (folder / "arms.png").stat().st_size > 10_000
    with names["ra"].Bandit.open(folder / "home.bandit") as again:
        assert again.summary().equals(names["bandit"].summary())


def test_evaluation() -> None:
    names = run("docs/off-policy.md", 2)
    assert names["ra"].logs.read_log("decisions.jsonl")["reward"].to_list() == [1.0]
    truth = {"the rule of the house": (0.6 * 1.7 + 0.3 * 0.3) / 2, "a coin": 0.45}
    for name, value in truth.items():
        assert names["results"][name].low < value < names["results"][name].high
    assert names["results"]["LinUCB"].low > names["results"]["UCB without contexts"].high


def test_answers(folder: Path) -> None:
    names = run("docs/answers.md", 3)
    assert names["difference"].better
    assert names["best"].leader == "blue"
    assert (folder / "week.html").stat().st_size > 10_000
    assert (names["apart"].better, names["harmful"]) == (True, True)


def test_answers_with_contexts(folder: Path) -> None:
    names = run("docs/contexts-answers.md", 4)
    assert (names["phones"].better, names["desktops"].better, names["everybody"].better) == (True, False, False)
    assert names["young"].better is None
    assert (folder / "coefficients.png").stat().st_size > 10_000
    sure = [row.arm for row in names["coefficients"].rows if row.feature == "age" and row.sure]
    assert (sure, names["frame"].height) == (["video"], 10)
    assert sum(row["contribution"] for row in names["explanation"].columns) == pytest.approx(
        names["explanation"].prediction
    )


def test_logs() -> None:
    names = run("docs/logs.md", 2)
    assert names["ra"].logs.read_log("decisions.jsonl")["reward"].to_list() == [1.0]
    frame = names["ra"].logs.read_log("visits.jsonl")
    assert frame["reward", "corrected", "unit", "meta"].rows() == [(0.0, True, "visitor-17", '{"page": "/start"}')]


def test_experiments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = blocks("docs/experiments.md", "toml")
    (folder / "gaps.toml").write_text(file.replace("256", "16"), encoding="utf-8")
    (folder / "my_module.py").write_text(CAUTIOUS, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    names = run("docs/experiments.md", 2)
    assert len(names["loaded"].frame) == 3 * (4 + 1 + 1)
    assert names["cell"].regret.shape[0] == 16


def test_contexts(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("docs/contexts.md", 4)
    said = [line.split(" → ")[1] for line in capsys.readouterr().out.splitlines()]
    assert said == ["small", "large", "coder", "polyglot"]
    assert set(names["offers"]) == {"a", "b", "c"}


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_pages_point_to_is_there(page: Path) -> None:
    """Links to files, and modules and folders that are named by their paths."""
    text = page.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert [link for link in links if not (page.parent / link).exists()] == []
    places = [ROOT, ROOT / "src", ROOT / "src" / "rightarm"]
    named = re.findall(r"`([\w.]+/(?:[\w.]+/)*(?:\w+\.py)?)`", text)
    assert [path for path in named if not any((place / path).exists() for place in places)] == []


def test_the_map_of_the_tree_is_whole() -> None:
    text, package = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), ROOT / "src" / "rightarm"
    named = re.findall(r"^      (\w+(?:/|\.py))", text, re.MULTILINE)
    assert {f"{path.parent.name}/" for path in package.glob("*/__init__.py")} <= set(named)
    assert [name for name in named if not (package / name).exists()] == []
