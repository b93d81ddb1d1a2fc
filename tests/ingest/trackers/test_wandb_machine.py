from __future__ import annotations

from typing import Any

import pytest

NEW = {
    "os": "Linux-6.1-x86_64",
    "python": "CPython 3.12.3",
    "args": ["--lr", "3e-4", "--gradient_checkpointing"],
    "program": "train.py",
    "host": "node-7",
    "cpu_count": 64,
    "gpu": "NVIDIA A100-SXM4-80GB",
    "gpu_count": 2,
    "memory": {"total": "1081963270144"},
    "gpu_nvidia": [{"name": "NVIDIA A100-SXM4-80GB", "memoryTotal": "85899345920"}] * 2,
    "cudaVersion": "12.4",
}
OLD = {
    "os": "Linux-5.4",
    "python": "3.8.10",
    "cuda": None,
    "args": [],
    "program": "main.py",
    "gpu": "Tesla V100-SXM2-32GB",
    "gpu_count": 4,
    "memory": {"total": 503.5},
    "gpu_devices": [{"name": "Tesla V100-SXM2-32GB", "memory_total": 34089730048}] * 4,
}


@pytest.mark.parametrize(
    ("told", "count", "size", "host"),
    [(NEW, 2, 85_899_345_920, 1_081_963_270_144), (OLD, 4, 34_089_730_048, int(503.5 * 1024**3))],
)
def test_devices_and_memory_of_both_layouts(read: Any, told: dict[str, Any], count: int, size: int, host: int) -> None:
    found = read("files/wandb-metadata.json", told)
    devices = found.table.named("system.gpu")
    assert [event.attr("index") for event in devices] == list(range(count))
    assert {event.attr("memory_total_bytes") for event in devices} == {size}
    assert found.one("system.host").attr("memory_total_bytes") == host


def test_arguments_are_settings(read: Any) -> None:
    found = read("files/wandb-metadata.json", NEW)
    assert found.config()["learning_rate"] == 3e-4
    assert "gradient_checkpointing" in found.config()


def test_a_model_and_a_count_without_a_list(read: Any) -> None:
    found = read("wandb-metadata.json", {"program": "t.py", "gpu": "NVIDIA L4", "gpu_count": 3})
    assert [event.attr("name") for event in found.table.named("system.gpu")] == ["NVIDIA L4"] * 3


@pytest.mark.parametrize(
    "told",
    [
        {"gpu": 3, "gpu_count": "x", "memory": [], "args": "no"},
        {"gpu_nvidia": [1, None, {"name": 5, "memoryTotal": "x"}], "python": {"a": 1}},
        {"memory": {"total": "1e400"}},
        [],
    ],
)
def test_odd_values_are_survived(read: Any, told: Any) -> None:
    found = read("wandb-metadata.json", told)
    assert found.record.status in {"read", "skipped"}


def test_summary_and_settings_of_an_online_run(read: Any) -> None:
    summary = read("files/wandb-summary.json", '{"train/loss": NaN, "_step": 150, "_timestamp": 1.7e9, "_runtime": 9}')
    assert [step for step, _ in summary.metrics("loss")] == [150]
    wrapped = "wandb_version: 1\n_wandb:\n  value: {}\nlr:\n  desc: null\n  value: 0.5\n"
    wrapped += "batch_size:\n  value: 8\nfp16:\n  value: true\n"
    config = read("files/config.yaml", wrapped).config()
    assert (config["learning_rate"], config["batch_size"]) == (0.5, 8)


def test_a_traceback_of_the_client_itself_is_benign(read: Any) -> None:
    text = (
        "2026-01-01 10:00:00,000 INFO    MainThread:1 [wandb_setup.py:_flush():81] Current SDK version is 0.31.0\n"
        "2026-01-01 10:00:09,000 ERROR   wandb-AsyncioManager-main:1 [asyncio_manager.py:fn():197] Uncaught exception\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3/site-packages/wandb/sdk/mailbox/response_handle.py", line 123, in wait_async\n'
        "    raise HandleAbandonedError()\n"
        "wandb.sdk.mailbox.mailbox_handle.HandleAbandonedError\n"
    )
    found = read("logs/debug.log", text)
    assert found.record.kind == "W&B log"
    raised = found.table.of_kind("exception")
    assert [event.role for event in raised] == ["benign"]
    assert {event.severity for event in found.table.events} <= {None, "info", "warning"}
    assert read("logs/debug.log", text.replace("wandb_setup", "my_setup")).record.kind == "log"
