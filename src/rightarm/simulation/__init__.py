"""The simulator: compiled rounds, threads, results."""

from rightarm.problems.random import RandomProblem
from rightarm.simulation.result import Result
from rightarm.simulation.simulate import simulate

__all__ = ["RandomProblem", "Result", "simulate"]
