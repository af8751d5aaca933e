"""σ underestimated: BGE, whose bound then still says something, beside UCB, whose bound does not."""

from __future__ import annotations

from rightarm.lab.paper.evidence import Power, Verdict, decided, power
from rightarm.lab.paper.finding import BOUNDED, Claim, Finding, Study, Table, below, panel
from rightarm.lab.paper.theorem4 import TELLING, fraction
from rightarm.lab.results import Loaded
from rightarm.simulation.panels import Line
from rightarm.theory import theorem4


def slower(first: Power, second: Power) -> Verdict:
    """Whether one power is less than another: if their intervals are apart."""
    return decided(first.high < second.low, first.low > second.high)


def judge(results: Loaded) -> Finding:
    """BGE keeps a bound that says something and grows more slowly than UCB where σ is underestimated."""
    gaps, sigma = results[0].problem.gaps, float(results[0].problem.values["sigma"][0])
    cells = {(str(cell.value("policy")), int(cell.value("part"))): cell for cell in results}
    curves = {key: cell.curve(f"{key[0]}, {fraction('σ', cell)}") for key, cell in cells.items()}
    bounds = {
        part: theorem4(gaps, curves["BGE", part].x, cell.policy.values["C"], sigma)
        for (name, part), cell in cells.items()
        if name == "BGE"
    }
    most = gaps.max() * results[0].horizon
    telling = [part for part, bound in bounds.items() if bound[-1] < most]
    wrong = [part for part in bounds if part > 1]
    powers = {key: power(curve) for key, curve in curves.items()}
    return Finding(
        margin="power of T in the last decade "
        + ", ".join(f"{found.value:.2f} ({curves[key].label})" for key, found in powers.items()),
        claims=[
            below(f"{curves['BGE', part].label}: regret below Theorem 4's bound", curves["BGE", part], bounds[part])
            for part in telling
        ],
        remarks=[
            Claim(
                f"σ taken {part} times too small: BGE's regret grows more slowly than UCB's",
                slower(powers["BGE", part], powers["UCB", part]),
                f"powers {powers['BGE', part]} and {powers['UCB', part]}",
                large=True,
            )
            for part in wrong
        ],
        left_out=[
            f"{curves['BGE', part].label}: the bound is {bounds[part][-1]:.2g}, and no regret exceeds {most:,.0f}"
            for part in bounds
            if part not in telling
        ],
        panels=[
            panel(
                f"Regret of {name}",
                [curve for (own, _), curve in curves.items() if own == name],
                [Line(f"bound, {curves['BGE', part].label}", curves["BGE", part].x, bounds[part]) for part in telling]
                if name == "BGE"
                else [],
            )
            for name in ("BGE", "UCB")
        ],
        tables=[
            Table(
                "Regret at the end (standard error), and the power of T in the last decade",
                ["", "regret", "power"],
                [[c.label, f"{c.mean[-1]:.0f} ({c.error[-1]:.0f})", str(powers[key])] for key, c in curves.items()],
            )
        ],
    )


STUDY = Study(
    name="underestimated",
    claim="“Unlike any other algorithm that we are aware of”, BGE keeps a meaningful bound when σ is underestimated, "
    "at the price of e^{σ²/2C²}. (Algorithms that are told no σ, such as ε-greedy with decreasing ε, keep theirs too.)",
    formula="BGE with C = σ/part,  UCB with C = √2 σ/part",
    setting="Gaussian rewards, σ = 1, five arms, gaps 1/2. UCB's bonus is √(2σ² log t / N) with the σ that is assumed; "
    "with too small a σ no bound of order log T is known for it, and its regret grows by a power of T.",
    criteria=(
        BOUNDED,
        TELLING,
        "The paper says nothing about UCB's regret, only that no bound is known; so its growth beside BGE's is a "
        "remark: slower if the 99% bootstrap intervals of their powers of T in the last decade are apart.",
    ),
    judge=judge,
)
