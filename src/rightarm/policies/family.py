"""Families of policies: a decorated formula with its noise, and what it explores, learns and keeps, all checked.

A parameter of a policy may be a formula itself: a schedule, such as a temperature that falls with the round.
"""

from __future__ import annotations

import inspect
import keyword
import numbers
import types
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rightarm.errors import WrongValue
from rightarm.estimators import NAMED, Estimator, Mean
from rightarm.estimators.estimator import FORGETTING
from rightarm.formula import Family, Formula, NonNegative, check_choice, check_number, rule_of
from rightarm.formula.syntax import Function
from rightarm.noise import Beta, Gumbel, Law
from rightarm.policies.inputs import INPUTS, STATISTICS, VARIANCES, check_reward_range

MEAN = Mean()


class Part(Formula):
    """A formula that belongs to a policy beside its score, with some of the policy's parameters."""

    INPUTS: ClassVar[dict[str, str]] = {name: text for name, text in INPUTS.items() if name != "z"}
    WORD: ClassVar[str] = "explore"


class Kept(Part):
    """A formula that is computed when an arm is pulled and kept until its next pull."""

    INPUTS: ClassVar[dict[str, str]] = {name: INPUTS[name] for name in ("pulls", "mean", "variance", "arms")}
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


class Schedule(Formula):
    """A formula of the round, for a temperature β_t, say; the paper's learning rate is η_t = 1/β_t."""

    INPUTS: ClassVar[dict[str, str]] = {name: INPUTS[name] for name in ("t", "best", "worst", "arms")}

    def as_argument(self, name: str) -> str:
        """Return its text as a policy's parameter: of a constant, its number alone."""
        return f"{name}={self.values['c']:.6g}" if self.family.name == "constant" else str(self)

    @classmethod
    def accept(cls, name: str, value: object) -> Formula:
        """Return a schedule, made from a number (a constant) or from a function of t if it is none yet."""
        if isinstance(value, cls):
            return value
        if isinstance(value, types.FunctionType):
            return cls._from_function(name, value)
        if isinstance(value, numbers.Real):
            from rightarm.policies.schedules import constant

            fixed: Schedule = constant(check_number(name, value, rule_of(NonNegative)))
            return fixed
        raise TypeError(
            f"{name} must be a schedule such as inverse_log(0.25), a number or a function of t, got {value!r}"
        )

    @classmethod
    def _from_function(cls, name: str, function: types.FunctionType) -> Schedule:
        made: Schedule = Family(function, cls, bare=True)()
        for t in (2.0, 10.0):
            value = made.evaluate({"t": t, "best": 1.0, "worst": 0.0, "arms": 2.0})
            if not np.all(np.asarray(value) >= 0):
                raise WrongValue(name, f"must not be negative, got {value} at t = {t:.0f}", code="out_of_range")
        return made


def schedule(function: Function) -> Family:
    """Make a family of schedules from a formula of t (and best, worst, arms), parameters behind a *.

    Examples
    --------
    >>> import rightarm as ra
    >>> @ra.schedules.schedule
    ... def cooling(t, *, rate: float):
    ...     return 1 / (1 + rate * t)
    >>> ra.Boltzmann(cooling(rate=0.1))
    Boltzmann(temperature=cooling(rate=0.1))
    """
    return Family(function, Schedule)


class EstimatorOrName:
    """The annotation of the parameter ``estimator``: an estimator, or the name of one, as experiment files have it."""

    @staticmethod
    def accept(name: str, value: object) -> Estimator | str:
        """Return ``value`` if it is one, or raise an error that names the parameter."""
        return check_choice(name, value, tuple(NAMED)) if isinstance(value, str) else Estimator.accept(name, value)


