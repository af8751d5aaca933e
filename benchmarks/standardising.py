"""Standardising, ridge and exploration with contexts: `python -m benchmarks.standardising`.

The share of right answers, or of clicks, in one and in two passes over the rows, each pass in another order. Beside
ours stands MABWiser's LinUCB on the same rows, as they are; `--alone` leaves it out.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rightarm as ra
from benchmarks.common import CACHE, table
from benchmarks.peers import data_sets, mabwiser_linear

PEERS_ORDERS = 3
ALPHAS = (0.1, 0.3)


@dataclass(frozen=True)
class World:
    """A problem whose contexts are rows, and the share that the best arm of each row would earn."""

    problem: Any
    rows: Any
    orders: int
    best: float = 1.0
    classes: Any = None


def digits(size: float) -> World:
    """Pictures of digits, 8 × 8 pixels from 0 to ``size``."""
    rows, classes = data_sets.run("digits", CACHE)
    pixels = np.array(rows) * (size / 16)
    return World(ra.problems.Classification(pixels, classes), pixels, 20, classes=classes)


def forest() -> World:
    """Rows such as those of Covertype, made up: ten numbers of many sizes, and 44 columns of which two are 1."""
    random, count = np.random.default_rng(1), 5_000
    shares = np.array([0.365, 0.488, 0.062, 0.005, 0.016, 0.030, 0.034])
    classes = random.choice(7, size=count, p=shares)
    middle = np.array([2960, 155, 14, 270, 46, 2350, 212, 223, 142, 1980])
    deviation = np.array([280, 112, 7.5, 212, 58, 1560, 27, 20, 38, 1324])
    shift, own = random.normal(0, 0.35, size=(7, 10)), np.array([0.55] + [1.0] * 9)
    shift[:, 0] = (np.array([3128, 2921, 2394, 2224, 2787, 2419, 3362]) - 2960) / 280  # height tells most
    numbers = middle + deviation * (shift[classes] + own * random.normal(size=(count, 10)))
    soils = 1 / np.arange(1, 41) ** 1.2
    columns = [numbers]
    for levels, weights in ((4, np.full(4, 0.7)), (40, 8 * soils / soils.sum())):
        laws = random.dirichlet(weights, size=7)
        columns.append(np.eye(levels)[[random.choice(levels, p=laws[one]) for one in classes]])
    rows = np.hstack(columns)
    return World(ra.problems.Classification(rows, classes), rows, 10, classes=classes)


def click_rate(x: Any, *, theta: Any, offset: Any) -> Any:
    """How likely a visitor clicks on an arm."""
    return 1 / (1 + np.exp(-(offset + (x * theta).sum())))


def clicked(mean: Any, u: Any) -> Any:
    """Return 1 for a click."""
    return 1.0 * (u < mean)


def clicks() -> World:
    """Visitors with an age, an hour, pages seen, a device and a country; five arms, which 5% of them click on."""
    random, count = np.random.default_rng(1), 10_000
    numbers = [random.normal(40, 12, count), random.uniform(0, 24, count), random.lognormal(1, 1, count)]
    device = random.choice(3, size=count, p=[0.6, 0.35, 0.05])
    countries = 1 / np.arange(1, 21)
    country = random.choice(20, size=count, p=countries / countries.sum())
    rows = np.hstack([np.stack(numbers, axis=1), np.eye(3)[device], np.eye(20)[country]])
    theta = random.normal(size=(5, 26)) * np.array([0.4 / 12, 0.4 / 7, 0.3 / 3, *[0.6] * 3, *[0.5] * 20])
    offset = random.normal(-3.3, 0.2, 5) - theta @ rows.mean(axis=0)
    parameters = {"theta": theta.tolist(), "offset": offset.tolist()}
    problem = ra.problems.ContextProblem(ra.problems.DataContext(rows), click_rate, reward=clicked, **parameters)
    rates = 1 / (1 + np.exp(-(rows @ theta.T + offset)))
    return World(problem, rows, 20, float(rates.max(axis=1).mean()))


def models(columns: int) -> dict[str, ra.estimators.Linear]:
    """Linear models of so many columns, by what to call them."""
    return {
        "standardised": ra.estimators.Linear(columns),
        "standardised, ridge=1": ra.estimators.Linear(columns, ridge=1.0),
        "standardise=False": ra.estimators.Linear(columns, standardise=False),
    }


def policies(linear: ra.estimators.Linear) -> dict[str, ra.Policy]:
    """Policies on a model, by what to call them."""
    return {
        **{f"UCB(C={C})": ra.UCB(C=C, estimator=linear) for C in (0.1, 0.2, 0.3)},
        **{f"BoltzmannGumbel(C={C})": ra.BoltzmannGumbel(C=C, estimator=linear) for C in (0.05, 0.1, 0.2)},
        "GaussianThompson(sigma=0.1)": ra.GaussianThompson(sigma=0.1, estimator=linear),
        "ResidualGumbel()": ra.ResidualGumbel(estimator=linear),
        "ScaledGumbel()": ra.ScaledGumbel(estimator=linear),
    }


def cell(shares: Any) -> str:
    """Return the means of one and two passes over the orders, and the larger standard error."""
    error = (shares.std(axis=0, ddof=1) / np.sqrt(len(shares))).max()
    return f"{shares[:, 0].mean():.3f} / {shares[:, 1].mean():.3f} ({error:.3f})"


def ours(world: World) -> list[str]:
    """Return a cell for each policy on each model."""
    count = len(world.rows)
    played = [one for linear in models(world.rows.shape[1]).values() for one in policies(linear).values()]
    passes = [count, 2 * count]
    result = ra.simulate(
        played, world.problem, horizon=2 * count, replications=world.orders, seed=1, checkpoints=passes
    )
    return [cell(world.best - regret / passes) for regret in result.regret]


def theirs(world: World, alpha: float) -> str:
    """Return the cell of MABWiser's LinUCB; clicks, which need a simulated reward, it does not play."""
    if world.classes is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        file.write_text(json.dumps([world.rows.tolist(), np.asarray(world.classes).tolist()]))
        return cell(np.array(mabwiser_linear.run(file, PEERS_ORDERS, alpha, CACHE)))


def main() -> None:
    """Print a line for each model and policy."""
    worlds = {"digits, 0 to 1": digits(1), "digits, 0 to 16": digits(16), "forest": forest(), "clicks": clicks()}
    names = [[model, policy] for model, linear in models(1).items() for policy in policies(linear)]
    cells = [list(line) for line in zip(*map(ours, worlds.values()), strict=True)]
    lines = [name + line for name, line in zip(names, cells, strict=True)]
    if "--alone" not in sys.argv:
        lines += [
            ["MABWiser 2.7.4", f"LinUCB(alpha={alpha})", *(theirs(world, alpha) for world in worlds.values())]
            for alpha in ALPHAS
        ]
    print("share of right answers, or of clicks, in one / two passes (standard error)\n")
    print(table(["model", "policy", *worlds], lines))


if __name__ == "__main__":
    main()
