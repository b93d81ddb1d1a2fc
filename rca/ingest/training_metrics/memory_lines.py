"""The lines of DeepSpeed's `see_memory_usage`: device memory of this process and memory of the host."""

from __future__ import annotations

import re

from rca.ingest.training_metrics.pairs import Pair

TRIGGERS = (r"CPU Virtual Memory:\s+used = \d", r"\bMA [\d.]+ GB\s+Max_MA [\d.]+ GB")
_HOST = re.compile(r"CPU Virtual Memory:\s{1,4}used = (?P<used>[\d.]{1,12}) GB, percent = (?P<percent>[\d.]{1,6})%")
_DEVICE = re.compile(r"\bMA (?P<now>[\d.]{1,12}) GB\s{1,16}Max_MA [\d.]{1,12} GB\s{1,16}CA (?P<cached>[\d.]{1,12}) GB")


def memory_lines(message: str) -> list[Pair]:
    """Return host memory (GB and per cent) or device memory (GiB) of a line."""
    text = message[:400]
    host = _HOST.search(text)
    if host is not None:
        return [
            Pair("host_memory", float(host["used"]), "GB", known=True),
            Pair("host_memory_percent", float(host["percent"]), "%", known=True),
        ]
    device = _DEVICE.search(text)
    if device is None:
        return []
    return [
        Pair("memory_allocated", float(device["now"]), "GiB", known=True),
        Pair("memory_reserved", float(device["cached"]), "GiB", known=True),
    ]
