"""A study: a claim of the paper, the simulations that test it, and the judgement of what they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rightarm.lab.curve import Curve, Line
from rightarm.lab.growth import Fit
from rightarm.policies import Policy
from rightarm.problems import Problem
from rightarm.simulation.engine import Start
from rightarm.types import F64, I64

Key = tuple[Any, ...]
CERTAIN = 3.0  # standard errors from which we speak of a difference
AGREES = 4.5  # standard errors up to which a measured value is taken to equal an exact one, however many are compared


@dataclass(frozen=True)
class Cell:
    """One policy on one problem, regret recorded at some rounds."""

    policy: Policy
    problem: Problem
    checkpoints: tuple[int, ...]
    replications: int
    known: Start | None = None
    """Statistics to start from, if not from nothing."""

    @property
    def start(self) -> Start:
        """Where it starts."""
        return self.known or Start((0,) * self.problem.arms, (0.0,) * self.problem.arms)

    @property
    def horizon(self) -> int:
        """The last round."""
        return self.checkpoints[-1]


@dataclass(frozen=True, eq=False)
class Sample:
    """What the simulation of a cell gave: regret (replications × checkpoints) and final pulls (replications × arms)."""

    cell: Cell
    regret: F64
    pulls: I64

    def curve(self, label: str) -> Curve:
        """Its regret against T."""
        return Curve(label, np.array(self.cell.checkpoints, dtype=float), self.regret)


Samples = Mapping[Key, Sample]


@dataclass(frozen=True)
class Claim:
    """A statement, the measured answer, and the numbers behind it."""

    statement: str
    holds: bool
    evidence: str


@dataclass(frozen=True)
class Panel:
    """A picture: measured curves with their confidence bands, and computed lines."""

    title: str
    curves: list[Curve]
    lines: list[Line] = field(default_factory=list)
    y: str = "regret"
    x: str = "T"
    log_y: bool = True


@dataclass(frozen=True)
class Table:
    """Numbers that are no curve."""

    title: str
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Finding:
    """What a study found; it holds if all of its claims do, while remarks are told only."""

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
    def verdict(self) -> str:
        """One line."""
        against = [f"not so: {claim.statement} ({claim.evidence})" for claim in self.claims if not claim.holds]
        return "; ".join([f"{'holds' if self.holds else 'does not hold as printed'}: {self.margin}", *against])


@dataclass(frozen=True)
class Study:
    """A claim in our own words and as a formula, its setting, its simulations and its judge."""

    name: str
    title: str
    claim: str
    formula: str
    setting: str
    cells: Callable[[bool], dict[Key, Cell]]
    """The simulations; a few small ones if asked for a quick look."""
    judge: Callable[[Samples], Finding]


def rounds_between(first: int, last: int, per_decade: int = 4) -> tuple[int, ...]:
    """Rounds from ``first`` to ``last``, spaced evenly on a logarithmic scale.

    >>> rounds_between(10, 1000, per_decade=1)
    (10, 100, 1000)
    """
    points = round(per_decade * np.log10(last / first)) + 1
    return tuple(int(T) for T in np.unique(np.geomspace(first, last, points).round()))


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
