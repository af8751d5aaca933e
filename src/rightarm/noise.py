"""The laws of a policy's noise, each as a formula from 32 random bits to one draw.

A law is its quantile function at ``(word + ½) / 2³²``: one word in, one float32 out, without a branch, so that LLVM
turns the loop over a block into vector code. There are only 2³² words, and the tests go through all of them: the
largest error of a draw is 1.1e-6 (Gumbel) and 1.7e-6 (Gaussian), in the tails, and all tails reach as far as 2⁻³³.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rightarm.formula.compile import bits_of_float, float_of_bits, fma, jit, pointer
from rightarm.formula.identity import identity

f32 = np.float32
i32 = np.int32
u32 = np.uint32

# log(1+f) = f − f²/2 + f³·P(f) on [√½ − 1, √2 − 1] with relative error 6e-9: coefficients of P, highest power first,
# of least maximum error (found by Lawson's iteration). The same for the two Gaussian polynomials below.
LOG_7, LOG_6, LOG_5, LOG_4 = f32(-0.07634499), f32(0.12761578), f32(-0.13160183), f32(0.14201757)
LOG_3, LOG_2, LOG_1, LOG_0 = f32(-0.16623357), f32(0.20001227), f32(-0.2500082), f32(0.33333331)
LOG_OF_2 = f32(math.log(2))
SQRT_HALF_BITS = u32(0x3F3504F3)  # √½ as a float32
PER_WORD = f32(2.0**-32)
TAIL = f32(6.0)  # −log(4q(1−q)) from which the second Gaussian polynomial is used: q < 0.0006


@jit
def log1p(f: f32) -> f32:
    """log(1 + f) for a small f, right to its last bits even where 1 + f would round."""
    p = fma(fma(fma(fma(LOG_7, f, LOG_6), f, LOG_5), f, LOG_4), f, LOG_3)
    p = fma(fma(fma(p, f, LOG_2), f, LOG_1), f, LOG_0)
    return fma(f * f, fma(p, f, f32(-0.5)), f)


@jit
def split(x: f32) -> tuple[f32, f32]:
    """x = 2ᵉ·(1 + f) with 1 + f between √½ and √2: returns e and f."""
    bits = bits_of_float(x)
    exponent = i32(u32(bits - SQRT_HALF_BITS)) >> i32(23)
    mantissa = float_of_bits(u32(bits - (u32(exponent) << u32(23))))
    return f32(exponent), mantissa - f32(1)


@jit
def log(x: f32) -> f32:
    """log x; Numba's own costs six times as much, because it is not vectorised."""
    exponent, f = split(x)
    return fma(exponent, LOG_OF_2, log1p(f))


@jit
def share(word: u32) -> f32:
    """(word + ½) / 2³², small values with all their digits."""
    return (f32(word) + f32(0.5)) * PER_WORD


@jit
def exponential(word: u32) -> f32:
    """−log(1 − u) at u = share(word).

    Near u = 0 a float32 of 1 − u has lost the digits that matter; there it is taken as −log1p(−u).
    """
    below = share(word)
    exponent, f = split(share(u32(~word)))
    lower = below < f32(0.25)
    f = -below if lower else f
    exponent = f32(0) if lower else exponent
    return -fma(exponent, LOG_OF_2, log1p(f))


@jit
def centred(word: u32) -> f32:
    """u − ½ at u = share(word), small values with all their digits."""
    return (f32(i32(word ^ u32(0x80000000))) + f32(0.5)) * PER_WORD


@jit
def uniform(word: u32) -> f32:
    """2u − 1 at u = share(word)."""
    return f32(2) * centred(word)


@jit
def gumbel(word: u32) -> f32:
    """−log(−log u) at u = share(word), −log u being the exponential law at 1 − u."""
    return -log(exponential(u32(~word)))


