"""What Figure 1 says, sentence by sentence of the paper's section 6, judged from the numbers."""

from __future__ import annotations

import math

from rightarm.lab.figure1 import ALGORITHMS, ARMS, CORRUPTED_ROUNDS, GAP, PAPER_HORIZON, SUGGESTED, Plan, Point, Points
from rightarm.lab.study import CERTAIN, Claim
from rightarm.simulation.result import versions

BOLTZMANN = ("BE-const", "BE-log", "BE-sqrt")


def difference(x: Point, y: Point) -> float:
    """How much larger the first mean is, in standard errors (taken as independent, which errs on the safe side)."""
    spread, apart = math.hypot(x.error, y.error), x.mean - y.mean
    return apart / spread if spread else math.copysign(math.inf, apart) if apart else 0.0


def _at(point: Point) -> str:
    return f"{point.algorithm} at C² = {point.c2:.3g}: {point.text}"


def claims(points: Points, plan: Plan) -> list[Claim]:
    """The sentences of section 6 that the figure can bear out; "well" means half the regret of a uniform choice."""
    well = plan.uniform / 2  # to do well or badly is to be below or above it with certainty
    lucky, unlucky = points.best("a", *BOLTZMANN), points.best("b", *BOLTZMANN)
    bge, ucb = {s: points.best(s, "BGE") for s in "ab"}, {s: points.best(s, "UCB") for s in "ab"}
    bge_there, ucb_there = points.at("b", "BGE"), points.at("b", "UCB")
    apart = {s: difference(ucb[s], bge[s]) for s in "ab"}
    here = difference(bge_there, ucb_there)
    return [
        Claim(
            "Some variants of Boltzmann exploration may do reasonably well in (a) when the parameter is chosen luckily",
            lucky.mean + CERTAIN * lucky.error < plan.uniform,
            f"the best is {_at(lucky)}; a uniform choice: {plan.uniform:.0f}",
        ),
        Claim(
            "All standard versions of Boltzmann exploration fail in (b)",
            unlucky.mean - CERTAIN * unlucky.error > well,
            f"the best is {_at(unlucky)}; a uniform choice: {plan.uniform:.0f}",
        ),
        Claim(
            "UCB and BGE continue to perform well in (b)",
            all(p.mean + CERTAIN * p.error < well for p in (bge["b"], ucb["b"])),
            f"at their best {_at(bge['b'])}, {_at(ucb['b'])}; in (a) {_at(bge['a'])}, {_at(ucb['a'])}",
        ),
        Claim(
            "BGE performs comparably to UCB, even slightly outperforming it",
            apart["a"] > -CERTAIN and apart["b"] > -CERTAIN,
            "; ".join(
                f"({s}) {_at(bge[s])}, {_at(ucb[s])}; BGE's best is {'ahead' if apart[s] > 0 else 'behind'} by "
                f"{abs(apart[s]):.1f} standard errors"
                for s in "ab"
            ),
        ),
        Claim(
            "BGE performs notably well at the recommended C² = 1/4",
            bge_there.mean + CERTAIN * bge_there.error < well,
            f"in (b) {_at(bge_there)}, {bge_there.mean / bge['b'].mean:.2f} times its own best",
        ),
        Claim(
            "It is comparable to UCB at C² = 1/4 itself (implied)",
            here < CERTAIN,
            f"in (b) {_at(bge_there)}, {_at(ucb_there)}; BGE's regret is {here:+.1f} standard errors from UCB's",
        ),
    ]


def report(points: Points, plan: Plan) -> str:
    """The whole report, in Markdown."""
    tested = [
        f"| {claim.statement} | {'agrees' if claim.holds else '**does not agree**'} | {claim.evidence} |"
        for claim in claims(points, plan)
    ]
    made = ", ".join(f"{name} {version}" for name, version in versions().items())
    small = (
        f" This is a smaller version; the paper's statements are about T = {PAPER_HORIZON:,}." if plan.smaller else ""
    )
    sections = [
        "# Figure 1 of “Boltzmann Exploration Done Right”",
        f"K = {ARMS} Bernoulli arms with means 1/2, the best 1/2 + {GAP}; T = {plan.horizon:,} rounds, "
        f"{plan.replications} replications, seed {plan.seed}. In (b) the best arm pays 0 in the first "
        f"{CORRUPTED_ROUNDS:,} rounds. A uniform choice has a regret of {plan.uniform:.0f}; never finding the best, "
        f"{GAP * plan.horizon:.0f}.",
        "![Figure 1](figure1.png)",
        "## What the paper's text says, and what is measured",
        "“Reasonably well” means below a uniform choice's regret, “well” below half of it, “fail” above half; each "
        f"by {CERTAIN:.0f} standard errors, and so is a difference.{small}",
        "\n".join(["| statement | measured | numbers: mean regret (standard error) |", "| --- | --- | --- |", *tested]),
        "## All points",
        "Mean regret (standard error). BGE has the paper's noise location +γ and is the one drawn; the last two "
        "columns have the locations 0 (everybody's standard Gumbel law) and −γ (mean zero).",
        *(f"### Scenario ({scenario})\n\n{_table(points, plan, scenario)}" for scenario in "ab"),
        f"Made with {made}.",
    ]
    return "\n\n".join(sections) + "\n"


def _table(points: Points, plan: Plan, scenario: str) -> str:
    lines = [f"| C² | {' | '.join(ALGORITHMS)} |", "| --- |" + " ---: |" * len(ALGORITHMS)]
    for c2 in plan.grid:
        name = f"**{c2:.3g}**" if c2 == SUGGESTED else f"{c2:.3g}"
        lines.append(f"| {name} | {' | '.join(points.at(scenario, a, c2).text for a in ALGORITHMS)} |")
    return "\n".join(lines)
