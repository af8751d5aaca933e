"""``rightarm policies``, ``problems``, ``compare`` and ``warm``."""

from __future__ import annotations

import inspect
import math
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import rightarm
from rightarm import noise
from rightarm.cli.options import Seed, Workers, picture, whole
from rightarm.display import counted, terminal_width, wrapped
from rightarm.formula import WHOLE, Family, rule_of
from rightarm.formula.cache import cache_directory, kept_on_disk
from rightarm.policies.family import Schedule
from rightarm.policies.policy import Policy, PolicyFamily
from rightarm.policies.text import families, problem_kinds, read_policy, read_problem
from rightarm.problems import Problem, ProblemFamily

app = typer.Typer()
INDENT = "    "


Name = Annotated[str | None, typer.Argument(help="Show one of them in full.")]


@app.command()
def policies(name: Name = None) -> None:
    """List the policies, each with its formula and where it comes from."""
    _list("policy", families(PolicyFamily), name)


@app.command()
def problems(name: Name = None) -> None:
    """List the problems, each with what its arms pay."""
    _list("problem", problem_kinds(), name)


def _list(kind: str, listed: Mapping[str, Callable[..., object]], name: str | None) -> None:
    """Show one of them in full, or all by their docstrings without the examples."""
    if name is not None and name not in listed:
        raise ValueError(f"there is no {kind} {name!r}; there are {', '.join(listed)}")
    if name is not None:
        typer.echo(inspect.getdoc(listed[name]))
        return
    for title, found in listed.items():
        paragraphs = [part for part in (inspect.getdoc(found) or "").split("\n\n") if not part.startswith(">>>")]
        signature = paragraphs.pop(0) if paragraphs[0].startswith(f"{title}(") else f"{title}{_parameters(found)}"
        typer.secho(signature, bold=True)
        typer.echo("\n\n".join(map(_indented, paragraphs)) + "\n")


def _parameters(kind: Callable[..., object]) -> str:
    """Return the parameters of a problem that is no family, without their types."""
    given = inspect.signature(kind).parameters.values()
    listed = [each.name for each in given if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    more = ["..."] if any(each.kind is each.VAR_KEYWORD for each in given) else []
    return f"({', '.join([*listed, *more])})"


def _indented(paragraph: str) -> str:
    """Indent a paragraph; a formula stays as it is written, prose is wrapped where its lines are too long."""
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
    from rightarm.theory import lower_bound

    picture(output)
    chosen = [read_policy(text) for text in policies]
    setting = read_problem(problem)
    result = rightarm.simulate(
        chosen, setting, horizon=horizon, replications=replications, seed=seed, workers=workers, progress=True
    )
    bound = lower_bound(setting)
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
    if not kept_on_disk():
        raise OSError("the folder of machine code cannot be written to: set RIGHTARM_CACHE_DIR to one that can")
    began = time.perf_counter()
    before = _count_compiled()
    chosen = [read_policy(text) for text in policies] if policies else every_policy()
    for policy in chosen:
        typer.echo(str(policy))
        rightarm.Bandit(["a", "b"], policy)
        _simulate_briefly(policy, rightarm.problems.Bernoulli([0.5, 0.5]))
    problems = [] if policies else list(families(ProblemFamily).values())
    for family in problems:
        typer.echo(family.name)
        values = {each.name: [_number(family.annotations.get(each.name))] * 2 for each in family.parameters}
        _simulate_briefly(rightarm.UCB(C=0.5), family(**values))
    seconds = time.perf_counter() - began
    functions = counted(_count_compiled() - before, "function")
    ready = f"policies ready: {len(chosen)}, problems: {len(problems)}"
    typer.echo(f"{ready}; {functions} compiled in {seconds:.0f} s, kept in {cache_directory()}")


def _simulate_briefly(policy: Policy, problem: Problem) -> None:
    rightarm.simulate(policy, problem, horizon=3, replications=1, seed=1)


def _count_compiled() -> int:
    return sum(1 for _ in cache_directory().rglob("*.nbc"))


def every_policy() -> list[Policy]:
    """Return a policy of each kind that is compiled apart: numbers do not matter, schedules and noise laws do.

    >>> len(every_policy()) > 30
    True
    """
    return [policy for family in families(PolicyFamily).values() for policy in _members(family)]


def _members(family: Family) -> Iterator[Any]:
    """Yield the family with some value for each parameter, and with each of the values that are compiled apart."""
    needed = [each.name for each in family.parameters if each.default is each.empty]
    values = {name: _values(family.annotations.get(name)) for name in needed}
    usual = {name: options[0] for name, options in values.items()}
    yield family(**usual)
    for name, options in values.items():
        for option in options[1:]:
            yield family(**usual | {name: option})


def _values(annotation: object) -> Sequence[object]:
    if annotation is Schedule:
        return [schedule for family in rightarm.schedules.FAMILIES.values() for schedule in _members(family)]
    if inspect.isclass(annotation) and issubclass(annotation, noise.Law):
        return [noise.Gumbel(), noise.Gaussian(), noise.Exponential(), noise.Uniform()]
    return [_number(annotation)]


def _number(annotation: object) -> float:
    """Return a number that a parameter may have."""
    rule = WHOLE if annotation is int else rule_of(annotation)
    return next(number for number in (0.5, 2.0) if rule is None or rule.holds(number))
