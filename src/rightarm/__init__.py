"""rightarm: multi-armed bandits around "Boltzmann Exploration Done Right". The public names, and nothing else."""

import importlib
from typing import Any

from rightarm.policies import FAMILIES as _FAMILIES

__version__ = "0.2.0.dev0"

# Everything is imported when it is first used, so that ``import rightarm`` is quick.
_NAMES = {
    "Bandit": "bandit",
    "Decision": "bandit",
    "Policy": "policies",
    "Result": "simulation",
    "connect": "client",
    "evaluate": "evaluation",
    "policy": "policies",
    "probabilities": "policies",
    "simulate": "simulation",
    **dict.fromkeys(_FAMILIES, "policies"),
}
_NAMESPACES = {
    "estimators": "estimators",
    "evaluation": "evaluation",
    "experiments": "experiments",
    "inference": "inference",
    "logs": "logs",
    "noise": "noise",
    "policies": "policies",
    "problems": "problems",
    "reports": "reports",
    "schedules": "policies.schedules",
    "testing": "testing",
    "theory": "theory",
}

__all__ = [*_NAMES, *_NAMESPACES]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _NAMESPACES:
        value: Any = importlib.import_module(f"{__name__}.{_NAMESPACES[name]}")
    elif name in _NAMES:
        value = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
