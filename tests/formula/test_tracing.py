"""The form of a score: found where it is there, and not where it is not; and the two ways to compute it agree."""

from __future__ import annotations

import math

import numpy as np
import pytest

import compiled
import rightarm as ra
from rightarm.noise import Gaussian, Gumbel
from rightarm.testing import check_policy

TABLE = np.linspace(2.0, 1.0, 10_000)


@ra.policy(noise=Gumbel())
def truncated(pulls, mean, z, *, C: float = 0.5):  # type: ignore[no-untyped-def]
    return mean + C / np.sqrt(pulls) * np.minimum(z, 10)


@ra.policy(noise=Gaussian())
def stars(pulls, mean, z, *, C: float = 0.5):  # type: ignore[no-untyped-def]
    return np.clip(mean + C / np.sqrt(pulls) * z, 0.0, 0.5)


@ra.policy(noise=Gumbel())
def quotient(pulls, mean, z):  # type: ignore[no-untyped-def]
    return 1.0 / (20.0 + z) + mean


@ra.policy(noise=Gumbel())
def squared(pulls, mean, z):  # type: ignore[no-untyped-def]
    return mean + z * z / pulls


@ra.policy(noise=Gumbel())
def far_out(pulls, mean, z):  # type: ignore[no-untyped-def]
    return -(3.0 - 2.0 * (mean + (z - 1.0) / np.sqrt(pulls)))


@ra.policy
def commit(t, pulls, mean, arms, *, m: float = 5.0):  # type: ignore[no-untyped-def]
    return np.where(t <= arms * m, -pulls, mean)


@ra.policy
def anytime_moss(t, pulls, mean, arms):  # type: ignore[no-untyped-def]
    return mean + np.sqrt(np.maximum(np.log(t / (arms * pulls)), 0.0) / pulls)


@ra.policy
def two_clocks(t, pulls, mean):  # type: ignore[no-untyped-def]
    return mean + np.sqrt(np.log(t) / pulls) + 3.0 * np.log(t) / pulls


@ra.policy
def asymptotic(t, pulls, mean):  # type: ignore[no-untyped-def]
    return mean + np.sqrt(2.0 * np.log(1.0 + t * np.log(t) ** 2) / pulls)


@ra.policy
def scaled(t, pulls, mean):  # type: ignore[no-untyped-def]
    return 2.0 * (mean + np.log(t) / pulls) - 1.0


@ra.policy
def hidden_clock(t, pulls, mean):  # type: ignore[no-untyped-def]
    return mean * np.log(t)


@ra.policy
def from_a_table(t, pulls, mean):  # type: ignore[no-untyped-def]
    return mean + TABLE[int(t) % 10_000] / np.sqrt(pulls)


@ra.policy
def by_math(t, pulls, mean):  # type: ignore[no-untyped-def]
    return mean + math.sqrt(math.log(t)) / np.sqrt(pulls)


FORMS = {  # policy: (affine in z, steady, clocked)
    truncated(): (False, False, False),
    stars(): (False, False, False),
    quotient(): (False, False, False),
    squared(): (False, False, False),
    far_out(): (True, True, False),
    commit(): (True, False, False),
    anytime_moss(): (True, False, False),
    two_clocks(): (True, False, False),
    asymptotic(): (True, False, True),
    scaled(): (True, False, True),
    hidden_clock(): (True, False, False),
    from_a_table(): (True, False, False),
    by_math(): (True, False, False),
    ra.BoltzmannGumbel(C=0.5): (True, True, False),
    ra.Boltzmann(ra.schedules.glie()): (True, False, False),
    ra.UCB(C=0.5): (True, False, True),
}


@pytest.mark.parametrize(("policy", "form"), FORMS.items(), ids=map(str, FORMS))
def test_form(policy: ra.Policy, form: tuple[bool, bool, bool]) -> None:
    assert (policy.affine, policy.steady, policy.clocked) == form


@pytest.mark.parametrize("policy", FORMS, ids=str)
def test_live_and_compiled_agree(policy: ra.Policy) -> None:
    """What is taken for a location and a scale, or for a clock, gives the scores of the formula."""
    random = np.random.default_rng(3)
    for _ in range(20):
        pulls, means = random.integers(1, 500, 4), random.random(4)
        t, z = int(pulls.sum()) + 1, random.gumbel(size=4).astype(np.float32)
        found = compiled.scores(policy, t, pulls.tolist(), means.tolist(), z.tolist())
        np.testing.assert_allclose(found, policy.scores(t, pulls, means, z.astype(float)), rtol=1e-11, atol=1e-11)


