from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rca.ingest.logs.inner_text import _Places

FAR = 5 << 30


@given(st.lists(st.integers(0, 1 << 20) | st.integers(0, FAR), max_size=30))
def test_places_come_back_however_far_apart(values: list[int]) -> None:
    places = _Places()
    for value in values:
        places.append(value)
    assert places.values().tolist() == values
    assert len(places) == len(values)
