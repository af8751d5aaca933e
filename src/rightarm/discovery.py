"""Public names that follow from the files of a package, so that nobody has to list them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection
from typing import Any


def defined_in(package: str, is_public: Callable[[object], bool], besides: Collection[str] = ()) -> dict[str, Any]:
    """Import the modules of a package, and return what they define and ``is_public``, by name.

    Parameters
    ----------
    package
        The package's name, such as ``"rightarm.policies"``.
    is_public
        Called with each object that a module defines.
    besides
        Names of modules that are left alone.

    Examples
    --------
    >>> from rightarm.problems.problem import ProblemFamily
    >>> "Bernoulli" in defined_in("rightarm.problems", lambda each: isinstance(each, ProblemFamily))
    True
    """
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        if module.name.rpartition(".")[2] in besides:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            is_own = getattr(value, "__module__", None) == module.name
            if is_own and not name.startswith("_") and is_public(value):
                found[name] = value
    return dict(sorted(found.items()))
