"""What one Python saves, another loads: identities, bandits, results."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from interpreters import THIS, other_pythons, run_python

VERSIONS = other_pythons()
WHY = "no other Python with our dependencies: make test PYTHON=python3.13 makes one, RIGHTARM_PYTHONS names others"
pytestmark = pytest.mark.skipif(not VERSIONS, reason=WHY)

OWN = '''
import numpy as np
import rightarm as ra

SHIFT = np.uint64(2)

def helper(x, factor=2.0):
    """Words."""
    return factor * np.sqrt(x)

class Wide(ra.noise.Law):
    quantile = ra.noise.Gaussian.quantile
    def cdf(self, x):
        return ra.noise.Gaussian().cdf(x)
    def sample(self, random, size):
        return random.standard_normal(size)

@ra.policy(noise=ra.noise.Gumbel(), explore=lambda arms, *, C: 0.1 * C / arms, keep={"root": lambda pulls: pulls**0.5})
def Own(t, mean, root, z, *, C: ra.policies.Positive = 1.0):
    """A policy of a user's own."""
    bonus = C / helper(root)  # with a helper
    return mean + bonus * (z + SHIFT)

@ra.problems.problem(mean=lambda mean: mean)
def Pays(u, v, *, mean: float):
    return mean + u - v if True else {x: [y for y in range(3)] for x in (1, 2)}[1][0]
'''
IDENTITIES = """
    import json, sys
    sys.path.insert(0, sys.argv[1])
    import own, rightarm as ra
    from rightarm.formula import Family
    from rightarm.formula.cache import compiled_hash
    from rightarm.experiments import Cell
    named = {**vars(ra), **vars(own)}
    print(json.dumps({
        "formulas": {n: f.identity for n, f in sorted(named.items()) if isinstance(f, Family)},
        "law": own.Wide().specification(),
        "cell": Cell(own.Own(), own.Pays([0.5, 0.25]), 100, 8, seed=1, checkpoints=(100,)).key,
        "compiled": compiled_hash(),
    }))
"""
SAVE = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import own, rightarm as ra
    for name, policy in {"own": own.Own(C=0.5), "bge": ra.BoltzmannGumbel(C=0.5), "beta": ra.BetaThompson()}.items():
        bandit = ra.Bandit(["a", "b"], policy, seed=7)
        for decision in [bandit.ask() for _ in range(9)]:
            bandit.tell(decision, float(decision.id % 2))
        open(f"{sys.argv[2]}/{name}.json", "w").write(bandit.to_json())
        print([(d.arm, d.propensity) for d in (bandit.ask() for _ in range(9))])
    result = ra.simulate([own.Own(C=0.5), ra.UCB(C=0.5)], own.Pays([0.5, 0.25]), horizon=200, replications=8, seed=3)
    result.save(f"{sys.argv[2]}/result.parquet")
"""
LOAD = """
    import sys
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    import own, rightarm as ra
    for name in ("own", "bge", "beta"):
        bandit = ra.Bandit.from_json(open(f"{sys.argv[2]}/{name}.json").read())
        print([(d.arm, d.propensity) for d in (bandit.ask() for _ in range(9))])
    result = ra.Result.load(f"{sys.argv[2]}/result.parquet")
    again = result.repeat()
    assert np.array_equal(again.regret, result.regret) and np.array_equal(again.pulls, result.pulls)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


def identities(folder: Path, **options: Any) -> Any:
    return json.loads(run_python(IDENTITIES, str(folder), **options))


@pytest.mark.parametrize("version", VERSIONS)
def test_identities_are_the_same(folder: Path, version: str) -> None:
    here, there = identities(folder), identities(folder, python=VERSIONS[version])
    assert len(here["formulas"]) > 30
    assert all(text.startswith("tree:") for text in here["formulas"].values())
    assert here == there


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("direction", ["from there to here", "from here to there"])
def test_what_one_saves_another_loads(folder: Path, version: str, direction: str) -> None:
    there = functools.partial(run_python, python=VERSIONS[version])
    save, load = (there, run_python) if direction == "from there to here" else (run_python, there)
    saved, loaded = save(SAVE, str(folder), str(folder)), load(LOAD, str(folder), str(folder))
    assert saved == loaded != ""


def test_this_python_is_not_another_one() -> None:
    assert THIS not in VERSIONS
