"""What is known of the arms of a live bandit whose policy looks at contexts."""

from __future__ import annotations

import base64
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from rightarm.contexts import Features
from rightarm.contexts.features import LARGEST
from rightarm.contexts.moments import COUNT as VALUES
from rightarm.contexts.moments import SQUARES
from rightarm.errors import placed
from rightarm.estimators import Linear, arrowhead
from rightarm.estimators.compiled import GAP_VARIANCE, MEAN, PULLS, VARIANCE
from rightarm.estimators.extension import Extension
from rightarm.estimators.linear import see_arms, see_context
from rightarm.estimators.statistics import COUNT, LOST, OWN, SPREAD, SUM, correct_reward
from rightarm.formula import check_count, check_number
from rightarm.live.arms import COUNTING, EVER, MOST, SAME, Arms, Lesson, check_sizes
from rightarm.scores.policy import Policy
from rightarm.types import F64, I64


class Context(NamedTuple):
    """What stays of a context with its decision: bytes of float64, so that it is compact and can be compared."""

    encoded: bytes
    """The context as numbers, as `Features.encode` made them."""
    row: bytes
    """What is learned from: the row of the chosen arm."""
    could: bytes
    """The arms that could be chosen, a bit each, from the lowest on; see `could_choose`."""

    def to_json(self) -> list[str]:
        """All of it as base64."""
        return [base64.b64encode(part).decode() for part in self]

    @classmethod
    def from_json(cls, texts: Any) -> Context:
        """What `to_json` gave."""
        if not isinstance(texts, list) or len(texts) != 3 or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"context must be three texts of base64, got {texts!r:.60}")
        parts = [_decoded("context", text) for text in texts[:2]]
        return cls(parts[0].tobytes(), parts[1].tobytes(), _bytes("context", texts[2]))

    def extended(self, extension: Extension) -> Context:
        """Return the context with features that were added missing."""
        encoded = extension.encoded(np.frombuffer(self.encoded))
        row = extension.row(np.frombuffer(self.row))
        return Context(encoded.tobytes(), row.tobytes(), self.could)

    def numbers(self) -> list[float]:
        """The encoded context as plain numbers."""
        encoded: list[float] = np.frombuffer(self.encoded).tolist()
        return encoded


class Seen(NamedTuple):
    """A context as it is seen before a decision; nothing has changed yet."""

    encoded: F64
    arm_features: F64 | None
    """The features of the arms that can be chosen, as numbers: a row for each."""
    members: I64
    own: F64
    joint: F64
    moments: tuple[F64, F64]
    """What was seen of contexts and of arms' features, this time included."""
    could: bytes
    """The members as a bit for each arm."""

    def context(self, arm: int) -> Context:
        """What stays of it with the decision for an arm."""
        shared = self.joint[:, arm].tobytes() if len(self.joint) else b""
        return Context(self.encoded.tobytes(), self.own.tobytes() + shared, self.could)


def bits_of(members: I64) -> bytes:
    """The numbers of arms as a bit for each arm, the lowest first.

    >>> could_choose(bits_of(np.array([0, 9])), 9), could_choose(bits_of(np.array([0, 9])), 17)
    (True, False)
    """
    mask = np.zeros(int(members.max(initial=0)) + 1, dtype=bool)
    mask[members] = True
    return np.packbits(mask, bitorder="little").tobytes()


def could_choose(could: bytes, arm: int) -> bool:
    """Whether an arm is among those that `bits_of` wrote."""
    return arm // 8 < len(could) and bool(could[arm // 8] >> arm % 8 & 1)


