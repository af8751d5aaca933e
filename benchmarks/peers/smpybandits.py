"""SMPyBandits: its own `BoltzmannGumbel` policy, run by its own `Evaluator` in an environment of its own.

Its Gumbel noise has location 0, not +gamma, so it explores less than the others at the same C, and its first
pulls come in random order. `run` installs the library once; this module, run there, plays and prints JSON.
"""

import contextlib
import importlib
import json
import os
import sys
import time
from pathlib import Path

from . import PARAMETERS, bernoulli_means, environment

REQUIREMENTS = [  # it uses `btdtri` and `in1d`, which newer SciPy and NumPy have removed
    "SMPyBandits==0.9.7",
    "numpy==1.26.4",
    "scipy==1.11.4",
    "matplotlib==3.11.2",
    "joblib==1.6.0",
    "seaborn==0.13.2",
    "pandas==3.0.6",
    "scikit-learn==1.9.1",
    "scikit-optimize==0.10.2",
]


def run(arms: int, horizon: int, repetitions: int, folder: Path) -> tuple[float, float]:
    """Return CPU nanoseconds per round and the mean regret of Boltzmann-Gumbel exploration."""
    numbers = [str(number) for number in (arms, horizon, repetitions)]
    nanoseconds, regret = json.loads(environment.run(__file__, REQUIREMENTS, folder, *numbers))
    return nanoseconds, regret


def evaluate(arms: int, horizon: int, repetitions: int) -> tuple[float, float]:
    """Run the library's evaluator in this process; only its `startAllEnv` is timed."""
    names = "Arms", "Environment", "Policies"
    library = {name: importlib.import_module(f"SMPyBandits.{name}") for name in names}
    problem = {"arm_type": library["Arms"].Bernoulli, "params": bernoulli_means(arms)}
    policy = {"archtype": library["Policies"].BoltzmannGumbel, "params": {"C": PARAMETERS["bge"]}}
    evaluator = library["Environment"].Evaluator(
        {
            "horizon": horizon,
            "repetitions": repetitions,
            "n_jobs": 1,
            "verbosity": 0,
            "showplot": False,
            "environment": [problem],
            "policies": [policy],
        }
    )
    start = time.process_time()
    evaluator.startAllEnv()
    seconds = time.process_time() - start
    return 1e9 * seconds / (horizon * repetitions), float(evaluator.getCumulatedRegret(0)[-1])


if __name__ == "__main__":
    with Path(os.devnull).open("w") as silence, contextlib.redirect_stdout(silence):
        result = evaluate(*map(int, sys.argv[1:]))
    print(json.dumps(result))
