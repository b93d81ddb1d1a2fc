"""The summary of torchrun."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

SUMMARY = """======================================================
train.py FAILED
------------------------------------------------------
Failures:
[1]:
  time      : 2021-12-20_10:01:52
  host      : nc24-vm3
  rank      : 10 (local_rank: 2)
  exitcode  : -6 (pid: 20713)
  error_file: <N/A>
  traceback : Signal 6 (SIGABRT) received by PID 20713
------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2021-12-20_10:01:50
  host      : nc24-vm3
  rank      : 9 (local_rank: 1)
  exitcode  : 1 (pid: 20712)
  error_file: /tmp/x/error.json
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
======================================================
"""


def test_every_failed_worker_with_rank_time_and_signal(read: Callable) -> None:
    first, second = sorted(read("run.log", SUMMARY).table.of_kind("process"), key=lambda event: event.line)
    assert (first.rank, first.host, first.value, first.attr("signal")) == (10, "nc24-vm3", -6, "SIGABRT")
    assert (first.attr("pid"), first.attr("local_rank"), first.attr("root_cause")) == (20713, 2, False)
    assert (second.rank, second.value, second.attr("signal"), second.attr("root_cause")) == (9, 1, None, True)
    assert second.attr("error_file") == "/tmp/x/error.json"
    assert second.time == datetime(2021, 12, 20, 10, 1, 50, tzinfo=timezone.utc).timestamp() * 1e6


def test_the_same_behind_the_prefix_of_another_launcher(read: Callable) -> None:
    tagged = "".join(f"0: {line}\n" for line in SUMMARY.splitlines())
    assert sorted(event.rank for event in read("run.log", tagged).table.of_kind("process")) == [9, 10]


def test_a_summary_cut_at_its_start(read: Callable) -> None:
    (event,) = read("run.log", "  exitcode  : -9 (pid: 5)\n").table.of_kind("process")
    assert (event.value, event.attr("signal"), event.attr("root_cause")) == (-9, "SIGKILL", False)
