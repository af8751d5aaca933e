"""Problems: what the arms pay. A problem is a formula for a reward, with one parameter value for each arm."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, overload

import numpy as np

from rightarm.formula import (
    Family,
    Formula,
    check_count,
    check_number,
    from_specification,
    rule_of,
)
from rightarm.notebook import html_table
from rightarm.problems.moments import moments
from rightarm.text import counted, short, table
from rightarm.types import F64

SHOWN = 50  # arms in a notebook
Requirement = tuple[str, Callable[..., Any]] | None


@dataclass(frozen=True)
class Corruption:
    """``arm`` pays ``reward`` in rounds up to ``rounds`` and at its pulls up to ``pulls``, not its own reward."""

    arm: int
    rounds: int
    pulls: int
    reward: float

    def __repr__(self) -> str:
        until = f"rounds={self.rounds}" if self.rounds else f"pulls={self.pulls}"
        return f".corrupted(arm={self.arm}, {until}, reward={self.reward})"


def corruption(arms: int, arm: int, rounds: int | None, pulls: int | None, reward: float) -> Corruption:
    """A corruption of one of so many arms, checked."""
    if (rounds is None) == (pulls is None):
        raise TypeError(f"corrupted takes either rounds or pulls, got rounds={rounds} and pulls={pulls}")
    arm = check_count("arm", arm, least=0)
    if arm >= arms:
        raise ValueError(f"arm must be below the number of arms, {arms}, got {arm}")
    first_rounds = 0 if rounds is None else check_count("rounds", rounds)
    first_pulls = 0 if pulls is None else check_count("pulls", pulls)
    return Corruption(arm, first_rounds, first_pulls, check_number("reward", reward))


class Problem(Formula):
    """A problem with the parameters of its arms set; made by calling a family such as `Bernoulli`.

    >>> import rightarm as ra
    >>> problem = ra.Bernoulli([0.5, 0.75, 0.25])
    >>> problem.arms, problem.best_arm, problem.gaps.tolist()
    (3, 1, [0.25, 0.0, 0.5])
    """

    INPUTS: ClassVar[dict[str, str]] = {
        "t": "the round, counted from 1",
        "pulls": "how often the arm was pulled, this pull included",
        "arm": "the index of the arm, counted from 0",
        "u": "fresh noise, uniform in (0, 1)",
        "v": "more of it, independent of u",
        "w": "fresh noise, standard Gaussian",
    }
    family: ProblemFamily
    arms: int
    corruptions: tuple[Corruption, ...]

    def __init__(self, family: Family, values: Mapping[str, Any], corruptions: tuple[Corruption, ...] = ()) -> None:
        lengths = {name: len(value) for name, value in values.items() if len(value) > 1}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{family.name}: all parameters must have one value per arm, got lengths {lengths}")
        arms = max((len(value) for value in values.values()), default=0)
        if arms == 0:
            raise ValueError(f"{family.name} needs a parameter with one value per arm, got {dict(values)}")
        full = {name: value * arms if len(value) == 1 else value for name, value in values.items()}
        if isinstance(family, ProblemFamily) and family.require is not None:
            text, holds = family.require
            if not np.all(holds(**{name: np.array(value) for name, value in full.items()})):
                raise ValueError(
                    f"{family.name} needs {text} for every arm, got { ({n: list(v) for n, v in full.items()}) }"
                )
        super().__init__(family, full)
        self.__dict__.update(arms=arms, corruptions=corruptions)

    @classmethod
    def check(cls, name: str, value: Any, annotation: Any) -> tuple[float, ...]:
        """A number for all arms, or one for each."""
        if isinstance(value, str) or np.ndim(value) > 1:
            raise TypeError(f"{name} must be a number or a list of numbers, one per arm, got {value!r}")
        rule = rule_of(annotation)
        if np.size(value) == 0:
            raise ValueError(f"{name} must have one value per arm, got {value!r}")
        if np.ndim(value) == 0:
            return (check_number(name, value, rule),)
        return tuple(check_number(f"{name}[{i}]", item, rule) for i, item in enumerate(value))

    def evaluate(self, inputs: Mapping[str, Any]) -> Any:
        """Rewards by NumPy; ``inputs["arm"]`` says whose."""
        arm = inputs["arm"]
        return self._call(inputs, {name: np.asarray(value)[arm] for name, value in self.values.items()})

    @functools.cached_property
    def means(self) -> F64:
        """The mean reward of every arm, corruption aside."""
        means = moments(self, "mean", self.family.mean, power=1)
        if not np.isfinite(means).all():
            raise ValueError(f"the means of {self!r} must be finite, got {means.tolist()}")
        return means

    @functools.cached_property
    def second_moments(self) -> F64:
        """E X² of every arm's reward X, corruption aside; infinite where the tail is heavy enough.

        >>> import rightarm as ra
        >>> ra.Gaussian([3.0, 0.0], sigma=2.0).second_moments
        array([13.,  4.])
        """
        return moments(self, "second_moment", self.family.second_moment, power=2)

    @property
    def support(self) -> tuple[F64, F64] | None:
        """The smallest and the largest reward of every arm, corruption aside; None where that is not known.

        >>> import rightarm as ra
        >>> ra.Uniform(low=[0.0, 0.5], high=1.0).support
        (array([0. , 0.5]), array([1., 1.]))
        """
        if self.family.support is None:
            return None
        low, high = self.family.support(**{name: np.array(value) for name, value in self.values.items()})
        return np.broadcast_to(low, self.arms), np.broadcast_to(high, self.arms)

    def stays_within(self, low: float, high: float) -> bool:
        """Whether it is known that no reward is below ``low`` or above ``high``.

        >>> import rightarm as ra
        >>> ra.Bernoulli([0.5]).stays_within(0.0, 1.0), ra.Gaussian([0.5]).stays_within(0.0, 1.0)
        (True, False)
        """
        if self.support is None:
            return False
        ends = [*self.support[0], *self.support[1], *(corruption.reward for corruption in self.corruptions)]
        return bool(low <= min(ends) and max(ends) <= high)

    @property
    def best_arm(self) -> int:
        """The index of the arm with the largest mean, the first of them if several share it."""
        return int(np.argmax(self.means))

    @functools.cached_property
    def gaps(self) -> F64:
        """Δ_i = μ* − μ_i."""
        gaps: F64 = self.means.max() - self.means
        gaps.setflags(write=False)
        return gaps

    def corrupted(
        self, arm: int, *, rounds: int | None = None, pulls: int | None = None, reward: float = 0.0
    ) -> Problem:
        """The problem in which ``arm`` pays ``reward`` in the first ``rounds`` rounds, or at its first ``pulls`` pulls.

        Scenario (b) of the paper's section 6 is ``corrupted(arm=0, rounds=5_000, reward=0.0)``. Means, gaps and regret
        stay those of the problem itself.

        >>> import rightarm as ra
        >>> ra.Bernoulli([0.5, 0.4]).corrupted(arm=0, rounds=100, reward=0.0)
        Bernoulli(mean=[0.5, 0.4]).corrupted(arm=0, rounds=100, reward=0.0)
        """
        added = corruption(self.arms, arm, rounds, pulls, reward)
        return type(self)(self.family, self.values, (*self.corruptions, added))

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.corruptions)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.family, self.values, self.corruptions)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={list(value)!r}" for name, value in self.values.items())
        return f"{self.family.name}({values}){''.join(map(repr, self.corruptions))}"

    def __str__(self) -> str:
        return repr(self) if self.arms <= 12 else f"{self.family.name} with {self.arms} arms"

    def specification(self) -> dict[str, Any]:
        """The problem as plain data, from which `problem_from_specification` makes it again."""
        return {**super().specification(), "corruptions": [asdict(corruption) for corruption in self.corruptions]}

    def describe(self) -> str:
        """The arms with their means and gaps, as text."""
        rows = [[str(i), short(m), short(g)] for i, (m, g) in enumerate(zip(self.means, self.gaps, strict=True))]
        return f"{self._head()}\n{table(['arm', 'mean', 'gap'], rows, words=0)}"

    def _head(self) -> str:
        return f"{self.family.name} with {counted(self.arms, 'arm')}, the best is arm {self.best_arm}"

    def _repr_html_(self) -> str:
        """The arms with their parameters and means, at most `SHOWN` of them."""
        columns = {name: value for name, value in self.values.items() if name != "mean"}
        columns = {**columns, "mean": tuple(self.means.tolist()), "gap": tuple(self.gaps.tolist())}
        rows = [[i, *(short(column[i]) for column in columns.values())] for i in range(min(self.arms, SHOWN))]
        notes = [repr(corruption)[1:] for corruption in self.corruptions]
        notes += [f"and {self.arms - SHOWN:,} more arms"] if self.arms > SHOWN else []
        return html_table(["arm", *columns], rows, title=self._head(), words=0, notes=notes)


class ProblemFamily(Family):
    """A problem's formula together with its moments, where they are known in closed form."""

    def __init__(
        self,
        function: Callable[..., Any],
        mean: Callable[..., Any] | None = None,
        second_moment: Callable[..., Any] | None = None,
        require: Requirement = None,
        support: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(function, Problem)
        self.mean, self.second_moment, self.require = mean, second_moment, require
        self.support = support  # no part of its identity: it changes no reward

    @property
    def made_of(self) -> tuple[Any, ...]:
        return (self.function, self.mean, self.second_moment)


@overload
def problem(function: Callable[..., Any]) -> ProblemFamily: ...
@overload
def problem(
    *,
    mean: Callable[..., Any] | None = None,
    second_moment: Callable[..., Any] | None = None,
    require: Requirement = None,
    support: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], ProblemFamily]: ...
