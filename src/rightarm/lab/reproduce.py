"""Studies from beginning to end: simulated, judged, drawn, and written as one page."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rightarm.lab import figure1 as first_figure
from rightarm.lab.archive import Archive
from rightarm.lab.driver import compute, jobs_of, rounds_left
from rightarm.lab.study import Cell, Finding, Key, Samples, Study

if TYPE_CHECKING:
    from rightarm.lab.report.paper import Section


@dataclass(frozen=True)
class Plan:
    """A study at some size, and the folder where its outcomes are kept."""

    study: Study
    folder: Path
    quick: bool = False
    replications: int | None = None
    """Of every cell; the study's own number unless given."""
    seed: int = 2017

    @property
    def cells(self) -> dict[Key, Cell]:
        """The simulations at this size."""
        cells = self.study.cells(self.quick)
        if self.replications is None:
            return cells
        return {key: replace(cell, replications=self.replications) for key, cell in cells.items()}

    @property
    def archive(self) -> Archive:
        """The outcomes on disk."""
        return Archive(self.folder / "cells")

    @property
    def rounds_left(self) -> int:
        """The rounds that are not on disk yet."""
        return rounds_left(jobs_of(self.cells, self.seed), self.archive)


@dataclass(frozen=True)
class Reproduced:
    """A study with its samples and its finding."""

    study: Study
    samples: Samples
    finding: Finding

    @property
    def line(self) -> str:
        """The verdict with the study's name."""
        return f"{self.study.name}: {self.finding.verdict}"


def reproduce(plan: Plan, workers: int, on_rounds: Callable[[int], None]) -> Reproduced:
    """Simulate what is not on disk yet, and judge."""
    samples = compute(plan.cells, plan.seed, plan.archive, workers, on_rounds)
    return Reproduced(plan.study, samples, plan.study.judge(samples))


def write_csv(done: Sequence[Reproduced], path: Path) -> None:
    """A row for each cell and checkpoint."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        measured = ["mean_regret", "standard_error", "quantile_10", "quantile_90"]
        writer.writerow(["study", "policy", "problem", "round", "replications", *measured])
        for one in done:
            for sample in one.samples.values():
                cell, curve = sample.cell, sample.curve("")
                low, high = np.quantile(sample.regret, [0.1, 0.9], axis=0)
                for row in zip(cell.checkpoints, curve.mean, curve.error, low, high, strict=True):
                    numbers = [f"{number:.6g}" for number in row[1:]]
                    writer.writerow([one.study.name, cell.policy, cell.problem, row[0], len(sample.regret), *numbers])


def write_page(
    done: Sequence[Reproduced],
    path: Path,
    title: str,
    made: str,
    figure1: tuple[first_figure.Plan, Path] | None = None,
    quick: bool = False,
) -> None:
    """The page with all figures, and with Figure 1 if its plan and its folder are given."""
    from rightarm.lab.report.paper import page

    sections = [_section(one) for one in done] + ([] if figure1 is None else [_figure1(*figure1)])
    path.write_text(page(title, sections, made, quick), encoding="utf-8")


def _section(one: Reproduced) -> Section:
    from rightarm.lab.report.paper import Section, size_of

    study, finding = one.study, one.finding
    return Section(
        study.name,
        study.title,
        study.claim,
        finding.claims,
        formula=study.formula,
        verdict=finding.verdict,
        holds=finding.holds,
        panels=finding.panels,
        remarks=finding.remarks,
        tables=finding.tables,
        fits=finding.fits,
        setting=f"{study.setting} {size_of([sample.cell for sample in one.samples.values()])}",
    )


def _figure1(plan: first_figure.Plan, folder: Path) -> Section:
    """Figure 1 as the page shows it: drawn anew from the outcomes in ``folder``, if they are all there."""
    from rightarm.lab import figure1_plot
    from rightarm.lab.figure1_report import claims
    from rightarm.lab.report.paper import Section

    name, title = "figure1", "Figure 1: regret against C²"
    if not folder.exists() or first_figure.rounds_left(plan, folder):
        return Section(name, title, "Not computed here yet: “rightarm reproduce figure1” does it.", [])
    points = first_figure.compute(plan, folder, 1, lambda rounds: None)
    text = f"T = {plan.horizon:,}, {plan.replications} replications; “rightarm reproduce figure1” has the details."
    panels = figure1_plot.panels(points, plan)
    return Section(name, title, text, claims(points, plan), panels=panels, styles=figure1_plot.DRAWN)
