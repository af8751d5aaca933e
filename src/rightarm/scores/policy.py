"""What a policy is: a formula for a score, and the noise that it asks for. The arm with the largest score is pulled.

Some policies need two things more, each of them a formula as well: probabilities with which arms are explored whatever
their scores are (``explore``), and columns that an arm remembers besides its pulls and its mean (``learn``).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from rightarm.formula import check_count, check_number
from rightarm.noise import Beta, Law
from rightarm.notebook import html_table
from rightarm.propensity import of_largest
from rightarm.scores.family import Part, PolicyFamily
from rightarm.scores.inputs import Memory, State, Variances, check_memory, check_statistics, check_variances
from rightarm.scores.rules import CERTAIN, FAR, FORGOTTEN, location_and_scale, mix, share_untried
from rightarm.scores.score import Score
from rightarm.types import F64

__all__ = ["Policy", "PolicyFamily", "policy", "probabilities"]


class Policy(Score):
    """A policy with its parameters set, for decisions; made by calling a family such as `BoltzmannGumbel`."""

    def scores(
        self,
        round: int,
        pulls: ArrayLike,
        means: ArrayLike,
        z: ArrayLike = 0.0,
        memory: Memory = None,
        variances: Variances = None,
    ) -> F64:
        """The score of every arm, by NumPy; every arm must have been pulled, if the formula asks for pulls or means.

        >>> from rightarm import UCB
        >>> UCB(C=1.0).scores(round=3, pulls=[1, 1], means=[0.0, 1.0]).round(3)
        array([1.048, 2.048])
        """
        state = self._state(round, pulls, means, memory, variances)
        if self._untried(state) is not None:
            raise ValueError(f"pulls must be at least 1 for every arm, got {state.pulls.tolist()}")
        return self._evaluated(self, state, np.asarray(z, dtype=float))

    def floors(
        self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory = None, variances: Variances = None
    ) -> F64:
        """The probability with which each arm is explored, whatever its score is: its `explore` formula, or zero."""
        return self._floors(self._state(round, pulls, means, memory, variances))

    def _floors(self, state: State) -> F64:
        if self.explore is None:
            return np.zeros(state.means.size)
        floors = self._evaluated(self.explore, state, 0.0)
        if not (floors >= 0).all() or floors.sum() > CERTAIN:
            raise ValueError(f"{self!r}: what it explores are not probabilities: {floors.tolist()}")
        return floors

    def choose(
        self,
        round: int,
        pulls: ArrayLike,
        means: ArrayLike,
        random: np.random.Generator,
        memory: Memory = None,
        variances: Variances = None,
    ) -> int:
        """The arm for one live decision: the first that was never pulled, else the largest score, ties broken fairly.

        >>> from rightarm import UCB
        >>> UCB(C=1.0).choose(3, pulls=[1, 1], means=[0.0, 1.0], random=np.random.default_rng(1))
        1
        """
        state = self._state(round, pulls, means, memory, variances)
        if not isinstance(random, np.random.Generator):
            raise TypeError(f"random must be a numpy.random.Generator, got {random!r}")
        untried, arms = self._untried(state), state.means.size
        if untried is not None:
            return int(random.choice(np.flatnonzero(untried)))
        if self.explore is not None:
            explored = int(np.searchsorted(np.cumsum(self._floors(state)), random.random(), side="right"))
            if explored < arms:
                return explored
        z = np.zeros(arms) if self.noise is None else self.noise.sample(random, arms)
        scores = self._evaluated(self, state, z)
        if np.isnan(scores).any():
            raise ValueError(f"{self!r}: a score is not a number: {scores.tolist()}")
        return int(random.choice(np.flatnonzero(scores == scores.max())))

    def probabilities(
        self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory = None, variances: Variances = None
    ) -> F64:
        """The exact probability of every arm, from the law of the scores: `propensity.of_largest`, beneath exploration.

        Arms never pulled go first, and share the draw evenly.

        >>> from rightarm import Boltzmann, BoltzmannGumbel
        >>> Boltzmann(1.0).probabilities(round=9, pulls=[4, 4], means=[0.0, np.log(3)])
        array([0.25, 0.75])
        >>> BoltzmannGumbel(C=0.5).probabilities(round=102, pulls=[1, 100], means=[0.6, 0.5]).round(6)
        array([0.85404, 0.14596])
        """
        state = self._state(round, pulls, means, memory, variances)
        untried = self._untried(state)
        if untried is not None:
            return untried
        chances = np.array(of_largest(*self._score_law(state)))
        if not mix(chances, self._floors(state), 0.0, np.empty(chances.size)):
            raise ValueError(f"{self!r}: what it chooses by are not probabilities: {chances.tolist()}")
        return chances

    def score_law(
        self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory = None, variances: Variances = None
    ) -> tuple[Law | Beta | None, F64, F64]:
        """The law of the scores and its two numbers for every arm: location and scale, or what the policy states.

        >>> from rightarm import BoltzmannGumbel
        >>> BoltzmannGumbel(C=0.5, location=0.0).score_law(round=9, pulls=[4, 1], means=[0.25, 0.5])
        (Gumbel(), array([0.25, 0.5 ]), array([0.25, 0.5 ]))
        """
        return self._score_law(self._state(round, pulls, means, memory, variances))

    def _score_law(self, state: State) -> tuple[Law | Beta | None, F64, F64]:
        law, formula = self.stated_law
        if formula is self:
            with np.errstate(invalid="ignore"):
                first, second = location_and_scale(self._values(self, state, 0.0), self._values(self, state, FAR), FAR)
        else:
            first, second = self._values(formula, state, 0.0)
        return law, np.broadcast_to(first, state.means.shape), np.broadcast_to(second, state.means.shape)

    @functools.cached_property
    def stated_law(self) -> tuple[Law | Beta | None, Policy | Part]:
        """The law of the scores, and the formula that has its two numbers: the score itself, if it is affine."""
        if self.family.law is not None:
            return self.family.law[0], self._part(self.family.law[1])
        if not self.affine:
            raise ValueError(f"{self!r}: its probabilities are not known; its score is not location + scale·z")
        return self.noise, self

    def learned(
        self,
        round: int,
        pulls: float,
        mean: float,
        reward: float,
        memory: Mapping[str, float],
        arms: int,
        probability: float = 1.0,
        variance: float = 0.0,
    ) -> dict[str, float]:
        """The columns of an arm after a pull: the statistics are those after it, ``memory`` from before it.

        ``probability`` is that of the decision, as it was when the decision was made.

        >>> from rightarm import EXP3
        >>> EXP3(gamma=0.1).learned(5, pulls=2, mean=0.5, reward=1.0, memory={"gain": 3.0}, arms=2, probability=0.25)
        {'gain': 7.0}
        """
        if set(memory) != set(self.columns):
            raise ValueError(f"memory must have the columns {', '.join(self.columns) or '(none)'}, got {list(memory)}")
        if not 0 < check_number("probability", probability) <= 1 + 1e-9:
            raise ValueError(f"probability must be above 0 and at most 1, got {probability}")
        inputs = {"t": float(round), "pulls": float(pulls), "mean": mean, "variance": variance, "arms": float(arms)}
        inputs |= {"reward": reward, "probability": probability, **memory}
        return {name: float(part.evaluate(inputs)) for name, part in self.learn.items()}

    def _repr_html_(self) -> str:
        """Its name, the first sentence and the formula of its docstring, and its parameters, for notebooks."""
        words, *formula = (inspect.getdoc(self.family.function) or "").split("\n\n")[:2]
        rows = [(name, value if isinstance(value, float) else str(value)) for name, value in self.values.items()]
        if self.rewards is not None:
            rows.append(("rewards", "from {:g} to {:g}".format(*self.rewards)))
        return html_table(["", ""], rows, title=str(self), words=2, notes=[" ".join(words.split()), *formula])

    def _state(self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory, variances: Variances) -> State:
        """What is known of the arms, checked."""
        if self.pairwise and self.estimator.asks_context:
            raise ValueError(f"{self!r} looks at what arms have in common in a context: ask a Bandit with that context")
        counts, averages = check_statistics(pulls, means, whole=self.estimator.plain)
        t = float(check_count("round", round)) if self.estimator.plain else check_number("round", round)
        if memory is None and self.columns and counts.any():
            raise ValueError(f"{self!r} remembers {', '.join(self.columns)}: give memory= with a value for each arm")
        columns = check_memory(self.columns, memory, counts.size)
        spreads = check_variances(self, self.asks_variance, variances, counts)
        return State(t, counts, averages, columns, spreads, counts.size)

    def _untried(self, state: State) -> F64 | None:
        """The probabilities while arms have no reward, and the formulas are of no use; None if all have one."""
        count = state.pulls.size
        if not self.needs_pulls or state.pulls.min() >= FORGOTTEN:
            return None
        chances = np.empty(count)
        share_untried(state.pulls, np.arange(count), np.zeros(count, dtype=np.int64), chances)
        return chances


@overload
def policy(function: Callable[..., Any]) -> PolicyFamily: ...
@overload
def policy(
    *,
    noise: Law | None = None,
    explore: Callable[..., Any] | None = None,
    learn: Mapping[str, Callable[..., Any]] | None = None,
    keep: Mapping[str, Callable[..., Any]] | None = None,
    rising: bool = False,
    law: tuple[Law | Beta, Callable[..., Any]] | None = None,
    rewards: tuple[float, float] | None = None,
) -> Callable[[Callable[..., Any]], PolicyFamily]: ...
def policy(
    function: Callable[..., Any] | None = None,
    *,
    noise: Law | None = None,
    explore: Callable[..., Any] | None = None,
    learn: Mapping[str, Callable[..., Any]] | None = None,
    keep: Mapping[str, Callable[..., Any]] | None = None,
    rising: bool = False,
    law: tuple[Law | Beta, Callable[..., Any]] | None = None,
    rewards: tuple[float, float] | None = None,
) -> Any:
    """Make a policy from one formula; live and compiled, with nothing else to write.

    The formula may ask for ``t`` (the round, counted from 1), ``pulls`` and ``mean`` of the arm, ``z`` (fresh noise,
    one draw for every arm and round), ``best`` and ``worst`` (the largest and smallest mean of all arms), ``arms``
    (their number), the arm's ``variance`` (of its rewards about their mean) with ``best_variance`` and
    ``worst_variance``, and ``gap_variance`` (how uncertain its gap to the best mean is). Its parameters stand behind a
    ``*``; annotations such as `Positive` or ``int`` check them. Every such policy takes ``estimator=`` as well (`Mean`,
    `Catoni`): who makes mean and pulls from the rewards.

    - ``explore``: a formula for the probability with which an arm is pulled whatever the scores are; with what is left
      of 1, the largest score decides.
    - ``learn``: for each column that an arm is to remember, a formula for its next value, when the arm was pulled; it
      may ask for ``reward``, ``probability`` (of the decision, when it was made), ``t``, ``pulls``, ``mean``, ``arms``
      and all columns. The score may ask for the columns by their names, and for ``best_<name>`` and ``worst_<name>``,
      the largest and the smallest of all arms. All start at zero.
    - ``keep``: formulas of ``pulls``, ``mean`` and ``arms`` under names of their own, for which the score may ask in
      the same way. That is for speed alone: the simulator computes them when an arm is pulled, not in every round.
    - ``rising``: the score of an arm that is not pulled never falls. The simulator then leaves out arms that cannot
      win.
    - ``law``: the law of the score, where this is not location + scale·z with the law of the noise: a law and a formula
      for its two numbers (`propensity.of_largest`), from which exact probabilities follow.
    - ``rewards``: the smallest and the largest reward that the formula is for, ``(0, 1)`` say; without it, any. Live
      and in evaluations rewards of another range are scaled to it, and a simulation warns of rewards outside.

    >>> import numpy as np, rightarm as ra
    >>> @ra.policy(noise=ra.noise.Gumbel())
    ... def cautious(t, pulls, mean, z, *, C: float = 1.0):
    ...     return mean + C / np.sqrt(pulls + np.log(t)) * z
    >>> cautious(C=0.5)
    cautious(C=0.5)
    >>> @ra.policy(learn={"largest": lambda largest, reward: np.maximum(largest, reward)})
    ... def hopeful(pulls, largest):
    ...     return largest / np.sqrt(pulls)
    >>> hopeful().scores(round=9, pulls=[4, 1], means=[0.5, 0.5], memory={"largest": [1.0, 0.75]})
    array([0.5 , 0.75])
    """
    if function is None:
        parts: dict[str, Any] = {"noise": noise, "explore": explore, "learn": learn, "keep": keep}
        return functools.partial(policy, **parts, rising=rising, law=law, rewards=rewards)
    return PolicyFamily(function, Policy, noise, explore, learn or {}, keep or {}, rising, law, rewards)


def probabilities(
    policy: Policy,
    *,
    pulls: ArrayLike,
    means: ArrayLike,
    round: int,
    memory: Memory = None,
    variances: Variances = None,
) -> F64:
    """The exact probability with which a policy pulls each arm, in any state.

    >>> import rightarm as ra
    >>> ra.probabilities(ra.BetaThompson(), pulls=[4, 4], means=[0.25, 0.75], round=9).round(4)
    array([0.1032, 0.8968])
    """
    if not isinstance(policy, Policy):
        raise TypeError(f"policy must be a policy such as UCB(C=0.5), got {policy!r}")
    return policy.probabilities(round, pulls, means, memory, variances)
