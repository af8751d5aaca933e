"""The paper's Figure 1: mean regret against C², from honest and from malicious initial rewards (its section 6)."""

from __future__ import annotations

import csv
import functools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rightarm.experiments import CellResult, Results
from rightarm.paper.evidence import Verdict, decided, halves, is_below, is_less
from rightarm.paper.finding import Claim, Finding, final_regret_against, panel, study_of, with_error
from rightarm.simulation.panels import Curve, Line, Panel, Style
from rightarm.simulation.result import versions
from rightarm.theory import corollary1, theorem4, ucb1
from rightarm.types import F64

PAPER_HORIZON = 1_000_000  # the rounds that the paper plays
SUGGESTED = 0.25  # the C² that it recommends
FAILING = 0.9  # of a uniform choice's regret
COMPARABLE = 1.5  # times another regret
BOLTZMANN = ("BE-const", "BE-log", "BE-sqrt")
# Solid lines for what the paper recommends, broken ones for Boltzmann exploration.
STYLES = {
    "BE-const": Style("#E69F00", (1, 1)),
    "BE-log": Style("#CC79A7", (4, 1.6)),
    "BE-sqrt": Style("#009E73", (6, 1.6, 1, 1.6)),
    "BGE": Style("#0072B2"),
    "UCB": Style("#D55E00"),
}
TITLES = {"a": "(a) i.i.d. initialization", "b": "(b) malicious initialization"}


@dataclass(frozen=True)
class FigurePlan:
    """The size of Figure 1 and its arms: as in the paper, or smaller and of the same form."""

    horizon: int
    replications: int
    grid: tuple[float, ...]
    seed: int
    gaps: tuple[float, ...]

    @classmethod
    def of(cls, results: Results) -> FigurePlan:
        """Return the size of what ``results`` has."""
        first = results[0]
        return cls(
            horizon=first.horizon,
            replications=first.replications,
            grid=tuple(sorted({float(cell.value("c2")) for cell in results})),
            seed=first.seed,
            gaps=tuple(first.problem.gaps.tolist()),
        )

    @property
    def is_smaller(self) -> bool:
        """Return whether it is smaller than the paper's."""
        return self.horizon < PAPER_HORIZON

    @property
    def gap(self) -> float:
        """The gap between the best arm and the others."""
        return max(self.gaps)

    @property
    def uniform(self) -> float:
        """The regret of choosing arms uniformly at random."""
        return self.horizon * sum(self.gaps) / len(self.gaps)


Curves = Mapping[tuple[str, str], Curve]
"""Final regret against C², by scenario and algorithm."""


def curves_of(results: Results) -> Curves:
    """Return the curves of the figure, and those of BGE with two other noise locations, which only the table shows."""
    cells: dict[tuple[str, str], list[CellResult]] = {}
    for cell in results:
        algorithm = str(cell.value("policy"))
        if cell.value("location") is not None:
            algorithm = f"BGE, location {'0' if cell.value('location') == 0 else '−γ'}"
        cells.setdefault((str(cell.value("problem")), algorithm), []).append(cell)
    return {key: final_regret_against("c2", key[1], own) for key, own in cells.items()}


class Half(NamedTuple):
    """The regret of an algorithm at one C², in every other replication."""

    algorithm: str
    c2: float
    regret: F64

    @property
    def named(self) -> str:
        """The regret with its place."""
        return f"{self.algorithm} at C² = {self.c2:.3g}: {with_error(self.regret)}"


def best_half(curves: Curves, scenario: str, *algorithms: str) -> Half:
    """Choose the best C² by one half and return the other: the choice among many costs nothing then."""
    chosen = {name: halves(curves[scenario, name].samples)[0].mean(axis=0) for name in algorithms}
    best = min(algorithms, key=lambda name: float(chosen[name].min()))
    return _half(curves[scenario, best], int(chosen[best].argmin()))


def at_half(curves: Curves, scenario: str, algorithm: str) -> Half:
    """Return the same half at the recommended C²."""
    curve = curves[scenario, algorithm]
    return _half(curve, list(curve.x).index(SUGGESTED))


def _half(curve: Curve, i: int) -> Half:
    return Half(curve.label, float(curve.x[i]), halves(curve.samples)[1][:, i])


def claims(curves: Curves, plan: FigurePlan) -> list[Claim]:
    """Judge the sentences of section 6 that the figure can bear out, by the criteria of `figure1.toml`."""
    made = [*_of_boltzmann(curves, plan), *_of_gumbel(curves, plan), *_at_suggested(curves)]
    return [claim.of_quick() for claim in made] if plan.is_smaller else made


