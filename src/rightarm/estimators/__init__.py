"""The estimators: what an arm's rewards say about its mean. `Mean`, `Catoni`, and what one's own is made of."""

from rightarm.estimators.catoni import Catoni, CatoniEstimator
from rightarm.estimators.estimator import FORGETTING, Estimator
from rightarm.estimators.mean import Mean
from rightarm.estimators.sums import psi

NAMED: dict[str, type[Estimator]] = {"mean": Mean, "catoni": Catoni}  # for experiment files and what 0.1.0 saved

__all__ = ["FORGETTING", "NAMED", "Catoni", "CatoniEstimator", "Estimator", "Mean", "psi"]
