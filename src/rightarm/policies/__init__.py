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
from rightarm.policies.exponential import EXP3, EXP3PlusPlus, SoftMix
from rightarm.policies.greedy import EpsilonGreedy, ExploreThenCommit, decreasing
from rightarm.policies.gumbel import BoltzmannGumbel, PerturbedMean, ScaledGumbel
from rightarm.policies.kl import KLMS, KLUCB, GaussianKLUCB
from rightarm.policies.maillard import Maillard
from rightarm.policies.thompson import BetaThompson, GaussianThompson
from rightarm.policies.ucb import MOSS, UCB, UCB1, AnytimeMOSS, RobustUCB, UCBImproved
from rightarm.scores.policy import Policy, policy, probabilities

__all__ = [
    "EXP3",
    "KLMS",
    "KLUCB",
    "MOSS",
    "UCB",
    "UCB1",
    "AnytimeMOSS",
    "BetaThompson",
    "Boltzmann",
    "BoltzmannGumbel",
    "EXP3PlusPlus",
    "EpsilonGreedy",
    "ExploreThenCommit",
    "GaussianKLUCB",
    "GaussianThompson",
    "Maillard",
    "PerturbedMean",
    "Policy",
    "RobustUCB",
    "ScaledGumbel",
    "Schedule",
    "SoftMix",
    "UCBImproved",
    "constant",
    "decreasing",
    "glie",
    "inverse_log",
    "inverse_sqrt",
    "policy",
    "probabilities",
    "schedule",
    "two_phase",
]
