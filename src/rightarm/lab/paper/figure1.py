"""The paper's Figure 1: mean regret against C², from honest and from malicious initial rewards (its section 6)."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rightarm.lab.paper.evidence import Verdict, decided, halves, is_below, is_less
from rightarm.lab.paper.finding import Claim, Finding, Study, panel
from rightarm.lab.results import CellResult, Loaded
from rightarm.simulation.panels import Line, Panel, Style
from rightarm.simulation.result import versions
from rightarm.simulation.statistics import Curve, mean_and_error
from rightarm.theory import corollary1, theorem4, ucb1
from rightarm.types import F64

PAPER_HORIZON, SUGGESTED = 1_000_000, 0.25  # the rounds that the paper plays, and the C² that it recommends
FAILING, COMPARABLE = 0.9, 1.5  # of a uniform choice's regret; times another regret
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
class Plan:
    """How much was computed, and on which arms: the paper's own size, or a smaller one of the same form."""

    horizon: int
    replications: int
    grid: tuple[float, ...]
    seed: int
    gaps: tuple[float, ...]

    @classmethod
    def of(cls, results: Loaded) -> Plan:
        """The size of what ``results`` has."""
        first = results.cells[0]
        grid = tuple(sorted({float(cell.names["c2"]) for cell in results.cells}))
        gaps = tuple(results[0].problem.gaps.tolist())
        return cls(first.horizon, first.replications, grid, first.seed, gaps)

    @property
    def smaller(self) -> bool:
        """Whether it is not the paper's own size."""
        return self.horizon < PAPER_HORIZON

    @property
    def gap(self) -> float:
        """How much better the best arm is than the others."""
        return max(self.gaps)

    @property
    def uniform(self) -> float:
        """The regret of choosing arms uniformly at random."""
        return self.horizon * sum(self.gaps) / len(self.gaps)


@dataclass(frozen=True)
class Point:
    """One point of the figure: final regret of all replications."""

    scenario: str
    algorithm: str
    c2: float
    regret: F64

    @property
    def mean(self) -> float:
        """Mean regret."""
        return float(mean_and_error(self.regret)[0])

    @property
    def error(self) -> float:
        """Its standard error."""
        return float(mean_and_error(self.regret)[1])

    @property
    def text(self) -> str:
        """Mean and standard error, as the tables show them."""
        return f"{self.mean:.0f} ({self.error:.0f})"


class Points:
    """All points, to be looked up."""

    def __init__(self, points: list[Point]) -> None:
        self._points = {(point.scenario, point.algorithm, point.c2): point for point in points}

    @classmethod
    def of(cls, results: Loaded) -> Points:
        """The points in a folder of results."""
        return cls(
            [
                Point(str(cell.value("problem")), _algorithm(cell), float(cell.value("c2")), cell.regret[:, -1])
                for cell in results
            ]
        )

    def __iter__(self) -> Iterator[Point]:
        return iter(self._points.values())

    @property
    def algorithms(self) -> list[str]:
        """Their names: the paper's five, and BGE with two other noise locations, which only the table shows."""
        return list(dict.fromkeys(point.algorithm for point in self))

    def row(self, scenario: str, algorithm: str) -> list[Point]:
        """One curve, in order of C²."""
        found = [point for point in self if (point.scenario, point.algorithm) == (scenario, algorithm)]
        return sorted(found, key=lambda point: point.c2)

    def at(self, scenario: str, algorithm: str, c2: float = SUGGESTED) -> Point:
        """One point, at the suggested C² unless another is given."""
        return self._points[scenario, algorithm, c2]


def _algorithm(cell: CellResult) -> str:
    location = cell.value("location")
    return str(cell.value("policy")) if location is None else f"BGE, location {'0' if location == 0 else '−γ'}"


class Half(NamedTuple):
    """The best C² of some algorithms by half of the replications, and the regret of the other half there."""

    algorithm: str
    c2: float
    regret: F64

    @property
    def named(self) -> str:
        """With its place."""
        mean, error = mean_and_error(self.regret)
        return f"{self.algorithm} at C² = {self.c2:.3g}: {mean:.0f} ({error:.0f})"


