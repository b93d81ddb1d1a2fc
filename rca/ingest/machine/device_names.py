"""Names that monitoring tools give to readings of a device, and the common names and units behind them."""

from __future__ import annotations

import re

from rca.ingest.tables.cells import number, number_with_unit, size_in_bytes

UNITS = {
    "gpu_utilization": "%",
    "gpu_memory_utilization": "%",
    "gpu_temperature": "°C",
    "gpu_memory_temperature": "°C",
    "power": "W",
    "power_limit": "W",
    "sm_clock": "MHz",
    "sm_clock_max": "MHz",
    "memory_clock": "MHz",
    "gpu_memory_used": "GiB",
    "gpu_memory_total": "GiB",
    "gpu_memory_free": "GiB",
    "gpu_memory_used_share": "%",
    "pcie_rx": "MB/s",
    "pcie_tx": "MB/s",
    "power_violation": "%",
}
"""Units of the readings; those that are not listed are counts, flags or shares."""

_SIZES = frozenset({"gpu_memory_used", "gpu_memory_total", "gpu_memory_free"})
_UNIT = re.compile(r"[\[(]([^\])]{1,16})[\])]\s*$")
_YES_NO = {"yes": 1.0, "no": 0.0, "enabled": 1.0, "disabled": 0.0, "active": 1.0, "not active": 0.0}
_WIDTH = re.compile(r"\s*x?(\d{1,2})x?\s*")

QUERY = {
    "utilization.gpu": "gpu_utilization",
    "utilization.memory": "gpu_memory_utilization",
    "temperature.gpu": "gpu_temperature",
    "temperature.memory": "gpu_memory_temperature",
    "power.draw": "power",
    "power.draw.average": "power",
    "power.draw.instant": "power",
    "power.limit": "power_limit",
    "enforced.power.limit": "power_limit",
    "clocks.sm": "sm_clock",
    "clocks.current.sm": "sm_clock",
    "clocks.gr": "sm_clock",
    "clocks.current.graphics": "sm_clock",
    "clocks.max.sm": "sm_clock_max",
    "clocks.max.graphics": "sm_clock_max",
    "clocks.mem": "memory_clock",
    "clocks.current.memory": "memory_clock",
    "memory.used": "gpu_memory_used",
    "memory.total": "gpu_memory_total",
    "memory.free": "gpu_memory_free",
    "pcie.link.gen.current": "pcie_generation",
    "pcie.link.gen.gpucurrent": "pcie_generation",
    "pcie.link.gen.max": "pcie_generation_max",
    "pcie.link.width.current": "pcie_width",
    "pcie.link.width.max": "pcie_width_max",
    "ecc.errors.uncorrected.volatile.total": "ecc_uncorrected",
    "ecc.errors.uncorrected.volatile.dram": "ecc_uncorrected_dram",
    "ecc.errors.uncorrected.volatile.device_memory": "ecc_uncorrected_dram",
    "ecc.errors.uncorrected.aggregate.total": "ecc_uncorrected_total",
    "ecc.errors.corrected.volatile.total": "ecc_corrected",
    "ecc.errors.corrected.aggregate.total": "ecc_corrected_total",
    "remapped_rows.uncorrectable": "remapped_rows",
    "remapped_rows.pending": "remap_pending",
    "remapped_rows.failure": "remap_failed",
    "retired_pages.double_bit.count": "retired_pages",
    "retired_pages.dbe": "retired_pages",
    "retired_pages.pending": "retired_pages_pending",
    "fan.speed": "fan_speed",
}
"""Properties of `nvidia-smi --query-gpu` (nvidia-smi --help-query-gpu)."""

DMON = {
    "pwr": "power",
    "gtemp": "gpu_temperature",
    "temp": "gpu_temperature",
    "mtemp": "gpu_memory_temperature",
    "sm": "gpu_utilization",
    "mem": "gpu_memory_utilization",
    "mclk": "memory_clock",
    "pclk": "sm_clock",
    "fb": "gpu_memory_used",
    "pviol": "power_violation",
    "tviol": "thermal_violation",
    "sbecc": "ecc_corrected",
    "dbecc": "ecc_uncorrected",
    "pci": "pcie_replays",
    "rxpci": "pcie_rx",
    "txpci": "pcie_tx",
}
"""Columns of `nvidia-smi dmon` (its manual page); violations are percent of time (power) or a flag (thermal)."""

DCGM_FIELDS = {
    "gpu_util": "gpu_utilization",
    "mem_copy_util": "gpu_memory_utilization",
    "gpu_temp": "gpu_temperature",
    "memory_temp": "gpu_memory_temperature",
    "sm_clock": "sm_clock",
    "mem_clock": "memory_clock",
    "max_sm_clock": "sm_clock_max",
    "power_usage": "power",
    "power_usage_instant": "power",
    "power_mgmt_limit": "power_limit",
    "enforced_power_limit": "power_limit",
    "fb_used": "gpu_memory_used",
    "fb_free": "gpu_memory_free",
    "fb_total": "gpu_memory_total",
    "xid_errors": "gpu_xid",
    "ecc_dbe_vol_total": "ecc_uncorrected",
    "ecc_dbe_agg_total": "ecc_uncorrected_total",
    "ecc_sbe_vol_total": "ecc_corrected",
    "ecc_sbe_agg_total": "ecc_corrected_total",
    "uncorrectable_remapped_rows": "remapped_rows",
    "row_remap_failure": "remap_failed",
    "row_remap_pending": "remap_pending",
    "retired_dbe": "retired_pages",
    "retired_pending": "retired_pages_pending",
    "pcie_replay_counter": "pcie_replays",
    "pcie_link_gen": "pcie_generation",
    "pcie_max_link_gen": "pcie_generation_max",
    "pcie_link_width": "pcie_width",
    "pcie_max_link_width": "pcie_width_max",
    "nvlink_crc_flit_error_count_total": "nvlink_crc_errors",
    "nvlink_crc_data_error_count_total": "nvlink_crc_errors",
    "nvlink_replay_error_count_total": "nvlink_errors",
    "nvlink_recovery_error_count_total": "nvlink_errors",
    "sm_active": "sm_active",
    "pipe_tensor_active": "tensor_active",
    "gr_engine_active": "graphics_active",
    "dram_active": "memory_active",
}
"""Fields of DCGM without `DCGM_FI_DEV_` or `DCGM_FI_PROF_` (dcgm_fields.h)."""
_DCGM_PREFIX = re.compile(r"dcgm_fi_(?:dev|prof)_")

