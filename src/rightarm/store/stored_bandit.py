"""`StoredBandit`: a bandit of a store in memory, and everything that a request can do with it.

Each verb decides everything first, from the state and the database, and then lets it happen: a request that is refused
has changed nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal, TypeVar

import msgspec
from sqlalchemy import Connection, Row, select

from rightarm.bandit import decide, saved
from rightarm.bandit import rewards as collecting
from rightarm.bandit.context_arms import EncodedContext
from rightarm.bandit.decide import Draws
from rightarm.bandit.ledger import AlreadyAnswered, UnknownDecision, distinct
from rightarm.bandit.recovery import policy_from
from rightarm.bandit.state import State
from rightarm.errors import WrongType, WrongValue
from rightarm.logs.events import Correction, Decision, Event, Expiry, Reward
from rightarm.logs.journals import key_from
from rightarm.logs.settings import Settings
from rightarm.messages import Arm, Ask, BanditAnswer, BanditStatus, Change, DecisionAnswer, Outcome, RewardAnswer, Tell
from rightarm.policies.policy import Policy
from rightarm.store import schema
from rightarm.store.connections import Conflict, Damaged, Missing
from rightarm.store.table_journal import FIND_KEY, TableJournal, digest_of, event_at, journal_of, read_events

T = TypeVar("T")
REFUSES = {"ask": ("paused", "archived"), "tell": ("archived",)}
DECISION_ANSWERS = msgspec.json.Decoder(list[DecisionAnswer])
REWARD_ANSWER = msgspec.json.Decoder(RewardAnswer)


class StoredBandit:
    """A bandit of a store: the fold of its events so far, with what of it is not in the database yet."""

    def __init__(self, row: Row[tuple[object, ...]], journal: TableJournal, state: State) -> None:
        self.id: int = row.id
        self.name: str = row.name
        self.definition: str = row.definition
        self.created: float = row.created
        self.journal = journal
        self.state = state
        self.draws = Draws(key_from(row.key))
        self.guardrail = decide.Guardrail()
        self.in_snapshot = journal.events
        """The number of events that the last snapshot has."""
        self.now = 0.0  # the time of the transaction
        self.connection: Connection | None = None  # that of the transaction

    @property
    def version(self) -> int:
        """The number of the last event."""
        return self.journal.events

    @property
    def status(self) -> BanditStatus:
        """The status: running, paused or archived."""
        status: BanditStatus = self.state.status
        return status

    # Decisions.

    def ask(self, request: Ask) -> list[DecisionAnswer]:
        """Decide; the same key always gets the same answer.

        Parameters
        ----------
        request : Ask
            The contexts, the arms that are allowed, the unit, the key.

        Returns
        -------
        list of DecisionAnswer
            One decision, or as many as ``size`` or ``contexts`` ask for.

        Raises
        ------
        Conflict
            If the bandit is paused or archived, or the key came with another request before.
        """
        if request.key is None:
            return [_answer_of(decision) for decision in self._decide(request)]
        digest = _digest_of_request(request)
        before = self._answer_to_key("ask", request.key, digest)
        if before is not None:
            return DECISION_ANSWERS.decode(before)
        answers = [_answer_of(decision) for decision in self._decide(request)]
        self.journal.keys["ask", request.key] = digest, msgspec.json.encode(answers).decode()
        return answers

    def _decide(self, request: Ask) -> list[Decision[Arm]]:
        self._check_status("ask")
        state = self.state
        features = by_name("arm_features", request.arm_features, state.names)
        members = None if request.allowed is None else state.chosen(request.allowed)
        meta = None if request.meta is None else decide.check_meta(request.meta)
        if request.size is not None or request.contexts is not None:
            if request.unit is not None:
                raise WrongType("unit", f"is for one decision, got {request.unit!r} and several")
            if request.context is not None or (request.size is not None and request.contexts is not None):
                raise WrongType("context", "must be left out where size or contexts is given, which exclude each other")
            contexts = decide.encode_several(state, request.size, request.contexts, features, members)
            decisions = decide.decide_several(state, self.draws, self.now, members, contexts, meta=meta)
            self._happen(decisions, contexts)
            return decisions
        before = None if request.unit is None else decide.assigned(state, request.unit, members)
        if before is not None:
            return [before]
        context = state.encode(request.context, features, members)
        decision = decide.decide(state, self.draws, self.now, members, context, unit=request.unit, meta=meta)
        self._happen([decision], [context])
        return [decision]

    # Rewards.

    def tell(self, rewards: Sequence[Tell]) -> list[RewardAnswer]:
        """Learn rewards, all of them or none.

        Parameters
        ----------
        rewards : sequence of Tell
            Rewards of decisions or of arms; each with a key counts once, however often it is sent.

        Returns
        -------
        list of RewardAnswer
            The outcome of each.

        Raises
        ------
        Conflict
            If a decision has another reward already, or the bandit is archived.
        Missing
            If a decision was never made.
        """
        self._check_status("tell")
        plan = collecting.Rewards(self.state, self.now)
        keys = dict[str, tuple[bytes, RewardAnswer]]()
        try:
            answers = [self._plan_once(plan, keys, request) for request in rewards]
            events = plan.checked()
        except AlreadyAnswered as error:
            hint = ': send it with "correct": true' if error.code == "answered" else ""
            raise Conflict(f"{error}{hint}", "reward", error.code) from None
        self._happen(events, plan.contexts())
        for key, (digest, answer) in keys.items():
            self.journal.keys["tell", key] = digest, msgspec.json.encode(answer).decode()
        self._apply_guardrail()
        return answers

    def _plan_once(
        self, plan: collecting.Rewards, keys: dict[str, tuple[bytes, RewardAnswer]], request: Tell
    ) -> RewardAnswer:
        """Plan a reward, unless one with its key came before; ``keys`` are those of the same batch."""
        if request.key is None:
            return self._plan(plan, request)
        digest = _digest_of_request(request)
        if request.key in keys:
            _check_same_request(request.key, keys[request.key][0], digest)
            return RewardAnswer(outcome=collecting.DUPLICATE, decision=request.decision)
        before = self._answer_to_key("tell", request.key, digest)
        if before is not None:
            answer = REWARD_ANSWER.decode(before)
            answer.outcome = collecting.DUPLICATE
            return answer
        answer = self._plan(plan, request)
        keys[request.key] = digest, answer
        return answer

    def _plan(self, plan: collecting.Rewards, request: Tell) -> RewardAnswer:
        """Plan the reward of a decision, or of an arm; a correction where nothing was learned is the first reward."""
        number = request.decision
        if number is None:
            if request.correct:
                raise WrongType("correct", "must be left out: only the reward of a decision can be corrected")
            if request.arm is None:
                raise WrongType("decision", "must be given, or an arm")
            features = by_name("arm_features", request.arm_features, self.state.names)
            return RewardAnswer(outcome=plan.observe(request.arm, request.reward, request.context, features))
        if request.arm is not None:
            raise WrongType("arm", f"must be left out with a decision, got {request.arm!r} and {number}")
        if request.context is not None or request.arm_features is not None:
            raise WrongType("context", "must be left out: a decision has its context already")
        outcome: Outcome
        try:
            if not request.correct:
                outcome = plan.tell(number, request.reward)
            elif plan.is_open(number):
                outcome = plan.replace(number, request.reward)
            else:
                outcome = plan.correct(number, request.reward)
        except UnknownDecision:
            outcome = self._compare_long_ago(number, request.reward)
        return RewardAnswer(outcome=outcome, decision=number)

    def _compare_long_ago(self, number: int, reward: float) -> Outcome:
        """Answer for a decision that is not in memory: the same reward is a duplicate, all else is refused."""
        event = self._find_answer(number)
        before = event.reward if isinstance(event, Reward | Correction | Expiry) else None
        is_unclear = isinstance(event, Expiry) and before is None
        if is_unclear or before != self.state.check_reward(reward):
            raise Conflict(f"decision {number} was answered too long ago to be changed", "decision")
        return collecting.DUPLICATE

    def _find_answer(self, number: int) -> Event:
        """Return the event that has answered a decision of long ago."""
        assert self.connection is not None
        waiting = self.journal.waiting_answer(number)
        if waiting is not None:
            return waiting
        table = schema.decisions.c
        wanted = select(table.answer).where(table.bandit == self.id, table.id == number)
        n = self.connection.execute(wanted).scalar()
        if n is None:
            raise Missing(f"decision {number} was never made by {self.name}", "decision")
        return event_at(self.connection, self.id, n).event()

    def cancel(self, number: int) -> bool:
        """Forget a decision that will have no reward; return False if it does not wait for one any more."""
        self._check_status("tell")
        try:
            events = collecting.cancel(self.state, number, self.now)
        except UnknownDecision:
            self._find_answer(number)
            return False
        self._happen(events)
        return bool(events)

    def close_windows(self) -> None:
        """Learn the decisions whose reward window has closed, unless the bandit is archived."""
        if self.status == "archived":
            return
        events = collecting.close_windows(self.state, self.now)
        if events:
            self._happen(events)
            self._apply_guardrail()

    # Changes.

    def change(self, request: Change, policy: Policy | None, by: str) -> BanditAnswer:
        """Change arms, policy, settings or status, as one event that names who did it.

        Parameters
        ----------
        request : Change
            What is to change; fields that are left out stay.
        policy : Policy, optional
            The policy that decides from now on, if it is another one.
        by : str
            Who makes the change.

        Raises
        ------
        Conflict
            If the bandit is archived, which is for good.
        """
        names = None if request.arms is None else distinct(request.arms)
        if names is None and request.prior is not None:
            raise WrongValue("prior", "must come with arms, of which some are new")
        settings = {
            name: getattr(request, name)
            for name in Settings.__struct_fields__
            if getattr(request, name, msgspec.UNSET) is not msgspec.UNSET
        }
        prior = None if names is None else by_name("prior", request.prior, names)
        try:
            events = decide.change(
                self.state, self.now, arms=names, prior=prior, policy=policy, status=request.status, by=by, **settings
            )
        except WrongValue as error:
            if error.code == decide.ARCHIVED:
                raise Conflict(f"{self.name} is archived, which is for good", "status", error.code) from None
            raise
        self._happen(events)
        return self.describe()

    def describe(self) -> BanditAnswer:
        """Return the bandit as it is now."""
        state = self.state
        active = state.active_names()
        return BanditAnswer(
            name=self.name,
            status=self.status,
            arms=active,
            retired=[name for name in state.names if name not in active],
            policy=repr(state.arms.policy),
            settings=state.settings.plain(),
            version=self.version,
            decisions=state.ledger.next_id - state.ledger.first,
            rewards=state.arms.learned,
            created=self.created,
        )

    # One way to change.

    def _happen(self, events: Sequence[Event], contexts: Sequence[EncodedContext | None] = ()) -> None:
        """Let events happen: each is appended to the journal, and then changes the state.

        If the transaction is not committed, `Store` folds the state again from the database.
        """
        for event, context in zip(events, contexts or [None] * len(events), strict=True):
            self.journal.note(self.state, event)
            self.journal.append([event])
            self.state.apply(event, context)

    def _apply_guardrail(self) -> None:
        """Retire an arm that is shown to do harm, if there is a guardrail."""
        self._happen(self.guardrail.events(self.state, self.now))

    def _check_status(self, verb: Literal["ask", "tell"]) -> None:
        """Raise if the bandit is paused or archived and does not do this any more."""
        if self.status in REFUSES[verb]:
            raise Conflict(f"{self.name} is {self.status}: it does not {verb} now", "status")

    def _answer_to_key(self, kind: str, key: str, digest: bytes) -> str | None:
        """Return the answer to the same request with this key, if it came before."""
        if "\0" in key:
            raise ValueError(f"key must have no NUL, which PostgreSQL does not keep, got {key!r}")
        found = self.journal.keys.get((kind, key))
        if found is None:
            assert self.connection is not None
            row = self.connection.execute(FIND_KEY, {"bandit": self.id, "kind": kind, "key": key}).first()
            if row is None:
                return None
            found = bytes(row.request), row.answer
        _check_same_request(key, found[0], digest)
        return found[1]

    # From the database, and to it.

    def follow(self, row: Row[tuple[object, ...]], connection: Connection) -> int:
        """Fold the events that others have written since; return how many they were."""
        journal = self.journal
        behind = int(row.last) - journal.events
        if behind:
            rows = read_events(connection, self.id, journal.events, behind)  # whoever only reads holds no row
            for event in journal.follow(rows):
                self.state.apply(event)
        if row.last != journal.events or bytes(row.digest) != journal.digest:
            raise Damaged(f"{self.name} must have {row.last} events that follow each other, got {journal.events}")
        return behind

    def write(self, connection: Connection) -> None:
        """Write what is new, in the transaction that holds the bandit's row."""
        self.journal.write(connection, self.id, self.status)

    def committed(self) -> None:
        """Note that what was new is committed."""
        self.journal.committed()
        self.connection = None