def problem(
    function: Callable[..., Any] | None = None,
    *,
    mean: Callable[..., Any] | None = None,
    second_moment: Callable[..., Any] | None = None,
    require: Requirement = None,
    support: Callable[..., Any] | None = None,
) -> Any:
    """Make a problem from one formula for the reward, its parameters behind a *; each takes one value per arm.

    The formula may ask for ``u`` and ``v`` (fresh noise, uniform in (0, 1)), ``w`` (fresh Gaussian noise), ``t`` (the
    round), ``pulls`` (how often the arm was pulled, this pull included) and ``arm`` (its index).

    ``require`` is what the parameters must fulfil together, in words and as a function of them.
    ``support`` gives the smallest and the largest reward that an arm can pay, as a function of the parameters; it saves
    the simulator to look whether rewards are such that a policy is for.
    ``mean`` and ``second_moment``, E X² of a reward X, are functions of the same parameters. Without them they are
    integrated numerically, on 2²⁰ points; where that is not certain enough, as with heavy tails, an error asks for it.

    >>> import numpy as np, rightarm as ra
    >>> @ra.problem
    ... def Triangular(u, *, high):
    ...     return high * np.sqrt(u)
    >>> Triangular(high=[3.0, 1.5]).means.round(6)
    array([2., 1.])
    """
    if function is None:
        parts: dict[str, Any] = {"mean": mean, "second_moment": second_moment}
        return functools.partial(problem, **parts, require=require, support=support)
    return ProblemFamily(function, mean, second_moment, require, support)


def problem_from_specification(specification: Mapping[str, Any]) -> Problem:
    """The problem that `Problem.specification` described.

    >>> import rightarm as ra
    >>> problem_from_specification(ra.Bernoulli([0.5, 0.4]).corrupted(0, rounds=10).specification())
    Bernoulli(mean=[0.5, 0.4]).corrupted(arm=0, rounds=10, reward=0.0)
    """
    bare = from_specification(specification)
    corruptions = tuple(Corruption(**corruption) for corruption in specification["corruptions"])
    return Problem(bare.family, bare.values, corruptions)
