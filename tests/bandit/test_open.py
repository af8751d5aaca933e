"""A bandit's folder: made, gone on with after any crash, and never mixed up with another's."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import BGE, arm_rows

START = 1_700_000_000.0


def opened(path: Path, **more: Any) -> ra.Bandit[Any]:
    return ra.Bandit.open(path / "home.bandit", ["a", "b", "c"], BGE, clock=lambda: START, **more)


def live(bandit: ra.Bandit[Any], rounds: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = bandit.ask(unit=int(random.integers(10**6)), meta={"page": "start"})
        if random.random() < 0.8:
            bandit.tell(decision, float(random.random()))


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = ra.Bandit(["a", "b", "c"], BGE, seed=3, clock=lambda: START)
    for part in range(5):
        with opened(tmp_path, seed=3, snapshot_every=7) as bandit:
            live(bandit, 20, part)
            live(whole, 20, part)
            assert arm_rows(bandit) == arm_rows(whole)
            assert bandit.pending == whole.pending
    files = sorted(path.name for path in (tmp_path / "home.bandit").iterdir())
    assert files == ["log.jsonl", "log.jsonl.key", "snapshot.json"]
    frame = ra.logs.read_log(tmp_path / "home.bandit" / "log.jsonl")
    assert len(frame) == 100
    assert frame["meta"].to_list() == ['{"page": "start"}'] * 100


@pytest.mark.parametrize("snapshot", ["none", "first", "last"])
def test_whatever_snapshot_survived_the_log_has_the_rest(snapshot: str, tmp_path: Path) -> None:
    folder = tmp_path / "home.bandit"
    bandit = opened(tmp_path, seed=3, snapshot_every=10)
    kept = folder / "snapshot.json"
    live(bandit, 12, 1)
    shutil.copy(kept, tmp_path / "first")
    live(bandit, 60, 2)
    bandit.retire_arm("a")
    expected, following = arm_rows(bandit), ra.Bandit.from_json(bandit.to_json(), clock=lambda: START).ask()
    assert bandit.log is not None
    bandit.log.close()  # as a crash does: no snapshot at the end
    if snapshot == "none":
        kept.unlink()
    elif snapshot == "first":
        shutil.copy(tmp_path / "first", kept)
    with ra.Bandit.open(folder, clock=lambda: START) as again:
        assert arm_rows(again) == expected
        assert again.ask() == following


def test_a_killed_process_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    """kill -9 in the middle of everything; whatever was printed before had been told."""
    script = """
        import sys, rightarm as ra
        with ra.Bandit.open(sys.argv[1], ["a", "b"], ra.BoltzmannGumbel(C=0.5), snapshot_every=50) as bandit:
            while True:
                decision = bandit.ask()
                bandit.tell(decision, 1.0)
                print(decision.id, flush=True)
    """
    acknowledged: list[int] = []
    for _ in range(3):
        arguments = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "home.bandit")]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            acknowledged += [int(child.stdout.readline()) for _ in range(120)]
            child.kill()
            acknowledged += [int(line) for line in child.stdout if line.endswith("\n")]
    frame = ra.logs.read_log(tmp_path / "home.bandit" / "log.jsonl")
    rewards = dict(frame["id", "reward"].rows())
    assert len(set(acknowledged)) == len(acknowledged)
    assert all(rewards[number] == 1.0 for number in acknowledged)
    with ra.Bandit.open(tmp_path / "home.bandit") as bandit:
        assert sum(row["pulls"] for row in arm_rows(bandit)) == frame["reward"].count()


def test_what_is_given_must_be_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="arms must be given to make a bandit: there is none in"):
        ra.Bandit.open(tmp_path / "nothing.bandit")
    opened(tmp_path, floor=0.1).close()
    folder = tmp_path / "home.bandit"
    for wrong, message in {
        "arms": ({"arms": ["a", "z"]}, r"arms must be those of the bandit, \['a', 'b', 'c'\], got \['a', 'z'\]"),
        "policy": ({"policy": ra.UCB(C=0.5)}, "policy must be the one of the state"),
        "floor": ({"floor": 0.2}, r"floor must be that of the bandit, 0\.1, got 0\.2"),
        "range": ({"reward_range": (0, 1)}, r"reward_range must be that of the bandit, None, got \(0, 1\)"),
    }.values():
        with pytest.raises(ValueError, match=message):
            ra.Bandit.open(folder, **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected option 'flor'"):
        ra.Bandit.open(folder, flor=0.2)  # type: ignore[call-overload]
    with ra.Bandit.open(folder, ["a", "z"], change_arms=True, floor=0.1) as bandit:
        assert bandit.arms == ["a", "z"]
    with ra.Bandit.open(folder, policy=ra.UCB(C=0.5), change_policy=True) as bandit:
        assert bandit.policy == ra.UCB(C=0.5)
    with ra.Bandit.open(folder) as bandit:
        assert (bandit.arms, bandit.policy) == (["a", "z"], ra.UCB(C=0.5))


def test_another_folders_snapshot_and_a_log_with_lines_missing_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with ra.Bandit.open(tmp_path / name, ["a", "b"], BGE, seed=1) as bandit:
            live(bandit, 20, 1)
    shutil.copy(tmp_path / "one" / "snapshot.json", tmp_path / "two" / "snapshot.json")
    with pytest.raises(ValueError, match=r"log must be that of this bandit, [0-9a-f]{32}, or a new one, got"):
        ra.Bandit.open(tmp_path / "two")
    log = tmp_path / "one" / "log.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:10] + lines[12:]))
    with pytest.raises(ValueError, match="missing"):
        ra.Bandit.open(tmp_path / "one")
    log.write_bytes(b"".join(lines[:-2]))
    with pytest.raises(ValueError, match=r"log must have the \d+ events of before, got \d+ in"):
        ra.Bandit.open(tmp_path / "one")
    (tmp_path / "one" / "snapshot.json").write_text("{")
    with pytest.raises(ValueError, match=r"snapshot\.json: .*; without this file all of the log is read"):
        ra.Bandit.open(tmp_path / "one")


def test_a_folder_that_is_open_cannot_be_opened_again(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(BlockingIOError, match="another writer has this log open"):
        opened(tmp_path)
    opened(tmp_path).close()


WRONG: dict[str, dict[str, Any]] = {
    "no arms": {"arms": None},
    "arms that are the same": {"arms": ["a", "a"]},
    "arms that a log cannot keep": {"arms": [("a", 1), ("b", 2)]},
    "no policy": {"policy": "UCB"},
    "a setting": {"floor": 7.0},
    "an unknown setting": {"flour": 7.0},
    "a prior": {"arms": {"a": (0.5, -1)}},
    "rotation": {"rotate": "sometimes"},
    "a clock": {"clock": lambda: float("nan")},
}


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_made_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"arms": ["a", "b"], "policy": BGE} | WRONG[name]
    with pytest.raises((TypeError, ValueError)):
        ra.Bandit.open(tmp_path / "new" / "home.bandit", **options)
    assert contents(tmp_path) == {}
    (tmp_path / "home.bandit").mkdir()
    (tmp_path / "home.bandit" / "note.txt").write_text("mine")
    before = contents(tmp_path)
    with pytest.raises((TypeError, ValueError)):
        ra.Bandit.open(tmp_path / "home.bandit", **options)
    assert contents(tmp_path) == before
    ra.Bandit.open(tmp_path / "home.bandit", ["a", "b"], BGE).close()  # there is no lock


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, data: Any) -> int:
        if len(data) > 10:
            return write(file, bytes(data[:10]))
        raise OSError(errno.ENOSPC, "No space left on device")

    write = os.write
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        opened(tmp_path / "new")
    with pytest.raises(OSError, match="No space left"):
        ra.Bandit(["a", "b"], BGE, log=tmp_path / "log.jsonl")
    assert contents(tmp_path) == {}


def test_what_disagrees_with_a_folder_leaves_it_as_it_was(tmp_path: Path) -> None:
    with opened(tmp_path) as bandit:
        live(bandit, 20, 1)
    before = contents(tmp_path)
    for options in (
        {"arms": ["a"]},
        {"floor": 0.1},
        {"policy": ra.UCB(C=1.0)},
        {"policy": ra.UCB(C=1.0), "change_policy": True, "arms": [("a", 1)], "change_arms": True},
        {"policy": ra.UCB(C=1.0), "change_policy": True, "rotate": "sometimes"},
    ):
        with pytest.raises((TypeError, ValueError)):
            ra.Bandit.open(tmp_path / "home.bandit", **options)
        assert contents(tmp_path) == before
    opened(tmp_path).close()


def test_a_log_that_was_removed_before_it_was_locked_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another process does that opens the same folder, fails, and removes what it made."""
    path, lock = tmp_path / "log.jsonl", fcntl.flock

    def late(file: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        path.unlink()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with ra.Bandit(["a", "b"], BGE, log=path) as bandit:
        bandit.ask()
    with ra.Bandit.from_log(path) as again:
        assert len(again.pending) == 1


def test_one_file(tmp_path: Path) -> None:
    bandit = ra.Bandit(["a", "b"], BGE, seed=1)
    live(bandit, 30, 1)
    path = bandit.save(tmp_path / "bandit.json")
    assert arm_rows(ra.Bandit.from_json(path.read_bytes())) == arm_rows(bandit)
    assert json.loads(path.read_text()) == json.loads(bandit.to_json())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_is_noticed(tmp_path: Path) -> None:
    """Both would make the same decisions with the same ids."""
    script = """
        import os, sys, rightarm as ra
        bandit = ra.Bandit(["a", "b"], ra.BoltzmannGumbel(C=0.5))
        bandit.ask()
        if os.fork() == 0:
            try:
                bandit.ask()
            except RuntimeError as error:
                print(error, flush=True)
            os._exit(0)
        os.wait()
        bandit.ask()
        print("the parent goes on")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "of which this one is a fork: both would make the same decisions" in done[0]
    assert done[1] == "the parent goes on"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_is_noticed_also_if_another_thread_was_in_the_middle_of_an_action(tmp_path: Path) -> None:
    """The lock that the thread had is never let go in the child: nobody may wait for it there."""
    script = """
        import os, signal, sys, threading, rightarm as ra
        inside, leave = threading.Event(), threading.Event()
        def clock():
            inside.set()
            leave.wait()
            return 1e9
        leave.set()
        bandit = ra.Bandit.open(sys.argv[1], ["a", "b"], clock=clock)
        decision = bandit.ask()
        leave.clear()
        inside.clear()
        thread = threading.Thread(target=bandit.ask)
        thread.start()
        inside.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # if it hangs after all
            calls = [bandit.ask, lambda: bandit.tell(decision, 1.0), bandit.to_json, bandit.__str__, bandit.log.flush]
            for call in calls:
                try:
                    call()
                except (RuntimeError, ValueError) as error:
                    print(error, flush=True)
            bandit.close()  # as a with statement does, when the child is done
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        leave.set()
        thread.join()
        bandit.close()
        with ra.Bandit.open(sys.argv[1]) as again:
            print(len(again.pending))
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script), str(tmp_path / "home")]
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(done) == 7
    assert all("of which this one is a fork" in line for line in done[:4])
    assert "open it after forking" in done[4]
    assert done[5:] == ["7", "2"]


def test_a_system_without_forks_has_bandits(tmp_path: Path) -> None:
    """Windows say, which has neither forks nor flock."""
    script = """
        import os, sys
        for name in ("fork", "register_at_fork"):
            delattr(os, name)
        sys.modules["fcntl"] = None
        import rightarm as ra
        bandit = ra.Bandit(["a", "b"], ra.UCB(C=0.5), seed=1)
        print(bandit.tell(bandit.ask(), 1.0), len(ra.Bandit.from_json(bandit.to_json()).arms))
    """
    environment = os.environ | {"RIGHTARM_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (0, "True 2\n"), done.stderr
