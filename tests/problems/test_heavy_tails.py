"""Problems with heavy tails: their laws and moments against SciPy's, and all digits where they are easily lost."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import compiled
import rightarm as ra
from cases import PROBLEMS
from naive import F64
from rightarm.noise import Gaussian
from rightarm.noise.law import compiled_law
from rightarm.streams import fill_luck, initial_streams
from rightarm.testing import check_problem

CERTAIN = math.erfc(4.5 / math.sqrt(2))


class Mixture:
    """A Gaussian whose deviation is sometimes larger; SciPy has none."""

    def __init__(self, mean: float, sigma: float, share: float, spread: float) -> None:
        self.parts = [(1 - share, stats.norm(mean, sigma)), (share, stats.norm(mean, sigma * spread))]

    def cdf(self, x: Any) -> Any:
        return sum(weight * law.cdf(x) for weight, law in self.parts)

    def _moment(self, power: int) -> float:
        def integrand(x: float) -> float:
            return float(sum(weight * law.pdf(x) for weight, law in self.parts)) * x**power

        return float(integrate.quad(integrand, -60, 60, points=[-5, 5], limit=500, epsabs=1e-11)[0])

    def mean(self) -> float:
        return self._moment(1)

    def var(self) -> float:
        return self._moment(2) - self._moment(1) ** 2


LAWS: dict[str, tuple[ra.problems.Problem, Any]] = {
    "pareto 1.01": (ra.problems.Pareto(alpha=[1.01], scale=2.0), stats.pareto(1.01, scale=2.0)),
    "pareto 1.5": (ra.problems.Pareto(alpha=[1.5]), stats.pareto(1.5)),
    "pareto 2": (ra.problems.Pareto(alpha=[2.0], scale=0.1), stats.pareto(2.0, scale=0.1)),
    "pareto 4": (ra.problems.Pareto(alpha=[4.0], scale=1e12), stats.pareto(4.0, scale=1e12)),
    "t 1.1": (ra.problems.StudentT(mean=[0.0], df=1.1), stats.t(1.1)),
    "t 2": (ra.problems.StudentT(mean=[1.0], df=2.0, scale=3.0), stats.t(2.0, loc=1.0, scale=3.0)),
    "t 2.5": (ra.problems.StudentT(mean=[-1.0], df=2.5, scale=3.0), stats.t(2.5, loc=-1.0, scale=3.0)),
    "t 1000": (ra.problems.StudentT(mean=[0.5], df=1_000.0, scale=0.5), stats.t(1_000.0, loc=0.5, scale=0.5)),
    "lognormal": (ra.problems.LogNormal(mu=[0.5], sigma=1.0), stats.lognorm(1.0, scale=math.exp(0.5))),
    "lognormal, wide": (ra.problems.LogNormal(mu=[-1.0], sigma=3.0), stats.lognorm(3.0, scale=math.exp(-1.0))),
    "contaminated": (
        ra.problems.Contaminated(mean=[0.5], sigma=1.0, share=0.1, spread=5.0),
        Mixture(0.5, 1.0, 0.1, 5.0),
    ),
    "contaminated, narrower": (
        ra.problems.Contaminated(mean=[0.0], sigma=2.0, share=0.75, spread=0.1),
        Mixture(0.0, 2.0, 0.75, 0.1),
    ),
}
every_law = pytest.mark.parametrize("name", LAWS)


def simulated(problem: ra.problems.Problem, size: int, seed: int) -> F64:
    """Rewards of the first arm, compiled, from the simulator's own noise."""
    inputs, lanes = problem.inputs, 64
    asked = [name in inputs for name in ("u", "v", "w")]
    rounds, per_round = size // lanes, 2 * asked[0] + 2 * asked[1] + asked[2]
    words = np.empty((rounds, per_round, lanes), np.uint32)
    uniform, w = np.full((rounds, 2, lanes), np.nan), np.full((rounds, lanes), np.nan, np.float32)
    fill_luck(rounds, initial_streams(seed, 0, lanes).problem, compiled_law(Gaussian()), *asked, words, uniform, w)
    arm, pulls = np.zeros(rounds * lanes, np.int64), np.ones(rounds * lanes)
    flat = np.ascontiguousarray(uniform.transpose(1, 0, 2).reshape(2, -1))
    return compiled.rewards(problem, 1, arm, pulls, flat, w.ravel())


@every_law
def test_law(name: str) -> None:
    problem, law = LAWS[name]
    assert stats.kstest(simulated(problem, 200_000, seed=5), law.cdf).pvalue > CERTAIN


@every_law
def test_the_law_is_told_from_its_neighbours(name: str) -> None:
    """The same test refuses the law that is wider by a twentieth."""
    problem, law = LAWS[name]
    assert stats.kstest(1.05 * simulated(problem, 200_000, seed=5), law.cdf).pvalue < CERTAIN


