"""Lemmas 1 to 3: the pulls of a suboptimal arm fall into three kinds, each with its bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rightarm.experiments import Results
from rightarm.paper.evidence import AGREES, decided, is_below
from rightarm.paper.finding import Claim, Finding, NumberTable, fraction, panel
from rightarm.policies import Policy
from rightarm.problems import Problem
from rightarm.simulation.panels import Curve, Line, Panel, mean_and_error
from rightarm.theory import lemma1, lemma2, lemma3
from rightarm.types import F64, I64

KINDS = ("first term", "second term", "third term")  # of the decomposition, in the paper's order
LEMMAS = ("Lemma 2", "Lemma 3", "Lemma 1")


def rewards(problem: Problem, arm: I64, random: np.random.Generator) -> F64:
    """Return what the pulled arms pay, one reward for each replication."""
    noise: dict[str, F64] = {}
    for name in ("u", "v", "w"):
        if name in problem.inputs:
            noise[name] = random.standard_normal(arm.size) if name == "w" else random.random(arm.size)
    return np.broadcast_to(np.asarray(problem.evaluate({"arm": arm, **noise}), dtype=np.float64), arm.shape)


def decomposed(problem: Problem, C: float, location: float, horizon: int, replications: int, seed: int) -> F64:
    """Count the pulls of each suboptimal arm by kind, kinds × arms × replications, without the first of each arm.

    A plain simulation of Boltzmann–Gumbel exploration. With x_i = μ_i + Δ_i/3 and y_i = μ_1 − Δ_i/3, a pull of arm i
    is of the third kind if its mean is above x_i, else of the second if its perturbed mean is above y_i, else of the
    first.
    """
    random = np.random.default_rng(seed)
    suboptimal = np.flatnonzero(problem.gaps > 0)
    x = (problem.means + problem.gaps / 3)[:, None]
    y = (problem.means.max() - problem.gaps / 3)[:, None]
    every = np.arange(replications)
    sums = np.stack([rewards(problem, np.full(replications, arm), random) for arm in range(problem.arms)])
    pulls = np.ones_like(sums)
    counts = np.zeros((3, *sums.shape))
    for _ in range(horizon - problem.arms):
        means = sums / pulls
        perturbed = means + C / np.sqrt(pulls) * (location + random.gumbel(size=sums.shape))
        arm = perturbed.argmax(axis=0)
        poor = means[arm, every] > x[arm, 0]
        noisy = perturbed[arm, every] > y[arm, 0]
        counts[np.where(poor, 2, np.where(noisy, 1, 0)), arm, every] += 1
        sums[arm, every] += rewards(problem, arm, random)
        pulls[arm, every] += 1
    return counts[:, suboptimal]


@dataclass(frozen=True)
class PullKinds:
    """The three kinds of pulls of one setting, their bounds, and all pulls by the library's simulator."""

    label: str
    horizon: int
    terms: F64
    """Kinds × replications, the mean over the suboptimal arms."""
    bounds: tuple[float, float, float]
    pulls: F64
    """All pulls, the mean over the suboptimal arms, one for each replication."""

    @property
    def named(self) -> str:
        """The label with the horizon."""
        return f"{self.label}, T = {self.horizon:,}"


def bounds_of(policy: Policy, problem: Problem, horizon: int) -> tuple[float, float, float]:
    """Return the bounds of Lemmas 2, 3 and 1 on the three terms, the first pull apart; c = σ."""
    gap = float(problem.gaps.max())
    C = float(policy.values["C"])
    sigma = float(problem.values["sigma"][0])
    third = lemma1(gap, horizon, C, sigma) - 1
    return lemma2(gap, horizon, C, sigma), float(lemma3(gap, horizon, C, sigma)), third


