"""`Contract`: the promises of every store, whatever database it is in; `rightarm.testing.check_store` checks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rightarm.bandit.bandit import Bandit
from rightarm.logs.events import Changed, Event, Expiry
from rightarm.messages import Arm, Ask, Change, DecisionAnswer, Definition, Tell
from rightarm.policies import UCB, BoltzmannGumbel
from rightarm.store.connections import Conflict, Missing, Refused
from rightarm.store.store import Work, open_store
from rightarm.store.stored_bandit import StoredBandit
from rightarm.store.verify import verify

ROUNDS = 30
ARMS: list[Arm] = ["red", "green", "blue"]
POLICY = BoltzmannGumbel(C=0.5)


class ManualClock:
    """A clock that goes on when its ``now`` is set."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Contract:
    """Two stores on one database, as two replicas have them; each method checks one promise."""

    def __init__(self, url: str) -> None:
        self.clock = ManualClock()
        self.url = url
        self.stores = [open_store(url, clock=self.clock) for _ in range(2)]

    def close(self) -> None:
        """Close both."""
        for store in self.stores:
            store.close()

    def make(self, name: str, definition: Definition | None = None) -> bool:
        """Make a bandit; return True if it is new."""
        definition = definition or Definition(arms=ARMS, seed=1)
        return self.stores[0].do(self.stores[0].create(name, definition, POLICY, by="contract"))

    def ask(self, store: int, name: str, request: Ask | None = None) -> list[DecisionAnswer]:
        """Decide on one of the replicas."""
        return self.stores[store].do(name, lambda bandit: bandit.ask(request or Ask()))

    def tell(self, store: int, name: str, decision: int, reward: float, correct: bool = False) -> str:
        """Tell a reward to one of the replicas; return the outcome."""
        request = Tell(decision=decision, reward=reward, correct=correct)
        [answer] = self.stores[store].do(name, lambda bandit: bandit.tell([request]))
        return answer.outcome

    def events(self, name: str) -> list[Event]:
        """Return all events of a bandit."""
        return [stored.event() for stored in self.stores[0].stored_events(name)]

    # Promises.

    def decisions_are_those_of_one_bandit(self) -> None:
        """Check that replicas that take turns decide as one bandit in memory would, also after a start."""
        self.make("same")
        alone: Bandit[Arm] = Bandit(ARMS, POLICY, seed=1, clock=self.clock)
        for place in range(ROUNDS):
            [choice] = self.ask(place % 2, "same")
            made = alone.ask()
            found = choice.decision, choice.arm, choice.propensity, choice.round
            _require(
                found == (made.id, made.arm, made.propensity, made.round), f"round {place}: {choice} is not {made}"
            )
            _require(choice.version == len(self.events("same")) - 1, f"{choice} is not of the event before it")
            reward = float(made.arm == "blue")
            self.tell((place // 2) % 2, "same", choice.decision, reward)
            alone.tell(made, reward)
        self.stores[1].close()
        self.stores[1] = open_store(self.url, clock=self.clock)
        [choice] = self.ask(1, "same")
        made = alone.ask()
        _require((choice.arm, choice.propensity) == (made.arm, made.propensity), f"after a start {choice}, not {made}")

    def events_have_no_gaps(self) -> None:
        """Check that events are numbered from 1, and that those after a number, and so many, can be had."""
        self.make("numbers")
        for place in range(5):
            self.ask(place % 2, "numbers", Ask(size=3))
        numbers = [stored.n for stored in self.stores[0].stored_events("numbers")]
        _require(numbers == list(range(1, 17)), f"events must be numbered 1 to 16, got {numbers}")
        some = [stored.n for stored in self.stores[1].stored_events("numbers", 4, 2)]
        _require(some == [5, 6], f"events 5 and 6 must follow the first four, got {some}")

    def keys_get_the_same_answer(self) -> None:
        """Check that the same key gets the same answer from every replica, and that another request is refused."""
        self.make("keys")
        first = self.ask(0, "keys", Ask(key="k", size=2))
        self.ask(0, "keys")
        _require(self.ask(1, "keys", Ask(key="k", size=2)) == first, "another replica must give the same answer")
        count = len(self.events("keys"))
        twice = self.stores[0].run([Work("keys", lambda bandit: bandit.ask(Ask(key="m")))] * 2)
        _require(twice[0] == twice[1], f"a key that comes twice at once must get one answer, got {twice}")
        _require(len(self.events("keys")) == count + 1, "a key must decide once")
        self._refuses(Conflict, lambda: self.ask(1, "keys", Ask(key="k", size=3)))

    def rewards_count_once(self) -> None:
        """Check that a reward told again is a duplicate, another one a conflict, and that a correction replaces it."""
        self.make("once")
        [choice] = self.ask(0, "once")
        outcomes = [self.tell(store, "once", choice.decision, 1.0) for store in (0, 1, 0)]
        _require(outcomes == ["learned", "duplicate", "duplicate"], f"the reward must count once, got {outcomes}")
        self._refuses(Conflict, lambda: self.tell(1, "once", choice.decision, 0.5))
        self._refuses(Missing, lambda: self.tell(1, "once", 10**15, 0.5))
        outcomes = [self.tell(store, "once", choice.decision, 0.5, correct=True) for store in (1, 0)]
        _require(outcomes == ["corrected", "duplicate"], f"the correction must count once, got {outcomes}")
        [row] = [row for row in self.stores[0].history("once") if row.arm == choice.arm]
        _require((row.decisions, row.rewards, row.total) == (1, 1, 0.5), f"counts must follow, got {row}")

    def what_fails_leaves_nothing(self) -> None:
        """Check that work that fails leaves nothing, and that what is done together with it is done."""
        self.make("whole")
        made = self.ask(0, "whole", Ask(size=2))
        rewards = [Tell(decision=made[0].decision, reward=1.0), Tell(decision=10**15, reward=1.0)]
        works: list[Work[object]] = [
            Work("whole", lambda bandit: bandit.tell(rewards)),
            Work("whole", lambda bandit: bandit.ask(Ask())),
            Work("nobody", StoredBandit.describe),
            Work("whole", _broken),
        ]
        results = self.stores[0].run(works)
        kinds = [type(result) for result in results]
        _require(kinds == [Missing, list, Missing, ZeroDivisionError], f"got {results}")
        events = self.events("whole")
        _require(len(events) == 4, f"one decision must be new, got {events[3:]}")
        _require(self.tell(1, "whole", made[0].decision, 1.0) == "learned", "the reward was not taken before")

    def units_keep_their_arm(self) -> None:
        """Check that a unit gets its decision again, from every replica."""
        self.make("units")
        first = self.ask(0, "units", Ask(unit="visitor 17"))
        self.tell(1, "units", first[0].decision, 0.0)
        again = [self.ask(store, "units", Ask(unit="visitor 17")) for store in (0, 1)]
        _require(again == [first, first], f"the unit must keep {first}, got {again}")

    def windows_close_once(self) -> None:
        """Check that the window of a decision closes once, however many replicas look."""
        self.make("windows", Definition(arms=ARMS, seed=1, reward_window=60.0, default_reward=0.0, late="keep"))
        [choice] = self.ask(0, "windows")
        self.clock.now += 61
        for store in (0, 1, 0):
            self.stores[store].do("windows", StoredBandit.close_windows)
        closed = [event for event in self.events("windows") if isinstance(event, Expiry)]
        _require(len(closed) == 1, f"the window must close once, got {closed}")
        outcomes = [self.tell(store, "windows", choice.decision, 1.0) for store in (1, 0)]
        _require(outcomes == ["late", "duplicate"], f"a reward after the window is late, got {outcomes}")

    def changes_say_who(self) -> None:
        """Check that arms, policy, settings and status change in one event that names who did it."""
        self.make("changes")
        change = Change(arms=[*ARMS[1:], "new"], status="paused")
        for store in self.stores:
            store.do("changes", lambda bandit: bandit.change(change, UCB(C=0.5), "somebody"))
        changes = self.events("changes")[1:]
        found = [(event.by, event.status) for event in changes if isinstance(event, Changed)]
        _require(len(changes) == 1 and found == [("somebody", "paused")], f"one change is expected, got {changes}")
        self._refuses(Conflict, lambda: self.ask(0, "changes"))
        _require(self.make("changes") is False, "what is there just so need not be made")
        self._refuses(Conflict, lambda: self.make("changes", Definition(arms=ARMS, seed=1, floor=0.1)))

    def _refuses(self, kind: type[Refused], function: Callable[[], object]) -> None:
        before = self._sizes()
        try:
            got = function()
        except kind:
            after = self._sizes()
            _require(before == after, f"what is refused must leave nothing, got {before} and then {after}")
        else:
            _require(False, f"{kind.__name__} is expected, got {got}")

    def _sizes(self) -> dict[str, int]:
        """Return the number of events of each bandit."""
        return {name: len(self.events(name)) for name in self.stores[0].bandits()}

    def everything_follows_from_the_events(self) -> None:
        """Check that `verify` finds nothing."""
        found = verify(self.stores[0].database)
        _require(not found.findings and found.decisions > ROUNDS, f"{found}")


PROMISES: Sequence[Callable[[Contract], None]] = (
    Contract.decisions_are_those_of_one_bandit,
    Contract.events_have_no_gaps,
    Contract.keys_get_the_same_answer,
    Contract.rewards_count_once,
    Contract.what_fails_leaves_nothing,
    Contract.units_keep_their_arm,
    Contract.windows_close_once,
    Contract.changes_say_who,
    Contract.everything_follows_from_the_events,
)


def _broken(bandit: StoredBandit) -> None:
    bandit.ask(Ask())
    raise ZeroDivisionError


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def check(url: str) -> None:
    """Check all promises on an empty database."""
    contract = Contract(url)
    try:
        for promise in PROMISES:
            promise(contract)
    finally:
        contract.close()
