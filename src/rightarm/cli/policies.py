"""``rightarm policies``, ``problems`` and ``compare``."""

from __future__ import annotations

import inspect
import math
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

import rightarm
from rightarm.cli.options import Seed, Workers, picture, whole
from rightarm.text import counted, terminal_width, wrapped

app = typer.Typer()
INDENT = "    "


Name = Annotated[str | None, typer.Argument(help="Show one of them in full.")]


@app.command()
def policies(name: Name = None) -> None:
    """List the policies, each with its formula and where it comes from."""
    from rightarm.lab.experiment.expressions import families
    from rightarm.scores.policy import PolicyFamily

    _list("policy", families(PolicyFamily), name)


@app.command()
def problems(name: Name = None) -> None:
    """List the problems, each with what its arms pay."""
    from rightarm.lab.experiment.expressions import problem_kinds

    _list("problem", problem_kinds(), name)


def _list(kind: str, known: dict[str, Any], name: str | None) -> None:
    """One of them in full, or all by their docstrings without the examples."""
    if name is not None and name not in known:
        raise ValueError(f"there is no {kind} {name!r}; there are {', '.join(known)}")
    if name is not None:
        typer.echo(inspect.getdoc(known[name]))
        return
    for own, found in known.items():
        paragraphs = [part for part in (inspect.getdoc(found) or "").split("\n\n") if not part.startswith(">>>")]
        signature = paragraphs.pop(0) if paragraphs[0].startswith(f"{own}(") else f"{own}{_parameters(found)}"
        typer.secho(signature, bold=True)
        typer.echo("\n\n".join(map(_indented, paragraphs)) + "\n")


def _parameters(kind: Any) -> str:
    """The parameters of a problem that is no family, without their types."""
    given = inspect.signature(kind).parameters.values()
    listed = [each.name for each in given if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    more = ["..."] if any(each.kind is each.VAR_KEYWORD for each in given) else []
    return f"({', '.join([*listed, *more])})"


def _indented(paragraph: str) -> str:
    """A formula stays as it is written; prose is wrapped where its lines are too long."""
    fits = max(map(len, paragraph.splitlines())) + len(INDENT) <= terminal_width()
    return textwrap.indent(paragraph, INDENT) if fits else wrapped(" ".join(paragraph.split()), INDENT)


@app.command()
def compare(
    policies: Annotated[list[str], typer.Argument(help="Such as 'UCB(C=0.5)' KLUCB, or your own: 'module:Name(C=1)'.")],
    problem: Annotated[
        str, typer.Option(help="What the arms pay; `rightarm problems` lists what there is.")
    ] = "Bernoulli([0.6] + [0.5] * 9)",
    horizon: Annotated[int, whole("horizon", 1, "Rounds.")] = 100_000,
    replications: Annotated[int, whole("replications", 1, "Replications.")] = 64,
    seed: Seed = 0,
    workers: Workers = None,
    output: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path("compare.png"),
    log: Annotated[bool, typer.Option("--log", help="Logarithmic axes.")] = False,
) -> None:
    """Run policies side by side on one problem, and draw their regret with the Lai–Robbins lower bound.

    rightarm compare 'UCB(C=0.5)' 'BoltzmannGumbel(C=0.5)' KLUCB --problem 'Bernoulli([0.6] + [0.5] * 9)'

    Problems are written as in Python: 'Bernoulli([0.6, 0.5]).corrupted(arm=0, rounds=100)',
    'RandomProblem(Bernoulli, mean=Uniform(low=[0.0] * 10, high=1.0))'. The bound is about the long run; over a short
    one a policy may well be below it.
    """
    from rightarm.lab.experiment.expressions import read_policy, read_problem
    from rightarm.lab.lower_bound import lai_robbins

    picture(output)
    chosen, setting = [read_policy(text) for text in policies], read_problem(problem)
    result = rightarm.simulate(
        chosen, setting, horizon=horizon, replications=replications, seed=seed, workers=workers, progress=True
    )
    bound = lai_robbins(setting)
    result.plot(output, log=log, bounds={} if bound is None else {"Lai–Robbins, asymptotically": bound})
    typer.echo(str(result))
    if bound is not None:
        slope = float(bound(10)) / math.log(10)
        bounded = f"in the long run no consistent policy's regret grows more slowly than {slope:,.4g} log T"
        typer.echo(wrapped(f"Lai–Robbins: {bounded}"))
    typer.echo(f"wrote {output}")


@app.command()
def warm(
    policies: Annotated[
        list[str] | None, typer.Argument(help="Such as 'BetaThompson()' or 'UCB(C=0.5)'; all unless given.")
    ] = None,
) -> None:
    """Compile policies, live and in simulation, so that no program waits for it: in the image of a container, say.

    Machine code is kept where RIGHTARM_CACHE_DIR says, or in the user's folder for caches.

    rightarm warm 'BetaThompson()' 'ScaledGumbel()'
    """
    import time

    from rightarm.formula.cache import cache_directory, kept_on_disk
    from rightarm.lab.experiment.expressions import read_policy
    from rightarm.lab.warm import warm as compile_all

    if not kept_on_disk():
        raise OSError("the folder of machine code cannot be written to: set RIGHTARM_CACHE_DIR to one that can")
    began = time.perf_counter()
    done = compile_all(
        [read_policy(text) for text in policies] if policies else None, say=lambda text: typer.echo(text)
    )
    seconds = time.perf_counter() - began
    ready = f"policies ready: {done.policies}, problems: {done.problems}"
    typer.echo(
        f"{ready}; {counted(done.functions, 'function')} compiled in {seconds:.0f} s, kept in {cache_directory()}"
    )