DCGM_SHORT = {
    "gputl": "gpu_utilization",
    "mcutl": "gpu_memory_utilization",
    "tmptr": "gpu_temperature",
    "mmtmp": "gpu_memory_temperature",
    "power": "power",
    "powins": "power",
    "pwmgl": "power_limit",
    "smclk": "sm_clock",
    "mmclk": "memory_clock",
    "smmax": "sm_clock_max",
    "fbusd": "gpu_memory_used",
    "fbttl": "gpu_memory_total",
    "fbfre": "gpu_memory_free",
    "xider": "gpu_xid",
    "edvtl": "ecc_uncorrected",
    "esvtl": "ecc_corrected",
    "urmps": "remapped_rows",
    "rrf": "remap_failed",
    "pcirc": "pcie_replays",
    "smact": "sm_active",
    "tenso": "tensor_active",
    "gract": "graphics_active",
    "drama": "memory_active",
}
"""Heads of the columns of `dcgmi dmon` (dcgm_fields.cpp)."""

ROCM = {
    "gpu use": "gpu_utilization",
    "gpu%": "gpu_utilization",
    "gfx_activity": "gpu_utilization",
    "gpu memory allocated": "gpu_memory_used_share",
    "gpu memory use": "gpu_memory_used_share",
    "vram%": "gpu_memory_used_share",
    "temperature (sensor junction)": "gpu_temperature",
    "temperature (sensor edge)": "gpu_edge_temperature",
    "temperature (sensor memory)": "gpu_memory_temperature",
    "temp": "gpu_temperature",
    "average graphics package power": "power",
    "current socket graphics package power": "power",
    "power": "power",
    "avgpwr": "power",
    "max graphics package power": "power_limit",
    "pwrcap": "power_limit",
    "sclk": "sm_clock",
    "sclk clock speed": "sm_clock",
    "mclk": "memory_clock",
    "mclk clock speed": "memory_clock",
    "vram total memory": "gpu_memory_total",
    "vram total used memory": "gpu_memory_used",
    "pcie replay count": "pcie_replays",
}
"""Columns and keys of rocm-smi and amd-smi (rocm_smi.py of rocm_smi_lib)."""


XPU = {
    "gpu utilization": "gpu_utilization",
    "gpu power": "power",
    "gpu frequency": "sm_clock",
    "gpu core temperature": "gpu_temperature",
    "gpu memory temperature": "gpu_memory_temperature",
    "gpu memory utilization": "gpu_memory_used_share",
    "gpu memory used": "gpu_memory_used",
    "pcie read": "pcie_rx",
    "pcie write": "pcie_tx",
}
"""Columns of `xpu-smi dump` (its user guide)."""


def column_name(column: str) -> str | None:
    """Return the common name of a column in plain spelling, whichever monitor wrote it, or None."""
    return QUERY.get(column) or XPU.get(column) or (dcgm_name(column) if column.startswith("dcgm_fi_") else None)


def card_name(column: str) -> str | None:
    """Return the common name of a column of `rocm-smi --csv`, or None."""
    return ROCM.get(column)


def plain(column: str) -> str:
    """Return a column name in lower case without its unit: `power.draw [W]` -> `power.draw`."""
    return _UNIT.sub("", column.strip().rstrip(":")).strip().lower()


def unit_of(column: str) -> str:
    """Return the unit that a column name states, or an empty string."""
    found = _UNIT.search(column.strip())
    return "" if found is None else found[1].strip()


def dcgm_name(field: str) -> str | None:
    """Return the common name of a DCGM field in any spelling, or None."""
    name = field.strip().lower()
    stripped = _DCGM_PREFIX.sub("", name, count=1)
    return DCGM_FIELDS.get(stripped) if stripped != name else DCGM_SHORT.get(name)


def reading(cell: object, name: str, *, unit: str = "", size_unit: str = "MiB") -> float | None:
    """Return a cell in the unit of its common name; `size_unit` counts for sizes without a unit of their own."""
    if not isinstance(cell, str):
        cell = None if cell is None else repr(cell)
    if cell is None or len(cell) > 64:
        return None
    text = cell.strip().strip("()")
    if name in _SIZES:
        found = number_with_unit(text)
        size = None if found is None else size_in_bytes(f"{found[0]:f}{found[1] or unit or size_unit}")
        return None if size is None else size / 1024**3
    if (flag := _YES_NO.get(text.lower())) is not None:
        return flag
    if name.startswith("pcie_width") and (width := _WIDTH.fullmatch(text)) is not None:
        return float(width[1])
    if (value := number(text)) is not None:
        return value
    found = number_with_unit(text)
    return None if found is None else found[0]
