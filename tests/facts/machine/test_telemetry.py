from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from ..tables import START, Run


def watched(devices: Mapping[int, Mapping[str, Sequence[float]]], *, seconds: float | None = 60) -> Run:
    """Readings of several devices, interleaved as nvidia-smi writes them."""
    made = Run()
    source = made.source("gpu.csv")
    line = 0
    for index in range(max(len(values) for device in devices.values() for values in device.values())):
        for gpu, device in devices.items():
            line += 1
            for name, values in device.items():
                if index < len(values):
                    time = None if seconds is None else START + int(index * seconds * 1e6)
                    source.add(
                        kind="metric", name=name, value=float(values[index]), line=line, time=time, attrs={"gpu": gpu}
                    )
    return made


def test_busy_devices() -> None:
    found = watched({gpu: {"gpu_utilization": [98, 99, 97, 100]} for gpu in range(2)}).values()
    assert found["gpu.utilization_mean"] == pytest.approx(98.5)
    assert found["gpu.utilization_low_share"] == 0
    assert found["gpu.utilization_spread"] == 0


def test_starved_device() -> None:
    found = watched({0: {"gpu_utilization": [0, 0, 90, 0, 10, 0, 0, 80]}}).values()
    assert found["gpu.utilization_mean"] == pytest.approx(22.5)
    assert found["gpu.utilization_low_share"] == 0.75


def test_a_snapshot_is_no_utilization_but_tells_the_idle_device() -> None:
    found = watched({0: {"gpu_utilization": [100]}, 1: {"gpu_utilization": [30]}}).values()
    assert "gpu.utilization_mean" not in found
    assert found["gpu.utilization_spread"] == 70
    assert found["gpu.utilization_idlest"] == "1"
    after = watched({0: {"gpu_utilization": [0]}, 1: {"gpu_utilization": [2]}}).values()
    assert "gpu.utilization_spread" not in after


def test_clocks_that_fall_with_heat() -> None:
    hot = {"sm_clock": np.linspace(1410, 500, 40), "gpu_temperature": np.linspace(60, 90, 40)}
    cool = {"sm_clock": [1410] * 40, "gpu_temperature": [60] * 40}
    run = watched({0: cool, 1: hot}).curves({"throughput": np.linspace(100, 30, 40)}, seconds=60)
    found = run.values()
    assert found["gpu.clock_drop"] == pytest.approx(1 - 600 / 1320, abs=0.03)
    assert found["gpu.temperature_max"] == 90
    assert found["gpu.temperature_rise"] == pytest.approx(24, abs=2)
    assert found["gpu.clock_throughput_correlation"] == pytest.approx(0.5, abs=0.01)
    assert watched({1: hot}).curves({"throughput": np.linspace(100, 30, 40)}, seconds=60).values()[
        "gpu.clock_throughput_correlation"
    ] == pytest.approx(1)


def test_clocks_of_busy_devices_against_their_highest() -> None:
    device = {"sm_clock": [700, 700, 200], "sm_clock_max": [1400] * 3, "gpu_utilization": [100, 100, 0]}
    assert watched({0: device}).values()["gpu.clock_of_max"] == pytest.approx(0.5)


def test_steady_clocks_do_not_drop() -> None:
    found = watched({0: {"sm_clock": [1400, 1410] * 10}}).values()
    assert found["gpu.clock_drop"] == pytest.approx(0, abs=0.01)
    assert "gpu.clock_drop" not in watched({0: {"sm_clock": [1400, 700]}}).values()


def throttled(*reasons: tuple[str, float]) -> dict[str, Any]:
    run = Run()
    for reason, share in reasons:
        run.source("gpu.csv").add(
            kind="system", name="system.throttle", value=share, attrs={"gpu": 0, "reason": reason}
        )
    return run.values()


def test_the_most_serious_reason_is_told() -> None:
    found = throttled(
        ("sw_power_cap", 0.9), ("sw_thermal_slowdown", 0.6), ("hw_thermal_slowdown", 0.2), ("gpu_idle", 1)
    )
    assert found["gpu.throttle_reason"] == "hw_thermal_slowdown"
    assert found["gpu.throttle_share"] == 0.2
    assert found["gpu.power_capped"] is True


def test_the_power_cap_is_a_reason_only_where_clocks_are_low() -> None:
    assert "gpu.throttle_reason" not in throttled(("sw_power_cap", 1.0))
    run = watched({0: {"sm_clock": [1400] * 5 + [900] * 5}})
    run.source("gpu.csv").add(
        kind="system", name="system.throttle", value=1.0, attrs={"gpu": 0, "reason": "sw_power_cap"}
    )
    assert run.values()["gpu.throttle_reason"] == "sw_power_cap"


def test_an_idle_device_is_not_throttled() -> None:
    found = throttled(("gpu_idle", 1.0), ("applications_clocks_setting", 1.0))
    assert not [name for name in found if name.startswith("gpu.")]


@pytest.mark.parametrize(("power", "capped"), [(398.0, True), (250.0, False)])
def test_power_at_its_limit(power: float, capped: bool) -> None:
    found = watched({0: {"power": [power] * 5, "power_limit": [400.0] * 5}}).values()
    assert found["gpu.power_capped"] is capped


def test_temperature_of_a_status_table() -> None:
    run = Run()
    run.source("smi.txt").add(kind="system", name="system.gpu", attrs={"name": "A100", "temperature": 91})
    assert run.values()["gpu.temperature_max"] == 91


def test_without_readings_there_is_no_telemetry() -> None:
    found = Run().curves({"loss": [3.0, 2.0, 1.0]}).values()
    assert not [name for name in found if name.startswith("gpu.")]
