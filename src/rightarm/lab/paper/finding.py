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
from rightarm.lab.paper.growth import Fit
from rightarm.lab.results import Loaded
from rightarm.simulation.panels import Line, Panel, Style
from rightarm.simulation.statistics import Curve
from rightarm.types import F64

FOLDER = Path(__file__).parent
CERTAIN = 3.0  # standard errors from which we speak of a difference
AGREES = 4.5  # standard errors up to which a measured value is taken to equal an exact one, however many are compared


@dataclass(frozen=True)
class Claim:
    """A statement, the measured answer, and the numbers behind it."""

    statement: str
    holds: bool
    evidence: str


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
    """What a judge found; it holds if all of its claims do, while remarks have no weight."""

    margin: str
    """Measured over bound, in words."""
    claims: list[Claim]
    panels: list[Panel]
    fits: dict[str, list[Fit]]
    remarks: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing measured contradicts the claim."""
        return all(claim.holds for claim in self.claims)

    @property
    def word(self) -> str:
        """The verdict without its reasons."""
        return "holds" if self.holds else "does not hold as printed"

    @property
    def verdict(self) -> str:
        """One line."""
        against = [f"not so: {claim.statement} ({claim.evidence})" for claim in self.claims if not claim.holds]
        return "; ".join([f"{self.word}: {self.margin}", *against])


@dataclass(frozen=True)
class Study:
    """A claim of the paper in our own words and as a formula, its setting, and its judge.

    The simulations are described by the experiment file of the same name, which stands beside the judge.
    """

    name: str
    claim: str
    formula: str
    setting: str
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
    """The claim that a curve (of ``x``) lies below a bound; it fails where the mean is above with certainty."""
    ratio = curve.mean / bound
    holds = bool((curve.mean - CERTAIN * curve.error <= bound).all())
    where = f"{x} = {curve.x[ratio.argmax()]:,.10g}"
    return Claim(statement, holds, f"measured / bound at most {ratio.max():.3g}, at {where}")


def above(statement: str, curve: Curve, bound: F64, x: str = "T") -> Claim:
    """The claim that a curve (of ``x``) lies above a bound; it fails where the mean is below with certainty."""
    ratio = curve.mean / bound
    holds = bool((curve.mean + CERTAIN * curve.error >= bound).all())
    where = f"{x} = {curve.x[ratio.argmin()]:,.10g}"
    return Claim(statement, holds, f"measured / bound at least {ratio.min():.3g}, at {where}")
