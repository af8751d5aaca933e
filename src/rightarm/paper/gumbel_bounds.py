"""Bounds of Boltzmann–Gumbel exploration: Theorem 4, Theorem 6 for heavy tails, and what others have beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rightarm.experiments import Results
from rightarm.paper.evidence import Power, Verdict, any_of, decided, fit, halves, is_less, power
from rightarm.paper.finding import (
    Claim,
    Finding,
    NumberTable,
    below,
    final_regret_against,
    fraction,
    grows,
    panel,
    ratios,
    with_error,
)
from rightarm.problems import Problem
from rightarm.simulation.panels import Curve, Line, Panel
from rightarm.theory import lai_robbins, theorem4, theorem6
from rightarm.types import F64

# Theorem 4: Boltzmann–Gumbel exploration has log² regret for any C, also far below σ.


def judge_theorem4(results: Results) -> Finding:
    """Judge whether regret lies below the bound for every C for which it says something, and grows like log² T."""
    curves = [cell.curve(f"C = {fraction('σ', cell)}") for cell in results]
    gaps = results[0].problem.gaps
    sigma = results[0].problem.values["sigma"][0]
    bounds = [
        theorem4(gaps, curve.x, cell.policy.values["C"], sigma) for cell, curve in zip(results, curves, strict=True)
    ]
    reference = Line("Lai–Robbins (asymptotic)", curves[0].x, lai_robbins(gaps, curves[0].x, sigma))
    return judge_bounds(curves, bounds, float(gaps.max()), groups={"": curves}, references=[reference])


# Theorem 6: with Catoni's estimator Theorem 4's bound holds for heavy tails, the second moment in place of σ².


def judge_theorem6(results: Results) -> Finding:
    """Judge whether regret lies below the bound for every C and both families of rewards."""
    curves = []
    bounds = []
    for cell in results:
        V = float(cell.problem.second_moments.max())
        curves.append(cell.curve(f"{cell.value('problem')}, C = {fraction('√V', cell)}"))
        bounds.append(theorem6(cell.problem.gaps, curves[-1].x, cell.policy.values["C"], V))
    names = dict.fromkeys(str(cell.value("problem")) for cell in results)
    groups = {f", {name}": [curve for curve in curves if curve.label.startswith(f"{name}, ")] for name in names}
    return judge_bounds(curves, bounds, float(results[0].problem.gaps.max()), groups=groups, references=[])


def judge_bounds(
    curves: list[Curve],
    bounds: list[F64],
    gap: float,
    *,
    groups: Mapping[str, Sequence[Curve]],
    references: list[Line],
) -> Finding:
    """Judge whether regret lies below its bound on every curve and grows no faster than log² T.

    A bound above gap·T, the largest regret there is, says nothing and counts for nothing. Each of ``groups`` has two
    pictures.
    """
    bounded = {}
    left_out = []
    for curve, bound in zip(curves, bounds, strict=True):
        most = gap * curve.x[-1]
        if bound[-1] < most:
            bounded[curve.label] = (curve, bound)
        else:
            left_out.append(f"{curve.label}: the bound is {bound[-1]:.2g} at the end, no regret exceeds {most:,.0f}")
    fits = {curve.label: fit(curve) for curve in curves}
    growth = {label: grows(label, "log² T", found) for label, found in fits.items()}
    largest = ratios(*zip(*bounded.values(), strict=True)).max()
    at_end = ", ".join(f"{curve.mean[-1] / bound[-1]:.2g} at {label}" for label, (curve, bound) in bounded.items())
    claims = [below(f"{label}: regret below the bound", curve, bound) for label, (curve, bound) in bounded.items()]
    return Finding(
        margin=f"measured / bound at most {largest:.3g}; at the longest T {at_end}",
        claims=claims + [growth[label] for label in bounded],
        remarks=[claim for label, claim in growth.items() if label not in bounded],
        left_out=left_out,
        panels=[each for title, own in groups.items() for each in _panels(title, own, bounded, references)],
        fits=fits,
    )


def _panels(
    title: str, drawn: Sequence[Curve], bounded: Mapping[str, tuple[Curve, F64]], references: list[Line]
) -> list[Panel]:
    """Draw regret with the bounds that say something; and on a linear axis, where log² is seen best."""
    telling = [bounded[curve.label] for curve in drawn if curve.label in bounded]
    lines = [Line(f"bound, {curve.label}", curve.x, bound) for curve, bound in telling]
    return [
        panel(f"Regret{title}", drawn, lines + references),
        panel(f"Regret{title}, on a linear axis", [curve for curve, _ in telling], log_y=False),
    ]


# σ underestimated: BGE, whose bound then still says something, beside UCB, whose bound does not.


def is_slower(first: Power, second: Power) -> Verdict:
    """Decide whether one power is less than another: if their intervals are apart."""
    return decided(first.high < second.low, first.low > second.high)


def judge_underestimated(results: Results) -> Finding:
    """Judge whether BGE keeps a bound that says something where σ is underestimated; compare its growth with UCB's."""
    gaps = results[0].problem.gaps
    sigma = float(results[0].problem.values["sigma"][0])
    curves: dict[str, dict[int, Curve]] = {"BGE": {}, "UCB": {}}
    bounds = {}
    for cell in results:
        name = str(cell.value("policy"))
        part = int(cell.value("part"))
        curves[name][part] = cell.curve(f"{name}, {fraction('σ', cell)}")
        if name == "BGE":
            bounds[part] = theorem4(gaps, curves[name][part].x, cell.policy.values["C"], sigma)
    bge = curves["BGE"]
    most = gaps.max() * results[0].horizon
    telling = [part for part, bound in bounds.items() if bound[-1] < most]
    powers = {name: {part: power(curve) for part, curve in own.items()} for name, own in curves.items()}
    every = [(curve, powers[name][part]) for name, own in curves.items() for part, curve in own.items()]
    lines = [Line(f"bound, {bge[part].label}", bge[part].x, bounds[part]) for part in telling]
    return Finding(
        margin="power of T in the last decade "
        + ", ".join(f"{found.value:.2f} ({curve.label})" for curve, found in every),
        claims=[
            below(f"{bge[part].label}: regret below Theorem 4's bound", bge[part], bounds[part]) for part in telling
        ],
        remarks=[
            Claim(
                f"σ taken {part} times too small: BGE's regret grows more slowly than UCB's",
                is_slower(powers["BGE"][part], powers["UCB"][part]),
                f"powers {powers['BGE'][part]} and {powers['UCB'][part]}",
                large=True,
            )
            for part in bounds
            if part > 1
        ],
        left_out=[
            f"{bge[part].label}: the bound is {bound[-1]:.2g}, and no regret exceeds {most:,.0f}"
            for part, bound in bounds.items()
            if part not in telling
        ],
        panels=[
            panel("Regret of BGE", list(bge.values()), lines),
            panel("Regret of UCB", list(curves["UCB"].values())),
        ],
        tables=[
            NumberTable(
                "Regret at the end (standard error), and the power of T in the last decade",
                ["", "regret", "power"],
                [[curve.label, with_error(curve.samples[:, -1]), str(found)] for curve, found in every],
            )
        ],
    )


