"""``rightarm reproduce``: the paper's results, computed again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rightarm.cli.options import Dask, FilesSeed, Quick, Replications, Workers, resumable
from rightarm.lab.paper import STUDIES
from rightarm.lab.paper.finding import Study
from rightarm.text import wrapped

app = typer.Typer(
    no_args_is_help=True,
    help="Compute the paper's results again. What was killed goes on when it is started again. With --strict the exit "
    "code is 0 if every claim holds (corrected or restricted where the paper errs), 1 if one fails, 3 if one cannot be "
    "told.",
)


def _add(name: str, title: str, studies: Sequence[Study], help: str) -> None:
    """Add a command for one study, or for several on one page, each with its own folder of results."""
    alone = len(studies) == 1

    def command(
        quick: Quick = False,
        output: Annotated[
            Path | None, typer.Option(help="The folder for results and page; in the folder results unless given.")
        ] = None,
        replications: Replications = None,
        seed: FilesSeed = None,
        workers: Workers = None,
        dask: Dask = None,
        strict: Annotated[
            bool, typer.Option("--strict", help="Let the exit code say the verdict: 0 holds, 1 fails, 3 cannot tell.")
        ] = False,
    ) -> None:
        from rightarm.lab.paper import reproduce as lab

        size = lab.Size(quick, replications, seed)
        whole = output or Path("results") / (size.named(name) if alone else "")
        done = []
        with resumable():
            for study in studies:
                folder = whole if alone else whole / size.named(study.name)
                done.append(lab.reproduce(study, folder, size, workers=workers, dask=dask, progress=True))
                for line in [*(done[-1].statements if alone else []), done[-1].line]:
                    typer.echo(wrapped(line, hanging="  "))
        stem, made = whole / (name if alone else size.named(name)), f"rightarm reproduce {name}{size.options}"
        for path in lab.write(done, stem, title, made, quick):
            typer.echo(f"wrote {path}")
        raise typer.Exit(lab.exit_code(done) if strict else 0)

    app.command(name, help=f"{help}.")(command)


for _study in STUDIES:
    _add(_study.name, _study.title, [_study], _study.title)
_add("all", "Boltzmann Exploration Done Right, reproduced", STUDIES, "All of these on one page")
