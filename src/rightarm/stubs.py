"""Write the stubs that type checkers read: ``python -m rightarm.stubs``.

A type checker sees neither the parameters of a decorated formula nor names that follow from the files of a package. So
packages with such names have a stub beside them, which spells out how each formula is called, and so has ``rightarm``,
whose names are imported when they are first used. A test compares the stubs with what this module writes.
"""

from __future__ import annotations

import importlib
import inspect
import types
import typing
from pathlib import Path

import rightarm
from rightarm.formula import Family
from rightarm.noise import Law
from rightarm.policies.family import EstimatorOrName, PolicyFamily, Schedule
from rightarm.problems.problem import ProblemFamily

TITLE = "# Written by `python -m rightarm.stubs`.\n\n"
MODULES = ("", "estimators", "noise", "policies", "policies.schedules", "problems")
WIDTH = 120
ANNOTATIONS = "rightarm.formula"  # where the types of parameters stand, such as Positive
FOR_FAMILIES = """from collections.abc import Callable, Sequence
from typing import Any, Literal

from numpy.typing import NDArray

from rightarm.estimators import Estimator as _Estimator
from rightarm.formula import Family as _Family
from rightarm.noise import Law as _Law
from rightarm.policies.family import PolicyFamily as _PolicyFamily
from rightarm.policies.family import Schedule as _Schedule
from rightarm.policies.policy import Policy as _Policy
from rightarm.problems.contexts import ContextDistribution as _ContextDistribution
from rightarm.problems.problem import Problem as _Problem
from rightarm.problems.problem import ProblemFamily as _ProblemFamily

_ScheduleLike = _Schedule | float | Callable[..., Any]
_PerArm = float | Sequence[float] | NDArray[Any]
FAMILIES: dict[str, Any]
"""


def stub(name: str) -> str:
    """Return the text of a module's stub; the empty name is ``rightarm``."""
    if not name:
        return _stub_of_rightarm()
    module = importlib.import_module(f"rightarm.{name}")
    if name == "estimators":
        return _estimators(module)
    public = {each: getattr(module, each) for each in sorted(module.__all__)}
    families = {each: value for each, value in public.items() if isinstance(value, Family)}
    tables = [each for each, value in public.items() if isinstance(value, dict)]
    others = {each: value for each, value in public.items() if each not in (*families, *tables)}
    head = TITLE + (FOR_FAMILIES if families else "from typing import Any\n\n") + "__all__: list[str]\n"
    head += "".join(f"{each}: dict[str, Any]\n" for each in tables)
    texts = [head + "".join(_import(each, value) for each, value in others.items())]
    texts += [_class(each, family) for each, family in families.items()]
    if families:
        texts.append("".join(f"{each}: _{each}\n" for each in families))
    return "\n".join(texts)


def _stub_of_rightarm() -> str:
    names = {name: f"rightarm.{module}" for name, module in vars(rightarm)["_NAMES"].items()}
    for name, module in vars(rightarm)["_NAMESPACES"].items():
        names[name] = f"rightarm.{module}".rpartition(".")[0]
    lines = [f"from {module} import {name} as {name}\n" for name, module in sorted(names.items())]
    return f"{TITLE}{''.join(lines)}\n__all__: list[str]\n__version__: str\n"


def _estimators(module: types.ModuleType) -> str:
    """Return the text of the stub of the estimators, whose names follow from their files."""
    lines = "".join(_import(name, getattr(module, name)) for name in sorted(module.__all__))
    tables = "".join(f"{name}: dict[str, type[Estimator]]\n" for name in ("ESTIMATORS", "NAMED"))
    return f"{TITLE}{lines}\n__all__: list[str]\n{tables}"


def _import(name: str, value: object) -> str:
    """Return the line that imports a public name from where it stands."""
    if isinstance(value, types.ModuleType):
        return f"from {value.__name__.rpartition('.')[0]} import {name} as {name}\n"
    module = getattr(value, "__module__", None) or ANNOTATIONS
    if not hasattr(importlib.import_module(module), name):
        module = ANNOTATIONS
    return f"from {module} import {name} as {name}\n"


def _class(name: str, family: Family) -> str:
    """Return a class whose call is that of one family."""
    base = PolicyFamily if isinstance(family, PolicyFamily) else type(family)
    listed = ["self", *(_parameter(family, parameter) for parameter in family.parameters)]
    line = f"    def __call__({', '.join(listed)}) -> _{family.kind.__name__}:"
    if len(line) > WIDTH:
        rows = "".join(f"        {each},\n" for each in listed)
        line = f"    def __call__(\n{rows}    ) -> _{family.kind.__name__}:"
    summary = (inspect.getdoc(family.function) or "").splitlines()[0]
    return f'class _{name}(_{base.__name__}):\n{line}\n        """{summary}"""\n'


def _parameter(family: Family, parameter: inspect.Parameter) -> str:
    """Return a parameter with its type and default."""
    kind = "_PerArm" if isinstance(family, ProblemFamily) else _type(family.annotations.get(parameter.name))
    if parameter.default is parameter.empty:
        return f"{parameter.name}: {kind}"
    default = repr(parameter.default) if isinstance(parameter.default, float) else "..."
    return f"{parameter.name}: {kind} = {default}"


def _type(annotation: object) -> str:
    """Return the type of what may be given where a formula's parameter has this annotation."""
    if annotation is EstimatorOrName:
        return "_Estimator | str"
    if typing.get_origin(annotation) is typing.Literal:
        return f"Literal[{', '.join(map(repr, typing.get_args(annotation)))}]"
    named = {Schedule: "_ScheduleLike", Law: "_Law", int: "int"}
    return next((text for kind, text in named.items() if annotation is kind), "float")


def path_of(name: str) -> Path:
    """Return where a module's stub stands."""
    place = Path(__file__).parent.joinpath(*name.split("."))
    return place / "__init__.pyi" if place.is_dir() else place.with_suffix(".pyi")


if __name__ == "__main__":
    for each in MODULES:
        path_of(each).write_text(stub(each))
        print(f"wrote {path_of(each)}")
