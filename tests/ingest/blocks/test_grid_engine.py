"""What `qacct -j` says of a job."""

from __future__ import annotations

from typing import Any

import pytest

QACCT = """==============================================================
qname        gpu.q
hostname     n7.local
jobname      fit
jobnumber    551
slots        4
failed       {failed}
exit_status  {code}
ru_wallclock 4843s
maxvmem      32.000GB
category     -l h_vmem=8G,h_rt=24:00:00,gpu=1 -pe smp 4
"""


def test_the_limit_counts_for_each_slot(read: Any) -> None:
    table = read(
        "qacct.txt", QACCT.format(failed="100 : assumedly after job", code="137                  (Killed)")
    ).table
    (job,) = table.named("system.batch_job")
    assert job.attr("requested_memory_bytes") == job.attr("max_rss_bytes") == 32 * 2**30
    assert (job.attr("elapsed_s"), job.attr("time_limit_s"), job.attr("signal")) == (4843, 86400, "SIGKILL")
    assert [event.value for event in table.named("process.exit")] == [-9]


@pytest.mark.parametrize(("failed", "code", "exits"), [("0", "0", 0), ("0", "1", 1)])
def test_only_bad_ends_are_exits(read: Any, failed: str, code: str, exits: int) -> None:
    table = read("qacct.txt", QACCT.format(failed=failed, code=code)).table
    assert len(table.named("process.exit")) == exits


def test_half_a_record_is_none(read: Any) -> None:
    table = read("qacct.txt", "qname        gpu.q\nhostname     n7\n").table
    assert table.named("system.batch_job") == ()
