"""What is compiled, how often, and what is kept: a sweep compiles nothing, and an edited formula is never mistaken."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import event

import rightarm as ra
from cases import cautious, settled
from interpreters import run_python
from rightarm.formula.cache import cache_directory
from rightarm.formula.compile import fma, jit, positional
from rightarm.formula.identity import bytecode_hash


@contextlib.contextmanager
def compilations() -> Iterator[list[Any]]:
    """What Numba compiles inside the block, seen from its own events; a hit of the disk cache is none."""
    seen: list[Any] = []
    with event.install_recorder("numba:run_pass") as recorder:
        yield seen
    seen += recorder.buffer


def play(policy: ra.Policy, problem: ra.problems.Problem) -> ra.Result:
    return ra.simulate(policy, problem, horizon=100, replications=4, seed=1)


FAMILIES: dict[str, Callable[[float], ra.Policy]] = {
    "constant": lambda c: ra.Boltzmann(c),
    "inverse_log": lambda c: ra.Boltzmann(ra.schedules.inverse_log(c)),
    "inverse_sqrt": lambda c: ra.Boltzmann(ra.schedules.inverse_sqrt(c)),
    "two_phase": lambda c: ra.Boltzmann(ra.schedules.two_phase(gap=c, horizon=100)),
    "gumbel": lambda c: ra.BoltzmannGumbel(C=c, location=c),
    "ucb": lambda c: ra.UCB(C=c),
    "user's own": lambda c: cautious(C=c),
}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_sweep_compiles_nothing(family: Callable[[float], ra.Policy]) -> None:
    problems = [settled([0.0] * arms, spread=c) for arms, c in ((1, 0.1), (3, 0.3), (17, 0.2))]
    play(family(0.3), ra.problems.Gaussian([0.0, 1.0]))
    play(family(0.3), problems[0])
    with compilations() as seen:
        for c in (0.1, 0.25, 3.0):
            for problem in (
                *problems,
                ra.problems.Gaussian([c, 0.5]),
                ra.problems.Gaussian([c] * 5, sigma=c).corrupted(0, rounds=9),
            ):
                play(family(c), problem)
    assert seen == []


def test_a_new_formula_compiles() -> None:
    """The count that the other tests find to be zero does count."""
    play(ra.UCB(1.0), ra.problems.Bernoulli([0.5, 0.4]))
    constant = np.random.default_rng().random()  # a formula that no cache has seen
    with compilations() as seen:
        play(policy_from(f"mean + {constant} / pulls"), ra.problems.Bernoulli([0.5, 0.4]))
    assert seen != []


# Edited formulas, in one process.


def policy_from(expression: str, **names: Any) -> Any:
    """A policy of the user's own from source text, in a namespace of its own, always under the same name."""
    namespace: dict[str, Any] = {"__name__": __name__, "np": np, "ra": ra, **names}
    source = (
        f"@ra.policy(noise=ra.noise.Gumbel())\ndef edited(pulls, mean, z):\n    return {expression} + 0 * z * pulls"
    )
    exec(source, namespace)
    return namespace["edited"]()


def problem_from(expression: str, **names: Any) -> Any:
    namespace: dict[str, Any] = {"__name__": __name__, "ra": ra, **names}
    exec(f"@ra.problems.problem(mean=lambda p: p)\ndef edited(u, *, p):\n    return {expression}", namespace)
    return namespace["edited"]([0.5, 0.4])


def scale(x: float) -> Any:
    def times(y: float) -> float:
        return x * y

    return times


EDITS: dict[str, Callable[[float], Any]] = {
    "a literal": lambda x: policy_from(f"{x} * mean"),
    "a global constant": lambda x: policy_from("factor * mean", factor=x),
    "a global array": lambda x: policy_from("factors[1] * mean", factors=np.array([1.0, x])),
    "a global tuple": lambda x: policy_from("factors[0] * mean", factors=(x, 1.0)),
    "a function that it calls": lambda x: policy_from("helper(mean)", helper=eval(f"lambda y: {x} * y")),
    "a function's closure": lambda x: policy_from("helper(mean)", helper=scale(x)),
    "a function's default": lambda x: policy_from("helper(mean)", helper=eval(f"lambda y, factor={x}: factor * y")),
    "a module's constant": lambda x: policy_from("settings.factor * mean", settings=module_with(factor=x)),
}


def module_with(**values: Any) -> types.ModuleType:
    module = types.ModuleType("settings")
    module.__dict__.update(values)
    return module


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_formula_is_compiled_anew(edit: Callable[[float], Any]) -> None:
    """With factor 1 the better of two certain rewards is taken, with −1 the worse."""
    problem = ra.problems.Deterministic([0.25, 0.75])
    for factor, pulls in ((1.0, [1, 99]), (-1.0, [99, 1]), (1.0, [1, 99])):
        assert play(edit(factor), problem).pulls[0, 0].tolist() == pulls


def test_bytecode_hash_tells_code_apart() -> None:
    texts = [
        "lambda x: x",
        "lambda x: x + 1",
        "lambda x: x + 1.0",
        "lambda x: -x",
        "lambda x: np.sin(x)",
        "lambda x: k",
    ]
    functions = [eval(text, {"np": np, "k": 1}) for text in texts] + [eval("lambda x: k", {"k": 2})]
    assert len({bytecode_hash(function) for function in functions}) == len(functions)


