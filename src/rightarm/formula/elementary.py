"""Functions of single numbers that stand for those of NumPy in compiled formulas.

The logarithm and the exponential of the C library are called one number at a time; these here have no branches, so that
a loop over lanes becomes vector code and takes a third of the time. Their errors are below 0.9 and 1.1 units in the
last place; infinities, zeros and NaN are as in NumPy. Numba knows np.clip for arrays only, and makes an array in
np.where.
"""

from __future__ import annotations

import numpy as np

from rightarm.formula.compile import bits_of_double, double_of_bits, fma, stands_for

u64 = np.uint64

LN2_HIGH = 0.6931471803691238  # log 2 in two parts: a multiple of the first is exact
LN2_LOW = 1.9082149292705877e-10
LOG2_E = 1.4426950408889634
ROOT_HALF = u64(0x3FE6A09E667F3BCD)  # √½
ABOVE = u64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)  # from √½ to 1
MANTISSA = u64(0x000FFFFFFFFFFFFF)
WHOLE = u64(0x4330000000000000)  # 2⁵², whose last bits are whole numbers
SHIFT = u64(52)
TINIEST_NORMAL = 2.0**-1022
TWO_TO_54 = 2.0**54
TO_WHOLE = 1.5 * 2.0**52  # added and taken away again, it rounds to a whole number
LARGEST = 709.782712893384  # beyond these, eˣ is infinite or zero
SMALLEST = -745.2


@stands_for(np.clip)
def clip(x: float, low: float, high: float) -> float:
    """Return x where it is between ``low`` and ``high``, else the nearer of them."""
    return np.minimum(np.maximum(x, low), high)


@stands_for(np.where)
def where(condition: bool, x: float, y: float) -> float:
    """Return x where the condition holds, else y."""
    return x if condition else y


@stands_for(np.log)
def log(number: float) -> float:
    """Compute log x = e log 2 + 2 artanh(s) with x = 2ᵉ m, √½ ≤ m < √2, s = (m−1)/(m+1), and a polynomial in s²."""
    x = np.float64(number)
    subnormal = x < TINIEST_NORMAL
    bits = bits_of_double(x * TWO_TO_54 if subnormal else x) + ABOVE
    exponent = double_of_bits((bits >> SHIFT) | WHOLE) - (2.0**52 + 1023 + (54 if subnormal else 0))
    f = double_of_bits((bits & MANTISSA) + ROOT_HALF) - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = 0.14617807153417325
    p = fma(p, z, 0.15331611722055008)
    p = fma(p, z, 0.1818289243253687)
    p = fma(p, z, 0.22222211089379496)
    p = fma(p, z, 0.28571428626253836)
    p = fma(p, z, 0.3999999999989889)
    p = fma(p, z, 0.666666666666667)
    half = 0.5 * f * f  # 2s = f − s·f, and s·f = f²/2 − s·f²/2: so that the large part of the sum is exact
    value = fma(exponent, LN2_HIGH, f - (half - fma(s, fma(z, p, half), exponent * LN2_LOW)))
    value = np.inf if x == np.inf else value
    value = -np.inf if x == 0.0 else value
    return value if x >= 0.0 else np.nan


@stands_for(np.exp)
def exp(number: float) -> float:
    """Compute eˣ = 2ᵏ eʳ with k whole and |r| ≤ log(2)/2, and a polynomial in r."""
    x = np.float64(number)
    inside = LARGEST if x > LARGEST else x
    inside = SMALLEST if inside < SMALLEST else inside
    k, fraction = reduced(inside)
    value = 1.0 + fraction
    half = np.floor(0.5 * k)  # in two steps: 2ᵏ alone may be too large or too small for a number
    value = value * power_of_two(half) * power_of_two(k - half)
    return np.inf if x > LARGEST else value


def power_of_two(k: float) -> float:
    """Return 2ᵏ for a whole k between −1022 and 1023."""
    return double_of_bits(bits_of_double(k + (2.0**52 + 1023)) << SHIFT)


def reduced(x: float) -> tuple[float, float]:
    """Return a whole k, and eʳ − 1 with x = k log 2 + r."""
    k = (x * LOG2_E + TO_WHOLE) - TO_WHOLE
    r = fma(k, -LN2_LOW, fma(k, -LN2_HIGH, x))
    p = 2.5100472505694996e-08
    p = fma(p, r, 2.7620201591031547e-07)
    p = fma(p, r, 2.7557268276905696e-06)
    p = fma(p, r, 2.4801521057868204e-05)
    p = fma(p, r, 0.00019841269863171557)
    p = fma(p, r, 0.0013888888917367081)
    p = fma(p, r, 0.008333333333330039)
    p = fma(p, r, 0.041666666666623824)
    p = fma(p, r, 0.16666666666666669)
    p = fma(p, r, 0.5000000000000001)
    return k, fma(r * r, p, r)


def expm1(x: float) -> float:
    """Return eˣ − 1 for |x| ≤ 700, with its digits where x is small."""
    k, fraction = reduced(x)
    power = power_of_two(k)
    return fma(power, fraction, power - 1.0)


def log1p(x: float) -> float:
    """Return log(1 + x), with its digits where x is small; what 1 + x is rounded by is given back."""
    y = 1.0 + x
    return log(y) + (x - (y - 1.0)) / y
