"""Scores that rise while an arm rests: the simulator looks at few arms, and plays what it would by looking at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rightarm as ra


@ra.policy(rising=True, learn={"largest": lambda largest, reward: np.maximum(largest, reward)})
def hopeful(t, pulls, largest, arms):  # type: ignore[no-untyped-def]
    """A column in place of the mean."""
    return largest + np.sqrt(np.maximum(0.0, np.log(t / (arms * pulls))) / pulls)


@ra.policy(rising=True, explore=lambda t, arms: 0.5 / (arms * np.sqrt(t)))
def restless_moss(t, pulls, mean, arms):  # type: ignore[no-untyped-def]
    """Explored arms are pulled without having been looked at."""
    return mean + np.sqrt(np.maximum(0.0, np.log(t / (arms * pulls))) / pulls)


@ra.policy(rising=True)
def stepwise(t, pulls, mean):  # type: ignore[no-untyped-def]
    """A score that jumps, and ties often."""
    return np.floor(4 * mean) + np.floor(np.log(t) / np.sqrt(pulls))


@ra.policy(rising=True)
def resting(t, pulls, mean):  # type: ignore[no-untyped-def]
    """A score that grows fast from one round to the next, so that bounds are far off."""
    return mean + t / pulls**2 + np.sqrt(np.log(t) / pulls)


RISING = [ra.KLUCB(), ra.KLUCB(c=3.0), ra.AnytimeMOSS(), hopeful(), restless_moss(), stepwise(), resting()]


def looking_at_all(policy: ra.Policy) -> ra.Policy:
    """The same formula, not said to rise."""
    family = policy.family
    explore, learn = family.explore, {name: lesson.function for name, lesson in family.learn.items()}
    keep = {name: part.function for name, part in family.keep.items()}
    plain = ra.policy(noise=family.noise, explore=explore and explore.function, learn=learn, keep=keep)(family.function)
    made: ra.Policy = plain(**policy.values)
    return made


FIELDS = {
    "3 arms": ra.problems.Bernoulli([0.5, 0.6, 0.4]),
    "10 arms": ra.problems.Bernoulli(np.linspace(0.05, 0.95, 10)),
    "50 arms": ra.problems.Uniform(0.0, np.linspace(0.5, 1.0, 50)),
    "50 equal arms": ra.problems.Deterministic([0.5] * 50),
    "10 of small rewards": ra.problems.Bernoulli([0.01] * 9 + [0.02]),
}


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
@pytest.mark.parametrize("policy", RISING, ids=str)
def test_same_pulls_as_looking_at_all(policy: ra.Policy, field: ra.problems.Problem) -> None:
    other = looking_at_all(policy)
    assert policy.lazy
    assert not other.lazy
    kwargs: dict[str, Any] = {"horizon": 3_000, "replications": 32, "seed": 11, "checkpoints": [51, 60, 500, 3_000]}
    lazy, plain = (ra.simulate(each, field, **kwargs) for each in (policy, other))
    np.testing.assert_array_equal(lazy.regret, plain.regret)
    np.testing.assert_array_equal(lazy.pulls, plain.pulls)


@pytest.mark.parametrize("policy", [ra.KLUCB(), ra.AnytimeMOSS(), restless_moss()], ids=str)
def test_from_given_statistics(policy: ra.Policy) -> None:
    start: dict[str, Any] = {"pulls": [10**6, 0, 3, 500], "means": [0.5, 0.0, 1.0, 0.25], "horizon": 500, "seed": 3}
    field = ra.problems.Bernoulli([0.5, 0.4, 0.6, 0.5])
    lazy, plain = (ra.simulate(each, field, **start) for each in (policy, looking_at_all(policy)))
    np.testing.assert_array_equal(lazy.pulls, plain.pulls)


def noisy(t, pulls, mean, z):  # type: ignore[no-untyped-def]
    return mean + np.sqrt(np.log(t) / pulls) + z / np.sqrt(pulls)


def of_the_best(t, pulls, mean, best):  # type: ignore[no-untyped-def]
    return np.minimum(mean + np.sqrt(np.log(t) / pulls), best + 1 / pulls)


def of_the_best_column(t, pulls, largest, best_largest):  # type: ignore[no-untyped-def]
    return np.minimum(largest + np.sqrt(np.log(t) / pulls), best_largest + 1 / pulls)


LARGEST = {"largest": lambda largest, reward: np.maximum(largest, reward)}
NOT_LAZY = {
    "noise": ra.policy(noise=ra.noise.Gumbel(), rising=True)(noisy),
    "the best mean": ra.policy(rising=True)(of_the_best),
    "the best of a column": ra.policy(rising=True, learn=LARGEST)(of_the_best_column),
}


@pytest.mark.parametrize("family", NOT_LAZY.values(), ids=NOT_LAZY)
def test_what_no_bound_holds_for_is_looked_at_in_full(family: Any) -> None:
    """Noise, and other arms' statistics, move a score while its arm rests."""
    assert not family().lazy
    field = FIELDS["10 arms"]
    said, plain = (
        ra.simulate(each, field, horizon=1_000, replications=32, seed=1)
        for each in (family(), looking_at_all(family()))
    )
    np.testing.assert_array_equal(said.pulls, plain.pulls)


def test_a_rising_score_that_is_not_a_number_is_an_error() -> None:
    @ra.policy(rising=True)
    def broken(t, pulls, mean):  # type: ignore[no-untyped-def]
        return mean + np.sqrt(np.where(mean > 0.7, 500.0 - t, t) / pulls) * np.log(pulls + t)

    with pytest.raises(ValueError, match="a score was not a number in round"):
        ra.simulate(broken(), ra.problems.Deterministic([0.5, 0.75, 0.25]), horizon=2_000, replications=4, seed=1)
