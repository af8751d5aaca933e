"""``rightarm policies`` and ``compare``."""

from __future__ import annotations

import inspect
import math
import textwrap
from pathlib import Path
from typing import Annotated

import typer

import rightarm
from rightarm.cli.options import at_least

app = typer.Typer()


@app.command()
def policies(name: Annotated[str | None, typer.Argument(help="Show one of them in full.")] = None) -> None:
    """List the policies, each with its formula and where it comes from."""
    from rightarm.lab.compare import described
    from rightarm.lab.expressions import families
    from rightarm.scores.policy import PolicyFamily

    known = families(PolicyFamily)
    if name is not None:
        if name not in known:
            raise typer.BadParameter(f"there is no policy {name!r}; there are {', '.join(known)}")
        typer.echo(inspect.getdoc(known[name]))
        return
    for family in known.values():
        signature, sentence, formula, reference = described(family)
        typer.secho(signature, bold=True)
        typer.echo(textwrap.indent(f"{sentence}\n\n{formula}\n", "    "))
        typer.echo(textwrap.fill(reference, 110, initial_indent="    ", subsequent_indent="    ") + "\n")


@app.command()
def compare(
    policies: Annotated[list[str], typer.Argument(help="Such as 'UCB(C=0.5)' 'BoltzmannGumbel(C=0.5)' KLUCB.")],
    problem: Annotated[
        str, typer.Option(help="What the arms pay; also Gaussian, Uniform, Pareto, StudentT, LogNormal and others.")
    ] = "Bernoulli([0.6] + [0.5] * 9)",
    horizon: Annotated[int, typer.Option(callback=at_least("horizon", 1), help="Rounds.")] = 100_000,
    replications: Annotated[int, typer.Option(callback=at_least("replications", 1), help="Replications.")] = 64,
    seed: Annotated[int, typer.Option(callback=at_least("seed", 0), help="The seed.")] = 2017,
    workers: Annotated[
        int | None, typer.Option(callback=at_least("workers", 1), help="Threads; one per core unless given.")
    ] = None,
    output: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path("compare.png"),
    log: Annotated[bool, typer.Option("--log", help="Logarithmic axes.")] = False,
) -> None:
    """Run policies side by side on one problem, and draw their regret with the Lai–Robbins lower bound.

    rightarm compare 'UCB(C=0.5)' 'BoltzmannGumbel(C=0.5)' KLUCB --problem 'Bernoulli([0.6] + [0.5] * 9)'

    Problems are written as in Python: 'Bernoulli([0.6, 0.5]).corrupted(arm=0, rounds=100)',
    'RandomProblem(Bernoulli, mean=Uniform(low=[0.0] * 10, high=1.0))'. The bound is about the long run; over a short
    one a policy may well be below it.
    """
    from rightarm.lab.compare import lai_robbins
    from rightarm.lab.expressions import read_policy, read_problem

    if output.suffix not in (".png", ".svg", ".pdf"):
        raise typer.BadParameter(f"output must end in .png, .svg or .pdf, got {output}")
    output.parent.mkdir(parents=True, exist_ok=True)  # before the work, so that it is not lost if this fails
    try:
        chosen, setting = [read_policy(text) for text in policies], read_problem(problem)
        result = rightarm.simulate(
            chosen, setting, horizon=horizon, replications=replications, seed=seed, workers=workers, progress=True
        )
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    bound = lai_robbins(setting)
    result.plot(output, log=log, bounds={} if bound is None else {"Lai–Robbins, asymptotically": bound})
    typer.echo(str(result))
    if bound is not None:
        slope = float(bound(10)) / math.log(10)
        typer.echo(
            f"Lai–Robbins: in the long run no consistent policy's regret grows more slowly than {slope:,.4g} log T"
        )
    typer.echo(f"wrote {output}")
