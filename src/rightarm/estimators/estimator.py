"""The base of all estimators, which make an arm's `mean` and `pulls`, the numbers that formulas see, of its rewards."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

import numpy as np

from rightarm.errors import WrongType, WrongValue
from rightarm.formula import Formula, Rule, check_count, check_number
from rightarm.formula.compile import Kernel
from rightarm.formula.identity import identity
from rightarm.types import F64

if TYPE_CHECKING:
    from rightarm.estimators.added_features import Extension

BETWEEN = Rule("between 0 and 1", lambda x: 0 < x < 1)
NEGLIGIBLE = 1e-12  # weight of a discounted reward from which on it does not count any more
FORGETTING = ("discount", "window")  # parameters that every estimator has


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True, repr=False)
class Estimator:
    """Make the `mean` and the `pulls` that formulas see from an arm's rewards; subclasses are estimators.

    An estimator of your own is a class with its parameters as annotated attributes, the number of values that it keeps
    of each arm (all of them start at zero), and two functions that compile: ``learn(kept, reward, *parameters)``
    changes these values, ``read(kept, *parameters)`` returns the mean and the number of pulls that it is worth. The
    plain statistics of the rewards (their number, sum and variance) are there besides for every estimator.

    Parameters
    ----------
    discount : float, optional
        Between 0 and 1: every reward counts the less the more rewards came after it, of whatever arm, by this factor
        for each.
    window : int, optional
        Only the last so many rewards count, of all arms together.

    Notes
    -----
    An estimator of your own can forget, by ``discount`` or ``window``, if it has a third function,
    ``estimate(rewards, weights, *parameters)``: it returns the mean from all rewards of an arm that count, the oldest
    first, and how much each counts. The pulls are then the sum of the weights.

    Examples
    --------
    >>> import numpy as np, rightarm as ra
    >>> class Smoothed(ra.estimators.Estimator):
    ...     '''A mean in which every reward has a share that shrinks by 1 − rate with each later reward of the arm.'''
    ...
    ...     rate: ra.policies.Probability = 0.1
    ...     KEEPS = 2
    ...
    ...     @staticmethod
    ...     def learn(kept, reward, rate):
    ...         kept[0] += rate * (reward - kept[0])  # the sum of rewards times shares
    ...         kept[1] += rate * (1.0 - kept[1])  # the sum of shares
    ...
    ...     @staticmethod
    ...     def read(kept, rate):
    ...         return kept[0] / kept[1], kept[1] / rate
    >>> policy = ra.UCB(C=0.5, estimator=Smoothed(rate=0.25))
    >>> policy
    UCB(C=0.5, estimator=Smoothed(rate=0.25))
    >>> bandit = ra.Bandit(["a", "b"], policy, seed=1)
    >>> for reward in (0.0, 0.0, 1.0):
    ...     _ = bandit.tell(arm="a", reward=reward)
    >>> round(bandit.summary()["estimate"][0], 3)
    0.432
    >>> ra.testing.check_estimator(Smoothed(rate=0.25))
    """

    NAME: ClassVar[str] = ""
    """A text that stands for it in policies and experiment files, as in ``estimator="mean"``; empty if none does."""
    KEEPS: ClassVar[int] = 0
    """The number of values that `learn` and `read` keep of an arm."""
    learn: ClassVar[Callable[..., None] | Kernel | None] = None
    read: ClassVar[Callable[..., tuple[float, float]] | Kernel | None] = None
    estimate: ClassVar[Callable[..., float] | Kernel | None] = None
    asks_context: ClassVar[bool] = False
    """Whether what it makes of an arm's rewards depends on a context."""
    sums: ClassVar[bool] = True
    """Whether what it learns adds up, so that a reward can be replaced in it, and simulations can use it."""
    rewards: ClassVar[tuple[float, float] | None] = None
    """The smallest and the largest reward that it can learn; `mean` then is not in their unit."""

    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)

    def __init_subclass__(cls) -> None:
        """Make a frozen dataclass of every estimator, so that it is compared and printed by its parameters."""
        dataclass(frozen=True, repr=False)(cls)

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self), localns=self._names(), include_extras=True)
        for each in dataclasses.fields(self):
            if each.name not in FORGETTING:
                checked = Formula.check(each.name, getattr(self, each.name), hints[each.name])
                object.__setattr__(self, each.name, checked)
        if self.discount is not None:
            object.__setattr__(self, "discount", check_number("discount", self.discount, BETWEEN))
        if self.window is not None:
            object.__setattr__(self, "window", check_count("window", self.window))
        if self.discount is not None and self.window is not None:
            raise ValueError(f"discount and window exclude each other, got {self.discount} and {self.window}")
        self._check_functions()

    def _names(self) -> dict[str, Any]:
        """Return what annotations that are text may name: what its functions see, wherever the class was made."""
        functions = [getattr(code, "function", code) for code in (self.learn, self.read, self.estimate)]
        return {name: value for code in functions for name, value in getattr(code, "__globals__", {}).items()}

    def _check_functions(self) -> None:
        name = type(self).__name__
        if (self.learn is None) != (self.read is None):
            missing = "learn" if self.learn is None else "read"
            raise TypeError(f"{name} must have both learn and read, or neither; it has no {missing}")
        if (self.learn is None) != (self.KEEPS == 0):
            raise TypeError(
                f"{name}: KEEPS must be the number of values that learn and read keep of an arm, got {self.KEEPS}"
                f"{' without learn and read' if self.learn is None else ''}"
            )
        if self.forgets and self.learn is not None and self.estimate is None:
            raise TypeError(f"{name} cannot forget: it has no function `estimate` of the rewards that count")
        if not self.forgets and self.learn is None and self.estimate is not None:
            raise TypeError(f"{name} needs learn and read, or a window or discount, without which rewards pile up")
        self._check_length()

    def _check_length(self) -> None:
        """Raise if learn or read reach beyond what is kept: compiled code would do so silently."""
        kept = np.zeros(self.KEEPS)
        values = self.parameters.values()
        try:
            with np.errstate(all="ignore"):
                if isinstance(self.learn, types.FunctionType):
                    self.learn(kept, 0.5, *values)
                if isinstance(self.read, types.FunctionType):
                    self.read(kept, *values)
        except IndexError as error:
            name = type(self).__name__
            raise TypeError(
                f"{name}: KEEPS is {self.KEEPS}, but learn or read use more values of an arm: {error}"
            ) from error

    # Questions of the rest of the library, which never asks for the class.

    @functools.cached_property
    def forgets(self) -> bool:
        """Return whether rewards cease to count; then every reward changes the statistics of other arms too."""
        return self.discount is not None or self.window is not None

    @functools.cached_property
    def plain(self) -> bool:
        """Return whether it is the mean of all rewards and their number: then it can start from pulls and means."""
        return not self.forgets and self.learn is None

    @functools.cached_property
    def weighs(self) -> bool:
        """Return whether the mean is computed from all rewards that count, each time."""
        return self.forgets and self.estimate is not None

    @functools.cached_property
    def size(self) -> int:
        """The number of values of its own that it keeps of each arm."""
        return 0 if self.weighs else self.KEEPS

    @functools.cached_property
    def longest(self) -> int:
        """The number of rewards that have to be stored one by one; 0 where sums are enough."""
        if self.window is not None:
            return self.window
        if not self.weighs or self.discount is None:
            return 0
        age = math.ceil(math.log(NEGLIGIBLE) / math.log(self.discount)) + 1
        while self.discount**age < NEGLIGIBLE:
            age -= 1
        return age + 1

    @property
    def width(self) -> int:
        """The number of columns of a row that is learned; 1 without contexts."""
        return 1

    @property
    def ridges(self) -> tuple[float, float]:
        """The ridge of shared and of private columns; 0 without contexts."""
        return 0.0, 0.0

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name, which its functions take besides rewards."""
        names = [each.name for each in dataclasses.fields(self) if each.name not in FORGETTING]
        return {name: getattr(self, name) for name in names}

    @functools.cached_property
    def numbers(self) -> F64:
        """The parameters as compiled code takes them."""
        return np.array(list(self.parameters.values()), dtype=float)

    def check(self, reward: float) -> None:
        """Raise if it cannot learn such a reward, which is a finite number."""

    def extended(self, after: Estimator) -> Extension:
        """Return the way from what it learned to what ``after``, with more features, would have learned."""
        raise ValueError(f"the estimator was {self} and would be {after}")

    # The values of one arm as JSON.

    def to_json(self, kept: F64) -> Any:
        """Return the values that it keeps of an arm, as plain data."""
        return kept.tolist()

    def from_json(self, state: Any, count: float) -> F64:
        """Return the values that `to_json` wrote, of an arm with so many rewards."""
        if not isinstance(state, list) or len(state) != self.size:
            raise WrongValue("kept", f"must be lists of {self.size} numbers, got {state!r:.60}")
        return np.array([check_number("kept", value) for value in state])

    # As text and as plain data.

    def __repr__(self) -> str:
        return self._text(repr)

    def __str__(self) -> str:
        return self._text(lambda value: f"{value:.6g}" if isinstance(value, float) else str(value))

    def _text(self, write: Callable[[Any], str]) -> str:
        parts = [f"{name}={write(value)}" for name, value in self._given().items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _given(self) -> dict[str, Any]:
        """Return the parameters, with discount or window if given."""
        return self.parameters | {name: getattr(self, name) for name in FORGETTING if getattr(self, name) is not None}

    def specification(self) -> dict[str, Any]:
        """Return the estimator as plain data, from which `rightarm.formula.from_specification` makes it again."""
        cls = type(self)
        functions = [code for code in (cls.learn, cls.read, cls.estimate) if code is not None]
        return {
            "estimator": f"{cls.__module__}:{cls.__qualname__}",
            "code": identity(*functions),
            "parameters": self._given(),
        }

    @classmethod
    def accept(cls, name: str, value: object) -> Estimator:
        """Return the value of a parameter called ``name``; raise if it is no estimator."""
        if isinstance(value, Estimator):
            return value
        hint = "; call it with its parameters first" if isinstance(value, type) else ""
        some = "Mean(window=500), Catoni(C=2.0) or Linear(features)"
        raise WrongType(name, f"must be an estimator such as {some}, got {value!r}{hint}")
