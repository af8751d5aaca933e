"""Policies and their schedules: temperatures, the probabilities of choices, what is refused.

What every policy promises is in `test_every_policy.py`.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import compiled
import naive
import rightarm as ra
from cases import GAMMA, POLICIES

# What the simulator makes use of: scores that are location + scale·z.

AFFINE = {
    "location alone": ("mean + 0 * z", True),
    "a scale of its own": ("mean + z / np.sqrt(pulls)", True),
    "a tiny scale": ("1e6 + mean + 1e-9 * z", True),
    "squashed": ("mean + np.tanh(z)", False),
    "squared": ("mean + 1e-3 * z**2", False),
    "cut off above": ("mean + np.minimum(z, 8.0)", False),
    "cut off below": ("mean + np.maximum(z, -4.0)", False),
}


@pytest.mark.parametrize(("expression", "affine"), AFFINE.values(), ids=AFFINE)
@pytest.mark.parametrize("law", [ra.noise.Gumbel(), ra.noise.Gaussian()], ids=str)
def test_affine(law: ra.noise.Law, expression: str, affine: bool) -> None:
    """Wherever the noise may fall."""
    policy = ra.policy(noise=law)(eval(f"lambda pulls, mean, z: {expression}"))()
    assert policy.affine == policy.steady == affine


# Temperatures, by the definitions of sections 3 and 6.

SCHEDULES = {
    "constant": (ra.schedules.constant(0.3), naive.constant(0.3)),
    "inverse_log": (ra.schedules.inverse_log(0.3), naive.inverse_log(0.3)),
    "inverse_sqrt": (ra.schedules.inverse_sqrt(0.3), naive.inverse_sqrt(0.3)),
    "two_phase": (ra.schedules.two_phase(0.5, 10_000), naive.two_phase(0.5, 10_000)),
    "glie": (ra.schedules.glie(), naive.glie()),
}


@pytest.mark.parametrize(("schedule", "temperature"), SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize("t", [2, 3, 100, 4_805, 4_806, 4_807, 10_000, 10**7])
def test_temperatures(schedule: Any, temperature: naive.Temperature, t: int) -> None:
    """With 3 arms the second phase begins at 16 e · 3 · log(10⁴) / ¼ = 4806.9."""
    means = [0.25, 0.75, 0.5]
    scores = ra.Boltzmann(schedule).scores(t, [5] * 3, means, [1.0, 0.0, -2.0])
    beta = temperature(t, 0.5, 3)
    np.testing.assert_allclose(scores, [0.25 + beta, 0.75, 0.5 - 2 * beta], rtol=1e-13)


def test_two_phases_meet_where_the_theorem_says() -> None:
    """η_t = 1 before τ, and log(tΔ²)/Δ from τ on."""
    tau = 16 * math.e * 3 * math.log(10_000) / 0.5**2
    for t, eta in ((math.floor(tau), 1.0), (math.ceil(tau), math.log(math.ceil(tau) * 0.5**2) / 0.5)):
        scores = ra.Boltzmann(ra.schedules.two_phase(gap=0.5, horizon=10_000)).scores(t, [9] * 3, [0.0] * 3, [1.0] * 3)
        np.testing.assert_allclose(1 / scores, eta)


@given(st.integers(2, 10**6), st.lists(st.floats(0, 1), min_size=2, max_size=6, unique=True))
def test_glie_leaves_every_arm_its_share(t: int, means: list[float]) -> None:
    """Every arm has a probability of at least 1/(K t): the weights e^(η(μ̂ − best)) lie between 1/t and 1."""
    beta = ra.Boltzmann(ra.schedules.glie()).scores(t, [1] * len(means), means, 1.0) - means
    weights = np.exp((np.array(means) - max(means)) / beta)
    assert (weights / weights.sum()).min() >= (1 - 1e-6) / (len(means) * t)


def test_ucb_is_ucb1_at_the_square_root_of_two() -> None:
    """Auer, Cesa-Bianchi, Fischer: √(2 log t / N)."""
    scores = ra.UCB(C=math.sqrt(2)).scores(100, [10, 40], [0.5, 0.25])
    np.testing.assert_allclose(
        scores, [0.5 + math.sqrt(2 * math.log(100) / 10), 0.25 + math.sqrt(2 * math.log(100) / 40)]
    )


# Choices.


def check_frequencies(counts: Any, probabilities: Any) -> None:
    """χ² against its mean, in standard deviations."""
    expected = np.sum(counts) * np.asarray(probabilities)
    freedom = len(expected) - 1
    chi_square = float(np.sum((counts - expected) ** 2 / expected))
    assert abs(chi_square - freedom) / math.sqrt(2 * freedom) < 4.5, f"{counts} but {expected} were expected"


def live_counts(policy: ra.Policy, t: int, pulls: list[int], means: list[float], size: int) -> Any:
    random = np.random.default_rng(1)
    return np.bincount([policy.choose(t, pulls, means, random) for _ in range(size)], minlength=len(means))


def simulated_counts(policy: ra.Policy, t: int, pulls: list[int], means: list[float], size: int) -> Any:
    """First choices of many replications that start from the state; t is the round after its pulls."""
    assert t == sum(pulls) + 1
    known: Any = {"pulls": pulls, "means": means}
    result = ra.simulate(
        policy, ra.problems.Deterministic(means), horizon=1, replications=size, seed=1, lanes=2_048, **known
    )
    return (result.pulls[0] - pulls).sum(axis=0)


BOTH = pytest.mark.parametrize("count", [live_counts, simulated_counts], ids=["live", "simulated"])
Count = Callable[[ra.Policy, int, list[int], list[float], int], Any]


@BOTH
@pytest.mark.parametrize("name", SCHEDULES)
def test_boltzmann_chooses_with_the_probabilities_it_states(name: str, count: Count) -> None:
    """Softmax of the means over the temperature, whatever the pulls."""
    schedule, temperature = SCHEDULES[name]
    means, pulls = [0.25, 0.75, 0.5], [1, 100, 10]
    weights = np.exp(np.array(means) / temperature(112, 0.5, 3))
    check_frequencies(count(ra.Boltzmann(schedule), 112, pulls, means, 10_000), weights / weights.sum())


# By mpmath: means (0.6, 0.5), pulls (1, 100), C = 0.5.
TWO_ARMS = {
    "location 0": (0.0, 0.68396777654932802),
    "location γ": (GAMMA, 0.85404043791727407),
}


@BOTH
@pytest.mark.parametrize(("location", "p"), TWO_ARMS.values(), ids=TWO_ARMS)
def test_boltzmann_gumbel_chooses_with_its_exact_probability(location: float, p: float, count: Count) -> None:
    policy = ra.BoltzmannGumbel(C=0.5, location=location)
    check_frequencies(count(policy, 102, [1, 100], [0.6, 0.5], 10_000), [p, 1 - p])


@BOTH
def test_boltzmann_gumbel_among_ten_arms(count: Count) -> None:
    """Means j/10 and pulls (j + 1)²; arms 0 and 9 by mpmath."""
    pulls, means = [(j + 1) ** 2 for j in range(10)], [j / 10 for j in range(10)]
    counts = count(ra.BoltzmannGumbel(C=0.5, location=0.0), sum(pulls) + 1, pulls, means, 10_000)
    first, last = 0.13992804742296177, 0.65922110495323634
    check_frequencies([counts[0], counts[1:9].sum(), counts[9]], [first, 1 - first - last, last])


def test_the_papers_gumbel_law_is_the_default() -> None:
    """CDF exp(−e^(−x+γ)): location +γ."""
    assert ra.BoltzmannGumbel(C=0.5) == ra.BoltzmannGumbel(C=0.5, location=GAMMA)
    assert ra.BoltzmannGumbel(C=0.5).scores(5, [4], [0.0], [0.0])[0] == pytest.approx(0.25 * GAMMA)


@BOTH
@pytest.mark.parametrize("temperature", [1e-9, 1e-300])
def test_cold_boltzmann_takes_the_best_arm(temperature: float, count: Count) -> None:
    assert count(ra.Boltzmann(temperature), 31, [10] * 3, [0.5, 0.5 + 1e-6, 0.4], 1_000).tolist() == [0, 1_000, 0]


@BOTH
@pytest.mark.parametrize("policy", [ra.Boltzmann(1e9), ra.Boltzmann(1e290)], ids=str)
def test_hot_boltzmann_takes_all_arms_alike(policy: ra.Policy, count: Count) -> None:
    check_frequencies(count(policy, 13, [10, 1, 1], [0.1, 0.9, 0.5], 10_000), [1 / 3] * 3)


@BOTH
@pytest.mark.parametrize(
    "policy",
    [
        ra.UCB(C=1.0),
        ra.Boltzmann(1e-300),
        ra.Boltzmann(ra.schedules.glie()),
        ra.BoltzmannGumbel(C=1e-300),
        POLICIES["curious"].policy,
    ],
    ids=str,
)
def test_ties_are_fair(policy: ra.Policy, count: Count) -> None:
    """Three of four arms have the same history; the fourth is out of the race."""
    means = [0.5, -1e3, 0.5, 0.5] if policy.inputs.isdisjoint({"best"}) else [0.5] * 4
    live = [i for i, mean in enumerate(means) if mean == 0.5]
    counts = count(policy, 29, [7] * 4, means, 5_000)
    assert counts.sum() == counts[live].sum()
    check_frequencies(counts[live], [1 / len(live)] * len(live))


def test_choices_come_from_the_generator_given() -> None:
    policy = ra.BoltzmannGumbel(C=0.5)
    first, second = (
        [policy.choose(9, [4, 4], [0.5, 0.4], r) for _ in range(50)] for r in map(np.random.default_rng, (1, 1))
    )
    assert first == second
    assert len(set(first)) == 2


# What is refused.


class Row:
    """A call that must fail."""

    def __init__(self, call: Callable[[], Any], error: type[Exception], message: str) -> None:
        self.call, self.error, self.message = call, error, message


RANDOM = np.random.default_rng(1)


def choose(**changes: Any) -> Callable[[], int]:
    state: dict[str, Any] = {"round": 9, "pulls": [4, 4], "means": [0.5, 0.4], "random": RANDOM}
    return lambda: ra.UCB(C=1.0).choose(**(state | changes))


REFUSED = {
    "UCB of -1": Row(lambda: ra.UCB(C=-1.0), ValueError, "C must be positive, got -1.0"),
    "UCB of 0": Row(lambda: ra.UCB(C=0), ValueError, "C must be positive, got 0.0"),
    "UCB of nan": Row(lambda: ra.UCB(C=math.nan), ValueError, "C must be finite, got nan"),
    "UCB of text": Row(lambda: ra.UCB(C="1"), TypeError, "C must be a number, got '1'"),  # type: ignore[arg-type]
    "BGE of -1": Row(lambda: ra.BoltzmannGumbel(C=-1.0), ValueError, "C must be positive, got -1.0"),
    "BGE at inf": Row(
        lambda: ra.BoltzmannGumbel(1.0, location=math.inf), ValueError, "location must be finite, got inf"
    ),
    "constant of -1": Row(lambda: ra.schedules.constant(-1), ValueError, "c must be non-negative, got -1.0"),
    "inverse_log of -1": Row(lambda: ra.schedules.inverse_log(-1), ValueError, "c must be positive, got -1.0"),
    "inverse_sqrt of inf": Row(lambda: ra.schedules.inverse_sqrt(math.inf), ValueError, "c must be finite, got inf"),
    "two_phase with gap 0": Row(lambda: ra.schedules.two_phase(0, 10), ValueError, "gap must be positive, got 0.0"),
    "two_phase to 1.5": Row(
        lambda: ra.schedules.two_phase(0.1, 1.5), ValueError, "horizon must be a whole number from 1 on, got 1.5"
    ),
    "glie of 1": Row(lambda: ra.schedules.glie(1.0), TypeError, "glie.*argument"),  # type: ignore[call-arg]
    "temperature -1": Row(lambda: ra.Boltzmann(-1.0), ValueError, "temperature must be non-negative, got -1.0"),
    "temperature text": Row(lambda: ra.Boltzmann("hot"), TypeError, "temperature must be a schedule.*got 'hot'"),  # type: ignore[arg-type]
    "temperature UCB": Row(
        lambda: ra.Boltzmann(ra.UCB(1.0)),  # type: ignore[arg-type]
        TypeError,
        r"temperature must be a schedule.*got UCB\(C=1.0\)",
    ),
    "schedule not called": Row(
        lambda: ra.Boltzmann(ra.schedules.glie), TypeError, "temperature must be a schedule.*got glie"
    ),
    "function of x": Row(lambda: ra.Boltzmann(lambda x: 1.0), TypeError, "unknown input 'x'"),
    "round 0": Row(choose(round=0), ValueError, "round must be a whole number of at least 1, got 0"),
    "round 1.5": Row(choose(round=1.5), ValueError, "round must be a whole number of at least 1, got 1.5"),
    "score of no pulls": Row(
        lambda: ra.UCB(1.0).scores(9, [4, 0], [0.5, 0.4]), ValueError, r"pulls must be at least 1.*got \[4.0, 0.0\]"
    ),
    "score at 0": Row(lambda: ra.UCB(1.0).scores(0, [4], [0.5]), ValueError, "round must be a whole number.*got 0"),
    "pulls -1": Row(choose(pulls=[4, -1]), ValueError, r"pulls must be whole numbers from 0 on, got \[4.0, -1.0\]"),
    "pulls 0.5": Row(choose(pulls=[4, 0.5]), ValueError, r"pulls must be whole numbers from 0 on, got \[4.0, 0.5\]"),
    "pulls nan": Row(
        choose(pulls=[4, math.nan]), ValueError, r"pulls must be whole numbers from 0 on, got \[4.0, nan\]"
    ),
    "pulls inf": Row(
        choose(pulls=[4, math.inf]), ValueError, r"pulls must be whole numbers from 0 on, got \[4.0, inf\]"
    ),
    "pulls of 3": Row(choose(pulls=[1, 2, 3]), ValueError, r"one length, got shapes \(3,\) and \(2,\)"),
    "pulls in two rows": Row(choose(pulls=[[1, 2]], means=[[1, 2]]), ValueError, r"got shapes \(1, 2\) and \(1, 2\)"),
    "no arms": Row(choose(pulls=[], means=[]), ValueError, r"got shapes \(0,\) and \(0,\)"),
    "mean nan": Row(choose(means=[0.5, math.nan]), ValueError, r"means must be finite.*got \[0.5, nan\]"),
}


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED)
def test_refused(row: Row) -> None:
    with pytest.raises(row.error, match=row.message):
        row.call()


def test_a_live_score_that_is_not_a_number_is_an_error() -> None:
    policy = ra.policy(eval("lambda mean, *, C: C * np.sqrt(mean)", {"np": np}))(2.0)
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=r"C=2\.0.*not a number"):
        policy.choose(9, [4, 4], [-1.0, -1.0], RANDOM)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (ra.EpsilonGreedy(ra.schedules.decreasing(d=1e-200)), "float division by zero"),
        (ra.EpsilonGreedy(ra.schedules.decreasing(d=1e200)), "Numerical result out of range"),
        (ra.Maillard(sigma=1e200), "Numerical result out of range"),
    ],
)
def test_a_formula_that_has_no_value_is_an_error_that_names_it(policy: ra.Policy, words: str) -> None:
    for use in (
        lambda: ra.Bandit(["a", "b"], policy),
        lambda: ra.simulate(policy, ra.problems.Bernoulli([0.5, 0.4]), horizon=10, replications=2, seed=1),
    ):
        with pytest.raises(ValueError, match=re.escape(f"{policy!r} has no value in round") + f".*{words}"):
            use()


@pytest.mark.parametrize("mean", [0.0, 1e-300, 1e-12, 0.3, 1 - 1e-12, 1 - 2.0**-53, 1.0])
def test_kl_ucb_of_arms_that_are_nearly_forgotten(mean: float) -> None:
    """However few pulls count, the score is a number from the mean to 1, and 1 at last."""
    policy = ra.KLUCB(estimator=ra.estimators.Mean(discount=0.9))
    for pulls in 10.0 ** np.arange(-99.0, 5.0):
        for t in (1.5, 10.0, 1e15):
            both: list[Any] = [policy.scores, functools.partial(compiled.scores, policy)]
            for scores in both:
                found = scores(t, [pulls, 1.0], [mean, 0.5], [0.0, 0.0])[0]
                assert mean <= found <= 1.0
                assert found == 1.0 or pulls > 1e-3


def test_a_bandit_goes_on_when_an_arm_is_nearly_forgotten() -> None:
    bandit = ra.Bandit(["a", "b"], ra.KLUCB(estimator=ra.estimators.Mean(discount=0.9)), seed=1)
    bandit.tell(arm="a", reward=1.0)
    for i in range(300):
        bandit.tell(arm="b", reward=i % 2)
    assert bandit.ask().arm == "a"


def test_kl_ms_of_near_ties() -> None:
    """Twelve digits of a probability at up to 10¹² pulls."""
    random = np.random.default_rng(4)
    for _ in range(300):
        pulls = max(1, round(10.0 ** random.uniform(0, 12)))
        best = random.choice([random.random(), 10.0 ** random.uniform(-5, 0), 1 - 10.0 ** random.uniform(-5, 0)])
        away = math.sqrt(2 * 10.0 ** random.uniform(-2, 1) * best * (1 - best) / pulls)
        mean = min(max(best - away, 0.0), 1.0)
        with mp.workdps(50):
            p, q = mp.mpf(mean), mp.mpf(best)
            divergence = (p * mp.log(p / q) if p else 0) + (1 - p) * mp.log((1 - p) / (1 - q))
            expected = 1 / (1 + mp.exp(pulls * divergence))
            found = ra.KLMS().probabilities(2 * pulls + 1, [pulls, pulls], [best, mean])[1]
            assert abs(found / expected - 1) < 1e-12


@pytest.mark.parametrize(
    ("policy", "before", "after"), [(ra.EXP3PlusPlusImproved(), 2.7e8, 3.2e8), (ra.EXP3PlusPlus(), 5.5e8, 6.8e8)]
)
def test_gaps_count_for_exp3pp_only_after_very_many_rounds(policy: ra.Policy, before: float, after: float) -> None:
    """Two arms and a gap of 1, known to 10⁻³: until then the other arm's share is that of no gap at all."""
    for t, is_smaller in ((before, False), (after, True)):
        memory = {"loss": [0.0, t], "upper": [0.0, 1.0]}
        memory = {name: memory[name] for name in policy.family.learn}
        floors = policy.floors(int(t), [int(t)] * 2, [1.0, 0.0], memory)
        others = 0.5 * np.sqrt(np.log(2) / (t * 2))
        assert bool(floors[1] < 0.999 * others) is is_smaller
