"""Proposition 1: with the means known, a learning rate that grows too slowly pulls the worse arm too often."""

from __future__ import annotations

from typing import Any

import numpy as np

from rightarm.lab.paper.evidence import AGREES, all_of, equals, is_less
from rightarm.lab.paper.finding import Claim, Finding, Study, panel
from rightarm.lab.paper.growth import fit, grows_at_most, told
from rightarm.lab.results import CellResult, Loaded
from rightarm.policies import schedule
from rightarm.simulation.panels import Line
from rightarm.simulation.statistics import Curve
from rightarm.theory import proposition1
from rightarm.types import F64, I64

FAST_ENOUGH = ("η = (log t)/Δ", "η = log(tΔ²)/Δ")


@schedule
def inverse_root_log(t: Any, *, c: float) -> Any:
    """β_t = c / √log t: above every multiple of 1 / log t in the end."""
    return c / np.sqrt(np.log(t))


@schedule
def minimal(t: Any, *, gap: float) -> Any:
    """β_t = Δ / log(tΔ²), the proposition's own; Δ while tΔ² is below e."""
    return gap / np.log(np.maximum(t * gap**2, np.e))


def exact(cell: CellResult, horizons: F64 | I64) -> F64:
    """The expected regret of the rounds from the third on, the first two being given."""
    temperature = cell.policy.values["temperature"]
    total = proposition1(_gap(cell), np.array([2, *horizons]), lambda t: temperature.evaluate({"t": t}))
    return np.asarray(total[1:] - total[0])


def _gap(cell: CellResult) -> float:
    return float(np.ptp(cell.problem.means))


def rises(name: str, curve: Curve) -> tuple[float, Claim]:
    """From the middle point to the last, by what factor regret over log(T)/Δ rises, and that it does."""
    middle, last = curve.samples[:, curve.x.size // 2], curve.samples[:, -1]
    factor = float(last.mean() / middle.mean())
    text = (
        f"regret / (log(T)/Δ) becomes {factor:.3g} times as large from T = {curve.x[curve.x.size // 2]:,.0f} to the end"
    )
    return factor, Claim(f"{name} grows faster than log(T)/Δ", is_less(middle, last), text)


def judge(results: Loaded) -> Finding:
    """Measured regret is the exact sum, and outgrows log(T)/Δ where the learning rate is o(log(tΔ²)/Δ)."""
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
        remarks=[
            Claim(
                f"{name}, fast enough: growth no faster than log T",
                grows_at_most("log T", fits[name]),
                told(fits[name]),
                large=True,
            )
            for name in FAST_ENOUGH
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
    criteria=(
        f"The regret is the exact sum if every point differs from it by less than {AGREES:g} standard errors.",
        "Regret outgrows log(T)/Δ if their ratio rises from the middle of the range of T to its end, replication by "
        "replication (Student’s t, one-sided at 0.1%), and does not if it falls.",
        "“Fast enough” are (log t)/Δ and the proposition's own log(tΔ²)/Δ.",
    ),
    judge=judge,
)
