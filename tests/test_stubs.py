"""What type checkers know: the stubs are those of the formulas, and wrong parameters are found without running.

mypy is strict about comments that ignore an error where there is none, so every ``type: ignore`` here is a test: if the
stubs did not tell, mypy would complain.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import assert_type

import pytest
from filelock import FileLock

import rightarm as ra
from rightarm.stubs import MODULES, path_of, stub

USED = """
import numpy as np
import rightarm as ra

policy: ra.Policy = ra.BoltzmannGumbel(C=0.5, estimator=ra.estimators.Catoni(C=2.0))
policies: list[ra.Policy] = [policy, ra.UCB(0.5), ra.Boltzmann(0.25), ra.Boltzmann(lambda t: 1 / np.sqrt(t))]
problem: ra.problems.Problem = ra.problems.Gaussian([0.5, 0.25], sigma=0.5)
others = [ra.problems.Uniform(low=0.0, high=np.array([0.5, 1.0])), ra.problems.Bernoulli((1, 0))]
result = ra.simulate(policies, problem, horizon=100)
ra.BoltzmannGumbel(c=0.5)
ra.UCB(C="much")
ra.MOSS()
ra.problems.Bernoulli(means=[0.5])
ra.EXP3(gamma=0.1, estimators=ra.estimators.Mean())
ra.problems.Gaussian("0.5")
policy.probabilites(1, [1], [0.5])
ra.Bandit({"red": (0.1, 20), "green": None}, learn="at_close")
ra.Bandit.open("home", ["red"], flor=0.1)
ra.Bandit(["red"]).change(holdout="much")
"""
KINDS = ["call-arg", "arg-type", "call-arg", "call-arg", "call-arg", "arg-type", "attr-defined"]
KINDS += ["arg-type", "call-overload", "arg-type"]
FOUND = dict(enumerate(KINDS, start=9))  # the lines from BoltzmannGumbel(c=0.5) on


@pytest.mark.parametrize("module", MODULES)
def test_stubs_are_up_to_date(module: str) -> None:
    assert path_of(module).read_text() == stub(module), "run `python -m rightarm.stubs`"


def test_types_are_known() -> None:
    assert_type(ra.UCB(C=0.5), ra.Policy)
    assert_type(ra.ScaledGumbel(estimator=ra.estimators.Mean(window=50)), ra.Policy)
    assert_type(ra.schedules.inverse_log(0.5), ra.schedules.Schedule)
    assert_type(ra.problems.Bernoulli([0.5, 0.25]), ra.problems.Problem)
    assert ra.UCB.name == "UCB"


def test_wrong_parameters_are_errors_also_when_it_runs() -> None:
    with pytest.raises(TypeError, match="BoltzmannGumbel has no parameter 'c'"):
        ra.BoltzmannGumbel(c=0.5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="C must be a number, got 'much'"):
        ra.UCB(C="much")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Bernoulli has no parameter 'means'"):
        ra.problems.Bernoulli(means=[0.5])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="MOSS"):
        ra.MOSS()  # type: ignore[call-arg]


def run_checker(checker: str, file: Path) -> subprocess.CompletedProcess[str]:
    """Have a type checker look at a user's file, outside of the project."""
    cache = Path(__file__).parents[1] / ".mypy_cache"
    cache.mkdir(exist_ok=True)
    options = {
        "mypy": ["--strict", "--cache-dir", str(cache)],
        "basedpyright": ["--level", "error", "--pythonpath", sys.executable],
    }
    command = [sys.executable, "-m", checker, *options[checker], str(file)]
    with FileLock(cache / "tests.lock"):  # two runs of mypy at once may disturb each other's cache
        return subprocess.run(command, capture_output=True, text=True, cwd=file.parent, check=False)


@pytest.mark.full
def test_a_user_s_file_is_checked(tmp_path: Path) -> None:
    """From outside of the project: the lines with a mistake are found, each with its kind, and no others."""
    file = tmp_path / "used.py"
    file.write_text(USED.lstrip("\n"))
    done = run_checker("mypy", file)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    found = {int(line.split(":")[1]): line.rpartition("[")[2].rstrip("]") for line in errors}
    assert found == FOUND, done.stdout + done.stderr


WRONG = {'learn="at_close"': 'learn="at close"', "flor=0.02": "floor=0.02", "flor=0.05": "floor=0.05"}


@pytest.mark.full
@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_the_typed_example_passes_and_its_mistakes_are_found(checker: str, tmp_path: Path) -> None:
    """The example covers the public names; with a wrong choice or a misspelt keyword it does not pass."""
    example = Path(__file__).parents[1] / "examples" / "typed.py"
    right = example.read_text(encoding="utf-8")
    sources = {"right": right} | {f"wrong_{i}": right.replace(*pair[::-1]) for i, pair in enumerate(WRONG.items())}
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "basic"}', encoding="utf-8")
    for name, source in sources.items():
        assert name == "right" or source != right
        file = tmp_path / f"{name}.py"
        file.write_text(source, encoding="utf-8")
        done = run_checker(checker, file)
        assert (done.returncode == 0) == (name == "right"), done.stdout + done.stderr
