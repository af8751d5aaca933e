"""`connect`: the verbs of a bandit on a decision service."""