def load(row: Row[tuple[object, ...]], connection: Connection) -> StoredBandit:
    """Return the bandit of a row: its last snapshot, and the events after that."""
    journal = journal_of(row, connection)
    table = schema.snapshots.c
    last = connection.execute(
        select(table.n, table.state, table.digest)
        .where(table.bandit == row.id, table.n <= row.last)
        .order_by(table.n.desc())
        .limit(1)
    ).first()
    state = State(policy_from)
    if last is not None:
        if digest_of(str(last.n), last.state) != bytes(last.digest):
            raise Damaged(f"{row.name}: the snapshot of event {last.n} is not as it was written")
        found = saved.from_json(last.state, policy_from)
        if found.place is None or found.place.log != row.identity or found.place.events != last.n:
            raise Damaged(f"{row.name}: the snapshot of event {last.n} is that of another bandit")
        state = found.state
        journal.start_at(event_at(connection, row.id, last.n))
    bandit = StoredBandit(row, journal, state)
    bandit.follow(row, connection)
    return bandit


def snapshot_of(state: State, journal: TableJournal) -> str:
    """Return the fold of a journal as text; the key of the draws is not part of it."""
    return saved.to_json(state, saved.Place(journal.identity, journal.events), None)


def by_name(field: str, given: dict[str, T] | None, arms: Sequence[Hashable]) -> dict[Hashable, T] | None:
    """Return what is given for arms by their names: the keys of JSON are texts, also where arms are numbers."""
    if given is None:
        return None
    names = {str(arm): arm for arm in arms}
    for arm in arms:
        if str(arm) in given and names[str(arm)] != arm:
            raise ValueError(f"{field} must be for one arm, got {str(arm)!r}, which two arms are called")
    return {names.get(name, name): value for name, value in given.items()}


def _answer_of(decision: Decision[Arm]) -> DecisionAnswer:
    return DecisionAnswer(
        decision=decision.id,
        arm=decision.arm,
        propensity=decision.propensity,
        exact=decision.error == 0.0,
        error=decision.error,
        round=decision.round,
        version=decision.version,
        time=decision.time,
        group=decision.group,
    )


def _digest_of_request(request: Ask | Tell) -> bytes:
    return digest_of(msgspec.json.encode(request, order="sorted"))


def _check_same_request(key: str, before: bytes, digest: bytes) -> None:
    if before != digest:
        raise Conflict(f"key must be a new one for another request, got {key!r} again", "key")
