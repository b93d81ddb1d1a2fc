"""System tables inside logs: each is read the same with and without the prefix of a logger or a rank."""

from __future__ import annotations

from typing import Any

import pytest

PREFIXES = ("", "[rank2]: ", "2024-05-01 10:00:00,123 INFO train: ")

SMI_NEW = """Thu May  9 10:41:12 2024
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |
| N/A   30C    P0             71W /  700W |   40960MiB /  81920MiB |     38%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA GeForce RTX 4090        Off |   00000000:3B:00.0  On |                  N/A |
|ERR!   ERR!  ERR!            N/A /  N/A  |       4MiB /  24564MiB |    ERR!      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A      4711      C   .../bin/python3.10                         40950MiB |
|    1   N/A  N/A       900      G   /usr/lib/xorg/Xorg                              4MiB |
+-----------------------------------------------------------------------------------------+
after the table loss 3.0
"""
SMI_OLD = """+-----------------------------------------------------------------------------+
| NVIDIA-SMI 450.80.02    Driver Version: 450.80.02    CUDA Version: 11.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla V100-SXM2...  On   | 00000000:15:00.0 Off |                    2 |
| N/A   36C    P0    42W / 300W |      0MiB / 32510MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
+-----------------------------------------------------------------------------+
| Processes:                                                       GPU Memory |
|  GPU       PID   Type   Process name                             Usage      |
|=============================================================================|
|    0      8123      C   python                                       1234MiB |
+-----------------------------------------------------------------------------+
"""


