"""Prometheus text exposition (`/metrics` of vLLM, TGI, Triton, DCGM): one sample a line."""

from __future__ import annotations

from typing import Any

import re2

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.machine.device_names import dcgm_name
from rca.ingest.machine.gpu_query import THROTTLE_BITS
from rca.ingest.machine.prometheus_names import known_name, owner_of
from rca.ingest.tables.cells import number
from rca.ingest.tables.sampled_lines import read_sampled
from rca.ingest.tables.structured import decode

_SAMPLE = re2.compile(
    r"([a-zA-Z_:][\w:]*)(?:\{([^\n]*)\})?[ \t]+([^\s{}]{1,32})(?:[ \t]+([0-9]{10,16}(?:\.[0-9]{1,9})?))?[ \t]*"
)
_LABEL = re2.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_THROTTLE_FIELDS = frozenset({"dcgm_fi_dev_clock_throttle_reasons", "dcgm_fi_dev_clocks_event_reasons"})


class PrometheusIngestor:
    """Reads Prometheus text into metric events with their labels."""

    name = "prometheus metrics"

    def accepts(self, source: Source, head: bytes) -> bool:  # noqa: ARG002 - the content decides, not the name
        """Take text whose first lines are `# HELP` / `# TYPE` comments."""
        lines = decode(head).splitlines()[:20]
        return any(line.startswith("# TYPE ") for line in lines) and any(_SAMPLE.fullmatch(line) for line in lines)

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the samples; histogram buckets are left out, a histogram's mean is added."""
        found = read_sampled(source, context)
        data, notes = found.data, found.warnings
        lines = decode(data).splitlines()
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        totals: dict[tuple[str, str], dict[str, float]] = {}
        for place, line in enumerate(lines, start=1):
            # OpenMetrics puts an exemplar behind the sample.
            plain = line.split(" # {", maxsplit=1)[0]
            match = None if line.startswith("#") or len(line) > 4096 else _SAMPLE.fullmatch(plain)
            if match is not None and (value := number(match[3])) is not None:
                stamp = None if match[4] is None else _micros(match[4])
                _add_sample(out, match[1].lower(), match[2] or "", value, line=place, time=stamp, totals=totals)
        for (name, label_text), parts in totals.items():
            if parts.get("count", 0) > 0 and "sum" in parts:
                labels = {**dict(_LABEL.findall(label_text)), "series": f"{name}_mean"}
                mean = parts["sum"] / parts["count"]
                out.add(kind="metric", name=f"{name}_mean", line=len(lines), value=mean, attrs=labels)
        if not len(out):
            raise UnreadableSource(f"{source.path} holds no Prometheus sample.")
        return Ingested(found.placed(out.build()), lines=len(lines), bytes=len(data), warnings=notes)


def _micros(text: str) -> int:
    """Return a time stamp in microseconds: Prometheus writes milliseconds, OpenMetrics seconds with a fraction."""
    if "." in text:
        return int(float(text) * 1e6)
    return int(text) * (1000 if len(text) > 11 else 10**6)


def _add_sample(
    out: EventBuilder,
    name: str,
    label_text: str,
    value: float,
    *,
    line: int,
    time: int | None,
    totals: dict[tuple[str, str], dict[str, float]],
) -> None:
    if name.endswith(("_bucket", "_created")):
        return
    labels: dict[str, Any] = dict(_LABEL.findall(label_text))
    if name in _THROTTLE_FIELDS:
        for bit, reason in THROTTLE_BITS.items():
            if 0 <= value < 2**53 and int(value) & bit:
                owner = owner_of(labels, device=True)
                attrs = {"gpu": owner.get("gpu"), "reason": reason}
                host = owner.get("host")
                out.add(kind="system", name="system.throttle", line=line, time=time, value=1.0, host=host, attrs=attrs)
        return
    common, unit, factor = known_name(name)
    owner = owner_of(labels, device=dcgm_name(name) is not None)
    attrs = {**labels, "series": name, **({"gpu": owner["gpu"]} if "gpu" in owner else {})}
    out.add(
        kind="metric",
        name=common,
        line=line,
        time=time,
        value=value * factor,
        unit=unit or None,
        rank=owner.get("rank"),
        host=owner.get("host"),
        attrs=attrs,
    )
    base, _, part = name.rpartition("_")
    if part in {"sum", "count"}:
        totals.setdefault((base, label_text), {})[part] = value
