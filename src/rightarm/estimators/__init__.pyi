# Written by `python -m rightarm.stubs`.

from rightarm.estimators.means import Catoni as Catoni
from rightarm.estimators.estimator import Estimator as Estimator
from rightarm.estimators.features import Features as Features
from rightarm.estimators.linear import Linear as Linear
from rightarm.estimators.linear import Logistic as Logistic
from rightarm.estimators.means import Mean as Mean
from rightarm.estimators.means import MedianOfMeans as MedianOfMeans

__all__: list[str]
ESTIMATORS: dict[str, type[Estimator]]
NAMED: dict[str, type[Estimator]]
