"""The folder of machine code: where it is, and which of its versions are removed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interpreters import run_python
from rightarm.formula.cache import KEPT_DAYS, KEPT_FOLDERS, NOTED, USED, cache_directory, remove_unused


def test_cache_directory_is_where_it_was_asked_for(tmp_path: Path) -> None:
    code = "from rightarm.formula.cache import cache_directory; print(cache_directory())"
    asked = Path(run_python(code, RIGHTARM_CACHE_DIR=str(tmp_path)).strip())
    assert asked.parent == tmp_path
    assert asked.name == cache_directory().name
    if sys.platform == "linux":
        environment = {key: value for key, value in os.environ.items() if key != "RIGHTARM_CACHE_DIR"}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, "XDG_CACHE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert Path(done.stdout.strip()) == tmp_path / "rightarm" / asked.name


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").write_text("")
    code = "from rightarm.formula.cache import cache_directory as f; print(f()); assert f().is_dir()"
    folder = Path(run_python(code, RIGHTARM_CACHE_DIR=str(tmp_path / "file"), TMPDIR=str(tmp_path)).strip())
    assert folder.parent == tmp_path
    assert not folder.exists()  # nothing is left behind


# Versions that nobody uses any more.


def version(root: Path, name: str, days: float) -> Path:
    """A folder of machine code, last used so many days ago."""
    folder = root / (name * 16)
    (folder / "kernels_0").mkdir(parents=True)
    (folder / "kernels_0" / "code.nbi").write_text("machine code")
    (folder / USED).touch()
    os.utime(folder / USED, (time.time() - days * 86_400,) * 2)
    return folder


def test_versions_long_unused_are_removed(tmp_path: Path) -> None:
    """All but the newest few, however old those are."""
    old = [version(tmp_path, name, KEPT_DAYS + 1 + days) for days, name in enumerate("abcde")]
    (tmp_path / "notes").mkdir()  # not ours
    remove_unused(tmp_path)
    assert sorted(tmp_path.iterdir()) == [*old[:KEPT_FOLDERS], tmp_path / "notes"]


def test_versions_in_use_of_late_are_kept(tmp_path: Path) -> None:
    folders = [version(tmp_path, name, days) for days, name in enumerate("abcde")]
    remove_unused(tmp_path)
    assert sorted(tmp_path.iterdir()) == folders


def test_what_a_killed_process_began_to_remove_is_removed(tmp_path: Path) -> None:
    version(tmp_path, "a", 0).rename(tmp_path / "a.removed")
    remove_unused(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="flock is missing")
def test_a_version_is_kept_while_a_process_uses_it(tmp_path: Path) -> None:
    """However long that process has been running."""
    code = "from rightarm.formula.cache import cache_directory as f; print(f(), flush=True); input()"
    environment = {**os.environ, "RIGHTARM_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        used = Path(process.stdout.readline().strip())
        os.utime(used / USED, (0, 0))
        newer = [version(tmp_path, name, days=1) for name in "abc"]
        unused = version(tmp_path, "d", days=KEPT_DAYS + 1)
        remove_unused(tmp_path)
        assert used.exists()
        assert not unused.exists()
        process.stdin.write("\n")
        process.stdin.close()
        process.wait()
    remove_unused(tmp_path)
    assert sorted(tmp_path.iterdir()) == newer


def test_the_folder_is_tidied_when_it_is_used(tmp_path: Path) -> None:
    old = [version(tmp_path, name, KEPT_DAYS + 1 + days) for days, name in enumerate("abcd")]
    code = "from rightarm.formula.cache import cache_directory; print(cache_directory())"
    used = Path(run_python(code, RIGHTARM_CACHE_DIR=str(tmp_path)).strip())
    folders = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert sorted(folders) == sorted([used, *old[: KEPT_FOLDERS - 1]])


def test_the_name_of_the_folder_is_noted_for_sources_as_they_are_written(tmp_path: Path) -> None:
    """The second process takes the note's word for it; a note without its folder goes."""
    code = "from rightarm.formula.cache import cache_directory; print(cache_directory().name)"
    name = run_python(code, RIGHTARM_CACHE_DIR=str(tmp_path)).strip()
    (note,) = tmp_path.glob(f"*{NOTED}")
    assert note.read_text() == name
    note.write_text("f" * 16)
    assert run_python(code, RIGHTARM_CACHE_DIR=str(tmp_path)).strip() == "f" * 16
    note.write_text("e" * 16)
    remove_unused(tmp_path)
    assert not note.exists()
