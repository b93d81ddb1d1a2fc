"""The state of devices and the device that stands out, from what monitors leave."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Facts = Callable[[dict[str, Any]], dict[str, Any]]
HEAD = "index, utilization.gpu [%], clocks.sm [MHz], temperature.gpu, pcie.link.width.current, pcie.link.width.max, pcie.link.gen.current, pcie.link.gen.max, ecc.errors.uncorrected.volatile.total\n"


def loop(**odd: dict[int, Any]) -> str:
    """Five rounds of four devices; `odd` gives columns of single devices other values."""
    usual = {"use": 98, "clock": 1410, "heat": 62, "width": 16, "generation": 4, "ecc": 0}
    rows = []
    for _ in range(5):
        for gpu in range(4):
            row = {name: odd.get(name, {}).get(gpu, value) for name, value in usual.items()}
            rows.append(
                f"{gpu}, {row['use']} %, {row['clock']} MHz, {row['heat']}, {row['width']}, 16, {row['generation']}, 4, {row['ecc']}\n"
            )
    return HEAD + "".join(rows)


def test_devices_that_are_alike(facts_of: Facts) -> None:
    found = facts_of({"gpu.csv": loop(clock={1: 1395}, heat={3: 69})})
    assert (found["gpu.ecc_uncorrected"], found["gpu.device_count_seen"]) == (0, 4)
    assert found["gpu.slowest_clock_share"] == pytest.approx(0.9894)
    assert not {"gpu.slowest_clock_device", "gpu.hottest_device", "gpu.pcie_degraded", "gpu.ecc_device"} & found.keys()


def test_a_device_that_is_held_down(facts_of: Facts) -> None:
    found = facts_of({"gpu.csv": loop(clock={2: 705}, heat={2: 91})})
    assert (found["gpu.slowest_clock_device"], found["gpu.slowest_clock_share"]) == ("GPU 2", 0.5)
    assert (found["gpu.hottest_device"], found["gpu.hotter_by"]) == ("GPU 2", 29)


def test_an_idle_device_has_low_clocks_by_nature(facts_of: Facts) -> None:
    found = facts_of({"gpu.csv": loop(use={2: 0}, clock={2: 210}, generation={2: 1})})
    assert found["gpu.device_count_seen"] == 3
    assert not {"gpu.slowest_clock_device", "gpu.pcie_degraded"} & found.keys()


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ({"width": {1: 4}}, "generation 4 x4 of generation 4 x16"),
        ({"generation": {1: 1}}, "generation 1 x16 of generation 4 x16"),
    ],
)
def test_a_bus_that_is_narrower_than_the_others(facts_of: Facts, odd: dict[str, Any], words: str) -> None:
    found = facts_of({"gpu.csv": loop(**odd)})
    assert (found["gpu.pcie_degraded"], found["gpu.pcie_link"]) == ("GPU 1", words)


def test_slots_that_are_narrow_by_design(facts_of: Facts) -> None:
    assert "gpu.pcie_degraded" not in facts_of({"gpu.csv": loop(width=dict.fromkeys(range(4), 8))})


def test_memory_errors_name_the_device(facts_of: Facts) -> None:
    found = facts_of({"gpu.csv": loop(ecc={3: 2})})
    assert (found["gpu.ecc_uncorrected"], found["gpu.ecc_device"]) == (2, "GPU 3")


DCGM = """# TYPE DCGM_FI_DEV_XID_ERRORS gauge
DCGM_FI_DEV_XID_ERRORS{gpu="0",Hostname="node17"} 0
DCGM_FI_DEV_XID_ERRORS{gpu="1",Hostname="node17"} 79
# TYPE DCGM_FI_DEV_ROW_REMAP_FAILURE gauge
DCGM_FI_DEV_ROW_REMAP_FAILURE{gpu="1",Hostname="node17"} 1
"""


def test_faults_that_a_monitor_read(facts_of: Facts) -> None:
    found = facts_of({"metrics.prom": DCGM})
    assert (found["gpu.xid"], found["gpu.xid_device"], found["gpu.remapping"]) == (79, "GPU 1 of node17", "failed")


LINKS = "GPU {gpu}: NVIDIA H100 (UUID: GPU-{gpu})\n\t Link 0: 26.562 GB/s\n\t Link 1: {second}\n"


def test_links_that_one_device_lacks(facts_of: Facts) -> None:
    text = LINKS.format(gpu=0, second="26.562 GB/s") + LINKS.format(gpu=1, second="<inactive>")
    assert facts_of({"nvlink.txt": text})["gpu.nvlink_down"] == 1
    alike = LINKS.format(gpu=0, second="<inactive>") + LINKS.format(gpu=1, second="<inactive>")
    assert facts_of({"nvlink.txt": alike})["gpu.nvlink_down"] == 0


def test_snapshots_that_repeat_are_series(facts_of: Facts) -> None:
    line = "[{gpu}] NVIDIA A100 | {heat}°C,  98 % | 71920 / 81920 MB | ana(71000M)\n"
    text = "".join(line.format(gpu=gpu, heat=60 + 20 * gpu) for _ in range(4) for gpu in range(2))
    found = facts_of({"gpustat.txt": text})
    assert (found["gpu.utilization_mean"], found["gpu.temperature_max"], found["gpu.hottest_device"]) == (
        98,
        80,
        "GPU 1",
    )


def test_a_user_who_is_on_fewer_devices_is_somebody_else(facts_of: Facts) -> None:
    line = "[{gpu}] NVIDIA A100 | 60°C,  98 % | 71920 / 81920 MB | ana:python/1(71000M) root:Xorg/2(4M){more}\n"
    text = "".join(line.format(gpu=gpu, more=" bob:triton/3(9000M)" if gpu == 2 else "") for gpu in range(4))
    assert facts_of({"gpustat.txt": text})["gpu.foreign_processes"] == 1
