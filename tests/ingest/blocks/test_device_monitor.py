"""Monitors of devices that write a table: `nvidia-smi dmon`, `pmon`, query loops inside logs."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from typing import Any

import pytest

DMON = """#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk  pviol  tviol     fb  dbecc  rxpci
#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %    MHz    MHz      %   bool     MB   errs   MB/s
 20250302   04:00:01      0    398     62      -     98     60   1593   1410      0      0  72704      0    512
 20250302   04:00:01      1    120     91     95     97     10   1593    705     88      1   1024      2    512
#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk  pviol  tviol     fb  dbecc  rxpci
#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %    MHz    MHz      %   bool     MB   errs   MB/s
 20250302   04:00:02      0    397     62     70     98     60   1593   1410      0      0  72704      0    512
 20250302   04:00:02      1    121     92     95     97     10   1593    690     88      0   1024      2    512
"""
DMON_CSV = (
    "#gpu, pwr, gtemp, sm, mclk, pclk\n#Idx, W, C, %, MHz, MHz\n0, 398, 62, 98, 1593, 1410\n1, 120, 91, -, 1593, 705\n"
)
PMON = """# gpu         pid   type     sm    mem    enc    dec    command
# Idx           #    C/G      %      %      %      %    name
    0      41233     C     98     60      -      -    python
    0      51233     C      0      1      -      -    triton server
    1          -     -      -      -      -      -    -
    0      41233     C     97     60      -      -    python
"""


def test_every_device_has_a_series_of_its_own(read: Any) -> None:
    series = {item.device: item for item in read("dmon.log", DMON).table.all_metrics("sm_clock")}
    assert {device: item.value.tolist() for device, item in series.items()} == {"0": [1410, 1410], "1": [705, 690]}
    assert series["0"].unit == "MHz"


def test_dmon_tells_times_units_and_gaps(read: Any) -> None:
    found = read("dmon.log", DMON)
    rows = [row for row in found.table.table.to_pylist() if row["name"] == "gpu_memory_used"]
    assert [(row["line"], row["value"], row["unit"], row["time"].isoformat()[11:19]) for row in rows[:2]] == [
        (3, 71.0, "GiB", "04:00:01"),
        (4, 1.0, "GiB", "04:00:01"),
    ]
    assert [value for _step, value in found.metrics("gpu_memory_temperature")] == [95, 70, 95]
    assert [value for _step, value in found.metrics("ecc_uncorrected")] == [0, 2, 0, 2]


def test_dmon_tells_which_device_heat_held_down(read: Any) -> None:
    event = read("dmon.log", DMON).one("system.throttle")
    assert (event.line, event.value, event.attr("gpu"), event.attr("reason")) == (4, 0.5, 1, "hw_thermal_slowdown")


def test_dmon_with_commas(read: Any) -> None:
    found = read("dmon.log", DMON_CSV)
    assert [value for _step, value in found.metrics("power")] == [398, 120]
    assert [value for _step, value in found.metrics("gpu_utilization")] == [98]


def test_pmon_names_the_processes_once(read: Any) -> None:
    found = read("pmon.log", PMON).table.named("system.gpu_process")
    assert [(event.line, event.attr("gpu"), event.attr("pid"), event.text) for event in found] == [
        (3, 0, 41233, "python"),
        (4, 0, 51233, "triton server"),
    ]


def test_a_loop_that_prints_its_head_again(read: Any) -> None:
    head = "index, name, utilization.gpu [%], memory.used [MiB], pcie.link.width.current\n"
    rows = "0, NVIDIA H100, 98 %, 1024 MiB, 16\n1, NVIDIA H100, [N/A], 2048 MiB, 8\n"
    found = read("loop.csv", head + rows + head + rows)
    assert [value for _step, value in found.metrics("gpu_utilization")] == [98, 98]
    assert [value for _step, value in found.metrics("gpu_memory_used")] == [1, 2, 1, 2]
    assert [event.attr("index") for event in found.table.named("system.gpu")] == [0, 1]
    assert {item.device: item.value.tolist() for item in found.table.all_metrics("pcie_width")} == {
        "0": [16, 16],
        "1": [8, 8],
    }


def test_a_loop_that_does_not_name_its_devices(read: Any) -> None:
    head = "timestamp, temperature.gpu, clocks.sm [MHz]\n"
    rows = "".join(
        f"2025/03/02 04:0{minute}:00.{place}00, {60 + 10 * place}, {1410 - place} MHz\n"
        for minute in range(3)
        for place in range(3)
    )
    series = read("loop.csv", head + rows).table.all_metrics("gpu_temperature")
    assert {item.device: item.value.tolist() for item in series} == {"0": [60] * 3, "1": [70] * 3, "2": [80] * 3}


def test_processes_of_a_query(read: Any) -> None:
    text = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\nGPU-1, 41233, python, 71000 MiB\nGPU-2, 7, x, [N/A]\n"
    first, second = read("apps.csv", text).table.named("system.gpu_process")
    assert (first.attr("gpu"), first.attr("pid"), first.attr("memory_bytes")) == ("GPU-1", 41233, 71000 * 2**20)
    assert second.attr("memory_bytes") is None


@pytest.mark.parametrize("text", ["# gpu sm\n", "# gpu pwr\n x y\n", "#gpu, pwr\n1\n", "# gpu pid type\n"])
def test_a_head_without_rows_says_nothing(read: Any, text: str) -> None:
    assert not [event for event in read("dmon.log", text).table.events if event.kind == "system"]
