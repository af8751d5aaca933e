"""Theorem 3: a constant learning rate first and log(tΔ²)/Δ afterwards has logarithmic regret."""

from __future__ import annotations

from rightarm.lab.paper.finding import Claim, Finding, Study, below, panel, ratios
from rightarm.lab.paper.growth import best, could_be, fit
from rightarm.lab.results import Loaded
from rightarm.simulation.panels import Line
from rightarm.simulation.statistics import Curve
from rightarm.theory import theorem3


def judge(results: Loaded) -> Finding:
    """Suboptimal pulls lie below the bound, and regret grows like log T."""
    gap = float(results[0].problem.means.max() - results[0].problem.means.min())
    regret = {
        K: Curve.of_ends(f"K = {K:g}", [cell.curve() for cell in results.where(K=K)])
        for K in dict.fromkeys(cell.value("K") for cell in results)
    }
    pulls = [curve.over(gap) for curve in regret.values()]
    bounds = [theorem3(gap, int(K), curve.x) for K, curve in regret.items()]
    fits = {curve.label: fit(curve) for curve in regret.values()}
    claims = [below(f"{n.label}: suboptimal pulls below the bound", n, b) for n, b in zip(pulls, bounds, strict=True)]
    claims += [
        Claim(f"{label}: logarithmic growth", could_be("log T", found), best(found)) for label, found in fits.items()
    ]
    worst = ratios(pulls, bounds).max()
    return Finding(
        margin=f"measured / bound at most {worst:.3g} (suboptimal pulls), {gap * worst:.3g} (regret)",
        claims=claims,
        panels=[
            panel(
                "Pulls of suboptimal arms",
                pulls,
                [Line(f"bound, {n.label}", n.x, b) for n, b in zip(pulls, bounds, strict=True)],
                y="suboptimal pulls",
            ),
            panel("Regret on a linear axis", list(regret.values()), log_y=False),
        ],
        fits=fits,
    )


STUDY = Study(
    name="theorem3",
    claim="Boltzmann exploration with learning rate 1 for a logarithmic number of rounds τ and log(tΔ²)/Δ from then on "
    "has logarithmic regret; but the schedule must know the gap Δ and the horizon T.",
    formula="R_T ≤ 16 e K log(T) / Δ² + 9 K / Δ²,  τ = 16 e K log(T) / Δ²",
    setting="Bernoulli arms, the best with mean 0.75, the others with 0.75 − Δ, Δ = 0.5: a gap so large that the "
    "second phase begins in time (K = 5: τ = 8,012 for T = 10⁴ and 14,021 for T = 10⁷). The proof bounds the number of "
    "suboptimal pulls, which is what is compared.",
    judge=judge,
)
