"""Define noise laws, for the simulator and for live decisions. A law of your own is a small class:

    class Logistic(ra.noise.Law):
        def quantile(self, u):  # at a share u between 0 and 1: what the simulator draws
            return np.log(u / (1 - u))

        def cdf(self, x):  # P[Z ≤ x]: what exact probabilities are computed from
            return 1 / (1 + np.exp(-x))

Both are compiled and called with one number at a time, so that branches and loops are allowed as well. Parameters are
annotated names of the class, ``df: Positive = 3.0``, and read as ``self.df``.

A law of the library is a file of this folder. It has a float32 formula of a random word (`rightarm.noise.pieces`) in
place of `quantile`, and a fast way to the probabilities in place of `rightarm.noise.quadrature`.
"""

from __future__ import annotations

import collections
import functools
import inspect
import sys
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rightarm.formula import Formula
from rightarm.formula.compile import Kernel, jit, pointer
from rightarm.formula.identity import identity
from rightarm.formula.syntax import Function
from rightarm.noise import quadrature
from rightarm.noise.pieces import BAD_FIRST, BAD_SECOND, solve_without_noise
from rightarm.types import F64

f32 = np.float32
u32 = np.uint32

FILL = "void(uint32[::1], float32[::1])"
FILL_CDF = "void(float64[::1], float64[::1])"
PER_WORD = 2.0**-32
CHECKED = 100  # shares at which cdf and quantile are compared
GOLDEN = 2654435769  # 2³² over the golden ratio: its multiples are these shares
EXAMPLES = "Gumbel(), Gaussian(), Exponential() or Uniform()"

Row = Literal["first", "second"]
Solver = Callable[[F64, F64, F64], int]
"""Puts the probabilities that follow from two rows of numbers in a third; returns below 1 if something is wrong."""
CorrelatedSolver = Callable[[F64, F64, F64, F64, F64], tuple[int, float]]
"""Does so from two rows of numbers and the vectors of predictions; it also returns how wrong probabilities may be."""


class Generator(Protocol):
    """A function from NumPy's generator and a size to draws."""

    def __call__(self, random: np.random.Generator, size: int, /) -> F64: ...


class ScoreLaw:
    """The distribution of a score that is given by two numbers for each arm: location and scale, or others."""

    kernel: ClassVar[Kernel | None] = None
    """A compiled `Solver`."""

    is_correlated: ClassVar[bool] = False
    """Whether the scores of arms are correlated as their predictions in a context are."""

    def solver(self) -> Solver:
        """Return the function that finds the probabilities of arms."""
        assert self.kernel is not None
        return self.kernel.dispatcher or self.kernel.compiled

    def cached_solver(self) -> Solver:
        """Return a solver for one bandit, which may store what it has computed; its results are the same."""
        return self.solver()

    def correlated_solver(self) -> CorrelatedSolver:
        """Return the function that finds the probabilities of correlated arms."""
        raise NotImplementedError

    def check(self, status: int, first: F64, second: F64) -> None:
        """Raise if a solver returned the status that something is wrong with its two rows."""
        if status > 0:
            return
        if status == BAD_FIRST:
            raise ValueError(f"{self.requirement('first')}, got {first.tolist()}")
        if status == BAD_SECOND:
            raise ValueError(f"{self.requirement('second')}, got {second.tolist()}")
        raise ValueError(
            f"{self!r}: {quadrature.COMPLAINTS[status]}; at the locations {first.tolist()} and scales {second.tolist()}"
        )

    def requirement(self, row: Row) -> str:
        """Return what the numbers of a row must be."""
        return "location must be a number" if row == "first" else "scale must be finite and not negative"


class _NoNoise(ScoreLaw):
    """The distribution of scores without noise: each is its location."""

    kernel = solve_without_noise


