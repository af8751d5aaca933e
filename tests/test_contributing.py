"""CONTRIBUTING.md: what is added as it says works, in a copy of the package."""

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
    print(again.version, len(ra.logs.read_log("log.jsonl")))
with serving("sqlite:///home.db") as url, ra.connect(url) as service:
    service.create("home", ["red", "blue"])
    print(service["home"].call("arms"))
"""

ADDED = {"policies/sloth.py": "Sloth", "problems/shifted.py": "Shifted", "noise/cauchy.py": "Cauchy"}
USED = """
import rightarm as ra
from rightarm.policies.text import read_policy, read_problem
from rightarm.stubs import stub

policies = [ra.Sloth(sigma=0.5), read_policy("PerturbedMean(Cauchy(), 0.1)")]
result = ra.simulate(policies, read_problem("Shifted(low=[0.0, 0.5])"), horizon=1_000, replications=8, seed=1)
learned = bool((result.regret[0, :, -1] < 300).all())
print(learned, "Sloth" in ra.__all__, ra.problems.Shifted.name, "_Sloth" in stub("policies"))
for policy in policies:
    ra.testing.check_policy(policy)
    bandit = ra.Bandit(["a", "b"], policy, seed=1)
    bandit.tell(bandit.ask(), 1.0)
ra.testing.check_problem(ra.problems.Shifted(low=[0.0, 0.5]))
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


def run(program: str, package: Path) -> list[str]:
    """Run a program with the copy of the package, and return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=package.parents[1],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(package.parent), str(ROOT / "tests")])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def copied(folder: Path) -> Path:
    """Return a copy of the package."""
    package = folder / "src" / "rightarm"
    shutil.copytree(ROOT / "src" / "rightarm", package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def test_a_policy_a_problem_and_a_noise_law_are_one_file_each(tmp_path: Path) -> None:
    package = copied(tmp_path)
    for place, name in ADDED.items():
        found = re.search(rf"```python\n((?:(?!```).)*{name}.*?)```", PAGE, re.DOTALL)
        assert found is not None
        (package / place).write_text(f'"""Added."""\n\n{found[1]}', encoding="utf-8")
    assert run(USED, package) == ["True True Shifted True"]


def insert(file: Path, before: str, code: str) -> None:
    """Put code in front of a text that a file has once."""
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1
    file.write_text(text.replace(before, f"{code.strip(chr(10))}\n\n\n{before}"), encoding="utf-8")


def test_an_event_and_a_route_can_be_added(tmp_path: Path) -> None:
    package = copied(tmp_path)
    code = snippets()
    insert(package / "logs/events.py", "KINDS: ", code["logs/events.py"])
    insert(package / "bandit/state.py", "            case Created():", code["bandit/state.py"])
    insert(package / "bandit/decide.py", "# Arms, policy, settings, status.\n", code["bandit/decide.py"])
    insert(package / "bandit/bandit.py", "    def add_arm(", code["bandit/bandit.py"])
    insert(package / "service/operations.py", "# The server itself.\n", code["service/operations.py"])
    for name in ("bandit/state.py", "bandit/decide.py"):
        insert(package / name, "from rightarm.logs.settings import", "from rightarm.logs.events import Remark")
    assert run(PROGRAM, package) == ["text must be a text, got ''", "4 1", "['red', 'blue']"]
