from __future__ import annotations

from typing import Any

import pytest

from rca.facts.machine.gpu_models import capability_of, runs_on

SMI = """+-----------------------------------------------------------------------------+
| NVIDIA-SMI {driver}    Driver Version: {driver}    CUDA Version: {cuda}     |
|===============================+======================+======================|
|   0  {name}  On   | 00000000:15:00.0 Off |                    0 |
| N/A   36C    P0    42W / 300W |  {used}MiB / 81920MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
| Processes:                                                                  |
{processes}+-----------------------------------------------------------------------------+
"""
PROCESS = "|    0   N/A  N/A     {pid}      {kind}   .../bin/python         {size}MiB |\n"


def smi(*, driver: str = "550.54.15", cuda: str = "12.4", name: str = "NVIDIA H100 80GB HBM3", used: int = 4,
        processes: str = "") -> str:  # fmt: skip
    return SMI.format(driver=driver, cuda=cuda, name=name, used=used, processes=processes)


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA A100-SXM4-80GB", "8.0"), ("NVIDIA H100 80GB HBM3", "9.0"), ("Tesla V100-SXM2...", "7.0"),
        ("NVIDIA GeForce RTX 4090", "8.9"), ("NVIDIA GeForce RTX 5090", "12.0"), ("Tesla T4", "7.5"),
        ("NVIDIA A10G", "8.6"), ("NVIDIA RTX A6000", "8.6"), ("NVIDIA B200", "10.0"), ("NVIDIA L4", "8.9"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"), ("Tesla K80", "3.7"), ("Some Other Card", None),
    ],
)  # fmt: skip
def test_capabilities_by_name(name: str, capability: str | None) -> None:
    assert capability_of(name) == capability


@pytest.mark.parametrize(
    ("archs", "capability", "expected"),
    [
        ("['sm_80', 'sm_90']", "12.0", False),
        ("sm_80 sm_86", "8.9", True),
        ("sm_86", "8.0", False),
        ("sm_70 compute_70", "9.0", True),
        ("compute_90", "8.0", False),
        ("sm_100 sm_120", "12.0", True),
        ("sm_90a", "9.0", True),
        ("nothing", "9.0", None),
    ],
)
def test_which_builds_run_on_which_device(archs: str, capability: str, expected: bool | None) -> None:
    assert runs_on(archs, capability) is expected


@pytest.mark.parametrize(
    ("freeze", "build", "cpu"),
    [
        ("torch==2.6.0+cu124\nnumpy==1.26\ntrl==0.9\n", "12.4", False),
        ("torch==2.6.0+cpu\nnumpy==1.26\ntrl==0.9\n", None, True),
        ("torch==2.1.2\nnvidia-cuda-runtime-cu12==12.1.105\nnumpy==1.2\n", "12.1", False),
        ("torch==2.9.0+cu130\nnumpy==1.2\ntrl==0.9\n", "13.0", False),
        ("torch==2.1.2\nnumpy==1.26\ntrl==0.9\n", None, None),
    ],
)
def test_the_cuda_build(facts_of: Any, freeze: str, build: str | None, cpu: bool | None) -> None:
    found = facts_of({"pip_freeze.txt": freeze})
    assert found.get("env.cuda_build") == build
    assert found.get("env.cpu_only_torch") is cpu


@pytest.mark.parametrize(
    ("driver", "build", "old"),
    [
        ("450.80.02", "cu121", True),
        ("450.80.02", "cu118", False),
        ("525.60.13", "cu124", False),
        ("570.1.2", "cu130", True),
    ],
)
def test_drivers_that_are_too_old(facts_of: Any, driver: str, build: str, old: bool) -> None:
    found = facts_of({"smi.txt": smi(driver=driver), "pip_freeze.txt": f"torch==2.6.0+{build}\nnumpy==1.2\ntrl==0.9\n"})
    assert found["env.driver_too_old"] is old
    assert (found["env.driver"], found["env.driver_cuda"]) == (driver, "12.4")


def test_the_device(facts_of: Any) -> None:
    found = facts_of({"smi.txt": smi(), "env.txt": "torch.cuda.get_arch_list() ['sm_80', 'sm_86']\n"})
    assert (found["env.gpu_name"], found["env.gpu_count"], found["env.gpu_memory_gib"]) == (
        "NVIDIA H100 80GB HBM3",
        1,
        80.0,
    )
    assert (found["env.compute_capability"], found["env.arch_supported"]) == ("9.0", False)


