"""`connect`: a decision service and its bandits, with the verbs of `rightarm.Bandit`; `connect_async`: to be awaited.

A verb is a generator: it yields the requests that it makes, and reads their answers.
"""

from __future__ import annotations

import re
import secrets
import warnings
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypedDict, TypeVar, Unpack, overload

import msgspec

from rightarm import messages
from rightarm.bandit.arms import check_reward
from rightarm.bandit.rewards import TAKEN
from rightarm.client.service_requests import (
    Steps,
    by_name,
    call,
    get,
    number_of,
    read,
    seconds,
    send,
    several,
    text_of,
)
from rightarm.client.transport import Awaited, Awaits, Blocking, Options, Reading, Verb, Waits
from rightarm.errors import polars_for
from rightarm.estimators import Estimator
from rightarm.estimators.features import rows_of
from rightarm.evaluation import SampleRatio
from rightarm.inference import Best, Difference
from rightarm.logs.events import EXACT, Decision, Unit
from rightarm.messages import Arm
from rightarm.policies.policy import Policy

if TYPE_CHECKING:
    import httpx
    import polars

Row = Any  # a context or the features of an arm: a mapping, a list of numbers, an array
Rows = Any  # several of them: a list, an array, a data frame
DecisionOrId = Decision[Arm] | int | str


class AskSeveral(TypedDict, total=False):
    """The options of ``ask`` for several decisions."""

    arm_features: Mapping[Arm, Row] | Rows | None
    allowed: Iterable[Arm] | None
    meta: Mapping[str, Any] | None
    key: str | None


class AskOne(AskSeveral, total=False):
    """The options of ``ask`` for one decision."""

    context: Row
    unit: Unit | None


class TellArm(TypedDict, total=False):
    """The options of ``tell`` for the reward of an arm without a decision."""

    context: Row
    arm_features: Mapping[Arm, Row] | Rows | None
    key: str | None


class RewardSettings(TypedDict, total=False):
    """The settings of a bandit that a service can set and change."""

    reward_range: tuple[float, float] | None
    floor: float
    reward_window: float | timedelta | None
    default_reward: float | None
    learn: Literal["at once", "at close"]
    repeated: Literal["last", "sum"]
    late: Literal["correct", "keep"]
    control: Arm | None
    holdout: float
    guardrail: float | None
    prior: Mapping[Arm, Any] | None


class NewSettings(RewardSettings, total=False):
    """The settings of a bandit that is to be made."""

    estimator: Estimator | str | None
    seed: int | None


class OtherSettings(RewardSettings, total=False):
    """The settings of a bandit that are to change."""

    arms: list[Arm] | None
    status: messages.BanditStatus | None


