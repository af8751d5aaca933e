"""Formulas as values: checked, immutable, compared, printed, pickled and described; whatever kind they are of."""

from __future__ import annotations

import inspect
import pickle
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rightarm as ra
from cases import POLICIES, PROBLEMS, cautious, cooling, restless
from rightarm.formula import Count, check_count, check_number, from_specification, rule_of
from rightarm.problems.problem import problem_from_specification

NAMES = {
    **vars(ra.policies),
    **vars(ra.schedules),
    **vars(ra.estimators),
    **vars(ra.problems),
    "cautious": cautious,
    "restless": restless,
}

positive = st.floats(1e-300, 1e300)
finite = st.floats(allow_nan=False, allow_infinity=False).map(
    lambda x: x + 0.0
)  # −0.0 is equal to 0.0, but not written so
rewards = st.lists(st.floats(0, 1), min_size=1, max_size=6)

schedules = st.one_of(
    st.builds(ra.schedules.constant, positive),
    st.builds(ra.schedules.inverse_log, positive),
    st.builds(ra.schedules.inverse_sqrt, positive),
    st.builds(ra.schedules.two_phase, gap=positive, horizon=st.integers(1, 10**9)),
    st.just(ra.schedules.glie()),
)
policies = st.one_of(
    st.builds(ra.UCB, C=positive),
    st.builds(ra.BoltzmannGumbel, C=positive, location=finite),
    st.builds(ra.Boltzmann, schedules),
    st.builds(cautious, C=finite),
)
plain_problems = st.one_of(
    st.builds(ra.problems.Bernoulli, rewards),
    st.builds(ra.problems.Gaussian, st.lists(finite, min_size=1, max_size=4), sigma=st.floats(0, 1e300)),
    st.builds(ra.problems.Deterministic, st.lists(finite, min_size=1, max_size=4)),
    st.builds(
        ra.problems.Uniform, low=st.lists(finite.filter(lambda x: x <= 0), min_size=1, max_size=4), high=finite.map(abs)
    ),
    st.builds(restless, st.lists(finite, min_size=1, max_size=4)),
)


@st.composite
def problems(draw: st.DrawFn) -> Any:
    problem = draw(plain_problems)
    for _ in range(draw(st.integers(0, 2))):
        until = {draw(st.sampled_from(["rounds", "pulls"])): draw(st.integers(1, 10**9))}
        problem = problem.corrupted(draw(st.integers(0, problem.arms - 1)), reward=draw(finite), **until)
    return problem


formulas = st.one_of(policies, schedules, problems())


@given(formulas)
def test_repr_makes_it_again(formula: Any) -> None:
    again = eval(repr(formula), NAMES)
    assert again == formula
    assert hash(again) == hash(formula)
    assert type(again) is type(formula)


@given(formulas)
def test_pickle_makes_it_again(formula: Any) -> None:
    assert pickle.loads(pickle.dumps(formula)) == formula


@given(st.one_of(policies, schedules))
def test_specification_makes_it_again(formula: Any) -> None:
    assert from_specification(formula.specification()) == formula


@given(problems())
def test_specification_makes_a_problem_again(problem: Any) -> None:
    assert problem_from_specification(problem.specification()) == problem


@given(formulas, formulas)
def test_equal_exactly_if_written_alike(first: Any, second: Any) -> None:
    assert (first == second) == (repr(first) == repr(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ra.UCB(C=1.0), ra.UCB(C=2.0)),
        (ra.UCB(C=1.0), ra.BoltzmannGumbel(C=1.0)),
        (ra.Boltzmann(ra.schedules.inverse_log(1.0)), ra.Boltzmann(ra.schedules.inverse_sqrt(1.0))),
        (ra.Boltzmann(ra.schedules.inverse_log(1.0)), ra.Boltzmann(ra.schedules.inverse_log(2.0))),
        (ra.problems.Bernoulli([0.1, 0.2]), ra.problems.Bernoulli([0.2, 0.1])),
        (ra.problems.Bernoulli([0.1, 0.2]), ra.problems.Deterministic([0.1, 0.2])),
        (ra.problems.Bernoulli([0.5]), ra.problems.Bernoulli([0.5]).corrupted(0, rounds=1)),
        (ra.problems.Bernoulli([0.5]).corrupted(0, rounds=2), ra.problems.Bernoulli([0.5]).corrupted(0, pulls=2)),
        (ra.UCB(C=1.0), "UCB(C=1.0)"),
    ],
)
def test_different_formulas_differ(first: Any, second: Any) -> None:
    assert first != second
    assert len({first, second}) == 2


def test_different_functions_of_one_name_differ() -> None:
    first, second = (ra.Boltzmann(eval(f"lambda t: {x} / t")) for x in (1, 2))
    assert first != second


