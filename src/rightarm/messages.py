"""The messages to and from the decision service: each has a type, and the OpenAPI document is made from these types."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Hashable
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"  # of a bandit
T = TypeVar("T")
LARGEST_ID = 2**53 - 1  # which JSON keeps exactly everywhere
MOST_ARMS = 10_000
MOST_AT_ONCE = 1_000

Arm = Annotated[str, Meta(min_length=1, max_length=200)] | Annotated[int, Meta(ge=-LARGEST_ID, le=LARGEST_ID)]
Arms = Annotated[list[Arm], Meta(min_length=1, max_length=MOST_ARMS)]
Id = Annotated[int, Meta(ge=0, le=LARGEST_ID, description="The id of a decision.")]
Key = Annotated[str, Meta(min_length=1, max_length=200, description="The same key always gets the same answer.")]
Unit = Annotated[str, Meta(min_length=1, max_length=200)] | Annotated[int, Meta(ge=0, le=LARGEST_ID)]
Text = Annotated[str, Meta(min_length=1, max_length=10_000)]
ContextValues = dict[str, Any] | list[float]
BanditStatus = Literal["running", "paused", "archived"]


class Message(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of all that is sent to a service: a field that is not known is an error."""


class AnswerMessage(msgspec.Struct, kw_only=True):
    """The base of all that comes back: later versions may add fields."""


class Definition(Message):
    """A bandit to be made: its arms, its policy and the options of `rightarm.Bandit`."""

    arms: Arms
    policy: Text | None = None
    """Unless given ``ScaledGumbel()``, or ``ResidualGumbel()`` with an estimator for contexts."""
    estimator: Text | None = None
    """Such as ``Linear(["hour", "device"])``: the policy's estimator, if its text has none."""
    reward_range: tuple[float, float] | None = None
    floor: float = 0.0
    reward_window: float | None = None
    """How many seconds rewards of a decision are awaited."""
    default_reward: float | None = None
    learn: Literal["at once", "at close"] = "at once"
    repeated: Literal["last", "sum"] = "last"
    late: Literal["correct", "keep"] = "correct"
    """What becomes of a reward after the window: it corrects what was learned, or is kept without being learned."""
    control: Arm | None = None
    holdout: float = 0.0
    guardrail: float | None = None
    prior: dict[str, list[float]] | None = None
    seed: Annotated[int, Meta(ge=0, le=LARGEST_ID)] | None = None


class Change(Message):
    """A change of a bandit, from now on; what is left out stays.

    Settings have the names that they have in a definition; null removes one that may be absent.
    """

    arms: Arms | None = None
    """All arms that can be chosen from now on: others are retired, new ones added."""
    prior: dict[str, list[float]] | None = None
    policy: Text | None = None
    estimator: Text | None = None
    status: BanditStatus | None = None
    """A bandit that is paused learns, but decides nothing; one that is archived does neither."""
    reward_range: tuple[float, float] | UnsetType | None = UNSET
    floor: float | UnsetType = UNSET
    reward_window: float | UnsetType | None = UNSET
    default_reward: float | UnsetType | None = UNSET
    learn: Literal["at once", "at close"] | UnsetType = UNSET
    repeated: Literal["last", "sum"] | UnsetType = UNSET
    late: Literal["correct", "keep"] | UnsetType = UNSET
    control: Arm | UnsetType | None = UNSET
    holdout: float | UnsetType = UNSET
    guardrail: float | UnsetType | None = UNSET


class BanditAnswer(AnswerMessage):
    """A bandit as it is now."""

    name: str
    status: BanditStatus
    arms: list[Arm]
    retired: list[Arm]
    policy: str
    settings: dict[str, Any]
    version: int
    """The number of the last event."""
    decisions: int
    rewards: int
    created: float


class Ask(Message):
    """A decision, or ``size`` of them, or one for each of several ``contexts``."""

    unit: Unit | None = None
    context: ContextValues | None = None
    contexts: Annotated[list[ContextValues], Meta(min_length=1, max_length=MOST_AT_ONCE)] | None = None
    arm_features: dict[str, ContextValues] | None = None
    allowed: Arms | None = None
    size: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)] | None = None
    key: Key | None = None
    meta: dict[str, Any] | None = None


class DecisionAnswer(AnswerMessage):
    """A decision."""

    decision: int
    arm: Arm
    propensity: float
    exact: bool
    error: float
    """By how much the propensity may differ from the policy's own probability; 0 if it is exact."""
    round: int
    version: int
    """The number of the event before it: the propensity follows from the events up to that one."""
    time: float
    """When it was made, in seconds since 1970."""
    group: str | None = None
    """"holdout" if the decision belongs to it."""


class DecisionAnswers(AnswerMessage):
    """Several decisions."""

    decisions: list[DecisionAnswer]


class Tell(Message):
    """The reward of a decision; or, without a decision, that of an arm."""

    reward: float
    decision: Id | None = None
    correct: bool = False
    """Whether this reward takes the place of another one."""
    key: Key | None = None
    """Where several rewards of a decision add up, the key makes one that is sent twice count once."""
    arm: Arm | None = None
    context: ContextValues | None = None
    arm_features: dict[str, ContextValues] | None = None


Outcome = Literal["learned", "noted", "duplicate", "corrected", "late"]


class RewardAnswer(AnswerMessage):
    """The outcome of a reward."""

    outcome: Outcome
    """Noted: it is learned when the window closes. Late: it is kept, and not learned."""
    decision: int | None = None


