"""Boltzmann exploration fails: Theorem 2, GLIE schedules, monotone learning rates, and ε-greedy beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rightarm.experiments import CellResult, Results
from rightarm.paper.evidence import AGREES, Verdict, all_of, any_of, decided, equals, fit, halves, is_less, power
from rightarm.paper.finding import (
    Claim,
    Finding,
    NumberTable,
    above,
    final_regret_against,
    grows,
    panel,
    ratios,
    with_error,
)
from rightarm.policies.family import schedule
from rightarm.problems import problem
from rightarm.simulation.panels import Curve, Line
from rightarm.theory import glie_exponent, proposition1, theorem2, theorem2_power, theorem2_start, theorem2_stuck
from rightarm.types import F64, I64

# The problem of Theorem 2's proof: a coin, and a sure arm that pays a little less on average.


@problem(mean=lambda low, high, chance: low + (high - low) * chance)
def TwoValues(u: float, *, low: float, high: float, chance: float) -> float:
    """Pay ``high`` with probability ``chance``, else ``low``."""
    return low + (high - low) * (u < chance)


@schedule
def inverse_shifted_log(t: F64, *, c: float, more: float) -> F64:
    """β_t = 1 / (c log t + more)."""
    return 1 / (c * np.log(t) + more)


def sure_and_chance(cell: CellResult) -> tuple[float, float]:
    """Return what the sure arm pays, and the coin's chance."""
    values = cell.problem.values
    return float(values["low"][1]), float(values["chance"][0])


def stuck_share(cell: CellResult) -> float:
    """Return the exact chance that the coin is pulled once and never again."""
    sure, chance = sure_and_chance(cell)
    temperature = cell.policy.values["temperature"]
    return theorem2_stuck(sure, chance, cell.horizon, lambda t: 1 / temperature.evaluate({"t": t}))


# Theorem 2: on some problem every learning rate above 2 log t has linear regret; its proof takes another problem.

LINEAR = 0.9  # the power of T from which growth is called linear
NEAR = 0.05  # how close a power of T must be to a derived one
PROOFS = "1/2"  # what the proof's sure arm pays
OTHERS = "1/2, other Δ"


class Stuck(NamedTuple):
    """The share of runs that never returned to the better arm: measured, exact, and the gap in standard errors."""

    measured: float
    exact: float
    z: float


def stuck(cell: CellResult) -> Stuck:
    """Compare the share of replications in which the coin was pulled once and never again with the exact one."""
    exact = stuck_share(cell)
    share = float((cell.pulls[:, 0] == 1).mean())
    return Stuck(share, exact, (share - exact) / np.sqrt(exact * (1 - exact) / len(cell.pulls)))


def lower_bound(cell: CellResult, T: F64) -> F64:
    """Return the paper's bound for c log t, or the exact share that is stuck for the printed threshold."""
    sure, chance = sure_and_chance(cell)
    if cell.value("rate") is not None:
        return theorem2(chance - sure, T, float(cell.value("rate")))
    return (chance - sure) * (T - 1) * stuck_share(cell)


def linear(curve: Curve, statement: str) -> Claim:
    """Claim that regret grows like T."""
    found = power(curve)
    return Claim(statement, found.above(LINEAR), f"it grows like T to the power {found} in the last decade", large=True)


def as_derived(cell: CellResult) -> Claim:
    """Claim that at 2 log t + 0.01 the regret on the proof's problem grows like T^{1−2Δ}."""
    sure, chance = sure_and_chance(cell)
    found = power(cell.curve())
    derived = theorem2_power(chance - sure)
    near = found.low > derived - NEAR and found.high < derived + NEAR
    return Claim(
        f"η = 2 log t + 0.01, Δ = {chance - sure:.3g}: regret grows like T^{{{derived:.3g}}} on the proof's problem",
        decided(near, found.low > derived + NEAR or found.high < derived - NEAR),
        f"power {found} in the last decade",
        large=True,
    )


def stuck_as_computed(name: str, share: Stuck) -> Claim:
    """Claim that as many replications are stuck as the exact chance says."""
    return Claim(
        f"{name}: as many replications are stuck as computed",
        decided(abs(share.z) < AGREES, abs(share.z) >= AGREES),
        f"{share.measured:.4f}, exactly {share.exact:.4f}: {abs(share.z):.1f} standard errors apart",
    )


