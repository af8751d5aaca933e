"""Compare this version's simulations with another's, bit for bit: `python -m benchmarks.bits OTHER_SRC`.

Regret and pulls of every policy on some problems at a short horizon, each version in a process of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import rightarm as ra

OURS = Path(__file__).parent.parent / "src"
HORIZON = 400
REPLICATIONS = 70
SEED = 5
POLICIES = [
    *("ra.AnytimeMOSS()", "ra.BetaThompson()", "ra.Boltzmann(0.5)", "ra.Boltzmann(ra.schedules.inverse_log(10.0))"),
    *("ra.BoltzmannGumbel(C=0.5)", "ra.BoltzmannGumbel(C=0.5, estimator='catoni')", "ra.EXP3(gamma=0.1)"),
    *("ra.EXP3PlusPlus()", "ra.EpsilonGreedy(epsilon=0.1)", "ra.ExploreThenCommit(each=5)", "ra.GaussianThompson()"),
    *("ra.KLMS()", "ra.KLUCB()", "ra.Maillard()", "ra.MOSS(horizon=400)", "ra.RobustUCB(u=1.0)", "ra.SoftMix(d=0.2)"),
    *(f"ra.PerturbedMean(noise=ra.noise.{law}())" for law in ("Gumbel", "Gaussian", "Exponential", "Uniform")),
    *("ra.ScaledGumbel()", "ra.UCB(C=0.5)", "ra.UCB1()"),
]
PROBLEMS = [
    *("ra.problems.Bernoulli([0.5, 0.45, 0.3, 0.7])", "ra.problems.Bernoulli([i / 13 for i in range(1, 13)])"),
    *("ra.problems.Gaussian([0.0, 0.1, -0.3])", "ra.problems.StudentT([0.5, 0.3, 0.0], df=2.5, scale=0.5)"),
]


def outcomes() -> dict[str, str]:
    """Return a hash of what each policy does on each problem."""
    found = {}
    for problem in PROBLEMS:
        for policy in POLICIES:
            played = ra.simulate(eval(policy), eval(problem), horizon=HORIZON, replications=REPLICATIONS, seed=SEED)
            digest = hashlib.sha256(played.regret.tobytes() + played.pulls.tobytes())
            found[f"{policy} on {problem}"] = digest.hexdigest()
    return found


def outcomes_of(source: Path) -> dict[str, str]:
    """Return the hashes of one version, which runs in a process of its own."""
    path = os.pathsep.join([str(source), str(OURS.parent)])
    command = [sys.executable, "-m", "benchmarks.bits", "play"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    if sys.argv[1] == "play":
        print(json.dumps(outcomes()))
    else:
        theirs = outcomes_of(Path(sys.argv[1]).resolve())
        ours = outcomes_of(OURS)
        differing = [name for name in ours if ours[name] != theirs[name]]
        print(f"{len(ours) - len(differing)} of {len(ours)} equal bit for bit", *differing, sep="\n")
        sys.exit(bool(differing))
