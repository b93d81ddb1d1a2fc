"""What the host was doing, and what the allocator printed."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Facts = Callable[[dict[str, Any]], dict[str, Any]]
DISK = "Device            r/s     rkB/s r_await     w/s  w_await  aqu-sz  %util\nsda            310.00  40000.00  {wait}    0.00     0.00   37.40  {util}\nsdb 0 0 0 0 0 0 1.0\n\n"


def test_the_busiest_disk_without_its_average_since_the_start(facts_of: Facts) -> None:
    found = facts_of({"iostat.txt": DISK.format(wait=1, util=2) + DISK.format(wait=120, util=99) * 2})
    assert (found["env.disk_busy_share"], found["env.disk_wait_ms"]) == (0.99, 120)


def test_swapping_and_waiting(facts_of: Facts) -> None:
    head = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
    row = " 3 12 204800   3456  20000 900000  120 5000 80000 90000  500 1000  5 10 15 70  0\n"
    found = facts_of({"vmstat.txt": head + row * 4})
    assert (found["env.iowait_share"], found["env.swap_kb_s"]) == (0.7, 5120)


def test_whom_the_kernel_killed(facts_of: Facts) -> None:
    text = """[9.1] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[9.2] memory: usage 67108864kB, limit 67108864kB, failcnt 1234
[9.3] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name
[9.4] [   4124]  1000  4124  4530853 16515072 43360000        0           968 pt_data_worker
[9.5] Memory cgroup out of memory: Killed process 4123 (python) total-vm:9kB, anon-rss:1048576kB, file-rss:0kB, shmem-rss:1048576kB, UID:1
"""
    found = facts_of({"dmesg.txt": text})
    assert (found["memory.oom_victim"], found["memory.oom_victim_gib"], found["memory.oom_limit_gib"]) == (
        "python",
        2,
        64,
    )
    assert found["memory.oom_largest"] == "pt_data_worker"


@pytest.mark.parametrize("kills", [0, 2])
def test_kills_of_a_container(facts_of: Facts, kills: int) -> None:
    text = f"low 0\nhigh 0\nmax 9\noom {kills}\noom_kill {kills}\n"
    assert facts_of({"memory.events": text})["env.cgroup_oom_kills"] == kills


def test_ports_processors_and_processes(facts_of: Facts) -> None:
    ps = "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\nana 5 0.0 0.0 0 2048 ? D 03:00 0:00 cp a b\n"
    cpu = "Architecture:            x86_64\nCPU(s):                  96\n"
    ports = "NIC statistics:\n     rx_packets: 5\n     rx_crc_errors_phy: 4\n"
    found = facts_of({"ps.txt": ps, "lscpu.txt": cpu, "ethtool.txt": ports})
    assert (found["env.stuck_processes"], found["env.cpu_count"], found["env.port_errors"]) == (1, 96, 4)


def test_statistics_of_the_allocator(facts_of: Facts) -> None:
    text = "{'allocated_bytes.all.current': 100, 'inactive_split_bytes.all.current': 500, 'num_alloc_retries': 12, 'reserved_bytes.all.current': 1000}\n"
    found = facts_of({"train.log": text})
    assert (found["memory.alloc_retries"], found["memory.inactive_share"]) == (12, 0.5)