def measure(results: Results) -> list[PullKinds]:
    """Count again, by kinds, what each cell has simulated; with other luck."""
    found = []
    for cell in results:
        counts = decomposed(
            cell.problem,
            C=cell.policy.values["C"],
            location=cell.policy.values["location"],
            horizon=cell.horizon,
            replications=len(cell.pulls),
            seed=cell.seed + 1,
        )
        label = f"K = {cell.problem.arms}, C = {fraction('σ', cell)}"
        others = cell.pulls[:, cell.problem.gaps > 0].mean(axis=1)
        bounds = bounds_of(cell.policy, cell.problem, cell.horizon)
        found.append(PullKinds(label, cell.horizon, counts.mean(axis=1), bounds, others))
    return found


def judge_lemmas(results: Results) -> Finding:
    """Judge whether every term lies below its lemma, and whether together with the first pull they are all pulls."""
    return judge_terms(measure(results))


def judge_terms(found: Sequence[PullKinds]) -> Finding:
    """Judge what was counted."""
    groups = [[own for own in found if own.label == label] for label in dict.fromkeys(own.label for own in found)]
    claims = [below_lemma(own, i) for own in groups for i in range(len(LEMMAS))] + [adds_up(own) for own in found]
    worst = {lemma: max(own.terms[i].mean() / own.bounds[i] for own in found) for i, lemma in enumerate(LEMMAS)}
    return Finding(
        margin=f"measured / bound at most {', '.join(f'{ratio:.3g} ({lemma})' for lemma, ratio in worst.items())}",
        claims=claims,
        panels=[_panel(own[0].label, own) for own in groups],
        tables=[
            NumberTable(
                "Pulls of a suboptimal arm (bound); their sum, and all by the library's simulator (standard error)",
                ["", *(f"{kind}, {lemma}" for kind, lemma in zip(KINDS, LEMMAS, strict=True)), "with the first", "all"],
                [_row(own) for own in found],
            )
        ],
    )


def below_lemma(own: Sequence[PullKinds], i: int) -> Claim:
    """Claim that one term is below its bound for every T."""
    over = np.stack([each.terms[i] / each.bounds[i] for each in own], axis=1)
    text = ", ".join(f"{each.terms[i].mean():.3g} against {each.bounds[i]:.4g} (T = {each.horizon:,})" for each in own)
    return Claim(f"{own[0].label}: the {KINDS[i]} below the bound of {LEMMAS[i]}", is_below(over, 1.0), text)


def adds_up(own: PullKinds) -> Claim:
    """Claim that the three terms and the first pull are all pulls: two simulators, with their own luck."""
    total, error = mean_and_error(own.terms.sum(axis=0) + 1)
    every, other = mean_and_error(own.pulls)
    apart = math.hypot(float(error), float(other))
    z = abs(float(total - every)) / apart if apart else math.inf if total != every else 0.0
    text = f"{total:.4g} and {every:.4g}, {z:.1f} standard errors apart"
    return Claim(f"{own.named}: the terms and the first pull add up to N", decided(z < AGREES, z >= AGREES), text)


def _row(own: PullKinds) -> list[str]:
    terms = [f"{term.mean():.3g} ({bound:.0f})" for term, bound in zip(own.terms, own.bounds, strict=True)]
    sums = [mean_and_error(own.terms.sum(axis=0) + 1), mean_and_error(own.pulls)]
    return [own.named, *terms, *(f"{mean:.1f} ({error:.1f})" for mean, error in sums)]


def _panel(label: str, own: Sequence[PullKinds]) -> Panel:
    T = np.array([float(each.horizon) for each in own])
    curves = [Curve.of(kind, T, np.stack([each.terms[i] for each in own], axis=1)) for i, kind in enumerate(KINDS)]
    lines = [
        Line(f"{lemma}, {kind}", T, [each.bounds[i] for each in own])
        for i, (kind, lemma) in enumerate(zip(KINDS, LEMMAS, strict=True))
    ]
    return panel(label, curves, lines, y="pulls of a suboptimal arm")
