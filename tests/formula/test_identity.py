"""The identity of a formula: what it changes with, and what it does not."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import linecache
import subprocess
import sys
import textwrap
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from rightarm.formula import Family, difference, from_specification
from rightarm.formula.compile import Kernel, elementwise, jit
from rightarm.formula.identity import identity
from rightarm.formula.syntax import parse
from rightarm.policies.policy import PolicyFamily
from rightarm.problems.problem import ProblemFamily

Make = Callable[..., types.ModuleType]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Modules from source text, each in a file of its own."""
    count = iter(range(100))

    def module(source: str, **names: Any) -> types.ModuleType:
        path = tmp_path / f"module{next(count)}.py"
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        made = types.ModuleType(path.stem)
        made.__dict__.update(names, __file__=str(path))
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), made.__dict__)
        return made

    return module


FORMULA = """
    import numpy as np
    SHIFT = 0.5
    def helper(x, factor=2.0, *, power=1):
        return factor * np.sqrt(x) ** power
    def formula(t, pulls, mean, *, C: float = 1.0):
        bonus = C * helper(pulls) + SHIFT
        return np.where(t > 1, mean + bonus, -np.inf)
"""

SAME = {
    "a docstring": ("C: float = 1.0):\n", 'C: float = 1.0):\n        """Words."""\n'),
    "a docstring of a helper": ("power=1):\n", 'power=1):\n        "Words."\n'),
    "a comment": ("+ SHIFT\n", "+ SHIFT  # shifted\n"),
    "layout": ("C * helper(pulls) + SHIFT", "(\n            C*helper( pulls )\n              + SHIFT)"),
    "an annotation": ("C: float", "C: 'ra.policies.Positive'"),
    "an annotation of an input": ("t, pulls", "t: float, pulls: float"),
    "an annotation of what is returned": ("= 1.0):", "= 1.0) -> object:"),
    "its own name": ("def formula", "def fórmula"),
    "its parameter's default": ("C: float = 1.0", "C: float = 2.0"),
    "a decorator": ("def formula", "@(lambda f: f)\n    def formula"),
    "its place in the file": ("import numpy as np\n", "import numpy as np\n\n\n    OTHER = 1\n"),
    "what it does not use": ("SHIFT = 0.5", "SHIFT, UNUSED = 0.5, 1"),
    "how a constant is computed": ("SHIFT = 0.5", "SHIFT = 1 / 2"),
}
OTHER = {
    "an input's name": ("t, pulls, mean", "t, pulls, worth"),
    "a parameter's name": ("C", "D"),
    "a literal": ("t > 1", "t > 2"),
    "a literal's type": ("t > 1", "t > 1.0"),
    "an operation": ("mean + bonus", "mean - bonus"),
    "a function of NumPy": ("np.sqrt", "np.log"),
    "a constant of NumPy": ("-np.inf", "-np.e"),
    "a global constant": ("SHIFT = 0.5", "SHIFT = 0.25"),
    "its type": ("SHIFT = 0.5", "SHIFT = np.float64(0.5)"),
    "a helper": ("factor *", "factor +"),
    "a helper's default": ("factor=2.0", "factor=3.0"),
    "a helper's keyword": ("power=1", "power=2"),
    "the order of inputs": ("t, pulls, mean", "pulls, t, mean"),
    "where the parameters begin": ("mean, *, C", "mean, C"),
}


def of_formula(module: types.ModuleType) -> str:
    return identity(getattr(module, "formula", None) or module.fórmula)


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_words_layout_and_place_do_not_matter(make: Make, old: str, new: str) -> None:
    assert old in FORMULA
    first, second = of_formula(make(FORMULA)), of_formula(make(FORMULA.replace(old, new)))
    assert first == second
    assert first.startswith("tree:")


@pytest.mark.parametrize(("old", "new"), OTHER.values(), ids=OTHER)
def test_what_it_says_does_matter(make: Make, old: str, new: str) -> None:
    assert old in FORMULA
    assert of_formula(make(FORMULA)) != of_formula(make(FORMULA.replace(old, new)))


def test_a_known_identity(make: Make) -> None:
    """Written down once: it is the same on every Python and NumPy, and in all versions to come."""
    assert of_formula(make(FORMULA)) == "tree:3af5f67dfa4ec28c133eecbb"