class Tells(Message):
    """Several rewards: all are taken, or none."""

    rewards: Annotated[list[Tell], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class RewardAnswers(AnswerMessage):
    """The outcomes of several rewards, in their order."""

    rewards: list[RewardAnswer]


class Cancel(Message):
    """A decision that will have no reward."""

    decision: Id


class Cancelled(AnswerMessage):
    """The end of a decision: ``cancelled`` is false if it did not wait for a reward any more."""

    cancelled: bool


class ProblemDetails(AnswerMessage):
    """A description of what went wrong (RFC 9457)."""

    type: str
    """``urn:rightarm:problem:`` and the code."""
    title: str
    status: int
    detail: str
    code: str = "unknown"
    """A short name of what is wrong, for programs."""
    field: str | None = None
    """The part of the request that is wrong, if it is one."""


class Ratio(Message):
    """The confidence of an alarm about the ratio of arms."""

    confidence: Annotated[float, Meta(gt=0, lt=1)] = 0.99


class Question(Message):
    """The context, and the arms, for which probabilities are wanted."""

    context: ContextValues | None = None
    arm_features: dict[str, ContextValues] | None = None
    allowed: Arms | None = None


class Chance(AnswerMessage):
    """The probability of an arm in the next decision."""

    arm: Arm
    probability: float


class Probabilities(AnswerMessage):
    """The probability of every arm in the next decision."""

    probabilities: list[Chance]
    version: int


class Names(AnswerMessage):
    """The bandits that there are."""

    bandits: list[str]


class ArmSummary(AnswerMessage):
    """A summary of an arm; `rightarm.Bandit.table` says what each number is."""

    arm: Arm
    pulls: float
    estimate: float | None
    mean: float | None
    low: float | None
    high: float | None
    kind: str | None
    share: float
    probability: float | None
    pending: int
    retired: bool
    lacking: str | None = None
    """Why there is no interval; None if there is one."""


class Summary(AnswerMessage):
    """A summary of all arms, with intervals that hold at any time."""

    policy: str
    version: int
    arms: list[ArmSummary]
    warning: str = ""
    """Why arms cannot be compared yet, if all rewards so far are equal, and what to do about it."""


class Pair(Message):
    """Two arms to be compared."""

    arm: Annotated[str, Meta(min_length=1, max_length=200)]
    other: Annotated[str, Meta(min_length=1, max_length=200)]
    confidence: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    where: Annotated[str, Meta(max_length=1_000)] | None = None
    """A segment, as JSON: ``{"device": "phone", "hour": [9, 17]}``; for bandits that decide by contexts."""


class Stopping(Message):
    """The wanted confidence in the best arm, and what choosing another one may cost."""

    confidence: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    tolerance: Annotated[float, Meta(ge=0)] = 0.0


class Hours(Message):
    """The number of hours, up to now, of which the history is wanted; all unless given."""

    hours: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class Hour(AnswerMessage):
    """The decisions and rewards of an arm in an hour."""

    hour: float
    """When it began, in seconds since 1970."""
    arm: Arm
    decisions: int
    rewards: int
    total: float
    """The sum of the rewards."""


class History(AnswerMessage):
    """The decisions and rewards of arms, hour by hour."""

    hours: list[Hour]


class After(Message):
    """The events that are wanted: those with greater numbers, and at most so many."""

    after: Annotated[int, Meta(ge=0, le=LARGEST_ID)] = 0
    limit: Annotated[int, Meta(ge=1, le=LARGEST_ID)] | None = None


class Health(AnswerMessage):
    """The state of the server."""

    status: str
    waiting: int = 0
    """Requests that wait to be written."""
    error: str | None = None
    """What the last commit failed of, if it did."""


class Format(Message):
    """The format in which all events are wanted."""

    format: Literal["jsonl", "parquet", "obp", "vw", "vw-text"] = "jsonl"


# Results of the library, such as a `rightarm.inference.Difference`, are answers as they are.

SENT: dict[object, object] = {
    float: float | None,
    Hashable: Arm,
    Hashable | None: Arm | None,
    tuple[Hashable, ...]: list[Arm],
    tuple[Any, ...]: list[Arm],
    tuple[str, ...]: list[str],
}
"""The type of a result's field in JSON, which has no NaN and no infinities: they are null."""


@functools.cache
def sent_as(kind: type) -> type[msgspec.Struct]:
    """Return the message that a result of this type is sent as: its fields, its properties, and its text."""
    hints = {field.name: typing.get_type_hints(kind)[field.name] for field in dataclasses.fields(kind)}
    for name, value in vars(kind).items():
        if isinstance(value, property):
            hints[name] = typing.get_type_hints(value.fget)["return"]
    fields = [(name, SENT.get(hint, hint)) for name, hint in (hints | {"text": str}).items()]
    words = {"__doc__": kind.__doc__, "__module__": __name__}
    return msgspec.defstruct(kind.__name__, fields, bases=(AnswerMessage,), namespace=words, kw_only=True)


def sendable(answer: object) -> object:
    """Return an answer as the message that it is sent as."""
    if not dataclasses.is_dataclass(answer):
        return answer
    result_type: type = type(answer)
    kind = sent_as(result_type)
    values = {name: getattr(answer, name) for name in kind.__struct_fields__ if name != "text"}
    return kind(**values, text=str(answer))


def result(content: bytes, kind: type[T]) -> T:
    """Return the result of the library that was sent; null is what a field is unless given."""
    found = msgspec.json.decode(content, type=dict[str, Any])
    values = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value = found.get(field.name)
        if value is not None or field.default is dataclasses.MISSING:
            values[field.name] = value
    return msgspec.convert(values, kind, dec_hook=lambda kind, value: value)
