"""A bandit of a service: the verbs of `rightarm.Bandit`, each as the requests that it makes and how it reads them."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from rightarm.client.methods import Awaits, Reading, Verb, Waits
from rightarm.client.requests import by_name, call, get, number_of, seconds, send, several, text_of
from rightarm.client.steps import Steps, read
from rightarm.contexts.features import rows_of
from rightarm.estimators import Estimator
from rightarm.evaluation import SampleRatio
from rightarm.extras import polars_for
from rightarm.inference import Best, Difference
from rightarm.live.arms import check_reward
from rightarm.live.bandit import TAKEN
from rightarm.logs.events import EXACT, Decision, Unit
from rightarm.messages import (
    Arm,
    Ask,
    Bandit,
    Cancel,
    Cancelled,
    Change,
    Choice,
    Choices,
    History,
    Hour,
    Probabilities,
    Question,
    Summary,
    Tell,
    Tells,
    Told,
    ToldAll,
)
from rightarm.scores.policy import Policy

if TYPE_CHECKING:
    import polars


class BanditVerbs:
    """The verbs; `rightarm.Bandit` says what each does. Where they do more or less, it is said here.

    Every request may be sent several times until an answer comes, and counts once: decisions and rewards carry a key.
    """

    def __init__(self, carrier: Any, name: str) -> None:
        self._carrier, self.name = carrier, name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self._carrier.options.url}>"

    def _path(self, *more: str) -> str:
        return "/".join(["/bandits", self.name, *more])

    # Decisions and rewards.

    @Verb
    def ask(
        self,
        size: int | None = None,
        *,
        context: Any = None,
        contexts: Any = None,
        arm_features: Any = None,
        among: Iterable[Arm] | None = None,
        unit: Unit | None = None,
        meta: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Steps[Any]:
        """Decide: a `Decision`, or a list of them if ``size`` or ``contexts`` are given; see `rightarm.Bandit.ask`.

        The same ``key`` always gets the same decision, also from another process and after a crash.
        """
        members = None if among is None else several("among", among)
        if arm_features is not None and not isinstance(arm_features, Mapping):
            arm_features = yield from self._by_arm(arm_features, members)
        message = Ask(
            unit=unit,
            context=context,
            contexts=None if contexts is None else list(rows_of(contexts)),
            arm_features=by_name(arm_features),
            among=members,
            size=size,
            key=_new_key() if key is None else key,
            meta=None if meta is None else dict(meta),
        )
        content = yield send("POST", self._path("ask"), message)
        if size is None and contexts is None:
            return _decision(read(content, Choice))
        return [_decision(choice) for choice in read(content, Choices).decisions]

    def _by_arm(self, table: Any, members: list[Arm] | None) -> Steps[dict[Arm, Any]]:
        """Return a table with a row for each arm that can be chosen, by arm."""
        rows = rows_of(table)
        found = yield from self._describe()
        arms = [arm for arm in found.arms if members is None or arm in members]
        if len(rows) != len(arms):
            raise ValueError(f"arm_features must have a row for each of {len(arms)} arms, got {len(rows)} rows")
        return dict(zip(arms, rows, strict=True))

    @Verb
    def tell(
        self,
        decision: Any = None,
        reward: float | None = None,
        *,
        arm: Any = ...,
        context: Any = None,
        arm_features: Any = None,
        key: str | None = None,
    ) -> Steps[Any]:
        """Tell the reward of a decision or of an arm, or a batch of pairs of decisions and rewards; see `Bandit.tell`.

        True if it was taken, False if it came too late to be learned or was told before, which is also the case if an
        answer was lost on its way and the request had to be sent again; a list of these for a batch, of which all is
        taken or none.
        """
        if (decision is None) == (arm is ...):
            given = "neither" if decision is None else f"{decision!r:.200} and arm={arm!r}"
            raise TypeError(f"tell takes either a decision or arm=, got {given}")
        key = _new_key() if key is None else key
        if decision is not None and reward is None and not isinstance(decision, Decision | int | str):
            return (yield from self._tell_batch(decision, key))
        if arm_features is not None and not isinstance(arm_features, Mapping):
            arm_features = yield from self._by_arm(arm_features, [arm])
        message = Tell(
            reward=check_reward(reward),
            decision=None if decision is None else number_of(decision),
            key=key,
            arm=None if arm is ... else arm,
            context=context,
            arm_features=by_name(arm_features),
        )
        return _taken(read((yield send("POST", self._path("tell"), message)), Told))

    def _tell_batch(self, batch: Any, key: str) -> Steps[list[bool]]:
        if not isinstance(batch, Iterable):
            raise TypeError(f"tell takes a decision and a reward, or pairs of both, got {batch!r:.200}")
        pairs = batch.items() if isinstance(batch, Mapping) else batch
        rewards = [
            Tell(decision=number_of(decision), reward=check_reward(reward), key=f"{key}-{i}")
            for i, (decision, reward) in enumerate(pairs)
        ]
        if not rewards:
            return []
        told = read((yield send("POST", self._path("tell"), Tells(rewards=rewards))), ToldAll)
        return [_taken(one) for one in told.rewards]

    @Verb
    def correct(self, decision: Decision[Any] | int | str, reward: float) -> Steps[bool]:
        """Replace the reward of a decision; True if something changed."""
        message = Tell(decision=number_of(decision), reward=check_reward(reward), correct=True, key=_new_key())
        return _taken(read((yield send("POST", self._path("tell"), message)), Told))

    @Verb
    def cancel(self, decision: Decision[Any] | int | str) -> Steps[bool]:
        """Forget a decision that will have no reward; False if it does not wait for one any more.

        It is also False if an answer was lost on its way and the request had to be sent again.
        """
        message = Cancel(decision=number_of(decision))
        found: bool = read((yield send("POST", self._path("cancel"), message)), Cancelled).cancelled
        return found

    # What it is and what it knows.

    def _describe(self) -> Steps[Bandit]:
        found: Bandit = read((yield get(self._path())), Bandit)
        return found

    @Verb
    def describe(self) -> Steps[Bandit]:
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
    def status(self) -> Steps[str]:
        """Say whether it is running, paused or archived."""
        return (yield from self._describe()).status

    @Verb
    def probabilities(
        self, context: Any = None, *, arm_features: Any = None, among: Iterable[Arm] | None = None
    ) -> Steps[dict[Arm, float]]:
        """Return the probability of every arm in the next decision, in a context if the policy decides by it."""
        members = None if among is None else several("among", among)
        if arm_features is not None and not isinstance(arm_features, Mapping):
            arm_features = yield from self._by_arm(arm_features, members)
        message = Question(context=context, arm_features=by_name(arm_features), among=members)
        found = read((yield send("POST", self._path("probabilities"), message)), Probabilities)
        return {one.arm: one.probability for one in found.probabilities}

    @Verb
    def difference(
        self, arm: Arm, other: Arm, *, where: Mapping[str, Any] | None = None, confidence: float = 0.95
    ) -> Steps[Difference]:
        """Say by how much the mean of ``arm`` is above that of ``other``: an interval that holds at any time.

        ``where`` asks for a segment, where the policy decides by contexts: ``{"device": "phone", "hour": (9, 17)}``.
        """
        segment = {} if where is None else {"where": msgspec.json.encode(dict(where)).decode()}
        query = {"arm": arm, "other": other, "confidence": confidence} | segment
        content = yield get(self._path("difference"), **query)
        found: Difference = read(content, Difference)
        return found

    @Verb
    def best(self, *, confidence: float = 0.95, tolerance: float = 0.0) -> Steps[Best]:
        """Say which arms can still be the best, which one to choose, and what choosing it for good can cost."""
        found: Best = read((yield get(self._path("best"), confidence=confidence, tolerance=tolerance)), Best)
        return found

    def _summary(self) -> Steps[Summary]:
        found: Summary = read((yield get(self._path("summary"))), Summary)
        return found

    @Verb
    def table(self) -> Steps[list[dict[str, Any]]]:
        """Return for every arm: pulls, estimate, mean with a 95% interval, share, probability now, pending."""
        return [msgspec.structs.asdict(row) for row in (yield from self._summary()).arms]

    @Reading
    def warning(self) -> Steps[str]:
        """Return a sentence that says so, and what to do, if all rewards so far are equal; else nothing."""
        return (yield from self._summary()).warning

    @Verb
    def summary(self) -> Steps[polars.DataFrame]:
        """`table` as a Polars frame; if there is a `warning`, it is one of Python's too."""
        found = yield from self._summary()
        if found.warning:
            warnings.warn(found.warning, stacklevel=2)
        rows = [msgspec.structs.asdict(row) | {"arm": str(row.arm)} for row in found.arms]
        frame: polars.DataFrame = polars_for("summary()").DataFrame(rows, infer_schema_length=None)
        return frame

    @Verb
    def history(self, hours: int | None = None) -> Steps[list[Hour]]:
        """Say how decisions and rewards were shared among arms, hour by hour; of the last so many hours, or of all."""
        found: list[Hour] = read((yield get(self._path("history"), hours=hours)), History).hours
        return found

    @Verb
    def sample_ratio(self, *, confidence: float = 0.99) -> Steps[SampleRatio]:
        """Check whether arms came as often as their propensities say."""
        found: SampleRatio = read((yield get(self._path("sample-ratio"), confidence=confidence)), SampleRatio)
        return found

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
        return (yield from call(self._carrier.operations, operation, {"name": self.name, **fields}))

    # Changes.

    def _change(self, message: Change) -> Steps[Bandit]:
        found: Bandit = read((yield send("PATCH", self._path(), message)), Bandit)
        return found

    @Verb
    def add_arm(self, arm: Arm, *, prior: Any = None) -> Steps[None]:
        """Add an arm. This and the other changes of arms read the list of arms and then write it: one at a time."""
        found = yield from self._describe()
        if arm in (*found.arms, *found.retired):
            raise ValueError(f"arms must differ, got {arm!r} again")
        yield from self._change(Change(arms=[*found.arms, arm], prior=_prior(arm, prior)))

    @Verb
    def retire_arm(self, arm: Arm) -> Steps[None]:
        """Choose an arm no more; what is pending for it is still learned."""
        found = yield from self._describe()
        _check_known(arm, found)
        yield from self._change(Change(arms=[other for other in found.arms if other != arm]))

    @Verb
    def restore_arm(self, arm: Arm) -> Steps[None]:
        """Choose a retired arm again, with what is known of it still."""
        found = yield from self._describe()
        _check_known(arm, found)
        yield from self._change(Change(arms=[*(other for other in found.arms if other != arm), arm]))

    @Verb
    def replace_arm(self, arm: Arm, by: Arm, *, prior: Any = None) -> Steps[None]:
        """Retire an arm and add the one that comes in its place, at once."""
        found = yield from self._describe()
        if arm not in found.arms:
            raise ValueError(f"arm must be one of {found.arms}, got {arm!r}")
        if by in (*found.arms, *found.retired):
            raise ValueError(f"by must be a new arm, got {by!r}")
        arms = [by if other == arm else other for other in found.arms]
        yield from self._change(Change(arms=arms, prior=_prior(by, prior)))

    @Verb
    def change(
        self, /, *, policy: Policy | str | None = None, estimator: Estimator | str | None = None, **changes: Any
    ) -> Steps[Bandit]:
        """Change arms, policy, status or settings from now on, as `rightarm.Bandit.change` does.

        ``changes`` are the other fields of `rightarm.messages.Change`, such as ``floor=0.05``; None takes a setting
        away, and what is left out stays.
        """
        unknown = changes.keys() - set(Change.__struct_fields__)
        if unknown:
            raise TypeError(f"change takes the settings of a bandit, got {', '.join(sorted(unknown))}")
        if "window_of_reward" in changes:
            changes["window_of_reward"] = seconds(changes["window_of_reward"])
        given = None if policy is None else text_of(policy)
        own = None if estimator is None else text_of(estimator)
        return (yield from self._change(Change(policy=given, estimator=own, **changes)))

    @Verb
    def pause(self) -> Steps[Bandit]:
        """Decide nothing until `resume`; rewards are still learned."""
        return (yield from self._change(Change(status="paused")))

    @Verb
    def resume(self) -> Steps[Bandit]:
        """Decide again."""
        return (yield from self._change(Change(status="running")))

    @Verb
    def archive(self) -> Steps[Bandit]:
        """Decide and learn nothing any more."""
        return (yield from self._change(Change(status="archived")))


class RemoteBandit(BanditVerbs, Waits):
    """A bandit of a service, whose verbs wait for the answers."""


class AsyncBandit(BanditVerbs, Awaits):
    """A bandit of a service, whose verbs are to be awaited."""


def _decision(choice: Choice) -> Decision[Any]:
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


def _taken(told: Told) -> bool:
    return told.outcome in TAKEN


def _new_key() -> str:
    return secrets.token_hex(16)


def _prior(arm: Arm, prior: Any) -> dict[str, Any] | None:
    return None if prior is None else {str(arm): list(prior)}


def _check_known(arm: Arm, found: Bandit) -> None:
    if arm not in (*found.arms, *found.retired):
        raise ValueError(f"arm must be one of {[*found.arms, *found.retired]}, got {arm!r}")