def rate_of(cell: CellResult) -> str:
    """Return the learning rate, and what the sure arm pays if that is not 1/2."""
    rate = cell.value("rate")
    name = str(cell.value("policy")) if rate is None else f"{rate:g} log t"
    return f"η = {name}" if cell.value("problem") == PROOFS else f"η = {name}, sure arm {cell.value('problem')}"


def judge_theorem2(results: Results) -> Finding:
    """Judge, for c > 2, and just above 2 log t with a sure arm of 0.9: above the bound, linear, stuck as computed."""
    printed = results.one(problem=PROOFS, policy="2 log t + 0.01")
    cells = {rate_of(cell): cell for cell in results.where(problem=PROOFS, policy="c log t")}
    cells |= {rate_of(cell): cell for cell in results.where(problem="0.9")}
    curves = {name: cell.curve(name) for name, cell in cells.items()}
    threshold = printed.curve(rate_of(printed))
    bounds = {name: lower_bound(cell, np.asarray(curves[name].x, dtype=float)) for name, cell in cells.items()}
    shares = {name: stuck(cell) for name, cell in cells.items()}
    claims = [above(f"{name}: regret above the bound", curve, bounds[name]) for name, curve in curves.items()]
    claims += [linear(curve, f"{name}: linear growth") for name, curve in curves.items()]
    claims += [stuck_as_computed(name, share) for name, share in shares.items()]
    drawn = [name for name in curves if not name.startswith("η = 3 ")]  # whose bound is below 1e-10 T
    lines = [Line(f"bound, {name}", curves[name].x, bounds[name]) for name in drawn]
    everything = [*curves.values(), threshold]
    return Finding(
        margin=f"measured / bound at least {ratios(curves.values(), bounds.values()).min():.3g}; at the end stuck are "
        + ", ".join(f"{share.measured:.1%} (exactly {share.exact:.1%}; {name})" for name, share in shares.items()),
        proof=[linear(threshold, f"{threshold.label}, which is above 2 log t: linear regret on the proof's problem")],
        claims=claims,
        remarks=[as_derived(cell) for cell in (printed, *results.where(problem=OTHERS))],
        panels=[
            panel("Regret", everything, lines),
            panel("Regret per round", [curve.over(curve.x) for curve in everything], y="regret / T"),
        ],
        tables=[
            NumberTable(
                "Stuck: the better arm pulled once, never again",
                ["", "t_0", "measured", "exact", "z"],
                [[name, _start(cells[name]), *_stuck_row(share)] for name, share in shares.items()],
            )
        ],
    )


def _stuck_row(share: Stuck) -> list[str]:
    return [f"{share.measured:.4f}", f"{share.exact:.4f}", f"{share.z:+.1f}"]


def _start(cell: CellResult) -> str:
    return "" if cell.value("rate") is None else f"{theorem2_start(float(cell.value('rate'))):g}"


# GLIE: a schedule that explores for ever and is greedy in the limit has sublinear regret, but T to a power near 1.

ALPHAS = (0.5, 0.2, 0.1)  # regret of at least T^{1−α} is looked for


def judge_glie(results: Results) -> Finding:
    """Judge whether for each α some gap has a power above 1 − α, and all are below 1."""
    curves = {float(cell.value("gap")): cell.curve(f"Δ = {cell.value('gap'):g}") for cell in results}
    powers = {gap: power(curve) for gap, curve in curves.items()}
    top = max(powers, key=lambda gap: powers[gap].value)
    exponents = {gap: glie_exponent(gap) for gap in powers}
    claims = [
        Claim(
            f"α = {alpha:g}: on some of these problems regret grows at least like T^{{1−α}}",
            any_of(found.above(1 - alpha) for found in powers.values()),
            f"the largest power is {powers[top]}, at Δ = {top:g}",
            large=True,
        )
        for alpha in ALPHAS
    ]
    claims += [
        Claim(f"Δ = {gap:g}: regret is sublinear", found.below(1.0), f"power {found}", large=True)
        for gap, found in powers.items()
    ]
    return Finding(
        margin="power of T in the last decade "
        + ", ".join(f"{found.value:.3f} (Δ = {gap:g}, derived {exponents[gap]:.3f})" for gap, found in powers.items()),
        claims=claims,
        panels=[
            panel("Regret", list(curves.values())),
            panel(
                "Regret over its derived power of T",
                [curve.over(curve.x ** exponents[gap]) for gap, curve in curves.items()],
                y="regret over T to that power",
            ),
        ],
        tables=[
            NumberTable(
                "The power of T in the last decade",
                ["Δ", "measured", "derived, up to logarithms: √(1 − 4Δ²)"],
                [[f"{gap:g}", str(found), f"{exponents[gap]:.3f}"] for gap, found in powers.items()],
            )
        ],
    )


