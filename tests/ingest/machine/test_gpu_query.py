# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from typing import Any

import pytest

HEADER = (
    "timestamp, index, name, temperature.gpu, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%], "
    "memory.used [MiB], memory.total [MiB], "
)
ROWS = (
    "2024/07/18 13:00:00.299, 0, NVIDIA A100-SXM4-80GB, 58, 386.00 W, 1410 MHz, 98 %, 4096 MiB, 81920 MiB, Not Active\n"
    "2024/07/18 13:00:00.300, 1, NVIDIA A100-SXM4-80GB, 88, [N/A], 540 MHz, 99 %, 8192 MiB, 81920 MiB, Active\n"
    "2024/07/18 13:01:00.299, 0, NVIDIA A100-SXM4-80GB, 59, 385.00 W, 1410 MHz, 97 %, 4096 MiB, 81920 MiB, Not Active\n"
)


def test_readings_are_metrics_labelled_with_the_device(read: Any) -> None:
    found = read("gpu.csv", f"{HEADER}clocks_throttle_reasons.sw_thermal_slowdown\n{ROWS}")
    assert [value for _, value in found.metrics("sm_clock")] == [1410.0, 540.0, 1410.0]
    assert [value for _, value in found.metrics("power")] == [386.0, 385.0]
    assert [value for _, value in found.metrics("gpu_memory_used")] == [4.0, 8.0, 4.0]
    assert [labels["gpu"] for labels in found.labels("gpu_temperature")] == [0, 1, 0]
    devices = found.table.named("system.gpu")
    assert [(device.attr("index"), device.attr("name")) for device in devices] == [
        (0, "NVIDIA A100-SXM4-80GB"),
        (1, "NVIDIA A100-SXM4-80GB"),
    ]
    assert [device.time for device in devices] == [1721307600299000, 1721307600300000]


def test_named_throttle_reasons_become_events_and_series(read: Any) -> None:
    found = read("gpu.txt", f"{HEADER}clocks_event_reasons.sw_thermal_slowdown\n{ROWS}")
    throttle = found.one("system.throttle")
    assert throttle.value == 1.0
    assert (throttle.attr("gpu"), throttle.attr("reason")) == (1, "sw_thermal_slowdown")
    assert [value for _, value in found.metrics("throttle_sw_thermal_slowdown")] == [0.0, 1.0, 0.0]


def test_the_bit_mask_of_reasons_is_taken_apart(read: Any) -> None:
    found = read(
        "query.csv",
        "index, clocks_throttle_reasons.active\n0, 0x0000000000000001\n0, 0x0000000000000044\n0, 0x0000000000000000\n",
    )
    reasons = {event.attr("reason"): event.value for event in found.table.named("system.throttle")}
    assert set(reasons) == {"gpu_idle", "sw_power_cap", "hw_thermal_slowdown"}
    assert all(abs(value - 1 / 3) < 1e-9 for value in reasons.values())


def test_values_without_units_are_read_too(read: Any) -> None:
    found = read("query.csv", "index, utilization.gpu [%], memory.used [MiB]\n0, 55, 2048\n1, [N/A], 1024\n")
    assert [value for _, value in found.metrics("gpu_utilization")] == [55.0]
    assert [value for _, value in found.metrics("gpu_memory_used")] == [2.0, 1.0]


def test_rows_without_a_head_are_told_by_their_units(read: Any) -> None:
    row = "2025/03/02 04:00:0{s}.123, {gpu}, NVIDIA A100-SXM4-80GB, 62, 9{gpu} %, 1024 MiB, 2048 MiB, 398.11 W, 1410 MHz\n"
    found = read("gpu.log.csv", "".join(row.format(s=s, gpu=gpu) for s in range(2) for gpu in range(2)))
    assert {item.device: item.value.tolist() for item in found.table.all_metrics("gpu_utilization")} == {
        "0": [90, 90],
        "1": [91, 91],
    }
    assert [value for _step, value in found.metrics("gpu_memory_total")] == [2.0] * 4
    assert "gpu_temperature" not in found.table.metric_names, "a bare number may be anything"
    assert [event.line for event in found.table.named("system.gpu")] == [1, 2]


@pytest.mark.parametrize(
    ("text", "name", "series"),
    [
        ("timestamp,gpu,Hostname,DCGM_FI_DEV_GPU_TEMP,DCGM_FI_DEV_FB_USED\n1740888000,0,n1,62,1024\n1740888000,1,n1,91,2048\n", "gpu_memory_used", {"n1 0": [1], "n1 1": [2]}),
        ("Timestamp, DeviceId, GPU Utilization (%), GPU Core Temperature (Celsius Degree)\n06:14:46.000, 0, 98.00, 62\n06:14:46.000, 1, 97.00, 63\n", "gpu_temperature", {"0": [62], "1": [63]}),
        ("device,Temperature (Sensor junction) (C),GPU use (%)\ncard0,42.0,98\ncard1,99.0,99\n", "gpu_temperature", {"0": [42], "1": [99]}),
    ],
)  # fmt: skip
def test_tables_of_other_monitors(read: Any, text: str, name: str, series: dict[str, list[float]]) -> None:
    found = read("devices.csv", text)
    assert {item.device: item.value.tolist() for item in found.table.all_metrics(name)} == series
