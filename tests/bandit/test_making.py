"""No surprise at the first request: what a bandit needs is compiled when it is made."""

from __future__ import annotations

import json

import pytest

from few import few
from interpreters import run_python

CODE = """
import json
import rightarm as ra
from numba.core import dispatcher

bandit = ra.Bandit(["a", "b", "c"], {policy}, seed=1)
compiled, compile_one = [], dispatcher.Dispatcher.compile


def watched(self, signature):
    compiled.append(str(self))
    return compile_one(self, signature)


dispatcher.Dispatcher.compile = watched
for reward in (0.0, 1.0) * 10:
    bandit.tell(bandit.ask(), reward)
    bandit.probabilities()
bandit.tell([(decision, 1.0) for decision in bandit.ask(5)])
print(json.dumps(compiled))
"""
POLICIES = ["ra.ScaledGumbel()", "ra.BetaThompson()", "ra.KLUCB(estimator=ra.estimators.Mean(window=8))"]
POLICIES += ["ra.EXP3(gamma=0.1, estimator=ra.estimators.Mean(discount=0.9))"]
POLICIES += [
    "ra.BoltzmannGumbel(C=1.0, estimator=ra.estimators.Catoni(C=1.0, window=5))",
    "ra.GaussianThompson(), floor=0.1",
]


@pytest.mark.parametrize("policy", few(2, POLICIES))
def test_asking_and_telling_compiles_nothing_more(policy: str) -> None:
    """Nor does it load machine code: not even the first time in a process."""
    assert json.loads(run_python(CODE.format(policy=policy))) == []
