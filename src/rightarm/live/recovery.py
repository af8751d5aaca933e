"""How a bandit that was saved goes on: with its log, with its policy or another one, with its arms or others."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from rightarm.live import state as saved
from rightarm.live.actions import Actions
from rightarm.live.fold import State
from rightarm.logs.events import Event, check_arm_name
from rightarm.logs.journal import Journal
from rightarm.logs.writer import LogWriter
from rightarm.scores.policy import Policy

Log = Journal | str | os.PathLike[str]


@contextlib.contextmanager
def opened(log: Log) -> Iterator[Journal]:
    """The writer of a log. If it is opened here and what follows fails, nothing of it stays: no lock, no empty file."""
    if not isinstance(log, str | os.PathLike):
        yield log
        return
    writer = LogWriter(log)
    try:
        yield writer
    except BaseException:
        writer.discard()
        raise


def write_to(actions: Actions, log: Journal, names: list[Any]) -> None:
    """From now on write all that happens to a log, which must be able to keep these names of arms."""
    for name in names:
        check_arm_name("arms", name)
    actions.log, ledger = log, actions.state.ledger
    if log.last_id is not None:
        ledger.next_id = max(ledger.next_id, 1 + log.last_id)


def check_policy(policy: Policy | None, change_policy: bool) -> None:
    """Raise if the policy with which a saved bandit is to go on is none."""
    if policy is not None and not isinstance(policy, Policy):
        raise ValueError(f"policy must be a policy such as UCB(C=0.5), got {policy!r}")
    if change_policy and policy is None:
        raise TypeError("change_policy needs the policy to change to, got policy=None")


def go_on(
    found: saved.Saved,
    log: Journal | None,
    policy: Policy | None,
    change_policy: bool,
    clock: Callable[[], float],
    agree: Callable[[State], None] | None = None,
) -> Actions:
    """A saved state, with what its log has since and its policy; ``agree`` may refuse before anything is written."""
    state, specification, new = found.state, found.specification, list[Event]()
    actions = Actions(state, clock)
    if log is not None:
        changed, new = saved.read_on(log, state, found.place, policy)
        write_to(actions, log, state.names)
        specification = changed or specification
    if agree is not None:
        agree(state)
    if policy is not None:
        new += saved.settle_policy(state, policy, specification, change_policy)
    if log is not None and new:
        now = actions.now()
        log.write([{"time": now} | event for event in new])
    return actions


# What is given for a bandit that is there already.


def check_agreement(state: State, settings: Mapping[str, Any], arms: list[Hashable] | None, change_arms: bool) -> None:
    """Raise if a bandit has other settings or arms than those given."""
    for name, value in settings.items():
        saved.check_setting(state.settings, name, value)
    for arm in arms or ():
        check_arm_name("arms", arm)
    wanted, active, control = _wanted(state, arms), state.active_names(), state.settings.control
    if set(wanted) == set(active):
        return
    if state.names and not change_arms:
        raise ValueError(f"arms must be those of the bandit, {active}, got {arms}; change_arms=True changes them")
    state.check_floor(len(wanted))
    if control is not None and control not in wanted:
        raise ValueError(f"arms must have the control, {control!r}, got {arms}")


def change_arms_to(actions: Actions, arms: list[Hashable] | None, prior: Mapping[Any, Any] | None) -> None:
    """Have the arms that there are to be; the prior is that of a bandit whose log breaks off before its arms."""
    state, wanted = actions.state, _wanted(actions.state, arms)
    if set(wanted) != set(state.active_names()):
        given = {} if state.names or prior is None else prior
        actions.change_arms(wanted, [actions.prior(wanted, name, one) for name, one in given.items()])


def _wanted(state: State, arms: list[Hashable] | None) -> list[Hashable]:
    """The arms that there are to be: those given, but for any that the guardrail has retired."""
    if arms is None and not state.names:
        raise ValueError("arms must be given: the log breaks off before it names any")
    return state.active_names() if arms is None else [arm for arm in arms if arm not in state.harmful]
