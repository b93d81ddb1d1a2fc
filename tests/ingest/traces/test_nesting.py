from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rca.ingest.traces.nesting import nested


def test_self_time_with_equal_starts_threads_and_overhang() -> None:
    thread = np.array([1, 1, 1, 2, 1])
    start = np.array([0.0, 0.0, 5.0, 2.0, 9.0])
    end = np.array([10.0, 4.0, 8.0, 30.0, 11.0])
    assert nested(thread, start, end).self_times().tolist() == [10 - 4 - 3 - 1, 4, 3, 28, 2]


def test_the_innermost_span_at_a_moment() -> None:
    thread = np.array([1, 1, 1, 1, 2])
    start = np.array([10.0, 0.0, 12.0, 30.0, 0.0])
    end = np.array([20.0, 25.0, 15.0, 40.0, 100.0])
    found = nested(thread, start, end).at(
        np.array([1, 1, 1, 1, 1, 2, 3]), np.array([13.0, 16.0, 22.0, 27.0, 30.0, 5.0, 5.0])
    )
    assert found.tolist() == [2, 0, 1, -1, 3, 4, -1]


def test_spans_without_length_take_nothing() -> None:
    start, end = np.array([0.0, 5.0, 5.0, 5.0]), np.array([10.0, 5.0, 5.0, 7.0])
    assert nested(np.zeros(4, np.int64), start, end).self_times().tolist() == [8, 0, 0, 2]


def test_no_spans() -> None:
    nothing = np.empty(0)
    found = nested(nothing.astype(np.int64), nothing, nothing)
    assert found.self_times().tolist() == []
    assert found.at(np.array([1]), np.array([1.0])).tolist() == [-1]


def tree(low: int, high: int, depth: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Properly nested spans between two moments."""

    def split(cuts: list[int]) -> st.SearchStrategy[list[tuple[int, int]]]:
        parts = [tree(one, two, depth - 1) for one, two in pairwise(cuts) if two > one]
        return st.tuples(*parts).map(lambda found: [(low, high), *(item for part in found for item in part)])

    if depth == 0 or high - low < 2:
        return st.just([(low, high)])
    return st.lists(st.integers(low, high), max_size=4, unique=True).map(sorted).flatmap(split)


@given(st.lists(tree(0, 60, 3), min_size=1, max_size=3), st.integers(0, 60))
def test_nested_spans_are_found_as_by_looking_at_all_of_them(threads: list[list[tuple[int, int]]], moment: int) -> None:
    rows = [(owner, *span) for owner, spans in enumerate(threads) for span in dict.fromkeys(spans)]
    thread, start, end = (np.array(column) for column in zip(*rows, strict=True))
    found = nested(thread, start.astype(float), end.astype(float))
    for owner, spans in enumerate(threads):
        around = [span for span in dict.fromkeys(spans) if span[0] <= moment < span[1]]
        place = int(found.at(np.array([owner]), np.array([float(moment)]))[0])
        expected = min(around, key=lambda span: span[1] - span[0]) if around else None
        assert (None if place < 0 else rows[place][1:]) == expected
    # What the spans of a thread have for themselves adds up to what its outermost spans last.
    own = found.self_times()
    for owner, spans in enumerate(threads):
        assert own[thread == owner].sum() == spans[0][1] - spans[0][0]
