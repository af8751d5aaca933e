"""What a policy is: a formula for a score, and the noise that it asks for. The arm with the largest score is pulled.

Some policies need two things more, each of them a formula as well: probabilities with which arms are explored whatever
their scores are (``explore``), and columns that an arm remembers besides its pulls and its mean (``learn``).
"""

from __future__ import annotations

import functools
import keyword
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike

from rightarm.formula import Family, Formula, check_count, check_number
from rightarm.formula.tracing import Line, Measured, Shifted, Time, keeps_form
from rightarm.noise import Gumbel, Law
from rightarm.propensity import Beta, check_arm, log_of_one, of_largest
from rightarm.scores.inputs import F64, Memory, check_memory, check_statistics, named_inputs, one_each

FAR = 2.0**40  # z at which a scale is read off: far enough that the location's rounding does not reach it
PROBE_ROUND = 100.0  # of the made-up state at which a formula's operations are followed
EARLY, LATE = 1.0, 2.0**40  # rounds between which a clock runs from 0 to 1
STATISTICS = frozenset({"pulls", "mean", "best", "worst"})  # what is not known of an arm before its first pull


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
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"noise", "estimator"})

    family: PolicyFamily

    @property
    def noise(self) -> Law | None:
        """The law of z, or None for a policy that draws nothing."""
        law: Law | None = self.values.get("noise", self.family.noise)
        return law

    @property
    def estimator(self) -> str:
        """How an arm's mean is estimated: "mean", or "catoni" with the policy's C as its scale."""
        return str(self.values.get("estimator", "mean"))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of what an arm remembers besides its pulls and its mean; all start at zero."""
        return self.family.columns

    @functools.cached_property
    def keep(self) -> dict[str, Part]:
        """What is computed of an arm's pulls and mean when it is pulled, and kept until its next pull."""
        return {name: self._part(family) for name, family in self.family.keep.items()}

    @functools.cached_property
    def explore(self) -> Part | None:
        """The probability with which an arm is explored, whatever its score is."""
        return None if self.family.explore is None else self._part(self.family.explore)

    @functools.cached_property
    def learn(self) -> dict[str, Part]:
        """The next value of each column of a pulled arm."""
        return {name: self._part(family) for name, family in self.family.learn.items()}

    def _part(self, family: Family) -> Part:
        return Part(family, {parameter.name: self.values[parameter.name] for parameter in family.parameters})

    @functools.cached_property
    def decision_inputs(self) -> frozenset[str]:
        """All that a decision depends on."""
        return self.inputs | (frozenset() if self.explore is None else self.explore.inputs)

    @property
    def needs_pulls(self) -> bool:
        """Whether every arm must be pulled once before the formula can be used."""
        return bool(self.decision_inputs & STATISTICS)

    @functools.cached_property
    def weighted(self) -> bool:
        """Whether it learns from the probability of the decision."""
        return any("probability" in part.inputs for part in self.learn.values())

    # One live decision.

    def scores(
        self, round: int, pulls: ArrayLike, means: ArrayLike, z: ArrayLike = 0.0, memory: Memory | None = None
    ) -> F64:
        """The score of every arm, by NumPy; every arm must have been pulled, if the formula asks for pulls or means.

        >>> from rightarm import UCB
        >>> UCB(C=1.0).scores(round=3, pulls=[1, 1], means=[0.0, 1.0]).round(3)
        array([1.048, 2.048])
        """
        pulls, means = check_statistics(pulls, means)
        check_count("round", round)
        if self.needs_pulls and not pulls.all():
            raise ValueError(f"pulls must be at least 1 for every arm, got {pulls.tolist()}")
        noise, columns = np.asarray(z, dtype=float), self._check_memory(memory, pulls)
        return self._evaluated(self, float(round), pulls, means, noise, columns)

    def floors(self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory | None = None) -> F64:
        """The probability with which each arm is explored, whatever its score is: its `explore` formula, or zero."""
        pulls, means = check_statistics(pulls, means)
        columns = self._check_memory(memory, pulls)
        if self.explore is None:
            return np.zeros(means.size)
        floors = self._evaluated(self.explore, float(check_count("round", round)), pulls, means, 0.0, columns)
        if not (floors >= 0).all() or floors.sum() > 1 + 1e-9:
            raise ValueError(f"{self!r}: what it explores are not probabilities: {floors.tolist()}")
        return floors

    def choose(
        self,
        round: int,
        pulls: ArrayLike,
        means: ArrayLike,
        random: np.random.Generator,
        memory: Memory | None = None,
    ) -> int:
        """The arm for one live decision: the first that was never pulled, else the largest score, ties broken fairly.

        >>> from rightarm import UCB
        >>> UCB(C=1.0).choose(3, pulls=[1, 1], means=[0.0, 1.0], random=np.random.default_rng(1))
        1
        """
        pulls, means = check_statistics(pulls, means)
        if not isinstance(random, np.random.Generator):
            raise TypeError(f"random must be a numpy.random.Generator, got {random!r}")
        check_count("round", round)
        if self.needs_pulls and not pulls.all():
            return int(np.argmin(pulls > 0))
        if self.explore is not None:
            heights = np.cumsum(self.floors(round, pulls, means, memory))
            explored = int(np.searchsorted(heights, random.random(), side="right"))
            if explored < means.size:
                return explored
        z = np.zeros(means.size) if self.noise is None else self.noise.sample(random, means.size)
        scores = self.scores(round, pulls, means, z, memory)
        if np.isnan(scores).any():
            raise ValueError(f"{self!r}: a score is not a number: {scores.tolist()}")
        return int(random.choice(np.flatnonzero(scores == scores.max())))

    def probabilities(self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory | None = None) -> F64:
        """The exact probability of every arm, from the law of the scores: `propensity.of_largest`, beneath exploration.

        An arm never pulled goes first, with probability 1.

        >>> from rightarm import Boltzmann, BoltzmannGumbel
        >>> Boltzmann(1.0).probabilities(round=9, pulls=[4, 4], means=[0.0, np.log(3)])
        array([0.25, 0.75])
        >>> BoltzmannGumbel(C=0.5).probabilities(round=102, pulls=[1, 100], means=[0.6, 0.5]).round(6)
        array([0.85404, 0.14596])
        """
        pulls, means = check_statistics(pulls, means)
        check_count("round", round)
        if self.needs_pulls and not pulls.all():
            return np.asarray(np.arange(pulls.size) == np.argmin(pulls > 0), dtype=float)
        chances = of_largest(*self.score_law(round, pulls, means, memory))
        if self.explore is None:
            return chances
        floors = self.floors(round, pulls, means, memory)
        return np.asarray(floors + (1 - floors.sum()) * chances)

    def log_probability(
        self, arm: int, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory | None = None
    ) -> float:
        """The logarithm of the exact probability of one arm, with all digits however small the probability is.

        >>> from rightarm import GaussianThompson
        >>> policy = GaussianThompson(sigma=0.5)
        >>> round(policy.log_probability(0, round=2_000, pulls=[999, 999], means=[0.25, 0.75]), 6)
        -254.028233
        """
        pulls, means = check_statistics(pulls, means)
        check_count("round", round)
        check_arm(arm, means.size)
        if self.needs_pulls and not pulls.all():
            return 0.0 if arm == np.argmin(pulls > 0) else -math.inf
        decided = log_of_one(*self.score_law(round, pulls, means, memory), arm)
        if self.explore is None:
            return decided
        floors = self.floors(round, pulls, means, memory)
        with np.errstate(divide="ignore"):
            return float(np.logaddexp(np.log(floors[arm]), np.log(max(1 - floors.sum(), 0.0)) + decided))

    def score_law(
        self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory | None = None
    ) -> tuple[Law | Beta | None, F64, F64]:
        """The law of the scores and its two numbers for every arm: location and scale, or what the policy states.

        >>> from rightarm import BoltzmannGumbel
        >>> BoltzmannGumbel(C=0.5, location=0.0).score_law(round=9, pulls=[4, 1], means=[0.25, 0.5])
        (Gumbel(), array([0.25, 0.5 ]), array([0.25, 0.5 ]))
        """
        pulls, means = check_statistics(pulls, means)
        columns, t = check_memory(self.columns, memory, means.size), float(check_count("round", round))
        law, formula = self.stated_law
        score = self._values(formula, t, pulls, means, Measured() if formula is self else 0.0, columns)
        if isinstance(score, Measured):
            score = score.location, score.scale
        first, second = score if isinstance(score, tuple) else (score, 0.0)
        return law, np.broadcast_to(first, means.shape), np.broadcast_to(second, means.shape)

    @functools.cached_property
    def stated_law(self) -> tuple[Law | Beta | None, Policy | Part]:
        """The law of the scores, and the formula that has its two numbers: the score itself, if it is affine."""
        if self.family.law is not None:
            return self.family.law[0], self._part(self.family.law[1])
        if not self.affine:
            raise ValueError(f"{self!r}: its probabilities are not known; its score is not location + scale·z")
        return self.noise, self

    def learned(
        self, round: int, pulls: int, mean: float, reward: float, memory: Memory, arms: int, probability: float = 1.0
    ) -> dict[str, float]:
        """The columns of an arm after a pull: ``pulls`` and ``mean`` are those after it, ``memory`` from before it.

        ``probability`` is that of the decision, as it was when the decision was made.

        >>> from rightarm import EXP3
        >>> EXP3(gamma=0.1).learned(5, pulls=2, mean=0.5, reward=1.0, memory={"gain": 3.0}, arms=2, probability=0.25)
        {'gain': 7.0}
        """
        if set(memory) != set(self.columns):
            raise ValueError(f"memory must have the columns {', '.join(self.columns) or '(none)'}, got {list(memory)}")
        if not 0 < check_number("probability", probability) <= 1 + 1e-9:
            raise ValueError(f"probability must be above 0 and at most 1, got {probability}")
        inputs = named_inputs(float(round), float(pulls), mean, 0.0, arms, mean, mean)
        inputs |= {"reward": reward, "probability": probability, **memory}
        return {name: float(part.evaluate(inputs)) for name, part in self.learn.items()}

    def _check_memory(self, memory: Memory | None, pulls: F64) -> dict[str, F64]:
        if memory is None and self.columns and pulls.any():
            raise ValueError(f"{self!r} remembers {', '.join(self.columns)}: give memory= with a value for each arm")
        return check_memory(self.columns, memory, pulls.size)

    def _evaluated(
        self, formula: Formula, t: Any, pulls: F64, means: F64, z: Any, columns: Mapping[str, Any], arms: int = 0
    ) -> F64:
        """A formula of this policy for some arms; ``arms`` is how many there are in all, if not just these."""
        place = self.family.name if formula is self else f"{self.family.name}, explore"
        return one_each(place, self._values(formula, t, pulls, means, z, columns, arms), means.shape)

    def _values(
        self, formula: Formula, t: Any, pulls: F64, means: F64, z: Any, columns: Mapping[str, Any], arms: int = 0
    ) -> Any:
        inputs = named_inputs(t, pulls, means, z, arms or means.size, means.max(), means.min())
        kept = {name: np.broadcast_to(part.evaluate(inputs), means.shape) for name, part in self.keep.items()}
        for name, column in {**columns, **kept}.items():
            inputs |= {name: column, f"best_{name}": np.max(column), f"worst_{name}": np.min(column)}
        return formula.evaluate(inputs)

    # The form of the score, which the simulator makes use of.

    @functools.cached_property
    def affine(self) -> bool:
        """Whether the score is location + scale·z."""
        return keeps_form(lambda: self._scores_of(PROBE_ROUND, Line()))

    @functools.cached_property
    def shifted(self) -> bool:
        """Whether the score is location + z with Gumbel noise: then P[I = i] ∝ exp(location_i)."""
        return isinstance(self.noise, Gumbel) and keeps_form(lambda: self._scores_of(PROBE_ROUND, Shifted()), Shifted)

    @functools.cached_property
    def steady(self) -> bool:
        """Whether, besides, location and scale of an arm change only when the arm is pulled.

        The formula says so itself: it asks for neither the round nor the other arms.
        """
        return self.inputs <= {"pulls", "mean", "z", "arms", *self.columns, *self.keep} and self.affine

    @functools.cached_property
    def clocked(self) -> bool:
        """Whether the score, without noise, is location + scale·clock(t) with one clock for all arms, as UCB's is."""
        if self.noise is not None or "t" not in self.inputs:
            return False
        if self.inputs == {"t"} or not self.inputs <= {"t", "pulls", "mean", "arms", *self.columns, *self.keep}:
            return False
        if not keeps_form(lambda: self._scores_of(Time(), 0.0)):
            return False
        with np.errstate(all="ignore"):
            span = self.location_and_scale(np.ones(1), np.zeros(1), dict.fromkeys(self.columns, np.zeros(1)), arms=2)[1]
        return bool(np.isfinite(span).all() and span.all())  # or the reference arm does not show the clock

    @property
    def by_arm(self) -> bool:
        """Whether a round costs one product for each arm, its location and scale being kept between pulls."""
        return self.steady or self.clocked

    @property
    def lazy(self) -> bool:
        """Whether only those arms need to be looked at whose score may be the largest by what it was, or will be.

        Noise, or a score that moves with the other arms, would leave no bound to look at.
        """
        own = self.inputs <= {"t", "pulls", "mean", "arms", *self.columns, *self.keep}
        return self.family.rising and own and not self.by_arm

    def _scores_of(self, t: Any, z: Any) -> Any:
        """The formula at a made-up state, for stand-ins."""
        means = np.array([0.25, 0.5])
        inputs = named_inputs(t, np.array([3.0, 5.0]), means, z, arms=2, best=0.5, worst=0.25)
        for name in (*self.columns, *self.keep):
            inputs |= {name: np.array([0.5, 0.75]), f"best_{name}": 0.75, f"worst_{name}": 0.5}
        return self.evaluate(inputs)

    def location_and_scale(self, pulls: F64, means: F64, columns: Mapping[str, F64], arms: int) -> tuple[F64, F64]:
        """Location and scale of a steady or clocked policy's scores, by NumPy."""
        z, unit = (FAR, FAR) if self.steady else (0.0, 1.0)
        location = self._evaluated(self, EARLY, pulls, means, 0.0, columns, arms)
        far = self._evaluated(self, LATE, pulls, means, z, columns, arms)
        with np.errstate(invalid="ignore"):
            return location, np.where(far == location, 0.0, (far - location) / unit)  # −∞ less −∞ is not a number


