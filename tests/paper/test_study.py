"""Studies follow from their files."""

from __future__ import annotations

import pytest

from rightarm.experiments import read_text
from rightarm.paper import STUDIES
from rightarm.paper.finding import FOLDER, Study


def test_each_file_is_a_study_in_the_order_of_the_paper() -> None:
    assert {study.name for study in STUDIES} == {path.stem for path in FOLDER.glob("*.toml")}
    assert [study.order for study in STUDIES] == list(range(1, len(STUDIES) + 1))


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_study_has_its_judge_and_its_constants(study: Study) -> None:
    assert study.judge.__name__ == f"judge_{study.name.replace('-', '_')}"
    assert not any("{A" in criterion or "{B" in criterion or ":g}" in criterion for criterion in study.criteria)


def test_what_stands_under_about_is_not_read() -> None:
    text = 'horizon = 9\nproblems.a = "Bernoulli([0.5, 0.4])"\npolicies.b = "UCB1()"\n'
    assert read_text(text + "[about]\nanything = [1, 'two']\n").cells == read_text(text).cells
