from __future__ import annotations

import io
import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.summary.writer.record_writer import RecordWriter

from rca.ingest.event_files import tfrecord
from rca.ingest.event_files.tfrecord import Damage, payload_agrees, read_blocks, starts_with_record


class Kept(io.BytesIO):
    """A stream whose bytes can be read after it was closed."""

    def close(self) -> None:
        self.all = self.getvalue()
        super().close()


def framed(*payloads: bytes) -> bytes:
    stream = Kept()
    writer = RecordWriter(stream)
    for payload in payloads:
        writer.write(payload)
    writer.close()
    return stream.all


def read(data: bytes, *, limit: int = 1 << 40) -> tuple[list[bytes], list[Damage], list[bool]]:
    payloads, damages, good = [], [], []
    for block in read_blocks(io.BytesIO(data), limit=limit):
        pairs = zip(block.start.tolist(), block.length.tolist(), strict=True)
        payloads += [block.data[start : start + length] for start, length in pairs]
        good += payload_agrees(block.data, block.start, block.length).tolist()
        damages += block.damages
    return payloads, damages, good


PAYLOADS = [b"first", b"", b"x" * 300, b"\x00" * 40, b"last one"]


def test_whole_records_come_back_in_order() -> None:
    payloads, damages, good = read(framed(*PAYLOADS))
    assert payloads == PAYLOADS
    assert damages == []
    assert all(good)


def test_blocks_smaller_than_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "_BLOCK", 7)
    assert read(framed(*PAYLOADS))[0] == PAYLOADS


@pytest.mark.parametrize("cut", range(len(framed(*PAYLOADS))))
def test_cut_at_every_byte_keeps_what_is_whole(cut: int) -> None:
    borders = np.cumsum([0, *(len(framed(payload)) for payload in PAYLOADS)])
    whole = int(np.searchsorted(borders, cut, side="right")) - 1
    payloads, damages, good = read(framed(*PAYLOADS)[:cut])
    assert payloads == PAYLOADS[:whole]
    assert all(good)
    assert [damage.offset for damage in damages] == ([] if cut in borders else [borders[whole]])
    assert sum(damage.size for damage in damages) == cut - borders[whole]


def test_garbage_between_records_is_passed_over() -> None:
    before, after = framed(b"one", b"two"), framed(b"three")
    payloads, damages, _ = read(before + b"\xffgarbage" * 5 + after)
    assert payloads == [b"one", b"two", b"three"]
    assert damages == [Damage(len(before), 40, "no record could be read")]


def test_wrong_length_is_found_by_its_checksum() -> None:
    data = bytearray(framed(b"one", b"two", b"three"))
    data[len(framed(b"one"))] ^= 0x40
    assert read(bytes(data))[0] == [b"one", b"three"]


def test_flipped_bit_in_a_payload_is_found_by_its_checksum() -> None:
    data = bytearray(framed(b"one", b"two", b"three"))
    data[len(framed(b"one")) + 12] ^= 1
    payloads, damages, good = read(bytes(data))
    assert len(payloads) == 3
    assert damages == []
    assert good == [True, False, True]


def test_bytes_lost_in_the_middle() -> None:
    data = framed(*[bytes([65 + number]) * 30 for number in range(20)])
    payloads, _, good = read(data[:100] + data[150:])
    assert sum(good) == 18
    assert [payload for payload, fine in zip(payloads, good, strict=True) if fine][-1] == b"T" * 30


def test_bytes_lost_in_the_last_records() -> None:
    data = framed(b"a" * 100, b"b" * 100, b"c" * 10)
    cut = len(framed(b"a" * 100))
    payloads, damages, good = read(data[: cut + 30] + data[cut + 80 :])
    assert [payload for payload, fine in zip(payloads, good, strict=True) if fine] == [b"a" * 100, b"c" * 10]
    assert damages[0].reason == "a record is not complete" or not good[1]


def test_a_file_of_zeros_holds_no_record() -> None:
    payloads, damages, _ = read(bytes(100_000))
    assert payloads == []
    assert damages == [Damage(0, 100_000, "no record could be read")]


def test_a_record_beyond_the_size_limit_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "_MAX_RECORD", 1000)
    payloads, damages, _ = read(framed(b"one", os.urandom(5000), b"two"))
    assert payloads == [b"one", b"two"]
    assert "64 MiB" in damages[0].reason


def test_gives_up_after_many_damages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord, "MAX_DAMAGES", 5)
    payloads, damages, _ = read(b"".join(framed(b"ok") + b"\xff" * 20 for _ in range(50)))
    assert len(payloads) == 6
    assert "not read" in damages[-1].reason


def test_at_most_the_limit_is_read() -> None:
    data = framed(*[b"x" * 20] * 10)
    assert len(read(data, limit=len(data) // 2)[0]) == 5


def test_recognises_its_own_first_bytes() -> None:
    assert starts_with_record(framed(b"anything"))
    assert not starts_with_record(b"{}" * 20)
    assert not starts_with_record(b"")
    assert not starts_with_record(struct.pack("<Q", 12) + b"\0\0\0\0")


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.integers(0, 400), st.lists(st.binary(max_size=60), max_size=8))
def test_any_bytes_anywhere_never_raise(junk: bytes, at: int, payloads: list[bytes]) -> None:
    data = framed(*payloads)
    found, damages, good = read(data[:at] + junk + data[at:])
    lengths = sum(len(item) + 16 for item in found)
    assert lengths + sum(damage.size for damage in damages) == len(data) + len(junk)
    assert len(good) == len(found)
