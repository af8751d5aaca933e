"""Proposition 1: with the means known, a learning rate that grows too slowly pulls the worse arm too often."""

from __future__ import annotations

from typing import Any

import numpy as np

from rightarm.lab.curve import Curve, Line, standard_errors
from rightarm.lab.growth import best, could_be, fit
from rightarm.lab.study import AGREES, CERTAIN, Cell, Claim, Finding, Key, Panel, Samples, Study, rounds_between
from rightarm.policies import Boltzmann, constant, inverse_log, schedule
from rightarm.problems import Deterministic
from rightarm.simulation.engine import Start
from rightarm.theory import proposition1
from rightarm.types import F64

MEANS = (0.75, 0.5)  # in powers of two, so that sums and means of rewards are exact
GAP = MEANS[0] - MEANS[1]


@schedule
def inverse_root_log(t: Any, *, c: float) -> Any:
    """β_t = c / √log t: above every multiple of 1 / log t in the end."""
    return c / np.sqrt(np.log(t))


SLOW = {"η = 1/Δ": constant(GAP), "η = √(log t)/Δ": inverse_root_log(GAP)}
SCHEDULES = SLOW | {"η = (log t)/Δ": inverse_log(GAP)}


def cells(quick: bool) -> dict[Key, Cell]:
    """Rewards without noise, each arm seen once: the means are known from the start and never move."""
    rounds = rounds_between(100, 10**4) if quick else rounds_between(10**3, 10**7)
    start = Start((1, 1), MEANS)
    return {
        (name,): Cell(Boltzmann(temperature), Deterministic(MEANS), rounds, 32 if quick else 128, start)
        for name, temperature in SCHEDULES.items()
    }


def exact(name: str, horizons: F64) -> F64:
    """The expected regret of the rounds from the third on, the first two being given."""
    total = proposition1(GAP, np.array([2, *horizons]), lambda t: SCHEDULES[name].evaluate({"t": t}))
    return np.asarray(total[1:] - total[0])


def rise(curve: Curve) -> tuple[float, float]:
    """From the middle point to the last: by what factor the mean rises, and by how many standard errors."""
    middle, last = curve.samples[:, curve.x.size // 2], curve.samples[:, -1]
    return float(last.mean() / middle.mean()), standard_errors(last, middle)


def judge(samples: Samples) -> Finding:
    """Measured regret is the exact sum, and outgrows log(T)/Δ where the learning rate is o(log(tΔ²)/Δ)."""
    curves = {name: samples[name,].curve(name) for name in SCHEDULES}
    lines = [Line(f"exact, {name}", curve.x, exact(name, curve.x)) for name, curve in curves.items()]
    z = max(float(np.abs((c.mean - e.y) / c.error).max()) for c, e in zip(curves.values(), lines, strict=True))
    fits = {name: fit(curve) for name, curve in curves.items()}
    over_log = {name: curve.over(np.log(curve.x) / GAP) for name, curve in curves.items()}
    claims = [Claim("the measured regret is the exact sum", z < AGREES, f"at most {z:.1f} standard errors apart")]
    rises = []
    for name in SLOW:
        factor, certainty = rise(over_log[name])
        faster = certainty > CERTAIN and not could_be("log T", fits[name])
        rises.append(f"{factor:.3g} times ({name})")
        text = f"regret / (log(T)/Δ) rises {factor:.3g} times in the later half; {best(fits[name])}"
        claims.append(Claim(f"{name} grows faster than log(T)/Δ", faster, text))
    (enough,) = SCHEDULES.keys() - SLOW.keys()
    return Finding(
        margin=f"measured and exact regret differ by at most {z:.1f} standard errors; in the later half of the range "
        f"of T, regret / (log(T)/Δ) rises {' and '.join(rises)}",
        claims=claims,
        remarks=[
            Claim(
                f"{enough}, fast enough: growth like log T fits as well as any",
                could_be("log T", fits[enough]),
                best(fits[enough]),
            )
        ],
        panels=[
            Panel("Regret when the means are known", list(curves.values()), lines),
            Panel("The same over log(T)/Δ", list(over_log.values()), y="regret / (log(T)/Δ)"),
        ],
        fits=fits,
    )


STUDY = Study(
    name="proposition1",
    title="Proposition 1: too slow a learning rate",
    claim="Even if both means were known from the start, a learning rate that grows more slowly than log(tΔ²)/Δ makes "
    "Boltzmann exploration pull the worse arm so often that its regret grows faster than log(T)/Δ.",
    formula="R_T = Δ Σ_{t≤T} 1/(1 + e^{Δη_t});  η_t = o(log(tΔ²)/Δ)  ⇒  R_T = ω(log(T)/Δ)",
    setting=f"Two arms that pay {MEANS[0]} and {MEANS[1]} always, each pulled once before, so that the means are known "
    "and stay as they are; the regret of rounds 3 to T is compared with the exact sum.",
    cells=cells,
    judge=judge,
)
