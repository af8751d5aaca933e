"""SMPyBandits' policies, one replication after another, for their regrets rather than their speed.

A plain loop of `choice` and `getReward` in place of the library's `Evaluator`, which gives means only. Like
`smpybandits` it is run in an environment of its own, and imports the standard library only.
"""

import importlib
import json
import random
import sys
from pathlib import Path
from typing import Any

from . import environment
from .smpybandits import REQUIREMENTS

Policies = dict[str, tuple[str, dict[str, Any]]]
"""By a name of ours: the class in the library, and its parameters."""


def run(policies: Policies, means: list[float], horizon: int, replications: int, folder: Path) -> dict[str, Any]:
    """Return the regrets of all replications of every policy on Bernoulli rewards."""
    task = json.dumps([policies, means, horizon, replications])
    regrets: dict[str, Any] = json.loads(environment.run(__file__, REQUIREMENTS, folder, task).splitlines()[-1])
    return regrets


def regret(policy: Any, means: list[float], horizon: int, luck: random.Random) -> float:
    """Return the pseudo-regret of one replication."""
    policy.startGame()
    lost = 0.0
    for _ in range(horizon):
        arm = policy.choice()
        policy.getReward(arm, 1.0 if luck.random() < means[arm] else 0.0)
        lost += max(means) - means[arm]
    return lost


def main(policies: Policies, means: list[float], horizon: int, replications: int) -> dict[str, list[float]]:
    """Play in this process, which has the library."""
    importlib.import_module("numpy").random.seed(1)
    library = importlib.import_module("SMPyBandits.Policies")
    found = {}
    for name, (kind, parameters) in policies.items():
        make, luck = getattr(library, kind), random.Random(1)
        found[name] = [regret(make(len(means), **parameters), means, horizon, luck) for _ in range(replications)]
    return found


if __name__ == "__main__":
    print(json.dumps(main(*json.loads(sys.argv[1]))))