def best_half(points: Points, scenario: str, *algorithms: str) -> Half:
    """Chosen by one half, judged by the other: the choice among many costs nothing then."""
    found = [point for name in algorithms for point in points.row(scenario, name)]
    chosen = min(found, key=lambda point: float(halves(point.regret)[0].mean()))
    return Half(chosen.algorithm, chosen.c2, halves(chosen.regret)[1])


def at_half(points: Points, scenario: str, algorithm: str) -> Half:
    """At the recommended C², of the same half."""
    return Half(algorithm, SUGGESTED, halves(points.at(scenario, algorithm).regret)[1])


def claims(points: Points, plan: Plan) -> list[Claim]:
    """The sentences of section 6 that the figure can bear out, by the criteria of `STUDY`."""
    made = [*_of_boltzmann(points, plan), *_of_gumbel(points, plan), *_at_suggested(points)]
    return [claim.of_quick() for claim in made] if plan.smaller else made


def _of_boltzmann(points: Points, plan: Plan) -> list[Claim]:
    lucky = best_half(points, "a", *BOLTZMANN)
    unlucky = [best_half(points, "b", name) for name in BOLTZMANN]
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


def _of_gumbel(points: Points, plan: Plan) -> list[Claim]:
    bge, ucb = ({s: best_half(points, s, name) for s in "ab"} for name in ("BGE", "UCB"))
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


def _at_suggested(points: Points) -> list[Claim]:
    bge, ucb = ({s: at_half(points, s, name) for s in "ab"} for name in ("BGE", "UCB"))
    best = {s: best_half(points, s, "BGE") for s in "ab"}
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


def guaranteed(plan: Plan) -> Claim:
    """That theory says anything about the figure: its bounds against the largest regret there is."""
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


def judge(results: Loaded) -> Finding:
    """Each sentence of the paper's section 6 about the figure is so."""
    points, plan = Points.of(results), Plan.of(results)
    stated = [*claims(points, plan), guaranteed(plan)]
    counts = Counter(claim.verdict for claim in stated)
    margin = f"of {len(stated)} statements {', '.join(f'{counts[v]} {_verb(v, counts[v])}' for v in Verdict)}"
    return Finding(margin, stated, panels(points, plan))


def _verb(verdict: Verdict, count: int) -> str:
    one = {Verdict.HOLDS: "holds", Verdict.FAILS: "fails", Verdict.OPEN: "cannot be told"}[verdict]
    return one if count == 1 or verdict is Verdict.OPEN else one.removesuffix("s")


def panels(points: Points, plan: Plan) -> list[Panel]:
    """Both panels, each with the regret of a uniform choice and a line at C² = 1/4."""
    ends = np.array([plan.grid[0], plan.grid[-1]])
    uniform = Line("uniform choice", ends, np.full(2, plan.uniform))
    suggested = Line("C² = 1/4", np.full(2, SUGGESTED), np.array([0.0, plan.gap * plan.horizon]))
    y = f"mean regret, T = {plan.horizon:,}"
    return [
        panel(title, [_curve(points.row(s, name)) for name in STYLES], [uniform, suggested], x="C²", y=y, log_y=False)
        for s, title in TITLES.items()
    ]


def _curve(row: list[Point]) -> Curve:
    return Curve.of(row[0].algorithm, np.array([p.c2 for p in row]), np.stack([p.regret for p in row], axis=1))


# Files beside the results.


def write_files(results: Loaded, folder: Path) -> list[Path]:
    """The figure as the paper draws it, its points, and a report in Markdown."""
    points, plan = Points.of(results), Plan.of(results)
    paths = [folder / name for name in ("figure1.png", "figure1.svg", "figure1.csv", "report.md")]
    draw(points, plan, *paths[:2])
    write_csv(points, paths[2])
    paths[3].write_text(report(points, plan), encoding="utf-8")
    return paths


