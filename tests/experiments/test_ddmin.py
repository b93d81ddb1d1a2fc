"""Delta debugging, on whatever fails."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rca.experiments.ddmin import ddmin

ITEMS = st.integers(min_value=1, max_value=12).flatmap(lambda size: st.just(tuple(range(size))))


@given(ITEMS, st.data())
def test_a_set_of_culprits_is_found_whole_and_alone(items: tuple[int, ...], data: st.DataObject) -> None:
    culprits = data.draw(st.sets(st.sampled_from(items), min_size=1))
    tried: list[tuple[int, ...]] = []

    def fails(part: tuple[int, ...]) -> bool:
        tried.append(part)
        return culprits <= set(part)

    assert set(ddmin(items, fails)) == culprits
    assert len(tried) <= len(items) ** 2 + 3 * len(items)
    assert len({frozenset(part) for part in tried}) == len(tried)


@given(ITEMS, st.data())
def test_whatever_fails_nothing_can_be_left_out_of_what_is_returned(
    items: tuple[int, ...], data: st.DataObject
) -> None:
    others = data.draw(st.sets(st.frozensets(st.sampled_from(items)), max_size=30))
    failing = {*others, frozenset(items)} - {frozenset()}

    def fails(part: tuple[int, ...]) -> bool:
        return frozenset(part) in failing

    found = ddmin(items, fails)
    assert fails(found)
    assert list(found) == sorted(found)
    for item in found if len(found) > 1 else ():
        assert not fails(tuple(other for other in found if other != item))


def test_one_culprit_among_many_takes_few_trials() -> None:
    tried = []

    def fails(part: tuple[int, ...]) -> bool:
        tried.append(part)
        return 5 in part

    assert ddmin(range(16), fails) == (5,)
    assert len(tried) <= 8
