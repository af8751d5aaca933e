"""How the files beside this one were made: ``PYTHONPATH=. python make.py``, with rightarm 0.1.0."""

from pathlib import Path

import numpy as np
import own_formulas

import rightarm as ra

HERE = Path(__file__).parent
POLICIES = {
    "bge": (ra.BoltzmannGumbel(C=0.5), {}),
    "bge-catoni": (ra.BoltzmannGumbel(C=1.0, estimator="catoni"), {}),
    "bge-catoni-discount": (ra.BoltzmannGumbel(C=1.0, estimator="catoni"), {"discount": 0.9}),
    "bge-catoni-window": (ra.BoltzmannGumbel(C=1.0, estimator="catoni"), {"window": 10}),
    "robust-ucb": (ra.RobustUCB(u=1.0), {}),
    "boltzmann": (ra.Boltzmann(ra.inverse_log(0.25)), {"floor": 0.05}),
    "boltzmann-two-phase": (ra.Boltzmann(ra.two_phase(gap=0.1, horizon=1000)), {}),
    "boltzmann-glie": (ra.Boltzmann(ra.glie()), {}),
    "boltzmann-sqrt": (ra.Boltzmann(ra.inverse_sqrt(1.0)), {}),
    "boltzmann-constant": (ra.Boltzmann(0.1), {}),
    "perturbed-mean": (ra.PerturbedMean(ra.noise.Exponential(), scale=0.5), {}),
    "perturbed-uniform": (ra.PerturbedMean(ra.noise.Uniform(), scale=0.5), {}),
    "ucb-discount": (ra.UCB(C=0.5), {"discount": 0.95}),
    "ucb1": (ra.UCB1(), {}),
    "ucb-improved": (ra.UCBImproved(horizon=1000), {}),
    "moss": (ra.MOSS(horizon=1000), {}),
    "anytime-moss": (ra.AnytimeMOSS(), {}),
    "klucb-window": (ra.KLUCB(), {"window": 12}),
    "gaussian-klucb": (ra.GaussianKLUCB(), {}),
    "klms": (ra.KLMS(), {}),
    "beta-thompson": (ra.BetaThompson(), {}),
    "gaussian-thompson": (ra.GaussianThompson(), {}),
    "maillard": (ra.Maillard(), {}),
    "epsilon-greedy": (ra.EpsilonGreedy(0.1), {}),
    "epsilon-greedy-decreasing": (ra.EpsilonGreedy(ra.decreasing(d=0.1)), {}),
    "explore-then-commit": (ra.ExploreThenCommit(3), {}),
    "exp3": (ra.EXP3(gamma=0.1), {}),
    "exp3pp": (ra.EXP3PlusPlus(), {}),
    "softmix": (ra.SoftMix(d=0.1), {}),
    "own": (own_formulas.Cautious(C=0.5), {}),
}


def live(name: str, policy: ra.Policy, **options: object) -> None:
    """A bandit's life of forty rounds, its state, and the ten decisions that follow."""
    (HERE / "states").mkdir(exist_ok=True)
    bandit = ra.Bandit(["a", "b", ("c", 1)], policy, seed=7, clock=lambda: 1e9, **options)
    rewards = np.random.default_rng(1)
    for _ in range(40):
        decision = bandit.ask()
        bandit.tell(decision, float(rewards.random() < 0.6))
    bandit.ask(3)
    (HERE / "states" / f"{name}.json").write_text(bandit.to_json())
    after = []
    for _ in range(10):
        decision = bandit.ask()
        after.append([decision.arm, decision.propensity])
        bandit.tell(decision, float(rewards.random() < 0.6))
    import json

    (HERE / "states" / f"{name}.after.json").write_text(json.dumps(after))


def logs() -> None:
    """A log of each kind, with the state from the middle of it."""
    for ending in ("jsonl", "parquet"):
        log = HERE / f"decisions.{ending}"
        with ra.Bandit(["red", "green"], ra.BoltzmannGumbel(C=0.5), seed=1, log=log, clock=lambda: 1e9) as bandit:
            rewards = np.random.default_rng(2)
            for i in range(30):
                if i == 10:
                    bandit.add_arm("blue")
                if i == 15:
                    (HERE / f"state-of-{ending}.json").write_text(bandit.to_json())
                if i == 20:
                    bandit.retire_arm("red")
                decision = bandit.ask(among=["green"]) if i == 25 else bandit.ask()
                if i % 7 == 3:
                    bandit.cancel(decision)
                elif i % 5:
                    bandit.tell(decision, float(rewards.random() < 0.5))
            bandit.tell(arm="green", reward=1.0)


def results() -> None:
    """Results of simulations as single files."""
    problem = ra.Bernoulli([0.6, 0.5])
    policies = [
        ra.BoltzmannGumbel(C=0.5),
        ra.BoltzmannGumbel(C=1.0, estimator="catoni"),
        ra.UCB(C=0.5),
        ra.EXP3(gamma=0.1),
    ]
    ra.simulate(policies, problem, horizon=200, replications=8, seed=3, checkpoints=5).save(HERE / "result.parquet")
    own = ra.simulate(
        own_formulas.Cautious(C=0.5),
        own_formulas.Triangular([0.5, 0.25]),
        horizon=200,
        replications=8,
        seed=3,
        checkpoints=5,
    )
    own.save(HERE / "own-result.parquet")
    drawn = ra.RandomProblem(ra.Bernoulli, mean=ra.Uniform(low=[0.0] * 3, high=1.0))
    ra.simulate(ra.UCB1(), drawn, horizon=200, replications=8, seed=3, checkpoints=5).save(
        HERE / "random-result.parquet"
    )


if __name__ == "__main__":
    for name, (policy, options) in POLICIES.items():
        live(name, policy, **options)
    logs()
    results()
