"""Problems: what the arms pay. A problem is a formula for a reward, with one parameter value for each arm."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from rightarm.formula import (
    Family,
    Formula,
    check_count,
    check_number,
    define,
    from_specification,
    rule_of,
)
from rightarm.formula.compile import pointer, positional

Requirement = tuple[str, Callable[..., Any]] | None
QUADRATURE = 1 << 20  # points behind a moment that is not given in closed form
PRECISION = 2e-5  # of the standard deviation of what is averaged, to which such a moment must be certain


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
    def means(self) -> NDArray[np.float64]:
        """The mean reward of every arm, corruption aside."""
        means = self._moments("mean", self.family.mean, power=1)
        if not np.isfinite(means).all():
            raise ValueError(f"the means of {self!r} must be finite, got {means.tolist()}")
        return means

    @functools.cached_property
    def second_moments(self) -> NDArray[np.float64]:
        """E X² of every arm's reward X, corruption aside; infinite where the tail is heavy enough.

        >>> import rightarm as ra
        >>> ra.Gaussian([3.0, 0.0], sigma=2.0).second_moments
        array([13.,  4.])
        """
        return self._moments("second_moment", self.family.second_moment, power=2)

    def _moments(self, name: str, closed: Callable[..., Any] | None, power: int) -> NDArray[np.float64]:
        """A moment of every arm: ``closed`` of the parameters, or by quadrature where that is not given."""
        if closed is not None:
            values = {name: np.array(value) for name, value in self.values.items()}
            with np.errstate(over="ignore"):  # infinite is a value here, and whoever minds says so
                moments = np.broadcast_to(np.asarray(closed(**values), dtype=float), (self.arms,)).copy()
        else:
            rows = list(zip(*self.values.values(), strict=True))
            alike = rows if "arm" not in self.inputs else list(range(self.arms))  # equal arms are integrated once
            arms = {row: arm for arm, row in enumerate(alike)}
            found = {row: self._by_quadrature(name, arm, power) for row, arm in arms.items()}
            moments = np.array([found[row] for row in alike])
        moments.setflags(write=False)
        return moments

    def _by_quadrature(self, name: str, arm: int, power: int) -> float:
        """A moment of one arm, or an error that asks for it."""
        family, argument = self.family.name, f"@problem({name}=...)"
        if {"t", "pulls"} & self.inputs:
            raise ValueError(f"{family} changes over time: give its {name.replace('_', ' ')} with {argument}")
        moment, _, certain = self.quadrature(arm, power)
        if not certain:
            raise ValueError(f"the {name.replace('_', ' ')} of {family} is hard to integrate: give it with {argument}")
        return moment

    def quadrature(self, arm: int, power: int) -> tuple[float, float, bool]:
        """E Xᵖ of one arm over u, v and w, the deviation of Xᵖ, and whether two grids agree to a small part of it."""
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite sum is not certain
            fine, coarse = (
                np.broadcast_to(self.evaluate({"arm": arm, **_grid(points, self.inputs)}), points) ** power
                for points in (QUADRATURE, QUADRATURE // 2)
            )
            moment, spread = float(fine.mean()), float(fine.std())
            return moment, spread, bool(abs(moment - coarse.mean()) <= PRECISION * spread)

    @property
    def best_arm(self) -> int:
        """The index of the arm with the largest mean, the first of them if several share it."""
        return int(np.argmax(self.means))

    @functools.cached_property
    def gaps(self) -> NDArray[np.float64]:
        """Δ_i = μ* − μ_i."""
        gaps: NDArray[np.float64] = self.means.max() - self.means
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
        rows = [f"{'arm':>5} {'mean':>12} {'gap':>12}"]
        rows += [f"{i:>5} {m:>12.6g} {g:>12.6g}" for i, (m, g) in enumerate(zip(self.means, self.gaps, strict=True))]
        return "\n".join([f"{self.family.name} with {self.arms} arms, the best is arm {self.best_arm}", *rows])


def _grid(points: int, inputs: frozenset[str]) -> dict[str, NDArray[np.float64]]:
    """Midpoints for one kind of noise; for two or three a lattice, which fills the square or the cube evenly.

    The steps of the lattice are powers of the golden ratio, or of its counterpart for the cube: the roots of
    x = 1/(1 + x) and of x = 1/(1 + x)^½. In the cube it is folded, x to 1 − |2x − 1|, and ten times as good.
    """
    asked = [name for name in ("u", "v", "w") if name in inputs]
    cube = len(asked) == 3
    step = 0.7548776662466927 if cube else (math.sqrt(5) - 1) / 2
    index = np.arange(points, dtype=np.float64)
    columns = [index * step**k % 1.0 if k else (index + 0.5) / points for k in range(len(asked))]
    if cube:
        columns = [1 - np.abs(2 * column - 1) for column in columns]
    inside = 0.5 / points  # u and v are never 0 or 1
    return {
        name: _gaussian_quantiles(column) if name == "w" else np.clip(column, inside, 1 - inside)
        for name, column in zip(asked, columns, strict=True)
    }


def _gaussian_quantiles(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Φ⁻¹ by interpolation in a table of Φ, itself a sum of the density: right to 1e-9."""
    x = np.linspace(-8.5, 8.5, 400_001)
    density = np.exp(-(x**2) / 2)
    below = np.cumsum(density) - density / 2
    return np.interp(u, below / density.sum(), x)


