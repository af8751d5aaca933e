"""The laws of a policy's noise: one file a law, with its draws and the probabilities that follow from it.

A law is its quantile function at ``(word + ½) / 2³²``: 32 random bits in, one float32 out. There are only 2³² words,
and the tests go through all of them: the largest error of a draw is 1.1e-6 (Gumbel) and 1.7e-6 (Gaussian), in the
tails, and all tails reach as far as 2⁻³³.
"""

from rightarm.noise.beta import Beta
from rightarm.noise.exponential import Exponential
from rightarm.noise.gaussian import Gaussian
from rightarm.noise.gumbel import Gumbel
from rightarm.noise.half_gaussian import HalfGaussian
from rightarm.noise.joint import Joint
from rightarm.noise.law import Fixed, Law, ScoreLaw, compiled_law
from rightarm.noise.shared import Shared
from rightarm.noise.uniform import Uniform

__all__ = [
    "Beta",
    "Exponential",
    "Fixed",
    "Gaussian",
    "Gumbel",
    "HalfGaussian",
    "Joint",
    "Law",
    "ScoreLaw",
    "Shared",
    "Uniform",
    "compiled_law",
]

for law in (Exponential, Gaussian, Gumbel, HalfGaussian, Joint, Shared, Uniform):
    law.__module__ = __name__  # the address under which a law is saved does not name its file
del law
