"""The policies, a file for each family; each is one formula.

A policy that stands in any file of this package is public by itself: here, as ``rightarm.UCB`` is, on the command line
and in experiment files. A function whose name is in capitals and which returns a policy is a recipe, such as
``CatoniUCB``: a policy with an estimator, made from other numbers.
"""

import types
from typing import Any

from rightarm.discovery import defined_in
from rightarm.formula import Count, NonNegative, Positive, Probability
from rightarm.policies import schedules
from rightarm.policies.family import PolicyFamily
from rightarm.policies.policy import Policy, policy, probabilities

MACHINERY = frozenset({"compiled_scores", "family", "inputs", "live_scores", "policy", "program", "schedules", "text"})


def _is_policy(value: Any) -> bool:
    return isinstance(value, PolicyFamily)


def _is_recipe(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value.__name__[0].isupper()


FAMILIES: dict[str, PolicyFamily] = defined_in(__name__, _is_policy, besides=MACHINERY)
RECIPES: dict[str, Any] = defined_in(__name__, _is_recipe, besides=MACHINERY)
globals().update(FAMILIES | RECIPES)

__all__ = [
    "Count",
    "NonNegative",
    "Policy",
    "Positive",
    "Probability",
    "policy",
    "probabilities",
    "schedules",
    *FAMILIES,
    *RECIPES,
]
