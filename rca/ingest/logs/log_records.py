"""One line of a structured log: what was said, when, how bad it was, by whom, and which numbers came with it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rca.ingest.tables.cells import number

_MESSAGES = (
    "message", "msg", "event", "log", "textPayload", "text_payload", "line", "body", "text", "@message",
)  # fmt: skip
"""Keys of the words themselves, most telling first: Python and cloud loggers, structlog, containers, Loki."""
_LEVELS = ("level", "levelname", "severity", "lvl", "loglevel", "log.level", "levelno")
_TIMES = (
    "timestamp", "time", "ts", "@timestamp", "asctime", "datetime", "date", "created", "t",
    "receiveTimestamp", "ingestionTime",
)  # fmt: skip
_TRACES = (
    "exc_info",
    "exception",
    "exc_text",
    "traceback",
    "stack_trace",
    "stacktrace",
    "stack",
    "stack_info",
    "error.stack_trace",
)
_RANKS = ("rank", "global_rank", "RANK", "global_rank_id", "process_index")
_HOSTS = (
    "pod_name", "pod", "logStreamName", "hostname", "host", "instance", "node_name", "container_name",
)  # fmt: skip
_LABELS = ("kubernetes", "labels", "stream", "resource", "_labels")
"""Objects that say where a line comes from."""
_OWN = frozenset({*_MESSAGES, *_LEVELS, *_TIMES, *_TRACES, *_RANKS, *_HOSTS}) | {
    "lineno", "line_number", "line", "process", "thread", "pid", "tid", "processName", "threadName", "func_name", "seq",
    "relativeCreated", "msecs", "insertId", "eventId", "taskName", "v", "count_id", "local_rank", "world_size",
    "version", "ordinal", "id",
}  # fmt: skip
"""Numbers that describe the record and not the training."""
_WORDS = {
    "trace": "DEBUG", "debug": "DEBUG", "verbose": "DEBUG", "info": "INFO", "notice": "INFO", "default": "INFO",
    "success": "INFO", "warn": "WARNING", "warning": "WARNING", "error": "ERROR", "err": "ERROR", "severe": "ERROR",
    "critical": "CRITICAL", "fatal": "CRITICAL", "panic": "CRITICAL", "alert": "CRITICAL", "emergency": "CRITICAL",
}  # fmt: skip
_NUMBERS = 24
"""Numbers of one record that are written behind its words."""
_LINES = 400
"""Lines of one record that are kept: a long traceback."""
_KEY = re.compile(r"[A-Za-z_][\w./-]{0,60}")
_ISO = re.compile(r"(?:19|20)\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?")


class Record(NamedTuple):
    """One entry of a structured log."""

    lines: tuple[str, ...]
    """What was said, then the traceback that came with it."""
    time: str = ""
    """ISO 8601; empty where none is told."""
    level: str = ""
    rank: int | None = None
    host: str = ""
    """Host, pod or stream that it came from."""


def record_of(item: Mapping[str, Any]) -> Record | None:
    """Return what an object says; None where it holds no message."""
    inner = item.get("record")
    if isinstance(inner, dict) and isinstance(item.get("text"), str):
        return _loguru(item["text"], inner)
    payload = item.get("jsonPayload")
    if isinstance(payload, dict) and not any(isinstance(item.get(key), str) for key in _MESSAGES):
        item = {**payload, **{key: value for key, value in item.items() if key != "jsonPayload"}}
    message = _message(item)
    if message is None:
        return None
    numbers = " ".join(f"{key}={_plain(value)}" for key, value in _numbers(item))
    text = f"{message.rstrip()} {numbers}" if numbers else message.rstrip("\r\n")
    lines = [*text.split("\n"), *_trace(item)]
    return Record(
        tuple(line.rstrip("\r") for line in lines[:_LINES]),
        time=next((found for key in _TIMES if (found := time_text(item.get(key)))), ""),
        level=next((found for key in _LEVELS if (found := _level(key, item.get(key)))), ""),
        rank=_rank(item),
        host=_host(item),
    )


def _message(item: Mapping[str, Any]) -> str | None:
    for key in _MESSAGES:
        value = item.get(key)
        if isinstance(value, str):
            return value
    return None


def _numbers(item: Mapping[str, Any]) -> Iterator[tuple[str, float | int]]:
    """Yield the measurements that were logged beside the message."""
    left = _NUMBERS
    for key, value in item.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and key not in _OWN and _KEY.fullmatch(key):
            yield key, value
            left -= 1
            if not left:
                return


def _plain(value: float | int) -> str:
    return repr(value) if isinstance(value, float) or abs(value) < 2**63 else repr(float(min(value, 10**300)))


def _trace(item: Mapping[str, Any]) -> list[str]:
    for key in _TRACES:
        value = item.get(key)
        if isinstance(value, str) and "\n" in value:
            return value.rstrip().split("\n")
        if isinstance(value, list):
            return [line for part in value[:8] if isinstance(part, dict) for line in _structured_trace(part)]
    return []


def _structured_trace(part: Mapping[str, Any]) -> Iterator[str]:
    """Write a traceback that a logger took apart (structlog) the way Python prints it."""
    frames = part.get("frames")
    if not isinstance(frames, list) or not isinstance(part.get("exc_type"), str):
        return
    yield "Traceback (most recent call last):"
    for frame in frames[:100]:
        if isinstance(frame, dict):
            name = str(frame.get("name") or "<module>").replace("\n", " ")[:200]
            file = str(frame.get("filename") or "?").replace("\n", " ")[:300]
            line = frame.get("lineno")
            yield f'  File "{file}", line {line if isinstance(line, int) else 0}, in {name}'
            if isinstance(frame.get("line"), str) and frame["line"].strip():
                yield f"    {frame['line'].strip()[:300]}"
    yield from f"{part['exc_type']}: {part.get('exc_value') or ''}".split("\n")


def _loguru(text: str, inner: Mapping[str, Any]) -> Record:
    """A record of loguru's `serialize=True`: the text holds the traceback, the record the rest."""
    time, level, extra = inner.get("time"), inner.get("level"), inner.get("extra")
    message = str(inner.get("message") or "")
    at = text.find("\nTraceback (most recent call last):")
    # The text comes in the format of the sink; the message alone has no prefix to be taken apart.
    said = [*message.rstrip().split("\n"), *(text[at + 1 :].rstrip().split("\n") if at >= 0 else [])]
    kept = extra if isinstance(extra, dict) else {}
    numbers = " ".join(f"{key}={_plain(value)}" for key, value in _numbers(kept))
    if numbers:
        said[0] = f"{said[0]} {numbers}"
    return Record(
        tuple(said[:_LINES]),
        time=time_text(time.get("timestamp")) if isinstance(time, dict) else "",
        level=_level("level", level.get("name")) if isinstance(level, dict) else "",
        rank=_rank(kept),
    )


