"""The report of `nvidia-smi -q -x`: XML, read without entities."""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.logs.timestamps import first_full_date
from rca.ingest.machine.device_names import reading
from rca.ingest.tables.cells import number_with_unit, size_in_bytes, whole
from rca.ingest.tables.structured import read_bounded

_ROOT = b"<nvidia_smi_log"
_DEEPEST = 24
_LONGEST = 300
_MOST_DEVICES = 512
_NUMBERS = {
    "utilization/gpu_util": "utilization",
    "temperature/gpu_temp": "temperature",
    "temperature/memory_temp": "gpu_memory_temperature",
    "gpu_power_readings/power_draw": "power_w",
    "gpu_power_readings/instant_power_draw": "power_w",
    "gpu_power_readings/average_power_draw": "power_w",
    "power_readings/power_draw": "power_w",
    "gpu_power_readings/current_power_limit": "power_limit_w",
    "power_readings/power_limit": "power_limit_w",
    "clocks/sm_clock": "sm_clock_mhz",
    "max_clocks/sm_clock": "sm_clock_max_mhz",
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "pcie_generation",
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen": "pcie_generation_max",
    "pci/pci_gpu_link_info/link_widths/current_link_width": "pcie_width",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "pcie_width_max",
    "pci/replay_counter": "pcie_replays",
    "remapped_rows/remapped_row_unc": "remapped_rows",
    "remapped_rows/remapped_row_pending": "remap_pending",
    "remapped_rows/remapped_row_failure": "remap_failed",
    "gpu_reset_status/reset_required": "reset_required",
}
_SIZES = {"fb_memory_usage/total": "memory_total_bytes", "fb_memory_usage/used": "memory_used_bytes"}
_TEXTS = {
    "product_name": "name",
    "uuid": "uuid",
    "mig_mode/current_mig": "mig",
    "persistence_mode": "persistence",
    "performance_state": "performance_state",
    "fabric/state": "fabric_state",
}
_REASONS = ("clocks_event_reasons/", "clocks_throttle_reasons/")


