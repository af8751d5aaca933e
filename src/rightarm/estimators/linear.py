"""Estimators with contexts: `Linear`, ridge regression, and `Logistic`, for rewards that come or not."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from rightarm.errors import WrongType, WrongValue
from rightarm.estimators.added_features import Extension, extended
from rightarm.estimators.context_rows import INTERCEPT, Design
from rightarm.estimators.estimator import BETWEEN, FORGETTING, Estimator
from rightarm.estimators.features import Features
from rightarm.estimators.reward_statistics import count_reward
from rightarm.estimators.ridge_regression import learn, predicted
from rightarm.formula import Rule, check_number
from rightarm.formula.compile import Kernel, jit
from rightarm.types import F64

NOT_NEGATIVE = Rule("at least 0", lambda x: x >= 0)
# Before any reward a prediction is worth ridge/|row|² pulls, and |row|² is about the number of standardised numbers. So
# with this share of them as the ridge many numbers make no more doubt than few; see docs/contexts.md.
RIDGE_SHARE = 1 / 8
STRONGER = 100.0  # how much stronger the ridge of private columns is beside shared ones; see docs/contexts.md
SHOWN = 8  # columns that a short text names


class Linear(Estimator):
    """Predict rewards from a context by ridge regression: `mean` is the prediction, `pulls` what it is worth.

    mean = row · θ̂,  pulls = 1 / (rowᵀ A⁻¹ row),  A = ridge + Σ row rowᵀ,  θ̂ = A⁻¹ Σ row · reward

    With it every policy that looks at means and pulls is contextual: `UCB` is LinUCB, `BoltzmannGumbel` LinBGE,
    `GaussianThompson` a linear Thompson sampling that perturbs each arm by itself (not one joint draw of θ). With a
    row of a single 1 and no ridge, mean and pulls are the mean and the number of the arm's rewards.

    Parameters
    ----------
    features : Features, list of str, or int
        What a context has: a `Features`, a list of names of numbers, or a number of columns.
    arm_features : Features, list of str, or int, optional
        What an arm has, if anything, in the same way; the values come with each decision.
    private : list of str or bool, optional
        The context features for which every arm has coefficients of its own: all if arms have no features, else none,
        unless given as a list of names, True or False. The others are shared, as are features of arms.
    interactions : bool
        Besides the features of an arm also their products with those of the context.
    ridge : float, optional
        How strongly coefficients are drawn to 0, in rewards of a standardised feature; unless given an eighth of the
        number of features that are standardised, 1 at least.
    private_ridge : float, optional
        The same for private columns beside shared ones; a hundred times ``ridge`` unless given.
    standardise : bool
        Numbers are centred and scaled by the values so far, this context included. Leave it out where all are of about
        the size of 1 already, such as pixels from 0 to 1 or embeddings.
    intercept : bool
        A column of ones, private if any is.
    discount : float, optional
        Every reward counts the less the more rewards came after it, by this factor for each.

    References
    ----------
    Li, Chu, Langford, Schapire: A Contextual-Bandit Approach to Personalized News Article Recommendation, WWW 2010.

    Examples
    --------
    >>> import rightarm as ra
    >>> policy = ra.BoltzmannGumbel(C=0.05, estimator=ra.estimators.Linear(["hour", "age"]))
    >>> bandit = ra.Bandit(["red", "blue"], policy, seed=1)
    >>> decision = bandit.ask(context={"hour": 21, "age": 35})
    >>> bandit.tell(decision, 1.0)
    True
    """

    features: Any
    arm_features: Any = None
    private: bool | Sequence[str] | None = None
    interactions: bool = True
    ridge: float | None = None
    private_ridge: float | None = None
    standardise: bool = True
    intercept: bool = True

    FORM: ClassVar[str] = "linear:1"
    """The form of its numbers: saved bandits outlive kernels that are written anew, but not another form."""
    asks_context = True

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
        if not self.width:
            raise WrongValue("features", "must have at least one column, or intercept must be True")

    def _checked_private(self) -> bool | tuple[str, ...] | None:
        value = self.private
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise WrongType("private", f"must be True, False or a list of names of features, got {value!r}")
        unknown = [name for name in value if not isinstance(name, str) or not self.features.columns_of(name)]
        if unknown:
            raise WrongValue(
                "private",
                f"must be some of the features, {', '.join(self.features.names)}, got {unknown[0]!r}",
                code="unknown_choice",
            )
        if len(set(value)) < len(value):
            raise WrongValue("private", f"must name a feature once, got {list(value)}")
        return tuple(value)

    @functools.cached_property
    def design(self) -> Design:
        """Return the columns of a row."""
        size = self.features.size
        arm = 0 if self.arm_features is None else self.arm_features.size
        private = self.private if self.private is not None else arm == 0
        if isinstance(private, bool):
            own = list(range(size)) if private else []
        else:
            own = sorted(column for name in private for column in self.features.columns_of(name))
        private_columns = set(own)
        shared = [column for column in range(size) if column not in private_columns]
        if self.intercept and (own or private is True):
            own = [INTERCEPT, *own]
        elif self.intercept:
            shared = [INTERCEPT, *shared]
        crossed = size if self.interactions else 0
        joint = len(shared) + arm * (1 + crossed)
        return Design(
            private=np.array(own, np.int64),
            shared=np.array(shared, np.int64),
            arm=arm,
            crossed=crossed,
            own=len(own),
            joint=joint,
        )

    @property
    def width(self) -> int:
        return self.design.own + self.design.joint

    @property
    def ridges(self) -> tuple[float, float]:
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
        """The names of the columns of a row, private ones first."""
        given = self.features.names
        design = self.design
        arm = [] if self.arm_features is None else [f"arm {name}" for name in self.arm_features.names]
        plain = ["1" if i == INTERCEPT else given[i] for i in (*design.private, *design.shared)]
        return plain + arm + [f"{name} × {a}" for name in given[: design.crossed] for a in arm]

    # Questions of the rest of the library.

    @functools.cached_property
    def plain(self) -> bool:
        return False

    @functools.cached_property
    def size(self) -> int:
        return 0

    @functools.cached_property
    def longest(self) -> int:
        return 0

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        fields = [each for each in dataclasses.fields(self) if each.name not in FORGETTING]
        values = {each.name: getattr(self, each.name) for each in fields}
        return {each.name: values[each.name] for each in fields if values[each.name] != each.default}

    @functools.cached_property
    def numbers(self) -> F64:
        return np.zeros(0)

    def specification(self) -> dict[str, Any]:
        given = self._given()
        for name, value in given.items():
            if isinstance(value, Features):
                given[name] = value.plain()
            elif isinstance(value, tuple):
                given[name] = list(value)
        address = f"{type(self).__module__}:{type(self).__qualname__}"
        return {"estimator": address, "code": self.FORM, "parameters": given}

    def extended(self, after: Estimator) -> Extension:
        if not isinstance(after, Linear):
            return super().extended(after)
        return extended(self, after)

    @property
    def update(self) -> Kernel:
        """The compiled function that learns and counts the reward of a row."""
        return learn_counted

    def _text(self, write: Callable[[Any], str]) -> str:
        given = {name: _short(value, write is repr) for name, value in self._given().items()}
        parts = [given.pop("features"), *(f"{name}={text}" for name, text in given.items())]
        return f"{type(self).__name__}({', '.join(parts)})"


def _short(value: Any, whole: bool) -> str:
    """Return a parameter as text, features in the way that they are usually given."""
    if not isinstance(value, Features):
        return repr(value)
    if not whole and value.size > SHOWN:
        return f"{value.size} columns"
    for form in (value.size, list(value.numbers)):
        if Features.accept("features", form) == value:
            return repr(form)
    return repr(value)


@jit
def learn_counted(row: F64, reward: float, arm: int, private: int, factor: F64, common: F64, kept: F64) -> None:
    """Learn the reward of a row of an arm, and count it in the arm's plain statistics."""
    learn(row, reward, arm, private, factor, common)
    count_reward(kept, arm, 0, reward)