class PolicyFamily(Family):
    """A policy's formula together with the law of its noise, and what it explores, learns and keeps.

    Called with parameters, it makes a `Policy`; `rightarm.policy` makes it.
    """

    def __init__(
        self,
        function: Function,
        kind: type[Formula],
        noise: Law | None,
        explore: Function | None,
        learn: Mapping[str, Function],
        keep: Mapping[str, Function],
        rising: bool,
        score_law: tuple[Law | Beta, Function] | None,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        for place, columns in (("learn", learn), ("keep", keep)):
            _check_columns(f"{getattr(function, '__name__', 'policy')}: {place}", columns)
        named = [*learn, *keep]
        if len(set(named)) < len(named):
            raise ValueError(f"the columns of learn and keep must differ, got {named}")
        inputs = [*named, *(f"{end}_{name}" for name in named for end in ("best", "worst"))]
        super().__init__(function, kind, columns=inputs)
        self.noise = noise
        self._check_noise()
        for name in set(named) & {parameter.name for parameter in self.parameters}:
            raise ValueError(f"{self.name}: {name!r} is a parameter; choose another name for the column")
        self.columns = tuple(learn)
        self.rising = rising
        # no part of its identity: it says which rewards make sense, not what is computed of them
        self.reward_range = None if reward_range is None else check_reward_range(reward_range)
        self.explore = None if explore is None else Family(explore, Part, columns=inputs)
        self.score_law = None if score_law is None else (score_law[0], Family(score_law[1], Part, columns=inputs))
        self.keep = {name: Family(formula, Kept) for name, formula in keep.items()}
        self.learn = {name: Family(lesson, Lesson, columns=self.columns) for name, lesson in learn.items()}
        self._check_parts()
        self.statistics = STATISTICS - VARIANCES if "variance" in named else STATISTICS
        parts = (self, self.explore, *self.keep.values(), *self.learn.values())
        has_statistics = any(self.statistics.intersection(part.inputs) for part in parts if part is not None)
        if has_statistics or self.learn:  # what is learned can be forgotten, as an estimator says
            # the parameter `estimator`, which the formula itself does not have
            estimator = inspect.Parameter("estimator", inspect.Parameter.KEYWORD_ONLY, default=MEAN)
            self.parameters = (*self.parameters, estimator)
            self._describe()

    def _check_noise(self) -> None:
        """Raise unless there is noise if, and only if, the formula asks for z."""
        noise = self.noise
        if noise is not None and not isinstance(noise, Law):
            hint = "; call it first" if isinstance(noise, type) else ""
            raise TypeError(f"noise must be a law such as Gumbel() or Gaussian(), got {noise!r}{hint}")
        has_noise = noise is not None or any(parameter.name == "noise" for parameter in self.parameters)
        if "z" in self.inputs and not has_noise:
            raise TypeError(f"{self.name}: the formula asks for z, so noise is needed: @policy(noise=Gumbel()), say")
        if has_noise and "z" not in self.inputs:
            raise TypeError(f"{self.name}: the formula does not ask for z, so noise has no use, got noise={noise!r}")

    def _check_parts(self) -> None:
        """Raise if a formula asks for a parameter that the policy does not have, or for a probability in vain."""
        parts = {"explore": self.explore, "score_law": None if self.score_law is None else self.score_law[1]}
        parts |= {f"learn[{name!r}]": lesson for name, lesson in self.learn.items()}
        parts |= {f"keep[{name!r}]": formula for name, formula in self.keep.items()}
        names = {parameter.name for parameter in self.parameters}
        for place, part in parts.items():
            for parameter in () if part is None else part.parameters:
                if parameter.name not in names:
                    raise TypeError(
                        f"{self.name}: {place} asks for the parameter {parameter.name!r}; it must stand behind the * "
                        f"of {self.name} as well, which has {self._parameter_list()}"
                    )
        is_weighted = any("probability" in lesson.inputs for lesson in self.learn.values())
        if is_weighted and (self.noise is None or not self.noise.is_like(Gumbel)):
            raise TypeError(
                f"{self.name}: learn asks for probability, which is known for scores location + Gumbel z only"
            )

    @cached_property
    def annotations(self) -> dict[str, Any]:
        return {**super().annotations, "estimator": EstimatorOrName}

    @property
    def defaults(self) -> dict[str, Any]:
        return {**super().defaults, "estimator": MEAN}

    def bind(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        """Return the parameters by name; an estimator given by its name takes its own parameters from the policy's."""
        is_listed = any(parameter.name == "estimator" for parameter in self.parameters)
        more = {} if is_listed or "estimator" not in keywords else {"estimator": keywords.pop("estimator")}
        return self.resolved(super().bind(*arguments, **keywords) | more)

    def resolved(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters, with the estimator itself in place of its name."""
        name = given.get("estimator")
        if not isinstance(name, str):
            return dict(given)
        kind = NAMED[check_choice("estimator", name, tuple(NAMED))]
        options = {each: p for each, p in inspect.signature(kind).parameters.items() if each not in FORGETTING}
        missing = [each for each, p in options.items() if p.default is p.empty and each not in given]
        if missing:
            raise ValueError(
                f"estimator={name!r} takes {', '.join(missing)} from the policy, which {self.name} does not have; "
                f"give the estimator itself: {kind.__name__}({', '.join(f'{each}=...' for each in missing)})"
            )
        return {**given, "estimator": kind(**{each: given[each] for each in options if each in given})}

    @property
    def made_of(self) -> tuple[Any, ...]:
        explore = None if self.explore is None else self.explore.function
        columns = tuple((name, part.function) for name, part in (*self.learn.items(), *self.keep.items()))
        law = () if self.score_law is None else (self.score_law[0], self.score_law[1].function)
        return (self.function, self.noise, explore, columns, self.rising, *law)


def _check_columns(place: str, columns: Mapping[str, Function]) -> None:
    """Raise unless names of columns are names, and not those of something else that a formula may ask for."""
    if not isinstance(columns, Mapping):
        raise TypeError(f"{place} must map the name of each column to a formula, got {columns!r}")
    taken = {*INPUTS, *Lesson.INPUTS} - VARIANCES  # a column called variance hides that of the rewards
    for name in columns:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"{place}: a column's name must be a name, got {name!r}")
        if name in taken or name.startswith(("best_", "worst_")):
            raise ValueError(f"{place}: the name {name!r} means something else already; choose another")
