"""Logs through the text reader: signatures, repetition, limits, odd bytes."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rca.errors import UnreadableSource
from rca.events import MAX_TEXT
from rca.ingest.interface import IngestContext, Ingested, Limits, Source
from rca.ingest.logs.text import TextIngestor, is_text
from rca.ingest.logs.text_document import TextDocument
from rca.ingest.registry import AFTER_METRICS, BLOCKS
from rca.rules.schema import Signature

READER = TextIngestor(BLOCKS, after_metrics=AFTER_METRICS)
OOM = Signature(
    id="cuda.oom",
    emitter="pytorch",
    pattern=r"CUDA out of memory\. Tried to allocate (?P<tried>[\d.]+ \wiB)(?: after (?P<wait>\d+ ms))?",
    captures={"tried": {"type": "bytes"}, "wait": {"type": "seconds"}},  # type: ignore[dict-item]
    phase="train",
    matches=("CUDA out of memory. Tried to allocate 2.50 GiB",),
)
KILLED = Signature(id="shell.killed", emitter="bash", pattern=r"^Killed$", severity="fatal", matches=("Killed",))
NOISE = Signature(id="web.request", emitter="web", pattern=r"GET /\w+ 200", role="benign", matches=("GET /x 200",))


def ingest(
    tmp_path: Path, text: str | bytes, *signatures: Signature, name: str = "train.log", **limits: int
) -> Ingested:
    data = text.encode() if isinstance(text, str) else text
    (tmp_path / name).write_bytes(data)
    context = IngestContext(signatures=signatures, limits=Limits(**limits))
    return READER.read(Source(name, tmp_path / name, len(data), rank=None), context)


def rows(found: Ingested, kind: str = "log") -> list[dict[str, Any]]:
    picked = [row for row in found.events.to_pylist() if row["kind"] == kind]
    for row in picked:
        row["attrs"] = json.loads(row["attrs"]) if row["attrs"] else {}
    return sorted(picked, key=lambda row: row["line"])


def test_a_signature_gives_its_captures_with_their_types(tmp_path: Path) -> None:
    line = (
        "[rank3]: 2024-10-22 03:11:05,444 | ERROR | sft | CUDA out of memory. Tried to allocate 2.50 GiB after 250 ms"
    )
    (row,) = rows(ingest(tmp_path, f"start\n{line}\n", OOM))
    assert (row["name"], row["line"], row["offset"], row["rank"]) == ("cuda.oom", 2, 6, 3)
    assert row["attrs"] == {"tried": 2.5 * 2**30, "wait": 0.25}
    assert row["text"] == line
    assert (row["severity"], row["role"], row["phase"]) == ("error", "initiating", "train")
    assert row["time"].isoformat() == "2024-10-22T03:11:05.444000+00:00"


def test_the_message_of_an_exception_that_was_being_handled_is_searched(tmp_path: Path) -> None:
    code = "    CUDA out of memory. Tried to allocate 1.00 MiB\n"
    inner = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n' + code
    handled = inner + "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB\n"
    outer = 'Traceback (most recent call last):\n  File "a.py", line 2, in g\n    log(loss)\nNameError: x\n'
    link = "\nDuring handling of the above exception, another exception occurred:\n\n"
    assert [row["line"] for row in rows(ingest(tmp_path, handled + link + outer, OOM))] == [4]


@pytest.mark.parametrize(
    "line", ["Killed", "[rank1]: Killed", "2024-10-22 03:11:05 Killed", "\x1b[31mKilled\x1b[0m", "7: Killed\r"]
)
def test_anchors_hold_for_the_message_behind_the_prefix(tmp_path: Path, line: str) -> None:
    labelled = "\n".join(["7: a", "7: b", line]) if line.startswith("7: ") else line
    assert [row["name"] for row in rows(ingest(tmp_path, labelled, KILLED))] == ["shell.killed"]


def test_an_anchored_pattern_does_not_match_inside_a_line(tmp_path: Path) -> None:
    assert rows(ingest(tmp_path, "Process Killed\nKilled by user\n", KILLED)) == []


def test_a_message_in_a_progress_bar_is_found_where_it_stands(tmp_path: Path) -> None:
    text = "ok\n 1%|#|\r 2%|#|CUDA out of memory. Tried to allocate 1.00 MiB\r100%|#|\nnext\n"
    (row,) = rows(ingest(tmp_path, text, OOM))
    assert (row["line"], row["text"]) == (2, " 2%|#|CUDA out of memory. Tried to allocate 1.00 MiB")
    assert text.encode()[row["offset"] :].startswith(b" 2%|#|CUDA")


def test_offsets_hold_behind_colours(tmp_path: Path) -> None:
    data = b"\x1b[32mgreen\x1b[0m\n\x1b[31mKilled\x1b[0m\n"
    (row,) = rows(ingest(tmp_path, data, KILLED))
    assert data[row["offset"] :].startswith(b"\x1b[31mKilled")


def test_repeats_keep_the_first_ones_one_of_each_rank_and_the_last_with_the_count(tmp_path: Path) -> None:
    text = "".join(f"[rank{number % 7 if number > 50 else 0}]: GET /a 200\n" for number in range(100))
    found = ingest(tmp_path, text, NOISE, repeats_per_signature=5)
    kept = rows(found)
    assert [row["line"] for row in kept[:4]] == [1, 2, 3, 4]
    assert kept[-1]["line"] == 100
    assert kept[-1]["attrs"] == {"count": 100}
    assert {row["rank"] for row in kept} == set(range(7))
    assert len(kept) == 4 + 6 + 1
    assert found.warnings == ("89 repetitions of the same messages were counted, not kept.",)


def test_counting_without_looking_gives_the_same_count(tmp_path: Path) -> None:
    text = "GET /a 200\n" * 5000 + "other\n" + "GET /b 200\n"
    kept = rows(ingest(tmp_path, text, NOISE, repeats_per_signature=5))
    assert kept[-1]["line"] in {5000, 5002}
    assert kept[-1]["attrs"]["count"] == pytest.approx(5001, abs=1)


def test_a_log_that_was_read_leaves_no_text_in_memory(tmp_path: Path) -> None:
    text = "step 12 loss 3.4\nGET /x 200\nKilled\nCUDA out of memory. Tried to allocate 2.50 GiB\n" * 300
    gc.collect()
    gc.disable()
    try:
        assert ingest(tmp_path, text, NOISE, KILLED, OOM).lines == 1200
        assert [item for item in gc.get_objects() if isinstance(item, TextDocument)] == []
    finally:
        gc.enable()


def test_events_are_capped_and_the_cut_is_said(tmp_path: Path) -> None:
    text = "".join(f"ValueError: bad {number}\n" for number in range(50))
    found = ingest(tmp_path, text, events_per_source=10)
    assert found.events.num_rows == 10
    assert "40 events beyond 10 were left out." in found.warnings


def test_code_lines_of_a_traceback_are_no_messages(tmp_path: Path) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/train.py", line 9, in step\n'
        '    raise RuntimeError("CUDA out of memory. Tried to allocate 9.00 GiB")\n'
        "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB\n"
    )
    (row,) = rows(ingest(tmp_path, text, OOM))
    assert (row["line"], row["attrs"]["tried"]) == (4, 2.5 * 2**30)


def test_text_is_capped(tmp_path: Path) -> None:
    (row,) = rows(ingest(tmp_path, "GET /a 200 " + "x" * 20_000, NOISE))
    assert len(row["text"]) == MAX_TEXT


@pytest.mark.slow
def test_a_line_of_a_hundred_megabytes_costs_little(tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    with file.open("wb") as out:
        out.write(b"Killed\n")
        for _ in range(100):
            out.write(b"step 1 loss 2.5 " * (1 << 16))
        out.write(b"\nKilled\n")
    started = time.process_time()
    found = READER.read(Source("train.log", file, file.stat().st_size), IngestContext(signatures=(KILLED,)))
    assert time.process_time() - started < 30
    assert [row["line"] for row in rows(found)] == [1, 3]
    assert found.lines == 3
    assert any("were cut" in warning for warning in found.warnings)


def test_invalid_utf8_nul_bytes_and_utf16(tmp_path: Path) -> None:
    assert len(rows(ingest(tmp_path, b"\xff\xfe\xfa broken \xc3\n\0\0\0Killed\n"[3:], KILLED))) == 1
    wide = "start\nKilled\nüber\n".encode("utf-16")
    assert rows(ingest(tmp_path, wide, KILLED))[0]["line"] == 2


def test_lines_times_and_kind_of_the_record(tmp_path: Path) -> None:
    found = ingest(tmp_path, "2024-10-22 03:00:00 a\nb\n2024-10-22 04:00:00 c\n")
    assert (found.lines, found.text) == (3, True)
    assert (found.last_time or 0) - (found.first_time or 0) == 3_600_000_000


@pytest.mark.parametrize(
    ("name", "head", "accepted"),
    [
        ("train.log", b"step 1\n", True),
        ("noext", b"hello\n", True),
        ("empty.err", b"", True),
        ("hole.log", b"\0" * 4096, True),
        ("hole.bin", b"\0" * 4096, False),
        ("wide.txt", "x".encode("utf-16"), True),
        ("model.cpp", b"int main() {}\n", False),
        ("noise.log", bytes(range(256)) * 16, False),
        ("latin.log", "Größe überschritten\n".encode("latin-1"), True),
    ],
)
def test_what_is_text(name: str, head: bytes, accepted: bool) -> None:
    assert READER.accepts(Source(name, Path(name), len(head)), head) is accepted


def test_colours_are_text() -> None:
    assert is_text(b"\x1b[31mred\x1b[0m\n" * 50)


PIECES = st.sampled_from(
    [
        b"Traceback (most recent call last):\n",
        b'  File "a.py", line 3, in f\n    g()\n',
        b"ValueError: x\n",
        b"RuntimeError: Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n",
        b"\nDuring handling of the above exception, another exception occurred:\n\n",
        b"  | ",
        b"  + Exception Group Traceback (most recent call last):\n",
        b"  +-+---------------- 1 ----------------\n",
        b"[rank1]: ",
        b"0: ",
        b"2024-10-22 03:11:05,444 | INFO | a | ",
        b"step 3 loss 2.5 lr 1e-4\n",
        b"{'loss': 2.0, 'epoch': 0.1}\n",
        b"{'eval_loss': nan, 'train_runtime': 1}\n",
        b" 45%|####| 45/100 [00:10<00:12,  4.4it/s, loss=2]\r",
        b"Epoch 0:  41%|####| 87/212 [00:11<00:16,  7.61it/s, v_num=3]\n",
        b"Epoch: [0] [10/100] loss: 3 (3)\n",
        b" iteration 10/ 100 | lm loss: 1E+1 |\n",
        b"Namespace(lr=0.1, b=(1, 2)\n",
        b"args: {'a': {'b': [1,\n",
        b"Config:\n  lr: 0.1\n  - x\n",
        b'{\n  "a": 1,\n}\n',
        b"Args {\n    x: Some(\n        1,\n    ),\n}\n",
        b"  learning_rate ................ 0.1\n",
        b"python train.py --lr 0.1 --x \\\n",
        b"terminate called after throwing an instance of 'a'\n  what():  b\nframe #0: f + 0x1 (0x1 in x)\n",
        b'Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n  File "a", line 1 in b\n',
        b"  exitcode  : -6 (pid: 3)\n",
        b"srun: error: n: tasks 1-999999999: Killed\n",
        b"exit code 99999999999\n",
        b"[loss] Attempted loss scale: 1, reducing to 0\n",
        b"\xff\xfe\0\x1b[31m",
        b"\n",
        b"\r",
    ]
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(PIECES, st.binary(max_size=20)), max_size=25))
def test_whatever_a_log_holds_its_events_stand_in_it(tmp_path: Path, pieces: Sequence[bytes]) -> None:
    data = b"-" + b"".join(pieces)
    found = ingest(tmp_path, data, OOM, KILLED, NOISE)
    assert found.lines == len(data.split(b"\n")) - (data.endswith(b"\n") or not data)
    for row in found.events.to_pylist():
        assert 1 <= row["line"] <= max(found.lines, 1)
        assert 0 <= row["offset"] <= len(data)
        assert len(row["text"] or "") <= MAX_TEXT


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=600))
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    with suppress(UnreadableSource):
        found = ingest(tmp_path, data, KILLED)
        assert all(row["line"] >= 1 for row in found.events.to_pylist())
