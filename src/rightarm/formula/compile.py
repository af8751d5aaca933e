"""The one place that knows Numba: its options, the disk cache, and the few machine operations we need.

Numba is imported when something compiled is first called, so that ``import rightarm`` stays quick. Everything
compiled goes through :func:`jit` (functions that call each other) or :func:`pointer` (a template made special by a
formula and reached through a function pointer of one fixed signature).
"""

from __future__ import annotations

import contextlib
import dis
import functools
import hashlib
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rightarm.formula.cache import cache_directory

OPTIONS: dict[str, Any] = {
    "nogil": True,  # threads, not processes, on one machine
    "error_model": "numpy",  # 1/0 is inf: the check for it would keep a loop from being vectorised
    "forceinline": True,  # a tuple of many arrays costs 100 ns to pass
    "fastmath": False,  # vector body and scalar tail must round alike; fused operations are written out as `fma`
}

INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # of what Python never calls

ABOUT_LOCALS = frozenset({"FAST", "CLOSURE", "DEREF"})  # in the names of bytecode's steps

_lock = threading.RLock()


class Kernel:
    """A function that is compiled at its first call; in other compiled functions it stands for its compiled self."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.dispatcher: Any = None
        self.inner_dispatcher: Any = None
        functools.update_wrapper(self, function)

    @property
    def compiled(self) -> Any:
        """Numba's dispatcher, for Python to call; one for all threads, or each would compile."""
        with _lock:
            if self.dispatcher is None:
                self.dispatcher = self._made({})
        return self.dispatcher

    @property
    def inner(self) -> Any:
        """The same for other compiled functions, which takes less time to compile."""
        with _lock:
            if self.inner_dispatcher is None:
                self.inner_dispatcher = self._made(INNER)
        return self.inner_dispatcher

    def _made(self, options: dict[str, Any]) -> Any:
        import numba

        function = _with_compiled_names(self.function)
        function.__qualname__ += "_inner" if options else ""  # Numba's cache does not look at options
        with _cache_directory():
            return numba.njit(cache=True, **OPTIONS, **options)(function)

    def __call__(self, *arguments: Any) -> Any:
        return (self.dispatcher or self.compiled)(*arguments)


def jit(function: Callable[..., Any]) -> Kernel:
    """Compile ``function`` at its first call, with the options above, and keep the machine code on disk."""
    return Kernel(function)


class Elementwise(Kernel):
    """A compiled function of single numbers that live formulas call with arrays, for what NumPy does not have.

    ``attempt`` is for a function that cannot become vector code: it has no branches, and gives the same number or NaN.
    Compiled loops try it first, and call the function itself for what is left.
    """

    def __init__(self, function: Callable[..., float], attempt: Kernel | None = None) -> None:
        super().__init__(function)
        self.attempt = attempt

    def __call__(self, *arguments: Any) -> Any:
        columns = np.broadcast_arrays(*(np.asarray(argument, dtype=float) for argument in arguments))
        values = [self.compiled(*map(float, row)) for row in zip(*(column.flat for column in columns), strict=True)]
        return np.array(values).reshape(columns[0].shape)


def elementwise(attempt: Kernel | None = None) -> Callable[[Callable[..., float]], Elementwise]:
    """Compile a function of single numbers for use in formulas, live and compiled."""
    return functools.partial(Elementwise, attempt=attempt)


def attempting(function: types.FunctionType) -> types.FunctionType:
    """A formula's function with attempts in the place of the functions that have them; itself if none has."""
    used = globals_used(function).items()
    attempts = {name: value.attempt for name, value in used if isinstance(value, Elementwise) and value.attempt}
    return _copy(function, function.__globals__ | attempts) if attempts else function


class MachineOperation:
    """An operation that Python does not have; `build` makes Numba's intrinsic for it when it is first needed."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self.build = build

    @functools.cached_property
    def compiled(self) -> Any:
        """Numba's intrinsic."""
        return self.build()

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError("this operation exists in compiled code only")


def _build_fma() -> Any:
    from numba.extending import intrinsic

    @intrinsic
    def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
        return a(a, a, a), lambda context, builder, signature, arguments: builder.fma(*arguments)

    return fma


def _build_bitcast(source: str, target: str) -> Any:
    from numba import types as numba_types
    from numba.extending import intrinsic

    @intrinsic
    def bitcast(typing_context: Any, value: Any) -> Any:
        result = getattr(numba_types, target)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(result))

        return result(getattr(numba_types, source)), generate

    return bitcast


