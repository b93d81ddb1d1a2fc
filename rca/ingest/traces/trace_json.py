"""Chrome trace JSON as batches of typed events, read piece by piece; broken and cut files give every whole event.

A crashed job leaves a file without its end, and profilers write control characters, single backslashes, quotes inside
names and bare `nan` now and then, which makes readers of whole documents return nothing. Here the array of events is
cut at event borders into pieces of 1 MiB; a piece that does not decode is repaired, and where that fails too, decoded
event by event. Of a mapped file only the piece at work stays in memory.
"""

from __future__ import annotations

import json
import mmap
import re
from collections import deque
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import msgspec

from rca.errors import UnreadableSource
from rca.ingest.tables.structured import without_halves

_PIECE = 1 << 20
_NEAR = 16 << 10
"""Bytes before the end of a piece in which its last border is sought first."""
_FORGET = 16 << 20
_MAX_PIECE = 16 << 20
"""An event larger than this is no event of a profiler."""
_MAX_BARREN = 32 << 20
"""Bytes without an event after which the rest is not read."""
_MAX_HEADER = 64 << 20
_MAX_TAIL = 16 << 20
_MAX_JOIN = 8
"""Fragments joined in the search for the end of one event: `}, {` also stands inside the arguments of an event."""

_MAX_DROPPED = 100_000
"""Fragments that are no event, each of which costs several tries; what has more of them is no trace."""
_MAX_TRIES = 2_000_000
"""Tries to decode a damaged piece event by event, of a kilobyte each: a few seconds' work."""
MAX_EVENTS = 20_000_000
"""Events that are read: with 200 bytes each, all of 4 GiB. The shortest possible ones compress to next to nothing."""
_MAX_QUOTED = 1 << 16
"""Bytes of an event in which misplaced quotes are sought."""

_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BORDER = re.compile(rb"\}\s*,\s*\{")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_BARE = re.compile(rb"(?<=:)(\s*)(-?(?:nan|inf(?:inity)?|N/A))(?=\s*[,}\]])", re.I)
_QUOTE = re.compile(rb'(?<!\\)"')
_CLOSES = re.compile(rb"\s*(?:[:}\]]|,\s*[\[{\"\d-]|,\s*(?:true|false|null)\b|$)")
_VALID = rb'(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})'
_ESCAPE = re.compile(rb"\\(" + _VALID + rb"(?:\\" + _VALID + rb"){0,99})?")
"""Backslashes: a row of valid escapes, or one that begins none. One by one, escapes would take a hundred times their
size in memory."""
_CONTROL = bytes(range(32))
_NO_CONTROL = bytes.maketrans(_CONTROL, b" " * 32)

Buffer = bytes | mmap.mmap


_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


NO_SHAPES = msgspec.Raw()


class TraceArgs(msgspec.Struct, gc=False, frozen=True):
    """The arguments of an event that are used."""

    correlation: _Int64 = -1
    """Links a launch to what it launched."""
    collective: str | None = msgspec.field(name="Collective name", default=None)
    elements: int = msgspec.field(name="In msg nelems", default=0)
    group_size: int = msgspec.field(name="Group size", default=0)
    dtype: str | None = None
    device_type: _Int64 = msgspec.field(name="Device Type", default=-1)
    device_id: _Int64 = msgspec.field(name="Device Id", default=-1)
    total_allocated: float = msgspec.field(name="Total Allocated", default=-1.0)
    total_reserved: float = msgspec.field(name="Total Reserved", default=-1.0)
    shapes: msgspec.Raw = msgspec.field(name="Input Dims", default=NO_SHAPES)
    """JSON text."""
    group: str | None = msgspec.field(name="Process Group Ranks", default=None)
    """Ranks of a collective's group, as printed."""


NO_ARGS = TraceArgs()


