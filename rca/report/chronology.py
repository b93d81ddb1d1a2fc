"""The timeline as it is read: one row a line, the observed failure among them, whole seconds where they belong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from rca.diagnosis import Diagnosis, Failure, TimelineEntry

_SEVERITIES = ("info", "warning", "error", "fatal")
FAILURE_ID = "failure"
"""Id of the row of a failure that no message told, such as a loss that became NaN."""


_HARMLESS = frozenset({"debug", "info"})
_FOLLOWS = frozenset({"benign", "cascade", "teardown"})
_NUMBERED = re.compile(r"\S*\d\S*")
"""What differs between processes that say the same: numbers, and names and addresses with numbers in them."""
_TOGETHER = timedelta(seconds=60)
"""How far apart the same message still is one row."""


class Moment(NamedTuple):
    """One row of the timeline: everything that was read out of one line, or a message with its repetitions."""

    entry: TimelineEntry
    """The worst of it, in the longest words."""
    ids: tuple[str, ...]
    names: tuple[str, ...]
    ranks: tuple[int, ...] = ()
    """Whose message it is."""
    again: tuple[TimelineEntry, ...] = ()
    """Where else it was said, in the order of time."""


def telling(moments: Sequence[Moment], count: int) -> tuple[Moment, ...]:
    """At most `count` rows in their order: the first failure, then what is no mere information, the nearest first."""
    failing = next((n for n, moment in enumerate(moments) if moment.entry.role == "initiating"), len(moments) - 1)

    def key(numbered: tuple[int, Moment]) -> tuple[bool, bool, int]:
        number, moment = numbered
        return number != failing, moment.entry.severity in _HARMLESS, abs(number - failing)

    kept = sorted(number for number, _ in sorted(enumerate(moments), key=key)[:count])
    return tuple(moments[number] for number in kept)


def chronology(diagnosis: Diagnosis) -> tuple[Moment, ...]:
    """Return the timeline as it is listed: what is harmless or a consequence and said again in a minute is one row.

    Thousands of ranks lose their peers in the same words, and the row that begins it must not drown in them.
    """
    return tuple(_folded(moments(diagnosis)))


def moments(diagnosis: Diagnosis) -> tuple[Moment, ...]:
    """Return all rows of the timeline, oldest first, what bears no time last.

    A line that is both an exception and a known message is one row. The observed failure has a row even where it was
    seen in a curve. A stamp of whole seconds stands at the end of its second when others of that second have fractions:
    a launcher's report, cut to the second, would seem to precede what it reports.
    """
    failure = diagnosis.failure
    entries = list(diagnosis.timeline)
    if failure is not None and not any(_at(entry, failure) for entry in entries):
        entries.insert(_before(entries, failure), _row_of(failure))
    zero = _time(failure.time) if failure is not None else None
    entries = [_from(entry, zero) for entry in entries]
    parted = {moment.replace(microsecond=0) for e in entries if (moment := _time(e.time)) and moment.microsecond}
    placed = [_blurred(entry, parted, zero) for entry in _ordered(entries, parted)]
    return tuple(_merged(rows) for rows in _by_line(placed))


def _folded(unfolded: Iterable[Moment]) -> list[Moment]:
    """What is said again as one row, at the place where it was said first."""
    rows: list[Moment] = []
    first: dict[tuple[str, ...], int] = {}
    for moment in unfolded:
        entry = moment.entry
        alone = entry.severity not in _HARMLESS and entry.role not in _FOLLOWS
        if alone or entry.role == "initiating" or not moment.names:
            rows.append(moment)
            continue
        key = (entry.severity, entry.kind, _NUMBERED.sub("#", entry.text), *moment.names)
        known = first.get(key)
        if known is None or not _beside(rows[known].entry, moment.entry):
            first[key] = len(rows)
            rows.append(moment)
        else:
            rows[known] = _joined(rows[known], moment)
    return rows


def _beside(first: TimelineEntry, other: TimelineEntry) -> bool:
    """Whether both were said at about the same time; what bears no time stands together."""
    begun, time = _time(first.time), _time(other.time)
    if begun is None or time is None or bool(begun.tzinfo) != bool(time.tzinfo):
        return begun is time
    return time - begun <= _TOGETHER


def _joined(moment: Moment, other: Moment) -> Moment:
    entry = moment.entry.model_copy(update={"count": moment.entry.count + other.entry.count})
    return moment._replace(
        entry=entry,
        ids=moment.ids + other.ids,
        ranks=tuple(dict.fromkeys(moment.ranks + other.ranks)),
        again=(*moment.again, other.entry),
    )


def _at(entry: TimelineEntry, failure: Failure) -> bool:
    if failure.evidence and entry.id == failure.evidence:
        return True
    return bool(failure.source) and (entry.source, entry.line) == (failure.source, failure.line)


def _before(entries: Sequence[TimelineEntry], failure: Failure) -> int:
    """Where the failure stands among rows without a time: before the first later line of its file."""
    later = (
        number
        for number, entry in enumerate(entries)
        if entry.source == failure.source and (entry.line or 0) > (failure.line or 0) and entry.time is None
    )
    return next(later, len(entries))


def _row_of(failure: Failure) -> TimelineEntry:
    return TimelineEntry(
        id=FAILURE_ID,
        time=failure.time,
        step=failure.step,
        rank=failure.rank,
        host=failure.host,
        kind="metric",
        name="",
        severity="error",
        role="initiating",
        source=failure.source,
        line=failure.line,
        text=failure.what,
    )


def _time(iso: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(iso.replace("Z", "+00:00")) if iso else None
    except ValueError:
        return None


def _from(entry: TimelineEntry, zero: datetime | None) -> TimelineEntry:
    """With its distance from the failure, where both times are known and nobody said it yet."""
    time = _time(entry.time)
    if entry.relative_s is not None or zero is None or time is None or bool(time.tzinfo) != bool(zero.tzinfo):
        return entry
    return entry.model_copy(update={"relative_s": (time - zero).total_seconds()})


def _ordered(entries: Sequence[TimelineEntry], parted: set[datetime]) -> list[TimelineEntry]:
    def key(numbered: tuple[int, TimelineEntry]) -> tuple[bool, float, bool, int]:
        number, entry = numbered
        time = _time(entry.time)
        if time is None:
            return (True, 0.0, False, number)
        whole = not time.microsecond and time in parted
        aware = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
        return (False, (aware + timedelta(seconds=0.999_999 if whole else 0)).timestamp(), whole, number)

    return [entry for _, entry in sorted(enumerate(entries), key=key)]


def _blurred(entry: TimelineEntry, parted: set[datetime], zero: datetime | None) -> TimelineEntry:
    """Without a distance to the failure where the stamp cannot tell what came first within their second."""
    time = _time(entry.time)
    if zero is None or time is None or time.microsecond or time not in parted:
        return entry
    return entry.model_copy(update={"relative_s": None}) if time == zero.replace(microsecond=0) else entry


def _by_line(entries: Iterable[TimelineEntry]) -> list[list[TimelineEntry]]:
    """Neighbours that stand in one line of one file, together."""
    groups: list[list[TimelineEntry]] = []
    for entry in entries:
        last = groups[-1][-1] if groups else None
        same = (
            last is not None
            and entry.line is not None
            and (last.source, last.line, last.time) == (entry.source, entry.line, entry.time)
        )
        if same:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def _merged(rows: Sequence[TimelineEntry]) -> Moment:
    worst = max(rows, key=lambda row: _SEVERITIES.index(row.severity) if row.severity in _SEVERITIES else 0)
    roles = [row.role for row in rows if row.role]
    entry = worst.model_copy(
        update={
            "text": max((row.text for row in rows), key=len),
            "role": "initiating" if "initiating" in roles else roles[0] if roles else None,
            "rank": next((row.rank for row in rows if row.rank is not None), None),
            "count": max(row.count for row in rows),
        }
    )
    names = dict.fromkeys(row.name for row in rows if row.name)
    ranks = () if entry.rank is None else (entry.rank,)
    return Moment(entry, tuple(row.id for row in rows), tuple(names), ranks)
