from __future__ import annotations

import collections
import pickle
import pickletools
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rca.errors import UnreadableSource
from rca.ingest.dumps import plain_pickle
from rca.ingest.dumps.plain_pickle import read_plain

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**100), 2**100) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4) | st.tuples(inner, inner)
    ),
    max_leaves=20,
)


def refusal(data: bytes) -> str:
    with pytest.raises(UnreadableSource) as caught:
        read_plain(data, what="dump.pkl")
    return str(caught.value)


@settings(max_examples=60, deadline=None)
@given(value=PLAIN, protocol=st.integers(0, 5))
def test_plain_values_are_read_back(value: Any, protocol: int) -> None:
    assert read_plain(pickle.dumps(value, protocol), what="x") == value


@pytest.mark.parametrize(
    "value", [b"raw", b"x" * 300, {1, 2}, frozenset({(1, "a")}), {(0, 1): "pool", 2: None, None: 3}]
)
def test_bytes_sets_and_flat_keys(value: Any) -> None:
    assert read_plain(pickle.dumps(value, 4), what="x") == value


def test_shared_values_stay_shared() -> None:
    frames = [{"name": "step"}]
    first, second = read_plain(pickle.dumps([frames, frames], 2), what="x")
    assert first is second


def said(data: bytes) -> str:
    """Return the sentence with which a pickle is refused; empty where it is read."""
    try:
        read_plain(data, what="x")
    except UnreadableSource as error:
        return str(error)
    return ""


class Opens:
    def __reduce__(self) -> Any:
        return (open, ("/tmp/should-not-exist", "w"))


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"cos\nsystem\n(S'true'\ntR.", "os.system"),
        (pickle.dumps(collections.OrderedDict(a=1), 2), "collections.OrderedDict"),
        (pickle.dumps(Opens(), 4), "io.open"),
        (pickle.dumps(ValueError("x"), 5), "builtins.ValueError"),
        (b"(ios\nsystem\n.", "os.system"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "os.system"),
        (b"\x80\x02P123\n.", "PERSID"),
        (b"\x80\x02K\x01Q.", "BINPERSID"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"\x80\x02}}b.", "BUILD"),
        (b"\x80\x02))\x81.", "NEWOBJ"),
        (b"\x80\x02()R.", "REDUCE"),
        (b"\x80\x05\x97.", "NEXT_BUFFER"),
        (b"\x80\x02\xff.", "0xff"),
    ],
)
def test_whatever_reaches_outside_is_refused_by_name(data: bytes, named: str) -> None:
    assert named in refusal(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x80\x02\x8b" + struct.pack("<i", 2**30) + b"\0" * 64, "integer of 1,073,741,824 bytes"),
        (b"\x80\x02\x8a\xff" + b"\1" * 255 + b".", "integer of 255 bytes"),
        (b"I" + b"9" * 5000 + b"\n.", "integer of 5,000 digits"),
        (b"\x80\x02X" + struct.pack("<I", 2**31) + b"a", "text of 2,147,483,648 bytes"),
        (b"\x80\x04\x8d" + struct.pack("<Q", 2**62), "text of"),
        (b"(" * 5000 + b".", "nests more than"),
        (b"\x80\x02", "cut off or damaged"),
        (b"\x80\x02h\x05.", "cut off or damaged"),
        (b"\x80\x02a.", "cut off or damaged"),
        (b"\x80\x02j\xff", "cut off or damaged"),
        (b"V" + b"a" * 10, "does not end"),
        (b"\x80\x02}(K\x01u.", "no dict"),
        (b"\x80\x02](K\x01K\x02u.", "no dict"),
        (b"\x80\x02}]K\x01s.", "nested value as a key"),
        (b"\x80\x02}\x8a\x0b" + ((2**61 - 1) << 16).to_bytes(11, "little") + b"K\x01s.", "more than 64 bits as a key"),
        (b"\x80\x02}\x8a\x0b" + ((2**61 - 1) << 16).to_bytes(11, "little") + b"\x85K\x01s.", "more than 64 bits"),
    ],
)
def test_hostile_sizes_and_broken_files_end_in_a_sentence(data: bytes, why: str) -> None:
    assert why in refusal(data)


def test_a_key_of_nested_tuples_is_not_hashed() -> None:
    doubled = b"".join(b"q\x000h\x00h\x00\x86" for _ in range(60))
    assert "nested value as a key" in refusal(b"\x80\x02}K\x01\x85" + doubled + b"K\x01s.")


@pytest.mark.parametrize("key", [b"J%b", b"J%bK\x01\x86"], ids=["integer", "tuple"])
def test_keys_that_could_be_made_to_collide_are_few(key: bytes) -> None:
    def written(count: int, protocol: bytes) -> bytes:
        items = b"".join(key % number.to_bytes(4, "little") + b"N" for number in range(count))
        return b"\x80" + protocol + b"}(" + items + b"u."

    assert "10,000 numbers or tuples" in refusal(written(10_001, b"\4"))
    assert len(read_plain(written(10_000, b"\4"), what="x")) == 10_000


def test_lists_that_double_and_lists_that_hold_themselves_cost_nothing() -> None:
    bomb = b"\x80\x02]q\x00" + b"".join(b"(h\x00h\x00lq\x00" for _ in range(200)) + b"."
    assert isinstance(read_plain(bomb, what="x"), list)
    own = read_plain(b"\x80\x02]q\x00h\x00a.", what="x")
    assert own[0] is own


def test_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_pickle, "MAX_VETTED", 0)
    monkeypatch.setattr(plain_pickle, "MAX_CONTAINERS", 100)
    assert "more than 100 lists and dicts" in refusal(pickle.dumps([[] for _ in range(200)], 2))
    monkeypatch.setattr(plain_pickle, "MAX_PICKLE", 10)
    assert "are not read" in refusal(pickle.dumps("a" * 20))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_changed_pickle_never_raises_anything_else(data: st.DataObject) -> None:
    raw = bytearray(pickle.dumps({"entries": [{"a": (1, "x"), "b": [2.5, None, True]}] * 3, "v": "2.1"}, 4))
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    sentence = said(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    assert not sentence or sentence.startswith("x is a pickle that")


def test_every_instruction_of_the_protocol_is_known() -> None:
    for opcode in pickletools.opcodes:
        assert "where an instruction should stand" not in said(opcode.code.encode("latin-1") + b"."), opcode.name
