"""Stacks of living processes in the text that py-spy 0.4, faulthandler (Python 3.11), pystack and gdb 13 print."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LOADING = """\
Process 9213: /opt/venv/bin/python -B -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=4)
Python v3.11.7 (/opt/venv/bin/python3.11)

Thread 9213 (idle): "MainThread"
    _PollLikeSelector.select (selectors.py:415)
    wait (multiprocessing/connection.py:947)
    Queue.get (multiprocessing/queues.py:113)
    _MultiProcessingDataLoaderIter._try_get_data (torch/utils/data/dataloader.py:1291)
    _MultiProcessingDataLoaderIter._next_data (torch/utils/data/dataloader.py:1505)
    train_one_epoch (train.py:14)
    main (train.py:29)
    _wrap (torch/multiprocessing/spawn.py:87)
    <module> (<string>:1)
Thread 9433 (idle): "QueueFeederThread"
    Condition.wait (threading.py:327)
    Queue._feed (multiprocessing/queues.py:231)
    Thread._bootstrap (threading.py:1002)
"""
WORKER = """\

--------------------------------------------------------------------------------
Process 9432: /opt/venv/bin/python -B -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=4)
Python v3.11.7 (/opt/venv/bin/python3.11)
Parent Process 9213: /opt/venv/bin/python -B -c from multiprocessing.spawn import spawn_main

Thread 9432 (idle): "MainThread"
    Condition.wait (threading.py:327)
    Clips.__getitem__ (clips/reader.py:10)
    _MapDatasetFetcher.fetch (torch/utils/data/_utils/fetch.py:54)
    _worker_loop (torch/utils/data/_utils/worker.py:374)
    spawn_main (multiprocessing/spawn.py:122)
    <module> (<string>:1)
"""
NATIVE = """\
Process 9212: python train.py --rank 5 --world 8
Python v3.11.7 (/opt/venv/bin/python3.11)

