"""Tables and numbers as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightarm.display import number, percent, short, signed, table, terminal_width

WORDS = st.text("abc (,=", max_size=40)


@pytest.mark.parametrize(
    ("value", "told"), [(0.0, "0"), (-1234567.0, "−1,234,567"), (1e-9, "1.000e−09"), (float("nan"), "–"), (2.5, "2.5")]
)
def test_numbers(value: float, told: str) -> None:
    assert number(value) == told
    assert signed(value).lstrip("+") == told


def test_other_values() -> None:
    assert [percent(share) for share in (0.125, None, float("nan"))] == ["12.5%", "–", "–"]
    assert [short(value) for value in (None, 0.1 + 0.2, 3, [0.5, 1], "é")] == ["", "0.3", "3", "[0.5, 1]", "é"]


def test_the_width_is_the_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "123")
    assert terminal_width() == 123


@given(st.lists(st.tuples(WORDS, WORDS, st.integers(0, 10**6)), min_size=1, max_size=5), st.integers(40, 120))
def test_a_table_fits_and_loses_nothing(rows: list[tuple[str, str, int]], width: int) -> None:
    texts = [[one, other, str(n)] for one, other, n in rows]
    lines = table(["one", "other", "n"], texts, words=2, width=width).splitlines()
    assert max(map(len, lines)) <= width
    shown, given = "".join(lines[1:]), "".join(cell for row in texts for cell in row)
    assert sorted(shown.replace(" ", "")) == sorted(given.replace(" ", ""))


def test_numbers_stand_under_each_other() -> None:
    lines = table(["policy", "regret"], [["UCB", "1,234.5"], ["KLUCB", "7"]], width=80).splitlines()
    assert lines == ["policy   regret", "UCB     1,234.5", "KLUCB         7"]


def test_columns_that_can_be_spared_go_in_their_order() -> None:
    head, row = ["policy", "regret", "5%", "95%"], ["a policy with a name", "1,234,567", "1,234,567", "1,234,567"]
    wide = table(head, [row], spare=("5%", "95%"), width=80)
    assert len(wide.splitlines()) == 2
    narrow = table(head, [row], spare=("5%", "95%"), width=40).splitlines()
    assert narrow[0].split() == ["policy", "regret", "95%"]
    assert narrow[-1] == "(a wider terminal also shows 5%)"
    assert max(map(len, narrow)) <= 40
