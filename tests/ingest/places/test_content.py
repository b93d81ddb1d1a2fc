"""Bytes of a source: compressed, wide, cut short, too long."""

from __future__ import annotations

import bz2
import gzip
import lzma
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rca.errors import UnreadableSource
from rca.ingest.interface import Limits, Source
from rca.ingest.places import content as module
from rca.ingest.places.content import HEAD_BYTES, open_content, open_source, open_stream, read_head

TEXT = b"".join(b"step %d loss 2.5\n" % number for number in range(20_000))


def source(tmp_path: Path, data: bytes, name: str = "train.log") -> Source:
    file = tmp_path / name
    file.write_bytes(data)
    return Source(name, file, len(data))


def whole(found: Source, limits: Limits | None = None) -> tuple[bytes, tuple[str, ...]]:
    with open_content(found, limits or Limits()) as content:
        return bytes(content.data), content.warnings


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zstd])
def test_every_codec_gives_the_same_bytes(tmp_path: Path, pack) -> None:
    found = source(tmp_path, pack(TEXT))
    assert whole(found) == (TEXT, ())
    assert read_head(found) == TEXT[:HEAD_BYTES]
    with open_stream(found, Limits()) as (read_once, lost):
        assert (read_once.read(), lost) == (TEXT, ())
    with open_source(found.file) as stream:
        stream.seek(17)
        assert stream.read(10) == TEXT[17:27]


def test_several_members_are_one_text(tmp_path: Path) -> None:
    assert whole(source(tmp_path, gzip.compress(b"a\n") + gzip.compress(b"b\n")))[0] == b"a\nb\n"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_truncated_stream_keeps_what_was_read_and_says_so(tmp_path: Path, pack) -> None:
    noise = b"".join(b"%x\n" % (number * 2654435761) for number in range(300_000))
    packed = pack(noise)
    data, warnings = whole(source(tmp_path, packed[: len(packed) // 2]))
    assert noise.startswith(data)
    assert len(warnings) == 1
    assert "kept" in warnings[0]
    if pack is not bz2.compress:
        assert data


def test_a_stream_of_a_file_that_shrinks_meanwhile_ends_earlier(tmp_path: Path) -> None:
    found = source(tmp_path, b"x" * 100_000_000)
    with open_stream(found, Limits()) as (stream, _):
        assert len(stream.read(1 << 16)) == 1 << 16
        found.file.write_bytes(b"x" * 10)
        assert stream.read(1 << 20) == b""


def test_a_damaged_stream_is_unreadable_when_nothing_comes_out(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match=r"damaged|too early"):
        whole(source(tmp_path, gzip.compress(TEXT)[:10] + b"\xff" * 30))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_wide_text_becomes_utf8(tmp_path: Path, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    data, _ = whole(source(tmp_path, mark + "schön\nzwei\n".encode(encoding)))
    assert data.decode().lstrip("\ufeff") == "schön\nzwei\n"


def test_what_is_above_the_limit_is_left_and_said(tmp_path: Path) -> None:
    for data in (TEXT, gzip.compress(TEXT)):
        kept, warnings = whole(source(tmp_path, data), Limits(source_bytes=1000))
        assert kept == TEXT[:1000]
        assert "Only the first 1,000" in warnings[0]


def test_a_bomb_stays_bounded(tmp_path: Path) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(whole(source(tmp_path, bomb), Limits(source_bytes=1_000_000))[0]) == 1_000_000


def test_large_sources_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IN_MEMORY", 1000)
    assert whole(source(tmp_path, TEXT))[0] == TEXT
    assert whole(source(tmp_path, gzip.compress(TEXT)))[0] == TEXT


def test_a_missing_file_is_unreadable(tmp_path: Path) -> None:
    absent = Source("x.log", tmp_path / "x.log", 0)
    with pytest.raises(UnreadableSource, match="cannot be opened"):
        read_head(absent)
    with pytest.raises(UnreadableSource, match="cannot be opened"):
        whole(absent)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([b"", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"\xff\xfe", b"\xff\xfe\0\0"]),
    st.binary(max_size=300),
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, start: bytes, rest: bytes) -> None:
    found = source(tmp_path, start + rest)
    with suppress(UnreadableSource):
        data, warnings = whole(found)
        assert isinstance(data, bytes)
        assert all(item.endswith(".") for item in warnings)
        assert len(read_head(found)) <= HEAD_BYTES


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_a_cut_is_said_wherever_the_pieces_end(tmp_path: Path, pack) -> None:
    packed = source(tmp_path, pack(b"x" * (1 << 18)))
    assert whole(packed, Limits(source_bytes=1 << 17))[1] == ("Only the first 131,072 decompressed bytes were read.",)
    assert whole(packed, Limits(source_bytes=1 << 18))[1] == ()


def test_what_unpacks_to_almost_nothing_is_cut_earlier(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "_PACKED_AT_LEAST", 1 << 20)
    data, warnings = whole(source(tmp_path, gzip.compress(bytes(1 << 22))))
    assert len(data) == 1 << 20
    assert "first 1,048,576" in warnings[0]
