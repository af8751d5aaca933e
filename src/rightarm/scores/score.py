"""A policy's formulas: the score, what is explored, learned and kept beside it, and the form that the score has."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from rightarm.estimators import Estimator
from rightarm.formula import Family, Formula
from rightarm.formula.tracing import Line, Shifted, Time, keeps_form
from rightarm.noise import Gumbel, Law
from rightarm.scores.family import MEAN, Part, PolicyFamily
from rightarm.scores.inputs import INPUTS, VARIANCES, State, gap_variances, one_each, with_extremes
from rightarm.scores.rules import FAR, location_and_scale
from rightarm.types import F64

PROBE_ROUND = 100.0  # of the made-up state at which a formula's operations are followed
EARLY, LATE = 1.0, 2.0**40  # rounds between which a clock runs from 0 to 1


class Score(Formula):
    """A formula for a score with its parameters set, and the formulas that belong to it."""

    INPUTS: ClassVar[dict[str, str]] = INPUTS
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"noise"})

    family: PolicyFamily

    def __init__(self, family: Family, values: Mapping[str, Any]) -> None:
        given = dict(values)
        if given.get("estimator") == MEAN:  # the default
            del given["estimator"]
        super().__init__(family, given)
        if "estimator" in given and not self.statistics:
            raise TypeError(
                f"{family.name} takes no estimator: none of its formulas asks for pulls, mean, best, worst or variance"
            )
        if self.estimator.asks_context and self.columns:
            raise TypeError(
                f"{family.name} has no contextual form: it learns {', '.join(self.columns)} from every reward, "
                "which does not follow from a prediction and what it is worth"
            )
        if self.estimator.rewards is not None and self.family.rewards is not None:
            low, high = self.family.rewards
            raise TypeError(
                f"{family.name} is for means from {low:g} to {high:g}, which those of {self.estimator} are not"
            )
        self.check_forgetting(self.estimator)

    @property
    def noise(self) -> Law | None:
        """The law of z, or None for a policy that draws nothing."""
        law: Law | None = self.values.get("noise", self.family.noise)
        return law

    @property
    def estimator(self) -> Estimator:
        """What makes the `mean` and the `pulls` that the formulas see from an arm's rewards."""
        chosen: Estimator = self.values.get("estimator", MEAN)
        return chosen

    @property
    def rewards(self) -> tuple[float, float] | None:
        """The smallest and the largest reward that it is for; None if any finite reward makes sense to it."""
        return self.family.rewards or self.estimator.rewards

    def check_forgetting(self, estimator: Estimator) -> None:
        """Raise if an estimator forgets and a column is not a sum of what each reward adds to it.

        What a reward has added to a sum can be taken away again when the reward is forgotten.
        """
        if not estimator.forgets:
            return
        known = {"t": 9.0, "pulls": 3.0, "mean": 0.5, "variance": 0.25, "arms": 2.0, "reward": 0.5, "probability": 0.5}
        for column, lesson in self.learn.items():
            inputs: dict[str, Any] = known | dict.fromkeys(self.columns, 0.5) | {column: Shifted()}
            if not keeps_form(functools.partial(lesson.evaluate, inputs), Shifted):
                what = "discount" if estimator.window is None else "window"
                raise ValueError(f"{what} is for statistics that are sums, which the {column!r} of {self!r} is not")

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters that the formula itself has."""
        return {name: value for name, value in self.values.items() if name != "estimator"}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of what an arm remembers besides its pulls and its mean; all start at zero."""
        return self.family.columns

    @functools.cached_property
    def keep(self) -> dict[str, Part]:
        """What is computed of an arm's pulls and mean when it is pulled, and kept until its next pull."""
        return {name: self._part(family) for name, family in self.family.keep.items()}

    @functools.cached_property
    def explore(self) -> Part | None:
        """The probability with which an arm is explored, whatever its score is."""
        return None if self.family.explore is None else self._part(self.family.explore)

    @functools.cached_property
    def learn(self) -> dict[str, Part]:
        """The next value of each column of a pulled arm."""
        return {name: self._part(family) for name, family in self.family.learn.items()}

    def _part(self, family: Family) -> Part:
        return Part(family, {parameter.name: self.values[parameter.name] for parameter in family.parameters})

    @functools.cached_property
    def decision_inputs(self) -> frozenset[str]:
        """All that a decision depends on."""
        return self.inputs | (frozenset() if self.explore is None else self.explore.inputs)

    @functools.cached_property
    def statistics(self) -> frozenset[str]:
        """All that any of its formulas asks for of an arm's rewards."""
        parts = [self.decision_inputs, *(part.inputs for part in (*self.keep.values(), *self.learn.values()))]
        return frozenset[str]().union(*parts) & self.family.statistics

    @property
    def asks_variance(self) -> bool:
        """Whether any of its formulas asks for an arm's variance."""
        return bool(self.statistics & VARIANCES)

    @property
    def asks_gap_variance(self) -> bool:
        """Whether any of its formulas asks how uncertain an arm's gap to the best mean is."""
        return "gap_variance" in self.statistics

    @property
    def pairwise(self) -> bool:
        """Whether decisions depend on what the predictions of two arms have in common."""
        return self.asks_gap_variance or (self.noise is not None and self.noise.correlates)

    @property
    def own_names(self) -> tuple[str, ...]:
        """What an arm remembers, what is kept between its pulls, and its variance: what its own rewards change."""
        return (*self.columns, *self.keep, *(("variance",) if self.asks_variance else ()))

    @property
    def memory_names(self) -> tuple[str, ...]:
        """What compiled code has in columns."""
        return (*self.own_names, *(("gap_variance",) if self.asks_gap_variance else ()))

    @property
    def needs_pulls(self) -> bool:
        """Whether every arm must be pulled once before the formula can be used."""
        return bool(self.decision_inputs & self.family.statistics)

    @functools.cached_property
    def weighted(self) -> bool:
        """Whether it learns from the probability of the decision."""
        return any("probability" in part.inputs for part in self.learn.values())

    # Values by NumPy.

    def _evaluated(self, formula: Formula, state: State, z: Any) -> F64:
        """A formula of this policy for some arms."""
        place = self.family.name if formula is self else f"{self.family.name}, explore"
        return one_each(place, self._values(formula, state, z), state.means.shape)

    def _values(self, formula: Formula, state: State, z: Any) -> Any:
        inputs = state.inputs(z)
        if self.asks_gap_variance:
            inputs["gap_variance"] = gap_variances(state.pulls, state.means)
        kept = {name: np.broadcast_to(part.evaluate(inputs), state.means.shape) for name, part in self.keep.items()}
        return formula.evaluate(inputs | with_extremes(kept))

    # The form of the score, which the simulator makes use of.

    @functools.cached_property
    def affine(self) -> bool:
        """Whether the score is location + scale·z."""
        return keeps_form(lambda: self._scores_of(PROBE_ROUND, Line()))

    @functools.cached_property
    def shifted(self) -> bool:
        """Whether the score is location + z with Gumbel noise: then P[I = i] ∝ exp(location_i)."""
        gumbel = self.noise is not None and self.noise.is_like(Gumbel)
        return gumbel and keeps_form(lambda: self._scores_of(PROBE_ROUND, Shifted()), Shifted)

    @functools.cached_property
    def steady(self) -> bool:
        """Whether, besides, location and scale of an arm change only when the arm is pulled.

        The formula says so itself: it asks for neither the round nor the other arms.
        """
        own = self.inputs <= {"pulls", "mean", "z", "arms", *self.own_names}
        return own and self.affine and not self.estimator.forgets

    @functools.cached_property
    def clocked(self) -> bool:
        """Whether the score, without noise, is location + scale·clock(t) with one clock for all arms, as UCB's is."""
        if self.noise is not None or "t" not in self.inputs or self.estimator.forgets:
            return False
        if self.inputs == {"t"} or not self.inputs <= {"t", "pulls", "mean", "arms", *self.own_names}:
            return False
        if not keeps_form(lambda: self._scores_of(Time(), 0.0)):
            return False
        with np.errstate(all="ignore"):
            span = self.line(self.reference_arm)[1]
        return bool(np.isfinite(span).all() and span.all())  # or the reference arm does not show the clock

    @property
    def by_arm(self) -> bool:
        """Whether a round costs one product for each arm, its location and scale being kept between pulls."""
        return self.steady or self.clocked

    @property
    def lazy(self) -> bool:
        """Whether only those arms need to be looked at whose score may be the largest by what it was, or will be.

        Noise, or a score that moves with the other arms, would leave no bound to look at.
        """
        own = self.inputs <= {"t", "pulls", "mean", "arms", *self.own_names}
        return self.family.rising and own and not self.by_arm and not self.estimator.forgets

    def _scores_of(self, t: Any, z: Any) -> Any:
        """The formula at a made-up state, for stand-ins."""
        means, columns = np.array([0.25, 0.5]), dict.fromkeys(self.memory_names, np.array([0.5, 0.75]))
        return self.evaluate(State(t, np.array([3.0, 5.0]), means, columns, None, arms=2).inputs(z))

    @property
    def reference_arm(self) -> State:
        """The state of one arm of two that was pulled once, with a reward of 0: its score shows the clock."""
        return State(EARLY, np.ones(1), np.zeros(1), dict.fromkeys(self.columns, np.zeros(1)), np.zeros(1), arms=2)

    def line(self, state: State) -> tuple[F64, F64]:
        """Location and scale of a steady or clocked policy's scores, by NumPy; the state's round does not matter."""
        z, distance = (FAR, FAR) if self.steady else (0.0, 1.0)
        near = self._evaluated(self, state._replace(t=EARLY), 0.0)
        far = self._evaluated(self, state._replace(t=LATE), z)
        with np.errstate(invalid="ignore"):
            return location_and_scale(near, far, distance)
