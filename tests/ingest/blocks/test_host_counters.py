"""Counters and sizes of a host, and the kernel's report of a kill."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from typing import Any

import pytest


def test_meminfo(read: Any) -> None:
    text = "MemTotal:       100000 kB\nMemFree:         1000 kB\nMemAvailable:    20000 kB\nSwapTotal:       50 kB\nSwapFree:        10 kB\nHugePages_Total:       0\n"
    memory = read("meminfo", text).one("system.memory")
    assert (memory.attr("total_bytes"), memory.value) == (100000 * 1024, pytest.approx(0.8))
    assert memory.attr("swap_used_bytes") == 40 * 1024


def test_counters_of_a_cgroup(read: Any) -> None:
    found = read("memory.events", "low 0\nhigh 0\nmax 81234\noom 3\noom_kill 2\noom_group_kill 0\n").one(
        "system.cgroup"
    )
    assert (found.value, found.attr("max")) == (2.0, 81234)
    assert read("memory.stat", "anon 68\nfile 10\nkernel 2\nshmem 6\n").one("system.cgroup").attr("shmem") == 6


def test_processors(read: Any) -> None:
    text = "Architecture:            x86_64\n  CPU op-mode(s):        32-bit, 64-bit\nCPU(s):                  96\nNUMA node(s):            2\nNUMA node0 CPU(s):       0-23\n"
    found = read("lscpu.txt", text).one("system.cpu")
    assert (found.attr("cpus"), found.attr("numa_nodes")) == (96, 2)


PERFQUERY = """# Port counters: Lid 5 port 1 (CapMask: 0x5A00)
PortSelect:......................1
CounterSelect:...................0x0000
SymbolErrorCounter:..............65535
LinkDownedCounter:...............0
PortXmitData:....................4294967295
"""
ETHTOOL = """NIC statistics:
     rx_packets: 123456
     rx_crc_errors_phy: 4123
     rx_out_of_buffer: 12
     link_down_events_phy: 7
"""


def test_error_counters_of_ports(read: Any) -> None:
    assert read("perfquery.txt", PERFQUERY).one("system.port_errors").attr("counters") == {"SymbolErrorCounter": 65535}
    event = read("ethtool.txt", ETHTOOL).one("system.port_errors")
    assert event.attr("counters") == {"rx_crc_errors_phy": 4123, "link_down_events_phy": 7}


OOM = """[91823.400123] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[91823.400141]  <TASK>
[91823.400150] memory: usage 67108864kB, limit 67108864kB, failcnt 1234
[91823.400151] swap: usage 0kB, limit 9007199254740988kB, failcnt 0
[91823.400161] [  pid  ]   uid  tgid total_vm      rss {heads} swapents oom_score_adj name
[91823.400163] [   4123]  1000  4123 24530853 16515072 {cells}        0           968 python
[91823.400164] [   4124]  1000  4124  4530853   515072 {cells}        0           968 pt_data_worker
[91823.400170] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0-1,oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/c,task=python,pid=4123,uid=1000
[91823.400180] Memory cgroup out of memory: Killed process 4123 (python) total-vm:98123412kB, anon-rss:66060288kB, file-rss:210000kB, shmem-rss:1048576kB, UID:1000 pgtables:140000kB oom_score_adj:968
[91824.000000] oom_reaper: reaped process 4123 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB
"""


@pytest.mark.parametrize(
    ("heads", "cells"),
    [("pgtables_bytes", "143360000"), ("rss_anon rss_file rss_shmem pgtables_bytes", "16510000 5072 0 143360000")],
)
def test_a_kill_of_the_kernel_is_one_record(read: Any, heads: str, cells: str) -> None:
    event = read("dmesg.txt", OOM.format(heads=heads, cells=cells)).one("system.oom_report")
    wanted = {
        "invoked_by": "python",
        "limit_bytes": 64 * 2**30,
        "constraint": "CONSTRAINT_MEMCG",
        "cgroup": "/kubepods/pod1",
        "pid": 4123,
        "killed": "python",
        "anon_bytes": 66060288 * 1024,
        "task_count": 2,
    }
    assert {key: event.attr(key) for key in wanted} == wanted
    assert [task["rss_bytes"] for task in event.attr("tasks")] == [16515072 * 4096, 515072 * 4096]
