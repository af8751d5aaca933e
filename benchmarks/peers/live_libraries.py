"""MABWiser and river, one decision and one reward after the other, in an environment of their own.

MABWiser's Softmax is asked by `predict` and told by `partial_fit`; river's UCB by `pull` and `update`. Neither gives
the probability of its choice on this way.
"""

import importlib
import json
import sys
from pathlib import Path

from . import ask_and_tell, environment

REQUIREMENTS = ["mabwiser==2.7.4", "river==0.26.1"]


def run(library: str, arms: int, rounds: int, folder: Path) -> float:
    """Return CPU microseconds per ask and tell."""
    arguments = library, str(arms), str(rounds)
    return float(json.loads(environment.run(__file__, REQUIREMENTS, folder, *arguments)))


def mabwiser(arms: int, rounds: int) -> float:
    """MABWiser's Softmax, every arm known."""
    library = importlib.import_module("mabwiser.mab")
    names = list(range(arms))
    bandit = library.MAB(names, library.LearningPolicy.Softmax(tau=1), seed=1)
    bandit.fit(names, [0.5] * arms)
    return ask_and_tell(bandit.predict, lambda arm, reward: bandit.partial_fit([arm], [reward]), rounds)


def river(arms: int, rounds: int) -> float:
    """River's UCB, every arm known."""
    names = list(range(arms))
    policy = importlib.import_module("river.bandit").UCB(delta=1, seed=1)
    for arm in names:
        policy.update(arm, 0.5)
    return ask_and_tell(lambda: policy.pull(names), policy.update, rounds)


if __name__ == "__main__":
    print(json.dumps({"mabwiser": mabwiser, "river": river}[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))))
