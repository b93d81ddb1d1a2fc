from __future__ import annotations

import io
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto
from tensorboard.compat.proto.types_pb2 import DataType
from tensorboard.summary.writer.record_writer import RecordWriter

from rca.errors import UnreadableSource
from rca.ingest.crc32c import masked_one
from rca.ingest.event_files import scalars as tensorboard_scalars
from rca.ingest.event_files.events import TensorBoardIngestor
from rca.ingest.event_files.layout import layout_of
from rca.ingest.interface import IngestContext, Source

KINDS = ("simple", "float", "double", "content f4", "content f8", "content i4", "content u2 half", "bf16", "int", "two")
TAGS = ("loss", "lr", "train/grad_norm", "ä/β", "x" * 30)


def event_of(kind: str, tag: str, step: int, value: float, wall: float, *, plugin: bool) -> Event:
    event = Event(wall_time=wall, step=step)
    held = event.summary.value.add(tag=tag)
    if plugin and kind != "simple":
        held.metadata.plugin_data.plugin_name = "scalars"
    if kind == "simple":
        held.simple_value = value
    elif kind == "two":
        held.simple_value = value
        event.summary.value.add(tag=tag + "2", simple_value=-value)
    elif kind in {"float", "double"}:
        held.tensor.dtype = DataType.DT_FLOAT if kind == "float" else DataType.DT_DOUBLE
        (held.tensor.float_val if kind == "float" else held.tensor.double_val).append(value)
    elif kind == "int":
        held.tensor.dtype = DataType.DT_INT32
        held.tensor.int_val.append(step % 1000)
    else:
        dtype, code = {
            "content f4": ("<f4", DataType.DT_FLOAT),
            "content f8": ("<f8", DataType.DT_DOUBLE),
            "content i4": ("<i4", DataType.DT_INT32),
            "content u2 half": ("<f2", DataType.DT_HALF),
            "bf16": ("<u2", DataType.DT_BFLOAT16),
        }[kind]
        number = value if dtype[1] == "f" else step % 60_000
        with np.errstate(over="ignore"):
            held.tensor.tensor_content = np.array([number]).astype(dtype).tobytes()
        held.tensor.dtype = code
    return event


def values_by_protobuf(event: Event) -> list[tuple[str, float]]:
    """Tag and number of each value of an event, by the field that holds it."""
    found = []
    for value in event.summary.value:
        if value.WhichOneof("value") == "simple_value":
            found.append((value.tag, value.simple_value))
            continue
        tensor = value.tensor
        if tensor.tensor_content:
            code = {1: "<f4", 2: "<f8", 3: "<i4", 14: "<u2", 19: "<f2"}[tensor.dtype]
            bits = np.frombuffer(tensor.tensor_content, code)
            if tensor.dtype == DataType.DT_BFLOAT16:
                bits = (bits.astype("<u4") << 16).view("<f4")
            found.append((value.tag, float(bits[0])))
        else:
            found.append((value.tag, float([*tensor.float_val, *tensor.double_val, *tensor.int_val][0])))
    return found


def written(events: list[Event]) -> bytes:
    stream = io.BytesIO()
    stream.close, close = lambda: None, stream.close  # type: ignore[method-assign]
    writer = RecordWriter(stream)
    for event in events:
        writer.write(event.SerializeToString())
    data = stream.getvalue()
    close()
    return data


def read(file: Path) -> list[dict[str, Any]]:
    found = TensorBoardIngestor().read(Source(file.name, file, file.stat().st_size), IngestContext())
    assert found.warnings == () or all("go back" in item for item in found.warnings)
    return found.events.to_pylist()


RUNS = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.sampled_from(TAGS),
        st.integers(-1, 3) | st.integers(100, 130) | st.integers(2**14 - 2, 2**14 + 2) | st.integers(2**34, 2**36),
        st.floats(width=32),
        st.integers(1, 12),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(runs=RUNS)
def test_every_row_is_what_protobuf_reads(tmp_path_factory: pytest.TempPathFactory, runs: list[Any]) -> None:
    events = [
        event_of(kind, tag, step + place, value + place / 7, 1.7e9 + place / 8, plugin=plugin and place == 0)
        for kind, tag, step, value, count, plugin in runs
        for place in range(count)
    ]
    file = tmp_path_factory.mktemp("run") / "events.out.tfevents.1"
    file.write_bytes(written(events))
    expected = defaultdict(list)
    for record, event in enumerate(events, start=1):
        for tag, value in values_by_protobuf(event):
            expected[tag].append((record, event.step, round(event.wall_time * 1e6), value))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensorboard_scalars, "MIN_GROUP", 2)
        got = defaultdict(list)
        for row in read(file):
            got[row["name"]].append((row["line"], row["step"], round(row["time"].timestamp() * 1e6), row["value"]))
    assert sorted(map(repr, got.values())) == sorted(map(repr, expected.values()))


