"""Evidence: the tests that decide a claim, and the fits of how a regret grows."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rightarm.errors import needed_for
from rightarm.simulation.panels import Curve, mean_and_error
from rightarm.types import F64

# A test is one-sided at `LEVEL`, which several comparisons behind one verdict share. Replication r of every policy
# meets the same luck, so two policies are compared replication by replication.

LEVEL = 0.001  # the chance of a wrong verdict at the very edge of a claim
AGREES = 4.5  # standard errors up to which a measured value is taken to equal an exact one, however many are compared
RESAMPLES = 2_000  # of the bootstrap: how often replications are drawn anew
INTERVAL = 0.99  # what intervals of the bootstrap cover


class Verdict(enum.StrEnum):
    """The answer to a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "cannot tell"


def decided(holds: bool, fails: bool) -> Verdict:
    """Return the verdict of two tests, of which at most one can be passed.

    >>> str(decided(False, False))
    'cannot tell'
    """
    return Verdict.HOLDS if holds else Verdict.FAILS if fails else Verdict.OPEN


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on several statements together: one that fails is enough, and else one that is open.

    >>> str(all_of([Verdict.HOLDS, Verdict.OPEN]))
    'cannot tell'
    """
    found = set(verdicts)
    return decided(found == {Verdict.HOLDS}, Verdict.FAILS in found)


def any_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that one of several statements holds: all must fail for the contrary.

    >>> str(any_of([Verdict.FAILS, Verdict.OPEN]))
    'cannot tell'
    """
    found = set(verdicts)
    return decided(Verdict.HOLDS in found, found == {Verdict.FAILS})


def threshold(replications: int, comparisons: int = 1) -> float:
    """Return the standard errors from which on a mean differs with certainty: a quantile of Student's t.

    >>> round(threshold(1_000_000), 2), round(threshold(16), 2), round(threshold(16, comparisons=10), 2)
    (3.09, 3.73, 4.88)
    """
    with needed_for("a verdict"):
        from scipy.special import stdtrit

    return float(-stdtrit(replications - 1, LEVEL / comparisons)) if replications > 1 else math.inf


def is_below(samples: F64, bound: F64 | float) -> Verdict:
    """Decide whether means over replications (× points) are below a bound, everywhere.

    It holds if they are with certainty, fails if one is above with certainty.
    """
    mean, error = mean_and_error(samples)
    margin = threshold(len(samples), np.size(mean)) * error
    with np.errstate(invalid="ignore"):
        return decided(bool(np.all(mean + margin <= bound)), bool(np.any(mean - margin > bound)))


def is_less(x: F64, y: F64, comparisons: int = 1) -> Verdict:
    """Decide whether ``x`` is less than ``y`` on average, replication by replication."""
    mean, error = mean_and_error(y - x)
    margin = threshold(len(x), comparisons) * error
    return decided(bool(mean > margin), bool(-mean > margin))


def equals(samples: F64, exact: F64 | float) -> tuple[Verdict, float]:
    """Decide whether means equal exact values, and return how far they are apart in standard errors as well."""
    mean, error = mean_and_error(samples)
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(mean == exact, 0.0, np.abs(mean - exact) / error)
    z = float(np.max(apart))
    return decided(z < AGREES, z >= AGREES), z


def halves(samples: F64) -> tuple[F64, F64]:
    """Return every other replication, and the rest: what is chosen by the first is judged by the second.

    >>> halves(np.arange(5.0))
    (array([0., 2., 4.]), array([1., 3.]))
    """
    return samples[::2], samples[1::2]


class Power(NamedTuple):
    """The power of x by which a curve grows, and an interval for it."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({INTERVAL:.0%}: {self.low:.3f} to {self.high:.3f})"

    def above(self, least: float) -> Verdict:
        """Decide whether it is above ``least``."""
        return decided(self.low > least, self.high < least)

    def below(self, most: float) -> Verdict:
        """Decide whether it is below ``most``."""
        return decided(self.high < most, self.low > most)


def power(curve: Curve, decades: float = 1.0) -> Power:
    """Fit the slope of log mean against log x over the last decades; the interval is a bootstrap over replications.

    Points of one run share its luck, so whole replications are drawn anew, not points.
    """
    later = curve.x >= curve.x[-1] / 10**decades * (1 - 1e-9)
    if later.sum() < 2:
        raise ValueError(f"{curve.label}: a power needs 2 points in the last {decades:g} decades, got {later.sum()}")
    x = np.log(np.asarray(curve.x[later], dtype=float))
    samples = curve.samples[:, later]
    random = np.random.default_rng(20170529)
    drawn = random.multinomial(len(samples), np.full(len(samples), 1 / len(samples)), RESAMPLES) / len(samples)
    measured = _slope(x, samples.mean(axis=0)[None])
    low, high = np.quantile(_slope(x, drawn @ samples), [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
    return Power(float(measured[0]), float(low), float(high))


def _slope(x: F64, means: F64) -> F64:
    centred = x - x.mean()
    slopes: F64 = np.log(np.maximum(means, 1e-300)) @ centred / (centred**2).sum()
    return slopes


# A law is a sum of terms with any coefficients. What it leaves over, contrasts of the points that vanish if the law is
# right, is computed for every replication; Hotelling's test asks whether these contrasts are zero on average. It needs
# no independence of the points of one run, only of the replications.

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
    def is_rejected(self) -> bool:
        """Return whether the law is not right."""
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
    """Fit all laws to the later part of ``curve``, from the slowest to the fastest."""
    x, samples = _later(curve)
    error = mean_and_error(samples)[1] if len(samples) > 1 else np.ones(x.size)
    least = 1e-9 * np.abs(samples.mean(axis=0)).max() or 1.0  # exact points would weigh infinitely
    weight = 1 / np.maximum(error, least)
    return [_fit_law(law, [TERMS[term](x) for term in terms], samples, weight) for law, terms in LAWS.items()]


def grows_at_most(law: str, fits: Sequence[Fit]) -> Verdict:
    """Decide whether growth is that of ``law`` or slower: it holds if such a law fits and all faster ones are rejected.

    A law whose terms include those of another one that fits, as log² T includes log T, adds nothing and does not count.
    """
    fitting = [found.law for found in fits if not found.is_rejected]
    needed = [own for own in fitting if not any(set(LAWS[other]) < set(LAWS[own]) for other in fitting)]
    order = list(LAWS)
    slow = {order.index(own) <= order.index(law) for own in needed}
    return decided(slow == {True}, slow == {False})


def describe_fits(fits: Sequence[Fit]) -> str:
    """Say in words which laws fit.

    >>> describe_fits([Fit("log T", (1.0, 2.0), 0.1, 0.5), Fit("T", (1.0, 2.0), 0.1, 1e-9)])
    'fits log T (p = 0.5); rejected T'
    """
    fitting = [f"{found.law} ({_chance(found.p)})" for found in fits if not found.is_rejected]
    rejected = [found.law for found in fits if found.is_rejected]
    return f"fits {', '.join(fitting) or 'none of the laws'}; rejected {', '.join(rejected) or 'none'}"


def _chance(p: float) -> str:
    return "too few replications to reject it" if math.isnan(p) else f"p = {p:.2g}"


def _later(curve: Curve) -> tuple[F64, F64]:
    """Return points and samples of the part that is fitted."""
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
    """Return the p-value of Hotelling's test that all means of ``samples``, replications × contrasts, are zero.

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
