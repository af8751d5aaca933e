"""Equation (catoni): the moment generating function of Catoni's estimate of n rewards is at most e^{V/2C²}."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rightarm.estimators import psi
from rightarm.extras import needed_for
from rightarm.lab.paper.evidence import all_of, decided, is_below
from rightarm.lab.paper.finding import BOUNDED, Claim, Finding, Study, Table, panel
from rightarm.lab.paper.lemmas import rewards
from rightarm.lab.results import Loaded
from rightarm.problems import Bernoulli, LogNormal, Pareto, Problem, StudentT
from rightarm.simulation.panels import Line
from rightarm.simulation.statistics import Curve, mean_and_error
from rightarm.theory import catoni_moment
from rightarm.types import F64

SIGNS = {1: "exp((μ − μ̂)/β)", -1: "exp((μ̂ − μ)/β)"}
AT_ONCE = 1 << 22  # rewards that are drawn together


@dataclass(frozen=True)
class Moments:
    """The two moments for one law, C and n: of samples and exactly, and their bound."""

    label: str
    n: int
    sampled: dict[int, F64]
    """By the sign of the exponent, one value for each sample of n rewards."""
    exact: dict[int, float]
    bound: float


def sampled(problem: Problem, C: float, n: int, replications: int, seed: int) -> F64:
    """(μ − μ̂)/β of samples of n rewards, as the paper prints the estimate: μ̂ = β Σ ψ(X/(βn)), β = C/√n."""
    random, beta, found = np.random.default_rng(seed), C / math.sqrt(n), []
    size = max(1, AT_ONCE // n)
    for first in range(0, replications, size):
        count = min(size, replications - first)
        drawn = rewards(problem, np.zeros(count * n, np.int64), random).reshape(count, n)
        found.append(float(problem.means[0]) / beta - np.asarray(psi(drawn / (beta * n))).sum(axis=1))
    return np.concatenate(found)


def expectation(problem: Problem, function: Callable[[float], float]) -> float:
    """E f(X) of the first arm's reward by quadrature, for the laws of this study."""
    values = {name: float(value[0]) for name, value in problem.values.items()}
    return LAWS[problem.family](function, **values)


def _integral(function: Callable[[float], float], *edges: float) -> float:
    with needed_for("reproduce catoni"):
        from scipy.integrate import quad
    return math.fsum(quad(function, *part, limit=500)[0] for part in itertools.pairwise(edges))


def _coin(f: Callable[[float], float], mean: float) -> float:
    return mean * f(1.0) + (1 - mean) * f(0.0)


def _pareto(f: Callable[[float], float], alpha: float, scale: float) -> float:
    """Over s = log(x/scale), which is exponential: the tail is too long for an integral over x."""
    return _integral(lambda s: f(scale * math.exp(s)) * alpha * math.exp(-alpha * s), 0.0, 5.0, 40.0, 350.0)


def _log_normal(f: Callable[[float], float], mu: float, sigma: float) -> float:
    def density(y: float) -> float:
        return math.exp(-(y**2) / 2) / math.sqrt(2 * math.pi)

    return _integral(lambda y: f(math.exp(mu + sigma * y)) * density(y), -12.0, 0.0, 2 * sigma + 12.0)


def _student(f: Callable[[float], float], mean: float, df: float, scale: float) -> float:
    factor = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)

    def density(y: float) -> float:
        return factor * math.exp(-(df + 1) / 2 * math.log1p(y**2 / df))

    return _integral(lambda y: f(mean + scale * y) * density(y), -math.inf, 0.0, math.inf)


LAWS: dict[Any, Callable[..., float]] = {
    Bernoulli: _coin,
    Pareto: _pareto,
    LogNormal: _log_normal,
    StudentT: _student,
}


def exact(problem: Problem, C: float, n: int, sign: int) -> float:
    """E exp(±(μ − μ̂)/β): rewards are independent, so it is e^{±μ/β} times the n-th power of E exp(∓ψ(X/(βn)))."""
    beta = C / math.sqrt(n)

    def one(reward: float) -> float:
        x = reward / (beta * n)
        growth = 1 + abs(x) + x**2 / 2  # e^{|ψ(x)|}
        return growth if sign * x < 0 else 1 / growth

    return math.exp(sign * float(problem.means[0]) / beta + n * math.log(expectation(problem, one)))


