"""The policies that can be evaluated on a log, and what all estimates from a log say."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rightarm.bandit.arms import Chances, draw
from rightarm.bandit.context_arms import ContextArms, EncodedContext, arms_for
from rightarm.display import html_table, number, table, wrapped
from rightarm.errors import placed
from rightarm.estimators.features import Features
from rightarm.formula import check_number
from rightarm.inference.comparisons import one_value
from rightarm.logs.rows import ArmFeatures, Contexts, Ends, Rows
from rightarm.policies.family import PolicyFamily
from rightarm.policies.inputs import reward_scale
from rightarm.policies.policy import Policy
from rightarm.types import F64, I64


def warning_of(rows: Rows) -> str:
    """Say why no number can be trusted, where all rewards of a log are equal; empty otherwise."""
    if np.ptp(rows.rewards) != 0:
        return ""
    value = float(rows.rewards[0])
    silent = np.setdiff1d(np.arange(rows.places.size + rows.left_out), rows.places)
    return one_value(rows.rewards.size, value, rows.places.tolist(), silent.tolist(), rows.default)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An estimate from a log: the rows it is based on, its interval, and what was assumed.

    Attributes
    ----------
    rows
        The rows used: those that have a reward.
    left_out, open_windows
        The rows that were not used, and how many of them have an open window of reward; the others have no reward.
    low, high, confidence
        The ends of the interval, and its confidence.
    reward_range
        What rewards could be: as given, or as the log says, or 0 to 1.
    floor
        The propensity that no arm could fall below, as given or as the log says; None if neither does.
    warnings
        Why the numbers may be worth little; empty if nothing is wrong.
    """

    rows: int
    left_out: int
    open_windows: int
    low: float
    high: float
    confidence: float
    reward_range: Ends
    floor: float | None
    warnings: tuple[str, ...] = ()

    def rows_in_words(self) -> str:
        """Say how many rows were used, and how many were not and why."""
        reasons = {
            "without a reward": self.left_out - self.open_windows,
            "whose window of reward is open": self.open_windows,
        }
        found = " and ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        return f"{self.rows:,}" + (f" ({found} left out)" if found else "")

    def assumptions(self) -> str:
        """Say what was assumed of rewards and propensities."""
        low, high = map(number, self.reward_range)
        floor = "no floor" if self.floor is None else f"a floor of {number(self.floor)}"
        return f"rewards from {low} to {high}, {floor}"


@dataclass(frozen=True, kw_only=True)
class PolicyEstimate(Estimate):
    """An estimate for a policy, shown as a table."""

    policy: str

    def _pairs(self) -> dict[str, str]:
        """Return the lines of the table."""
        raise NotImplementedError

    def __str__(self) -> str:
        return as_text(self.policy, self._pairs(), self.warnings)

    def _repr_html_(self) -> str:
        notes = [f"warning: {warning}" for warning in self.warnings]
        return html_table(["", ""], list(self._pairs().items()), title=self.policy, notes=notes)


def facts(rows: Rows, floor: float | None, confidence: float) -> dict[str, Any]:
    """Return what every estimate from these rows says, but for its interval."""
    return {
        "rows": rows.arms.size,
        "left_out": rows.left_out,
        "open_windows": rows.open_windows,
        "confidence": confidence,
        "reward_range": rows.reward_range,
        "floor": floor,
    }


def as_text(title: str, pairs: Mapping[str, str], warnings: Iterable[str] = ()) -> str:
    """Return a title, a line for each pair of a name and a value, and the warnings."""
    lines = table(["", "", ""], [["", *pair] for pair in pairs.items()], words=3)
    return "\n".join([title, lines, *(wrapped(f"warning: {warning}", indent="  ") for warning in warnings)])


ByArm = Mapping[Any, float]
ByContext = Callable[[F64], ByArm | Sequence[float] | F64]
Target = str | float | Policy | ByArm | ByContext

MOST_NAMES = 20  # of arms in an error
ROUNDING = 1e-9  # by which probabilities may miss a sum of 1


