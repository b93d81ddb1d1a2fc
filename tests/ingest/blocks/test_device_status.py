"""Snapshots of devices: gpustat, dcgmi, rocm-smi, the long report, slices, links."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from typing import Any

import pytest

GPUSTAT = """node17                     Sun Mar  2 04:00:00 2025  535.104.05
\x1b[36m[0]\x1b[m \x1b[34mNVIDIA A100-SXM4-80GB\x1b[m |\x1b[1m\x1b[31m 62°C\x1b[m, \x1b[32m 98 %\x1b[m | \x1b[33m71920\x1b[m / 81920 MB | ana(71000M)
[1] NVIDIA A100-SXM4-80GB | 91°C,  30 %, 120 / 400 W | 71920 / 81920 MB | ana:python/41233(71000M) bob:triton/5(900M)
[2] NVIDIA A100-SXM4-80GB | 45'C,   ? % |     0 / 81920 MB |
"""


def test_gpustat(read: Any) -> None:
    found = read("gpustat.txt", GPUSTAT)
    devices = found.table.named("system.gpu")
    assert [
        (event.host, event.attr("index"), event.attr("temperature"), event.attr("utilization")) for event in devices
    ] == [
        ("node17", 0, 62, 98),
        ("node17", 1, 91, 30),
        ("node17", 2, 45, None),
    ]
    assert (devices[1].attr("power_w"), devices[1].attr("power_limit_w")) == (120, 400)
    processes = found.table.named("system.gpu_process")
    assert [
        (event.attr("gpu"), event.attr("user"), event.attr("process"), event.attr("pid")) for event in processes
    ] == [
        (0, "ana", "ana", None),
        (1, "ana", "python", 41233),
        (1, "bob", "triton", 5),
    ]


def test_dcgmi_dmon(read: Any) -> None:
    text = """#Entity   SMCLK      POWER      TMPTR  XIDER
ID        MHz        W          C
GPU 0     1410       398.123    62     0
GPU 1     705        120.100    N/A    79
GPU-I 4   1          1          1      1
"""
    found = read("dcgmi.log", text)
    assert {item.device: item.value.tolist() for item in found.table.all_metrics("sm_clock")} == {
        "0": [1410],
        "1": [705],
    }
    assert [value for _step, value in found.metrics("gpu_temperature")] == [62]
    assert [value for _step, value in found.metrics("gpu_xid")] == [0, 79]


ROCM = """============================ ROCm System Management Interface ============================
====================================== Concise Info ======================================
Device  Node  IDs              Temp        Power     Partitions          SCLK     MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
              (DID,     GUID)  (Junction)  (Socket)  (Mem, Compute, ID)
==========================================================================================
0       2     0x74a1,   28851  42.0°C      137.0W    NPS1, SPX, 0        132Mhz   900Mhz   0%   auto  750.0W  1%     0%
1       3     0x74a1,   51499  95.0°C      749.0W    NPS1, SPX, 0        2100Mhz  900Mhz   0%   auto  750.0W  96%    100%
==========================================================================================
================================== End of ROCm SMI Log ===================================
step 1 loss 2.0
"""
ROCM_OLD = """======================= ROCm System Management Interface =======================
================================= Concise Info =================================
GPU  Temp (DieEdge)  AvgPwr  SCLK    MCLK    Fan   Perf  PwrCap  VRAM%  GPU%
0    38.0c           90.0W   800Mhz  1600Mhz 0%    auto  500.0W    0%   7%
================================================================================
"""
ROCM_KEYS = """======================= ROCm System Management Interface =======================
GPU[0]\t\t: Temperature (Sensor junction) (C): 76.0
GPU[0]\t\t: sclk clock level: 2 (2100Mhz)
GPU[0]\t\t: GPU use (%): 98
GPU[0]\t\t: VRAM Total Memory (B): 68702699520
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ROCM, {"index": 1, "temperature": 95.0, "power_w": 749.0, "power_limit_w": 750.0, "sm_clock_mhz": 2100.0, "utilization": 100.0}),
        (ROCM_OLD, {"index": 0, "temperature": 38.0, "power_w": 90.0, "power_limit_w": 500.0, "sm_clock_mhz": 800.0, "utilization": 7.0}),
        (ROCM_KEYS, {"index": 0, "temperature": 76.0, "utilization": 98.0, "memory_total_bytes": 68702699520}),
    ],
)  # fmt: skip
def test_rocm_smi(read: Any, text: str, expected: dict[str, Any]) -> None:
    device = read("rocm.txt", text).table.named("system.gpu")[-1]
    assert {key: device.attr(key) for key in expected} == expected


REPORT = """
==============NVSMI LOG==============

Timestamp                                 : Sun Mar  2 04:00:00 2025
Driver Version                            : 550.54.15
CUDA Version                              : 12.4

Attached GPUs                             : 2
GPU 00000000:07:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    MIG Mode
        Current                           : Disabled
    GPU Reset Status
        Reset Required                    : Yes
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 4
            Link Width
                Max                       : 16x
                Current                   : 8x
    Clocks Event Reasons
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
    ECC Errors
        Volatile
            SRAM Correctable              : 1
            SRAM Uncorrectable Parity     : 1
            DRAM Correctable              : 12
            DRAM Uncorrectable            : 2
        Aggregate
            DRAM Uncorrectable            : 9
    Remapped Rows
        Pending                           : No
        Remapping Failure Occurred        : Yes
    Fabric
        State                             : In Progress
    Processes
        Process ID                        : 41233
            Type                          : C
            Name                          : python train.py
            Used GPU Memory               : 71000 MiB
GPU 00000000:0B:00.0
    Product Name                          : NVIDIA V100
    ECC Errors
        Volatile
            Double Bit
                Device Memory             : 2
                Total                     : 2
    Retired Pages
        Double Bit ECC                    : 12
    Processes                             : None
"""


def test_the_state_of_devices_in_the_long_report(read: Any) -> None:
    found = read("q.txt", REPORT)
    first, second = found.table.named("system.gpu")
    wanted = {
        "reset_required": 1.0,
        "pcie_generation": 4.0,
        "pcie_width": 8.0,
        "pcie_width_max": 16.0,
        "ecc_uncorrected": 3.0,
        "ecc_corrected": 13.0,
        "ecc_uncorrected_total": 9.0,
        "remap_failed": 1.0,
        "fabric_state": "In Progress",
        "mig": "Disabled",
        "processes": 1,
    }
    assert {key: first.attr(key) for key in wanted} == wanted
    assert (second.attr("ecc_uncorrected"), second.attr("retired_pages")) == (2.0, 12.0)
    assert [event.attr("reason") for event in found.table.named("system.throttle")] == [
        "hw_slowdown",
        "hw_thermal_slowdown",
    ]
    process = found.one("system.gpu_process")
    assert (process.attr("gpu"), process.attr("pid"), process.attr("memory_bytes")) == (0, 41233, 71000 * 2**20)
    assert first.time == 1740888000 * 10**6


def test_slices_of_a_device(read: Any) -> None:
    text = """+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.104.05             Driver Version: 535.104.05   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                   On |
| N/A   35C    P0              44W / 400W |     62MiB / 40960MiB |     N/A      Default |
|                                         |                      |              Enabled |
+-----------------------------------------+----------------------+----------------------+
| MIG devices:                                                                          |
|==================+================================+===========+=======================|
|  0    9   0   1  |            9800MiB /  9856MiB  | 14      0 |  1   0    0    0    0 |
|                  |               0MiB / 16383MiB  |           |                       |
+---------------------------------------------------------------------------------------+
|    0    9    0      51233      C   python                                     9750MiB |
+---------------------------------------------------------------------------------------+
"""
    found = read("smi.txt", text)
    piece = found.one("system.mig_device")
    assert (piece.attr("gpu"), piece.attr("instance"), piece.attr("memory_total_bytes")) == (0, 9, 9856 * 2**20)
    assert found.one("system.gpu_process").attr("pid") == 51233


LINKS = """GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1c4b)
\t Link 0: 26.562 GB/s
\t Link 1: <inactive>
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-1c4c)
\t Link 0: 26.562 GB/s
\t Link 1: 26.562 GB/s
"""
LINK_ERRORS = """GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-1c4b)
\t Link 0: Replay Errors: 0
\t Link 0: Recovery Errors: 0
\t Link 0: CRC Errors: 0

\t Link 1: Replay Errors: 412
\t Link 1: Recovery Errors: 3
\t Link 1: CRC Errors: 98123
"""


def test_links_between_devices(read: Any) -> None:
    found = read("nvlink.txt", LINKS).table.named("system.nvlink")
    assert [(event.attr("gpu"), event.value, event.attr("inactive_links")) for event in found] == [
        (0, 1, [1]),
        (1, 2, []),
    ]
    errors = read("nvlink.txt", LINK_ERRORS).one("system.nvlink")
    assert (errors.attr("gpu"), errors.attr("replay_errors"), errors.attr("recovery_errors")) == (3, 412, 3)
    assert errors.attr("worst_link") == 1


def test_topology(read: Any) -> None:
    text = "\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\nGPU0\t X \tNV18\tNV18\tPXB\t0-47\nGPU1\tNV18\t X \tSYS\tSYS\t0-47\nGPU2\tNV18\tSYS\t X \tSYS\t0-47\nNIC0\tPXB\tSYS\tSYS\t X\n"
    event = read("topo.txt", text).one("system.topology")
    assert (event.attr("gpus"), event.attr("usual"), event.attr("worse")) == (3, "NV18", ["GPU1-GPU2"])


NVITOP = """╒═════════════════════════════════════════════════════════════════════════════╕
│ NVITOP 1.3.2       Driver Version: 535.104.05      CUDA Driver Version: 12.2 │
├───────────────────────────────┬──────────────────────┬──────────────────────┤
│   0  A100-SXM4-80GB      On   │ 00000000:07:00.0 Off │                    0 │
│ N/A   62C    P0   398W / 400W │ 71.50GiB / 80.00GiB  │     98%      Default │
╘═══════════════════════════════╧══════════════════════╧══════════════════════╛
╒═════════════════════════════════════════════════════════════════════════════╕
│   0   41233 C     ana 71.00GiB  98  101.0  2.4  1:00  python train.py       │
╘═════════════════════════════════════════════════════════════════════════════╛
"""


def test_nvitop(read: Any) -> None:
    found = read("nvitop.txt", NVITOP)
    device, process = found.one("system.gpu"), found.one("system.gpu_process")
    assert (device.attr("memory_used_bytes"), device.attr("utilization"), device.attr("power_w")) == (
        71.5 * 2**30,
        98,
        398,
    )
    assert (process.attr("user"), process.attr("pid"), process.text) == ("ana", 41233, "python train.py")
