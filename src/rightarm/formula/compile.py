"""The one place that knows Numba: its options, the disk cache, and the few machine operations we need.

Numba is imported when something compiled is first called, so that ``import rightarm`` stays quick. Everything compiled
goes through :func:`jit` (functions that call each other), or through :func:`pointer` and :func:`function`: these take a
loop around a formula, written as a closure over the formula, and compile the two together for one fixed signature.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from rightarm.formula.cache import cache_directory
from rightarm.formula.identity import Written, bytecode_hash
from rightarm.formula.syntax import Function, globals_used

Untyped: TypeAlias = Any  # an object of Numba's or LLVM's, which have no types that mypy could check

OPTIONS: Untyped = {
    "nogil": True,  # threads, not processes, on one machine
    "error_model": "numpy",  # 1/0 is inf: the check for it would keep a loop from being vectorised
    "forceinline": True,  # a tuple of many arrays costs 100 ns to pass
    "fastmath": False,  # vector body and scalar tail must round alike; fused operations are written out as `fma`
}

INNER: Untyped = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # of what Python never calls

_lock = threading.RLock()


class Kernel(Written):
    """A function that is compiled at its first call; in other compiled functions it stands for its compiled self."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.dispatcher: Untyped = None
        self.inner_dispatcher: Untyped = None
        functools.update_wrapper(self, function)

    @property
    def compiled(self) -> Untyped:
        """The function that Python calls; one for all threads, or each would compile."""
        with _lock:
            if self.dispatcher is None:
                self.dispatcher = self._make({})
        return self.dispatcher

    @property
    def inner(self) -> Untyped:
        """The function that other compiled functions call, which takes less time to compile."""
        with _lock:
            if self.inner_dispatcher is None:
                self.inner_dispatcher = self._make(INNER)
        return self.inner_dispatcher

    def _make(self, options: Untyped) -> Untyped:
        import numba

        function = _with_compiled_names(self.written)
        function.__qualname__ += "_inner" if options else ""  # Numba's cache does not look at options
        with _cache_directory():
            return numba.njit(cache=True, **OPTIONS, **options)(function)

    def __call__(self, *arguments: Any) -> Any:
        return (self.dispatcher or self.compiled)(*arguments)


def jit(function: Function) -> Kernel:
    """Compile a function at its first call, with the options above, and keep the machine code on disk."""
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
    """Return a formula with attempts in the place of the functions that have them; itself if none has."""
    used = globals_used(function).items()
    attempts = {name: value.attempt for name, value in used if isinstance(value, Elementwise) and value.attempt}
    return _copy(function, function.__globals__ | attempts) if attempts else function


class MachineOperation(Written):
    """An operation that Python does not have; a function makes Numba's intrinsic for it when it is first needed."""

    @functools.cached_property
    def compiled(self) -> Untyped:
        """Numba's intrinsic."""
        return self.written()

    def __call__(self, *arguments: object) -> Any:
        raise TypeError("this operation exists in compiled code only")


def _build_fma() -> Untyped:
    from numba.extending import intrinsic

    @intrinsic
    def fma(typing_context: Untyped, a: Untyped, b: Untyped, c: Untyped) -> Untyped:
        return a(a, a, a), lambda context, builder, signature, arguments: builder.fma(*arguments)

    return fma


def _build_bitcast(source: str, target: str) -> Untyped:
    from numba import types as numba_types
    from numba.extending import intrinsic

    @intrinsic
    def bitcast(typing_context: Untyped, value: Untyped) -> Untyped:
        result = getattr(numba_types, target)

        def generate(context: Untyped, builder: Untyped, signature: Untyped, arguments: Untyped) -> Untyped:
            return builder.bitcast(arguments[0], context.get_value_type(result))

        return result(getattr(numba_types, source)), generate

    return bitcast