# “Any monotone learning rate is suboptimal”: every rate has a gap at which it is many times worse than BGE.

MUCH = 3.0  # times BGE's regret from which a rate is called suboptimal at a gap
BGE = "BGE"


def monotone_rate_of(cell: CellResult) -> str:
    """Return the learning rate of a cell."""
    c = cell.value("c")
    return str(cell.value("policy")) if c is None else f"{c:g} log t"


def suboptimal(curve: Curve, reference: Curve) -> Claim:
    """Claim that at some gap the regret is many times that of BGE, replication by replication."""
    pairs = zip(curve.samples.T, reference.samples.T, strict=True)
    verdicts = [is_less(MUCH * own, rate, curve.x.size) for rate, own in pairs]
    ratio = curve.mean / reference.mean
    i = int(ratio.argmax())
    text = f"{ratio[i]:.3g} times at Δ = {curve.x[i]:g}"
    return Claim(f"{curve.label}: at some gap more than {MUCH:g} times the regret of BGE", any_of(verdicts), text, True)


def judge_monotone(results: Results) -> Finding:
    """Judge whether every rate has such a gap."""
    rates = dict.fromkeys(monotone_rate_of(cell) for cell in results)
    found = {
        rate: final_regret_against(
            "gap",
            rate if rate == BGE else f"η = {rate}",
            [cell for cell in results if monotone_rate_of(cell) == rate],
        )
        for rate in rates
    }
    reference = found.pop(BGE)
    claims = [suboptimal(curve, reference) for curve in found.values()]
    best = min(found.values(), key=lambda curve: float((curve.mean / reference.mean).max()))
    count = sum(claim.verdict is Verdict.HOLDS for claim in claims)
    return Finding(
        margin=f"{count} of {len(claims)} rates are more than {MUCH:g} times worse than BGE at some gap; least bad is "
        f"{best.label}, {(best.mean / reference.mean).max():.3g} times",
        claims=claims,
        panels=[
            panel("Regret against the gap", [*found.values(), reference], x="Δ"),
            panel(
                "Regret over that of BGE",
                [curve.over(reference.mean) for curve in found.values()],
                x="Δ",
                y="regret / regret of BGE",
            ),
        ],
    )


# “No more effective than ε-greedy”: Boltzmann exploration and ε-greedy, each with its best parameter of many.

SIDES = {"Boltzmann": ("BE-const", "BE-log", "BE-sqrt"), "ε-greedy": ("ε-const", "ε-decreasing")}


def best_cell(cells: Sequence[CellResult]) -> CellResult:
    """Return the cell with the least regret in half of the replications."""
    return min(cells, key=lambda cell: float(halves(cell.regret[:, -1])[0].mean()))


def described(cell: CellResult) -> str:
    """Return the name of a cell and the regret of the other half."""
    regret = halves(cell.regret[:, -1])[1]
    return f"{cell.value('policy')} with c = {cell.value('c'):g}: {with_error(regret)}"


def unseen(cell: CellResult) -> float:
    """Return what runs that are stuck for ever add to the mean regret, if the half that is judged has none.

    It is exact. Only on Theorem 2's problem, and for Boltzmann exploration: so rare an event may be missed, and
    costs ΔT.
    """
    is_coin = cell.problem.family is TwoValues
    if "temperature" not in cell.policy.values or not is_coin or (cell.pulls[1::2, 0] == 1).any():
        return 0.0
    sure, chance = sure_and_chance(cell)
    return stuck_share(cell) * (chance - sure) * (cell.horizon - 1)


