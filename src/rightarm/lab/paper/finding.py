"""What a claim of the paper consists of, and what its judge says: statements, pictures and tables."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rightarm.lab.experiment import Experiment, read_experiment
from rightarm.lab.paper.evidence import Verdict, all_of, halves, is_below
from rightarm.lab.paper.growth import Fit
from rightarm.lab.results import CellResult, Loaded
from rightarm.simulation.panels import Line, Panel, Style
from rightarm.simulation.statistics import Curve
from rightarm.types import F64

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Claim:
    """A statement, the measured answer, and the numbers behind it."""

    statement: str
    verdict: Verdict
    evidence: str
    large: bool = False
    """Whether it speaks of long horizons, so that a quick run cannot tell."""

    def of_quick(self) -> Claim:
        """The claim as a quick run may state it."""
        if not self.large or self.verdict is Verdict.OPEN:
            return self
        return replace(self, verdict=Verdict.OPEN, evidence=f"{self.evidence}; too short a run to tell")


def panel(
    title: str,
    curves: Sequence[Curve],
    lines: Sequence[Line] = (),
    *,
    x: str = "T",
    y: str = "regret",
    log_y: bool = True,
) -> Panel:
    """A picture: measured curves with their confidence bands, and computed lines, on a logarithmic axis of x."""
    return Panel(title, curves, lines, x=x, y=y, log_x=True, log_y=log_y)


@dataclass(frozen=True)
class Table:
    """Numbers that are no curve."""

    title: str
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Finding:
    """What a judge found: the verdict is that of its claims together, while remarks have no weight."""

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
    tables: list[Table] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """What was simulated and has no part in the verdict, and why."""

    @property
    def verdict(self) -> Verdict:
        """On the claims, corrected or restricted where the paper errs."""
        return all_of(claim.verdict for claim in self.claims)

    @property
    def as_printed(self) -> Verdict:
        """On the paper's statement to the letter."""
        return all_of(claim.verdict for claim in (*self.printed, *self.claims))

    @property
    def proven(self) -> Verdict:
        """On what the proof says."""
        return all_of(claim.verdict for claim in self.proof)

    @property
    def line(self) -> str:
        """One line: as printed first, if that is something else; what fails is told, what is open is counted."""
        first = f"as printed {_told(self.printed)}; {self.instead} " if self.printed else ""
        if self.proof:
            first = "statement "
        second = f", proof {_told(self.proof)}" if self.proof else ""
        against = [f"fails: {_short(claim)}" for claim in self.claims if claim.verdict is Verdict.FAILS]
        still = sum(claim.verdict is Verdict.OPEN for claim in self.claims)
        open_ = [f"{still} of {len(self.claims)} statements cannot be told"] if still else []
        return "; ".join([f"{first}{self.verdict}{second}: {self.margin}", *against, *open_])

    def of_quick(self) -> Finding:
        """The same from a quick run, which cannot tell what speaks of long horizons."""
        claims, printed, proof, remarks = (
            [claim.of_quick() for claim in some] for some in (self.claims, self.printed, self.proof, self.remarks)
        )
        return replace(self, claims=claims, printed=printed, proof=proof, remarks=remarks)


def _told(printed: Sequence[Claim]) -> str:
    worst = all_of(claim.verdict for claim in printed)
    return f"{worst} ({'; '.join(_short(claim) for claim in printed if claim.verdict is worst)})"


def _short(claim: Claim) -> str:
    return f"{claim.statement} ({claim.evidence})"


@dataclass(frozen=True)
class Study:
    """A claim of the paper in our own words and as a formula, its setting, and its judge.

    The simulations are described by the experiment file of the same name, which stands beside the judge.
    """

    name: str
    claim: str
    formula: str
    setting: str
    criteria: tuple[str, ...]
    """What decides, each in a sentence that stands before the numbers."""
    judge: Callable[[Loaded], Finding]
    styles: Mapping[str, Style] | None = None
    """How its curves look, if not as usual."""
    write_more: Callable[[Loaded, Path], list[Path]] = lambda results, folder: []
    """Writes further files into the folder of the results, and names them."""

    @property
    def path(self) -> Path:
        """The experiment file."""
        return FOLDER / f"{self.name}.toml"

    @functools.cached_property
    def title(self) -> str:
        """The experiment's title."""
        return str(tomllib.loads(self.path.read_text(encoding="utf-8"))["title"])

    def experiment(self, quick: bool = False, replications: int | None = None, seed: int | None = None) -> Experiment:
        """The simulations; with ``replications`` or ``seed`` in the place of the file's."""
        read = read_experiment(self.path, quick)
        changes: dict[str, Any] = {
            name: value for name, value in (("replications", replications), ("seed", seed)) if value is not None
        }
        return replace(read, cells=tuple(replace(cell, **changes) for cell in read.cells))


def shipped(name: str) -> Path | None:
    """The experiment file of a claim of the paper, by name."""
    path = FOLDER / f"{name}.toml"
    return path if path.parent == FOLDER and path.exists() else None


def ratios(curves: Iterable[Curve], bounds: Iterable[F64]) -> F64:
    """Measured over bound, at every point of every curve."""
    return np.concatenate([curve.mean / bound for curve, bound in zip(curves, bounds, strict=True)])


def below(statement: str, curve: Curve, bound: F64, x: str = "T") -> Claim:
    """The claim that a curve (of ``x``) lies below a bound."""
    ratio = curve.mean / bound
    where = f"{x} = {curve.x[ratio.argmax()]:,.10g}"
    text = f"measured / bound at most {ratio.max():.3g}, at {where}"
    return Claim(statement, is_below(curve.samples, bound), text)


def above(statement: str, curve: Curve, bound: F64, x: str = "T") -> Claim:
    """The claim that a curve (of ``x``) lies above a bound."""
    ratio = curve.mean / bound
    where = f"{x} = {curve.x[ratio.argmin()]:,.10g}"
    text = f"measured / bound at least {ratio.min():.3g}, at {where}"
    return Claim(statement, is_below(-curve.samples, -bound), text)


def worst_by_halves(label: str, cells: Sequence[CellResult]) -> Curve:
    """For every T the cell with the largest regret in half of the replications: the regret of the other half."""
    ends = {}
    for T in sorted({cell.horizon for cell in cells}):
        pairs = [halves(cell.regret[:, -1]) for cell in cells if cell.horizon == T]
        ends[float(T)] = max(pairs, key=lambda pair: float(pair[0].mean()))[1]
    return Curve.of(label, np.array(list(ends)), np.stack(list(ends.values()), axis=1))


BOUNDED = (
    "A bound holds if the mean is within it at every point by more than chance explains (Student’s t over the "
    "replications, one-sided at 0.1% in all), fails if it is beyond it by as much at one point; else nothing is told."
)
GROWTH = (
    "Growth is no faster than a law if a law as slow fits (Hotelling’s test over the replications, p ≥ 1%) and all "
    "faster ones of log T, log² T, √T and T are rejected; log² T, which includes log T, counts only where log T is "
    "rejected. The reverse fails; a quick run cannot tell."
)
