from __future__ import annotations

import sys

import pytest

from tests.benchmarks.scale.fresh import machine, measure, median, side_by_side


def job(text: str) -> list[str]:
    return [sys.executable, "-S", "-c", text]


def test_a_large_starter_does_not_count_as_memory_of_the_job() -> None:
    held = bytearray(b"1") * 200_000_000
    small, large = (measure(job(text))[0] for text in ("print(7)", "held = bytearray(b'1') * 100_000_000"))
    assert len(held)
    assert small.printed == "7\n"
    assert small.peak_mb < 50
    assert 100 < large.peak_mb < 150


def test_processes_of_a_job_count() -> None:
    text = "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'x = b\"1\" * 100_000_000'])"
    assert measure(job(text))[0].peak_mb > 100


def test_jobs_take_turns_and_medians_are_taken() -> None:
    taken = side_by_side({"a": job("pass"), "b": job("pass")}, 3)
    assert [len(runs) for runs in taken.values()] == [3, 3]
    middle = median(taken["a"])
    assert min(run.wall_s for run in taken["a"]) <= middle.wall_s
    assert middle.cpu_s >= 0


def test_a_job_that_fails_is_told() -> None:
    with pytest.raises(RuntimeError, match=r"code 3: (?s:.*)broken"):
        measure(job("import sys; print('broken', file=sys.stderr); sys.exit(3)"))
    with pytest.raises(RuntimeError, match="could not be started"):
        measure(["/nonexistent/program"])


def test_the_machine_is_named() -> None:
    assert "cores" in machine()
    assert "load average" in machine()
