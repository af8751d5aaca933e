"""Old imports go on working: every public name is found in the module where 0.1.0 defined it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from pathlib import Path

import pytest

import rightarm as ra
from rightarm.moved import MOVED, present_module

# Where version 0.1.0 defined what it exported.
DEFINED = {
    "rightarm.arms": "Decision",
    "rightarm.bandit": "Bandit",
    "rightarm.estimators": "CatoniEstimator",
    "rightarm.evaluation": "Evaluation Replay evaluate replay",
    "rightarm.exports": "to_obp to_vw",
    "rightarm.formula": "Count NonNegative Positive Probability",
    "rightarm.lab.loaded": "Loaded load",
    "rightarm.logs": "LogWriter read_log read_table",
    "rightarm.policies.boltzmann": "Boltzmann Schedule constant glie inverse_log inverse_sqrt schedule two_phase",
    "rightarm.policies.exponential": "EXP3 EXP3PlusPlus SoftMix",
    "rightarm.policies.greedy": "EpsilonGreedy ExploreThenCommit decreasing",
    "rightarm.policies.gumbel": "BoltzmannGumbel PerturbedMean",
    "rightarm.policies.kl": "KLMS KLUCB GaussianKLUCB",
    "rightarm.policies.maillard": "Maillard",
    "rightarm.policies.policy": "Policy policy probabilities",
    "rightarm.policies.thompson": "BetaThompson GaussianThompson",
    "rightarm.policies.ucb": "AnytimeMOSS MOSS RobustUCB UCB UCB1 UCBImproved",
    "rightarm.problems": "Bernoulli Contaminated Deterministic Gaussian LogNormal Pareto StudentT Uniform "
    "Problem problem",
    "rightarm.simulation.random_problem": "RandomProblem",
    "rightarm.simulation.result": "Result",
    "rightarm.simulation.simulate": "simulate",
}
MODULES = {"noise", "propensity", "theory"}


def test_all_names_of_0_1_0_are_here() -> None:
    assert {name for names in DEFINED.values() for name in names.split()} | MODULES <= set(ra.__all__)


@pytest.mark.parametrize("module", DEFINED)
@pytest.mark.filterwarnings("ignore:rightarm.* is rightarm.* now:DeprecationWarning")
def test_a_public_name_is_found_where_it_was(module: str) -> None:
    found = importlib.import_module(module)
    for name in DEFINED[module].split():
        assert getattr(found, name) is getattr(ra, name)


@pytest.mark.parametrize("old", MOVED)
@pytest.mark.filterwarnings("ignore:rightarm.* is rightarm.* now:DeprecationWarning")
def test_old_names_are_of_modules_that_are_gone(old: str) -> None:
    """And the new ones of modules that are there."""
    folder, _, name = old.rpartition(".")
    assert importlib.util.find_spec(present_module(old)) is not None
    if folder in MOVED:  # the whole package moved
        return
    package = importlib.import_module(folder)
    assert not any((Path(path) / f"{name}.py").exists() or (Path(path) / name).exists() for path in package.__path__)


def test_an_old_import_warns_and_gives_the_present_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rightarm.bandit", raising=False)
    with pytest.warns(DeprecationWarning, match=r"rightarm.bandit is rightarm.live.bandit now"):
        module = importlib.import_module("rightarm.bandit")
    assert module is importlib.import_module("rightarm.live.bandit")
    assert module.__spec__ is not None
    assert (module.__name__, module.__spec__.name) == ("rightarm.live.bandit", "rightarm.live.bandit")


def test_the_decorator_stays_where_it_is() -> None:
    """The module `rightarm.policies.policy` of old does not take the place of the decorator of that name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        importlib.import_module("rightarm.policies.policy")
    assert importlib.import_module("rightarm.policies").policy is ra.policy
