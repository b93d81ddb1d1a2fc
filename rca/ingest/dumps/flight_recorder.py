"""Dumps of PyTorch's flight recorder: the last collectives of one rank, as the pickle or the JSON that it writes.

The files are called `nccl_trace_rank_3` or `comm_lib_trace_rank_3` (TORCH_NCCL_DEBUG_INFO_TEMP_FILE,
TORCH_FR_DUMP_TEMP_FILE) or as the program called them; the content decides. Format: FlightRecorder.hpp of PyTorch,
versions 1.0 to 2.10.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.dumps.flight_entries import GroupEntries, by_group, members
from rca.ingest.dumps.plain_pickle import MAX_PICKLE, read_plain
from rca.ingest.dumps.recorded_stacks import as_exception_frames, whole, words
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.tables.structured import MAX_STRUCTURED, decode, parse_json, plain_name, read_whole
from rca.recording import pack, write_ranks

_MARKS = (b"pg_config", b"profiling_name", b"nccl_comm_state", b"collective_seq_id", b"record_id")
_FIRST_KEY = b"\x07\x00\x00\x00entries"
"""Until 2.3 the entries stood first, behind stacks that may be longer than the head of a file."""
_EMPTY = re.compile(r"(?:nccl|rccl|comm_lib|fr)_?(?:trace|dump)_(?:rank_?)?\d{1,7}$", re.I)
_NUMBER = re.compile(r"(\d{1,7})(?:\.[a-z]{1,8}){0,2}$")
_STACK = 12
"""Frames kept of the call that is waiting and of the last one."""
_STATUS = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")


class FlightRecorderIngestor:
    """Reads one dump into an event for the dump and one for each process group."""

    name = "flight recorder"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take pickles and JSON whose start names what only these dumps hold, and empty files called like a dump."""
        if source.size == 0:
            return _EMPTY.search(source.path) is not None
        if head.startswith(b"\x80"):
            return _FIRST_KEY in head[:32] or any(mark in head for mark in _MARKS)
        if head.lstrip()[:1] != b"{":
            return False
        return b'"profiling_name"' in head or (b'"pg_config"' in head and b'"pg_status"' in head)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the dump. Raises UnreadableSource where it is broken or holds anything but plain values."""
        rank = source.rank if source.rank is not None else _rank(source.path)
        out = EventBuilder(source.path, rank=rank, host=source.host)
        if source.size == 0:
            _add_dump(out, {}, [], "empty")
            return Ingested(out.build(), warnings=("The dump is empty: the process ended before it was written.",))
        dump, size, notes = _load(source, context)
        if isinstance(dump, list):  # before 1.0 the entries stood alone
            dump = {"entries": dump}
        entries = dump.get("entries", []) if isinstance(dump, dict) else None
        if not isinstance(entries, (list, tuple)) or not (entries or "pg_config" in dump):
            raise UnreadableSource(f"{source.path} is no dump of the flight recorder: it holds no list of entries.")
        groups = by_group(entries)
        warnings = list(notes)
        if rank is None:
            warnings.append("The name of the dump tells no rank, so its collectives cannot be matched with others.")
        _add_dump(out, dump, entries, "ok")
        _add_groups(out, dump, groups)
        return Ingested(out.build(), lines=len(entries), bytes=size, warnings=tuple(warnings))


def _load(source: Source, context: IngestContext) -> tuple[Any, int, tuple[str, ...]]:
    found = read_whole(source, context, MAX_PICKLE)
    if found.data.startswith(b"\x80"):
        return read_plain(found.data, what=source.path), len(found.data), found.warnings
    if len(found.data) > MAX_STRUCTURED:
        raise UnreadableSource(f"{source.path} is JSON of more than {MAX_STRUCTURED:,} bytes; dump fewer entries.")
    return parse_json(decode(found.data), what=source.path), len(found.data), found.warnings


def _rank(path: str) -> int | None:
    """Read the rank off the end of the name: the recorder appends it to whatever prefix it was given."""
    found = _NUMBER.search(plain_name(path))
    return int(found[1]) if found else None


def _add_dump(out: EventBuilder, dump: Mapping[str, Any], entries: Any, status: str) -> None:
    numbers = [whole(entry.get("record_id")) for entry in entries[:1] if isinstance(entry, dict)]
    attrs = {
        "status": status,
        "version": words(dump.get("version")) or None,
        "library": words(dump.get("comm_lib_version")) or words(dump.get("nccl_version")) or None,
        "entries": len(entries),
        "overwritten": bool(numbers and numbers[0]),
    }
    who = "a rank" if out.rank is None else f"rank {out.rank}"
    text = (
        f"Flight recorder of {who}: {len(entries)} entries" if status == "ok" else f"Flight recorder of {who}: {status}"
    )
    out.add(kind="system", name="collective.dump", value=float(len(entries)), text=text, attrs=attrs)


def _add_groups(out: EventBuilder, dump: Mapping[str, Any], groups: list[GroupEntries]) -> None:
    """Add what was recorded of each group, and the groups that the rank belongs to without having recorded anything."""
    ranks = {(name, description): listed for name, description, listed in members(dump.get("pg_config")) if listed}
    whole_job = ranks.pop(("", ""), ())  # gloo lists the default group without its name
    for group in groups:
        if whole_job and group.description == "default_pg":
            ranks.setdefault((group.name, group.description), whole_job)
    known = {(group.name, group.description) for group in groups}
    silent = [GroupEntries(name, description, None) for name, description in ranks if (name, description) not in known]
    status = dump.get("pg_status")
    for line, group in enumerate([*groups, *silent], 1):
        counts = status.get(str(group.number)) if isinstance(status, dict) and group.number is not None else None
        _add_group(out, line, group, ranks.get((group.name, group.description), ()), counts)


def _add_group(out: EventBuilder, line: int, group: GroupEntries, ranks: tuple[int, ...], counts: Any) -> None:
    recording = group.recording()
    pending = group.pending
    last = recording.seq[-1] if recording.seq else None
    told = pending if pending is not None else last
    enqueued, started, completed = (whole(counts.get(name)) if isinstance(counts, dict) else None for name in _STATUS)
    attrs = {
        "group": group.name,
        "description": group.description,
        "number": group.number,
        "ranks": write_ranks(ranks),
        "enqueued": enqueued,
        "started": started,
        "completed": completed,
        "first": recording.seq[0] if recording.seq else None,
        "last": last,
        "pending": pending,
        "created_us": None if told is None or told not in group.created else group.created[told] // 1000,
        "latest_us": max(group.created.values(), default=0) // 1000 or None,
        "timeout_ms": group.timeout_ms,
        "frames": as_exception_frames(group.stacks.get(told, []) if told is not None else [], _STACK),
        "entries": pack(recording),
    }
    out.add(
        kind="system",
        name="collective.recording",
        line=line,
        value=None if last is None else float(last),
        text=_sentence(group, pending, last),
        attrs={key: value for key, value in attrs.items() if value is not None},
    )


def _sentence(group: GroupEntries, pending: int | None, last: int | None) -> str:
    named = f"group {group.description or group.name}"
    if last is None:
        return f"In {named}: {len(group.transfers)} sends and receives, no collective"
    call, _ = group.collectives[last if pending is None else pending]
    where = f", called at {call.where}" if call.where else ""
    if pending is None:
        return f"In {named}: the last collective was {call.op} #{last}{where}"
    return f"In {named}: {call.op} #{pending} is not over{where}; the last enqueued is #{last}"
