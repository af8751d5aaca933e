"""Journals keep events whole and in order; the contract that says so notices those that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rightarm.logs.events import Event, Reward
from rightarm.logs.journals import Journal, LogWriter, MemoryJournal
from rightarm.testing import check_journal


def test_a_journal_in_memory() -> None:
    journal = MemoryJournal()
    check_journal(lambda: journal)


@pytest.mark.parametrize("options", [{}, {"sync": True}, {"rotate": "1kB"}, {"rotate": "day"}], ids=str)
def test_a_journal_in_a_file(options: dict[str, Any], tmp_path: Path) -> None:
    check_journal(lambda: LogWriter(tmp_path / "log.jsonl", **options))


def test_what_is_forgotten_is_refused_not_left_out() -> None:
    journal = MemoryJournal()
    rewards = [Reward(id=number, reward=0.5, time=1.0) for number in range(5)]
    journal.append(rewards)
    journal.forget(3)
    journal.append(rewards[:1])
    assert journal.events == 6
    assert list(journal.since(3)) == [*rewards[3:], rewards[0]]
    with pytest.raises(ValueError, match="the first 3 events are forgotten, got 2"):
        journal.since(2)
    journal.cut(4)
    assert (journal.events, list(journal.since(3))) == (4, [rewards[3]])


# Journals that break their promises.


class Forgetful(MemoryJournal):
    """Has every event but the last one of several."""

    def append(self, events: Sequence[Event]) -> None:
        super().append(events[:-1] if len(events) > 1 else events)


class Backwards(MemoryJournal):
    """Has the events of each call in another order."""

    def append(self, events: Sequence[Event]) -> None:
        super().append(events[::-1])


class Torn(MemoryJournal):
    """Keeps what comes before an event that it refuses."""

    def append(self, events: Sequence[Event]) -> None:
        for event in events:
            if getattr(event, "meta", None) and "a" in event.meta:  # type: ignore[attr-defined]
                raise ValueError("this cannot be kept")
            super().append([event])


class FromTheBeginning(MemoryJournal):
    """Gives all events, whatever was asked for."""

    def since(self, events: int) -> Iterator[Event]:
        return super().since(0)


class Keyless(MemoryJournal):
    """Loses its key."""

    def keep_key(self, key: int) -> None:
        pass


def one(kind: type[MemoryJournal]) -> Callable[[], Journal]:
    """Return what opens the same journal again and again."""
    journal = kind()
    return lambda: journal


WRONG: dict[type[MemoryJournal], str] = {
    Forgetful: "says that it has 12 events after 13 were appended",
    Backwards: r"since\(0\) gives",
    Torn: "says that it has 29 events after 28 were appended",
    FromTheBeginning: r"since\(1\) gives",
    Keyless: "does not keep the key",
}


@pytest.mark.parametrize(("kind", "message"), WRONG.items(), ids=[kind.__name__ for kind in WRONG])
def test_a_journal_that_breaks_a_promise_is_noticed(kind: type[MemoryJournal], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_journal(one(kind))


def test_a_journal_that_is_another_one_each_time_is_noticed() -> None:
    with pytest.raises(AssertionError, match="when it is opened again"):
        check_journal(MemoryJournal)


def test_a_key_among_the_events_is_noticed(tmp_path: Path) -> None:
    class Talkative(MemoryJournal):
        def keep_key(self, key: int) -> None:
            super().keep_key(key)
            self.append([Reward(id=key, reward=0.0, time=0.0)])

    with pytest.raises(AssertionError, match="the key is among the events"):
        check_journal(one(Talkative))
