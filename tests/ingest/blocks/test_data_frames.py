"""Missing values as pandas lists them."""

from __future__ import annotations

from typing import Any

import pytest

INFO = """<class 'pandas.core.frame.DataFrame'>
RangeIndex: 1,200 entries, 0 to 1199
Data columns (total 3 columns):
 #   Column      Non-Null Count  Dtype
---  ------      --------------  -----
 0   wind speed  1200 non-null   float64
 1   humidity    1188 non-null   float64
 2   note        0 non-null      object
dtypes: float64(2), object(1)
memory usage: 28.2+ KB
"""
SUMS = "df.isnull().sum()\nage       0\nlab_ph   61\ndtype: int64\n"
TITLED = "Missing values per column:\nage       0\nlab_ph   61\ndtype: int64\n"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (INFO.replace("1,200", "1200"), {"wind speed": 0, "humidity": 12, "note": 1200}),
        (SUMS, {"age": 0, "lab_ph": 61}),
        (TITLED, {"age": 0, "lab_ph": 61}),
        ("RangeIndex: 12 entries, 0 to 11\nand no list\n", {}),
        ("Missing values\nstep  12\nnothing more\n", {}),
        ("df.isnull().sum()\nage       0\n", {}),
    ],
)
def test_missing_values(read: Any, text: str, columns: dict[str, int]) -> None:
    rows = read("train.log", f"start\n{text}step 1 loss 0.5\n").table.named("data.column")
    assert {row.attr("name"): row.attr("missing") for row in rows} == columns