class BanditVerbs:
    """The verbs of `rightarm.Bandit`, on a service.

    Every request may be sent several times until an answer comes, and counts once: decisions and rewards carry a key.
    """

    def __init__(self, transport: Any, name: str) -> None:
        self._transport = transport
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self._transport.options.url}>"

    def _path(self, *more: str) -> str:
        return "/".join(["/bandits", self.name, *more])

    # Decisions and rewards.

    def _ask(
        self,
        size: int | None = None,
        *,
        context: Row = None,
        contexts: Rows = None,
        arm_features: Mapping[Arm, Row] | Rows | None = None,
        allowed: Iterable[Arm] | None = None,
        unit: Unit | None = None,
        meta: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Steps[Decision[Arm] | list[Decision[Arm]]]:
        """Decide: draw an arm, or several, as `rightarm.Bandit.ask` does.

        Parameters
        ----------
        size : int, optional
            The number of decisions, each drawn by itself.
        context : mapping or sequence of float, optional
            The context, if the policy decides by one.
        contexts : list or data frame, optional
            Several contexts, one decision each.
        arm_features : mapping or array, optional
            The features of each arm, or a table with a row for each arm that can be chosen.
        allowed : iterable, optional
            The arms that can be chosen, if not all.
        unit : str or int, optional
            Whom it is for: the same unit gets the same decision again.
        meta : mapping, optional
            Anything that the event is to have besides.
        key : str, optional
            The same key always gets the same decision, also from another process and after a crash.

        Returns
        -------
        Decision or list of Decision
            A list if ``size`` or ``contexts`` is given.
        """
        members = None if allowed is None else several("allowed", allowed)
        message = messages.Ask(
            unit=unit,
            context=context,
            contexts=None if contexts is None else list(rows_of(contexts)),
            arm_features=(yield from self._features(arm_features, members)),
            allowed=members,
            size=size,
            key=_new_key() if key is None else key,
            meta=None if meta is None else dict(meta),
        )
        content = yield send("POST", self._path("ask"), message)
        if size is None and contexts is None:
            return _decision(read(content, messages.DecisionAnswer))
        return [_decision(answer) for answer in read(content, messages.DecisionAnswers).decisions]

    def _features(
        self, given: Mapping[Arm, Row] | Rows | None, members: list[Arm] | None
    ) -> Steps[dict[str, Row] | None]:
        """Return the features of arms by their names; a table has a row for each arm that can be chosen."""
        if given is None or isinstance(given, Mapping):
            return by_name(given)
        rows = rows_of(given)
        found = yield from self._describe()
        arms = [arm for arm in found.arms if members is None or arm in members]
        if len(rows) != len(arms):
            raise ValueError(f"arm_features must have a row for each of {len(arms)} arms, got {len(rows)} rows")
        return by_name(dict(zip(arms, rows, strict=True)))

    def _tell(
        self,
        decision: Any = None,
        reward: float | None = None,
        *,
        arm: Any = ...,
        context: Row = None,
        arm_features: Mapping[Arm, Row] | Rows | None = None,
        key: str | None = None,
    ) -> Steps[bool | list[bool]]:
        """Learn the reward of a decision or of an arm, or a batch of rewards, as `rightarm.Bandit.tell` does.

        Parameters
        ----------
        decision : Decision, int, str, or iterable of pairs
            The decision or its id; or pairs of decisions and rewards, of which all are taken or none.
        reward : float, optional
            The reward, unless pairs are given.
        arm : str or int, optional
            The arm, for a reward that belongs to no decision.
        context, arm_features : optional
            Those of a reward without a decision, as `ask` takes them.
        key : str, optional
            A reward that is sent twice with the same key counts once.

        Returns
        -------
        bool or list of bool
            True if it was taken. False if it came too late to be learned or is a duplicate, which is also the case if
            an answer was lost on its way and the request had to be sent again.
        """
        if (decision is None) == (arm is ...):
            given = "neither" if decision is None else f"{decision!r:.200} and arm={arm!r}"
            raise TypeError(f"tell takes either a decision or arm=, got {given}")
        key = _new_key() if key is None else key
        if decision is not None and reward is None and not isinstance(decision, Decision | int | str):
            return (yield from self._tell_batch(decision, key))
        message = messages.Tell(
            reward=check_reward(reward),
            decision=None if decision is None else number_of(decision),
            key=key,
            arm=None if arm is ... else arm,
            context=context,
            arm_features=(yield from self._features(arm_features, [arm])),
        )
        return _taken(read((yield send("POST", self._path("tell"), message)), messages.RewardAnswer))

    def _tell_batch(self, batch: object, key: str) -> Steps[list[bool]]:
        if not isinstance(batch, Iterable):
            raise TypeError(f"tell takes a decision and a reward, or pairs of both, got {batch!r:.200}")
        pairs = batch.items() if isinstance(batch, Mapping) else batch
        rewards = [
            messages.Tell(decision=number_of(decision), reward=check_reward(reward), key=f"{key}-{i}")
            for i, (decision, reward) in enumerate(pairs)
        ]
        if not rewards:
            return []
        answers = read(
            (yield send("POST", self._path("tell"), messages.Tells(rewards=rewards))), messages.RewardAnswers
        )
        return [_taken(answer) for answer in answers.rewards]

    @Verb
    def correct(self, decision: DecisionOrId, reward: float) -> Steps[bool]:
        """Replace the reward of a decision; return True if something changed."""
        message = messages.Tell(decision=number_of(decision), reward=check_reward(reward), correct=True, key=_new_key())
        return _taken(read((yield send("POST", self._path("tell"), message)), messages.RewardAnswer))

    @Verb
    def cancel(self, decision: DecisionOrId) -> Steps[bool]:
        """Forget a decision that will have no reward; return False if it does not wait for one any more.

        The result is also False if an answer was lost on its way and the request had to be sent again.
        """
        message = messages.Cancel(decision=number_of(decision))
        return read((yield send("POST", self._path("cancel"), message)), messages.Cancelled).cancelled

    # What it is and what it has learned.

    def _describe(self) -> Steps[messages.BanditAnswer]:
        return read((yield get(self._path())), messages.BanditAnswer)

    @Verb
    def describe(self) -> Steps[messages.BanditAnswer]:
        """Return the bandit as it is now: arms, policy, settings, status, counts."""
        return (yield from self._describe())

    @Reading
    def arms(self) -> Steps[list[Arm]]:
        """Return the arms that can be chosen."""
        return (yield from self._describe()).arms

    @Reading
    def policy(self) -> Steps[str]:
        """Return the policy that decides, as text."""
        return (yield from self._describe()).policy

    @Reading
    def version(self) -> Steps[int]:
        """Return the number of the last event."""
        return (yield from self._describe()).version

    @Reading
    def status(self) -> Steps[messages.BanditStatus]:
        """Return the status: running, paused or archived."""
        return (yield from self._describe()).status

    @Verb
    def probabilities(
        self,
        context: Row = None,
        *,
        arm_features: Mapping[Arm, Row] | Rows | None = None,
        allowed: Iterable[Arm] | None = None,
    ) -> Steps[dict[Arm, float]]:
        """Return the probability of every arm in the next decision, in a context if the policy decides by it."""
        members = None if allowed is None else several("allowed", allowed)
        features = yield from self._features(arm_features, members)
        message = messages.Question(context=context, arm_features=features, allowed=members)
        found = read((yield send("POST", self._path("probabilities"), message)), messages.Probabilities)
        return {one.arm: one.probability for one in found.probabilities}

    @Verb
    def difference(
        self, arm: Arm, other: Arm, *, where: Mapping[str, Any] | None = None, confidence: float = 0.95
    ) -> Steps[Difference]:
        """Return by how much the mean of an arm is above that of another: an interval that holds at any time.

        Parameters
        ----------
        arm, other : str or int
            The two arms.
        where : mapping, optional
            A segment, where the policy decides by contexts: ``{"device": "phone", "hour": (9, 17)}``.
        confidence : float
            The confidence of the interval.
        """
        segment = None if where is None else msgspec.json.encode(dict(where)).decode()
        content = yield get(self._path("difference"), arm=arm, other=other, confidence=confidence, where=segment)
        return read(content, Difference)

    @Verb
    def best(self, *, confidence: float = 0.95, tolerance: float = 0.0) -> Steps[Best]:
        """Return which arms can still be the best, which one to choose, and what choosing it for good can cost.

        Parameters
        ----------
        confidence : float
            The confidence of the statement.
        tolerance : float
            A loss for each decision that would not matter.
        """
        return read((yield get(self._path("best"), confidence=confidence, tolerance=tolerance)), Best)

    def _summary(self) -> Steps[messages.Summary]:
        return read((yield get(self._path("summary"))), messages.Summary)

    @Verb
    def table(self) -> Steps[list[dict[str, Any]]]:
        """Return for every arm: pulls, estimate, mean with a 95% interval, share, probability now, pending."""
        return [msgspec.structs.asdict(row) for row in (yield from self._summary()).arms]

    @Reading
    def warning(self) -> Steps[str]:
        """Return a warning, with what to do, if all rewards so far are equal; else an empty text."""
        return (yield from self._summary()).warning

    @Verb
    def summary(self) -> Steps[polars.DataFrame]:
        """Return `table` as a Polars frame; a `warning` is also issued as one of Python."""
        found = yield from self._summary()
        if found.warning:
            warnings.warn(found.warning, stacklevel=2)
        rows = [msgspec.structs.asdict(row) | {"arm": str(row.arm)} for row in found.arms]
        frame: polars.DataFrame = polars_for("summary()").DataFrame(rows, infer_schema_length=None)
        return frame

    @Verb
    def history(self, hours: int | None = None) -> Steps[list[messages.Hour]]:
        """Return the decisions and rewards of each arm, hour by hour; of the last so many hours, or of all."""
        return read((yield get(self._path("history"), hours=hours)), messages.History).hours

    @Verb
    def sample_ratio(self, *, confidence: float = 0.99) -> Steps[SampleRatio]:
        """Check whether arms came as often as their propensities say."""
        return read((yield get(self._path("sample-ratio"), confidence=confidence)), SampleRatio)

    @Verb
    def events(self, after: int = 0, limit: int = 10_000) -> Steps[list[dict[str, Any]]]:
        """Return the events after the number ``after``, at most ``limit``: what the bandit's state is made of."""
        content = yield get(self._path("events"), after=after, limit=limit)
        return [read(line, dict[str, Any]) for line in content.splitlines()]

    @Verb
    def call(self, operation: str, /, **fields: Any) -> Steps[Any]:
        """Do any operation of the service with this bandit, by its name in ``/openapi.json``: ``call("best")``.

        The answer is what JSON makes of it. So a new operation of a service needs no new client.
        """
        return (yield from call(self._transport.operations, operation, {"name": self.name, **fields}))

    # Changes.

    def _change(self, message: messages.Change) -> Steps[messages.BanditAnswer]:
        return read((yield send("PATCH", self._path(), message)), messages.BanditAnswer)

    @Verb
    def add_arm(self, arm: Arm, *, prior: Iterable[float] | None = None) -> Steps[None]:
        """Add an arm. This and the other changes of arms read the list of arms and then write it: one at a time."""
        found = yield from self._describe()
        if arm in (*found.arms, *found.retired):
            raise ValueError(f"arms must differ, got {arm!r} again")
        yield from self._change(messages.Change(arms=[*found.arms, arm], prior=_prior(arm, prior)))

    @Verb
    def retire_arm(self, arm: Arm) -> Steps[None]:
        """Stop choosing an arm; rewards that are pending for it are still learned."""
        found = yield from self._describe()
        _check_arm(arm, found)
        yield from self._change(messages.Change(arms=[other for other in found.arms if other != arm]))

    @Verb
    def restore_arm(self, arm: Arm) -> Steps[None]:
        """Choose a retired arm again, with what was learned of it before."""
        found = yield from self._describe()
        _check_arm(arm, found)
        yield from self._change(messages.Change(arms=[*(other for other in found.arms if other != arm), arm]))

    @Verb
    def replace_arm(self, arm: Arm, by: Arm, *, prior: Iterable[float] | None = None) -> Steps[None]:
        """Retire an arm and add the one that comes in its place, at once."""
        found = yield from self._describe()
        if arm not in found.arms:
            raise ValueError(f"arm must be one of {found.arms}, got {arm!r}")
        if by in (*found.arms, *found.retired):
            raise ValueError(f"by must be a new arm, got {by!r}")
        arms = [by if other == arm else other for other in found.arms]
        yield from self._change(messages.Change(arms=arms, prior=_prior(by, prior)))

    @Verb
    def change(
        self,
        /,
        *,
        policy: Policy | str | None = None,
        estimator: Estimator | str | None = None,
        **changes: Unpack[OtherSettings],
    ) -> Steps[messages.BanditAnswer]:
        """Change arms, policy, status or settings from now on, as `rightarm.Bandit.change` does.

        Parameters
        ----------
        policy : Policy or str, optional
            The policy that decides from now on.
        estimator : Estimator or str, optional
            The estimator of the policy from now on.
        **changes
            Other fields of `rightarm.messages.Change`, such as ``floor=0.05``; None takes a setting away, and what is
            left out stays.
        """
        unknown = changes.keys() - set(messages.Change.__struct_fields__)
        if unknown:
            raise TypeError(f"change takes the settings of a bandit, got {', '.join(sorted(unknown))}")
        if "reward_window" in changes:
            changes["reward_window"] = seconds(changes["reward_window"])
        message = messages.Change(
            policy=None if policy is None else text_of(policy),
            estimator=None if estimator is None else text_of(estimator),
            **changes,  # type: ignore[arg-type]
        )
        return (yield from self._change(message))

    @Verb
    def pause(self) -> Steps[messages.BanditAnswer]:
        """Decide nothing until `resume`; rewards are still learned."""
        return (yield from self._change(messages.Change(status="paused")))

    @Verb
    def resume(self) -> Steps[messages.BanditAnswer]:
        """Decide again."""
        return (yield from self._change(messages.Change(status="running")))

    @Verb
    def archive(self) -> Steps[messages.BanditAnswer]:
        """Decide and learn nothing any more."""
        return (yield from self._change(messages.Change(status="archived")))


One = TypeVar("One", covariant=True)
Many = TypeVar("Many", covariant=True)


class AskMethod(Protocol[One, Many]):
    """The forms of ``ask``."""

    @overload
    def __call__(self, **options: Unpack[AskOne]) -> One: ...
    @overload
    def __call__(self, size: int, **options: Unpack[AskSeveral]) -> Many: ...
    @overload
    def __call__(self, *, contexts: Rows, **options: Unpack[AskSeveral]) -> Many: ...


class TellMethod(Protocol[One, Many]):
    """The forms of ``tell``."""

    @overload
    def __call__(self, decision: DecisionOrId, reward: float, *, key: str | None = None) -> One: ...
    @overload
    def __call__(
        self, decision: Iterable[tuple[DecisionOrId, float]] | Mapping[Any, float], *, key: str | None = None
    ) -> Many: ...
    @overload
    def __call__(self, *, arm: Arm, reward: float, **options: Unpack[TellArm]) -> One: ...


class RemoteBandit(BanditVerbs, Waits):
    """A bandit of a service, whose verbs wait for the answers."""

    ask: AskMethod[Decision[Arm], list[Decision[Arm]]] = Verb(BanditVerbs._ask)  # type: ignore[assignment]
    tell: TellMethod[bool, list[bool]] = Verb(BanditVerbs._tell)  # type: ignore[assignment]


class AsyncBandit(BanditVerbs, Awaits):
    """A bandit of a service, whose verbs are to be awaited."""

    ask: AskMethod[Awaitable[Decision[Arm]], Awaitable[list[Decision[Arm]]]] = Verb(BanditVerbs._ask)  # type: ignore[assignment]
    tell: TellMethod[Awaitable[bool], Awaitable[list[bool]]] = Verb(BanditVerbs._tell)  # type: ignore[assignment]


def _decision(choice: messages.DecisionAnswer) -> Decision[Arm]:
    return Decision(
        id=choice.decision,
        arm=choice.arm,
        propensity=choice.propensity,
        round=choice.round,
        version=choice.version,
        group=choice.group,
        error=choice.error or EXACT,
        time=choice.time,
    )


def _taken(answer: messages.RewardAnswer) -> bool:
    return answer.outcome in TAKEN


def _new_key() -> str:
    return secrets.token_hex(16)


def _prior(arm: Arm, prior: Iterable[float] | None) -> dict[str, list[float]] | None:
    return None if prior is None else {str(arm): list(prior)}


def _check_arm(arm: Arm, found: messages.BanditAnswer) -> None:
    if arm not in (*found.arms, *found.retired):
        raise ValueError(f"arm must be one of {[*found.arms, *found.retired]}, got {arm!r}")


B = TypeVar("B", bound=BanditVerbs)


class ServiceVerbs(Generic[B]):
    """A service; ``service["home"]`` is its bandit of that name, which `create` makes."""

    def __init__(self, transport: Any, kind: type[B]) -> None:
        self._transport = transport
        self._kind = kind

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._transport.options.url}>"

    def __getitem__(self, name: str) -> B:
        if not isinstance(name, str) or not re.fullmatch(messages.NAME, name):
            raise ValueError(f"name must be up to 100 letters, digits, '.', '_' and '-', got {name!r:.200}")
        return self._kind(self._transport, name)

    @Reading
    def names(self) -> Steps[list[str]]:
        """Return the names of the bandits."""
        return read((yield get("/bandits")), messages.Names).bandits

    @Verb
    def call(self, operation: str, /, **fields: Any) -> Steps[Any]:
        """Do any operation of the service by its name in ``/openapi.json``; the answer is what JSON makes of it."""
        return (yield from call(self._transport.operations, operation, fields))

    @Verb
    def create(
        self, /, name: str, arms: Iterable[Arm], policy: Policy | str | None = None, **settings: Unpack[NewSettings]
    ) -> Steps[B]:
        """Make a bandit and return it; one that was made just so before is returned as it is.

        Parameters
        ----------
        name : str
            Up to 100 letters, digits, '.', '_' and '-'.
        arms : iterable
            The names of the arms, texts or whole numbers.
        policy : Policy or str, optional
            The policy; the default one of the service unless given.
        **settings
            Those of `rightarm.Bandit`, such as ``reward_range=(0, 1)``, and ``estimator``.

        Raises
        ------
        RefusedByService
            If there is a bandit of this name that was made of something else.
        """
        unknown = settings.keys() - set(messages.Definition.__struct_fields__)
        if unknown:
            raise TypeError(f"create takes the settings of a bandit, got {', '.join(sorted(unknown))}")
        fields: dict[str, Any] = dict(settings)
        fields["reward_window"] = seconds(settings.get("reward_window"))
        fields["prior"] = by_name(settings.get("prior"))
        for field, formula in (("policy", policy), ("estimator", settings.get("estimator"))):
            fields[field] = None if formula is None else text_of(formula)
        message = messages.Definition(arms=several("arms", arms), **fields)
        bandit = self[name]
        read((yield send("PUT", f"/bandits/{name}", message)), messages.BanditAnswer)
        return bandit


