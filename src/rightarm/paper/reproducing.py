"""Reproducing: the claims are run, judged, and written on one page."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rightarm.experiments import Experiment, Results, load, run_into
from rightarm.paper.evidence import AGREES, LATER, Verdict, all_of
from rightarm.paper.finding import Finding, Study
from rightarm.reports.charts import Chart, line_chart, render
from rightarm.simulation.result import versions


@dataclass(frozen=True)
class Size:
    """The size of the simulations."""

    quick: bool = False
    replications: int | None = None
    """Of every cell; the file's own number unless given."""
    seed: int | None = None
    """The file's own unless given."""

    @property
    def options(self) -> str:
        """The size as options of the command line."""
        seed = "" if self.seed is None else f" --seed {self.seed}"
        replications = "" if self.replications is None else f" --replications {self.replications}"
        return f"{' --quick' if self.quick else ''}{replications}{seed}"

    def named(self, name: str) -> str:
        """Return the name of the results of this size: that which `rightarm run` gives their folder."""
        return f"{name}-quick" if self.quick else name


@dataclass(frozen=True)
class Reproduced:
    """A claim with what was simulated and what its judge found."""

    study: Study
    experiment: Experiment
    results: Results
    finding: Finding

    @property
    def line(self) -> str:
        """The verdict with the study's name."""
        return f"{self.study.name}: {self.finding.line}"

    @property
    def statements(self) -> list[str]:
        """The claims, a line for each; what is printed, or stands in the proof, and is not so comes first."""
        found = self.finding
        kinds = [("as printed: ", found.printed), ("in the proof: ", found.proof), ("", found.claims)]
        return [
            f"{claim.verdict:<11}  {kind}{claim.statement}: {claim.evidence}."
            for kind, claims in kinds
            for claim in claims
        ]


def reproduce(
    study: Study,
    folder: Path,
    size: Size,
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: bool = False,
) -> Reproduced:
    """Simulate what ``folder`` lacks, as `rightarm run` does, and judge."""
    experiment = study.experiment(size.quick, size.replications, size.seed)
    run_into(folder, experiment, workers=workers, dask=dask, progress=progress)
    results = load(folder)
    found = study.judge(results)
    return Reproduced(study, experiment, results, found.of_quick() if size.quick else found)


def exit_code(done: Sequence[Reproduced]) -> int:
    """Return 0 if every claim holds, corrected where the paper errs; 1 if one fails; 3 if one cannot be told."""
    return {Verdict.HOLDS: 0, Verdict.FAILS: 1, Verdict.OPEN: 3}[all_of(one.finding.verdict for one in done)]


def write(done: Sequence[Reproduced], stem: Path, title: str, made: str, quick: bool) -> list[Path]:
    """Write the page ``stem``.html, its points ``stem``.csv, and the further files of each study into its folder.

    ``made`` is the command that makes them; a ``quick`` page says that it is one.
    """
    html = stem.with_name(f"{stem.name}.html")
    html.write_text(page(title, done, made, quick), encoding="utf-8")
    points = stem.with_name(f"{stem.name}.csv")
    write_csv(done, points)
    more = []
    for one in done:
        if one.finding.write_files is not None:
            more += one.finding.write_files(one.results.folder)
    return list(dict.fromkeys([*more, html, points]))


def write_csv(done: Sequence[Reproduced], path: Path) -> None:
    """Write a row for each cell and checkpoint."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        measured = ["mean_regret", "standard_error", "quantile_10", "quantile_90"]
        writer.writerow(["study", "policy", "problem", "round", "replications", *measured])
        for one in done:
            for cell in one.results:
                curve = cell.curve()
                low, high = np.quantile(cell.regret, [0.1, 0.9], axis=0)
                what = [one.study.name, cell.policy_text, cell.problem_text]
                for T, *row in zip(cell.rounds, curve.mean, curve.error, low, high, strict=True):
                    writer.writerow([*what, T, len(cell.regret), *(f"{number:.6g}" for number in row)])


PAPER = "https://arxiv.org/abs/1705.10257"
READING = (
    "Curves are means with 95% confidence bands, dotted lines are computed. A verdict is one of three: holds, fails, "
    "or cannot tell; what decides it stands before the numbers. “Holds” means that what was simulated agrees with the "
    "claim with certainty; it proves nothing about other problems. Where the paper’s statement is wrong as printed, "
    "that is said first, and the verdict after it is on what is named there: the corrected statement, or the printed "
    "one in the setting that was simulated. A measured value equals an exact one "
    f"if they differ by less than {AGREES:g} standard errors. Student’s t does not see what happens in fewer "
    "runs than were played, such as a policy that gets stuck once in a thousand. Growth is looked for in the later "
    f"part of a curve ({LATER:.0%} of its logarithmic range)."
)


def page(title: str, done: Sequence[Reproduced], made: str, quick: bool = False) -> str:
    """Return the whole page; a ``quick`` one says that its simulations are smaller than the paper's settings."""
    return render(
        "paper.html",
        title=title,
        quick=quick,
        paper=PAPER,
        reading=READING,
        sections=[(one.study, one.finding, _charts(one.finding), _growth(one.finding), _setting(one)) for one in done],
        made=made,
        packages=", ".join(f"{name} {version}" for name, version in versions().items()),
    )


def _charts(finding: Finding) -> list[Chart]:
    return [line_chart(panel, finding.styles) for panel in finding.panels]


def _growth(finding: Finding) -> list[list[str]]:
    """Return the rows of its table of fits: a law that is rejected has no formula."""
    return [
        [label, found.law, "rejected" if found.is_rejected else found.text, f"{found.p:.2g}".replace("nan", "–")]
        for label, fits in finding.fits.items()
        for found in fits
    ]


def _setting(one: Reproduced) -> str:
    """Return the setting, and how much was simulated."""
    cells = one.experiment.cells
    arms = sorted({cell.problem.arms for cell in cells})
    horizons = [cell.checkpoints[0] for cell in cells] + [cell.horizon for cell in cells]
    replications = sorted({cell.replications for cell in cells})
    rounds = sum(cell.replications * (cell.horizon - cell.start.rounds) for cell in cells)
    span = f"from {min(horizons):,} to {max(horizons):,}" if min(horizons) < max(horizons) else f"= {max(horizons):,}"
    return (
        f"{one.study.setting} K = {', '.join(map(str, arms))}; T {span}; "
        f"{', '.join(map(str, replications))} replications; {len(cells)} simulations, {rounds:.2g} rounds in all."
    )
