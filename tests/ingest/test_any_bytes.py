"""Whatever bytes a file holds and whatever it is called: it is read, or skipped with a sentence, in bounded time."""

from __future__ import annotations

import gzip
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rca.ingest.interface import IngestContext, Limits, Source
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS

NAMES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "added_tokens.json",
    "vocab.json",
    "trainer_state.json",
    "all_results.json",
    "history.json",
    "pod.json",
    "model.safetensors.index.json",
    "metrics.csv",
    "metrics.tsv",
    "log.jsonl",
    "config.yaml",
    "job.toml",
    "job.ini",
    "uv.lock",
    "environment.yml",
    "requirements.txt",
    "pip_freeze.txt",
    "model.safetensors",
    "model.bin",
    "model.pt",
    "model.gguf",
    "SHA256SUMS",
    "start.sh",
    "config.py",
    "metrics.prom",
    "gpu.csv",
    "smi.txt",
)
MARKS = tuple(
    line.encode("latin-1").decode("unicode_escape").encode("latin-1")
    for line in r"""GGUF\x03\x00\x00\x00
PK\x03\x04
PK\x05\x06
\x80\x04
version https://git-lfs.github.com/spec/v1\n
{
[
}
"log_history": [
"weight_map": {
"model": {"vocab":
"added_tokens": [
"apiVersion": 1, "kind": 2
"State": {}, "HostConfig": {}
"step": 1,
"loss": NaN
step,loss\n
1,nan\n
\x00
# TYPE a gauge\n
a{b="c"} 1\n
index, utilization.gpu [%]\n
0, 5 %\n
torch==2.1\n
a: &a [*a]\n
!!python/
| NVIDIA-SMI 550.1 Driver Version: 550.1 CUDA Version: 12.4 |\n
|   0  X  On | 00000000:19:00.0 Off | 0 |\n
PyTorch CUDA memory summary, device ID 0
# gpu sm\n
    0 5\n
Containers:\n  a:\n    State: x\n
JobID State\n
--- ---\n
Filesystem Use% Mounted on\n
PyTorch version: 2.1.0\n
top - 14:22:31 up\n
CA 'a'\n
total 3\n
=====NVSMI LOG=====\n
\xff\xfe
\xef\xbb\xbf
\n
,
:
=
---------
1e999
\u0000
\xc3\x28""".splitlines()
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(NAMES), parts=st.lists(st.sampled_from(MARKS) | st.binary(max_size=40), max_size=14))
def test_any_bytes_under_any_name(read: Any, name: str, parts: list[bytes]) -> None:
    found = read(name, b"".join(parts))
    assert (found.record.status == "read") == (found.ingested is not None)
    assert found.record.status == "read" or len(found.record.why) > 10
    for event in found.table.events:
        assert len(event.text) <= 4096


WEIGHTS = st.sampled_from(
    (b"\0", b"\1", b"\xff", b"{", b'"', b":", b"[", b"]", b"F32", b"0", b"9" * 30, b"data_offsets", b"shape")
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(("model.safetensors", "model.gguf", "model.pt")),
    length=st.integers(0, 2**64 - 1) | st.integers(0, 200),
    parts=st.lists(WEIGHTS, max_size=60),
)
def test_any_weight_header(read: Any, name: str, length: int, parts: list[bytes]) -> None:
    head = {"model.safetensors": b"", "model.gguf": b"GGUF\3\0\0\0", "model.pt": b"PK\x03\x04"}[name]
    read(name, head + struct.pack("<Q", length) + b"".join(parts))


KEYS = [
    "model",
    "vocab",
    "added_tokens",
    "id",
    "content",
    "log_history",
    "step",
    "loss",
    "id2label",
    "State",
    "HostConfig",
    "Config",
    "Env",
    "apiVersion",
    "kind",
    "spec",
    "containers",
    "status",
    "env",
    "items",
    "weight_map",
    "metadata",
    "merges",
    "special_ids",
    "eos_token_id",
    "fp16",
    "enabled",
    "betas",
    "quantization_config",
    "added_tokens_decoder",
    "pre_tokenizer",
    "pretokenizers",
    "dependencies",
    "name",
    "package",
    "template",
    "lastState",
    "terminated",
    "exitCode",
    "volumes",
    "labels",
    "input_ids",
    "type",
    "value",
    "desc",
]
LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from([name for name in NAMES if name.endswith((".json", ".jsonl", ".yaml"))]), document=JSON)
def test_any_document_under_any_name(read: Any, name: str, document: object) -> None:
    read(name, json.dumps(document))


def test_a_decompression_bomb_is_cut(read: Any) -> None:
    bomb = gzip.compress(b"0,0\n" * 20_000_000, compresslevel=1)
    found = read("metrics.csv.gz", b"".join([gzip.compress(b"step,loss\n"), bomb]))
    assert len(found.table) == 1_000_000
    said = " ".join(found.record.warnings)
    assert "first and last 3,145,728 were read" in said
    assert "first 1,000,000 of" in said


def test_a_zip_with_a_huge_member_is_not_unpacked(read: Any, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\0" * 200_000_000)
    event = read("model.pt", (tmp_path / "a.zip").read_bytes()).one("weights.checkpoint")
    assert (event.attr("entries"), event.attr("stored_bytes")) == (1, 200_000_000)


@pytest.mark.parametrize("name", ["config.json", "config.yaml", "trainer_state.json", "tokenizer.json"])
def test_a_file_that_is_too_large_is_refused_by_name(read: Any, tmp_path: Path, name: str) -> None:
    file = tmp_path / "run" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b'{"a": "' + b"x" * 100_000 + b'"}')
    context = IngestContext(limits=Limits(source_bytes=50_000))
    record, ingested = read_source(Source(name, file, file.stat().st_size), INGESTORS, context)
    assert ingested is None
    assert "larger than 50,000 bytes" in record.why