class Chooser(Protocol):
    """A policy that chooses in the rows of a log among arms, which are numbers, and may learn from their rewards."""

    fixed: F64 | None
    """The probability of every arm, if it never changes."""

    def probabilities(self, row: int, arms: I64) -> F64:
        """Return the probability of each of these arms in a row, if they are all that there are."""

    def choose(self, row: int, arms: I64, random: np.random.Generator) -> tuple[int, float]:
        """Return one of these arms, and its probability."""

    def learn(self, row: int, arm: int, reward: float, probability: float) -> None:
        """Take the reward of an arm that was chosen in the row that was looked at last."""


class Fixed:
    """Probabilities that do not change; where only some arms can be chosen, they are taken relative to these."""

    fixed: F64 | None

    def __init__(self, chances: F64) -> None:
        self.fixed = self.chances = chances

    def probabilities(self, row: int, arms: I64) -> F64:
        return relative(self.chances, arms)

    def choose(self, row: int, arms: I64, random: np.random.Generator) -> tuple[int, float]:
        chances = self.probabilities(row, arms)
        place = int(random.choice(arms.size, p=chances))
        return int(arms[place]), float(chances[place])

    def learn(self, row: int, arm: int, reward: float, probability: float) -> None:
        pass


class Function(Fixed):
    """Probabilities that a function gives for each context."""

    fixed: F64 | None = None

    def __init__(self, function: ByContext, rows: Rows) -> None:
        self.function = function
        self.rows = rows
        self.contexts = contexts_of(rows, function)
        self.contexts.flags.writeable = False
        self.columns = [] if rows.contexts is None else rows.contexts.names

    def probabilities(self, row: int, arms: I64) -> F64:
        try:
            given = self.function(self.contexts[row])
        except IndexError as error:
            error.add_note(f"the context is an array with the columns {', '.join(self.columns)}")
            raise
        try:
            return relative(chances_of(given, self.rows), arms)
        except (TypeError, ValueError) as error:
            raise placed(error, f"row {self.rows.places[row] + 1}") from None


class Learning:
    """A policy of rightarm, with what it has learned so far."""

    fixed: F64 | None = None

    def __init__(self, policy: Policy, rows: Rows) -> None:
        self.scale = reward_scale(policy, rows.reward_range)
        self.known = arms_for(policy)
        self.waiting = [0] * len(rows.names)
        self.law: Chances | None = None  # that of the present state, until a reward changes it
        self.seen: EncodedContext | None = None  # the context of the row that was looked at last
        self.rows = rows
        if isinstance(self.known, ContextArms):
            check_contexts(self.known, rows)
        for _ in rows.names:
            self.known.add()

    def _law_of(self, row: int, arms: I64) -> Chances:
        if isinstance(self.known, ContextArms) and self.rows.contexts is not None:
            tables = None if self.rows.arm_features is None else self.rows.arm_features.tables[row]
            self.seen = self.known.encode_numbers(self.rows.contexts.rows[row], tables, arms)
            return self.known.probabilities(arms, self.waiting, context=self.seen)
        if self.law is None or self.law.members is not arms:
            self.law = self.known.probabilities(arms, self.waiting)
        return self.law

    def probabilities(self, row: int, arms: I64) -> F64:
        return self._law_of(row, arms).chance

    def choose(self, row: int, arms: I64, random: np.random.Generator) -> tuple[int, float]:
        law = self._law_of(row, arms)
        place = draw(law.chance, law.heights, random.random())
        return int(arms[place]), float(law.chance[place])

    def learn(self, row: int, arm: int, reward: float, probability: float) -> None:
        context = None
        if self.seen is not None:
            self.known.decided(self.seen)  # only now: a row that `replay` passes over has not happened
            context = self.seen.stored(arm)
        self.known.learn(arm, reward if self.scale is None else self.scale.apply(reward), probability, context)
        self.law = None


def chooser_of(policy: Target, rows: Rows) -> Chooser:
    """Return what chooses as ``policy`` says: a policy, "uniform", always one arm, probabilities, or a function."""
    names = rows.names
    if isinstance(policy, Policy):
        return Learning(policy, rows)
    if policy == "uniform" and "uniform" not in names:
        return Fixed(np.full(len(names), 1 / len(names)))
    if isinstance(policy, str | int | float):  # always this arm
        if policy not in names:
            raise ValueError(f"policy {policy!r} is {no_arm_among(names)}")
        return Fixed(np.array([float(name == policy) for name in names]))
    if isinstance(policy, Mapping):
        return Fixed(chances_of(policy, rows))
    if callable(policy) and not isinstance(policy, PolicyFamily | type):
        return Function(policy, rows)
    hint = "; call it with its parameters first" if callable(policy) else ""
    raise TypeError(
        "policy must be a policy, 'uniform', an arm, probabilities by arm, or a function from a context to "
        f"probabilities, got {policy!r}{hint}"
    )


