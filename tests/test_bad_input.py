"""A run directory is hostile input: nothing in it ends the analysis, is executed, or leaves its folder."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from pathlib import Path

import pytest

from rca.diagnosis import Diagnosis
from rca.errors import NothingReadable, UsageError
from rca.pipeline import Options, analyze
from rca.report.registry import FORMATS

GOOD = "2026-01-01 10:00:00 INFO step 1 loss 2.0\n2026-01-01 10:00:01 INFO step 2 loss 1.9\n"


def diagnose(folder: Path, **options) -> Diagnosis:
    return analyze(folder, options=Options(experiments="none", **options))


def skipped(diagnosis: Diagnosis) -> dict[str, str]:
    return {source.path: source.why for source in diagnosis.sources if source.status == "skipped"}


def test_a_missing_directory_is_a_usage_error(tmp_path) -> None:
    with pytest.raises(UsageError, match="is not a directory"):
        diagnose(tmp_path / "absent")


def test_a_file_in_place_of_the_directory_is_a_usage_error(tmp_path) -> None:
    (tmp_path / "train.log").write_text(GOOD)
    with pytest.raises(UsageError, match="is not a directory"):
        diagnose(tmp_path / "train.log")


def test_an_empty_directory_holds_nothing_readable(tmp_path) -> None:
    with pytest.raises(NothingReadable, match="holds no files"):
        diagnose(tmp_path)


def test_only_junk_holds_nothing_readable_and_says_why(tmp_path) -> None:
    (tmp_path / "core.1234").write_bytes(bytes(range(256)) * 64)
    with pytest.raises(NothingReadable, match=r"core\.1234"):
        diagnose(tmp_path)


def test_junk_beside_a_log_is_skipped_with_its_reason(tmp_path) -> None:
    (tmp_path / "train.log").write_text(GOOD)
    (tmp_path / "core.1234").write_bytes(b"\x7fELF" + bytes(range(256)) * 16)
    found = diagnose(tmp_path)
    assert "a core dump" in skipped(found)["core.1234"]


def test_a_truncated_gzip_keeps_what_came_before_and_says_so(tmp_path) -> None:
    whole = gzip.compress("".join(f"step {number} loss 2.0\n" for number in range(20_000)).encode())
    (tmp_path / "train.log.gz").write_bytes(whole[: len(whole) // 2])
    found = diagnose(tmp_path)
    source = found.sources[0]
    assert source.status == "read"
    assert source.lines > 100
    assert any("ends too early" in warning for warning in source.warnings)


def test_a_line_of_a_hundred_megabytes(tmp_path) -> None:
    with (tmp_path / "train.log").open("w") as file:
        file.write("step 1 loss 2.0\n")
        for _ in range(100):
            file.write("x" * 1024 * 1024)
        file.write("\nRuntimeError: CUDA error: device-side assert triggered\n")
    found = diagnose(tmp_path)
    assert found.sources[0].lines == 3
    assert max((len(entry.text) for entry in found.timeline), default=0) <= 4096


def test_an_unreadable_file_is_skipped(tmp_path) -> None:
    (tmp_path / "train.log").write_text(GOOD)
    locked = tmp_path / "locked.log"
    locked.write_text(GOOD)
    locked.chmod(0)
    if os.access(locked, os.R_OK):
        locked.unlink()
        os.mkfifo(locked)  # root reads everything; a pipe nobody writes to is the unreadable file then
    found = diagnose(tmp_path)
    assert "locked.log" in skipped(found)


def test_symlinks_are_not_followed_out_of_the_directory_nor_in_circles(tmp_path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "secret.log").write_text("RuntimeError: outside\n")
    (run / "train.log").write_text(GOOD)
    (run / "loop").symlink_to(run)
    (run / "outside.log").symlink_to(tmp_path / "secret.log")
    found = diagnose(run)
    assert [source.path for source in found.sources if source.status == "read"] == ["train.log"]
    assert "outside.log" in skipped(found)


def test_invalid_utf8_is_read_all_the_same(tmp_path) -> None:
    (tmp_path / "train.log").write_bytes(b"step 1 loss 2.0\n\xff\xfe\x00garbled\xc3\nstep 2 loss nan\n")
    assert diagnose(tmp_path).sources[0].lines == 3


class _Exploding:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return (os.system, (f"touch {self.marker}",))


@pytest.mark.parametrize("name", ["memory.pickle", "model.pt", "weights.bin", "data.pkl", "fr_trace_0", "train.log"])
def test_a_pickle_is_never_loaded(tmp_path, name) -> None:
    run = tmp_path / "run"
    run.mkdir()
    marker = tmp_path / "executed"
    (run / "out.log").write_text(GOOD)
    (run / name).write_bytes(pickle.dumps(_Exploding(marker)))
    diagnose(run)
    assert not marker.exists()


def test_markup_in_a_log_line_is_inert_in_the_page(tmp_path) -> None:
    attack = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    (tmp_path / "train.log").write_text(f'{GOOD}Traceback (most recent call last):\n  File "{attack}", line 1, in f\n'
                                        f"RuntimeError: {attack}\n")  # fmt: skip
    page = FORMATS["html"].render(diagnose(tmp_path))
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_secrets_are_redacted_in_every_format(tmp_path) -> None:
    token = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    key = "AKIA" + "QWERTYUIOPASDFGH"
    (tmp_path / "train.log").write_text(
        f"{GOOD}RuntimeError: 401 Client Error with token {token}\nOSError: aws key {key} rejected\n"
    )
    (tmp_path / "training_args.json").write_text(json.dumps({"hub_token": token, "learning_rate": 0.1}))
    found = diagnose(tmp_path)
    for form in FORMATS.values():
        text = form.render(found)
        assert token not in text
        assert key not in text
    assert sum(found.redaction.counts.values()) >= 2


def test_deeply_nested_and_broken_configuration_files_are_told(tmp_path) -> None:
    (tmp_path / "train.log").write_text(GOOD)
    (tmp_path / "config.json").write_text("[" * 100_000)
    (tmp_path / "hparams.yaml").write_text("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n: : :\n")
    found = diagnose(tmp_path)
    assert set(skipped(found)) == {"hparams.yaml"}
    (config,) = (source for source in found.sources if source.path == "config.json")
    assert "nested" in config.warnings[0]


def test_the_same_run_gives_the_same_diagnosis(tmp_path) -> None:
    (tmp_path / "train.log").write_text(
        GOOD + "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)\n"
    )
    varying = {"generated", "timings"}
    first, second = diagnose(tmp_path), diagnose(tmp_path)
    assert first.model_dump(exclude=varying) == second.model_dump(exclude=varying)


def test_reading_in_several_processes_gives_the_same_diagnosis(tmp_path, monkeypatch) -> None:
    for rank in range(3):
        (tmp_path / f"rank_{rank}.log").write_text(GOOD)
    (tmp_path / "rank_1.log").write_text(GOOD + "ValueError: bad record\n")
    monkeypatch.setattr("rca.observation.pays", lambda _sizes: True)
    varying = {"generated", "timings"}
    assert diagnose(tmp_path).model_dump(exclude=varying) == diagnose(tmp_path, jobs=2).model_dump(exclude=varying)


@pytest.mark.parametrize(("before", "after"), [(b"\0" * 9000, b""), (b"", b"\0" * 9000), (b"\0" * 50, b"\0" * 9000)])
def test_a_log_that_a_crash_left_with_nul_bytes_is_read(tmp_path, before, after) -> None:
    (tmp_path / "train.log").write_bytes(before + GOOD.encode() + b"RuntimeError: CUDA out of memory" + after)
    (source,) = diagnose(tmp_path).sources
    assert (source.status, source.kind) == ("read", "log")
