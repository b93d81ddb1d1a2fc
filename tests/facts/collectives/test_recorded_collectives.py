from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..recorders import RECORDED, call, dump, matched, read, steps, values

WORLD = {("0", "default_pg"): range(4)}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("healthy", {"collective.state": "completed", "collective.undumped": 0}),
        ("uneven_exchange", {"collective.state": "completed"}),
        (
            "stuck",
            {
                "collective.state": "not_joined",
                "collective.culprit": 2,
                "collective.idle_rank": 2,
                "collective.missing_ranks": "2",
                "collective.where": "job/train.py:66 in train_step",
            },
        ),
        (
            "skipped",
            {
                "collective.state": "other_operation",
                "collective.odd_rank": 2,
                "collective.culprit": 2,
                "collective.op_mismatch": True,
                "collective.where": "job/train.py:73 in evaluate",
                "collective.waiting_where": "job/train.py:66 in train_step",
            },
        ),
        ("other_operation", {"collective.state": "other_operation", "collective.odd_rank": 2}),
        ("other_size", {"collective.state": "other_size", "collective.odd_rank": 2, "collective.numel_mismatch": True}),
        (
            "other_dtype",
            {"collective.state": "other_dtype", "collective.odd_rank": 2, "collective.dtype_mismatch": True},
        ),
        ("two_groups", {"collective.state": "not_joined", "collective.culprit": 3, "collective.idle_rank": 3}),
        ("transfer_size", {"collective.state": "other_size"}),
        ("transfer_missing", {"collective.state": "unmatched_transfer", "collective.culprit": 1}),
    ],
)
def test_dumps_that_pytorch_recorded(case: str, expected: dict[str, Any]) -> None:
    found = values(read(RECORDED / case))
    assert {name: found.get(name) for name in expected} == expected


def test_healthy_dumps_point_at_nobody() -> None:
    found = values(read(RECORDED / "healthy"))
    assert not {"collective.culprit", "collective.odd_rank", "collective.missing_ranks", "collective.where"} & set(
        found
    )


def test_a_rank_whose_dump_was_taken_a_step_earlier_is_not_missing(tmp_path: Path) -> None:
    dumps = {rank: dump(steps(9 if rank == 1 else 10), groups=WORLD) for rank in range(4)}
    found = matched(dumps, tmp_path)
    assert found["collective.state"] == "completed"
    assert "collective.missing_ranks" not in found


def test_all_started_and_none_completed(tmp_path: Path) -> None:
    dumps = {rank: dump([*steps(5), call(6, state="started")], groups=WORLD) for rank in range(4)}
    found = matched(dumps, tmp_path)
    assert found["collective.state"] == "not_completed"
    assert found["collective.all_equal"] is True
    assert found["collective.missing_count"] == 0
    assert "collective.culprit" not in found


def test_a_device_that_has_not_reached_the_collective(tmp_path: Path) -> None:
    dumps = {
        rank: dump([*steps(5), call(6, state="scheduled" if rank == 2 else "started")], groups=WORLD)
        for rank in range(4)
    }
    found = matched(dumps, tmp_path)
    assert found["collective.state"] == "not_started"
    assert found["collective.culprit"] == 2


def test_a_rank_without_a_dump(tmp_path: Path) -> None:
    dumps = {rank: dump([*steps(5), call(6, state="started")], groups=WORLD) for rank in range(3)}
    found = matched(dumps, tmp_path)
    assert found["collective.state"] == "not_dumped"
    assert found["collective.undumped_ranks"] == "3"
    assert found["collective.culprit"] == 3


def test_a_member_that_never_called_into_its_group(tmp_path: Path) -> None:
    groups = {**WORLD, ("1", "tp"): [2, 3]}
    waiting = call(1, state="scheduled", group=("1", "tp"), number=1)
    dumps = {rank: dump([*steps(3), *([waiting] if rank == 2 else [])], groups=groups) for rank in range(4)}
    found = matched(dumps, tmp_path)
    assert (found["collective.state"], found["collective.culprit"]) == ("not_joined", 3)
    assert found["collective.group"] == "group tp (1)"


def test_rings_that_were_overwritten_are_compared_where_they_overlap(tmp_path: Path) -> None:
    dumps = {
        rank: dump(
            [call(seq, sizes=[[seq]]) for seq in range(100 + 10 * rank, 201)] + [call(201, state="started")],
            groups=WORLD,
            first=100 + 10 * rank,
        )
        for rank in range(4)
    }
    dumps[3]["entries"][-1]["input_sizes"] = [[7]]
    found = matched(dumps, tmp_path)
    assert (found["collective.state"], found["collective.odd_rank"], found["collective.seq"]) == ("other_size", 3, 201)


def test_shapes_with_as_many_elements_are_alike(tmp_path: Path) -> None:
    shapes = ([[8, 8]], [[64]], [[2, 32]], [[64, 1]])
    dumps = {rank: dump([call(1, sizes=shapes[rank], state="started")], groups=WORLD) for rank in range(4)}
    assert matched(dumps, tmp_path)["collective.state"] == "not_completed"


