"""One pass over the lines of a log on which a pattern may match: messages, metrics and blocks become events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.logs.captures import typed
from rca.ingest.logs.document import Prefix
from rca.ingest.logs.held_lines import Held, Shape, ShapeKey, Waiting, runs
from rca.ingest.logs.line_search import LineSearch
from rca.ingest.logs.repeats import BoundedEvents, Repeats
from rca.ingest.logs.scanner import Hit, Tally, line_around, newlines
from rca.ingest.logs.text_document import Chunk, TextDocument
from rca.ingest.training_metrics import MetricReader, Segment
from rca.ingest.training_metrics.alike import AlikeLines, Look

_IN_A_ROW = 8
"""Lines of one look, whatever stands between them, after which the next ones are held back and read together."""
_TOGETHER = 4
"""Fewer held lines are read one by one, which is faster."""
_MOST_HELD = 4096
_NOTICES = 50
"""Reports kept of a message that is no sign of trouble and tells no number; further ones are only counted."""
_BREAK = (b"\n", b"")
_SHAPE = 160
_SHAPES = 16_384
"""Bytes of a line that tell what it is like, and shapes that are remembered of one source."""
_VARYING = b"0123456789abcdef #\xe2\x96" + bytes(range(0x88, 0x90))
"""What differs between lines of one shape: digits, also those of hashes, and what bars are drawn with."""
_BARREN, _STALE = 16, 64
"""Lines of one shape in a row after which the next ones are passed over: lines of which nothing came though a pattern
may match, and single lines of settings that told nothing new."""
_ANSWERS = 4096
_ANSWER = 400
"""Searches for a message that are remembered, and characters of a line that is worth it: warnings come word by word."""


class Reading:
    """One pass over one source."""

    def __init__(self, source: Source, context: IngestContext, document: TextDocument, engine: LineSearch) -> None:
        self._limits = context.limits
        self._document = document
        self._engine = engine
        self._out = BoundedEvents(source, context.limits.events_per_source)
        self._metrics = MetricReader(document)
        self._repeats: dict[int, Repeats] = {}
        self._tallies: dict[int, Tally] = {}
        self._answers: dict[tuple[int, str], dict[str, str] | None] = {}
        self._block_end = 0
        self._first_time: int | None = None
        self._last_time: int | None = None
        self._shapes: dict[ShapeKey, Shape] = {}
        self._alike: dict[Look, AlikeLines] = {}
        self._look: Look | None = None
        """What the line that was read last looks like, if nothing but metrics came of it."""
        self._held: list[Held] = []
        self._waiting: list[Waiting] = []

    def read(self, chunk: Chunk) -> None:
        """Look at every line of the chunk on which a pattern may match."""
        text = chunk.text
        for found in self._engine.scanner.hits(text, self._tallies):
            hit = found if self._tallies.keys().isdisjoint(found.patterns) else self._counted(chunk, found)
            if not hit.patterns:
                continue
            line = chunk.line + hit.above
            key = hit.patterns, text[hit.start : min(hit.end, hit.start + _SHAPE)].translate(None, _VARYING)
            shape = self._shapes.get(key)
            if shape is not None and self._open(line):
                if shape.alike is not None:
                    self._held.append(Held(hit, line, shape, shape.alike))
                    if len(self._held) >= _MOST_HELD:
                        self._read_held(chunk)
                    continue
                if shape.barren >= _BARREN:
                    continue
            if self._held and self._messages_alone(hit):
                self._waiting.append(Waiting(hit, line, key, shape))
                continue
            self._read_held(chunk)
            came = self._line(chunk, hit, line)
            self._learn(key, shape, came)
        self._read_held(chunk)
        for index, tally in self._tallies.items():
            if tally.count:
                # The last of the lines that were only counted stands for them.
                start, end = line_around(text, max(tally.last - 1, 0))
                hit = Hit(start, end, newlines(text, 0, start), frozenset({index}))
                self._repeats[index].more(tally.count - 1)
                self._line(chunk, hit, chunk.line + hit.above)
                tally.count, tally.last = 0, -1

    def _counted(self, chunk: Chunk, hit: Hit) -> Hit:
        """Count what is only counted since a line of the same block; return the hit with the patterns that are left.

        The search knows only between its blocks what is only counted.
        """
        text = chunk.text[hit.start : min(hit.end, hit.start + _SHAPE)].decode("utf-8", "replace")
        rank = self._document.parse(text, chunk.line + hit.above).rank
        known = {item for item in hit.patterns & self._tallies.keys() if not self._repeats[item].new(rank)}
        for pattern in known:
            self._tallies[pattern].count += 1
            self._tallies[pattern].last = hit.end
        return hit._replace(patterns=hit.patterns - known)

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
        offset = chunk.place(hit.start, line)
        asked = [pattern for pattern in hit.patterns if pattern in engine.triggers]
        before, was_open = len(self._out), self._open(line)
        if asked and was_open:
            self._block(asked, line, late=False)
        told = line in document.silent
        messages = [pattern for pattern in hit.patterns if pattern < engine.count]
        if messages and not told:
            for index in sorted(messages):
                told |= self._signature(index, text, prefix, line, offset)
        self._look = None
        if self._open(line):
            taken = False
            if not engine.metrics.isdisjoint(hit.patterns):
                segment = Segment(prefix.message, line, offset, self._time(prefix, line), prefix.rank)
                taken = self._metrics.read(segment)
                told |= not self._metrics.idle
            if asked and not taken:
                self._block(asked, line, late=True)
            if taken and not messages and len(self._out) == before and self._open(line):
                self._look = self._metrics.look(document.form(text, prefix))
        if told or len(self._out) > before or not was_open or self._block_end > line + 1:
            return 1
        return 0 if self._open(line) else -1

    def _learn(self, key: ShapeKey, shape: Shape | None, came: int) -> None:
        """Remember what came of a line for the next ones of its shape."""
        look = self._look
        if look is None and came > 0:
            self._shapes.pop(key, None)
            return
        if shape is None:
            if len(self._shapes) >= _SHAPES:
                return
            shape = self._shapes[key] = Shape()
        if look is None:
            shape.barren += 1 if came == 0 else _BARREN / _STALE
            shape.look, shape.in_a_row = None, 0
            return
        shape.barren = 0
        shape.in_a_row = shape.in_a_row + 1 if shape.look == look else 1
        shape.look = look
        if shape.in_a_row >= _IN_A_ROW:
            shape.alike = self._alike.get(look)
            if shape.alike is None:
                shape.alike = self._alike[look] = AlikeLines(look)

    def _messages_alone(self, hit: Hit) -> bool:
        """Whether nothing but messages may come of the line: they ask for what lines of metrics tell, and tell none."""
        count, signatures = self._engine.count, self._engine.signatures
        return all(pattern < count and not signatures[pattern].phase for pattern in hit.patterns)

    def _read_held(self, chunk: Chunk) -> None:
        """Read the lines that were held back: those of metrics together where they fit, then the messages between."""
        held, self._held = self._held, []
        if held:
            self._read_metrics(chunk, held)
        waiting, self._waiting = self._waiting, []
        for hit, line, key, shape in waiting:
            self._learn(key, shape, self._line(chunk, hit, line))

    def _read_metrics(self, chunk: Chunk, held: Sequence[Held]) -> None:
        if len(held) < _TOGETHER:
            for item in held:
                self._line(chunk, item.hit, item.line)
            return
        for run, parsed in runs(held, chunk, self._document, line_bytes=self._limits.line_bytes):
            if parsed is None:
                for item in run:
                    # Shapes are a guess: one of which a line does not fit must prove itself anew.
                    item.shape.alike, item.shape.look = None, None
                    self._line(chunk, item.hit, item.line)
                continue
            lines, times = parsed
            known = [time for time in times if time is not None]
            if known:
                self._span(min(known))
                self._span(max(known))
            places = [(item.line, chunk.place(item.hit.start, item.line)) for item in run]
            self._metrics.read_alike(lines, places=places, times=times, rank=run[0].alike.look.form.rank)

    def _open(self, line: int) -> bool:
        """Whether no block has read the line yet."""
        return line >= self._block_end and line not in self._document.claimed

    def _block(self, asked: Sequence[int], line: int, *, late: bool) -> None:
        """Let the first block that knows the line take it."""
        message = self._document.prefix(line).message.encode()
        raw: bytes | None = None
        tried: set[int] = set()
        for pattern in sorted(asked):
            trigger = self._engine.triggers[pattern]
            if trigger.late is not late or trigger.order in tried:
                continue
            if trigger.pattern.search(message) is None:
                raw = self._document.raw(line).encode() if raw is None else raw
                if trigger.pattern.search(raw) is None:
                    continue
            tried.add(trigger.order)
            end = trigger.block.parse(self._document, line, self._out)
            if end > line:
                self._block_end = max(self._block_end, end)
                return

    def _signature(self, index: int, text: str, prefix: Prefix, line: int, offset: int) -> bool:
        signature = self._engine.signatures[index]
        repeats = self._repeats.get(index)
        if repeats is None:
            plain = signature.role == "benign" and not signature.captures
            limit = self._limits.repeats_per_signature
            repeats = self._repeats[index] = Repeats(min(limit, _NOTICES) if plain else limit)
        repeats.candidate()
        found = self._captures(index, text, prefix.message)
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
                "offset": offset,
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
                    for name, value in found.items()
                },
            }

        repeats.take(row, prefix.rank, self._out)
        if repeats.only_count():
            self._tallies.setdefault(index, Tally())
        return True

    def _captures(self, index: int, text: str, message: str) -> dict[str, str] | None:
        """Return what a signature catches on a line, or None where it does not match."""
        key = (index, text)
        if key in self._answers:
            return self._answers[key]
        pattern = self._engine.pattern(index)
        # RE2 works on UTF-8; given text, it would count the characters in front of every capture.
        match = pattern.search(message.encode()) or (
            pattern.search(text.encode()) if len(message) < len(text) else None
        )
        found: dict[str, str] | None = None
        if match is not None:
            found = {
                name: value.decode(errors="replace") for name, value in match.groupdict().items() if value is not None
            }
        if len(text) <= _ANSWER and len(self._answers) < _ANSWERS:
            self._answers[key] = found
        return found

    def _time(self, prefix: Prefix, line: int) -> int | None:
        time = prefix.time if prefix.time is not None else self._document.time(line)
        if time is not None:
            self._span(time)
        return time

    def _span(self, time: int) -> None:
        self._first_time = time if self._first_time is None else min(time, self._first_time)
        self._last_time = time if self._last_time is None else max(time, self._last_time)

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
