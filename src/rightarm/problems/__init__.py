"""The problems: what a problem is, and a file for each sort of rewards."""

from rightarm.problems.families import Bernoulli, Deterministic, Gaussian, Uniform
from rightarm.problems.heavy_tails import Contaminated, LogNormal, Pareto, StudentT
from rightarm.problems.problem import Problem, ProblemFamily, problem
from rightarm.problems.random import RandomProblem

__all__ = [
    "Bernoulli",
    "Contaminated",
    "Deterministic",
    "Gaussian",
    "LogNormal",
    "Pareto",
    "Problem",
    "ProblemFamily",
    "RandomProblem",
    "StudentT",
    "Uniform",
    "problem",
]
