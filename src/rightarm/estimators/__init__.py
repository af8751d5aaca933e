"""The estimators: what an arm's rewards say about its mean."""

from rightarm.estimators.catoni import CatoniEstimator
from rightarm.estimators.sums import psi

__all__ = ["CatoniEstimator", "psi"]
