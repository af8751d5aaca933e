"""The arrays that the compiled rounds work on, in small tuples: what is known, what is played, and scratch memory.

Where nothing else is said, an array has a value for each lane; a lane is a replication.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rightarm.streams import Streams
from rightarm.types import F32, F64, I64, U32

CompiledFunction = Callable[..., Any]  # an address: compiled code calls it, Python does not


class Statistics(NamedTuple):
    """Statistics of the arms (arms × lanes). Sums, not running means: equal histories must tie exactly."""

    pulls: F64  # all that there were, which is what regret is made of
    total: F64  # of rewards, for the plain mean; other estimators keep their own sums
    lost: F64  # what rounding took from the totals
    mean: F64  # what formulas see
    location: F64  # of a score that is location + scale·z or location + scale·clock(t)
    scale: F64
    memory: F64  # columns × arms × lanes: what else the policy remembers


class Formulas(NamedTuple):
    """The compiled formulas, as function pointers."""

    noise: CompiledFunction
    gaussian: CompiledFunction
    score: CompiledFunction
    affine: CompiledFunction
    explore: CompiledFunction
    learn: CompiledFunction
    reward: CompiledFunction
    estimate: CompiledFunction  # what another estimator than the plain mean learns from a reward,
    forget: CompiledFunction  # leaves out when a reward falls out of a window,
    weigh: CompiledFunction  # and makes of all rewards that count


class Setting(NamedTuple):
    """The setting of a simulation: the parameters of the formulas, and the inputs that they ask for."""

    numbers: F64  # the policy's parameters
    arm_numbers: F64  # the problem's: parameters × arms, or × arms·lanes where every lane has its own
    corruptions: F64  # rows of arm, rounds, pulls, reward
    gaps: F64  # arms × lanes
    before: F64  # the pulls from before the run
    fresh: I64  # the arms never pulled, to be pulled first
    tops: I64  # the columns of whose largest values the policy asks for
    bottoms: I64  # and of whose smallest
    limits: F64  # the smallest and the largest reward that the policy is for; empty if there can be no others


class Uses(NamedTuple):
    """Flags for the features that the formulas use."""

    noisy: bool  # the policy draws noise
    shared: bool  # all arms share a draw
    by_arm: bool  # its score is location + scale·something, kept between an arm's pulls,
    clocked: bool  # and the something is a clock, not noise
    lazy: bool  # its score never falls while an arm rests
    weighted: bool  # its score is location + z, and it learns from the decision's probability
    explores: bool
    learns: bool
    extremes: bool  # it asks for the best or the worst mean
    unsure: bool  # it asks how uncertain gaps to the best mean are, which then is the last column of memory
    inline: bool  # its means are plain means, computed in the loop itself
    forgets: bool  # its estimator forgets rewards
    weighs: bool  # its estimator looks at all rewards that count, each time
    uniform: bool  # the problem draws u
    second: bool  # the problem draws v
    normal: bool  # the problem draws w


class Noise(NamedTuple):
    """Scratch memory: what is drawn ahead for a block of rounds, the first axis of all of these."""

    words: U32  # × arms × lanes
    z: F32  # × arms × lanes
    reward_words: U32  # × words of a reward × lanes
    uniform: F64  # × u and v × lanes: one array, because to pass another costs some ns in every round
    w: F32  # × lanes


class Choice(NamedTuple):
    """Scratch memory: from scores (arms × lanes) to an arm for each lane."""

    scores: F64
    largest: F64
    best: F64
    worst: F64
    top: F64  # the largest and the smallest of every column: columns × lanes
    bottom: F64
    arm: I64
    failed: I64  # 2: the first rounds in which a score was not a number, and exploration no probability
    still: F32  # arms × lanes: no noise


class Weights(NamedTuple):
    """Scratch memory: exploration, and the probability of what was chosen."""

    floors: F64  # the probability that an arm is explored
    explored: F64  # lanes: that any is
    peak: F64  # lanes: the largest location
    weight: F64  # lanes: the sum of exp(location − peak)


class Bounds(NamedTuple):
    """Scratch memory: what scores cannot exceed, for policies whose scores rise while an arm rests."""

    bound: F64  # arms × lanes: what a score cannot exceed for some time
    until: F64  # 1: the round until which they hold
    looked: F64  # arms × lanes: the round in which the score itself was last computed
    candidate: I64  # lanes: the arm that is looked at


class Pull(NamedTuple):
    """Scratch memory: one arm of each lane; blocks of one row, so that formulas for blocks can be used."""

    pulls: F64
    mean: F64
    memory: F64  # columns × 1 × lanes
    learned: F64  # columns × lanes
    reward: F64
    probability: F64
    location: F64
    scale: F64
    score: F64
    outside: F64  # how many rewards so far the policy is not for


class Estimates(NamedTuple):
    """The arrays of an estimator; all but ``pulls`` are empty for plain means of all rewards."""

    numbers: F64  # the estimator's parameters
    discount: float  # the factor by which all rewards count less after each
    columns: int  # how many columns of the policy are forgotten with the rewards: the first ones
    kept: F64  # arms × lanes × numbers of an arm
    recent: F64  # rewards × lanes × (arm, reward, what it added to the columns)
    pulls: F64  # arms × lanes: those that formulas see
    variance: F64  # arms × lanes, where a formula asks for it
    last: F64  # arms × lanes: the round of an arm's last pull
    first: I64  # scratch, lanes: the arm that goes first because all its rewards are forgotten, or −1
    counting: F64  # 1: how many rewards count


class Clock(NamedTuple):
    """A clocked policy's score of one reference arm, from which the clock is read."""

    pulls: F64
    mean: F64
    memory: F64
    location: F64
    scale: F64
    span: F64  # 2: the scores between which the clock runs from 0 to 1
    now: F64  # 1: the clock


class Lanes(NamedTuple):
    """All arrays that the compiled rounds of a run work on.

    The formulas are no part of it: Numba looks at types in Python, not in C, if there is a function among them.
    """

    setting: Setting
    uses: Uses
    statistics: Statistics
    estimates: Estimates
    streams: Streams
    noise: Noise
    choice: Choice
    weights: Weights
    bounds: Bounds
    pull: Pull
    clock: Clock
