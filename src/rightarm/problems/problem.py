"""Define problems: a formula for a reward, with its moments in closed form or by quadrature."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypedDict, Unpack, overload

import numpy as np

from rightarm.display import counted, html_table, short, table
from rightarm.formula import Family, Formula, check_count, check_number, from_specification, rule_of
from rightarm.types import F64

QUADRATURE = 1 << 20  # points behind a moment that is not given in closed form
PRECISION = 2e-5  # of the standard deviation of what is averaged, to which such a moment must be certain
SHOWN = 50  # arms in a notebook

Function = Callable[..., Any]  # of numbers or arrays, in operations of NumPy
Specification = dict[str, Any]  # plain data, for JSON
Values = Mapping[str, tuple[float, ...]]  # of parameters, one for each arm
Requirement = tuple[str, Function]


@dataclass(frozen=True)
class Corruption:
    """A reward that ``arm`` pays instead, in rounds up to ``rounds`` and at its pulls up to ``pulls``."""

    arm: int
    rounds: int
    pulls: int
    reward: float

    @classmethod
    def checked(cls, arms: int, arm: int, rounds: int | None, pulls: int | None, reward: float) -> Corruption:
        """Return the corruption of one of so many arms, or raise."""
        if (rounds is None) == (pulls is None):
            raise TypeError(f"corrupted takes either rounds or pulls, got rounds={rounds} and pulls={pulls}")
        arm = check_count("arm", arm, least=0)
        if arm >= arms:
            raise ValueError(f"arm must be below the number of arms, {arms}, got {arm}")
        return cls(
            arm=arm,
            rounds=0 if rounds is None else check_count("rounds", rounds),
            pulls=0 if pulls is None else check_count("pulls", pulls),
            reward=check_number("reward", reward),
        )

    def __repr__(self) -> str:
        until = f"rounds={self.rounds}" if self.rounds else f"pulls={self.pulls}"
        return f".corrupted(arm={self.arm}, {until}, reward={self.reward})"


class Problem(Formula):
    """A problem with the parameters of its arms set; made by calling a family such as `Bernoulli`.

    Examples
    --------
    >>> import rightarm as ra
    >>> problem = ra.problems.Bernoulli([0.5, 0.75, 0.25])
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

    def __init__(self, family: ProblemFamily, values: Values, corruptions: tuple[Corruption, ...] = ()) -> None:
        lengths = {name: len(value) for name, value in values.items() if len(value) > 1}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{family.name}: all parameters must have one value per arm, got lengths {lengths}")
        arms = max((len(value) for value in values.values()), default=0)
        if arms == 0:
            raise ValueError(f"{family.name} needs a parameter with one value per arm, got {dict(values)}")
        full = {name: value * arms if len(value) == 1 else value for name, value in values.items()}
        super().__init__(family, full)
        self.__dict__.update(arms=arms, corruptions=corruptions)
        if family.require is not None:
            text, holds = family.require
            if not np.all(holds(**self._arrays())):
                listed = {name: list(value) for name, value in full.items()}
                raise ValueError(f"{family.name} needs {text} for every arm, got {listed}")

    @classmethod
    def check(cls, name: str, value: Any, annotation: object) -> tuple[float, ...]:
        """Return a number for all arms, or one for each."""
        if isinstance(value, str) or np.ndim(value) > 1:
            raise TypeError(f"{name} must be a number or a list of numbers, one per arm, got {value!r}")
        if np.size(value) == 0:
            raise ValueError(f"{name} must have one value per arm, got {value!r}")
        rule = rule_of(annotation)
        if np.ndim(value) == 0:
            return (check_number(name, value, rule),)
        return tuple(check_number(f"{name}[{i}]", item, rule) for i, item in enumerate(value))

    def evaluate(self, inputs: Mapping[str, Any]) -> Any:
        """Return rewards by NumPy; ``inputs["arm"]`` says whose."""
        arm = inputs["arm"]
        return self._call(inputs, {name: value[arm] for name, value in self._arrays().items()})

    def _arrays(self) -> dict[str, F64]:
        return {name: np.array(value) for name, value in self.values.items()}

    @functools.cached_property
    def means(self) -> F64:
        """Return the mean reward of every arm, corruption aside."""
        means = _moments(self, "mean", self.family.mean, power=1)
        if not np.isfinite(means).all():
            raise ValueError(f"the means of {self!r} must be finite, got {means.tolist()}")
        return means

    @functools.cached_property
    def second_moments(self) -> F64:
        """Return E X² of every arm's reward X, corruption aside; infinite where the tail is heavy enough.

        >>> import rightarm as ra
        >>> ra.problems.Gaussian([3.0, 0.0], sigma=2.0).second_moments
        array([13.,  4.])
        """
        return _moments(self, "second_moment", self.family.second_moment, power=2)

    @property
    def support(self) -> tuple[F64, F64] | None:
        """The smallest and the largest reward of every arm, corruption aside; None where the family does not state it.

        >>> import rightarm as ra
        >>> ra.problems.Uniform(low=[0.0, 0.5], high=1.0).support
        (array([0. , 0.5]), array([1., 1.]))
        """
        if self.family.support is None:
            return None
        low, high = self.family.support(**self._arrays())
        return np.broadcast_to(low, self.arms), np.broadcast_to(high, self.arms)

    def stays_within(self, low: float, high: float) -> bool:
        """Return whether it is certain that no reward is below ``low`` or above ``high``.

        >>> import rightarm as ra
        >>> ra.problems.Bernoulli([0.5]).stays_within(0.0, 1.0), ra.problems.Gaussian([0.5]).stays_within(0.0, 1.0)
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
        """Return Δ_i = μ* − μ_i of every arm."""
        gaps: F64 = self.means.max() - self.means
        gaps.setflags(write=False)
        return gaps

    def corrupted(
        self, arm: int, *, rounds: int | None = None, pulls: int | None = None, reward: float = 0.0
    ) -> Problem:
        """Return the problem in which ``arm`` pays ``reward`` at first.

        Means, gaps and regret stay those of the problem without corruption. Scenario (b) of the paper's section 6 is
        ``corrupted(arm=0, rounds=5_000, reward=0.0)``.

        Parameters
        ----------
        arm
            The index of the arm.
        rounds, pulls
            Either the first rounds or the arm's first pulls that are corrupted.
        reward
            The reward that the arm pays then.

        Examples
        --------
        >>> import rightarm as ra
        >>> ra.problems.Bernoulli([0.5, 0.4]).corrupted(arm=0, rounds=100, reward=0.0)
        Bernoulli(mean=[0.5, 0.4]).corrupted(arm=0, rounds=100, reward=0.0)
        """
        added = Corruption.checked(self.arms, arm, rounds, pulls, reward)
        return Problem(self.family, self.values, (*self.corruptions, added))

    def _key(self) -> tuple[object, ...]:
        return (*super()._key(), self.corruptions)

    def __reduce__(self) -> tuple[Function, tuple[object, ...]]:
        return Problem, (self.family, self.values, self.corruptions)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={list(value)!r}" for name, value in self.values.items())
        return f"{self.family.name}({values}){''.join(map(repr, self.corruptions))}"

    def __str__(self) -> str:
        return repr(self) if self.arms <= 12 else f"{self.family.name} with {self.arms} arms"

    def specification(self) -> Specification:
        """Return the problem as plain data, from which `problem_from_specification` makes it again."""
        return {**super().specification(), "corruptions": [asdict(corruption) for corruption in self.corruptions]}

    def describe(self) -> str:
        """Return the arms with their means and gaps, as text."""
        rows = [
            [str(arm), short(mean), short(gap)]
            for arm, (mean, gap) in enumerate(zip(self.means, self.gaps, strict=True))
        ]
        return f"{self._title()}\n{table(['arm', 'mean', 'gap'], rows, words=0)}"

    def _title(self) -> str:
        return f"{self.family.name} with {counted(self.arms, 'arm')}, the best is arm {self.best_arm}"

    def _repr_html_(self) -> str:
        """Return the arms with their parameters and means, at most `SHOWN` of them."""
        columns = {name: value for name, value in self.values.items() if name != "mean"}
        columns["mean"] = tuple(self.means.tolist())
        columns["gap"] = tuple(self.gaps.tolist())
        rows = [[i, *(short(column[i]) for column in columns.values())] for i in range(min(self.arms, SHOWN))]
        notes = [repr(corruption)[1:] for corruption in self.corruptions]
        if self.arms > SHOWN:
            notes.append(f"and {self.arms - SHOWN:,} more arms")
        return html_table(["arm", *columns], rows, title=self._title(), words=0, notes=notes)


class Statements(TypedDict, total=False):
    """The properties that a problem may state besides its formula: see `problem`."""

    mean: Function | None
    second_moment: Function | None
    require: Requirement | None
    support: Function | None


class ProblemFamily(Family):
    """A problem's formula together with what it states: see `problem`."""

    def __init__(
        self,
        function: Function,
        mean: Function | None = None,
        second_moment: Function | None = None,
        require: Requirement | None = None,
        support: Function | None = None,
    ) -> None:
        super().__init__(function, Problem)
        self.mean = mean
        self.second_moment = second_moment
        self.require = require
        self.support = support  # no part of its identity: it changes no reward

    @property
    def made_of(self) -> tuple[object, ...]:
        return (self.function, self.mean, self.second_moment)


