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
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from rightarm.formula.syntax import (
    LEFT_OUT,
    Function,
    FunctionNode,
    all_names,
    canonical,
    globals_used,
    written_function,
)

LIBRARIES = frozenset({"numpy", "scipy", "numba", "llvmlite"}) | sys.stdlib_module_names
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
TREE = "tree:"
BYTECODE = "bytecode:"


class NoSource(Exception):
    """The source of a function is not at hand."""


class Written:
    """Something compiled, whose identity is that of the function from which it is made."""

    def __init__(self, written: Function) -> None:
        self.written = written


def identity(*parts: object) -> str:
    """Return the identity of functions and constants together.

    >>> identity(lambda x: x + 1) == identity(lambda x: x  +  1)
    True
    >>> identity(lambda x: x + 1) == identity(lambda y: y + 1)
    False
    """
    try:
        return f"{TREE}{_digest(token for part in parts for token in TreeReader().read(part, is_formula=True))}"
    except NoSource:
        return f"{BYTECODE}{PYTHON}:{bytecode_hash(*parts)}"


def with_defaults(function: Function) -> tuple[object, ...]:
    """Return what a plain function is made of that stands for a formula as it is, its defaults included."""
    return (function, function.__defaults__, function.__kwdefaults__)


def bytecode_hash(*parts: object) -> str:
    """Return a name for the bytecode and the constants of functions, for this version of Python only.

    It finds machine code on disk again, which is for one Python anyway.
    """
    return _digest(BytecodeReader().read(parts))


def _digest(tokens: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(token.encode() + b"\0")
    return digest.hexdigest()[:24]


class TreeReader:
    """Reads values as texts, functions by their syntax trees."""

    def __init__(self) -> None:
        self.functions: dict[int, int] = {}  # the number of each function that was read

    def read(self, value: Any, is_formula: bool = False) -> Iterator[str]:
        """Yield the texts of a value."""
        value = getattr(value, "py_func", value)  # a user's own Numba function
        if isinstance(value, Written):
            value = value.written
        elif isinstance(value, functools.partial):
            value = (value.func, value.args, value.keywords)
        if isinstance(value, np.generic | np.ndarray):  # whose repr is not the same in every NumPy
            array = np.asarray(value)
            kind = "array" if array is value else "scalar"
            yield f"{kind} {array.dtype.str} {array.shape} {array.tobytes().hex()}"
        elif value is None or isinstance(value, bool | int | float | complex | str | bytes):
            yield f"{type(value).__name__} {value!r}"
        elif isinstance(value, tuple | list | set | frozenset | Mapping):
            yield from self._read_collection(value, is_formula)
        elif isinstance(value, types.ModuleType):
            yield f"module {value.__name__ if _root(value.__name__) in LIBRARIES else ''}"
        elif isinstance(value, np.ufunc):
            yield f"ufunc {value.__name__}"
        elif isinstance(getattr(value, "__module__", None), str) and hasattr(value, "__qualname__"):
            yield from self._read_named(value, is_formula)
        else:
            yield from self.read(type(value))
            yield from self.read(getattr(value, "__dict__", {})) if " at 0x" in repr(value) else [repr(value)]

    def _read_collection(self, value: Any, is_formula: bool) -> Iterator[str]:
        items = [(name, value[name]) for name in sorted(value, key=repr)] if isinstance(value, Mapping) else value
        yield f"{type(value).__name__} of {len(value)}"
        for item in sorted(items, key=repr) if isinstance(items, set | frozenset) else items:
            yield from self.read(item, is_formula)

    def _read_named(self, value: Any, is_formula: bool) -> Iterator[str]:
        """Yield functions and classes: those of libraries by name, our own classes too, all others by what they say."""
        root = _root(value.__module__)
        if root in LIBRARIES or (root == __name__.partition(".")[0] and isinstance(value, type)):
            yield f"{root}.{value.__qualname__}"
        elif isinstance(value, types.FunctionType):
            yield from self.read_function(value, is_formula)
        elif isinstance(value, type):
            yield f"class {value.__name__}"
            for name, entry in sorted(vars(value).items()):
                if not name.startswith("__"):
                    yield name
                    yield from self.read(getattr(entry, "__func__", entry))
            for base in value.__bases__:
                yield from self.read(base)
        else:
            yield f"{type(value).__name__} {value.__qualname__}"

    def read_function(self, function: types.FunctionType, is_formula: bool) -> Iterator[str]:
        """Yield what a function says, once; of a formula the defaults are left out."""
        if id(function) in self.functions:
            yield f"function {self.functions[id(function)]} again"
            return
        self.functions[id(function)] = len(self.functions)
        yield from self.read_content(function, is_formula)

    def read_content(self, function: types.FunctionType, is_formula: bool) -> Iterator[str]:
        """Yield the function's syntax tree, and the values that it reads from its module, its closure and others."""
        code = function.__code__
        node = written_function(code, code.co_filename, function.__globals__.get("__loader__"))
        if node is None:
            raise NoSource(function.__qualname__)
        yield _text(node)
        if not is_formula:
            yield from self.read((function.__defaults__, function.__kwdefaults__))
        cells = map(_content, function.__closure__ or ())
        used = globals_used(function) | dict(zip(code.co_freevars, cells, strict=True))
        for name, value in sorted((used | _from_modules(node, used)).items()):
            yield name
            yield from self.read(value)


class BytecodeReader(TreeReader):
    """Reads values as texts, all functions by their bytecode."""

    def read(self, value: Any, is_formula: bool = False) -> Iterator[str]:
        """Yield the texts of a value."""
        if isinstance(value, types.CodeType):
            yield value.co_code.hex()
            yield from self.read((value.co_names, value.co_varnames, value.co_consts))
        elif isinstance(value, types.FunctionType):
            yield from self.read_function(value, is_formula)
        else:
            yield from super().read(value, is_formula)

    def read_content(self, function: types.FunctionType, is_formula: bool) -> Iterator[str]:
        """Yield code, defaults, closure, and what the code finds in its module and in other modules that it names."""
        used = globals_used(function)
        modules = {name: value for name, value in used.items() if isinstance(value, types.ModuleType)}
        attributes = [
            (name, attribute, getattr(module, attribute))
            for name, module in modules.items()
            for attribute in sorted(all_names(function.__code__))
            if hasattr(module, attribute)
        ]
        found = [(name, value) for name, value in used.items() if name not in modules]
        names = [(name, module.__name__) for name, module in modules.items()]
        cells = tuple(map(_content, function.__closure__ or ()))
        code = function.__code__
        if function.__doc__ is not None and code.co_consts[:1] == (function.__doc__,):  # words change nothing
            code = code.replace(co_consts=(None, *code.co_consts[1:]))
        yield from self.read((code, function.__defaults__ or (), cells, names, attributes, found))


@functools.lru_cache(maxsize=4096)
def _text(node: FunctionNode) -> str:
    """Return arguments and body; the function's name and its defaults are left out, those of inner functions not."""
    return f"{canonical(node.args, LEFT_OUT | {'defaults', 'kw_defaults'})} {canonical(node.body)}"


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return None


def _from_modules(node: FunctionNode, used: Mapping[str, object]) -> dict[str, object]:
    """Return what the function reads from modules that are not libraries: ``{"settings.factor": 0.5}``."""
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
def _dotted_names(node: FunctionNode) -> frozenset[tuple[str, ...]]:
    """Return ``("settings", "factor")`` for ``settings.factor``, and so on for all of that form in the function."""
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
