"""Messages of both runs and of one alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from rca.compare.messages import compare_messages, said_by_both, severity_of
from rca.templates.mine import mined_together

from .sides import Made

TEXT = "2024-05-01 12:00:0{} node{}: NCCL WARN connect to 10.0.0.{} failed"


def test_what_both_say_up_to_numbers_is_shared() -> None:
    run = Made().says("nccl.warn", TEXT.format(1, 1, 1)).says("cuda.oom", "CUDA out of memory")
    healthy = Made().says("nccl.warn", TEXT.format(2, 7, 9))
    side = run.side()
    names = {side.events.get(event).name for event in said_by_both(side, healthy.side())}
    assert names == {"nccl.warn"}


def test_another_text_under_the_same_name_is_not_shared() -> None:
    run = Made().says("RuntimeError", "shape mismatch", kind="exception")
    healthy = Made().says("RuntimeError", "retry failed", kind="exception")
    assert said_by_both(run.side(), healthy.side()) == frozenset()


@pytest.mark.parametrize(("times", "shared"), [(1, True), (6, True), (7, False), (100, False)])
def test_what_is_said_far_more_often_is_not_shared(times: int, shared: bool) -> None:
    run, healthy = (
        Made().says("amp.skip", "skipping step", count=times),
        Made().says("amp.skip", "skipping step", count=2),
    )
    assert bool(said_by_both(run.side(), healthy.side())) is shared


def test_new_and_missing_lines_and_signatures(tmp_path: Path) -> None:
    run = Made("run").says("cuda.oom", "CUDA out of memory")
    run.log(tmp_path, "step 1 loss 2.0\nRuntimeError: it broke\n^^^^^^\nusing 8 workers now\n")
    healthy = Made("healthy").says("run.done", "training finished", severity="info")
    healthy.log(tmp_path, "step 1 loss 2.5\nsaved the model\n")
    mined = mined_together({"healthy": healthy.side().logs, "run": run.side().logs})
    rows = compare_messages(run.side(), healthy.side(), mined)
    assert [(row.kind, row.status, row.name) for row in rows] == [
        ("signature", "new", "cuda.oom"),
        ("signature", "missing", "run.done"),
        ("template", "new", "RuntimeError: it broke"),
        ("template", "new", "using <num> workers now"),
        ("template", "missing", "saved the model"),
    ]
    assert [row.severity for row in rows[2:4]] == ["error", "info"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ValueError: x", "error"), ("loss is nan", "error"), ("UserWarning: x", "warning"), ("epoch done", "info")],
)
def test_words_of_unknown_lines_have_a_severity(text: str, expected: str) -> None:
    assert severity_of(text) == expected
