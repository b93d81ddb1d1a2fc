from __future__ import annotations

from typing import Any

VLLM = """# HELP vllm:e2e_request_latency_seconds Histogram.
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_bucket{le="1.0",model_name="m"} 3.0
vllm:e2e_request_latency_seconds_count{model_name="m"} 4.0
vllm:e2e_request_latency_seconds_sum{model_name="m"} 10.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{finished_reason="stop",model_name="a \\"b\\""} 3.0
vllm:request_success_total{finished_reason="length",model_name="m"} 1.0
broken line here
value_nan NaN
"""


def test_samples_keep_labels_and_histograms_give_means(read: Any) -> None:
    found = read("metrics.txt", VLLM)
    assert found.record.kind == "prometheus metrics"
    assert found.metrics("vllm:e2e_request_latency_seconds_mean") == [(None, 2.5)]
    assert "vllm:e2e_request_latency_seconds_bucket" not in found.table.metric_names
    assert [labels["finished_reason"] for labels in found.labels("vllm:request_success_total")] == ["stop", "length"]


def test_device_exporter_fields_get_common_names(read: Any) -> None:
    text = (
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
        'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 12 1700000000000\n'
        'DCGM_FI_DEV_FB_USED{gpu="0"} 2048\n'
        'DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0"} 64\n'
    )
    found = read("dcgm.prom", text)
    assert found.metrics("gpu_utilization") == [(None, 12.0)]
    assert found.metrics("gpu_memory_used") == [(None, 2.0)]
    assert found.one("system.throttle").attr("reason") == "hw_thermal_slowdown"
