from __future__ import annotations

import json
import math
from typing import Any

import pytest

from rca.ingest.tables import json_lines
from rca.ingest.weights.generated_text import repetition


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_rows_with_different_keys_become_series(read: Any) -> None:
    found = read("log.jsonl", lines({"step": 1, "loss": 2.0}, {"step": 1, "eval/loss": 3.0}, {"step": 2, "loss": 1.0}))
    assert found.metrics("loss") == [(1, 2.0), (2, 1.0)]
    assert found.metrics("eval_loss") == [(1, 3.0)]


def test_a_tracker_history_gives_steps_times_and_nested_names(read: Any) -> None:
    found = read(
        "wandb-history.jsonl", lines({"_step": 7, "_timestamp": 1700000000.0, "train": {"loss": 2.5}, "ok": True})
    )
    assert found.metrics("loss") == [(7, 2.5)]
    assert found.metrics("ok") == [(7, 1.0)]
    assert found.table.table["time"].null_count == 0


def test_bare_nan_and_text_numbers_are_values(read: Any) -> None:
    found = read("log.jsonl", '{"step": 1, "loss": NaN}\n{"step": 2, "loss": "1e-2"}\n{"step": 3, "loss": "inf"}\n')
    values = [value for _, value in found.metrics("loss")]
    assert math.isnan(values[0])
    assert values[1:] == [0.01, math.inf]


def test_broken_lines_are_counted_not_fatal(read: Any) -> None:
    deep = "[" * 100_000
    found = read(
        "log.jsonl", f'{{"step": 1, "loss": 2}}\nnot json\n{{"step": 2, "lo\n[1]\n{deep}\n{{"step": 3, "loss": 1}}\n'
    )
    assert found.metrics("loss") == [(1, 2.0), (3, 1.0)]
    assert "4 lines are no JSON objects" in found.record.warnings[0]


def test_a_file_without_objects_is_skipped_with_a_reason(read: Any) -> None:
    found = read("log.jsonl", "nothing here\nat all\n")
    assert found.record.status == "skipped"
    assert "no JSON object" in found.record.why


def test_structured_logs_are_left_to_the_text_reader(read: Any) -> None:
    found = read("app.jsonl", lines({"level": "INFO", "message": "hello"}, {"level": "ERROR", "message": "loss 3"}))
    assert found.record.kind == "wrapped log"


def test_requests_keep_their_fields_and_labels(read: Any) -> None:
    rows = [
        {"t": "2025-10-02 06:00:10", "model": "a", "prompt": 10, "completion": 5, "e2e": 1.5, "finish_reason": reason}
        for reason in ("stop", "length", "stop", "length")
    ]
    found = read("requests.jsonl", lines(*rows))
    assert [value for _, value in found.metrics("prompt")] == [10.0] * 4
    assert [value for _, value in found.metrics("finished_by_length")] == [0.0, 1.0, 0.0, 1.0]
    assert found.labels("e2e")[1] == {"model": "a", "finish_reason": "length"}


def test_batches_of_tokens_tell_lengths_masks_and_padding(read: Any) -> None:
    rows = [
        {"input_ids": [5, 6, 7, 0], "labels": [-100, -100, 7, -100], "attention_mask": [1, 1, 1, 0]},
        {"input_ids": [[5, 900]], "labels": [-100, -100], "attention_mask": [[1, 1]]},
    ]
    found = read("batch.jsonl", lines(*rows))
    assert [value for _, value in found.metrics("sequence_length")] == [4.0, 2.0]
    assert [value for _, value in found.metrics("sequence_max_id")] == [7.0, 900.0]
    assert [value for _, value in found.metrics("labels_ignored_share")] == [0.75, 1.0]
    assert [value for _, value in found.metrics("padding_share")] == [0.25, 0.0]


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("the quick brown fox jumps over the lazy dog and then it sleeps in the warm sun all day long", 0.0, 0.05),
        ("and again and again and again and again and again and again and again and again", 0.7, 1.0),
        ("!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!", 0.9, 1.0),
        ("", 0.0, 0.0),
        ("short", 0.0, 0.0),
    ],
)
def test_repetition_is_the_share_of_repeated_phrases(text: str, low: float, high: float) -> None:
    assert low <= repetition(text) <= high


def test_generated_texts_are_measured_not_kept(read: Any) -> None:
    found = read(
        "samples.jsonl", lines(*({"id": index, "output": "na na na na na na na na na na"} for index in range(3)))
    )
    assert all(value > 0.7 for _, value in found.metrics("output_repetition"))
    assert "na na" not in str(found.table.table.to_pylist())


def test_a_time_that_is_a_list_or_an_object_is_no_time(read: Any) -> None:
    found = read("log.jsonl", '{"step": 1, "time": [1, 2], "loss": 0.5}\n{"step": 2, "time": {"a": 1}, "loss": 0.4}\n')
    assert found.metrics("loss") == [(1, 0.5), (2, 0.4)]


def test_rows_of_ever_new_keys_are_read_up_to_so_many_cells(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "_MAX_CELLS", 3_000)
    lines = "".join(f'{{"step": {step}, "loss": 0.5, "k{step}": 1}}\n' for step in range(100))
    found = read("log.jsonl", lines)
    assert len(found.metrics("loss")) == 100
    assert "only the first 30 of 102 keys" in found.record.warnings[0]
