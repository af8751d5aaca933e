"""Who reads a log cannot predict decisions: they are drawn by a key that is kept beside it."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rightarm as ra
from bandits import BGE, arm_rows
from rightarm.bandit.decide import Draws, new_key
from rightarm.logs.events import KINDS

ARMS = [f"arm {number}" for number in range(8)]
DECISIONS = 64


def played(path: Path, **options: Any) -> ra.Bandit[Any]:
    bandit = ra.Bandit(ARMS, ra.EpsilonGreedy(0.9), log=path, **options)
    for number in range(100):
        bandit.tell(bandit.ask(unit=number, meta={"page": number}), number % 2)
    bandit.change(floor=0.05)
    return bandit


def key_path(path: Path) -> Path:
    return path.with_name(path.name + ".key")


def words_of(key: int) -> list[int]:
    """Return the numbers that a key could be written as: whole, or in two halves."""
    return [key, key & (2**64 - 1), key >> 64]


@pytest.mark.parametrize("seed", [None, 7])
def test_the_log_has_neither_the_key_nor_a_generator(seed: int | None, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with played(path, seed=seed) as bandit:
        key = bandit._draws.key
    text = path.read_text()
    for number in words_of(key):
        assert str(number) not in text
        assert f"{number:x}" not in text.lower()
    fields = {name for line in text.splitlines()[1:] for name in json.loads(line)}
    known = {"n", "event", *(name for kind in KINDS.values() for name in kind.__struct_fields__)}
    assert fields <= known
    assert not {name for name in known if "random" in name or "key" in name or "seed" in name or "generator" in name}
    assert "Philox" not in text
    assert "PCG64" not in text


def test_the_key_is_in_a_file_that_only_its_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with played(path) as bandit:
        assert int(key_path(path).read_text(), 16) == bandit._draws.key
    assert stat.S_IMODE(os.stat(key_path(path)).st_mode) == 0o600


def test_a_snapshot_of_a_folder_has_no_key(tmp_path: Path) -> None:
    folder = tmp_path / "home.bandit"
    with ra.Bandit.open(folder, ARMS, BGE) as bandit:
        bandit.ask(10)
        key = bandit._draws.key
    assert json.loads((folder / "snapshot.json").read_text())["key"] is None
    assert f"{key:032x}" not in (folder / "snapshot.json").read_text()
    with ra.Bandit.open(folder) as again:
        assert again._draws.key == key


def copies(path: Path, folder: Path) -> Path:
    """Return a copy of a log, without its key."""
    folder.mkdir()
    return Path(shutil.copy(path, folder / "log.jsonl"))


def test_the_same_log_with_the_same_key_gives_the_same_decisions(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    played(path).close()
    copy = copies(path, tmp_path / "copy")
    shutil.copy(key_path(path), key_path(copy))
    with ra.Bandit.from_log(path) as bandit, ra.Bandit.from_log(copy) as other:
        assert bandit.ask(DECISIONS) == other.ask(DECISIONS)


def test_the_same_log_with_another_key_gives_other_decisions(tmp_path: Path) -> None:
    """The probabilities are the same; which arms are drawn is as independent as it can be."""
    path = tmp_path / "log.jsonl"
    played(path, seed=1).close()
    copy = copies(path, tmp_path / "copy")
    key_path(copy).write_text(f"{new_key(2):032x}\n")
    with ra.Bandit.from_log(path) as bandit, ra.Bandit.from_log(copy) as other:
        law = bandit.probabilities()
        assert law == other.probabilities()
        pairs = list(zip(bandit.ask(2_000), other.ask(2_000), strict=True))
    same = sum(one.arm == another.arm for one, another in pairs)
    chance = sum(p * p for p in law.values())  # that two draws by themselves are the same arm
    spread = np.sqrt(len(pairs) * chance * (1 - chance))
    assert abs(same - len(pairs) * chance) / spread < 4.5


def test_a_log_without_its_key_goes_on_with_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with played(path) as bandit:
        key, table = bandit._draws.key, arm_rows(bandit)
    key_path(path).unlink()
    with ra.Bandit.from_log(path) as again:
        assert arm_rows(again) == table
        assert again._draws.key != key
        expected = again._draws.key
        again.ask()
    with ra.Bandit.from_log(path) as third:
        assert third._draws.key == expected


def test_bandits_without_a_seed_have_keys_of_their_own() -> None:
    keys = {ra.Bandit(ARMS, BGE)._draws.key for _ in range(20)}
    assert len(keys) == 20
    assert max(keys).bit_length() > 100
    assert ra.Bandit(ARMS, BGE, seed=3)._draws.key == ra.Bandit(ARMS, BGE, seed=3)._draws.key == new_key(3)


def test_a_decision_is_drawn_by_the_key_and_its_number_alone() -> None:
    """Whatever was refused, asked or broken off before: decision n is drawn by the n-th number."""
    bandit = ra.Bandit(ARMS, ra.EpsilonGreedy(0.9), seed=5)
    draws = Draws(new_key(5))
    for n in range(200):
        with pytest.raises(ValueError, match="allowed"):
            bandit.ask(allowed=["nothing of the kind"])
        law = bandit.probabilities()
        decision = bandit.ask()
        heights = np.cumsum(list(law.values()))
        assert decision.arm == list(law)[int(np.searchsorted(heights, draws.number(n), side="right"))]
        bandit.tell(decision, float(n % 3 == 0))
