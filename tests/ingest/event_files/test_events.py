from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DataType
from tensorboard.summary.writer.record_writer import RecordWriter

from rca.errors import UnreadableSource
from rca.events import EventTable
from rca.ingest.event_files.events import TEXT, TensorBoardIngestor
from rca.ingest.interface import IngestContext, Ingested, Source

READER = TensorBoardIngestor()


class Kept(io.BytesIO):
    def close(self) -> None:
        self.all = self.getvalue()
        super().close()


def framed(*events: Event) -> bytes:
    stream = Kept()
    writer = RecordWriter(stream)
    for event in events:
        writer.write(event.SerializeToString())
    writer.close()
    return stream.all


def scalar(tag: str, value: float, step: int, wall_time: float = 1.7e9) -> Event:
    event = Event(wall_time=wall_time, step=step)
    event.summary.value.add(tag=tag, simple_value=value)
    return event


def tensor(tag: str, proto: TensorProto, step: int = 3, plugin: str = "scalars") -> Event:
    event = Event(wall_time=1.7e9, step=step)
    value = event.summary.value.add(tag=tag, tensor=proto)
    value.metadata.plugin_data.plugin_name = plugin
    return event


def read(file: Path, **more: Any) -> Ingested:
    source = Source(path=file.name, file=file, size=file.stat().st_size, **more)
    return READER.read(source, IngestContext())


def read_bytes(folder: Path, data: bytes) -> Ingested:
    file = folder / "events.out.tfevents.1700000000.host.1.0"
    file.write_bytes(data)
    return read(file)


def rows(found: Ingested, **where: str) -> list[dict[str, Any]]:
    return [row for row in found.events.to_pylist() if all(row[key] == value for key, value in where.items())]


def test_agrees_with_the_event_accumulator(tmp_path: Path) -> None:
    torch_board = pytest.importorskip("torch.utils.tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with torch_board.SummaryWriter(str(tmp_path)) as writer:
        for step in range(300):
            writer.add_scalar("train/loss", 3.0 / (step + 1), step)
            writer.add_scalar("train/grad_norm", math.nan if step == 7 else step, step)
            writer.add_scalar("eval/loss", step * 0.5, step, new_style=True)
    (file,) = tmp_path.iterdir()
    oracle = EventAccumulator(str(file), size_guidance={"scalars": 0, "tensors": 0}).Reload()
    found = read(file)
    assert found.warnings == ()
    for tag, name in (("train/loss", "loss"), ("train/grad_norm", "grad_norm")):
        expected = oracle.Scalars(tag)
        got = rows(found, name=name)
        assert [row["step"] for row in got] == [item.step for item in expected]
        np.testing.assert_array_equal([row["value"] for row in got], [item.value for item in expected])
        seconds = [row["time"].timestamp() for row in got]
        np.testing.assert_allclose(seconds, [item.wall_time for item in expected], rtol=0, atol=2e-6)
    expected = [(item.step, item.tensor_proto.float_val[0]) for item in oracle.Tensors("eval/loss")]
    assert [(row["step"], row["value"]) for row in rows(found, name="eval_loss")] == expected


def test_fast_reader_and_protobuf_reader_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        scalar(tag, value, step, 1.7e9 + step / 8)
        for step in (*range(150), 2**14, 2**21, 2**30, 2**34, -1)
        for tag, value in (("a", step / 3), ("a/long/tag " * 15, -1.0), ("b", math.inf))
    ]
    data = framed(*events)
    fast = read_bytes(tmp_path, data)
    monkeypatch.setattr("rca.ingest.event_files.scalars.MIN_GROUP", 1 << 60)
    slow = read_bytes(tmp_path, data)
    key = [("name", "ascending"), ("line", "ascending")]
    plain = [
        pa.table({name: table.events[name].cast(pa.string()) for name in ("name", "step", "value", "line", "time")})
        for table in (fast, slow)
    ]
    assert plain[0].sort_by(key).equals(plain[1].sort_by(key))
    assert fast.events.num_rows == len(events)


