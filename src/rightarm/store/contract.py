"""What every store must keep to, whatever database it is in; `rightarm.testing.check_store` runs it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from rightarm.live.bandit import Bandit
from rightarm.messages import Ask, Change, Choice, Definition, Tell
from rightarm.policies import UCB, BoltzmannGumbel
from rightarm.store import verbs
from rightarm.store.errors import Conflict, NotFound, Refused
from rightarm.store.live import Live
from rightarm.store.store import Work, open_store
from rightarm.store.verify import verify

ROUNDS = 30
ARMS: list[Any] = ["red", "green", "blue"]


class Clock:
    """A time that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Contract:
    """Two stores on one database, as two replicas have them; each method checks one promise."""

    def __init__(self, url: str) -> None:
        self.clock = Clock()
        self.url, self.stores = url, [open_store(url, clock=self.clock) for _ in range(2)]

    def close(self) -> None:
        """Close both."""
        for store in self.stores:
            store.close()

    def make(self, name: str, policy: Any = None, **options: Any) -> Any:
        """Make a bandit; True if it is new."""
        policy = BoltzmannGumbel(C=0.5) if policy is None else policy
        definition = Definition(arms=ARMS, policy=repr(policy), seed=1, **options)
        return self.stores[0].do(self.stores[0].create(name, definition, policy, by="contract"))

    def ask(self, store: int, name: str, **request: Any) -> list[Choice]:
        """Decide on one of the replicas."""
        choices: list[Choice] = self.stores[store].do(name, lambda live: verbs.ask(live, Ask(**request)))
        return choices

    def tell(self, store: int, name: str, decision: int, reward: float, **request: Any) -> str:
        """Tell a reward to one of the replicas; says what became of it."""
        tell = Tell(decision=decision, reward=reward, **request)
        [told] = self.stores[store].do(name, lambda live: verbs.tell(live, [tell]))
        return str(told.outcome)

    def events(self, name: str) -> list[dict[str, Any]]:
        """All events of a bandit."""
        return [json.loads(line) for line in self.stores[0].events(name)]

    # Promises.

    def decisions_are_those_of_one_bandit(self) -> None:
        """Replicas that take turns decide as one bandit in memory would, and so does one that starts later."""
        self.make("same")
        alone: Bandit[Any] = Bandit(ARMS, BoltzmannGumbel(C=0.5), seed=1, clock=self.clock)
        for place in range(ROUNDS):
            [choice], made = self.ask(place % 2, "same"), alone.ask()
            found = choice.decision, choice.arm, choice.propensity, choice.round
            _require(
                found == (made.id, made.arm, made.propensity, made.round), f"round {place}: {choice} is not {made}"
            )
            _require(choice.version == self.events("same")[-1]["n"] - 1, f"{choice} is not of the event before it")
            reward = float(made.arm == "blue")
            self.tell((place // 2) % 2, "same", choice.decision, reward)
            alone.tell(made, reward)
        self.stores[1].close()
        self.stores[1] = open_store(self.url, clock=self.clock)
        [choice], made = self.ask(1, "same"), alone.ask()
        _require((choice.arm, choice.propensity) == (made.arm, made.propensity), f"after a start {choice}, not {made}")

    def events_have_no_gaps(self) -> None:
        """Events are numbered from 1; those after a number, and so many, can be had."""
        self.make("numbers")
        for place in range(5):
            self.ask(place % 2, "numbers", size=3)
        numbers = [event["n"] for event in self.events("numbers")]
        _require(numbers == list(range(1, 17)), f"events must be numbered 1 to 16, got {numbers}")
        some = [json.loads(line)["n"] for line in self.stores[1].events("numbers", 4, 2)]
        _require(some == [5, 6], f"events 5 and 6 must follow the first four, got {some}")

    def keys_get_the_same_answer(self) -> None:
        """The same key gets the same answer, from every replica and after a start; another request is refused."""
        self.make("keys")
        first = self.ask(0, "keys", key="k", size=2)
        self.ask(0, "keys")
        _require(self.ask(1, "keys", key="k", size=2) == first, "another replica must give the same answer")
        count = len(self.events("keys"))
        twice = self.stores[0].run([Work("keys", lambda live: verbs.ask(live, Ask(key="m")))] * 2)
        _require(twice[0] == twice[1], f"a key that comes twice at once must get one answer, got {twice}")
        _require(len(self.events("keys")) == count + 1, "a key must decide once")
        self._refuses(Conflict, lambda: self.ask(1, "keys", key="k", size=3))

    def rewards_count_once(self) -> None:
        """A reward told again is a duplicate, another one a conflict; a correction replaces it."""
        self.make("once")
        [choice] = self.ask(0, "once")
        outcomes = [self.tell(store, "once", choice.decision, 1.0) for store in (0, 1, 0)]
        _require(outcomes == ["learned", "duplicate", "duplicate"], f"the reward must count once, got {outcomes}")
        self._refuses(Conflict, lambda: self.tell(1, "once", choice.decision, 0.5))
        self._refuses(NotFound, lambda: self.tell(1, "once", 10**15, 0.5))
        outcomes = [self.tell(store, "once", choice.decision, 0.5, correct=True) for store in (1, 0)]
        _require(outcomes == ["corrected", "duplicate"], f"the correction must count once, got {outcomes}")
        [row] = [row for row in self.stores[0].history("once") if row["arm"] == choice.arm]
        _require((row["decisions"], row["rewards"], row["total"]) == (1, 1, 0.5), f"counts must follow, got {row}")

    def what_fails_leaves_nothing(self) -> None:
        """Work that fails is as if it had not been, and what is done together with it is done."""
        self.make("whole")
        made = self.ask(0, "whole", size=2)
        rewards = [Tell(decision=made[0].decision, reward=1.0), Tell(decision=10**15, reward=1.0)]
        works = [
            Work("whole", lambda live: verbs.tell(live, rewards)),
            Work("whole", lambda live: verbs.ask(live, Ask())),
            Work("nobody", verbs.describe),
            Work("whole", _broken),
        ]
        results = self.stores[0].run(works)
        kinds = [type(result) for result in results]
        _require(kinds == [NotFound, list, NotFound, ZeroDivisionError], f"got {results}")
        events = self.events("whole")
        _require(len(events) == 4, f"one decision must be new, got {events[3:]}")
        _require(self.tell(1, "whole", made[0].decision, 1.0) == "learned", "the reward was not taken before")

    def units_keep_their_arm(self) -> None:
        """A unit gets its decision again, from every replica."""
        self.make("units")
        first = self.ask(0, "units", unit="visitor 17")
        self.tell(1, "units", first[0].decision, 0.0)
        again = [self.ask(store, "units", unit="visitor 17") for store in (0, 1)]
        _require(again == [first, first], f"the unit must keep {first}, got {again}")

    def windows_close_once(self) -> None:
        """The window of a decision closes once, however many replicas look."""
        self.make("windows", window_of_reward=60.0, default=0.0, late="keep")
        [choice] = self.ask(0, "windows")
        self.clock.now += 61
        for store in (0, 1, 0):
            self.stores[store].do("windows", verbs.close_windows)
        kinds = [event["event"] for event in self.events("windows")]
        _require(kinds.count("expiry") == 1, f"the window must close once, got {kinds}")
        outcomes = [self.tell(store, "windows", choice.decision, 1.0) for store in (1, 0)]
        _require(outcomes == ["late", "duplicate"], f"a reward after the window is late, got {outcomes}")

    def changes_say_who(self) -> None:
        """Arms, policy, settings and status can be changed, in one event that says who it was."""
        self.make("changes")
        change = Change(arms=[*ARMS[1:], "new"], status="paused")
        for store in self.stores:
            store.do("changes", lambda live: verbs.change(live, change, UCB(C=0.5), "somebody"))
        said = [(event["event"], event["by"], event["status"]) for event in self.events("changes")[1:]]
        _require(said == [("change", "somebody", "paused")], f"got {said}")
        self._refuses(Conflict, lambda: self.ask(0, "changes"))
        _require(self.make("changes") is False, "what is there just so need not be made")
        self._refuses(Conflict, lambda: self.make("changes", floor=0.1))

    def _refuses(self, kind: type[Refused], function: Callable[[], Any]) -> None:
        before = self.stores[0].bandits(), [len(self.events(name)) for name in self.stores[0].bandits()]
        try:
            got = function()
        except kind:
            after = self.stores[0].bandits(), [len(self.events(name)) for name in self.stores[0].bandits()]
            _require(before == after, f"what is refused must leave nothing, got {before} and then {after}")
        else:
            _require(False, f"{kind.__name__} is expected, got {got}")

    def everything_follows_from_the_events(self) -> None:
        """`verify` finds nothing."""
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


def _broken(live: Live) -> None:
    verbs.ask(live, Ask())
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
