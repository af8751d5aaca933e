"""The problems, and the distributions of their contexts: a file for each sort. Each is one formula.

A problem, or a distribution of contexts, that stands in any file of this package is public by itself.
"""

from rightarm.discovery import defined_in
from rightarm.formula import Family
from rightarm.problems.contexts import ContextDistribution, DataContext, context
from rightarm.problems.contextual import Classification, ContextProblem, LinearProblem
from rightarm.problems.problem import Problem, ProblemFamily, problem
from rightarm.problems.random import RandomProblem


def _is_family(value: object) -> bool:
    return isinstance(value, Family)


FAMILIES: dict[str, Family] = defined_in(__name__, _is_family)
globals().update(FAMILIES)

__all__ = [
    "Classification",
    "ContextDistribution",
    "ContextProblem",
    "DataContext",
    "LinearProblem",
    "Problem",
    "ProblemFamily",
    "RandomProblem",
    "context",
    "problem",
    *FAMILIES,
]
