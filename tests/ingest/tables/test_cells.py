from __future__ import annotations

import math

import pytest

from rca.ingest.tables.cells import number, number_with_unit, size_in_bytes


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1e-3", 1e-3), (" 2 ", 2.0), ("12,645", 12645.0), ("1,234,567.5", 1234567.5), ("-inf", -math.inf), (True, 1.0),
        (3, 3.0), (10**400, math.inf), ("0,1", None), ("", None),
        ("n/a", None), (None, None), ([1], None), ("x" * 99, None),
    ],
)  # fmt: skip
def test_number(value: object, expected: float | None) -> None:
    assert number(value) == expected


@pytest.mark.parametrize("text", ["nan", "NaN", " NAN "])
def test_nan_is_a_number(text: str) -> None:
    found = number(text)
    assert found is not None
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1410 MHz", (1410.0, "MHz")), ("98 %", (98.0, "%")), ("45C", (45.0, "C")), ("-1.5e3", (-1500.0, "")),
     ("[N/A]", None), ("Not Active", None), ("0x0000000000000024", None), ("1 2", None), ("9" * 99, None)],
)  # fmt: skip
def test_number_with_unit(text: str, expected: tuple[float, str] | None) -> None:
    assert number_with_unit(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("78738MiB", 78738 * 2**20), ("64M", 64 * 2**20), ("12Gi", 12 * 2**30), ("2.50 GiB", 2684354560), ("4096", 4096),
     ("0", 0), ("1.5 apples", None), ("MiB", None), ("1e400 GB", None), ("9" * 99, None)],
)  # fmt: skip
def test_size_in_bytes(text: str, expected: int | None) -> None:
    assert size_in_bytes(text) == expected