@typing.dataclass_transform(eq_default=False)
class Law(ScoreLaw):
    """A law of noise with mean and scale fixed; the formula of a policy moves and scales it.

    Examples
    --------
    >>> class Logistic(Law):
    ...     def quantile(self, u):
    ...         return np.log(u / (1 - u))
    ...     def cdf(self, x):
    ...         return 1 / (1 + np.exp(-x))
    >>> probability_of_largest(Logistic(), location=[0.0, 1.0], scale=[1.0, 0.5]).round(6)
    array([0.296852, 0.703148])
    """

    word_quantile: ClassVar[Kernel | None] = None
    """A compiled function from a 32-bit word to a draw, which is faster than `quantile`."""

    generator: ClassVar[Generator | None] = None
    """Draws by NumPy, where it has the law."""

    log_tails: ClassVar[Kernel | None] = None
    """A compiled function from x to log P[Z ≤ x] and log P[Z > x], with all their digits."""

    def __init__(self, *arguments: object, **keywords: object) -> None:
        hints = self.parameters()
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        defaults = {name: getattr(type(self), name, inspect.Parameter.empty) for name in hints}
        signature = inspect.Signature([inspect.Parameter(name, kind, default=defaults[name]) for name in hints])
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}{signature}: {error}") from None
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            setattr(self, name, Formula.check(name, value, hints[name]))

    def quantile(self, u: float) -> float:
        """Return the number below which a draw is with probability u, 0 < u < 1."""
        raise TypeError(
            f"{self!r} has no quantile: give it a method quantile(self, u), below which a share u of draws lies"
        )

    def cdf(self, x: float) -> float:
        """Return P[Z ≤ x]."""
        raise TypeError(
            f"{self!r}: its probabilities cannot be computed, because it has no cdf; give its class a method "
            "cdf(self, x) with P[Z ≤ x]"
        )

    def sample(self, random: np.random.Generator, size: int) -> F64:
        """Return draws for one live decision; without a generator made as in the simulator, from random words."""
        generator: Generator | None = self._inherited("generator")
        if generator is not None:
            return generator(random, size)
        return draws(self, random.integers(0, 2**32, size, dtype=u32)).astype(float)

    @property
    def drawn(self) -> Law:
        """The law of each number that is drawn: another one if numbers of different arms depend on each other."""
        return self

    def is_like(self, law: type[Law]) -> bool:
        """Return whether draws are those of ``law``, a class of the library, because quantile and cdf are its."""
        return self._inherited("kernel") is law.kernel

    @classmethod
    @functools.cache
    def _inherited(cls, name: str) -> Any:
        """Return a class attribute such as `kernel`, unless a subclass has replaced quantile or cdf since."""
        for base in cls.__mro__:
            if name in vars(base):
                return getattr(base, name)
            if {"quantile", "word_quantile", "cdf"} & vars(base).keys():
                return None
        return None

    def solver(self) -> Solver:
        kernel: Kernel | None = self._inherited("kernel")
        return _quadrature_solver(self) if kernel is None else kernel.dispatcher or kernel.compiled

    def tails(self) -> Callable[[float], tuple[float, float]]:
        """Return `log_tails`, or the same by the cdf, as a function that compiles."""
        log_tails: Kernel | None = self._inherited("log_tails")
        if log_tails is not None:
            return log_tails
        _find_ends(self)  # raises if the cdf is missing or wrong
        cdf = type(self).cdf
        parameters: Any = _compiled_self(self)

        def log_tails_by_cdf(x: float) -> tuple[float, float]:
            return both_tails(cdf(parameters, x))

        return log_tails_by_cdf

    # The law as a value.

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """Return the annotations of the parameters, by name.

        They are stored in the class: in another process, its module may not be there to look them up in.
        """
        if "_parameter_hints" not in vars(cls):
            globals_of_class = getattr(cls.quantile, "__globals__", {})
            hints = typing.get_type_hints(cls, localns=globals_of_class, include_extras=True)
            cls._parameter_hints = {name: hint for name, hint in hints.items() if not _is_class_variable(hint)}
        return cls._parameter_hints

    _parameter_hints: ClassVar[dict[str, Any]]

    @property
    def values(self) -> dict[str, Any]:
        """The values of the parameters."""
        return {name: getattr(self, name) for name in self.parameters()}

    @classmethod
    def accept(cls, name: str, value: object) -> Law:
        """Return ``value``, given where a law is expected as a parameter, or raise."""
        if isinstance(value, cls):
            return value
        hint = "; call it with its parameters first" if isinstance(value, type) else ""
        raise TypeError(f"{name} must be a noise law such as {EXAMPLES}, got {value!r}{hint}")

    def specification(self) -> dict[str, Any]:
        """Return the law as plain data."""
        described: dict[str, Any] = {"law": _address(type(self)), "code": identity(type(self))}
        if self.values:
            described["parameters"] = {
                name: value.specification() if isinstance(value, Law | Formula) else value
                for name, value in self.values.items()
            }
        return described

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Law) and self.values == other.values

    def __hash__(self) -> int:
        return hash((type(self), *self.values.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"


def _is_class_variable(hint: object) -> bool:
    return hint is ClassVar or typing.get_origin(hint) is ClassVar


def _address(law: type[Law]) -> str:
    """Return ``module:name``, the module being the package if that has the law: so the law may move to another file."""
    package = sys.modules.get(law.__module__.rpartition(".")[0])
    is_public = getattr(package, law.__name__, None) is law
    if package is not None and is_public:
        return f"{package.__name__}:{law.__name__}"
    return f"{law.__module__}:{law.__qualname__}"


# Exact probabilities.


def probability_of_largest(law: ScoreLaw | None, location: ArrayLike, scale: ArrayLike) -> F64:
    """Return the probability of each arm to have the largest of independent scores, location + scale·z.

    With distribution functions F_j and densities f_j of the scores,

        p_i = P[score_i is the largest] = ∫ f_i(x) Π_{j≠i} F_j(x) dx,

    a softmax for Gumbel noise of one scale, else an integral that is computed to nearly all digits, at any locations
    and scales. The files of `rightarm.noise`, one for each law, say how.

    Parameters
    ----------
    law
        The law of z. For `Beta`, the other two arguments are its shapes. None is for scores without noise.
    location, scale
        A number for each arm. Where a scale is zero, the score is its location; ties are fair, and arms at +∞ tie.

    Returns
    -------
    The probabilities. Errors are below 1e-12, for a law of your own below 1e-11, for beta laws below 1e-10.

    Examples
    --------
    >>> from rightarm.noise import Gumbel
    >>> probability_of_largest(Gumbel(), location=[0.0, np.log(3)], scale=[1.0, 1.0])
    array([0.25, 0.75])
    >>> probability_of_largest(Gumbel(), location=[0.6, 0.5], scale=[0.5, 0.05]).round(6)
    array([0.683968, 0.316032])
    """
    first = np.array(location, dtype=float)
    second = np.array(scale, dtype=float)
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        raise ValueError(
            f"location and scale must be two rows of one length, got shapes {first.shape} and {second.shape}"
        )
    scores = score_law(law)
    chance = np.empty(first.size)
    status = scores.solver()(first, second, chance)
    scores.check(status, first, second)
    return chance


NO_NOISE = _NoNoise()


def score_law(law: ScoreLaw | None) -> ScoreLaw:
    """Return the distribution of scores that ``law`` stands for; None are scores without noise."""
    if law is None:
        return NO_NOISE
    if not isinstance(law, ScoreLaw):
        raise TypeError(f"law must be Gumbel(), Gaussian(), Exponential(), Uniform(), Beta() or None, got {law!r}")
    return law


# Draws.


def fill_of_words(quantile: Kernel) -> Function:
    """Return the loop that turns a block of words into draws."""

    def fill(words: NDArray[u32], out: NDArray[f32]) -> None:
        for i in range(words.size):
            out[i] = quantile(words[i])

    return fill


def fill_of_shares(quantile: Function, parameters: tuple[object, ...]) -> Function:
    """Return the loop that turns a block of words into draws, by a quantile of shares: u = (word + ½) / 2³²."""

    def fill(words: NDArray[u32], out: NDArray[f32]) -> None:
        for i in range(words.size):
            out[i] = np.float32(quantile(parameters, (np.float64(words[i]) + 0.5) * PER_WORD))

    return fill


@functools.cache
def compiled_law(law: Law) -> Any:
    """Return the law as a compiled function from words to draws."""
    if law.drawn is not law:
        raise TypeError(f"{law!r} is not drawn for each arm by itself, and this simulation has no other way")
    subject = f"the noise {law}"
    of_word: Kernel | None = law._inherited("word_quantile")
    if of_word is not None:
        return pointer(subject, fill_of_words(of_word), FILL)
    if type(law).quantile is Law.quantile:
        law.quantile(0.5)  # raises
    return pointer(subject, fill_of_shares(type(law).quantile, _compiled_self(law)), FILL)


def _compiled_self(law: Law) -> tuple[object, ...]:
    """Return what stands for ``self`` in compiled code."""
    return collections.namedtuple(type(law).__name__, law.values)(**law.values)


def draws(law: Law, words: NDArray[u32]) -> NDArray[f32]:
    """Return what the compiled law makes of ``words``."""
    out = np.empty(words.shape, f32)
    call_fill(compiled_law(law), words.ravel(), out.reshape(-1))
    return out


@jit
def call_fill(fill: Callable[..., None], words: NDArray[u32], out: NDArray[f32]) -> None:
    """Call a compiled law."""
    fill(words, out)


# Exact probabilities of a law that brings no kernel: by quadrature.


def fill_cdf(cdf: Function, parameters: tuple[object, ...]) -> Function:
    """Return the loop that evaluates a distribution function at a row of numbers."""

    def fill(x: F64, out: F64) -> None:
        for i in range(x.size):
            out[i] = cdf(parameters, x[i])

    return fill


@jit
def both_tails(share: float) -> tuple[float, float]:
    """Return the logarithms of a share and of the rest."""
    return np.log(share), np.log1p(-share)


@functools.cache
def _quadrature_solver(law: Law) -> Solver:
    low, high = _find_ends(law)
    row = pointer(f"the cdf of the noise {law}", fill_cdf(type(law).cdf, _compiled_self(law)), FILL_CDF)
    return functools.partial(quadrature.solve.compiled, row, low, high)


def _find_ends(law: Law) -> tuple[float, float]:
    """Return where the cdf leaves 0 and reaches 1, but for quadrature.CUT; check it against the quantile function."""
    if type(law).cdf is Law.cdf:
        law.cdf(0.0)  # raises
    with np.errstate(all="ignore"):
        shares, z, error = _quantiles(law)
        if not np.isfinite(z).all():
            raise ValueError(f"{law!r}: quantile(u) must be finite for all u between 0 and 1, got {z[~np.isfinite(z)]}")
        found = np.array([float(law.cdf(x)) for x in z])
        worst = int(np.argmax(np.abs(found - shares)))
        if not abs(found[worst] - shares[worst]) < error:
            raise ValueError(
                f"{law!r}: quantile and cdf must be inverse to each other, without jumps, but at "
                f"u = {shares[worst]:.6g} quantile(u) is {z[worst]:.6g}, and cdf of that is {found[worst]:.6g}"
            )
        spread = float(z[-1] - z[0])
        low = quadrature.find_end(lambda x: float(law.cdf(x)), float(z[0]), -spread)
        high = quadrature.find_end(lambda x: 1 - float(law.cdf(x)), float(z[-1]), spread)
        return low, high


def _quantiles(law: Law) -> tuple[F64, F64, float]:
    """Return some shares with the least and the largest, the quantiles there, and how well the cdf must agree."""
    words = np.array([0, *(np.arange(1, CHECKED + 1) * GOLDEN % 2**32), 2**32 - 1]).astype(u32)
    shares = (words.astype(float) + 0.5) * PER_WORD
    if law._inherited("word_quantile") is not None:
        return shares, draws(law, words).astype(float), 1e-5  # float32
    return shares, np.array([float(law.quantile(u)) for u in shares]), 1e-6
