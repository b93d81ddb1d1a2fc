"""Stacks that `py-spy dump --json` writes: a list of threads with their frames, innermost first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.dumps.stack_dumps import Dump, add_dump
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.tables.cells import number
from rca.ingest.tables.structured import MAX_STRUCTURED, decode, parse_json, plain_name, read_whole

_THREADS, _FRAMES = 2000, 400
_RANK_NAMES = ("rank", "global_rank")
_DIGITS = re.compile(r"\d{1,6}")


class StackFileIngestor:
    """Reads the threads of one or several processes into one event a process."""

    name = "stack dump"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take JSON whose first object is a thread."""
        return (
            plain_name(source.path).endswith((".json", ".txt", ".log"))
            and head.lstrip()[:1] == b"["
            and b'"thread_id"' in head
            and b'"pid"' in head
            and b'"frames"' in head
        )

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read every thread. Raises UnreadableSource where the file is broken or holds no stack."""
        data, _cut, notes = read_whole(source, context, MAX_STRUCTURED)
        text = decode(data)
        document = parse_json(text, what=source.path)
        threads = document if isinstance(document, list) else []
        dumps: dict[Any, Dump] = {}
        for item in threads[:_THREADS]:
            if isinstance(item, dict):
                _add_thread(dumps, item)
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        for dump in dumps.values():
            add_dump(out, dump)
        if not len(out):
            raise UnreadableSource(f"{source.path} is a list of threads without a frame.")
        warnings = [f"Only the first {_THREADS:,} threads were read."] if len(threads) > _THREADS else []
        lines = text.count("\n") + 1
        return Ingested(out.build(), lines=lines, bytes=len(data), warnings=(*notes, *warnings))


def _add_thread(dumps: dict[Any, Dump], item: Mapping[str, Any]) -> None:
    pid = _whole(item.get("pid"))
    info = item.get("process_info")
    command = str(info.get("command_line") or "") if isinstance(info, dict) else ""
    dump = dumps.setdefault(pid, Dump("py-spy", line=1, pid=pid, command=command[:4000]))
    status = "active" if item.get("active") is True else "idle"
    status += "+gil" if item.get("owns_gil") is True else ""
    name, number_ = item.get("thread_name"), _whole(item.get("os_thread_id"))
    thread = dump.thread(name=str(name or "")[:200], number="" if number_ is None else str(number_), status=status)
    frames = item.get("frames")
    for frame in (frames if isinstance(frames, list) else [])[:_FRAMES]:
        if not isinstance(frame, dict):
            continue
        file = str(frame.get("filename") or frame.get("short_filename") or "")[:300]
        line = _whole(frame.get("line"))
        function = str(frame.get("name") or "")[:300]
        # A frame of compiled code has line 0.
        thread.frames.append({"file": file, "line": line or None, "function": function, "code": None})
        if dump.rank is None and name == "MainThread":
            dump.rank = _rank(frame.get("locals"))


def _rank(variables: Any) -> int | None:
    """Return the rank that an argument or a local variable holds."""
    for item in variables if isinstance(variables, list) else []:
        if isinstance(item, dict) and item.get("name") in _RANK_NAMES:
            text = str(item.get("repr"))
            return int(text) if _DIGITS.fullmatch(text) else None
    return None


def _whole(item: Any) -> int | None:
    value = number(item)
    return int(value) if value is not None and 0 <= value < 2**62 else None
