"""The paper's claims: for each an experiment file, `theorem4.toml`, and beside it a judge, `theorem4.py`."""

from rightarm.lab.paper import (
    corollary1,
    figure1,
    heavy_tails,
    proposition1,
    theorem2,
    theorem3,
    theorem4,
    theorem5,
    theorem6,
)
from rightarm.lab.paper.finding import Study

STUDIES: tuple[Study, ...] = tuple(
    module.STUDY
    for module in (
        proposition1,
        theorem2,
        theorem3,
        theorem4,
        corollary1,
        theorem5,
        theorem6,
        heavy_tails,
        figure1,
    )
)
