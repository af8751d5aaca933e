"""CONTRIBUTING.md: an event and a route that are added as it says work, in a copy of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROGRAM = """
import rightarm as ra
from service_process import serving

with ra.Bandit(["red", "blue"], seed=1, log="log.jsonl") as bandit:
    decision = bandit.ask()
    bandit.remark("new prices from today on")
    bandit.tell(decision, 1.0)
    try:
        bandit.remark("")
    except ValueError as error:
        print(error)
with ra.Bandit.from_log("log.jsonl") as again:
    print(again.version, len(ra.read_log("log.jsonl")))
with serving("sqlite:///home.db") as url, ra.connect(url) as service:
    service.create("home", ["red", "blue"])
    print(service["home"].call("arms"))
"""

pytestmark = pytest.mark.full


def snippets() -> dict[str, str]:
    """The code to add, by the file that it belongs to."""
    event, route = (
        re.search(rf"```python\n((?:(?!```).)*{name}.*?)```", PAGE, re.DOTALL) for name in ("Remark", "arms")
    )
    assert event is not None
    assert route is not None
    parts = re.split(r"^# ([\w/.]+).*\n", event[1], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True)) | {"service/operations.py": route[1]}


def insert(file: Path, before: str, code: str) -> None:
    """Put code in front of a text that a file has once."""
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1
    file.write_text(text.replace(before, f"{code.strip(chr(10))}\n\n\n{before}"), encoding="utf-8")


def test_an_event_and_a_route_can_be_added(tmp_path: Path) -> None:
    package = tmp_path / "src" / "rightarm"
    shutil.copytree(ROOT / "src" / "rightarm", package, ignore=shutil.ignore_patterns("__pycache__"))
    code = snippets()
    insert(package / "logs/events.py", "AnyEvent = ", code["logs/events.py"])
    insert(package / "live/state.py", "            case Created():", code["live/state.py"])
    insert(package / "live/decide.py", "# Rewards.\n", code["live/decide.py"])
    insert(package / "live/bandit.py", "    def add_arm(", code["live/bandit.py"])
    insert(package / "service/operations.py", "# The server itself.\n", code["service/operations.py"])
    events = (package / "logs/events.py").read_text(encoding="utf-8")
    events = events.replace("AnyEvent = ", "AnyEvent = Remark | ").replace("for kind in (", "for kind in (Remark, ")
    (package / "logs/events.py").write_text(events, encoding="utf-8")
    for name in ("live/state.py", "live/decide.py"):
        insert(package / name, "from rightarm.logs.settings import", "from rightarm.logs.events import Remark")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(package.parent), str(ROOT / "tests")])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["text must be a text, got ''", "4 1", "['red', 'blue']"]