def _build_uncounted() -> Any:
    from numba import types as numba_types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def stripped(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        if isinstance(kind, numba_types.BaseTuple):
            kinds: list[Any] = list(kind)  # type: ignore[call-overload]
            items = [stripped(context, builder, each, builder.extract_value(value, i)) for i, each in enumerate(kinds)]
            return context.make_tuple(builder, kind, items)
        if not isinstance(kind, numba_types.Array):
            return value
        made = context.make_array(kind)(context, builder, value)
        made.meminfo = cgutils.get_null_value(made.meminfo.type)  # type: ignore[no-untyped-call]
        return made._getvalue()

    @intrinsic
    def uncounted(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return stripped(context, builder, value, arguments[0])

        return value(value), generate

    return uncounted


uncounted = MachineOperation(_build_uncounted)  # an array, or arrays in a tuple, without owner: views are not counted
fma = MachineOperation(_build_fma)  # a·b + c with one rounding, the same on every machine
float_of_bits = MachineOperation(lambda: _build_bitcast("uint32", "float32"))
bits_of_float = MachineOperation(lambda: _build_bitcast("float32", "uint32"))
double_of_bits = MachineOperation(lambda: _build_bitcast("uint64", "float64"))
bits_of_double = MachineOperation(lambda: _build_bitcast("float64", "uint64"))


_stand_ins: dict[str, Kernel] = {}


def stands_for(theirs: Callable[..., Any]) -> Callable[[Callable[..., float]], Kernel]:
    """Have the decorated function stand for a function of NumPy in all compiled formulas, for single numbers."""

    def decorate(function: Callable[..., float]) -> Kernel:
        _stand_ins[theirs.__name__] = kernel = jit(function)
        return kernel

    return decorate


@functools.cache
def _numpy_for_formulas() -> types.ModuleType:
    """NumPy, with our own functions in place of some of its own; nobody else's NumPy is touched."""
    module = types.ModuleType("numpy")
    module.__dict__.update(np.__dict__)
    module.__dict__.update({name: _for_numbers(kernel.inner, getattr(np, name)) for name, kernel in _stand_ins.items()})
    return module


def _for_numbers(ours: Any, theirs: Any) -> Callable[..., Any]:
    """A function that compiles to ``ours`` where all arguments are numbers, and to ``theirs`` where not."""
    from numba import types as numba_types
    from numba.extending import overload

    def stand_in(*arguments: Any) -> Any:
        raise NotImplementedError

    def of_numbers(*arguments: Any) -> Any:
        return ours(*arguments)

    def of_others(*arguments: Any) -> Any:
        return theirs(*arguments)

    numbers = numba_types.Float | numba_types.Integer | numba_types.Boolean
    options: Any = OPTIONS

    @overload(stand_in, jit_options=options)
    def choose(*arguments: Any) -> Any:
        return of_numbers if all(isinstance(argument, numbers) for argument in arguments) else of_others

    return stand_in


_made: dict[str, Any] = {}


def pointer(subject: str, template: Callable[..., Any], signature: str, **names: Any) -> Any:
    """Compile ``template``, with ``names`` in place of its globals, to a C function that others reach by its address.

    ``subject`` is what an error speaks of.

    Whoever calls it is compiled once for the signature, whatever formula stands behind it. The machine code is kept
    on disk under a hash of all the code that went in, so an edited formula is never mistaken for the old one.
    """
    return _make("cfunc", subject, template, signature, names)


def function(subject: str, template: Callable[..., Any], signature: str, **names: Any) -> Any:
    """Compile as `pointer` does, to a function for Python: handing over an address would take longer than the work."""
    return _make("njit", subject, template, signature, names)


def _make(kind: str, subject: str, template: Callable[..., Any], signature: str, names: dict[str, Any]) -> Any:
    key = bytecode_hash(kind, template, signature, tuple(sorted(names.items())))
    with _lock:
        if key not in _made:
            import numba

            special = _copy(template, template.__globals__ | names)
            special.__qualname__ = f"{template.__name__}_{key}"
            function = _with_compiled_names(special, _numpy_for_formulas())
            made_by = getattr(numba, kind)
            try:
                with _cache_directory():
                    _made[key] = made_by(signature, cache=True, error_model=OPTIONS["error_model"])(function)
            except numba.core.errors.NumbaError as error:
                lines = [line.strip() for line in str(error).splitlines() if not line.startswith("Failed in nopython")]
                reason = " ".join(lines)[:300]
                raise TypeError(f"{subject} cannot be compiled; it must work on single numbers too: {reason}") from None
        return _made[key]


def positional(function: types.FunctionType) -> types.FunctionType:
    """A copy of ``function`` that takes its keyword-only parameters by position, which Numba asks for."""
    code = function.__code__
    flat = code.replace(co_argcount=code.co_argcount + code.co_kwonlyargcount, co_kwonlyargcount=0)
    return _copy(function, function.__globals__, code=flat)


def _copy(
    function: Callable[..., Any],
    namespace: dict[str, Any],
    code: types.CodeType | None = None,
    closure: tuple[types.CellType, ...] | None = None,
) -> types.FunctionType:
    defaults = function.__defaults__ if code is None else None
    copy = types.FunctionType(
        code or function.__code__, namespace, function.__name__, defaults, closure or function.__closure__
    )
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def _with_compiled_names(function: Callable[..., Any], numpy: types.ModuleType = np) -> types.FunctionType:
    """A copy of ``function`` in whose globals and closure every function of ours or the user's is its compiled self.

    ``numpy`` is what stands there for NumPy.
    """
    namespace = {name: _compiled(value, numpy) for name, value in globals_used(function).items()}
    namespace["__name__"] = __name__  # Numba's cache would import the user's module, which may have moved
    closure = tuple(types.CellType(_compiled(cell.cell_contents, numpy)) for cell in function.__closure__ or ())
    copy = _copy(function, namespace, closure=closure)
    copy.__module__ = __name__
    return copy


def _compiled(value: Any, numpy: types.ModuleType) -> Any:
    if value is np:
        return numpy
    if isinstance(value, Kernel):
        return value.inner
    if isinstance(value, MachineOperation):
        return value.compiled
    if isinstance(value, types.FunctionType):
        import numba

        return numba.njit(**OPTIONS, **INNER)(_with_compiled_names(value, numpy))
    return value


def globals_used(function: Callable[..., Any]) -> dict[str, Any]:
    """The global variables that the function reads, by name."""
    available = function.__globals__
    return {name: available[name] for name in sorted(_global_names(function.__code__)) if name in available}


@functools.lru_cache(maxsize=4096)
def _global_names(code: types.CodeType) -> frozenset[str]:
    """The names that the code looks up in its module; `log` in `np.log` is not one of them."""
    own = frozenset(step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    return own.union(*(_global_names(inner) for inner in code.co_consts if isinstance(inner, types.CodeType)))


@functools.lru_cache(maxsize=4096)
def _all_names(code: types.CodeType) -> frozenset[str]:
    inner = (_all_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(code.co_names).union(*inner)


def names_read(function: Callable[..., Any]) -> frozenset[str]:
    """The names of the arguments, and of other local variables, that the function's code makes use of."""
    steps = (step for step in dis.get_instructions(function.__code__) if set(step.opname.split("_")) & ABOUT_LOCALS)
    return frozenset(name for step in steps for name in _names(step.argval))


def _names(argval: Any) -> tuple[str, ...]:
    return argval if isinstance(argval, tuple) else (argval,)  # one step may read two variables


def draws_random_numbers(function: Callable[..., Any]) -> bool:
    """Whether a formula reaches for NumPy's or Python's own random numbers, which no seed of ours would govern."""
    used = globals_used(function).values()
    modules = {value.__name__ for value in used if isinstance(value, types.ModuleType)}
    return bool(modules & {"random", "numpy.random"}) or (
        "numpy" in modules and "random" in _all_names(function.__code__)
    )


def bytecode_hash(*parts: Any) -> str:
    """A name for the bytecode and the constants of compiled functions, for this version of Python only.

    It finds machine code on disk again, which is for one Python anyway. What people keep is named by `identity`, which
    is the same on all of them.
    """
    digest = hashlib.sha256()
    for token in _tokens(parts, seen={}):
        digest.update(token.encode() + b"\0")
    return digest.hexdigest()[:24]


def _tokens(value: Any, seen: dict[int, int]) -> Iterator[str]:
    value = getattr(value, "py_func", value)  # a user's own Numba function
    if isinstance(value, Kernel | MachineOperation):
        value = value.function if isinstance(value, Kernel) else value.build
    if isinstance(value, tuple | list | frozenset):
        items = sorted(value, key=repr) if isinstance(value, frozenset) else value
        yield f"{type(value).__name__} of {len(items)}"
        for item in items:
            yield from _tokens(item, seen)
    elif isinstance(value, types.CodeType):
        yield value.co_code.hex()
        yield from _tokens((value.co_names, value.co_varnames, value.co_consts), seen)
    elif isinstance(value, types.FunctionType):
        yield from _function_tokens(value, seen)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif hasattr(value, "__qualname__"):
        yield f"{value.__module__}.{value.__qualname__}"
    else:
        yield f"{type(value).__name__} {value!r}"


def _function_tokens(function: types.FunctionType, seen: dict[int, int]) -> Iterator[str]:
    """Code, defaults, closure, and what the code finds in its module and in other modules that it names."""
    if id(function) in seen:
        yield f"function {seen[id(function)]} again"
        return
    seen[id(function)] = len(seen)
    used = globals_used(function)
    modules = {name: value for name, value in used.items() if isinstance(value, types.ModuleType)}
    attributes = [
        (name, attribute, getattr(module, attribute))
        for name, module in modules.items()
        for attribute in sorted(_all_names(function.__code__))
        if hasattr(module, attribute)
    ]
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ())
    found = [(name, value) for name, value in used.items() if name not in modules]
    names = [(name, module.__name__) for name, module in modules.items()]
    code = function.__code__
    if function.__doc__ is not None and code.co_consts[:1] == (function.__doc__,):  # words do not change what it does
        code = code.replace(co_consts=(None, *code.co_consts[1:]))
    yield from _tokens((code, function.__defaults__ or (), cells, names, attributes, found), seen)


@contextlib.contextmanager
def _cache_directory() -> Iterator[None]:
    """Have Numba keep what is compiled inside this block in our folder, and leave its setting as it was."""
    from numba import config

    settings: Any = config
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(cache_directory())
    try:
        yield
    finally:
        settings.CACHE_DIR = before
