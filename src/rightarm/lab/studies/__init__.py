"""The paper's claims, a file for each."""

from rightarm.lab.studies import corollary1, proposition1, theorem2, theorem3, theorem4, theorem5
from rightarm.lab.study import Study

STUDIES: tuple[Study, ...] = tuple(
    module.STUDY for module in (proposition1, theorem2, theorem3, theorem4, corollary1, theorem5)
)
