"""Contextual bandits of other libraries, one decision and one reward after the other, in an environment of their own.

obp's LinUCB and river's LinUCBDisjoint: disjoint linear models, neither of which gives the probability of its choice.
Each is asked and told in its own usual way.
"""

import importlib
import json
import operator
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from . import environment, live_libraries

# obp asks for a PyTorch that no Python of today has; what is measured here does not use it.
OBP = [
    "numpy==1.26.4",
    "pandas==2.1.4",
    "scipy==1.11.4",
    "scikit-learn==1.9.1",
    "matplotlib==3.11.2",
    "seaborn==0.13.2",
    "mypy_extensions",
    "pyyaml",
    "tqdm",
]
PYTORCH = ["torch", *(f"torch.{part}" for part in ("nn", "nn.functional", "optim", "utils", "utils.data"))]


def run(library: str, arms: int, size: int, rounds: int, folder: Path) -> float:
    """Return CPU microseconds per ask and tell."""
    arguments = library, str(arms), str(size), str(rounds)
    if library == "obp":
        said = environment.run(__file__, OBP, folder / "obp", *arguments, alone=["obp==0.5.7"])
    else:
        said = environment.run(__file__, live_libraries.REQUIREMENTS, folder / "live-peers", *arguments)
    return float(json.loads(said.splitlines()[-1]))


def contexts(size: int, rounds: int) -> Any:
    """The same rows for everybody."""
    numpy = importlib.import_module("numpy")
    return numpy.random.default_rng(1).normal(size=(rounds, size))


def timed(rows: Any, ask: Callable[[Any], Any], tell: Callable[[Any, Any, float], Any]) -> float:
    """CPU microseconds of one decision and its reward; a tenth of the rows is played before."""
    first = len(rows) // 10
    for row in rows[:first]:
        tell(ask(row), row, 0.5)
    start = time.process_time()
    for row in rows[first:]:
        tell(ask(row), row, 0.5)
    return 1e6 * (time.process_time() - start) / (len(rows) - first)


def obp(arms: int, size: int, rounds: int) -> float:
    """Open Bandit Pipeline's LinUCB."""
    stand_in = type("Stand", (), {})
    torch = MagicMock(Tensor=stand_in)
    torch.utils.data.Dataset = torch.nn.Module = stand_in
    sys.modules.update({name: operator.attrgetter(name)(MagicMock(torch=torch)) for name in PYTORCH})
    policy = importlib.import_module("obp.policy").LinUCB(dim=size, n_actions=arms, epsilon=0.3, random_state=1)
    rows = contexts(size, rounds)[:, None, :]
    return timed(
        rows,
        lambda row: int(policy.select_action(row)[0]),
        lambda arm, row, reward: policy.update_params(action=arm, reward=reward, context=row),
    )


def river(arms: int, size: int, rounds: int) -> float:
    """River's LinUCBDisjoint, whose contexts are mappings."""
    policy, names = importlib.import_module("river.bandit").LinUCBDisjoint(alpha=0.3, seed=1), list(range(arms))
    rows = [{f"x{i}": float(value) for i, value in enumerate(row)} for row in contexts(size, rounds)]
    return timed(
        rows,
        lambda row: policy.pull(names, context=row),
        lambda arm, row, reward: policy.update(arm, row, reward),
    )


if __name__ == "__main__":
    kinds = {"obp": obp, "river": river}
    print(json.dumps(kinds[sys.argv[1]](*map(int, sys.argv[2:]))))
