"""The README's own code runs, with fewer rounds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

README = Path(__file__).parent.parent / "README.md"


def test_code_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 8
    namespace: dict[str, Any] = {"__name__": "readme"}
    for block in blocks:
        exec(re.sub(r"1_?000_000|100_000", "1_000", block), namespace)
    assert namespace["result"].regret.shape[:2] == (3, 64)
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    loaded = namespace["ra"].Result.load(tmp_path / "regret.parquet")
    assert np.array_equal(loaded.repeat().regret, namespace["result"].regret)
