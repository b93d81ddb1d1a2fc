"""The result block of a serving benchmark, as vLLM and SGLang print it: one load, its speed and its latencies."""

from __future__ import annotations

import re2

from rca.events import EventBuilder
from rca.ingest.blocks.lines import claim, place_of, table_lines
from rca.ingest.logs.document import Document
from rca.ingest.tables.cells import number

_ROW = re2.compile(r"^([A-Z][\w .#()/%-]{2,48}?):\s+([0-9][0-9.,]*|inf)\s*$")
_NAMES = {
    "successful requests": "requests_successful",
    "failed requests": "requests_failed",
    "max request concurrency": "max_concurrency",
    "maximum request concurrency": "max_concurrency",
    "request throughput (req/s)": "request_throughput",
    "output token throughput (tok/s)": "output_throughput",
    "mean ttft (ms)": "mean_ttft_ms",
    "median ttft (ms)": "median_ttft_ms",
    "p99 ttft (ms)": "p99_ttft_ms",
    "mean tpot (ms)": "mean_tpot_ms",
    "median tpot (ms)": "median_tpot_ms",
    "p99 tpot (ms)": "p99_tpot_ms",
    "mean itl (ms)": "mean_itl_ms",
    "median itl (ms)": "median_itl_ms",
    "mean e2e latency (ms)": "mean_e2e_ms",
    "median e2e latency (ms)": "median_e2e_ms",
}
_MOST_ROWS = 60


class ServingBenchmarkParser:
    """Adds the figures of one result block, all at the line where the block starts."""

    name = "serving benchmark"
    triggers: tuple[str, ...] = (r"^=+ Serving Benchmark Result =+",)

    def parse(self, document: Document, line: int, out: EventBuilder) -> int:
        """Read the rows up to the line that closes the block."""
        end = line
        found: dict[str, float] = {}
        for row in table_lines(document, line, most=_MOST_ROWS):
            text = row.text.strip()
            if row.number > line and text.startswith("===") and text.endswith("==="):
                end = row.number + 1
                break
            match = _ROW.search(text)
            name = None if match is None else _NAMES.get(match[1].lower())
            if match is not None and name is not None and (value := number(match[2])) is not None:
                found.setdefault(name, value)
            end = row.number + 1
        for name, value in found.items():
            out.add(
                kind="metric",
                name=name,
                **place_of(document, line),
                phase="inference",
                value=value,
                unit="ms" if name.endswith("_ms") else "",
            )
        return claim(document, line, end) if found else line
