"""Formulas of a user's own, as they stood when the files beside this one were written by rightarm 0.1.0."""

import numpy as np

import rightarm as ra


@ra.policy(noise=ra.noise.Gumbel())
def Cautious(t, pulls, mean, z, *, C: ra.Positive = 1.0):  # type: ignore[no-untyped-def]
    """Perturb the mean by Gumbel noise that shrinks a little faster than in Boltzmann–Gumbel exploration."""
    return mean + C / np.sqrt(pulls + np.log(t)) * z


@ra.problem
def Triangular(u, v, *, mean: float):  # type: ignore[no-untyped-def]
    """Pay the mean and the sum of two uniform numbers."""
    return mean + u + v - 1
