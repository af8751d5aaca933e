"""The paper's claims, a file for each."""

from rightarm.lab.studies import (
    corollary1,
    heavy_tails,
    proposition1,
    theorem2,
    theorem3,
    theorem4,
    theorem5,
    theorem6,
)
from rightarm.lab.study import Study

STUDIES: tuple[Study, ...] = tuple(
    module.STUDY for module in (proposition1, theorem2, theorem3, theorem4, corollary1, theorem5, theorem6, heavy_tails)
)
