"""Decide, append, apply: an interrupt at any bytecode leaves a call done wholly or not at all."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import rightarm as ra
from bandits import BGE, Clock, arm_rows
from interrupts import Interrupt, TimeIsUp
from rightarm.bandit import recovery, saved
from rightarm.bandit.recovery import policy_from

ROOMS = tuple(os.path.join(os.path.dirname(ra.__file__), room) + os.sep for room in ("bandit", "logs"))
SHORT = ("ask", "tell")  # calls that are broken off at each bytecode from the first event on, in every run
STRIDE = 23  # bytecodes from one interrupt to the next elsewhere, where there is little time


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing crashes here, so nothing has to be on the disk."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


# Interrupts.


class Countdown:
    """Raises an error at the k-th bytecode in the rooms of the live bandit and of logs.

    Those of a ``with`` statement itself are left out: Python looks for signals after calls and jumps, so that none
    comes between a lock and its block.
    """

    def __init__(self, bytecodes: int, error: type[BaseException]) -> None:
        self.left = bytecodes
        self.error = error
        self.done = 0
        self.before_append: int | None = None  # how many bytecodes there were before anything could happen

    def __call__(self, frame: FrameType, what: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(ROOMS):
            return None
        if frame.f_code.co_name == "_happen" and self.before_append is None:
            self.before_append = self.done
        frame.f_trace = self.step  # before the next line, which Python 3.13 does not heed otherwise
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self.step

    def step(self, frame: FrameType, what: str, argument: Any) -> Any:
        if what == "opcode" and not is_with(frame.f_code.co_filename, frame.f_lineno):
            self.done += 1
            self.left -= 1
            if self.left == 0:
                raise self.error
        return self.step


def is_with(path: str, line: int | None) -> bool:
    """Say whether a line is that of a ``with`` statement; its exit has no line of its own."""
    return line is None or linecache.getline(path, line).lstrip().startswith("with ")


@contextmanager
def broken_off(bytecodes: int, error: type[BaseException]) -> Iterator[Countdown]:
    """Break off what is done here after so many bytecodes."""
    countdown = Countdown(bytecodes, error)
    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 and later look for this when settrace is called
    sys.settrace(countdown)
    try:
        yield countdown
    except error:
        pass
    finally:
        sys.settrace(before)


# Bandits, and what happens to them.

Call = Callable[[ra.Bandit[str]], Any]
CALLS: dict[str, tuple[float, int, Call]] = {  # seconds that pass before, how many steps it has, and what is called
    "ask": (0.0, 1, lambda bandit: bandit.ask(allowed=["a", "b"])),
    "ask for several": (0.0, 1, lambda bandit: bandit.ask(3)),
    "ask for a unit when windows have closed": (45.0, 2, lambda bandit: bandit.ask(unit="another", meta={"page": 1})),
    "tell": (0.0, 1, lambda bandit: bandit.tell(2, 1.0)),
    "tell several": (0.0, 1, lambda bandit: bandit.tell([(2, 1.0), (4, 0.25), (1, 0.75)])),
    "tell of an arm": (0.0, 1, lambda bandit: bandit.tell(arm="b", reward=0.5)),
    "correct": (0.0, 1, lambda bandit: bandit.correct(1, 0.0)),
    "cancel": (0.0, 1, lambda bandit: bandit.cancel(2)),
    "close windows": (45.0, 1, lambda bandit: bandit.close_windows()),
    "change": (
        0.0,
        1,
        lambda bandit: bandit.change(
            policy=ra.UCB(C=0.5), arms={"a": None, "b": None, "d": (0.5, 3)}, floor=0.1, reward_window=90
        ),
    ),
}


class Life:
    """A bandit that has lived: decisions wait, some of them longer than their window when 45 seconds have passed."""

    def __init__(self, path: Path | None, passing: float) -> None:
        if path is not None:
            for old in path.parent.glob(path.name + "*"):
                old.unlink()
        self.path = path
        self.clock = Clock()
        options: dict[str, Any] = {"reward_window": 60.0, "default_reward": 0.0, "floor": 0.05}
        self.bandit = ra.Bandit(["a", "b", "c"], BGE, seed=3, log=path, clock=self.clock, **options)
        self.bandit.tell([(decision, 0.5) for decision in self.bandit.ask(6)[::2]])
        self.clock.now += 30
        self.bandit.tell(self.bandit.ask(unit="visitor"), 1.0)
        self.clock.now += passing

    def text(self) -> str:
        """Return everything about the bandit but the identity of its log."""
        whole = self.bandit.to_json()
        return whole if self.bandit.log is None else whole.replace(self.bandit.log.identity, "the log")

    def looks(self) -> tuple[Any, ...]:
        """Return what can be looked at without a call."""
        bandit = self.bandit
        return bandit.policy, bandit.settings, bandit.status, bandit.floor, bandit.reward_range

    def check_fold(self) -> None:
        """Check that the bandit is the fold of its log."""
        log = self.bandit.log
        if log is None:
            return
        state = recovery.from_log(log, policy_from, None, {})
        folded = saved.to_json(state, saved.Place(log.identity, log.events), log.key())
        assert folded == self.bandit.to_json()

    def check_goes_on(self) -> None:
        """Check that the bandit, and the one that comes back from its log, decide and learn alike."""
        text = self.bandit.to_json()
        again = ra.Bandit.from_json(text, clock=self.clock)
        if self.path is not None:
            self.bandit.close()
            self.bandit = ra.Bandit.from_log(self.path, clock=self.clock)
            assert self.bandit.to_json() == text
        decision = self.bandit.ask()
        assert again.ask() == decision
        assert self.bandit.tell(decision, 0.5) is again.tell(decision, 0.5) is True
        assert arm_rows(again) == arm_rows(self.bandit)
        self.bandit.close()


def possible_texts(path: Path | None, passing: float, call: Call) -> list[str]:
    """Return what a bandit is before a call, when windows have closed, and after the call."""
    found = list[str]()
    for use in (lambda bandit: None, lambda bandit: bandit.close_windows(), call):
        life = Life(path, passing)
        use(life.bandit)
        found.append(life.text())
        life.bandit.close()
    return list(dict.fromkeys(found))


def moments(path: Path | None, passing: float, call: Call, before: int, after: int) -> list[int]:
    """Return the bytecodes at which a call is broken off: one in so many before and after the first event."""
    life = Life(path, passing)
    with broken_off(-1, Interrupt) as whole:
        call(life.bandit)
    life.bandit.close()
    assert whole.before_append is not None
    assert 20 < whole.before_append < whole.done
    return [*range(1, whole.before_append, before), *range(whole.before_append, whole.done, after), whole.done + 1]


def check_bytecodes(name: str, path: Path | None, error: type[BaseException], before: int, after: int) -> None:
    """Break a call off at bytecode after bytecode, and look at the bandit each time."""
    passing, steps, call = CALLS[name]
    possible = possible_texts(path, passing, call)
    assert len(possible) == 1 + steps
    reached = set[str]()
    life = Life(path, passing)
    for count, bytecodes in enumerate(moments(path, passing, call, before, after)):
        if count == 0:
            life = Life(path, passing)
        with broken_off(bytecodes, error) as countdown:
            call(life.bandit)
        looked = life.looks()
        found = life.text()
        assert life.looks() == looked
        assert found in possible, f"{name}, broken off at bytecode {bytecodes}"
        reached.add(found)
        life.check_fold()
        if found != possible[0] or count % 50 == 0:
            if count % 10 == 0 or countdown.left > 0:
                life.check_goes_on()
            life.bandit.close()
            life = Life(path, passing)
    assert countdown.left > 0  # it was done to its end
    assert found == possible[-1]
    assert reached == set(possible)
    life.bandit.close()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("logged", [False, True], ids=["memory", "log"])
def test_a_call_that_is_broken_off_happened_wholly_or_not_at_all(name: str, logged: bool, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl" if logged else None
    check_bytecodes(name, path, Interrupt, STRIDE, 1 if name in SHORT else STRIDE)


@pytest.mark.full
@pytest.mark.parametrize("error", [Interrupt, TimeIsUp])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("logged", [False, True], ids=["memory", "log"])
def test_at_every_bytecode(name: str, logged: bool, error: type[BaseException], tmp_path: Path) -> None:
    check_bytecodes(name, tmp_path / "log.jsonl" if logged else None, error, 1, 1)
