"""JSON documents that tools around a job print: device snapshots, scheduler accounts, query answers, package lists."""

from __future__ import annotations

from typing import Any

from rca.events import EventBuilder
from rca.ingest.device_json import add_device_snapshot, is_device_snapshot
from rca.ingest.packages import add_package_records, is_package_list
from rca.ingest.prometheus_query import add_query_answer, is_query_answer
from rca.ingest.slurm_json import add_slurm_answer, is_slurm_answer


def add_tool_document(out: EventBuilder, document: Any) -> list[str] | None:
    """Add what a tool's document says and return what was left out; None for what no known tool prints."""
    if is_device_snapshot(document):
        add_device_snapshot(out, document)
        return []
    if is_slurm_answer(document):
        add_slurm_answer(out, document)
        return []
    if is_query_answer(document):
        return add_query_answer(out, document)
    if is_package_list(document):
        add_package_records(out, document)
        return []
    return None
