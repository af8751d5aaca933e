"""Statistics of a live bandit's arms where the policy looks at contexts, and how they go over to another policy."""

from __future__ import annotations

import base64
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from rightarm.bandit.arms import COUNTING, EVER, MOST, PLAIN, SAME, ArmReward, Arms, check_sizes
from rightarm.errors import WrongValue, placed
from rightarm.estimators import Linear, ridge_regression
from rightarm.estimators.added_features import Extension
from rightarm.estimators.compiled_estimators import GAP_VARIANCE, MEAN, PULLS, VARIANCE
from rightarm.estimators.context_rows import MOMENT_COUNT, MOMENT_SQUARES, make_context_rows, standardise_arms
from rightarm.estimators.features import LARGEST, Features
from rightarm.estimators.reward_statistics import COUNT, LOST, OWN, SPREAD, SUM, correct_reward
from rightarm.formula import check_count, check_number, difference
from rightarm.policies.policy import Policy
from rightarm.types import F64, I64

ArmFeatures = Mapping[Any, Any] | Sequence[Any] | np.ndarray[Any, Any]


class StoredContext(NamedTuple):
    """The parts of a context that stay with its decision: bytes of float64, so that it is compact and comparable."""

    encoded: bytes
    """The context as numbers, as `Features.encode` made them."""
    row: bytes
    """The row of the chosen arm, from which the model learns."""
    could: bytes
    """The arms that could be chosen, a bit each, from the lowest on; see `could_choose`."""

    def to_json(self) -> list[str]:
        """Return all of it as base64."""
        return [base64.b64encode(part).decode() for part in self]

    @classmethod
    def from_json(cls, texts: object) -> StoredContext:
        """Return the context that `to_json` gave."""
        if not isinstance(texts, list) or len(texts) != 3 or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"context must be three texts of base64, got {texts!r:.60}")
        parts = [_decoded("context", text) for text in texts[:2]]
        return cls(parts[0].tobytes(), parts[1].tobytes(), _bytes("context", texts[2]))

    def extended(self, extension: Extension) -> StoredContext:
        """Return the context with features that were added missing."""
        encoded = extension.encoded(np.frombuffer(self.encoded))
        row = extension.row(np.frombuffer(self.row))
        return StoredContext(encoded.tobytes(), row.tobytes(), self.could)

    def numbers(self) -> list[float]:
        """Return the encoded context as plain numbers."""
        encoded: list[float] = np.frombuffer(self.encoded).tolist()
        return encoded


class EncodedContext(NamedTuple):
    """A context in numbers, before a decision is made in it; nothing has changed yet."""

    encoded: F64
    arm_features: F64 | None
    """The features of the arms that can be chosen, as numbers: a row for each."""
    members: I64
    own: F64
    joint: F64
    moments: tuple[F64, F64]
    """The counts and sums of contexts and of arms' features, this context included."""
    could: bytes
    """The members as a bit for each arm."""

    def stored(self, arm: int) -> StoredContext:
        """Return what stays of it with the decision for an arm."""
        shared = self.joint[:, arm].tobytes() if len(self.joint) else b""
        return StoredContext(self.encoded.tobytes(), self.own.tobytes() + shared, self.could)


def bits_of(members: I64) -> bytes:
    """Return the numbers of arms as a bit for each arm, the lowest first.

    >>> could_choose(bits_of(np.array([0, 9])), 9), could_choose(bits_of(np.array([0, 9])), 17)
    (True, False)
    """
    mask = np.zeros(int(members.max(initial=0)) + 1, dtype=bool)
    mask[members] = True
    return np.packbits(mask, bitorder="little").tobytes()


def could_choose(could: bytes, arm: int) -> bool:
    """Say whether an arm is among those that `bits_of` wrote."""
    return arm // 8 < len(could) and bool(could[arm // 8] >> arm % 8 & 1)


