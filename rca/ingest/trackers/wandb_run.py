"""W&B run files (`run-*.wandb`): metrics, settings, devices, system metrics and the exit code of a run.

A run that was killed leaves a file without an end; what is whole in it is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.event_files.settings import message_of
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.places.content import open_stream
from rca.ingest.trackers.leveldb_log import Record, read_records
from rca.ingest.trackers.wandb_history import MEDIA, Row, add_history, add_readings
from rca.ingest.trackers.wandb_machine import add_machine
from rca.ingest.trackers.wandb_messages import key_of, micros_of, number_of, record_class, text_of
from rca.ingest.trackers.wandb_settings import add_configuration

MAX_CELLS = 1_000_000
"""Numbers that are kept of the history; of more every second row is dropped, as often as needed."""
MAX_RECORDS = 20_000_000
"""Records that are read: a minute's work, and a run of months. A hundred million empty ones compress to little."""
_MAGIC = b":W&B"
_FILE_HEAD = 7
_LEVELS = {"INFO": "info", "WARN": "warning", "ERROR": "error"}
_MAX_ALERTS = 200
_SHOWN = 8
"""Damaged places that are named: the first ones, and the last, at which the reading may have stopped."""


class WandbRunIngestor:
    """Reads the transaction log of a W&B run into metrics, configuration and system events."""

    name = "W&B run"

    def accepts(self, source: Source, head: bytes) -> bool:  # noqa: ARG002 - by content alone
        """Take files that begin as W&B begins its run files."""
        return head.startswith(_MAGIC)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read every whole record. Raises UnreadableSource where there is none."""
        run = _Run(EventBuilder(source.path, rank=source.rank, host=source.host))
        damages: list[Record] = []
        with open_stream(source, context.limits) as (stream, lost):
            for record in read_records(stream, skip=_FILE_HEAD, limit=context.limits.source_bytes):
                if record.damage:
                    damages.append(record)
                elif run.records < MAX_RECORDS:
                    run.take(record.data)
                else:
                    damages.append(Record(record.offset, b"", f"the reading stopped after {MAX_RECORDS:,} records"))
                    break
            size = stream.tell()
            cut = bool(stream.read(1))
        if not run.records:
            raise UnreadableSource(f"{source.path} holds no whole W&B record in its {size:,} bytes.")
        notes = (*lost, f"Only the first {size:,} bytes were read.") if cut else lost
        warnings = (*notes, *_damaged(damages), *run.finish(), *_console(source, run.lines))
        return Ingested(
            run.out.build(),
            lines=run.records,
            bytes=size,
            first_time=run.first_time,
            last_time=run.last_time,
            warnings=warnings,
        )


class _Rows:
    """Rows of numbers by key, evenly thinned where they are too many; the last one is always kept."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen = 0
        self.stride = 1
        self.media: set[str] = set()
        """Keys of values that are no numbers but tables, images, histograms."""
        self._rows: list[Row] = []
        self._last: Row | None = None
        self._cells = 0
        self._keys: dict[str, str] = {}

    def add(self, record: int, time: int | None, items: Any) -> None:
        """Add one row."""
        self.seen += 1
        row: dict[str, float] = {}
        for item in items:
            key = key_of(item)
            key = self._keys.setdefault(key, key) if len(self._keys) < MAX_CELLS else key
            if key.endswith(MEDIA) and len(self.media) < MAX_CELLS:
                self.media.add(key.removesuffix(MEDIA))
            elif (value := number_of(item.value_json)) is not None:
                row[key] = value
        self._last = (record, time, row)
        if self.seen % self.stride:
            return
        self._rows.append(self._last)
        self._cells += len(row)
        while self._cells > MAX_CELLS and len(self._rows) > 1:
            del self._rows[::2]
            self.stride *= 2
            self._cells = sum(len(row) for _record, _time, row in self._rows)

    def kept(self) -> list[Row]:
        """Return the rows that are kept."""
        missing = self._last is not None and (not self._rows or self._rows[-1] is not self._last)
        return [*self._rows, self._last] if missing and self._last is not None else self._rows


