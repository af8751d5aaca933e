"""Looking into functions: their bytecode, and their syntax trees without docstrings and layout."""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import hashlib
import linecache
import threading
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]  # a formula, or what a formula is made of
FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

# Annotations check parameters and a decorator's work is seen in the function that it returns; the other fields repeat
# what the tree says anyway. (`ast.dump` would not do: which fields it writes changes from Python to Python.)
LEFT_OUT = frozenset({"annotation", "ctx", "kind", "returns", "simple", "type_comment"})
UNUSED = 10**6  # no file has so many lines

ABOUT_LOCALS = frozenset({"FAST", "CLOSURE", "DEREF"})  # in the names of bytecode's steps
ATTEMPTS = 10  # to parse while threads of other libraries parse too

_parsing = threading.Lock()


def parse(source: str) -> ast.Module:
    """Return the tree of a source text, whatever other threads parse meanwhile.

    Python 3.11 counts the depth of all trees that its threads are building in one number, and raises a SystemError
    where another thread has changed it. Ours wait for each other; others, such as Dask's, cannot be made to.
    """
    with _parsing:
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(SystemError):
                return ast.parse(source)
        return ast.parse(source)


def canonical(node: object, without: frozenset[str] = LEFT_OUT) -> str:
    """Return the tree as text, without docstrings, annotations and positions; empty fields are left out.

    >>> canonical(ast.parse("x +  1  # one more", mode="eval"))
    "Expression(body=BinOp(left=Name(id='x') op=Add() right=Constant(int 1)))"
    """
    if isinstance(node, ast.Constant):
        return f"Constant({type(node.value).__name__} {node.value!r})"
    if isinstance(node, ast.AST):
        fields = [(name, getattr(node, name, None)) for name in sorted(node._fields) if name not in without]
        texts = [f"{name}={canonical(value, without)}" for name, value in fields if value is not None and value != []]
        return f"{type(node).__name__}({' '.join(texts)})"
    if isinstance(node, list):
        return f"[{', '.join(canonical(item, without) for item in node if not _says_nothing(item))}]"
    return repr(node)


def _says_nothing(statement: object) -> bool:
    """Return whether it is a docstring, or another constant that stands for itself."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def sources_hash(paths: Iterable[Path]) -> str:
    """Return a name for what the source files say: the same on every Python, whatever the docstrings and comments are.

    Annotations count here, because those of a data class make its parameters.
    """
    counted = LEFT_OUT - {"annotation"}
    digest = hashlib.sha256()
    for path in sorted(paths):
        tree = parse(path.read_text(encoding="utf-8"))
        digest.update(f"{path.name} {canonical(tree, counted)}\n".encode())
    return digest.hexdigest()[:16]


@functools.lru_cache(maxsize=4096)
def written_function(code: types.CodeType, path: str, loader: object) -> FunctionNode | None:
    """Return the `def` or `lambda` from which ``code`` was compiled, or None where its source is not at hand.

    ``path`` is the code's own file, which two codes that are equal may not share. ``loader`` is that of its module, for
    modules that are in no file.
    """
    places = list(code.co_positions())
    for _ in range(2):
        source = "".join(linecache.getlines(path, {"__name__": "", "__loader__": loader}))
        functions = _functions(source, path)
        found = [node for other, node in functions if other == code and list(other.co_positions()) == places]
        if found:
            return found[0] if len({canonical(node) for node in found}) == 1 else None
        linecache.checkcache(path)  # the file may have been edited, and its module loaded again
    return None


@functools.lru_cache(maxsize=64)
def _functions(source: str, path: str) -> tuple[tuple[types.CodeType, FunctionNode], ...]:
    """Return every function in the source, with the code that it compiles to here.

    Several lambdas may stand on one line, and their code does not say which is which. So the tree is compiled once more
    with numbers in place of the lambdas' lines, which the code objects then have, in the same order as before.
    """
    try:
        tree = parse(source)
        codes = _codes(compile(tree, path, "exec", dont_inherit=True))
    except (SyntaxError, ValueError):
        return ()
    nodes = [node for node in ast.walk(tree) if isinstance(node, FunctionNode)]
    named = {_start(node): node for node in nodes if not isinstance(node, ast.Lambda)}
    lambdas = {UNUSED + i: node for i, node in enumerate(nodes) if isinstance(node, ast.Lambda)}
    for number, node in lambdas.items():
        node.lineno = number
        node.end_lineno = number + 1
    found: list[tuple[types.CodeType, FunctionNode | None]] = [
        (code, named.get((code.co_name, code.co_firstlineno)) or lambdas.get(same.co_firstlineno))
        for code, same in zip(codes, _codes(compile(tree, path, "exec", dont_inherit=True)), strict=True)
    ]
    return tuple((code, node) for code, node in found if node is not None)


def _codes(code: types.CodeType) -> list[types.CodeType]:
    return [code, *(each for inner in _inner_codes(code) for each in _codes(inner))]


def _start(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, int]:
    """Return the name and the first line, as they stand in the code."""
    return node.name, min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def globals_used(function: Function) -> dict[str, Any]:
    """Return the global variables that a function reads, by name."""
    available = function.__globals__
    return {name: available[name] for name in sorted(_global_names(function.__code__)) if name in available}


@functools.lru_cache(maxsize=4096)
def _global_names(code: types.CodeType) -> frozenset[str]:
    """Return the names that the code looks up in its module; `log` in `np.log` is not one of them."""
    steps = dis.get_instructions(code)
    names = frozenset(step.argval for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    return names.union(*map(_global_names, _inner_codes(code)))


@functools.lru_cache(maxsize=4096)
def all_names(code: types.CodeType) -> frozenset[str]:
    """Return the names of globals and attributes in the code."""
    return frozenset(code.co_names).union(*map(all_names, _inner_codes(code)))


def _inner_codes(code: types.CodeType) -> list[types.CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def names_read(function: Function) -> frozenset[str]:
    """Return the names of the arguments, and of other local variables, that a function's code makes use of."""
    names: set[str] = set()
    for step in dis.get_instructions(function.__code__):
        if ABOUT_LOCALS.intersection(step.opname.split("_")):
            names.update(step.argval if isinstance(step.argval, tuple) else [step.argval])  # one step may read two
    return frozenset(names)


def draws_random_numbers(function: Function) -> bool:
    """Return whether a formula reaches for NumPy's or Python's own random numbers, which no seed of ours governs."""
    used = globals_used(function).values()
    modules = {value.__name__ for value in used if isinstance(value, types.ModuleType)}
    is_numpy_random = "numpy" in modules and "random" in all_names(function.__code__)
    return is_numpy_random or not modules.isdisjoint({"random", "numpy.random"})
