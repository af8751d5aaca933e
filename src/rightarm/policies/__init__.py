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
from rightarm.policies.exp3pp2017 import EXP3PlusPlus2017
from rightarm.policies.exponential import EXP3, EXP3PlusPlus, SoftMix
from rightarm.policies.greedy import EpsilonGreedy, ExploreThenCommit, decreasing
from rightarm.policies.gumbel import BoltzmannGumbel, PerturbedMean, ResidualGumbel, ScaledGumbel
from rightarm.policies.inverse_gap import SquareCB, increasing
from rightarm.policies.kl import KLMS, KLUCB, GaussianKLUCB
from rightarm.policies.maillard import LinMED, Maillard
from rightarm.policies.robust import APE2, catoni_ucb, median_ucb
from rightarm.policies.thompson import BetaThompson, GaussianThompson, LinTS, logistic_thompson
from rightarm.policies.ucb import MOSS, UCB, UCB1, AnytimeMOSS, RandUCB, RobustUCB, UCBImproved
from rightarm.scores.policy import Policy, policy, probabilities

__all__ = [
    "APE2",
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
    "EXP3PlusPlus2017",
    "EpsilonGreedy",
    "ExploreThenCommit",
    "GaussianKLUCB",
    "GaussianThompson",
    "LinMED",
    "LinTS",
    "Maillard",
    "PerturbedMean",
    "Policy",
    "RandUCB",
    "ResidualGumbel",
    "RobustUCB",
    "ScaledGumbel",
    "Schedule",
    "SoftMix",
    "SquareCB",
    "UCBImproved",
    "catoni_ucb",
    "constant",
    "decreasing",
    "glie",
    "increasing",
    "inverse_log",
    "inverse_sqrt",
    "logistic_thompson",
    "median_ucb",
    "policy",
    "probabilities",
    "schedule",
    "two_phase",
]