@every_law
def test_moments(name: str) -> None:
    problem, law = LAWS[name]
    np.testing.assert_allclose(problem.means, [law.mean()], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(problem.second_moments, [law.var() + law.mean() ** 2], rtol=1e-9)


def test_infinite_second_moments() -> None:
    """From where on, exactly."""
    assert np.isinf(ra.problems.Pareto(alpha=[1.5, 2.0, 2 + 1e-9]).second_moments).tolist() == [True, True, False]
    assert np.isinf(ra.problems.StudentT(mean=0.0, df=[1.5, 2.0, 2 + 1e-9]).second_moments).tolist() == [
        True,
        True,
        False,
    ]


def test_u_and_v_are_independent() -> None:
    """Their correlation, along with that of their squares, from the simulator's noise."""
    problem = ra.problems.problem(mean=lambda s: s)(lambda u, v, *, s: s * (u - 0.5) * (v - 0.5))(s=[12.0])
    rewards = simulated(problem, 500_000, seed=6)
    assert abs(rewards.mean()) * math.sqrt(rewards.size) < 4.5
    assert abs((rewards**2).mean() - 1) * math.sqrt(rewards.size) < 4.5 * (rewards**2).std()


CHECKED = {
    "pareto": ra.problems.Pareto(alpha=[1.01, 1.5, 3.5], scale=[0.01, 1.0, 1.0]),
    "student": ra.problems.StudentT(mean=[0.0, 1e12, 0.3], df=[1.5, 3.0, 30.0]),
    "lognormal": ra.problems.LogNormal(mu=[0.0, math.log(1e12)], sigma=[1.0, 0.5]),
    "contaminated": ra.problems.Contaminated(mean=[0.0, 1e6], sigma=1.0, share=0.05, spread=10.0),
    "threefold": PROBLEMS["threefold"].problem,
}


@pytest.mark.parametrize("problem", CHECKED.values(), ids=CHECKED)
def test_contract(problem: ra.problems.Problem) -> None:
    check_problem(problem)


# All digits.

UNIT = [2.0**-53, 1e-9, 0.3, 0.5, 1 - 1e-9, 1 - 2.0**-53]


def exact(formula: Callable[[Decimal], Decimal]) -> F64:
    """At UNIT; 10¹⁰⁰ degrees of freedom take off a hundred digits."""
    with decimal.localcontext(prec=250):
        return np.array([float(formula(Decimal(u))) for u in UNIT])


def both_ways(problem: ra.problems.Problem) -> list[F64]:
    """Rewards at UNIT, with v so small that cos(2πv) is 1: live, and compiled."""
    u, v = np.array(UNIT), np.full(len(UNIT), 2.0**-53)
    arm = np.zeros(u.size, np.int64)
    live = problem.evaluate({"arm": arm, "u": u, "v": v})
    return [live, compiled.rewards(problem, 1, arm, np.ones(u.size), np.stack([u, v]), np.zeros(u.size, np.float32))]


@pytest.mark.parametrize("df", [1.1, 2.0, 30.0, 1e6, 1e12, 1e100])
def test_digits_of_student(df: float) -> None:
    """Near u = 1 and for many degrees of freedom u^(−2/df) is next to 1, and 1 is taken off."""
    n = Decimal(df)
    radius = exact(lambda u: (n * ((u.ln() * (-2 / n)).exp() - 1)).sqrt())
    for rewards in both_ways(ra.problems.StudentT(mean=[0.0], df=df)):
        np.testing.assert_allclose(rewards, radius, rtol=1e-14)


@pytest.mark.parametrize("alpha", [1.01, 2.0, 1e3, 1e12])
def test_digits_of_pareto(alpha: float) -> None:
    payment = exact(lambda u: 10**12 * (-u.ln() / Decimal(alpha)).exp())
    for rewards in both_ways(ra.problems.Pareto(alpha=[alpha], scale=1e12)):
        np.testing.assert_allclose(rewards, payment, rtol=1e-14)


BIG = 2.0**40  # 10¹²


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (ra.problems.Pareto([1.01, 1.5, 3.0], scale=1.0), ra.problems.Pareto([1.01, 1.5, 3.0], scale=BIG)),
        (
            ra.problems.StudentT([0.0, 0.5], df=1.5, scale=1.0),
            ra.problems.StudentT([0.0, 0.5 * BIG], df=1.5, scale=BIG),
        ),
        (
            ra.problems.Contaminated([0.0, 0.5], sigma=1.0, share=0.1, spread=10.0),
            ra.problems.Contaminated([0.0, 0.5 * BIG], sigma=BIG, share=0.1, spread=10.0),
        ),
    ],
    ids=["pareto", "student", "contaminated"],
)
def test_large_rewards_lose_no_digits(small: ra.problems.Problem, large: ra.problems.Problem) -> None:
    """Everything 2⁴⁰ times as large, the policy's scale too: the same pulls, and 2⁴⁰ times the regret, bit for bit."""
    here, there = (
        ra.simulate(ra.UCB(C=C), problem, horizon=3_000, replications=16, seed=1)
        for C, problem in ((1.0, small), (BIG, large))
    )
    np.testing.assert_array_equal(there.pulls, here.pulls)
    np.testing.assert_array_equal(there.regret, BIG * here.regret)
    assert len({row.tobytes() for row in here.pulls[0]}) > 5, "replications that are all alike would show nothing"
