from __future__ import annotations

import json
import math
import struct
import zlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rca.ingest.trackers import wandb_run
from rca.ingest.trackers.leveldb_log import BLOCK
from rca.ingest.trackers.wandb_messages import record_class

HEAD = b":W&B\xe1\xbe\x00"
NAME = "wandb/offline-run-1/run-1.wandb"
Row = dict[str, Any]


def item(target: Any, key: str, value: Any, *, nested: bool = True) -> None:
    """Add one item as W&B's client does: the key in parts, the value as JSON."""
    added = target.add(value_json=json.dumps(value).encode())
    if nested:
        added.nested_key.extend(part.encode() for part in key.split("."))
    else:
        added.key = key.encode()


def run_record(**config: Any) -> Any:
    record = record_class()()
    record.run.run_id = b"abc"
    record.run.start_time.seconds = 1_700_000_000
    record.run.host = b"node-1"
    for key, value in {"_wandb": {}, **config}.items():
        item(record.run.config.update, key, value, nested=False)
    return record


def history(step: int, **values: Any) -> Any:
    record = record_class()()
    for key, value in {**values, "_step": step, "_timestamp": 1.7e9 + step, "_runtime": step}.items():
        item(record.history.item, key.replace("__", "/"), value)
    record.history.step.num = step
    return record


def stats(second: int, **values: float) -> Any:
    record = record_class()()
    record.stats.timestamp.seconds = 1_700_000_000 + second
    for key, value in values.items():
        item(record.stats.item, key.replace("__", "."), value, nested=False)
    return record


def ended(code: int) -> Any:
    record = record_class()()
    record.exit.exit_code = code
    record.exit.runtime = 12
    return record


def written(*records: Any) -> bytes:
    """Frame records as W&B's writer does."""
    data = bytearray(HEAD)
    for record in records:
        left, first = record.SerializeToString(), True
        while first or left:
            room = BLOCK - len(data) % BLOCK
            if room < 7:
                data += bytes(room)
                room = BLOCK
            part, left = left[: room - 7], left[room - 7 :]
            kind = (1 if not left else 2) if first else (4 if not left else 3)
            data += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind) + part
            first = False
    return bytes(data)


RUN = (
    run_record(learning_rate=5.0, optimizer={"name": "adamw", "weight_decay": 0.1}, fp16=True),
    *(history(step, train__loss=math.nan if step > 6 else 2.0, train__grad_norm=1.5) for step in range(9)),
    ended(1),
)


def test_history_settings_and_exit_of_a_run(read: Any) -> None:
    found = read(NAME, written(*RUN))
    assert found.record.kind == "W&B run"
    assert found.record.warnings == ()
    assert [step for step, _ in found.metrics("loss")] == list(range(9))
    assert [value for _, value in found.metrics("loss")][:7] == [2.0] * 7
    assert math.isnan(found.metrics("loss")[-1][1])
    config = found.config()
    assert (config["learning_rate"], config["optimizer"], config["weight_decay"]) == (5.0, "adamw", 0.1)
    assert "_wandb" not in config
    ending = found.one("process.exit")
    assert (ending.value, ending.host) == (1.0, "node-1")
    assert found.record.first_time == "2023-11-14T22:13:20+00:00"


def test_devices_and_host_are_measured(read: Any) -> None:
    data = written(
        run_record(),
        stats(
            10, gpu__0__gpu=99.0, gpu__0__memoryAllocatedBytes=2.0 * 1024**3, gpu__1__gpu=3.0, proc__memory__rssMB=512.0
        ),
        stats(20, gpu__0__gpu=98.0, gpu__1__gpu=4.0, memory_percent=50.0, network__sent=7.0),
    )
    found = read(NAME, data)
    assert [value for _, value in found.metrics("gpu_utilization")] == [99.0, 3.0, 98.0, 4.0]
    assert [label["gpu"] for label in found.labels("gpu_utilization")] == [0, 1, 0, 1]
    assert found.metrics("gpu_memory_used") == [(None, 2.0)]
    assert found.metrics("host rss") == [(None, 0.5)]
    assert found.metrics("host memory percent") == [(None, 50.0)]


def test_what_is_no_number_is_no_metric(read: Any) -> None:
    record = history(1, train__loss=1.0, note="text", flag=True)
    for key, value in {"h._type": "histogram", "h.values": [1, 2], "h.packed": 3.0, "eval.loss": 0.5}.items():
        item(record.history.item, key, value)
    found = read(NAME, written(record))
    assert set(found.table.metric_names) == {"loss", "eval.loss"} or set(found.table.metric_names) == {
        "loss",
        "eval_loss",
    }


def test_infinity_and_nan_as_the_client_quotes_them(read: Any) -> None:
    found = read(NAME, written(history(1, train__loss="Infinity"), history(2, train__loss="NaN")))
    values = [value for _, value in found.metrics("loss")]
    assert values[0] == math.inf
    assert math.isnan(values[1])


