from __future__ import annotations

from ..tables import Run


def watchdog(
    run: Run, rank: int, *, seq: int | None = 78, op: str = "ALLREDUCE", numel: int = 4096, group: int = 0
) -> Run:
    place = f"SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, " if seq is not None else f"OpType={op}, "
    text = (
        f"[PG ID {group} PG GUID {group} Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL({place}"
        "Timeout(ms)=600000) ran for 600096 milliseconds before timing out."
    )
    return run.log("nccl.watchdog_timeout", text, role="cascade", source=f"rank_{rank}.log", rank=rank, after=600.0)


def state(run: Run, rank: int, enqueued: int, completed: int) -> Run:
    text = f"failure detected by watchdog at work sequence id: 78 PG status: last enqueued work: {enqueued}, "
    text += f"last completed work: {completed}"
    return run.log("nccl.work_state", text, role="cascade", source=f"rank_{rank}.log", rank=rank, after=601.0)


def test_everyone_waits_alike() -> None:
    run = Run()
    for rank in range(4):
        state(watchdog(run, rank), rank, 79, 77)
    found = run.values()
    assert found["collective.timeout_ranks"] == 4
    assert found["collective.op"] == "ALLREDUCE"
    assert found["collective.all_equal"] is True
    assert found["collective.seq_spread"] == 0
    assert found["collective.timeout_s"] == 600
    assert found["collective.missing_count"] == 0
    assert found["collective.idle_ranks"] == 0
    assert "collective.culprit" not in found
    assert "collective.odd_rank" not in found


def test_odd_rank_in_another_collective() -> None:
    run = Run()
    for rank in range(4):
        watchdog(run, rank, seq=78 if rank == 3 else 80, op="_ALLGATHER_BASE" if rank == 3 else "ALLREDUCE")
    found = run.values()
    assert found["collective.odd_rank"] == 3
    assert found["collective.seq_spread"] == 2
    assert found["collective.lagging_ranks"] == "3"
    assert found["collective.all_equal"] is False
    assert found["collective.culprit"] == 3
    assert found["failure.rank"] == 3


def test_mismatch_at_the_same_place() -> None:
    ops = Run()
    for rank in range(4):
        watchdog(ops, rank, op="BROADCAST" if rank == 1 else "ALLREDUCE")
    assert ops.values()["collective.op_mismatch"] is True
    sizes = Run()
    for rank in range(4):
        watchdog(sizes, rank, numel=17 if rank == 1 else 4096)
    assert sizes.values()["collective.numel_mismatch"] is True
    assert sizes.values()["collective.op_mismatch"] is False


def test_all_to_all_may_differ_in_size() -> None:
    run = Run()
    for rank in range(4):
        watchdog(run, rank, op="ALLTOALL_BASE", numel=100 + rank)
    assert run.values()["collective.numel_mismatch"] is False


def test_missing_rank() -> None:
    run = Run().log("run.started", role="benign", severity="info", source="rank_2.log", rank=2)
    for rank in (0, 1, 3):
        watchdog(run, rank)
    found = run.values()
    assert found["collective.missing_ranks"] == "2"
    assert found["collective.culprit"] == 2
    assert found["collective.all_equal"] is False


def test_ranks_of_logs_that_are_not_here_are_not_missing() -> None:
    run = Run()
    for rank in (0, 8):
        watchdog(run, rank)
    assert "collective.missing_ranks" not in run.values()


def test_rank_with_a_lost_peer_is_not_missing() -> None:
    run = Run()
    for rank in (0, 1, 3):
        watchdog(run, rank)
    run.log("nccl.remote_error", role="cascade", source="rank_2.log", rank=2, after=600.0)
    assert "collective.missing_ranks" not in run.values()


def test_idle_rank_had_nothing_in_flight() -> None:
    run = Run()
    for rank in range(3):
        state(watchdog(run, rank), rank, 79, 77)
    state(run, 3, 77, 77)
    found = run.values()
    assert found["collective.idle_rank"] == 3
    assert found["collective.culprit"] == 3


def test_groups_are_not_compared() -> None:
    run = Run()
    for rank in range(3):
        watchdog(run, rank, seq=80)
    watchdog(run, 3, seq=5, group=7)
    found = run.values()
    assert found["collective.groups"] == 2
    assert found["collective.seq_spread"] == 0
    assert "collective.odd_rank" not in found


def test_old_wording_without_sequence_numbers() -> None:
    run = Run()
    for rank in range(3):
        watchdog(run, rank, seq=None, op="BROADCAST")
    found = run.values()
    assert found["collective.op"] == "BROADCAST"
    assert "collective.seq" not in found
    assert found["collective.ran_s"] == 600.096


def test_desync_report_and_barrier_name_ranks() -> None:
    text = "To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are: [1] finished #2"
    run = Run().log("nccl.desync_report", text, role="cascade")
    assert run.values()["collective.lagging_ranks"] == "1"
    barrier = Run().raised("RuntimeError", "Rank 0: Ranks 2, 3 failed to pass monitoredBarrier in 30000 ms")
    assert barrier.values()["collective.lagging_ranks"] == "2, 3"


def test_typed_captures_are_enough() -> None:
    run = Run()
    for rank in range(3):
        run.log("nccl.watchdog_timeout", "..", role="cascade", rank=rank, seq=4, op="ALLREDUCE", numel_in=8)
    found = run.values()
    assert found["collective.seq"] == 4
    assert found["collective.timeout_ranks"] == 3


def test_calm_run_has_no_collective_facts() -> None:
    found = Run().log("c10d.not_destroyed", "destroy_process_group() was not called", role="benign").values()
    assert not [name for name in found if name.startswith("collective.")]
