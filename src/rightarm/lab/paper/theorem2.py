"""Theorem 2: a learning rate of c log t from the beginning, c > 2, gets stuck at the worse arm for ever."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rightarm.lab.paper.evidence import AGREES, decided, power
from rightarm.lab.paper.finding import BOUNDED, Claim, Finding, Study, Table, above, panel, ratios
from rightarm.lab.results import CellResult, Loaded
from rightarm.policies import schedule
from rightarm.problems import problem
from rightarm.simulation.panels import Line
from rightarm.simulation.statistics import Curve
from rightarm.theory import theorem2, theorem2_start, theorem2_stuck
from rightarm.types import F64

LINEAR = 0.9  # the power of T from which growth is called linear
PROOFS = "1/2"  # what the proof's sure arm pays


@problem(mean=lambda low, high, chance: low + (high - low) * chance)
def TwoValues(u: Any, *, low: float, high: float, chance: float) -> Any:
    """Pay ``high`` with probability ``chance``, else ``low``."""
    return low + (high - low) * (u < chance)


@schedule
def inverse_shifted_log(t: Any, *, c: float, more: float) -> Any:
    """β_t = 1 / (c log t + more)."""
    return 1 / (c * np.log(t) + more)


class Stuck(NamedTuple):
    """How many replications never came back to the better arm: measured, exact, and apart in standard errors."""

    measured: float
    exact: float
    z: float


def sure_and_chance(cell: CellResult) -> tuple[float, float]:
    """What the sure arm pays, and the coin's chance."""
    return float(cell.problem.values["low"][1]), float(cell.problem.values["chance"][0])


def stuck(cell: CellResult) -> Stuck:
    """The share of replications in which the coin was pulled once and never again."""
    temperature = cell.policy.values["temperature"]
    exact = theorem2_stuck(*sure_and_chance(cell), cell.horizon, lambda t: 1 / temperature.evaluate({"t": t}))
    share = float((cell.pulls[:, 0] == 1).mean())
    return Stuck(share, exact, (share - exact) / np.sqrt(exact * (1 - exact) / len(cell.pulls)))


def bound(cell: CellResult, T: F64) -> F64:
    """The lower bound: the paper's for c log t, the exact share that is stuck for the printed threshold."""
    sure, chance = sure_and_chance(cell)
    if cell.value("rate") is not None:
        return theorem2(chance - sure, T, float(cell.value("rate")))
    return (chance - sure) * (T - 1) * stuck(cell).exact


def linear(curve: Curve, statement: str) -> Claim:
    """That regret grows like T."""
    found = power(curve)
    return Claim(statement, found.above(LINEAR), f"it grows like T to the power {found} in the last decade", large=True)


def named(cell: CellResult) -> str:
    """The learning rate, and what the sure arm pays if that is not 1/2."""
    rate = cell.value("rate")
    name = str(cell.value("policy")) if rate is None else f"{rate:g} log t"
    return f"η = {name}" if cell.value("problem") == PROOFS else f"η = {name}, sure arm {cell.value('problem')}"


def judge(results: Loaded) -> Finding:
    """For c > 2, and for the printed threshold with a sure arm of 0.9: above the bound, linear, stuck as computed."""
    printed = results.one(problem=PROOFS, policy="2 log t + 0.01")
    cells = {named(cell): cell for cell in results if named(cell) != named(printed)}
    curves = {name: cell.curve(name) for name, cell in cells.items()}
    threshold = printed.curve(named(printed))
    bounds = {name: bound(cell, np.asarray(curves[name].x, dtype=float)) for name, cell in cells.items()}
    shares = {name: stuck(cell) for name, cell in cells.items()}
    claims = [above(f"{name}: regret above the bound", curve, bounds[name]) for name, curve in curves.items()]
    claims += [linear(curve, f"{name}: linear growth") for name, curve in curves.items()]
    claims += [
        Claim(
            f"{name}: as many replications are stuck as computed",
            decided(abs(share.z) < AGREES, abs(share.z) >= AGREES),
            f"{share.measured:.4f}, exactly {share.exact:.4f}: {abs(share.z):.1f} standard errors",
        )
        for name, share in shares.items()
    ]
    everything = [*curves.values(), threshold]
    return Finding(
        margin=f"measured / bound at least {ratios(curves.values(), bounds.values()).min():.3g}; at the end stuck are "
        + ", ".join(f"{share.measured:.1%} ({name})" for name, share in shares.items()),
        printed=[linear(threshold, f"{threshold.label}, which is above 2 log t: linear regret on the proof's problem")],
        claims=claims,
        panels=[
            panel("Regret", everything, [_line(name, curves[name], bounds[name]) for name in curves if _drawn(name)]),
            panel("Regret per round", [c.over(c.x) for c in everything], y="regret / T"),
        ],
        tables=[
            Table(
                "Stuck: the better arm pulled once, never again",
                ["", "t_0", "measured", "exact", "z"],
                [
                    [n, _start(cells[n]), f"{s.measured:.4f}", f"{s.exact:.4f}", f"{s.z:+.1f}"]
                    for n, s in shares.items()
                ],
            )
        ],
    )


def _line(name: str, curve: Curve, values: F64) -> Line:
    return Line(f"bound, {name}", curve.x, values)


def _drawn(name: str) -> bool:
    return not name.startswith("η = 3 ")  # whose bound is below 1e-10 T


def _start(cell: CellResult) -> str:
    return "" if cell.value("rate") is None else f"{theorem2_start(float(cell.value('rate'))):g}"


STUDY = Study(
    name="theorem2",
    claim="There is a problem with two arms on which Boltzmann exploration has linear regret if its learning rate is "
    "above 2 log t from the beginning: when the better arm starts badly, it may never be pulled again. The proof's "
    "problem shows it for c log t with c > 2 only; just above 2 log t its regret grows like √T. The statement is saved "
    "by another problem: where the sure arm pays r, c > 1/r is enough.",
    formula="η_t ≥ c log t, c > 2  ⇒  R_T ≥ Δ (T − t_0) (1/2 − Δ)^{t_0} / 2,  t_0 = ⌈(2/a)^{1/a}⌉, a = c/2 − 1",
    setting="The proof's problem: arm 1 pays 1 with probability 1/2 + Δ, Δ = 0.25, else 0; arm 2 pays 1/2 always. The "
    "other: a coin of 0.95 against 0.9 always. At c = 3 the bound is below 10^{−10} T (t_0 = 16) and is not drawn. The "
    "constant t_0 is the corrected one; printed is (2a)^{1/a}.",
    criteria=(
        BOUNDED,
        f"Growth is linear if the power of T in the last decade is above {LINEAR:g}, by a 99% bootstrap interval over "
        "replications, and is not if that is below; a quick run cannot tell.",
        f"The share of replications that are stuck equals the exact one if they differ by less than {AGREES:g} "
        "standard errors.",
    ),
    judge=judge,
)