@jit
def gaussian(word: u32) -> f32:
    """Φ⁻¹(u) at u = share(word), as (u − ½)·P(w) with w = −log(4u(1−u)) (the variable of Giles 2010)."""
    below, above = share(word), share(u32(~word))
    tail = below if below < above else above
    middle = centred(word)
    w_centre, w_tail = -log1p(f32(-4) * middle * middle), -log(f32(4) * tail * (f32(1) - tail))
    w = w_centre if tail > f32(0.25) else w_tail
    x = w - f32(3)
    p = fma(fma(fma(f32(9.5248765e-07), x, f32(-5.5653013e-06)), x, f32(-3.3811742e-05)), x, f32(5.5426819e-04))
    p = fma(fma(fma(fma(p, x, f32(-2.3703941e-03)), x, f32(-1.6233757e-02)), x, f32(6.8343747e-01)), x, f32(4.5920711))
    y = np.sqrt(w) - f32(3.5)
    q = fma(fma(fma(f32(-5.4189871e-04), y, f32(1.5639042e-03)), y, f32(-2.0529970e-03)), y, f32(2.8831353e-03))
    q = fma(fma(fma(fma(q, y, f32(-5.7850913e-03)), y, f32(9.3125617e-03)), y, f32(2.8492646)), y, f32(9.4341764))
    return middle * (p if w < TAIL else q)


def fill(words: NDArray[u32], out: NDArray[f32]) -> None:
    """The template of a compiled law: a block of words to a block of draws."""
    for i in range(words.size):
        out[i] = quantile(words[i])


def quantile(word: u32) -> f32:
    """Stands in `fill` for the quantile function of a law."""
    raise NotImplementedError


FILL = "void(uint32[::1], float32[::1])"


class Law:
    """A law of noise with mean and scale fixed; a policy moves and scales it in its own formula."""

    quantile: ClassVar[Callable[[u32], f32]]

    def cdf(self, x: float) -> float:
        """P[Z ≤ x]."""
        raise NotImplementedError

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draws by NumPy, for one live decision."""
        raise NotImplementedError

    @classmethod
    def accept(cls, name: str, value: Any) -> Law:
        """``value`` where a law is expected as a parameter."""
        if isinstance(value, cls):
            return value
        known = ", ".join(f"{law.__name__}()" for law in Law.__subclasses__())
        raise TypeError(f"{name} must be a law of noise such as {known}, got {value!r}")

    def specification(self) -> dict[str, str]:
        """The law as plain data."""
        return {"law": f"{type(self).__module__}:{type(self).__qualname__}", "code": identity(type(self))}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Gumbel(Law):
    """The Gumbel law with location 0 and scale 1: P[Z ≤ x] = exp(−e⁻ˣ).

    Its mean is γ = 0.577. The paper calls the law with location +γ standard; a policy that wants it adds γ itself.

    >>> round(Gumbel().cdf(0.0), 4)
    0.3679
    """

    quantile = gumbel

    def cdf(self, x: float) -> float:
        return math.exp(-math.exp(-x))

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:
        return random.gumbel(size=size)


class Gaussian(Law):
    """The standard Gaussian law.

    >>> Gaussian().cdf(0.0)
    0.5
    """

    quantile = gaussian

    def cdf(self, x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:
        return random.standard_normal(size)


class Exponential(Law):
    """The exponential law with mean 1.

    >>> round(Exponential().cdf(1.0), 4)
    0.6321
    """

    quantile = exponential

    def cdf(self, x: float) -> float:
        return -math.expm1(-x) if x > 0 else 0.0

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:
        return random.standard_exponential(size)


class Uniform(Law):
    """The uniform law on (−1, 1).

    >>> Uniform().cdf(0.5)
    0.75
    """

    quantile = uniform

    def cdf(self, x: float) -> float:
        return min(1.0, max(0.0, (1 + x) / 2))

    def sample(self, random: np.random.Generator, size: int) -> NDArray[np.float64]:
        return random.uniform(-1.0, 1.0, size)


@functools.cache
def compiled_law(law: Law) -> Any:
    """The law as a compiled function from words to draws."""
    return pointer(f"the noise {law}", fill, FILL, quantile=type(law).quantile)