def time_text(value: Any) -> str:
    """Return a time as ISO 8601; numbers are seconds, milliseconds, microseconds or nanoseconds since the epoch."""
    if isinstance(value, str) and _ISO.match(value):
        return value[:40]
    found = number(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
    if found is None or not 1e9 <= found < 4e18:
        return ""
    seconds = found / next(scale for top, scale in ((4e9, 1.0), (4e12, 1e3), (4e15, 1e6), (4e18, 1e9)) if found < top)
    return dt.datetime.fromtimestamp(seconds, tz=dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _level(key: str, value: Any) -> str:
    """Return the level as Python writes it; numbers are those of Python."""
    if isinstance(value, str) and not value.isdecimal():
        return _WORDS.get(value.strip().lower(), "")
    found = number(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    if found is None:
        return ""
    steps = (10, "DEBUG"), (20, "INFO"), (30, "WARNING"), (40, "ERROR"), (50, "CRITICAL")
    return next((word for value_, word in steps if found == value_), "") if key == "levelno" else ""


def _rank(item: Mapping[str, Any]) -> int | None:
    for key in _RANKS:
        value = item.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_000_000:
            return value
        if isinstance(value, str) and value.isdecimal() and len(value) <= 6 and value.isascii():
            return int(value)
    return None


def _host(item: Mapping[str, Any]) -> str:
    for holder in (item, *(item[key] for key in _LABELS if isinstance(item.get(key), dict))):
        nested = holder.get("labels")
        for place in (holder, nested if isinstance(nested, dict) else {}):
            for key in _HOSTS:
                value = place.get(key)
                if isinstance(value, str) and 0 < len(value) <= 120:
                    return value
    return ""
