"""MLflow's local store: a text file a metric (`time value step` a line), a parameter, a tag; meta.yaml of a run."""

from __future__ import annotations

from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import re2

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.settings.config_rows import add_settings
from rca.ingest.tables.cells import number
from rca.ingest.tables.metric_table import add_metrics, column_of, time_of
from rca.ingest.tables.sampled_lines import read_sampled
from rca.ingest.tables.structured import MAX_SETTINGS_FILE, decode, parse_yaml, plain_name, read_whole

_POINT = re2.compile(r"\d{12,14} \S+ -?\d{1,18}(?: \S+ \S+)?")
_LONGEST_VALUE = 6000
"""Characters that MLflow keeps of a parameter."""
_RUN = re2.compile(r"[0-9a-f]{32}")
_STATUS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
"""mlflow.entities.RunStatus."""
_DEVICE = re2.compile(r"system/gpu_(\d{1,3})_(utilization_percentage|memory_usage_megabytes|power_usage_watts)")
_READINGS = {
    "utilization_percentage": ("gpu_utilization", "%", 1.0),
    "memory_usage_megabytes": ("gpu_memory_used", "GiB", 1e6 / 2**30),
    "power_usage_watts": ("power", "W", 1.0),
}
"""What `mlflow.enable_system_metrics_logging` records of a device, under the names and units of other monitors."""
_TAGS = {"mlflow.source.name": "script", "mlflow.source.git.commit": "git_commit", "mlflow.parentRunId": "parent_run"}
"""Tags of MLflow itself that say something about the job."""


class MlflowIngestor:
    """Reads the files of an MLflow run."""

    name = "mlflow store"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take points below `metrics/`, short files below `params/` and `tags/` of a run, and its meta.yaml."""
        parts = PurePosixPath(source.path).parts
        first = decode(head).split("\n", 1)[0]
        if plain_name(source.path) == "meta.yaml":
            return b"lifecycle_stage:" in head and (b"run_id:" in head or b"artifact_location:" in head)
        if "metrics" in parts[:-1]:
            return _POINT.fullmatch(first.strip()) is not None
        short = source.size <= _LONGEST_VALUE and "\0" not in first
        return short and (_below_run(parts) in {"params", "tags"} or (len(parts) > 2 and parts[-2] == "params"))

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read one metric, parameter or tag, whose path is its name, or the state of a run."""
        if plain_name(source.path) == "meta.yaml":
            return _state(source, context)
        sampled = read_sampled(source, context)
        data, notes = sampled.data, sampled.warnings
        text = decode(data)
        out = EventBuilder(source.path)
        parts = PurePosixPath(source.path).parts
        if "metrics" not in parts[:-1]:
            _add_setting(out, parts, text.strip())
            return Ingested(out.build(), lines=1, bytes=len(data), warnings=notes)
        name = "/".join(parts[parts.index("metrics") + 1 :])
        found = [(place, line.split()) for place, line in enumerate(text.splitlines(), start=1)]
        # A point may name the data set it was measured on behind its step.
        rows = [(place, *words[:3]) for place, words in found if len(words) in {3, 5}]
        if not rows:
            raise UnreadableSource(f"{source.path} holds no point of a metric.")
        places, times, values, steps = zip(*rows, strict=True)
        lines = np.asarray(places, dtype=np.int64)
        device = _DEVICE.fullmatch(name)
        if device is not None:
            warnings: list[str] = []
            _add_readings(out, device, times, values, lines)
        else:
            warnings = add_metrics(out, {"timestamp": times, "step": steps, name: values}, lines=lines)
        return Ingested(sampled.placed(out.build()), lines=len(found), bytes=len(data), warnings=(*notes, *warnings))


def _below_run(parts: tuple[str, ...]) -> str | None:
    """Return the folder of a run's store that a file lies in."""
    return next((inner for run, inner in pairwise(parts[:-1]) if _RUN.fullmatch(run)), None)


def _add_setting(out: EventBuilder, parts: tuple[str, ...], text: str) -> None:
    if "params" in parts[:-1]:
        add_settings(out, {".".join(parts[parts.index("params") + 1 :]): text}, role="training", line=1)
        return
    name = "/".join(parts[parts.index("tags") + 1 :])
    if name in _TAGS or not name.startswith("mlflow."):
        add_settings(out, {_TAGS.get(name, f"tags.{name}"): text}, role="tags", line=1)


def _add_readings(
    out: EventBuilder, device: Any, times: tuple[str, ...], values: tuple[str, ...], lines: np.ndarray[Any, Any]
) -> None:
    """Add the readings of one device; their step counts readings and not optimizer steps."""
    name, unit, factor = _READINGS[device[2]]
    column = column_of(values)
    out.extend(
        len(lines),
        kind="metric",
        name=name,
        line=lines,
        time=None
        if (stamps := time_of(times)) is None
        else stamps.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC")),
        value=column.values * factor,
        unit=unit,
        attrs=[f'{{"gpu": {int(device[1])}}}'] * len(lines),
    )


def _state(source: Source, context: IngestContext) -> Ingested:
    """Read meta.yaml: how the tracker saw the run end."""
    data, _cut, notes = read_whole(source, context, MAX_SETTINGS_FILE)
    document = next(iter(parse_yaml(decode(data), what=source.path)), None)
    if not isinstance(document, dict):
        raise UnreadableSource(f"{source.path} states nothing about a run.")
    if "run_id" not in document:
        # The experiment has only a name and a place.
        return Ingested(EventBuilder(source.path).build(), lines=data.count(b"\n") + 1, bytes=len(data), warnings=notes)
    code = number(document.get("status"))
    known = document.get("status") if isinstance(document.get("status"), str) else None
    status = _STATUS.get(int(code), "UNKNOWN") if code is not None and np.isfinite(code) else str(known or "UNKNOWN")
    start, end = (_micros(document.get(key)) for key in ("start_time", "end_time"))
    ill = status in {"FAILED", "KILLED"}
    named = str(document.get("run_name") or document.get("run_id") or "")[:200]
    out = EventBuilder(source.path)
    out.add(
        kind="system",
        name="tracker.run",
        line=1,
        time=end if end is not None else start,
        severity="error" if ill else "info",
        duration_us=float(end - start) if start is not None and end is not None and end >= start else None,
        text=f"MLflow has the run {named} as {status}.",
        attrs={"tracker": "mlflow", "status": status, "run": named, "id": str(document.get("run_id"))[:64]},
    )
    times = [time for time in (start, end) if time is not None]
    return Ingested(
        out.build(),
        lines=data.count(b"\n") + 1,
        bytes=len(data),
        first_time=min(times, default=None),
        last_time=max(times, default=None),
        warnings=notes,
    )


def _micros(value: Any) -> int | None:
    """Return milliseconds since the epoch in microseconds."""
    found = number(value)
    return int(found * 1000) if found is not None and 1e11 < found < 4e12 else None