def _of_boltzmann(curves: Curves, plan: FigurePlan) -> list[Claim]:
    lucky = best_half(curves, "a", *BOLTZMANN)
    unlucky = [best_half(curves, "b", name) for name in BOLTZMANN]
    return [
        Claim(
            "Some variants of Boltzmann exploration may do reasonably well in (a) when the parameter is chosen luckily",
            is_below(lucky.regret[:, None], plan.uniform / 2),
            f"the best is {lucky.named}; a uniform choice: {plan.uniform:.0f}",
            large=True,
        ),
        Claim(
            "All standard versions of Boltzmann exploration fail in (b)",
            is_below(-np.stack([half.regret for half in unlucky], axis=1), -FAILING * plan.uniform),
            f"at their best {', '.join(half.named for half in unlucky)}; a uniform choice: {plan.uniform:.0f}",
            large=True,
        ),
    ]


def _of_gumbel(curves: Curves, plan: FigurePlan) -> list[Claim]:
    bge, ucb = ({s: best_half(curves, s, name) for s in "ab"} for name in ("BGE", "UCB"))
    both = {s: f"{bge[s].named}, {ucb[s].named}" for s in "ab"}
    return [
        Claim(
            "UCB and BGE continue to perform well in (b)",
            is_below(np.stack([bge["b"].regret, ucb["b"].regret], axis=1), plan.uniform / 2),
            f"at their best {both['b']}; in (a) {both['a']}",
            large=True,
        ),
        *(
            Claim(
                f"BGE performs comparably to UCB in ({s})",
                is_less(bge[s].regret, COMPARABLE * ucb[s].regret),
                both[s],
                large=True,
            )
            for s in "ab"
        ),
        *(
            Claim(f"BGE even outperforms UCB in ({s})", is_less(bge[s].regret, ucb[s].regret), both[s], large=True)
            for s in "ab"
        ),
    ]


def _at_suggested(curves: Curves) -> list[Claim]:
    bge, ucb = ({s: at_half(curves, s, name) for s in "ab"} for name in ("BGE", "UCB"))
    best = {s: best_half(curves, s, "BGE") for s in "ab"}
    ratio = {s: bge[s].regret.mean() / best[s].regret.mean() for s in "ab"}
    return [
        *(
            Claim(
                f"BGE performs notably well at the recommended C² = 1/4 in ({s})",
                is_less(bge[s].regret, COMPARABLE * best[s].regret),
                f"{bge[s].named}, {ratio[s]:.2f} times its best, {best[s].named}",
                large=True,
            )
            for s in "ab"
        ),
        *(
            Claim(
                f"It is comparable to UCB at C² = 1/4 itself in ({s}), which is implied",
                is_less(bge[s].regret, COMPARABLE * ucb[s].regret),
                f"{bge[s].named}, {ucb[s].named}",
                large=True,
            )
            for s in "ab"
        ),
    ]


def guaranteed(plan: FigurePlan) -> Claim:
    """Claim that theory says anything about the figure: its bounds are below the largest regret there is."""
    sigma = math.sqrt(SUGGESTED)
    bounds = [
        float(theorem4(plan.gaps, PAPER_HORIZON, sigma, sigma)),
        float(corollary1(len(plan.gaps), PAPER_HORIZON, sigma)),
        float(ucb1(plan.gaps, PAPER_HORIZON)),
    ]
    most = plan.gap * PAPER_HORIZON
    return Claim(
        "BGE and UCB do well “as predicted by their respective theoretical guarantees”",
        decided(min(bounds) < most, min(bounds) >= most),
        f"computed for T = {PAPER_HORIZON:,}, not simulated: Theorem 4 promises {bounds[0]:,.0f}, Corollary 1 "
        f"{bounds[1]:,.0f}, UCB1's bound {bounds[2]:,.0f}; no regret exceeds {most:,.0f}",
    )


def judge_figure1(results: Results) -> Finding:
    """Judge each sentence of the paper's section 6 about the figure."""
    curves = curves_of(results)
    plan = FigurePlan.of(results)
    stated = [*claims(curves, plan), guaranteed(plan)]
    counts = Counter(claim.verdict for claim in stated)
    margin = f"of {len(stated)} statements {', '.join(f'{counts[v]} {_verb(v, counts[v])}' for v in Verdict)}"
    return Finding(
        margin,
        stated,
        panels(curves, plan),
        styles=STYLES,
        write_files=functools.partial(write_files, curves, plan),
    )


