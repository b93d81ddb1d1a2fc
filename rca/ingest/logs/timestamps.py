"""Wall-clock times as logs print them: complete ones, and ones whose year or day must come from elsewhere."""

from __future__ import annotations

import bisect
import re
from datetime import date
from functools import lru_cache
from typing import NamedTuple

DAY = 86_400_000_000
"""Microseconds."""

_KEPT_EVERY = 60_000_000
"""Known times are kept a minute apart: enough to tell the day of one that lacks it."""
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_FIRST_YEAR, _LAST_YEAR = 1970, 2100

FULL_DATE = re.compile(
    rb"(?<![\d.])(?:(20\d\d)[-/](\d\d)[-/](\d\d)[T _](\d\d):(\d\d):(\d\d)"
    rb"|(\d\d)/(\d\d)/(20\d\d)[ T](\d\d):(\d\d):(\d\d)"
    rb"|[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (?:[A-Z]{3,4} )?(20\d\d))"
)
"""A complete date and time anywhere in the text: what gives the year or the day to the times that lack them."""


class Stamp(NamedTuple):
    """One printed time; what it did not print is None."""

    year: int | None
    month: int | None
    day: int | None
    micros: int
    """Microseconds since midnight, already moved to UTC where an offset was printed (so it may leave the day)."""


def clock(hours: str, minutes: str, seconds: str, fraction: str | None = None, zone: str | None = None) -> int | None:
    """Return microseconds since midnight UTC, or None for what is no time of day."""
    whole = _whole(hours, minutes, seconds, zone)
    if whole is None or not fraction:
        return whole
    return whole + int(fraction[:6].ljust(6, "0"))


@lru_cache(maxsize=65_536)
def _whole(hours: str, minutes: str, seconds: str, zone: str | None) -> int | None:
    hour, minute, second = int(hours), int(minutes), int(seconds)
    if hour > 23 or minute > 59 or second > 60:
        return None
    micros = ((hour * 60 + minute) * 60 + second) * 1_000_000
    if zone and zone[0] in "+-":
        digits = zone[1:].replace(":", "")
        shift = (int(digits[:2]) * 60 + int(digits[2:] or 0)) * 60_000_000
        micros -= shift if zone[0] == "+" else -shift
    return micros


def month_number(name: str) -> int | None:
    """Return 1 to 12 for an English month name of three letters, or None."""
    return _MONTHS.get(name.lower())


@lru_cache(maxsize=4096)
def midnight(year: int, month: int, day: int) -> int | None:
    """Return the start of a day in microseconds since the epoch, or None for what is no date."""
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    try:
        return (date(year, month, day).toordinal() - 719_163) * DAY
    except ValueError:
        return None


def first_full_date(data: bytes) -> int | None:
    """Return the first complete time printed anywhere in the bytes, in microseconds since the epoch."""
    for found in FULL_DATE.finditer(data):
        groups = [item.decode() if item else "" for item in found.groups()]
        if groups[0]:
            start, time = midnight(int(groups[0]), int(groups[1]), int(groups[2])), clock(*groups[3:6])
        elif groups[6]:
            start, time = midnight(int(groups[8]), int(groups[6]), int(groups[7])), clock(*groups[9:12])
        else:
            month = month_number(groups[12])
            start = None if month is None else midnight(int(groups[17]), month, int(groups[13]))
            time = clock(*groups[14:17])
        if start is not None and time is not None:
            return start + time
    return None


class Clock:
    """Completes the times of one source: a year or a day that is not printed is the one nearest to a known time.

    `anchor` is a time that the source prints, `year_from` one that another source of the run prints: that is near
    enough to tell the year, not the day.
    """

    def __init__(self, anchor: int | None = None, *, year_from: int | None = None) -> None:
        self._anchor = anchor
        self._year_from = year_from
        self._lines: list[int] = []
        self._times: list[int] = []

    def resolve(self, stamp: Stamp, line: int) -> int | None:
        """Return microseconds since the epoch, or None where nothing in the source gives the missing part."""
        if stamp.year is not None and stamp.month is not None and stamp.day is not None:
            start = midnight(stamp.year, stamp.month, stamp.day)
            if start is None:
                return None
            return self._keep(line, start + stamp.micros)
        near = self._near(line)
        if near is None and stamp.month is not None:
            near = self._year_from
        if near is None:
            return None
        if stamp.month is not None and stamp.day is not None:
            year = date.fromordinal(near // DAY + 719_163).year
            found = [
                start + stamp.micros
                for start in (midnight(item, stamp.month, stamp.day) for item in (year - 1, year, year + 1))
                if start is not None
            ]
        else:
            start = near // DAY * DAY
            found = [start + shift + stamp.micros for shift in (-DAY, 0, DAY)]
        if not found:
            return None
        return self._keep(line, min(found, key=lambda time: (abs(time - near), time)))

    def _near(self, line: int) -> int | None:
        """The known time nearest before the line, else the nearest after it."""
        index = bisect.bisect_right(self._lines, line)
        if index:
            return self._times[index - 1]
        return self._times[0] if self._times else self._anchor

    def _keep(self, line: int, time: int) -> int:
        if not self._lines or (line > self._lines[-1] and abs(time - self._times[-1]) >= _KEPT_EVERY):
            self._lines.append(line)
            self._times.append(time)
        return time