LEAST = 1e-12  # weight of a reward that teaches next to nothing
MOST_STEPS = 100  # of Newton's method, halving where that would lead astray; five are the rule


@jit
def chance(s: float) -> float:
    """Return 1 / (1 + e⁻ˢ)."""
    return 1.0 / (1.0 + math.exp(-s)) if s > 0.0 else math.exp(s) / (1.0 + math.exp(s))


@jit
def most_likely(mean: float, variance: float, reward: float) -> float:
    """Return the log-odds s that are most likely after a reward: s = mean + variance (reward − chance(s)).

    The left side less the right one grows with s, at least as fast as s does.
    """
    low = mean - variance * (1.0 - reward)
    high = mean + variance * reward
    s = mean
    for _ in range(MOST_STEPS):
        p = chance(s)
        left = s - mean - variance * (reward - p)
        if left > 0.0:
            high = s
        else:
            low = s
        step = left / (1.0 + variance * p * (1.0 - p))
        if abs(step) <= 1e-15 * max(abs(s), 1.0):
            break
        s = s - step if low < s - step < high else 0.5 * (low + high)
    return s


@jit
def learn_logistic(row: F64, reward: float, arm: int, private: int, factor: F64, common: F64, kept: F64) -> None:
    """Learn the reward of a row of an arm, and count it in the arm's plain statistics.

    A Gaussian belief times a logistic likelihood is taken for Gaussian again, about its most likely point (Laplace).
    The likelihood changes along the row only, so that this point is found in one dimension. What is learned then is a
    reward of linear regression, s + (reward − p) / weight, of the weight p (1 − p).
    """
    mean, variance = predicted(row, arm, private, factor, common)
    s = most_likely(mean, variance, reward)
    p = chance(s)
    weight = max(p * (1.0 - p), LEAST)
    root = math.sqrt(weight)
    learn(root * row, root * s + (reward - p) / root, arm, private, factor, common)
    count_reward(kept, arm, 0, reward)


class Logistic(Linear):
    """Predict rewards between 0 and 1 from a context by logistic regression: `mean` and `pulls` are of log-odds.

    P[reward = 1] = 1 / (1 + e⁻ˢ),  s = row · θ,  θ ~ N(θ̂, A⁻¹),  mean = row · θ̂,  pulls = 1 / (rowᵀ A⁻¹ row)

    Rewards are learned one by one. After each, θ̂ is the most likely θ, and A gains p (1 − p) row rowᵀ there: Laplace's
    approximation, with what was believed before as the prior, at first N(0, 1/ridge). What a formula adds to a mean is
    in log-odds. The parameters are those of `Linear`; ``ridge`` must be positive.

    References
    ----------
    Chapelle and Li: An Empirical Evaluation of Thompson Sampling, NeurIPS 2011, there with a diagonal A.

    Examples
    --------
    >>> import rightarm as ra
    >>> bandit = ra.Bandit(["red", "blue"], ra.LinTS(sigma=1.0, estimator=ra.estimators.Logistic(["hour"])), seed=1)
    >>> decision = bandit.ask(context={"hour": 21})
    >>> bandit.tell(decision, 1)
    True
    """

    FORM = "logistic:1"
    rewards = (0.0, 1.0)
    sums = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not min(self.ridges) > 0:
            raise WrongValue(
                "ridge", f"must be positive for a logistic model, got {min(self.ridges)}", code="out_of_range"
            )

    @property
    def update(self) -> Kernel:
        return learn_logistic
