"""Which of our code determines outcomes of simulations: results are kept as long as it says the same."""

from __future__ import annotations

import functools
from pathlib import Path

from rightarm.formula.syntax import sources_hash

# Modules and folders of modules. Policies and problems are not here: each cell names its own by their identities.
DETERMINING = (
    "contexts",
    "estimators",
    "formula",
    "noise",
    "problems/contexts",
    "problems/contextual",
    "problems/moments",
    "problems/problem",
    "problems/random",
    "propensity",
    "scores",
    "simulation/argmax",
    "simulation/context_formulas",
    "simulation/context_kernels",
    "simulation/contextual",
    "simulation/engine",
    "simulation/jobs",
    "simulation/kernels",
    "simulation/rewards",
    "simulation/state",
    "streams",
)


def determining_files() -> list[Path]:
    """The source files that determine outcomes."""
    package = Path(__file__).parents[1]
    places = [package / name for name in DETERMINING]
    return [file for place in places for file in (place.with_suffix(".py"), *place.rglob("*.py")) if file.is_file()]


@functools.cache
def outcome_code() -> str:
    """A name for what these files say: docstrings, comments, layout and the version of Python do not matter."""
    return sources_hash(determining_files())
