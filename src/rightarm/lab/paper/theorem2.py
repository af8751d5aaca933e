"""Theorem 2: on some problem every learning rate above 2 log t has linear regret; its proof takes another problem."""

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
from rightarm.theory import theorem2, theorem2_power, theorem2_start, theorem2_stuck
from rightarm.types import F64

LINEAR = 0.9  # the power of T from which growth is called linear
NEAR = 0.05  # how close a power of T must be to a derived one
PROOFS = "1/2"  # what the proof's sure arm pays
OTHERS = "1/2, other Δ"


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


def as_derived(cell: CellResult) -> Claim:
    """That at 2 log t + 0.01 the regret on the proof's problem grows like T^{1−2Δ}."""
    sure, chance = sure_and_chance(cell)
    found, derived = power(cell.curve()), theorem2_power(chance - sure)
    near = found.low > derived - NEAR and found.high < derived + NEAR
    return Claim(
        f"η = 2 log t + 0.01, Δ = {chance - sure:.3g}: regret grows like T^{{{derived:.3g}}} on the proof's problem",
        decided(near, found.low > derived + NEAR or found.high < derived - NEAR),
        f"power {found} in the last decade",
        large=True,
    )


def named(cell: CellResult) -> str:
    """The learning rate, and what the sure arm pays if that is not 1/2."""
    rate = cell.value("rate")
    name = str(cell.value("policy")) if rate is None else f"{rate:g} log t"
    return f"η = {name}" if cell.value("problem") == PROOFS else f"η = {name}, sure arm {cell.value('problem')}"


def judge(results: Loaded) -> Finding:
    """For c > 2, and just above 2 log t with a sure arm of 0.9: above the bound, linear, stuck as computed."""
    printed, others = results.one(problem=PROOFS, policy="2 log t + 0.01"), results.where(problem=OTHERS)
    cells = {named(cell): cell for cell in results.where(problem=PROOFS, policy="c log t")}
    cells |= {named(cell): cell for cell in results.where(problem="0.9")}
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
            f"{share.measured:.4f}, exactly {share.exact:.4f}: {abs(share.z):.1f} standard errors apart",
        )
        for name, share in shares.items()
    ]
    everything = [*curves.values(), threshold]
    return Finding(
        margin=f"measured / bound at least {ratios(curves.values(), bounds.values()).min():.3g}; at the end stuck are "
        + ", ".join(f"{share.measured:.1%} (exactly {share.exact:.1%}; {name})" for name, share in shares.items()),
        proof=[linear(threshold, f"{threshold.label}, which is above 2 log t: linear regret on the proof's problem")],
        claims=claims,
        remarks=[as_derived(cell) for cell in (printed, *others)],
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
    "above 2 log t from the beginning: when the better arm starts badly, it may never be pulled again. This is true, "
    "but the proof's problem shows it for c log t with c > 2 only; just above 2 log t its regret grows like T^{1−2Δ}, "
    "√T at Δ = 1/4. Another problem shows the statement: where the sure arm pays r, c > 1/r is enough, and with r = "
    "0.9 and a coin of 0.95 at least 2.8% of the runs never leave the worse arm, for every rate above 2 log t.",
    formula="η_t ≥ c log t, c > 2  ⇒  R_T ≥ Δ (T − t_0) (1/2 − Δ)^{t_0} / 2,  t_0 = ⌈(2/a)^{1/a}⌉, a = c/2 − 1",
    setting="The proof's problem: arm 1 pays 1 with probability 1/2 + Δ, Δ = 0.25, else 0; arm 2 pays 1/2 always. The "
    "other: a coin of 0.95 against 0.9 always. Just above 2 log t the proof's problem is also played with Δ = 0.1 and "
    "0.4. At c = 3 the bound is below 10^{−10} T (t_0 = 16) and is not drawn. The "
    "constant t_0 is the corrected one; printed is (2a)^{1/a}.",
    criteria=(
        BOUNDED,
        f"Growth is linear if the power of T in the last decade is above {LINEAR:g}, by a 99% bootstrap interval over "
        "replications, and is not if that is below; a quick run cannot tell.",
        f"The share of replications that are stuck equals the exact one if they differ by less than {AGREES:g} "
        "standard errors.",
        "The statement is existential: it holds if the claims hold on the problems that are named in them. The proof "
        "fails if on its own problem growth is not linear just above 2 log t.",
        f"A power of T is as derived if the 99% interval lies within {NEAR:g} of it.",
    ),
    judge=judge,
)