@overload
def problem(function: Function) -> ProblemFamily: ...
@overload
def problem(**stated: Unpack[Statements]) -> Callable[[Function], ProblemFamily]: ...
def problem(
    function: Function | None = None, **stated: Unpack[Statements]
) -> ProblemFamily | Callable[[Function], ProblemFamily]:
    """Make a problem from one formula for the reward, its parameters behind a *; each takes one value per arm.

    The formula may ask for ``u`` and ``v`` (fresh noise, uniform in (0, 1)), ``w`` (fresh Gaussian noise), ``t`` (the
    round), ``pulls`` (how often the arm was pulled, this pull included) and ``arm`` (its index).

    Parameters
    ----------
    mean, second_moment
        Functions of the same parameters: E X and E X² of a reward X. Without them they are integrated numerically, on
        2²⁰ points; where that is not certain enough, as with heavy tails, an error asks for them.
    require
        What the parameters must fulfil together, in words and as a function of them.
    support
        A function of the parameters that gives the smallest and the largest reward that an arm can pay. With it the
        simulator need not check that rewards are in the range that a policy is for.

    Examples
    --------
    >>> import numpy as np, rightarm as ra
    >>> @ra.problems.problem
    ... def Triangular(u, *, high):
    ...     return high * np.sqrt(u)
    >>> Triangular(high=[3.0, 1.5]).means.round(6)
    array([2., 1.])
    """
    if function is None:
        return lambda decorated: ProblemFamily(decorated, **stated)
    return ProblemFamily(function, **stated)