class TraceEvent(msgspec.Struct, gc=False, frozen=True):
    """One event; times in microseconds."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = -1
    tid: int | str = -1
    ts: float = -1.0
    dur: float = -1.0
    args: TraceArgs = NO_ARGS
    id: int | str = -1
    """Joins the beginning and the end of an asynchronous span."""


_TYPED = msgspec.json.Decoder(list[TraceEvent])
_UNTYPED = msgspec.json.Decoder()


class Piece(NamedTuple):
    """Decoded events and where the array ended, if it ended in this piece."""

    events: list[TraceEvent]
    end: int | None = None
    dropped: int = 0
    """Fragments that are no event."""
    tries: int = 0
    """Tries that it took, those of more than a kilobyte counted once for each."""
    used: int | None = None
    """Bytes used, where the last event of the piece seems to go on behind it; 0 where none is whole."""


class TraceText:
    """One trace file. Iterate over `batches`; afterwards `header` and `problems` are complete."""

    def __init__(self, data: Buffer) -> None:
        """Find the events. Raises UnreadableSource where the document has none."""
        self.data = data
        self.header: dict[str, Any] = {}
        self.problems: list[str] = []
        self.events = 0
        self._forgotten = 0
        self._start = self._find_events()

    def _find_events(self) -> int:
        first = self.data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        self._wrapped = first == b"{"
        if first == b"[":
            return self.data.find(b"[") + 1
        found = _EVENTS.search(self.data, 0, min(len(self.data), _MAX_HEADER)) if first == b"{" else None
        if found is None:
            raise UnreadableSource(
                "The JSON document has no list of traceEvents, so it is no profiler trace; "
                "export one with torch.profiler's export_chrome_trace or tensorboard_trace_handler."
            )
        before = bytes(self.data[: found.start()])
        self.header = _object(before + b'"traceEvents":[]}')
        return found.end()

    def batches(self) -> Iterator[list[TraceEvent]]:
        """Yield the events in file order, some thousands at a time."""
        position, total, size = self._start, len(self.data), _PIECE
        dropped = empty = tries = barren = 0
        with memoryview(self.data) as view:
            while True:
                stop, after = self._cut(position, size)
                last = after >= total
                piece = _decode(view[position:stop]) or decode_piece(bytes(self.data[position:after]), last=last)
                if piece.used == 0 and size < _MAX_PIECE:
                    size *= 2
                    continue
                size = _PIECE
                dropped += piece.dropped + (piece.used == 0)
                tries += piece.tries
                self.events += len(piece.events)
                # Some writers end the list with one empty object; a batch of them is no part of a trace.
                empty += sum(not event.ph for event in piece.events)
                if piece.events:
                    yield piece.events
                if piece.end is not None:
                    self._read_tail(position + piece.end)
                    break
                if last:
                    self._describe_end()
                    break
                following = position + piece.used if piece.used else after
                barren = 0 if piece.events else barren + following - position
                position = following
                if barren > _MAX_BARREN:
                    self.problems.append(f"Reading stopped at byte {position:,}: there was no event for 32 MiB.")
                    break
                if dropped + empty > _MAX_DROPPED:
                    self.problems.append(f"Reading stopped at byte {position:,}: most of the rest is no event.")
                    break
                if tries > _MAX_TRIES:
                    self.problems.append(f"Reading stopped at byte {position:,}: too much before it is damaged.")
                    break
                if self.events >= MAX_EVENTS:
                    self.problems.append(f"Reading stopped at byte {position:,}, after {self.events:,} events.")
                    break
                self._forget(position)
        if dropped:
            self.problems.append(f"{dropped:,} fragments of the JSON are no event and were left out.")

    def _cut(self, position: int, size: int) -> tuple[int, int]:
        """Return where the piece that starts at `position` ends, and where the next one starts.

        Between them stands the comma of the last border in the piece; at the end of all there is none.
        """
        total = len(self.data)
        while position + size < total:
            stop = position + size
            if size > _MAX_PIECE:
                return stop, stop
            for start in (max(position, stop - _NEAR), position):
                borders = deque(_BORDER.finditer(self.data, start, stop), maxlen=1)
                if borders:
                    return borders[0].start() + 1, borders[0].end() - 1
            size *= 2
        return total, total

    def _forget(self, position: int) -> None:
        """Let go of the pages of a mapped file that lie behind; the kernel reads them again if they are asked for."""
        if isinstance(self.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            done = position // _FORGET * _FORGET
            if done > self._forgotten:
                self.data.madvise(mmap.MADV_DONTNEED, self._forgotten, done - self._forgotten)
                self._forgotten = done

    def _describe_end(self) -> None:
        rest = bytes(self.data[-4096:]).rstrip()
        if not self._wrapped and rest.endswith((b"}", b"},", b"[")):
            return  # The list form may go without its closing bracket (Trace Event Format, "JSON Array Format").
        self.problems.append(
            f"The trace ends at byte {len(self.data):,} in the middle of its events; "
            f"the {self.events:,} whole events before were kept."
        )

    def _read_tail(self, position: int) -> None:
        if not self._wrapped:
            return
        tail = bytes(self.data[position : position + _MAX_TAIL]).strip()
        self.header |= _object(b'{"traceEvents":[]' + tail)
        if not tail.endswith(b"}"):
            self.problems.append("The trace ends behind its events, in the middle of its description.")


def decode_piece(text: bytes, *, last: bool = True) -> Piece:
    """Decode events that are separated by commas, up to the closing bracket if there is one.

    `last` says that nothing follows, so that an unfinished event at the end is only the cut and not a fragment.
    """
    plain = text.rstrip().removesuffix(b",").rstrip()
    if (piece := _decode(plain)) is not None:
        return piece
    fixed = _repaired(plain)
    return _decode(fixed) or _one_by_one(fixed, last=last)


def _decode(text: bytes | memoryview) -> Piece | None:
    """Decode events; None where the text is malformed or ends within an event."""
    array = b"".join((b"[", text, b"]"))
    try:
        return Piece(_events(array))
    except (msgspec.DecodeError, RecursionError) as error:
        trailing = _TRAILING.search(str(error))
    if trailing is None:
        return None
    end = int(trailing[1]) - 1
    try:
        return Piece(_events(array[:end]), end=end - 1)
    except (msgspec.DecodeError, RecursionError):
        return None


def _events(array: bytes) -> list[TraceEvent]:
    try:
        return _TYPED.decode(array)
    except msgspec.ValidationError:
        return _coerced(_UNTYPED.decode(array))


def _repaired(text: bytes) -> bytes:
    """Replace what the JSON grammar forbids and profilers write, byte for byte so that places stay the same.

    That is: control characters, bare `nan` (-1, which stands for no number here), single backslashes, broken UTF-8.
    """
    fixed = text.translate(_NO_CONTROL)
    fixed = _BARE.sub(lambda found: found[1] + b"-1".ljust(len(found[2])), fixed)
    fixed = _ESCAPE.sub(lambda found: found[0] if found[1] else b"/", fixed)
    return fixed.decode("utf-8", "surrogateescape").encode("utf-8", "replace")


def _requoted(text: bytes) -> bytes:
    """Replace quotes inside of strings, byte for byte.

    A quote ends a string only before `:`, `}`, `]`, or a comma and what may follow it; all others are part of a name.
    """
    if len(text) > _MAX_QUOTED:
        return text
    fixed, inside = bytearray(text), False
    for found in _QUOTE.finditer(text):
        place = found.start()
        if not inside:
            inside = True
        elif _CLOSES.match(text, place + 1):
            inside = False
        else:
            fixed[place] = ord("'")
    return bytes(fixed)


def _one_by_one(text: bytes, *, last: bool) -> Piece:
    """Decode a damaged piece event by event."""
    borders = [found.span() for found in _BORDER.finditer(text)]
    starts = [0, *(stop - 1 for _, stop in borders)]
    stops = [*(start + 1 for start, _ in borders), len(text)]
    events: list[TraceEvent] = []
    dropped, tries, place = 0, 0, 0
    while place < len(starts):
        joined = stops[place : place + _MAX_JOIN]
        following = place + 1
        # The first try is the usual end; one that needs its quotes replaced comes after all that need not.
        found, index, tried = _first(text, starts[place], joined)
        tries += tried
        if found is not None:
            events += [event for event in found.events if event.ph]
            if found.end is not None:
                return Piece(events, starts[place] + found.end, dropped, tries)
            following = place + 1 + index
        elif not last and place + _MAX_JOIN > len(starts):
            return Piece(events, None, dropped, tries, used=starts[place])
        else:
            dropped += not (last and place == len(starts) - 1)
        place = following
    return Piece(events, None, dropped, tries)


def _first(text: bytes, start: int, stops: list[int]) -> tuple[Piece | None, int, int]:
    """Return the first of some fragments that holds an event, which one it was, and the tries that it took."""
    tries = 0
    named = text.find(b'"ph"', start, stops[-1])
    for repair in (bytes, _requoted) if named >= 0 else ():
        for index, stop in enumerate(stops):
            if stop < named:
                continue
            tries += 1 + (stop - start >> 10)
            found = _decode(repair(text[start:stop]))
            # An object inside the arguments of a broken event decodes as well, but it has no phase.
            if found is not None and any(event.ph for event in found.events):
                return found, index, tries
    return None, 0, tries


def _coerced(items: Any) -> list[TraceEvent]:
    """Make typed events of a list whose fields have other types than usual; what is no object is left out."""
    return [_coerce(item) for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _coerce(item: dict[str, Any]) -> TraceEvent:
    args = item.get("args")
    return TraceEvent(
        ph=_text(item.get("ph")),
        cat=_text(item.get("cat")),
        name=_text(item.get("name")),
        pid=_text(item.get("pid")),
        tid=_text(item.get("tid")),
        ts=_float(item.get("ts")),
        dur=_float(item.get("dur")),
        args=_coerce_args(args) if args and isinstance(args, dict) else NO_ARGS,
        id=_text(item.get("id")),
    )


def _coerce_args(fields: dict[str, Any]) -> TraceArgs:
    return TraceArgs(
        correlation=int(_float(fields.get("correlation"))),
        collective=_text(fields["Collective name"]) if "Collective name" in fields else None,
        elements=int(max(_float(fields.get("In msg nelems")), 0)),
        group_size=int(max(_float(fields.get("Group size")), 0)),
        dtype=_text(fields.get("dtype")),
        device_type=int(_float(fields.get("Device Type"))),
        device_id=int(_float(fields.get("Device Id"))),
        total_allocated=_float(fields.get("Total Allocated")),
        total_reserved=_float(fields.get("Total Reserved")),
        shapes=msgspec.Raw(msgspec.json.encode(fields["Input Dims"])) if "Input Dims" in fields else NO_SHAPES,
        group=_text(fields["Process Group Ranks"]) if "Process Group Ranks" in fields else None,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)[:64]


def _float(value: Any) -> float:
    """Return a finite number, -1 where there is none."""
    if not isinstance(value, (int, float, str)) or (isinstance(value, str) and len(value) > 40):
        return -1.0
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return -1.0
    return found if abs(found) < 1e18 else -1.0


def _object(text: bytes) -> dict[str, Any]:
    """Decode a JSON object with bare NaN and control characters allowed; empty where it is none."""
    try:
        found = json.loads(without_halves(text.decode("utf-8", "replace")), strict=False)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
