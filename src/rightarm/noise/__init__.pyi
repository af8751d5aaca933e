# Written by `python -m rightarm.stubs`.

from typing import Any

__all__: list[str]
LAWS: dict[str, Any]
from rightarm.noise.beta import Beta as Beta
from rightarm.noise.exponential import Exponential as Exponential
from rightarm.noise.gaussian import Gaussian as Gaussian
from rightarm.noise.gumbel import Gumbel as Gumbel
from rightarm.noise.gaussian import HalfGaussian as HalfGaussian
from rightarm.noise.joint import Joint as Joint
from rightarm.noise.law import Law as Law
from rightarm.noise.law import ScoreLaw as ScoreLaw
from rightarm.noise.shared import Shared as Shared
from rightarm.noise.uniform import Uniform as Uniform
from rightarm.noise.law import probability_of_largest as probability_of_largest
