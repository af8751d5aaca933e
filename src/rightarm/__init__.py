"""rightarm: multi-armed bandits around "Boltzmann Exploration Done Right". The public names, and nothing else."""

from rightarm import noise, theory
from rightarm.estimators import CatoniEstimator
from rightarm.formula import Count, NonNegative, Positive, Probability
from rightarm.policies import (
    MOSS,
    UCB,
    UCB1,
    AnytimeMOSS,
    Boltzmann,
    BoltzmannGumbel,
    GaussianThompson,
    Maillard,
    Policy,
    Schedule,
    constant,
    glie,
    inverse_log,
    inverse_sqrt,
    policy,
    schedule,
    two_phase,
)
from rightarm.problems import (
    Bernoulli,
    Contaminated,
    Deterministic,
    Gaussian,
    LogNormal,
    Pareto,
    Problem,
    StudentT,
    Uniform,
    problem,
)
from rightarm.simulation import RandomProblem, Result, simulate

__version__ = "0.1.0"

__all__ = [
    "MOSS",
    "UCB",
    "UCB1",
    "AnytimeMOSS",
    "Bernoulli",
    "Boltzmann",
    "BoltzmannGumbel",
    "CatoniEstimator",
    "Contaminated",
    "Count",
    "Deterministic",
    "Gaussian",
    "GaussianThompson",
    "LogNormal",
    "Maillard",
    "NonNegative",
    "Pareto",
    "Policy",
    "Positive",
    "Probability",
    "Problem",
    "RandomProblem",
    "Result",
    "Schedule",
    "StudentT",
    "Uniform",
    "constant",
    "glie",
    "inverse_log",
    "inverse_sqrt",
    "noise",
    "policy",
    "problem",
    "schedule",
    "simulate",
    "theory",
    "two_phase",
]
