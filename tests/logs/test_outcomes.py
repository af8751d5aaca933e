"""Which events can follow which."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rightarm.logs.outcomes import WholeNumbers


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=60))
def test_a_set_of_numbers(steps: list[tuple[int, bool]]) -> None:
    numbers, plain = WholeNumbers(), set[int]()
    for number, add in steps:
        if add:
            numbers.add(number)
            plain.add(number)
        assert (number in numbers) == (number in plain)
    assert {n for n in range(41) if n in numbers} == plain


def test_numbers_in_a_row_need_no_memory() -> None:
    numbers = WholeNumbers()
    for n in (3, 2, 4, 6, 5, 7, 1):
        numbers.add(n)
    assert (numbers.run, numbers.others) == ((1, 8), set())
