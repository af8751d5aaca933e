"""rightarm: multi-armed bandits around "Boltzmann Exploration Done Right". The public names, and nothing else."""

import importlib
from typing import TYPE_CHECKING, Any

from rightarm import inference, noise, propensity, theory
from rightarm.contexts import Features
from rightarm.estimators import Catoni, CatoniEstimator, Estimator, Linear, Logistic, Mean, MedianOfMeans
from rightarm.evaluation import Evaluation, Lift, Replay, SampleRatio, evaluate, lift, replay, sample_ratio
from rightarm.formula import Count, NonNegative, Positive, Probability
from rightarm.live import Bandit, Decision
from rightarm.logs import LogWriter, convert_log, read_log, read_table, to_obp, to_vw
from rightarm.policies import (
    APE2,
    EXP3,
    KLMS,
    KLUCB,
    MOSS,
    UCB,
    UCB1,
    AnytimeMOSS,
    BetaThompson,
    Boltzmann,
    BoltzmannGumbel,
    EpsilonGreedy,
    EXP3PlusPlus,
    EXP3PlusPlus2017,
    ExploreThenCommit,
    GaussianKLUCB,
    GaussianThompson,
    LinMED,
    LinTS,
    Maillard,
    PerturbedMean,
    Policy,
    RandUCB,
    ResidualGumbel,
    RobustUCB,
    ScaledGumbel,
    Schedule,
    SoftMix,
    SquareCB,
    UCBImproved,
    catoni_ucb,
    constant,
    decreasing,
    glie,
    increasing,
    inverse_log,
    inverse_sqrt,
    logistic_thompson,
    median_ucb,
    policy,
    probabilities,
    schedule,
    two_phase,
)
from rightarm.problems import (
    Bernoulli,
    Classification,
    Contaminated,
    ContextProblem,
    DataContext,
    Deterministic,
    Gaussian,
    GaussianContext,
    LinearProblem,
    LogNormal,
    Pareto,
    Problem,
    SphereContext,
    StudentT,
    Uniform,
    UniformContext,
    context,
    problem,
)
from rightarm.simulation import RandomProblem, Result, ResultsByProblem, simulate

if TYPE_CHECKING:
    from rightarm.client import connect, connect_async
    from rightarm.lab.report import log_report
    from rightarm.lab.results import CellResult, Loaded, load
    from rightarm.lab.run import run

__version__ = "0.2.0.dev0"


__all__ = [
    "APE2",
    "EXP3",
    "KLMS",
    "KLUCB",
    "MOSS",
    "UCB",
    "UCB1",
    "AnytimeMOSS",
    "Bandit",
    "Bernoulli",
    "BetaThompson",
    "Boltzmann",
    "BoltzmannGumbel",
    "Catoni",
    "CatoniEstimator",
    "CellResult",
    "Classification",
    "Contaminated",
    "ContextProblem",
    "Count",
    "DataContext",
    "Decision",
    "Deterministic",
    "EXP3PlusPlus",
    "EXP3PlusPlus2017",
    "EpsilonGreedy",
    "Estimator",
    "Evaluation",
    "ExploreThenCommit",
    "Features",
    "Gaussian",
    "GaussianContext",
    "GaussianKLUCB",
    "GaussianThompson",
    "Lift",
    "LinMED",
    "LinTS",
    "Linear",
    "LinearProblem",
    "Loaded",
    "LogNormal",
    "LogWriter",
    "Logistic",
    "Maillard",
    "Mean",
    "MedianOfMeans",
    "NonNegative",
    "Pareto",
    "PerturbedMean",
    "Policy",
    "Positive",
    "Probability",
    "Problem",
    "RandUCB",
    "RandomProblem",
    "Replay",
    "ResidualGumbel",
    "Result",
    "ResultsByProblem",
    "RobustUCB",
    "SampleRatio",
    "ScaledGumbel",
    "Schedule",
    "SoftMix",
    "SphereContext",
    "SquareCB",
    "StudentT",
    "UCBImproved",
    "Uniform",
    "UniformContext",
    "catoni_ucb",
    "connect",
    "connect_async",
    "constant",
    "context",
    "convert_log",
    "decreasing",
    "evaluate",
    "glie",
    "increasing",
    "inference",
    "inverse_log",
    "inverse_sqrt",
    "lift",
    "load",
    "log_report",
    "logistic_thompson",
    "median_ucb",
    "noise",
    "policy",
    "probabilities",
    "problem",
    "propensity",
    "read_log",
    "read_table",
    "replay",
    "run",
    "sample_ratio",
    "schedule",
    "simulate",
    "theory",
    "to_obp",
    "to_vw",
    "two_phase",
]


# What only some programs use is imported when it is first asked for, so that ``import rightarm`` stays quick.
LATER = {
    "CellResult": "lab.results",
    "Loaded": "lab.results",
    "connect": "client",
    "connect_async": "client",
    "load": "lab.results",
    "log_report": "lab.report",
    "run": "lab.run",
}


def __getattr__(name: str) -> Any:
    """What is imported later, and `rightarm.testing`."""
    if name == "testing":
        return importlib.import_module("rightarm.testing")
    if name in LATER:
        return getattr(importlib.import_module(f"{__name__}.{LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
