"""Random records behind right checksums; and the seals are right, or nothing behind them would be tested."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from rca.ingest.interface import IngestContext, Limits, Source
from rca.ingest.read import read_source
from rca.ingest.registry import INGESTORS

sys.path.insert(0, str(Path(__file__).parent))
from outcome import NAMES, check
from sealed import sealed

CONTEXT = IngestContext(limits=Limits(source_bytes=1 << 24))
SEALED = [name for name in NAMES if sealed(name, b"\x01abcd") != b"\x01abcd"]


def test_every_kind_of_file_with_a_seal_is_tried() -> None:
    assert {name.rpartition(".")[2] for name in SEALED} >= {"gz", "0", "wandb", "safetensors", "pt"}


@pytest.mark.parametrize("name", SEALED)
def test_random_records_behind_right_checksums(name: str, tmp_path: Path) -> None:
    draw = random.Random(name)
    for _ in range(30):
        check(tmp_path, name, sealed(name, draw.randbytes(draw.choice((3, 60, 900, 9000)))), CONTEXT)


def test_a_sealed_scalar_is_read_from_an_event_file(tmp_path: Path) -> None:
    value = b"\x0a\x04loss\x15\x00\x00\x80\x3f"
    event = (
        b"\x09" + bytes(7) + b"\x42" + b"\x10\x83\x80\x00" + b"\x2a" + bytes([len(value) + 2, 0x0A, len(value)]) + value
    )
    record = bytes([len(event) // 4]) + event
    name = "events.out.tfevents.1700000000.host.1.0"
    (tmp_path / name).write_bytes(sealed(name, record))
    source = Source(name, tmp_path / name, (tmp_path / name).stat().st_size)
    _, found = read_source(source, INGESTORS, CONTEXT)
    assert found is not None
    assert [(row["name"], row["value"], row["step"]) for row in found.events.to_pylist()] == [("loss", 1.0, 3)]
    assert found.warnings == ()