# Heavy tails: Boltzmann–Gumbel exploration with the mean and with Catoni's estimator, UCB and robust UCB.

MEAN = "BGE, mean"
CATONI = "BGE, Catoni"
MUCH = 1.5  # times the regret from which the plain mean is said to break


def breaks(name: str, mean: Curve, catoni: Curve) -> Claim:
    """Claim that the plain mean has much more regret than Catoni's estimator at some C, replication by replication."""
    verdicts = [is_less(MUCH * y, x, mean.x.size) for x, y in zip(mean.samples.T, catoni.samples.T, strict=True)]
    at = [f"{C:g}" for C, verdict in zip(mean.x, verdicts, strict=True) if verdict is Verdict.HOLDS]
    numbers = ", ".join(f"{r:.2f} at C = {C:g}" for C, r in zip(mean.x, mean.mean / catoni.mean, strict=True))
    certain = f"certain at C = {', '.join(at)}; " if at else ""
    return Claim(
        f"{name}: the plain mean has more than {MUCH:g} times the regret at some C",
        any_of(verdicts),
        f"{certain}ratio {numbers}",
    )


def promised(problem: Problem, curve: Curve, horizon: int) -> tuple[Curve, F64]:
    """Return the points of a curve where Theorem 6 promises less than the largest regret there is, and the bounds."""
    V = float(problem.second_moments.max())
    if not np.isfinite(V):
        return Curve.of(curve.label, curve.x[:0], curve.samples[:, :0]), np.empty(0)
    bound = np.array([float(theorem6(problem.gaps, horizon, C, V)) for C in curve.x])
    telling = bound < problem.gaps.max() * horizon
    return Curve.of(curve.label, curve.x[telling], curve.samples[:, telling]), bound[telling]


