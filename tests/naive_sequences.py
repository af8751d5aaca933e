"""Confidence sequences straight from their formulas: loops over bets, and over a grid of means."""

from __future__ import annotations

import math

import numpy as np

from rightarm.inference.sequences import BETS, CASH, WEIGHTS

Statistics = tuple[float, float, float]
"""Of rewards from 0 to 1: their number, mean, and Σ (x − mean)²."""


def statistics(values: list[float]) -> Statistics:
    mean = sum(values) / len(values)
    return len(values), mean, sum((x - mean) ** 2 for x in values)


def mirrored(arm: Statistics) -> Statistics:
    return arm[0], 1 - arm[1], arm[2]


def capital(values: list[float], m: float) -> float:
    """What betting on a mean above m makes of 1, reward by reward."""
    total = 0.0
    for bet, weight in zip(BETS, WEIGHTS, strict=True):
        total += weight * math.prod((1 + bet * x) / (1 + bet * m) for x in values)
    return total


def log_capital(arm: Statistics, m: float) -> float:
    """The logarithm of the least capital that rewards with these statistics can make."""
    n, mean, spread = arm
    top = mean + spread / n / mean if mean else 1.0  # the mean square divided by the mean
    logs = []
    for bet, weight in zip(BETS, WEIGHTS, strict=True):
        gain = mean / top * math.log(1 + bet * top)
        logs.append(math.log(weight) + n * (gain - math.log(1 + bet * m)))
    top = max(logs)
    return top + math.log(sum(math.exp(value - top) for value in logs))


def lower(arm: Statistics, error: float) -> float:
    """The largest mean that is too small, by halving."""
    low, high = 0.0, 1.0
    if log_capital(arm, low) < -math.log(error):
        return 0.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if log_capital(arm, middle) >= -math.log(error) else (low, middle)
    return low


def interval(arm: Statistics, confidence: float) -> tuple[float, float]:
    error = (1 - confidence) / 2
    return lower(arm, error), 1 - lower(mirrored(arm), error)


def with_cash(value: float) -> float:
    return math.log(CASH + (1 - CASH) * math.exp(min(value, 700.0)))


def largest_gap(arm: Statistics, other: Statistics, error: float, points: int = 400) -> float:
    """The largest μ − μ' on a grid of both means that both arms' evidence together does not exclude."""
    grid = np.linspace(0, 1, points + 1)
    above = [with_cash(log_capital(mirrored(arm), 1 - m)) for m in grid]
    below = [with_cash(log_capital(other, m)) for m in grid]
    gaps = [
        m - k
        for m, its in zip(grid, above, strict=True)
        for k, own in zip(grid, below, strict=True)
        if its + own < -math.log(error)
    ]
    return float(max(gaps))
