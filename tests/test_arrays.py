"""Arrow arrays from plain values, equal to what pyarrow itself makes of them."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from rca.arrays import array, repeated

CATEGORY = pa.dictionary(pa.int32(), pa.string())
TIME = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], pa.int64()),
        ([1, None, -3], pa.int64()),
        ([None, None], pa.int32()),
        ([1.5, None, math.inf], pa.float64()),
        (["a", None, "é"], pa.string()),
        (["a", "b", None, "a"], CATEGORY),
        ([], CATEGORY),
        ([1_000_000, None], TIME),
    ],
)
def test_lists(values, kind) -> None:
    plain = pa.string() if kind == CATEGORY else kind
    assert array(values, kind).cast(plain).to_pylist() == pa.array(values, type=plain).to_pylist()
    assert array(values, kind).type == kind


def test_nan_is_a_value_in_lists_and_null_only_where_asked() -> None:
    kept = array(np.array([1.0, math.nan]), pa.float64()).to_pylist()
    assert math.isnan(kept[1])
    assert array(np.array([1.0, math.nan]), pa.int64(), nan_is_null=True).to_pylist() == [1, None]


def test_integers_that_do_not_fit_are_null() -> None:
    assert array([10**30, -(10**30), 7], pa.int64()).to_pylist() == [None, None, 7]
    assert array([2**31, 5], pa.int32()).to_pylist() == [None, 5]


def test_missing_times_are_null() -> None:
    times = np.array([1_000_000, 0]).astype("datetime64[us]")
    times[1] = np.datetime64("NaT")
    assert array(times, TIME).cast(pa.int64()).to_pylist() == [1_000_000, None]


def test_arrow_arrays_are_taken_as_they_are() -> None:
    assert array(pa.chunked_array([[1], [2, None]]), pa.int64()).to_pylist() == [1, 2, None]
    assert array(pa.array([1, 2]), pa.float64()).to_pylist() == [1.0, 2.0]


@pytest.mark.parametrize(("value", "kind"), [("x", CATEGORY), ("x", pa.string()), (3, pa.int64()), (None, CATEGORY)])
def test_one_value_many_times(value, kind) -> None:
    found = repeated(value, kind, 3)
    assert found.type == kind
    assert found.to_pylist() == [value] * 3


def test_pandas_is_not_loaded() -> None:
    code = (
        "import sys, pyarrow as pa\nfrom rca.events import EventBuilder, EventTable\n"
        "builder = EventBuilder('a')\nbuilder.add(kind='log', name='x.y', text='t')\n"
        "builder.extend(2, kind='metric', name='loss', value=[1.0, 2.0], step=[1, 2])\n"
        "table = EventTable.from_parts([builder.build()])\ntable.events, table.metric('loss')\n"
        "print('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