class ContextArms(Arms):
    """What is known of all arms by a linear model; what formulas see of them depends on the context.

    The plain statistics of all rewards are kept beside it, for tables.
    """

    estimator: Linear

    def __init__(self, policy: Policy, discount: float | None = None, window: int | None = None) -> None:
        super().__init__(policy, discount, window)
        design, ridges = self.estimator.design, self.estimator.ridges
        self.ever = None  # nothing is forgotten of the plain statistics
        self.design, self.ridges = design, ridges
        self.factor: F64 = np.zeros((arrowhead.sizes(design.own, design.joint)[0], 0))
        self.common: F64 = arrowhead.new_common(design.joint, ridges[0])
        features, arms = self.estimator.features, self.estimator.arm_features
        self.features = features
        self._could: tuple[I64, bytes] = np.zeros(0, np.int64), b"\0"  # the last members, and their bits
        self.measured, self.indicator = _measured(features, self.estimator.standardise)
        self.arm_measured, self.arm_indicator = _measured(arms, self.estimator.standardise)
        self.moments: tuple[F64, F64] = np.zeros((3, self.measured.size)), np.zeros((3, self.arm_measured.size))
        self.limits, self.varies = policy.family.rewards, policy.asks_variance
        self._plan, self._nothing = design[:4], np.zeros((0, 0))
        self._see, self._read = see_context.compiled, arrowhead.read.compiled
        self._learn = self.estimator.update.compiled
        law = policy.stated_law[0]
        self._together = law.together() if law is not None and law.correlates else None
        self._compile()

    def add(self) -> None:
        super().add()
        room = self.table.shape[1]
        if self.factor.shape[1] < room:
            self.factor = np.hstack([self.factor, np.zeros((self.factor.shape[0], room - self.factor.shape[1]))])
        arrowhead.begin(self.factor, self.count - 1, self.design.own, self.design.joint, self.ridges[1])

    def _compile(self) -> None:
        """Compile, by calling it, whatever a decision or a reward needs."""
        own, joint, factor = np.zeros(self.design.own), self._nothing, np.zeros((len(self.factor), 1))
        self._see(
            np.zeros(self.features.size), self.measured, self.indicator, self.moments[0].copy(), *self._plan, own, joint
        )
        common, row, none = np.zeros((0, 2)), np.frombuffer(own.tobytes()), np.zeros(0)
        self._read(own, joint, factor, common, 0, none, none)
        self._learn(row, 0.0, 0, 0, factor, common, np.zeros((1, 1, OWN)))
        if self.unsure or self._together is not None:
            one, shared, members = np.zeros(1), np.zeros((1, 0)), np.zeros(0, np.int64)
            arrowhead.vectors(own, joint, factor, common, members, one, shared)
            arrowhead.gap_variances(one, one, shared)
            if self._together is not None:
                self._together(one, one, one, shared, np.empty(1))

    def check_prior(self) -> None:
        raise ValueError(f"prior is for policies without contexts, got {self.policy!r}")

    # Contexts.

    def see(
        self, context: Any, arm_features: Any, members: I64, names: Sequence[Hashable], before: Seen | None = None
    ) -> Seen:
        """A context as a decision among ``members`` would see it, after one in the context ``before`` if given."""
        if context is None:
            raise ValueError(f"context must be given: {self.policy!r} decides by it")
        arms = None
        if self.design.arm or arm_features is not None:
            arms = self._arm_features(arm_features, members, names)
        moments = self.moments if before is None else before.moments
        return self._seen(self.features.encode(context), arms, members, moments)

    def see_encoded(self, encoded: Any, arm_features: Any, members: I64) -> Seen:
        """The same from the numbers that a log has."""
        x = np.array(encoded, dtype=float)
        if x.shape != (self.features.size,) or not (np.abs(x) <= LARGEST).all():
            raise ValueError(f"context must be {self.features.size} numbers up to {LARGEST:g}, got {encoded!r:.200}")
        arms = None
        if self.design.arm:
            arms = np.array(arm_features, dtype=float)
            if arms.shape != (members.size, self.design.arm) or not (np.abs(arms) <= LARGEST).all():
                wanted = f"{self.design.arm} numbers up to {LARGEST:g} for each of {members.size} arms"
                raise ValueError(f"arm_features must be {wanted}, got {arm_features!r:.200}")
        return self._seen(x, arms, members, self.moments)

    def _seen(self, x: F64, arms: F64 | None, members: I64, moments: tuple[F64, F64]) -> Seen:
        design, after, arms_after = self.design, moments[0].copy(), moments[1]
        own, joint = np.empty(design.own), self._nothing
        if design.joint:
            joint = np.zeros((design.joint, self.table.shape[1]))
        if arms is not None:
            arms_after, first = moments[1].copy(), design.shared.size
            out = joint[first : first + design.arm]
            see_arms(arms, members, self.arm_measured, self.arm_indicator, arms_after, out)
        self._see(x, self.measured, self.indicator, after, *self._plan, own, joint)
        if members is not self._could[0]:  # nearly always they are the same
            self._could = members, bits_of(members)
        return Seen(x, arms, members, own, joint, (after, arms_after), self._could[1])

    def _arm_features(self, given: Any, members: I64, names: Sequence[Hashable]) -> F64 | None:
        features: Features | None = self.estimator.arm_features
        if features is None:
            if given is not None:
                raise TypeError(f"arm_features must be left out: {self.estimator} has none, got {given!r:.200}")
            return None
        table = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim > 0)
        if table and len(given) == members.size:
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

    def notice(self, seen: Seen) -> None:
        """A decision was made in this context."""
        self.moments = seen.moments

    # More features.

    def take_extended(self, other: ContextArms, extension: Extension) -> None:
        """Know what a model with fewer features has learned; in what it learned from, the others were missing."""
        for _ in range(other.count):
            self.add()
        count = self.count
        factor, self.common = extension.model(other.factor[:, :count], other.common, count)
        self.factor[:, :count] = factor
        self.kept[:count] = other.kept[:count]
        self.moments = extension.moments(other.moments)
        self.told = other.told
        self.total = other.total
        self.largest = other.largest.copy()

    # Learning.

    def learn(self, arm: int, reward: float, propensity: float, context: Context | None = None) -> None:
        assert context is not None
        own, fading = self.design.own, self.fading
        if fading < 1.0:
            arrowhead.fade(self.factor, self.common, self.count, own, fading, *self.ridges)
        self._learn(_row(context), reward, arm, own, self.factor, self.common, self.kept)
        self.told += 1
        self.total = self.total * fading + 1

    def correct(self, number: int, before: float, after: Lesson) -> bool:
        if not self.estimator.sums:
            return False
        arm, reward, weight, row = after.arm, after.reward, self.fading ** (self.told - number), _row(after.context)
        pool = 0 if self.design.joint else arm
        found = correct_reward(self.kept, arm, 0, before, reward, 1.0, self._largest(EVER, arm))
        sound, largest, own = self._found(EVER, arm, found), self._largest(COUNTING, pool), self.design.own
        found = arrowhead.correct(row, before, reward, weight, arm, own, self.factor, self.common, largest)
        return self._found(COUNTING, pool, found) and sound

    @property
    def mixes(self) -> bool:
        return self.fading < 1.0 or self.design.joint > 0

    def take_over(self, other: Self, arms: Any) -> None:
        self.kept[arms], self.factor[:, arms], self.common[:] = other.kept[arms], other.factor[:, arms], other.common

    def twin(self) -> Self:
        twin = super().twin()
        twin.factor, twin.common = self.factor.copy(), self.common.copy()
        return twin

    def rescale(self, factor: float, shift: float) -> None:
        raise ValueError(f"what {self.policy!r} has learned cannot be scaled to another range of rewards")

    # Deciding.

    def look(self, members: I64, seen: Any) -> None:
        """Have the table show what formulas see of every arm in this context."""
        if not isinstance(seen, Seen):
            raise ValueError(f"context must be given: {self.policy!r} decides by it")
        table = self.table
        self._read(seen.own, seen.joint, self.factor, self.common, self.count, table[PULLS], table[MEAN])
        if self.limits is not None:  # predictions may leave the range of rewards, for which the formula is
            np.clip(table[MEAN], *self.limits, out=table[MEAN])
        if self.varies:
            arrowhead.variances(self.factor, self.design.joint, self.count, self.table[VARIANCE])
        if self.unsure:
            vectors = self.vectors(members, seen)
            table[GAP_VARIANCE, members] = arrowhead.gap_variances(table[MEAN, members], *vectors)

    def find(self, members: I64, seen: Seen, first: F64, second: F64, chance: F64) -> tuple[int, float]:
        if self._together is None:
            return self.chances(first, second, chance), 0.0
        found: tuple[int, float] = self._together(first, second, *self.vectors(members, seen), chance)
        return found

    def vectors(self, members: I64, seen: Seen) -> tuple[F64, F64]:
        """What the predictions of some arms have in common: see `arrowhead.vectors`."""
        own, joint = np.empty(members.size), np.empty((members.size, self.design.joint))
        arrowhead.vectors(seen.own, seen.joint, self.factor, self.common, members, own, joint)
        return own, joint

    def shown(self) -> tuple[F64, F64]:
        return self.statistic(COUNT), self.means()

    # As plain data.

    def to_json(self) -> dict[str, Any]:
        plain = [self.statistic(COUNT), self.means(), *(self.statistic(which) for which in (SUM, LOST, SPREAD))]
        state = {
            "told": self.told,
            "total": self.total,
            "table": np.array(plain).tolist(),
            "recent": [],
            "factor": _text(self.factor[:, : self.count]),
            "common": _text(self.common),
            "moments": [_text(part) for part in self.moments],
        }
        return state | ({"largest": self.largest_as_json()} if self.largest else {})

    def restore(self, state: Mapping[str, Any]) -> None:
        told, total = check_count("told", state["told"], least=0), check_number("total", state["total"])
        if told > MOST or not 0 <= total <= told:
            raise ValueError(f"told must be at most {MOST}, and total from 0 to told, got {told} and {total}")
        table = np.array(state["table"], dtype=float)
        if table.shape != (5, self.count) or not np.isfinite(table).all() or (table[[0, 4]] < 0).any():
            raise ValueError(f"table must be five rows of {self.count} finite numbers, got {state['table']!r:.60}")
        if table[0].sum() != told or (table[0] % 1).any():
            raise ValueError(f"pulls must be whole numbers, {told} in all, got {table[0].tolist()}")
        check_sizes("table", table[0], table[1:4], table[4])
        self.factor[:, : self.count] = self._factor_from(state["factor"])
        self.common[:] = _array("common", state["common"], self.common.shape)
        _check_inverse("common", self.common[:, 0], np.diagonal(self.common[:, 1:]))
        first, second = (
            _array("moments", one, each.shape) for one, each in zip(state["moments"], self.moments, strict=True)
        )
        for part in (first, second):
            if (part[[VALUES, SQUARES]] < 0).any():
                raise ValueError(f"moments must have no negative counts and squares, got {part.tolist()}")
        self.told, self.total, self.moments = told, total, (first, second)
        self.restore_largest(state.get("largest", []))
        self.kept[: self.count, 0, [COUNT, SUM, LOST, SPREAD]] = table[[0, 2, 3, 4]].T

    def _factor_from(self, text: Any) -> F64:
        factor = _array("factor", text, (self.factor.shape[0], self.count))
        if (factor[[arrowhead.RESIDUALS, arrowhead.COUNTING]] < 0).any():
            raise ValueError("factor must have residuals and counts that are not negative")
        place = 0
        for j in range(self.design.own):
            _check_inverse("factor", factor[place], factor[place + 1])
            place += self.design.own - j + self.design.joint + 2
        return factor

    def check_context(self, context: Context | None) -> None:
        sizes = 8 * self.features.size, 8 * (self.design.own + self.design.joint)
        if context is None or (len(context.encoded), len(context.row)) != sizes:
            raise ValueError(f"context must be {sizes[0]} and {sizes[1]} bytes of every decision, got {context!r:.60}")


