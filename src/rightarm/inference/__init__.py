"""What the rewards of arms prove, at any time and whatever chose the arms: intervals, differences, the best arm."""

from rightarm.inference.coefficients import Coefficients
from rightarm.inference.comparisons import Best, Difference, best, difference, harm
from rightarm.inference.sequences import Means, means
from rightarm.inference.weighted import weighted_difference

__all__ = ["Best", "Coefficients", "Difference", "Means", "best", "difference", "harm", "means", "weighted_difference"]