@pytest.mark.parametrize(
    ("wanted", "conflicts"),
    [
        ("torch>=2.4,<3\nnumpy==1.26.4\n", 0),
        ("torch<2\nnumpy==1.26.4\n", 1),
        ("torch==2.5\nnumpy>=2\n", 2),
        ("absent==1\n", None),
    ],
)
def test_requirements_against_what_is_installed(facts_of: Any, wanted: str, conflicts: int | None) -> None:
    freeze = "torch==2.6.0+cu124\nnumpy==1.26.4\ntrl==0.9\n"
    found = facts_of({"pip_freeze.txt": freeze, "requirements.txt": wanted})
    assert found.get("env.requirement_conflicts") == conflicts


@pytest.mark.parametrize(
    ("table", "foreign"),
    [
        (smi(), 0),
        (smi(used=70000), None),
        (smi(used=70000, processes=PROCESS.format(pid=4711, kind="C", size=69000)), None),
        (smi(used=400, processes=PROCESS.format(pid=900, kind="G", size=300)), 0),
    ],
)
def test_whose_processes_are_on_the_device(facts_of: Any, table: str, foreign: int | None) -> None:
    assert facts_of({"smi.txt": table}).get("gpu.foreign_processes") == foreign


def test_a_process_before_the_job_is_somebody_elses(facts_of: Any) -> None:
    early = f"Tue Mar 11 09:13:58 2025\n{smi(used=70000, processes=PROCESS.format(pid=1, kind='C', size=69000))}"
    found = facts_of({"smi.txt": early, "train.log": "2025-03-11 09:20:00,000 INFO step 1 loss 2.0\n"})
    assert found["gpu.foreign_processes"] == 1
    assert found["gpu.used_before_start_share"] > 0.8
    late = facts_of({"train.log": "2025-03-11 09:00:00,000 INFO step 1 loss 2.0\n"})
    assert "gpu.foreign_processes" not in late


def test_the_host(facts_of: Any) -> None:
    df = "Filesystem Size Used Avail Use% Mounted on\nshm 64M 64M 0 100% /dev/shm\n/dev/a 1T 990G 10G 99% /data\n"
    sacct = "JobID|State|ExitCode|Elapsed|Timelimit|MaxRSS|ReqMem|\n7|OUT_OF_MEMORY|0:125|05:00:00|10:00:00|63G|64G|\n"
    found = facts_of({"df.txt": df, "sacct.txt": sacct, "limits.txt": "open files (-n) 1024\n"})
    assert (found["env.shm_gib"], found["env.shm_used_share"]) == (0.0625, 1.0)
    assert (found["env.disk_used_share"], found["env.disk_fullest"]) == (0.99, "/data")
    assert (found["env.slurm_state"], found["env.slurm_time_share"]) == ("OUT_OF_MEMORY", 0.5)
    assert found["env.max_rss_share"] == pytest.approx(63 / 64, abs=1e-3)
    assert found["env.open_files_limit"] == 1024


def test_ports_count_as_down_only_beside_one_that_is_up(facts_of: Any) -> None:
    up, down = "CA 'a'\n\tPort 1:\n\t\tState: Active\n", "CA 'b'\n\tPort 1:\n\t\tState: Down\n"
    assert facts_of({"ibstat.txt": up + down})["env.ib_ports_down"] == 1
    assert facts_of({"ibstat.txt": down + down})["env.ib_ports_down"] == 0


@pytest.mark.parametrize(("card", "rate", "slow"), [("MT4129", 10, 1), ("MT4129", 200, 0), ("MT4123", 10, 0)])
def test_a_port_is_slow_beside_others_of_its_kind(facts_of: Any, card: str, rate: int, slow: int) -> None:
    port = "CA '{}'\n\tCA type: {}\n\tPort 1:\n\t\tState: Active\n\t\tRate: {}\n"
    text = port.format("mlx5_0", "MT4129", 400) + port.format("mlx5_1", card, rate)
    assert facts_of({"ibstat.txt": text})["env.ib_ports_slow"] == slow
