"""“No more effective than ε-greedy”: Boltzmann exploration and ε-greedy, each with its best parameter of many."""

from __future__ import annotations

from rightarm.lab.paper.evidence import Verdict, halves, is_less
from rightarm.lab.paper.finding import Claim, Finding, Study, Table, panel
from rightarm.lab.paper.theorem2 import TwoValues, sure_and_chance
from rightarm.lab.results import CellResult, Loaded
from rightarm.simulation.statistics import Curve, mean_and_error
from rightarm.theory import theorem2_stuck

SIDES = {"Boltzmann": ("BE-const", "BE-log", "BE-sqrt"), "ε-greedy": ("ε-const", "ε-decreasing")}


def best(cells: list[CellResult]) -> CellResult:
    """The cell with the least regret in half of the replications."""
    return min(cells, key=lambda cell: float(halves(cell.regret[:, -1])[0].mean()))


def told(cell: CellResult) -> str:
    """Its name and the regret of the other half."""
    mean, error = mean_and_error(halves(cell.regret[:, -1])[1])
    return f"{cell.value('policy')} with c = {cell.value('c'):g}: {mean:.0f} ({error:.0f})"


def unseen(cell: CellResult) -> float:
    """What runs that are stuck for ever add to the mean regret, if the half that is judged has none: exactly known.

    Only on Theorem 2's problem, and for Boltzmann exploration: so rare an event may be missed, and costs ΔT.
    """
    temperature = cell.policy.values.get("temperature")
    if temperature is None or cell.problem.family is not TwoValues or (cell.pulls[1::2, 0] == 1).any():
        return 0.0
    sure, chance = sure_and_chance(cell)
    share = theorem2_stuck(sure, chance, cell.horizon, lambda t: 1 / temperature.evaluate({"t": t}))
    return share * (chance - sure) * (cell.horizon - 1)


def judge(results: Loaded) -> Finding:
    """On every problem the best ε-greedy policy has no more regret than the best Boltzmann exploration."""
    problems = list(dict.fromkeys(str(cell.value("problem")) for cell in results))
    claims, rows, panels = [], [], []
    for name in problems:
        own = results.where(problem=name)
        sides = {side: best([c for c in own if c.value("policy") in names]) for side, names in SIDES.items()}
        soft, greedy = (halves(sides[side].regret[:, -1])[1] for side in SIDES)
        more = unseen(sides["Boltzmann"])
        text = "; ".join(told(cell) for cell in sides.values())
        text += f"; runs that are stuck, none of which was drawn, add {more:.1f} to the mean" if more else ""
        claims.append(
            Claim(f"{name}: Boltzmann exploration is no better than ε-greedy", is_less(greedy, soft + more), text, True)
        )
        rows.append([name, *(told(cell) for cell in sides.values())])
        policies = dict.fromkeys(str(cell.value("policy")) for cell in own)
        panels.append(panel(name, [_curve(policy, own) for policy in policies], x="c", y="regret"))
    ahead = sum(claim.verdict is Verdict.HOLDS for claim in claims)
    return Finding(
        margin=f"ε-greedy is ahead on {ahead} of {len(claims)} problems",
        claims=claims,
        panels=panels,
        tables=[Table("The best of each side, regret of the other half (standard error)", ["", *SIDES], rows)],
    )


def _curve(policy: str, cells: list[CellResult]) -> Curve:
    own = sorted((cell for cell in cells if cell.value("policy") == policy), key=lambda cell: float(cell.value("c")))
    return Curve.of_ends(policy, [cell.curve() for cell in own], [cell.value("c") for cell in own])


STUDY = Study(
    name="greedy",
    claim="Boltzmann exploration is no more effective than the simplest alternative, ε-greedy.",
    formula="β_t = c/10, c/log t, c/√t;  ε_t = c/10, min{1, cK/(Δ²t)}",
    setting="Ten coins, two coins (gap 0.1), and Theorem 2's problem (gap 0.25). The decreasing ε is told the gap, as "
    "its theorem wants it; Boltzmann exploration's schedules have none to be told.",
    criteria=(
        "On each problem the best policy and parameter of each side is chosen by half of the replications; in the "
        "other half ε-greedy must have less regret, replication by replication (Student’s t, one-sided at 0.1%). It "
        "fails if Boltzmann exploration has less. A quick run cannot tell.",
        "On Theorem 2’s problem the chance of being stuck for ever is known; where no such run was drawn, what it adds "
        "to the mean is added.",
    ),
    judge=judge,
)
