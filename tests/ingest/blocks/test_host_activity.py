"""What a host does over time, as the usual tools print it."""

# ruff: noqa: E501 - tables stand as they are printed

from __future__ import annotations

from typing import Any

import pytest

VMSTAT = """procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 2  0      0 123456  20000 900000    0    0     5    10   50  100 10  2 88  0  0
 3 12 204800   3456  20000 900000  120 5000 80000 90000  500 1000  5 10 15 70  0
"""
IOSTAT = """avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           5.20    0.00    2.10   40.30    0.00   52.40

Device            r/s     rkB/s r_await     w/s     wkB/s w_await  aqu-sz  %util
sda            310.00  40000.00  120.50    0.00      0.00    0.00   37.40  99.80
"""
SAR_CPU = """04:00:01 AM     CPU     %user     %nice   %system   %iowait    %steal     %idle
04:10:01 AM     all      5.00      0.00      1.00     20.00      0.00     74.00
04:10:01 AM       0     99.00      0.00      1.00      0.00      0.00      0.00
Average:        all      5.00      0.00      1.00     20.00      0.00     74.00
"""
SAR_MEMORY = """12:00:01 AM kbmemfree   kbavail kbmemused  %memused kbbuffers  kbcached
12:10:01 AM   1000000   2000000   9000000     90.00     20000   3900000
"""


def test_vmstat_leaves_out_the_average_since_the_start(read: Any) -> None:
    event = read("vmstat.txt", VMSTAT).one("system.load")
    wanted = {"iowait_percent": 70.0, "blocked": 12.0, "swap_in": 120.0, "swap_out": 5000.0, "idle_percent": 15.0}
    assert event.line == 4
    assert {key: event.attr(key) for key in wanted} == wanted


def test_vmstat_without_a_column_is_read(read: Any) -> None:
    event = read("vmstat.txt", VMSTAT.replace(" so ", " -- ", 1)).one("system.load")
    assert (event.attr("swap_in"), event.attr("swap_out")) == (120.0, None)


def test_iostat(read: Any) -> None:
    found = read("iostat.txt", IOSTAT)
    assert found.one("system.load").attr("iowait_percent") == 40.3
    disk = found.one("system.disk")
    assert (disk.attr("device"), disk.value, disk.attr("read_wait_ms")) == ("sda", 99.8, 120.5)


def test_sar(read: Any) -> None:
    assert [event.attr("iowait_percent") for event in read("sar.txt", SAR_CPU).table.named("system.load")] == [20.0]
    memory = read("sar.txt", SAR_MEMORY).one("system.memory")
    assert (memory.attr("total_bytes"), memory.value) == (10_000_000 * 1024, pytest.approx(0.8))


def test_pidstat(read: Any) -> None:
    text = "04:00:01      UID       PID    %usr %system  %CPU   CPU  Command\n04:00:02     1000     41233   99.00    1.00  100.00     3  python train.py\n"
    event = read("pidstat.txt", text).one("system.process")
    assert (event.attr("pid"), event.value, event.text) == (41233, 100.0, "python train.py")


def test_processes_that_hang_are_kept(read: Any) -> None:
    head = "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
    busy = "".join(f"ana  {900 + n}  {90 - n}.0  1.0 99 64 ?  Rl 03:00 60:00 python\n" for n in range(80))
    found = read("ps.txt", head + busy + "ana  5  0.0  0.0 0 2048 ?  D  03:00 0:00 cp a b\n").table.named(
        "system.process"
    )
    assert len(found) == 31
    assert (found[-1].attr("state"), found[-1].attr("resident_bytes"), found[-1].text) == ("D", 2048 * 1024, "cp a b")


@pytest.mark.parametrize(
    ("text", "total", "share"),
    [
        ("              total        used        free      shared  buff/cache   available\nMem:         257671      250114        2000         100        5557        4200\n", 257671 * 2**20, 0.9707),
        ("               total        used        free      shared     buffers       cache   available\nMem:           251Gi       100Gi        50Gi       1.0Gi       1.0Gi       100Gi       149Gi\nTotal:         251Gi       100Gi        50Gi\n", 251 * 2**30, 0.3984),
        ("             total       used       free     shared    buffers     cached\nMem:      65959120   65000000     959120          0     187656   10000000\n-/+ buffers/cache:   54812344   11146776\nSwap:      2097148          0    2097148\n", 65959120 * 1024, 0.831),
        ("              total        used        free      shared  buff/cache   available\nMem:            251         100          50           1         101         149\n", 251 * 2**30, 0.3984),
    ],
)  # fmt: skip
def test_layouts_of_free(read: Any, text: str, total: int, share: float) -> None:
    memory = read("free.txt", text).one("system.memory")
    assert (memory.attr("total_bytes"), memory.value) == (total, pytest.approx(share, abs=1e-3))
