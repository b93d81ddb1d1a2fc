from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rca.errors import UnreadableSource
from rca.ingest.dumps.plain_pickle import _Machine, read_plain
from rca.ingest.dumps.vetted_pickle import MAX_VETTED, Refused, is_plain, load_vetted

RECORDED = sorted((Path(__file__).parents[2] / "facts" / "flight_dumps").rglob("nccl_trace_rank_*"))
HEAD = b"\x80\x02"


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_recorded_dumps_are_read_fast_and_alike(file: Path) -> None:
    data = file.read_bytes()
    assert not is_plain(data) or load_vetted(data) == _Machine(data, "x").run()


def test_what_pytorch_writes_is_vetted() -> None:
    assert is_plain(next(file for file in RECORDED if file.parent.name == "skipped").read_bytes())


class Opens:
    def __reduce__(self) -> Any:
        return (open, ("/tmp/should-not-exist", "w"))


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Opens(), 2),
        pickle.dumps(Path("x"), 2),
        HEAD + b"cos\nsystem\n.",
        HEAD + b"(ios\nsystem\n.",
        HEAD + b"X\x02\0\0\0osX\x06\0\0\0system\x93.",
        HEAD + b"]K\x01Q.",
        HEAD + b"}}b.",
        HEAD + b"()R.",
        HEAD + b"]\x82\x01.",
        HEAD + b"K\x01K\x02\x86q\0h\0\x86.",  # a shared tuple: twice itself, and so on, is a key that never hashes
        HEAD + b"]r\0\0\0\x7f.",  # a place in the memo for which 32 GB would be set aside
        HEAD + b"\x8a\x10" + b"\x7f" * 16 + b".",  # long integers can be made to collide as keys
        HEAD + b"K\x05q\0h\0h\0\x86.",  # an integer that is shared could stand where a tuple seems to hold texts
        HEAD + b"K\x05(eq\0h\0h\0\x86.",
        HEAD + b"}(" + b"K\x05K\x07\x86N" * 4_001 + b"u.",  # tuples of integers can be made to collide as keys
        HEAD + b"X\xff\xff\xff\x7fa.",
        HEAD + b"K\x01..",
        HEAD + b"K\x01",
        b"\x80\x04K\x01.",
        b"",
    ],
)
def test_only_the_instructions_of_the_writer_are_loaded(data: bytes) -> None:
    assert not is_plain(data)
    with pytest.raises(Refused):
        load_vetted(data)


@pytest.mark.parametrize(
    "data", [b"}e.", b"].", b"e.", b"u.", b"(.", b"h\x07.", b"](K\x01u.", b"}(]K\x01u.", b"t.", b"\x87."]
)
def test_what_is_broken_is_refused_or_read_but_never_raises_otherwise(data: bytes) -> None:
    try:
        load_vetted(HEAD + data)
    except Refused:
        with pytest.raises(UnreadableSource):
            read_plain(HEAD + data, what="x")


def test_every_entry_may_name_its_group_by_a_tuple_of_texts() -> None:
    data = HEAD + b"](X\x01\0\0\0aq\0X\x01\0\0\0bq\x01\x86" + b"h\0j\x01\0\0\0\x86" * 9_000 + b"e."
    assert load_vetted(data) == [("a", "b")] * 9_001


def test_a_large_pickle_is_left_to_the_slower_reader() -> None:
    assert not is_plain(HEAD + b"]" * MAX_VETTED + b".")


SMALL = st.sampled_from(list(b"}](uea.NK\x01hqX\0M\x85\x86\x87tjrJG\x8a\x88"))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=st.lists(SMALL, max_size=40).map(bytes))
@example(body=b"}(e")
@example(body=b"](u")
@example(body=b"(](e](e" + struct.pack("<I", 7))
def test_whatever_is_vetted_says_what_the_slower_reader_says(body: bytes) -> None:
    data = HEAD + body + b"."
    if not is_plain(data):
        return
    try:
        found = load_vetted(data)
    except Refused:
        return
    assert repr(_Machine(data, "x").run()) == repr(found)
