"""Everything that can happen to a bandit: a type for each kind of event, which is JSON by itself.

A log is a sequence of events. In a file each is a line of JSON, with its number first (`rightarm.logs.lines`); in a
store it is a row of a table. Fields that have their default are left out. Times are seconds since 1970.

To add a kind of event, add its type here. `rightarm.bandit.decide` makes it, and `rightarm.bandit.state.State.apply`
says what it changes. CONTRIBUTING.md has an example.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Sequence
from enum import IntEnum
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from rightarm.errors import WrongValue
from rightarm.formula import check_number
from rightarm.logs.settings import Settings
from rightarm.policies.inputs import LARGEST

LARGEST_WHOLE = 2**63 - 1  # the largest whole number of Parquet and Polars
END_OF_TIME = 253_402_300_800.0  # seconds since 1970, at the end of the year 9999

A = TypeVar("A", bound=Hashable)

Whole = Annotated[int, Meta(ge=0, le=LARGEST_WHOLE)]
Time = Annotated[float, Meta(ge=0, lt=END_OF_TIME)]
Propensity = Annotated[float, Meta(gt=0, le=1)]
RewardValue = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
ArmNumber = Annotated[int, Meta(ge=-LARGEST_WHOLE, le=LARGEST_WHOLE)]
Arm = str | ArmNumber | float | bool
Unit = str | Whole
Status = Literal["running", "paused", "archived"]
JsonObject = dict[str, Any]
Specification = JsonObject
EXACT = 0.0  # the error of nearly all decisions: the same object, so that JSON leaves it out


class Step(IntEnum):
    """The ways in which an event can change what becomes of a decision."""

    DECIDED = 0
    PART = 1  # a part of the reward came
    REWARDED = 2
    CANCELLED = 3
    EXPIRED = 4
    CORRECTED = 5
    LATE = 6  # a reward came after its time


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    tag_field="event",
    omit_defaults=True,
    repr_omit_defaults=True,
    forbid_unknown_fields=True,
):
    """The base of all events; one that is about a decision has its number in a field ``id``."""

    step: ClassVar[Step | None] = None  # what the event does to the decision that it is about, if there is one
    time: Time


class Prior(msgspec.Struct, frozen=True, array_like=True):
    """Rewards that a new arm starts from, as if it had had them."""

    arm: Any
    mean: float
    pulls: float
    variance: float = 0.0


class Created(Event, frozen=True, tag="created"):
    """A bandit was made; every log that a bandit writes begins with this."""

    arms: list[Arm]
    policy: Specification
    settings: Settings
    first_id: Whole = 1  # the id of the first decision
    prior: list[Prior] = []
    continues: bool = False  # whether the bandit had learned before: then this log alone does not make it again
    by: str | None = None


class Changed(Event, frozen=True, tag="change"):
    """Arms, policy, settings or status changed; what is left out stays as it was."""

    arms: list[Arm] | None = None  # all that can be chosen from now on: some may be new, those left out are retired
    prior: list[Prior] = []  # rewards that some of the new arms start from
    policy: Specification | None = None
    settings: JsonObject = {}  # only those that changed
    status: Status | None = None
    reason: str | None = None  # why the bandit itself changed something; None if somebody did
    by: str | None = None  # who changed something, where a service can say


class Decision(Event, Generic[A], frozen=True, tag="decision"):
    """One choice of an arm, with the probability that the arm had.

    Two decisions are equal if they are the same choice, whenever, for whom and from whatever it was made.

    Attributes
    ----------
    id
        A number that no other decision of this bandit has. Ids begin with 1 if the bandit has a seed. Otherwise they
        begin anywhere, so that no two bandits share any.
    arm, propensity
        The arm, and the probability with which it was chosen.
    round
        One more than the number of rewards that the bandit had learned, from its beginning on. The round that the
        policy's formula sees is one more than the number of rewards that *count*: the same, unless the policy's
        estimator has a ``discount`` or a ``window``, which make old rewards count less or not at all.
    version
        The number of events that had happened to the bandit before: the propensity follows from these.
    group
        "holdout" if the bandit has a holdout and the decision belongs to it.
    error
        By how much the propensity may differ from the policy's own probability, where that is estimated. The arm was
        drawn with the propensity itself in any case.
    unit
        Whom the decision was made for.
    allowed
        The arms to choose from, if these were not all active ones.
    meta
        Anything else, as JSON.
    context, arm_features
        The context, and the features of each arm that could be chosen, as numbers.
    """

    step = Step.DECIDED
    id: Whole
    arm: A
    propensity: Propensity
    round: Whole
    version: Whole
    group: str | None = None
    error: float = EXACT
    unit: Unit | None = None
    allowed: list[Arm] | None = None
    meta: JsonObject | None = None
    context: list[float] | None = None
    arm_features: list[list[float]] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision):
            return NotImplemented
        return self._choice() == other._choice()

    def _choice(self) -> tuple[object, ...]:
        return self.id, self.arm, self.propensity, self.round, self.version, self.group, self.error

    def __hash__(self) -> int:
        return hash((self.id, self.arm))

    @property
    def exact(self) -> bool:
        """Say whether the propensity is the policy's own probability to the last digits."""
        return self.error == 0.0