def no_arm_among(names: Sequence[Hashable]) -> str:
    """Return the end of an error about a name that is not among these arms."""
    some = ", ".join(map(repr, names[:MOST_NAMES])) + (", ..." if len(names) > MOST_NAMES else "")
    return f"no arm of the log, which are {some}"


def features_for(policy: Target) -> Features | None:
    """Return the features of the contexts that a policy looks at, if it looks at any."""
    if not isinstance(policy, Policy):
        return None
    features: Features | None = getattr(policy.estimator, "features", None)
    return features


def name_of(policy: Target) -> str:
    """Return the name of a policy in results: a function by its name."""
    return str(getattr(policy, "__name__", policy))


# Probabilities.


def chances_of(given: ByArm | Sequence[float] | F64, rows: Rows) -> F64:
    """Return probabilities of all arms, given by arm or in their order, checked."""
    names = rows.names
    if isinstance(given, Mapping):
        unknown = [arm for arm in given if arm not in names]
        if unknown:
            text = "policy must give probabilities to arms of the log, or to others in arms"
            raise ValueError(f"{text}, got {unknown[0]!r}")
        given = [given.get(name, 0.0) for name in names]
    elif isinstance(given, str) or not hasattr(given, "__len__"):
        raise TypeError(f"policy must give probabilities by arm, or in the order of arms, got {given!r:.80}")
    elif not rows.ordered:
        raise ValueError(f"give probabilities by arm, or arms= to say the order, got {given!r:.80}")
    if len(given) != len(names):
        raise ValueError(f"policy must give {len(names)} probabilities, one for each arm, got {given!r:.80}")
    if isinstance(given, np.ndarray) and given.shape == (len(names),) and given.dtype == np.float64:
        chances: F64 = given
    else:
        chances = np.array([check_number(f"policy[{arm!r}]", p) for arm, p in zip(names, given, strict=True)])
    if not (chances >= 0).all():  # NaN is not
        place = int(np.argmin(chances >= 0))
        raise ValueError(f"policy[{names[place]!r}] must be a probability, got {chances[place]}")
    if not abs(chances.sum() - 1) <= ROUNDING:
        raise ValueError(f"policy must have probabilities that add up to 1, got {chances.sum()}")
    return chances


def relative(chances: F64, arms: I64) -> F64:
    """Return probabilities of some arms, if they are all that there are."""
    some = chances[arms]
    total = some.sum()
    if not total:
        raise ValueError("the policy gives no probability to any of the arms that a row had to choose among")
    return np.asarray(some / total)


# Contexts.


def contexts_of(rows: Rows, policy: object) -> F64:
    """Return the contexts of a log, or raise an error if it has none."""
    if rows.contexts is None:
        raise ValueError(
            f"log must have the context of every row for {policy!r}; LogWriter(context=False) leaves contexts out"
        )
    return rows.contexts.rows


def check_contexts(known: ContextArms, rows: Rows) -> None:
    """Raise if the contexts of a log, or the features of its arms, are not those that a policy was made for."""
    contexts_of(rows, known.policy)
    _check_columns("contexts", known.policy, known.features, rows.contexts)
    if known.estimator.arm_features is not None:
        _check_columns("features of arms", known.policy, known.estimator.arm_features, rows.arm_features)


def _check_columns(what: str, policy: Policy, wanted: Features, found: Contexts | ArmFeatures | None) -> None:
    names = [] if found is None else found.names
    if len(names) != wanted.size:
        raise ValueError(f"log must have {what} of {wanted.size} numbers for {policy!r}, got {len(names) or 'none'}")
    plain = Features.accept(what, wanted.size).names
    if names != wanted.names and plain not in (names, wanted.names):
        pair = next(pair for pair in zip(wanted.names, names, strict=True) if pair[0] != pair[1])
        raise ValueError(f"log must have {what} with the columns of {policy!r}, got {pair[1]!r} for {pair[0]!r}")
