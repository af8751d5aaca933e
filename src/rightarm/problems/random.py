"""Problems drawn afresh for every replication: what a policy loses on average over them is its Bayesian regret."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rightarm.display import html_table
from rightarm.formula import Formula, check_count, family_of, from_specification
from rightarm.noise import Gaussian
from rightarm.noise.law import compiled_law
from rightarm.problems.contextual import ContextProblem, context_problem_from_specification
from rightarm.problems.problem import (
    Corruption,
    Function,
    Problem,
    ProblemFamily,
    Specification,
    problem_from_specification,
)
from rightarm.streams import fill_luck, initial_stream
from rightarm.types import F64, U32

Parameter = Problem | float | Sequence[float] | F64
BLOCK = 32  # replications drawn together; always the same 32, because vector code may round by the place in a block


class RandomProblem(Formula):
    """Problems of one family, whose parameters every replication draws afresh; the mean regret is the Bayesian regret.

    The distribution of a parameter is itself a problem, what it pays being the parameter's value: one of its arms for
    each arm, or a problem of one arm for a value that all arms share. Parameters given as numbers are fixed.
    Replication r of every policy meets the same problem, and its regret counts the gaps of that problem.

    Parameters
    ----------
    family
        A family of problems, such as `Bernoulli`.
    *arguments, **parameters
        Its parameters: numbers, or problems from which they are drawn.

    Examples
    --------
    >>> import rightarm as ra
    >>> problem = ra.problems.RandomProblem(ra.problems.Bernoulli, mean=ra.problems.Uniform(low=[0.0] * 3, high=1.0))
    >>> problem.draw(seed=1, replication=0).means.round(3)
    array([0.758, 0.084, 0.587])
    >>> result = ra.simulate(ra.BoltzmannGumbel(C=0.5), problem, horizon=100, replications=50, seed=1)
    >>> result.means.shape
    (50, 3)
    """

    family: ProblemFamily
    arms: int
    corruptions: tuple[Corruption, ...]

    def __init__(self, family: ProblemFamily, /, *arguments: Parameter, **parameters: Parameter) -> None:
        if not isinstance(family, ProblemFamily):
            raise TypeError(f"a random problem is made of a family of problems such as Bernoulli, got {family!r}")
        if family.mean is None:
            raise ValueError(
                f"a random problem needs means in closed form: give {family.name}'s with @problem(mean=...)"
            )
        given = family.bind(*arguments, **parameters)
        values = {name: _check_parameter(family, name, value) for name, value in given.items()}
        if not any(isinstance(value, Problem) for value in values.values()):
            raise ValueError(
                f"a random problem needs a problem such as Uniform() for one of its parameters, got {given}"
            )
        lengths = {name: value.arms if isinstance(value, Problem) else len(value) for name, value in values.items()}
        arms = max(lengths.values())
        if set(lengths.values()) - {1, arms}:
            raise ValueError(f"{family.name}: all parameters must have one value per arm, got lengths {lengths}")
        full = {
            name: value * arms if isinstance(value, tuple) and len(value) == 1 else value
            for name, value in values.items()
        }
        self.__dict__.update(family=family, values=full, arms=arms, corruptions=())

    @property
    def inputs(self) -> frozenset[str]:
        """Names of what a reward depends on besides the parameters."""
        return frozenset(self.family.inputs)

    def draw(self, seed: int, replication: int) -> Problem:
        """Return the problem of one replication of a simulation with this seed.

        >>> from rightarm.problems import Deterministic, Gaussian
        >>> RandomProblem(Gaussian, mean=Deterministic([0.0, 1.0]), sigma=0.5).draw(seed=1, replication=0)
        Gaussian(mean=[0.0, 1.0], sigma=[0.5, 0.5])
        """
        seed = check_count("seed", seed, least=0)
        replication = check_count("replication", replication, least=0)
        block, lane = divmod(replication, BLOCK)
        values = {name: numbers[:, lane].tolist() for name, numbers in _draw_block(self, seed, block).items()}
        try:
            drawn = self.family(**values)
        except ValueError as error:
            raise ValueError(f"{error}, drawn in replication {replication} of {self}") from None
        return Problem(self.family, drawn.values, self.corruptions)

    def corrupted(
        self, arm: int, *, rounds: int | None = None, pulls: int | None = None, reward: float = 0.0
    ) -> RandomProblem:
        """Return the random problem in which ``arm`` is corrupted, as in `Problem.corrupted`."""
        added = Corruption.checked(self.arms, arm, rounds, pulls, reward)
        return _random_problem(self.family, self.values, (*self.corruptions, added))

    def _key(self) -> tuple[object, ...]:
        return (RandomProblem, *super()._key(), self.corruptions)

    def __reduce__(self) -> tuple[Function, tuple[object, ...]]:
        return _random_problem, (self.family, self.values, self.corruptions)

    def __repr__(self) -> str:
        values = (f"{n}={list(v) if isinstance(v, tuple) else v!r}" for n, v in self.values.items())
        return f"RandomProblem({', '.join([self.family.name, *values])}){''.join(map(repr, self.corruptions))}"

    def __str__(self) -> str:
        """Return a short text, for titles: a value that all arms share is written once."""
        values = ", ".join(f"{name}{_short(value)}" for name, value in self.values.items())
        return f"random {self.family.name}({values}) with {self.arms} arms{''.join(map(repr, self.corruptions))}"

    def _repr_html_(self) -> str:
        rows = [[name, _short(value).removeprefix(" ").removeprefix("=")] for name, value in self.values.items()]
        notes = [repr(corruption)[1:] for corruption in self.corruptions]
        head = f"{self.family.name} with {self.arms} arms, drawn afresh for every replication"
        return html_table(["parameter", "values"], rows, title=head, words=2, notes=notes)

    def specification(self) -> Specification:
        """Return the random problem as plain data, from which `any_problem_from_specification` makes it again."""
        corruptions = [vars(corruption) for corruption in self.corruptions]
        return {"random": True, **super().specification(), "corruptions": corruptions}


def _random_problem(
    family: ProblemFamily, values: Mapping[str, Parameter], corruptions: tuple[Corruption, ...]
) -> RandomProblem:
    made = RandomProblem(family, **values)
    made.__dict__["corruptions"] = corruptions
    return made


def _check_parameter(family: ProblemFamily, name: str, value: object) -> Problem | tuple[float, ...]:
    """Return the problem that a parameter is drawn from, or its fixed values, or raise."""
    if not isinstance(value, Formula):
        return Problem.check(name, value, family.annotations.get(name))
    if not isinstance(value, Problem):
        raise TypeError(f"{name} must be numbers or a problem such as Uniform(low=[0.0, 0.0], high=1.0), got {value!r}")
    if value.corruptions or value.inputs & {"t", "pulls"}:
        raise ValueError(f"{name} must be drawn from a problem that does not change over time, got {value!r}")
    return value


def _short(value: Problem | tuple[float, ...]) -> str:
    if isinstance(value, Problem):
        inner = ", ".join(f"{name}{_short(numbers)}" for name, numbers in value.values.items())
        return f" ~ {value.family.name}({inner})"
    texts = [f"{number:.6g}" for number in value]
    if len(set(texts)) == 1:
        return f"={texts[0]}"
    return f"=[{', '.join(texts if len(texts) <= 12 else [*texts[:3], '…', texts[-1]])}]"


@functools.lru_cache(maxsize=64)
def _draw_block(problem: RandomProblem, seed: int, block: int) -> dict[str, F64]:
    """Return the parameters of the replications of one block, arms × replications, drawn in the family's order."""
    state = initial_stream(seed, "parameters", block * BLOCK, BLOCK)
    drawn = {}
    for name, value in problem.values.items():
        numbers = _draw(value, state) if isinstance(value, Problem) else np.array(value)[:, None]
        drawn[name] = np.broadcast_to(numbers, (problem.arms, BLOCK))
    return drawn


