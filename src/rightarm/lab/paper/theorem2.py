"""Theorem 2: a learning rate above 2 log t from the beginning gets stuck at the worse arm for ever."""

from __future__ import annotations

from typing import Any

import numpy as np

from rightarm.lab.paper.finding import AGREES, Claim, Finding, Study, Table, above, panel, ratios
from rightarm.lab.paper.growth import best, fit
from rightarm.lab.results import CellResult, Loaded
from rightarm.problems import problem
from rightarm.simulation.panels import Line
from rightarm.theory import theorem2, theorem2_start


@problem(mean=lambda low, high, chance: low + (high - low) * chance)
def TwoValues(u: Any, *, low: float, high: float, chance: float) -> Any:
    """Pay ``high`` with probability ``chance``, else ``low``."""
    return low + (high - low) * (u < chance)


def stuck_share(c: float, gap: float, horizon: int) -> float:
    """The exact probability that the coin, pulled once at the start, pays 0 and is not pulled again up to T."""
    t = np.arange(3.0, horizon + 1)
    return float((0.5 - gap) * np.exp(np.log1p(-1 / (1 + t ** (c / 2))).sum()))


def stuck(cell: CellResult) -> tuple[float, float, float]:
    """The measured share of replications that never came back, the exact one, and their distance in standard errors."""
    share = float((cell.pulls[:, 0] == 1).mean())
    expected = stuck_share(cell.value("rate"), _gap(cell), cell.horizon)
    return share, expected, (share - expected) / np.sqrt(expected * (1 - expected) / len(cell.pulls))


def _gap(cell: CellResult) -> float:
    return float(np.ptp(cell.problem.means))


def judge(results: Loaded) -> Finding:
    """Regret lies above the linear bound, grows like T, and as many replications are stuck as the law says."""
    cells = {float(cell.value("rate")): cell for cell in results}
    curves = {c: cell.curve(f"η = {c:g} log t") for c, cell in cells.items()}
    bounds = {c: theorem2(_gap(cell), curves[c].x, c) for c, cell in cells.items()}
    shares = {c: stuck(cell) for c, cell in cells.items()}
    fits = {curve.label: fit(curve) for curve in curves.values()}
    z = max(abs(share[2]) for share in shares.values())
    claims = [above(f"{curve.label}: regret above the bound", curve, bounds[c]) for c, curve in curves.items()]
    claims += [
        Claim(f"{curve.label}: linear growth", fits[curve.label][0].law == "T", best(fits[curve.label]))
        for curve in curves.values()
    ]
    claims.append(Claim("as many replications are stuck as computed", z < AGREES, f"at most {z:.1f} standard errors"))
    rows = [
        [f"{c:g}", f"{theorem2_start(c)}", f"{share:.4f}", f"{expected:.4f}", f"{distance:+.1f}"]
        for c, (share, expected, distance) in shares.items()
    ]
    drawn = [Line(f"bound, {curve.label}", curve.x, bounds[c]) for c, curve in curves.items() if c > 3]
    return Finding(
        margin=f"measured / bound at least {ratios(curves.values(), bounds.values()).min():.3g}; at the end "
        + ", ".join(f"{s:.1%} of the replications stuck at c = {c:g}" for c, (s, _, _) in shares.items()),
        claims=claims,
        panels=[
            panel("Regret", list(curves.values()), drawn),
            panel("Regret per round", [curve.over(curve.x) for curve in curves.values()], y="regret / T", log_y=False),
        ],
        fits=fits,
        tables=[Table("Stuck: the better arm pulled once, never again", ["c", "t_0", "measured", "exact", "z"], rows)],
    )


STUDY = Study(
    name="theorem2",
    claim="There is a problem with two arms on which Boltzmann exploration has linear regret if its learning rate is "
    "above 2 log t from the beginning: when the better arm starts badly, it may never be pulled again.",
    formula="η_t ≥ c log t, c > 2  ⇒  R_T ≥ Δ (T − t_0) (1/2 − Δ)^{t_0} / 2,  t_0 = ⌈(2/a)^{1/a}⌉, a = c/2 − 1",
    setting="The proof's problem: arm 1 pays 1 with probability 1/2 + Δ, Δ = 0.25, else 0; arm 2 pays 1/2 always. At "
    "c = 3 the bound is below 10⁻¹⁰ T (t_0 = 16) and is not drawn. The constant t_0 is the corrected one; printed "
    "is (2a)^{1/a}.",
    judge=judge,
)
