"""Which law a curve grows by: an absolute test of fit for a few laws, which takes the points' correlation into account.

A law is a sum of terms with any coefficients. What it leaves over, contrasts of the points that vanish if the law is
right, is computed for every replication; Hotelling's test asks whether these contrasts are zero on average. It needs no
independence of the points of one run, only of the replications.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rightarm.extras import needed_for
from rightarm.lab.paper.evidence import Verdict, decided
from rightarm.simulation.statistics import Curve, mean_and_error
from rightarm.types import F64

TERMS: dict[str, Callable[[F64], F64]] = {
    "log T": np.log,
    "log² T": lambda T: np.log(T) ** 2,
    "√T": np.sqrt,
    "T": lambda T: T,
}
LAWS: dict[str, tuple[str, ...]] = {  # from the slowest to the fastest; each with a constant besides
    "log T": ("log T",),
    "log² T": ("log T", "log² T"),
    "√T": ("√T",),
    "T": ("T",),
}
LATER = 0.6  # the part of the logarithmic range that is fitted: beginnings follow no law
POINTS = 8  # at most so many points are fitted, so that there are more replications than points
GOODNESS = 0.01  # a law is rejected if what is seen has a smaller chance under it


@dataclass(frozen=True)
class Fit:
    """A law's coefficients, the standard error of the last, and the chance of what is seen if the law is right."""

    law: str
    coefficients: tuple[float, ...]
    """The constant first."""
    error: float
    p: float
    """NaN if there are too few replications to tell."""

    @property
    def rejected(self) -> bool:
        """Whether the law is not right."""
        return self.p < GOODNESS

    @property
    def text(self) -> str:
        """The law as a formula."""
        constant, *others = self.coefficients
        signed = [
            f" {'−' if b < 0 else '+'} {abs(b):.4g} {term}" for b, term in zip(others, LAWS[self.law], strict=True)
        ]
        return f"{constant:.4g}{''.join(signed)}".replace("-", "−")


def fit(curve: Curve) -> list[Fit]:
    """All laws fitted to the later part of ``curve``, from the slowest to the fastest."""
    x, samples = _later(curve)
    error = mean_and_error(samples)[1] if len(samples) > 1 else np.ones(x.size)
    least = 1e-9 * np.abs(samples.mean(axis=0)).max() or 1.0  # exact points would weigh infinitely
    weight = 1 / np.maximum(error, least)
    return [_fit_law(law, [TERMS[term](x) for term in terms], samples, weight) for law, terms in LAWS.items()]


def grows_at_most(law: str, fits: Sequence[Fit]) -> Verdict:
    """Whether growth is that of ``law`` or slower: it holds if such a law fits and all faster ones are rejected.

    A law whose terms include those of another one that fits, as log² T includes log T, adds nothing and does not count.
    """
    fitting = [found.law for found in fits if not found.rejected]
    needed = [own for own in fitting if not any(set(LAWS[other]) < set(LAWS[own]) for other in fitting)]
    order = list(LAWS)
    slow = {order.index(own) <= order.index(law) for own in needed}
    return decided(slow == {True}, slow == {False})


def told(fits: Sequence[Fit]) -> str:
    """Which laws fit, in words.

    >>> told([Fit("log T", (1.0, 2.0), 0.1, 0.5), Fit("T", (1.0, 2.0), 0.1, 1e-9)])
    'fits log T (p = 0.5); rejected T'
    """
    fitting = [f"{found.law} ({_chance(found.p)})" for found in fits if not found.rejected]
    rejected = [found.law for found in fits if found.rejected]
    return f"fits {', '.join(fitting) or 'none of the laws'}; rejected {', '.join(rejected) or 'none'}"


def _chance(p: float) -> str:
    return "too few replications to reject it" if math.isnan(p) else f"p = {p:.2g}"


def _later(curve: Curve) -> tuple[F64, F64]:
    """Points and samples of the part that is fitted."""
    logarithm = np.log(curve.x)
    later = np.flatnonzero(logarithm >= logarithm[-1] - LATER * (logarithm[-1] - logarithm[0]) - 1e-9)
    if later.size > POINTS:
        later = later[np.linspace(0, later.size - 1, POINTS).round().astype(int)]
    most = 1 + max(len(terms) for terms in LAWS.values())
    if later.size <= most:  # so many points lie on every law
        raise ValueError(f"{curve.label}: a fit needs {most + 1} points in its later part, got {later.size}")
    return np.asarray(curve.x[later], dtype=float), curve.samples[:, later]


def _fit_law(law: str, terms: Sequence[F64], samples: F64, weight: F64) -> Fit:
    scales = [1.0, *(float(np.abs(term).max()) for term in terms)]
    design = np.stack([np.ones_like(terms[0]), *terms], axis=1) / scales
    coefficients, *_ = np.linalg.lstsq(design * weight[:, None], samples.T * weight[:, None])
    mean, error = mean_and_error(coefficients.T.astype(float) / scales)
    basis, _ = np.linalg.qr(design, mode="complete")
    contrasts: F64 = samples @ basis[:, design.shape[1] :]
    return Fit(law, tuple(mean.tolist()), float(error[-1]), chance_of_zero(contrasts, float(np.abs(samples).max())))


def chance_of_zero(samples: F64, scale: float) -> float:
    """Hotelling's test that all means of ``samples``, replications × contrasts, are zero: its p-value.

    NaN if there are too few replications. Differences below 1e-9 of ``scale`` are rounding.
    """
    with needed_for("a verdict"):
        from scipy.special import fdtrc

    count, size = samples.shape
    if count <= size + 1:
        return math.nan
    rounding = (1e-9 * scale or 1.0) ** 2
    spread = np.atleast_2d(np.cov(samples.T)) / count + rounding * np.eye(size)
    mean = samples.mean(axis=0)
    squared = float(mean @ np.linalg.solve(spread, mean))
    return float(fdtrc(size, count - size, squared * (count - size) / (size * (count - 1))))
