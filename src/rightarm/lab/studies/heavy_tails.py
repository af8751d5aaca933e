"""Heavy tails: Boltzmann–Gumbel exploration with the mean and with Catoni's estimator, UCB and robust UCB."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rightarm.lab.curve import Curve, standard_errors
from rightarm.lab.study import CERTAIN, Cell, Claim, Finding, Key, Panel, Samples, Study, Table, below
from rightarm.policies import UCB, BoltzmannGumbel, Policy, RobustUCB
from rightarm.problems import Contaminated, LogNormal, Pareto, Problem, StudentT
from rightarm.theory import theorem6
from rightarm.types import F64

MEANS = [0.5] + [0.0] * 4
PROBLEMS: dict[str, Problem] = {
    "Student's t, 3 degrees": StudentT(mean=MEANS, df=3.0, scale=1.0),
    "Student's t, 1.5 degrees": StudentT(mean=MEANS, df=1.5, scale=1.0),
    "Pareto, index 2.1": Pareto(alpha=2.1, scale=[1.0] + [0.75] * 4),
    "log-normal": LogNormal(mu=[0.0] + [-0.3] * 4, sigma=1.5),
    "contaminated": Contaminated(mean=MEANS, sigma=1.0, share=0.01, spread=30.0),
}
POLICIES: dict[str, Callable[[float], Policy]] = {
    "BGE, mean": lambda C: BoltzmannGumbel(C=C),
    "BGE, Catoni": lambda C: BoltzmannGumbel(C=C, estimator="catoni"),
    "UCB": lambda C: UCB(C=C),
    "robust UCB": lambda C: RobustUCB(u=C**2),
}
GRID = (0.25, 0.5, 1.0, 2.0, 4.0)
MUCH = 1.5  # times the regret from which the plain mean is said to break


def cells(quick: bool) -> dict[Key, Cell]:
    """Every policy on every problem over a range of C; robust UCB is told the second moment C²."""
    return {
        (name, policy, C): Cell(make(C), problem, (30_000 if quick else 10**5,), 16 if quick else 128)
        for name, problem in PROBLEMS.items()
        for policy, make in POLICIES.items()
        for C in (GRID[::2] if quick else GRID)
    }


def curves(samples: Samples, problem: str) -> dict[str, Curve]:
    """Final regret of each policy against C."""
    grid = sorted({C for _, _, C in samples})
    return {
        policy: Curve(
            policy, np.array(grid), np.stack([samples[problem, policy, C].regret[:, -1] for C in grid], axis=1)
        )
        for policy in POLICIES
    }


def broken(mean: Curve, catoni: Curve) -> tuple[list[float], str]:
    """The C at which the plain mean has much more regret than Catoni's estimator, and the numbers."""
    ratio = mean.mean / catoni.mean
    certain = [standard_errors(x, y) > CERTAIN for x, y in zip(mean.samples.T, catoni.samples.T, strict=True)]
    at = [float(C) for C, sure, r in zip(mean.x, certain, ratio, strict=True) if sure and r > MUCH]
    return at, ", ".join(f"{r:.2f} at C = {C:g}" for C, r in zip(mean.x, ratio, strict=True))


def bounded(problem: Problem, curve: Curve, horizon: int) -> tuple[Curve, F64]:
    """Those points of a curve for which Theorem 6 promises less than the largest regret there is, and the bounds."""
    V = float(problem.second_moments.max())
    if not np.isfinite(V):
        return Curve(curve.label, curve.x[:0], curve.samples[:, :0]), np.empty(0)
    bound = np.array([float(theorem6(problem.gaps, horizon, C, V)) for C in curve.x])
    telling = bound < problem.gaps.max() * horizon
    return Curve(curve.label, curve.x[telling], curve.samples[:, telling]), bound[telling]


def judge(samples: Samples) -> Finding:
    """With Catoni's estimator regret lies below Theorem 6's bound; where the plain mean breaks is told."""
    horizon = next(iter(samples.values())).cell.horizon
    found = {name: curves(samples, name) for name in PROBLEMS}
    promised = {name: bounded(PROBLEMS[name], own["BGE, Catoni"], horizon) for name, own in found.items()}
    worst = max(float((curve.mean / bound).max()) for curve, bound in promised.values() if bound.size)
    breaks = {name: broken(own["BGE, mean"], own["BGE, Catoni"]) for name, own in found.items()}
    where = [f"{name} (C = {', '.join(f'{C:g}' for C in at)})" for name, (at, _) in breaks.items() if at]
    return Finding(
        margin=f"BGE with Catoni: measured / bound at most {worst:.3g}; the plain mean has more than {MUCH:g} times "
        f"its regret with {', '.join(where) or 'none of the problems'}",
        claims=[
            below(f"{name}: BGE with Catoni below Theorem 6's bound", curve, bound, "C")
            for name, (curve, bound) in promised.items()
            if bound.size
        ],
        remarks=[
            Claim(f"{name}: the plain mean does as well as Catoni's estimator", not at, f"ratio {numbers}")
            for name, (at, numbers) in breaks.items()
        ],
        panels=[Panel(name, list(own.values()), x="C", y=f"regret, T = {horizon:,}") for name, own in found.items()],
        fits={},
        tables=[
            Table(
                "Least regret over C (standard error)",
                ["", "V", *POLICIES],
                [
                    [name, f"{PROBLEMS[name].second_moments.max():.3g}".replace("inf", "∞"), *map(_best, own.values())]
                    for name, own in found.items()
                ],
            )
        ],
    )


def _best(curve: Curve) -> str:
    i = int(curve.mean.argmin())
    return f"{curve.mean[i]:.0f} ({curve.error[i]:.0f}) at C = {curve.x[i]:g}"


STUDY = Study(
    name="heavy-tails",
    title="Heavy tails: where the plain mean breaks",
    claim="Boltzmann–Gumbel exploration with Catoni's estimator keeps its bound where rewards are not subgaussian; "
    "with the plain mean nothing is promised.",
    formula="μ̂ = β Σ_s ψ(X_s/(βN)),  β = C/√N,  against  μ̂ = Σ_s X_s/N",
    setting="Five arms; robust UCB (Bubeck, Cesa-Bianchi, Lugosi: Bandits with heavy tail, 2013) takes C² as the bound "
    "on second moments. Student's t with 1.5 degrees of freedom has no second moment, so no theorem speaks of it. "
    "Bounds above ΔT, the largest regret there is, are left out.",
    cells=cells,
    judge=judge,
)
