"""What a law of noise is, for the simulator and for live decisions; a law of one's own is a small class.

    class Logistic(ra.noise.Law):
        def quantile(self, u):  # of a share u between 0 and 1: what the simulator draws
            return np.log(u / (1 - u))

        def cdf(self, x):  # P[Z ≤ x]: what exact probabilities are computed from
            return 1 / (1 + np.exp(-x))

Both are compiled and called with one number at a time, so that branches and loops are allowed as well. Parameters are
annotated names of the class, ``df: Positive = 3.0``, and read as ``self.df``.

A law of the library is a file of this folder: its quantile function as a float32 formula of a random word
(`rightarm.noise.words`), and its own fast way to the probabilities in place of `rightarm.noise.quadrature`.
"""

from __future__ import annotations

import builtins
import collections
import functools
import inspect
import sys
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rightarm.formula import Formula, define
from rightarm.formula.compile import Kernel, jit, pointer
from rightarm.formula.identity import identity
from rightarm.noise import quadrature
from rightarm.noise.contenders import BAD_FIRST, BAD_SECOND, of_fixed
from rightarm.types import F64

f32 = np.float32
u32 = np.uint32

FILL = "void(uint32[::1], float32[::1])"
PER_WORD = 2.0**-32
LEVELS, GOLDEN = 100, 2654435769  # shares at which cdf and quantile are compared: multiples of the golden ratio
KNOWN = "Gumbel(), Gaussian(), Exponential() or Uniform()"


class ScoreLaw:
    """The law of a score, which is known by two numbers for each arm: location and scale, or others."""

    kernel: ClassVar[Kernel | None] = None
    """Compiled: puts the probabilities of arms, of two rows of numbers, in a third; below 1 if something is wrong."""

    def chances(self) -> Any:
        """The compiled function that `kernel` is."""
        assert self.kernel is not None
        return self.kernel.dispatcher or self.kernel.compiled

    correlates: ClassVar[bool] = False
    """Whether the scores of arms hang together as their predictions in a context do: then `together` finds chances."""

    def together(self) -> Any:
        """The compiled function from two rows of numbers, and the vectors of predictions (`arrowhead.vectors`), to
        probabilities: it returns what `chances` does, and by how much the probabilities may be wrong."""
        raise NotImplementedError

    def keeping(self) -> Any:
        """`chances` for one bandit, which may keep what it has computed; the results are the same."""
        return self.chances()

    def check(self, found: int, first: F64, second: F64) -> None:
        """Raise if ``found``, what `chances` returned, says that something is wrong."""
        if found > 0:
            return
        if found in (BAD_FIRST, BAD_SECOND):
            row, wrong = ("first", first) if found == BAD_FIRST else ("second", second)
            raise ValueError(f"{self.complaint(row)}, got {wrong.tolist()}")
        raise ValueError(
            f"{self!r}: {quadrature.COMPLAINTS[found]}; at the locations {first.tolist()} and scales {second.tolist()}"
        )

    def complaint(self, row: str) -> str:
        """What the numbers of the first or second row must be."""
        return {
            "first": "location must be a number",
            "second": "scale must be finite and not negative",
        }[row]


class Fixed(ScoreLaw):
    """Scores without noise: each is its location."""

    kernel = of_fixed


