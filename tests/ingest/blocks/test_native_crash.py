"""Crashes below Python."""

from __future__ import annotations

from collections.abc import Callable

import pytest

TERMINATE = """terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG 0 (default_pg) Rank 3] Process group watchdog thread terminated with exception: timeout
Exception raised from checkTimeout at ../ProcessGroupNCCL.cpp:609 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7fdca731425d in /opt/lib/libc10.so)
frame #1: <unknown function> + 0xdc253 (0x7f7a39b354ef in /lib/libstdc++.so.6)

after
"""


def test_an_uncaught_cpp_exception(read: Callable) -> None:
    (event,) = read("run.log", "start\n" + TERMINATE).table.of_kind("exception")
    assert (event.name, event.line, event.severity) == ("c10::DistBackendError", 2, "fatal")
    assert event.text.startswith("[PG 0 (default_pg) Rank 3] Process group watchdog")
    assert event.rank == 3
    assert [frame["file"] for frame in event.attr("frames")] == ["/lib/libstdc++.so.6", "/opt/lib/libc10.so"]


def test_with_a_tag_on_every_line(read: Callable) -> None:
    tagged = "".join(f"[rank5]: {line}\n" for line in TERMINATE.splitlines())
    (event,) = read("run.log", tagged).table.of_kind("exception")
    assert event.rank == 5
    assert len(event.attr("frames")) == 2


@pytest.mark.parametrize("line", ["terminate called without an active exception", "terminate called recursively"])
def test_without_an_exception(read: Callable, line: str) -> None:
    (event,) = read("run.log", line + "\n").table.of_kind("exception")
    assert event.name == "std::terminate"


def test_a_faulthandler_dump(read: Callable) -> None:
    text = """Fatal Python error: Segmentation fault

Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait

Current thread 0x00007f2 (most recent call first):
  File "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py", line 5 in run
  File "/srv/job/train.py", line 77 in step
  File "/srv/job/train.py", line 99 in <module>

Extension modules: numpy.core (total: 1)
./run.sh: line 4:  9104 Segmentation fault      (core dumped) python train.py
"""
    table = read("run.log", text).table
    (event,) = table.of_kind("exception")
    assert (event.name, event.text) == ("Fatal Python error", "Segmentation fault")
    assert [frame["line"] for frame in event.attr("frames")] == [99, 77, 5]
    assert event.attr("user_frame")["line"] == 77
    (exit_,) = table.of_kind("process")
    assert (exit_.value, exit_.attr("signal"), exit_.attr("pid")) == (-11, "SIGSEGV", 9104)