class Reward(Event, frozen=True, tag="reward"):
    """The reward of a decision came."""

    step = Step.REWARDED
    id: Whole
    reward: RewardValue
    part: bool = False  # whether the decision goes on waiting: then this is what it has so far


class Cancellation(Event, frozen=True, tag="cancel"):
    """A decision will have no reward."""

    step = Step.CANCELLED
    id: Whole


class Expiry(Event, frozen=True, tag="expiry"):
    """The time in which decisions could be rewarded is over."""

    step = Step.EXPIRED
    ids: Annotated[list[Whole], Meta(min_length=1)]
    reward: RewardValue | None = None  # what all of them get; without it, each keeps what it has so far


class Correction(Event, frozen=True, tag="correction"):
    """The reward of a decision that was rewarded, cancelled or expired is this one from now on."""

    step = Step.CORRECTED
    id: Whole
    reward: RewardValue


class LateReward(Event, frozen=True, tag="late"):
    """A reward came after its time: the log has it, and the bandit does not learn from it."""

    step = Step.LATE
    id: Whole
    reward: RewardValue


class Observation(Event, frozen=True, tag="observation"):
    """A reward of an arm came that belongs to no decision."""

    arm: Arm
    reward: RewardValue
    context: list[float] | None = None
    arm_features: list[list[float]] | None = None


KINDS: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in Event.__subclasses__()}
AnyEvent = functools.reduce(operator.or_, (Decision[Arm] if kind is Decision else kind for kind in KINDS.values()))


def check_time(now: object) -> float:
    """Return the time that a clock gives, if an event can have it."""
    time = check_number("clock", now)
    if not 0 <= time < END_OF_TIME:
        raise WrongValue("clock", f"must give seconds since 1970, before the year 10000, got {time}")
    return time


def kind_of(event: Event) -> str:
    """Return the name that an event's kind has in JSON."""
    return str(event.__struct_config__.tag)


def ids_of(event: Event) -> Sequence[int]:
    """Return the ids of the decisions that an event is about."""
    if isinstance(event, Expiry):
        return event.ids
    return () if event.step is None else (event.id,)  # type: ignore[attr-defined]


def _plain(value: object) -> str | float:
    """Return a text or number of a class of its own, such as NumPy's, as JSON has it."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"a log can only hold what JSON can, got {value!r:.200}")


ENCODER = msgspec.json.Encoder(enc_hook=_plain)
DECODER = msgspec.json.Decoder(AnyEvent)


def without_context(event: Event) -> Event:
    """Return the event without what people may not want in a log."""
    if isinstance(event, Decision | Observation) and event.context is not None:
        return msgspec.structs.replace(event, context=None, arm_features=None)
    return event
