"""Heavy tails: Boltzmann–Gumbel exploration with the mean and with Catoni's estimator, UCB and robust UCB."""

from __future__ import annotations

import numpy as np

from rightarm.lab.paper.evidence import Verdict, any_of, halves, is_less
from rightarm.lab.paper.finding import BOUNDED, Claim, Finding, Study, Table, below, panel
from rightarm.lab.paper.theorem4 import TELLING
from rightarm.lab.results import Loaded
from rightarm.problems import Problem
from rightarm.simulation.statistics import Curve, mean_and_error
from rightarm.theory import theorem6
from rightarm.types import F64

MEAN, CATONI = "BGE, mean", "BGE, Catoni"
MUCH = 1.5  # times the regret from which the plain mean is said to break


def curves(results: Loaded, problem: str) -> dict[str, Curve]:
    """Final regret of each policy against C."""
    found = {}
    for policy in dict.fromkeys(str(cell.value("policy")) for cell in results):
        cells = sorted(results.where(problem=problem, policy=policy), key=lambda cell: float(cell.value("C")))
        found[policy] = Curve.of_ends(policy, [cell.curve() for cell in cells], [cell.value("C") for cell in cells])
    return found


def breaks(name: str, mean: Curve, catoni: Curve) -> Claim:
    """That the plain mean has much more regret than Catoni's estimator at some C, replication by replication."""
    verdicts = [is_less(MUCH * y, x, mean.x.size) for x, y in zip(mean.samples.T, catoni.samples.T, strict=True)]
    at = [f"{C:g}" for C, verdict in zip(mean.x, verdicts, strict=True) if verdict is Verdict.HOLDS]
    numbers = ", ".join(f"{r:.2f} at C = {C:g}" for C, r in zip(mean.x, mean.mean / catoni.mean, strict=True))
    certain = f"certain at C = {', '.join(at)}; " if at else ""
    text = f"{certain}ratio {numbers}"
    return Claim(f"{name}: the plain mean has more than {MUCH:g} times the regret at some C", any_of(verdicts), text)


def bounded(problem: Problem, curve: Curve, horizon: int) -> tuple[Curve, F64]:
    """Those points of a curve for which Theorem 6 promises less than the largest regret there is, and the bounds."""
    V = float(problem.second_moments.max())
    if not np.isfinite(V):
        return Curve.of(curve.label, curve.x[:0], curve.samples[:, :0]), np.empty(0)
    bound = np.array([float(theorem6(problem.gaps, horizon, C, V)) for C in curve.x])
    telling = bound < problem.gaps.max() * horizon
    return Curve.of(curve.label, curve.x[telling], curve.samples[:, telling]), bound[telling]


def judge(results: Loaded) -> Finding:
    """With Catoni's estimator regret lies below Theorem 6's bound; where the plain mean breaks is told."""
    horizon = results[0].horizon
    problems = {str(cell.value("problem")): cell.problem for cell in results}
    found = {name: curves(results, name) for name in problems}
    promised = {name: bounded(problems[name], own[CATONI], horizon) for name, own in found.items()}
    worst = max(float((curve.mean / bound).max()) for curve, bound in promised.values() if bound.size)
    remarks = [breaks(name, own[MEAN], own[CATONI]) for name, own in found.items()]
    where = [claim.statement.partition(":")[0] for claim in remarks if claim.verdict is Verdict.HOLDS]
    return Finding(
        margin=f"BGE with Catoni: measured / bound at most {worst:.3g}; the plain mean has more than {MUCH:g} times "
        f"its regret at some C with {', '.join(where) or 'none of the problems'}",
        claims=[
            below(f"{name}: BGE with Catoni below Theorem 6's bound", curve, bound, "C")
            for name, (curve, bound) in promised.items()
            if bound.size
        ],
        remarks=remarks,
        left_out=[
            f"{name}, C = {', '.join(f'{C:g}' for C in missing)}: {_why(problems[name])}"
            for name, (curve, _) in promised.items()
            for missing in [sorted(set(found[name][CATONI].x) - set(curve.x))]
            if missing
        ],
        panels=[panel(name, list(own.values()), x="C", y=f"regret, T = {horizon:,}") for name, own in found.items()],
        tables=[
            Table(
                "Least regret over C (standard error): C chosen by half of the replications, regret of the other half",
                ["", "V", *next(iter(found.values()))],
                [
                    [name, f"{problems[name].second_moments.max():.3g}".replace("inf", "∞"), *map(_best, own.values())]
                    for name, own in found.items()
                ],
            )
        ],
    )


def _why(problem: Problem) -> str:
    if not np.isfinite(problem.second_moments).all():
        return "there is no second moment, so no theorem speaks of it"
    return "the bound is above ΔT, the largest regret there is"


def _best(curve: Curve) -> str:
    chosen, judged = halves(curve.samples)
    i = int(chosen.mean(axis=0).argmin())
    mean, error = mean_and_error(judged[:, i])
    return f"{mean:.0f} ({error:.0f}) at C = {curve.x[i]:g}"


STUDY = Study(
    name="heavy-tails",
    claim="Boltzmann–Gumbel exploration with Catoni's estimator keeps its bound where rewards are not subgaussian; "
    "with the plain mean nothing is promised.",
    formula="μ̂ = β Σ_s ψ(X_s/(βN)),  β = C/√N,  against  μ̂ = Σ_s X_s/N",
    setting="Five arms; robust UCB (Bubeck, Cesa-Bianchi, Lugosi: Bandits with heavy tail, 2013) takes C² as the bound "
    "on second moments. Student's t with 1.5 degrees of freedom has no second moment, so no theorem speaks of it.",
    criteria=(
        BOUNDED,
        TELLING,
        f"The plain mean breaks if its regret is more than {MUCH:g} times that of Catoni's estimator at some C, "
        "replication by replication (Student’s t, 0.1% shared by all C), and does not if it is less at every C.",
    ),
    judge=judge,
)
