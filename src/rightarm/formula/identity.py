"""The identity of a formula: a short text that is the same wherever the formula computes the same by the same words.

It is made from the formula's syntax tree together with the values of the constants and the identities of the functions
that the formula uses, so it is the same on every Python and NumPy, and does not change with docstrings, comments,
annotations, layout, decorators or the file that the formula stands in. What it does change with:

- the names of inputs and parameters, and every operation, constant and name in the body;
- the values of the global variables and closures that the body reads, and functions behind them, by the same rules;
- functions of NumPy, SciPy, Numba and Python itself count by their names only.

A formula's own name does not count, nor do the defaults of its parameters: whoever keeps a formula keeps the values of
all of its parameters. Where the source is not at hand, as in ``python -c``, the bytecode stands in for it, and the
identity begins with ``bytecode:`` and the version of Python to which it is tied.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from rightarm.formula.compile import Kernel, MachineOperation, bytecode_hash, globals_used
from rightarm.formula.syntax import LEFT_OUT, Function, canonical, written_function

LIBRARIES = frozenset({"numpy", "scipy", "numba", "llvmlite"}) | sys.stdlib_module_names
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
TREE, BYTECODE = "tree:", "bytecode:"


class NoSource(Exception):
    """The source of a function is not at hand."""


def identity(*parts: Any) -> str:
    """The identity of functions and constants together.

    >>> identity(lambda x: x + 1) == identity(lambda x: x  +  1)
    True
    >>> identity(lambda x: x + 1) == identity(lambda y: y + 1)
    False
    """
    digest = hashlib.sha256()
    try:
        for part in parts:
            for token in _tokens(part, {}, is_formula=True):
                digest.update(token.encode() + b"\0")
    except NoSource:
        return f"{BYTECODE}{PYTHON}:{bytecode_hash(*parts)}"
    return f"{TREE}{digest.hexdigest()[:24]}"


def with_defaults(function: Callable[..., Any]) -> tuple[Any, ...]:
    """What a plain function is made of that stands for a formula as it is, its defaults included."""
    return (function, function.__defaults__, function.__kwdefaults__)


def _tokens(value: Any, seen: dict[int, int], is_formula: bool = False) -> Iterator[str]:
    value = getattr(value, "py_func", value)  # a user's own Numba function
    if isinstance(value, Kernel):
        value = value.function
    elif isinstance(value, MachineOperation):
        value = value.build
    elif isinstance(value, functools.partial):
        value = (value.func, value.args, value.keywords)
    if isinstance(value, np.generic | np.ndarray):  # whose repr is not the same in every NumPy
        array = np.asarray(value)
        kind = "array" if array is value else "scalar"
        yield f"{kind} {array.dtype.str} {array.shape} {array.tobytes().hex()}"
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes):
        yield f"{type(value).__name__} {value!r}"
    elif isinstance(value, tuple | list | set | frozenset | Mapping):
        yield from _collection_tokens(value, seen, is_formula)
    elif isinstance(value, types.ModuleType):
        yield f"module {value.__name__ if _root(value.__name__) in LIBRARIES else ''}"
    elif isinstance(value, np.ufunc):
        yield f"ufunc {value.__name__}"
    elif isinstance(getattr(value, "__module__", None), str) and hasattr(value, "__qualname__"):
        yield from _named_tokens(value, seen, is_formula)
    else:
        yield from _tokens(type(value), seen)
        yield from _tokens(getattr(value, "__dict__", {}), seen) if " at 0x" in repr(value) else [repr(value)]


def _collection_tokens(value: Any, seen: dict[int, int], is_formula: bool) -> Iterator[str]:
    items = [(name, value[name]) for name in sorted(value, key=repr)] if isinstance(value, Mapping) else value
    yield f"{type(value).__name__} of {len(value)}"
    for item in sorted(items, key=repr) if isinstance(items, set | frozenset) else items:
        yield from _tokens(item, seen, is_formula)


def _named_tokens(value: Any, seen: dict[int, int], is_formula: bool) -> Iterator[str]:
    """Functions and classes: those of libraries by name, our own classes too, all others by what they say."""
    root = _root(value.__module__)
    if root in LIBRARIES or (root == __name__.partition(".")[0] and isinstance(value, type)):
        yield f"{root}.{value.__qualname__}"
    elif isinstance(value, types.FunctionType):
        yield from _function_tokens(value, seen, is_formula)
    elif isinstance(value, type):
        yield f"class {value.__name__}"
        for name, entry in sorted(vars(value).items()):
            if not name.startswith("__"):
                yield name
                yield from _tokens(getattr(entry, "__func__", entry), seen)
        for base in value.__bases__:
            yield from _tokens(base, seen)
    else:
        yield f"{type(value).__name__} {value.__qualname__}"


def _function_tokens(function: types.FunctionType, seen: dict[int, int], is_formula: bool) -> Iterator[str]:
    if id(function) in seen:
        yield f"function {seen[id(function)]} again"
        return
    seen[id(function)] = len(seen)
    code, loader = function.__code__, function.__globals__.get("__loader__")
    node = written_function(code, code.co_filename, loader)
    if node is None:
        raise NoSource(function.__qualname__)
    yield _text(node)
    if not is_formula:
        yield from _tokens((function.__defaults__, function.__kwdefaults__), seen)
    used = globals_used(function) | dict(zip(code.co_freevars, map(_content, function.__closure__ or ()), strict=True))
    for name, value in sorted((used | _from_modules(node, used)).items()):
        yield name
        yield from _tokens(value, seen)


@functools.lru_cache(maxsize=4096)
def _text(node: Function) -> str:
    """Arguments and body; the function's name and its defaults are not part of it, those of inner functions are."""
    return f"{canonical(node.args, LEFT_OUT | {'defaults', 'kw_defaults'})} {canonical(node.body)}"


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return None


def _from_modules(node: Function, used: Mapping[str, Any]) -> dict[str, Any]:
    """What the function reads from modules that are not libraries: ``{"settings.factor": 0.5}``."""
    found = {}
    for first, *rest in _dotted_names(node):
        value = used.get(first)
        for name in rest:
            if not isinstance(value, types.ModuleType) or _root(value.__name__) in LIBRARIES:
                break
            value = getattr(value, name, None)
        else:
            found[".".join([first, *rest])] = value
    return found


@functools.lru_cache(maxsize=4096)
def _dotted_names(node: Function) -> frozenset[tuple[str, ...]]:
    """``("settings", "factor")`` for ``settings.factor``, and so on for all that the function has of that form."""
    found = set()
    for part in ast.walk(node):
        names: list[str] = []
        while isinstance(part, ast.Attribute):
            names.append(part.attr)
            part = part.value
        if names and isinstance(part, ast.Name):
            found.add((part.id, *reversed(names)))
    return frozenset(found)


def _root(module: str) -> str:
    return module.partition(".")[0]
