"""Findings: the statements, pictures and tables with which a judge answers."""

from __future__ import annotations

import functools
import importlib
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from rightarm.experiments import CellResult, Experiment, Results, read_experiment
from rightarm.paper import evidence
from rightarm.paper.evidence import Fit, Verdict, all_of, describe_fits, grows_at_most, halves, is_below
from rightarm.simulation.panels import Curve, Line, Panel, Style, mean_and_error
from rightarm.types import F64

# Criteria that several studies share; their files mention them by name.
BOUNDED = (
    "A bound holds if the mean is within it at every point by more than chance explains (Student’s t over the "
    "replications, one-sided at 0.1% in all), fails if it is beyond it by as much at one point; else nothing is told."
)
GROWTH = (
    "Growth is no faster than a law if a law as slow fits (Hotelling’s test over the replications, p ≥ 1%) and all "
    "faster ones of log T, log² T, √T and T are rejected; log² T, which includes log T, counts only where log T is "
    "rejected. The reverse fails; a quick run cannot tell."
)
TELLING = "A bound above ΔT, the largest regret there is, says nothing; such cells are left out, and named."


@dataclass(frozen=True)
class Claim:
    """A statement, the measured answer, and the numbers behind it."""

    statement: str
    verdict: Verdict
    evidence: str
    large: bool = False
    """Whether it speaks of long horizons, so that a quick run cannot tell."""

    def of_quick(self) -> Claim:
        """Return the claim as a quick run may state it."""
        if not self.large or self.verdict is Verdict.OPEN:
            return self
        return replace(self, verdict=Verdict.OPEN, evidence=f"{self.evidence}; too short a run to tell")


@dataclass(frozen=True)
class NumberTable:
    """Numbers that are no curve."""

    title: str
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Finding:
    """The result of a judge: its verdict follows from all its claims; remarks do not count."""

    margin: str
    """Measured over bound, in words."""
    claims: list[Claim]
    panels: list[Panel]
    fits: dict[str, list[Fit]] = field(default_factory=dict)
    printed: list[Claim] = field(default_factory=list)
    """What the paper prints and is not so; the claims are then about something else, which ``instead`` names."""
    instead: str = "corrected"
    """What the claims are about where what is printed is not so; the verdict follows it in a sentence."""
    proof: list[Claim] = field(default_factory=list)
    """What the paper's proof says and is not so, where the statement itself is what the claims are about."""
    remarks: list[Claim] = field(default_factory=list)
    tables: list[NumberTable] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """What was simulated and has no part in the verdict, and why."""
    styles: Mapping[str, Style] | None = None
    """How its curves look, if not as usual."""
    write_files: Callable[[Path], list[Path]] | None = None
    """Writes further files into the folder of the results, and returns their paths."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on the claims, corrected or restricted where the paper errs."""
        return all_of(claim.verdict for claim in self.claims)

    @property
    def as_printed(self) -> Verdict:
        """The verdict on the paper's statement to the letter."""
        return all_of(claim.verdict for claim in (*self.printed, *self.claims))

    @property
    def proven(self) -> Verdict:
        """The verdict on the proof."""
        return all_of(claim.verdict for claim in self.proof)

    @property
    def line(self) -> str:
        """The verdict in one line: as printed first; claims that fail are listed, open ones are counted."""
        text = f"{self.verdict}: {self.margin}"
        if self.printed:
            text = f"as printed {_worst_of(self.printed)}; {self.instead} {text}"
        if self.proof:
            text = f"statement {self.verdict}, proof {_worst_of(self.proof)}: {self.margin}"
        parts = [text]
        parts += [f"fails: {_in_short(claim)}" for claim in self.claims if claim.verdict is Verdict.FAILS]
        undecided = sum(claim.verdict is Verdict.OPEN for claim in self.claims)
        if undecided:
            parts.append(f"{undecided} of {len(self.claims)} statements cannot be told")
        return "; ".join(parts)

    def of_quick(self) -> Finding:
        """Return the finding of a quick run, which cannot tell what speaks of long horizons."""
        return replace(
            self,
            claims=[claim.of_quick() for claim in self.claims],
            printed=[claim.of_quick() for claim in self.printed],
            proof=[claim.of_quick() for claim in self.proof],
            remarks=[claim.of_quick() for claim in self.remarks],
        )


def _worst_of(claims: Sequence[Claim]) -> str:
    worst = all_of(claim.verdict for claim in claims)
    return f"{worst} ({'; '.join(_in_short(claim) for claim in claims if claim.verdict is worst)})"


def _in_short(claim: Claim) -> str:
    return f"{claim.statement} ({claim.evidence})"


# Parts of findings that several judges share.


def panel(
    title: str,
    curves: Sequence[Curve],
    lines: Sequence[Line] = (),
    *,
    x: str = "T",
    y: str = "regret",
    log_y: bool = True,
) -> Panel:
    """Return a picture of measured curves and computed lines, on a logarithmic axis of x."""
    return Panel(title, curves, lines, x=x, y=y, log_x=True, log_y=log_y)


