"""What the samples of exporters are called: device metrics of DCGM, memory and disks of the node exporter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rca.ingest.machine.device_names import UNITS, dcgm_name
from rca.ingest.names import canonical_metric
from rca.ingest.tables.cells import whole

_HOST_LABELS = ("Hostname", "hostname", "node", "instance", "host", "kubernetes_node")
_RANK_LABELS = ("rank", "global_rank", "node_rank_global")
_DEVICE_LABELS = ("gpu", "gpu_id", "index", "device_index", "minor_number", "uuid", "UUID")
_MIB = frozenset({"gpu_memory_used", "gpu_memory_free", "gpu_memory_total"})


def known_name(series: str) -> tuple[str, str, float]:
    """Return the common name of a sample, its unit, and the factor that brings its value into it."""
    device = dcgm_name(series)
    if device is not None:
        # DCGM counts memory in MiB.
        return device, UNITS.get(device, ""), 1 / 1024 if device in _MIB else 1.0
    return canonical_metric(series), "", 1.0


def owner_of(labels: Mapping[str, Any], *, device: bool) -> dict[str, Any]:
    """Return the host, the rank and the device that the labels of a sample name."""
    host = next((str(labels[name]) for name in _HOST_LABELS if labels.get(name)), None)
    rank = next((whole(str(labels[name])) for name in _RANK_LABELS if labels.get(name)), None)
    found: dict[str, Any] = {}
    if host is not None:
        found["host"] = host.rsplit(":", 1)[0] if host.rpartition(":")[2].isdigit() else host
    if rank is not None and rank < 2**31:
        found["rank"] = rank
    if device:
        index = next((str(labels[name]) for name in _DEVICE_LABELS if labels.get(name)), None)
        number = None if index is None else whole(index)
        found["gpu"] = index if number is None else number
    return found
