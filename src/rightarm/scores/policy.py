"""What a policy is: a formula for a score, and the noise that it asks for. The arm with the largest score is pulled.

Some policies need two things more, each of them a formula as well: probabilities with which arms are explored whatever
their scores are (``explore``), and columns that an arm remembers besides its pulls and its mean (``learn``).
"""

from __future__ import annotations

import functools
import inspect
import keyword
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike

from rightarm.estimators import FORGETTING, NAMED, Estimator, Mean
from rightarm.formula import Family, Formula, check_choice, check_count, check_number
from rightarm.formula.tracing import Line, Shifted, Time, keeps_form
from rightarm.noise import Gumbel, Law
from rightarm.propensity import Beta, check_arm, log_of_one, of_largest
from rightarm.scores.inputs import (
    F64,
    Memory,
    State,
    check_memory,
    check_statistics,
    check_variances,
    one_each,
    with_extremes,
)
from rightarm.scores.rules import CERTAIN, FAR, goes_first, location_and_scale, mix

PROBE_ROUND = 100.0  # of the made-up state at which a formula's operations are followed
EARLY, LATE = 1.0, 2.0**40  # rounds between which a clock runs from 0 to 1
VARIANCES = frozenset({"variance", "best_variance", "worst_variance"})
STATISTICS = VARIANCES | {"pulls", "mean", "best", "worst"}  # what is not known of an arm before its first pull
MEAN = Mean()


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
        "variance": "the variance of the arm's rewards about their mean, Σ (x − mean)² / pulls",
        "best_variance": "the largest variance of all arms",
        "worst_variance": "the smallest variance of all arms",
    }
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"noise"})

    family: PolicyFamily

    def __init__(self, family: Family, values: Mapping[str, Any]) -> None:
        given = dict(values)
        if given.get("estimator") == MEAN:  # what there is without saying so
            del given["estimator"]
        super().__init__(family, given)
        if "estimator" in given and not self.statistics:
            raise TypeError(
                f"{family.name} takes no estimator: none of its formulas asks for pulls, mean, best, worst or variance"
            )
        self.check_forgetting(self.estimator)

    @property
    def noise(self) -> Law | None:
        """The law of z, or None for a policy that draws nothing."""
        law: Law | None = self.values.get("noise", self.family.noise)
        return law

    @property
    def estimator(self) -> Estimator:
        """Who makes the `mean` and the `pulls` that the formulas see from an arm's rewards."""
        chosen: Estimator = self.values.get("estimator", MEAN)
        return chosen

    def check_forgetting(self, estimator: Estimator) -> None:
        """Raise if an estimator forgets and a column is not a sum of what each reward adds to it.

        Of a sum alone a part can be taken away.
        """
        if not estimator.forgets:
            return
        known = {"t": 9.0, "pulls": 3.0, "mean": 0.5, "variance": 0.25, "arms": 2.0, "reward": 0.5, "probability": 0.5}
        for column, lesson in self.learn.items():
            inputs: dict[str, Any] = known | dict.fromkeys(self.columns, 0.5) | {column: Shifted()}
            if not keeps_form(functools.partial(lesson.evaluate, inputs), Shifted):
                what = "discount" if estimator.window is None else "window"
                raise ValueError(f"{what} is for statistics that are sums, which the {column!r} of {self!r} is not")

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters that the formula itself has."""
        return {name: value for name, value in self.values.items() if name != "estimator"}

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

    @functools.cached_property
    def statistics(self) -> frozenset[str]:
        """All that any of its formulas asks for of an arm's rewards."""
        parts = [self.decision_inputs, *(part.inputs for part in (*self.keep.values(), *self.learn.values()))]
        return frozenset[str]().union(*parts) & self.family.statistics

    @property
    def asks_variance(self) -> bool:
        """Whether any of its formulas asks for an arm's variance."""
        return bool(self.statistics & VARIANCES)

    @property
    def memory_names(self) -> tuple[str, ...]:
        """What compiled code has in columns: what an arm remembers, what is kept between pulls, and the variance."""
        return (*self.columns, *self.keep, *(("variance",) if self.asks_variance else ()))

    @property
    def needs_pulls(self) -> bool:
        """Whether every arm must be pulled once before the formula can be used."""
        return bool(self.decision_inputs & self.family.statistics)

    @functools.cached_property
    def weighted(self) -> bool:
        """Whether it learns from the probability of the decision."""
        return any("probability" in part.inputs for part in self.learn.values())

    # One live decision.

    def scores(
        self,
        round: int,
        pulls: ArrayLike,
        means: ArrayLike,
        z: ArrayLike = 0.0,
        memory: Memory | None = None,
        variances: ArrayLike | None = None,
    ) -> F64:
        """The score of every arm, by NumPy; every arm must have been pulled, if the formula asks for pulls or means.

        >>> from rightarm import UCB
        >>> UCB(C=1.0).scores(round=3, pulls=[1, 1], means=[0.0, 1.0]).round(3)
        array([1.048, 2.048])
        """
        state = self._state(round, pulls, means, memory, variances)
        if self._first(state) >= 0:
            raise ValueError(f"pulls must be at least 1 for every arm, got {state.pulls.tolist()}")
        return self._evaluated(self, state, np.asarray(z, dtype=float))

    def floors(
        self,
        round: int,
        pulls: ArrayLike,
        means: ArrayLike,
        memory: Memory | None = None,
        variances: ArrayLike | None = None,
    ) -> F64:
        """The probability with which each arm is explored, whatever its score is: its `explore` formula, or zero."""
        return self._floors(self._state(round, pulls, means, memory, variances))

    def _floors(self, state: State) -> F64:
        if self.explore is None:
            return np.zeros(state.means.size)
        floors = self._evaluated(self.explore, state, 0.0)
        if not (floors >= 0).all() or floors.sum() > CERTAIN:
            raise ValueError(f"{self!r}: what it explores are not probabilities: {floors.tolist()}")
        return floors

    def choose(
        self,
        round: int,
        pulls: ArrayLike,
        means: ArrayLike,
        random: np.random.Generator,
        memory: Memory | None = None,
        variances: ArrayLike | None = None,
    ) -> int:
        """The arm for one live decision: the first that was never pulled, else the largest score, ties broken fairly.

        >>> from rightarm import UCB
        >>> UCB(C=1.0).choose(3, pulls=[1, 1], means=[0.0, 1.0], random=np.random.default_rng(1))
        1
        """
        state = self._state(round, pulls, means, memory, variances)
        if not isinstance(random, np.random.Generator):
            raise TypeError(f"random must be a numpy.random.Generator, got {random!r}")
        first, arms = self._first(state), state.means.size
        if first >= 0:
            return first
        if self.explore is not None:
            explored = int(np.searchsorted(np.cumsum(self._floors(state)), random.random(), side="right"))
            if explored < arms:
                return explored
        z = np.zeros(arms) if self.noise is None else self.noise.sample(random, arms)
        scores = self._evaluated(self, state, z)
        if np.isnan(scores).any():
            raise ValueError(f"{self!r}: a score is not a number: {scores.tolist()}")
        return int(random.choice(np.flatnonzero(scores == scores.max())))

    def probabilities(
        self,
        round: int,
        pulls: ArrayLike,
        means: ArrayLike,
        memory: Memory | None = None,
        variances: ArrayLike | None = None,
    ) -> F64:
        """The exact probability of every arm, from the law of the scores: `propensity.of_largest`, beneath exploration.

        An arm never pulled goes first, with probability 1.

        >>> from rightarm import Boltzmann, BoltzmannGumbel
        >>> Boltzmann(1.0).probabilities(round=9, pulls=[4, 4], means=[0.0, np.log(3)])
        array([0.25, 0.75])
        >>> BoltzmannGumbel(C=0.5).probabilities(round=102, pulls=[1, 100], means=[0.6, 0.5]).round(6)
        array([0.85404, 0.14596])
        """
        state = self._state(round, pulls, means, memory, variances)
        first = self._first(state)
        if first >= 0:
            return np.asarray(np.arange(state.pulls.size) == first, dtype=float)
        chances = np.array(of_largest(*self._score_law(state)))
        if not mix(chances, self._floors(state), 0.0, np.empty(chances.size)):
            raise ValueError(f"{self!r}: what it chooses by are not probabilities: {chances.tolist()}")
        return chances

    def log_probability(
        self,
        arm: int,
        round: int,
        pulls: ArrayLike,
        means: ArrayLike,
        memory: Memory | None = None,
        variances: ArrayLike | None = None,
    ) -> float:
        """The logarithm of the exact probability of one arm, with all digits however small the probability is.

        >>> from rightarm import GaussianThompson
        >>> policy = GaussianThompson(sigma=0.5)
        >>> round(policy.log_probability(0, round=2_000, pulls=[999, 999], means=[0.25, 0.75]), 6)
        -254.028233
        """
        state = self._state(round, pulls, means, memory, variances)
        check_arm(arm, state.means.size)
        first = self._first(state)
        if first >= 0:
            return 0.0 if arm == first else -math.inf
        decided = log_of_one(*self._score_law(state), arm)
        if self.explore is None:
            return decided
        floors = self._floors(state)  # mixed in by logarithms here, because `mix` would lose what is small
        with np.errstate(divide="ignore"):
            return float(np.logaddexp(np.log(floors[arm]), np.log(max(1 - floors.sum(), 0.0)) + decided))

    def score_law(
        self,
        round: int,
        pulls: ArrayLike,
        means: ArrayLike,
        memory: Memory | None = None,
        variances: ArrayLike | None = None,
    ) -> tuple[Law | Beta | None, F64, F64]:
        """The law of the scores and its two numbers for every arm: location and scale, or what the policy states.

        >>> from rightarm import BoltzmannGumbel
        >>> BoltzmannGumbel(C=0.5, location=0.0).score_law(round=9, pulls=[4, 1], means=[0.25, 0.5])
        (Gumbel(), array([0.25, 0.5 ]), array([0.25, 0.5 ]))
        """
        return self._score_law(self._state(round, pulls, means, memory, variances))

    def _score_law(self, state: State) -> tuple[Law | Beta | None, F64, F64]:
        law, formula = self.stated_law
        if formula is self:
            with np.errstate(invalid="ignore"):
                first, second = location_and_scale(self._values(self, state, 0.0), self._values(self, state, FAR), FAR)
        else:
            first, second = self._values(formula, state, 0.0)
        return law, np.broadcast_to(first, state.means.shape), np.broadcast_to(second, state.means.shape)

    @functools.cached_property
    def stated_law(self) -> tuple[Law | Beta | None, Policy | Part]:
        """The law of the scores, and the formula that has its two numbers: the score itself, if it is affine."""
        if self.family.law is not None:
            return self.family.law[0], self._part(self.family.law[1])
        if not self.affine:
            raise ValueError(f"{self!r}: its probabilities are not known; its score is not location + scale·z")
        return self.noise, self

    def learned(
        self,
        round: int,
        pulls: float,
        mean: float,
        reward: float,
        memory: Memory,
        arms: int,
        probability: float = 1.0,
        variance: float = 0.0,
    ) -> dict[str, float]:
        """The columns of an arm after a pull: the statistics are those after it, ``memory`` from before it.

        ``probability`` is that of the decision, as it was when the decision was made.

        >>> from rightarm import EXP3
        >>> EXP3(gamma=0.1).learned(5, pulls=2, mean=0.5, reward=1.0, memory={"gain": 3.0}, arms=2, probability=0.25)
        {'gain': 7.0}
        """
        if set(memory) != set(self.columns):
            raise ValueError(f"memory must have the columns {', '.join(self.columns) or '(none)'}, got {list(memory)}")
        if not 0 < check_number("probability", probability) <= 1 + 1e-9:
            raise ValueError(f"probability must be above 0 and at most 1, got {probability}")
        inputs = {"t": float(round), "pulls": float(pulls), "mean": mean, "variance": variance, "arms": float(arms)}
        inputs |= {"reward": reward, "probability": probability, **memory}  # type: ignore[dict-item]
        return {name: float(part.evaluate(inputs)) for name, part in self.learn.items()}

    def _state(
        self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory | None, variances: ArrayLike | None
    ) -> State:
        """What is known of the arms, checked."""
        counts, averages = check_statistics(pulls, means, whole=self.estimator.plain)
        t = float(check_count("round", round)) if self.estimator.plain else check_number("round", round)
        if memory is None and self.columns and counts.any():
            raise ValueError(f"{self!r} remembers {', '.join(self.columns)}: give memory= with a value for each arm")
        columns = check_memory(self.columns, memory, counts.size)
        spreads = check_variances(self, self.asks_variance, variances, counts)
        return State(t, counts, averages, columns, spreads, counts.size)

    def _first(self, state: State) -> int:
        """The arm that goes first, the formulas being of no use before it has a reward; −1 if there is none."""
        return goes_first(state.pulls, np.zeros(state.pulls.size)) if self.needs_pulls else -1

    def _evaluated(self, formula: Formula, state: State, z: Any) -> F64:
        """A formula of this policy for some arms."""
        place = self.family.name if formula is self else f"{self.family.name}, explore"
        return one_each(place, self._values(formula, state, z), state.means.shape)

    def _values(self, formula: Formula, state: State, z: Any) -> Any:
        inputs = state.inputs(z)
        kept = {name: np.broadcast_to(part.evaluate(inputs), state.means.shape) for name, part in self.keep.items()}
        return formula.evaluate(inputs | with_extremes(kept))

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
        own = self.inputs <= {"pulls", "mean", "z", "arms", *self.memory_names}
        return own and self.affine and not self.estimator.forgets

    @functools.cached_property
    def clocked(self) -> bool:
        """Whether the score, without noise, is location + scale·clock(t) with one clock for all arms, as UCB's is."""
        if self.noise is not None or "t" not in self.inputs or self.estimator.forgets:
            return False
        if self.inputs == {"t"} or not self.inputs <= {"t", "pulls", "mean", "arms", *self.memory_names}:
            return False
        if not keeps_form(lambda: self._scores_of(Time(), 0.0)):
            return False
        with np.errstate(all="ignore"):
            span = self.line(self.reference_arm)[1]
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
        own = self.inputs <= {"t", "pulls", "mean", "arms", *self.memory_names}
        return self.family.rising and own and not self.by_arm and not self.estimator.forgets

    def _scores_of(self, t: Any, z: Any) -> Any:
        """The formula at a made-up state, for stand-ins."""
        means, columns = np.array([0.25, 0.5]), dict.fromkeys(self.memory_names, np.array([0.5, 0.75]))
        return self.evaluate(State(t, np.array([3.0, 5.0]), means, columns, None, arms=2).inputs(z))

    @property
    def reference_arm(self) -> State:
        """An arm pulled once with a reward of 0, of two arms, from whose score a clock is read."""
        return State(EARLY, np.ones(1), np.zeros(1), dict.fromkeys(self.columns, np.zeros(1)), np.zeros(1), arms=2)

    def line(self, state: State) -> tuple[F64, F64]:
        """Location and scale of a steady or clocked policy's scores, by NumPy; the state's round does not matter."""
        z, distance = (FAR, FAR) if self.steady else (0.0, 1.0)
        near = self._evaluated(self, state._replace(t=EARLY), 0.0)
        far = self._evaluated(self, state._replace(t=LATE), z)
        with np.errstate(invalid="ignore"):
            return location_and_scale(near, far, distance)


