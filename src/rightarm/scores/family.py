"""Families of policies: a decorated formula with its noise, what it explores, learns and keeps, all checked."""

from __future__ import annotations

import functools
import inspect
import keyword
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from rightarm.estimators import FORGETTING, NAMED, Estimator, Mean
from rightarm.formula import Family, Formula, check_choice
from rightarm.noise import Beta, Gumbel, Law
from rightarm.scores.inputs import INPUTS, STATISTICS, VARIANCES
from rightarm.scores.rewards import check_reward_range

MEAN = Mean()


class Part(Formula):
    """A formula that belongs to a policy beside its score, with some of the policy's parameters."""

    INPUTS: ClassVar[dict[str, str]] = {name: text for name, text in INPUTS.items() if name != "z"}
    WORD: ClassVar[str] = "explore"


class Kept(Part):
    """What is computed when an arm is pulled and kept until its next pull."""

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


def check_columns(place: str, columns: Any) -> None:
    """Names of columns must be names, and not those of something else that a formula may ask for."""
    if not isinstance(columns, Mapping):
        raise TypeError(f"{place} must map the name of each column to a formula, got {columns!r}")
    for name in columns:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"{place}: a column's name must be a name, got {name!r}")
        taken = {*INPUTS, *Lesson.INPUTS} - VARIANCES  # a column called variance hides that of the rewards
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
        kind: type[Formula],
        noise: Law | None,
        explore: Callable[..., Any] | None,
        learn: Mapping[str, Callable[..., Any]],
        keep: Mapping[str, Callable[..., Any]],
        rising: bool,
        law: tuple[Law | Beta, Callable[..., Any]] | None,
        rewards: tuple[float, float] | None = None,
    ) -> None:
        for name, columns in (("learn", learn), ("keep", keep)):
            check_columns(f"{getattr(function, '__name__', 'policy')}: {name}", columns)
        self.columns = tuple(learn)
        named = [*learn, *keep]
        if len(set(named)) < len(named):
            raise ValueError(f"the columns of learn and keep must differ, got {named}")
        extremes = [f"{end}_{name}" for name in named for end in ("best", "worst")]
        super().__init__(function, kind, columns=(*named, *extremes))
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
        # no part of its identity: it says which rewards make sense, not what is computed of them
        self.rewards = None if rewards is None else check_reward_range(rewards, "rewards")
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
        """Add the parameter ``estimator``, which the formula itself does not have."""
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
        """The parameters by name; an estimator given by its name takes its own parameters from the policy's."""
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
        if weighs and (self.noise is None or not self.noise.is_like(Gumbel)):
            raise TypeError(
                f"{self.name}: learn asks for probability, which is known for scores location + Gumbel z only"
            )

    @property
    def made_of(self) -> tuple[Any, ...]:
        explore = None if self.explore is None else self.explore.function
        columns = tuple((name, part.function) for name, part in (*self.learn.items(), *self.keep.items()))
        law = () if self.law is None else (self.law[0], self.law[1].function)
        return (self.function, self.noise, explore, columns, self.rising, *law)
