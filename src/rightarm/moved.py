"""Where modules of earlier versions are now: old imports go on working, and so do old files that name formulas.

Whoever moves a module adds a row to `MOVED`. Only modules that no longer exist under their old name are listed. Imports
by the old names work throughout version 0.2; files that name formulas by them load for ever.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import warnings
from collections.abc import Sequence

MOVED = {
    "rightarm.arms": "rightarm.live.ledger",
    "rightarm.bandit": "rightarm.live.bandit",
    "rightarm.bandit_figure": "rightarm.live.summary",
    "rightarm.bandit_state": "rightarm.live.state",
    "rightarm.catoni": "rightarm.estimators.sums",
    "rightarm.compile": "rightarm.formula.compile",
    "rightarm.confidence": "rightarm.inference.confidence",
    "rightarm.elementary": "rightarm.formula.elementary",
    "rightarm.evaluation.confidence": "rightarm.inference.confidence",
    "rightarm.exports": "rightarm.logs.exports",
    "rightarm.lab.cells": "rightarm.lab.experiment.cell",
    "rightarm.lab.compare": "rightarm.lab.lower_bound",
    "rightarm.lab.curve": "rightarm.simulation.statistics",
    "rightarm.lab.execution": "rightarm.lab.run.executors",
    "rightarm.lab.expressions": "rightarm.lab.experiment.expressions",
    "rightarm.lab.growth": "rightarm.lab.paper.growth",
    "rightarm.lab.loaded": "rightarm.lab.results.reading",
    "rightarm.lab.loaded_plot": "rightarm.lab.results.panels",
    "rightarm.lab.own": "rightarm.lab.experiment.modules",
    "rightarm.lab.pace": "rightarm.lab.run.chunks",
    "rightarm.lab.studies": "rightarm.lab.paper",
    "rightarm.lab.studies.proposition1": "rightarm.lab.paper.proposition1",
    "rightarm.lab.studies.theorem2": "rightarm.lab.paper.theorem2",
    "rightarm.lab.study": "rightarm.lab.paper.finding",
    "rightarm.lab.sweeps": "rightarm.lab.experiment.sweeps",
    "rightarm.lab.tables": "rightarm.lab.experiment.formulas",
    "rightarm.lab.transport": "rightarm.lab.run.transport",
    "rightarm.policies.compiled": "rightarm.scores.simulated",
    "rightarm.policies.live": "rightarm.scores.live",
    "rightarm.policies.policy": "rightarm.scores.policy",
    "rightarm.policies.state": "rightarm.scores.inputs",
    "rightarm.policies.tracing": "rightarm.formula.tracing",
    "rightarm.simulation.estimates": "rightarm.estimators.compiled",
    "rightarm.simulation.random_problem": "rightarm.problems.random",
    "rightarm.simulation.streams": "rightarm.streams",
    "rightarm.simulation.types": "rightarm.types",
}


def present_module(name: str) -> str:
    """The module's name today.

    >>> present_module("rightarm.policies.policy"), present_module("numpy")
    ('rightarm.scores.policy', 'numpy')
    """
    return MOVED.get(name, name)


class MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of `MOVED` by their old names, with a `DeprecationWarning`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A module that `exec_module` puts the present one in place of."""
        return importlib.machinery.ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """An empty module, as usual."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Put the present module in the place of the old one."""
        old = module.__name__
        warnings.warn(f"{old} is {MOVED[old]} now", DeprecationWarning, stacklevel=2)
        sys.modules[old] = importlib.import_module(MOVED[old])


def install() -> None:
    """Have Python's imports know the old names."""
    sys.meta_path.append(MovedModules())
    # An import binds a submodule's name in its package, and in rightarm.policies the name `policy` is the decorator. So
    # this one is not imported again, only looked up.
    sys.modules["rightarm.policies.policy"] = importlib.import_module(MOVED["rightarm.policies.policy"])
