"""What a policy is: a formula for a score, and the noise that it asks for. The arm with the largest score is pulled."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm.compile import pointer
from rightarm.formula import Family, Formula, check_count, define, program
from rightarm.noise import Law
from rightarm.policies.tracing import Line, Time, keeps_form

FAR = 2.0**40  # z at which a scale is read off: far enough that the location's rounding does not reach it
PROBE_ROUND = 100.0  # of the made-up state at which a formula's operations are followed
EARLY, LATE = 1.0, 2.0**40  # rounds between which a clock runs from 0 to 1
PER_ROUND = frozenset({"t", "arms"})  # what is the same for all arms and replications of a round


class Policy(Formula):
    """A policy with its parameters set; made by calling a family such as `BoltzmannGumbel`."""

    INPUTS: ClassVar[dict[str, str]] = {
        "t": "the round, counted from 1",
        "pulls": "how often the arm was pulled",
        "mean": "the mean of the arm's rewards",
        "z": "fresh noise, one draw for every arm and round",
        "best": "the largest mean of all arms",
        "worst": "the smallest mean of all arms",
        "arms": "the number of arms",
    }

    family: PolicyFamily

    @property
    def noise(self) -> Law | None:
        """The law of z, or None for a policy that draws nothing."""
        return self.family.noise

    def scores(self, round: int, pulls: ArrayLike, means: ArrayLike, z: ArrayLike = 0.0) -> NDArray[np.float64]:
        """The score of every arm, by NumPy; every arm must have been pulled.

        >>> from rightarm import UCB
        >>> UCB(C=1.0).scores(round=3, pulls=[1, 1], means=[0.0, 1.0]).round(3)
        array([1.048, 2.048])
        """
        pulls, means = check_statistics(pulls, means)
        check_count("round", round)
        if not pulls.all():
            raise ValueError(f"pulls must be at least 1 for every arm, got {pulls.tolist()}")
        return self._scores(float(round), pulls, means, z, means.size)

    def _scores(self, t: float, pulls: ArrayLike, means: ArrayLike, z: ArrayLike, arms: int) -> NDArray[np.float64]:
        pulls, means = np.asarray(pulls, dtype=float), np.asarray(means, dtype=float)
        inputs = _inputs(t, pulls, means, np.asarray(z, dtype=float), arms, means.max(), means.min())
        return np.broadcast_to(np.asarray(self.evaluate(inputs), dtype=float), means.shape)

    def choose(self, round: int, pulls: ArrayLike, means: ArrayLike, random: np.random.Generator) -> int:
        """The arm for one live decision: the first that was never pulled, else the largest score, ties broken fairly.

        >>> from rightarm import UCB
        >>> UCB(C=1.0).choose(3, pulls=[1, 1], means=[0.0, 1.0], random=np.random.default_rng(1))
        1
        """
        pulls, means = check_statistics(pulls, means)
        if not isinstance(random, np.random.Generator):
            raise TypeError(f"random must be a numpy.random.Generator, got {random!r}")
        t = float(check_count("round", round))
        if not pulls.all():
            return int(np.argmin(pulls > 0))
        z = np.zeros(means.size) if self.noise is None else self.noise.sample(random, means.size)
        scores = self._scores(t, pulls, means, z, means.size)
        if np.isnan(scores).any():
            raise ValueError(f"{self!r}: a score is not a number: {scores.tolist()}")
        return int(random.choice(np.flatnonzero(scores == scores.max())))

    @functools.cached_property
    def affine(self) -> bool:
        """Whether the score is location + scale·z."""
        return keeps_form(lambda: self._scores_of(PROBE_ROUND, Line()))

    @functools.cached_property
    def steady(self) -> bool:
        """Whether, besides, location and scale of an arm change only when the arm is pulled.

        The formula says so itself: it asks for neither the round nor the other arms.
        """
        return self.noise is not None and self.inputs <= {"pulls", "mean", "z", "arms"} and self.affine

    @functools.cached_property
    def clocked(self) -> bool:
        """Whether the score, without noise, is location + scale·clock(t) with one clock for all arms, as UCB's is."""
        if self.noise is not None or not {"t"} < self.inputs <= {"t", "pulls", "mean", "arms"}:
            return False
        if not keeps_form(lambda: self._scores_of(Time(), 0.0)):
            return False
        with np.errstate(all="ignore"):
            span = self.location_and_scale(np.ones(1), np.zeros(1), arms=2)[1]
        return bool(np.isfinite(span).all() and span.all())  # or the reference arm does not show the clock

    @property
    def by_arm(self) -> bool:
        """Whether a round costs one product for each arm, its location and scale being kept between pulls."""
        return self.steady or self.clocked

    def _scores_of(self, t: Any, z: Any) -> Any:
        """The formula at a made-up state, for stand-ins."""
        means = np.array([0.25, 0.5])
        return self.evaluate(_inputs(t, np.array([3.0, 5.0]), means, z, arms=2, best=0.5, worst=0.25))

    def location_and_scale(
        self, pulls: NDArray[np.float64], means: NDArray[np.float64], arms: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Location and scale of a steady or clocked policy's scores, by NumPy."""
        z, unit = (FAR, FAR) if self.steady else (0.0, 1.0)
        location = self._scores(EARLY, pulls, means, 0.0, arms)
        return location, (self._scores(LATE, pulls, means, z, arms) - location) / unit


def _inputs(t: Any, pulls: Any, mean: Any, z: Any, arms: int, best: Any, worst: Any) -> dict[str, Any]:
    return {"t": t, "pulls": pulls, "mean": mean, "z": z, "best": best, "worst": worst, "arms": float(arms)}


def check_statistics(pulls: ArrayLike, means: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pulls and means as arrays, or an error that says what is wrong with them."""
    pulls, means = np.asarray(pulls, dtype=float), np.asarray(means, dtype=float)
    if pulls.ndim != 1 or pulls.shape != means.shape or not pulls.size:
        raise ValueError(f"pulls and means must be two rows of one length, got shapes {pulls.shape} and {means.shape}")
    if not np.isfinite(pulls).all() or (pulls < 0).any() or (pulls != np.floor(pulls)).any():
        raise ValueError(f"pulls must be whole numbers from 0 on, got {pulls.tolist()}")
    if not np.isfinite(means[pulls > 0]).all():
        raise ValueError(f"means must be finite where an arm was pulled, got {means.tolist()}")
    return pulls, means


class PolicyFamily(Family):
    """A policy's formula together with the law of its noise."""

    def __init__(self, function: Callable[..., Any], noise: Law | None) -> None:
        super().__init__(function, Policy)
        if noise is not None and not isinstance(noise, Law):
            raise TypeError(f"noise must be a law such as Gumbel() or Gaussian(), got {noise!r}")
        if ("z" in self.inputs) != (noise is not None):
            raise TypeError(f"{self.name}: the formula asks for z if and only if noise is given, got noise={noise!r}")
        self.noise = noise

    @property
    def identity(self) -> tuple[Any, ...]:
        return (self.function, self.noise)


@overload
def policy(function: Callable[..., Any]) -> PolicyFamily: ...
@overload
def policy(*, noise: Law | None = None) -> Callable[[Callable[..., Any]], PolicyFamily]: ...
def policy(function: Callable[..., Any] | None = None, *, noise: Law | None = None) -> Any:
    """Make a policy from one formula; live and compiled, with nothing else to write.

    The formula may ask for ``t`` (the round, counted from 1), ``pulls`` and ``mean`` of the arm, ``z`` (fresh noise,
    one draw for every arm and round), ``best`` and ``worst`` (the largest and smallest mean of all arms) and ``arms``
    (their number). Its parameters stand behind a ``*``; annotations such as `Positive` or ``int`` check them.

    >>> import numpy as np, rightarm as ra
    >>> @ra.policy(noise=ra.noise.Gumbel())
    ... def cautious(t, pulls, mean, z, *, C: float = 1.0):
    ...     return mean + C / np.sqrt(pulls + np.log(t)) * z
    >>> cautious(C=0.5)
    cautious(C=0.5)
    """
    if function is None:
        return functools.partial(policy, noise=noise)
    return PolicyFamily(function, noise)


# The compiled forms. `common` and `score` are made from the formula; the loops are the same for all.

SCORE = (
    "void(float64, float64, float64[:,::1], float64[:,::1], float32[:,::1], float64[::1], float64[::1], float64[::1],"
    " float64[:,::1])"
)
AFFINE = "void(float64, float64, float64, float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])"


def score_block(
    t: float, arms: float, pulls: Any, mean: Any, z: Any, best: Any, worst: Any, numbers: Any, out: Any
) -> None:
    """Scores of a block of arms × lanes; a row of it is one arm in all replications."""
    p = common(t, arms, numbers)
    for k in range(out.shape[0]):
        for lane in range(out.shape[1]):
            out[k, lane] = score(
                t, pulls[k, lane], mean[k, lane], np.float64(z[k, lane]), best[lane], worst[lane], arms, p
            )


def affine_lanes(
    early: float, late: float, arms: float, pulls: Any, mean: Any, numbers: Any, location: Any, scale: Any
) -> None:
    """Location and scale of one arm's score in all replications; either z or the round makes the difference."""
    p, q, z = common(early, arms, numbers), common(late, arms, numbers), FAR
    for lane in range(location.size):
        at_early = score(early, pulls[lane], mean[lane], 0.0, 0.0, 0.0, arms, p)
        at_late = score(late, pulls[lane], mean[lane], z, 0.0, 0.0, arms, q)
        location[lane] = at_early
        scale[lane] = (at_late - at_early) * unit()


def common(t: float, arms: float, numbers: Any) -> tuple[float, ...]:
    """Stands in the templates for the parameters' values in round t."""
    raise NotImplementedError


def score(
    t: float, pulls: float, mean: float, z: float, best: float, worst: float, arms: float, p: tuple[float, ...]
) -> float:
    """Stands in the templates for the policy's formula."""
    raise NotImplementedError


def unit() -> float:
    """Stands in `affine_lanes` for one over the distance between its two readings."""
    raise NotImplementedError


def _check_arm_by_arm(policy: Policy) -> None:
    """An arm's score must be its own: compiled code sees one arm at a time, where a sum over arms is a sum over one."""
    random = np.random.default_rng(20170529)
    pulls, means, z = 1.0 + random.integers(0, 20, 4), random.random(4), random.random(4)

    def scores(of: slice) -> NDArray[np.float64]:
        inputs = _inputs(PROBE_ROUND, pulls[of], means[of], z[of], pulls.size, means.max(), means.min())
        return np.broadcast_to(np.asarray(policy.evaluate(inputs), dtype=float), means[of].shape)

    with np.errstate(all="ignore"):
        together, again = scores(slice(None)), scores(slice(None))
        alone = np.concatenate([scores(slice(i, i + 1)) for i in range(pulls.size)])
    if not np.array_equal(together, again, equal_nan=True):
        raise TypeError(f"{policy.family.name} gives another score each time; ask for noise by name instead")
    if not np.allclose(together, alone, rtol=1e-9, equal_nan=True):
        raise TypeError(
            f"{policy.family.name} mixes the arms in a sum, mean or maximum, which cannot be compiled: "
            f"ask for t (the pulls of all arms and one), best, worst or arms instead"
        )


def compiled_policy(policy: Policy) -> tuple[Any, Any, NDArray[np.float64]]:
    """The policy's compiled scores, its compiled locations and scales, and the numbers that both take.

    They are the same functions for all values of the parameters. A policy needs one of the two; the other is a blank.
    """
    _check_arm_by_arm(policy)
    parts = program(policy, PER_ROUND)
    values = "".join(f"{value}, " for value in parts.common)
    made = {
        "common": define("common", "t, arms, numbers", f"({values})", parts.functions),
        "score": define("score", "t, pulls, mean, z, best, worst, arms, p", parts.expression, parts.functions),
    }
    blank = {
        "common": define("common", "t, arms, numbers", "()", {}),
        "score": define("score", "t, pulls, mean, z, best, worst, arms, p", "0.0", {}),
    }
    per_unit = define("unit", "", f"{1 / FAR}" if policy.steady else "1.0", {})
    subject = f"the policy {policy.family.name}"
    scores = pointer(subject, score_block, SCORE, **(blank if policy.by_arm else made))
    affine = pointer(subject, affine_lanes, AFFINE, unit=per_unit, **(made if policy.by_arm else blank))
    return scores, affine, np.array(parts.numbers, dtype=float)