def problem_from_specification(specification: Mapping[str, Any]) -> Problem:
    """Return the problem that `Problem.specification` described.

    >>> import rightarm as ra
    >>> problem_from_specification(ra.problems.Bernoulli([0.5, 0.4]).corrupted(0, rounds=10).specification())
    Bernoulli(mean=[0.5, 0.4]).corrupted(arm=0, rounds=10, reward=0.0)
    """
    bare = from_specification(specification)
    corruptions = tuple(Corruption(**corruption) for corruption in specification["corruptions"])
    return Problem(bare.family, bare.values, corruptions)


# Moments.


def _moments(problem: Problem, name: str, closed: Function | None, power: int) -> F64:
    """Return a moment of every arm: ``closed`` of the parameters, or by quadrature where that is not given."""
    if closed is not None:
        with np.errstate(over="ignore"):  # an infinite moment is a value; `Problem.means` refuses it
            moments = np.broadcast_to(np.asarray(closed(**problem._arrays()), dtype=float), (problem.arms,)).copy()
    elif "arm" in problem.inputs:
        moments = np.array([_integrate(problem, name, arm, power) for arm in range(problem.arms)])
    else:
        rows = list(zip(*problem.values.values(), strict=True))  # equal arms are integrated once
        found = {row: _integrate(problem, name, rows.index(row), power) for row in dict.fromkeys(rows)}
        moments = np.array([found[row] for row in rows])
    moments.setflags(write=False)
    return moments


def _integrate(problem: Problem, name: str, arm: int, power: int) -> float:
    """Return a moment of one arm; where it cannot be integrated, raise an error that asks for it in closed form."""
    family = problem.family.name
    words = name.replace("_", " ")
    if {"t", "pulls"} & problem.inputs:
        raise ValueError(f"{family} changes over time: give its {words} with @problem({name}=...)")
    moment, _, is_certain = quadrature(problem, arm, power)
    if not is_certain:
        raise ValueError(f"the {words} of {family} is hard to integrate: give it with @problem({name}=...)")
    return moment


def quadrature(problem: Problem, arm: int, power: int) -> tuple[float, float, bool]:
    """Return E Xᵖ of one arm over u, v and w, the deviation of Xᵖ, and whether two grids agree on it."""
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite sum is not certain
        fine = _powers(problem, arm, power, QUADRATURE)
        coarse = _powers(problem, arm, power, QUADRATURE // 2)
        moment = float(fine.mean())
        spread = float(fine.std())
        return moment, spread, bool(abs(moment - coarse.mean()) <= PRECISION * spread)


def _powers(problem: Problem, arm: int, power: int, points: int) -> F64:
    rewards = problem.evaluate({"arm": arm, **_grid(points, problem.inputs)})
    return np.asarray(np.broadcast_to(rewards, points) ** power)


def _grid(points: int, inputs: frozenset[str]) -> dict[str, F64]:
    """Return midpoints for one kind of noise; for two or three a lattice, which fills the square or the cube evenly.

    The steps of the lattice are powers of the golden ratio, or of its counterpart for the cube: the roots of
    x = 1/(1 + x) and of x = 1/(1 + x)^½. In the cube it is folded, x to 1 − |2x − 1|, and ten times as good.
    """
    asked = [name for name in ("u", "v", "w") if name in inputs]
    is_cube = len(asked) == 3
    step = 0.7548776662466927 if is_cube else (math.sqrt(5) - 1) / 2
    index = np.arange(points, dtype=np.float64)
    columns = [index * step**k % 1.0 if k else (index + 0.5) / points for k in range(len(asked))]
    if is_cube:
        columns = [1 - np.abs(2 * column - 1) for column in columns]
    inside = 0.5 / points  # u and v are never 0 or 1
    return {
        name: _gaussian_quantiles(column) if name == "w" else np.clip(column, inside, 1 - inside)
        for name, column in zip(asked, columns, strict=True)
    }


def _gaussian_quantiles(u: F64) -> F64:
    """Return Φ⁻¹ by interpolation in a table of Φ, itself a sum of the density: right to 1e-9."""
    x = np.linspace(-8.5, 8.5, 400_001)
    density = np.exp(-(x**2) / 2)
    below = np.cumsum(density) - density / 2
    return np.interp(u, below / density.sum(), x)