class ContextArms(Arms):
    """The statistics of all arms as a linear model; what formulas see of an arm depends on the context.

    The plain statistics of all rewards are beside it, for tables.
    """

    estimator: Linear

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        estimator = self.estimator
        design = estimator.design
        self.all_sums = None  # nothing is forgotten of the plain statistics
        self.design = design
        self.ridges = estimator.ridges
        self.factor: F64 = np.zeros((ridge_regression.sizes(design.own, design.joint)[0], 0))
        self.common: F64 = ridge_regression.new_common(design.joint, self.ridges[0])
        self.features = estimator.features
        self._could: tuple[I64, bytes] = np.zeros(0, np.int64), b"\0"  # the last members, and their bits
        self.measured, self.indicator = _measured(estimator.features, estimator.standardise)
        self.arm_measured, self.arm_indicator = _measured(estimator.arm_features, estimator.standardise)
        self.moments: tuple[F64, F64] = np.zeros((3, self.measured.size)), np.zeros((3, self.arm_measured.size))
        self.limits = policy.family.reward_range
        self.asks_variance = policy.asks_variance
        self._prepares = True
        self._plan = design[:4]
        self._nothing = np.zeros((0, 0))
        self._encode = make_context_rows.compiled
        self._read = ridge_regression.read.compiled
        self._learn = estimator.update.compiled
        law = policy.stated_law[0]
        self._together = law.correlated_solver() if law is not None and law.is_correlated else None
        self._compile()

    def add(self) -> None:
        super().add()
        room = self.table.shape[1]
        if self.factor.shape[1] < room:
            self.factor = np.hstack([self.factor, np.zeros((self.factor.shape[0], room - self.factor.shape[1]))])
        ridge_regression.begin(self.factor, self.count - 1, self.design.own, self.design.joint, self.ridges[1])

    def _compile(self) -> None:
        """Compile, by calling it, whatever a decision or a reward needs."""
        own = np.zeros(self.design.own)
        joint = self._nothing
        factor = np.zeros((len(self.factor), 1))
        context = np.zeros(self.features.size)
        self._encode(context, self.measured, self.indicator, self.moments[0].copy(), *self._plan, own, joint)
        common = np.zeros((0, 2))
        none = np.zeros(0)
        self._read(own, joint, factor, common, 0, none, none)
        self._learn(np.frombuffer(own.tobytes()), 0.0, 0, 0, factor, common, np.zeros((1, 1, OWN)))
        if self.asks_gap_variance or self._together is not None:
            one = np.zeros(1)
            shared = np.zeros((1, 0))
            ridge_regression.vectors(own, joint, factor, common, np.zeros(0, np.int64), one, shared)
            ridge_regression.gap_variances(one, one, shared)
            if self._together is not None:
                self._together(one, one, one, shared, np.empty(1))

    def check_prior(self) -> None:
        raise ValueError(f"prior is for policies without contexts, got {self.policy!r}")

    # Contexts.

    def encode(
        self,
        context: object,
        arm_features: ArmFeatures | None,
        members: I64,
        names: Sequence[Hashable],
        before: EncodedContext | None = None,
    ) -> EncodedContext:
        """Return a context in numbers for a decision among ``members``, after one in the context ``before``."""
        if context is None:
            raise ValueError(f"context must be given: {self.policy!r} decides by it")
        arms = None
        if self.design.arm or arm_features is not None:
            arms = self._arm_features(arm_features, members, names)
        moments = self.moments if before is None else before.moments
        return self._encoded(self.features.encode(context), arms, members, moments)

    def encode_numbers(self, encoded: ArrayLike, arm_features: ArrayLike | None, members: I64) -> EncodedContext:
        """Return the same from the numbers that a log has."""
        x = np.array(encoded, dtype=float)
        if x.shape != (self.features.size,) or not (np.abs(x) <= LARGEST).all():
            raise ValueError(f"context must be {self.features.size} numbers up to {LARGEST:g}, got {encoded!r:.200}")
        arms = None
        if self.design.arm:
            arms = np.array(arm_features, dtype=float)
            if arms.shape != (members.size, self.design.arm) or not (np.abs(arms) <= LARGEST).all():
                wanted = f"{self.design.arm} numbers up to {LARGEST:g} for each of {members.size} arms"
                raise ValueError(f"arm_features must be {wanted}, got {arm_features!r:.200}")
        return self._encoded(x, arms, members, self.moments)

    def _encoded(self, x: F64, arms: F64 | None, members: I64, moments: tuple[F64, F64]) -> EncodedContext:
        design = self.design
        after = moments[0].copy()
        arms_after = moments[1]
        own = np.empty(design.own)
        joint = self._nothing
        if design.joint:
            joint = np.zeros((design.joint, self.table.shape[1]))
        if arms is not None:
            arms_after = moments[1].copy()
            first = design.shared.size
            out = joint[first : first + design.arm]
            standardise_arms(arms, members, self.arm_measured, self.arm_indicator, arms_after, out)
        self._encode(x, self.measured, self.indicator, after, *self._plan, own, joint)
        if members is not self._could[0]:  # nearly always they are the same
            self._could = members, bits_of(members)
        return EncodedContext(x, arms, members, own, joint, (after, arms_after), self._could[1])

    def _arm_features(self, given: ArmFeatures | None, members: I64, names: Sequence[Hashable]) -> F64 | None:
        features = self.estimator.arm_features
        if features is None:
            if given is not None:
                raise TypeError(f"arm_features must be left out: {self.estimator} has none, got {given!r:.200}")
            return None
        is_number = isinstance(given, np.ndarray) and given.ndim == 0
        if isinstance(given, list | tuple | np.ndarray) and not is_number and len(given) == members.size:
            return _encoded(features.encode_many, given)
        if not isinstance(given, Mapping):
            raise TypeError(
                "arm_features must be given: a mapping from arms to their features, or a table with a row for each of "
                f"{members.size} arms, got {given!r:.200}"
            )
        missing = [names[i] for i in members if names[i] not in given]
        if missing:
            raise ValueError(f"arm_features must have the features of every arm, got none of {missing[0]!r}")
        return np.array([_encoded(features.encode, given[names[i]], names[i]) for i in members])

    def decided(self, context: EncodedContext) -> None:
        """Count a context in which a decision was made."""
        self.moments = context.moments

    def check_context(self, context: StoredContext | None) -> None:
        sizes = 8 * self.features.size, 8 * (self.design.own + self.design.joint)
        if context is None or (len(context.encoded), len(context.row)) != sizes:
            raise ValueError(f"context must be {sizes[0]} and {sizes[1]} bytes of every decision, got {context!r:.60}")

    # More features.

    def take_extended(self, other: ContextArms, extension: Extension) -> None:
        """Take what a model with fewer features has learned; in what it learned from, the others were missing."""
        for _ in range(other.count):
            self.add()
        count = self.count
        factor, self.common = extension.model(other.factor[:, :count], other.common, count)
        self.factor[:, :count] = factor
        self.sums[:count] = other.sums[:count]
        self.moments = extension.moments(other.moments)
        self.learned = other.learned
        self.total = other.total
        self.largest = other.largest.copy()

    # Learning.

    def learn(self, arm: int, reward: float, propensity: float, context: StoredContext | None = None) -> None:
        assert context is not None
        own = self.design.own
        fading = self.fading
        if fading < 1.0:
            ridge_regression.fade(self.factor, self.common, self.count, own, fading, *self.ridges)
        self._learn(np.frombuffer(context.row), reward, arm, own, self.factor, self.common, self.sums)
        self.learned += 1
        self.total = self.total * fading + 1

    def correct(self, number: int, before: float, after: ArmReward) -> bool:
        if not self.estimator.sums:
            return False
        assert after.context is not None
        arm = after.arm
        own = self.design.own
        found = correct_reward(self.sums, arm, 0, before, after.reward, 1.0, self._largest(EVER, arm))
        is_sound = self._found(EVER, arm, found)
        pool = 0 if self.design.joint else arm
        weight = self.fading ** (self.learned - number)
        row = np.frombuffer(after.context.row)
        largest = self._largest(COUNTING, pool)
        found = ridge_regression.correct(row, before, after.reward, weight, arm, own, self.factor, self.common, largest)
        return self._found(COUNTING, pool, found) and is_sound

    @property
    def mixes(self) -> bool:
        return self.fading < 1.0 or self.design.joint > 0

    def take_over(self, other: Self, arms: slice) -> None:
        self.sums[arms] = other.sums[arms]
        self.factor[:, arms] = other.factor[:, arms]
        self.common[:] = other.common

    def copy(self) -> Self:
        twin = super().copy()
        twin.factor = self.factor.copy()
        twin.common = self.common.copy()
        return twin

    def rescale(self, factor: float, shift: float) -> None:
        raise ValueError(f"what {self.policy!r} has learned cannot be scaled to another range of rewards")

    # Deciding.

    def prepare(self, members: I64, context: EncodedContext | None) -> None:
        """Have the table show what formulas see of every arm in this context."""
        if context is None:
            raise ValueError(f"context must be given: {self.policy!r} decides by it")
        table = self.table
        self._read(context.own, context.joint, self.factor, self.common, self.count, table[PULLS], table[MEAN])
        if self.limits is not None:  # predictions may leave the range of rewards, for which the formula is
            np.clip(table[MEAN], *self.limits, out=table[MEAN])
        if self.asks_variance:
            ridge_regression.variances(self.factor, self.design.joint, self.count, self.table[VARIANCE])
        if self.asks_gap_variance:
            vectors = self.vectors(members, context)
            table[GAP_VARIANCE, members] = ridge_regression.gap_variances(table[MEAN, members], *vectors)

    def find(self, members: I64, context: EncodedContext, first: F64, second: F64, chance: F64) -> tuple[int, float]:
        if self._together is None:
            return super().find(members, context, first, second, chance)
        found: tuple[int, float] = self._together(first, second, *self.vectors(members, context), chance)
        return found

    def vectors(self, members: I64, context: EncodedContext) -> tuple[F64, F64]:
        """Return what the predictions of some arms have in common: see `ridge_regression.vectors`."""
        own = np.empty(members.size)
        joint = np.empty((members.size, self.design.joint))
        ridge_regression.vectors(context.own, context.joint, self.factor, self.common, members, own, joint)
        return own, joint

    def shown(self) -> tuple[F64, F64]:
        return self.statistic(COUNT), self.means()

    # As plain data.

    def to_json(self) -> dict[str, Any]:
        plain = [self.statistic(COUNT), self.means(), *(self.statistic(which) for which in (SUM, LOST, SPREAD))]
        state = {
            "told": self.learned,
            "total": self.total,
            "table": np.array(plain).tolist(),
            "recent": [],
            "factor": _text(self.factor[:, : self.count]),
            "common": _text(self.common),
            "moments": [_text(part) for part in self.moments],
        }
        return state | ({"largest": self.largest_as_json()} if self.largest else {})

    def restore(self, state: Mapping[str, Any]) -> None:
        learned = check_count("told", state["told"], least=0)
        total = check_number("total", state["total"])
        if learned > MOST or not 0 <= total <= learned:
            raise ValueError(f"told must be at most {MOST}, and total from 0 to told, got {learned} and {total}")
        table = np.array(state["table"], dtype=float)
        if table.shape != (5, self.count) or not np.isfinite(table).all() or (table[[0, 4]] < 0).any():
            raise ValueError(f"table must be five rows of {self.count} finite numbers, got {state['table']!r:.60}")
        if table[0].sum() != learned or (table[0] % 1).any():
            raise ValueError(f"pulls must be whole numbers, {learned} in all, got {table[0].tolist()}")
        check_sizes("table", table[0], table[1:4], table[4])
        self.factor[:, : self.count] = self._factor_from(state["factor"])
        self.common[:] = _array("common", state["common"], self.common.shape)
        _check_inverse("common", self.common[:, 0], np.diagonal(self.common[:, 1:]))
        first, second = (
            _array("moments", one, each.shape) for one, each in zip(state["moments"], self.moments, strict=True)
        )
        for part in (first, second):
            if (part[[MOMENT_COUNT, MOMENT_SQUARES]] < 0).any():
                raise ValueError(f"moments must have no negative counts and squares, got {part.tolist()}")
        self.learned = learned
        self.total = total
        self.moments = first, second
        self.restore_largest(state.get("largest", []))
        self.sums[: self.count, 0, PLAIN] = table[[0, 2, 3, 4]].T

    def _factor_from(self, text: object) -> F64:
        factor = _array("factor", text, (self.factor.shape[0], self.count))
        if (factor[[ridge_regression.RESIDUALS, ridge_regression.COUNTING]] < 0).any():
            raise ValueError("factor must have residuals and counts that are not negative")
        place = 0
        for j in range(self.design.own):
            _check_inverse("factor", factor[place], factor[place + 1])
            place += self.design.own - j + self.design.joint + 2
        return factor


