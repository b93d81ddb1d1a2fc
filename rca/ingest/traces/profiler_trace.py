"""Profiler traces (`*.pt.trace.json[.gz]`, Chrome trace JSON): steps, where their time went, what took most of it."""

from __future__ import annotations

import mmap
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Limits, Source
from rca.ingest.places.content import HEAD_BYTES, open_content
from rca.ingest.traces.advice import ADVICE, QUICK, read_advice
from rca.ingest.traces.breakdown import Column, breakdown
from rca.ingest.traces.columns import Columns
from rca.ingest.traces.exchanges import exchanges
from rca.ingest.traces.steps import Windows, find_steps
from rca.ingest.traces.totals import Total, totals
from rca.ingest.traces.trace_json import TraceText

EXCHANGE = "collective.call"
"""Name of the spans of single collectives: `value` is the start on the trace's clock (us), `text` the kernel."""
METRIC = "trace."
"""Metrics are named `trace.<figure>`, one row a step: `trace.step_us`, `trace.kernel_us`, `trace.launches`, ..."""
WINDOW = "trace.window"
"""Name of the one span of a trace that names no steps."""
MOST = 12
"""Names kept of each category of kernels, copies, collectives, runtime calls and operators."""

_MAX_STEPS = 5000
_NAMED = re.compile(r"\.trace\.json(?:\.gz)?$|[-_.]trace\.json(?:\.gz)?$", re.I)
_JSON = re.compile(r"\.json(?:\.gz)?$", re.I)
_BEGINNING = 1 << 20
_RANK = re.compile(r"(?:rank|worker)[-_]?(\d{1,6})(?!\d)", re.I)
_SIGNS = (b'"traceEvents"', b'"schemaVersion"', b'"deviceProperties"', b'"displayTimeUnit"')
_EVENT = re.compile(rb'^\s*\[\s*\{[^{}]{0,2000}"ph"\s*:\s*"[A-Za-z]"')
_EPOCH = (1e15, 4.1e15)
"""Microseconds; a trace time outside 2001 to 2099 counts from the start of the machine."""