def _row(context: Context) -> F64:
    """What is learned from, as numbers."""
    return np.frombuffer(context.row)


def arms_for(policy: Policy, discount: float | None = None, window: int | None = None) -> Arms:
    """What is known of arms, at first nothing, for a policy with or without contexts."""
    kind = ContextArms if isinstance(policy, Policy) and policy.estimator.asks_context else Arms
    return kind(policy, discount, window)


def _encoded(encode: Callable[[Any], F64], given: Any, *arm: Hashable) -> F64:
    """Features of all arms, or of one, as numbers; errors, which speak of contexts, say so."""
    try:
        return encode(given)
    except (TypeError, ValueError) as error:
        raise placed(error, f"arm_features{''.join(f' of {name!r}' for name in arm)}") from None


def _measured(features: Features | None, standardise: bool) -> tuple[I64, I64]:
    if features is None or not standardise:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return features.measured, features.indicator


def _text(numbers: F64) -> str:
    """Numbers as base64 of their bytes: shorter than digits, and exact."""
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).decode()


def _bytes(name: str, text: Any) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"{name} must be base64, got {text!r:.60}")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError(f"{name} must be base64, got {text!r:.60}") from None


def _decoded(name: str, text: Any) -> F64:
    try:
        numbers = np.frombuffer(_bytes(name, text), dtype="<f8").astype(float)
    except ValueError:
        raise ValueError(f"{name} must be base64 of float64 numbers, got {text!r:.60}") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite numbers, got {numbers[~np.isfinite(numbers)][0]}")
    return numbers


def _check_inverse(name: str, inverse: F64, diagonal: F64) -> None:
    """Raise if what is kept as 1/R is not that, or as 0 where R is."""
    wanted = np.divide(1.0, diagonal, out=np.zeros(diagonal.size), where=diagonal != 0)
    if (diagonal < 0).any() or not np.allclose(inverse, wanted, rtol=SAME, atol=0):
        raise ValueError(f"{name} must be a triangle with a positive diagonal and its inverse, got {diagonal.tolist()}")


def _array(name: str, text: Any, shape: tuple[int, ...]) -> F64:
    numbers = _decoded(name, text)
    if numbers.size != np.prod(shape):
        raise ValueError(f"{name} must be {int(np.prod(shape))} numbers, got {numbers.size}")
    return numbers.reshape(shape)