class Part(Formula):
    """A formula that belongs to a policy beside its score, with some of the policy's parameters."""

    INPUTS: ClassVar[dict[str, str]] = {name: text for name, text in Policy.INPUTS.items() if name != "z"}
    WORD: ClassVar[str] = "explore"


class Kept(Part):
    """What is computed when an arm is pulled and kept until its next pull."""

    INPUTS: ClassVar[dict[str, str]] = {name: Policy.INPUTS[name] for name in ("pulls", "mean", "arms")}
    WORD: ClassVar[str] = "keep"


class Lesson(Part):
    """The next value of a column, after a pull of the arm."""

    INPUTS: ClassVar[dict[str, str]] = {
        "t": "the round, counted from 1",
        "pulls": "how often the arm was pulled, this pull included",
        "mean": "the mean of the arm's rewards, this one included",
        "arms": "the number of arms",
        "reward": "the reward",
        "probability": "the probability that the decision had",
    }
    WORD: ClassVar[str] = "learn"


def check_columns(place: str, columns: Any) -> None:
    """Names of columns must be names, and not those of something else that a formula may ask for."""
    if not isinstance(columns, Mapping):
        raise TypeError(f"{place} must map the name of each column to a formula, got {columns!r}")
    for name in columns:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"{place}: a column's name must be a name, got {name!r}")
        if name in Policy.INPUTS or name in Lesson.INPUTS or name.startswith(("best_", "worst_")):
            raise ValueError(f"{place}: the name {name!r} means something else already; choose another")


