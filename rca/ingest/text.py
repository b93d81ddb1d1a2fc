"""Logs: one pass over the bytes, a closer look at the few lines that say something."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any

import numpy as np

from rca.ingest.captures import typed
from rca.ingest.document import BlockParser, Prefix
from rca.ingest.file_names import is_code_name, is_log_name
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.line_search import LineSearch, line_search
from rca.ingest.repeats import BoundedEvents, Repeats
from rca.ingest.scanner import Hit, Tally, line_around
from rca.ingest.text_document import Chunk, TextDocument
from rca.ingest.training_metrics import MetricReader, Segment
from rca.ingest.training_metrics.alike import AlikeLines, Lines
from rca.ingest.windows import open_windows

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_IN_A_ROW = 16
"""Alike lines in a row after which the next ones are read together; fewer of them are not worth it."""
_MOST_HELD = 4096
_NOTICES = 50
"""Reports kept of a message that is no sign of trouble and tells no number; further ones are only counted."""
_BREAK = (b"\n", b"")
_SHAPE = 160
_SHAPES = 16_384
"""Bytes of a line that tell what it is like, and shapes that are remembered of one source."""
_HEX = b"0123456789abcdef"
_BARREN, _STALE = 16, 64
"""Lines of one shape in a row after which the next ones are passed over: lines of which nothing came though a pattern
may match, and single lines of settings that told nothing new."""
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\v\b\x1b\0"))
_BINARY_SHARE = 0.3
"""Share of bytes that no text has, above which a file is not text; logs with a few broken bytes stay far below."""


class TextIngestor:
    """Log text of any kind; reads whatever no other reader claims."""

    name = "log"

    def __init__(self, blocks: Sequence[BlockParser], *, after_metrics: Sequence[BlockParser] = ()) -> None:
        self._blocks = tuple(blocks)
        self._after_metrics = tuple(after_metrics)

    def accepts(self, source: Source, head: bytes) -> bool:
        """Say whether the file is text that a program wrote."""
        if is_code_name(source.path):
            return False
        if head.startswith(_WIDE):
            return True
        # A crash of the machine, or a rotation under a running job, leaves NUL bytes before or after the text.
        return is_text(head.strip(b"\0") if is_log_name(source.path) else head)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read a log. Raises UnreadableSource when the file cannot be opened."""
        engine = line_search(context.signatures, self._blocks, self._after_metrics)
        with open_windows(source, context.limits) as opened:
            document = TextDocument(source, opened.data, context.limits)
            reading = _Reading(source, context, document, engine)
            for chunk in document.chunks():
                if context.told is not None:
                    context.told(chunk.offset)
                reading.read(chunk)
                document.forget(chunk.line)
            return reading.finish(len(opened.data), [*opened.warnings, *opened.data.problems()])


def is_text(head: bytes) -> bool:
    """Say whether bytes look like text of any encoding that keeps ASCII."""
    if not head:
        return True
    text = head.decode("utf-8", "replace")
    odd = text.count("\ufffd") + len(head) - len(head.translate(None, _CONTROLS))
    return odd <= _BINARY_SHARE * len(text) and head.count(0) <= 0.1 * len(head)