def _verb(verdict: Verdict, count: int) -> str:
    one = {Verdict.HOLDS: "holds", Verdict.FAILS: "fails", Verdict.OPEN: "cannot be told"}[verdict]
    return one if count == 1 or verdict is Verdict.OPEN else one.removesuffix("s")


def panels(curves: Curves, plan: FigurePlan) -> list[Panel]:
    """Return both panels, each with the regret of a uniform choice and a line at C² = 1/4."""
    ends = np.array([plan.grid[0], plan.grid[-1]])
    uniform = Line("uniform choice", ends, np.full(2, plan.uniform))
    suggested = Line("C² = 1/4", np.full(2, SUGGESTED), np.array([0.0, plan.gap * plan.horizon]))
    y = f"mean regret, T = {plan.horizon:,}"
    return [
        panel(title, [curves[s, name] for name in STYLES], [uniform, suggested], x="C²", y=y, log_y=False)
        for s, title in TITLES.items()
    ]


# Files beside the results.


def write_files(curves: Curves, plan: FigurePlan, folder: Path) -> list[Path]:
    """Write the figure as the paper draws it, its points, and a report in Markdown."""
    paths = [folder / name for name in ("figure1.png", "figure1.svg", "figure1.csv", "report.md")]
    draw(curves, plan, *paths[:2])
    write_csv(curves, paths[2])
    paths[3].write_text(report(curves, plan), encoding="utf-8")
    return paths


def draw(curves: Curves, plan: FigurePlan, *paths: Path) -> None:
    """Draw the figure in the paper's form, into a file for each path."""
    from matplotlib.figure import Figure

    from rightarm.simulation.figure import add_legend, draw_panel

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    pair = figure.subplots(1, 2, sharey=True)
    for axes, drawn in zip(pair, panels(curves, plan), strict=True):
        draw_panel(axes, drawn, STYLES)
        axes.set_xlim(plan.grid[0], plan.grid[-1])
        axes.set_ylim(0, 1.05 * plan.gap * plan.horizon)
    pair[1].set_ylabel("")
    add_legend(figure, grow=False)
    for path in paths:
        figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)


def write_csv(curves: Curves, path: Path) -> None:
    """Write a row for each point."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["scenario", "algorithm", "C2", "replications", "mean_regret", "standard_error"])
        for (scenario, algorithm), curve in curves.items():
            for c2, mean, error in zip(curve.x, curve.mean, curve.error, strict=True):
                writer.writerow([scenario, algorithm, c2, len(curve.samples), f"{mean:.3f}", f"{error:.3f}"])


def report(curves: Curves, plan: FigurePlan) -> str:
    """Return the whole report, in Markdown."""
    study = study_of("figure1")
    tested = [
        f"| {claim.statement} | {claim.verdict} | {claim.evidence} |"
        for claim in [*claims(curves, plan), guaranteed(plan)]
    ]
    made = ", ".join(f"{name} {version}" for name, version in versions().items())
    small = (
        f"\n- This is a smaller version; the paper's statements are about T = {PAPER_HORIZON:,}, and it cannot tell."
        if plan.is_smaller
        else ""
    )
    sections = [
        "# Figure 1 of “Boltzmann Exploration Done Right”",
        f"{study.setting} T = {plan.horizon:,} rounds, {plan.replications} replications, seed {plan.seed}. A uniform "
        f"choice has a regret of {plan.uniform:.0f}; never finding the best, {plan.gap * plan.horizon:.0f}.",
        "![Figure 1](figure1.png)",
        "## What the paper's text says, and what is measured",
        "\n".join(f"- {criterion}" for criterion in study.criteria) + small,
        "\n".join(["| statement | measured | numbers: mean regret (standard error) |", "| --- | --- | --- |", *tested]),
        "## All points",
        "Mean regret (standard error). BGE has the paper's noise location +γ and is the one drawn; the last two "
        "columns have the locations 0 (everybody's standard Gumbel law) and −γ (mean zero).",
        *(f"### Scenario ({scenario})\n\n{_table(curves, plan, scenario)}" for scenario in "ab"),
        f"Made with {made}.",
    ]
    return "\n\n".join(sections) + "\n"


def _table(curves: Curves, plan: FigurePlan, scenario: str) -> str:
    columns = {name: curve for (where, name), curve in curves.items() if where == scenario}
    lines = [f"| C² | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
    for i, c2 in enumerate(plan.grid):
        name = f"**{c2:.3g}**" if c2 == SUGGESTED else f"{c2:.3g}"
        texts = [f"{curve.mean[i]:.0f} ({curve.error[i]:.0f})" for curve in columns.values()]
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return "\n".join(lines)