Thread 9212 (idle): "MainThread"
    0x7f680c6a3f16 (libc.so.6)
    pthread_cond_wait (libc.so.6)
    c10d::Reducer::finalize_backward (libtorch_cpu.so)
    std::_Function_handler<void (), c10d::Reducer::ready(long)::{lambda()#1}>::_M_invoke (libtorch_cpu.so)
    THPEngine_run_backward (libtorch_python.so)
    _engine_run_backward (torch/autograd/graph.py:979)
    train_one_epoch (train.py:16)
    <module> (train.py:30)
    0x7f680c64524a (libc.so.6)
"""
LOCALS = """\
Process 77: python train.py
Python v3.12.1 (/opt/venv/bin/python3.12)

Thread 77 (active): "MainThread"
    barrier (torch/distributed/distributed_c10d.py:4100)
        Arguments:
            group: <ProcessGroup at 0x7fc12da2e810>
        Locals:
            opts: <BarrierOptions at 0x7fc12da2e810>
    save (train.py:29)
        Arguments:
            rank: 3
            world: 8
    <module> (train.py:40)
"""
FAULT = """\
Thread 0x00007f67dbfff6c0 (most recent call first):
  File "/opt/python3.11/lib/python3.11/threading.py", line 327 in wait
  File "/opt/python3.11/lib/python3.11/threading.py", line 1002 in _bootstrap

Current thread 0x00007f680ce2fb80 (most recent call first):
  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 2501 in all_reduce
  File "/opt/venv/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "/home/u/fit/loop.py", line 16 in train_one_epoch
  File "/home/u/fit/train.py", line 29 in <module>
"""
PYSTACK = """\
Traceback for thread 9433 (python) [] (most recent call last):
    (Python) File "/opt/python/lib/python3.11/threading.py", line 1002, in _bootstrap
        self._bootstrap_inner()
    (Python) File "/opt/python/lib/python3.11/threading.py", line 327, in wait
        waiter.acquire()

Traceback for thread 9213 (python) [Has the GIL] (most recent call last):
    (C) File "Modules/main.c", line 680, in Py_RunMain (/opt/python/lib/libpython3.11.so.1.0)
    (Python) File "/home/u/fit/train.py", line 40, in <module>
        main()
      Arguments:
        rank: 2
    (Python) File "/home/u/fit/train.py", line 29, in main
        torch.save(state, path)
    (Python) File "/opt/venv/lib/python3.11/site-packages/torch/serialization.py", line 944, in save
        _save(obj, opened_zipfile, pickle_module)
"""
GDB = """\
[Thread debugging using libthread_db enabled]
0x00007f680c726f36 in epoll_wait (epfd=23, timeout=10) at ../sysdeps/epoll_wait.c:30

Thread 2 (Thread 0x7f67e7fff6c0 (LWP 9353) "pt_gloo_runloop"):
#0  ___pthread_cond_timedwait64 (cond=0x7f67d4009bc0, mutex=0x7f67d4009b98) at ./nptl/pthread_cond_wait.c:643
#1  0x00007f67fe36573a in gloo::(anonymous namespace)::allreduce(Options const&) () from /opt/torch/lib/libtorch_cpu.so

Thread 1 (Thread 0x7f680ce2fb80 (LWP 9212) "python"):
#0  __futex_abstimed_wait_common64 (private=0, cancel=true) at ./nptl/futex-internal.c:57
#1  0x00007f67fbfd8713 in c10d::Reducer::finalize_backward() () from /opt/torch/lib/libtorch_cpu.so
#2  0x00007f680ac0927c in THPEngine_run_backward(_object*) () from /opt/torch/lib/libtorch_python.so
#3  Frame 0x7f67e4b5ab40, for file /home/u/fit/train.py, line 16, in train_one_epoch (step=2)
#4  0x000055eb2e721081 in _start ()
[Inferior 1 (process 9212) detached]
"""


def told(read: Any, name: str, text: str) -> list[tuple[Any, ...]]:
    found = read(name, text).table.named("process.stack")
    keys = ("pid", "process", "state", "operation", "waits_on")
    return [(event.line, event.rank, *(event.attr(key) for key in keys)) for event in found]


def test_py_spy_names_the_wait_and_the_line_of_the_program(read: Any) -> None:
    found = read("dump_rank_1.txt", LOADING)
    event = found.one("process.stack")
    assert (event.line, event.rank, event.attr("pid"), event.attr("state")) == (1, 1, 9213, "data_wait")
    frame = event.attr("user_frame")
    assert (frame["file"], frame["line"], frame["function"]) == ("train.py", 14, "train_one_epoch")
    assert event.attr("others") == [
        {"at": "Condition.wait (threading.py:327)", "name": "QueueFeederThread", "operation": "", "state": "lock"}
    ]
    assert event.phase == "train"
    assert "waits for the data loader" in event.text
    assert event.value is None


def test_processes_of_one_file_are_told_apart(read: Any) -> None:
    assert told(read, "dump.txt", LOADING + WORKER) == [
        (1, None, 9213, "main", "data_wait", None, "input"),
        (20, None, 9432, "data worker", "data", None, "lock"),
    ]


def test_native_frames_show_that_a_backward_pass_waits_for_others(read: Any) -> None:
    assert told(read, "a.txt", NATIVE) == [(1, 5, 9212, "main", "collective", None, None)]


def test_locals_name_the_rank(read: Any) -> None:
    assert told(read, "a.txt", LOCALS) == [(1, 3, 77, "main", "collective", "barrier", None)]


def test_faulthandler_dumps_that_repeat_are_two(read: Any) -> None:
    again = "Timeout (0:05:00)!\n" + FAULT
    assert told(read, "fault_rank0.log", "step 1 loss 2.0\n" + again + "\n" + FAULT) == [
        (3, 0, None, "main", "collective", "all_reduce", None),
        (13, 0, None, "main", "collective", "all_reduce", None),
    ]


def test_faulthandler_behind_a_prefix(read: Any) -> None:
    text = "".join(f"[rank3]: {line}\n" for line in FAULT.splitlines())
    assert told(read, "all.log", text) == [(1, 3, None, "main", "collective", "all_reduce", None)]


def test_faulthandler_of_one_thread(read: Any) -> None:
    text = FAULT[FAULT.index("Current") :].replace("Current thread 0x00007f680ce2fb80", "Stack")
    assert told(read, "a.txt", "loss 2.0\n" + text) == [(2, None, None, "main", "collective", "all_reduce", None)]


def test_pystack_prints_the_newest_call_last(read: Any) -> None:
    found = read("a.txt", PYSTACK).one("process.stack")
    assert (found.attr("state"), found.rank, found.phase) == ("save", 2, "save")
    assert found.attr("user_frame")["line"] == 29
    assert found.attr("frames")[-1]["function"] == "save"


def test_gdb_numbers_the_main_thread_last(read: Any) -> None:
    found = read("a.txt", GDB).one("process.stack")
    assert (found.line, found.attr("pid"), found.attr("state"), found.attr("threads")) == (4, 9212, "collective", 2)
    assert found.attr("user_frame") == {
        "code": None, "file": "/home/u/fit/train.py", "function": "train_one_epoch", "line": 16
    }  # fmt: skip
    assert found.attr("others")[0]["state"] == "collective"


def test_a_crash_keeps_its_own_stack(read: Any) -> None:
    found = read("a.log", "Fatal Python error: Segmentation fault\n\n" + FAULT)
    assert [event.name for event in found.table.events] == ["Fatal Python error"]


@pytest.mark.parametrize(
    "text", ["Process 12: started\n", "Thread 3 (LWP 5)\nready\n", "Process 1: a\n\nThread 1 (idle)\n"]
)
def test_words_alone_are_no_dump(read: Any, text: str) -> None:
    assert told(read, "a.log", text) == []


PIECES = [line + "\n" for text in (LOADING, WORKER, NATIVE, LOCALS, FAULT, PYSTACK, GDB) for line in text.splitlines()]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.sampled_from(PIECES) | st.text(max_size=30), max_size=40))
def test_torn_dumps_never_fail(read: Any, parts: list[str]) -> None:
    found = read("dump.txt", "".join(parts).encode("utf-8", "replace"))
    lines = "".join(parts).count("\n") + 1
    assert all(1 <= (event.line or 1) <= lines for event in found.table.named("process.stack"))