class RemoteService(ServiceVerbs[RemoteBandit], Waits):
    """A service whose verbs wait for the answers; iteration gives the names of its bandits."""

    def __init__(self, options: Options) -> None:
        super().__init__(Blocking(options), RemoteBandit)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def close(self) -> None:
        """Close the connections; a service in a ``with`` statement does so at its end."""
        self._transport.client.close()

    def __enter__(self) -> RemoteService:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncService(ServiceVerbs[AsyncBandit], Awaits):
    """A service whose verbs are to be awaited; ``async for`` gives the names of its bandits."""

    def __init__(self, options: Options) -> None:
        super().__init__(Awaited(options), AsyncBandit)

    async def __aiter__(self) -> AsyncIterator[str]:
        for name in await self.names:
            yield name

    async def close(self) -> None:
        """Close the connections; a service in an ``async with`` statement does so at its end."""
        await self._transport.client.aclose()

    async def __aenter__(self) -> AsyncService:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def connect(
    url: str,
    token: str | None = None,
    *,
    timeout: float = 5.0,
    retries: int = 12,
    transport: httpx.BaseTransport | None = None,
) -> RemoteService:
    """Connect to a decision service: ``connect(url)["home"]`` has the verbs of `Bandit`, ``create`` makes another.

    Parameters
    ----------
    url : str
        The address of the service.
    token : str, optional
        A token as ``rightarm tokens add`` gives it; a service on this machine may need none.
    timeout : float
        Seconds that every step of a request may take: connecting, sending, each part of the answer.
    retries : int
        How often a request is sent again if no answer comes, or the service is busy, with pauses that grow: by itself
        it outlasts a restart of the service, some 20 seconds. No request counts twice.
    transport : httpx.BaseTransport, optional
        Another transport of httpx, such as `httpx.MockTransport` in tests.

    Raises
    ------
    rightarm.client.ServiceError
        From the verbs, with a ``status``: a `ValueError` for what the service refuses, a `LookupError` for what it does
        not have, a `PermissionError` for what the token is not good for, a `ConnectionError` if no answer comes.

    Examples
    --------
    >>> import rightarm as ra
    >>> ra.connect("http://127.0.0.1:8080")["home"]
    <RemoteBandit 'home' of http://127.0.0.1:8080>
    """
    return RemoteService(Options(url, token, timeout, retries, transport))


def connect_async(
    url: str,
    token: str | None = None,
    *,
    timeout: float = 5.0,
    retries: int = 12,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncService:
    """Connect as `connect` does, for programs that await: ``decision = await connect_async(url)["home"].ask()``."""
    return AsyncService(Options(url, token, timeout, retries, transport))
