"""Texts that a parser accepts and no event can hold, and texts that cost a parser memory without bound."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rca.errors import UnreadableSource
from rca.ingest.interface import IngestContext
from rca.ingest.tables.structured import parse_json, parse_toml

sys.path.insert(0, str(Path(__file__).parent))
from outcome import check

HALF = rb'"\ud800"'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("trainer_state.json", b'{"log_history": [{"step": 1, %b: 0.5}], %b: %b}' % (HALF, HALF, HALF)),
        ("config.json", b'{%b: %b, "a": {%b: %b}}' % (HALF, HALF, HALF, HALF)),
        ("log.jsonl", b'{"step": 1, %b: 0.5, "msg": %b}\n' % (HALF, HALF) * 9),
        ("wandb-summary.json", b'{"_step": 3, "loss": 1.0, %b: 1}' % HALF),
        (
            "rank0.pt.trace.json",
            b'{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": %b}], "traceEvents": [{"ph": "X", '
            b'"cat": "kernel", "name": %b, "pid": 0, "tid": 7, "ts": 1, "dur": 2}]}' % (HALF, HALF),
        ),
        (
            "pod.json",
            b'{"kind": "Pod", "apiVersion": "v1", "status": {"containerStatuses": [{"lastState": {"terminated": '
            b'{"exitCode": 1, "reason": 5}}}]}}',
        ),
        ("job.toml", b"\n".join(b"[" + b".".join([b"a"] * count) + b"]" for count in range(1, 1200, 9))),
    ],
)
def test_hostile_text(tmp_path: Path, name: str, data: bytes) -> None:
    check(tmp_path, name, data, IngestContext())


def test_pairs_and_escaped_backslashes_stay() -> None:
    assert parse_json(r'["\ud83d\ude00", "\\ud800", "a\ud800b"]', what="x") == ["\U0001f600", r"\ud800", "a\ufffdb"]


def test_a_toml_key_of_many_parts_is_refused() -> None:
    with pytest.raises(UnreadableSource, match="parts"):
        parse_toml(".".join(["a"] * 5000) + " = 1", what="x")
    assert parse_toml('a = "' + "." * 500 + '"', what="x") == {"a": "." * 500}
