"""Curves thinned without losing what matters."""

from __future__ import annotations

import math

import numpy as np

from rca.collect.series import POINTS, curves, thinned
from rca.events import EventBuilder, EventTable


def test_spikes_and_gaps_survive_thinning() -> None:
    x = np.arange(100_000.0)
    y = np.sin(x / 1000)
    y[54_321] = 99.0
    y[12_345] = -99.0
    y[70_000] = math.nan
    kept = thinned(x, y, points=POINTS)
    assert len(kept) <= POINTS * 1.1
    assert (54_321.0, 99.0) in kept
    assert (12_345.0, -99.0) in kept
    assert any(math.isnan(value) for _, value in kept)
    assert [place for place, _ in kept] == sorted(place for place, _ in kept)


def test_short_curves_are_kept_whole() -> None:
    x = np.arange(10.0)
    assert thinned(x, x, points=POINTS) == [(float(value), float(value)) for value in range(10)]


def test_known_curves_of_the_run_with_a_logarithmic_axis_where_the_range_asks_for_it() -> None:
    builder = EventBuilder("m.csv")
    builder.extend(3, kind="metric", name="loss", step=[1, 2, 3], value=[1.0, 10.0, 1000.0])
    builder.extend(3, kind="metric", name="learning_rate", step=[1, 2, 3], value=[1e-5, 1e-3, 1e-4])
    builder.extend(1, kind="metric", name="grad_norm", step=[1], value=[1.0])
    builder.extend(3, kind="metric", name="something_else", value=[1.0, 2.0, 3.0])
    found = {series.name: series for series in curves(EventTable.from_parts([builder.build()]))}
    assert set(found) == {"loss", "learning_rate"}
    assert found["loss"].log_scale
    assert not found["learning_rate"].log_scale
    assert found["loss"].x_name == "step"