class Part(Formula):
    """A formula that belongs to a policy beside its score, with some of the policy's parameters."""

    INPUTS: ClassVar[dict[str, str]] = {name: text for name, text in Policy.INPUTS.items() if name != "z"}
    WORD: ClassVar[str] = "explore"


class Kept(Part):
    """What is computed when an arm is pulled and kept until its next pull."""

    INPUTS: ClassVar[dict[str, str]] = {name: Policy.INPUTS[name] for name in ("pulls", "mean", "variance", "arms")}
    WORD: ClassVar[str] = "keep"


class Lesson(Part):
    """The next value of a column, after a pull of the arm."""

    INPUTS: ClassVar[dict[str, str]] = {
        "t": "the round, counted from 1",
        "pulls": "how often the arm was pulled, this pull included",
        "mean": "the mean of the arm's rewards, this one included",
        "variance": "the variance of the arm's rewards, this one included",
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
        taken = {*Policy.INPUTS, *Lesson.INPUTS} - VARIANCES  # a column called variance hides that of the rewards
        if name in taken or name.startswith(("best_", "worst_")):
            raise ValueError(f"{place}: the name {name!r} means something else already; choose another")


class EstimatorOrName:
    """What the parameter ``estimator`` may be: an estimator, or the name of one, as experiment files have it."""

    @staticmethod
    def accept(name: str, value: Any) -> Any:
        """``value``, if it is one."""
        return check_choice(name, value, tuple(NAMED)) if isinstance(value, str) else Estimator.accept(name, value)


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
            hint = "; call it first" if isinstance(noise, type) else ""
            raise TypeError(f"noise must be a law such as Gumbel() or Gaussian(), got {noise!r}{hint}")
        given = noise is not None or any(parameter.name == "noise" for parameter in self.parameters)
        if "z" in self.inputs and not given:
            raise TypeError(f"{self.name}: the formula asks for z, so noise is needed: @policy(noise=Gumbel()), say")
        if given and "z" not in self.inputs:
            raise TypeError(f"{self.name}: the formula does not ask for z, so noise has no use, got noise={noise!r}")
        for name in set(named) & {parameter.name for parameter in self.parameters}:
            raise ValueError(f"{self.name}: {name!r} is a parameter; choose another name for the column")
        self.noise, self.rising = noise, rising
        self.explore = None if explore is None else Family(explore, Part, columns=(*named, *extremes))
        self.keep = {name: Family(formula, Kept) for name, formula in keep.items()}
        self.law = None if law is None else (law[0], Family(law[1], Part, columns=(*named, *extremes)))
        self.learn = {name: Family(lesson, Lesson, columns=self.columns) for name, lesson in learn.items()}
        self._check_parts()
        self.statistics = STATISTICS - VARIANCES if "variance" in named else STATISTICS
        parts = (self, self.explore, *self.keep.values(), *self.learn.values())
        if any(self.statistics.intersection(part.inputs) for part in parts if part is not None):
            self._take_estimators()

    def _take_estimators(self) -> None:
        """One parameter more, which the formula itself does not have."""
        estimator = inspect.Parameter("estimator", inspect.Parameter.KEYWORD_ONLY, default=MEAN)
        self.parameters = (*self.parameters, estimator)
        self._describe()

    @functools.cached_property
    def annotations(self) -> dict[str, Any]:
        return {**super().annotations, "estimator": EstimatorOrName}

    @property
    def defaults(self) -> dict[str, Any]:
        return {**super().defaults, "estimator": MEAN}

    def bind(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        """The parameters by name; an estimator may be called by its name, its parameters are then the policy's own."""
        listed = any(parameter.name == "estimator" for parameter in self.parameters)
        more = {} if listed or "estimator" not in keywords else {"estimator": keywords.pop("estimator")}
        return self.resolved(super().bind(*arguments, **keywords) | more)

    def resolved(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters, with the estimator itself in place of its name."""
        name = given.get("estimator")
        return {**given, "estimator": self._named_estimator(name, given)} if isinstance(name, str) else dict(given)

    def _named_estimator(self, name: str, given: Mapping[str, Any]) -> Estimator:
        kind = NAMED[check_choice("estimator", name, tuple(NAMED))]
        needed = [each for each in inspect.signature(kind).parameters if each not in FORGETTING]
        missing = [each for each in needed if each not in given]
        if missing:
            raise ValueError(
                f"estimator={name!r} takes {', '.join(missing)} from the policy, which {self.name} does not have; "
                f"give an estimator such as {kind.__name__}({', '.join(f'{each}=2.0' for each in missing)})"
            )
        return kind(**{each: given[each] for each in needed})

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
    one draw for every arm and round), ``best`` and ``worst`` (the largest and smallest mean of all arms), ``arms``
    (their number), and the arm's ``variance`` (of its rewards about their mean) with ``best_variance`` and
    ``worst_variance``. Its parameters stand behind a ``*``; annotations such as `Positive` or ``int`` check them.
    Every such policy takes ``estimator=`` as well (`Mean`, `Catoni`): who makes mean and pulls from the rewards.

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
    policy: Policy,
    *,
    pulls: ArrayLike,
    means: ArrayLike,
    round: int,
    memory: Memory | None = None,
    variances: ArrayLike | None = None,
) -> F64:
    """The exact probability with which a policy pulls each arm, in any state.

    >>> import rightarm as ra
    >>> ra.probabilities(ra.BetaThompson(), pulls=[4, 4], means=[0.25, 0.75], round=9).round(4)
    array([0.1032, 0.8968])
    """
    if not isinstance(policy, Policy):
        raise TypeError(f"policy must be a policy such as UCB(C=0.5), got {policy!r}")
    return policy.probabilities(round, pulls, means, memory, variances)
