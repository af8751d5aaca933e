"""The estimators: what an arm's rewards say about its mean. `Mean`, `Catoni`, `MedianOfMeans`, `Linear`, one's own."""

from rightarm.estimators.catoni import Catoni, CatoniEstimator
from rightarm.estimators.estimator import FORGETTING, Estimator
from rightarm.estimators.linear import Linear
from rightarm.estimators.mean import Mean
from rightarm.estimators.median import MedianOfMeans
from rightarm.estimators.sums import psi

# by these names experiment files know them, and what 0.1.0 saved
NAMED: dict[str, type[Estimator]] = {"mean": Mean, "catoni": Catoni, "median": MedianOfMeans}

__all__ = ["FORGETTING", "NAMED", "Catoni", "CatoniEstimator", "Estimator", "Linear", "Mean", "MedianOfMeans", "psi"]
