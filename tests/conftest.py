"""Settings that all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from postgres import Postgres

settings.register_profile("rightarm", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("rightarm")

collect_ignore = ["data"]  # files of earlier versions, kept as they are

# What commands print depends on the terminal; tests see the same one everywhere.
os.environ["COLUMNS"], os.environ["TERM"] = "80", "dumb"
for name in ("LINES", "CLICOLOR_FORCE", "FORCE_COLOR", "GITHUB_ACTIONS", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE"):
    os.environ.pop(name, None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave whatever needs a PostgreSQL to `make test-all`."""
    for item in items:
        if "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.full)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL that all tests of a process share."""
    from postgres import Postgres

    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The address of a new, empty database of PostgreSQL."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of a file of SQLite that does not exist yet."""
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def store_url(request: pytest.FixtureRequest) -> Any:
    """The address of an empty database: one of SQLite, one of PostgreSQL."""
    return request.getfixturevalue({"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param])
