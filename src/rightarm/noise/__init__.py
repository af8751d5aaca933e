"""Noise laws, a file each: how the noise of a policy is drawn, and the exact probabilities that follow from it.

A draw is the quantile function at ``(word + ½) / 2³²``: 32 random bits in, one float32 out. There are only 2³² words,
and the tests go through all of them: the largest error of a draw is 1.1e-6 (Gumbel) and 1.7e-6 (Gaussian), in the
tails, and all tails reach as far as 2⁻³³.

A law that stands in any file of this package is public by itself: here, on the command line and in experiment files.
"""

from rightarm.discovery import defined_in
from rightarm.noise.law import Law, ScoreLaw, probability_of_largest


def _is_law(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, ScoreLaw)


_CLASSES: dict[str, type[ScoreLaw]] = defined_in(__name__, _is_law)
LAWS: dict[str, type[Law]] = {name: law for name, law in _CLASSES.items() if issubclass(law, Law) and law is not Law}
globals().update(_CLASSES)

__all__ = ["LAWS", "probability_of_largest", *_CLASSES]