def test_bytecode_hash_is_of_the_code_alone() -> None:
    """Not of the object, its file or the rest of its globals."""
    first, second = (eval(compile("lambda x: x + k", name, "eval"), {"k": 1, name: 2}) for name in "ab")
    assert bytecode_hash(first) == bytecode_hash(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [((1, 2), (2, 1)), ((1,), (1.0,)), ((1, 2), [1, 2]), (("a", "b"), ("ab",)), (0.1, 0.1 + 2**-56), ("1", 1)],
)
def test_bytecode_hash_tells_values_apart(first: Any, second: Any) -> None:
    assert bytecode_hash(first) != bytecode_hash(second)
    assert bytecode_hash(first) == bytecode_hash(first)


# Other processes.

SCRIPT = """
    import json, sys
    sys.path.insert(0, sys.argv[2])
    from numba.core import event
    with event.install_recorder("numba:run_pass") as recorder:
        import rightarm as ra
        from formula import wobbly
        policy, problem = wobbly(C=float(sys.argv[1])), ra.problems.Deterministic([0.25, 0.75])
        result = ra.simulate(policy, problem, horizon=200, replications=2, seed=1)
    print(json.dumps({"passes": len(recorder.buffer), "pulls": result.pulls.tolist()}))
"""

FORMULA = """
    import numpy as np
    import rightarm as ra

    SHIFT = {shift}

    @ra.policy(noise=ra.noise.Gumbel())
    def wobbly(t, pulls, mean, z, *, C: float = 1.0):
        return (mean + SHIFT * C / np.sqrt(pulls + np.log(t)) * z) * {sign}
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    """Nor with other parameters; but with a formula that was edited meanwhile it does, and plays the new one.

    In a cache that no other process writes to, since Numba forgets what two of them compile at the same moment. It
    begins as a copy of the one that is there, which has not seen this formula.
    """
    with contextlib.suppress(shutil.Error):  # a file that another process replaced meanwhile is compiled again
        shutil.copytree(cache_directory(), tmp_path / "cache" / cache_directory().name)

    def run(C: str) -> Any:
        return json.loads(run_python(SCRIPT, C, str(tmp_path), RIGHTARM_CACHE_DIR=str(tmp_path / "cache")))

    def write(shift: float, sign: int) -> None:
        (tmp_path / "formula.py").write_text(textwrap.dedent(FORMULA.format(shift=shift, sign=sign)))

    write(shift=0.5, sign=1)
    first, second, other = run("1.0"), run("1.0"), run("0.1")
    assert first["passes"] > 0
    assert second == {"passes": 0, "pulls": first["pulls"]}
    assert other["passes"] == 0
    write(shift=0.05, sign=-1)
    edited = run("1.0")
    assert edited["passes"] > 0
    assert np.array(first["pulls"])[..., 1].min() > 100 > np.array(edited["pulls"])[..., 1].max()


def test_a_formula_may_move_to_another_file(tmp_path: Path) -> None:
    """Its machine code is found again, and does not ask for the old file."""
    code = textwrap.dedent(FORMULA.format(shift=np.random.default_rng().random(), sign=1))  # no cache has seen it yet
    pulls = []
    for name in ("old", "new"):
        (tmp_path / f"{name}.py").write_text(code)
        script = SCRIPT.replace("from formula", f"from {name}")
        pulls.append(json.loads(run_python(script, "1.0", str(tmp_path)))["pulls"])
        (tmp_path / f"{name}.py").unlink()
    assert pulls[0] == pulls[1]


def test_import_is_light() -> None:
    """Nothing heavy is imported before it is needed."""
    heavy = ("numba", "llvmlite", "matplotlib", "polars", "rich", "scipy")
    code = f"""
        import sys, rightarm as ra
        ra.UCB(C=1.0).scores(2, [1], ra.problems.Bernoulli([0.5]).means)
        print([module for module in {heavy} if module in sys.modules])
    """
    assert run_python(code).strip() == "[]"


def test_a_formula_that_does_not_compile_is_named() -> None:
    class Thing:
        value = 1.0

    with pytest.raises(TypeError, match="the policy edited cannot be compiled"):
        play(policy_from("mean * thing.value", thing=Thing()), ra.problems.Bernoulli([0.5, 0.4]))
    with pytest.raises(TypeError, match="the problem edited cannot be compiled"):
        play(ra.UCB(1.0), problem_from("u * thing.value * p", thing=Thing()))


# The machine operations.


def test_fma_rounds_once() -> None:
    """(1 + 2⁻³⁰)² − (1 + 2⁻²⁹) is 2⁻⁶⁰, which a product rounded before the sum has lost."""

    @jit
    def combine(a: float, b: float, c: float) -> Any:
        return fma(a, b, c)

    x = 1 + 2.0**-30
    assert combine(x, x, -(1 + 2.0**-29)) == 2.0**-60
    assert x * x - (1 + 2.0**-29) == 0
    with pytest.raises(TypeError, match="compiled code only"):
        fma(1.0, 2.0, 3.0)


def test_positional_takes_keywords_by_position() -> None:
    def formula(x: float, *, a: float, b: float) -> float:
        return x + 10 * a + 100 * b

    assert positional(formula)(1.0, 2.0, 3.0) == formula(1.0, a=2.0, b=3.0) == 321.0  # type: ignore[arg-type]
    assert math.isclose(formula(1.0, a=0.0, b=0.0), 1.0)
