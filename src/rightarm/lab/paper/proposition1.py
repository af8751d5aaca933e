"""Proposition 1: with the means known, a learning rate that grows too slowly pulls the worse arm too often."""

from __future__ import annotations

from typing import Any

import numpy as np

from rightarm.lab.paper.finding import AGREES, CERTAIN, Claim, Finding, Study, panel
from rightarm.lab.paper.growth import best, could_be, fit
from rightarm.lab.results import CellResult, Loaded
from rightarm.policies import schedule
from rightarm.simulation.panels import Line
from rightarm.simulation.statistics import Curve, paired_z
from rightarm.theory import proposition1
from rightarm.types import F64, I64

FAST_ENOUGH = "η = (log t)/Δ"


@schedule
def inverse_root_log(t: Any, *, c: float) -> Any:
    """β_t = c / √log t: above every multiple of 1 / log t in the end."""
    return c / np.sqrt(np.log(t))


def exact(cell: CellResult, horizons: F64 | I64) -> F64:
    """The expected regret of the rounds from the third on, the first two being given."""
    temperature = cell.policy.values["temperature"]
    total = proposition1(_gap(cell), np.array([2, *horizons]), lambda t: temperature.evaluate({"t": t}))
    return np.asarray(total[1:] - total[0])


def _gap(cell: CellResult) -> float:
    return float(np.ptp(cell.problem.means))


def rise(curve: Curve) -> tuple[float, float]:
    """From the middle point to the last: by what factor the mean rises, and by how many standard errors."""
    middle, last = curve.samples[:, curve.x.size // 2], curve.samples[:, -1]
    return float(last.mean() / middle.mean()), paired_z(last, middle)


def judge(results: Loaded) -> Finding:
    """Measured regret is the exact sum, and outgrows log(T)/Δ where the learning rate is o(log(tΔ²)/Δ)."""
    cells = {str(cell.value("policy")): cell for cell in results}
    curves = {name: cell.curve(name) for name, cell in cells.items()}
    lines = [Line(f"exact, {name}", curves[name].x, exact(cell, curves[name].x)) for name, cell in cells.items()]
    z = max(float(np.abs((c.mean - e.y) / c.error).max()) for c, e in zip(curves.values(), lines, strict=True))
    fits = {name: fit(curve) for name, curve in curves.items()}
    over_log = {name: curve.over(np.log(curve.x) / _gap(cells[name])) for name, curve in curves.items()}
    claims = [Claim("the measured regret is the exact sum", z < AGREES, f"at most {z:.1f} standard errors apart")]
    rises = []
    for name in (name for name in cells if name != FAST_ENOUGH):
        factor, certainty = rise(over_log[name])
        faster = certainty > CERTAIN and not could_be("log T", fits[name])
        rises.append(f"{factor:.3g} times ({name})")
        text = f"regret / (log(T)/Δ) rises {factor:.3g} times in the later half; {best(fits[name])}"
        claims.append(Claim(f"{name} grows faster than log(T)/Δ", faster, text))
    return Finding(
        margin=f"measured and exact regret differ by at most {z:.1f} standard errors; in the later half of the range "
        f"of T, regret / (log(T)/Δ) rises {' and '.join(rises)}",
        claims=claims,
        remarks=[
            Claim(
                f"{FAST_ENOUGH}, fast enough: growth like log T fits as well as any",
                could_be("log T", fits[FAST_ENOUGH]),
                best(fits[FAST_ENOUGH]),
            )
        ],
        panels=[
            panel("Regret when the means are known", list(curves.values()), lines),
            panel("The same over log(T)/Δ", list(over_log.values()), y="regret / (log(T)/Δ)"),
        ],
        fits=fits,
    )


STUDY = Study(
    name="proposition1",
    claim="Even if both means were known from the start, a learning rate that grows more slowly than log(tΔ²)/Δ makes "
    "Boltzmann exploration pull the worse arm so often that its regret grows faster than log(T)/Δ.",
    formula="R_T = Δ Σ_{t≤T} 1/(1 + e^{Δη_t});  η_t = o(log(tΔ²)/Δ)  ⇒  R_T = ω(log(T)/Δ)",
    setting="Two arms that pay 0.75 and 0.5 always, each pulled once before, so that the means are known and stay as "
    "they are; the regret of rounds 3 to T is compared with the exact sum.",
    judge=judge,
)
