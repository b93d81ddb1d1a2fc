"""JSON documents that tools around a job print: device snapshots, scheduler accounts, package lists."""

from __future__ import annotations

from typing import Any

from rca.events import EventBuilder
from rca.ingest.machine.device_json import add_device_snapshot, is_device_snapshot
from rca.ingest.machine.slurm_json import add_slurm_answer, is_slurm_answer
from rca.ingest.settings.packages import add_package_records, is_package_list


def add_tool_document(out: EventBuilder, document: Any) -> bool:
    """Add what a tool's document says; return whether a known tool prints such a document."""
    if is_device_snapshot(document):
        add_device_snapshot(out, document)
        return True
    if is_slurm_answer(document):
        add_slurm_answer(out, document)
        return True
    if is_package_list(document):
        add_package_records(out, document)
        return True
    return False