def _draw(problem: Problem, state: U32) -> F64:
    """Return what each arm pays once in each lane, arms × lanes; each arm has the noise of a round."""
    arms = problem.arms
    lanes = state.shape[1]
    asked = [name in problem.inputs for name in ("u", "v", "w")]
    words = np.zeros((arms, 2 * asked[0] + 2 * asked[1] + asked[2], lanes), np.uint32)
    uniform = np.zeros((arms, 2, lanes))
    w = np.zeros((arms, lanes), np.float32)
    if any(asked):
        fill_luck(arms, state, compiled_law(Gaussian()), *asked, words, uniform, w)
    noise = {"u": uniform[:, 0], "v": uniform[:, 1], "w": w.astype(np.float64)}
    with np.errstate(all="ignore"):  # a value that is not finite is refused where it is drawn, by name
        paid = problem.evaluate({"arm": np.arange(arms)[:, None], **noise})
    return np.broadcast_to(np.asarray(paid, dtype=np.float64), (arms, lanes))


AnyProblem = Problem | RandomProblem | ContextProblem
"""All that can be simulated."""


def any_problem_from_specification(specification: Mapping[str, Any]) -> AnyProblem:
    """Return the problem, random problem or problem with contexts that its ``specification()`` described.

    >>> from rightarm.problems import Bernoulli, Uniform
    >>> problem = RandomProblem(Bernoulli, mean=Uniform(low=[0.0, 0.5], high=1.0))
    >>> any_problem_from_specification(problem.specification()) == problem
    True
    """
    if "contexts" in specification:
        return context_problem_from_specification(specification)
    if not specification.get("random"):
        return problem_from_specification(specification)
    values = {
        name: from_specification(value) if isinstance(value, Mapping) else value
        for name, value in specification["parameters"].items()
    }
    corruptions = tuple(Corruption(**each) for each in specification["corruptions"])
    return _random_problem(family_of(specification), values, corruptions)