def judge_greedy(results: Results) -> Finding:
    """Judge whether on every problem the best ε-greedy has no more regret than the best Boltzmann exploration."""
    claims = []
    rows = []
    panels = []
    for name in dict.fromkeys(str(cell.value("problem")) for cell in results):
        cells = results.where(problem=name)
        soft, greedy = (best_cell([c for c in cells if c.value("policy") in names]) for names in SIDES.values())
        more = unseen(soft)
        text = f"{described(soft)}; {described(greedy)}"
        if more:
            text += f"; runs that are stuck, none of which was drawn, add {more:.1f} to the mean"
        verdict = is_less(halves(greedy.regret[:, -1])[1], halves(soft.regret[:, -1])[1] + more)
        claims.append(Claim(f"{name}: Boltzmann exploration is no better than ε-greedy", verdict, text, large=True))
        rows.append([name, described(soft), described(greedy)])
        panels.append(panel(name, _curves_by_policy(cells), x="c", y="regret"))
    ahead = sum(claim.verdict is Verdict.HOLDS for claim in claims)
    return Finding(
        margin=f"ε-greedy is ahead on {ahead} of {len(claims)} problems",
        claims=claims,
        panels=panels,
        tables=[NumberTable("The best of each side, regret of the other half (standard error)", ["", *SIDES], rows)],
    )


def _curves_by_policy(cells: Sequence[CellResult]) -> list[Curve]:
    policies = dict.fromkeys(str(cell.value("policy")) for cell in cells)
    return [
        final_regret_against("c", policy, [cell for cell in cells if cell.value("policy") == policy])
        for policy in policies
    ]


FAST_ENOUGH = ("η = (log t)/Δ", "η = log(tΔ²)/Δ")


@schedule
def inverse_root_log(t: F64, *, c: float) -> F64:
    """β_t = c / √log t: above every multiple of 1 / log t in the end."""
    return c / np.sqrt(np.log(t))


@schedule
def minimal(t: F64, *, gap: float) -> F64:
    """β_t = Δ / log(tΔ²), the proposition's own; Δ while tΔ² is below e."""
    return gap / np.log(np.maximum(t * gap**2, np.e))


def exact(cell: CellResult, horizons: F64 | I64) -> F64:
    """Return the expected regret of the rounds from the third on, the first two being given."""
    temperature = cell.policy.values["temperature"]
    total = proposition1(_gap(cell), np.array([2, *horizons]), lambda t: temperature.evaluate({"t": t}))
    return np.asarray(total[1:] - total[0])


def _gap(cell: CellResult) -> float:
    return float(np.ptp(cell.problem.means))


def rises(name: str, curve: Curve) -> tuple[float, Claim]:
    """Return by how much regret over log(T)/Δ rises from the middle point to the last, and the claim that it does."""
    middle = curve.samples[:, curve.x.size // 2]
    last = curve.samples[:, -1]
    factor = float(last.mean() / middle.mean())
    text = (
        f"regret / (log(T)/Δ) becomes {factor:.3g} times as large from T = {curve.x[curve.x.size // 2]:,.0f} to the end"
    )
    return factor, Claim(f"{name} grows faster than log(T)/Δ", is_less(middle, last), text)


def judge_proposition1(results: Results) -> Finding:
    """Judge whether regret is the exact sum, and outgrows log(T)/Δ where the learning rate is o(log(tΔ²)/Δ)."""
    cells = {str(cell.value("policy")): cell for cell in results}
    curves = {name: cell.curve(name) for name, cell in cells.items()}
    lines = [Line(f"exact, {name}", curves[name].x, exact(cell, curves[name].x)) for name, cell in cells.items()]
    agree = [equals(curve.samples, line.y) for curve, line in zip(curves.values(), lines, strict=True)]
    z = max(distance for _, distance in agree)
    fits = {name: fit(curve) for name, curve in curves.items()}
    over_log = {name: curve.over(np.log(curve.x) / _gap(cells[name])) for name, curve in curves.items()}
    found = {name: rises(name, over_log[name]) for name in cells if name not in FAST_ENOUGH}
    sum_claim = Claim(
        "the measured regret is the exact sum",
        all_of(verdict for verdict, _ in agree),
        f"{z:.1f} standard errors apart",
    )
    return Finding(
        margin=f"measured and exact regret differ by at most {z:.1f} standard errors; in the later half of the range "
        f"of T, regret / (log(T)/Δ) rises {' and '.join(f'{r:.3g} times ({name})' for name, (r, _) in found.items())}",
        claims=[sum_claim, *(claim for _, claim in found.values())],
        remarks=[grows(f"{name}, fast enough", "log T", fits[name]) for name in FAST_ENOUGH],
        panels=[
            panel("Regret when the means are known", list(curves.values()), lines),
            panel("The same over log(T)/Δ", list(over_log.values()), y="regret / (log(T)/Δ)"),
        ],
        fits=fits,
    )
