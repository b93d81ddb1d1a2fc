"""TensorBoard event files: scalars of all forms, histograms, texts, hyper-parameters.

Damaged files give what is whole in them. Where a run was resumed and its steps go back, the points of both stretches
are kept in the order in which they were written: none replaces another, and the last one written is the run's last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

import numpy as np
import pyarrow as pa

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.event_files.names import series_names
from rca.ingest.event_files.points import MAX_POINTS, Columns
from rca.ingest.event_files.records import MAX_TAGS, MAX_TEXTS, Records
from rca.ingest.event_files.settings import add_settings
from rca.ingest.event_files.tfrecord import HEADER, Damage, read_blocks, starts_with_record
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.metric_units import in_common_unit, meaning
from rca.ingest.places.content import open_stream

TEXT = "tensorboard.text"
"""Name of the log events that hold text summaries; `attrs["tag"]` is their tag."""

_LATEST = 4.1e9
"""Seconds; a wall time after the year 2099 or before 1970 is no wall time."""


class TensorBoardIngestor:
    """Reads TensorBoard event files into metrics, configuration and text events."""

    name = "tensorboard events"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take files named `events.out.tfevents.*`, and files whose first record is an event with a wall time."""
        named = "tfevents" in source.path.rsplit("/", 1)[-1]
        return named or (starts_with_record(head) and head[HEADER : HEADER + 1] == b"\x09" and b"brain.Event" in head)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read every whole record. Raises UnreadableSource where there is none."""
        records = Records()
        damages: list[Damage] = []
        size, cut = 0, False
        with _stream(source, context) as (stream, lost):
            for block in read_blocks(stream, limit=context.limits.source_bytes):
                damages += block.damages
                size = block.offset + len(block.data)
                records.take(block)
            cut = bool(stream.read(1))
        if not records.whole:
            raise UnreadableSource(
                f"{source.path} holds no whole TensorBoard record in its {size:,} bytes: "
                "it is empty, still being written, or another format."
            )
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        held = records.points.columns()
        times = _micros(held.wall_time)
        _add_points(out, records, held, times)
        _add_words(out, records)
        seen = times[times >= 0]
        return Ingested(
            out.build(),
            lines=records.whole,
            bytes=size,
            first_time=int(seen.min()) if len(seen) else None,
            last_time=int(seen.max()) if len(seen) else None,
            warnings=(*lost, *_cut(size, cut=cut), *_damaged(records, damages), *_told(records, held)),
        )


@contextmanager
def _stream(source: Source, context: IngestContext) -> Iterator[tuple[IO[bytes], tuple[str, ...]]]:
    """Give the bytes as a stream that is read once, and what was lost in unpacking it.

    A plain file is read and not mapped: the pages of a map would count as memory of ours.
    """
    try:
        with source.file.open("rb") as file:
            plain = starts_with_record(file.read(HEADER))
            if plain:
                file.seek(0)
                yield file, ()
    except OSError as error:
        raise UnreadableSource(f"{source.path} cannot be read: {error.strerror or error}.") from error
    if not plain:
        with open_stream(source, context.limits) as unpacked:
            yield unpacked


def _add_points(out: EventBuilder, records: Records, held: Columns, times: np.ndarray) -> None:
    """Add all points, those of one series together."""
    count = len(held.record)
    if not count:
        return
    tags = records.decoder.series
    counts = np.bincount(held.code, minlength=len(tags)).tolist()
    names = series_names(tags, counts, path=out.source)
    meant = [meaning(tag) for tag in tags]
    ends = np.cumsum(counts)
    for end, points, as_named in zip(ends.tolist(), counts, meant, strict=True):
        if points and (as_named.factor != 1.0 or as_named.guess):
            held.value[end - points : end] = in_common_unit(held.value[end - points : end], as_named)
    known = times >= 0
    micros = pa.array(times) if known.all() else pa.array(times, mask=~known)
    out.extend(
        count,
        kind="metric",
        name=pa.DictionaryArray.from_arrays(held.code, pa.array(names, pa.string())),
        line=pa.array(held.record),
        time=micros.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC")),
        step=pa.array(held.step),
        value=pa.array(held.value),
        unit=_units(held, [as_named.unit for as_named in meant]),
        attrs=pa.array(held.note, pa.string()) if records.histograms else None,
    )


def _units(held: Columns, units: Sequence[str]) -> pa.Array | None:
    """Return the unit of every point. A dictionary that holds null cannot be joined with others, so none does."""
    known = sorted({unit for unit in units if unit})
    if not known:
        return None
    codes = np.array([known.index(unit) if unit else -1 for unit in units], np.int32)[held.code]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(known, pa.string()))


def _add_words(out: EventBuilder, records: Records) -> None:
    """Add texts and settings."""
    for place, tag, text in records.texts:
        when = _micro(place.wall_time)
        out.add(
            kind="log",
            name=TEXT,
            line=place.record,
            time=when,
            step=place.step,
            severity="info",
            text=text,
            attrs={"tag": tag},
        )
    for place, settings in records.settings:
        add_settings(out, settings, line=place.record, time=_micro(place.wall_time))


def _cut(size: int, *, cut: bool) -> Iterator[str]:
    if cut:
        yield f"Only the first {size:,} bytes were read."


def _damaged(records: Records, damages: list[Damage]) -> Iterator[str]:
    """Say what was damaged."""
    if records.corrupt:
        yield (
            f"{records.corrupt:,} records whose checksum does not fit were left out, "
            f"the first at byte {records.first_corrupt:,}."
        )
    for damage in damages[:8]:
        size = f": {damage.size:,} bytes were passed over" if damage.size else ""
        yield f"At byte {damage.offset:,} {damage.reason}{size}."
    if len(damages) > 8:
        yield f"{len(damages) - 8:,} more places are damaged."


def _told(records: Records, held: Columns) -> Iterator[str]:
    """Say what was left out, and where steps go back."""
    if records.left_out:
        listed = ", ".join(f"{count:,} {kind}{'s' * (count > 1)}" for kind, count in records.left_out.most_common())
        yield f"Not read as events: {listed}."
    if records.cut_texts:
        yield f"{records.cut_texts:,} text summaries after the first {MAX_TEXTS} were left out."
    if records.cut_tags:
        yield f"{records.cut_tags:,} points of tags after the first {MAX_TAGS:,} were left out."
    if len(held.record) < records.points.seen:
        yield (
            f"Of {records.points.seen:,} points {len(held.record):,} are kept, at most {MAX_POINTS:,} a file: "
            "of every few neighbours of a curve the largest and the smallest."
        )
    back = np.flatnonzero((np.diff(held.step) < 0) & (np.diff(held.code) == 0))
    if len(back):
        series = held.code[back]
        most = np.flatnonzero(series == np.bincount(series).argmax())
        at = int(back[most[0]])
        times = "once" if len(most) == 1 else f"{len(most):,} times"
        yield (
            f"Steps go back {times}, first from {held.step[at]:,} to {held.step[at + 1]:,} at record "
            f"{held.record[at + 1]:,}, as where a run was resumed: all points are kept in the order in which they were "
            "written."
        )


def _micros(wall: np.ndarray) -> np.ndarray:
    """Return microseconds since the epoch, -1 where the wall time is none."""
    known = np.isfinite(wall) & (wall > 0) & (wall < _LATEST)
    return np.where(known, np.where(known, wall, 0) * 1e6, -1).astype(np.int64)


def _micro(wall: float) -> int | None:
    micros = int(_micros(np.array([wall]))[0])
    return micros if micros >= 0 else None
