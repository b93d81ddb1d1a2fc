from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rca.ingest.traces.intervals import covered, joined, union

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=25)


def cells(pairs: list[tuple[int, int]]) -> set[int]:
    return {cell for start, end in pairs for cell in range(start, end)}


def arrays(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    rows = np.array(pairs, dtype=float).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


@given(PAIRS)
def test_union_covers_the_same_and_is_disjoint(pairs: list[tuple[int, int]]) -> None:
    found = union(*arrays(pairs))
    assert found.total == len(cells(pairs))
    assert (found.end > found.start).all()
    assert (found.start[1:] > found.end[:-1]).all()


@given(PAIRS, PAIRS)
def test_joined_is_the_union_of_both(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    assert joined(union(*arrays(one)), union(*arrays(other))).total == len(cells(one + other))


@given(PAIRS, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted), min_size=1, max_size=5))
def test_covered_counts_what_lies_in_each_window(pairs: list[tuple[int, int]], windows: list[list[int]]) -> None:
    low, high = arrays([(start, end) for start, end in windows])
    found = covered(union(*arrays(pairs)), low, high)
    expected = [len(cells(pairs) & set(range(start, end))) for start, end in windows]
    np.testing.assert_allclose(found, expected)
