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

FAR = 2.0**40  # z at which a scale is read off: far enough that the location's rounding does not reach it
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
        inputs = {
            "t": t,
            "pulls": pulls,
            "mean": means,
            "z": np.asarray(z, dtype=float),
            "best": means.max(),
            "worst": means.min(),
            "arms": float(arms),
        }
        return np.broadcast_to(np.asarray(self.evaluate(inputs), dtype=float), means.shape)

    def choose(self, round: int, pulls: ArrayLike, means: ArrayLike, random: np.random.Generator) -> int:
        """The arm for one live decision: the first that was never pulled, else the largest score, ties broken fairly.

        >>> from rightarm import UCB
        >>> UCB(C=1.0).choose(3, pulls=[1, 1], means=[0.0, 1.0], random=np.random.default_rng(1))
        1
        """
        pulls, means = check_statistics(pulls, means)
        check_count("round", round)
        if not pulls.all():
            return int(np.argmin(pulls > 0))
        z = np.zeros(means.size) if self.noise is None else self.noise.sample(random, means.size)
        scores = self.scores(round, pulls, means, z)
        return int(random.choice(np.flatnonzero(scores == scores.max())))

    @functools.cached_property
    def affine(self) -> bool:
        """Whether the score is location + scale·z."""
        return self._probe(lambda t, pulls, means: _straight(lambda z: self._scores(t, pulls, means, z, means.size)))

    @functools.cached_property
    def steady(self) -> bool:
        """Whether location and scale change for the pulled arm only, so that a round costs one product for each arm.

        The formula says so itself: it asks for neither the round nor the other arms.
        """
        return self.noise is not None and self.inputs <= {"pulls", "mean", "z", "arms"} and self.affine

    @functools.cached_property
    def clocked(self) -> bool:
        """Whether the score, without noise, is location + scale·clock(t) with one clock for all arms, as UCB's is."""
        if self.noise is not None or not self.inputs <= {"t", "pulls", "mean", "arms"}:
            return False

        def straight(t: float, pulls: NDArray[np.float64], means: NDArray[np.float64]) -> bool:
            def at(round: float) -> NDArray[np.float64]:
                return self._scores(round, np.append(pulls, 1.0), np.append(means, 0.0), 0.0, pulls.size)

            early, late, now = at(EARLY), at(LATE), at(t)
            clock = (now[-1] - early[-1]) / (late[-1] - early[-1])
            return _close(now, early + (late - early) * clock, early, late)

        return self._probe(straight)

    def location_and_scale(
        self, pulls: NDArray[np.float64], means: NDArray[np.float64], arms: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Location and scale of a steady or clocked policy's scores, by NumPy."""
        z, unit = (FAR, FAR) if self.steady else (0.0, 1.0)
        location = self._scores(EARLY, pulls, means, 0.0, arms)
        return location, (self._scores(LATE, pulls, means, z, arms) - location) / unit

    def _probe(self, holds: Callable[[float, NDArray[np.float64], NDArray[np.float64]], bool]) -> bool:
        """Whether something holds at a handful of states that were drawn once."""
        random = np.random.default_rng(20170529)
        for t in (20, 300, 50_000, 7_000_000):
            pulls, means = 1 + random.integers(0, t // 10, 10).astype(float), random.random(10)
            with np.errstate(all="ignore"):  # a formula that is not finite here does not have the form
                if not holds(t, pulls, means):
                    return False
        return True


def _straight(f: Callable[[float], NDArray[np.float64]]) -> bool:
    """Whether f(z) is a straight line for every arm."""
    zero, one = f(0.0), f(1.0)
    return all(_close(f(z), zero + z * (one - zero), zero, one) for z in (-3.0, 7.0))


def _close(x: NDArray[np.float64], y: NDArray[np.float64], *sizes: NDArray[np.float64]) -> bool:
    size = sum((np.abs(s) for s in sizes), start=np.zeros_like(x))
    return bool(np.all(np.abs(x - y) <= 1e-8 * size + 1e-300))


def check_statistics(pulls: ArrayLike, means: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pulls and means as arrays, or an error that says what is wrong with them."""
    pulls, means = np.asarray(pulls, dtype=float), np.asarray(means, dtype=float)
    if pulls.ndim != 1 or pulls.shape != means.shape or not pulls.size:
        raise ValueError(f"pulls and means must be two rows of one length, got shapes {pulls.shape} and {means.shape}")
    if (pulls < 0).any() or (pulls != np.floor(pulls)).any():
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


@overload
def policy(function: Callable[..., Any]) -> PolicyFamily: ...
@overload
def policy(*, noise: Law | None = None) -> Callable[[Callable[..., Any]], PolicyFamily]: ...
def policy(function: Callable[..., Any] | None = None, *, noise: Law | None = None) -> Any:
    """Make a policy from one formula; live and compiled, with nothing else to write.

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


def compiled_policy(policy: Policy) -> tuple[Any, Any, NDArray[np.float64]]:
    """The policy's compiled scores, its compiled locations and scales, and the numbers that both take.

    They are the same functions for all values of the parameters. A policy needs one of the two; the other is a blank.
    """
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
    by_arm = policy.steady or policy.clocked
    subject = f"the policy {policy.family.name}"
    scores = pointer(subject, score_block, SCORE, **(blank if by_arm else made))
    affine = pointer(subject, affine_lanes, AFFINE, unit=per_unit, **(made if by_arm else blank))
    return scores, affine, np.array(parts.numbers, dtype=float)