def ratios(curves: Iterable[Curve], bounds: Iterable[F64]) -> F64:
    """Return measured over bound, at every point of every curve."""
    return np.concatenate([curve.mean / bound for curve, bound in zip(curves, bounds, strict=True)])


def below(statement: str, curve: Curve, bound: F64, x: str = "T") -> Claim:
    """Claim that a curve (of ``x``) lies below a bound."""
    ratio = curve.mean / bound
    where = f"{x} = {curve.x[ratio.argmax()]:,.10g}"
    text = f"measured / bound at most {ratio.max():.3g}, at {where}"
    return Claim(statement, is_below(curve.samples, bound), text)


def above(statement: str, curve: Curve, bound: F64, x: str = "T") -> Claim:
    """Claim that a curve (of ``x``) lies above a bound."""
    ratio = curve.mean / bound
    where = f"{x} = {curve.x[ratio.argmin()]:,.10g}"
    text = f"measured / bound at least {ratio.min():.3g}, at {where}"
    return Claim(statement, is_below(-curve.samples, -bound), text)


def grows(label: str, law: str, fits: Sequence[Fit]) -> Claim:
    """Claim that growth is no faster than a law."""
    return Claim(f"{label}: growth no faster than {law}", grows_at_most(law, fits), describe_fits(fits), large=True)


def with_error(samples: F64) -> str:
    """Return the mean of some regrets and its standard error, as tables show them."""
    mean, error = mean_and_error(samples)
    return f"{mean:.0f} ({error:.0f})"


def fraction(whole: str, cell: CellResult) -> str:
    """Return the part of σ or √V that C is, in words."""
    part = cell.value("part")
    return whole if part == 1 else f"{whole}/{part:g}"


def final_regret_against(name: str, label: str, cells: Iterable[CellResult]) -> Curve:
    """Return the final regret of some cells against the value that they have for ``name``."""
    ordered = sorted(cells, key=lambda cell: float(cell.value(name)))
    return Curve.of_ends(label, [cell.curve() for cell in ordered], [cell.value(name) for cell in ordered])


def worst_by_halves(label: str, cells: Sequence[CellResult]) -> Curve:
    """Choose for each T the cell of largest regret by half of the replications; return the other half's regret."""
    ends = {}
    for T in sorted({cell.horizon for cell in cells}):
        pairs = [halves(cell.regret[:, -1]) for cell in cells if cell.horizon == T]
        ends[float(T)] = max(pairs, key=lambda pair: float(pair[0].mean()))[1]
    return Curve.of(label, np.array(list(ends)), np.stack(list(ends.values()), axis=1))


# Each study is a file, such as `theorem4.toml`: an experiment like any other, whose table `[about]` has the claim and
# names the judge, a function that takes the results of the experiment and returns a `Finding`.

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Study:
    """A claim of the paper: what it says, how it is tested, and who judges it.

    Attributes
    ----------
    name : str
        The name of the claim, such as ``theorem4``.
    title : str
        The title of the experiment.
    order : int
        The place of the claim in the paper.
    claim, formula, setting : str
        The claim in our words and as a formula, and the problems on which it is tested.
    judge_address : str
        Where the judge is found, as `module:function`.
    criteria_templates : sequence of str
        What decides, in sentences. Names in braces stand for constants of the judge's module.
    """

    name: str
    title: str
    order: int
    claim: str
    formula: str
    setting: str
    judge_address: str
    criteria_templates: Sequence[str]

    @classmethod
    def read(cls, path: Path) -> Study:
        """Read the study that a file describes."""
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        about = document["about"]
        return cls(
            path.stem,
            document["title"],
            judge_address=about.pop("judge"),
            criteria_templates=about.pop("criteria"),
            **about,
        )

    @property
    def path(self) -> Path:
        """The experiment file."""
        return FOLDER / f"{self.name}.toml"

    @functools.cached_property
    def judge(self) -> Callable[[Results], Finding]:
        """Find the function that judges the results."""
        module, _, function = self.judge_address.partition(":")
        judge: Callable[[Results], Finding] = getattr(importlib.import_module(module), function)
        return judge

    @property
    def criteria(self) -> tuple[str, ...]:
        """The sentences that say what decides; they stand before the numbers."""
        constants = vars(evidence) | globals() | self.judge.__globals__
        return tuple(template.format_map(constants) for template in self.criteria_templates)

    def experiment(self, quick: bool = False, replications: int | None = None, seed: int | None = None) -> Experiment:
        """Return the simulations, with other ``replications`` or another ``seed`` than the file's if they are given."""
        experiment = read_experiment(self.path, quick)
        cells = experiment.cells
        if replications is not None:
            cells = tuple(replace(cell, replications=replications) for cell in cells)
        if seed is not None:
            cells = tuple(replace(cell, seed=seed) for cell in cells)
        return replace(experiment, cells=cells)


@functools.cache
def studies() -> tuple[Study, ...]:
    """Return all studies, in the order of the paper."""
    found = [Study.read(path) for path in FOLDER.glob("*.toml")]
    return tuple(sorted(found, key=lambda study: study.order))


def study_of(name: str) -> Study:
    """Return the study of a claim by its name."""
    return next(study for study in studies() if study.name == name)
