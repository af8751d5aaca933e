"""What replications can tell: three-valued verdicts on means, differences, ratios and powers. Thresholds stand here.

A test is one-sided at `LEVEL`, which several comparisons behind one verdict share. Replication r of every policy meets
the same luck, so two policies are compared replication by replication.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rightarm.extras import needed_for
from rightarm.simulation.statistics import Curve, mean_and_error
from rightarm.types import F64

LEVEL = 0.001  # the chance of a wrong verdict at the very edge of a claim
AGREES = 4.5  # standard errors up to which a measured value is taken to equal an exact one, however many are compared
RESAMPLES, INTERVAL = (
    2_000,
    0.99,
)  # of the bootstrap: how often replications are drawn anew, and what its intervals cover


class Verdict(enum.StrEnum):
    """What a claim comes to."""

    HOLDS = "holds"
    FAILS = "fails"
    OPEN = "cannot tell"


def decided(holds: bool, fails: bool) -> Verdict:
    """The verdict of two tests, of which at most one can be passed.

    >>> str(decided(False, False))
    'cannot tell'
    """
    return Verdict.HOLDS if holds else Verdict.FAILS if fails else Verdict.OPEN


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Of several statements together: one that fails is enough, and else one that is open.

    >>> str(all_of([Verdict.HOLDS, Verdict.OPEN]))
    'cannot tell'
    """
    found = set(verdicts)
    return decided(found == {Verdict.HOLDS}, Verdict.FAILS in found)


def any_of(verdicts: Iterable[Verdict]) -> Verdict:
    """That one of several statements holds: one is enough, and all must fail for the contrary.

    >>> str(any_of([Verdict.FAILS, Verdict.OPEN]))
    'cannot tell'
    """
    found = set(verdicts)
    return decided(Verdict.HOLDS in found, found == {Verdict.FAILS})


def threshold(replications: int, comparisons: int = 1) -> float:
    """The standard errors from which on a mean differs with certainty: a quantile of Student's t.

    >>> round(threshold(1_000_000), 2), round(threshold(16), 2), round(threshold(16, comparisons=10), 2)
    (3.09, 3.73, 4.88)
    """
    with needed_for("a verdict"):
        from scipy.special import stdtrit

    return float(-stdtrit(replications - 1, LEVEL / comparisons)) if replications > 1 else math.inf


def is_below(samples: F64, bound: F64 | float) -> Verdict:
    """Whether means over replications (× points) are below a bound, everywhere.

    It holds if they are with certainty, fails if one is above with certainty.
    """
    mean, error = mean_and_error(samples)
    margin = threshold(len(samples), np.size(mean)) * error
    with np.errstate(invalid="ignore"):
        return decided(bool(np.all(mean + margin <= bound)), bool(np.any(mean - margin > bound)))


def is_less(x: F64, y: F64, comparisons: int = 1) -> Verdict:
    """Whether ``x`` is less than ``y`` on average, replication by replication."""
    mean, error = mean_and_error(y - x)
    margin = threshold(len(x), comparisons) * error
    return decided(bool(mean > margin), bool(-mean > margin))


def equals(samples: F64, exact: F64 | float) -> tuple[Verdict, float]:
    """Whether means equal exact values, and how far they are apart in standard errors; no error tells nothing."""
    mean, error = mean_and_error(samples)
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(mean == exact, 0.0, np.abs(mean - exact) / error)
    z = float(np.max(apart))
    return decided(z < AGREES, z >= AGREES), z


def halves(samples: F64) -> tuple[F64, F64]:
    """Every other replication, and the rest: what is chosen by the first is judged by the second.

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
        """Whether it is above ``least``."""
        return decided(self.low > least, self.high < least)

    def below(self, most: float) -> Verdict:
        """Whether it is below ``most``."""
        return decided(self.high < most, self.low > most)


def power(curve: Curve, decades: float = 1.0) -> Power:
    """The slope of log mean against log x over the last decades; the interval is a bootstrap over replications.

    Points of one run share its luck, so whole replications are drawn anew, not points.
    """
    later = curve.x >= curve.x[-1] / 10**decades * (1 - 1e-9)
    if later.sum() < 2:
        raise ValueError(f"{curve.label}: a power needs 2 points in the last {decades:g} decades, got {later.sum()}")
    x, samples = np.log(np.asarray(curve.x[later], dtype=float)), curve.samples[:, later]
    random = np.random.default_rng(20170529)
    drawn = random.multinomial(len(samples), np.full(len(samples), 1 / len(samples)), RESAMPLES) / len(samples)
    slopes = [_slope(x, mean) for mean in (samples.mean(axis=0)[None], drawn @ samples)]
    low, high = np.quantile(slopes[1], [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2])
    return Power(float(slopes[0][0]), float(low), float(high))


def _slope(x: F64, means: F64) -> F64:
    centred = x - x.mean()
    slopes: F64 = np.log(np.maximum(means, 1e-300)) @ centred / (centred**2).sum()
    return slopes