@pytest.mark.parametrize(
    ("op", "inputs", "outputs"),
    [
        ("all_to_all", [[[1]], [[2]], [[3]], [[4]]], [[[4]], [[3]], [[2]], [[1]]]),
        ("scatter", [[[4], [4]], [], [], []], [[[4]]] * 4),
        ("gather", [[[4]]] * 4, [[[4], [4]], [], [], []]),
        ("all_gather_v", [[[1]], [[2]], [[3]], [[4]]], [[[10]]] * 4),
        ("barrier", [[], [[1]], [], []], [[], [[1]], [], []]),
    ],
)
def test_operations_whose_ranks_bring_different_sizes(op: str, inputs: Any, outputs: Any, tmp_path: Path) -> None:
    dumps = {
        rank: dump([call(1, op, sizes=inputs[rank], out=outputs[rank], state="started")], groups=WORLD)
        for rank in range(4)
    }
    assert matched(dumps, tmp_path)["collective.state"] == "not_completed"


def test_an_exchange_whose_totals_do_not_fit(tmp_path: Path) -> None:
    dumps = {
        rank: dump([call(1, "all_to_all", sizes=[[8]], out=[[8 + 4 * (rank == 1)]], state="started")], groups=WORLD)
        for rank in range(4)
    }
    assert matched(dumps, tmp_path)["collective.state"] == "other_size"


def test_coalesced_calls_are_one(tmp_path: Path) -> None:
    def entries(size: int) -> list[dict[str, Any]]:
        parts = [call(2, "all_gather_into_tensor_coalesced", sizes=[[size]]), call(2, "coalesced", sizes=[])]
        return [call(1), call(2, "all_gather_into_tensor_coalesced"), *parts, call(3, state="started")]

    dumps = {rank: dump(entries(32), groups=WORLD) for rank in range(4)}
    assert matched(dumps, tmp_path)["collective.state"] == "not_completed"
    dumps[1] = dump(entries(16), groups=WORLD)
    found = matched(dumps, tmp_path)
    assert (found["collective.state"], found["collective.odd_rank"], found["collective.seq"]) == ("other_size", 1, 2)


def test_two_groups_entered_in_different_order(tmp_path: Path) -> None:
    groups = {("1", "a"): [0, 1], ("2", "b"): [0, 1]}
    dumps = {
        rank: dump([call(1, state="scheduled", group=group, number=rank + 1)], groups=groups)
        for rank, group in enumerate(groups)
    }
    found = matched(dumps, tmp_path)
    assert found["collective.state"] == "crossed_groups"
    assert "collective.idle_rank" not in found
    assert "collective.culprit" not in found


def test_numbers_within_a_group_are_translated_to_global_ranks(tmp_path: Path) -> None:
    groups = {("5", "pp"): [1, 3]}

    def transfer(op: str, size: int) -> dict[str, Any]:
        return call(0, op, sizes=[[size]], group=("5", "pp"), number=5, state="started", p2p=1)

    dumps = {
        0: dump(steps(2)),
        1: dump([transfer("send 0->1", 8)], groups=groups),
        3: dump([transfer("recv 1<-0", 8)], groups=groups),
    }
    assert matched(dumps, tmp_path)["collective.state"] == "completed"
    dumps[3] = dump([], groups=groups)
    found = matched(dumps, tmp_path)
    assert (found["collective.state"], found["collective.culprit"]) == ("unmatched_transfer", 3)


def test_two_ranks_that_differ_have_no_majority(tmp_path: Path) -> None:
    dumps = {rank: dump([call(1, ("all_reduce", "broadcast")[rank], state="started")]) for rank in range(2)}
    found = matched(dumps, tmp_path)
    assert found["collective.op_mismatch"] is True
    assert "collective.odd_rank" not in found


def test_the_first_of_several_differences_counts(tmp_path: Path) -> None:
    usual = [call(seq, ("all_reduce", "broadcast")[seq % 2], state="started") for seq in range(1, 9)]
    ahead = [usual[0], *({**entry, "collective_seq_id": entry["collective_seq_id"] - 1} for entry in usual[2:])]
    dumps = {rank: dump(ahead if rank == 1 else usual, groups=WORLD) for rank in range(4)}
    found = matched(dumps, tmp_path)
    assert (found["collective.seq"], found["collective.odd_rank"]) == (2, 1)


def test_one_dump_says_nothing_about_others(tmp_path: Path) -> None:
    found = matched({0: dump([call(1, state="started")])}, tmp_path)
    assert found == {"collective.dumps": 1}


def test_logs_and_dumps_of_one_hang_name_the_same_rank(tmp_path: Path) -> None:
    from ..tables import Run
    from .test_unfinished import state, watchdog

    run = Run()
    for rank in (0, 1, 3):
        state(watchdog(run, rank, seq=6, numel=64), rank, 6, 5)
    dumps = {
        rank: dump([*steps(5), *([] if rank == 2 else [call(6, state="started")])], groups=WORLD) for rank in range(4)
    }
    logs = run.values()
    both = matched(dumps, tmp_path)
    for name in ("collective.culprit", "collective.missing_ranks", "collective.missing_count", "collective.all_equal"):
        assert logs[name] == both[name], name


@pytest.mark.slow
def test_hundreds_of_ranks(tmp_path: Path) -> None:
    ops = [("all_reduce", [[4096]]), ("_all_gather_base", [[512]]), ("_reduce_scatter_base", [[512]])]
    members = {("0", "default_pg"): range(300)}
    entries = [call(seq, ops[seq % 3][0], sizes=ops[seq % 3][1]) for seq in range(1, 101)]
    last = call(101, state="started")
    dumps = {rank: dump([*entries, *([] if rank == 277 else [last])], groups=members) for rank in range(300)}
    assert matched(dumps, tmp_path)["collective.culprit"] == 277