def draw(points: Points, plan: Plan, *paths: Path) -> None:
    """The figure in the paper's form, in a file for each path."""
    from matplotlib.figure import Figure

    from rightarm.simulation.figure import add_legend, draw_panel

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    pair = figure.subplots(1, 2, sharey=True)
    for axes, drawn in zip(pair, panels(points, plan), strict=True):
        draw_panel(axes, drawn, STYLES)
        axes.set_xlim(plan.grid[0], plan.grid[-1])
        axes.set_ylim(0, 1.05 * plan.gap * plan.horizon)
    pair[1].set_ylabel("")
    add_legend(figure, grow=False)
    for path in paths:
        figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)


def write_csv(points: Points, path: Path) -> None:
    """A row for each point."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["scenario", "algorithm", "C2", "replications", "mean_regret", "standard_error"])
        for p in points:
            writer.writerow([p.scenario, p.algorithm, p.c2, p.regret.size, f"{p.mean:.3f}", f"{p.error:.3f}"])


def report(points: Points, plan: Plan) -> str:
    """The whole report, in Markdown."""
    tested = [
        f"| {claim.statement} | {claim.verdict} | {claim.evidence} |"
        for claim in [*claims(points, plan), guaranteed(plan)]
    ]
    made = ", ".join(f"{name} {version}" for name, version in versions().items())
    small = (
        f"\n- This is a smaller version; the paper's statements are about T = {PAPER_HORIZON:,}, and it cannot tell."
        if plan.smaller
        else ""
    )
    sections = [
        "# Figure 1 of “Boltzmann Exploration Done Right”",
        f"{STUDY.setting} T = {plan.horizon:,} rounds, {plan.replications} replications, seed {plan.seed}. A uniform "
        f"choice has a regret of {plan.uniform:.0f}; never finding the best, {plan.gap * plan.horizon:.0f}.",
        "![Figure 1](figure1.png)",
        "## What the paper's text says, and what is measured",
        "\n".join(f"- {criterion}" for criterion in STUDY.criteria) + small,
        "\n".join(["| statement | measured | numbers: mean regret (standard error) |", "| --- | --- | --- |", *tested]),
        "## All points",
        "Mean regret (standard error). BGE has the paper's noise location +γ and is the one drawn; the last two "
        "columns have the locations 0 (everybody's standard Gumbel law) and −γ (mean zero).",
        *(f"### Scenario ({scenario})\n\n{_table(points, plan, scenario)}" for scenario in "ab"),
        f"Made with {made}.",
    ]
    return "\n\n".join(sections) + "\n"


def _table(points: Points, plan: Plan, scenario: str) -> str:
    lines = [f"| C² | {' | '.join(points.algorithms)} |", "| --- |" + " ---: |" * len(points.algorithms)]
    for c2 in plan.grid:
        name = f"**{c2:.3g}**" if c2 == SUGGESTED else f"{c2:.3g}"
        lines.append(f"| {name} | {' | '.join(points.at(scenario, a, c2).text for a in points.algorithms)} |")
    return "\n".join(lines)


STUDY = Study(
    name="figure1",
    claim="Boltzmann exploration needs luck, and fails after a bad start; Boltzmann–Gumbel exploration and UCB do well "
    "over a wide range of C².",
    formula="β_t = C², C²/log t, C²/√t;  BGE and UCB with C",
    setting="K = 10 Bernoulli arms with means 1/2, the best 1/2 + 0.01. In (b) the best arm pays 0 in the first 5,000 "
    "rounds.",
    criteria=(
        "Where the best C² counts, it is chosen by half of the replications and judged by the other half.",
        "“Reasonably well” and “well”: below half the regret of a uniform choice. “Fail”: above "
        f"{FAILING:.0%} of it, each of the three variants at its best.",
        f"“Comparable”: at most {COMPARABLE:g} times UCB’s regret. “Outperforming”: less than it. “Notably well”: at "
        f"most {COMPARABLE:g} times its own regret at the best C².",
        "Each with certainty, replication by replication (Student’s t, one-sided at 0.1%); if the contrary is certain "
        "it fails, else nothing is told. The sentences are about T = 10⁶: shorter runs cannot tell.",
        "A guarantee predicts something if its bound is below the largest regret there is, ΔT.",
    ),
    judge=judge,
    styles=STYLES,
    write_more=write_files,
)
