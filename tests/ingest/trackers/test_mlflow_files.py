"""A run in the file store of MLflow 3.17."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

RUN = "mlruns/494102951384059210/e522e927fbec423bb76c87ffb83d26bb"
META = (
    "artifact_uri: file:///srv/mlruns/1/e5/artifacts\nend_time: {end}\nentry_point_name: ''\nlifecycle_stage: active\n"
    "run_id: e522e927fbec423bb76c87ffb83d26bb\nrun_name: big\nstart_time: 1796072895284\nstatus: {status}\ntags: []\n"
)


@pytest.mark.parametrize(
    ("status", "word", "severity"),
    [("1", "RUNNING", "info"), ("3", "FINISHED", "info"), ("4", "FAILED", "error"), ("KILLED", "KILLED", "error")],
)
def test_the_state_of_a_run(read: Any, status: str, word: str, severity: str) -> None:
    event = read(f"{RUN}/meta.yaml", META.format(end="1796072905284", status=status)).one("tracker.run")
    assert (event.attr("status"), event.severity, event.attr("run")) == (word, severity, "big")
    assert (event.time, event.duration_us) == (1796072905284000, 10_000_000)


def test_a_run_that_never_ended_has_its_start(read: Any) -> None:
    event = read(f"{RUN}/meta.yaml", META.format(end="null", status="1")).one("tracker.run")
    assert (event.time, event.duration_us) == (1796072895284000, None)


@pytest.mark.parametrize("time", ["17960728952840000", "1796072895284000000000", "1e18", "nan", "-1"])
def test_a_point_of_no_possible_time_keeps_its_value(read: Any, time: str) -> None:
    found = read(f"{RUN}/metrics/loss", f"1796072895284 0.5 1\n{time} 0.4 2\n")
    assert found.metrics("loss") == [(1, 0.5), (2, 0.4)]
    assert [row["time"] is None for row in found.table.table.to_pylist()] == [False, True]


def test_an_experiment_is_no_setting_of_the_job(read: Any) -> None:
    text = "artifact_location: file:///srv/1\nexperiment_id: '1'\nlifecycle_stage: active\nname: asr\n"
    found = read("mlruns/1/meta.yaml", text)
    assert (found.record.status, len(found.table)) == ("read", 0)


def test_nested_names_and_data_sets_of_points(read: Any) -> None:
    assert read(f"{RUN}/params/optimizer/name", "AdamW").config() == {"optimizer": "adamw"}
    points = "1700000000000 2.5 0 wikitext a1b2\n1700000001000 2.0 10 wikitext a1b2\n"
    assert read(f"{RUN}/metrics/train/loss", points).metrics("loss") == [(0, 2.5), (10, 2.0)]


def test_tags(read: Any) -> None:
    assert read(f"{RUN}/tags/mlflow.source.git.commit", "abc12").config() == {"git_commit": "abc12"}
    assert read(f"{RUN}/tags/stage", "pretrain").config() == {"tags.stage": "pretrain"}
    assert len(read(f"{RUN}/tags/mlflow.user", "root").table) == 0


def test_readings_of_a_device(read: Any) -> None:
    text = "1700000000000 90.0 0\n1700000010000 80.0 1\n"
    found = read(f"{RUN}/metrics/system/gpu_3_utilization_percentage", text)
    assert found.metrics("gpu_utilization") == [(None, 90.0), (None, 80.0)]
    assert found.labels("gpu_utilization") == [{"gpu": 3}] * 2
    memory = read(f"{RUN}/metrics/system/gpu_0_memory_usage_megabytes", "1700000000000 1073.741824 0\n")
    assert memory.metrics("gpu_memory_used") == [(None, pytest.approx(1.0))]


def test_the_database_says_how_to_export(read: Any) -> None:
    assert "mlflow experiments csv" in read("mlflow.db", b"SQLite format 3\0" + b"\0" * 100).record.why


NAMES = st.sampled_from(
    ["meta.yaml", "metrics/loss", "metrics/system/gpu_0_utilization_percentage", "params/a/b", "tags/x"]
)
PARTS = st.sampled_from(
    ["lifecycle_stage: ", "run_id: ", "status: ", "start_time: ", "1e999", "nan", "{", "1796072895284 "]
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, parts=st.lists(PARTS | st.text(max_size=6) | st.just("\n") | st.just("1.0 2 "), max_size=14))
def test_any_text_in_any_place(read: Any, name: str, parts: list[str]) -> None:
    read(f"{RUN}/{name}", "".join(parts).encode("utf-8", "replace"))
