"""Ridge regression on a context: the estimator that makes every policy contextual."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rightarm.contexts import Features
from rightarm.contexts.moments import COUNT, MEAN, ROUNDING, SQUARES, standardised, take
from rightarm.errors import WrongType, WrongValue
from rightarm.estimators.arrowhead import learn as arrowhead_learn
from rightarm.estimators.estimator import BETWEEN, Estimator
from rightarm.estimators.statistics import count_reward
from rightarm.formula import Rule, check_number
from rightarm.formula.compile import Kernel, jit
from rightarm.types import F64, I64

NOT_NEGATIVE = Rule("at least 0", lambda x: x >= 0)
# Before any reward a prediction is worth ridge/|row|² pulls, and |row|² is about the number of standardised numbers. So
# with this share of them as the ridge many numbers make no more doubt than few; see docs/contexts.md.
RIDGE_SHARE = 1 / 8
STRONGER = 100.0  # how much stronger the ridge of private columns is beside shared ones; see docs/contexts.md
SHOWN = 8  # columns that a short text names
INTERCEPT = -1  # stands among the numbers of columns for a column of ones


class Linear(Estimator):
    """Ridge regression of rewards on a context: the `mean` of an arm is its prediction, the `pulls` what that is worth.

    mean = row · θ̂,  pulls = 1 / (rowᵀ A⁻¹ row),  A = ridge + Σ row rowᵀ,  θ̂ = A⁻¹ Σ row · reward

    With it every policy that looks at means and pulls is contextual: `UCB` is LinUCB, `BoltzmannGumbel` LinBGE,
    `GaussianThompson` a linear Thompson sampling that perturbs each arm by itself (not one joint draw of θ). With a
    row of a single 1 and no ridge, mean and pulls are the mean and the number of the arm's rewards.

    - ``features``: what a context has: a `Features`, a list of names of numbers, or a number of columns.
    - ``arm_features``: what an arm has, if anything, in the same way; the values come with each decision.
    - ``private``: the context features for which every arm has coefficients of its own: all if arms have no features,
      else none, unless given as a list of names, True or False. The others are shared, as are features of arms.
    - ``interactions``: besides the features of an arm also their products with those of the context.
    - ``ridge``: how strongly coefficients are drawn to 0, in rewards of a standardised feature; unless given an eighth
      of the number of features that are standardised, 1 at least. ``private_ridge``: the same for private columns
      beside shared ones; a hundred times ``ridge`` unless given.
    - ``standardise``: numbers are centred and scaled by what was seen so far, this context included. Leave it out where
      all are of about the size of 1 already, such as pixels from 0 to 1 or embeddings.
    - ``intercept``: a column of ones, private if any is.
    - ``discount``: every reward counts the less the more rewards came after it, by this factor for each.

    Li, Chu, Langford, Schapire: A Contextual-Bandit Approach to Personalized News Article Recommendation, WWW 2010.

    >>> import rightarm as ra
    >>> policy = ra.BoltzmannGumbel(C=0.05, estimator=ra.Linear(["hour", "age"]))
    >>> bandit = ra.Bandit(["red", "blue"], policy, seed=1)
    >>> decision = bandit.ask(context={"hour": 21, "age": 35})
    >>> bandit.tell(decision, 1.0)
    True
    """

    features: Any
    arm_features: Any = None
    private: Any = None
    interactions: bool = True
    ridge: float | None = None
    private_ridge: float | None = None
    standardise: bool = True
    intercept: bool = True

    FORM: ClassVar[str] = "linear:1"
    """Of what is kept and what it means: saved bandits outlive kernels that are written anew, but not another form."""
    asks_context = True
    sums = True
    """Whether what it learns adds up, so that a reward can be replaced in it, and simulations know it."""

    def __post_init__(self) -> None:
        made: dict[str, Any] = {"features": Features.accept("features", self.features)}
        if self.arm_features is not None:
            made["arm_features"] = Features.accept("arm_features", self.arm_features)
        for name in ("ridge", "private_ridge"):
            if getattr(self, name) is not None:
                made[name] = check_number(name, getattr(self, name), NOT_NEGATIVE)
        for name in ("interactions", "standardise", "intercept"):
            if not isinstance(getattr(self, name), bool):
                raise WrongType(name, f"must be True or False, got {getattr(self, name)!r}")
        if self.window is not None:
            raise WrongValue(
                "window", f"must be None for a linear model, which cannot forget that way, got {self.window}"
            )
        if self.discount is not None:
            made["discount"] = check_number("discount", self.discount, BETWEEN)
        for name, value in made.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "private", self._checked_private())
        if not self.design.own + self.design.joint:
            raise WrongValue("features", "must have at least one column, or intercept must be True")

    def _checked_private(self) -> Any:
        value, names = self.private, self.features.names
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise WrongType("private", f"must be True, False or a list of names of features, got {value!r}")
        unknown = [name for name in value if not isinstance(name, str) or not self.features.columns_of(name)]
        if unknown:
            raise WrongValue(
                "private",
                f"must be some of the features, {', '.join(names)}, got {unknown[0]!r}",
                code="unknown_choice",
            )
        if len(set(value)) < len(value):
            raise WrongValue("private", f"must name a feature once, got {list(value)}")
        return tuple(value)

    @functools.cached_property
    def design(self) -> Design:
        """Which columns a row has."""
        size, arm = self.features.size, 0 if self.arm_features is None else self.arm_features.size
        private = self.private if self.private is not None else arm == 0
        if private is True or private is False:
            own = list(range(size)) if private else []
        else:
            own = sorted(column for name in private for column in self.features.columns_of(name))
        private_columns = set(own)
        shared = [column for column in range(size) if column not in private_columns]
        first = [INTERCEPT] if self.intercept else []
        ones_private = bool(own) or private is True
        own, shared = (first + own, shared) if ones_private else (own, first + shared)
        crossed = size if self.interactions else 0
        joint = len(shared) + arm * (1 + crossed)
        return Design(np.array(own, np.int64), np.array(shared, np.int64), arm, crossed, len(own), joint)

    @property
    def ridges(self) -> tuple[float, float]:
        """The ridge of shared and of private columns."""
        ridge = max(1.0, RIDGE_SHARE * self._standardised) if self.ridge is None else self.ridge
        stronger = STRONGER * ridge if self.design.joint else ridge
        return ridge, stronger if self.private_ridge is None else self.private_ridge

    @property
    def _standardised(self) -> int:
        """The number of features that are standardised."""
        if not self.standardise:
            return 0
        return sum(len(each.numbers) for each in (self.features, self.arm_features) if each is not None)

    @property
    def names(self) -> list[str]:
        """What the columns of a row are called, private ones first."""
        given, design = self.features.names, self.design
        arm = [] if self.arm_features is None else [f"arm {name}" for name in self.arm_features.names]
        plain = ["1" if i == INTERCEPT else given[i] for i in (*design.private, *design.shared)]
        return plain + arm + [f"{name} × {a}" for name in given[: design.crossed] for a in arm]

    # What the rest of the library asks an estimator.

    @property
    def plain(self) -> bool:
        return False

    @property
    def size(self) -> int:
        return 0

    @property
    def longest(self) -> int:
        return 0

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        names = (
            "features",
            "arm_features",
            "private",
            "interactions",
            "ridge",
            "private_ridge",
            "standardise",
            "intercept",
        )
        defaults = {name: getattr(type(self), name, ...) for name in names}
        return {name: getattr(self, name) for name in names if getattr(self, name) != defaults[name]}

    @property
    def numbers(self) -> F64:
        return np.zeros(0)

    def specification(self) -> dict[str, Any]:
        given = {
            name: value.plain() if isinstance(value, Features) else list(value) if isinstance(value, tuple) else value
            for name, value in self._given().items()
        }
        address = f"{type(self).__module__}:{type(self).__qualname__}"
        return {"estimator": address, "code": self.FORM, "parameters": given}

    @property
    def update(self) -> Kernel:
        """Compiled: learn and count the reward of a row."""
        return learn_counted

    def _text(self, write: Callable[[Any], str]) -> str:
        given = {name: _short(value, write is repr) for name, value in self._given().items()}
        parts = [given.pop("features"), *(f"{name}={text}" for name, text in given.items())]
        return f"{type(self).__name__}({', '.join(parts)})"


def _short(value: Any, whole: bool) -> str:
    """A parameter as text, features in the way that they are usually given."""
    if not isinstance(value, Features):
        return repr(value)
    if not whole and value.size > SHOWN:
        return f"{value.size} columns"
    for form in (value.size, list(value.numbers)):
        if Features.accept("features", form) == value:
            return repr(form)
    return repr(value)


class Design(NamedTuple):
    """Which columns a row has, in compiled code's terms."""

    private: I64
    """For each private column the column of the context, or −1 for the intercept."""
    shared: I64
    """The same for those shared columns that are of the context."""
    arm: int
    """How many features an arm has: shared columns after these."""
    crossed: int
    """With how many context features each of an arm's is multiplied: the last shared columns."""
    own: int
    """Private columns in all."""
    joint: int
    """Shared columns in all."""


