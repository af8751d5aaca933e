"""The moments of rewards: in closed form where a problem's family has one, or by quadrature over its noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rightarm.types import F64

if TYPE_CHECKING:
    from rightarm.problems.problem import Problem

QUADRATURE = 1 << 20  # points behind a moment that is not given in closed form
PRECISION = 2e-5  # of the standard deviation of what is averaged, to which such a moment must be certain


def moments(problem: Problem, name: str, closed: Callable[..., Any] | None, power: int) -> F64:
    """A moment of every arm: ``closed`` of the parameters, or by quadrature where that is not given."""
    if closed is not None:
        values = {name: np.array(value) for name, value in problem.values.items()}
        with np.errstate(over="ignore"):  # an infinite moment is a value; `Problem.means` refuses it
            moments = np.broadcast_to(np.asarray(closed(**values), dtype=float), (problem.arms,)).copy()
    else:
        rows = list(zip(*problem.values.values(), strict=True))
        alike = rows if "arm" not in problem.inputs else list(range(problem.arms))  # equal arms are integrated once
        arms = {row: arm for arm, row in enumerate(alike)}
        found = {row: _by_quadrature(problem, name, arm, power) for row, arm in arms.items()}
        moments = np.array([found[row] for row in alike])
    moments.setflags(write=False)
    return moments


def _by_quadrature(problem: Problem, name: str, arm: int, power: int) -> float:
    """A moment of one arm; where it cannot be integrated, an error that asks for it in closed form."""
    family, argument = problem.family.name, f"@problem({name}=...)"
    if {"t", "pulls"} & problem.inputs:
        raise ValueError(f"{family} changes over time: give its {name.replace('_', ' ')} with {argument}")
    moment, _, certain = quadrature(problem, arm, power)
    if not certain:
        raise ValueError(f"the {name.replace('_', ' ')} of {family} is hard to integrate: give it with {argument}")
    return moment


def quadrature(problem: Problem, arm: int, power: int) -> tuple[float, float, bool]:
    """E Xᵖ of one arm over u, v and w, the deviation of Xᵖ, and whether two grids agree to a small part of it."""
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite sum is not certain
        fine, coarse = (
            np.broadcast_to(problem.evaluate({"arm": arm, **_grid(points, problem.inputs)}), points) ** power
            for points in (QUADRATURE, QUADRATURE // 2)
        )
        moment, spread = float(fine.mean()), float(fine.std())
        return moment, spread, bool(abs(moment - coarse.mean()) <= PRECISION * spread)


def _grid(points: int, inputs: frozenset[str]) -> dict[str, F64]:
    """Midpoints for one kind of noise; for two or three a lattice, which fills the square or the cube evenly.

    The steps of the lattice are powers of the golden ratio, or of its counterpart for the cube: the roots of
    x = 1/(1 + x) and of x = 1/(1 + x)^½. In the cube it is folded, x to 1 − |2x − 1|, and ten times as good.
    """
    asked = [name for name in ("u", "v", "w") if name in inputs]
    cube = len(asked) == 3
    step = 0.7548776662466927 if cube else (math.sqrt(5) - 1) / 2
    index = np.arange(points, dtype=np.float64)
    columns = [index * step**k % 1.0 if k else (index + 0.5) / points for k in range(len(asked))]
    if cube:
        columns = [1 - np.abs(2 * column - 1) for column in columns]
    inside = 0.5 / points  # u and v are never 0 or 1
    return {
        name: _gaussian_quantiles(column) if name == "w" else np.clip(column, inside, 1 - inside)
        for name, column in zip(asked, columns, strict=True)
    }


def _gaussian_quantiles(u: F64) -> F64:
    """Φ⁻¹ by interpolation in a table of Φ, itself a sum of the density: right to 1e-9."""
    x = np.linspace(-8.5, 8.5, 400_001)
    density = np.exp(-(x**2) / 2)
    below = np.cumsum(density) - density / 2
    return np.interp(u, below / density.sum(), x)