@pytest.mark.full
@pytest.mark.parametrize("policy", FORMS, ids=str)
def test_forms_pass_the_exported_check(policy: ra.Policy) -> None:
    check_policy(policy)


@ra.policy
def of_the_sum(pulls, mean):  # type: ignore[no-untyped-def]
    return mean + np.sqrt(np.log(np.sum(pulls)) / pulls)


@ra.policy(noise=Gumbel())
def centred(pulls, mean, z):  # type: ignore[no-untyped-def]
    return mean - np.mean(mean) + z / np.sqrt(pulls)


@pytest.mark.parametrize("policy", [of_the_sum(), centred()], ids=str)
def test_arms_must_not_be_mixed(policy: ra.Policy) -> None:
    with pytest.raises(TypeError, match=f"{policy.family.name} mixes the arms"):
        ra.simulate(policy, ra.problems.Bernoulli([0.5, 0.4]), horizon=10)


def test_a_formula_must_not_draw_by_itself() -> None:
    def careless(mean):  # type: ignore[no-untyped-def]
        return mean + np.random.random()  # noqa: NPY002

    with pytest.raises(TypeError, match="careless draws random numbers itself"):
        ra.policy(careless)


def test_the_noise_belongs_to_a_policy() -> None:
    def follow(mean, z):  # type: ignore[no-untyped-def]
        return mean + z

    policies = [ra.policy(noise=law)(follow)() for law in (Gumbel(), Gaussian())]
    assert policies[0] != policies[1]
    result = ra.simulate(policies, ra.problems.Bernoulli([0.5, 0.4]), horizon=200, seed=1)
    assert not np.array_equal(result.pulls[0], result.pulls[1])
    assert result.specification["policies"][0] != result.specification["policies"][1]


def test_mistakes_in_a_formula_are_explained() -> None:
    @ra.policy
    def forgetful(mean):  # type: ignore[no-untyped-def]
        mean + 1.0

    @ra.policy
    def branching(mean, pulls):  # type: ignore[no-untyped-def]
        return mean if pulls > 3 else 1.0

    generator = np.random.default_rng(1)

    @ra.policy
    def drawing(mean):  # type: ignore[no-untyped-def]
        return mean + generator.random()

    for policy, error, message in (
        (forgetful(), TypeError, "forgetful returned nothing"),
        (branching(), ValueError, "truth value"),
        (drawing(), TypeError, "drawing gives another score each time"),
    ):
        with pytest.raises(error, match=message) as raised:
            ra.simulate(policy, ra.problems.Bernoulli([0.5, 0.4]), horizon=10)
        if policy == branching():
            assert "in branching, which is called with arrays" in raised.value.__notes__[0]


def test_parameters_are_checked_together_and_by_their_type() -> None:
    @ra.policy
    def rounded(mean, *, horizon: int):  # type: ignore[no-untyped-def]
        return mean * horizon

    with pytest.raises(ValueError, match=r"horizon must be a whole number, got 2\.5"):
        rounded(2.5)
    with pytest.raises(ValueError, match=r"Uniform needs low ≤ high for every arm, got .*\[0\.0, 2\.0\]"):
        ra.problems.Uniform(low=[0, 2], high=1)
    with pytest.raises(ValueError, match=r"temperature must not be negative, got -0\.5 at t = 2"):
        ra.Boltzmann(lambda t: -1 / t)


@ra.problems.problem
def Lognormal(w, *, sigma):  # type: ignore[no-untyped-def]
    return np.exp(sigma * w)


@ra.problems.problem
def Both(u, w, *, p):  # type: ignore[no-untyped-def]
    return 1.0 * (u < p) + 0.1 * w


def test_means_are_integrated_or_asked_for() -> None:
    assert Both(p=[0.51, 0.5]).gaps[1] == pytest.approx(0.01, abs=5e-5)
    assert Lognormal(sigma=[0.1, 0.5]).means == pytest.approx(np.exp(np.square([0.1, 0.5]) / 2), rel=1e-4)
    with pytest.raises(ValueError, match="Lognormal is hard to integrate"):
        _ = Lognormal(sigma=3.0).means


def test_a_result_knows_its_own_formulas() -> None:
    @ra.problems.problem(mean=lambda level: level)
    def Local(u, *, level):  # type: ignore[no-untyped-def]
        return level + u - 0.5

    result = ra.simulate(ra.Boltzmann(lambda t: 1 / t), Local(level=[0.0, 1.0]), horizon=100, seed=1, replications=8)
    assert "Local" in str(result)
    assert np.array_equal(result.repeat().regret, result.regret)
    assert result.repeat(horizon=300).rounds[-1] == 300
