"""Random numbers: every replication has its streams, whichever lane, thread or machine plays it.

A seed becomes the states of the streams, and the streams become 32-bit words and uniform numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np

from rightarm.formula.compile import jit
from rightarm.types import F32, F64, U32

u32 = np.uint32
f64 = np.float64

HIGH = 2.0**-32
LOW = 2.0**-64
HALF = 2.0**-53  # without it a number could be 0
KEPT = u32(0xFFFFF000)  # the bits of a second word: 52 with the first

# The constants of NumPy's SeedSequence.
POOL = 4
INIT_A = 0x43B0D7E5
MULT_A = 0x931E8875
INIT_B = 0x8B51F9DD
MULT_B = 0x58F38DED
MIX_LEFT = 0xCA01F9DD
MIX_RIGHT = 0x4973F715

Role = Literal["policy", "problem", "ties", "parameters"]
ROLES: tuple[Role, ...] = get_args(Role)


class Streams(NamedTuple):
    """The random states, four words per lane: what the policy draws, what the problem draws, how ties are broken."""

    policy: U32
    problem: U32
    ties: U32


def initial_state(seed: int, replication: int, role: Role) -> U32:
    """Return the four words from which one stream of one replication starts; no two streams share theirs.

    >>> initial_state(2017, 0, "policy").shape
    (4,)
    """
    node = np.random.SeedSequence(seed, spawn_key=(replication, ROLES.index(role)))
    return node.generate_state(4).astype(np.uint32, copy=False)


def initial_stream(seed: int, role: Role, first: int, lanes: int) -> U32:
    """Return the streams of one role of replications ``first`` to ``first + lanes − 1``, a column for each.

    >>> initial_stream(2017, "policy", 5, 3)[:, 2].tolist() == initial_state(2017, 7, "policy").tolist()
    True
    """
    if first + lanes > 2**32:  # replications of more than one word
        states = [initial_state(seed, replication, role) for replication in range(first, first + lanes)]
        return np.ascontiguousarray(np.stack(states, axis=1))
    return _spawn(seed, np.arange(first, first + lanes, dtype=np.uint32), ROLES.index(role))


def _spawn(seed: int, replications: U32, role: int) -> U32:
    """Return the states that `initial_state` gives, of all replications at once, hundreds of times as fast.

    This is NumPy's SeedSequence (the algorithm is O'Neill's `seed_seq_fe`), which NumPy promises not to change. The
    pool of words that the seed alone makes is NumPy's own; replication and role are mixed into it, word by word.
    """
    words = max(POOL, -(-seed.bit_length() // 32))
    constant = INIT_A * pow(MULT_A, POOL * words, 2**32) % 2**32  # it has moved on with every word and place
    pool = np.repeat(np.random.SeedSequence(seed).pool[:, None], replications.size, axis=1)
    for word in (replications, np.full_like(replications, role)):
        for place in range(POOL):
            mixed = word ^ u32(constant)
            constant = constant * MULT_A % 2**32
            mixed = _folded(mixed * u32(constant))
            pool[place] = _folded(u32(MIX_LEFT) * pool[place] - u32(MIX_RIGHT) * mixed)
    constant = INIT_B
    for place in range(POOL):
        pool[place] ^= u32(constant)
        constant = constant * MULT_B % 2**32
        pool[place] = _folded(pool[place] * u32(constant))
    return pool


def _folded(words: U32) -> U32:
    return words ^ (words >> u32(16))


def initial_streams(seed: int, first: int, lanes: int) -> Streams:
    """Return the streams with which these replications are played."""
    return Streams(
        policy=initial_stream(seed, "policy", first, lanes),
        problem=initial_stream(seed, "problem", first, lanes),
        ties=initial_stream(seed, "ties", first, lanes),
    )


@jit
def draw_words(state: U32, out: U32) -> None:
    """Draw the next words of every lane: xoshiro128++ (Blackman and Vigna 2021), a lane's state being a column."""
    for i in range(out.shape[0]):
        for lane in range(out.shape[1]):
            a = state[0, lane]
            b = state[1, lane]
            c = state[2, lane]
            d = state[3, lane]
            word = u32(a + d)
            out[i, lane] = u32(u32((word << u32(7)) | (word >> u32(25))) + a)
            shifted = u32(b << u32(9))
            c = u32(c ^ a)
            d = u32(d ^ b)
            state[1, lane] = u32(b ^ c)
            state[0, lane] = u32(a ^ d)
            state[2, lane] = u32(c ^ shifted)
            state[3, lane] = u32((d << u32(11)) | (d >> u32(21)))


@jit
def draw_row(state: U32, out: U32) -> None:
    """Draw the next words of a single lane, as `draw_words` gives them, with the state in registers meanwhile."""
    a = state[0, 0]
    b = state[1, 0]
    c = state[2, 0]
    d = state[3, 0]
    for i in range(out.size):
        word = u32(a + d)
        out[i] = u32(u32((word << u32(7)) | (word >> u32(25))) + a)
        shifted = u32(b << u32(9))
        c = u32(c ^ a)
        d = u32(d ^ b)
        b = u32(b ^ c)
        a = u32(a ^ d)
        c = u32(c ^ shifted)
        d = u32((d << u32(11)) | (d >> u32(21)))
    state[0, 0] = a
    state[1, 0] = b
    state[2, 0] = c
    state[3, 0] = d


@jit
def uniform_numbers(high: U32, low: U32, out: F64) -> None:
    """Make numbers strictly between 0 and 1, each of two words."""
    for lane in range(out.size):
        out[lane] = f64(high[lane]) * HIGH + (f64(u32(low[lane] & KEPT)) * LOW + HALF)


@jit
def fill_luck(
    rounds: int,
    state: U32,
    gaussian: Callable[[U32, F32], None],
    uses_u: bool,
    uses_v: bool,
    uses_w: bool,
    words: U32,
    uniform: F64,
    w: F32,
) -> None:
    """Fill the problem's noise for a block of rounds: u and v of two words, w of one; in this order, round by round."""
    per_round = words.shape[1]
    lanes = words.shape[2]
    draw_words(state, words[:rounds].reshape(rounds * per_round, lanes))
    for r in range(rounds):
        if uses_u:
            uniform_numbers(words[r, 0], words[r, 1], uniform[r, 0])
        if uses_v:
            first = 2 if uses_u else 0
            uniform_numbers(words[r, first], words[r, first + 1], uniform[r, 1])
        if uses_w:
            gaussian(words[r, per_round - 1], w[r])