def measure(results: Loaded) -> list[Moments]:
    """Samples for each cell: its law, its C, and as many rewards as it has rounds."""
    found = []
    for cell in results:
        C, part = float(cell.policy.values["C"]), cell.value("part")
        V = float(cell.problem.second_moments[0])
        exponents = sampled(cell.problem, C, cell.horizon, len(cell.pulls), cell.record.seed)
        label = f"{cell.value('problem')}, C = {'√V' if part == 1 else f'√V/{part:g}'}"
        both = {sign: np.exp(sign * exponents) for sign in SIGNS}
        known = {sign: exact(cell.problem, C, cell.horizon, sign) for sign in SIGNS}
        found.append(Moments(label, cell.horizon, both, known, catoni_moment(V, C)))
    return found


def judge(results: Loaded) -> Finding:
    """Both moments lie below the bound for every law, C and n."""
    return judge_moments(measure(results))


def judge_moments(found: Sequence[Moments]) -> Finding:
    """The verdict on samples: the exact values stand beside them."""
    sampled = max(float(values.mean()) / own.bound for own in found for values in own.sampled.values())
    known = max(value / own.bound for own in found for value in own.exact.values())
    labels = list(dict.fromkeys(own.label for own in found))
    return Finding(
        margin=f"measured / bound at most {sampled:.3g}, exactly {known:.3g}",
        claims=[both_below(label, [own for own in found if own.label == label]) for label in labels],
        panels=[
            panel(
                f"E {name}, over its bound",
                [_curve(label, found, sign) for label in labels],
                [Line("bound", [min(o.n for o in found), max(o.n for o in found)], [1.0, 1.0])],
                x="n",
                y="moment / bound",
                log_y=False,
            )
            for sign, name in SIGNS.items()
        ],
        tables=[
            Table(
                "Measured (standard error) and exact",
                ["", "n", *(f"E {name}" for name in SIGNS.values()), "bound"],
                [_row(own) for own in found],
            )
        ],
    )


def both_below(label: str, own: Sequence[Moments]) -> Claim:
    """The claim that both moments of one law and C are below the bound for every n: of samples, and exactly."""
    over: F64 = np.stack([each.sampled[sign] / each.bound for each in own for sign in SIGNS], axis=1)
    known = max(each.exact[sign] / each.bound for each in own for sign in SIGNS)
    verdict = all_of([is_below(over, 1.0), decided(known <= 1, known > 1)])
    text = f"measured / bound at most {over.mean(axis=0).max():.3g}, exactly {known:.3g}"
    return Claim(f"{label}: both moments below the bound for every n", verdict, text)


def _curve(label: str, found: Sequence[Moments], sign: int) -> Curve:
    own = [each for each in found if each.label == label]
    samples = np.stack([each.sampled[sign] / each.bound for each in own], axis=1)
    return Curve.of(label, np.array([float(each.n) for each in own]), samples)


def _row(own: Moments) -> list[str]:
    cells = []
    for sign in SIGNS:
        mean, error = mean_and_error(own.sampled[sign])
        cells.append(f"{mean:.3f} ({error:.3f}), {own.exact[sign]:.3f}")
    return [own.label, str(own.n), *cells, f"{own.bound:.3f}"]


STUDY = Study(
    name="catoni",
    claim="However heavy the tails, the error of Catoni's estimate of n rewards has a moment generating function at "
    "1/β that depends on the second moment only; with it Theorem 6 follows as Theorem 4 does.",
    formula="E exp(±(μ − μ̂)/β) ≤ e^{E[X²]/2C²},  μ̂ = β Σ_s ψ(X_s/(βn)),  β = C/√n",
    setting="Samples of n independent rewards of four laws, with C = √V and √V/2, V = E[X²]. The expectation is also "
    "computed: it is a power of an integral over one reward.",
    criteria=(
        BOUNDED,
        "Where tails are so heavy that a moment’s own variance is infinite, standard errors are too small. So the "
        "exact values, which do not depend on them, must be within the bound as well.",
    ),
    judge=judge,
)