class NvidiaSmiXmlIngestor:
    """Reads the XML report into the events of the long report for people."""

    name = "nvidia-smi xml"

    def accepts(self, source: Source, head: bytes) -> bool:  # noqa: ARG002 - the content decides, not the name
        """Take what opens the root element of the report."""
        return _ROOT in head

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the report; one that was cut off keeps its start. Raises UnreadableSource where nothing was read."""
        data, _cut, notes = read_bounded(source, context)
        report = _Report()
        end = data.find(b"</nvidia_smi_log>")
        problem = report.feed(data if end < 0 else data[: end + len(b"</nvidia_smi_log>")])
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        report.add_to(out)
        if not len(out):
            raise UnreadableSource(f"{source.path} is a report of nvidia-smi that names no device ({problem}).")
        warnings = (*notes, *((f"{source.path}: read up to a fault in the XML ({problem}).",) if problem else ()))
        return Ingested(out.build(), lines=data.count(b"\n") + 1, bytes=len(data), warnings=warnings)


class _Report:
    """What was read so far."""

    def __init__(self) -> None:
        self._path: list[str] = []
        self._text = ""
        self._about: dict[str, str] = {}
        self._devices: list[dict[str, Any]] = []
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._open
        self._parser.EndElementHandler = self._close
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._refuse
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)

    def feed(self, data: bytes) -> str:
        """Read the bytes; return what went wrong, or an empty text."""
        try:
            self._parser.Parse(data, True)
        except (expat.ExpatError, UnreadableSource, ValueError) as error:
            return str(error)[:120]
        return ""

    def _refuse(self, *_declared: object) -> None:
        raise UnreadableSource("it declares entities")

    def _open(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        self._text = ""
        if len(self._path) > _DEEPEST:
            raise UnreadableSource("its elements are nested too deeply")
        if self._path[1:] == ["gpu"] and len(self._devices) < _MOST_DEVICES:
            line = self._parser.CurrentLineNumber
            self._devices.append(
                {
                    "index": len(self._devices),
                    "bus_id": attributes.get("id", "")[:40] or None,
                    "line": line,
                    "offset": max(self._parser.CurrentByteIndex, 0),
                    "reasons": [],
                    "processes": [],
                }
            )
        elif name == "process_info" and self._devices:
            self._devices[-1]["processes"].append({})

    def _characters(self, text: str) -> None:
        if len(self._text) < _LONGEST:
            self._text += text

    def _close(self, _name: str) -> None:
        path, text = "/".join(self._path[2:]), self._text.strip()[:_LONGEST]
        if len(self._path) == 2:
            self._about[self._path[1]] = text
        elif len(self._path) > 2 and self._path[1] == "gpu" and self._devices and text not in {"", "N/A"}:
            _take(path, text, self._devices[-1])
        self._path.pop()
        self._text = ""

    def add_to(self, out: EventBuilder) -> None:
        """Add the driver and every device with its reasons and processes."""
        time = first_full_date(self._about.get("timestamp", "").encode())
        found = {"driver": self._about.get("driver_version"), "cuda": self._about.get("cuda_version")}
        driver = {key: value for key, value in found.items() if value}
        if driver:
            out.add(kind="system", name="system.driver", time=time, text=driver.get("driver"), attrs=driver)
        for device in self._devices:
            place = {"line": device.pop("line"), "offset": device.pop("offset"), "time": time}
            reasons, processes = device.pop("reasons"), device.pop("processes")
            known = {
                key: value
                for key, value in {**device, **driver, "processes": len(processes)}.items()
                if value is not None
            }
            out.add(kind="system", name="system.gpu", text=device.get("name"), attrs=known, **place)
            for reason in reasons:
                told = {"gpu": device["index"], "reason": reason, "samples": 1}
                out.add(kind="system", name="system.throttle", value=1.0, text=reason, attrs=told, **place)
            for process in processes:
                told = {"gpu": device["index"], **process}
                out.add(kind="system", name="system.gpu_process", text=process.get("process"), attrs=told, **place)


def _take(path: str, text: str, device: dict[str, Any]) -> None:
    """Keep the text of one element where it is one that is wanted."""
    if (name := _TEXTS.get(path)) is not None:
        device.setdefault(name, text)
    elif (name := _SIZES.get(path)) is not None:
        device.setdefault(name, size_in_bytes(text))
    elif (name := _NUMBERS.get(path)) is not None:
        if (known := reading(text, name)) is not None:
            device.setdefault(name, known)
    elif path.startswith(_REASONS) and text == "Active":
        reason = path.rsplit("/", 1)[-1]
        for prefix in ("clocks_event_reason_", "clocks_throttle_reason_"):
            reason = reason.removeprefix(prefix)
        device["reasons"].append(reason)
    elif path.startswith("ecc_errors/"):
        _take_ecc(path.split("/")[1:], text, device)
    elif path.startswith("processes/process_info/") and device["processes"]:
        key = path.rsplit("/", 1)[-1]
        process = device["processes"][-1]
        if key == "pid":
            process["pid"] = whole(text)
        elif key == "used_memory":
            process["memory_bytes"] = size_in_bytes(text)
        elif key in {"process_name", "type"}:
            process["process" if key == "process_name" else "type"] = text


def _take_ecc(parts: list[str], text: str, device: dict[str, Any]) -> None:
    """Add up the errors of all memories."""
    last = parts[-1]
    double, single = parts[1:2] == ["double_bit"] and last == "total", parts[1:2] == ["single_bit"] and last == "total"
    kind = (
        "uncorrected" if "uncorrectable" in last or double else "corrected" if "correctable" in last or single else ""
    )
    count = number_with_unit(text)
    if kind and count is not None and parts[0] in {"volatile", "aggregate"}:
        name = f"ecc_{kind}" + ("_total" if parts[0] == "aggregate" else "")
        device[name] = device.get(name, 0.0) + count[0]
