"""Policies: a formula for a score, and the noise that it asks for. The arm with the largest score is pulled.

Some policies need two things more, each of them a formula as well: probabilities with which arms are explored whatever
their scores are (``explore``), and columns that an arm remembers besides its pulls and its mean (``learn``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike

from rightarm.display import html_table
from rightarm.estimators import Estimator
from rightarm.formula import Family, Formula, check_count, check_number
from rightarm.formula.syntax import Function
from rightarm.formula.tracing import LineForm, Shifted, Time, Traced, keeps_form
from rightarm.noise import Beta, Gumbel, Law, probability_of_largest
from rightarm.policies.family import MEAN, Part, PolicyFamily
from rightarm.policies.inputs import (
    CERTAIN,
    EARLY,
    FAR,
    FORGOTTEN,
    INPUTS,
    LATE,
    VARIANCES,
    ArmsState,
    Memory,
    Variances,
    check_memory,
    check_statistics,
    check_variances,
    gap_variances,
    location_and_scale,
    mix,
    one_each,
    share_untried,
    with_extremes,
)
from rightarm.types import F64

__all__ = ["PROBE_ROUND", "Policy", "PolicyFamily", "policy", "probabilities"]

PROBE_ROUND = 100.0  # of the made-up state at which a formula's operations are followed


class Policy(Formula):
    """A policy with its parameters set; made by calling a family such as `BoltzmannGumbel`.

    The methods `scores`, `choose`, `floors`, `probabilities` and `score_law` look at one state: the round, the pulls
    and means of the arms, and what else the policy asks for. They change nothing; a `Bandit` does.
    """

    INPUTS: ClassVar[dict[str, str]] = INPUTS
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"noise"})

    family: PolicyFamily

    def __init__(self, family: Family, values: Mapping[str, Any]) -> None:
        given = dict(values)
        if given.get("estimator") == MEAN:  # the default
            del given["estimator"]
        super().__init__(family, given)
        if "estimator" in given:
            self._check_estimator()

    def _check_estimator(self) -> None:
        """Raise if the estimator is not one that this policy can take."""
        name = self.family.name
        # what a policy learns itself is forgotten as the rewards are
        forgets_columns = self.estimator.forgets and type(self.estimator) is type(MEAN) and bool(self.columns)
        if not self.statistics and not forgets_columns:
            raise TypeError(
                f"{name} takes no estimator: none of its formulas asks for pulls, mean, best, worst or variance"
            )
        if self.estimator.asks_context and self.columns:
            raise TypeError(
                f"{name} has no contextual form: it learns {', '.join(self.columns)} from every reward, "
                "which does not follow from a prediction and what it is worth"
            )
        if self.estimator.rewards is not None and self.family.reward_range is not None:
            low, high = self.family.reward_range
            raise TypeError(f"{name} is for means from {low:g} to {high:g}, which those of {self.estimator} are not")
        self._check_forgetting()

    def _check_forgetting(self) -> None:
        """Raise if the estimator forgets and a column is not a sum of what each reward adds to it.

        What a reward has added to a sum can be taken away again when the reward is forgotten.
        """
        if not self.estimator.forgets:
            return
        state = {"t": 9.0, "pulls": 3.0, "mean": 0.5, "variance": 0.25, "arms": 2.0, "reward": 0.5, "probability": 0.5}
        for column, lesson in self.learn.items():
            inputs: dict[str, Any] = state | dict.fromkeys(self.columns, 0.5) | {column: Shifted()}
            if not keeps_form(partial(lesson.evaluate, inputs), Shifted):
                setting = "discount" if self.estimator.window is None else "window"
                raise ValueError(f"{setting} is for statistics that are sums, which the {column!r} of {self!r} is not")

    # Decisions in one state.

    def scores(
        self,
        round: int,
        pulls: ArrayLike,
        means: ArrayLike,
        z: ArrayLike = 0.0,
        memory: Memory = None,
        variances: Variances = None,
    ) -> F64:
        """Return the score of every arm, by NumPy.

        Parameters
        ----------
        round
            The round, counted from 1.
        pulls, means
            The pulls of each arm, and the mean of its rewards. If the formula asks for them, every arm must have been
            pulled.
        z
            The noise of each arm, or of all.
        memory
            The columns that the policy has an arm remember, by name.
        variances
            The variances of the arms' rewards, if the policy asks for them.

        Examples
        --------
        >>> from rightarm import UCB
        >>> UCB(C=1.0).scores(round=3, pulls=[1, 1], means=[0.0, 1.0]).round(3)
        array([1.048, 2.048])
        """
        state = self._state(round, pulls, means, memory, variances)
        if self._untried(state) is not None:
            raise ValueError(f"pulls must be at least 1 for every arm, got {state.pulls.tolist()}")
        return self._evaluate_each(self, state, np.asarray(z, dtype=float))

    def floors(
        self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory = None, variances: Variances = None
    ) -> F64:
        """Return the probability with which each arm is explored, whatever its score is; parameters as of `scores`."""
        return self._floors(self._state(round, pulls, means, memory, variances))

    def _floors(self, state: ArmsState) -> F64:
        if self.explore is None:
            return np.zeros(state.means.size)
        floors = self._evaluate_each(self.explore, state, 0.0)
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
        """Draw an arm: one that was never pulled, else the one with the largest score, ties broken fairly.

        The parameters are those of `scores`, and ``random``, from which the noise is drawn.

        Examples
        --------
        >>> from rightarm import UCB
        >>> UCB(C=1.0).choose(3, pulls=[1, 1], means=[0.0, 1.0], random=np.random.default_rng(1))
        1
        """
        state = self._state(round, pulls, means, memory, variances)
        if not isinstance(random, np.random.Generator):
            raise TypeError(f"random must be a numpy.random.Generator, got {random!r}")
        untried = self._untried(state)
        if untried is not None:
            return int(random.choice(np.flatnonzero(untried)))
        arms = state.means.size
        if self.explore is not None:
            explored = int(np.searchsorted(np.cumsum(self._floors(state)), random.random(), side="right"))
            if explored < arms:
                return explored
        z = np.zeros(arms) if self.noise is None else self.noise.sample(random, arms)
        scores = self._evaluate_each(self, state, z)
        if np.isnan(scores).any():
            raise ValueError(f"{self!r}: a score is not a number: {scores.tolist()}")
        return int(random.choice(np.flatnonzero(scores == scores.max())))

    def probabilities(
        self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory = None, variances: Variances = None
    ) -> F64:
        """Return the exact probability of every arm; parameters as of `scores`.

        It follows from the law of the scores, and from exploration. Arms never pulled go first, and share the draw
        evenly.

        Examples
        --------
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
        chances = np.array(probability_of_largest(*self._score_law(state)))
        if not mix(chances, self._floors(state), 0.0, np.empty(chances.size)):
            raise ValueError(f"{self!r}: what it chooses by are not probabilities: {chances.tolist()}")
        return chances

    def score_law(
        self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory = None, variances: Variances = None
    ) -> tuple[Law | Beta | None, F64, F64]:
        """Return the law of the scores and its two numbers for every arm; parameters as of `scores`.

        The numbers are location and scale, or those of the law that the policy states.

        Examples
        --------
        >>> from rightarm import BoltzmannGumbel
        >>> BoltzmannGumbel(C=0.5, location=0.0).score_law(round=9, pulls=[4, 1], means=[0.25, 0.5])
        (Gumbel(), array([0.25, 0.5 ]), array([0.25, 0.5 ]))
        """
        return self._score_law(self._state(round, pulls, means, memory, variances))

    def _score_law(self, state: ArmsState) -> tuple[Law | Beta | None, F64, F64]:
        law, formula = self.stated_law
        if formula is self:
            with np.errstate(invalid="ignore"):
                near = self._evaluate(self, state, 0.0)
                far = self._evaluate(self, state, FAR)
                first, second = location_and_scale(near, far, FAR)
        else:
            first, second = self._evaluate(formula, state, 0.0)
        return law, np.broadcast_to(first, state.means.shape), np.broadcast_to(second, state.means.shape)

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
        """Return the columns of an arm after a pull.

        Parameters
        ----------
        round, arms
            The round, counted from 1, and the number of arms.
        pulls, mean, variance
            The statistics of the arm, this pull included.
        reward
            What the pull brought.
        memory
            The arm's columns before the pull, by name.
        probability
            The probability that the decision had when it was made.

        Examples
        --------
        >>> from rightarm import EXP3
        >>> EXP3(gamma=0.1).learned(5, pulls=2, mean=0.5, reward=1.0, memory={"gain": 3.0}, arms=2, probability=0.25)
        {'gain': 7.0}
        """
        if set(memory) != set(self.columns):
            raise ValueError(f"memory must have the columns {', '.join(self.columns) or '(none)'}, got {list(memory)}")
        if not 0 < check_number("probability", probability) <= CERTAIN:
            raise ValueError(f"probability must be above 0 and at most 1, got {probability}")
        inputs = {"t": float(round), "pulls": float(pulls), "mean": mean, "variance": variance, "arms": float(arms)}
        inputs |= {"reward": reward, "probability": probability, **memory}
        return {name: float(part.evaluate(inputs)) for name, part in self.learn.items()}

    def _state(self, round: int, pulls: ArrayLike, means: ArrayLike, memory: Memory, variances: Variances) -> ArmsState:
        """Check the state of the arms."""
        if self.pairwise and self.estimator.asks_context:
            raise ValueError(f"{self!r} looks at what arms have in common in a context: ask a Bandit with that context")
        counts, averages = check_statistics(pulls, means, whole=self.estimator.plain)
        t = float(check_count("round", round)) if self.estimator.plain else check_number("round", round)
        if memory is None and self.columns and counts.any():
            raise ValueError(f"{self!r} remembers {', '.join(self.columns)}: give memory= with a value for each arm")
        columns = check_memory(self.columns, memory, counts.size)
        spreads = check_variances(self, self.asks_variance, variances, counts)
        return ArmsState(t, counts, averages, columns, spreads, counts.size)

    def _untried(self, state: ArmsState) -> F64 | None:
        """Return the probabilities while arms have no reward, and the formulas are of no use; None if all have one."""
        count = state.pulls.size
        if not self.needs_pulls or state.pulls.min() >= FORGOTTEN:
            return None
        chances = np.empty(count)
        share_untried(state.pulls, np.arange(count), np.zeros(count, dtype=np.int64), chances)
        return chances

    def _evaluate_each(self, formula: Formula, state: ArmsState, z: ArrayLike) -> F64:
        """Return the value of one of the policy's formulas for each arm."""
        place = self.family.name if formula is self else f"{self.family.name}, explore"
        return one_each(place, self._evaluate(formula, state, z), state.means.shape)

    def _evaluate(self, formula: Formula, state: ArmsState, z: ArrayLike) -> Any:
        inputs = state.inputs(z)
        if self.asks_gap_variance:
            inputs["gap_variance"] = gap_variances(state.pulls, state.means)
        kept = {name: np.broadcast_to(part.evaluate(inputs), state.means.shape) for name, part in self.keep.items()}
        return formula.evaluate(inputs | with_extremes(kept))

    # The formulas, and what they ask for.

    @property
    def noise(self) -> Law | None:
        """The law of z, or None for a policy that draws nothing."""
        law: Law | None = self.values.get("noise", self.family.noise)
        return law

    @cached_property
    def estimator(self) -> Estimator:
        """The estimator that makes `mean` and `pulls`, for which the formulas ask, from an arm's rewards."""
        chosen: Estimator = self.values.get("estimator", MEAN)
        return chosen

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The smallest and the largest reward that it is for; None if any finite reward makes sense to it."""
        return self.family.reward_range or self.estimator.rewards

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters of the score's formula."""
        return {name: value for name, value in self.values.items() if name != "estimator"}

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of what an arm remembers besides its pulls and its mean; all start at zero."""
        return self.family.columns

    @cached_property
    def keep(self) -> dict[str, Part]:
        """The formulas of an arm's pulls and mean that are computed when it is pulled, for use until its next pull."""
        return {name: self._part(family) for name, family in self.family.keep.items()}

    @cached_property
    def explore(self) -> Part | None:
        """The probability with which an arm is explored, whatever its score is."""
        return None if self.family.explore is None else self._part(self.family.explore)

    @cached_property
    def learn(self) -> dict[str, Part]:
        """The next value of each column of a pulled arm."""
        return {name: self._part(family) for name, family in self.family.learn.items()}

    @cached_property
    def stated_law(self) -> tuple[Law | Beta | None, Policy | Part]:
        """The law of the scores, and the formula that has its two numbers: the score itself, if it is affine."""
        if self.family.score_law is not None:
            return self.family.score_law[0], self._part(self.family.score_law[1])
        if not self.affine:
            raise ValueError(f"{self!r}: its probabilities are not known; its score is not location + scale·z")
        return self.noise, self

    def _part(self, family: Family) -> Part:
        return Part(family, {parameter.name: self.values[parameter.name] for parameter in family.parameters})

    @cached_property
    def decision_inputs(self) -> frozenset[str]:
        """The inputs that a decision depends on."""
        return self.inputs | (frozenset() if self.explore is None else self.explore.inputs)

    @cached_property
    def statistics(self) -> frozenset[str]:
        """The statistics of an arm's rewards for which any of its formulas asks."""
        parts = [self.decision_inputs, *(part.inputs for part in (*self.keep.values(), *self.learn.values()))]
        return frozenset[str]().union(*parts) & self.family.statistics

    @cached_property
    def asks_variance(self) -> bool:
        """Return whether any of its formulas asks for an arm's variance."""
        return bool(self.statistics & VARIANCES)

    @cached_property
    def asks_gap_variance(self) -> bool:
        """Return whether any of its formulas asks how uncertain an arm's gap to the best mean is."""
        return "gap_variance" in self.statistics

    @property
    def pairwise(self) -> bool:
        """Return whether decisions depend on what the predictions of two arms have in common."""
        return self.asks_gap_variance or (self.noise is not None and self.noise.is_correlated)

    @cached_property
    def own_names(self) -> tuple[str, ...]:
        """The names of what an arm's own rewards change: its columns, what is kept between pulls, and its variance."""
        return (*self.columns, *self.keep, *(("variance",) if self.asks_variance else ()))

    @cached_property
    def memory_names(self) -> tuple[str, ...]:
        """The names of what compiled code has in columns."""
        return (*self.own_names, *(("gap_variance",) if self.asks_gap_variance else ()))

    @cached_property
    def needs_pulls(self) -> bool:
        """Return whether every arm must be pulled once before the formula can be used."""
        return bool(self.decision_inputs & self.family.statistics)

    @cached_property
    def weighted(self) -> bool:
        """Return whether it learns from the probability of the decision."""
        return any("probability" in part.inputs for part in self.learn.values())

    # The form of the score, which the simulator makes use of.

    @cached_property
    def affine(self) -> bool:
        """Return whether the score is location + scale·z."""
        return keeps_form(lambda: self._probe(PROBE_ROUND, LineForm()))

    @cached_property
    def shifted(self) -> bool:
        """Return whether the score is location + z with Gumbel noise: then P[I = i] ∝ exp(location_i)."""
        is_gumbel = self.noise is not None and self.noise.is_like(Gumbel)
        return is_gumbel and keeps_form(lambda: self._probe(PROBE_ROUND, Shifted()), Shifted)

    @cached_property
    def steady(self) -> bool:
        """Return whether the score is affine, and location and scale of an arm change only when the arm is pulled.

        The formula says so itself: it asks for neither the round nor the other arms.
        """
        is_of_the_arm = self.inputs <= {"pulls", "mean", "z", "arms", *self.own_names}
        return is_of_the_arm and self.affine and not self.estimator.forgets

    @cached_property
    def clocked(self) -> bool:
        """Return whether the score is location + scale·clock(t), without noise and one clock for all arms, as UCB's."""
        if self.noise is not None or "t" not in self.inputs or self.estimator.forgets:
            return False
        if self.inputs == {"t"} or not self.inputs <= {"t", "pulls", "mean", "arms", *self.own_names}:
            return False
        if not keeps_form(lambda: self._probe(Time(), 0.0)):
            return False
        with np.errstate(all="ignore"):
            span = self.line(self.reference_arm)[1]
        return bool(np.isfinite(span).all() and span.all())  # or the reference arm does not show the clock

    @cached_property
    def by_arm(self) -> bool:
        """Return whether a round costs one product for each arm, its location and scale being kept between pulls."""
        return self.steady or self.clocked

    @property
    def lazy(self) -> bool:
        """Return whether the simulator may leave out arms whose score, by what it was, cannot be the largest.

        Noise, or a score that moves with the other arms, would leave no bound to look at.
        """
        is_of_the_arm = self.inputs <= {"t", "pulls", "mean", "arms", *self.own_names}
        return self.family.rising and is_of_the_arm and not self.by_arm and not self.estimator.forgets

    def _probe(self, t: float | Traced, z: float | Traced) -> Any:
        """Evaluate the formula at a made-up state, with stand-ins for the round or the noise."""
        pulls = np.array([3.0, 5.0])
        means = np.array([0.25, 0.5])
        columns = dict.fromkeys(self.memory_names, np.array([0.5, 0.75]))
        return self.evaluate(ArmsState(t, pulls, means, columns, None, arms=2).inputs(z))

    @cached_property
    def reference_arm(self) -> ArmsState:
        """The state of one arm of two that was pulled once, with a reward of 0: its score shows the clock."""
        return ArmsState(EARLY, np.ones(1), np.zeros(1), dict.fromkeys(self.columns, np.zeros(1)), np.zeros(1), arms=2)

    def line(self, state: ArmsState) -> tuple[F64, F64]:
        """Return location and scale of a steady or clocked policy's scores; the state's round does not matter."""
        z = FAR if self.steady else 0.0
        distance = FAR if self.steady else 1.0
        near = self._evaluate_each(self, state._replace(t=EARLY), 0.0)
        far = self._evaluate_each(self, state._replace(t=LATE), z)
        with np.errstate(invalid="ignore"):
            return location_and_scale(near, far, distance)

    def _repr_html_(self) -> str:
        """Show the name, the first sentence and the formula of the docstring, and the parameters, in notebooks."""
        words, *formula = (inspect.getdoc(self.family.function) or "").split("\n\n")[:2]
        rows = [(name, value if isinstance(value, float) else str(value)) for name, value in self.values.items()]
        if self.reward_range is not None:
            rows.append(("rewards", "from {:g} to {:g}".format(*self.reward_range)))
        return html_table(["", ""], rows, title=str(self), words=2, notes=[" ".join(words.split()), *formula])


