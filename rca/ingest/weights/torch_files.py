"""PyTorch checkpoints (`*.pt`, `*.pth`, `*.bin`, `*.ckpt`): the archive directory and the names in the pickle.

Nothing is ever unpickled: the standard library's disassembler lists the opcodes of the pickle and builds no object.
"""

from __future__ import annotations

import pickletools
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from rca.errors import UnreadableSource
from rca.events import EventBuilder
from rca.ingest.interface import IngestContext, Ingested, Source
from rca.ingest.weights.weight_summary import Tensor, summarise
from rca.ingest.weights.zip_directory import MAX_DIRECTORY, directory_size

MAX_PICKLE = 16 * 1024**2
"""Bytes of the pickle inside an archive that are disassembled; it holds names and shapes, no weights."""
_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")
_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"
"""Pickle of the magic number that torch.save wrote before 1.6 (torch/serialization.py, MAGIC_NUMBER)."""
_STRINGS = frozenset({"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"})
_INTEGERS = frozenset({"BININT", "BININT1", "BININT2", "LONG1", "INT"})
_TUPLES = frozenset({"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE"})
_USUAL = ("torch", "collections", "numpy", "_codecs", "__builtin__ set", "builtins set")
_SAMPLE = 20


class TorchFileIngestor:
    """Reads the outside of a PyTorch checkpoint into one artifact event."""

    name = "weights (torch)"

    def accepts(self, source: Source, head: bytes) -> bool:
        """Take the suffixes of torch.save where the file starts like a zip archive, a pickle, or is empty."""
        if not source.path.lower().endswith(_SUFFIXES):
            return False
        return source.size == 0 or head.startswith((b"PK\x03\x04", b"\x80", _LEGACY)) or b"\0" in head

    def read(self, source: Source, context: IngestContext) -> Ingested:  # noqa: ARG002 - nothing here is configurable
        """Describe the file; a broken one is an event that says what is wrong."""
        try:
            found = _described(source)
        except OSError as error:
            raise UnreadableSource(f"{source.path} cannot be opened: {error.strerror or error}.") from error
        out = EventBuilder(source.path)
        name = source.path.rsplit("/", 1)[-1]
        broken = found["status"] in {"empty", "truncated"}
        out.add(
            kind="artifact",
            name="weights.checkpoint",
            severity="error" if broken else "info",
            text=f"{name}: {found['status']}",
            attrs={"file": name, "size": source.size, **found},
        )
        return Ingested(out.build(), lines=1, bytes=min(source.size, MAX_PICKLE))


def _described(source: Source) -> dict[str, Any]:
    if source.size == 0:
        return {"format": "unknown", "status": "empty"}
    with source.file.open("rb") as stream:
        start = stream.read(16)
        if start.startswith(_LEGACY):
            return {"format": "torch_legacy", "status": "not_read"}
        if not start.startswith(b"PK\x03\x04"):
            return {"format": "pickle" if start.startswith(b"\x80") else "unknown", "status": "not_read"}
        if directory_size(stream, source.size) > MAX_DIRECTORY:
            return {"format": "zip", "status": "not_read"}
        stream.seek(0)
        try:
            with zipfile.ZipFile(stream) as archive:
                return _archive(archive)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, EOFError):
            return {"format": "torch_zip", "status": "truncated"}


def _archive(archive: zipfile.ZipFile) -> dict[str, Any]:
    entries = archive.infolist()
    pickle = next((entry for entry in entries if entry.filename.endswith("data.pkl")), None)
    found: dict[str, Any] = {
        "format": "torch_zip" if pickle is not None else "zip",
        "status": "ok",
        "entries": len(entries),
        "stored_bytes": sum(entry.file_size for entry in entries),
    }
    if pickle is not None:
        try:
            with archive.open(pickle) as member:
                raw = member.read(MAX_PICKLE)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, OSError):
            return {**found, "status": "truncated"}
        tensors, calls = _disassembled(raw)
        found |= summarise(tensors) if tensors else {}
        unusual = sorted(name for name in calls if not name.startswith(_USUAL))
        if unusual:
            found["unusual_calls"] = unusual[:_SAMPLE]
    return found


def _disassembled(raw: bytes) -> tuple[list[Tensor], set[str]]:
    """Return the tensors that a checkpoint's pickle would rebuild, and the callables it names; nothing is called."""
    tensors: list[Tensor] = []
    calls: set[str] = set()
    key = storage = ""
    integers: list[int] | None = None
    strings = ["", ""]
    for name, argument in _opcodes(raw):
        if name == "GLOBAL" and isinstance(argument, str):
            calls.add(argument)
            storage = argument if argument.endswith("Storage") else storage
        elif name == "STACK_GLOBAL":
            calls.add(" ".join(strings))
        elif name in _STRINGS and isinstance(argument, str):
            strings = [strings[1], argument[:200]]
            if "." in argument and len(argument) <= 200 and not argument.startswith(("torch", "cuda", "cpu")):
                key = argument
        elif name == "BINPERSID":
            integers = []
        elif integers is not None and name in _INTEGERS and isinstance(argument, int):
            integers.append(argument)
        elif integers is not None and name in _TUPLES:
            if key:
                dtype = storage.rsplit(" ", 1)[-1].removesuffix("Storage")
                tensors.append(Tensor(key, dtype or "?", tuple(integers[1:])))
            key, integers = "", None
    return tensors, calls


def _opcodes(raw: bytes) -> Iterator[tuple[str, Any]]:
    """List opcodes until the pickle ends or is cut."""
    try:
        for opcode, argument, _position in pickletools.genops(raw):
            yield opcode.name, argument
    except (ValueError, IndexError, KeyError, OverflowError, EOFError):
        return
