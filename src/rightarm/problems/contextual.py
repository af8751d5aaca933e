"""Problems with contexts: every round has a context x, and what an arm pays depends on it.

A problem is two formulas, one that makes x from fresh noise (`rightarm.problems.contexts`) and one for the mean reward
of an arm at x. The reward is that mean with Gaussian noise, unless a third formula says otherwise.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from rightarm.display import counted, html_table, number, percent, table, wrapped
from rightarm.formula import Family, Formula, NonNegative, check_count, check_number, family_of, rule_of
from rightarm.formula.identity import identity, with_defaults
from rightarm.problems.contexts import (
    ContextDistribution,
    DataContext,
    GaussianContext,
    context_from_specification,
    finite_numbers,
)
from rightarm.problems.problem import Corruption, Function, Problem, Specification
from rightarm.types import F64

Contexts = ContextDistribution | DataContext
PerArm = tuple[float, ...] | tuple[tuple[float, ...], ...]
Part = tuple[Function, dict[str, PerArm]]  # a formula and the values of its parameters
CONTEXTS = 10_000  # contexts by which a problem is described, at most
MEANS = 200_000  # means that are computed for that, at most
SHORT = 80  # characters of a problem that stands in titles as it is
RESERVED = ("context", "mean", "reward", "noise", "arms")  # names that no parameter of a formula may have


class ContextReward(Formula):
    """The reward of an arm at x, given its mean there."""

    WORD: ClassVar[str] = "reward"
    INPUTS: ClassVar[dict[str, str]] = {
        "mean": "the mean reward of the arm in this context",
        "u": "fresh noise, uniform in (0, 1)",
        "v": "more of it, independent of u",
        "w": "fresh noise, standard Gaussian",
        "x": "the context, a row of numbers",
        "arm": "the index of the arm, counted from 0",
        "t": "the round, counted from 1",
        "label": "the label of the row, where contexts are the rows of a data set",
    }


def with_gaussian_noise(mean, w, *, noise: NonNegative):
    """Pay the mean with Gaussian noise: the reward of a problem that states no formula for it."""
    return mean + noise * w


class ContextProblem(Formula):
    """A problem with contexts from formulas of your own: one that makes x, and one for the mean reward of an arm.

    Regret is against the arm that is best in the round's context.

    Parameters
    ----------
    context
        The distribution of x, such as `GaussianContext(10)`, or a function of fresh noise, as for `context`.
    mean
        A function of ``x`` and ``arm``, also of ``t``, the round, and of ``label`` where contexts are the rows of a
        data set. Its parameters stand behind a *.
    reward
        A function of ``mean`` and of noise ``u``, ``v`` or ``w``, whose mean must be ``mean``.
    noise
        In place of ``reward``: the standard deviation of the Gaussian noise of rewards, 1 unless given.
    arms
        The number of arms, where no parameter has one value for each.
    **parameters
        The parameters of the formulas, by name: one value for each arm, or a row of numbers for each.

    Examples
    --------
    >>> import numpy as np, rightarm as ra
    >>> def visitor(u, w):
    ...     return 1.0 * (u < 0.6), w
    >>> def clicks(x, *, on_phone, elsewhere):
    ...     return np.where(x[0] > 0, on_phone, elsewhere)
    >>> problem = ra.problems.ContextProblem(
    ...     visitor, clicks, on_phone=[0.1, 0.3], elsewhere=[0.2, 0.1], reward=lambda mean, u: 1.0 * (u < mean)
    ... )
    >>> problem.arms, problem.columns, problem.means_at([1.0, 0.0])
    (2, 2, array([0.1, 0.3]))
    """

    INPUTS: ClassVar[dict[str, str]] = {name: ContextReward.INPUTS[name] for name in ("x", "arm", "t", "label")}
    WORD: ClassVar[str] = "mean"
    corruptions: tuple[Corruption, ...] = ()
    arms: int
    context: Contexts
    reward: ContextReward
    given: dict[str, Any]  # what the problem was made from

    def __init__(
        self,
        context: Contexts | Function,
        mean: Function,
        *,
        reward: Function | None = None,
        noise: float | None = None,
        arms: int | None = None,
        **parameters: ArrayLike,
    ) -> None:
        given = {"context": context, "mean": mean, "reward": reward, "noise": noise, "arms": arms, **parameters}
        self._make({name: value for name, value in given.items() if value is not None})

    def _make(self, given: dict[str, Any]) -> None:
        """Check what the problem is made of, and take it over; ``given`` makes it again."""
        context = ContextDistribution.accept("context", given["context"])
        means = Family(given["mean"], ContextProblem)
        _check_names(means)
        parameters = {name: value for name, value in given.items() if name not in RESERVED}
        if "reward" in given:
            if "noise" in given:
                raise TypeError(f"noise is for problems without a reward of their own, got {given['noise']!r}")
            rewards = Family(given["reward"], ContextReward)
            _check_names(rewards)
        else:
            rewards = Family(with_gaussian_noise, ContextReward)
            parameters["noise"] = check_number("noise", given.get("noise", 1.0), rule_of(NonNegative))
        values = _bind([means, rewards], parameters)
        arms = _count_arms(given.get("arms"), values)
        full = {name: value * arms if len(value) == 1 else value for name, value in values.items()}
        self._assemble(_part(means, full), _part(rewards, full), context=context, arms=arms)
        checked = {name: value[0] if len(value) == 1 else value for name, value in values.items() if name in given}
        self.__dict__["given"] = {**given, "context": context, **checked}
        self.means_at(np.full(context.columns, 0.25))  # raises if the formula does not work

    def _assemble(self, mean: Part, reward: Part, **others: object) -> None:
        """Consist of these formulas with the values of their parameters, all of which are checked."""
        super().__init__(Family(mean[0], ContextProblem), mean[1])
        self.__dict__.update(others, reward=ContextReward(Family(reward[0], ContextReward), reward[1]))

    @property
    def columns(self) -> int:
        """The length of a context."""
        return self.context.columns

    def means_at(self, x: ArrayLike, t: float = 1.0, label: float = 0.0) -> F64:
        """Return the mean reward of every arm in the context ``x``, by NumPy.

        >>> LinearProblem([[1.0, 0.0], [0.0, 2.0]]).means_at([0.5, 0.75])
        array([0.5, 1.5])
        """
        row = np.asarray(x, dtype=float)
        if row.shape != (self.columns,):
            raise ValueError(f"x must have {counted(self.columns, 'number')}, got {x!r:.80}")
        inputs = {"x": row, "t": t, "label": label}
        values = [self._call({**inputs, "arm": arm}, self._values_of(arm)) for arm in range(self.arms)]
        try:
            means = np.array([float(value) for value in values])
        except (TypeError, ValueError):
            raise TypeError(f"{self.family.name} must give one number for each arm, got {values!r:.200}") from None
        if not np.isfinite(means).all():
            raise ValueError(f"{self.family.name} must give finite means, got {means.tolist()} at x = {row.tolist()}")
        return means

    def reward_at(self, arm: int, mean: float, x: ArrayLike, noise: Mapping[str, Any], **others: float) -> Any:
        """Return the rewards of one arm in the context ``x``, where its mean is ``mean``, for some noise, by NumPy."""
        values = {name: value[arm] for name, value in self.reward.values.items()}
        inputs = {"t": 1.0, "label": 0.0, **others, **noise, "x": np.asarray(x), "arm": arm, "mean": mean}
        return self.reward._call(inputs, values)

    def _values_of(self, arm: int) -> dict[str, Any]:
        values = {name: value[arm] for name, value in self.values.items()}
        return {name: np.array(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def describe(self) -> str:
        """Return as text how often each arm is the best, and what an arm would lose if it were always chosen.

        By 10,000 contexts of a fixed seed in round 1, or by the data; fewer where there are more than 20 arms.

        >>> print(Classification(X=[[0.1], [0.3], [5.0]], y=["cat", "cat", "dog"]).describe())
        Classification of 3 rows of 1 column into 2 classes, by 3 contexts
        arm  best in   mean  regret per round
        cat    66.7%  0.667             0.333
        dog    33.3%  0.333             0.667
        The best arm for all contexts is cat: it loses 0.333 per round against the best
        arm of each context.
        """
        contexts, labels = self.context.sample(min(CONTEXTS, max(MEANS // self.arms, 1)), np.random.default_rng(1))
        means = np.array([self.means_at(x, label=label) for x, label in zip(contexts, labels, strict=True)])
        largest = means.max(axis=1, keepdims=True)
        is_best = means == largest
        shares = (is_best / is_best.sum(axis=1, keepdims=True)).mean(axis=0)
        lost = (largest - means).mean(axis=0)
        names = self._arm_names()
        rows = [
            [names[arm], percent(shares[arm]), number(means[:, arm].mean(), 3), number(lost[arm], 3)]
            for arm in range(self.arms)
        ]
        best = int(np.argmin(lost))
        conclusion = (
            f"The best arm for all contexts is {names[best]}: it loses {number(lost[best], 3)} per round against the "
            "best arm of each context."
        )
        shown = table(["arm", "best in", "mean", "regret per round"], rows)
        title = f"{self}, by {counted(len(means), 'context')}"
        return f"{wrapped(title)}\n{shown}\n{wrapped(conclusion)}"

    def _arm_names(self) -> list[str]:
        return [str(arm) for arm in range(self.arms)]

    def stays_within(self, low: float, high: float) -> bool:
        """Return whether it is certain that no reward is below ``low`` or above ``high``; of any formula it is not."""
        return False

    def corrupted(self, *arguments: object, **keywords: object) -> NoReturn:
        """Raise: corrupted rewards are for problems without contexts."""
        raise ValueError(f"corrupted is for problems without contexts, got {self}")

    # The problem as a value.

    def _key(self) -> tuple[object, ...]:
        return (type(self), *super()._key(), self.context, self.reward, self.arms)

    def __reduce__(self) -> tuple[Function, tuple[object, ...]]:
        parts = [(formula.family.function, formula.values) for formula in (self, self.reward)]
        others = {name: vars(self)[name] for name in ("context", "arms", "given", "classes") if name in vars(self)}
        return _assembled, (type(self), parts, others)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={_shown(value)}' for name, value in self.given.items())})"

    def __str__(self) -> str:
        """Return a short text, for titles."""
        if len(repr(self)) <= SHORT:
            return repr(self)
        return f"{self._title()} with {counted(self.arms, 'arm')} and {counted(self.columns, 'column')}"

    def _title(self) -> str:
        return self.family.name

    def _repr_html_(self) -> str:
        rows = [[name, _shown(value)[:200]] for name, value in self.given.items()]
        return html_table(["parameter", "values"], rows, title=str(self), words=2)

    def specification(self) -> Specification:
        """Return the problem as plain data, from which `any_problem_from_specification` makes it again."""
        functions = {name: value for name, value in self.given.items() if isinstance(value, types.FunctionType)}
        plain = {name: value for name, value in self.given.items() if name not in ("context", *functions)}
        return {
            "contexts": type(self).__name__,
            **_address(self.family.function),
            "parameters": plain,
            "context": self.context.specification(),
            "parts": {name: _address(function) for name, function in functions.items()},
        }


def linear(x, *, theta, offset):
    """Return x·theta + offset."""
    return np.sum(x * theta) + offset


class LinearProblem(ContextProblem):
    """Arms that pay x·theta_k + offset_k on average, with Gaussian noise; each arm has its coefficients.

    Parameters
    ----------
    theta
        A row of coefficients for each arm.
    context
        The distribution of x; independent standard Gaussians unless given.
    noise
        The standard deviation of rewards about their mean.
    offset
        A number for all arms, or one for each.

    Examples
    --------
    >>> import rightarm as ra
    >>> problem = ra.problems.LinearProblem([[1.0, 0.0], [0.0, 1.0]], noise=0.5)
    >>> problem
    LinearProblem(theta=[[1.0, 0.0], [0.0, 1.0]], context=GaussianContext(columns=2, mean=0.0, sigma=1.0), noise=0.5)
    >>> result = ra.simulate(ra.UCB(C=0.5), problem, horizon=1_000, replications=8, seed=1)
    """

    def __init__(
        self,
        theta: ArrayLike,
        context: Contexts | Function | None = None,
        noise: float = 1.0,
        offset: float | Sequence[float] = 0.0,
    ) -> None:
        rows = per_arm("theta", theta)
        if not isinstance(rows[0], tuple):
            raise TypeError(f"theta must have a row of coefficients for each arm, got {theta!r}")
        width = len(rows[0])
        contexts = ContextDistribution.accept("context", GaussianContext(width) if context is None else context)
        if contexts.columns != width:
            raise ValueError(
                f"theta must have {contexts.columns} coefficients for each arm, one for each column, got {width}"
            )
        offsets = per_arm("offset", offset)
        self._make(
            {"context": contexts, "mean": linear, "theta": rows, "offset": offsets, "noise": noise, "arms": len(rows)}
        )
        given = {"theta": rows, "context": contexts, "noise": self.reward.values["noise"][0]}
        if offsets != (0.0,):
            given["offset"] = offsets[0] if len(offsets) == 1 else offsets
        self.__dict__["given"] = given

    def _title(self) -> str:
        return "LinearProblem"


def right(label, arm):
    """Return 1 if the arm is the label of the row, else 0."""
    return 1.0 * (label == arm)


class Classification(ContextProblem):
    """A data set as a bandit: the arms are the classes, and the reward is 1 for the class of the row, else 0.

    Every replication gets the rows in another random order, each row once before any comes again. The regret is the
    number of mistakes.

    Parameters
    ----------
    X
        Rows of numbers.
    y
        The class of each row, numbers or texts.

    Examples
    --------
    >>> import rightarm as ra
    >>> problem = ra.problems.Classification(X=[[0.1, 2.0], [0.3, 1.0], [5.0, 1.5]], y=["cat", "cat", "dog"])
    >>> problem
    <Classification: 3 rows, 2 columns, classes cat, dog>
    """

    classes: tuple[Any, ...]
    context: DataContext

    def __init__(self, X: ArrayLike, y: Sequence[object] | ArrayLike) -> None:
        listed = list(np.asarray(y).tolist())
        data = finite_numbers("X", X, 2)
        if len(listed) != len(data):
            raise ValueError(f"y must have a class for each of {len(data)} rows of X, got {len(listed)}")
        try:
            classes = sorted(set(listed))
        except TypeError:
            raise TypeError(f"y must be classes that can be put in order, got {listed!r:.200}") from None
        if len(classes) < 2:
            raise ValueError(f"y must have two classes at least, got {classes}")
        places = {name: place for place, name in enumerate(classes)}
        rows = DataContext(data, [places[name] for name in listed])
        self._make({"context": rows, "mean": right, "noise": 0.0, "arms": len(classes)})
        self.__dict__.update(classes=tuple(classes), given={"y": listed})

    def _arm_names(self) -> list[str]:
        return [str(name) for name in self.classes]

    def stays_within(self, low: float, high: float) -> bool:
        return low <= 0 and high >= 1

    def _key(self) -> tuple[object, ...]:
        return (*super()._key(), self.classes)

    def __repr__(self) -> str:
        names = self._arm_names()
        shown = names if len(names) <= 12 else [*names[:3], "…", names[-1]]
        size = f"{counted(self.context.rows, 'row')}, {counted(self.columns, 'column')}"
        return f"<Classification: {size}, classes {', '.join(shown)}>"

    def __str__(self) -> str:
        size = f"{counted(self.context.rows, 'row')} of {counted(self.columns, 'column')}"
        return f"Classification of {size} into {self.arms} classes"

    def _repr_html_(self) -> str:
        labels = self.context.labels
        rows = [[name, int((labels == place).sum())] for place, name in enumerate(self._arm_names())]
        return html_table(["class", "rows"], rows, title=repr(self)[1:-1], words=1)

    def specification(self) -> Specification:
        return {**super().specification(), "parameters": {"classes": list(self.classes)}}


KINDS: dict[str, type[ContextProblem]] = {
    kind.__name__: kind for kind in (ContextProblem, LinearProblem, Classification)
}


def context_problem_from_specification(specification: Mapping[str, Any]) -> ContextProblem:
    """Return the problem that `ContextProblem.specification` described.

    >>> context_problem_from_specification(LinearProblem([[1.0], [2.0]]).specification()).arms
    2
    """
    kind = KINDS[specification["contexts"]]
    contexts = context_from_specification(specification["context"])
    plain = specification["parameters"]
    family_of(specification)  # raises if the formula is another one now
    if kind is Classification:
        assert isinstance(contexts, DataContext)
        return Classification(contexts.data, [plain["classes"][int(label)] for label in contexts.labels])
    functions = {name: family_of({**part, "parameters": {}}) for name, part in specification["parts"].items()}
    return kind(**functions, **plain, context=contexts)


def _assembled(kind: type[ContextProblem], parts: Sequence[Part], others: Mapping[str, object]) -> ContextProblem:
    """Return the problem in another process, where annotations may not be at hand to check values again."""
    problem = kind.__new__(kind)
    problem._assemble(parts[0], parts[1], **others)
    return problem


def _part(family: Family, values: Mapping[str, PerArm]) -> Part:
    """Return a formula with the values of its parameters."""
    return family.function, {parameter.name: values[parameter.name] for parameter in family.parameters}


def _check_names(family: Family) -> None:
    for parameter in family.parameters:
        if parameter.name in RESERVED:
            raise TypeError(
                f"{family.name}: the parameter {parameter.name!r} has the name of something that every problem "
                "with contexts has; choose another"
            )


def _address(function: types.FunctionType) -> dict[str, str]:
    name = f"{function.__module__}:{function.__qualname__}"
    return {"formula": name, "code": identity(*with_defaults(function))}


def _bind(families: Sequence[Family], given: Mapping[str, object]) -> dict[str, PerArm]:
    """Return the parameters of the formulas with their values, or raise; there must be no others."""
    parameters = {parameter.name: (family, parameter) for family in families for parameter in family.parameters}
    for name, value in given.items():
        if name not in parameters:
            listed = ", ".join(parameters) or "none"
            raise TypeError(f"{families[0].name} has no parameter {name!r}, got {value!r:.60}; it has {listed}")
    values = {}
    for name, (family, parameter) in parameters.items():
        value = given.get(name, parameter.default)
        if value is parameter.empty:
            raise TypeError(f"{family.name} needs a value of {name}, or one for each arm")
        values[name] = per_arm(name, value, family.annotations.get(name))
    return values


def per_arm(name: str, value: Any, annotation: object = None) -> PerArm:
    """Return a number for all arms, one for each, or a row of numbers for each; raise if it is none of these."""
    try:
        dimensions = np.ndim(value)
    except ValueError:
        raise ValueError(f"{name} must have rows of one length, got {value!r:.200}") from None
    if dimensions != 2:
        return Problem.check(name, value, annotation)
    rows = tuple(
        tuple(check_number(f"{name}[{i}, {j}]", number) for j, number in enumerate(row)) for i, row in enumerate(value)
    )
    if not rows or not rows[0]:
        raise ValueError(f"{name} must have a row of numbers for each arm, got {value!r}")
    return rows


def _count_arms(stated: int | None, values: Mapping[str, PerArm]) -> int:
    """Return the number of arms: as stated, and as many as the parameters that have a value for each."""
    lengths = {name: len(value) for name, value in values.items() if len(value) > 1}
    if stated is not None:
        lengths["arms"] = check_count("arms", stated)
    if not lengths:
        raise ValueError("arms must be given, because no parameter has one value for each arm")
    if len(set(lengths.values())) > 1:
        raise ValueError(f"all parameters must have one value per arm, got lengths {lengths}")
    return next(iter(lengths.values()))


def _shown(value: object) -> str:
    if isinstance(value, types.FunctionType):
        return value.__name__
    if isinstance(value, tuple):
        return repr([list(each) if isinstance(each, tuple) else each for each in value])
    return repr(value)
