"""Numbers with units, and captures with types."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rca.ingest.logs.captures import typed
from rca.ingest.quantities import number, seconds, size_bytes
from rca.rules.schema import Capture


@pytest.mark.parametrize(
    ("text", "value"),
    [("12,645", 12645.0), ("1.2E+01", 12.0), ("-.5", -0.5), ("nan", math.nan), ("-inf", -math.inf), ("x", None)],
)
def test_number(text: str, value: float | None) -> None:
    assert number(text) == pytest.approx(value, nan_ok=True) if value is not None else number(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.50 GiB", 2.5 * 2**30),
        ("512 MB", 512 * 2**20),
        ("81920 kB", 81920 * 1024),
        ("39.1G", round(39.1 * 2**30)),
        ("7", 7),
        ("GiB", None),
    ],
)
def test_size(text: str, value: float | None) -> None:
    assert size_bytes(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("600000 ms", 600.0),
        ("600000 milliseconds", 600.0),
        ("10 min", 600.0),
        ("1:02:03", 3723.0),
        ("02:03", 123.0),
        ("1-06:00:00", 108000.0),
        ("1h 30m", 5400.0),
        ("7.5", 7.5),
        ("soon", None),
    ],
)
def test_seconds(text: str, value: float | None) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize(
    ("kind", "unit", "text", "value"),
    [
        ("bytes", "", "2.50 GiB", 2.5 * 2**30),
        ("bytes", "kB", "100", 102400),
        ("seconds", "ms", "600096", 600.096),
        ("seconds", "s", "30", 30.0),
        ("seconds", "", "600000 milliseconds", 600.0),
        ("int", "", "1,024", 1024),
        ("int", "", "nan", "nan"),
        ("float", "", "1e-3", 0.001),
        ("float", "", "none", "none"),
        ("str", "", " 7 ", " 7 "),
    ],
)
def test_typed(kind: Any, unit: str, text: str, value: Any) -> None:
    assert typed(Capture(type=kind, unit=unit), text) == value
