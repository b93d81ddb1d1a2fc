"""JSON that tools around a job print: gpustat, rocm-smi, Slurm, Prometheus, pip and conda."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from typing import Any

import pytest


def test_gpustat(read: Any) -> None:
    process = {"username": "ana", "command": "python", "gpu_memory_usage": 71000, "pid": 41233}
    device = {
        "index": 1,
        "uuid": "GPU-a",
        "name": "NVIDIA A100",
        "temperature.gpu": 62,
        "utilization.gpu": 98,
        "power.draw": 398,
        "enforced.power.limit": 400,
        "memory.used": 1024,
        "memory.total": 81920,
        "processes": [process],
    }
    document = {
        "hostname": "node17",
        "driver_version": "535.1",
        "query_time": "2025-03-02T04:00:00.1",
        "gpus": [device],
    }
    found = read("gpustat.json", document)
    event = found.one("system.gpu")
    wanted = {"index": 1, "temperature": 62.0, "utilization": 98.0, "power_w": 398.0, "memory_used_bytes": 2**30}
    assert {key: event.attr(key) for key in wanted} == wanted
    assert (event.host, event.time) == ("node17", 1740888000 * 10**6)
    assert found.one("system.gpu_process").attr("memory_bytes") == 71000 * 2**20


def test_rocm_smi(read: Any) -> None:
    card = {"Temperature (Sensor junction) (C)": "99.0", "GPU use (%)": "98", "VRAM Total Memory (B)": "68702699520"}
    event = read("rocm.json", {"card1": card, "system": {"Driver version": "6.3.6"}}).one("system.gpu")
    wanted = {
        "index": 1,
        "temperature": 99.0,
        "utilization": 98.0,
        "memory_total_bytes": 68702699520,
        "driver": "6.3.6",
    }
    assert {key: event.attr(key) for key in wanted} == wanted


NEW = {
    "job_id": 991,
    "name": "train",
    "nodes": "n[1-4]",
    "exit_code": {"return_code": {"set": True, "number": 0}, "signal": {"id": {"set": True, "number": 9}}},
    "state": {"current": ["OUT_OF_MEMORY"], "reason": "None"},
    "time": {"elapsed": 7200, "limit": {"set": True, "infinite": False, "number": 1440}},
    "steps": [
        {
            "step": {"id": "991.0", "name": "python"},
            "state": ["OUT_OF_MEMORY"],
            "tres": {"requested": {"max": [{"type": "mem", "count": 549755813888, "node": "n2"}]}},
        }
    ],
}
OLD = {"job_id": 5, "job_state": "TIMEOUT", "exit_code": 0, "time_limit": 60, "nodes": "n1"}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (NEW, {"state": "OUT_OF_MEMORY", "signal": "SIGKILL", "elapsed_s": 7200.0, "time_limit_s": 86400.0, "nodes": "n[1-4]"}),
        (OLD, {"state": "TIMEOUT", "exit_code": 0, "time_limit_s": 3600.0, "job_id": "5"}),
    ],
)  # fmt: skip
def test_slurm(read: Any, job: dict[str, Any], expected: dict[str, Any]) -> None:
    events = read("jobs.json", {"jobs": [job], "meta": {}}).table.named("system.slurm_job")
    assert {key: events[0].attr(key) for key in expected} == expected
    assert events[0].severity == "error"
    assert [event.attr("max_rss_bytes") for event in events[1:]] == ([549755813888] if job is NEW else [])


def test_answers_of_prometheus(read: Any) -> None:
    series = [
        {"metric": {"__name__": "DCGM_FI_DEV_FB_USED", "gpu": gpu, "Hostname": "node17"}, "values": [[1740888000, "1024"], [1740888015.5, "2048"]]}
        for gpu in ("0", "1")
    ]  # fmt: skip
    series.append({"metric": {"__name__": "train_loss", "rank": "3"}, "values": [[1740888000, "NaN"], [1, 2, 3], "x"]})
    found = read("range.json", {"status": "success", "data": {"resultType": "matrix", "result": series}})
    assert found.record.kind == "prometheus query"
    assert {item.device: item.value.tolist() for item in found.table.all_metrics("gpu_memory_used")} == {
        "node17 0": [1, 2],
        "node17 1": [1, 2],
    }
    (loss,) = found.table.all_metrics("loss")
    assert (loss.rank, len(loss)) == (3, 1)


def test_text_of_prometheus_names_host_and_rank(read: Any) -> None:
    text = '# TYPE DCGM_FI_DEV_GPU_TEMP gauge\nDCGM_FI_DEV_GPU_TEMP{gpu="1",Hostname="node17"} 91\n# TYPE train_loss gauge\ntrain_loss{rank="3"} 2.5 1740888000.5 # {trace_id="a"} 1\n# EOF\n'
    rows = {row["name"]: row for row in read("metrics.prom", text).table.table.to_pylist()}
    assert (rows["gpu_temperature"]["host"], rows["gpu_temperature"]["unit"]) == ("node17", "°C")
    assert (rows["loss"]["rank"], rows["loss"]["time"].timestamp()) == (3, 1740888000.5)


def test_exports_of_grafana(read: Any) -> None:
    text = '"Time","DCGM_FI_DEV_GPU_TEMP{gpu=""0"", Hostname=""n1""}","DCGM_FI_DEV_GPU_TEMP{gpu=""1"", Hostname=""n1""}"\n1740888000000,62,91\n1740888015000,63,92\n'
    found = read("export.csv", text)
    assert {item.device: item.value.tolist() for item in found.table.all_metrics("gpu_temperature")} == {
        "n1 0": [62, 63],
        "n1 1": [91, 92],
    }


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("pip.json", [{"name": "torch", "version": "2.4.0+cu121"}], {"torch": "2.4.0+cu121"}),
        ("conda.json", [{"name": "pytorch", "version": "2.1.0", "channel": "pytorch", "build_string": "py3.11"}], {"torch": "2.1.0"}),
        ("conda.txt", "# This file may be used to create an environment using:\n# platform: linux-64\nnumpy=1.26.4=py311h6\npytorch=2.1.0=py3.11_cuda12.1\n", {"numpy": "1.26.4", "torch": "2.1.0"}),
        ("spec.txt", "# platform: linux-64\n@EXPLICIT\nhttps://conda.example/pytorch/linux-64/pytorch-2.1.0-py3.11_cuda12.1_0.tar.bz2\n", {"torch": "2.1.0"}),
    ],
)  # fmt: skip
def test_package_lists(read: Any, name: str, content: Any, expected: dict[str, str]) -> None:
    assert read(name, content).packages() == expected