class ProfilerTraceIngestor:
    """Reads Chrome trace JSON as torch.profiler and Kineto write it."""

    name = "profiler trace"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take JSON that begins like a trace: an object with traceEvents or Kineto's keys, or a list of events."""
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
        if start.startswith(b"["):
            return _EVENT.match(start) is not None
        if not start.startswith(b"{"):
            return False
        if any(sign in head for sign in _SIGNS) or _NAMED.search(source.path):
            return True
        # The profiler puts what users tell it (add_metadata) in front, so the events may begin far behind the head.
        return (
            len(head) >= HEAD_BYTES and _JSON.search(source.path) is not None and b'"traceEvents"' in _beginning(source)
        )

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read all whole events. Raises UnreadableSource where there is none."""
        columns = Columns()
        with open_content(source, context.limits) as content:
            text = TraceText(content.data)
            for events in text.batches():
                columns.add(events)
            size = len(content.data)
            small = bytes(content.data) if size <= QUICK and not isinstance(content.data, mmap.mmap) else None
        if not text.events:
            raise UnreadableSource(f"{source.path} holds no whole trace event in its {size:,} bytes.")
        windows = find_steps(columns)
        rank = rank_of(source, text.header)
        out = EventBuilder(source.path, rank=rank, host=source.host)
        offset = _offset(text.header, columns)
        figures = breakdown(columns, windows)
        _add_steps(out, windows, figures, offset)
        _add_totals(out, columns, windows)
        _add_collectives(out, columns, windows)
        if rank is not None:
            _add_exchanges(out, columns, windows, offset)
        _add_devices(out, text.header, columns)
        _add_settings(out, text.header)
        warnings = [*content.warnings, *text.problems, *_remarks(columns, windows, figures)]
        if small is not None and not text.problems and rank in {None, 0}:
            warnings += _add_advice(out, small, figures)
        first = None if offset is None or not len(windows) else int(windows.start[0] + offset)
        last = None if offset is None or not len(windows) else int(windows.end[-1] + offset)
        return Ingested(
            out.build(), lines=text.events, bytes=size, first_time=first, last_time=last, warnings=tuple(warnings)
        )


def _beginning(source: Source) -> bytes:
    try:
        with open_content(source, Limits(source_bytes=_BEGINNING)) as content:
            return bytes(content.data)
    except UnreadableSource:
        return b""


def rank_of(source: Source, header: Mapping[str, Any]) -> int | None:
    """Return the rank that the trace states, else the one in its file name (`rank3.pt.trace.json`, `worker0.1...`)."""
    stated = header.get("distributedInfo")
    if isinstance(stated, dict) and isinstance(stated.get("rank"), int) and 0 <= stated["rank"] < 1 << 24:
        return int(stated["rank"])
    if source.rank is not None:
        return source.rank
    named = _RANK.search(source.path.rsplit("/", 1)[-1])
    return int(named[1]) if named else None


def _offset(header: Mapping[str, Any], columns: Columns) -> float | None:
    """Return what makes a trace time microseconds since the epoch, or None where the trace does not tell."""
    base = header.get("baseTimeNanoseconds")
    shift = float(base) / 1000 if isinstance(base, (int, float)) and not isinstance(base, bool) else 0.0
    start = columns.start
    return shift if len(start) and _EPOCH[0] < float(start.min()) + shift < _EPOCH[1] else None


def _add_steps(out: EventBuilder, windows: Windows, figures: Mapping[str, Column], offset: float | None) -> None:
    for index, number in enumerate(windows.number[:_MAX_STEPS]):
        time = None if offset is None else int(windows.start[index] + offset)
        out.add(
            kind="span",
            name=WINDOW if number is None else f"ProfilerStep#{number}",
            line=index + 1,
            time=time,
            step=number,
            duration_us=float(windows.duration[index]),
            attrs={"host_us": round(float(windows.host_end[index] - windows.host_start[index]), 3)},
        )
        for name, column in figures.items():
            value = float(column.values[index])
            if np.isfinite(value):
                out.add(
                    kind="metric",
                    name=METRIC + name,
                    line=index + 1,
                    time=time,
                    step=number,
                    value=value,
                    unit=column.unit or None,
                )


def _add_totals(out: EventBuilder, columns: Columns, windows: Windows) -> None:
    for total in totals(columns, windows, most=MOST):
        out.add(
            kind="span",
            name=total.name,
            duration_us=total.duration,
            attrs=_about(total),
        )


def _about(total: Total) -> dict[str, Any]:
    about: dict[str, Any] = {
        "category": total.category,
        "calls": total.calls,
        "mean_us": round(total.duration / total.calls, 3),
    }
    if total.device is not None:
        about["device_us"] = round(total.device, 3)
    if total.shapes:
        about["shapes"] = [{"inputs": text, "calls": calls, "us": spent} for text, calls, spent in total.shapes]
    return about


def _add_exchanges(out: EventBuilder, columns: Columns, windows: Windows, offset: float | None) -> None:
    """Add one span for each collective call, which facts match with those of other ranks."""
    for exchange in exchanges(columns, windows):
        out.add(
            kind="span",
            name=EXCHANGE,
            time=None if offset is None else int(exchange.start + offset),
            step=exchange.step,
            value=exchange.start,
            unit="us",
            duration_us=exchange.duration,
            text=exchange.name,
            attrs={"ranks": list(exchange.ranks)} if exchange.ranks else None,
        )


def _add_collectives(out: EventBuilder, columns: Columns, windows: Windows) -> None:
    """Add one span for each collective operation that the trace describes: how often, how much, among how many."""
    grouped: dict[tuple[str, str | None, int], list[float]] = {}
    times = np.array([start for _, start, _, _ in columns.collectives], dtype=float)
    inside = windows.of(times) >= 0 if len(windows) else np.zeros(len(times), bool)
    for (_, _, duration, args), good in zip(columns.collectives, inside.tolist(), strict=True):
        if good and args.collective and duration >= 0:
            sums = grouped.setdefault((args.collective, args.dtype, args.group_size), [0.0, 0, 0])
            sums[0] += duration
            sums[1] += 1
            sums[2] += max(args.elements, 0)
    for (name, dtype, group_size), (duration, calls, elements) in sorted(grouped.items(), key=lambda item: -item[1][0]):
        attrs = {"category": "collective", "calls": calls, "elements": elements, "dtype": dtype, "ranks": group_size}
        out.add(kind="span", name=f"collective.{name}", duration_us=duration, attrs=attrs)


def _add_devices(out: EventBuilder, header: Mapping[str, Any], columns: Columns) -> None:
    """Add the devices that worked in this trace, or all that it lists where none did."""
    listed = header.get("deviceProperties") or header.get("computeProperties")
    devices = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    used = columns.devices
    chosen = [item for item in devices if item.get("id") in used] or devices
    for item in chosen[:64]:
        major, minor = item.get("computeMajor"), item.get("computeMinor")
        attrs = {
            "name": item.get("name"),
            "index": item.get("id"),
            "memory_total_bytes": item.get("totalGlobalMem", item.get("totalMemory")),
            "compute_capability": None if major is None else f"{major}.{minor or 0}",
            "multiprocessors": item.get("numSms"),
        }
        attrs = {key: value for key, value in attrs.items() if isinstance(value, (str, int))}
        out.add(kind="system", name="system.gpu", text=str(attrs.get("name", ""))[:200] or None, attrs=attrs)


def _add_settings(out: EventBuilder, header: Mapping[str, Any]) -> None:
    """Add the number of ranks, which a distributed trace states."""
    stated = header.get("distributedInfo")
    size = stated.get("world_size") if isinstance(stated, dict) else None
    if isinstance(size, int) and 0 < size < 1 << 24:
        attrs = {"key": "distributedInfo.world_size", "value": size}
        out.add(kind="config", name="world_size", value=float(size), text=str(size), attrs=attrs)


def _remarks(columns: Columns, windows: Windows, figures: Mapping[str, Column]) -> list[str]:
    found = []
    if not len(windows):
        found.append("The trace holds no operator, runtime call or kernel, so there is no step breakdown.")
    elif windows.number == (None,):
        found.append(
            "No ProfilerStep is marked (profiler.step() was not called), so the whole trace counts as one step."
        )
    if windows.dropped:
        found.append(f"The last {windows.dropped} steps lack kernels and were left out of the breakdown.")
    if "graph_launches" in figures and figures["graph_launches"].values.any():
        found.append("Kernels were launched through graphs, so launches and gaps cannot be told one by one.")
    if columns.unpaired or columns.unclosed:
        found.append(
            f"{columns.unclosed:,} spans of the begin/end form have no end, and {columns.unpaired:,} no beginning; "
            "they were left out."
        )
    if len(windows) > _MAX_STEPS:
        found.append(f"Only the first {_MAX_STEPS:,} of {len(windows):,} steps were kept.")
    return found


def _add_advice(out: EventBuilder, data: bytes, figures: Mapping[str, Column]) -> list[str]:
    """Add what torch-tb-profiler recommends; a trace that it cannot read is a remark, not a failure."""
    if "items" not in figures:
        return []  # Without a single operator its steps are empty, and its figures are -0 %.
    try:
        advice = read_advice(data)
    except UnreadableSource as error:
        return [str(error)]
    shares = {name: round(share, 4) for name, share in advice.shares.items()}
    for topic, text, share in advice.recommendations:
        attrs = {"topic": topic, "step_shares": shares} | ({} if share is None else {"share": round(share, 4)})
        out.add(kind="log", name=ADVICE, severity="info", text=text, attrs=attrs)
    total = float(figures["step_us"].values.sum())
    if not total:
        return []
    pairs = {"dataloader": "dataloader_us", "communication": "communication_us", "kernel": "kernel_us"}
    ours = {name: float(figures[column].values.sum()) / total for name, column in pairs.items() if column in figures}
    return [
        f"torch-tb-profiler says that {name} takes {shares[name]:.1%} of the step; computed here: {share:.1%}."
        for name, share in ours.items()
        if abs(shares[name] - share) > 0.02
    ]