def test_shorthands_mean_the_same() -> None:
    assert ra.UCB(0.5) == ra.UCB(C=0.5) == ra.UCB(np.float32(0.5))  # type: ignore[arg-type]
    assert ra.Boltzmann(2) == ra.Boltzmann(temperature=ra.schedules.constant(2.0))
    assert ra.Boltzmann(cooling) == POLICIES["function"].policy
    assert ra.problems.Gaussian([1, 2], 0.5) == ra.problems.Gaussian(np.array([1.0, 2.0]), sigma=[0.5, 0.5])
    assert ra.Boltzmann(ra.schedules.two_phase(0.1, 1e6)) == ra.Boltzmann(
        ra.schedules.two_phase(gap=0.1, horizon=10**6)
    )


def test_parameters_are_attributes_that_do_not_change() -> None:
    policy, problem = ra.BoltzmannGumbel(C=0.5), ra.problems.Bernoulli([0.5, 0.25])
    assert (policy.C, policy.location) == (0.5, np.euler_gamma)  # type: ignore[attr-defined]
    assert problem.mean == (0.5, 0.25)  # type: ignore[attr-defined]
    for formula, name in ((policy, "C"), (problem, "mean"), (policy, "new")):
        with pytest.raises(AttributeError, match=f"immutable.*{name}=2"):
            setattr(formula, name, 2)
    with pytest.raises(ValueError, match="read-only"):
        problem.means[0] = 1.0


def test_inputs_include_those_of_the_schedule() -> None:
    assert ra.UCB(C=1.0).inputs == {"t", "pulls", "mean"}
    assert ra.Boltzmann(1.0).inputs == {"mean", "z"}
    assert ra.Boltzmann(ra.schedules.glie()).inputs == {"mean", "z", "t", "best", "worst"}
    assert ra.Boltzmann(ra.schedules.two_phase(0.1, 100)).inputs == {"mean", "z", "t", "arms"}


def test_short_names_leave_out_defaults() -> None:
    assert str(ra.BoltzmannGumbel(C=0.5)) == "BoltzmannGumbel(C=0.5)"
    assert str(ra.BoltzmannGumbel(C=0.5, location=0)) == "BoltzmannGumbel(C=0.5, location=0)"
    assert str(ra.UCB(C=1 / 3)) == "UCB(C=0.333333)"
    assert str(ra.Boltzmann(ra.schedules.inverse_log(0.25))) == "Boltzmann(inverse_log(c=0.25))"


def test_a_family_keeps_what_its_function_says_of_itself() -> None:
    assert repr(ra.UCB) == "UCB"
    assert "Auer" in (ra.UCB.__doc__ or "")
    assert list(inspect.signature(ra.BoltzmannGumbel).parameters) == ["C", "location", "estimator"]
    assert pickle.loads(pickle.dumps(ra.UCB)) is ra.UCB


def test_specification_that_cannot_be_found() -> None:
    def local(t):  # type: ignore[no-untyped-def]
        return 1 / t

    for formula in (ra.Boltzmann(local), ra.Boltzmann(lambda t: 1 / t)):
        with pytest.raises(ValueError, match=r"test_specification_that_cannot_be_found.* cannot be imported here"):
            from_specification(formula.specification())


# Numbers.


@given(finite)
def test_numbers_are_taken_as_they_are(x: float) -> None:
    assert check_number("x", x) == x


@given(st.integers(0, 2**200))
def test_counts_are_exact(n: int) -> None:
    assert check_count("n", n, least=0) == n


def test_counts_in_scientific_notation() -> None:
    assert check_count("n", 1e6) == 10**6
    assert isinstance(check_count("n", np.float64(1e6)), int)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("1", TypeError, "x must be a number, got '1'"),
        (None, TypeError, "x must be a number, got None"),
        (True, TypeError, "x must be a number, got True"),
        (1j, TypeError, r"x must be a number, got 1j"),
        ([1.0], TypeError, r"x must be a number, got \[1.0\]"),
        (float("nan"), ValueError, "x must be finite, got nan"),
        (float("inf"), ValueError, "x must be finite, got inf"),
    ],
)
def test_what_is_not_a_number(value: Any, error: type[Exception], message: str) -> None:
    for check in (check_number, check_count):
        with pytest.raises(error, match=message):
            check("x", value)


@pytest.mark.parametrize("value", [0, -1, 1.5, 1e-9])
def test_what_is_not_a_count(value: float) -> None:
    with pytest.raises(ValueError, match=f"x must be a whole number of at least 1, got {value}"):
        check_count("x", value)
    with pytest.raises(ValueError, match=f"x must be a whole number from 1 on, got {float(value)}"):
        check_number("x", value, rule_of(Count))


# What the decorators refuse.


def function(arguments: str, value: str = "0.0") -> Any:
    return eval(f"lambda {arguments}: {value}")


policy: Any = ra.policy
schedule: Any = ra.schedules.schedule
problem: Any = ra.problems.problem

