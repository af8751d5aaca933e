"""Results are addressed by what determines outcomes: what else is edited recomputes nothing."""

from __future__ import annotations

import ast
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rightarm as ra
from few import few
from rightarm.experiments.cell import Cell
from rightarm.simulation.jobs import DETERMINING, determining_files

PACKAGE = Path(ra.__file__).parent
KEYS = """
import json, rightarm as ra
from rightarm.experiments import Cell
from rightarm.problems import Bernoulli, RandomProblem, Uniform
policies = [ra.UCB(C=0.5), ra.KLUCB(), ra.PerturbedMean(ra.noise.Exponential())]
policies.append(ra.Boltzmann(ra.schedules.inverse_log(0.25)))
problems = [Bernoulli([0.5, 0.4]), RandomProblem(Bernoulli, mean=Uniform(low=[0.0] * 3, high=1.0))]
keys = [Cell(p, q, 100, 8, seed=1, checkpoints=(100,)).key for p in policies for q in problems]
print(json.dumps(keys))
"""


@pytest.fixture
def keys(tmp_path: Path) -> Callable[..., list[str]]:
    """The keys of some cells, computed by a copy of the package that ``edit`` has changed."""

    def computed(*edits: Callable[[Path], None], python: str = sys.executable) -> list[str]:
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        package = tmp_path / "copy" / "rightarm"
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        for edit in edits:
            edit(package)
        environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([python, "-c", KEYS], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found: list[str] = json.loads(done.stdout)
        return found

    return computed


def determining(package: Path, path: Path) -> bool:
    place = path.relative_to(package).with_suffix("").as_posix()
    return any(place == name or place.startswith(f"{name}/") for name in DETERMINING)


def reword(package: Path) -> None:
    """Other words at the top of every file, a comment at its end, and a blank line between."""
    for path in package.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        documented = source if source.startswith('"""') else f'"""Words."""\n{source}'
        path.write_text(documented.replace('"""', '"""In other words: ', 1) + "\n\n# the end\n", encoding="utf-8")


def add_code_elsewhere(package: Path) -> None:
    """New code in every file that does not determine outcomes: commands, pages, logs, policies."""
    edited = [path for path in package.rglob("*.py") if not determining(package, path)]
    for path in edited:
        path.write_text(f"{path.read_text(encoding='utf-8')}\nADDED = 1\n", encoding="utf-8")
    names = {path.relative_to(package).parts[0] for path in edited}
    assert {"cli.py", "cli"} & names
    assert {"experiments", "logs", "bandit", "policies", "evaluation", "testing.py"} <= names


def replace(place: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(package: Path) -> None:
        source = (package / place).read_text(encoding="utf-8")
        assert old in source
        (package / place).write_text(source.replace(old, new), encoding="utf-8")

    return edit


def change_a_number(place: str) -> Callable[[Path], None]:
    """One more for the first number in a function, of a file or of the first file of a folder that has one."""

    def edit(package: Path) -> None:
        files = [path for path in package.rglob("*.py") if determining(package, path)]
        for path in sorted(path for path in files if path.relative_to(package).as_posix().startswith(place)):
            source = path.read_bytes()
            functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
            for number in (node for function in functions for node in ast.walk(function)):
                if isinstance(number, ast.Constant) and isinstance(number.value, int | float):
                    lines = source.splitlines(keepends=True)
                    line, start, end = lines[number.lineno - 1], number.col_offset, number.end_col_offset
                    lines[number.lineno - 1] = line[:start] + b"(1 + " + line[start:end] + b")" + line[end:]
                    path.write_bytes(b"".join(lines))
                    return
        raise AssertionError(f"no number was found in {place}")

    return edit


def test_words_and_other_code_recompute_nothing(keys: Callable[..., list[str]]) -> None:
    before = keys()
    assert len(set(before)) == len(before)
    assert keys(reword, add_code_elsewhere) == before


@pytest.mark.parametrize("place", few(1, ["streams.py", "simulation/kernels.py", "formula/elementary.py", "noise"]))
def test_a_changed_kernel_recomputes(keys: Callable[..., list[str]], place: str) -> None:
    assert not set(keys(change_a_number(place))) & set(keys())


def test_a_changed_formula_recomputes_its_own_results_only(keys: Callable[..., list[str]]) -> None:
    before = keys()
    after = keys(replace("policies/ucb.py", "C * np.sqrt(np.log(t) / pulls)", "C * np.sqrt(np.log(t) / (pulls + 1))"))
    assert after[2:] == before[2:]
    assert not set(after[:2]) & set(before[:2])


def test_a_policy_may_move_to_another_file(keys: Callable[..., list[str]]) -> None:
    def move(package: Path) -> None:
        (package / "policies" / "bounds.py").write_bytes((package / "policies" / "ucb.py").read_bytes())
        (package / "policies" / "ucb.py").write_text("from rightarm.policies.bounds import *\n")

    assert keys(move) == keys()


def test_versions_are_recorded_and_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def cell() -> Cell:
        return Cell(ra.UCB(C=0.5), ra.problems.Bernoulli([0.5, 0.4]), 100, 8, seed=1, checkpoints=(100,))

    before = cell()
    assert before.specification()["versions"]["python"] == platform.python_version()
    monkeypatch.setattr("rightarm.experiments.cell.versions", lambda: {"numpy": "99"})
    after = cell()
    assert after.specification()["versions"] == {"numpy": "99"}
    assert after.key == before.key
    monkeypatch.setattr("platform.machine", lambda: "another")
    assert cell().key != before.key


def imports(path: Path) -> set[Path]:
    """The files of ours that a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    places = [PACKAGE.parent.joinpath(*name.split(".")) for name in names if name.startswith("rightarm.")]
    return {file for place in places for file in (place.with_suffix(".py"), place / "__init__.py") if file.exists()}


def test_no_kernel_of_the_simulator_is_forgotten() -> None:
    """Whatever `play_job` reaches by imports and compiles determines outcomes; policies are named by every cell."""
    reached, ahead = set[Path](), {PACKAGE / "simulation" / "jobs.py"}
    while ahead:
        reached |= ahead
        ahead = {file for path in ahead for file in imports(path)} - reached
    compiled = {path for path in reached if "from rightarm.formula.compile import" in path.read_text(encoding="utf-8")}
    assert len(compiled) > 5
    assert {path for path in compiled if "@policy(" not in path.read_text(encoding="utf-8")} <= set(determining_files())


def test_every_place_that_is_named_is_there() -> None:
    for name in DETERMINING:
        assert (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()
