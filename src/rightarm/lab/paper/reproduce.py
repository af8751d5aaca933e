"""Claims of the paper from beginning to end: simulated as any experiment is, judged, and written as one page."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rightarm.lab.experiment import Experiment
from rightarm.lab.paper.evidence import Verdict, all_of
from rightarm.lab.paper.finding import Finding, Study
from rightarm.lab.results import Loaded, load
from rightarm.lab.run import run_into


@dataclass(frozen=True)
class Size:
    """How large the simulations are."""

    quick: bool = False
    replications: int | None = None
    """Of every cell; the file's own number unless given."""
    seed: int | None = None
    """The file's own unless given."""

    @property
    def options(self) -> str:
        """As the command line has them."""
        seed = "" if self.seed is None else f" --seed {self.seed}"
        replications = "" if self.replications is None else f" --replications {self.replications}"
        return f"{' --quick' if self.quick else ''}{replications}{seed}"

    def named(self, name: str) -> str:
        """The name of the results of this size: that which `rightarm run` gives their folder."""
        return f"{name}-quick" if self.quick else name


@dataclass(frozen=True)
class Reproduced:
    """A claim with what was simulated and what its judge found."""

    study: Study
    experiment: Experiment
    results: Loaded
    finding: Finding

    @property
    def line(self) -> str:
        """The verdict with the study's name."""
        return f"{self.study.name}: {self.finding.line}"

    @property
    def statements(self) -> list[str]:
        """A line for each claim; what is printed, or said in the proof, and not so comes first."""
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
    """0 if every claim holds, corrected or restricted where the paper errs; 1 if one fails; 3 if one cannot be told."""
    return {Verdict.HOLDS: 0, Verdict.FAILS: 1, Verdict.OPEN: 3}[all_of(one.finding.verdict for one in done)]


def write(done: Sequence[Reproduced], stem: Path, title: str, made: str, quick: bool) -> list[Path]:
    """The page ``stem``.html and its points ``stem``.csv, and what each study writes besides into its own folder.

    ``made`` is the command that makes them; a ``quick`` page says that it is one.
    """
    from rightarm.lab.report.paper import page

    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("html", "csv")]
    paths[0].write_text(page(title, done, made, quick), encoding="utf-8")
    write_csv(done, paths[1])
    more = [path for one in done for path in one.study.write_more(one.results, one.results.folder)]
    return list(dict.fromkeys([*more, *paths]))


def write_csv(done: Sequence[Reproduced], path: Path) -> None:
    """A row for each cell and checkpoint."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        measured = ["mean_regret", "standard_error", "quantile_10", "quantile_90"]
        writer.writerow(["study", "policy", "problem", "round", "replications", *measured])
        for one in done:
            for cell in one.results:
                curve, (low, high) = cell.curve(), np.quantile(cell.regret, [0.1, 0.9], axis=0)
                what = [one.study.name, cell.record.policy, cell.record.problem]
                for T, *row in zip(cell.rounds, curve.mean, curve.error, low, high, strict=True):
                    writer.writerow([*what, T, len(cell.regret), *(f"{number:.6g}" for number in row)])