@jit
def make_rows(x: F64, private: I64, shared: I64, arm: int, crossed: int, own: F64, joint: F64) -> None:
    """The rows of all arms in a context: ``own`` gets private columns, ``joint`` shared ones, a column for each arm.

    ``x`` is the standardised context. The features of arms are in their ``arm`` rows of ``joint`` already, behind those
    of the context.
    """
    for j in range(private.size):
        own[j] = 1.0 if private[j] < 0 else x[private[j]]
    for j in range(shared.size):
        value = 1.0 if shared[j] < 0 else x[shared[j]]
        for k in range(joint.shape[1]):
            joint[j, k] = value
    place = shared.size + arm
    for i in range(crossed if arm else 0):
        for a in range(arm):
            for k in range(joint.shape[1]):
                joint[place, k] = x[i] * joint[shared.size + a, k]
            place += 1


@jit
def see_context(
    x: F64,
    measured: I64,
    indicator: I64,
    moments: F64,
    private: I64,
    shared: I64,
    arm: int,
    crossed: int,
    own: F64,
    joint: F64,
) -> None:
    """The rows of all arms in a context that was encoded; ``moments`` become those with this context."""
    z = np.empty(x.size)
    standardised(x, measured, indicator, moments, z)
    take(x, measured, indicator, moments)
    make_rows(z, private, shared, arm, crossed, own, joint)


