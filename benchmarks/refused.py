"""How long asks of one bandit take beside refused batches on another one that has many pending decisions.

    python -m benchmarks.refused [--pending 300000] [--batches 1000]

Both bandits are in one store (SQLite, in a temporary folder) with one thread that commits, as in the service. A batch
has two rewards of one decision that contradict each other, so it is refused. Asks are made one after the other, first
alone and then beside the batches. What counts is the ratio of the two 99% quantiles.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import rightarm as ra
from rightarm.messages import Ask, Definition, Tell
from rightarm.store import Commits, Refused, StoredBandit, open_store

AT_ONCE = 1_000  # decisions of one request


def made(folder: str, pending: int) -> tuple[Commits, list[Tell]]:
    """Return a store with a small and a big bandit, and a batch that the big one refuses."""
    commits = Commits(open_store(f"sqlite:///{folder}/store.db"))
    policy = ra.BoltzmannGumbel(C=0.5)
    definition = Definition(arms=["red", "green", "blue"], policy=repr(policy))
    for name in ("small", "big"):
        commits.submit(commits.store.create(name, definition, policy, by="benchmark")).result()
    for _ in range(pending // AT_ONCE):
        choices = commits.submit("big", partial(StoredBandit.ask, request=Ask(size=AT_ONCE))).result()
    decision = choices[0].decision
    return commits, [Tell(decision=decision, reward=1.0), Tell(decision=decision, reward=0.0)]


def asks(commits: Commits, is_over: Callable[[int], bool]) -> list[float]:
    """Ask the small bandit until it is over; return how long each ask took."""
    found = list[float]()
    while not is_over(len(found)):
        begin = time.perf_counter()
        commits.submit("small", partial(StoredBandit.ask, request=Ask())).result()
        found.append(time.perf_counter() - begin)
    return found


def refuse(commits: Commits, batch: list[Tell], times: int) -> None:
    """Send a batch again and again that is refused each time."""
    for _ in range(times):
        try:
            commits.submit("big", partial(StoredBandit.tell, rewards=batch)).result()
        except Refused:
            continue
        raise AssertionError("the batch was not refused")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pending", type=int, default=300_000)
    parser.add_argument("--batches", type=int, default=1_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        commits, batch = made(folder, given.pending)
        asks(commits, lambda count: count >= 200)  # everything is compiled then
        alone = asks(commits, lambda count: count >= given.batches)
        thread = threading.Thread(target=refuse, args=(commits, batch, given.batches))
        thread.start()
        beside = asks(commits, lambda count: not thread.is_alive())
        thread.join()
        commits.close()
    for name, found in (("alone", alone), ("beside refused batches", beside)):
        median, high = np.quantile(found, [0.5, 0.99]) * 1e3
        times = f"median {median:6.2f} ms   p99 {high:6.2f} ms   most {max(found) * 1e3:6.2f} ms"
        print(f"{name:<24} {len(found):>6} asks   {times}")
    ratio = np.quantile(beside, 0.99) / np.quantile(alone, 0.99)
    what = f"{given.batches:,} refused batches on {given.pending:,} pending decisions"
    print(f"p99 beside {what}: {ratio:.2f} times that alone")


if __name__ == "__main__":
    main()
