"""The paper's claims: for each an experiment file, `theorem4.toml`, and beside it a judge, `theorem4.py`."""

from rightarm.lab.paper import (
    catoni,
    corollary1,
    figure1,
    glie,
    greedy,
    heavy_tails,
    lemmas,
    monotone,
    proposition1,
    rates,
    theorem2,
    theorem3,
    theorem4,
    theorem5,
    theorem6,
    underestimated,
)
from rightarm.lab.paper.finding import Study

STUDIES: tuple[Study, ...] = tuple(
    module.STUDY
    for module in (
        glie,
        proposition1,
        theorem2,
        monotone,
        greedy,
        theorem3,
        lemmas,
        theorem4,
        underestimated,
        corollary1,
        rates,
        theorem5,
        catoni,
        theorem6,
        heavy_tails,
        figure1,
    )
)