def arms_for(policy: Policy) -> Arms:
    """Return statistics of no arms yet, for a policy with or without contexts."""
    kind = ContextArms if isinstance(policy, Policy) and policy.estimator.asks_context else Arms
    return kind(policy)


# Another policy.


def carried_over(arms: Arms, policy: Policy) -> tuple[Arms, Extension | None]:
    """Return the same statistics for another policy, or raise an error that says what is in the way.

    Pulls, means and spreads carry over, whatever the policy is. An estimator's state is of use to the same estimator
    only, or to a linear one with more features, which are missing in what was learned: the extension says which. What a
    policy remembers besides (``learn``) is of use to a policy that learns it by the same formulas and parameters.
    """
    before = arms.policy
    try:
        _check_memory(before, policy)
        new = arms_for(policy)
        if before.estimator != policy.estimator:
            extension = before.estimator.extended(policy.estimator)
            assert isinstance(arms, ContextArms)
            assert isinstance(new, ContextArms)
            new.take_extended(arms, extension)
            return new, extension
        for _ in range(arms.count):
            new.add()
        new.restore(arms.to_json())
    except ValueError as error:
        what = f"what {before!r} has learned does not carry over to {policy!r}: {error}"
        raise WrongValue("policy", f"must carry on: {what}") from None
    return new, None


