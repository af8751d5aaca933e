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

import rightarm as ra
from rightarm.stubs import PACKAGES, path_of, stub

USED = """
import numpy as np
import rightarm as ra

policy: ra.Policy = ra.BoltzmannGumbel(C=0.5, estimator=ra.Catoni(C=2.0))
policies: list[ra.Policy] = [policy, ra.UCB(0.5), ra.Boltzmann(0.25), ra.Boltzmann(lambda t: 1 / np.sqrt(t))]
problem: ra.Problem = ra.Gaussian([0.5, 0.25], sigma=0.5)
others = [ra.Uniform(low=0.0, high=np.array([0.5, 1.0])), ra.Bernoulli((1, 0))]
result = ra.simulate(policies, problem, horizon=100)
ra.BoltzmannGumbel(c=0.5)
ra.UCB(C="much")
ra.MOSS()
ra.Bernoulli(means=[0.5])
ra.EXP3(gamma=0.1, estimator=ra.Mean())
ra.Gaussian("0.5")
policy.probabilites(1, [1], [0.5])
"""
KINDS = ["call-arg", "arg-type", "call-arg", "call-arg", "call-arg", "arg-type", "attr-defined"]
FOUND = dict(enumerate(KINDS, start=9))  # the lines from BoltzmannGumbel(c=0.5) on


@pytest.mark.parametrize("package", PACKAGES)
def test_stubs_are_up_to_date(package: str) -> None:
    assert path_of(package).read_text() == stub(package), "run `python -m rightarm.stubs`"


def test_types_are_known() -> None:
    assert_type(ra.UCB(C=0.5), ra.Policy)
    assert_type(ra.ScaledGumbel(estimator=ra.Mean(window=50)), ra.Policy)
    assert_type(ra.inverse_log(0.5), ra.Schedule)
    assert_type(ra.Bernoulli([0.5, 0.25]), ra.Problem)
    assert ra.UCB.name == "UCB"


def test_wrong_parameters_are_errors_also_when_it_runs() -> None:
    with pytest.raises(TypeError, match="BoltzmannGumbel has no parameter 'c'"):
        ra.BoltzmannGumbel(c=0.5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="C must be a number, got 'much'"):
        ra.UCB(C="much")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Bernoulli has no parameter 'means'"):
        ra.Bernoulli(means=[0.5])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="MOSS"):
        ra.MOSS()  # type: ignore[call-arg]


@pytest.mark.full
def test_a_user_s_file_is_checked(tmp_path: Path) -> None:
    """From outside of the project: the lines with a mistake are found, each with its kind, and no others."""
    file, root = tmp_path / "used.py", Path(__file__).parents[1]
    file.write_text(USED.lstrip("\n"))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(root / ".mypy_cache"), str(file)]
    told = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False).stdout
    errors = [line for line in told.splitlines() if ": error: " in line]
    found = {int(line.split(":")[1]): line.rpartition("[")[2].rstrip("]") for line in errors}
    assert found == FOUND, told
