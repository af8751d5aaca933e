"""The policies, a file for each family; each is one formula."""

from rightarm.policies.boltzmann import (
    Boltzmann,
    Schedule,
    constant,
    glie,
    inverse_log,
    inverse_sqrt,
    schedule,
    two_phase,
)
from rightarm.policies.gumbel import BoltzmannGumbel
from rightarm.policies.policy import Policy, policy
from rightarm.policies.ucb import UCB

__all__ = [
    "UCB",
    "Boltzmann",
    "BoltzmannGumbel",
    "Policy",
    "Schedule",
    "constant",
    "glie",
    "inverse_log",
    "inverse_sqrt",
    "policy",
    "schedule",
    "two_phase",
]
