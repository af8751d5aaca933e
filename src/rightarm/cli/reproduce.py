"""``rightarm reproduce``: the paper's results, computed again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from rightarm.cli.options import Dask, FilesSeed, Quick, Replications, Workers, resumable
from rightarm.lab.paper import STUDIES
from rightarm.lab.paper.finding import Study

app = typer.Typer(no_args_is_help=True, help="Compute the paper's results again.")
ALL = "all"


def _command(study: Study) -> Callable[..., None]:
    def command(
        quick: Quick = False,
        output: Annotated[
            Path | None, typer.Option(help="The folder for results and page; results/<name> unless given.")
        ] = None,
        replications: Replications = None,
        seed: FilesSeed = None,
        workers: Workers = None,
        dask: Dask = None,
    ) -> None:
        from rightarm.lab.paper import reproduce as lab

        size = lab.Size(output or Path("results") / lab.folder_of(study, quick), quick, replications, seed)
        with resumable():
            done = lab.reproduce(study, size, workers=workers, dask=dask, progress=True)
        typer.echo("\n".join([*done.statements, done.line]))
        typer.echo("\n".join(f"wrote {path}" for path in lab.write([done], study.name, study.title, size)))

    return command


for _study in STUDIES:
    app.command(_study.name, help=f"{_study.title}. Killed and started again, it goes on.")(_command(_study))


@app.command(name=ALL)
def everything(
    quick: Quick = False,
    output: Annotated[Path, typer.Option(help="The folder for page and points; each study has one in it.")] = Path(
        "results"
    ),
    replications: Replications = None,
    seed: FilesSeed = None,
    workers: Workers = None,
    dask: Dask = None,
) -> None:
    """All of these on one page. Killed and started again, it goes on."""
    from rightarm.lab.paper import reproduce as lab

    done = []
    with resumable():
        for study in STUDIES:
            size = lab.Size(output / lab.folder_of(study, quick), quick, replications, seed)
            done.append(lab.reproduce(study, size, workers=workers, dask=dask, progress=True))
            typer.echo(done[-1].line)
    name, whole = f"{ALL}-quick" if quick else ALL, lab.Size(output, quick, replications, seed)
    paths = lab.write(done, name, "Boltzmann Exploration Done Right, reproduced", whole)
    typer.echo("\n".join(f"wrote {path}" for path in paths))
