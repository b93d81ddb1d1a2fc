"""Curves written as words."""

from __future__ import annotations

import math

import pytest

from rca.errors import KnowledgeError
from rca.rules.synthetic import expand


def column(name: str, records: list[dict[str, float]]) -> list[float]:
    return [record[name] for record in records]


def test_decay_then_nan() -> None:
    loss = column("loss", expand({"step": "0..10", "loss": "decays 4 to 2 then nan at 7"}))
    assert loss[0] == pytest.approx(4)
    assert loss[6] == pytest.approx(2)
    assert all(math.isnan(value) for value in loss[7:])


def test_a_point_behind_a_comma_changes_only_itself() -> None:
    loss = column("loss", expand({"step": "0..4", "loss": "constant 1, spike 50 at 2, nan at 3"}))
    assert loss[:3] == [1, 1, 50]
    assert math.isnan(loss[3])
    assert loss[4] == 1


def test_a_later_segment_starts_where_the_earlier_one_ended() -> None:
    loss = column("loss", expand({"step": "0..20", "loss": "decays 4 to 2 then rises to 6 from 10"}))
    assert loss[10] == pytest.approx(loss[9], rel=0.05)
    assert loss[-1] == pytest.approx(6)


def test_noise_is_reproducible_and_steps_may_be_sparse() -> None:
    series = {"step": "0..100 by 10", "loss": "constant 3, noise sd 0.1", "learning_rate": 3e-4}
    records = expand(series)
    assert records == expand(series)
    assert [record["step"] for record in records] == list(range(0, 101, 10))
    assert len(set(column("loss", records))) > 1
    assert column("learning_rate", records) == [3e-4] * 11


def test_a_list_gives_the_values_themselves() -> None:
    assert column("loss", expand({"step": [0, 5], "loss": [2.0, 1.5]})) == [2.0, 1.5]


@pytest.mark.parametrize("series", [{"loss": "wanders about"}, {"loss": "constant 1, then"}, {"step": "soon"}])
def test_words_that_are_no_curve_are_an_error(series) -> None:
    with pytest.raises(KnowledgeError):
        expand(series)
