"""The problems: what a problem is, and a file for each sort of rewards."""

from rightarm.problems.contexts import (
    Context,
    DataContext,
    GaussianContext,
    SphereContext,
    UniformContext,
    context,
)
from rightarm.problems.contextual import Classification, ContextProblem, LinearProblem
from rightarm.problems.families import Bernoulli, Deterministic, Gaussian, Uniform
from rightarm.problems.heavy_tails import Contaminated, LogNormal, Pareto, StudentT
from rightarm.problems.problem import Problem, ProblemFamily, problem
from rightarm.problems.random import RandomProblem

__all__ = [
    "Bernoulli",
    "Classification",
    "Contaminated",
    "Context",
    "ContextProblem",
    "DataContext",
    "Deterministic",
    "Gaussian",
    "GaussianContext",
    "LinearProblem",
    "LogNormal",
    "Pareto",
    "Problem",
    "ProblemFamily",
    "RandomProblem",
    "SphereContext",
    "StudentT",
    "Uniform",
    "UniformContext",
    "context",
    "problem",
]