class Law(ScoreLaw):
    """A law of noise with mean and scale fixed; a policy moves and scales it in its own formula.

    >>> class Logistic(Law):
    ...     def quantile(self, u):
    ...         return np.log(u / (1 - u))
    ...     def cdf(self, x):
    ...         return 1 / (1 + np.exp(-x))
    >>> from rightarm.propensity import of_largest
    >>> of_largest(Logistic(), location=[0.0, 1.0], scale=[1.0, 0.5]).round(6)
    array([0.296852, 0.703148])
    """

    quantile: ClassVar[Any] = None
    """A method ``quantile(self, u)`` with 0 < u < 1; or a compiled function of a 32-bit word, without ``self``."""

    generator: ClassVar[staticmethod[[np.random.Generator, int], F64] | None] = None
    """NumPy's own way to so many draws, where it has one."""

    log_tails: ClassVar[Kernel | None] = None
    """Compiled: log P[Z ≤ x] and log P[Z > x], with all their digits."""

    __law_parameters__: ClassVar[dict[str, Any]]

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        hints, kind = self.parameters(), inspect.Parameter.POSITIONAL_OR_KEYWORD
        defaults = {name: getattr(type(self), name, inspect.Parameter.empty) for name in hints}
        signature = inspect.Signature([inspect.Parameter(name, kind, default=defaults[name]) for name in hints])
        try:
            bound = signature.bind(*arguments, **keywords)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}{signature}: {error}") from None
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            setattr(self, name, Formula.check(name, value, hints[name]))

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """The annotated names of the class, with their annotations.

        Kept in the class: in another process that it is sent to, its module may not be there to look them up in.
        """
        if "__law_parameters__" not in vars(cls):
            cls.__law_parameters__ = _parameters(cls)
        return cls.__law_parameters__

    @property
    def values(self) -> dict[str, Any]:
        """The values of the parameters."""
        return {name: getattr(self, name) for name in self.parameters()}

    @property
    def drawn(self) -> Law:
        """The law of each number that is drawn: itself, unless it says how those of different arms hang together."""
        return self

    def cdf(self, x: Any) -> Any:
        """P[Z ≤ x]."""
        raise NotImplementedError(f"{self!r} has no cdf: give it a method cdf(self, x), P[Z ≤ x]")

    def sample(self, random: np.random.Generator, size: int) -> F64:
        """Draws for one live decision; without a generator made as in the simulator, from random words."""
        generator = self._fitting("generator")
        if generator is not None:
            drawn: F64 = generator(random, size)
            return drawn
        return draws(self, random.integers(0, 2**32, size, dtype=u32)).astype(float)

    def is_like(self, law: type[Law]) -> bool:
        """Whether its draws are those of ``law``, a class of the library: it has no quantile or cdf of its own."""
        return self._fitting("kernel") is law.kernel

    @classmethod
    @functools.cache
    def _fitting(cls, name: str) -> Any:
        """A class attribute such as `kernel`, unless a subclass has another quantile or cdf than the class it is of."""
        for base in cls.__mro__:
            if name in vars(base):
                return getattr(base, name)
            if {"quantile", "cdf"} & vars(base).keys():
                return None
        return None

    # Exact probabilities.

    def chances(self) -> Any:
        kernel = self._fitting("kernel")
        return _chances(self) if kernel is None else kernel.dispatcher or kernel.compiled

    def tails(self) -> Any:
        """`log_tails`, or the same by the cdf: a function of one number that compiles."""
        compiled = self._fitting("log_tails")
        if compiled is not None:
            return compiled
        _checked_ends(self)
        names = {"both_tails": both_tails, "cdf": type(self).cdf, "parameters": _self(self)}
        return define("log_tails", "x", "both_tails(cdf(parameters, x))", names)

    # The law as a value.

    @classmethod
    def accept(cls, name: str, value: Any) -> Law:
        """``value`` where a law is expected as a parameter."""
        if isinstance(value, cls):
            return value
        hint = "; call it with its parameters first" if isinstance(value, type) else ""
        raise TypeError(f"{name} must be a law of noise such as {KNOWN}, got {value!r}{hint}")

    def specification(self) -> dict[str, Any]:
        """The law as plain data."""
        described = {"law": f"{type(self).__module__}:{type(self).__qualname__}", "code": identity(type(self))}
        values = {name: v.specification() if hasattr(v, "specification") else v for name, v in self.values.items()}
        return {**described, "parameters": values} if values else described

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Law) and self.values == other.values

    def __hash__(self) -> int:
        return hash((type(self), *self.values.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"


def _parameters(law: type[Law]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(law.__mro__[: law.__mro__.index(Law)]):
        found |= inspect.get_annotations(base)
    hints = {name: hint for name, hint in found.items() if "ClassVar" not in str(hint)}
    names = {**vars(sys.modules.get(law.__module__, builtins)), **getattr(law.quantile, "__globals__", {})}
    return {name: eval(hint, names) if isinstance(hint, str) else hint for name, hint in hints.items()}


# Draws.


def fill(words: NDArray[u32], out: NDArray[f32]) -> None:
    """The template of a compiled law: a block of words to a block of draws."""
    for i in range(words.size):
        out[i] = quantile(words[i])


def fill_by_share(words: NDArray[u32], out: NDArray[f32]) -> None:
    """The template of a law whose quantile is a function of a share: u = (word + ½) / 2³²."""
    for i in range(words.size):
        out[i] = np.float32(quantile(parameters, (np.float64(words[i]) + 0.5) * PER_WORD))


def quantile(*arguments: Any) -> f32:
    """Stands in the templates for the quantile function of a law."""
    raise NotImplementedError


def cdf(parameters: Any, x: float) -> float:
    """Stands in the template for the distribution function of a law."""
    raise NotImplementedError


parameters: Any = None  # stands for the values of a law's parameters, as its ``self``


@functools.cache
def compiled_law(law: Law) -> Any:
    """The law as a compiled function from words to draws."""
    if law.drawn is not law:
        raise TypeError(f"{law!r} is not drawn for each arm by itself, and this simulation knows no other way")
    made, subject = type(law).quantile, f"the noise {law}"
    if made is None:
        raise TypeError(f"{law!r} has no quantile: give it a method quantile(self, u), what it draws at a share u")
    if _is_of_words(made):
        return pointer(subject, fill, FILL, quantile=made)
    return pointer(subject, fill_by_share, FILL, quantile=made, parameters=_self(law))


def _is_of_words(quantile: Any) -> bool:
    """Whether a quantile function takes 32 random bits, as those of the library do, and not ``self`` and a share."""
    return isinstance(quantile, Kernel) or len(inspect.signature(quantile).parameters) == 1


def _self(law: Law) -> Any:
    """What stands for ``self`` in compiled code."""
    return collections.namedtuple(type(law).__name__, law.values)(**law.values)


def draws(law: Law, words: NDArray[u32]) -> NDArray[f32]:
    """What the compiled law makes of ``words``."""
    out = np.empty(words.shape, f32)
    call_fill(compiled_law(law), words.ravel(), out.reshape(-1))
    return out


@jit
def call_fill(fill: Any, words: NDArray[u32], out: NDArray[f32]) -> None:
    """Call a compiled law."""
    fill(words, out)


# Exact probabilities of a law that brings no way of its own.


def cdf_of_row(x: F64, out: F64) -> None:
    """The template of a compiled distribution function."""
    for i in range(x.size):
        out[i] = cdf(parameters, x[i])


@jit
def both_tails(share: float) -> tuple[float, float]:
    """The logarithms of a share and of the rest."""
    return np.log(share), np.log1p(-share)


@functools.cache
def _chances(law: Law) -> Any:
    subject, low, high = f"the cdf of the noise {law}", *_checked_ends(law)
    row = pointer(subject, cdf_of_row, "void(float64[::1], float64[::1])", cdf=type(law).cdf, parameters=_self(law))
    return functools.partial(quadrature.of_largest.compiled, row, low, high)


def _checked_ends(law: Law) -> tuple[float, float]:
    """Where the cdf leaves 0 and reaches 1, but for quadrature.CUT; checked against the quantile function."""
    if type(law).cdf is Law.cdf:
        raise TypeError(
            f"{law!r}: its probabilities are not known, because it has no cdf; give its class a method cdf(self, x) "
            "with P[Z ≤ x]"
        )
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
        return (
            quadrature.end(lambda x: float(law.cdf(x)), float(z[0]), -spread),
            quadrature.end(lambda x: 1 - float(law.cdf(x)), float(z[-1]), spread),
        )


def _quantiles(law: Law) -> tuple[F64, F64, float]:
    """Some shares with the least and the largest, the quantiles there, and how well the cdf must agree with them."""
    words = np.array([0, *(np.arange(1, LEVELS + 1) * GOLDEN % 2**32), 2**32 - 1]).astype(u32)
    shares = (words.astype(float) + 0.5) * PER_WORD
    if _is_of_words(type(law).quantile):
        return shares, draws(law, words).astype(float), 1e-5  # float32
    return shares, np.array([float(law.quantile(u)) for u in shares]), 1e-6
