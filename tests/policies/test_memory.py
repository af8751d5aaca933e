"""Policies that explore and remember: what is refused. What they compute is in `test_every_policy.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rightarm as ra

# What is refused.

EXP3 = ra.EXP3(gamma=0.1)
STATE: dict[str, Any] = {"round": 9, "pulls": [4, 4], "means": [0.5, 0.4]}
Choice = Callable[[ra.Policy, Any], Any]


def simulated(policy: ra.Policy, memory: Any) -> Any:
    start = {"pulls": [4, 4], "means": [0.5, 0.4], "memory": memory}
    return ra.simulate(policy, ra.problems.Bernoulli([0.5, 0.4]), horizon=5, replications=2, seed=1, **start)


USES: dict[str, Choice] = {
    "scores": lambda policy, memory: policy.scores(**STATE, memory=memory),
    "floors": lambda policy, memory: policy.floors(**STATE, memory=memory),
    "choose": lambda policy, memory: policy.choose(**STATE, random=np.random.default_rng(1), memory=memory),
    "simulate": simulated,
}
BAD_MEMORY: dict[str, tuple[ra.Policy, Any, type[Exception], str]] = {
    "another column": (EXP3, {"loss": [0, 0]}, ValueError, r"memory must have the columns gain, got \['loss'\]"),
    "a column more": (EXP3, {"gain": [0, 0], "x": [0, 0]}, ValueError, r"columns gain, got \['gain', 'x'\]"),
    "no column": (EXP3, {}, ValueError, r"memory must have the columns gain, got \[\]"),
    "too few values": (EXP3, {"gain": [1.0]}, ValueError, r"memory\['gain'\] must be 2 finite numbers.*got \[1.0\]"),
    "too many": (EXP3, {"gain": [1, 2, 3]}, ValueError, r"memory\['gain'\] must be 2.*got \[1.0, 2.0, 3.0\]"),
    "one for all": (EXP3, {"gain": 1.0}, ValueError, r"memory\['gain'\] must be 2 finite numbers.*got 1.0"),
    "in two rows": (EXP3, {"gain": [[1, 2]]}, ValueError, r"memory\['gain'\] must be 2.*got \[\[1.0, 2.0\]\]"),
    "nan": (EXP3, {"gain": [0, math.nan]}, ValueError, r"memory\['gain'\] must be 2 finite numbers.*got \[0.0, nan\]"),
    "inf": (EXP3, {"gain": [0, math.inf]}, ValueError, r"memory\['gain'\] must be 2 finite numbers.*got \[0.0, inf\]"),
    "text": (EXP3, {"gain": ["a", "b"]}, TypeError, r"memory\['gain'\] must be 2 finite numbers.*got \['a', 'b'\]"),
    "none": (EXP3, {"gain": None}, (TypeError, ValueError), r"memory\['gain'\] must be 2 finite numbers"),  # type: ignore[dict-item]
    "a list": (EXP3, [1.0, 2.0], TypeError, r"memory must be a mapping.*got \[1.0, 2.0\]"),
    "a number": (EXP3, 3.0, TypeError, "memory must be a mapping.*got 3.0"),
    "of a policy that has none": (ra.UCB(1.0), {"gain": [0, 0]}, ValueError, r"columns \(none\), got \['gain'\]"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(("policy", "memory", "error", "message"), BAD_MEMORY.values(), ids=BAD_MEMORY)
def test_bad_memory(policy: ra.Policy, memory: Any, error: type[Exception], message: str, use: Choice) -> None:
    with pytest.raises(error, match=message):
        use(policy, memory)


def test_pulls_without_memory_are_not_all_that_is_known() -> None:
    with pytest.raises(ValueError, match="memory must be given with pulls: these policies remember gain"):
        simulated(EXP3, None)


def own(score: str, **options: Any) -> ra.Policy:
    """A policy from source text, named broken."""
    parts = {name: eval(f"lambda {text}", {"np": np}) for name, text in options.items() if isinstance(text, str)}
    if "learn" in options:
        parts["learn"] = {name: eval(f"lambda {text}", {"np": np}) for name, text in options["learn"].items()}
    function = eval(f"lambda {score}", {"np": np})
    function.__name__ = function.__qualname__ = "broken"
    made: ra.Policy = ra.policy(noise=options.get("noise"), **parts)(function)()
    return made


GUMBEL = ra.noise.Gumbel()
PAYS = "gain, reward, probability: gain + reward / probability"
BROKEN: dict[str, tuple[Callable[[], Any], str]] = {
    "explore asks for noise": (lambda: own("mean: mean", explore="z: z"), "unknown input 'z'"),
    "explore asks for x": (lambda: own("mean: mean", explore="x: x"), "unknown input 'x'.*t, pulls, mean"),
    "explore asks for a reward": (lambda: own("mean: mean", explore="reward: 0.1"), "unknown input 'reward'"),
    "explore has a parameter of its own": (
        lambda: own("mean: mean", explore="arms, *, rate: rate / arms"),
        "broken: explore asks for the parameter 'rate'; it must stand behind",
    ),
    "learn asks for x": (lambda: own("gain: gain", learn={"gain": "gain, x: x"}), "unknown input 'x'.*reward"),
    "learn asks for noise": (lambda: own("gain: gain", learn={"gain": "gain, z: z"}), "unknown input 'z'"),
    "learn asks for the best": (lambda: own("gain: gain", learn={"gain": "best: best"}), "unknown input 'best'"),
    "learn has a parameter of its own": (
        lambda: own("gain: gain", learn={"gain": "gain, reward, *, rate: gain + rate"}),
        r"broken: learn\['gain'\] asks for the parameter 'rate'; it must stand behind",
    ),
    "the score asks for what is not learned": (lambda: own("gain: gain"), "unknown input 'gain'"),
    "the score asks for the best of it": (
        lambda: own("best_loss: best_loss", learn={"gain": "gain: gain"}),
        "unknown input 'best_loss'.*best_gain",
    ),
    "probability without noise": (
        lambda: own("gain: gain", learn={"gain": PAYS}),
        "broken: learn asks for probability, which is known for scores location",
    ),
    "probability with Gaussian noise": (
        lambda: own("gain, z: gain + z", learn={"gain": PAYS}, noise=ra.noise.Gaussian()),
        "broken: learn asks for probability, which is known for scores location",
    ),
    "probability with scaled noise": (
        lambda: ra.simulate(
            own("gain, z: gain + 2 * z", learn={"gain": PAYS}, noise=GUMBEL),
            ra.problems.Bernoulli([0.5, 0.4]),
            horizon=9,
        ),
        r"learn asks for probability, so the score must be a location \+ z",
    ),
    "explore is not a function": (lambda: ra.policy(explore=0.1)(lambda mean: mean), "made from a function, got 0.1"),  # type: ignore[call-overload]
    "learn is not a function": (
        lambda: ra.policy(learn={"gain": 0.1})(lambda mean: mean),  # type: ignore[dict-item]
        "made from a function, got 0.1",
    ),
}


@pytest.mark.parametrize(("make", "message"), BROKEN.values(), ids=BROKEN)
def test_formulas_that_cannot_be(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


PARAMETERS: dict[str, tuple[Callable[[], Any], str]] = {
    "epsilon -0.1": (lambda: ra.EpsilonGreedy(-0.1), r"epsilon must be non-negative, got -0\.1"),
    "epsilon text": (lambda: ra.EpsilonGreedy("often"), "epsilon must be a schedule.*got 'often'"),  # type: ignore[arg-type]
    "decreasing of d = 0": (lambda: ra.schedules.decreasing(d=0), r"d must be positive, got 0\.0"),
    "each 0": (lambda: ra.ExploreThenCommit(each=0), r"each must be a whole number from 1 on, got 0\.0"),
    "each 2.5": (lambda: ra.ExploreThenCommit(each=2.5), r"each must be a whole number from 1 on, got 2\.5"),
    "gamma 1.5": (lambda: ra.EXP3(gamma=1.5), r"gamma must be above 0 and at most 1, got 1\.5"),
    "gamma -0.5": (lambda: ra.EXP3(gamma=-0.5), r"gamma must be above 0 and at most 1, got -0\.5"),
    "softmix of 0": (lambda: ra.SoftMix(d=0), r"d must be above 0 and at most 1, got 0\.0"),
    "softmix of 2": (lambda: ra.SoftMix(d=2), r"d must be above 0 and at most 1, got 2\.0"),
    "exp3++ of 0": (lambda: ra.EXP3PlusPlus(c=0), r"c must be positive, got 0\.0"),
    "kl-ucb of -1": (lambda: ra.KLUCB(c=-1), r"c must be non-negative, got -1\.0"),
    "gaussian kl-ucb of 0": (lambda: ra.GaussianKLUCB(sigma=0), r"sigma must be positive, got 0\.0"),
    "robust ucb of 0": (lambda: ra.RobustUCB(u=0), r"u must be positive, got 0\.0"),
    "moss to 0": (lambda: ra.MOSS(horizon=0), r"horizon must be a whole number from 1 on, got 0\.0"),
    "ucb-improved to 1.5": (lambda: ra.UCBImproved(horizon=1.5), r"horizon must be a whole number.*got 1\.5"),
    "perturbed by a number": (lambda: ra.PerturbedMean(1.0), r"noise must be a noise law such as.*got 1\.0"),  # type: ignore[arg-type]
    "perturbed by a class": (lambda: ra.PerturbedMean(ra.noise.Gumbel), "noise must be a noise law.*got <class"),  # type: ignore[arg-type]
    "perturbed by 0": (lambda: ra.PerturbedMean(GUMBEL, scale=0), r"scale must be positive, got 0\.0"),
    "estimator mode": (
        lambda: ra.BoltzmannGumbel(C=1.0, estimator="mode"),
        "estimator must be one of 'catoni', 'mean', 'median', got 'mode'",
    ),
}


@pytest.mark.parametrize(("make", "message"), PARAMETERS.values(), ids=PARAMETERS)
def test_parameters_that_cannot_be(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize("floor", ["0.6 + 0 * mean", "-0.1 + 0 * mean", "np.nan + 0 * mean"])
def test_exploration_that_is_no_law(floor: str) -> None:
    """Live and simulated."""
    policy = own("mean: mean", explore=f"mean: {floor}")
    with pytest.raises(ValueError, match=r"broken\(\): what it explores are not probabilities: \["):
        policy.choose(**STATE, random=np.random.default_rng(1))
    with pytest.raises(ValueError, match=r"broken\(\): what it explores were not probabilities in round 3"):
        ra.simulate(policy, ra.problems.Bernoulli([0.5, 0.4]), horizon=9, replications=2, seed=1)


def test_memory_that_is_no_number() -> None:
    policy = own("gain: -gain", learn={"gain": "gain, t: gain + np.sqrt(50.0 - t)"})
    with pytest.raises(ValueError, match=r"broken\(\): .*(not a number in round|not a finite number by round)"):
        ra.simulate(policy, ra.problems.Bernoulli([0.5, 0.4]), horizon=200, replications=2, seed=1)


def test_catoni_cannot_start_from_means() -> None:
    policy = ra.BoltzmannGumbel(C=0.5, estimator="catoni")
    with pytest.raises(ValueError, match=r"estimator=Catoni\(C=0\.5\).*cannot start from pulls and means"):
        ra.simulate(policy, ra.problems.Bernoulli([0.5, 0.4]), horizon=9, pulls=[4, 4], means=[0.5, 0.4])
