"""What stacks of a job that stands still say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

C10D = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
LOADER = "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
AUTOGRAD = "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py"


def dump(function: str, file: str, line: int = 16, own: str = "epoch", more: str = "") -> str:
    return (
        f'{more}Current thread 0x00007f680ce2fb80 (most recent call first):\n  File "{file}", line 9 in {function}\n'
        f'  File "/home/u/fit.py", line {line} in {own}\n  File "/home/u/fit.py", line 90 in <module>\n'
    )


def of(facts_of: Any, files: Mapping[str, str]) -> dict[str, Any]:
    return {name: value for name, value in facts_of(files).items() if name.startswith("stack.")}


def test_the_rank_that_loads_while_the_others_reduce(facts_of: Any) -> None:
    waits = dump("_engine_run_backward", AUTOGRAD)
    found = of(facts_of, {"dump_0.txt": waits, "dump_1.txt": waits, "dump_2.txt": dump("_next_data", LOADER, 14)})
    assert found["stack.processes"] == 3
    assert (found["stack.state"], found["stack.waiting"], found["stack.same"]) == ("backward", True, False)
    assert (found["stack.odd_rank"], found["stack.odd_state"]) == (2, "data_wait")
    assert (found["stack.odd_frame"], found["stack.frame"]) == ("fit.py:14 in epoch", "fit.py:16 in epoch")


def test_one_of_two_ranks_in_a_collective_waits_for_the_other(facts_of: Any) -> None:
    files = {
        "rank_0.txt": dump("save", "/opt/site-packages/torch/serialization.py"),
        "rank_1.txt": dump("barrier", C10D),
    }
    found = of(facts_of, files)
    assert (found["stack.odd_rank"], found["stack.odd_state"]) == (0, "save")


def test_the_rank_at_a_barrier_of_its_own_while_the_others_reduce(facts_of: Any) -> None:
    waits = dump("_engine_run_backward", AUTOGRAD)
    found = of(facts_of, {"dump_0.txt": dump("barrier", C10D, 33, "save"), "dump_1.txt": waits, "dump_2.txt": waits})
    assert (found["stack.odd_rank"], found["stack.odd_state"]) == (0, "collective")
    assert found["stack.odd_frame"] == "fit.py:33 in save"
    assert found["stack.waiting"] is True


def test_different_collectives(facts_of: Any) -> None:
    files = {"rank_0.txt": dump("broadcast", C10D, 7), "rank_1.txt": dump("all_reduce", C10D, 8)}
    found = of(facts_of, files)
    assert found["stack.op_mismatch"] is True
    assert "stack.odd" not in found


def test_the_same_collective_from_another_line_is_odd(facts_of: Any) -> None:
    files = {f"rank_{rank}.txt": dump("all_reduce", C10D, 70 if rank == 3 else 8) for rank in range(4)}
    found = of(facts_of, files)
    assert (found["stack.op_mismatch"], found["stack.odd_rank"]) == (False, 3)


def test_all_wait_alike(facts_of: Any) -> None:
    found = of(facts_of, {f"rank_{rank}.txt": dump("_next_data", LOADER) for rank in range(4)})
    assert (found["stack.state"], found["stack.same"], found["stack.waiting"]) == ("data_wait", True, False)
    assert "stack.odd" not in found


def test_the_last_dump_counts_and_the_same_place_twice_is_told(facts_of: Any) -> None:
    first, second = dump("_next_data", LOADER), dump("barrier", C10D)
    found = of(facts_of, {"rank_0.txt": first + "\n" + second + "\n" + second})
    assert (found["stack.state"], found["stack.operation"], found["stack.unchanged"]) == ("collective", "barrier", True)
    moved = of(facts_of, {"rank_0.txt": first + "\n" + second + "\n" + first})
    assert moved["stack.unchanged"] is False


def test_numbers_in_names_are_ranks_only_when_they_count_from_nought(facts_of: Any) -> None:
    waits = dump("_engine_run_backward", AUTOGRAD)
    found = of(facts_of, {"p4211.txt": waits, "p4212.txt": waits, "p4213.txt": dump("_next_data", LOADER)})
    assert found["stack.odd"] == "process p4213.txt"
    assert "stack.odd_rank" not in found


def test_a_worker_that_waits_for_a_lock(facts_of: Any) -> None:
    spy = """\
Process 9432: python -c from multiprocessing.spawn import spawn_main
Thread 9432 (idle): "MainThread"
    Condition.wait (threading.py:327)
    Clips.__getitem__ (clips/reader.py:10)
    _MapDatasetFetcher.fetch (torch/utils/data/_utils/fetch.py:54)
    _worker_loop (torch/utils/data/_utils/worker.py:374)
    <module> (<string>:1)
"""
    found = of(facts_of, {"dump.txt": spy})
    assert (found["stack.workers"], found["stack.workers_stuck"], found["stack.worker_state"]) == (1, 1, "lock")
    assert found["stack.worker_frame"] == "reader.py:10 in Clips.__getitem__"
    assert "stack.state" not in found


def test_the_one_rank_that_is_in_no_collective_is_the_one_the_others_wait_for(facts_of: Any) -> None:
    waits, loads = dump("barrier", C10D), dump("_next_data", LOADER)
    found = facts_of({"rank_0.txt": waits, "rank_1.txt": loads, "rank_2.txt": waits, "rank_3.txt": waits})
    assert found["collective.culprit"] == found["stack.odd_rank"] == 1
    assert "collective.culprit" not in facts_of({"rank_0.txt": waits, "rank_1.txt": waits, "rank_2.txt": waits})


def test_two_ranks_waiting_for_each_other_point_at_nobody(facts_of: Any) -> None:
    found = facts_of({"rank_0.txt": dump("barrier", C10D), "rank_1.txt": dump("_next_data", LOADER)})
    assert "collective.culprit" not in found