class _Reading:
    """One pass over one source."""

    def __init__(self, source: Source, context: IngestContext, document: TextDocument, engine: LineSearch) -> None:
        self._limits = context.limits
        self._document = document
        self._engine = engine
        self._out = BoundedEvents(source, context.limits.events_per_source)
        self._metrics = MetricReader(document)
        self._repeats: dict[int, Repeats] = {}
        self._tallies: dict[int, Tally] = {}
        self._block_end = 0
        self._first_time: int | None = None
        self._last_time: int | None = None
        self._alike: AlikeLines | None = None
        """What the lines that are held back look like."""
        self._seen: AlikeLines | None = None
        self._in_a_row = 0
        self._harmless: frozenset[int] = frozenset()
        """Patterns that matched on such lines without anything coming of it."""
        self._held: list[tuple[Hit, int]] = []
        self._dull: dict[tuple[frozenset[int], bytes], float] = {}
        """How often lines of a shape said nothing, in a row."""

    def read(self, chunk: Chunk) -> None:
        """Look at every line of the chunk on which a pattern may match."""
        line = chunk.line
        counted = 0
        text = chunk.text
        for hit in self._engine.scanner.hits(text, self._tallies):
            line += text.count(b"\n", counted, hit.start)
            counted = hit.start
            if self._alike is not None and self._is_alike(hit) and self._open(line):
                self._held.append((hit, line))
                if len(self._held) >= _MOST_HELD:
                    self._read_held(chunk)
                continue
            shape = hit.patterns, text[hit.start : min(hit.end, hit.start + _SHAPE)].translate(None, _HEX)
            dull = self._dull.get(shape, 0)
            if dull >= _BARREN and self._open(line):
                continue
            self._read_held(chunk)
            came = self._line(chunk, hit, line)
            if came > 0:
                self._dull.pop(shape, None)
            elif len(self._dull) < _SHAPES:
                self._dull[shape] = dull + 1 if came == 0 else dull + _BARREN / _STALE
        self._read_held(chunk)
        for index, tally in self._tallies.items():
            if tally.count:
                # The last of the lines that were only counted stands for them.
                hit = Hit(*line_around(text, max(tally.last - 1, 0)), frozenset({index}))
                self._repeats[index].more(tally.count - 1)
                self._line(chunk, hit, chunk.line + text.count(b"\n", 0, hit.start))
                tally.count, tally.last = 0, -1

    def _line(self, chunk: Chunk, hit: Hit, line: int) -> int:
        """Read one line; return 1 where it said something, -1 where it is a line of settings without news, else 0."""
        document = self._document
        raw = chunk.text[hit.start : min(hit.end, hit.start + self._limits.line_bytes)]
        text = raw.decode("utf-8", "replace")
        prefix = document.parse(text, line)
        if prefix.time is not None:
            document.note_time(line, prefix.time)
        engine = self._engine
        whole = chunk.text[hit.start - 1 : hit.start] in _BREAK and chunk.text[hit.end : hit.end + 1] in _BREAK
        if whole and hit.end - hit.start <= self._limits.line_bytes and hit.start:
            document.remember(line, prefix)
        offset = chunk.offset + hit.start if chunk.same else None
        measured = not engine.metrics.isdisjoint(hit.patterns)
        asked = [pattern for pattern in hit.patterns if pattern in engine.triggers]
        before, was_open = len(self._out), self._open(line)
        if asked and was_open:
            self._block(asked, line, late=False)
        told = line in document.silent
        if not told:
            for index in sorted(pattern for pattern in hit.patterns if pattern < engine.count):
                told |= self._signature(index, text, prefix, line, offset)
        if self._open(line):
            taken = False
            if measured:
                place = document.offset(line) if offset is None else offset
                segment = Segment(prefix.message, line, place, self._time(prefix, line), prefix.rank)
                taken = self._metrics.read(segment)
                told |= not self._metrics.idle
            if asked and not taken:
                self._block(asked, line, late=True)
            self._follow(hit, text, prefix, taken=taken and self._open(line))
        if told or len(self._out) > before or not was_open or self._block_end > line + 1:
            return 1
        return 0 if self._open(line) else -1

    def _is_alike(self, hit: Hit) -> bool:
        return hit.patterns <= self._harmless and not self._engine.metrics.isdisjoint(hit.patterns)

    def _follow(self, hit: Hit, text: str, prefix: Prefix, *, taken: bool) -> None:
        """Count lines in a row of which nothing but alike metrics came; after a few, hold the next ones back."""
        form = None
        if taken and min(hit.patterns) >= self._engine.count:
            form = self._document.form(text, prefix)
        alike = None if form is None else self._metrics.like_the_last(form)
        if alike is None:
            self._alike, self._in_a_row = None, 0
            return
        last = self._seen
        if last is None or last.template is not alike.template or last.form != alike.form:
            self._seen, self._in_a_row, self._harmless = alike, 0, frozenset()
        self._in_a_row += 1
        self._harmless |= hit.patterns
        self._alike = self._seen if self._in_a_row >= _IN_A_ROW else None

    def _read_held(self, chunk: Chunk) -> None:
        """Read the lines that were held back, together where they fit and one by one where not."""
        held, self._held = self._held, []
        alike = self._alike
        limit = self._limits.line_bytes
        read = None
        if alike is not None and len(held) >= _IN_A_ROW and all(hit.end - hit.start <= limit for hit, _ in held):
            read = alike.read([chunk.text[hit.start : hit.end] for hit, _ in held])
        if alike is None or read is None:
            for hit, line in held:
                self._line(chunk, hit, line)
            return
        fits, lines = read
        done = 0
        start = 0
        for stop in (*np.flatnonzero(~fits).tolist(), len(held)):
            if stop > start:
                self._read_together(chunk, alike, held[start:stop], lines.part(done, done + stop - start))
                done += stop - start
            if stop < len(held):
                self._line(chunk, *held[stop])
            start = stop + 1

    def _read_together(self, chunk: Chunk, alike: AlikeLines, held: Sequence[tuple[Hit, int]], lines: Lines) -> None:
        document = self._document
        numbers = [line for _, line in held]
        times = document.times(alike.form, lines.times, numbers)
        if times is None:
            for hit, line in held:
                self._line(chunk, hit, line)
            return
        known = [time for time in times if time is not None]
        if known:
            first, last = min(known), max(known)
            self._first_time = first if self._first_time is None else min(first, self._first_time)
            self._last_time = last if self._last_time is None else max(last, self._last_time)
        places = [(line, chunk.offset + hit.start if chunk.same else document.offset(line)) for hit, line in held]
        self._metrics.read_alike(lines, places=places, times=times, rank=alike.form.rank)

    def _open(self, line: int) -> bool:
        """Whether no block has read the line yet."""
        return line >= self._block_end and line not in self._document.claimed

    def _block(self, asked: Sequence[int], line: int, *, late: bool) -> None:
        """Let the first block that knows the line take it."""
        message = self._document.prefix(line).message
        raw: str | None = None
        tried: set[int] = set()
        for pattern in sorted(asked):
            trigger = self._engine.triggers[pattern]
            if trigger.late is not late or trigger.order in tried:
                continue
            if trigger.pattern.search(message) is None:
                raw = self._document.raw(line) if raw is None else raw
                if trigger.pattern.search(raw) is None:
                    continue
            tried.add(trigger.order)
            end = trigger.block.parse(self._document, line, self._out)
            if end > line:
                self._block_end = max(self._block_end, end)
                return

    def _signature(self, index: int, text: str, prefix: Prefix, line: int, offset: int | None) -> bool:
        signature, pattern = self._engine.signatures[index], self._engine.pattern(index)
        repeats = self._repeats.get(index)
        if repeats is None:
            plain = signature.role == "benign" and not signature.captures
            limit = self._limits.repeats_per_signature
            repeats = self._repeats[index] = Repeats(min(limit, _NOTICES) if plain else limit)
        repeats.candidate()
        found = pattern.search(prefix.message) or pattern.search(text)
        if found is None:
            return False
        document = self._document
        if signature.phase:
            document.note_phase(line, signature.phase)

        def row() -> dict[str, Any]:
            return {
                "kind": "log",
                "name": signature.id,
                "line": line,
                "offset": document.offset(line) if offset is None else offset,
                "time": self._time(prefix, line),
                "step": document.step(line),
                "rank": prefix.rank,
                "host": prefix.host,
                "phase": signature.phase or document.phase(line),
                "severity": signature.severity,
                "role": signature.role,
                "text": text,
                "attrs": {
                    name: typed(capture, value) if (capture := signature.captures.get(name)) else value
                    for name, value in found.groupdict().items()
                    if value is not None
                },
            }

        repeats.take(row, prefix.rank, self._out)
        if repeats.only_count():
            self._tallies.setdefault(index, Tally())
        return True

    def _time(self, prefix: Prefix, line: int) -> int | None:
        time = prefix.time if prefix.time is not None else self._document.time(line)
        if time is not None:
            self._first_time = time if self._first_time is None else min(time, self._first_time)
            self._last_time = time if self._last_time is None else max(time, self._last_time)
        return time

    def finish(self, size: int, warnings: Sequence[str]) -> Ingested:
        """Return everything, with what was cut."""
        document = self._document
        told = list(warnings)
        cut = 0
        for repeats in self._repeats.values():
            cut += repeats.flush(self._out)
        self._metrics.finish(self._out)
        if document.cut_lines:
            told.append(f"{document.cut_lines:,} lines longer than {self._limits.line_bytes:,} bytes were cut.")
        if cut:
            told.append(f"{cut:,} repetitions of the same messages were counted, not kept.")
        if self._out.refused:
            told.append(f"{self._out.refused:,} events beyond {self._limits.events_per_source:,} were left out.")
        if self._metrics.columns.dropped:
            told.append(f"{self._metrics.columns.dropped:,} metric points were left out.")
        first, last = document.time_range()
        times = [time for time in (first, last, self._first_time, self._last_time) if time is not None]
        return Ingested(
            events=self._out.build(),
            lines=len(document),
            bytes=size,
            text=size > 0,
            first_time=min(times, default=None),
            last_time=max(times, default=None),
            warnings=tuple(told),
        )