def _check_memory(before: Policy, after: Policy) -> None:
    """Raise if what a policy remembers of an arm is of no use to another one."""
    if before.columns != after.columns:
        columns = [", ".join(policy.columns) or "nothing" for policy in (before, after)]
        raise ValueError(f"it remembers {columns[0]} of an arm besides pulls and mean, the other {columns[1]}")
    for name, part in after.learn.items():
        other = difference(part, before.learn[name].specification())
        if other is not None:
            raise ValueError(f"it learned {name} by {'another formula' if other == 'formula' else 'other parameters'}")


# Helpers.


def _encoded(encode: Callable[[Any], F64], given: object, *arm: Hashable) -> F64:
    """Return features of all arms, or of one, as numbers; errors, which speak of contexts, say so."""
    try:
        return encode(given)
    except (TypeError, ValueError) as error:
        raise placed(error, f"arm_features{''.join(f' of {name!r}' for name in arm)}") from None


def _measured(features: Features | None, standardise: bool) -> tuple[I64, I64]:
    if features is None or not standardise:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return features.measured, features.indicator


def _text(numbers: F64) -> str:
    """Return numbers as base64 of their bytes: shorter than digits, and exact."""
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).decode()


def _bytes(name: str, text: object) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"{name} must be base64, got {text!r:.60}")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError(f"{name} must be base64, got {text!r:.60}") from None


def _decoded(name: str, text: object) -> F64:
    try:
        numbers = np.frombuffer(_bytes(name, text), dtype="<f8").astype(float)
    except ValueError:
        raise ValueError(f"{name} must be base64 of float64 numbers, got {text!r:.60}") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite numbers, got {numbers[~np.isfinite(numbers)][0]}")
    return numbers


def _check_inverse(name: str, inverse: F64, diagonal: F64) -> None:
    """Raise if what is stored as 1/R is not that, or as 0 where R is."""
    wanted = np.divide(1.0, diagonal, out=np.zeros(diagonal.size), where=diagonal != 0)
    if (diagonal < 0).any() or not np.allclose(inverse, wanted, rtol=SAME, atol=0):
        raise ValueError(f"{name} must be a triangle with a positive diagonal and its inverse, got {diagonal.tolist()}")


def _array(name: str, text: object, shape: tuple[int, ...]) -> F64:
    numbers = _decoded(name, text)
    if numbers.size != np.prod(shape):
        raise ValueError(f"{name} must be {int(np.prod(shape))} numbers, got {numbers.size}")
    return numbers.reshape(shape)
