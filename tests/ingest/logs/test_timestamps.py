"""Times that lack their year or their day."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rca.ingest.logs.timestamps import DAY, Clock, Stamp, clock, first_full_date, midnight


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1e6)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        (b"start 2024-06-30 21:00:09", "2024-06-30T21:00:09"),
        (b"CANCELLED AT 2025-01-10T15:27:25 DUE", "2025-01-10T15:27:25"),
        (b"05/15/2025 22:47:10 - INFO", "2025-05-15T22:47:10"),
        (b"Thu Aug 29 11:02:11 2024", "2024-08-29T11:02:11"),
        (b"no time, version 2024.10.1", None),
        (b"2024-13-45 99:99:99 then 2024-01-02 03:04:05", "2024-01-02T03:04:05"),
    ],
)
def test_the_first_complete_time_anywhere(text: bytes, time: str | None) -> None:
    assert first_full_date(text) == (at(time) if time else None)


def test_the_year_is_the_one_nearest_to_a_known_time() -> None:
    known = Clock(at("2024-12-31T23:00:00"))
    assert known.resolve(Stamp(None, 1, 1, 60_000_000), 5) == at("2025-01-01T00:01:00")
    assert known.resolve(Stamp(None, 12, 31, 0), 6) == at("2024-12-31T00:00:00")


def test_the_day_follows_over_midnight() -> None:
    known = Clock()
    assert known.resolve(Stamp(2024, 5, 1, 23 * 3_600_000_000), 1) == at("2024-05-01T23:00:00")
    assert known.resolve(Stamp(None, None, None, 3_600_000_000), 2) == at("2024-05-02T01:00:00")


def test_another_source_gives_the_year_but_not_the_day() -> None:
    other = Clock(year_from=at("2024-06-30T00:00:00"))
    assert other.resolve(Stamp(None, None, None, 0), 1) is None
    assert other.resolve(Stamp(None, 7, 1, 0), 2) == at("2024-07-01T00:00:00")
    assert other.resolve(Stamp(None, None, None, 1_000_000), 3) == at("2024-07-01T00:00:01")


def test_without_any_known_time_the_missing_part_stays_missing() -> None:
    assert Clock().resolve(Stamp(None, 5, 1, 0), 1) is None
    assert Clock().resolve(Stamp(None, None, None, 0), 1) is None


def test_what_is_no_date_is_no_time() -> None:
    assert midnight(2024, 2, 30) is None
    assert Clock(0).resolve(Stamp(2024, 2, 30, 0), 1) is None
    assert Clock(at("2023-06-01T00:00:00")).resolve(Stamp(None, 2, 30, 0), 1) is None
    assert clock("24", "00", "00") is None
    assert clock("10", "00", "00", "5", "+02:00") == 8 * 3_600_000_000 + 500_000


@given(st.integers(1971, 2099), st.integers(1, 12), st.integers(1, 28), st.integers(0, DAY - 1))
def test_complete_times_are_exact(year: int, month: int, day: int, micros: int) -> None:
    found = Clock().resolve(Stamp(year, month, day, micros), 1)
    assert found is not None
    assert (
        datetime.fromtimestamp(found // 1_000_000, tz=timezone.utc).date().isoformat()
        == f"{year}-{month:02d}-{day:02d}"
    )