def test_the_usual_shapes_are_all_decoded_in_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [kind for kind in KINDS if kind not in {"int", "two"}]
    events = [
        event_of(kind, f"{kind}/{number:02d}", step, step / 3, 1.7e9 + step, plugin=step == 200)
        for step in range(200, 280)
        for kind in kinds
        for number in range(5)
    ]
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(written(events))
    single: list[bytes] = []
    monkeypatch.setattr("rca.ingest.event_files.records.message_of", lambda kind, data: single.append(data))
    assert len(read_quietly(file)) == len(events) - len(single)
    assert len(single) <= 7 * 5  # the first record of each tag of tensors names its plugin


def read_quietly(file: Path) -> list[dict[str, Any]]:
    return TensorBoardIngestor().read(Source(file.name, file, 1), IngestContext()).events.to_pylist()


def test_corrupt_scalars_are_found_in_columns_too(tmp_path: Path) -> None:
    data = bytearray(written([event_of("float", "loss", 200 + n, 1.0, 1.7e9, plugin=False) for n in range(500)]))
    size = len(data) // 500
    for record in (100, 101, 350):
        data[record * size + 30] ^= 0x10
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(data)
    found = TensorBoardIngestor().read(Source(file.name, file, 1), IngestContext())
    steps = set(range(200, 700)) - {row["step"] for row in found.events.to_pylist()}
    assert steps == {300, 301, 550}
    assert f"3 records whose checksum does not fit were left out, the first at byte {100 * size:,}." in found.warnings


def test_a_tensor_of_another_plugin_is_no_scalar(tmp_path: Path) -> None:
    events = [event_of("float", "secret", step, 1.0, 1.7e9, plugin=False) for step in range(300)]
    events[0].summary.value[0].metadata.plugin_data.plugin_name = "my_plugin"
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(written([*events, event_of("simple", "loss", 1, 1.0, 1.7e9, plugin=False)]))
    found = TensorBoardIngestor().read(Source(file.name, file, 1), IngestContext())
    assert [row["name"] for row in found.events.to_pylist()] == ["loss"]
    assert found.warnings == ("Not read as events: 300 other values.",)


@given(st.binary(max_size=80))
def test_any_bytes_have_a_layout_or_none(data: bytes) -> None:
    layout = layout_of(b"\x09" + data)
    assert layout is None or layout.value_at + layout.value_size <= len(data) + 1


def test_a_layout_says_where_the_value_stands() -> None:
    record = event_of("double", "loss", 300, math.pi, 1.7e9, plugin=True).SerializeToString()
    layout = layout_of(record)
    assert layout is not None
    held = record[layout.value_at : layout.value_at + layout.value_size]
    assert np.frombuffer(held, "<f8")[0] == math.pi
    assert (layout.tag, layout.plugin, layout.tensor) == ("loss", "scalars", True)


def _mixed() -> bytes:
    events = [event_of(kind, "loss", step, 1.5, 1.7e9, plugin=True) for step in range(4) for kind in KINDS]
    other = Event(wall_time=1.7e9, step=1)
    other.summary.value.add(tag="h").histo.CopyFrom(HistogramProto(num=2, sum=1, bucket=[1, 1], bucket_limit=[0, 1]))
    text = other.summary.value.add(tag="t")
    text.metadata.plugin_data.plugin_name = "text"
    text.tensor.dtype = DataType.DT_STRING
    text.tensor.string_val.append(b'{"lr": 1}')
    return written([*events, other])


def _refit(data: bytearray) -> bytes:
    """Give every record whose length still fits the checksum that its bytes have now."""
    place = 0
    while place + 16 <= len(data):
        size = int.from_bytes(data[place : place + 8], "little")
        end = place + 12 + size
        if end + 4 > len(data):
            break
        data[end : end + 4] = masked_one(bytes(data[place + 12 : end])).to_bytes(4, "little")
        place = end + 4
    return bytes(data)


MIXED = _mixed()


@settings(max_examples=100, deadline=None)
@given(
    places=st.lists(st.tuples(st.integers(12, len(MIXED) - 1), st.integers(0, 255)), max_size=8),
    refit=st.booleans(),
    cut=st.integers(0, 60),
)
def test_any_damage_is_survived(
    tmp_path_factory: pytest.TempPathFactory, places: list[tuple[int, int]], refit: bool, cut: int
) -> None:
    data = bytearray(MIXED)
    for place, byte in places:
        data[place] = byte
    file = tmp_path_factory.mktemp("run") / "events.out.tfevents.1"
    file.write_bytes((_refit(data) if refit else bytes(data))[: len(data) - cut])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensorboard_scalars, "MIN_GROUP", 2)
        try:
            found = TensorBoardIngestor().read(Source(file.name, file, 1), IngestContext())
        except UnreadableSource:
            return
    assert found.lines >= found.events.num_rows - 60
