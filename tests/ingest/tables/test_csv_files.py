from __future__ import annotations

import bz2
import gzip
import lzma
import math
from typing import Any

import pytest


def test_sparse_lightning_rows_keep_only_what_they_hold(read: Any) -> None:
    found = read(
        "metrics.csv",
        "epoch,lr-AdamW,step,train_loss,val_loss\n,0.001,0,,\n0,,0,1.5,\n,0.001,9,,\n0,,9,nan,\n0,,9,,0.7\n",
    )
    assert found.metrics("learning_rate") == [(0, 0.001), (9, 0.001)]
    steps, values = zip(*found.metrics("loss"), strict=True)
    assert steps == (0, 9)
    assert values[0] == 1.5
    assert math.isnan(values[1])
    assert found.metrics("eval_loss") == [(9, 0.7)]


@pytest.mark.parametrize(
    ("text", "name", "expected", "unit"),
    [
        ("step,step_ms\n3,250", "step_time", 0.25, "s"),
        ("iteration;data_s\n3;0.5", "data_time", 0.5, "s"),
        ("global_step\tloss\n3\t1e-3", "loss", 1e-3, ""),
        ('step,"lm loss"\n3,"2.5"', "loss", 2.5, ""),
        ("step,reserved_mib\n3,2048", "memory_reserved", 2.0, "GiB"),
        ("step,memory_allocated\n3,8589934592", "memory_allocated", 8.0, "GiB"),
        ("step,allocated\n3,20480", "memory_allocated", 20.0, "GiB"),
        ("step,loss\n3,inf", "loss", math.inf, ""),
        ("step,overflow\n3,1", "overflow", 1.0, ""),
    ],
)
def test_columns_get_common_names_and_units(read: Any, text: str, name: str, expected: float, unit: str) -> None:
    found = read("metrics.csv", f"{text}\n")
    assert found.metrics(name) == [(3, expected)]
    assert found.table.metric(name).unit == unit


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_compressed_tables_are_read(read: Any, suffix: str) -> None:
    packed = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix](b"step,loss\n1,2\n2,1\n")
    assert read(f"metrics.csv{suffix}", packed).metrics("loss") == [(1, 2.0), (2, 1.0)]


def test_the_rank_comes_from_the_path_or_from_a_column(read: Any) -> None:
    assert [
        series.rank for series in read("timing_rank5.csv", "step,step_s\n1,0.5\n").table.all_metrics("step_time")
    ] == [5]
    found = read("timing.csv", "step,rank,step_s\n1,0,0.5\n1,1,0.9\n2,0,0.5\n2,1,0.9\n").table.all_metrics("step_time")
    assert [(series.rank, list(series.value)) for series in found] == [(0, [0.5, 0.5]), (1, [0.9, 0.9])]


def test_a_batch_column_is_no_step_where_it_does_not_climb(read: Any) -> None:
    found = read("metrics.csv", "batch,loss\n8,3\n2,2\n9,1\n1,1\n8,1\n")
    assert [step for step, _ in found.metrics("loss")] == [None] * 5
    assert [value for _, value in found.metrics("batch")] == [8, 2, 9, 1, 8]


def test_epochs_stand_in_for_steps(read: Any) -> None:
    assert read("history.csv", "epoch,val_loss\n1,0.5\n2,0.4\n").metrics("eval_loss") == [(1, 0.5), (2, 0.4)]


def test_dates_are_times_and_clock_times_are_not(read: Any) -> None:
    dated = read("a.csv", "timestamp,loss\n2024/07/18 13:00:00.299,1\n2024/07/18 13:00:01.299,2\n")
    times = dated.table.table["time"].to_pylist()
    assert [time.isoformat() for time in times] == [
        "2024-07-18T13:00:00.299000+00:00",
        "2024-07-18T13:00:01.299000+00:00",
    ]
    assert read("b.csv", "time,loss\n09:01:32,1\n").table.table["time"].null_count == 1
    epoch = read("c.csv", "timestamp,loss\n1700000000.5,1\n").table.table["time"].to_pylist()
    assert epoch[0].timestamp() == 1700000000.5
    assert read("d.csv", "time,loss\n12.5,1\n").metrics("time") == [(None, 12.5)]


def test_repeating_texts_are_labels_and_free_texts_are_not(read: Any) -> None:
    found = read("a.csv", "step,model,note,loss\n1,base,one,1\n2,base,two,2\n3,tuned,three,3\n4,tuned,four,4\n")
    assert [labels.get("model") for labels in found.labels("loss")] == ["base", "base", "tuned", "tuned"]
    assert all("note" not in labels for labels in found.labels("loss"))


def test_ragged_rows_and_repeated_headers_are_left_out_with_a_word(read: Any) -> None:
    found = read("metrics.csv", "step,loss\n1,2\n2\n3,1,9,9\nstep,loss\n4,0.5\n")
    assert found.metrics("loss") == [(1, 2.0), (4, 0.5)]
    assert "2 rows of another length" in found.record.warnings[0]


def test_repeated_and_empty_column_names_are_told_apart(read: Any) -> None:
    assert set(read("a.csv", "step,loss,loss,\n1,2,3,4\n").table.metric_names) == {"loss", "loss.2", "column_4"}


@pytest.mark.parametrize(
    ("content", "why"),
    [("1,2\n3,4\n", "no header"), ("# only\n# comments\n", "no table"), ('a,b\n"unclosed,1\n' + "x" * 99, "")],
)
def test_what_is_no_table_is_skipped_or_empty(read: Any, content: str, why: str) -> None:
    found = read("metrics.csv", content)
    assert why in found.record.why


@pytest.mark.parametrize(
    ("name", "text", "metric"),
    [
        ("run-train-tag-loss.csv", "Wall time,Step,Value\n1700000000.5,10,2.5\n", "loss"),
        ("tag_val_loss.csv", "Wall time,Step,Value\n1700000000.5,10,2.5\n", "eval_loss"),
        ("wandb_export.csv", '"Step","run-7 - train/loss","run-7 - train/loss__MIN"\n10,2.5,2.0\n', "loss"),
    ],
)
def test_curves_that_trackers_export(read: Any, name: str, text: str, metric: str) -> None:
    assert read(name, text).metrics(metric) == [(10, 2.5)]


def test_a_wide_table_is_cut_with_a_word(read: Any) -> None:
    names = ",".join(f"layer{index}" for index in range(600))
    found = read("metrics.csv", f"step,{names}\n" + ",".join(["1"] * 601) + "\n")
    assert "first 512 of 601 columns" in found.record.warnings[0]


def test_a_cut_gzip_keeps_the_rows_before_the_cut(read: Any) -> None:
    rows = "".join(f"{step},{step * 0.37:.6f}\n" for step in range(20_000))
    found = read("metrics.csv.gz", gzip.compress(f"step,loss\n{rows}".encode())[:-2000])
    assert 1000 < len(found.metrics("loss")) < 20_000
    assert found.record.warnings


def test_utf16_tables_are_read(read: Any) -> None:
    assert read("metrics.csv", "step,loss\r\n1,2\r\n".encode("utf-16")).metrics("loss") == [(1, 2.0)]


def test_statistics_of_nsys_are_text_of_kernel_names(read: Any) -> None:
    header = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
    found = read("kern.csv", header + "71.0,912000000,4800,190000.0,void turing_sgemm_128x64_nn\n")
    assert found.metrics("total time (ns)") == []
