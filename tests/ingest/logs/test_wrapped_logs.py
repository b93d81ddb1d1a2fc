"""Logs as container runtimes, clouds and structured loggers write them: what is inside is read like a plain log."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rca.ingest.logs.log_records import time_text

PLAIN = """\
step 0 loss 2.500
step 10 loss 2.400
step 20 loss 2.300
Traceback (most recent call last):
  File "/app/train.py", line 10, in <module>
    main()
  File "/app/train.py", line 7, in main
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
""".splitlines()
START = 1_796_071_380


def iso(second: int) -> str:
    return f"2026-11-30T20:43:{second:02d}.197208Z"


def docker(lines: list[str]) -> str:
    made = [{"log": line + "\n", "stream": "stderr", "time": iso(at)} for at, line in enumerate(lines)]
    return "".join(json.dumps(item, separators=(",", ":")) + "\n" for item in made)


def structured(lines: list[str], **more: Any) -> str:
    made = [{"timestamp": iso(at), "level": "info", "event": line, **more} for at, line in enumerate(lines)]
    return "".join(json.dumps(item) + "\n" for item in made)


def cloud(lines: list[str]) -> str:
    made = [{"textPayload": line, "timestamp": iso(at), "severity": "INFO"} for at, line in enumerate(lines)]
    return json.dumps(made[::-1], indent=2)


def loki(lines: list[str]) -> str:
    values = [[f"{START + at}000000000", line] for at, line in enumerate(lines)]
    result = [{"stream": {"pod": "job-0", "container": "pytorch"}, "values": values}]
    return json.dumps({"status": "success", "data": {"resultType": "streams", "result": result}})


def watch(lines: list[str]) -> str:
    made = [
        {"timestamp": (START + at) * 1000, "message": line, "ingestionTime": 1, "logStreamName": "trainer/abc"}
        for at, line in enumerate(lines)
    ]
    return json.dumps({"events": made, "nextForwardToken": "f/1"})


def cri(lines: list[str]) -> str:
    pieces = [part for line in lines for part in ((line[:9], "P"), (line[9:], "F"))]
    return "".join(f"{iso(at)} stderr {tag} {text}\n" for at, (text, tag) in enumerate(pieces))


def pods(lines: list[str]) -> str:
    return "".join(
        f"[pod/job-worker-{pod}/pytorch] {line if pod or 'loss' in line else ''}\n" for line in lines for pod in (0, 1)
    )


def compose(lines: list[str]) -> str:
    return "".join(f"trainer-1  | {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("name", "wrap", "line"),
    [
        ("a.json", docker, 9),
        ("app.log", structured, 9),
        ("a.jsonl", structured, 9),
        ("export.json", cloud, 1),
        ("loki.json", loki, 1),
        ("events.json", watch, 1),
        ("0.log", cri, 17),
        ("all.log", pods, 18),
        ("compose.log", compose, 9),
    ],
)
def test_metrics_and_tracebacks_come_out(read: Any, name: str, wrap: Any, line: int) -> None:
    found = read(name, wrap(PLAIN))
    assert (found.record.kind, found.record.status) == ("wrapped log", "read")
    assert found.ingested.text
    exception = found.one("torch.OutOfMemoryError")
    assert (exception.line, exception.attr("user_frame")["line"]) == (line, 7)
    assert exception.text == "CUDA out of memory. Tried to allocate 2.00 GiB."
    rows = sorted(set(found.metrics("loss")))
    assert rows == [(0, 2.5), (10, 2.4), (20, 2.3)]
    series = found.table.metric("loss")
    assert list(series.step) == [0, 10, 20]


def test_times_levels_and_offsets_are_those_of_the_file(read: Any) -> None:
    text = docker(PLAIN)
    found = read("c-json.log", text)
    event = found.one("torch.OutOfMemoryError")
    assert event.time == (START + 8) * 10**6 + 197208
    assert text[event.offset :].startswith('{"log":"torch.OutOfMemoryError')
    assert found.record.first_time == "2026-11-30T20:43:00+00:00"
    assert found.record.lines == 9


def test_pieces_of_a_long_line_are_joined_in_each_stream(read: Any) -> None:
    items = [("step 3 lo", "stdout"), ("Value", "stderr"), ("ss 1.5\n", "stdout"), ("Error: boom\n", "stderr")]
    text = "".join(json.dumps({"log": log, "stream": stream, "time": iso(1)}) + "\n" for log, stream in items)
    text = text.replace('{"log": ', '{"log":')
    found = read("x-json.log", text)
    assert found.metrics("loss") == [(3, 1.5)]
    assert found.one("ValueError").line == 2


def test_numbers_beside_the_message_are_measurements(read: Any) -> None:
    rows = [
        {
            "event": "train_step",
            "step": at * 10,
            "loss": 2.5 - at / 10,
            "lr": 1e-4,
            "level": "info",
            "timestamp": iso(at),
        }
        for at in range(4)
    ]
    found = read("app.log", "".join(json.dumps(row) + "\n" for row in rows))
    assert found.metrics("loss") == [(0, 2.5), (10, 2.4), (20, 2.3), (30, 2.2)]
    assert found.metrics("learning_rate")[0] == (0, 1e-4)


def test_a_traceback_of_python_json_logger(read: Any) -> None:
    trace = "\n".join(PLAIN[3:])
    rows = [
        {
            "asctime": "2026-11-30 20:43:00,253",
            "levelname": "INFO",
            "name": "t",
            "message": "step 0 loss 2.5",
            "rank": 3,
        },
        {"asctime": "2026-11-30 20:43:01,253", "levelname": "ERROR", "message": "failed", "exc_info": trace, "rank": 3},
        {"asctime": "2026-11-30 20:43:02,253", "levelname": "INFO", "message": "bye", "rank": 3},
    ]
    found = read("app.log", "".join(json.dumps(row) + "\n" for row in rows))
    event = found.one("torch.OutOfMemoryError")
    assert (event.line, event.rank, event.text) == (2, 3, "CUDA out of memory. Tried to allocate 2.00 GiB.")


def test_a_traceback_that_structlog_took_apart(read: Any) -> None:
    frames = [{"filename": "/app/train.py", "lineno": 7, "name": "main", "locals": {"x": "{}"}}]
    trace = [{"exc_type": "KeyError", "exc_value": "'labels'", "frames": frames}]
    rows = [
        {"event": "start", "level": "info", "timestamp": START},
        {"event": "failed", "level": "error", "timestamp": START + 1.5, "exception": trace},
    ]
    event = read("app.log", "".join(json.dumps(row) + "\n" for row in rows)).one("KeyError")
    assert (event.line, event.text, event.time) == (2, "'labels'", (START * 10 + 15) * 10**5)
    assert event.attr("user_frame")["function"] == "main"


def test_a_traceback_of_loguru(read: Any) -> None:
    trace = (
        "Traceback (most recent call last):\n\n"
        '> File "/app/train.py", line 28, in <module>\n    boom()\n    └ <function boom at 0x7f4b63fb84a0>\n\n'
        '  File "/app/train.py", line 7, in boom\n    return x["labels"]\n           └ {}\n\nKeyError: \'labels\'\n'
    )
    inner = {
        "message": "training failed",
        "level": {"name": "ERROR", "no": 40},
        "time": {"repr": "", "timestamp": START + 0.25},
        "extra": {"rank": 2},
    }
    text = f"2026-11-30 20:43:00.277 | ERROR    | __main__:<module>:29 - training failed\n{trace}"
    found = read("app.log", json.dumps({"text": text, "record": inner}) + "\n")
    event = found.one("KeyError")
    assert (event.line, event.rank, event.text) == (1, 2, "'labels'")
    assert [frame["line"] for frame in event.attr("frames")] == [28, 7]
    plain = read("plain.log", text).one("KeyError")
    assert [frame["line"] for frame in plain.attr("frames")] == [28, 7]


def test_a_structured_log_inside_of_a_container_log(read: Any) -> None:
    inner = structured(PLAIN, rank=1).splitlines()
    found = read("c.log", docker(inner))
    event = found.one("torch.OutOfMemoryError")
    assert (event.line, event.rank, event.attr("user_frame")["line"]) == (9, 1, 7)
    assert found.metrics("loss") == [(0, 2.5), (10, 2.4), (20, 2.3)]


def test_lines_between_the_records_are_kept(read: Any) -> None:
    text = structured(PLAIN[:3]) + "\n".join(PLAIN[3:]) + "\n" + structured(["bye"])
    event = read("app.log", text).one("torch.OutOfMemoryError")
    assert event.line == 9


def test_metric_rows_and_samples_are_no_log(read: Any) -> None:
    rows = "".join(
        json.dumps({"step": at, "loss": 2.0, "event": "train", "time": START + at}) + "\n" for at in range(3)
    )
    assert read("metrics.jsonl", rows).record.kind == "metrics lines"
    samples = "".join(json.dumps({"text": "a b c", "label": at}) + "\n" for at in range(3))
    assert read("train.jsonl", samples).record.kind == "metrics lines"


def test_whole_lines_of_a_runtime_are_left_to_the_reader_of_text(read: Any) -> None:
    text = "".join(f"{iso(at)} stderr F {line}\n" for at, line in enumerate(PLAIN))
    found = read("0.log", text)
    assert found.one("torch.OutOfMemoryError").line == 9
    assert found.metrics("loss") == [(0, 2.5), (10, 2.4), (20, 2.3)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1_796_071_380, "2026-11-30T20:43:00.000000Z"),
        (1_796_071_380_500, "2026-11-30T20:43:00.500000Z"),
        ("1796071380500000", "2026-11-30T20:43:00.500000Z"),
        (1_796_071_380_000_000_000, "2026-11-30T20:43:00.000000Z"),
        ("2026-11-30 20:43:00,253", "2026-11-30 20:43:00,253"),
        (True, ""), ("yesterday", ""), (float("nan"), ""), (3, ""), (None, ""), (1e300, ""),
    ],
)  # fmt: skip
def test_times_in_every_unit(value: Any, expected: str) -> None:
    assert time_text(value) == expected


KEYS = st.sampled_from(
    ["log", "stream", "time", "message", "level", "timestamp", "record", "text", "exception", "rank", "labels", "msg",
     "exc_info", "jsonPayload", "events", "data", "result", "values", "kubernetes", "frames", "exc_type", "host"]
)  # fmt: skip
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.sampled_from(["info", iso(3)])
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)
HEADS = st.sampled_from([docker(PLAIN), structured(PLAIN), cloud(PLAIN), loki(PLAIN), cri(PLAIN), pods(PLAIN)])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=HEADS,
    name=st.sampled_from(["a.log", "a.json"]),
    rows=st.lists(JSON | st.binary(max_size=30), max_size=6),
    cut=st.integers(0, 900),
)
def test_torn_and_odd_records_never_fail(read: Any, head: str, name: str, rows: list[Any], cut: int) -> None:
    tail = b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows)
    data = head.encode()[: len(head) - cut % len(head)] + tail
    found = read(name, data)
    assert (found.record.status == "read") == (found.ingested is not None)
    most = data.count(b"\n") + 1
    assert all(event.line is None or 1 <= event.line <= most for event in found.table.events)
