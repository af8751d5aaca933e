"""Static types of policies, schedules and problems: ``python -m rightarm.stubs`` writes them anew.

A decorated formula's parameters are known when it runs, not to a type checker. So the packages `rightarm.policies` and
`rightarm.problems` have a stub beside them that spells out how each of their formulas is called. A test compares the
stubs with what this module writes.
"""

from __future__ import annotations

import importlib
import inspect
import typing
from pathlib import Path
from typing import Any

from rightarm.formula import Family
from rightarm.noise import Law
from rightarm.policies.boltzmann import Schedule
from rightarm.problems.problem import ProblemFamily
from rightarm.scores.family import EstimatorOrName, PolicyFamily

PACKAGES = ("policies", "problems")
WIDTH = 120
HEAD = {
    "policies": """from collections.abc import Callable
from typing import Any

from rightarm.estimators import Estimator
from rightarm.formula import Family
from rightarm.noise import Law
from rightarm.policies.boltzmann import Schedule as Schedule
from rightarm.policies.boltzmann import schedule as schedule
from rightarm.policies.robust import catoni_ucb as catoni_ucb
from rightarm.policies.robust import median_ucb as median_ucb
from rightarm.policies.thompson import logistic_thompson as logistic_thompson
from rightarm.scores.policy import Policy as Policy
from rightarm.scores.policy import PolicyFamily
from rightarm.scores.policy import policy as policy
from rightarm.scores.policy import probabilities as probabilities

ScheduleLike = Schedule | float | Callable[..., Any]
""",
    "problems": """from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from rightarm.problems.problem import Problem as Problem
from rightarm.problems.problem import ProblemFamily as ProblemFamily
from rightarm.problems.problem import problem as problem
from rightarm.problems.random import RandomProblem as RandomProblem

PerArm = float | Sequence[float] | NDArray[Any]
""",
}


def stub(package: str) -> str:
    """The text of one package's stub."""
    module = importlib.import_module(f"rightarm.{package}")
    families = {name: getattr(module, name) for name in module.__all__ if isinstance(getattr(module, name), Family)}
    texts = [f"# Written by `python -m rightarm.stubs`.\n\n{HEAD[package]}"]
    texts += [_class(name, family) for name, family in families.items()]
    texts.append("".join(f"{name}: _{name}\n" for name in families))
    return "\n".join(texts)


def _class(name: str, family: Family) -> str:
    """A class whose call is that of one family."""
    base = PolicyFamily if isinstance(family, PolicyFamily) else type(family)
    listed = ["self", *(_parameter(family, parameter) for parameter in family.parameters)]
    line = f"    def __call__({', '.join(listed)}) -> {family.kind.__name__}:"
    if len(line) > WIDTH:
        rows = "".join(f"        {each},\n" for each in listed)
        line = f"    def __call__(\n{rows}    ) -> {family.kind.__name__}:"
    words = (inspect.getdoc(family.function) or "").splitlines()[0]
    return f'class _{name}({base.__name__}):\n{line}\n        """{words}"""\n'


def _parameter(family: Family, parameter: inspect.Parameter) -> str:
    kind = "PerArm" if isinstance(family, ProblemFamily) else _type(family.annotations.get(parameter.name))
    default = parameter.default
    if default is parameter.empty:
        return f"{parameter.name}: {kind}"
    return (
        f"{parameter.name}: {kind} = {default!r}" if isinstance(default, float) else f"{parameter.name}: {kind} = ..."
    )


def _type(annotation: Any) -> str:
    """What may be given where a formula's parameter has this annotation."""
    if annotation is EstimatorOrName:
        return "Estimator | str"
    if typing.get_origin(annotation) is typing.Literal:
        return f"Literal[{', '.join(map(repr, typing.get_args(annotation)))}]"
    named = {Schedule: "ScheduleLike", Law: "Law", int: "int"}
    return named.get(annotation, "float")


def path_of(package: str) -> Path:
    """Where a package's stub stands."""
    return Path(__file__).parent / package / "__init__.pyi"


if __name__ == "__main__":
    for each in PACKAGES:
        path_of(each).write_text(stub(each))
        print(f"wrote {path_of(each)}")