VALUES: list[Any] = [
    *(0, 1, 0.0, -0.0, 1.0, True, None, "1", b"1", 1j, (1, 2), (2, 1), [1, 2], (), [], {1: 2}, {1: 3}, frozenset({1})),
    *(np.float32(1), np.float64(1), np.uint64(1), np.array([1.0]), np.array([[1.0]]), np.array([1]), np.array(1.0)),
    *(np.sqrt, np.log, np.clip, np.uint32, abs, ra.noise.Gumbel(), ra.noise.Gaussian(), ra.noise.Gumbel, np, types),
]


def test_values_are_told_apart() -> None:
    assert len({identity(value) for value in VALUES}) == len(VALUES)
    assert [identity(value) for value in VALUES] == [identity(value) for value in VALUES]


def test_a_set_has_no_order() -> None:
    assert identity(frozenset({"a", "b", "c"})) == identity(frozenset({"c", "b", "a"}))
    assert identity({"a": 1, "b": 2}) == identity({"b": 2, "a": 1})


def test_constants_are_read_when_the_identity_is_asked_for(make: Make) -> None:
    module = make(FORMULA)
    before = of_formula(module)
    vars(module)["SHIFT"] = 0.25
    assert of_formula(module) == of_formula(make(FORMULA.replace("0.5", "0.25"))) != before