REFUSED: dict[str, tuple[Any, str]] = {
    "policy: unknown input": (lambda: policy(function("mean, colour")), "unknown input 'colour'.*t, pulls, mean, z"),
    "policy: many arguments": (lambda: policy(function("*means")), "unknown input 'means'"),
    "policy: many keywords": (lambda: policy(function("mean, **more")), "unknown input 'more'"),
    "policy: not a function": (lambda: policy(3), "a policy is made from a function, got 3"),
    "policy: a law in its place": (lambda: policy(ra.noise.Gumbel()), r"from a function, got Gumbel\(\)"),
    "policy: z without noise": (lambda: policy(function("mean, z")), "asks for z, so noise is needed"),
    "policy: noise without z": (
        lambda: policy(noise=ra.noise.Gumbel())(function("mean")),
        r"does not ask for z, so noise has no use, got noise=Gumbel\(\)",
    ),
    "policy: no law": (lambda: policy(noise="Gumbel")(function("z")), "noise must be a law.*got 'Gumbel'"),
    "policy: law not called": (
        lambda: policy(noise=ra.noise.Gumbel)(function("z")),
        "noise must be a law.*got <class",
    ),
    "schedule: unknown input": (lambda: schedule(function("pulls")), "unknown input 'pulls'.*t, best, worst, arms"),
    "schedule: not a function": (lambda: schedule(0.5), "a schedule is made from a function, got 0.5"),
    "problem: unknown input": (lambda: problem(function("z, *, p")), "unknown input 'z'.*t, pulls, arm, u, v, w"),
    "problem: not a function": (lambda: problem("u"), "a problem is made from a function, got 'u'"),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_decorators_refuse(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize("family", [ra.UCB, ra.schedules.constant, ra.problems.Bernoulli])
def test_arguments_that_do_not_fit(family: Any) -> None:
    for arguments in ((), (1.0, 2.0, 3.0)):
        with pytest.raises(TypeError, match=rf"^{family.name}\(.*\): .*argument"):
            family(*arguments)
    with pytest.raises(TypeError, match=f"^{family.name} has no parameter 'wrong'; it has {family.parameters[0].name}"):
        family(wrong=1.0)


def test_an_option_is_not_computed_with() -> None:
    """It has no value in compiled code."""

    @ra.policy
    def named(mean, *, mode: Literal["up", "down"] = "up", C: float = 1.0):  # type: ignore[no-untyped-def]
        return mean * (C if mode == "up" else 2 * C)

    @ra.policy
    def inside(mean, *, mode: Literal["up", "down"]):  # type: ignore[no-untyped-def]
        return (lambda x: x if mode == "up" else -x)(mean)

    @ra.policy(explore=lambda arms, *, mode: (0.1 if mode == "up" else 0.2) / arms)
    def exploring(mean, *, mode: Literal["up", "down"] = "up"):  # type: ignore[no-untyped-def]
        return mean

    with pytest.raises(TypeError, match="named computes with mode, which must be a number for that, got 'up'"):
        named()
    with pytest.raises(TypeError, match=r"inside computes with mode.*got 'up'"):
        inside("up")
    with pytest.raises(TypeError, match="computes with mode"):
        ra.simulate(exploring(), ra.problems.Bernoulli([0.5, 0.4]), horizon=10, replications=1)


# Parameters and the formula's own attributes.


@pytest.mark.parametrize("name", ["gaps", "means", "arms", "best_arm", "corruptions", "values", "family", "inputs"])
def test_a_problem_parameter_never_stands_in_for_something_else(name: str) -> None:
    """A parameter with the name of an attribute is refused, or does no harm."""
    try:
        made = problem(mean=function(name, name))(function(f"*, {name}", name))([0.25, 0.75])
    except TypeError as error:
        assert name in str(error)  # noqa: PT017
        return
    assert (made.arms, made.best_arm, made.corruptions, made.inputs) == (2, 1, (), frozenset())
    assert made.gaps.tolist() == [0.5, 0.0]
    assert made.means.tolist() == [0.25, 0.75]


@pytest.mark.parametrize("name", ["steady", "affine", "noise", "values", "family", "inputs", "scores", "parts"])
def test_a_policy_parameter_never_stands_in_for_something_else(name: str) -> None:
    """A parameter with the name of an attribute is refused, or does no harm."""
    try:
        made = policy(noise=ra.noise.Gumbel())(function(f"mean, z, *, {name}", f"mean + {name} * np.tanh(z)"))(0.5)
    except TypeError as error:
        assert name in str(error)  # noqa: PT017
        return
    assert (made.steady, made.affine, made.noise) == (False, False, ra.noise.Gumbel())
    assert made.inputs == {"mean", "z"}
    assert made.scores(5, [1, 1], [0.25, 0.5], [0.0, 0.0]).tolist() == [0.25, 0.5]


@pytest.mark.parametrize("case", [*PROBLEMS.values()], ids=PROBLEMS)
def test_every_problem_has_a_description(case: Any) -> None:
    assert problem_from_specification(case.problem.specification()) == case.problem
