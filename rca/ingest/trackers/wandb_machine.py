"""The machine and the command of a run as W&B notes them: in its run file and in `wandb-metadata.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.settings.config_rows import add_settings
from rca.ingest.settings.script_files import command_settings
from rca.ingest.tables.cells import number
from rca.ingest.tables.structured import MAX_STRUCTURED, decode, parse_json, plain_name, read_whole

_TOLD = ("os", "python", "program", "executable", "codePath")
_MOST_DEVICES = 64
_GIGABYTES = 1e6
"""No machine has a million GB, and none has as few bytes: W&B has written the memory of the host in either unit."""


class WandbMetadataIngestor:
    """Reads `wandb-metadata.json`: devices, versions, program and arguments of a run."""

    name = "W&B metadata"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take the file by the name that W&B gives it."""
        return plain_name(source.path).endswith("wandb-metadata.json") and head.lstrip()[:1] == b"{"

    def read(self, source: Source, context: IngestContext) -> Ingested:
        """Read the document. Raises UnreadableSource where it is broken or says nothing that is understood."""
        data, _cut, notes = read_whole(source, context, MAX_STRUCTURED)
        document = parse_json(decode(data), what=source.path)
        out = EventBuilder(source.path, rank=source.rank, host=source.host)
        if isinstance(document, dict):
            add_machine(out, document, line=1)
        if not len(out):
            raise UnreadableSource(f"{source.path} names neither devices nor a program.")
        return Ingested(out.build(), lines=data.count(b"\n") + 1, bytes=len(data), warnings=notes)


def add_machine(out: EventBuilder, told: Mapping[str, Any], *, line: int) -> None:
    """Add devices, versions and the settings of the command line from W&B's metadata (any version's names)."""
    for key in _TOLD:
        if isinstance(value := told.get(key), str) and value:
            plain = value.removeprefix("CPython ") if key == "python" else value
            out.add(kind="system", name="system.environment", line=line, text=plain, attrs={key: plain[:300]})
    cuda = told.get("cudaVersion") or told.get("cuda")
    for index, device in enumerate(_devices(told)):
        out.add(
            kind="system",
            name="system.gpu",
            line=line,
            text=device.get("name"),
            attrs={"index": index, **device, **({"cuda": cuda} if isinstance(cuda, str) else {})},
        )
    memory = told.get("memory")
    total = number(memory.get("total")) if isinstance(memory, dict) else None
    if total is not None and 0 < total < 1e18:
        size = int(total * 1024**3 if total < _GIGABYTES else total)
        out.add(kind="system", name="system.host", line=line, attrs={"memory_total_bytes": size})
    args = told.get("args")
    if isinstance(args, list):
        words = " ".join(item for item in args[:2000] if isinstance(item, str))
        add_settings(out, command_settings(words), role="command", line=line)


def _devices(told: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """Return name and memory of each device; where only a model and a count are given, that many alike."""
    for key in ("gpu_nvidia", "gpuNvidia", "gpu_devices"):
        listed = told.get(key)
        if isinstance(listed, list) and any(isinstance(item, dict) for item in listed):
            return [_device(item) for item in listed[:_MOST_DEVICES] if isinstance(item, dict)]
    name, count = told.get("gpu"), number(told.get("gpu_count", 1))
    if not isinstance(name, str) or not name or count is None or not 1 <= count <= _MOST_DEVICES:
        return []
    return [{"name": name} for _ in range(int(count))]


def _device(item: Mapping[str, Any]) -> dict[str, Any]:
    size = number(item.get("memoryTotal", item.get("memory_total")))
    found = {"name": item["name"]} if isinstance(item.get("name"), str) else {}
    return found | ({"memory_total_bytes": int(size)} if size is not None and 0 < size < 1e15 else {})
