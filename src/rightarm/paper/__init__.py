"""The paper's claims: for each an experiment file with the claim, `theorem4.toml`, and a function that judges it."""

from rightarm.paper.finding import studies

STUDIES = studies()