def test_the_environment_record_tells_devices_and_arguments(read: Any) -> None:
    record = record_class()()
    record.environment.python = b"CPython 3.11.7"
    record.environment.args.extend([b"--learning_rate", b"0.5", b"--bf16"])
    record.environment.cuda_version = b"12.4"
    for _ in range(2):
        record.environment.gpu_nvidia.add(name=b"NVIDIA H100 80GB HBM3", memory_total=85_000_000_000)
    record.environment.memory.total = 64 * 1024**3
    found = read(NAME, written(record))
    devices = found.table.named("system.gpu")
    assert [event.attr("index") for event in devices] == [0, 1]
    assert devices[0].attr("memory_total_bytes") == 85_000_000_000
    assert found.one("system.host").attr("memory_total_bytes") == 64 * 1024**3
    assert found.config()["learning_rate"] == 0.5
    assert found.one("system.environment").text == "3.11.7"


@pytest.mark.parametrize("cut", [3, 200, 350])
def test_a_killed_run_keeps_what_is_whole(read: Any, cut: int) -> None:
    found = read(NAME, written(*RUN)[:-cut])
    assert found.metrics("loss")
    assert not found.table.named("process.exit")
    assert any("a record is not complete" in said for said in found.record.warnings)


def test_records_longer_than_a_block(read: Any) -> None:
    long = run_record(learning_rate=1.0, words="x" * 100_000)
    found = read(NAME, written(long, *RUN))
    assert len(found.metrics("loss")) == 9


def test_damage_costs_a_block_and_is_told(read: Any) -> None:
    data = bytearray(written(*(history(step, train__loss=1.0) for step in range(1000))))
    data[50_000] ^= 0xFF
    found = read(NAME, bytes(data))
    steps = [step for step, _ in found.metrics("loss")]
    assert 700 < len(steps) < 1000
    assert steps[-1] == 999
    assert any("does not fit its checksum" in said for said in found.record.warnings)


def test_long_histories_are_thinned_and_keep_their_end(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wandb_run, "MAX_CELLS", 100)
    found = read(NAME, written(*(history(step, train__loss=1.0) for step in range(200))))
    steps = [step for step, _ in found.metrics("loss")]
    assert len(steps) <= 30
    assert steps[-1] == 199
    assert any("Of 200 rows of the history one in" in said for said in found.record.warnings)


def test_printed_lines_without_a_file_of_their_own_are_told(read: Any) -> None:
    record = record_class()()
    record.output.line = b"hello"
    assert any("1 printed lines" in said for said in read(NAME, written(*RUN, record)).record.warnings)
    beside = {"wandb/offline-run-1/files/output.log": "hello\n"}
    assert read(NAME, written(*RUN, record), **beside).record.warnings == ()


def test_nothing_whole_is_unreadable(read: Any) -> None:
    found = read(NAME, HEAD + b"\0" * 100)
    assert found.ingested is None
    assert "no whole W&B record" in found.record.why


def test_fragments_that_hold_nothing_cost_no_memory(read: Any) -> None:
    def fragment(kind: int) -> bytes:
        return struct.pack("<IHB", zlib.crc32(bytes([kind])), 0, kind)

    def block(*kinds: int) -> bytes:
        return b"".join(map(fragment, kinds)).ljust(BLOCK, b"\0")

    good = written(run_record(lr=0.1)).ljust(BLOCK, b"\0")
    begun = read(NAME, good + block(*[2] * 4_000) * 5)
    assert begun.record.warnings[-1] == "9,993 more places are damaged."
    assert "stopped after 10,000 damaged places" in begun.record.warnings[-2]
    assert begun.config() == {"learning_rate": 0.1}
    endless = read(NAME, good + block(2) + block(*[3] * 4_000) * 17)
    assert endless.record.warnings == ("At byte 32,768 a record of too many parts was passed over.",)


def test_reading_stops_after_so_many_records(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wandb_run, "MAX_RECORDS", 3)
    found = read(NAME, written(run_record(), *(history(step, loss=1.0) for step in range(5)), ended(1)))
    assert [step for step, _ in found.metrics("loss")] == [0, 1]
    assert "stopped after 3 records" in found.record.warnings[0]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places=st.lists(st.tuples(st.integers(0, 1400), st.integers(0, 255)), max_size=6), junk=st.binary(max_size=60))
def test_any_damage_is_survived(read: Any, places: list[tuple[int, int]], junk: bytes) -> None:
    data = bytearray(written(*RUN))
    for place, byte in places:
        data[place % len(data)] = byte
    data[5:5] = junk if len(junk) % 2 else b""
    found = read(NAME, bytes(data) + junk)
    assert found.record.status in {"read", "skipped"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payloads=st.lists(st.binary(max_size=80), max_size=8))
def test_any_payload_with_a_good_checksum_is_survived(read: Any, payloads: list[bytes]) -> None:
    class Raw:
        def __init__(self, data: bytes) -> None:
            self.data = data

        def SerializeToString(self) -> bytes:  # noqa: N802 - as protobuf names it
            return self.data

    read(NAME, written(*map(Raw, payloads)))