@overload
def policy(function: Function) -> PolicyFamily: ...
@overload
def policy(
    *,
    noise: Law | None = None,
    explore: Function | None = None,
    learn: Mapping[str, Function] | None = None,
    keep: Mapping[str, Function] | None = None,
    rising: bool = False,
    score_law: tuple[Law | Beta, Function] | None = None,
    reward_range: tuple[float, float] | None = None,
) -> Callable[[Function], PolicyFamily]: ...
def policy(
    function: Function | None = None,
    *,
    noise: Law | None = None,
    explore: Function | None = None,
    learn: Mapping[str, Function] | None = None,
    keep: Mapping[str, Function] | None = None,
    rising: bool = False,
    score_law: tuple[Law | Beta, Function] | None = None,
    reward_range: tuple[float, float] | None = None,
) -> PolicyFamily | Callable[[Function], PolicyFamily]:
    """Make a policy from one formula; live and compiled, with nothing else to write.

    The formula may ask for ``t`` (the round, counted from 1), ``pulls`` and ``mean`` of the arm, ``z`` (fresh noise,
    one draw for every arm and round), ``best`` and ``worst`` (the largest and smallest mean of all arms), ``arms``
    (their number), the arm's ``variance`` (of its rewards about their mean) with ``best_variance`` and
    ``worst_variance``, and ``gap_variance`` (how uncertain its gap to the best mean is). Its parameters stand behind a
    ``*``; annotations such as `Positive` or ``int`` check them. Every such policy takes ``estimator=`` as well (`Mean`,
    `Catoni`): it makes mean and pulls from the rewards.

    Parameters
    ----------
    noise
        The law of z.
    explore
        A formula for the probability with which an arm is pulled whatever the scores are; with what is left of 1, the
        largest score decides.
    learn
        For each column that an arm is to remember, a formula for its next value, when the arm was pulled; it may ask
        for ``reward``, ``probability`` (of the decision, when it was made), ``t``, ``pulls``, ``mean``, ``arms`` and
        all columns. The score may ask for the columns by their names, and for ``best_<name>`` and ``worst_<name>``,
        the largest and the smallest of all arms. All start at zero.
    keep
        Formulas of ``pulls``, ``mean`` and ``arms`` under names of their own, for which the score may ask in the same
        way. That is for speed alone: the simulator computes them when an arm is pulled, not in every round.
    rising
        True if the score of an arm that is not pulled never falls. The simulator then leaves out arms that cannot win.
    score_law
        The law of the score, where this is not location + scale·z with the law of the noise: a law and a formula for
        its two numbers (`ra.noise.probability_of_largest`), from which exact probabilities follow.
    reward_range
        The smallest and the largest reward that the formula is for, ``(0, 1)`` say; without it, any. Live and in
        evaluations rewards of another range are scaled to it, and a simulation warns of rewards outside.

    Returns
    -------
    PolicyFamily
        Called with parameters, it makes a `Policy`.

    Examples
    --------
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
    make = partial(
        PolicyFamily,
        kind=Policy,
        noise=noise,
        explore=explore,
        learn=learn or {},
        keep=keep or {},
        rising=rising,
        score_law=score_law,
        reward_range=reward_range,
    )
    return make if function is None else make(function)


def probabilities(
    policy: Policy,
    *,
    pulls: ArrayLike,
    means: ArrayLike,
    round: int,
    memory: Memory = None,
    variances: Variances = None,
) -> F64:
    """Return the exact probability with which a policy pulls each arm, in any state.

    Parameters
    ----------
    policy
        A policy such as ``UCB(C=0.5)``.
    pulls, means, round, memory, variances
        The state, as for `Policy.scores`.

    Examples
    --------
    >>> import rightarm as ra
    >>> ra.probabilities(ra.BetaThompson(), pulls=[4, 4], means=[0.25, 0.75], round=9).round(4)
    array([0.1032, 0.8968])
    """
    if not isinstance(policy, Policy):
        raise TypeError(f"policy must be a policy such as UCB(C=0.5), got {policy!r}")
    return policy.probabilities(round, pulls, means, memory, variances)
