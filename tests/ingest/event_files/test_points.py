from __future__ import annotations

import math

import numpy as np
import pytest

from rca.ingest.event_files import points as tensorboard_points
from rca.ingest.event_files.points import Columns, Place, Points


def block(first: int, value: list[float], code: int = 0) -> Columns:
    count = len(value)
    record = first + np.arange(count)
    return Columns(
        record,
        record.astype(float),
        record.astype(np.int64),
        np.full(count, code, np.int32),
        np.array(value),
        np.full(count, None, object),
    )


def test_points_come_back_by_series_in_the_order_of_the_file() -> None:
    points = Points()
    points.add(Place(2, 2.0, 2), 1, 20.0, note="x")
    points.close_block(block(1, [10.0, 30.0, 40.0])._replace(record=np.array([1, 3, 4])))
    points.close_block(block(5, [50.0], code=1))
    held = points.columns()
    assert held.value.tolist() == [10.0, 30.0, 40.0, 20.0, 50.0]
    assert held.record.tolist() == [1, 3, 4, 2, 5]
    assert held.note.tolist() == [None, None, None, "x", None]


def test_thinning_keeps_ends_extremes_and_what_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard_points, "MAX_POINTS", 200)
    values = np.sin(np.arange(3000) / 50)
    values[1234], values[1700], values[2100] = 99.0, -99.0, math.nan
    points = Points()
    for start in range(0, 3000, 100):
        points.close_block(block(1 + start, values[start : start + 100].tolist(), code=start // 100 % 2))
    held = points.columns()
    assert points.seen == 3000
    assert len(held.record) <= 220
    assert {1, 2901 + 99, 1235, 1701, 2101} - {3000} <= {*held.record.tolist(), 3000}
    assert math.isnan(held.value[held.record == 2101][0])
    for code in (0, 1):
        of_series = held.record[held.code == code]
        assert (np.diff(of_series) > 0).all()
        assert of_series[0] == 1 + 100 * code


def test_nothing_is_thinned_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard_points, "MAX_POINTS", 500)
    points = Points()
    for start in range(0, 500, 50):
        points.close_block(block(start, [1.0] * 50))
    assert len(points.columns().record) == 500


def test_no_points_at_all() -> None:
    assert len(Points().columns().record) == 0
