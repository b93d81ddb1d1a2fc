from __future__ import annotations

import math

import pytest

from rca.report import measures


@pytest.mark.parametrize(
    ("share", "shown"), [(0, "<1%"), (0.0099, "<1%"), (0.01, "1%"), (0.914, "91%"), (0.997, ">99%"), (1, ">99%")]
)
def test_percent_never_claims_certainty(share: float, shown: str) -> None:
    assert measures.percent(share) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (3.0, "3"),
        (12_345.0, "12,345"),
        (0.000123456, "0.0001235"),
        (1e12, "1e+12"),
        (math.nan, "NaN"),
        (-math.inf, "-Inf"),
    ],
)
def test_number(value: float, shown: str) -> None:
    assert measures.number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2e-5, "20 µs"),
        (0.041, "41 ms"),
        (6.4, "6.4 s"),
        (59.6, "1 min"),
        (189, "3 min 9 s"),
        (19_380, "5 h 23 min"),
        (200_000, "2 d 7 h"),
        (-12, "−12 s"),
        (math.inf, "Inf"),
    ],
)
def test_seconds(value: float, shown: str) -> None:
    assert measures.seconds(value) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (48_120_441, "45.9 MiB"), (3 << 40, "3.0 TiB")],
)
def test_size(count: int, shown: str) -> None:
    assert measures.size(count) == shown


def test_times() -> None:
    assert measures.moment("2026-05-02T03:12:44.512Z") == "2026-05-02 03:12:44"
    assert measures.clock("2026-05-02T03:12:44.512Z") == "03:12:44.512"
    assert measures.clock("2026-05-02T03:12:44+00:00") == "03:12:44"
    assert measures.moment(None) == measures.clock(None) == ""
    assert measures.moment("yesterday") == "yesterday"
    assert [measures.relative(v) for v in (None, 0.0, 600.4, -3.5)] == ["", "0 s", "+10 min", "−3.5 s"]


def test_lists_of_numbers() -> None:
    assert measures.numbers_list((0, 1, 2, 4, 5, 7)) == "0\u20132, 4, 5, 7"
    assert measures.numbers_list(tuple(range(0, 40, 2)), limit=3) == "0, 2, 4, …"
    assert measures.numbers_list(()) == ""


def test_clean_keeps_text_and_shows_what_would_act() -> None:
    assert measures.clean("größe 日本\tx\ny\r\nz") == "größe 日本\tx\ny\nz"
    assert measures.clean("\x1b[2J\x07\u202e") == "\ufffd[2J\ufffd\ufffd"
    assert measures.one_line("a\n  b\tc " * 100, limit=9) == "a b c a…"
