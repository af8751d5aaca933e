"""Seeds: every replication has streams of its own, whichever lane, thread or machine plays it."""

from __future__ import annotations

import numpy as np

from rightarm.simulation.state import Streams
from rightarm.simulation.types import U32

ROLES = ("policy", "problem", "ties", "parameters")


def initial_state(seed: int, replication: int, role: str) -> U32:
    """The four words from which one stream of one replication starts: a node of the seed's own tree.

    >>> initial_state(2017, 0, "policy").shape
    (4,)
    """
    node = np.random.SeedSequence(seed, spawn_key=(replication, ROLES.index(role)))
    return node.generate_state(4).astype(np.uint32, copy=False)


def initial_stream(seed: int, role: str, first: int, lanes: int) -> U32:
    """The streams of one role of replications ``first`` to ``first + lanes − 1``, a column for each."""
    states = [initial_state(seed, replication, role) for replication in range(first, first + lanes)]
    return np.ascontiguousarray(np.stack(states, axis=1))


def initial_streams(seed: int, first: int, lanes: int) -> Streams:
    """The streams with which these replications are played."""
    return Streams(*(initial_stream(seed, role, first, lanes) for role in Streams._fields))