class ProblemFamily(Family):
    """A problem's formula together with its moments, where they are known in closed form."""

    def __init__(
        self,
        function: Callable[..., Any],
        mean: Callable[..., Any] | None = None,
        second_moment: Callable[..., Any] | None = None,
        require: Requirement = None,
    ) -> None:
        super().__init__(function, Problem)
        self.mean, self.second_moment, self.require = mean, second_moment, require

    @property
    def identity(self) -> tuple[Any, ...]:
        return (self.function, self.mean, self.second_moment)


@overload
def problem(function: Callable[..., Any]) -> ProblemFamily: ...
@overload
def problem(
    *,
    mean: Callable[..., Any] | None = None,
    second_moment: Callable[..., Any] | None = None,
    require: Requirement = None,
) -> Callable[[Callable[..., Any]], ProblemFamily]: ...
def problem(
    function: Callable[..., Any] | None = None,
    *,
    mean: Callable[..., Any] | None = None,
    second_moment: Callable[..., Any] | None = None,
    require: Requirement = None,
) -> Any:
    """Make a problem from one formula for the reward, its parameters behind a *; each takes one value per arm.

    The formula may ask for ``u`` and ``v`` (fresh noise, uniform in (0, 1)), ``w`` (fresh Gaussian noise), ``t`` (the
    round), ``pulls`` (how often the arm was pulled, this pull included) and ``arm`` (its index).

    ``require`` is what the parameters must fulfil together, in words and as a function of them.
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
        return functools.partial(problem, mean=mean, second_moment=second_moment, require=require)
    return ProblemFamily(function, mean, second_moment, require)


def problem_from_specification(specification: Mapping[str, Any]) -> Problem:
    """The problem that `Problem.specification` described.

    >>> import rightarm as ra
    >>> problem_from_specification(ra.Bernoulli([0.5, 0.4]).corrupted(0, rounds=10).specification())
    Bernoulli(mean=[0.5, 0.4]).corrupted(arm=0, rounds=10, reward=0.0)
    """
    bare = from_specification(specification)
    corruptions = tuple(Corruption(**corruption) for corruption in specification["corruptions"])
    return Problem(bare.family, bare.values, corruptions)


# The compiled form: rewards of one round, a lane being a replication.

REWARD = "void(float64, int64[::1], float64[::1], float64[:,::1], float32[::1], float64[:,::1], float64[::1])"


def reward_lanes(t: float, arm: Any, pulls: Any, uniform: Any, w: Any, numbers: Any, out: Any) -> None:
    """Rewards of the pulled arms; ``numbers`` has a row for each parameter, in it the arms, or the arms × lanes."""
    for lane in range(out.size):
        u, v, w_lane = uniform[0, lane], uniform[1, lane], np.float64(w[lane])
        out[lane] = reward(t, pulls[lane], arm[lane], u, v, w_lane, numbers, lane, out.size)


def reward(
    t: float, pulls: float, arm: int, u: float, v: float, w: float, numbers: Any, lane: int, lanes: int
) -> float:
    """Stands in `reward_lanes` for the problem's formula."""
    raise NotImplementedError


def compiled_reward(problem: Problem, *others: Problem) -> tuple[Any, NDArray[np.float64]]:
    """The compiled rewards and the numbers they take, of one problem for all lanes or of a problem for each."""
    column = "arm * lanes + lane" if others else "arm"
    parameters = [f"numbers[{i}, {column}]" for i in range(len(problem.values))]
    expression = f"formula({', '.join([*problem.family.inputs, *parameters])})"
    functions = {"formula": positional(problem.family.function)}
    subject = f"the problem {problem.family.name}"
    function = pointer(
        subject,
        reward_lanes,
        REWARD,
        reward=define("reward", "t, pulls, arm, u, v, w, numbers, lane, lanes", expression, functions),
    )
    numbers = np.array([list(each.values.values()) for each in (problem, *others)], dtype=np.float64)
    return function, np.moveaxis(numbers, 0, -1).reshape(len(problem.values), -1)
