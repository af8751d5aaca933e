"""The page for newcomers is true: its commands run against a real service, and answer what it shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rightarm as ra
from service_process import serving

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080"

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    assert "rightarm serve --store sqlite:///home.db\n" in PAGE
    with serving(f"sqlite:///{folder}/home.db") as address:
        yield address


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Another service, for the programs: in the end that of the commands needs tokens."""
    with serving(f"sqlite:///{tmp_path_factory.mktemp('programs')}/home.db") as address:
        with ra.connect(address) as service:
            service.create("home", ["short", "long"], reward_range=(0, 1))
        yield address


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def answers(text: str) -> list[Any]:
    """Every value of JSON in a text."""
    found, decoder, place = list[Any](), json.JSONDecoder(), 0
    while match := re.compile(r"\S").search(text, place):
        value, place = decoder.raw_decode(text, match.start())
        found.append(value)
    return found


@pytest.fixture(scope="module")
def said(folder: Path, url: str) -> list[str]:
    """What each block of commands says, all run in one shell."""
    script = "\necho @@@\n".join(blocks("bash")).replace(ADDRESS, url)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("@@@\n")


def test_every_command_answers_what_the_page_shows(said: list[str]) -> None:
    shown = re.findall(r"```bash\n(?:.*?)```\n(?:```json\n(.*?)```)?", PAGE, flags=re.DOTALL)
    assert len(shown) == len(said) == len(blocks("bash"))
    compared = [(answers(block), answers(text)) for block, text in zip(shown, said, strict=True) if block]
    assert len(compared) == len(blocks("json")) > 10
    for expected, found in compared:
        assert len(found) == len(expected)
        assert [shortened(each, like) for each, like in zip(found, expected, strict=True)] == expected


def shortened(found: Any, like: Any) -> Any:
    """An answer with as much as the page shows of it, and its numbers where they are the same but for rounding."""
    if isinstance(found, dict) and isinstance(like, dict):
        return {key: shortened(found[key], like[key]) for key in like if key in found}
    if isinstance(found, list) and isinstance(like, list) and len(found) == len(like):
        return [shortened(each, other) for each, other in zip(found, like, strict=True)]
    if isinstance(found, float) and isinstance(like, float):
        return like if found == pytest.approx(like, rel=1e-9) else found
    return found


def test_the_commands_of_the_store_say_that_all_is_well(said: list[str], folder: Path) -> None:
    assert "all as it should be" in said[-1]
    assert (folder / "home.jsonl").stat().st_size > 1_000
    assert (folder / "copy.db").exists()


def test_python(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks("python")[0].replace(ADDRESS, programs), "docs/service.md", "exec"), {})
    difference, names = capsys.readouterr().out.splitlines()
    assert difference.startswith("cannot tell yet")
    assert names == "['home', 'mails']"
