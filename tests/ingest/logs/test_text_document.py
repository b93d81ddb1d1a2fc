"""A log by line number."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rca.ingest.interface import Limits, Source
from rca.ingest.logs import text_document as module
from rca.ingest.logs.text_document import TextDocument


def document(data: bytes, **limits: int) -> TextDocument:
    return TextDocument(Source("train.log", Path("train.log"), len(data)), data, Limits(**limits))


def test_lines_offsets_and_the_last_line_without_newline() -> None:
    doc = document(b"one\r\ntwo\n\nfour")
    assert len(doc) == 4
    assert [doc.raw(line) for line in range(1, 5)] == ["one", "two", "", "four"]
    assert [doc.offset(line) for line in range(1, 5)] == [0, 5, 9, 10]


def test_an_empty_source_has_no_lines() -> None:
    assert len(document(b"")) == 0
    assert list(document(b"").chunks()) == []


def test_the_last_state_of_a_rewritten_line_counts() -> None:
    doc = document(b" 1%|#\r 2%|#\r100%|##\r\nnext\r   \n")
    assert doc.raw(1) == "100%|##"
    assert doc.raw(2) == "next"


def test_colours_backspaces_nuls_and_broken_bytes() -> None:
    doc = document(b"\xef\xbb\xbf\x1b[31mstep: 20\x1b[0m\x00 a\x08b\xff\n")
    assert doc.raw(1) == "step: 20 ab\ufffd"


def test_long_lines_are_cut_at_the_limit_and_progress_keeps_its_end() -> None:
    doc = document(b"x" * 5000 + b"\n" + b"1%|\r" * 2000 + b"99%|last\nnext\n", line_bytes=100)
    assert doc.raw(1) == "x" * 100
    assert doc.raw(2) == "99%|last"
    assert doc.raw(3) == "next"


def test_steps_phases_and_times_at_or_before_a_line() -> None:
    doc = document(b"2024-01-01 00:00:00 start\nplain\nplain\n2024-01-01 00:00:05 end\nplain\n")
    assert doc.step(2) is None
    doc.note_step(2, 7)
    doc.note_step(4, 9)
    doc.note_phase(2, "train")
    doc.note_phase(4, "eval")
    assert [doc.step(line) for line in (1, 2, 3, 4, 5)] == [None, 7, 7, 9, 9]
    assert [doc.phase(line) for line in (1, 2, 3, 4, 5)] == [None, "train", "train", "eval", "eval"]
    times = [doc.time(line) for line in (1, 3, 5, 2)]
    assert times[0] == times[1] == times[3]
    assert times[2] == (times[0] or 0) + 5_000_000
    assert doc.time_range() == (times[0], times[2])


def test_the_first_local_rank_of_a_node() -> None:
    assert document(b"  rank      : 13 (local_rank: 5)\n").first_local_rank() == 8
    assert document(b"[default2]:E [PG 0 Rank 10] bad\n").first_local_rank() == 8
    assert document(b"plain\n").first_local_rank() == 0


@pytest.mark.parametrize("chunk", [16, 64, 1 << 20])
def test_chunks_hold_every_line_once(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(module, "_CHUNK", chunk)
    monkeypatch.setattr(module, "_BLOCK", 32)
    text = b"".join(b"line %d\n" % number for number in range(200)) + b"tail"
    doc = document(text)
    assert b"".join(piece.text for piece in doc.chunks()) == text
    for piece in doc.chunks():
        assert doc.offset(piece.line) == piece.offset
    assert [doc.raw(line) for line in (1, 57, 200, 201)] == ["line 0", "line 56", "line 199", "tail"]


def test_a_line_longer_than_a_chunk_is_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 1000)
    doc = document(b"first\n" + b"y" * 5000 + b"\nlast\n", line_bytes=100)
    pieces = [(piece.line, piece.text[:10]) for piece in doc.chunks()]
    assert pieces == [(1, b"first\n"), (2, b"y" * 10), (3, b"last\n")]
    assert doc.cut_lines == 1


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([7, 40, 1 << 20]), st.sampled_from([16, 64]))
def test_any_bytes(data: bytes, block: int, limit: int) -> None:
    before = module._BLOCK, module._CHUNK
    module._BLOCK, module._CHUNK = block, 3 * block
    try:
        doc = document(data, line_bytes=limit)
        assert len(doc) == len(data.split(b"\n")) - (data.endswith(b"\n") or not data)
        ends = [doc.bounds(line) for line in range(1, len(doc) + 1)]
        assert all(start <= end for start, end in ends)
        assert all(a[1] < b[0] for a, b in pairwise(ends))
        for line in range(1, len(doc) + 1):
            assert len(doc.raw(line)) <= limit
            assert doc.raw(line).endswith(doc.prefix(line).message)
        assert [piece.line for piece in doc.chunks()] == sorted(piece.line for piece in doc.chunks())
    finally:
        module._BLOCK, module._CHUNK = before
