"""MABWiser's LinUCB on data sets as bandits, in an environment of its own: the share of right answers.

It is told the reward of its answer and nothing else, one row after the other, as ours are.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from . import environment, live_libraries


def run(file: Path, orders: int, alpha: float, folder: Path) -> list[list[float]]:
    """Return the shares of right answers of one and of two passes over a file of rows and classes, for each order."""
    arguments = str(file.absolute()), str(orders), str(alpha)
    said = environment.run(__file__, live_libraries.REQUIREMENTS, folder / "live-peers", *arguments)
    found: list[list[float]] = json.loads(said)
    return found


def shares(rows: Any, classes: Any, seed: int, alpha: float) -> list[float]:
    """Play two passes, each in another order."""
    numpy, mab = importlib.import_module("numpy"), importlib.import_module("mabwiser.mab")
    random = numpy.random.default_rng(seed)
    arms = sorted(set(classes.tolist()))
    policy = mab.MAB(arms, mab.LearningPolicy.LinUCB(alpha=alpha), seed=seed)
    right, played, found = 0, 0, []
    for _ in range(2):
        for place in random.permutation(len(rows)):
            row = rows[place : place + 1]
            arm = policy.predict(row) if played else arms[0]  # it must have learned something before it is asked
            reward = int(arm == classes[place])
            policy.partial_fit([arm], [reward], row)
            right += reward
            played += 1
        found.append(right / played)
    return found


def main(file: str, orders: str, alpha: str) -> None:
    """Print the shares of all orders as JSON."""
    numpy = importlib.import_module("numpy")
    data = json.loads(Path(file).read_text())
    rows, classes = numpy.array(data[0], dtype=float), numpy.array(data[1])
    print(json.dumps([shares(rows, classes, seed, float(alpha)) for seed in range(int(orders))]))


if __name__ == "__main__":
    main(*sys.argv[1:])