class _Run:
    """What a run file said so far."""

    def __init__(self, out: EventBuilder) -> None:
        self.out = out
        self.records = 0
        self.lines = 0
        self.first_time: int | None = None
        self.last_time: int | None = None
        self._message = record_class()
        self._history = _Rows("history")
        self._stats = _Rows("system metrics")
        self._seen: Counter[str] = Counter()

    def take(self, data: bytes) -> None:
        """Take in one record."""
        self.records += 1
        record = message_of(self._message, data)
        if record is None:
            self._seen["broken"] += 1
        elif record.HasField("history"):
            self._history.add(self.records, None, record.history.item)
        elif record.HasField("stats"):
            self._stats.add(self.records, self._time(record.stats.timestamp), record.stats.item)
        elif record.HasField("output"):
            self.lines += 1
            self._time(record.output.timestamp)
        elif record.HasField("config"):
            add_configuration(self.out, record.config.update, line=self.records)
        elif record.HasField("run"):
            self._begin(record.run)
        elif record.HasField("environment"):
            add_machine(self.out, _metadata(record.environment), line=self.records)
        elif record.HasField("exit"):
            code = record.exit.exit_code
            says = {"seconds": record.exit.runtime, "told_by": "wandb"}
            self.out.add(
                kind="process", name="process.exit", line=self.records, time=self.last_time, value=code, attrs=says
            )
        elif record.HasField("alert"):
            self._alert(record.alert)

    def finish(self) -> Iterator[str]:
        """Add the metrics; say what was left out."""
        yield from add_history(self.out, self._history.kept(), media=self._history.media)
        add_readings(self.out, self._stats.kept())
        for rows in (self._history, self._stats):
            if rows.stride > 1:
                yield f"Of {rows.seen:,} rows of the {rows.name} one in {rows.stride} is kept."
        if self._seen["broken"]:
            yield f"{self._seen['broken']:,} records could not be understood and were left out."

    def _begin(self, run: Any) -> None:
        self._time(run.start_time)
        self.out.host = self.out.host or text_of(run.host)[:200] or None
        add_configuration(self.out, run.config.update, line=self.records)
        says = {"run": text_of(run.run_id), "name": text_of(run.display_name), "project": text_of(run.project)}
        says |= {"resumed": run.resumed, "starting_step": run.starting_step}
        self.out.add(kind="artifact", name="wandb.run", line=self.records, time=micros_of(run.start_time), attrs=says)

    def _alert(self, alert: Any) -> None:
        self._seen["alert"] += 1
        if self._seen["alert"] <= _MAX_ALERTS:
            text = f"{text_of(alert.title)}: {text_of(alert.text)}"
            severity = _LEVELS.get(text_of(alert.level).upper(), "info")
            self.out.add(
                kind="log", name="wandb.alert", line=self.records, time=self.last_time, severity=severity, text=text
            )

    def _time(self, time: Any) -> int | None:
        micros = micros_of(time)
        if micros is not None:
            self.first_time = micros if self.first_time is None else min(self.first_time, micros)
            self.last_time = micros if self.last_time is None else max(self.last_time, micros)
        return micros


def _metadata(told: Any) -> dict[str, Any]:
    """Return an environment record as `wandb-metadata.json` holds it."""
    found: dict[str, Any] = {
        name: text_of(getattr(told, name)) for name in ("os", "python", "program", "executable", "host")
    }
    found["args"] = [text_of(item) for item in told.args]
    found["gpu_nvidia"] = [{"name": text_of(item.name), "memoryTotal": item.memory_total} for item in told.gpu_nvidia]
    found |= {"gpu": text_of(told.gpu_type), "gpu_count": told.gpu_count, "cudaVersion": text_of(told.cuda_version)}
    return found | ({"memory": {"total": told.memory.total}} if told.memory.total else {})


def _damaged(damages: list[Record]) -> Iterator[str]:
    shown = damages if len(damages) <= _SHOWN else [*damages[: _SHOWN - 1], damages[-1]]
    for damage in shown:
        yield f"At byte {damage.offset:,} {damage.damage}."
    if len(damages) > _SHOWN:
        yield f"{len(damages) - _SHOWN:,} more places are damaged."


def _console(source: Source, lines: int) -> Iterator[str]:
    """Say that printed lines were left out, unless W&B wrote them into a file of their own beside this one."""
    if not lines:
        return
    try:
        (source.file.parent / "files" / "output.log").lstat()
    except OSError:
        yield f"{lines:,} printed lines are not read from here, and no files/output.log holds them."
