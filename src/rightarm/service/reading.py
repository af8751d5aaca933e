"""What the service reads off a bandit of the store; none of it changes the bandit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from rightarm import messages
from rightarm.inference import Best, Difference
from rightarm.live import answers, summary
from rightarm.scores.policy import Policy
from rightarm.store import verbs


def state_of(live: Any) -> Any:
    """Return the state of a bandit of the store."""
    return live.state


def policy_of(live: Any) -> Policy:
    """Return the policy that decides."""
    policy: Policy = state_of(live).known.policy
    return policy


def all_arms(live: Any) -> list[Any]:
    """Return all arms, those that are retired too."""
    return list(state_of(live).names)


def probabilities(
    state: Any, context: Any = None, arm_features: Any = None, among: Iterable[Any] | None = None
) -> dict[Any, float]:
    """Return the probability of every arm in the next decision."""
    members = None if among is None else state.chosen(among)
    law = state.law(members, state.see(context, arm_features, members))
    return {state.names[i]: p for i, p in zip(law.members.tolist(), law.chance.tolist(), strict=True)}


def chances(live: Any, wanted: messages.Question) -> messages.Probabilities:
    """Return the answer to a question for probabilities."""
    state = state_of(live)
    names = arms_by_text(state.active_names())
    given = wanted.arm_features
    features = None if given is None else {names.get(name, name): values for name, values in given.items()}
    found = probabilities(state, wanted.context, features, wanted.among)
    rows = [messages.Chance(arm=arm, probability=chance) for arm, chance in found.items()]
    return messages.Probabilities(probabilities=rows, version=live.version)


def table(live: Any, now: float) -> messages.Summary:
    """Return what is known of every arm; decisions whose window has closed do not wait any more."""
    state = state_of(live)
    rows = summary.table(state, state.due(now))
    return messages.Summary(
        policy=str(policy_of(live)),
        version=live.version,
        arms=[messages.ArmSummary(**row) for row in rows],
        warning=answers.warning(state),
    )


def difference(live: Any, pair: messages.Pair, where: Mapping[str, Any] | None) -> Difference:
    """Return by how much the mean of an arm is above that of another."""
    names = arms_by_text(all_arms(live))
    arm = names.get(pair.arm, pair.arm)
    other = names.get(pair.other, pair.other)
    return answers.difference(state_of(live), None, arm, other, where, pair.confidence)


def best(live: Any, wanted: messages.Stopping) -> Best:
    """Return which arms can still be the best."""
    return answers.best(state_of(live), wanted.confidence, wanted.tolerance)


def told(live: Any, rewards: list[messages.Tell]) -> tuple[list[messages.Told], list[float]]:
    """Take rewards; return what became of them, and how long after their decisions those came that were awaited."""
    now = time.time()
    pending = state_of(live).ledger.pending
    waiting = [pending.get(one.decision) for one in rewards]
    return verbs.tell(live, rewards), [now - one.decision.time for one in waiting if one is not None]


def next_window(live: Any) -> float:
    """Close the windows that are due, and say when the next one can close; what is archived learns no more."""
    state = state_of(live)
    seconds = state.settings.window_of_reward
    if seconds is None or live.status == "archived":
        return math.inf
    verbs.close_windows(live)
    first = next(iter(state.ledger.pending.values()), None)
    last_seen = time.time() if first is None else first.decision.time
    return float(seconds + last_seen)


def arms_by_text(arms: Iterable[Any]) -> Mapping[str, Any]:
    """Return arms by how an address names them; a text goes before the number that it writes.

    >>> arms_by_text(["a", 7]), arms_by_text(["7", 7])
    ({'7': 7, 'a': 'a'}, {'7': '7'})
    """
    return {str(arm): arm for arm in sorted(arms, key=lambda arm: isinstance(arm, str))}


def warm_up(live: Any) -> None:
    """Compile and compute what the next decision of a bandit needs; nothing is decided."""
    state = state_of(live)
    compute_one(policy_of(live), state.active_names(), partial(probabilities, state))


def compute_one(policy: Policy, arms: list[Any], compute: Callable[..., Any]) -> None:
    """Compute the probabilities of one decision, in an empty context if the policy looks at contexts.

    >>> import rightarm as ra
    >>> bandit = ra.Bandit(["a", "b"], ra.UCB(C=0.5, estimator=ra.Linear(["hour"])))
    >>> compute_one(bandit.policy, bandit.arms, bandit.probabilities)
    """
    estimator: Any = policy.estimator
    if not arms:
        return
    if not estimator.asks_context:
        compute()
        return
    own = estimator.arm_features
    features = None if own is None else {arm: [0.0] * own.size for arm in arms}
    compute([0.0] * estimator.features.size, arm_features=features)
