"""The estimators: what rewards say about an arm. `Mean`, `Catoni`, `MedianOfMeans`, `Linear`, `Logistic`, one's own."""

from rightarm.estimators.catoni import Catoni, CatoniEstimator
from rightarm.estimators.estimator import FORGETTING, Estimator
from rightarm.estimators.linear import Linear
from rightarm.estimators.logistic import Logistic
from rightarm.estimators.mean import Mean
from rightarm.estimators.median import MedianOfMeans
from rightarm.estimators.sums import psi

# by these names experiment files know them
NAMED: dict[str, type[Estimator]] = {"mean": Mean, "catoni": Catoni, "median": MedianOfMeans}

__all__ = [
    "FORGETTING",
    "NAMED",
    "Catoni",
    "CatoniEstimator",
    "Estimator",
    "Linear",
    "Logistic",
    "Mean",
    "MedianOfMeans",
    "psi",
]
