"""Laws of one's own: parameters, simulation, live decisions, saving, other processes, and errors."""

from __future__ import annotations

import json
import math
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from laws import THEIRS, Logistic, StudentT
from scipy import special, stats

import rightarm as ra
from compiled import draws
from naive import F64
from rightarm.formula import from_specification
from rightarm.formula.compile import jit
from rightarm.noise import Gumbel, Law, Uniform
from rightarm.testing import check_policy

WORDS = np.arange(0, 1 << 32, 99_991, dtype=np.uint64).astype(np.uint32)


@pytest.mark.parametrize("law", THEIRS, ids=str)
def test_draws_are_quantiles(law: Law) -> None:
    words = WORDS[::50]
    np.testing.assert_allclose(draws(law, words), THEIRS[law].ppf((words + 0.5) / 2**32), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("law", THEIRS, ids=str)
def test_live_draws_follow_the_law(law: Law) -> None:
    sample = law.sample(np.random.default_rng(1), 20_000)
    assert sample.dtype == np.float64
    assert stats.kstest(sample, THEIRS[law].cdf).pvalue > math.erfc(4.5 / math.sqrt(2))


# A law of a user's own wherever a law may be.


@ra.policy(noise=Logistic())
def cautious(pulls, mean, z, *, C: float = 0.5):  # type: ignore[no-untyped-def]
    return mean + C / np.sqrt(pulls) * z


POLICIES = [cautious(), ra.PerturbedMean(noise=StudentT(df=4), scale=0.5)]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_contract(policy: ra.Policy) -> None:
    """Live and simulated, saved and loaded, in any number of lanes and threads."""
    check_policy(policy)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_first_decisions_of_a_simulation_have_the_live_probabilities(policy: ra.Policy) -> None:
    pulls, means, count = [4, 9, 1], [0.5, 0.6, 0.2], 40_000
    problem = ra.problems.Bernoulli([0.5, 0.5, 0.5])
    result = ra.simulate(policy, problem, horizon=1, replications=count, seed=3, pulls=pulls, means=means, lanes=2_048)
    chosen = (result.pulls[0] - np.array(pulls)).sum(axis=0)
    for arm, p in enumerate(policy.probabilities(15, pulls, means)):
        assert abs(chosen[arm] / count - p) / math.sqrt(p * (1 - p) / count) < 4.5


def test_a_bandit_asks_with_the_exact_propensity() -> None:
    policy = ra.PerturbedMean(noise=StudentT(df=4), scale=0.5)
    bandit = ra.Bandit(["a", "b"], policy, seed=1)
    bandit.tell(arm="a", reward=1.0)
    bandit.tell(arm="b", reward=0.0)
    decision = bandit.ask()
    expected = dict(zip("ab", policy.probabilities(3, [1, 1], [1.0, 0.0]), strict=True))
    assert decision.propensity == pytest.approx(expected[str(decision.arm)], abs=1e-12)
    assert ra.Bandit.from_json(bandit.to_json()).policy == policy


# Parameters.


class Skewed(Law):
    """A Gumbel law that is stretched; its second parameter has no default."""

    stretch: ra.policies.Positive
    shift: float = 0.0

    def quantile(self, u: Any) -> Any:
        return self.shift - self.stretch * np.log(-np.log(u))

    def cdf(self, x: Any) -> Any:
        return np.exp(-np.exp((self.shift - x) / self.stretch))


def test_parameters_enter_draws_and_probabilities() -> None:
    law = Skewed(2.0, shift=1.0)
    np.testing.assert_allclose(draws(law, WORDS), 1 + 2 * draws(Gumbel(), WORDS).astype(float), rtol=1e-5, atol=1e-5)
    location, scale = np.array([0.0, 0.5, -0.25]), np.array([0.5, 1.0, 0.125])
    np.testing.assert_allclose(
        ra.noise.probability_of_largest(law, location, scale),
        ra.noise.probability_of_largest(Gumbel(), location + scale, 2 * scale),
        atol=1e-11,
    )
    assert not np.array_equal(draws(Skewed(3.0), WORDS), draws(law, WORDS))


def test_parameters_are_part_of_the_value() -> None:
    assert Skewed(2) == Skewed(stretch=2.0, shift=0) != Skewed(3)
    assert len({Skewed(2), Skewed(2.0), Skewed(3)}) == 2
    assert repr(Skewed(2)) == "Skewed(stretch=2.0, shift=0.0)"
    assert Skewed(2).specification()["parameters"] == {"stretch": 2.0, "shift": 0.0}
    assert ra.PerturbedMean(noise=Skewed(2)) != ra.PerturbedMean(noise=Skewed(3))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Skewed(-1.0), ValueError, "stretch must be positive, got -1.0"),
        (lambda: Skewed("wide"), TypeError, "stretch must be a number, got 'wide'"),  # type: ignore[arg-type]
        (lambda: Skewed(), TypeError, r"Skewed\(stretch, shift=0.0\): missing a required argument: 'stretch'"),  # type: ignore[call-arg]
        (lambda: Skewed(1.0, width=2.0), TypeError, r"Skewed\(.*\): got an unexpected keyword argument 'width'"),  # type: ignore[call-arg]
        (lambda: Gumbel(2.0), TypeError, r"Gumbel\(\): too many positional arguments"),
    ],
)
def test_parameters_are_checked(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


# Saved, and sent to other processes.


@pytest.mark.parametrize("law", [Gumbel(), Logistic(), StudentT(df=4), Skewed(2.0)], ids=str)
def test_specifications_make_the_law_again(law: Law) -> None:
    assert from_specification(json.loads(json.dumps(law.specification()))) == law
    assert pickle.loads(pickle.dumps(law)) == law


def test_a_law_travels_by_value_to_another_process(tmp_path: Path) -> None:
    """As from a notebook: the class stands in no module that could be imported."""
    namespace: dict[str, Any] = {"__name__": "nowhere", "np": np, "ra": ra}
    exec(
        "class Stretched(ra.noise.Law):\n"
        "    by: ra.policies.Positive = 2.0\n"
        "    def quantile(self, u):\n"
        "        return self.by * np.log(u / (1 - u))\n"
        "    def cdf(self, x):\n"
        "        return 1 / (1 + np.exp(-x / self.by))\n",
        namespace,
    )
    law = namespace["Stretched"](by=3.0)
    (tmp_path / "law").write_bytes(cloudpickle.dumps(ra.PerturbedMean(noise=law)))
    code = (
        "import json, pickle, sys, numpy as np, rightarm as ra; from rightarm.noise.law import draws\n"
        "policy = pickle.load(open(sys.argv[1], 'rb')); words = np.arange(0, 2**32, 99_999_989).astype(np.uint32)\n"
        "again = type(policy.noise)(by=3.0)\n"
        "chances = policy.probabilities(3, [1, 1], [0.0, 1.0]).tolist()\n"
        "print(json.dumps([repr(policy.noise), again == policy.noise, draws(policy.noise, words).tolist(), chances]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "law")], check=True, capture_output=True, text=True
    )
    shown, equal, drawn, chances = json.loads(run.stdout)
    assert (shown, equal) == ("Stretched(by=3.0)", True)
    assert drawn == draws(law, np.arange(0, 2**32, 99_999_989).astype(np.uint32)).tolist()
    expected = ra.noise.probability_of_largest(Logistic(), [0.0, 1.0], [3.0, 3.0])
    np.testing.assert_allclose(chances, expected, atol=1e-11)


# A law with a quantile function of 32 random bits, and cdf and sample as methods, as those of the library.


def one_sided(word: Any) -> Any:
    return np.float32((np.float64(word) + 0.5) * 2.0**-32)


class OfWords(Law):
    word_quantile = jit(one_sided)

    def cdf(self, x: float) -> float:
        return min(max(x, 0.0), 1.0)

    def sample(self, random: np.random.Generator, size: int) -> F64:
        return random.random(size)


def test_a_law_of_random_words() -> None:
    law = OfWords()
    np.testing.assert_allclose(draws(law, WORDS), (WORDS + 0.5) / 2**32, rtol=1e-7)
    location, scale = np.array([0.0, 0.25, 0.5]), np.array([1.0, 1.0, 0.25])
    np.testing.assert_allclose(
        ra.noise.probability_of_largest(law, location, scale),
        ra.noise.probability_of_largest(Uniform(), location + scale / 2, scale / 2),
        atol=1e-11,
    )
    check_policy(ra.PerturbedMean(noise=law))


# What is missing or wrong is said.


class Simulated(Law):
    def quantile(self, u: Any) -> Any:
        return u


def test_a_law_without_cdf_is_for_the_simulator_only() -> None:
    policy = ra.PerturbedMean(noise=Simulated())
    result = ra.simulate(policy, ra.problems.Bernoulli([0.5, 0.25]), horizon=20, replications=4, seed=1)
    assert result.pulls.shape[-1] == 2
    for call in (
        lambda: policy.probabilities(3, [1, 1], [0.0, 1.0]),
        lambda: ra.Bandit(["a", "b"], policy),
    ):
        with pytest.raises(TypeError, match=r"Simulated\(\): .* has no cdf; give its class a method cdf\(self, x\)"):
            call()


def test_a_law_without_quantile() -> None:
    class Blank(Law):
        pass

    with pytest.raises(TypeError, match=r"Blank\(\) has no quantile: give it a method quantile\(self, u\)"):
        Blank().sample(np.random.default_rng(1), 3)


def test_code_that_does_not_compile_is_named() -> None:
    class Looked(Law):
        def quantile(self, u: Any) -> Any:
            return special.ndtri(u)

    with pytest.raises(TypeError, match=r"the noise Looked\(\) cannot be compiled"):
        Looked().sample(np.random.default_rng(1), 3)


def test_a_subclass_with_another_cdf_does_not_inherit_probabilities() -> None:
    class Twice(Gumbel):
        def quantile(self, u: Any) -> Any:
            return -2 * np.log(-np.log(u))

        def cdf(self, x: Any) -> Any:
            return np.exp(-np.exp(-x / 2))

    class Named(Gumbel):
        pass

    location, scale = np.array([0.0, 1.0]), np.array([1.0, 0.5])
    found = ra.noise.probability_of_largest(Twice(), location, scale)
    np.testing.assert_allclose(found, ra.noise.probability_of_largest(Gumbel(), location, 2 * scale), atol=1e-11)
    assert ra.noise.probability_of_largest(Named(), location, scale).tolist() == (
        ra.noise.probability_of_largest(Gumbel(), location, scale).tolist()
    )
    sample = Twice().sample(np.random.default_rng(1), 20_000)  # not Gumbel's own generator
    assert stats.kstest(sample / 2, stats.gumbel_r.cdf).pvalue > math.erfc(4.5 / math.sqrt(2))
    assert Named().sample(np.random.default_rng(1), 3).tolist() == Gumbel().sample(np.random.default_rng(1), 3).tolist()
    learn = {"gain": lambda gain, reward, probability: gain + reward / probability}
    assert ra.policy(lambda gain, z: gain + z, noise=Named(), learn=learn)().shifted  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"learn asks for probability, which is known for scores location \+ Gumbel z"):
        ra.policy(lambda gain, z: gain + z, noise=Twice(), learn=learn)  # type: ignore[call-overload]


def test_code_of_the_page_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "noise.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 2
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(page), "exec", dont_inherit=True), namespace)
    with pytest.raises(ValueError, match=r"tail must be positive, got -1.0"):
        namespace["Power"](tail=-1.0)
    assert namespace["ra"].noise.probability_of_largest(
        namespace["Power"](), [0.0, 0.0], [1.0, 1.0]
    ).tolist() == pytest.approx([0.5, 0.5], abs=1e-11)