def prefixed(text: str, prefix: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize("prefix", PREFIXES)
def test_nvidia_smi_in_its_new_layout(read: Any, prefix: str) -> None:
    found = read("job.log", "before\n" + prefixed(SMI_NEW, prefix))
    assert found.one("system.driver").attrs == {"driver": "550.54.15", "cuda": "12.4"}
    first, second = found.table.named("system.gpu")
    assert (first.attr("name"), first.attr("index"), first.attr("utilization")) == ("NVIDIA H100 80GB HBM3", 0, 38.0)
    assert (first.attr("memory_used_bytes"), first.attr("memory_total_bytes")) == (40960 * 2**20, 81920 * 2**20)
    assert (first.attr("temperature"), first.attr("power_limit_w"), first.attr("processes")) == (30.0, 700.0, 1)
    assert (second.attr("name"), second.attr("unreadable")) == ("NVIDIA GeForce RTX 4090", True)
    compute, graphics = found.table.named("system.gpu_process")
    assert (compute.attr("pid"), compute.attr("type"), graphics.attr("type")) == (4711, "C", "G")


def test_nvidia_smi_in_its_old_layout(read: Any) -> None:
    found = read("nvidia-smi.txt", SMI_OLD)
    device = found.one("system.gpu")
    assert (device.attr("name"), device.attr("ecc_uncorrected"), device.attr("power_w")) == (
        "Tesla V100-SXM2...",
        2,
        42.0,
    )
    assert found.one("system.gpu_process").attr("memory_bytes") == 1234 * 2**20


def test_two_tables_in_one_file_are_two(read: Any) -> None:
    assert len(read("smi.txt", SMI_OLD + SMI_OLD).table.named("system.gpu")) == 2


@pytest.mark.parametrize("lines", [2, 5, 8, 9, 11])
def test_a_table_that_is_cut_off_gives_what_it_has(read: Any, lines: int) -> None:
    found = read("smi.txt", "\n".join(SMI_OLD.splitlines()[:lines]))
    assert found.one("system.driver").attr("driver") == "450.80.02"
    assert len(found.table.named("system.gpu")) == (lines > 6)


SMI_Q = """==============NVSMI LOG==============

Timestamp                                 : Thu May  9 10:41:12 2024
Driver Version                            : 550.54.15
CUDA Version                              : 12.4
Attached GPUs                             : 1
GPU 00000000:19:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    FB Memory Usage
        Total                             : 81920 MiB
        Used                              : 2048 MiB
    BAR1 Memory Usage
        Total                             : 131072 MiB
    Utilization
        Gpu                               : 97 %
    ECC Errors
        Volatile
            DRAM Uncorrectable            : 3
    Remapped Rows
        Pending                           : Yes
    Clocks Event Reasons
        Idle                              : Not Active
        SW Thermal Slowdown               : Active
    Temperature
        GPU Current Temp                  : 88 C
    Clocks
        SM                                : 540 MHz
    Max Clocks
        SM                                : 1410 MHz
"""


def test_the_long_report_of_nvidia_smi(read: Any) -> None:
    found = read("smi-q.txt", SMI_Q)
    device = found.one("system.gpu")
    wanted = {
        "name": "NVIDIA A100-SXM4-80GB",
        "memory_total_bytes": 81920 * 2**20,
        "utilization": 97.0,
        "ecc_uncorrected": 3.0,
        "remap_pending": 1.0,
        "temperature": 88.0,
        "sm_clock_mhz": 540.0,
        "sm_clock_max_mhz": 1410.0,
        "driver": "550.54.15",
    }
    assert {key: device.attr(key) for key in wanted} == wanted
    assert found.one("system.throttle").attr("reason") == "sw_thermal_slowdown"


@pytest.mark.parametrize("prefix", PREFIXES)
def test_dmon_rows_are_metrics_by_device(read: Any, prefix: str) -> None:
    rows = "# gpu   pwr gtemp mtemp    sm   mem  mclk  pclk\n# Idx     W     C     C     %     %   MHz   MHz\n"
    rows += "    0    91    41     -     0     0  1593  1410\n    1   309    41    45    93    43  1593  1410\n"
    found = read("dmon.txt", prefixed(rows + rows, prefix))
    assert [value for _, value in found.metrics("gpu_utilization")] == [0.0, 93.0] * 2
    assert [value for _, value in found.metrics("sm_clock")] == [1410.0] * 4
    assert [label["gpu"] for label in found.labels("power")] == [0, 1, 0, 1]
    assert "memory_allocated" not in found.table.metric_names


def test_gpustat_lines_are_devices_and_processes(read: Any) -> None:
    text = "[0] NVIDIA A100-SXM4-80GB | 45'C,  98 %, 300 / 400 W | 74210 / 81920 MB | ana:python/123(74000M) bo(9M)\n"
    found = read("gpustat.txt", text)
    device = found.one("system.gpu")
    assert (device.attr("utilization"), device.attr("power_w"), device.attr("processes")) == (98.0, 300.0, 2)
    assert [event.attr("pid") for event in found.table.named("system.gpu_process")] == [123, None]


def test_a_query_table_inside_a_log(read: Any) -> None:
    text = "checking\nindex, name, utilization.gpu [%]\n0, NVIDIA A100, 55 %\n1, NVIDIA A100, 3 %\nstep 3 loss 2.0\n"
    found = read("job.log", text)
    assert [value for _, value in found.metrics("gpu_utilization")] == [55.0, 3.0]
    assert [event.line for event in found.table.named("system.gpu")] == [3, 4]


MEMORY = """|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 1                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: 71        |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |  20480 MiB |  25600 MiB |  91442 GiB |  91422 GiB |
|       from large pool |  20119 MiB |  24830 MiB |  90901 GiB |  90881 GiB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |  37888 MiB |  37900 MiB |   1544 GiB |   1507 GiB |
|---------------------------------------------------------------------------|
| Non-releasable memory |  17408 MiB |  17410 MiB |  96121 GiB |  96104 GiB |
|---------------------------------------------------------------------------|
| Allocations           |    2911    |    3377    |   44180 K  |   44177 K  |
|===========================================================================|
"""


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_memory_summary_of_torch(read: Any, prefix: str) -> None:
    found = read("job.log", prefixed(f"step 7 loss 2.5\n{MEMORY}", prefix))
    summary = found.one("system.memory_summary")
    assert (summary.attr("device"), summary.attr("ooms"), summary.attr("retries")) == (1, 1, 71)
    assert (summary.attr("allocated_bytes"), summary.attr("inactive_bytes")) == (20480 * 2**20, 17408 * 2**20)
    assert [value for _, value in found.metrics("memory_reserved")] == [37.0]
    assert [value for _, value in found.metrics("memory_allocated")] == [20.0]


def test_a_real_memory_summary_is_read(read: Any) -> None:
    torch = pytest.importorskip("torch")
    sizes = ("allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes", "inactive_split_bytes")
    rows = [f"{name}.{pool}" for name in (*sizes, "allocation", "active", "segment", "inactive_split")
            for pool in ("all", "large_pool", "small_pool")]  # fmt: skip
    stats = {f"{row}.{what}": 3 * 2**20 for row in rows for what in ("current", "peak", "allocated", "freed")}
    for name in ("oversize_allocations", "oversize_segments"):
        stats |= {f"{name}.{what}": 0 for what in ("current", "peak", "allocated", "freed")}
    stats |= {"num_ooms": 2, "num_alloc_retries": 5}
    patch = pytest.MonkeyPatch()
    with patch.context() as changed:
        changed.setattr(torch.cuda.memory, "memory_stats", lambda device=None: stats)
        changed.setattr(torch.cuda.memory, "_get_device_index", lambda device, optional: 0)
        text = torch.cuda.memory_summary()
    summary = read("summary.txt", text).one("system.memory_summary")
    assert (summary.attr("ooms"), summary.attr("retries")) == (2, 5)
    assert summary.attr("reserved_bytes") == 3 * 2**20
