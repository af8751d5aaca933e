"""Conclusions from rewards, at any time and whatever chose the arms: intervals, differences, the best arm."""

from rightarm.inference.coefficients import Coefficients
from rightarm.inference.comparisons import Best, Difference, best, difference, harm, weighted_difference
from rightarm.inference.sequences import Means, means

__all__ = ["Best", "Coefficients", "Difference", "Means", "best", "difference", "harm", "means", "weighted_difference"]