def _build_uncounted() -> Untyped:
    from numba import types as numba_types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def strip(context: Untyped, builder: Untyped, kind: Untyped, value: Untyped) -> Untyped:
        if isinstance(kind, numba_types.BaseTuple):
            kinds: list[Untyped] = list(kind)  # type: ignore[call-overload]
            items = [strip(context, builder, each, builder.extract_value(value, i)) for i, each in enumerate(kinds)]
            return context.make_tuple(builder, kind, items)
        if not isinstance(kind, numba_types.Array):
            return value
        made = context.make_array(kind)(context, builder, value)
        made.meminfo = cgutils.get_null_value(made.meminfo.type)  # type: ignore[no-untyped-call]
        return made._getvalue()

    @intrinsic
    def uncounted(typing_context: Untyped, value: Untyped) -> Untyped:
        def generate(context: Untyped, builder: Untyped, signature: Untyped, arguments: Untyped) -> Untyped:
            return strip(context, builder, value, arguments[0])

        return value(value), generate

    return uncounted


uncounted = MachineOperation(_build_uncounted)  # an array, or arrays in a tuple, without owner: views are not counted
fma = MachineOperation(_build_fma)  # a·b + c with one rounding, the same on every machine
float_of_bits = MachineOperation(lambda: _build_bitcast("uint32", "float32"))
bits_of_float = MachineOperation(lambda: _build_bitcast("float32", "uint32"))
double_of_bits = MachineOperation(lambda: _build_bitcast("uint64", "float64"))
bits_of_double = MachineOperation(lambda: _build_bitcast("float64", "uint64"))


_stand_ins: dict[str, Kernel] = {}


def stands_for(theirs: Function) -> Callable[[Callable[..., float]], Kernel]:
    """Have the decorated function stand for a function of NumPy in all compiled formulas, for single numbers."""

    def decorate(function: Callable[..., float]) -> Kernel:
        _stand_ins[theirs.__name__] = kernel = jit(function)
        return kernel

    return decorate


@functools.cache
def _numpy_for_formulas() -> types.ModuleType:
    """Return NumPy, with our own functions in place of some of its own; nobody else's NumPy is touched."""
    module = types.ModuleType("numpy")
    module.__dict__.update(np.__dict__)
    module.__dict__.update({name: _for_numbers(kernel.inner, getattr(np, name)) for name, kernel in _stand_ins.items()})
    return module


def _for_numbers(ours: Untyped, theirs: Function) -> Function:
    """Return a function that compiles to ``ours`` where all arguments are numbers, and to ``theirs`` where not."""
    from numba import types as numba_types
    from numba.extending import overload

    # Numba wants all of these to have the same annotations.
    def stand_in(*arguments: Untyped) -> Untyped:
        return theirs(*arguments)

    def of_numbers(*arguments: Untyped) -> Untyped:
        return ours(*arguments)

    def of_others(*arguments: Untyped) -> Untyped:
        return theirs(*arguments)

    numbers = numba_types.Float | numba_types.Integer | numba_types.Boolean

    @overload(stand_in, jit_options=OPTIONS)
    def choose(*arguments: Untyped) -> Function:
        return of_numbers if all(isinstance(argument, numbers) for argument in arguments) else of_others

    return stand_in


_made: dict[str, Untyped] = {}


def pointer(subject: str, function: Function, signature: str, **names: Any) -> Untyped:
    """Compile a function to a C function that other compiled code reaches by its address.

    Whoever calls it is compiled once for the signature, whatever formula stands behind it. The machine code is kept on
    disk under a hash of all the code that went in, so an edited formula is never mistaken for the old one.

    Parameters
    ----------
    subject
        What an error speaks of, such as ``"the policy UCB"``.
    function
        A loop around a formula: a function whose free variables are the formula and other functions to be compiled.
    signature
        Numba's text for the types of the arguments and of the result.
    **names
        Values for some of the function's global variables.
    """
    return _make("cfunc", subject, function, signature, names)


def function(subject: str, function: Function, signature: str, **names: Any) -> Untyped:
    """Compile as `pointer` does, to a function for Python: handing over an address would take longer than the work."""
    return _make("njit", subject, function, signature, names)


