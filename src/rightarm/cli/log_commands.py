"""``rightarm evaluate``, ``replay``, ``convert`` and ``log``: commands for the log of a live bandit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import rightarm
from rightarm.cli.options import Seed

app = typer.Typer()

LogFile = Annotated[
    Path,
    typer.Argument(
        help="A log of rightarm (.jsonl, the folder of a bandit, or converted: .parquet), or a table of others (.csv, "
        ".parquet)."
    ),
]
Policies = Annotated[
    list[str],
    typer.Option(
        "--policy", help="Such as 'UCB(C=0.5)', uniform, an arm, or '{\"a\": 0.9, \"b\": 0.1}'; may be repeated."
    ),
]
ArmColumn = Annotated[str, typer.Option("--arm", help="The column of a table that names the arm.")]
PropensityColumn = Annotated[str, typer.Option("--propensity", help="The column with the propensity.")]
RewardColumn = Annotated[str, typer.Option("--reward", help="The column with the reward.")]
ContextColumns = Annotated[
    list[str] | None,
    typer.Option("--context", help="A column of a table that is a feature of the context; may be repeated."),
]
RewardRange = Annotated[
    tuple[float, float] | None,
    typer.Option("--range", help="The smallest and the largest reward; those of the log's bandit, or 0 and 1."),
]
Missing = Annotated[float | None, typer.Option(help="The reward of rows that have none; they are left out without it.")]
Confidence = Annotated[float, typer.Option(help="The confidence of the interval.")]
Floor = Annotated[
    float | None,
    typer.Option(help="A propensity that no arm of the log could fall below; that of the log's bandit, if it had one."),
]


def _target(text: str, names: dict[str, Any]) -> Any:
    """Return what ``--policy`` says: probabilities by arm, an arm (also if it is called like a policy), or a policy."""
    from rightarm.evaluation.targets import no_arm_among
    from rightarm.policies.text import read_policy

    if text.startswith("{"):
        return _law_by_arm(text, names)
    if text in names or text == "uniform":
        return names.get(text, text)
    try:
        return read_policy(text)
    except ValueError as error:
        if not text.isidentifier():
            raise
        raise ValueError(f"{error}; and {text!r} is {no_arm_among(sorted(names.values(), key=str))}") from None


def _law_by_arm(text: str, names: dict[str, Any]) -> dict[Any, Any]:
    """Read probabilities by arm from JSON, in which every name is a text."""
    try:
        law = json.loads(text)
    except ValueError as error:
        raise ValueError(f"policy must be JSON if it begins with a brace, got {text}: {error}") from None
    return {names.get(name, name): probability for name, probability in law.items()}


def _off_policy(
    run: Callable[..., Any], log: Path, policies: list[str], columns: dict[str, Any], **options: Any
) -> None:
    """Read a log, or a table by its ``columns``, once, and say what came out for each policy."""
    from rightarm.logs import is_log, read_table
    from rightarm.logs.log import log_of

    is_table = log.suffix == ".csv" or (log.suffix == ".parquet" and not is_log(log))
    found = log_of(read_table(log, **columns) if is_table else log)
    names = {str(arm): arm for arm in found.names}
    targets = [_target(text, names) for text in policies]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the text has them
        for target in targets:
            typer.echo(str(run(found, target, **options)))


@app.command()
def evaluate(
    log: LogFile,
    policy: Policies,
    arm: ArmColumn = "arm",
    propensity: PropensityColumn = "propensity",
    reward: RewardColumn = "reward",
    context: ContextColumns = None,
    reward_range: RewardRange = None,
    missing: Missing = None,
    confidence: Confidence = 0.95,
    floor: Floor = None,
) -> None:
    """Estimate from a log what other policies would have earned: IPS, self-normalised, doubly robust, an interval.

    rightarm evaluate log.jsonl --policy uniform --policy 'Boltzmann(0.1)'
    """
    options = {"reward_range": reward_range, "missing": missing, "confidence": confidence, "floor": floor}
    columns = {"arm": arm, "propensity": propensity, "reward": reward, "context": context or None}
    _off_policy(rightarm.evaluate, log, policy, columns, **options)


@app.command()
def replay(
    log: LogFile,
    policy: Policies,
    arm: ArmColumn = "arm",
    propensity: PropensityColumn = "propensity",
    reward: RewardColumn = "reward",
    context: ContextColumns = None,
    reward_range: RewardRange = None,
    missing: Missing = None,
    confidence: Confidence = 0.95,
    floor: Floor = None,
    seed: Seed = 0,
) -> None:
    """Run policies over a log that was collected evenly at random, by rejection.

    rightarm replay log.csv --policy 'UCB(C=0.5)' --arm item --propensity p --reward click
    """
    options = {"reward_range": reward_range, "missing": missing, "confidence": confidence, "floor": floor}
    columns = {"arm": arm, "propensity": propensity, "reward": reward, "context": context or None}
    _off_policy(rightarm.evaluation.replay, log, policy, columns, **options, seed=seed)


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="A log of rightarm.")],
    target: Annotated[Path, typer.Argument(help="A new file: .jsonl, .parquet, .npz (obp), .dsjson or .txt (VW).")],
) -> None:
    """Write a log of rightarm in another format, by the ending of the new file.

    rightarm convert decisions.jsonl decisions.parquet
    """
    from rightarm.logs import convert_log

    typer.echo(f"wrote {convert_log(source, target)}")


@app.command("log")
def show_log(log: Annotated[Path, typer.Argument(help="A log of rightarm.")]) -> None:
    """Check a log of rightarm and show what it holds: its identity, events by kind, times, arms, what is waiting.

    rightarm log decisions.jsonl
    """
    from rightarm.logs import Log

    typer.echo(str(Log.read(log)))