class PolicyFamily(Family):
    """A policy's formula together with the law of its noise, what it explores and what it learns."""

    def __init__(
        self,
        function: Callable[..., Any],
        noise: Law | None,
        explore: Callable[..., Any] | None,
        learn: Mapping[str, Callable[..., Any]],
        keep: Mapping[str, Callable[..., Any]],
        rising: bool,
        law: tuple[Law | Beta, Callable[..., Any]] | None,
    ) -> None:
        for name, columns in (("learn", learn), ("keep", keep)):
            check_columns(f"{getattr(function, '__name__', 'policy')}: {name}", columns)
        self.columns = tuple(learn)
        named = [*learn, *keep]
        if len(set(named)) < len(named):
            raise ValueError(f"the columns of learn and keep must differ, got {named}")
        extremes = [f"{end}_{name}" for name in named for end in ("best", "worst")]
        super().__init__(function, Policy, columns=(*named, *extremes))
        if noise is not None and not isinstance(noise, Law):
            raise TypeError(f"noise must be a law such as Gumbel() or Gaussian(), got {noise!r}")
        given = noise is not None or any(parameter.name == "noise" for parameter in self.parameters)
        if ("z" in self.inputs) != given:
            raise TypeError(f"{self.name}: the formula asks for z if and only if noise is given, got noise={noise!r}")
        for name in set(named) & {parameter.name for parameter in self.parameters}:
            raise ValueError(f"{self.name}: {name!r} is a parameter; choose another name for the column")
        self.noise, self.rising = noise, rising
        self.explore = None if explore is None else Family(explore, Part, columns=(*named, *extremes))
        self.keep = {name: Family(formula, Kept) for name, formula in keep.items()}
        self.law = None if law is None else (law[0], Family(law[1], Part, columns=(*named, *extremes)))
        self.learn = {name: Family(lesson, Lesson, columns=self.columns) for name, lesson in learn.items()}
        self._check_parts()

    def _check_parts(self) -> None:
        parts = {"explore": self.explore, **{f"learn[{name!r}]": lesson for name, lesson in self.learn.items()}}
        parts["law"] = None if self.law is None else self.law[1]
        parts |= {f"keep[{name!r}]": formula for name, formula in self.keep.items()}
        for place, part in parts.items():
            for parameter in () if part is None else part.parameters:
                if parameter.name not in {own.name for own in self.parameters}:
                    raise TypeError(
                        f"{self.name}: {place} asks for the parameter {parameter.name!r}; it must stand behind the * "
                        f"of {self.name} as well, which has {self._parameter_list()}"
                    )
        weighs = any("probability" in lesson.inputs for lesson in self.learn.values())
        if weighs and not isinstance(self.noise, Gumbel):
            raise TypeError(
                f"{self.name}: learn asks for probability, which is known for scores location + Gumbel z only"
            )

    @property
    def made_of(self) -> tuple[Any, ...]:
        explore = None if self.explore is None else self.explore.function
        columns = tuple((name, part.function) for name, part in (*self.learn.items(), *self.keep.items()))
        law = () if self.law is None else (self.law[0], self.law[1].function)
        return (self.function, self.noise, explore, columns, self.rising, *law)


