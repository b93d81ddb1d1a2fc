"""Lines and logs to templates, with the place of the first; runs mined together share the numbers."""

import gzip
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rca.ingest.interface import Source
from rca.templates import mine
from rca.templates.mine import mined_together, run_templates, templates


def source(folder: Path, name: str, content: bytes) -> Source:
    file = folder / name
    file.write_bytes(content)
    return Source(path=name, file=file, size=len(content))


def test_lines_that_say_the_same_are_counted() -> None:
    found = templates(["step 1 loss 3.5", "saved /tmp/a/b", "step 2 loss 3.25", "", "step 30 loss 1"])
    assert [(item.text, item.count, item.example) for item in found] == [
        ("step <num> loss <num>", 3, "step 1 loss 3.5"),
        ("saved <path>", 1, "saved /tmp/a/b"),
    ]


def test_the_prefix_of_a_logger_is_no_part_of_the_message() -> None:
    lines = ["2024-05-01 12:00:00,100 - trainer - INFO - epoch one begins", "epoch one begins"]
    (only,) = templates(lines)
    assert (only.text, only.count) == ("epoch one begins", 2)


def test_a_run_keeps_the_place_of_the_first_line(tmp_path: Path) -> None:
    text = b"one two three\nloss 1\nloss 2\r\n\nTraceback here\nloss 3\n"
    found = run_templates([source(tmp_path, "train.log", text)]).templates
    place = {item.text: (item.line, item.offset, item.last_line, item.count) for item in found}
    assert place["loss <num>"] == (2, text.index(b"loss 1"), 6, 3)
    assert place["Traceback here"] == (5, text.index(b"Trace"), 5, 1)


def test_compressed_logs_and_progress_bars_are_read(tmp_path: Path) -> None:
    text = gzip.compress(b" 10%|#    | 1/10\r 20%|##   | 2/10\rdone after 3 s\n")
    found = run_templates([source(tmp_path, "train.log.gz", text)])
    assert [item.text for item in found.templates] == ["done after <num> s"]


def test_runs_mined_together_share_numbers(tmp_path: Path) -> None:
    good = source(tmp_path, "good.log", b"start of job 1\nstep 1 loss 2\n")
    bad = source(tmp_path, "bad.log", b"start of job 2\nstep 1 loss 9\nRuntimeError: it broke\n")
    found = mined_together({"good": [good], "bad": [bad]})
    known = {item.number for item in found["good"].templates}
    assert [item.text for item in found["bad"].templates if item.number not in known] == ["RuntimeError: it broke"]


def test_the_middle_of_a_long_log_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mine, "SOURCE_BYTES", 4000)
    text = b"first words\n" + b"step 1 loss 2.0\n" * 2000 + b"RuntimeError: last words\n"
    found = run_templates([source(tmp_path, "train.log", text)])
    last = found.templates[-1]
    assert (last.text, last.line) == ("RuntimeError: last words", 2002)
    assert found.lines + found.left_out == 2002
    assert text[last.offset :].startswith(b"RuntimeError")


def test_lines_made_to_differ_stop_costing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mine, "SHAPES", 100)
    text = "".join(f"{chr(97 + n % 26)}{chr(97 + n // 26)} said\n" for n in range(600)).encode()
    found = run_templates([source(tmp_path, "train.log", text)])
    assert found.left_out >= 500
    assert found.lines == 600


def test_a_source_that_is_gone_is_left_out(tmp_path: Path) -> None:
    gone = Source(path="gone.log", file=tmp_path / "gone.log", size=3)
    assert run_templates([gone]).templates == ()


def test_a_million_lines_take_seconds(tmp_path: Path) -> None:
    text = "".join(f"2024-05-01 12:00:00 INFO step {n} loss {1 / (n + 1):.6f}\n" for n in range(200_000)).encode()
    start = time.perf_counter()
    found = run_templates([source(tmp_path, "train.log", text * 5)])
    assert found.lines == 1_000_000
    assert time.perf_counter() - start < 10


@given(st.lists(st.binary(max_size=80), max_size=20))
def test_any_bytes_are_lines(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    text = b"\n".join(parts)
    found = run_templates([source(folder, "train.log", text)])
    assert sum(item.count for item in found.templates) + found.left_out >= found.lines
    for item in found.templates:
        assert text[item.offset :].split(b"\n", 1)[0].strip() != b""
        assert text.count(b"\n", 0, item.offset) == item.line - 1
