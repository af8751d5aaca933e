"""The simulator: compiled rounds, threads, results."""

from rightarm.problems.random import RandomProblem
from rightarm.simulation.result import Result, ResultsByProblem
from rightarm.simulation.simulate import simulate

__all__ = ["RandomProblem", "Result", "ResultsByProblem", "simulate"]