@overload
def policy(function: Callable[..., Any]) -> PolicyFamily: ...
@overload
def policy(
    *,
    noise: Law | None = None,
    explore: Callable[..., Any] | None = None,
    learn: Mapping[str, Callable[..., Any]] | None = None,
    keep: Mapping[str, Callable[..., Any]] | None = None,
    rising: bool = False,
    law: tuple[Law | Beta, Callable[..., Any]] | None = None,
) -> Callable[[Callable[..., Any]], PolicyFamily]: ...
def policy(
    function: Callable[..., Any] | None = None,
    *,
    noise: Law | None = None,
    explore: Callable[..., Any] | None = None,
    learn: Mapping[str, Callable[..., Any]] | None = None,
    keep: Mapping[str, Callable[..., Any]] | None = None,
    rising: bool = False,
    law: tuple[Law | Beta, Callable[..., Any]] | None = None,
) -> Any:
    """Make a policy from one formula; live and compiled, with nothing else to write.

    The formula may ask for ``t`` (the round, counted from 1), ``pulls`` and ``mean`` of the arm, ``z`` (fresh noise,
    one draw for every arm and round), ``best`` and ``worst`` (the largest and smallest mean of all arms) and ``arms``
    (their number). Its parameters stand behind a ``*``; annotations such as `Positive` or ``int`` check them.

    - ``explore``: a formula for the probability with which an arm is pulled whatever the scores are; with what is left
      of 1, the largest score decides.
    - ``learn``: for each column that an arm is to remember, a formula for its next value, when the arm was pulled; it
      may ask for ``reward``, ``probability`` (of the decision, when it was made), ``t``, ``pulls``, ``mean``, ``arms``
      and all columns. The score may ask for the columns by their names, and for ``best_<name>`` and ``worst_<name>``,
      the largest and the smallest of all arms. All start at zero.
    - ``keep``: formulas of ``pulls``, ``mean`` and ``arms`` under names of their own, for which the score may ask in
      the same way. That is for speed alone: the simulator computes them when an arm is pulled, not in every round.
    - ``rising``: the score of an arm that is not pulled never falls. The simulator then leaves out arms that cannot
      win.
    - ``law``: the law of the score, where this is not location + scale·z with the law of the noise: a law and a formula
      for its two numbers (`propensity.of_largest`), from which exact probabilities follow.

    >>> import numpy as np, rightarm as ra
    >>> @ra.policy(noise=ra.noise.Gumbel())
    ... def cautious(t, pulls, mean, z, *, C: float = 1.0):
    ...     return mean + C / np.sqrt(pulls + np.log(t)) * z
    >>> cautious(C=0.5)
    cautious(C=0.5)
    >>> @ra.policy(learn={"largest": lambda largest, reward: np.maximum(largest, reward)})
    ... def hopeful(pulls, largest):
    ...     return largest / np.sqrt(pulls)
    >>> hopeful().scores(round=9, pulls=[4, 1], means=[0.5, 0.5], memory={"largest": [1.0, 0.75]})
    array([0.5 , 0.75])
    """
    if function is None:
        return functools.partial(policy, noise=noise, explore=explore, learn=learn, keep=keep, rising=rising, law=law)
    return PolicyFamily(function, noise, explore, learn or {}, keep or {}, rising, law)


def probabilities(
    policy: Policy, *, pulls: ArrayLike, means: ArrayLike, round: int, memory: Memory | None = None
) -> F64:
    """The exact probability with which a policy pulls each arm, in any state.

    >>> import rightarm as ra
    >>> ra.probabilities(ra.BetaThompson(), pulls=[4, 4], means=[0.25, 0.75], round=9).round(4)
    array([0.1032, 0.8968])
    """
    if not isinstance(policy, Policy):
        raise TypeError(f"policy must be a policy such as UCB(C=0.5), got {policy!r}")
    return policy.probabilities(round, pulls, means, memory)