def _make(kind: str, subject: str, function: Function, signature: str, names: dict[str, Any]) -> Untyped:
    special = _copy(function, function.__globals__ | names)
    key = bytecode_hash(kind, special, signature)
    with _lock:
        if key not in _made:
            import numba

            special.__qualname__ = f"{function.__name__}_{key}"
            try:
                _made[key] = _compile_cached(kind, _with_compiled_names(special, _numpy_for_formulas()), signature)
            except numba.core.errors.NumbaError as error:
                lines = [line.strip() for line in str(error).splitlines() if not line.startswith("Failed in nopython")]
                reason = " ".join(lines)[:300]
                raise TypeError(f"{subject} cannot be compiled; it must work on single numbers too: {reason}") from None
        return _made[key]


def _compile_cached(kind: str, function: types.FunctionType, signature: str) -> Untyped:
    """Compile a function, or find its machine code on disk by its name.

    Numba's decorators would look for it by the pickled contents of the closure, which are others in each process.
    """
    import numba
    from numba.core import caching, ccallback, sigutils

    parents: Untyped = caching

    class CacheByName(parents.FunctionCache):  # type: ignore[misc]
        def _index_key(self, sig: Untyped, codegen: Untyped) -> tuple[Untyped, ...]:
            return sig, codegen.magic_tuple(), function.__qualname__

    options = {"error_model": OPTIONS["error_model"]}
    made: Untyped
    with _cache_directory():
        if kind == "cfunc":
            made = ccallback.CFunc(function, sigutils.normalize_signature(signature), {}, options)  # type: ignore[no-untyped-call]
            made._cache = CacheByName(function)
            made.compile()
        else:
            made = numba.njit(**options)(function)
            made._cache = CacheByName(function)
            made.compile(signature)
            made.disable_compile()
    return made


def define(
    name: str,
    arguments: str,
    expression: str,
    functions: Mapping[str, Function],
    statements: Iterable[str] = (),
) -> types.FunctionType:
    """Define the function ``name(arguments)`` that returns ``expression``, after some ``statements``."""
    namespace: dict[str, Any] = dict(functions)
    lines = [f"def {name}({arguments}):", *statements, f"return {expression}"]
    exec("\n    ".join(lines), namespace)  # the source is made of our own words, never of a user's
    defined: types.FunctionType = namespace[name]
    defined.__module__ = __name__
    return defined


def positional(function: types.FunctionType) -> types.FunctionType:
    """Copy a function so that it takes its keyword-only parameters by position, which Numba asks for."""
    code = function.__code__
    flat = code.replace(co_argcount=code.co_argcount + code.co_kwonlyargcount, co_kwonlyargcount=0)
    return _copy(function, function.__globals__, code=flat)


def _copy(
    function: Function,
    namespace: dict[str, Any],
    code: types.CodeType | None = None,
    closure: tuple[types.CellType, ...] | None = None,
) -> types.FunctionType:
    defaults = function.__defaults__ if code is None else None
    copy = types.FunctionType(
        code or function.__code__, namespace, function.__name__, defaults, closure or function.__closure__
    )
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    return copy


def _with_compiled_names(function: Function, numpy: types.ModuleType = np) -> types.FunctionType:
    """Copy a function so that every function of ours or the user's in its globals and closure is its compiled self.

    ``numpy`` is what stands there for NumPy.
    """
    namespace = {name: _compiled(value, numpy) for name, value in globals_used(function).items()}
    namespace["__name__"] = __name__  # Numba's cache would import the user's module, which may have moved
    closure = tuple(types.CellType(_compiled(cell.cell_contents, numpy)) for cell in function.__closure__ or ())
    copy = _copy(function, namespace, closure=closure)
    copy.__module__ = __name__
    return copy


def _compiled(value: object, numpy: types.ModuleType) -> Untyped:
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


@contextlib.contextmanager
def _cache_directory() -> Iterator[None]:
    """Have Numba keep what is compiled inside this block in our folder, and leave its setting as it was."""
    import numba

    settings: Untyped = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(cache_directory())
    try:
        yield
    finally:
        settings.CACHE_DIR = before