def judge_heavy_tails(results: Results) -> Finding:
    """Judge whether with Catoni's estimator regret lies below Theorem 6's bound; say where the plain mean breaks."""
    horizon = results[0].horizon
    problems = {str(cell.value("problem")): cell.problem for cell in results}
    policies = list(dict.fromkeys(str(cell.value("policy")) for cell in results))
    curves = {
        name: {
            policy: final_regret_against("C", policy, results.where(problem=name, policy=policy)) for policy in policies
        }
        for name in problems
    }
    bounded = {name: promised(problems[name], own[CATONI], horizon) for name, own in curves.items()}
    worst = max(float((curve.mean / bound).max()) for curve, bound in bounded.values() if bound.size)
    remarks = [breaks(name, own[MEAN], own[CATONI]) for name, own in curves.items()]
    where = [name for name, remark in zip(curves, remarks, strict=True) if remark.verdict is Verdict.HOLDS]
    missing = {name: sorted(set(curves[name][CATONI].x) - set(curve.x)) for name, (curve, _) in bounded.items()}
    return Finding(
        margin=f"BGE with Catoni: measured / bound at most {worst:.3g}; the plain mean has more than {MUCH:g} times "
        f"its regret at some C with {', '.join(where) or 'none of the problems'}",
        claims=[
            below(f"{name}: BGE with Catoni below Theorem 6's bound", curve, bound, "C")
            for name, (curve, bound) in bounded.items()
            if bound.size
        ],
        remarks=remarks,
        left_out=[
            f"{name}, C = {', '.join(f'{C:g}' for C in values)}: {_why_left_out(problems[name])}"
            for name, values in missing.items()
            if values
        ],
        panels=[panel(name, list(own.values()), x="C", y=f"regret, T = {horizon:,}") for name, own in curves.items()],
        tables=[
            NumberTable(
                "Least regret over C (standard error): C chosen by half of the replications, regret of the other half",
                ["", "V", *policies],
                [[name, _largest_moment(problems[name]), *map(_least, own.values())] for name, own in curves.items()],
            )
        ],
    )


def _why_left_out(problem: Problem) -> str:
    if not np.isfinite(problem.second_moments).all():
        return "there is no second moment, so no theorem speaks of it"
    return "the bound is above ΔT, the largest regret there is"


def _largest_moment(problem: Problem) -> str:
    return f"{problem.second_moments.max():.3g}".replace("inf", "∞")


def _least(curve: Curve) -> str:
    chosen, judged = halves(curve.samples)
    i = int(chosen.mean(axis=0).argmin())
    return f"{with_error(judged[:, i])} at C = {curve.x[i]:g}"
