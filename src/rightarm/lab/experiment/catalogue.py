"""The public policies, problems, schedules, laws of noise and estimators, by name."""

from __future__ import annotations

from typing import Any

import rightarm.noise
import rightarm.policies
import rightarm.problems
from rightarm.estimators import NAMED
from rightarm.formula import Family
from rightarm.problems import ProblemFamily


def families(kind: type[Family]) -> dict[str, Any]:
    """The public families of a kind, by name."""
    module = rightarm.problems if kind is ProblemFamily else rightarm.policies
    found = {name: value for name, value in vars(module).items() if type(value) is kind and name == value.name}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def laws() -> dict[str, Any]:
    """The laws of noise, by name."""
    return {law.__name__: law for law in rightarm.noise.Law.__subclasses__()}


def estimators() -> dict[str, Any]:
    """The estimators, by name, and the names that policies know some by."""
    return {kind.__name__: kind for kind in NAMED.values()} | {name: name for name in NAMED}