def test_another_numpy_makes_no_difference(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its functions are other objects, and its numbers are written otherwise."""
    source = FORMULA.replace("SHIFT = 0.5", "SHIFT = np.float64(0.5)")
    before, numbers = of_formula(make(source)), [identity(value) for value in VALUES]
    with np.printoptions(legacy="1.25"):
        assert repr(np.float64(0.5)) == "0.5"
        assert [identity(value) for value in VALUES] == numbers
        monkeypatch.setattr(np, "sqrt", lambda x: x**0.5)
        assert of_formula(make(source)) == before


def closure(x: Any) -> Callable[[float], Any]:
    def times(y: float) -> Any:
        return x * y

    return times


def test_closures_count_by_their_values() -> None:
    assert identity(closure(1.0)) == identity(closure(1.0)) != identity(closure(2.0))
    assert identity(closure(np.sqrt)) != identity(closure(np.log))
    assert identity(functools.partial(closure, 1.0)) != identity(functools.partial(closure, 2.0))


def test_modules_of_ones_own_count_by_what_is_used_of_them(make: Make) -> None:
    source = """
        def formula(mean):
            return settings.factor * settings.inner.helper(mean)
    """

    def settings(factor: float, power: int, unused: int) -> types.ModuleType:
        inner = make(f"def helper(x):\n    return x ** {power}\n")
        return make(f"factor, unused = {factor}, {unused}", inner=inner)

    all_settings = [settings(*values) for values in ((1.0, 2, 3), (1.0, 2, 4), (2.0, 2, 3), (1.0, 3, 3))]
    first, same, *others = (of_formula(make(source, settings=each)) for each in all_settings)
    assert first == same
    assert len({first, *others}) == 3


def test_compiled_functions_count_by_what_they_say(make: Make) -> None:
    source = """
        @elementwise()
        def draw(x: float) -> float:
            return inner(x) + 1.0
        @jit
        def inner(x):
            "Words."
            return x * {factor}
        def formula(mean):
            return draw(mean)
    """
    modules = [make(source.format(factor=factor), elementwise=elementwise, jit=jit) for factor in (2.0, 2.0, 3.0)]
    first, second, third = map(of_formula, modules)
    assert first == second != third
    assert isinstance(modules[0].inner, Kernel)


def test_functions_that_call_each_other(make: Make) -> None:
    source = """
        def even(n):
            return n == 0 or odd(n - 1)
        def odd(n):
            return n == {end} or even(n - 1)
        def formula(mean):
            return mean * even(3)
    """
    first, second, third = (of_formula(make(source.format(end=end))) for end in (1, 1, 3))
    assert first == second != third


LAMBDAS = """
    def decorate(*functions, **named):
        return lambda formula: (formula, *functions, *named.values())
    a, b = (lambda x: x + (1 + 1)), (lambda x: x + 2)
    c, d = (lambda x: 1.0 if x > 0 else 2.0), (lambda: None)
    e = (lambda x: lambda y: x + y)(1)
    é, f, g = (lambda x: "é" or x), (lambda x: x and (x or 1)), (lambda x: 0 < x < 1)
    @decorate(lambda arms, *, gamma: gamma / arms, gain=lambda gain, reward: gain + reward,
              loss=lambda loss, reward: (
                  loss - reward))
    def h(t): return t
    i, j = (lambda x: x), (lambda x: x)
"""


def test_lambdas_are_told_apart(make: Make) -> None:
    """Several on a line, one in another, and in the call of a decorator."""
    first, second = make(LAMBDAS), make("\n\n" + LAMBDAS.replace("lambda x:", "lambda  x :"))
    names = [*"abcdeéfg", "h", "i", "j"]
    functions = [
        [f for name in names for f in (vars(module)[name] if name == "h" else (vars(module)[name],))]
        for module in (first, second)
    ]
    found, again = ([identity(function) for function in row] for row in functions)
    assert all(text.startswith("tree:") for text in found)
    assert found == again
    assert len(set(found)) == len(found) - 1  # i and j are the same


def test_without_source_the_bytecode_stands_in() -> None:
    first, second, other = (eval(text) for text in ("lambda t: 1 / t", "lambda t: 1/t", "lambda t: 2 / t"))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert identity(first).startswith(f"bytecode:{version}:")
    assert identity(first) == identity(second) != identity(other)
    assert identity(closure(first)).startswith("bytecode:")


def test_a_notebook_has_source() -> None:
    """What IPython does: the source of a cell is known to linecache under the name of the cell."""
    source = "import numpy as np\ndef formula(mean):\n    return np.sqrt(mean)\n"
    name, namespace = "<ipython-input-1-0123456789ab>", dict[str, Any]()
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec", dont_inherit=True), namespace)
    assert identity(namespace["formula"]).startswith("tree:")


def test_an_edited_file_is_not_mistaken_for_what_runs(make: Make) -> None:
    """The old function goes on running; its source is gone, and the bytecode says so."""
    module = make(FORMULA)
    path = Path(module.__file__ or "")
    path.write_text(path.read_text().replace("mean + bonus", "mean - bonus"))
    linecache.checkcache()
    assert of_formula(module).startswith("bytecode:")


# Families.

FAMILIES = {name: getattr(ra, name) for name in ra.__all__ if isinstance(getattr(ra, name), Family)}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_formula_of_the_library_has_an_identity(name: str) -> None:
    assert FAMILIES[name].identity.startswith("tree:")


def test_formulas_of_the_library_are_told_apart() -> None:
    policies = [family.identity for family in FAMILIES.values() if isinstance(family, PolicyFamily)]
    problems = [family.identity for family in FAMILIES.values() if isinstance(family, ProblemFamily)]
    assert len(set(policies)) == len(policies)
    assert len(set(problems)) == len(problems)


def score(mean, z):  # type: ignore[no-untyped-def]
    return mean + z


class Wide(ra.noise.Law):
    """A law of a user's own."""

    def quantile(self, u: float) -> float:
        return u * 2.0


class Wider(ra.noise.Law):
    def quantile(self, u: float) -> float:
        return u * 3.0


def test_all_that_belongs_to_a_policy_counts() -> None:
    def family(**options: Any) -> str:
        made: PolicyFamily = ra.policy(**({"noise": ra.noise.Gumbel()} | options))(score)
        return made.identity

    identities = [
        family(),
        family(noise=ra.noise.Gaussian()),
        family(noise=Wide()),
        family(noise=Wider()),
        family(explore=lambda arms: 0.5 / arms),
        family(explore=lambda arms: 0.25 / arms),
        family(learn={"gain": lambda gain, reward: gain + reward}),
        family(learn={"loss": lambda loss, reward: loss + reward}),
        family(keep={"root": lambda mean: np.sqrt(mean)}),
        family(score_law=(ra.noise.Beta(), lambda pulls: (pulls, pulls))),
    ]
    assert len(set(identities)) == len(identities)
    assert family(noise=Wide()) == family(noise=Wide())


def test_a_family_brings_its_identity_along(make: Make) -> None:
    """Functions that were sent to another process have no source there."""
    family = ra.UCB
    copy = PolicyFamily.__new__(PolicyFamily)
    vars(copy).update(family.__getstate__(), function=eval("lambda t, pulls, mean, *, C: mean"))
    assert copy.identity == family.identity
    assert "annotations" not in family.__getstate__()


# What was saved, and what is found.


def test_a_changed_formula_is_refused() -> None:
    saved = ra.UCB(C=0.5).specification()
    changed = saved | {"code": "tree:" + "0" * 24}
    with pytest.raises(ValueError, match="ucb:UCB has changed since this was saved"):
        from_specification(changed)
    assert difference(ra.UCB(C=0.5), changed) == "formula"


def test_bytecode_of_another_python_is_refused_with_the_reason() -> None:
    saved = ra.UCB(C=0.5).specification() | {"code": "bytecode:3.99:" + "0" * 24}
    with pytest.raises(ValueError, match=r"source was not at hand.*Python 3.99 only"):
        from_specification(saved)


def test_a_formula_without_source_is_found_again_on_the_same_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved in a REPL, loaded where the source is at hand, and the other way round."""
    code = compile("def root(mean): return mean ** 0.5", "<stdin>", "exec")
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(code, namespace)
    without = ra.policy(namespace["root"])
    monkeypatch.setitem(globals(), "root", without)
    saved = without().specification()
    assert saved["code"].startswith("bytecode:")
    assert from_specification(saved) == without()
    with pytest.raises(ValueError, match="source is not at hand here"):
        from_specification(saved | {"code": "tree:" + "0" * 24})


def test_differences() -> None:
    saved = ra.Boltzmann(ra.schedules.inverse_log(0.25)).specification()
    assert difference(ra.Boltzmann(ra.schedules.inverse_log(0.25)), saved) is None
    assert difference(ra.Boltzmann(ra.schedules.inverse_log(0.5)), saved) == "parameters"
    assert difference(ra.Boltzmann(ra.schedules.inverse_sqrt(0.25)), saved) == "parameters"
    assert difference(ra.Boltzmann(0.25), saved) == "parameters"
    assert difference(ra.EpsilonGreedy(ra.schedules.inverse_log(0.25)), saved) == "formula"
    noisy = ra.PerturbedMean(ra.noise.Gaussian(), scale=0.5).specification()
    assert difference(ra.PerturbedMean(ra.noise.Gaussian(), scale=0.5), noisy) is None
    assert difference(ra.PerturbedMean(ra.noise.Uniform(), scale=0.5), noisy) == "parameters"


def test_a_parameter_that_came_later_has_its_default() -> None:
    saved = ra.BoltzmannGumbel(C=0.5).specification()
    del saved["parameters"]["location"]
    assert difference(ra.BoltzmannGumbel(C=0.5), saved) is None
    assert difference(ra.BoltzmannGumbel(C=0.5, location=0.0), saved) == "parameters"


def test_a_law_of_ones_own_that_changed_is_refused() -> None:
    saved = ra.PerturbedMean(Wide()).specification()
    assert from_specification(saved) == ra.PerturbedMean(Wide())
    saved["parameters"]["noise"]["code"] = Wider().specification()["code"]
    with pytest.raises(ValueError, match="Wide has changed since this was saved"):
        from_specification(saved)


def test_where_python_is_called_with_a_command(tmp_path: Path) -> None:
    """A script has source, a command has not (before Python 3.13)."""
    code = "import rightarm as ra\n@ra.policy\ndef own(mean):\n    return mean\nprint(own.identity)\n"
    (tmp_path / "script.py").write_text(code)
    printed = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert printed.stdout.startswith("tree:")
    command = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert command.stdout.startswith("tree:" if sys.version_info >= (3, 13) else "bytecode:")


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Threads change places as often as they can, also while a tree is built, as in a Dask worker."""
    interval, thresholds, nothing = sys.getswitchinterval(), gc.get_threshold(), lambda phase, info: None
    sys.setswitchinterval(1e-6)
    gc.callbacks.append(nothing)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks.remove(nothing)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_switching")
def test_threads_parse_side_by_side() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    failed: list[SystemError] = []

    def work() -> None:
        try:
            for _ in range(10):
                parse(source)
        except SystemError as error:
            failed.append(error)

    def work_of_others() -> None:
        for _ in range(10):
            with contextlib.suppress(SystemError):
                ast.parse(source)

    threads = [threading.Thread(target=target) for target in (work, work, work, work_of_others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
