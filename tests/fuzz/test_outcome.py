"""Mutated files of real jobs, under their own and under foreign names."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from rca.ingest.interface import IngestContext, Limits
from rca.rules.load import load

sys.path.insert(0, str(Path(__file__).parent))
from outcome import NAMES, check

SAMPLES = Path(__file__).parents[2] / "sample_logs"
FILES = sorted(path for path in SAMPLES.rglob("*") if path.is_file() and path.stat().st_size < 200_000)
PIECES = (
    b"\n",
    b"\r",
    b"\0",
    b"\x1b[31m",
    b"nan",
    b"1e999",
    b"-",
    b"\xff\xfe",
    b"{",
    b'"',
    b"[[",
    b"]]",
    b"9" * 40,
    b"\t",
)


@pytest.fixture(scope="module")
def context() -> IngestContext:
    return IngestContext(signatures=load(()).patterns, limits=Limits(source_bytes=1 << 24))


@pytest.mark.parametrize("seed", range(6))
def test_mutated_files(tmp_path: Path, context: IngestContext, seed: int) -> None:
    draw = random.Random(seed)
    for file in draw.sample(FILES, min(12, len(FILES))):
        data = mutated(file.read_bytes()[:40_000], draw)
        check(tmp_path, file.name, data, context)
        check(tmp_path, draw.choice(NAMES), data, context)


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Return bytes with some flipped, put in, taken out, repeated and cut."""
    changed = bytearray(data)
    for _ in range(draw.randrange(1, 12)):
        place, length = draw.randrange(len(changed) + 1), draw.choice((1, 3, 40, 2000))
        what = draw.randrange(5)
        if what == 0:
            changed[place : place + 1] = bytes([draw.randrange(256)])
        elif what == 1:
            changed[place:place] = draw.choice(PIECES) * draw.choice((1, 1, 50))
        elif what == 2:
            del changed[place : place + length]
        elif what == 3:
            changed[place:place] = changed[place : place + length]
        else:
            del changed[max(place, 1) :]
    return bytes(changed)