@pytest.mark.parametrize("kind", ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"])
@pytest.mark.parametrize("packed", [True, False])
def test_tensor_scalars_of_all_types(tmp_path: Path, kind: str, packed: bool) -> None:
    codes = {"float32": "DT_FLOAT", "float64": "DT_DOUBLE"}
    proto = TensorProto(dtype=DataType.Value(codes.get(kind, f"DT_{kind.upper()}")))
    if packed:
        proto.tensor_content = np.array([7], kind).tobytes()
    else:
        fields = {"float32": "float_val", "float64": "double_val", "int64": "int64_val", "uint32": "uint32_val"}
        getattr(proto, fields.get(kind, "int_val")).append(7)
    (row,) = rows(read_bytes(tmp_path, framed(tensor("loss", proto))))
    assert (row["value"], row["step"], row["name"]) == (7.0, 3, "loss")


@pytest.mark.parametrize(("code", "bits"), [("DT_HALF", 0x3E00), ("DT_BFLOAT16", 0x3FC0)])
@pytest.mark.parametrize("packed", [True, False])
def test_half_precision_tensors(tmp_path: Path, code: str, bits: int, packed: bool) -> None:
    proto = TensorProto(dtype=DataType.Value(code))
    if packed:
        proto.tensor_content = np.array([bits], "<u2").tobytes()
    else:
        proto.half_val.append(bits)
    assert rows(read_bytes(tmp_path, framed(tensor("loss", proto))))[0]["value"] == 1.5


def test_a_tag_names_its_plugin_only_once(tmp_path: Path) -> None:
    first = TensorProto(dtype=DataType.DT_FLOAT, float_val=[1.0])
    second = Event(wall_time=1.7e9, step=4)
    second.summary.value.add(tag="x", tensor=first)
    histogram = Event(wall_time=1.7e9, step=5)
    histogram.summary.value.add(tag="h", tensor=TensorProto(dtype=DataType.DT_DOUBLE, double_val=[1.0, 2.0]))
    found = read_bytes(tmp_path, framed(tensor("x", first), tensor("h", first, plugin="histograms"), second, histogram))
    assert [row["step"] for row in rows(found)] == [3, 4]
    assert found.warnings == ("Not read as events: 2 empty histograms.",)


def test_what_is_no_scalar_is_counted(tmp_path: Path) -> None:
    torch_board = pytest.importorskip("torch.utils.tensorboard")
    with torch_board.SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", 1.0, 0)
        writer.add_histogram("weights", np.arange(10), 0)
        writer.add_histogram("weights", np.arange(10), 1)
        writer.add_image("sample", np.zeros((3, 4, 4)), 0)
    (file,) = tmp_path.iterdir()
    found = read(file)
    assert sorted(row["name"] for row in rows(found)) == ["loss", "weights_norm", "weights_norm"]
    assert found.warnings == ("Not read as events: 1 image.",)


def test_hyper_parameters_become_configuration(tmp_path: Path) -> None:
    torch_board = pytest.importorskip("torch.utils.tensorboard")
    with torch_board.SummaryWriter(str(tmp_path)) as writer:
        writer.add_hparams({"lr": 0.01, "bsize": 8, "optim": "sgd", "amp": True}, {"final": 0.5}, run_name=".")
    found = [row for file in sorted(tmp_path.rglob("events*")) for row in rows(read(file), kind="config")]
    settings_found = {row["name"]: (row["value"], row["text"]) for row in found}
    assert settings_found["learning_rate"] == (0.01, "0.01")
    assert settings_found["optimizer"] == (None, "sgd")
    assert settings_found["bsize"][0] == 8
    assert json.loads(next(row["attrs"] for row in found if row["name"] == "learning_rate"))["key"] == "lr"


def test_text_is_kept_and_its_settings_are_read(tmp_path: Path) -> None:
    torch_board = pytest.importorskip("torch.utils.tensorboard")
    with torch_board.SummaryWriter(str(tmp_path)) as writer:
        writer.add_text("args", json.dumps({"learning_rate": 5e-5, "fp16": True, "optim": "adamw_torch"}))
        writer.add_text("hyperparameters", "|param|value|\n|-|-|\n|num_envs|8|\n|gamma|0.99|")
        writer.add_text("note", "resumed from step 500 <b>here</b>", 500)
    (file,) = tmp_path.iterdir()
    found = read(file)
    (note,) = (row for row in rows(found, kind="log") if "note" in row["attrs"])
    assert (note["name"], note["text"], note["step"]) == (TEXT, "resumed from step 500 <b>here</b>", 500)
    config = {row["name"]: row["value"] for row in rows(found, kind="config")}
    assert config == {"learning_rate": 5e-5, "fp16": 1.0, "optimizer": None, "num_envs": 8.0, "gamma": 0.99}


def test_restarted_steps_stay_in_file_order(tmp_path: Path) -> None:
    steps = [*range(100), *range(50, 150)]
    found = read_bytes(tmp_path, framed(*(scalar("loss", float(place), step) for place, step in enumerate(steps))))
    series = EventTable.from_parts([found.events]).metric("loss")
    assert series is not None
    assert series.step.tolist() == steps
    assert series.value.tolist() == [float(place) for place in range(200)]


def test_two_tags_with_one_common_name_stay_two_curves(tmp_path: Path) -> None:
    events = [scalar("train/loss", 1.0, step) for step in range(10)] + [scalar("loss", 2.0, step) for step in range(3)]
    names = {(row["name"], row["value"]) for row in rows(read_bytes(tmp_path, framed(*events)))}
    assert names == {("loss", 1.0), ("loss#2", 2.0)}


@pytest.mark.parametrize(
    ("folder", "tag", "name"),
    [
        ("train", "epoch_loss", "loss"),
        ("validation", "epoch_loss", "eval_loss"),
        ("tb/val", "loss", "eval_loss"),
        ("tb/val", "learning_rate", "learning_rate"),
        ("logs", "Train/Samples/train_loss", "loss"),
        ("logs", "learning-rate", "learning_rate"),
        ("logs", "my/own", "my/own"),
    ],
)
def test_names_of_writers(tmp_path: Path, folder: str, tag: str, name: str) -> None:
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(framed(scalar(tag, 1.0, 1)))
    found = READER.read(Source(f"{folder}/{file.name}", file, 1), IngestContext())
    assert rows(found)[0]["name"] == name


def test_series_with_and_without_a_unit_join_with_other_sources(tmp_path: Path) -> None:
    points = [scalar(tag, 1.0, step) for step in range(3) for tag in ("loss", "perf/step_time_s")]
    found = read_bytes(tmp_path, framed(*points))
    table = EventTable.from_parts([found.events, found.events]).table
    assert table["unit"].to_pylist().count(None) == 6
    assert set(table["unit"].to_pylist()) == {None, "s"}


def test_times_and_memory_come_in_common_units(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, framed(scalar("step_ms", 250.0, 1), scalar("memory_allocated", 2.0 * 1024**3, 1)))
    values = {row["name"]: (row["value"], row["unit"]) for row in rows(found)}
    assert values == {"step_time": (0.25, "s"), "memory_allocated": (2.0, "GiB")}


def test_a_wall_time_that_is_none_stays_missing(tmp_path: Path) -> None:
    times = [1.7e9, -5.0, math.nan, 1e30, 0.0]
    found = read_bytes(tmp_path, framed(*(scalar("loss", 1.0, 1, time) for time in times)))
    assert [row["time"] is None for row in rows(found)] == [False, True, True, True, True]
    assert found.first_time == found.last_time == 1_700_000_000_000_000


@pytest.mark.parametrize(
    "damage",
    [
        lambda data, at: data[:at] + b"\x00\xffgarbage" * 9 + data[at:],
        lambda data, at: data[: at + 3] + bytes([data[at + 3] ^ 0x55]) + data[at + 4 :],
        lambda data, at: data[: at + 20] + bytes([data[at + 20] ^ 0x55]) + data[at + 21 :],
        lambda data, at: data[: at + 5] + data[at + 30 :],
    ],
    ids=["garbage", "length", "payload", "lost bytes"],
)
def test_damage_in_the_middle_keeps_both_sides(tmp_path: Path, damage: Callable[[bytes, int], bytes]) -> None:
    events = [scalar("loss", float(step), step) for step in range(200)]
    at = len(framed(*events[:100]))
    found = read_bytes(tmp_path, damage(framed(*events), at))
    steps = [row["step"] for row in rows(found)]
    assert steps[:100] == list(range(100))
    assert steps[-98:] == list(range(102, 200))
    assert len(found.warnings) == 1
    assert f"{at:,}" in found.warnings[0]


def test_a_cut_file_says_where(tmp_path: Path) -> None:
    data = framed(*(scalar("loss", float(step), step) for step in range(5)))
    found = read_bytes(tmp_path, data[:-4])
    assert [row["step"] for row in rows(found)] == [0, 1, 2, 3]
    assert "not complete" in found.warnings[0]


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "events.out.tfevents.1.h.gz"
    file.write_bytes(gzip.compress(framed(scalar("loss", 1.0, 1))))
    assert rows(read(file))[0]["name"] == "loss"


def test_rank_of_the_source_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "events.out.tfevents.1.h"
    file.write_bytes(framed(*(scalar("loss", 1.0, step) for step in range(100))))
    assert {row["rank"] for row in rows(read(file, rank=3))} == {3}


def test_accepts_by_name_or_by_content() -> None:
    head = framed(Event(wall_time=1.7e9, file_version="brain.Event:2"))
    assert READER.accepts(Source("events.out.tfevents.17.host.1.0", Path("x"), 1), b"")
    assert READER.accepts(Source("renamed.bin", Path("x"), 1), head)
    assert not READER.accepts(Source("train.tfrecord", Path("x"), 1), framed(Event(step=3)))
    assert not READER.accepts(Source("train.log", Path("x"), 1), b"events.out.tfevents written\n" * 9)


@pytest.mark.parametrize("data", [b"", b"\0" * 5000, b"no events here" * 100])
def test_nothing_readable_is_an_unreadable_source(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UnreadableSource, match="no whole TensorBoard record"):
        read_bytes(tmp_path, data)


def test_records_that_are_no_events_are_counted(tmp_path: Path) -> None:
    stream = Kept()
    writer = RecordWriter(stream)
    for payload in (b"\xff\xff\xff", scalar("loss", 1.0, 1).SerializeToString()):
        writer.write(payload)
    writer.close()
    found = read_bytes(tmp_path, stream.all)
    assert found.events.num_rows == 1
    assert found.warnings == ("Not read as events: 1 record that is no event.",)


WHOLE = framed(*(scalar(f"tag{step % 3}", float(step), step) for step in range(20)))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(max_size=30), st.integers(0, 60)), max_size=5))
def test_any_damage_gives_events_or_a_reason(tmp_path: Path, edits: list[tuple[int, bytes, int]]) -> None:
    data = WHOLE
    for at, junk, lost in edits:
        data = data[:at] + junk + data[at + lost :]
    try:
        found = read_bytes(tmp_path, data)
    except UnreadableSource:
        return
    assert found.events.num_rows <= 20
    EventTable.from_parts([found.events])