@jit
def see_arms(given: F64, members: I64, measured: I64, indicator: I64, moments: F64, out: F64) -> None:
    """The standardised features of some arms, a row of ``given`` each, into their columns of ``out``.

    ``moments`` become those with all of them, by which each is standardised: mean and squares of the new ones, merged
    with what there was (Chan, Golub and LeVeque 1979).
    """
    count, values, here = members.size, np.empty(members.size), np.ones(members.size)
    for a in range(given.shape[1]):
        for i in range(count):
            out[a, members[i]] = given[i, a]
    for j in range(measured.size):
        a, n = measured[j], float(count)
        for i in range(count):
            values[i] = given[i, a]
        if indicator[j] >= 0:
            for i in range(count):
                here[i] = 1.0 if given[i, indicator[j]] == 0.0 else 0.0
                values[i] *= here[i]
            n = total(here)
        mean = total(values) / max(n, 1.0)
        merge(moments, j, n, mean, squares_about(values, mean, here))
        centre, deviation = moments[MEAN, j], math.sqrt(moments[SQUARES, j] / max(moments[COUNT, j], 1.0))
        inverse = 0.0 if deviation <= ROUNDING * abs(centre) else 1.0 / deviation
        for i in range(count):
            out[a, members[i]] = (values[i] - centre) * inverse * here[i]
        if indicator[j] >= 0:
            for i in range(count):
                here[i] = 1.0


@jit
def total(values: F64) -> float:
    """The sum, in four parts, which a processor adds side by side."""
    a = b = c = d = 0.0
    whole = values.size // 4 * 4
    for i in range(0, whole, 4):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
    for i in range(whole, values.size):
        a += values[i]
    return (a + b) + (c + d)


@jit
def squares_about(values: F64, mean: float, weights: F64) -> float:
    """Σ weight · (x − mean)², in four parts."""
    a = b = c = d = 0.0
    whole = values.size // 4 * 4
    for i in range(0, whole, 4):
        a += weights[i] * (values[i] - mean) ** 2
        b += weights[i + 1] * (values[i + 1] - mean) ** 2
        c += weights[i + 2] * (values[i + 2] - mean) ** 2
        d += weights[i + 3] * (values[i + 3] - mean) ** 2
    for i in range(whole, values.size):
        a += weights[i] * (values[i] - mean) ** 2
    return (a + b) + (c + d)


@jit
def merge(moments: F64, j: int, n: float, mean: float, squares: float) -> None:
    """Count n values of a column, with their mean and Σ (x − mean)², in its moments."""
    before = moments[COUNT, j]
    if n > 0.0:
        difference, share = mean - moments[MEAN, j], n / (before + n)
        moments[COUNT, j] = before + n
        moments[MEAN, j] += difference * share
        moments[SQUARES, j] += squares + difference * difference * before * share


@jit
def learn_counted(row: F64, reward: float, arm: int, private: int, factor: F64, common: F64, kept: F64) -> None:
    """Learn the reward of a row of an arm, and count it in the arm's plain statistics."""
    arrowhead_learn(row, reward, arm, private, factor, common)
    count_reward(kept, arm, 0, reward)
