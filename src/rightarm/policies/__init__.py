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
from rightarm.policies.maillard import Maillard
from rightarm.policies.policy import Policy, policy
from rightarm.policies.thompson import GaussianThompson
from rightarm.policies.ucb import MOSS, UCB, UCB1, AnytimeMOSS

__all__ = [
    "MOSS",
    "UCB",
    "UCB1",
    "AnytimeMOSS",
    "Boltzmann",
    "BoltzmannGumbel",
    "GaussianThompson",
    "Maillard",
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
